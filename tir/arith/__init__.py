"""Integer reasoning: bounds, remainders, simplification, iterator maps, regions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checked import checked
from ..expr import Expr, Var
from .analyzer import Analyzer
from .stmt_simplify import simplify_stmt


@checked
def simplify(expr: Any, bounds: Mapping[Var, Any] | None = None) -> Expr:
    """An equal expression in canonical form, given the ranges (or values) of variables; the same object if unchanged.

    >>> from tir.buffer import Range
    >>> from tir.expr import IntImm, Var
    >>> i, j = Var("i"), Var("j")
    >>> simplify((i * 4 + j) // 4, {j: Range(IntImm(0), IntImm(4))}) is i
    True
    """
    return Analyzer(bounds).simplify(expr)


__all__ = ["Analyzer", "simplify", "simplify_stmt"]


def __dir__() -> list[str]:
    return list(__all__)
