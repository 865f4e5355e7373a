"""rfactor: partial reductions along one loop, then a reduction of the partial results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...analysis.block_regions import block_access_region
from ...analysis.index import BlockRef, LoopRef
from ...analysis.reductions import BlockReducer, NotAReducer, is_selection
from ...analysis.structure import first_line, refresh, wrapped_in
from ...arith import Analyzer
from ...buffer import Buffer, IterVar, Range, decl_buffer
from ...equal import structural_equal
from ...errors import ScheduleError, require
from ...expr import Add, And, BufferLoad, Expr, Max, Min, Mul, Or, Sub, Var, all_of, conjuncts
from ...script.printer import short_text
from ...stmt import SERIAL, Block, BlockRealize, BufferStore, For, LetStmt, Stmt, seq
from ...visit import accesses, substitute, uses_var, walk
from ..blocks import add_alloc, scope_of
from ..handles import BlockRV
from ..primitive import primitive
from ..state import State
from ._start import require_start

COMMUTATIVE = (Add, Sub, Mul, Min, Max, And, Or)


@dataclass(frozen=True)
class RfactorPlan:
    block: BlockRef
    loop: LoopRef
    reducer: BlockReducer
    axis: int
    started: tuple[Expr, ...]


def _check_rfactor(state: State, loop: LoopRef, factor_axis: int) -> RfactorPlan:
    """Make the reduction along ``loop`` a dimension of partial results, reduced by a second block.

    The partial results are in a new buffer with the loop's extent as axis ``factor_axis`` (negative counts from the
    end). Returns the block that makes them, named ``…_rf``; the old handle means the block that adds them up.

    Before → after, for ``sch.rfactor("ki", 0)``::

        for ko, ki in T.grid(4, 8):              for ko, ki in T.grid(4, 8):
            C[()] += A[ko * 8 + ki]                  C_rf[ki] += A[ko * 8 + ki]
                                                 for ki in range(8):
                                                     C[()] += C_rf[ki]

    A block that reduces several values at once, as an arg-max does, gets a buffer of partial results for each. Partial
    results start from the block's own init where its operation gives ``x`` for ``x op x``, else from the operation's
    identity.

    Raises ``ScheduleError`` when the loop is not a reduction loop of one block, or the operation does not commute.
    """
    blocks = state.index.blocks_below(loop)
    require(len(blocks) == 1, "loop {0} holds {1} blocks; rfactor takes a loop around one", loop.node, len(blocks))
    block = blocks[0]
    scope_of(state, block)
    pairs = list(zip(block.block.iter_vars, block.node.iter_values))
    spatial_use = [i.var.name for i, v in pairs if i.iter_type != "reduce" and uses_var(v, loop.var)]
    require(
        not spatial_use and any(uses_var(v, loop.var) for _, v in pairs),
        "loop {0} does not only reduce: block {1} uses it for {2}",
        loop.node, block, ", ".join(spatial_use) or "no iterator", nodes=[loop.node],
        legal=[r.name for r in block.loops()
               if any(i.iter_type == "reduce" and uses_var(v, r.var) for i, v in pairs)],
    )  # fmt: skip
    _require_rectangular(block, pairs)
    reducer = _reducer(block)
    require_start(block, "rfactor before the loop is taken apart")
    rank = len(reducer.stores[0].indices) + 1
    axis = factor_axis + rank if factor_axis < 0 else factor_axis
    require(0 <= axis < rank, "factor_axis {0} is not one of the {1} axes of the partial results", factor_axis, rank)
    allowed = {v for b in state.func.buffer_map.values() for v in b.shape if isinstance(v, Var)}
    extent = loop.node.extent
    require(
        all(v in allowed or v in state.func.params for v in walk(extent) if isinstance(v, Var)),
        "the extent `{0}` of loop {1} changes while the function runs, so partial results have no fixed size",
        short_text(extent), loop.node, nodes=[loop.node],
    )  # fmt: skip
    started = _started(block, loop, pairs)
    top = block.loops()[0]
    other = wrapped_in(block, scope_of(state, block))
    require(
        other is None,
        "block {0} is inside of `{1}`, which the loops that add up the partial results would not be",
        block, first_line(other), nodes=[block.node], legal="hoist it after rfactor, or split with tail=\"cut\"",
    )  # fmt: skip
    sharing = [
        b for b in state.index.blocks_below(top)
        if b is not block and any(a.buffer in reducer.targets for a in accesses(b.node))
    ]  # fmt: skip
    require(not sharing, "block {0}, in the same loops, uses the result of {1}", sharing[0] if sharing else "", block)
    return RfactorPlan(block, loop, reducer, axis, tuple(started))


def _reducer(block: BlockRef) -> BlockReducer:
    """What the block combines by. Raises ``ScheduleError`` where that is not a reduction whose order is free."""
    try:
        reducer = BlockReducer(block.block)
    except NotAReducer as error:
        raise ScheduleError(str(error), nodes=[block.node]) from None
    require(
        all(isinstance(store.value, COMMUTATIVE) or is_selection(store.value) for store in reducer.stores),
        "block {0} does not update by a commutative operation (+, -, *, min, max, and, or, a selection)",
        block, nodes=[block.node],
    )  # fmt: skip
    first = reducer.stores[0]
    require(
        all(structural_equal(s.indices, first.indices) for s in reducer.stores),
        "block {0} stores its results at different places: {1} and {2}",
        block, short_text(first), short_text(reducer.stores[-1]), nodes=[block.node],
    )  # fmt: skip
    return reducer


def _require_rectangular(block: BlockRef, pairs: list[Any]) -> None:
    """The reduction's loops and bindings are the same for every spatial instance."""
    spatial = {r.var for r in block.loops() if any(i.iter_type != "reduce" and uses_var(v, r.var) for i, v in pairs)}
    for iterator, value in pairs:
        if iterator.iter_type != "reduce":
            continue
        bounds = [x for r in block.loops() if uses_var(value, r.var) for x in (r.node.min, r.node.extent)]
        require(
            not any(uses_var(e, spatial) for e in (value, *bounds)),
            "the reduction `{0}` of block {1} runs differently for different results: partial results need a rectangle",
            iterator.var.name, block, nodes=[block.node],
        )  # fmt: skip


