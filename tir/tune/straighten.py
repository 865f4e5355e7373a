"""Sums along rows of large operands, such as weights of four bits: what is read otherwise, and often, is laid out as these rows."""

from __future__ import annotations

from ..expr import Expr
from ..schedule import Schedule
from .nest import Access, Axis, Nest, volume

OFTEN = 8  # times that an element is read for which a copy of it pays off


def straighten(sch: Schedule, nest: Nest, lanes: int) -> Nest:
    """Let a block read what it uses often from a copy in which those terms are side by side that are so in what it uses once.

    Returns the nest that the block is then; the same if there are no such terms, of whole vectors of ``lanes``.
    """
    row = next((a for a in reversed(nest.reduce) if _is_row(nest, a, lanes)), None)
    if row is None:
        return nest
    for access in _across(nest, row):
        _lay_out(sch, nest.name, access, row)
    found = Nest.of(sch, nest.name)
    assert found is not None
    return found


def _across(nest: Nest, axis: Axis) -> list[Access]:
    """The operands that are not walked through along ``axis``."""
    return [a for a in nest.loads if a.stride(axis.var) not in (0, 1)]


def _is_row(nest: Nest, axis: Axis, lanes: int) -> bool:
    """Whether operands lie along ``axis``, of whole vectors, and each of the others is linear, used often, and read at one place, so that it can be copied."""
    across = _across(nest, axis)
    if not across or axis.size % lanes or all(a.stride(axis.var) != 1 for a in nest.loads):
        return False
    return all(_is_often_used(nest, a) and len(nest.loads_of(a.buffer)) == 1 for a in across)


def _is_often_used(nest: Nest, access: Access) -> bool:
    steps = [(access.stride(a.var), a) for a in nest.axes]
    return all(step is not None for step, _ in steps) and volume(a for step, a in steps if step == 0) >= OFTEN


def _lay_out(sch: Schedule, block: str, access: Access, row: Axis) -> None:
    """Read ``access`` of a block from a copy whose last axis is ``row``."""
    regions = [r.buffer for r in sch.get(block).reads]
    copy = sch.reindex(block, ("read", regions.index(access.buffer)))
    nest = Nest.of(sch, block)
    assert nest is not None
    places = next(a.places for a in nest.loads if a.buffer is sch.get(copy).writes[0].buffer)
    last = next(n for v, n in places.items() if v.name == row.var.name)

    def turned(*point: Expr) -> tuple[Expr, ...]:
        return (*(e for n, e in enumerate(point) if n != last), point[last])

    sch.transform_layout(copy, ("write", 0), turned)
