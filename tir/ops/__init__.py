"""Operators on tensors: ``ops.add(x, y)``, ``ops.nn.conv2d(…)``.

Each takes and gives tensors of :mod:`tir.te`. Files here are discovered automatically; what they define with
``@operator`` is an attribute of this package, or of the one of its namespace (``ops.nn``).
"""

from __future__ import annotations

from ..extension import load_files
from ..te import Pattern, function_of, pattern  # noqa: F401
from .check import check  # noqa: F401
from .default_schedule import schedule  # noqa: F401
from .registry import Argument, Case, Operator, arg, attributes, case, find, operator, operators  # noqa: F401

load_files(__name__)
__getattr__, __dir__ = attributes()
