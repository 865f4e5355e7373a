"""Moves whose legality is plain from the program's form, so that no sets have to be built.

Both say "legal" or "not shown"; the dependences decide the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...arith import Analyzer
from ...arith.itermap import IterMap, detect_iter_map
from ...buffer import Buffer, Range
from ...expr import BufferLoad, Var, is_const
from ...stmt import SERIAL, BlockRealize, For, SeqStmt
from ...visit import accesses, uses_var
from ..state import BlockRef, LoopRef
from ._inlining import order
from ._structure import is_standard, same_index


def plain_producer(block: BlockRef, loop: LoopRef, consumers: Sequence[BlockRef]) -> bool:
    """Whether ``block`` may be made just before its first consumer under ``loop``, as much as they read there.

    Each element that it makes is a function of its indices and of inputs that nothing writes from where the block is to
    where it goes; all that reads it is under ``loop``.
    """
    made = _sole_result(block)
    scope = block.scope
    if made is None or scope is None or not _is_alone(block, scope) or not _runs_in_order(loop, scope):
        return False
    if any(_touches(child, made) and child is not block and child not in consumers for child in scope.children):
        return False
    if any(r.buffer.data is made.data for c in consumers for r in c.block.writes):
        return False  # made again for a later iteration, it would undo what this one does to it
    here, there = order(scope, block), order(scope, consumers[0])
    return (
        here < there
        and _inputs_stay(block, made, scope, here, there)
        and all(_reads_elements(c, made) for c in consumers)
    )


def plain_consumer(
    block: BlockRef, loop: LoopRef, producer: BlockRef, boxes: Mapping[Buffer, tuple[Range, ...]]
) -> bool:
    """Whether ``block``, elementwise, may use what an iteration of ``loop`` makes just after its ``producer`` there.

    The boxes made by the iterations are whole, disjoint, and together all of the block's domain.
    """
    made = _sole_result(producer)
    scope = block.scope
    if made is None or scope is None or len(boxes) != 1 or made not in boxes or not _runs_in_order(loop, scope):
        return False
    if not _is_alone(block, scope) or not is_standard(block.block) or block.block.init is not None:
        return False
    if any(i.iter_type == "reduce" for i in block.block.iter_vars) or not _reads_each(block, made):
        return False
    if any(_touches(child, made) and child is not block and child is not producer for child in scope.children):
        return False
    here, there = order(scope, producer), order(scope, block)
    if not here < there or not _inputs_stay(block, made, scope, here, there):
        return False
    written = {r.buffer.data for r in block.block.writes}
    between = [c for c in scope.children if c is not block and here <= order(scope, c) <= there]
    if any(a.buffer.data in written for c in between for a in accesses(c.node)):
        return False
    return _makes_whole_boxes(producer, loop, boxes[made])


def _sole_result(block: BlockRef) -> Buffer | None:
    """The one buffer that ``block`` writes, each element by one instance, where it is of a scope's own."""
    scope, body = block.scope, block.block
    if scope is None or len(body.writes) != 1 or not is_const(block.node.predicate, 1) or not is_standard(body):
        return None
    if any(i.iter_type == "reduce" for i in body.iter_vars) and body.init is None:
        return None
    (region,) = body.writes
    stores = [a for a in accesses(body) if not isinstance(a, BufferLoad)]
    mins = [r.min for r in region.region]
    if not all(a.buffer is region.buffer and same_index(a.indices, mins) for a in stores):
        return None
    return region.buffer if region.buffer in scope.block.alloc_buffers else None


def _is_alone(block: BlockRef, scope: BlockRef) -> bool:
    """Whether ``block`` shares no loop, runs once for each value of its iterators, among blocks of plain form only."""
    place = order(scope, block)
    return (
        _runs_all(block)
        and all(child is block or order(scope, child) != place for child in scope.children)
        and all(is_standard(child.block) for child in scope.children)
        and _only_blocks(scope.block.body)
    )


