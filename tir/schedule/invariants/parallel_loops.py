"""After each step: are parallel, vectorized and thread-bound loops still free of carried dependences?

Any primitive that places a block, a copy or a layout's padding changes what iterations of the loops around it access.
So the answer does not depend on whether a loop was made parallel before or after. The lane loop inside a tensor
intrinsic is trusted: behind its pointers it does what the block did that it replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...aliases import memory_of, shares_memory
from ...analysis.dependence.loop_questions import concurrent_iterations
from ...analysis.dependence.tiers import Refuted, Unknown
from ...analysis.index import Index, LoopRef, index_of
from ...analysis.simple_blocks import constant
from ...expr import Var
from ...function import PrimFunc
from ...stmt import PARALLEL, THREAD_BINDING, VECTORIZED, BufferStore
from ...visit import contains
from . import Delta, Keeps, Problem, invariant


@invariant(kept_by=Keeps.ACCESSES, loops=(PARALLEL, VECTORIZED))
def parallel_loops(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """Parallel and vectorized loops carry no dependence."""
    return _carried(after, delta, delta.changed_loops((PARALLEL, VECTORIZED)))


@invariant(kept_by=Keeps.BOUND, loops=(THREAD_BINDING,))
def bound_loops(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """Thread-bound loops carry no dependence through global memory."""
    return _carried(after, delta, delta.changed_loops((THREAD_BINDING,)))


def _carried(after: PrimFunc, delta: Delta, loops: Iterable[LoopRef]) -> Iterator[Problem]:
    """The dependences that ``loops`` carry through memory whose accesses changed."""
    index = index_of(after)
    for ref in loops:
        if constant(ref.node.extent) in (0, 1) or not delta.may_clash(ref):
            continue
        if _of_an_intrinsic(index, ref):
            continue
        for verdict in _dependences(after, ref):
            memory = verdict.memory and verdict.memory.name
            found = verdict.rule, verdict.witness, verdict.nodes, verdict.legal
            yield Problem((ref.name, memory), *found, kind=verdict.refusal)


def _dependences(after: PrimFunc, ref: LoopRef) -> Iterator[Refuted | Unknown]:
    """What keeps the iterations of ``ref`` from running at once, one answer for each memory."""
    seen = frozenset[Var]()
    while isinstance(verdict := concurrent_iterations(after, ref.node, seen), (Refuted, Unknown)):
        yield verdict
        if verdict.memory is None or shares_memory(verdict.memory, seen):
            return
        seen |= memory_of([verdict.memory])


def _of_an_intrinsic(index: Index, ref: LoopRef) -> bool:
    """Whether ``ref`` is the lane loop of a tensor intrinsic: its calls are executed by a warp together."""
    calls = not index.blocks_below(ref) and not contains(BufferStore, ref.node)
    return calls and ref.node.kind == "thread_binding"
