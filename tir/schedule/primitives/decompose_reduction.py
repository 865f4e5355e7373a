"""Separating the init of a reduction from its update: decompose_reduction."""

from __future__ import annotations

from dataclasses import dataclass

from ...aliases import memory_of, sharing
from ...analysis.block_regions import block_access_region
from ...analysis.dependence.domains import require_injective
from ...analysis.dependence.syntactic import are_within
from ...analysis.effects import READ, effects
from ...analysis.evaluation import evaluated_before_body
from ...analysis.index import BlockRef, LoopRef, loops_below, wrapped_in
from ...analysis.reduction_init import InitRuns, require_same_init
from ...annotations import EXPLICIT
from ...arith.linear import linear
from ...buffer import Range
from ...errors import require, require_none
from ...expr import Expr, Var, all_of, const, is_const
from ...levels import is_thread_axis
from ...node import frozendict
from ...stmt import THREAD_BINDING, Block, BlockRealize, Stmt, first_line, in_loops, seq
from ...visit import accesses, refresh, uses_var, vars_in
from ..handles import BlockRV
from ..invariants import Keeps, Kept
from ..nests import without_unused
from ..primitive import primitive
from ..state import State, blocks_with_init, require_above


@dataclass(frozen=True)
class DecomposePlan:
    block: BlockRef
    loop: LoopRef
    init: Stmt
    init_name: str
    update: Block
    keeps: Kept


def _check_decompose_reduction(state: State, block: BlockRef, loop: LoopRef, *, unsafe: bool = False) -> DecomposePlan:
    """Decompose a reduction into its init, a block ``C_init`` just before ``loop``, and its update, ``C_update``.

    Returns the handle of the init block; the old handle then refers to the update.

    Before, and after ``sch.decompose_reduction("C", "k")``::

        for i, k in T.grid(8, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

        for i in range(8):
            with T.block("C_init"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.float32(0)
            for k in range(8):
                with T.block("C_update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + A[vi, vk]

    If a reduction loop is outside ``loop``, the init is guarded to run only in its first iteration. An empty reduction
    of symbolic size leaves its result unchanged; decomposed, it stores the value of the init.

    Raises ``ScheduleError`` when the block has no init, when the init uses a reduction iterator, when it does not run
    before all updates of the result, when another block under ``loop`` uses the result or writes what the init reads, when
    the block reads another result of its own and several are made under ``loop``, or when threads share the reduction and
    ``loop`` is inside of the first loop that it is over.
    """
    body = block.block
    require(
        body.init is not None,
        "block {0} has no T.init(), so there is nothing to decompose",
        block,
        legal=lambda: blocks_with_init(state),
    )
    require_above(state, loop, block)
    require_same_init(block)
    written = memory_of(body.writes)
    beside = [ref for ref in state.index.blocks_below(loop) if ref is not block and not unsafe]
    others = [ref for ref in beside if effects(ref.node).of(written)]
    rule = "block {0} under loop {1} uses the result of {2} while it is being made"
    require_none(others, rule, loop, block)
    bounds = [e for p in (loop, *loops_below(block, loop)) for e in (p.node.min, p.node.extent)]
    controls = sharing((a for e in (*evaluated_before_body(block.node), *bounds) for a in accesses(e)), written)
    rule = "how often block {1} runs depends on `{0}`, which it writes: its init, before loop {2}, would change that"
    require_none([] if unsafe else controls, rule, block, loop, nodes=[block.node])
    require_none(
        [ref for ref in beside if sharing(ref.block.writes, _read_by_init(block))],
        "the init of block {1} reads what block {0} writes under loop {2}: before that loop it has another value, or none",
        block,
        loop,
        legal="decompose before the copy is made, or at a loop inside",
    )
    if not unsafe:
        require_distinct_results(block, loop)
        _require_own_results(block, loop)
        _require_before_parts(block, loop)
    other = wrapped_in(block, loop)
    require(unsafe or other is None,
            "block {0} is inside of `{1}`, under loop {2}: its init, before that loop, would not be",
            block, first_line(other), loop.node, nodes=[block.node])  # fmt: skip
    loops = block.all_loops()
    empty = [ref for ref in loops[loops.index(loop) :] if is_const(ref.node.extent, 0) and not unsafe]
    rule = "loop {0} has no iteration, so that block {1} never runs; its init, before {2}, would"
    require_none(empty, rule, block, loop)
    init_name = state.fresh_block_name(body.name + "_init")
    init = _init_nest(InitRuns.below(block, loop), init_name, unsafe)
    update = body.replace(name=state.fresh_block_name(body.name + "_update"), init=None, reads=_update_reads(body))
    return DecomposePlan(block, loop, init, init_name, update, _kept_threads(block, loop))


def _read_by_init(block: BlockRef) -> frozenset[Var]:
    """The memory that the init of ``block`` reads, by the names that it has outside."""
    return memory_of(e for e in effects(block.node) if e.first is not None and e.kind == READ)


