"""Simplifies expressions with what loops and conditions imply; removes hints."""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer, simplify_stmt
from ..expr import Call
from ..function import PrimFunc
from ..visit import rewrite
from .passes import func_pass


def _unlikely(item: Any) -> Any:
    return item.args[0] if isinstance(item, Call) and item.op == "likely" else None


@func_pass
def simplify(func: PrimFunc) -> PrimFunc:
    """Every expression simplified under the loops, lets and conditions around it; decided branches removed.

    Assumes that no size of a parameter is negative.
    """
    known = Analyzer()
    known.assume_sizes(func.buffers())
    return func.with_body(simplify_stmt(func.body, known))


@func_pass
def remove_likely(func: PrimFunc) -> PrimFunc:
    """``T.likely(c)`` becomes ``c``."""
    return func.with_body(rewrite(func.body, _unlikely))
