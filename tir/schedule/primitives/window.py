"""Copying a window of a buffer by one block at a loop: read_at, write_at."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.block_regions import accessed_box
from ...analysis.dependence.live_values import Undisturbed
from ...analysis.dependence.tiers import require_legal
from ...analysis.index import BlockRef, LoopRef
from ...analysis.users import reads_own_writes, regions_of
from ...arith import Analyzer
from ...buffer import Buffer, BufferRegion, IterVar, Range
from ...errors import require
from ...expr import TRUE, BufferLoad, Expr, Var, const, max_, min_
from ...poly import Relation
from ...stmt import Block, BlockRealize, BufferStore, Stmt, nest
from ...visit import substitute, uses_var
from ..primitive import primitive
from ..staged_copies import Stage, cached_buffer, redirect, redirect_reads, require_known_uses, require_not_steering
from ..state import State, pick_buffer, require_above, scope_of
from .compute_at import position_under


@primitive(group="memory")
def read_at(
    state: State,
    loop: LoopRef,
    block: BlockRef,
    read_buffer_index: int | str | Buffer,
    storage_scope: str,
    *,
    unsafe: bool = False,
) -> Stage:
    """Copy what an iteration of ``loop`` reads of a buffer to ``storage_scope``, by one block, and read the copy.

    ``read_buffer_index`` is the number of a region that ``block`` reads, or names the buffer. All blocks under ``loop``
    that read the buffer read the copy. The copying block, named after the copy and annotated ``auto_copy``, contains
    the loops over the window and is placed just before the first reader. Returns it.

    Raises ``ScheduleError`` when ``loop`` is not above ``block``, or an element is written between the copy and a read
    of it (with the two instances). ``unsafe=True`` skips the last check.

    Before, and after ``sch.read_at("i", "C", "A", "shared")``::

        for i, j in T.grid(8, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + A[vi + 1, vj]

        A_shared = T.alloc_buffer((9, 16), "float32", scope="shared")
        for i in range(8):
            with T.block("A_shared"):
                v0 = T.axis.spatial(8, i)
                T.block_attr({"auto_copy": True})
                for ax0, ax1 in T.grid(2, 16):
                    A_shared[v0 + ax0, ax1] = A[v0 + ax0, ax1]
            for j in range(16):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A_shared[vi, vj] + A_shared[vi + 1, vj]
    """
    scope, below = _users(state, loop, block)
    buffer = pick_buffer(block, "reads", read_buffer_index)
    consumers = [b for b in below if regions_of(b.block.reads, buffer)]
    require_known_uses(consumers, buffer, unsafe)
    updated = next((c for c in consumers if reads_own_writes(c.block, buffer)), None)
    require(unsafe or updated is None,
            "block {0} stores to {1} and then reads it: a copy made before would miss that",
            updated, buffer.name, nodes=[updated.node if updated else block.node])  # fmt: skip
    cached = cached_buffer(buffer, storage_scope)
    name = state.fresh_block_name(cached.name)
    box = _window(loop, consumers, buffer, "reads")
    copy = _copy(name, loop, box, buffer, cached)
    changed = {c.node: redirect_reads(c, buffer, cached) for c in consumers}
    position = min(position_under(loop, c) for c in consumers)
    stage = Stage(state, scope, loop, (cached,), changed, {position: [copy]}, (name,))
    if not unsafe:
        stage.require_current(buffer, cached)
        stage.require_initialized(buffer)
    return stage


@primitive(group="memory")
def write_at(
    state: State,
    loop: LoopRef,
    block: BlockRef,
    write_buffer_index: int | str | Buffer,
    storage_scope: str,
    *,
    unsafe: bool = False,
) -> Stage:
    """Make what an iteration of ``loop`` writes of a buffer in ``storage_scope``, and copy it back by one block.

    ``write_buffer_index`` is the number of a region that ``block`` writes, or names the buffer. All blocks under
    ``loop`` that write the buffer work on the copy, and so do readers between them. The copying block, annotated
    ``auto_copy``, is placed just after the last writer. Returns it.

    Raises ``ScheduleError`` when ``loop`` is not above ``block``, when the copy would be read or written back where it
    is uninitialised, or when another block writes an element meanwhile. ``unsafe=True`` skips these checks.

    Before, and after ``sch.write_at("i", "C", 0, "local")``::

        for i, j in T.grid(8, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + 1.0

        C_local = T.alloc_buffer((8, 16), "float32", scope="local")
        for i in range(8):
            for j in range(16):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C_local[vi, vj] = A[vi, vj] + 1.0
            with T.block("C_local"):
                v0 = T.axis.spatial(8, i)
                T.block_attr({"auto_copy": True})
                for ax1 in range(16):
                    C[v0, ax1] = C_local[v0, ax1]
    """
    scope, below = _users(state, loop, block)
    buffer = pick_buffer(block, "writes", write_buffer_index)
    makers = [b for b in below if regions_of(b.block.writes, buffer)]
    last = max(position_under(loop, m) for m in makers)
    early = [
        b for b in below if regions_of(b.block.reads, buffer) and b not in makers and position_under(loop, b) <= last
    ]
    moved = [*makers, *early]
    require_known_uses(moved, buffer, unsafe)
    if not unsafe:
        require_not_steering(buffer, [loop.node.body])
    cached = cached_buffer(buffer, storage_scope)
    name = state.fresh_block_name(cached.name)
    box = _window(loop, makers, buffer, "writes")
    copy = _copy(name, loop, box, cached, buffer)
    changed = {m.node: redirect(m, buffer, cached) for m in moved}
    stage = Stage(state, scope, loop, (cached,), changed, {last + 1: [copy]}, (name,))
    if not unsafe:
        stage.require_initialized(cached)
        _require_alone(stage.after, buffer, cached, name)
    return stage


def _users(state: State, loop: LoopRef, block: BlockRef) -> tuple[BlockRef, list[BlockRef]]:
    """The scope, and the blocks under ``loop``; refuses a loop that is not above ``block``."""
    scope = scope_of(block)
    require_above(state, loop, block)
    return scope, state.index.blocks_below(loop)


def _window(loop: LoopRef, users: Sequence[BlockRef], buffer: Buffer, side: str) -> tuple[Range, ...]:
    """The box that ``users`` access in one iteration of ``loop``, clipped to the buffer."""
    box = accessed_box(users, buffer, loop, side)
    assert box is not None
    analyzer = loop.analyzer()
    return tuple(_inside(analyzer, axis, size) for axis, size in zip(box, buffer.shape))


def _inside(analyzer: Analyzer, axis: Range, size: Expr) -> Range:
    """``axis`` clipped to [0, ``size``): a guarded tail exceeds the buffer only formally."""
    low, end = axis.min, axis.min + axis.extent
    if not analyzer.can_prove(low >= 0):
        low = analyzer.simplify(max_(low, 0))
    if not analyzer.can_prove(end <= size):
        end = min_(end, size)
    elif low is axis.min:
        return axis
    return Range(low, analyzer.simplify(end - low))


def _copy(name: str, loop: LoopRef, box: Sequence[Range], source: Buffer, target: Buffer) -> Stmt:
    """One block that copies ``box`` of ``source`` to ``target``; the outer loops that the box moves with are iterators."""
    around = [p for p in [*loop.loops(), loop] if any(uses_var(r, p.var) for r in box)]
    iters = tuple(IterVar(p.range, Var(f"v{n}", p.var.dtype), "spatial") for n, p in enumerate(around))
    own = {p.var: i.var for p, i in zip(around, iters)}
    inside = tuple(substitute(r, own) for r in box)
    loops: list[tuple[Var, Expr]] = []
    point: list[Expr] = []
    analyzer = Analyzer()
    for axis, bounds in enumerate(inside):
        if analyzer.can_prove_equal(bounds.extent, const(1, bounds.extent.dtype)):
            point.append(bounds.min)
            continue
        var = Var(f"ax{axis}", bounds.extent.dtype)
        loops.append((var, bounds.extent))
        point.append(analyzer.simplify(bounds.min + var))
    body = nest(loops, BufferStore(target, BufferLoad(source, tuple(point)), tuple(point)))
    regions = (BufferRegion(source, inside),), (BufferRegion(target, inside),)
    block = Block(iters, *regions, name, body, annotations={"auto_copy": True})
    return BlockRealize(tuple(p.var for p in around), TRUE, block)


def _require_alone(after: State, buffer: Buffer, cached: Buffer, name: str) -> None:
    """Raise ``ScheduleError`` if another block writes an element of ``buffer`` that is held in the copy."""
    rule = f"an element of `{buffer.name}` is written elsewhere while its copy is in use"
    question = Undisturbed(after.func, cached, buffer, Relation.identity(buffer.ndim), rule, own=name)
    require_legal(question.answer(), after.func)
