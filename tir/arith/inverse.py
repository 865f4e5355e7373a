"""The inverse of a bijective iterator map: loop variables as expressions of the index values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..buffer import Range
from ..expr import Expr, Var
from .analyzer import Analyzer
from .itermap import Fused, IterMap, Split


def inverse_iter_map(iter_map: IterMap, outputs: Sequence[Expr]) -> dict[Var, Expr]:
    """Each loop variable as an expression of the index values ``outputs`` (for a bijective map).

    Raises ``ValueError`` for a wrong number of outputs.
    """
    if len(outputs) != len(iter_map.indices):
        raise ValueError(f"{len(iter_map.indices)} indices need as many outputs, got {len(outputs)}")
    ctx = Analyzer()
    values: dict[Any, Expr] = {}
    for index, out in zip(iter_map.indices, outputs):
        if isinstance(out, Var):
            ctx.bind(out, Range(index.base, index.extent))
    for index, out in zip(iter_map.indices, outputs):
        _distribute(index.splits, ctx.simplify(out - index.base), values)
    for source in _outside_in(values):
        _distribute(source.parts, ctx.simplify(values.pop(source)), values)
    result = {}
    for var, dom in iter_map.domains.items():
        value = values.get(var)
        result[var] = dom.min if value is None else ctx.simplify(value + dom.min)
    return result


def _outside_in(values: dict[Any, Expr]) -> list[Fused]:
    """The fused sources used, each before those inside it."""
    order: list[Fused] = []
    for source in list(values):
        _list_outside_in(source, order)
    return order


def _list_outside_in(source: Any, order: list[Fused]) -> None:
    if isinstance(source, Fused) and source not in order:
        for part in source.parts:
            _list_outside_in(part.source, order)
        order.insert(0, source)


def _distribute(splits: Sequence[Split], value: Expr, values: dict[Any, Expr]) -> None:
    """Give each split its digit of ``value``, placed at its position in the split's source."""
    for n, split in enumerate(splits):
        digit = value // split.scale
        if n > 0:
            digit = digit % split.extent
        part = digit * split.lower
        values[split.source] = values[split.source] + part if split.source in values else part