def _started(block: BlockRef, loop: LoopRef, pairs: list[Any]) -> list[Expr]:
    """What must hold of ``loop`` and the spatial loops for a partial result to exist: the block's condition where the
    other reduction loops start.

    Raises ``ScheduleError`` when a partial result may have terms but not that first one, which initialises it.
    """
    spatial = {r.var for r in block.loops() if any(i.iter_type != "reduce" and uses_var(v, r.var) for i, v in pairs)}
    start = {ref.var: ref.node.min for ref in block.loops() if ref is not loop and ref.var not in spatial}
    analyzer = Analyzer()
    for ref in block.all_loops():
        analyzer.bind(ref.var, Range(ref.node.min, ref.node.extent))
    kept = []
    for condition in conjuncts(block.node.predicate):
        first = analyzer.simplify(substitute(condition, start))
        if analyzer.can_prove(first):
            continue
        with analyzer.scope():
            analyzer.assume(condition)
            require(
                analyzer.can_prove(first),
                "some partial results would have no first term: `{0}` of block {1} can be false at their start",
                short_text(first), block, nodes=[block.node],
                legal="split the reduction so that it divides, or pad it",
            )  # fmt: skip
        kept.append(first)
    return kept


def _partial_buffers(plan: RfactorPlan) -> list[Buffer]:
    made = []
    for old in plan.reducer.targets:
        shape = list(old.shape)
        shape.insert(plan.axis, plan.loop.node.extent)
        made.append(decl_buffer(shape, old.dtype, f"{old.name}_rf", scope=old.scope))
    return made


def _insert(items: tuple[Expr, ...], axis: int, item: Expr) -> tuple[Expr, ...]:
    return (*items[:axis], item, *items[axis:])


def _update(targets: list[BufferLoad], values: list[Expr]) -> Stmt:
    """The new values stored, after all of them are known where there are several."""
    if len(targets) == 1:
        return BufferStore(targets[0].buffer, values[0], targets[0].indices)
    lets = [Var(f"v_{target.buffer.name}", value.dtype) for target, value in zip(targets, values)]
    body = seq(BufferStore(target.buffer, let, target.indices) for target, let in zip(targets, lets))
    for let, value in reversed(list(zip(lets, values))):
        body = LetStmt(let, value, body)
    return body


def _starts(reducer: BlockReducer) -> list[Expr]:
    """What partial results start from."""
    if (
        reducer.init is not None
        and reducer.selects()
        and not any(isinstance(n, Var) for v in reducer.init for n in walk(v))
    ):
        return reducer.init
    return list(reducer.comm.identity)


def _partial_values(reducer: BlockReducer, partials: list[BufferLoad]) -> list[Expr]:
    """The partial results with the block's next term; a difference is kept as one, to be added up at the end."""
    values = reducer.combine(list(partials), reducer.terms)
    return [
        Sub(load, term) if isinstance(store.value, Sub) else value
        for store, load, term, value in zip(reducer.stores, partials, reducer.terms, values)
    ]


