"""Syntactic tests for moves whose legality is evident from the program's form, so that no sets have to be built.

Both answer "legal" or "not shown"; the dependence analysis decides the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from ...aliases import memory_of, shares_memory, sharing
from ...arith import Analyzer
from ...arith.itermap import IterMap, covered_box, detect_iter_map
from ...arith.regions import encloses
from ...buffer import Buffer, BufferRegion, Range
from ...expr import BufferLoad, Expr, Ramp, Var, is_const
from ...node import once
from ...stmt import Block, BlockRealize, BufferStore, For, IfThenElse, SeqStmt
from ...visit import accesses, has_load, nodes_of, uses_var, walk
from ..contents import MembersBy, named
from ..effects import READ, Effect, effects, steering
from ..index import BlockRef, LoopRef, loops_below, order, statements, top_statement
from ..simple_blocks import has_own_elements, is_simple_block, same_index
from ..users import blocks_naming
from .domains import runs_whole_domain


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
        _runs_all(block) if host is scope else _fills(block, host, loop, needed[made])
    ):
        return False
    if any(_touches(child, made) and child not in (block, *consumers) for child in blocks_naming(scope, made)):
        return False
    if any(shares_memory(made, _stored(c)) for c in consumers):
        return False  # made again for a later iteration, it would undo what this one does to it
    here, there = order(host, block), order(host, consumers[0])
    return (
        here < there
        and _inputs_stay(block, made, host, here, there)
        and all(_reads_elements(c, made) for c in consumers)
    )


def _host_of(block: BlockRef, loop: LoopRef, scope: BlockRef) -> BlockRef | LoopRef:
    """The innermost loop around both ``block`` and ``loop``, which may be ``loop``; ``scope`` if there is none."""
    around = {*loop.loops(), loop}
    return next((above for above in reversed(block.loops()) if above in around), scope)


def _fills(block: BlockRef, host: BlockRef | LoopRef, loop: LoopRef, box: tuple[Range, ...] | None) -> bool:
    """Whether ``block`` writes, in each iteration of ``host``, all of the ``box`` that is read in any of ``loop``, each
    element from others alone."""
    iterators, (region,) = block.block.iter_vars, block.block.writes
    inner = {ref.var: ref.range for ref in loops_below(block, host)}
    if box is None or any(i.iter_type != "spatial" for i in iterators):
        return False
    if sharing(_reads(block), region.buffer):
        return False
    if any(uses_var(e, inner) for r in inner.values() for e in (r.min, r.extent)):
        return False
    found = covered_box(block.node.iter_values, inner)
    if found is None:
        return False
    taken: dict[Expr, Range] = {i.var: covered for i, covered in zip(iterators, found)}
    filled = [taken[axis.min] for axis in region.region if axis.min in taken]
    return len(filled) == len(box) and encloses(filled, box, loop.analyzer())


def consumer_move_is_legal(
    block: BlockRef,
    loop: LoopRef,
    producer: BlockRef,
    boxes: Mapping[Buffer, tuple[Range, ...]],
    when: Sequence[Expr] = (),
) -> bool:
    """Whether ``block``, elementwise, may consume what an iteration of ``loop`` produces just after its ``producer``
    there, ``when`` anything is produced.

    The boxes produced by the iterations are complete, disjoint, and cover the block's domain. If a predicate on an
    element keeps the producer from writing it, nothing ever writes it.
    """
    made = _sole_result(producer)
    scope = block.scope
    if made is None or scope is None or len(boxes) != 1 or made not in boxes or loop.scope is not scope:
        return False
    if not _consumes_each(block, made, scope):
        return False
    if any(_touches(child, made) and child not in (block, producer) for child in blocks_naming(scope, made)):
        return False
    here, there = order(scope, producer), order(scope, block)
    if not here < there or not _inputs_stay(block, made, scope, here, there):
        return False
    written = _stored(block)
    between = statements(scope)[here:there]
    if any(not written.isdisjoint(named(s)) and sharing(accesses(s), written) for s in between):
        return False
    covered, sizes = _whole_boxes(producer, loop, boxes[made]), _domain_read(block, made)
    if covered is None or (when and not _makes_all(producer, sizes)):
        return False
    return all(map(_is_tiled, sizes, boxes[made], covered))


def _consumes_each(block: BlockRef, made: Buffer, scope: BlockRef) -> bool:
    """Whether ``block``, alone in its loops, runs in any order, once for each of the elements that it reads of ``made``."""
    return _is_alone(block, scope) and _runs_all(block) and _instances_apart(block.block) and _reads_each(block, made)


def _sole_result(block: BlockRef) -> Buffer | None:
    """The only buffer that ``block`` writes, each element by one instance, if it is local to a scope."""
    scope, body = block.scope, block.block
    if scope is None or len(body.writes) != 1 or not is_simple_block(body):
        return None
    if any(i.iter_type == "reduce" for i in body.iter_vars) and body.init is None:
        return None
    (region,) = body.writes
    stores = [a for a in accesses(body) if not isinstance(a, BufferLoad)]
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


def _reads(block: BlockRef) -> list[Effect]:
    """What an instance reads, its predicate and bindings included."""
    return [e for e in (*effects(block.block), *steering(block.node)) if e.kind == READ]


def _stored(block: BlockRef) -> Set[Var]:
    """The memory that it stores to, or says that it writes."""
    return effects(block.block).writes | memory_of(block.block.writes)


def _is_all(realize: BlockRealize) -> bool:
    """Whether its loads and stores are all that a block does: no pointers, no calls with effects or of whole regions."""
    return not any(
        found.opaque or any(e.indices is None or tuple in map(type, e.indices) for e in found.effects)
        for found in (effects(realize.block), steering(realize))
    )


def _instances_apart(block: Block) -> bool:
    """Whether instances of ``block`` may run in any order, some of its stores under conditions: each has its own elements."""
    if block.match_buffers or block.alloc_buffers or block.init is not None or not _only_stores(block.body):
        return False
    return all(i.iter_type == "spatial" for i in block.iter_vars) and has_own_elements(block)


def _only_stores(s: Any) -> bool:
    if isinstance(s, SeqStmt):
        return all(_only_stores(part) for part in s.stmts)
    if isinstance(s, IfThenElse):
        return _only_stores(s.then_case) and (s.else_case is None or _only_stores(s.else_case))
    return isinstance(s, BufferStore)


def _runs_all(block: BlockRef) -> bool:
    """Whether ``block`` runs once for each value of its iterators, except for its predicate."""
    counts = _counts(block)
    analyzer = Analyzer()
    return counts is not None and all(
        analyzer.can_prove_equal(count, i.dom.extent) for i, count in zip(block.block.iter_vars, counts)
    )


def _counts(block: BlockRef) -> Sequence[Expr] | None:
    """How many values each iterator takes, from 0 on, where the loops run each combination of them once, except for the
    predicate; None if that is not evident."""
    iterators = block.block.iter_vars
    found = detect_iter_map(block.node.iter_values, block.loop_ranges(), check="bijective")
    if not isinstance(found, IterMap) or not all(is_const(i.dom.min, 0) for i in iterators):
        return None
    return found.extents if all(is_const(index.base, 0) for index in found.indices) else None


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
    return shares_memory(buffer, _stored(block)) or bool(sharing(_reads(block), buffer))


def _inputs_stay(block: BlockRef, made: Buffer, host: BlockRef | LoopRef, here: int, there: int) -> bool:
    """Whether nothing from statement ``here`` to ``there`` of ``host`` writes what ``block`` reads, but ``made``."""
    read = memory_of(_reads(block)) - memory_of([made])
    between = (s for s in statements(host)[here : there + 1] if not read.isdisjoint(named(s)))
    children = (child for s in between for child in host.index.blocks_below(host.index.place(s)))
    return not any(child is not block and not read.isdisjoint(_stored(child)) for child in children)


def _reads_elements(block: BlockRef, buffer: Buffer) -> bool:
    """Whether the block's regions contain every element of ``buffer`` that it loads, under no other name."""
    loads = sharing(_reads(block), buffer)
    return are_within(loads, [r for r in block.block.reads if r.buffer is buffer], block.block)


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
        not isinstance(i, (tuple, Ramp))
        and not has_load(i)
        and analyzer.can_prove(i >= axis.min)
        and analyzer.can_prove(i < axis.min + axis.extent)
        for i, axis in zip(indices, region)
    )


