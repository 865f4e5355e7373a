"""rfactor: partial reductions along one loop, then a reduction of the partial results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...aliases import memory_of, sharing
from ...analysis.block_regions import with_regions
from ...analysis.effects import effects
from ...analysis.evaluation import entered, steering_loads
from ...analysis.index import BlockRef, LoopRef, wrapped_in
from ...analysis.reduction_forms import NotAReduction, Reduction
from ...analysis.reduction_init import InitRuns, require_same_init
from ...analysis.users import bare_stores
from ...arith import Analyzer
from ...buffer import Buffer, IterVar, decl_buffer
from ...equal import structural_equal
from ...errors import ScheduleError, require, require_none
from ...expr import BufferLoad, Expr, Var, all_of, conjuncts, is_const
from ...script.printer import short_text
from ...stmt import SERIAL, Block, BlockRealize, BufferStore, For, IfThenElse, Stmt, first_line, in_lets, seq
from ...visit import accesses, nodes_of, refresh, substitute, uses_var, vars_in, walk
from ..handles import BlockRV
from ..nests import add_alloc, in_loops_of
from ..primitive import primitive
from ..state import State, scope_of
from .decompose_reduction import require_distinct_results


@dataclass(frozen=True)
class RfactorPlan:
    block: BlockRef
    loop: LoopRef
    reduction: Reduction
    axis: int
    started: tuple[Expr, ...]
    guards: tuple[Expr, ...]  # the conditions of terms that some partial results have none of
    stays: LoopRef | None  # what the final results take the place of, if the partial ones go before all loops
    behind: LoopRef  # else the final ones go behind this loop, in which the partial ones are


def _only_reduced_block(state: State, loop: LoopRef) -> BlockRef:
    """The only block under ``loop``, which the loop only reduces."""
    blocks = state.index.blocks_below(loop)
    require(len(blocks) == 1,
            "loop {0} holds {1} blocks; rfactor takes a loop around one",
            loop.node, len(blocks), legal="fission the loop first" if blocks else "", nodes=())  # fmt: skip
    block = blocks[0]
    pairs = list(zip(block.block.iter_vars, block.node.iter_values))
    spatial_use = [i.var.name for i, v in pairs if i.iter_type != "reduce" and uses_var(v, loop.var)]
    used = any(uses_var(v, loop.var) for _, v in pairs) or is_const(loop.node.extent, 1)
    require(
        not spatial_use and used,
        "loop {0} does not only reduce: block {1} uses it for {2}",
        loop.node,
        block,
        ", ".join(spatial_use) or "no iterator",
        nodes=[loop.node],
        legal=[r.name for r in block.loops() if any(i.iter_type == "reduce" and uses_var(v, r.var) for i, v in pairs)],
    )
    return block


def _check_rfactor(state: State, loop: LoopRef, factor_axis: int) -> RfactorPlan:
    """Factor the reduction along ``loop`` into partial results, which a second block reduces.

    The partial results are in a new buffer with the loop's extent as axis ``factor_axis`` (negative counts from the
    end). Returns the block that computes them, named ``…_rf``; the old handle refers to the block that combines them.

    Before, and after ``sch.rfactor("k", 0)``::

        for i, k in T.grid(4, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

        C_rf = T.alloc_buffer((8, 4), "float32")
        for i, k in T.grid(4, 8):
            with T.block("C_rf"):
                vk, vi = T.axis.remap("SS", [k, i])
                with T.init():
                    C_rf[vk, vi] = T.float32(0)
                C_rf[vk, vi] = C_rf[vk, vi] + A[vi, vk]
        for i, k in T.grid(4, 8):
            with T.block("C"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + C_rf[vk, vi]

    A block that reduces several values at once, as an arg-max does, gets one buffer of partial results for each.
    Partial results start from the block's own init if the combiner is idempotent (``x op x`` is ``x``), otherwise from
    the combiner's identity.

    The partial results are combined after all loops around the block; if another block in these loops uses the result,
    they are combined in the block's place, and computed before these loops, or where these make what they are made of,
    just before.

    Raises ``ScheduleError`` when the loop is not a reduction loop of one block, when the combiner does not commute, or
    when a reduction iterator takes a value more than once, so that init would run again.
    """
    block = _only_reduced_block(state, loop)
    scope_of(block)
    pairs = list(zip(block.block.iter_vars, block.node.iter_values))
    _require_rectangular(block, pairs)
    reduction = _reduction(block)
    first = _first_reducing(block, loop)
    if block.block.init is not None:
        InitRuns.below(block, first).require_first()
    rank = len(reduction.stores[0].indices) + 1
    axis = factor_axis + rank if factor_axis < 0 else factor_axis
    require(0 <= axis < rank,
            "factor_axis {0} is not one of the {1} axes of the partial results",
            factor_axis, rank, legal=f"{-rank} to {rank - 1}")  # fmt: skip
    allowed = {*state.func.params, *(v for b in state.func.buffer_map.values() for v in b.shape if isinstance(v, Var))}
    extent = loop.node.extent
    require(all(v in allowed for v in walk(extent) if isinstance(v, Var)),
            "the extent `{0}` of loop {1} changes while the function runs, so partial results have no fixed size",
            lambda: short_text(extent), loop.node)  # fmt: skip
    started, guards = _started(block, loop, pairs)
    _require_lasting(state, block, started)
    other = wrapped_in(block, scope_of(block))
    require(other is None,
            "block {0} is inside of `{1}`, which the loops that add up the partial results would not be",
            block, first_line(other), legal='hoist it after rfactor, or split with tail="cut"')  # fmt: skip
    places = _places(state, block, first, reduction)
    plan = RfactorPlan(block, loop, reduction, axis, tuple(started), tuple(guards), *places)
    _require_distinct_terms(plan, first)
    if block.block.init is not None:
        InitRuns.innermost(block, loop, _final_block(plan, _partial_buffers(plan))).require_first()
    return plan


def _require_lasting(state: State, block: BlockRef, conditions: Sequence[Expr]) -> None:
    """Require ``conditions`` to be invariant in the block's loops: both the partial results and their combination
    evaluate them."""
    tested = {n.buffer for e in (*conditions, block.node.predicate) for n in nodes_of(e) if isinstance(n, BufferLoad)}
    writers = [b for b in state.index.blocks_below(block.loops()[0]) if any(r.buffer in tested for r in b.block.writes)]
    require_none(
        writers,
        "block {1} runs under a condition on memory that {0} writes in the same loops: the partial results and their "
        "combination, which runs outside of them, would find it different",
        block,
        legal="fission the loops before rfactor",
    )


def _first_reducing(block: BlockRef, loop: LoopRef) -> LoopRef:
    """The outermost of ``loop`` and the reduction loops."""
    values = [v for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type == "reduce"]
    return next(r for r in block.loops() if r is loop or any(uses_var(v, r.var) for v in values))


def _require_distinct_terms(plan: RfactorPlan, first: LoopRef) -> None:
    """Require that the init of each partial result runs once, before all of its terms."""
    block = plan.block
    values = [*block.node.iter_values, plan.loop.var]
    if block.block.init is None:
        require_distinct_results(
            block
        )  # the partial results of an instance would be lost where the next one begins them
        loops = [r for r in block.loops() if not is_const(r.node.extent, 1)]
        repeats = [r for r in loops if not any(uses_var(v, r.var) for v in values)]
        rule = "loop {0} repeats the updates of block {1}: no iterator tells its iterations apart"
        require_none(repeats[:1], rule, block)
    partial = _partial_block(plan, _partial_buffers(plan), block.name)
    InitRuns.below(block, first, partial).require_first()


def _places(state: State, block: BlockRef, first: LoopRef, reduction: Reduction) -> tuple[LoopRef | None, LoopRef]:
    """What the final results take the place of, if anything, and behind which loop they are else: behind all loops, unless another block in these
    uses them, or those around no other block."""
    top = block.loops()[0]
    uses = [(s, n.buffer.data) for s, n in steering_loads(top.node)] + list(bare_stores(top.node))
    steering = [s for s, memory in uses if sharing(reduction.targets, {memory})]
    rule = "`{2}` uses the result of block {1} in the same loops, outside of a block"
    require_none(steering, rule, block, first_line, nodes=steering[:1])
    others = [b for b in state.index.blocks_below(top) if b is not block]
    users = [b for b in others if effects(b.node).of(memory_of(reduction.targets))]
    if not users:
        return None, top
    inside = [b for b in users if first in b.all_loops()]
    require_none(inside, "block {0}, in the reduction's loop {1}, uses the result of {2}", first, block)
    own = [r for r in block.loops() if state.index.blocks_below(r) == [block] and not bare_stores(r.node)]
    require(
        first in own,
        "block {0}, in the same loops, uses the result of {1}, whose reduction's loop {2} holds other work, too",
        users[0], block, first.node,
        nodes=[users[0].node], legal="rfactor before compute_at")  # fmt: skip
    if not _can_be_made_before(block, others, reduction):
        return None, own[0]
    require_distinct_results(block)  # all partial results are kept until the last of these loops ends
    return first, top


def _can_be_made_before(block: BlockRef, others: Sequence[BlockRef], reduction: Reduction) -> bool:
    """Whether partial results can be computed before all loops: nothing in these makes what ``block`` reads."""
    read = {a.buffer.data for a in accesses(block.node)} | {r.buffer.data for r in block.block.reads}
    read -= {b.data for b in reduction.targets}
    making = any(r.buffer.data in read for b in others for r in b.block.writes)
    bare = any(memory in read for _, memory in bare_stores(block.loops()[0].node))
    return not making and not bare and not scope_of(block).block.match_buffers


def _reduction(block: BlockRef) -> Reduction:
    """The combiner of the block. Raises ``ScheduleError`` for a reduction that may not be reordered."""
    found = Reduction.of(block.block)
    if isinstance(found, NotAReduction):
        raise ScheduleError(found.rule, *found.parts, nodes=[block.node])
    require(not found.loops and not block.block.match_buffers,
            "block {0} reduces in loops of its own, or through views of buffers: partial results would need these, too",
            block)  # fmt: skip
    first = found.stores[0]
    require(all(structural_equal(s.indices, first.indices) for s in found.stores),
            "block {0} stores its results at different places: {1} and {2}",
            block, lambda: short_text(first), lambda: short_text(found.stores[-1]))  # fmt: skip
    steps = [i.var for i in block.block.iter_vars if i.iter_type == "reduce"]
    chosen = next((v for v in steps if any(uses_var(i, v) for i in first.indices)), None)
    require(chosen is None,
            "block {0} stores to `{1}`, an element that reduction iterator {2} chooses: it does not reduce along {2}",
            block, lambda: short_text(first.buffer[first.indices]), chosen.name if chosen is not None else "",
            legal="make that iterator spatial")  # fmt: skip
    require_same_init(block)
    return found


def _require_rectangular(block: BlockRef, pairs: list[Any]) -> None:
    """Require a rectangular reduction domain: the reduction loops and bindings do not depend on spatial loops."""
    spatial = {r.var for r in block.loops() if any(i.iter_type != "reduce" and uses_var(v, r.var) for i, v in pairs)}
    for iterator, value in pairs:
        if iterator.iter_type != "reduce":
            continue
        bounds = [x for r in block.loops() if uses_var(value, r.var) for x in (r.node.min, r.node.extent)]
        require(
            not any(uses_var(e, spatial) for e in (value, *bounds)),
            "rfactor needs a rectangular reduction domain; the range of `{0}` in block {1} depends on a spatial loop",
            iterator.var.name,
            block,
        )


def _started(block: BlockRef, loop: LoopRef, pairs: list[Any]) -> tuple[list[Expr], list[Expr]]:
    """The condition on ``loop`` and the spatial loops under which a partial result exists: the block's predicate at the
    start of the other reduction loops, and that these are not empty. And the conditions of terms that do not count among these:
    on reduction loops alone, of which the first partial result has terms if any has; the others are what they start from.

    Raises ``ScheduleError`` when a partial result may have terms but not the first one, which initialises it.
    """
    spatial = vars_in(*(v for i, v in pairs if i.iter_type != "reduce"))
    start = {ref.var: ref.node.min for ref in block.loops() if ref is not loop and ref.var not in spatial}
    firsts = _at_start(block, start)
    outside = Analyzer({ref.var: ref.range for ref in block.all_loops() if ref.var not in start})
    lengths = [substitute(ref.node.extent, start) for ref in block.loops() if ref.var in start]
    foreign = {ref.var for ref in block.all_loops()} - _loops_shared_with(block, loop)
    guards = [c for c, first in firsts.items() if uses_var(first, loop.var)]
    if guards and not any(uses_var(c, foreign) for c in guards):
        others = [first for first in firsts.values() if not uses_var(first, loop.var)]
        with outside.scope():
            some = _with_entered(others, lengths, outside)
            if all(outside.can_prove(substitute(firsts[c], {loop.var: loop.node.min})) for c in guards):
                return some, guards
    return _with_entered(list(firsts.values()), lengths, outside), []


def _at_start(block: BlockRef, start: Mapping[Var, Expr]) -> dict[Expr, Expr]:
    """The conditions of a block that are not always true, each with what it is where loops are at their ``start``. Raises
    ``ScheduleError`` where one may hold later and not there."""
    analyzer = block.analyzer()
    found: dict[Expr, Expr] = {}
    for condition in conjuncts(block.node.predicate):
        first = analyzer.simplify(substitute(condition, start))
        if analyzer.can_prove(first):
            continue
        with analyzer.scope():
            analyzer.assume(condition, block.node)
            require(analyzer.can_prove(first),
                    "some partial results would have no first term: `{0}` of block {1} can be false at their start",
                    lambda: short_text(first), block, legal="split the reduction so that it divides, or pad it")  # fmt: skip
        found[condition] = first
    return found


def _with_entered(conditions: list[Expr], lengths: list[Expr], outside: Analyzer) -> list[Expr]:
    """``conditions``, and that loops of ``lengths`` are entered; ``outside`` knows them afterwards."""
    for condition in conditions:
        outside.assume(condition)
    found = [*conditions, *entered(lengths, outside)]
    for condition in found[len(conditions) :]:
        outside.assume(condition)
    return found


def _partial_buffers(plan: RfactorPlan) -> list[Buffer]:
    made = []
    for old in plan.reduction.targets:
        shape = list(old.shape)
        shape.insert(plan.axis, plan.loop.node.extent)
        made.append(decl_buffer(shape, old.dtype, f"{old.name}_rf", scope=old.scope))
    return made


def _insert(items: tuple[Expr, ...], axis: int, item: Expr) -> tuple[Expr, ...]:
    return (*items[:axis], item, *items[axis:])


def _update(targets: list[BufferLoad], values: list[Expr], guards: Sequence[Sequence[Expr]]) -> Stmt:
    """The new values stored, each under its guards; of several, the unguarded ones are evaluated before anything is
    stored."""
    stores: list[Stmt] = []
    lets: list[tuple[Var, Expr]] = []
    for target, value, conditions in zip(targets, values, guards):
        if not conditions and len(targets) > 1:
            lets.append((Var(f"v_{target.buffer.name}", value.dtype), value))
            value = lets[-1][0]
        store = BufferStore(target.buffer, value, target.indices)
        stores.append(IfThenElse(all_of(conditions), store) if conditions else store)
    return in_lets(lets, seq(stores))


def _starts(reduction: Reduction) -> Sequence[Expr]:
    """The initial values of partial results."""
    init = reduction.init
    if init is not None and reduction.is_idempotent and not any(isinstance(n, Var) for v in init for n in nodes_of(v)):
        return init
    return reduction.identity


def _loops_shared_with(block: BlockRef, loop: LoopRef) -> set[Var]:
    """The loops of all reduce iterators that use ``loop``, and of those that share one of these loops."""
    found = {loop.var}
    values = [v for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type == "reduce"]
    while True:
        touched = [v for v in values if uses_var(v, found)]
        more = {ref.var for ref in block.loops() if any(uses_var(v, ref.var) for v in touched)}
        if more <= found:
            return found
        found |= more


def _partial_block(plan: RfactorPlan, partials: list[Buffer], name: str) -> BlockRealize:
    """The block that computes the partial results: ``loop`` is spatial in it, the other reduction loops stay."""
    block, loop, reduction = plan.block, plan.loop, plan.reduction
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
                iters.append(IterVar(ref.range, split[ref.var], "reduce"))
                values.append(ref.var)
        inside[iterator.var] = substitute(value, split)
    iters.insert(0, IterVar(loop.range, factor))
    values.insert(0, loop.var)
    index = _insert(reduction.stores[0].indices, plan.axis, factor - loop.node.min)
    loads = [BufferLoad(partial, index) for partial in partials]
    guards = [(*plan.guards, *u.guards) for u in reduction.updates]
    update = substitute(_update(loads, reduction.updated(loads), guards), {**split, **inside})
    init = seq(BufferStore(partial, start, index) for partial, start in zip(partials, _starts(reduction)))
    made = Block(tuple(iters), (), (), name, update, init, annotations=block.block.annotations)
    predicate = all_of(c for c in conjuncts(block.node.predicate) if not any(c is g for g in plan.guards))
    return BlockRealize(tuple(values), predicate, refresh(with_regions(made)))


def _final_block(plan: RfactorPlan, partials: list[Buffer]) -> BlockRealize:
    """The block that combines the partial results into the old buffers, along ``loop``."""
    block, loop, reduction = plan.block, plan.loop, plan.reduction
    pairs = [(i, v) for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type != "reduce"]
    factor = IterVar(loop.range, Var(f"v{loop.name}", loop.var.dtype), "reduce")
    index = _insert(reduction.stores[0].indices, plan.axis, factor.var - loop.node.min)
    results = [BufferLoad(store.buffer, store.indices) for store in reduction.stores]
    values = reduction.combine(results, [BufferLoad(partial, index) for partial in partials])
    update = _update(results, values, [()] * len(results))
    made = Block((factor, *(i for i, _ in pairs)), (), (), block.name, update, block.block.init)
    bindings = (loop.var, *(v for _, v in pairs))
    return BlockRealize(bindings, all_of(plan.started), with_regions(made))


def _final_nest(plan: RfactorPlan, partials: list[Buffer]) -> Stmt:
    """The final block in the loops of its results, and ``loop``."""
    block, loops = _final_block(plan, partials), plan.block.loops()
    inside = loops[loops.index(plan.stays or plan.behind) :]
    kept = [r for r in inside if any(uses_var(v, r.var) for v in block.iter_values[1:])]
    body: Stmt = block
    for ref in reversed((*kept, plan.loop)):
        body = For(ref.var, ref.node.min, ref.node.extent, SERIAL, body)
    return refresh(body)


@primitive(check=_check_rfactor, prepared_by=("reorder", "decompose_reduction"), group="reduction")
def rfactor(state: State, plan: RfactorPlan) -> tuple[State, BlockRV]:
    partials = _partial_buffers(plan)
    name = state.fresh_block_name(f"{plan.block.name}_rf")
    scope = plan.block.scope
    assert scope is not None
    top = plan.block.loops()[0]
    # The two blocks exchange names in one rewrite: the old name refers to the block with the final results.
    partial, final = _partial_block(plan, partials, name), _final_nest(plan, partials)
    if plan.stays is None:
        made = state.replace(plan.block.node, partial)
        first = made.index.loops[plan.behind.var].node
        made = made.replace(first, seq([first, final]))
    else:
        made = state.replace(plan.stays.node, final)
        last = made.index.loops[top.var].node
        made = made.replace(last, seq([in_loops_of(plan.block, partial), last]))
    outer = made.find_block(scope.name)
    after = made.replace(outer.block, add_alloc(outer.block, *partials))
    return after, after.block_rv(name)
