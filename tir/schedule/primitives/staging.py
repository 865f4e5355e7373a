"""Staging the window of a buffer that a loop iteration needs, in one step: stage."""

from __future__ import annotations

from ...analysis.index import BlockRef, LoopRef
from ...analysis.users import readers, writers
from ...buffer import Buffer
from ...errors import require, require_none
from ..handles import BlockRV
from ..primitive import primitive
from ..state import State, pick_buffer, require_above, scope_of
from .cache import cache_read, cache_write
from .compute_at import compute_at, reverse_compute_at


@primitive(group="memory")
def stage(
    state: State,
    block: BlockRef,
    buffer: int | str | Buffer,
    loop: LoopRef,
    storage_scope: str = "local",
    *,
    unsafe: bool = False,
) -> tuple[State, BlockRV]:
    """Make the blocks under ``loop`` work on a copy of the window of ``buffer`` that an iteration needs.

    ``buffer`` is the name of a buffer that ``block`` reads or writes, or the number of a region that it reads. A buffer
    that is read is copied before use, for all blocks under ``loop`` that read it (``cache_read``, then ``compute_at``);
    one that is written is copied back after (``cache_write``, then ``reverse_compute_at``). The size of the window is
    inferred. Returns the block that copies.

    Raises ``ScheduleError`` when ``loop`` is not above ``block``, and as those four do; ``unsafe=True`` is passed to
    them.

    Before, and after ``sch.stage("B", "A", "i", "local")``::

        for i, j in T.grid(8, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

        A_local = T.alloc_buffer((8, 16), "float32", scope="local")
        for i in range(8):
            for ax0 in range(16):
                with T.block("A_local"):
                    v0, v1 = T.axis.remap("SS", [i, ax0])
                    A_local[v0, v1] = A[v0, v1]
            for j in range(16):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A_local[vi, vj] * 2.0
    """
    require_above(state, loop, block)
    scope = scope_of(block)
    window, side = _pick(block, buffer)
    if side == "reads":
        users = [ref for ref in readers(scope, window) if loop in ref.ancestors()]
        cached, rv = cache_read(state, block, window.name, storage_scope, users, unsafe=unsafe).result()
        move = compute_at
    else:
        outside = [ref for ref in writers(scope, window) if loop not in ref.ancestors()]
        rule = "block {0} outside loop {1} writes {2} too, so it cannot be copied back from there"
        require_none([] if unsafe else outside, rule, loop, window.name)
        cached, rv = cache_write(state, block, window.name, storage_scope, unsafe=unsafe).result()
        move = reverse_compute_at
    place, target = cached.index.blocks[rv.name], cached.index.loops[loop.var]
    if target not in place.loops():
        return move(cached, place, target, unsafe=unsafe), rv
    around = [outer for outer in place.loops() if outer.var in state.index.loops]
    require(
        around[-1] is target,
        "{0} is also used in loop {1}, so that the copy for block {2} is made there, and not once in an iteration of {3}",
        window.name,
        around[-1].node,
        block,
        loop.node,
        nodes=[around[-1].node],
    )
    return cached, rv


def _pick(block: BlockRef, which: int | str | Buffer) -> tuple[Buffer, str]:
    """The buffer, and whether ``block`` ``"reads"`` or ``"writes"`` it; an updated buffer counts as written."""
    if not isinstance(which, str):
        return pick_buffer(block, "reads", which), "reads"
    written = [r.buffer for r in block.block.writes if r.buffer.name == which]
    if written:
        return written[0], "writes"
    names = dict.fromkeys(r.buffer.name for r in (*block.block.reads, *block.block.writes))
    require(which in names,
            "block {0} neither reads nor writes a buffer `{1}`", block, which, nodes=[block.node], legal=list(names))  # fmt: skip
    return pick_buffer(block, "reads", which), "reads"
