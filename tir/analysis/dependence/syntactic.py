"""The syntactic tests of moves whose legality is evident from the program's form, so that no sets have to be built.

They answer "legal" or "not shown"; the dependence analysis decides the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any

from ...aliases import memory_of, shares_memory, sharing
from ...arith import Analyzer
from ...arith.itermap import covered_box
from ...arith.regions import encloses
from ...buffer import Buffer, BufferRegion, Range
from ...expr import Expr, Ramp, Var, is_const
from ...node import once
from ...stmt import Block, BlockRealize, For, SeqStmt, Stmt, is_long
from ...visit import has_load, uses_var
from ..contents import MembersBy, members_of, named
from ..effects import READ, WRITE, Effect, memory_effects, steering
from ..index import BlockRef, LoopRef, loops_below, order, statements, top_statement
from ..simple_blocks import is_simple_block, iterators, same_index
from ..users import blocks_naming
from .domains import is_same_box, runs_whole_domain, values_taken_once


def producer_move_is_legal(
    block: BlockRef, loop: LoopRef, consumers: Sequence[BlockRef], needed: Mapping[Buffer, tuple[Range, ...] | None]
) -> bool:
    """Whether ``block`` may be computed just before its first consumer under ``loop``, for the region ``needed`` there.

    Each element that it writes is a function of its indices and of inputs that nothing writes between the old and the
    new position; all readers are under ``loop``. If loops are around both positions, ``block`` computes in each of their
    iterations what is read there: no value is left to a later one.
    """
    made = _sole_result(block)
    scope = block.scope
    if not is_const(block.node.predicate, 1):
        return False
    if made is None or scope is None or loop.scope is not scope:
        return False
    host = _host_of(block, loop, scope)
    if not _is_alone(block, host) or not (
        runs_whole_domain(block) if host is scope else _fills(block, host, loop, needed[made])
    ):
        return False
    children = blocks_naming(scope, made) if is_long(members_of(scope.block.body)) else scope.children
    if any(_touches(child, made) and child not in (block, *consumers) for child in children):
        return False
    if any(shares_memory(made, _stored(c)) for c in consumers):
        return False  # made again for a later iteration, it would undo what this one does to it
    here, there = order(host, block), order(host, consumers[0])
    return (
        here < there
        and _inputs_stay(block, made, host, here, there)
        and all(_in_regions(c, READ, [made]) for c in consumers)
    )


def consumer_move_is_legal(
    block: BlockRef, loop: LoopRef, producers: Collection[BlockRef], made: Collection[Buffer], moved: Stmt
) -> bool:
    """Whether ``block`` may be computed just after its ``producers`` under ``loop``, as ``moved``: for the instances that read what one
    iteration of ``loop`` writes of the buffers ``made``.

    If loops are around both positions, the same instances run in each of their iterations as before, each once. So no two
    iterations of ``loop`` write an element that an instance reads: it would run in both. Nothing else between the two
    positions writes what ``block`` reads, or touches what it stores, each instance elements of its own.
    """
    scope = block.scope
    if scope is None or loop.scope is not scope or iterators(block.block, "reduce") or not is_simple_block(block.block):
        return False
    host = _host_of(block, loop, scope)
    here, there = order(host, block), order(host, loop)
    if there >= here or not _is_alone(block, host):
        return False
    read, stored = _read(block), _stored(block)
    for child in _blocks_between(host, there, here, read | stored):
        if child is not block and not stored.isdisjoint(_stored(child) | _read(child)):
            return False
        if not read.isdisjoint(_stored(child)) and (
            child not in producers
            or not read & _stored(child) <= memory_of(made)
            or not _in_regions(child, WRITE, made)
        ):
            return False
    return _in_regions(block, READ, made) and _runs_the_same(block, loop, host, moved)


def _runs_the_same(block: BlockRef, loop: LoopRef, host: BlockRef | LoopRef, moved: Stmt) -> bool:
    """Whether ``moved``, under ``loop``, runs in each iteration of ``host`` the instances of ``block`` that run there, each
    once."""
    inner = {p.var: p.range for p in (*loops_below(loop, host), loop)}
    around = {p.var: p.range for p in (*loop.all_loops(), loop)}
    new = moved
    while type(new) is For:
        inner[new.loop_var] = around[new.loop_var] = new.domain
        new = new.body
    if not isinstance(new, BlockRealize) or new.block is not block.block:
        return False
    before = values_taken_once(block.node, block.loop_ranges(host), block.loop_ranges())
    after = None if before is None else values_taken_once(new, inner, around)
    return before is not None and after is not None and is_same_box(before, after)


def _host_of(block: BlockRef, loop: LoopRef, scope: BlockRef) -> BlockRef | LoopRef:
    """The innermost loop around both ``block`` and ``loop``, which may be ``loop``; ``scope`` if there is none."""
    around = {*loop.loops(), loop}
    return next((above for above in reversed(block.loops()) if above in around), scope)


def _fills(block: BlockRef, host: BlockRef | LoopRef, loop: LoopRef, box: tuple[Range, ...] | None) -> bool:
    """Whether ``block`` writes, in each iteration of ``host``, all of the ``box`` that is read in any of ``loop``, each
    element from others alone."""
    iter_vars, (region,) = block.block.iter_vars, block.block.writes
    inner = {ref.var: ref.range for ref in loops_below(block, host)}
    if box is None or any(i.iter_type != "spatial" for i in iter_vars):
        return False
    if shares_memory(region.buffer, _read(block)):
        return False
    if any(uses_var(e, inner) for r in inner.values() for e in (r.min, r.extent)):
        return False
    found = covered_box(block.node.iter_values, inner)
    if found is None:
        return False
    taken: dict[Expr, Range] = {i.var: covered for i, covered in zip(iter_vars, found)}
    filled = [taken[axis.min] for axis in region.region if axis.min in taken]
    return len(filled) == len(box) and encloses(filled, box, loop.analyzer())


def _sole_result(block: BlockRef) -> Buffer | None:
    """The only buffer that ``block`` writes, each element by one instance, if it is local to a scope."""
    scope, body = block.scope, block.block
    if scope is None or len(body.writes) != 1 or not is_simple_block(body):
        return None
    if any(i.iter_type == "reduce" for i in body.iter_vars) and body.init is None:
        return None
    (region,) = body.writes
    stores: list[Any] = [s for part in (body.init, body.body) if part is not None for s in members_of(part)]
    mins = [r.min for r in region.region]
    if not all(a.buffer is region.buffer and same_index(a.indices, mins) for a in stores):
        return None
    return region.buffer if region.buffer in scope.block.alloc_buffers else None


def _is_alone(block: BlockRef, host: BlockRef | LoopRef) -> bool:
    """Whether ``block`` shares no loop inside of ``host`` and has no predicate, among blocks without opaque effects."""
    scope = block.scope
    return (
        scope is not None
        and is_const(block.node.predicate, 1)
        and scope.block.init is None
        and host.index.blocks_below(top_statement(block, host)) == [block]
        and _only_blocks(scope.block.body)
    )


def _read(block: BlockRef) -> Set[Var]:
    """The memory that an instance reads, its predicate and bindings included."""
    return memory_effects(block.block).reads | steering(block.node).reads


def _stored(block: BlockRef) -> Set[Var]:
    """The memory that it stores to, or says that it writes."""
    return memory_effects(block.block).writes | memory_of(block.block.writes)


def _is_all(realize: BlockRealize) -> bool:
    """Whether its loads and stores are all that a block does: no pointers, no calls with effects or of whole regions."""
    return not any(
        found.opaque or any(e.indices is None or tuple in map(type, e.indices) for e in found.stored)
        for found in (memory_effects(realize.block), steering(realize))
    )


_OTHERS = MembersBy(lambda s: () if _only_blocks(s) else (False,))


@once
def _only_blocks(s: Any) -> bool:
    """Whether there are only blocks in loops, whose trip counts are not data-dependent, and blocks do nothing but load
    and store elements."""
    while type(s) is For:
        if has_load(s.min, s.extent):
            return False
        s = s.body
    if isinstance(s, SeqStmt):
        return not _OTHERS.of(s, False)
    return isinstance(s, BlockRealize) and _is_all(s)


def _touches(block: BlockRef, buffer: Buffer) -> bool:
    return shares_memory(buffer, _stored(block) | _read(block))


def _inputs_stay(block: BlockRef, made: Buffer, host: BlockRef | LoopRef, here: int, there: int) -> bool:
    """Whether nothing from statement ``here`` to ``there`` of ``host`` writes what ``block`` reads, but ``made``."""
    read = _read(block) - memory_of([made])
    children = _blocks_between(host, here, there, read)
    return not any(child is not block and not read.isdisjoint(_stored(child)) for child in children)


def _blocks_between(host: BlockRef | LoopRef, first: int, last: int, memory: Set[Var]) -> list[BlockRef]:
    """The blocks in statements ``first`` to ``last`` of ``host``; of many, those in which one of ``memory`` occurs."""
    between = statements(host)[first : last + 1]
    if is_long(between):
        between = [s for s in between if not memory.isdisjoint(named(s))]
    return [child for s in between for child in host.index.blocks_below(host.index.place(s))]


def _in_regions(block: BlockRef, kind: str, buffers: Iterable[Buffer]) -> bool:
    """Whether the block's regions contain every element of ``buffers`` that it reads or writes, under no other name."""
    found = [e for e in (*memory_effects(block.block).stored, *steering(block.node).stored) if e.kind == kind]
    regions = block.block.reads if kind == READ else block.block.writes
    return all(are_within(sharing(found, b), [r for r in regions if r.buffer is b], block.block) for b in buffers)


