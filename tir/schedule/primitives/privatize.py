"""privatize: each iteration of a loop gets a copy of a buffer for itself."""

from __future__ import annotations

from ...aliases import memory_of, sharing
from ...analysis.index import LoopRef
from ...analysis.private_clause import why_not_private, with_private
from ...buffer import Buffer
from ...errors import require
from ...stmt import THREAD_BINDING
from ...visit import buffers_in
from ..invariants import Keeps
from ..primitive import primitive
from ..state import State


@primitive(
    keeps=Keeps.ACCESSES | Keeps.KERNELS | Keeps.LOOPS,
    prepared_by=("compute_at",),
    group="parallel",
)
def privatize(state: State, loop: LoopRef, buffer: str | Buffer, *, unsafe: bool = False) -> State:
    """Give each iteration of a loop a copy of ``buffer`` for itself, uninitialised when the iteration starts.

    ``buffer`` is a buffer, or the name of one, that a block around the loop allocates and that is used under the loop
    only. Iterations no longer share it, so that the loop can be made parallel; ``parallel`` and ``vectorize`` do it by
    themselves where the buffer is all that iterations share. The program says it by ``private=[…]``, and the executor,
    lowering and later steps go by that.

    Raises ``ScheduleError`` when an iteration reads of the buffer what it has not written itself, or when that cannot be
    shown; when the buffer is used outside of the loop; and for a loop bound to threads, whose own memory is told by its
    scope. ``unsafe=True`` skips the proof.

    Before, and after ``sch.privatize("i", "T1")``::

        T1 = T.alloc_buffer((1,), "float32")
        for i in range(8):
            with T.block("T1"):
                vi = T.axis.spatial(8, i)
                T1[0] = A[vi] * 2.0
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T1[0] + 1.0

        T1 = T.alloc_buffer((1,), "float32")
        for i in T.serial(8, private=[T1]):
            with T.block("T1"):
                vi = T.axis.spatial(8, i)
                T1[0] = A[vi] * 2.0
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T1[0] + 1.0
    """
    from ...analysis.dependence.initialization import is_privatizable

    node = loop.node
    allocated = [b for ref in state.index.blocks.values() if ref in loop.ancestors() for b in ref.block.alloc_buffers]
    found = next((b for b in allocated if b is buffer or b.name == buffer), None)
    require(found is not None,
            "no block around loop {0} allocates a buffer `{1}`",
            node, getattr(buffer, "name", buffer), legal=[b.name for b in allocated])  # fmt: skip
    assert found is not None
    require(node.kind != THREAD_BINDING,
            "loop {0} is bound to {1}: the scope of `{2}` says whose it is",
            node, node.thread, found.name, legal="set_scope")  # fmt: skip
    why = why_not_private(state.func, loop, found)
    require(why is None, "`{0}` cannot be private to loop {1}: {2}", found.name, node, why)
    around = [*(p.node for p in loop.loops()), node]
    require(
        unsafe or is_privatizable(found, around),
        "`{0}` cannot be private to loop {1}: it is not shown that an iteration writes each element of it before it "
        "reads it",
        found.name,
        node,
        witness=_carried(state, loop, found),
        legal="write what an iteration reads at its start; or unsafe=True, if it surely does",
    )
    if sharing(node.private, found):
        return state
    return state.replace(node, with_private(node, (*node.private, found)))


def _carried(state: State, loop: LoopRef, buffer: Buffer) -> list[str]:
    """Two iterations, of which one touches what the other writes of ``buffer``."""
    from ...analysis.dependence.loop_questions import check_parallel

    others = memory_of(buffers_in(loop.node)) - memory_of([buffer])
    verdict = check_parallel(state.func, loop.node, ignored=others)
    return [] if verdict.is_proved else list(getattr(verdict, "witness", ()))
