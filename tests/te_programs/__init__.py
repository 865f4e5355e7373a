"""Tensor programs for the tests, as functions of the namespaces ``te`` and ``tir``: what each returns are the arguments.

They are written in the spelling that TVM 0.27 has too; the golden text of each was compared with what it makes of them.
"""

from . import elementwise, layers, reductions, symbolic  # noqa: F401 (they fill the table)
from .programs import PROGRAMS

__all__ = ["PROGRAMS"]
