"""An invariant: loops are not nested deeper than six."""

from collections.abc import Iterator

from tir.analysis.index import index_of
from tir.function import PrimFunc
from tir.schedule.invariants import Delta, Keeps, Problem, invariant


@invariant(kept_by=Keeps.LOOPS)
def shallow_nests(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """At most six loops are around a block."""
    for block in index_of(after).blocks.values():
        depth = len(block.all_loops())
        if depth > 6:
            yield Problem(
                block.name, f"block `{block.name}` would be in {depth} loops", nodes=[block.node], excess=depth
            )
