"""Copies of a buffer in another scope: cache_read, cache_write."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial

from ...aliases import shares_memory
from ...analysis.contents import has_blocks
from ...analysis.dependence.domains import runs_whole_domain
from ...analysis.dependence.live_values import reads_only_before
from ...analysis.effects import Effects, memory_effects, outline
from ...analysis.evaluation import Certain, entered, is_steered_by_memory
from ...analysis.index import (
    BlockRef,
    LoopRef,
    Place,
    common_host,
    loops_below,
    met_around,
    order,
    statements,
    wrapped_in,
)
from ...analysis.reduction_init import begins_with_init
from ...analysis.simple_blocks import is_simple_block
from ...analysis.users import bare_writers, readers, reads_own_writes, regions_of, writers
from ...arith import Analyzer
from ...arith.itermap import covered_box
from ...arith.linear import key
from ...arith.regions import encloses
from ...buffer import Buffer, Range
from ...errors import ScheduleError, attempt, refusal, require, require_none
from ...expr import TRUE, Expr, Var, all_of, const, is_const
from ...stmt import Block, BufferStore
from ...visit import statements as statements_in
from ...visit import substitute, uses_var, vars_in
from ..primitive import primitive
from ..staged_copies import (
    SIDES,
    Stage,
    box_inside,
    cached_buffer,
    copy_block,
    position,
    redirect,
    redirect_reads,
    require_known_uses,
    require_members,
    require_not_steering,
    require_stored_in_blocks,
)
from ..state import State, pick_buffer, scope_of


@primitive(instead=("cache_inplace",), group="memory")
def cache_read(
    state: State,
    block: BlockRef,
    read_buffer_index: int | str | Buffer,
    storage_scope: str,
    consumer_blocks: list[BlockRef] | None = None,
    *,
    unsafe: bool = False,
) -> Stage:
    """Read a buffer through a copy in ``storage_scope``; returns the block that copies.

    ``read_buffer_index`` is the number of a region that ``block`` reads, or names the buffer. All consumers in the same
    scope read the copy, except other blocks that write the buffer, or only ``consumer_blocks``. The copy is placed as early as possible: at the start of the
    scope, or after the block that writes the buffer, in the innermost loop around both.

    Before, and after ``sch.cache_read("B", 0, "local")``::

        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0

        A_local = T.alloc_buffer((8,), "float32", scope="local")
        for ax0 in range(8):
            with T.block("A_local"):
                v0 = T.axis.spatial(8, ax0)
                A_local[v0] = A[v0]
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A_local[vi] * 2.0

    Raises ``ScheduleError`` when the buffer is not read by ``block``, or is written between the copy and a consumer.
    """
    scope = scope_of(block)
    buffer = pick_buffer(block, "reads", read_buffer_index)
    makers = writers(scope, buffer)
    consumers = consumer_blocks or [r for r in _reading(scope, buffer) if r is block or r not in makers]
    _require_readers(consumers, scope, buffer)
    require_known_uses(consumers, buffer, unsafe, makers)
    bare = bare_writers(scope, buffer)
    host = common_host([*makers, *bare, *consumers], scope) if makers or bare else scope
    number, earlier, meanwhile = _among_writers(host, makers, bare, consumers)
    between = [m for m in meanwhile if not _keeps_to_itself(m, buffer, consumers, makers)]
    if between and not unsafe:
        stage = attempt(lambda: _copied_when_made(state, scope, buffer, storage_scope, makers, consumers))
        if isinstance(stage, ScheduleError):
            alone = partial(cache_read, state, block, buffer, storage_scope, [block])
            legal = f'consumer_blocks=["{block.name}"]' if list(consumers) != [block] and not refusal(alone) else ""
            raise _written_between(buffer, between[0], consumers[0], legal) from stage
        return stage
    cached = cached_buffer(buffer, storage_scope)
    region = box_inside(consumers, buffer, host, "reads")
    where = TRUE if bare else _written_where(state, earlier, buffer, host, consumers)
    stage = _reading_copy(state, scope, host, number, buffer, cached, region, consumers, where)
    if bare and not unsafe:
        stage.require_current(buffer, cached)
    if not unsafe and not (len(earlier) == 1 and _fills(earlier[0], buffer, region, host)):
        stage.require_initialized(buffer)
    return stage


def _among_writers(
    host: BlockRef | LoopRef, makers: Sequence[BlockRef], bare: Sequence[Place], consumers: Sequence[BlockRef]
) -> tuple[int, list[BlockRef], list[BlockRef]]:
    """The first statement of ``host`` that finds what was written before all ``consumers``; the ``makers`` before it, and
    those from the first consumer to the last."""
    reads = [position(c, host) for c in consumers]
    at = {m: order(host, m) for m in makers}
    made = [*at.values(), *(order(host, place) for place in bare)]
    number = max((n + 1 for n in made if n < min(reads)), default=0)
    meanwhile = [m for m, n in at.items() if min(reads) <= n <= max(reads)]
    return number, [m for m, n in at.items() if n < number], meanwhile


def _reading(scope: BlockRef, buffer: Buffer) -> list[BlockRef]:
    return [r for r in readers(scope, buffer) if regions_of(r.block.reads, buffer)]


def _require_readers(blocks: Sequence[BlockRef], scope: BlockRef, buffer: Buffer) -> None:
    """Require ``blocks`` to be of this scope, and to read ``buffer``."""
    require_members(blocks, scope)
    others = [c for c in blocks if not regions_of(c.block.reads, buffer)]
    rule = "block {0} does not read buffer {1}"
    require_none(others, rule, buffer.name, nodes=[], legal=lambda: [r.name for r in _reading(scope, buffer)])


def _written_between(buffer: Buffer, maker: BlockRef, consumer: BlockRef, legal: str) -> ScheduleError:
    rule = (
        "buffer {0} is written by block {1} at or after the statement where block {2} reads it; a copy would miss that"
    )
    return ScheduleError(rule, buffer.name, maker, consumer, nodes=[maker.node], legal=legal)


def _reading_copy(
    state: State,
    scope: BlockRef,
    host: BlockRef | LoopRef,
    number: int,
    buffer: Buffer,
    cached: Buffer,
    region: Sequence[Range],
    consumers: Sequence[BlockRef],
    where: Expr = TRUE,
) -> Stage:
    """``consumers`` reading ``cached``, copied from ``buffer`` before statement ``number`` of ``host``."""
    name = state.fresh_block_name(cached.name)
    changed = {c.node: redirect_reads(c, buffer, cached) for c in consumers}
    added = {number: [copy_block(name, buffer, cached, region, where)]}
    return Stage(state, scope, host, (cached,), changed, added, (name,))


def _written_where(
    state: State, makers: Sequence[BlockRef], buffer: Buffer, host: BlockRef | LoopRef, consumers: Sequence[BlockRef]
) -> Expr:
    """The condition under which there is something to copy: a reduction may be empty, and leave the buffer unwritten. None
    is needed where the consumers read it all the same."""
    if any(b is buffer for b in state.func.buffer_map.values()) or isinstance(host, LoopRef):
        return TRUE
    sure = all(_surely_runs(c, host) and is_simple_block(c.block) for c in consumers)
    return TRUE if sure else all_of(_made_where(makers, buffer, host))


def _surely_runs(consumer: BlockRef, host: BlockRef | LoopRef) -> bool:
    """Whether ``consumer`` runs for every value of its iterators, and at least once, each time that ``host`` runs."""
    extents = [p.node.extent for p in loops_below(consumer, host)]
    return runs_whole_domain(consumer) and not entered(extents, host.analyzer())


def _copied_when_made(
    state: State,
    scope: BlockRef,
    buffer: Buffer,
    storage_scope: str,
    makers: Sequence[BlockRef],
    consumers: Sequence[BlockRef],
) -> Stage:
    """``consumers`` reading a copy of what ``makers`` write, made in the loop around them as soon as they have.

    Readers in that loop and readers after it find the same copy. Raises ``ScheduleError`` where one would find another
    value than the buffer holds.
    """
    first = next(b for b in readers(scope, buffer) if b in consumers)
    host = common_host([*makers, first], scope)
    require(isinstance(host, LoopRef), "no loop is around all of it")
    number = max(position(m, host) for m in makers) + 1
    cached = cached_buffer(buffer, storage_scope)
    region = box_inside(makers, buffer, host, "writes")
    stage = _reading_copy(state, scope, host, number, buffer, cached, region, consumers)
    stage.require_initialized(buffer, cached)
    stage.require_current(buffer, cached)
    return stage


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


def _fills(maker: BlockRef, buffer: Buffer, region: Sequence[Range], host: BlockRef | LoopRef) -> bool:
    """Whether ``maker`` provably writes all of ``region`` in each execution of ``host``."""
    if maker.block.init is not None and host is not maker.scope:
        return False  # its reduction may be under way, around the host
    made = box_inside([maker], buffer, host, "writes")
    return encloses(made, region, host.analyzer()) and _fills_box(maker, buffer, host, made)


@primitive(instead=("cache_inplace",), group="memory")
def cache_write(
    state: State,
    block: BlockRef,
    write_buffer_index: int | str | Buffer,
    storage_scope: str,
    consumer_blocks: list[BlockRef] | None = None,
    *,
    unsafe: bool = False,
) -> Stage:
    """Write a buffer through a copy in ``storage_scope``; returns the block that copies back.

    ``write_buffer_index`` is the number of a region that ``block`` writes, or names the buffer. ``block`` (and other
    blocks that accumulate into the same buffer) works on the copy, which is written back right after, in the innermost
    loop around it and the readers of the buffer; ``consumer_blocks`` then read the copy too. An in-place update,
    ``B[i] = B[i] + …``, still reads the buffer itself, because it reads nothing that it has written.

    Before, and after ``sch.cache_write("B", 0, "local")``::

        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0

        B_local = T.alloc_buffer((8,), "float32", scope="local")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B_local[vi] = A[vi] * 2.0
        for ax0 in range(8):
            with T.block("B_local"):
                v0 = T.axis.spatial(8, ax0)
                B[v0] = B_local[v0]

    Raises ``ScheduleError`` when the buffer is not written by ``block``, is also written or read in the init of the block
    around, or is read before it is written.
    """
    scope = scope_of(block)
    buffer = pick_buffer(block, "writes", write_buffer_index)
    consumers = list(consumer_blocks or ())
    require_members(consumers, scope)
    require(unsafe or shares_memory(buffer, _seen_outside(block.block).writes),
            "block {0} declares that it writes {1}, and writes nothing of it", block, buffer.name)  # fmt: skip
    makers = writers(scope, buffer)
    users = [r for r in readers(scope, buffer) if r not in makers]
    require_known_uses((), buffer, unsafe, [*makers, *users])
    host = common_host([*makers, *users], scope) if users else scope
    places = [position(m, host) for m in makers]
    last = max(places)
    if not unsafe:
        _require_used_in_blocks(buffer, host, places, consumers)
    # one before the first maker reads what was there before; in the next iteration of the host, what was copied back
    early = [r for r in users if min(places) <= position(r, host) <= last]
    moved: list[BlockRef] = list(dict.fromkeys([*makers, *early, *consumers]))
    require_known_uses(moved, buffer, unsafe)
    region = box_inside(makers, buffer, host, "writes")
    cached = cached_buffer(buffer, storage_scope)
    name = state.fresh_block_name(cached.name)
    copy = copy_block(name, cached, buffer, region, all_of(_made_where(makers, buffer, host)))
    in_place = makers == [block] and not early and _reads_only_old(state, block, buffer)
    sides: dict[BlockRef, Sequence[str]] = {block: ("writes",)} if in_place else {}
    changed = {m.node: redirect(m, buffer, cached, sides.get(m, SIDES)) for m in moved}
    stage = Stage(state, scope, host, (cached,), changed, {last + 1: [copy]}, (name,))
    if not unsafe and not (moved == [makers[0]] and _fills_copy(block, buffer, host, region)):
        # What was in the buffer before must not matter: the copy starts empty, and is written back whole.
        stage.require_initialized(cached)
    return stage


def _seen_outside(block: Block) -> Effects:
    """The effects of ``block`` as its surroundings see them: all that are known, where no block or pointer is in it."""
    found = memory_effects(block)
    return outline(block) if found.opaque or has_blocks(block.body) else found


def _require_used_in_blocks(
    buffer: Buffer, host: BlockRef | LoopRef, places: Sequence[int], consumers: Sequence[BlockRef]
) -> None:
    """Refuse where something from the makers, at ``places`` of ``host``, to the ``consumers`` uses ``buffer`` outside of blocks."""
    first, last = min(places), max(places)
    require_not_steering(buffer, statements(host)[first : last + 1])
    end = max([last, *(order(host, c) for c in consumers)])
    require_stored_in_blocks(buffer, statements(host)[first : end + 1])


def _fills_copy(block: BlockRef, buffer: Buffer, host: BlockRef | LoopRef, region: Sequence[Range]) -> bool:
    """Whether ``block`` alone, each time ``host`` runs, writes all of the ``region`` that is copied back, and before it reads any."""
    if block.block.init is None and regions_of(block.block.reads, buffer):
        return False
    inside = {p.var for p in loops_below(block, host)}
    if any(uses_var(e, inside) for e in entered(_repeating(block, buffer, host), host.analyzer())):
        return False
    return begins_with_init(block) and _fills_box(block, buffer, host, region)


def _reads_only_old(state: State, block: BlockRef, buffer: Buffer) -> bool:
    """Whether ``block`` reads the buffer that it writes, but only values from before the block."""
    if block.block.init is not None or not isinstance(block.block.body, BufferStore):
        return False
    if not regions_of(block.block.reads, buffer):
        return False
    return reads_only_before(state.func, buffer, block.name)  # otherwise the copy is read as well, which is checked


def _made_where(makers: Sequence[BlockRef], buffer: Buffer, host: BlockRef | LoopRef) -> list[Expr]:
    """The condition under which the only producer writes anything: its predicate over the loops around, and that its
    reduction loops are not empty."""
    if len(makers) != 1:
        return []
    inside = {p.var for p in loops_below(makers[0], host)}
    empty = entered(_repeating(makers[0], buffer, host), host.analyzer())
    return [*met_around(makers[0], host), *(c for c in empty if not uses_var(c, inside))]


def _repeating(maker: BlockRef, buffer: Buffer, host: BlockRef | LoopRef) -> list[Expr]:
    """The extents of the loops inside ``host`` that do not index what ``maker`` writes of ``buffer``."""
    values = maker.bindings
    places = [substitute(axis.min, values) for r in regions_of(maker.block.writes, buffer) for axis in r.region]
    used = vars_in(*places)
    return [p.node.extent for p in loops_below(maker, host) if p.var not in used]


def _stores_regions(block: Block, buffer: Buffer) -> bool:
    """Whether each run of ``block`` provably writes all of its declared region of ``buffer``: it may be too large, for
    a store under a condition or at a data-dependent index. The regions of an intrinsic are trusted."""
    if has_blocks(block.body):
        return False
    if not any(type(s) is BufferStore and s.buffer is buffer for s in statements_in(block.body)):
        return True
    stores = Certain(lambda n: [_place(n.indices)] if isinstance(n, BufferStore) and n.buffer is buffer else [])
    places = stores.of(block.body)
    return all(
        all(is_const(axis.extent, 1) for axis in r.region) and _place([axis.min for axis in r.region]) in places
        for r in regions_of(block.writes, buffer)
    )


def _place(indices: Iterable[Expr]) -> tuple[Hashable, ...]:
    return tuple(map(key, indices))


def _fills_box(ref: BlockRef, buffer: Buffer, host: BlockRef | LoopRef, box: Sequence[Range]) -> bool:
    """Whether ``ref`` provably writes all of ``box``, which has what it may write in each execution of ``host``."""
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
        # what the indices fill, which a condition may have cut, against the box that is copied
        filled, analyzer = covered_box(indices, domains, ref.node.predicate), Analyzer()
        if filled is not None and all(analyzer.can_prove_equal(f.extent, b.extent) for f, b in zip(filled, box)):
            return True
    return False
