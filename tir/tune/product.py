"""A contraction as a matrix product: one axis each of batches, rows, columns and terms, over operands of these axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..arith.index_map import IndexMap
from ..errors import ScheduleError
from ..expr import Expr, const
from ..schedule import Schedule
from .contracted import Contraction
from .nest import Access, Axis, Nest

Groups = Sequence[Sequence[Axis]]


def as_product(sch: Schedule, found: Contraction) -> Contraction:
    """The contraction with axes of one kind fused, as a matrix product of ``sch``; itself if it is one.

    Operands that are indexed otherwise are read through blocks that gather them (the windows of a convolution), to be inlined
    into what copies tiles of them. Raises ``ScheduleError`` where axes of one element leave no matrices.
    """
    groups = [found.batch, found.rows, [*found.columns, found.lane], found.terms]
    name, block = found.nest.name, found.nest.block
    for operand in (found.other, found.panel):
        order = _order(operand, found, groups)
        if not _is_plain(operand, order):
            _gather(sch, name, operand, order)
    result = found.nest.stores[0]
    order = [groups[0], groups[1], groups[2]]
    if not _is_plain(result, order):
        _gather(sch, name, result, order)
    if any(len(g) > 1 for g in groups) or len(found.nest.axes) != len(block.iter_vars):
        sch.transform_block_layout(name, _fused(block.iter_vars, groups))
    nest = Nest.of(sch, name)
    made = nest and Contraction.of(nest)
    if not made or not _is_product(made):
        raise ScheduleError(f"{name} is no product of matrices")
    return made


def _is_product(made: Contraction) -> bool:
    """Whether a contraction has one axis of rows, of columns and of terms, which index both operands."""
    if made.columns or len(made.rows) != 1 or len(made.terms) != 1:
        return False
    term, sides = made.terms[0].var, ((made.other, made.rows[0].var), (made.panel, made.lane.var))
    return all(term in operand.places and own in operand.places for operand, own in sides)


def _order(operand: Access, found: Contraction, groups: Groups) -> list[Sequence[Axis]]:
    """The groups of axes that index an operand, in the order in which it lies in memory: terms last if neighbours are."""
    batch, rows, columns, terms = groups
    own = columns if operand is found.panel else rows
    last = own[-1]
    return [batch, terms, own] if operand.stride(last.var) == 1 else [batch, own, terms]


def _is_plain(operand: Access, order: Groups) -> bool:
    """Whether an operand has one axis for each group, in this order."""
    wanted = [g[0].var for g in order if len(g) == 1]
    same = len(operand.indices) == len(wanted) and all(i is v for i, v in zip(operand.indices, wanted))
    return same and all(len(g) <= 1 for g in order)


def _gather(sch: Schedule, name: str, access: Access, order: Groups) -> None:
    """Access a buffer through a copy with an axis for each group of axes."""
    which = "write" if any(r.buffer is access.buffer for r in sch.get(name).writes) else "read"
    regions = getattr(sch.get(name), f"{which}s")
    place = (which, next(n for n, r in enumerate(regions) if r.buffer is access.buffer))
    made = sch.reindex(name, place)
    axes = [axis.min for axis in getattr(sch.get(name), f"{which}s")[place[1]].region]  # iterators: one for each axis
    layout = _fused(axes, order)
    sch.transform_layout(name, place, layout)
    sch.transform_block_layout(made, layout)


def _fused(axes: Sequence[object], groups: Groups) -> IndexMap:
    """The map of iterators ``axes`` to one index for each group that has any."""
    names = [getattr(getattr(a, "var", a), "name", "") for a in axes]

    def fuse(*at: Expr) -> tuple[Expr, ...]:
        return tuple(
            _flat([(at[names.index(a.var.name)], a.size) for a in g if a.var.name in names]) for g in groups if g
        )

    return IndexMap.from_func(fuse, ndim=len(names))


def _flat(parts: Sequence[tuple[Expr, int]]) -> Expr:
    """Row-major index of ``parts``: (index, extent) pairs."""
    if not parts:
        return const(0, "int32")
    sizes = [size for _, size in parts]
    return sum(
        (index * prod(sizes[n + 1 :]) for n, (index, _) in enumerate(parts[1:], 1)), parts[0][0] * prod(sizes[1:])
    )
