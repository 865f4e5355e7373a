"""Reductions whose operands are indexed by digits of an iterator, such as the groups of a convolution, those of quantized
weights that share a scale, or the phases of a transposed convolution: the digits become iterators of their own."""

from __future__ import annotations

from collections.abc import Iterator

from ...arith.index_map import IndexMap
from ...arith.linear import linear
from ...expr import Expr, FloorDiv, FloorMod, IntImm
from ...schedule import Schedule
from ...visit import walk
from ..contracted import Contraction
from ..nest import Axis, Nest
from ..space import Env, rule


@rule(targets=("llvm",), order=34)
def digits(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Make ``v // n`` and ``v % n`` two iterators, of a reduction that reads elsewhere for each ``v // n``, or ``(v - k) // n``; and the
    digits of these."""
    made = sch
    while (nest := Nest.of(made, block)) and nest.reduction and (found := next(_divided(nest), None)):
        made = made.copy() if made is sch else made
        _split(made, nest, *found)
    return [] if made is sch else [made]


def _split(sch: Schedule, nest: Nest, axis: Axis, size: int) -> None:
    """Make two iterators of one."""
    at = next(n for n, i in enumerate(nest.block.iter_vars) if i.var is axis.var)

    def parted(*point: Expr) -> tuple[Expr, ...]:
        return (*point[:at], point[at] // size, point[at] % size, *point[at + 1 :])

    sch.transform_block_layout(nest.name, IndexMap.from_func(parted, ndim=len(nest.block.iter_vars)))


def _divided(nest: Nest) -> Iterator[tuple[Axis, int]]:
    """The axes by whose digits the block reads, and what they are divided by. Terms of a contraction are not among them: its rule
    reads panels in any order."""
    axes = nest.spatial if Contraction.of(nest) else nest.axes
    for load in nest.loads:
        for node in (n for index in load.indices for n in walk(index)):
            if not isinstance(node, (FloorDiv, FloorMod)) or not isinstance(node.b, IntImm):
                continue
            terms = linear(node.a)
            for axis in axes:
                if abs(terms.coefficient(axis.var)) != 1 or load.stride(axis.var) is not None:
                    continue  # the digits of a place in memory, as a reshaped array is read: neighbours stay neighbours
                if axis.fills(node.b.value) and 1 < node.b.value < axis.size:
                    yield axis, node.b.value
