"""Copies of a buffer in another scope: cache_read, cache_write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...arith.itermap import detect_iter_map
from ...arith.regions import intersect, relax, union
from ...buffer import Buffer, Range, decl_buffer
from ...errors import require
from ...expr import Var, const, is_const
from ...stmt import Stmt, seq
from ...visit import rewrite, substitute
from ..blocks import (
    add_alloc,
    copy_block,
    pick_buffer,
    readers,
    regions_of,
    replace_buffer,
    scope_of,
    statements,
    top_statement,
    uses_pointer,
    writers,
)
from ..handles import BlockRV
from ..primitive import primitive
from ..state import BlockRef, State


@dataclass(frozen=True)
class CachePlan:
    """The scope block after the step, and the name of the copying block."""

    scope: BlockRef
    body: Stmt
    buffer: Buffer
    name: str


def _check_cache_read(
    state: State,
    block: BlockRef,
    read_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: list[BlockRef] | None = None,
    *,
    unsafe: bool = False,
) -> CachePlan:
    """Read a buffer through a copy in ``storage_scope``; returns the block that copies.

    ``read_buffer_index`` counts the regions ``block`` reads, or names the buffer. All consumers in the same scope read
    the copy, or only ``consumer_blocks``. The copy is made as early as possible: at the start of the scope, or after
    the block that writes the buffer.

    Before → after, for ``sch.cache_read("B", 0, "local")``::

        for i in range(8):                       for ax0 in range(8):
            B[i] = A[i] * 2.0                        A_local[ax0] = A[ax0]
                                                 for i in range(8):
                                                     B[i] = A_local[i] * 2.0

    Raises ``ScheduleError`` when the buffer is not read by ``block``, or is written between the copy and a consumer.
    """
    scope = scope_of(state, block)
    buffer = pick_buffer(block, "reads", read_buffer_index)
    consumers = consumer_blocks or readers(scope, buffer)
    for consumer in consumers:
        require(
            regions_of(consumer.block.reads, buffer), "block {0} does not read buffer {1}", consumer, buffer.name,
            legal=[r.name for r in readers(scope, buffer)],
        )  # fmt: skip
    makers = writers(scope, buffer)
    tops = statements(scope)
    order = {id(stmt): n for n, stmt in enumerate(tops)}
    last_write = max((order[id(top_statement(m, scope).node)] for m in makers), default=-1)
    first_read = min(order[id(top_statement(c, scope).node)] for c in consumers)
    require(
        unsafe or last_write < first_read,
        "buffer {0} is written by block {1} at or after the statement where block {2} reads it; a copy would miss that",
        buffer.name, makers[-1] if makers else "", consumers[0], nodes=[m.node for m in makers[-1:]],
    )  # fmt: skip
    require(
        not any(uses_pointer(c.node, buffer) for c in consumers),
        "cannot prove what reads buffer {0}: its pointer is used directly or through another view", buffer.name,
    )  # fmt: skip
    region = _touched(consumers, buffer, "reads")
    cached = _cached(buffer, storage_scope)
    name = state.fresh_block_name(cached.name)
    copy = copy_block(name, buffer, cached, region)
    changed = {id(c.node): replace_buffer(c.node, buffer, cached) for c in consumers}
    body = [_swap_in(stmt, consumers, changed) for stmt in tops]
    body.insert(max(last_write + 1, 0), copy)
    return CachePlan(scope, seq(body), cached, name)


def _check_cache_write(
    state: State,
    block: BlockRef,
    write_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: list[BlockRef] | None = None,
    *,
    unsafe: bool = False,
) -> CachePlan:
    """Write a buffer through a copy in ``storage_scope``; returns the block that copies back.

    ``write_buffer_index`` counts the regions ``block`` writes, or names the buffer. ``block`` (and other blocks that
    accumulate into the same buffer) work on the copy, which is written back right after; ``consumer_blocks`` then read
    the copy too.

    Before → after, for ``sch.cache_write("B", 0, "local")``::

        for i in range(8):                       for i in range(8):
            B[i] = A[i] * 2.0                        B_local[i] = A[i] * 2.0
                                                 for ax0 in range(8):
                                                     B[ax0] = B_local[ax0]

    Raises ``ScheduleError`` when the buffer is not written by ``block``, or is read before it is written.
    """
    scope = scope_of(state, block)
    buffer = pick_buffer(block, "writes", write_buffer_index)
    makers = writers(scope, buffer)
    tops = statements(scope)
    order = {id(stmt): n for n, stmt in enumerate(tops)}
    position = max(order[id(top_statement(m, scope).node)] for m in makers)
    first = min(order[id(top_statement(m, scope).node)] for m in makers)
    early = [
        r for r in readers(scope, buffer) if order[id(top_statement(r, scope).node)] <= position and r not in makers
    ]
    moved = [*makers, *early, *(c for c in consumer_blocks or [] if c not in early)]
    outside = [r for r in early if order[id(top_statement(r, scope).node)] < first]
    require(
        unsafe or not outside,
        "block {0} reads buffer {1} before it is written: in the copy there would be nothing to read",
        outside[0] if outside else "", buffer.name, nodes=[r.node for r in outside],
    )  # fmt: skip
    _require_overwritten(makers, buffer, unsafe)
    require(
        not any(uses_pointer(m.node, buffer) for m in moved),
        "cannot prove what uses buffer {0}: its pointer is used directly or through another view", buffer.name,
    )  # fmt: skip
    region = _touched(makers, buffer, "writes")
    cached = _cached(buffer, storage_scope)
    name = state.fresh_block_name(cached.name)
    copy = copy_block(name, cached, buffer, region)
    changed = {id(m.node): replace_buffer(m.node, buffer, cached) for m in moved}
    body = [_swap_in(stmt, moved, changed) for stmt in tops]
    body.insert(position + 1, copy)
    return CachePlan(scope, seq(body), cached, name)


def _require_overwritten(makers: Sequence[BlockRef], buffer: Buffer, unsafe: bool) -> None:
    """The copy is written back whole, so what was in the buffer before must not matter: no update without an init, and
    no element of the box left unwritten."""
    first = makers[0]
    updates = bool(regions_of(first.block.reads, buffer)) and first.block.init is None
    require(
        unsafe or not updates,
        "block {0} reads {1} before anything here has written it: the copy would start uninitialised",
        first, buffer.name, nodes=[first.node], legal="cache_read the buffer, or initialise it first",
    )  # fmt: skip
    partial = _partly_written(makers, buffer)
    require(
        unsafe or not partial,
        "block {0} writes only part of the region of {1} that would be copied back",
        partial, buffer.name, nodes=[m.node for m in makers],
    )  # fmt: skip


def _partly_written(makers: Sequence[BlockRef], buffer: Buffer) -> BlockRef | None:
    """The first maker, when none provably writes every element of the box around what it writes."""
    return None if any(_fills_box(m, buffer) for m in makers) else makers[0]


def _fills_box(ref: BlockRef, buffer: Buffer) -> bool:
    domains: dict[Var, Range] = {p.var: Range(p.node.min, p.node.extent) for p in ref.loops()}
    values = {i.var: v for i, v in zip(ref.block.iter_vars, ref.node.iter_values)}
    for region in regions_of(ref.block.writes, buffer):
        indices = []
        for axis, bounds in enumerate(region.region):
            index = substitute(bounds.min, values)
            if not is_const(bounds.extent, 1):
                inside = Var(f"u{axis}", bounds.extent.dtype)
                domains[inside] = Range(const(0, inside.dtype), bounds.extent)
                index = index + inside
            indices.append(index)
        if detect_iter_map(indices, domains, ref.node.predicate, check="surjective"):
            return True
    return False


def _touched(blocks: Sequence[BlockRef], buffer: Buffer, side: str) -> tuple[Range, ...]:
    """The box of ``buffer`` that ``blocks`` touch over all their iterations in their scope."""
    boxes = []
    for ref in blocks:
        loops: dict[Var, Range] = {p.var: Range(p.node.min, p.node.extent) for p in ref.loops()}
        values = {i.var: v for i, v in zip(ref.block.iter_vars, ref.node.iter_values)}
        for region in regions_of(getattr(ref.block, side), buffer):
            box = tuple(substitute(r, values) for r in region.region)
            boxes.append(relax(box, loops, predicate=ref.node.predicate) or buffer.full_region().region)
    # a guarded tail reaches past the end in name only: its predicate keeps it inside
    return intersect([boxes[0] if len(boxes) == 1 else union(boxes), buffer.full_region().region])


def _cached(buffer: Buffer, scope: str) -> Buffer:
    name = f"{buffer.name}_{scope.replace('.', '_')}"
    return decl_buffer(buffer.shape, buffer.dtype, name, scope=scope, axis_separators=buffer.axis_separators)


def _swap_in(stmt: Stmt, refs: Sequence[BlockRef], changed: dict[int, Stmt]) -> Stmt:
    """``stmt`` with the realizes of ``refs`` replaced by ``changed``; what does not hold them is shared."""
    above = {id(p.node) for ref in refs for p in (ref, *ref.ancestors())}
    return rewrite(stmt, lambda n: changed.get(id(n)), enter=lambda n: id(n) in above)


def _apply(state: State, plan: CachePlan) -> tuple[State, BlockRV]:
    block = add_alloc(plan.scope.block.replace(body=plan.body), plan.buffer)
    after = state.replace(plan.scope.block, block)
    return after, after.block_rv(plan.name)


@primitive(check=_check_cache_read)
def cache_read(state: State, plan: CachePlan) -> tuple[State, BlockRV]:
    return _apply(state, plan)


@primitive(check=_check_cache_write)
def cache_write(state: State, plan: CachePlan) -> tuple[State, BlockRV]:
    return _apply(state, plan)