def _loops_shared_with(block: BlockRef, loop: LoopRef) -> set[Var]:
    """The loops of all reduce iterators that ``loop`` is about, and of those that share one of these loops."""
    found = {loop.var}
    values = [v for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type == "reduce"]
    while True:
        touched = [v for v in values if uses_var(v, found)]
        more = {ref.var for ref in block.loops() if any(uses_var(v, ref.var) for v in touched)}
        if more <= found:
            return found
        found |= more


def _partial_block(plan: RfactorPlan, partials: list[Buffer], name: str) -> BlockRealize:
    """The block that makes the partial results: ``loop`` is spatial in it, the other reduction loops stay."""
    block, loop, reducer = plan.block, plan.loop, plan.reducer
    factor = Var(f"v{loop.name}", loop.var.dtype)
    iters: list[IterVar] = []
    values: list[Expr] = []
    split: dict[Var, Var] = {loop.var: factor}
    inside: dict[Var, Expr] = {}
    shared = _loops_shared_with(block, loop)
    for iterator, value in zip(block.block.iter_vars, block.node.iter_values):
        if iterator.iter_type != "reduce" or not uses_var(value, shared):
            iters.append(iterator)
            values.append(value)
            continue
        for ref in block.loops():
            if ref.var not in split and uses_var(value, ref.var):
                split[ref.var] = Var(f"v{ref.name}", ref.var.dtype)
                iters.append(IterVar(Range(ref.node.min, ref.node.extent), split[ref.var], "reduce"))
                values.append(ref.var)
        inside[iterator.var] = substitute(value, split)
    iters.insert(0, IterVar(Range(loop.node.min, loop.node.extent), factor))
    values.insert(0, loop.var)
    index = _insert(reducer.stores[0].indices, plan.axis, factor - loop.node.min)
    loads = [BufferLoad(partial, index) for partial in partials]
    update = _update(loads, [substitute(v, inside) for v in _partial_values(reducer, loads)])
    init = seq(BufferStore(partial, start, index) for partial, start in zip(partials, _starts(reducer)))
    made = Block(tuple(iters), (), (), name, update, init, annotations=block.block.annotations)
    reads, writes = block_access_region(made)
    return BlockRealize(tuple(values), block.node.predicate, refresh(made.replace(reads=reads, writes=writes)))


def _final_nest(plan: RfactorPlan, partials: list[Buffer]) -> Stmt:
    """The loops and block that reduce the partial results into the old buffers."""
    block, loop, reducer = plan.block, plan.loop, plan.reducer
    pairs = [(i, v) for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type != "reduce"]
    kept = [r for r in block.loops() if any(uses_var(v, r.var) for _, v in pairs)]
    factor = IterVar(Range(loop.node.min, loop.node.extent), Var(f"v{loop.name}", loop.var.dtype), "reduce")
    index = _insert(reducer.stores[0].indices, plan.axis, factor.var - loop.node.min)
    results = [BufferLoad(store.buffer, store.indices) for store in reducer.stores]
    update = _update(results, reducer.combine(list(results), [BufferLoad(partial, index) for partial in partials]))
    made = Block((factor, *(i for i, _ in pairs)), (), (), block.name, update, block.block.init)
    reads, writes = block_access_region(made)
    values = (loop.var, *(v for _, v in pairs))
    realize = BlockRealize(values, all_of(plan.started), made.replace(reads=reads, writes=writes))
    body: Stmt = realize
    for ref in reversed((*kept, loop)):
        body = For(ref.var, ref.node.min, ref.node.extent, SERIAL, body)
    return refresh(body)


@primitive(check=_check_rfactor)
def rfactor(state: State, plan: RfactorPlan) -> tuple[State, BlockRV]:
    partials = _partial_buffers(plan)
    name = state.fresh_block_name(f"{plan.block.name}_rf")
    scope = plan.block.scope
    assert scope is not None
    top = plan.block.loops()[0]
    # The two blocks trade names inside one rewrite: the old name means the block with the final results.
    made = state.replace(plan.block.node, _partial_block(plan, partials, name))
    place = made.index.loops[top.var]
    made = made.replace(place.node, seq([place.node, _final_nest(plan, partials)]))
    outer = made.find_block(scope.name)
    after = made.replace(outer.block, add_alloc(outer.block, *partials))
    return after, after.block_rv(name)