def _reads_each(block: BlockRef, buffer: Buffer) -> bool:
    """Whether an instance reads one element of ``buffer``, its iterators being the indices of that."""
    loads = [e.indices or () for e in _reads(block) if e.buffer is buffer]
    regions = [r.region for r in block.block.reads if r.buffer is buffer]
    if not loads or any(not is_const(axis.extent, 1) for r in regions for axis in r):
        return False
    if not _reads_elements(block, buffer):
        return False
    if not all(same_index(indices, loads[0]) for indices in loads):
        return False
    domains = {i.var: i.dom for i in block.block.iter_vars}
    plain = [i for i in loads[0] if isinstance(i, Var) and i in domains]
    if len(plain) != len(loads[0]) or len(set(plain)) != len(domains):
        return False
    return all(is_const(domains[v].min, 0) for v in plain)


def _domain_read(block: BlockRef, buffer: Buffer) -> list[Expr]:
    """For each axis of ``buffer``, how many of its elements ``block`` reads, from 0 on, of which :func:`_reads_each`
    holds."""
    extents = {i.var: i.dom.extent for i in block.block.iter_vars}
    indices: Any = next(e.indices for e in _reads(block) if e.buffer is buffer)
    return [extents[index] for index in indices]


def _is_tiled(size: Expr, tile: Range, covered: Expr) -> bool:
    """Whether tiles that cover an axis up to ``covered`` divide the first ``size`` elements: a tile that is no smaller
    would be taken for all of them."""
    analyzer = Analyzer()
    if not analyzer.can_prove(size <= covered):
        return False
    return analyzer.can_prove(tile.extent < size) or analyzer.can_prove_equal(tile.extent, covered)