def are_within(loads: Sequence[Effect], regions: Sequence[BufferRegion], block: Block) -> bool:
    """Whether ``regions`` of one buffer, in terms of the iterators of ``block``, contain every element that ``loads`` in it
    read, under no other name."""
    if any(e.buffer is not r.buffer for e in loads for r in regions[:1]):
        return False
    boxes = [r.region for r in regions]
    exact = [[axis.min for axis in box] for box in boxes]
    unsure = [e for e in loads if not any(same_index(e.indices or (), starts) for starts in exact)]
    if not unsure:
        return True
    analyzer = Analyzer()
    for iterator in block.iter_vars:
        assert iterator.dom is not None
        analyzer.bind(iterator.var, iterator.dom)
    return all(_is_within(e, boxes, block, analyzer) for e in unsure)


def _is_within(load: Effect, regions: Sequence[Sequence[Range]], block: Block, analyzer: Analyzer) -> bool:
    """Whether one of ``regions`` contains what ``load`` reads in all iterations of the loops around it inside of ``block``."""
    with analyzer.scope():
        for var, low, extent in load.loops:
            analyzer.bind(var, Range(low, extent), block)
        return any(_holds(r, load.indices or (), analyzer) for r in regions)


def _holds(region: Sequence[Range], indices: Sequence[Any], analyzer: Analyzer) -> bool:
    """Whether ``indices`` lie in ``region``, whatever their variables are."""
    return len(indices) == len(region) and all(
        not isinstance(i, (tuple, Ramp)) and not has_load(i) and not analyzer.unproved(i, axis)
        for i, axis in zip(indices, region)
    )