def _runs_all(block: BlockRef) -> bool:
    """Whether ``block`` runs once, and without conditions, for each value of its iterators."""
    pairs = list(zip(block.block.iter_vars, block.node.iter_values))
    domains = {p.var: Range(p.node.min, p.node.extent) for p in block.loops()}
    found = detect_iter_map([v for _, v in pairs], domains, check="bijective")
    analyzer = Analyzer()
    return (
        is_const(block.node.predicate, 1)
        and isinstance(found, IterMap)
        and all(
            is_const(i.dom.min, 0) and analyzer.can_prove_equal(extent, i.dom.extent)
            for (i, _), extent in zip(pairs, found.extents)
        )
    )


def _only_blocks(s: object) -> bool:
    while isinstance(s, For):
        s = s.body
    return all(_only_blocks(part) for part in s.stmts) if isinstance(s, SeqStmt) else isinstance(s, BlockRealize)


def _runs_in_order(loop: LoopRef, scope: BlockRef) -> bool:
    return loop.scope is scope and all(p.node.kind == SERIAL for p in (loop, *loop.all_loops()))


def _touches(block: BlockRef, buffer: Buffer) -> bool:
    return any(a.buffer.data is buffer.data for a in accesses(block.node))


def _inputs_stay(block: BlockRef, made: Buffer, scope: BlockRef, here: int, there: int) -> bool:
    """Whether nothing from statement ``here`` to ``there`` writes what ``block`` reads, but ``made``."""
    read = {a.buffer.data for a in accesses(block.node) if isinstance(a, BufferLoad)} - {made.data}
    return not any(
        r.buffer.data in read
        for child in scope.children
        if child is not block and here <= order(scope, child) <= there
        for r in child.block.writes
    )


def _reads_elements(block: BlockRef, buffer: Buffer) -> bool:
    """Whether the block's regions say of each load of ``buffer`` which element it is."""
    regions = [r.region for r in block.block.reads if r.buffer is buffer]
    exact = [[axis.min for axis in r] for r in regions if all(is_const(axis.extent, 1) for axis in r)]
    loads = [a for a in accesses(block.block) if a.buffer is buffer]
    return all(any(same_index(a.indices, e) for e in exact) for a in loads)


def _reads_each(block: BlockRef, buffer: Buffer) -> bool:
    """Whether an instance reads one element of ``buffer``, its iterators being the indices of that."""
    loads = [a for a in accesses(block.block) if a.buffer is buffer]
    if not loads or not _reads_elements(block, buffer):
        return False
    if not all(same_index(a.indices, loads[0].indices) for a in loads):
        return False
    domains = {i.var: i.dom for i in block.block.iter_vars}
    plain = [i for i in loads[0].indices if isinstance(i, Var) and i in domains]
    if len(plain) != len(loads[0].indices) or len(set(plain)) != len(domains):
        return False
    analyzer = Analyzer()
    return all(
        is_const(domains[v].min, 0) and analyzer.can_prove_equal(domains[v].extent, size)
        for v, size in zip(plain, buffer.shape)
    )


def _makes_whole_boxes(producer: BlockRef, loop: LoopRef, box: Sequence[Range]) -> bool:
    """Whether each iteration of ``loop`` finishes all elements of ``box``, each element in one iteration only."""
    pairs = list(zip(producer.block.iter_vars, producer.node.iter_values))
    around = {loop.var, *(p.var for p in loop.all_loops())}
    if any(uses_var(v, around) for i, v in pairs if i.iter_type == "reduce"):
        return False
    if not _runs_all(producer):
        return False
    domains = {p.var: Range(p.node.min, p.node.extent) for p in producer.loops()}
    analyzer = Analyzer()
    inner = {v: r for v, r in domains.items() if v not in around}
    spatial = [(i, v) for i, v in pairs if i.iter_type != "reduce"]
    part = detect_iter_map([v for _, v in spatial], inner, check="surjective")
    if not isinstance(part, IterMap) or len(box) != len(spatial):
        return False
    (region,) = producer.block.writes
    extents = {axis.min: b.extent for axis, b in zip(region.region, box)}
    return all(
        i.var in extents and analyzer.can_prove_equal(extents[i.var], e) for (i, _), e in zip(spatial, part.extents)
    )
