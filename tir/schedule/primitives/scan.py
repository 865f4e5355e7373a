"""Scans in blocks and in steps: factor_scan, double_scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.block_regions import with_regions
from ...analysis.index import BlockRef, LoopRef
from ...analysis.reduction_forms import Combination, combination
from ...arith import Analyzer
from ...arith.linear import key
from ...buffer import Buffer, IterVar, decl_buffer
from ...errors import require
from ...expr import EQ, BufferLoad, Expr, IntImm, Var, choice_parts, const, is_const
from ...op import call
from ...script.printer import short_text
from ...stmt import Block, BlockRealize, BufferStore, Stmt, seq
from ...visit import refresh, substitute, uses_var
from ..handles import BlockRV
from ..nests import add_alloc, in_loops_of, insert_before
from ..primitive import primitive
from ..state import State, scope_of
from ._whole_nest import require_own_values, require_whole_nest, the_block


@dataclass(frozen=True)
class Scan:
    """``store`` combines the result before along iterator ``along`` with a new value; the first result is ``first``."""

    store: BufferStore
    along: IterVar
    step: Combination
    first: Expr


@dataclass(frozen=True)
class ScanPlan:
    block: BlockRef
    outer: LoopRef
    inner: LoopRef
    scan: Scan


def _check_factor_scan(state: State, loop: LoopRef) -> ScanPlan:
    """Scan along ``loop`` anew in each iteration of the loop that it was split from, then add to each part what is before it.

    A block scans if each of its results combines the one before along an iterator with a new value, as
    ``B[i] = B[i - 1] + A[i]`` does, and selects the first by ``i == 0``. ``loop`` is the inner loop of a split of that
    iterator's. The scans of the parts are independent, in a new buffer with an axis of parts; so are the results of a part,
    to which the last one before it is added. The grouping of terms changes, and nothing else, as in ``rfactor``.

    Returns the block that scans the parts, named ``…_part``; the old handle refers to the block that makes the results.

    Before, and after ``sch.factor_scan("i_1")``::

        for i_0, i_1 in T.grid(4, 8):
            with T.block("B"):
                vi = T.axis.opaque(32, i_0 * 8 + i_1)
                B[vi] = T.if_then_else(vi == 0, A[vi], B[vi - 1] + A[vi])

        B_part = T.alloc_buffer((4, 8), "float32")
        for i_0, i_1 in T.grid(4, 8):
            with T.block("B_part"):
                vi_0 = T.axis.spatial(4, i_0)
                vi_1 = T.axis.opaque(8, i_1)
                B_part[vi_0, vi_1] = T.if_then_else(
                    vi_1 == 0, A[vi_0 * 8 + vi_1], B_part[vi_0, vi_1 - 1] + A[vi_0 * 8 + vi_1]
                )
        for i_0, i_1 in T.grid(4, 8):
            with T.block("B"):
                vi_0 = T.axis.opaque(4, i_0)
                vi_1 = T.axis.spatial(8, i_1)
                B[vi_0 * 8 + vi_1] = T.if_then_else(
                    vi_0 == 0, B_part[vi_0, vi_1], B[vi_0 * 8 - 1] + B_part[vi_0, vi_1]
                )

    Raises ``ScheduleError`` when the block does not scan, when ``loop`` and a loop around it are not the iterator's, in its
    order, or when the loops run anything else.
    """
    block = the_block(state, loop)
    scan = _scan(block)
    value = block.bindings[scan.along.var]
    length = loop.node.extent
    outer = next((r for r in block.loops() if r is not loop and uses_var(value, r.var)), None)
    wanted = None if outer is None else outer.var * length + loop.var
    plain = is_const(loop.node.min, 0) and (outer is None or is_const(outer.node.min, 0))
    require(
        outer is not None
        and wanted is not None
        and plain
        and outer in loop.ancestors()
        and Analyzer().can_prove_equal(value, wanted),
        "`{0}` of block {1} is `{2}`, and not a loop around {3} and that one's iterations",
        scan.along.var.name,
        block,
        value,
        loop.node,
        nodes=[block.node],
        legal="split the loop of the scan, and name the inner one",
    )
    assert outer is not None
    others = [i for i in block.block.iter_vars if i is not scan.along]
    used = next((i for i in others if any(uses_var(block.bindings[i.var], r.var) for r in (outer, loop))), None)
    require(
        used is None, "iterator {0} of block {1} depends on these loops, too", used and used.var.name, block, nodes=()
    )
    require_whole_nest(state, block, [outer, loop])
    require_own_values(block, scan.store.buffer, [scan.first, *(t.value for t in scan.step.terms)])
    return ScanPlan(block, outer, loop, scan)


def _scan(block: BlockRef) -> Scan:
    """The scan that ``block`` is. Raises ``ScheduleError`` if it is none."""
    store = block.block.body
    found = _as_scan(block.block, store) if isinstance(store, BufferStore) and block.block.init is None else None
    require(
        found is not None,
        "block {0} is no scan: it does not store the result before along an iterator from 0, combined with a new value, or "
        "another where that iterator is 0",
        block,
        legal="a choice between a first value, where an iterator is 0, and the result before it combined with a new value",
    )
    assert found is not None
    return found


def _as_scan(block: Block, store: BufferStore) -> Scan | None:
    parts = choice_parts(store.value)
    if parts is None:
        return None
    condition, first, combined = parts
    for along in block.iter_vars:
        places = [n for n, index in enumerate(store.indices) if index is along.var]
        if (
            len(places) != 1
            or not is_const(along.dom.min, 0)
            or key(condition) != key(EQ(along.var, const(0, along.dtype)))
        ):
            continue
        before = [key(substitute(index, {along.var: along.var - 1})) for index in store.indices]

        def is_before(e: Expr, before: Sequence[Any] = before) -> bool:
            return isinstance(e, BufferLoad) and e.buffer is store.buffer and [*map(key, e.indices)] == before

        step = combination(combined, is_before)
        if step is not None:
            return Scan(store, along, step, first)
    return None


@primitive(check=_check_factor_scan, prepared_by=("split",), group="reduction")
def factor_scan(state: State, plan: ScanPlan) -> tuple[State, BlockRV]:
    block, scan, length = plan.block, plan.scan, plan.inner.node.extent
    result, step = scan.store.buffer, scan.step
    name = state.fresh_block_name(f"{block.name}_part")
    axis = next(n for n, index in enumerate(scan.store.indices) if index is scan.along.var)
    shape = _replaced(result.shape, axis, plan.outer.node.extent, length)
    part = decl_buffer(shape, result.dtype, f"{result.name}_part", scope=result.scope)
    outer, inner = (Var(f"v{r.name}", scan.along.dtype) for r in (plan.outer, plan.inner))
    at = outer * length + inner
    analyzer = Analyzer()

    def place(where: Expr) -> tuple[Expr, ...]:
        return tuple(analyzer.simplify(substitute(i, {scan.along.var: where})) for i in scan.store.indices)

    def partial(where: Expr) -> BufferLoad:
        return BufferLoad(part, _replaced(scan.store.indices, axis, outer, where))

    begin, new = step.applied_to(None), step.applied_to(partial(inner - 1))
    if key(begin) != key(scan.first):
        begin = _chosen(EQ(outer, const(0, outer.dtype)), scan.first, begin)
    moved = {scan.along.var: at}
    begun = _chosen(EQ(inner, const(0, inner.dtype)), *(analyzer.simplify(substitute(e, moved)) for e in (begin, new)))
    own = partial(inner)
    added = step.combiner.apply(BufferLoad(result, place(outer * length - 1)), own)
    total = _chosen(EQ(outer, const(0, outer.dtype)), own, added)
    scans = _realize(plan, (outer, "spatial"), (inner, "opaque"), name, BufferStore(part, begun, own.indices))
    totals = _realize(plan, (outer, "opaque"), (inner, "spatial"), block.name, BufferStore(result, total, place(at)))
    after = state.replace(block.node, refresh(totals))
    after = insert_before(after, after.index.blocks[block.name].loops()[0], in_loops_of(block, scans))
    scope = after.find_block(scope_of(block).name)
    after = after.replace(scope.block, add_alloc(scope.block, part))
    return after, after.block_rv(name)


def _replaced(items: Sequence[Expr], axis: int, *by: Expr) -> tuple[Expr, ...]:
    return (*items[:axis], *by, *items[axis + 1 :])


def _realize(plan: ScanPlan, outer: tuple[Var, str], inner: tuple[Var, str], name: str, body: Stmt) -> BlockRealize:
    """The block with ``body``, the iterator of the scan replaced by those of its two loops."""
    iters: list[IterVar] = []
    values: list[Expr] = []
    for iterator, value in zip(plan.block.block.iter_vars, plan.block.node.iter_values):
        if iterator is not plan.scan.along:
            iters.append(iterator)
            values.append(value)
            continue
        for (var, kind), ref in ((outer, plan.outer), (inner, plan.inner)):
            iters.append(IterVar(ref.range, var, kind))
            values.append(ref.var)
    made = plan.block.block.replace(iter_vars=tuple(iters), body=body, name=name)
    return BlockRealize(tuple(values), plan.block.node.predicate, with_regions(made))


@dataclass(frozen=True)
class DoublePlan:
    block: BlockRef
    length: int
    scan: Scan


def _check_double_scan(state: State, loop: LoopRef) -> DoublePlan:
    """Scan along ``loop`` in steps: of 2 elements, of these of 4, of 8 and so on; in each step, all results at once.

    The block scans, as for ``factor_scan``, and ``loop`` is the iterator's. A step combines each result with the one that is as many
    places before as the step before has combined, if there is one. There are more operations than in order, the logarithm of the
    length times as many, but each step runs as vectors. The grouping of terms changes, and nothing else, as in ``rfactor``.

    Returns the blocks of all steps but the last, named ``…_2``, ``…_4`` …, which the block itself is from now on.

    Before, and after ``sch.double_scan("i")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.opaque(4, i)
                B[vi] = T.if_then_else(vi == 0, A[vi], B[vi - 1] + A[vi])

        B_2 = T.alloc_buffer((4,), "float32")
        for i in range(4):
            with T.block("B_2"):
                vi = T.axis.spatial(4, i)
                B_2[vi] = T.if_then_else(vi >= 1, A[vi - 1], T.float32(0)) + A[vi]
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.if_then_else(vi >= 2, B_2[vi - 2], T.float32(0)) + B_2[vi]

    Raises ``ScheduleError`` when the block does not scan, when ``loop`` is not the iterator, of a constant length of 2 or more, or when
    the loops run anything else.
    """
    block = the_block(state, loop)
    scan = _scan(block)
    length = scan.along.dom.extent
    require(block.bindings[scan.along.var] is loop.var,
            "loop {0} is not the iterator `{1}` along which block {2} scans",
            loop.node, scan.along.var.name, block, nodes=[loop.node])  # fmt: skip
    require(isinstance(length, IntImm) and length.value > 1,
            "a scan of `{0}` elements: how many steps it has is known of a constant number, two or more",
            lambda: short_text(length), nodes=[loop.node])  # fmt: skip
    assert isinstance(length, IntImm)
    require_whole_nest(state, block, [loop])
    require_own_values(block, scan.store.buffer, [scan.first, *(t.value for t in scan.step.terms)])
    return DoublePlan(block, length.value, scan)


@primitive(check=_check_double_scan, prepared_by=("factor_scan",), group="reduction")
def double_scan(state: State, plan: DoublePlan) -> tuple[State, list[BlockRV]]:
    block, scan = plan.block, plan.scan
    result, along, combiner = scan.store.buffer, scan.along.var, scan.step.combiner
    iters = tuple(i.replace(iter_type="spatial") if i is scan.along else i for i in block.block.iter_vars)
    begin = scan.step.applied_to(None)
    first = EQ(along, const(0, along.dtype))
    value = begin if key(begin) == key(scan.first) else _chosen(first, scan.first, begin)
    buffers: list[Buffer] = []
    nests: list[Stmt] = []
    step = 1
    while True:
        ahead = substitute(value, {along: along - step})
        before = _chosen(along >= step, Analyzer().simplify(ahead), combiner.identity(result.dtype))
        combined, step = combiner.apply(before, value), 2 * step
        last = step >= plan.length
        name = block.name if last else state.fresh_block_name(f"{block.name}_{step}")
        made = result if last else decl_buffer(result.shape, result.dtype, name, scope=result.scope)
        body = BufferStore(made, combined, scan.store.indices)
        realize = block.node.replace(block=with_regions(block.block.replace(iter_vars=iters, body=body, name=name)))
        if last:
            break
        buffers.append(made)
        nests.append(in_loops_of(block, realize))
        value = BufferLoad(made, scan.store.indices)
    after = state.replace(block.node, refresh(realize))
    if nests:
        after = insert_before(after, after.index.blocks[block.name].loops()[0], seq(nests))
    scope = after.find_block(scope_of(block).name)
    after = after.replace(scope.block, add_alloc(scope.block, *buffers))
    return after, [after.block_rv(b.name) for b in buffers]


def _chosen(condition: Expr, one: Expr, other: Expr) -> Expr:
    return call("if_then_else", condition, one, other, dtype=one.dtype)
