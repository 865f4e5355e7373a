"""Copies of a buffer in another scope: cache_read, cache_write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.dependence.initialization import check_initialized
from ...analysis.dependence.live_values import Timestamps
from ...analysis.index import BlockRef, LoopRef
from ...analysis.simple_blocks import is_simple_block, same_index
from ...analysis.structure import (
    common_host,
    entered,
    is_steered_by_memory,
    loops_below,
    readers,
    reads_own_writes,
    regions_of,
    statements,
    top_statement,
    uses_pointer,
    wrapped_in,
    writers,
)
from ...arith import Analyzer
from ...arith.itermap import detect_iter_map
from ...arith.regions import intersect, union
from ...buffer import Buffer, BufferRegion, Range, decl_buffer
from ...errors import ScheduleError, require
from ...expr import BufferLoad, Expr, Var, all_of, conjuncts, const, is_const
from ...poly import Relation
from ...stmt import SERIAL, Block, BlockRealize, BufferStore, IfThenElse, LetStmt, SeqStmt, Stmt, seq
from ...visit import rewrite, substitute, uses_var, walk
from ..build import add_alloc, copy_block, replace_buffer
from ..handles import BlockRV
from ..legality import require_independent, require_legal, require_not_steering
from ..primitive import primitive
from ..state import State, pick_buffer, scope_of
from .storage import require_scope


@dataclass(frozen=True)
class CachePlan:
    """The scope block, the position of the statements that get a copy, their new sequence, and the copying block."""

    scope: BlockRef
    host: BlockRef | LoopRef
    body: Stmt
    buffer: Buffer
    name: str


def plan_cache_read(
    state: State,
    block: BlockRef,
    read_buffer_index: int | str | Buffer,
    storage_scope: str,
    consumer_blocks: list[BlockRef] | None = None,
    *,
    unsafe: bool = False,
) -> CachePlan:
    """Read a buffer through a copy in ``storage_scope``; returns the block that copies.

    ``read_buffer_index`` is the number of a region that ``block`` reads, or names the buffer. All consumers in the same
    scope read the copy, or only ``consumer_blocks``. The copy is placed as early as possible: at the start of the
    scope, or after the block that writes the buffer, in the innermost loop around both.

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
    host = common_host([*makers, *consumers], scope) if makers else scope
    tops = statements(host)
    order = {id(stmt): n for n, stmt in enumerate(tops)}

    def at(ref: BlockRef) -> int:
        return order[id(top_statement(ref, host).node)]

    first_read, last_read = min(map(at, consumers)), max(map(at, consumers))
    position = max((at(m) + 1 for m in makers if at(m) < first_read), default=0)
    between = [
        m for m in makers if first_read <= at(m) <= last_read and not _keeps_to_itself(m, buffer, consumers, makers)
    ]
    require(
        unsafe or not between,
        "buffer {0} is written by block {1} at or after the statement where block {2} reads it; a copy would miss that",
        buffer.name, between[0] if between else "", consumers[0], nodes=[m.node for m in between[:1]],
        legal=[f"consumer_blocks=[{c.name}]" for c in consumers if between and at(c) < at(between[0])],
    )  # fmt: skip
    require(
        not any(uses_pointer(c.node, buffer) for c in consumers),
        "cannot prove what reads buffer {0}: its pointer is used directly or through another view", buffer.name,
    )  # fmt: skip
    region = _touched(consumers, buffer, "reads", host)
    cached = cached_buffer(buffer, storage_scope)
    name = state.fresh_block_name(cached.name)
    copy = copy_block(name, buffer, cached, region)
    changed = {id(c.node): read_copy(c, buffer, cached) for c in consumers}
    body = [swap_in(stmt, consumers, changed) for stmt in tops]
    body.insert(position, copy)
    plan = CachePlan(scope, host, seq(body), cached, name)
    earlier = [m for m in makers if at(m) < position]
    filled = len(earlier) == 1 and _fills(earlier[0], buffer, region, host)
    if buffer not in state.func.buffer_map.values() and not filled:
        _require_written(state, plan, buffer, unsafe)
    return plan


