"""After each step: are parallel, vectorized and thread-bound loops still free of carried dependences?

A step that places a block, a copy or a layout's padding changes what iterations of the loops around touch, whichever
primitive it is. So the answer is the same whether a loop was made parallel before or after. The loop of
the lanes inside an intrinsic is taken on trust: behind its pointers it does what the block did that it replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...analysis.index import Index, LoopRef, index_of
from ...analysis.simple_blocks import constant, distinguishes_iterations
from ...function import PrimFunc
from ...stmt import PARALLEL, THREAD_BINDING, VECTORIZED, BufferStore, For
from ...visit import walk
from ..legality import clash
from . import Keeps, Problem, invariant
from .delta import Delta


@invariant(kept_by=Keeps.ACCESSES)
def parallel_loops(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """Iterations of parallel and vectorized loops are independent."""
    return _carried(after, delta, delta.changed_loops((PARALLEL, VECTORIZED)))


@invariant(kept_by=Keeps.THREADS)
def bound_loops(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """Threads of loops bound to an axis are independent in global memory."""
    return _carried(after, delta, delta.changed_loops((THREAD_BINDING,)))


def _carried(after: PrimFunc, delta: Delta, loops: Iterable[LoopRef]) -> Iterator[Problem]:
    """The dependences that ``loops`` carry through memory whose uses changed."""
    index = index_of(after)
    for ref in loops:
        if constant(ref.node.extent) in (0, 1) or not delta.may_clash(ref):
            continue
        if _plain(index, ref) or _of_an_intrinsic(index, ref):
            continue
        found = clash(after, ref.node)
        if found is not None:
            yield Problem(ref.name, found.rule, found.witness, found.nodes, found.legal)


def _of_an_intrinsic(index: Index, ref: LoopRef) -> bool:
    """Whether ``ref`` is the loop of the lanes in what tensorize put in: calls, which work for a warp together."""
    calls = not index.blocks_below(ref) and not any(isinstance(n, BufferStore) for n in walk(ref.node))
    return calls and ref.node.kind == "thread_binding"


def _plain(index: Index, ref: LoopRef) -> bool:
    """Whether iterations plainly keep to elements of their own: told apart by each block's iterators, no block touching
    what another writes."""
    blocks = index.blocks_below(ref)
    inside = {b: [p.node for p in b.loops() if ref in p.ancestors()] for b in blocks}
    if not blocks or any(isinstance(p.node, For) and p.scope is not ref.scope for p in index.below(ref)):
        return False
    if not all(distinguishes_iterations(b.node, ref.node, inside[b]) for b in blocks):
        return False
    touched = [{r.buffer.data for r in (*b.block.reads, *b.block.writes)} for b in blocks]
    return all(
        n == m or touched[n].isdisjoint(r.buffer.data for r in b.block.writes)
        for n in range(len(blocks))
        for m, b in enumerate(blocks)
    )