def _makes_all(producer: BlockRef, sizes: Sequence[Expr]) -> bool:
    """Whether ``producer`` writes the first elements, as many as ``sizes``, along each axis."""
    domains: dict[Expr, Expr] = {i.var: i.dom.extent for i in producer.block.iter_vars}
    (region,) = producer.block.writes
    made = [domains.get(axis.min) for axis in region.region]
    analyzer = Analyzer()
    return runs_whole_domain(producer) and all(
        extent is not None and analyzer.can_prove(size <= extent) for size, extent in zip(sizes, made)
    )


def _is_about_elements(producer: BlockRef) -> bool:
    """Whether the predicate of ``producer`` depends only on the element written, not on data."""
    if is_const(producer.node.predicate, 1):
        return True
    pairs = zip(producer.block.iter_vars, producer.node.iter_values)
    told = {n for i, v in pairs if i.iter_type != "reduce" for n in nodes_of(v) if isinstance(n, Var)}
    mine = {p.var for p in producer.loops()}
    used = list(walk(producer.node.predicate))
    return not any(isinstance(n, BufferLoad) or (isinstance(n, Var) and n in mine and n not in told) for n in used)


def _whole_boxes(producer: BlockRef, loop: LoopRef, box: Sequence[Range]) -> list[Expr] | None:
    """How many elements of each axis the iterations of ``loop`` and the loops around complete, from 0 on, each element in
    one iteration, which completes all elements of ``box``; None if that is not evident."""
    pairs = list(zip(producer.block.iter_vars, producer.node.iter_values))
    around = {loop.var, *(p.var for p in loop.all_loops())}
    if any(uses_var(v, around) for i, v in pairs if i.iter_type == "reduce"):
        return None
    counts = _counts(producer)
    if counts is None or not _is_about_elements(producer):
        return None
    covered: dict[Expr, Expr] = {i.var: count for (i, _), count in zip(pairs, counts)}
    if not all(Analyzer().can_prove(i.dom.extent <= covered[i.var]) for i, _ in pairs):
        return None
    (region,) = producer.block.writes
    extents: dict[Expr, Expr] = {axis.min: b.extent for axis, b in zip(region.region, box)}
    inner = {v: r for v, r in producer.loop_ranges().items() if v not in around}
    spatial = [(i.var, v) for i, v in pairs if i.iter_type != "reduce"]
    whole = len(box) == len(spatial) and _takes_all(spatial, inner, extents)
    return [covered[axis.min] for axis in region.region] if whole else None


def _takes_all(bindings: Sequence[tuple[Var, Expr]], loops: Mapping[Var, Range], extents: Mapping[Expr, Expr]) -> bool:
    """Whether ``loops`` give each iterator that many values, in every combination."""
    part = covered_box([v for _, v in bindings], loops)
    return part is not None and all(
        v in extents and Analyzer().can_prove_equal(extents[v], r.extent) for (v, _), r in zip(bindings, part)
    )