def _keeps_to_itself(
    maker: BlockRef, buffer: Buffer, consumers: Sequence[BlockRef], makers: Sequence[BlockRef]
) -> bool:
    """Whether only ``maker`` accesses the buffer, and each instance reads, then writes, an element of its own."""
    if (
        reads_own_writes(maker.block, buffer)
        or list(consumers) != [maker]
        or len([m for m in makers if m is not maker]) > 0
    ):
        return False
    return is_simple_block(maker.block) and all(i.iter_type != "reduce" for i in maker.block.iter_vars)


def read_copy(consumer: BlockRef, buffer: Buffer, cached: Buffer) -> Stmt:
    """``consumer`` reading the copy, and writing the buffer itself where it does."""
    if not regions_of(consumer.block.writes, buffer):
        return consumer.node.replace(block=replace_buffer(consumer.block, buffer, cached))

    def visit(item: Any) -> Any:
        if isinstance(item, BufferLoad) and item.buffer is buffer:
            return BufferLoad(cached, item.indices)
        return None

    block = rewrite(consumer.block, visit)
    reads = tuple(BufferRegion(cached, r.region) if r.buffer is buffer else r for r in block.reads)
    return consumer.node.replace(block=block.replace(reads=reads))


def _fills(maker: BlockRef, buffer: Buffer, region: Sequence[Range], host: BlockRef | LoopRef) -> bool:
    """Whether ``maker`` provably writes all of ``region`` in each execution of ``host``."""
    if maker.block.init is not None and host is not maker.scope:
        return False  # its reduction may be under way, around the host
    analyzer = host.analyzer()
    made = _touched([maker], buffer, "writes", host)
    inside = all(
        analyzer.can_prove(m.min <= r.min) and analyzer.can_prove(r.min + r.extent <= m.min + m.extent)
        for m, r in zip(made, region)
    )
    return inside and _fills_box(maker, buffer, host)


def _require_written(state: State, plan: CachePlan, buffer: Buffer, unsafe: bool) -> None:
    """Raise ``ScheduleError``, naming the element, if ``buffer`` would be read uninitialised."""
    if unsafe:
        return
    after, _ = _apply(state, plan)
    around = [plan.scope.node] if plan.scope.scope else []
    require_legal(check_initialized(after.func, buffer), state.func, nodes=around)


