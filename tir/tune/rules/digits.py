"""Reductions whose operands are indexed by digits of an iterator, such as the groups of a convolution: the digits become
iterators of their own."""

from __future__ import annotations

from collections.abc import Iterator

from ...arith.index_map import IndexMap
from ...expr import Expr, FloorDiv, FloorMod, IntImm
from ...schedule import Schedule
from ...visit import walk
from ..nest import Axis, Nest
from ..space import Env, rule


@rule(targets=("llvm",), order=34)
def digits(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Make ``v // n`` and ``v % n`` two iterators, of a reduction that reads elsewhere for each ``v // n``."""
    nest = Nest.of(sch, block)
    found = nest and nest.reduction and next(_divided(nest), None)
    if not nest or not found:
        return []
    axis, size = found
    made = sch.copy()
    at = next(n for n, i in enumerate(nest.block.iter_vars) if i.var is axis.var)

    def parted(*point: Expr) -> tuple[Expr, ...]:
        return (*point[:at], point[at] // size, point[at] % size, *point[at + 1 :])

    made.transform_block_layout(block, IndexMap.from_func(parted, ndim=len(nest.block.iter_vars)))
    return [made]


def _divided(nest: Nest) -> Iterator[tuple[Axis, int]]:
    """The spatial axes by whose digits the block reads, and what they are divided by."""
    of = {a.var: a for a in nest.spatial if a.extent is not None}
    for load in nest.loads:
        for node in (n for index in load.indices for n in walk(index)):
            if not isinstance(node, (FloorDiv, FloorMod)) or not isinstance(node.b, IntImm):
                continue
            axis = of.get(node.a)  # type: ignore[call-overload]
            if axis is not None and axis.size % node.b.value == 0 and 1 < node.b.value < axis.size:
                yield axis, node.b.value