def _require_own_results(block: BlockRef, loop: LoopRef) -> None:
    """Refuse an init before updates, or other inits, that read more than the result they make: what they read would be
    started already."""
    body = block.block
    moving = vars_in(*(v for i, v in zip(body.iter_vars, block.node.iter_values) if i.iter_type != "reduce"))
    several = any(p.var in moving and not is_const(p.node.extent, 1) for p in (loop, *loops_below(block, loop)))
    for own in body.writes if several else ():
        loads = [e for e in effects(body).of(own.buffer) if e.kind == READ]
        require(
            are_within(loads, [w for w in body.writes if w.buffer is own.buffer], body),
            "block {0} may read another result of {1} than the one that it makes: the inits of all results under loop {2} "
            "would run before it",
            block,
            own.buffer.name,
            loop.node,
            nodes=[block.node],
            legal="a loop of the reduction, inside of those of its results",
        )


def _require_before_parts(block: BlockRef, loop: LoopRef) -> None:
    """Refuse an init inside of the loops of a reduction across threads: the partial results of all iterations are
    combined once, after the outermost of these loops."""
    reduced = vars_in(*(e for i, e in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type == "reduce"))
    loops = [p for p in block.all_loops() if p.var in reduced and not is_const(p.node.extent, 1)]
    threads = next((p for p in loops if is_thread_axis(p.node.thread)), None)
    around = next((p for p in loops if p is not loop and p in loop.ancestors()), None)
    require(
        threads is None or around is None,
        "block {0} reduces across the threads of loop {1} ({2}), which combine their parts once, after loop {3}: its init, "
        "before loop {4}, would run between them",
        block,
        threads.node if threads else "",
        threads.node.thread if threads else "",
        around.node if around else "",
        loop.node,
        nodes=[block.node],
        legal=lambda: f"the loop {around.name}, or one around it" if around else "",
    )


def _kept_threads(block: BlockRef, loop: LoopRef) -> Kept:
    """Each thread sets what it updates, as before, where all bound loops are around ``loop`` and none is reduced over."""
    loops = block.all_loops()
    bound = [n for n, ref in enumerate(loops) if ref.node.kind == THREAD_BINDING]
    reduced = [e for i, e in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type == "reduce"]
    outside = all(n < loops.index(loop) for n in bound)
    shared = outside and any(uses_var(e, {loops[n].var for n in bound}) for e in reduced)
    plain = block.scope is not None and block.scope.scope is None
    return Keeps.THREADS if outside and plain and not shared else Keeps.NOTHING


def require_distinct_results(block: BlockRef, around: LoopRef | None = None) -> None:
    """Require that the spatial instances that run in one iteration of the loops around ``around`` (None: all of them) write
    distinct elements: otherwise one's init would overwrite another's sum."""
    fixed = {p.var for p in around.loops()} if around is not None else set[Var]()
    spatial = {
        i.var: i.dom for i, value in zip(block.block.iter_vars, block.node.iter_values)
        if i.iter_type != "reduce" and i.dom is not None and not (fixed and vars_in(value) <= fixed)
    }  # fmt: skip
    for region in block.block.writes:
        places: list[Expr] = []
        domains = dict(spatial)
        for n, part in enumerate(region.region):
            within = Var(f"within_{n}", part.min.dtype)
            single = is_const(part.extent, 1)
            domains |= {} if single else {within: Range(const(0, within.dtype), part.extent)}
            places.append(part.min if single else part.min + within)
        direct = {axis[0] for p in places if (axis := linear(p).in_one(domains)) is not None}
        if not all(v in direct or is_const(dom.extent, 1) for v, dom in domains.items()):
            rule = "two instances of block {0} write the same element of {1}"
            require_injective(places, domains, rule, block, region.buffer.name)


def _init_nest(runs: InitRuns, name: str, unsafe: bool) -> Stmt:
    """The init in copies of the loops of its spatial iterators."""
    block = runs.realize.block
    assert block.init is not None
    iters, values = tuple(i for i, _ in runs.spatial), tuple(v for _, v in runs.spatial)
    notes = frozendict({key: value for key, value in block.annotations.items() if key != EXPLICIT["reads"]})
    start = block.replace(iter_vars=iters, name=name, init=None, body=block.init, annotations=notes)
    reads, writes = block_access_region(start)
    own, gone = {w.buffer: w for w in writes}, {i.var for i, _ in runs.reduce}
    # as declared, but for what the updates alone write, and for regions that an update has for each of its terms
    declared = [own[w.buffer] if uses_var(w, gone) else w for w in start.writes if w.buffer in own]
    start = start.replace(reads=reads, writes=tuple(declared))
    guard = all_of(runs.unproved_guards() if unsafe else runs.guards())
    stmt = in_loops(runs.kept, BlockRealize(values, guard, without_unused(start)))
    names = {f.loop_var: f.loop_var.replace(name=f"{f.loop_var.name}_init") for f in runs.kept}
    return refresh(stmt, names)


def _update_reads(block: Block):
    """The update with a read of what it writes, which a reduction block leaves implicit."""
    own = [w for w in block.writes if not any(r.buffer is w.buffer for r in block.reads)]
    return (*own, *block.reads)


@primitive(check=_check_decompose_reduction, keeps=Keeps.ACCESSES | Keeps.LOOPS, group="reduction")
def decompose_reduction(state: State, plan: DecomposePlan) -> tuple[State, BlockRV]:
    old = plan.block
    loop = state.rebuilt(plan.loop, old.block, plan.update)
    after = state.replace(plan.loop.node, seq([plan.init, loop]), moved={old.name: plan.update.name})
    return after, after.block_rv(plan.init_name)