def plan_cache_write(
    state: State,
    block: BlockRef,
    write_buffer_index: int | str | Buffer,
    storage_scope: str,
    consumer_blocks: list[BlockRef] | None = None,
    *,
    unsafe: bool = False,
) -> CachePlan:
    """Write a buffer through a copy in ``storage_scope``; returns the block that copies back.

    ``write_buffer_index`` is the number of a region that ``block`` writes, or names the buffer. ``block`` (and other
    blocks that accumulate into the same buffer) works on the copy, which is written back right after, in the innermost
    loop around it and the readers of the buffer; ``consumer_blocks`` then read the copy too. An in-place update,
    ``B[i] = B[i] + …``, still reads the buffer itself, because it reads nothing that it has written.

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
    users = [r for r in readers(scope, buffer) if r not in makers]
    host = common_host([*makers, *users], scope) if users else scope
    tops = statements(host)
    order = {id(stmt): n for n, stmt in enumerate(tops)}
    places = [order[id(top_statement(m, host).node)] for m in makers]
    position = max(places)
    require_not_steering(buffer, tops[min(places) : position + 1], unsafe)
    early = [r for r in users if order[id(top_statement(r, host).node)] <= position]
    moved: list[BlockRef] = list(dict.fromkeys([*makers, *early, *(consumer_blocks or [])]))
    require(
        not any(uses_pointer(m.node, buffer) for m in moved),
        "cannot prove what uses buffer {0}: its pointer is used directly or through another view", buffer.name,
    )  # fmt: skip
    region = _touched(makers, buffer, "writes", host)
    cached = cached_buffer(buffer, storage_scope)
    name = state.fresh_block_name(cached.name)
    copy = _only_where(copy_block(name, cached, buffer, region), _made_where(makers, buffer, host))
    in_place = moved == [block] and _reads_only_old(state, block, buffer)
    redirect = _write_copy if in_place else replace_buffer
    changed: dict[int, Stmt] = {id(m.node): redirect(m.node, buffer, cached) for m in moved}
    body = [swap_in(stmt, moved, changed) for stmt in tops]
    body.insert(position + 1, copy)
    plan = CachePlan(scope, host, seq(body), cached, name)
    alone = moved == [makers[0]] and (block.block.init is not None or not regions_of(block.block.reads, buffer))
    inside = {p.var for p in loops_below(block, host)}
    guarded = not any(uses_var(e, inside) for e in entered(_repeating(block, buffer, host), host.analyzer()))
    if not (alone and guarded and _fills_box(block, buffer, host)):
        # The old content of the buffer must be dead: the copy starts uninitialised, and all of it is written back.
        _require_written(state, plan, cached, unsafe)
    if not unsafe and any(p.node.kind != SERIAL for m in moved for p in m.loops()):
        # A buffer private to each parallel iteration may become shared once it is copied back outside their loop.
        require_independent(state, _apply(state, plan)[0])
    return plan


def _reads_only_old(state: State, block: BlockRef, buffer: Buffer) -> bool:
    """Whether ``block`` reads the buffer that it writes, but only values from before the block."""
    if block.block.init is not None or not isinstance(block.block.body, BufferStore):
        return False
    if not regions_of(block.block.reads, buffer):
        return False
    try:
        moments = Timestamps(state.func, [buffer])
    except ScheduleError:
        return False  # not quasi-affine: the copy is read as well, and that is checked
    mine = [moments.of(buffer, write=w, where=lambda unit: unit.name == block.name) for w in (True, False)]
    return all(
        moments.real(w.elements.then(r.elements.reverse()).intersect(Relation.lex_before(moments.length))).is_empty()
        for w in mine[0]
        for r in mine[1]
    )


def _write_copy(node: BlockRealize, buffer: Buffer, cached: Buffer) -> BlockRealize:
    """The block writing the copy, and reading the buffer itself."""

    def visit(item: Any) -> Any:
        return item.replace(buffer=cached) if isinstance(item, BufferStore) and item.buffer is buffer else None

    writes = tuple(BufferRegion(cached, r.region) if r.buffer is buffer else r for r in node.block.writes)
    return node.replace(block=node.block.replace(body=rewrite(node.block.body, visit), writes=writes))


def _made_where(makers: Sequence[BlockRef], buffer: Buffer, host: BlockRef | LoopRef) -> list[Expr]:
    """The condition under which the only producer writes anything: its predicate over the loops around, and that its
    reduction loops are not empty."""
    if len(makers) != 1:
        return []
    inside = {p.var for p in loops_below(makers[0], host)}
    empty = entered(_repeating(makers[0], buffer, host), host.analyzer())
    return [c for c in (*conjuncts(makers[0].node.predicate), *empty) if not uses_var(c, inside)]


def _repeating(maker: BlockRef, buffer: Buffer, host: BlockRef | LoopRef) -> list[Expr]:
    """The extents of the loops inside ``host`` that do not index what ``maker`` writes of ``buffer``."""
    values = maker.bindings
    places = [substitute(axis.min, values) for r in regions_of(maker.block.writes, buffer) for axis in r.region]
    return [p.node.extent for p in loops_below(maker, host) if not any(uses_var(e, p.var) for e in places)]


def _only_where(copy: Stmt, conditions: Sequence[Expr]) -> Stmt:
    if not conditions:
        return copy
    predicate = all_of(conditions)
    return rewrite(copy, lambda n: n.replace(predicate=predicate) if isinstance(n, BlockRealize) else None)


def _stores_regions(block: Block, buffer: Buffer) -> bool:
    """Whether each run of ``block`` provably writes all of its declared region of ``buffer``: it may be too large, for
    a store under a condition or at a data-dependent index. The regions of an intrinsic are trusted."""
    if any(isinstance(n, BlockRealize) for n in walk(block.body)):
        return False
    stores = [s for s in walk(block.body) if isinstance(s, BufferStore) and s.buffer is buffer]
    if not stores:
        return True
    places = _certain_places(block.body, buffer)
    return all(
        all(is_const(axis.extent, 1) for axis in r.region)
        and any(same_index(place, [axis.min for axis in r.region]) for place in places)
        for r in regions_of(block.writes, buffer)
    )


def _certain_places(s: Stmt, buffer: Buffer) -> list[tuple[Expr, ...]]:
    """Indices at which ``s`` provably stores to ``buffer``, under any condition."""
    if isinstance(s, SeqStmt):
        return [place for part in s.stmts for place in _certain_places(part, buffer)]
    if isinstance(s, IfThenElse) and s.else_case is not None:
        yes, no = (_certain_places(case, buffer) for case in (s.then_case, s.else_case))
        return [a for a in yes if any(same_index(a, b) for b in no)]
    if isinstance(s, LetStmt):
        return _certain_places(s.body, buffer)
    return [s.indices] if isinstance(s, BufferStore) and s.buffer is buffer else []


def _fills_box(ref: BlockRef, buffer: Buffer, host: BlockRef | LoopRef) -> bool:
    if not _stores_regions(ref.block, buffer) or wrapped_in(ref, host) is not None:
        return False
    if is_steered_by_memory(ref.node, [p.node for p in loops_below(ref, host)]):
        return False
    domains: dict[Var, Range] = ref.loop_ranges(host)
    values = ref.bindings
    for region in regions_of(ref.block.writes, buffer):
        indices = []
        for axis, bounds in enumerate(region.region):
            index = substitute(bounds.min, values)
            if not is_const(bounds.extent, 1):
                inside = Var(f"u{axis}", bounds.extent.dtype)
                domains[inside] = Range(const(0, inside.dtype), bounds.extent)
                index = index + inside
            indices.append(index)
        found = detect_iter_map(indices, domains, ref.node.predicate, check="surjective")
        if not found:
            continue
        # what the indices fill, which a condition may have cut, against the box that is copied
        box, analyzer = _touched([ref], buffer, "writes", host), Analyzer()
        if all(analyzer.can_prove_equal(i.extent, b.extent) for i, b in zip(found.indices, box)):
            return True
    return False


def _touched(blocks: Sequence[BlockRef], buffer: Buffer, side: str, host: BlockRef | LoopRef) -> tuple[Range, ...]:
    """The box of ``buffer`` that ``blocks`` access in each execution of ``host``."""
    boxes = [box for ref in blocks if (box := ref.region_in(host, buffer, side)) is not None]
    known = host.analyzer()
    known.assume_sizes([buffer])
    # a guarded tail exceeds the buffer only formally: its predicate keeps it inside
    return intersect([boxes[0] if len(boxes) == 1 else union(boxes), buffer.full_region().region], known)


def cached_buffer(buffer: Buffer, scope: str) -> Buffer:
    require_scope(scope)
    name = f"{buffer.name}_{scope.replace('.', '_')}"
    return decl_buffer(buffer.shape, buffer.dtype, name, scope=scope, axis_separators=buffer.axis_separators)


def swap_in(stmt: Stmt, refs: Sequence[BlockRef], changed: dict[int, Stmt]) -> Stmt:
    """``stmt`` with the realizes of ``refs`` replaced by ``changed``; unaffected subtrees are shared."""
    above = {id(p.node) for ref in refs for p in (ref, *ref.ancestors())}
    return rewrite(stmt, lambda n: changed.get(id(n)), enter=lambda n: id(n) in above)


def _apply(state: State, plan: CachePlan) -> tuple[State, BlockRV]:
    block = plan.scope.block
    if plan.host is plan.scope:
        body = plan.body
    else:
        path = {id(plan.host.node), *(id(p.node) for p in plan.host.ancestors())}
        loop = plan.host.node.replace(body=plan.body)
        body = rewrite(block.body, lambda n: loop if n is plan.host.node else None, enter=lambda n: id(n) in path)
    after = state.replace(block, add_alloc(block.replace(body=body), plan.buffer))
    return after, after.block_rv(plan.name)


@primitive(check=plan_cache_read)
def cache_read(state: State, plan: CachePlan) -> tuple[State, BlockRV]:
    return _apply(state, plan)


@primitive(check=plan_cache_write)
def cache_write(state: State, plan: CachePlan) -> tuple[State, BlockRV]:
    return _apply(state, plan)
