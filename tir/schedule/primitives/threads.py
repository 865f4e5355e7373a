"""How the iterations of a loop run: parallel, vectorize, unroll, bind."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from math import prod
from typing import Any

from ...aliases import Views, memory_of, shares_memory, source_of, views_in
from ...analysis.contents import is_nest_of_blocks, path_to
from ...analysis.dependence.loop_questions import are_disjoint, check_parallel, concurrent_iterations
from ...analysis.dependence.tiers import Proved, Unknown, require_legal
from ...analysis.effects import effects
from ...analysis.index import BlockRef, LoopRef
from ...analysis.private_clause import with_private
from ...analysis.reduction_forms import OrderMatters, Reduction, shared_results, threads_can_share
from ...analysis.reduction_init import result_guards
from ...analysis.simple_blocks import distinguishes_iterations, is_simple_block
from ...buffer import Buffer, IterVar
from ...errors import ScheduleError, on_refusal, require
from ...expr import BufferLoad, Expr, IntImm, Var, constant
from ...levels import AXES, is_block_axis, is_launch_axis, is_private, is_thread_axis, is_virtual_axis
from ...names import near_names
from ...stmt import (
    PARALLEL,
    SERIAL,
    THREAD_BINDING,
    UNROLLED,
    VECTORIZED,
    Block,
    BlockRealize,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
)
from ...visit import free_vars, nodes_of, substitute, uses_var, vars_in, walk
from ..invariants import Keeps
from ..invariants.thread_memory import kernel_of
from ..primitive import primitive
from ..state import State

MOST_THREADS = 1024  # in a block, on every GPU that we know of


@dataclass(frozen=True)
class KindPlan:
    loop: LoopRef
    kind: str
    thread: str = ""
    private: tuple[Buffer, ...] = ()


def _require_unmarked(loop: LoopRef, kind: str) -> None:
    f = loop.node
    require(f.kind in (SERIAL, kind), "loop {0} is already {1}", f, f"bound to {f.thread}" if f.thread else f.kind)


def _require_independent(state: State, loop: LoopRef, kind: str) -> tuple[Buffer, ...]:
    """Refuse unless no iteration of ``loop`` needs another's result, nor writes the same element. Gives the buffers that
    iterations must have copies of, besides those of its clause."""
    f = loop.node
    if constant(f.extent) in (0, 1):
        return ()
    if is_nest_of_blocks(f):
        for ref in state.index.blocks_below(loop):
            _require_no_reduction(state, loop, ref.node, kind)
    verdict = check_parallel(state.func, f, kind)
    legal = "unsafe=True, if you know that they are" if isinstance(verdict, Unknown) else ""
    require_legal(verdict, state.func, nodes=[f], legal=legal)
    return verdict.private if isinstance(verdict, Proved) else ()


def _require_no_reduction(state: State, loop: LoopRef, realize: BlockRealize, kind: str) -> None:
    """Refuse if ``loop`` indexes only reduction iterators of an update: all iterations write the same element."""
    block = realize.block
    if not is_simple_block(block):
        return
    moved = [i for i, v in zip(block.iter_vars, realize.iter_values) if uses_var(v, loop.var)]
    if not moved or any(i.iter_type != "reduce" for i in moved):
        return
    if uses_var(realize.predicate, loop.var):
        if check_parallel(state.func, loop.node, kind).is_proved:
            return  # just one of its iterations does anything
    lines = _same_element(loop.node, realize)
    verb = {VECTORIZED: "vectorized", PARALLEL: "parallel", THREAD_BINDING: "bound to threads"}.get(kind, kind)
    require(False,
            "loop {0} cannot be {1}: its iterations update the same element, and each needs the one before",
            loop.node, verb, witness=lines, func=state.func,
            legal="reorder and mark a spatial loop" + _spatial_loops(realize) + ", or rfactor this one")  # fmt: skip


def _spatial_loops(realize: BlockRealize) -> str:
    used: set[Var] = set()
    for iterator, value in zip(realize.block.iter_vars, realize.iter_values):
        if iterator.iter_type == "spatial":
            used |= vars_in(value)
    names = sorted(v.name for v in used)
    return f" ({', '.join(names)})" if names else ""


def _same_element(loop: For, realize: BlockRealize) -> list[str]:
    """Two iterations and the element that both write."""
    from ...arith import simplify

    values = realize.bindings
    store = next(s for s in walk(realize.block.body) if isinstance(s, BufferStore))
    found = []
    for step in (0, 1):
        at = simplify(loop.min + step)
        zero: dict[Var, Expr] = {}
        texts = []
        for index in store.indices:
            e = substitute(substitute(index, values), {loop.loop_var: at})
            zero.update({v: IntImm(0, v.dtype) for v in vars_in(e)})
            texts.append(repr(simplify(substitute(e, zero))))
        found.append((repr(at), f"{store.buffer.name}[{', '.join(texts)}]"))
    (a, element), (b, _) = found
    name = loop.loop_var.name
    return [f"{name}={a} and {name}={b} both write {element}"]


def _check_parallel(state: State, loop: LoopRef, *, unsafe: bool = False) -> KindPlan:
    """Run the iterations of a loop on several cores in parallel.

    Raises ``ScheduleError`` when the loop carries a dependence (with the two instances). ``unsafe=True``
    skips that check.

    Before, and after ``sch.parallel("i")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in T.parallel(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
    """
    _require_unmarked(loop, PARALLEL)
    return KindPlan(loop, PARALLEL, private=() if unsafe else _require_independent(state, loop, PARALLEL))


def _check_vectorize(state: State, loop: LoopRef, *, unsafe: bool = False) -> KindPlan:
    """Run the iterations of a loop as the lanes of vector instructions.

    Raises ``ScheduleError`` when the loop carries a dependence (with the two instances). ``unsafe=True``
    skips that check.

    Before, and after ``sch.vectorize("i")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in T.vectorized(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
    """
    _require_unmarked(loop, VECTORIZED)
    require(constant(loop.node.extent) is not None,
            "vectorize needs a constant number of lanes, but loop {0} runs {1} times",
            loop.node, loop.node.extent, legal="split it by a constant and vectorize the inner loop")  # fmt: skip
    return KindPlan(loop, VECTORIZED, private=() if unsafe else _require_independent(state, loop, VECTORIZED))


def _check_unroll(state: State, loop: LoopRef) -> KindPlan:
    """Write the iterations of a loop out one after another when it is lowered. Always legal; a loop that is bound to
    threads is no longer.

    Before, and after ``sch.unroll("i")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in T.unroll(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
    """
    if loop.node.kind != THREAD_BINDING:
        _require_unmarked(loop, UNROLLED)
    return KindPlan(loop, UNROLLED)


def _check_bind(state: State, loop: LoopRef, thread_axis: str, *, unsafe: bool = False) -> KindPlan:
    """Run the iterations of a loop as threads (``threadIdx.x`` …), blocks (``blockIdx.x`` …) or ``vthread``.

    A loop bound to the axis of a loop around it distributes its work over the threads: that work must be the same in
    every iteration of the outer loop, in memory that all threads share (a tile copied to ``shared``), and the extents
    equal.

    A loop that is bound already gets the new axis.

    Raises ``ScheduleError`` when iterations depend on each other (a reduction across ``threadIdx`` may), when the
    axis has another extent in the same kernel, when it is bound twice on one path for other work, or past the target's
    limits. ``unsafe=True`` skips the check of dependences.

    Before, and after ``sch.bind("i", "threadIdx.x")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
    """
    require(thread_axis in AXES, "{0!r} is not a thread axis", thread_axis, legal=lambda: near_names(thread_axis, AXES))
    f = loop.node
    require(f.kind in (SERIAL, THREAD_BINDING), "loop {0} is already {1}", f, f.kind)
    _require_axis_fits(state, loop, thread_axis)
    plan = KindPlan(loop, THREAD_BINDING, thread_axis)
    if not unsafe and not (is_thread_axis(thread_axis) and _crosses_threads(state, loop)):
        private = _require_independent(state, loop, THREAD_BINDING)
        _require_one_writer(state, loop, thread_axis)
        if private:  # of global memory, threads have no copies
            bound = _mark(state, plan)
            require_legal(concurrent_iterations(bound.func, bound.index.loops[loop.var].node), bound.func)
    return plan


def _require_axis_fits(state: State, loop: LoopRef, axis: str) -> None:
    f = loop.node
    if is_virtual_axis(axis):
        return
    kernel = kernel_of(loop)  # once it is bound
    bound = [
        p
        for p in state.index.below(kernel)
        if isinstance(p, LoopRef) and is_launch_axis(p.node.thread) and p is not loop
    ]
    sizes: dict[str, LoopRef] = {axis: loop}
    above = set(loop.ancestors())
    for other in bound:
        _require_same_extent(state, other, sizes.setdefault(other.node.thread, other))
        if other.node.thread == axis:
            if other in above:
                _require_again(state, other, loop, axis)
            elif loop in other.ancestors():
                _require_again(state, loop, other, axis)
    _require_sizes(state, loop, axis, {name: constant(ref.node.extent) for name, ref in sizes.items()})
    require(not vars_in(f.extent) & {p.var for p in above if isinstance(p, LoopRef) and p in {kernel, *bound}},
            "the extent of loop {0}, {1}, changes inside the kernel; {2} has one extent for a whole launch",
            f, f.extent, axis)  # fmt: skip


def _require_same_extent(state: State, other: LoopRef, mine: LoopRef) -> None:
    """Refuse two loops of one axis in a kernel unless they have the same extent."""
    from ...arith import Analyzer

    a, b = mine.node.extent, other.node.extent
    if a is b or Analyzer().can_prove_equal(a, b):
        return
    raise ScheduleError("{0} already has extent {1} (loop {2} of {3}) in this kernel; loop {4} of {5} has {6}",
                        other.node.thread, b, other.node, _holder(state, other), mine.node, _holder(state, mine), a,
                        nodes=[other.node, mine.node], legal="split to match, or bind another axis")  # fmt: skip


def _holder(state: State, loop: LoopRef) -> str:
    blocks = state.index.blocks_below(loop)
    return f"block {blocks[0].name}" if blocks else "no block"


def _require_again(state: State, outer: LoopRef, inner: LoopRef, axis: str) -> None:
    """Refuse unless ``inner`` may be bound to the axis of ``outer`` around it: the threads run all iterations of
    ``outer`` at once, so the copies of the work below ``inner`` must be the same, and the threads share it."""
    already = "{0} is already bound to loop {1} on the same path, and "
    views = _views_under(state.func.body)
    moved, condition = _moved_on_the_way(outer, inner)
    require(condition is None,
            already + "{2} above loop {3} depends on {1}: not every thread comes to its share of the work",
            axis, outer.node, condition, inner.node,
            legal=f"a condition on what is in loop {inner.name}, or loop {inner.name} unbound")  # fmt: skip
    for ref in (inner, *state.index.below(inner)):
        node: Any = ref.node
        parts = (
            (node.min, node.extent)
            if isinstance(node, For)
            else (*node.iter_values, node.predicate)
            if isinstance(node, BlockRealize)
            else ()
        )
        require(
            not any(moved & vars_in(e) for e in parts),
            already + "{2} below loop {3} uses {1}: what it does differs from thread to thread",
            axis,
            outer.node,
            ref if isinstance(ref, BlockRef) else f"loop {ref.name}" if isinstance(ref, LoopRef) else "a statement",
            inner.node,
            nodes=[outer.node, inner.node],
            legal="bind loops that share work between threads: copies to shared memory, made by compute_at after "
            f"{outer.name} is bound",
        )
    for ref in state.index.blocks_below(inner):
        buffers = [r.buffer for r in (*ref.block.reads, *ref.block.writes)]
        mine = [b for b in buffers if is_private(b.scope)]
        require(
            not mine,
            already + "block {2} below loop {3} uses {4}, which is each thread's own ({5})",
            axis, outer, ref, inner, lambda: mine[0].name, lambda: mine[0].scope,
            nodes=[outer.node, inner.node],
            legal="nested loops of one axis may only use shared and global memory",
        )  # fmt: skip
        require(_is_uniform(ref.block, outer.node, views),
                already + "block {2} below loop {3} would not write the same again in every iteration of {1}",
                axis, outer.node, ref, inner.node, nodes=[outer.node, inner.node])  # fmt: skip


def _views_under(root: Any) -> Views:
    """The views that the blocks under ``root`` make, outermost first."""
    return views_in(n for n in nodes_of(root) if type(n) is Block)


def _is_uniform(block: Block, loop: For, views: Views) -> bool:
    """Whether what ``block`` stores is a function of its iterators, each element stored by one instance: running it
    again in another iteration of ``loop`` stores the same values. ``views``: those of the program, see
    :func:`_views_under`."""
    stores = [n for n in walk(block) if isinstance(n, BufferStore)]
    spatial = {v.var for v in block.iter_vars}
    if block.init is not None or any(v.iter_type != "spatial" for v in block.iter_vars):
        return False
    if not all(spatial <= {i for i in s.indices if isinstance(i, Var)} for s in stores):
        return False
    made = memory_of(source_of(s.buffer, views) for s in stores)
    loads = [n.buffer for n in walk(block) if isinstance(n, BufferLoad)]
    if any(shares_memory(source_of(b, views), made) or is_private(b.scope) for b in loads):
        return False
    return _moved_in(loop, spatial).isdisjoint(free_vars(block))


def _moved_in(loop: For, known: Set[Var]) -> set[Var]:
    """The variables, but for those ``known``, that have another value in another iteration of ``loop``, and the views of other
    elements."""
    inside = {n.loop_var for n in nodes_of(loop) if isinstance(n, For)}
    inside |= {n.var for n in nodes_of(loop) if isinstance(n, IterVar)} - known
    for pointer, view in _views_under(loop).items():  # they show what iterators around the block say
        if uses_var(view.source, inside) or shares_memory(view.source, inside):
            inside.add(pointer)
    return inside


def _moved_on_the_way(outer: LoopRef, inner: LoopRef) -> tuple[set[Var], Expr | None]:
    """The variables between two loops that depend on the outer one, with its own; and the first condition or extent between
    them that does, if there is one."""
    moved = {outer.var}
    steering: list[Expr] = []
    for item in path_to(outer.node.body, inner.node)[:-1]:
        if isinstance(item, BlockRealize):
            moved |= {v for v, value in item.bindings.items() if moved & vars_in(value)}
            steering.append(item.predicate)
        elif isinstance(item, LetStmt) and moved & vars_in(item.value):
            moved.add(item.var)
        elif isinstance(item, IfThenElse):
            steering.append(item.condition)
        elif isinstance(item, For):
            steering += [item.min, item.extent]
    return moved, next((e for e in steering if moved & vars_in(e)), None)


def _require_sizes(state: State, loop: LoopRef, axis: str, sizes: dict[str, int | None]) -> None:
    """Refuse more threads or blocks than a launch allows."""
    mine = sizes[axis]
    if mine is None:
        return
    if is_block_axis(axis):
        most = 2**31 - 1 if axis.endswith("x") else 65535
        require(mine <= most,
                "{0} is at most {1}, loop {2} has {3}", axis, most, loop.node, mine,
                legal="bind it to blockIdx.x, or split it" if not axis.endswith("x") else "split it")  # fmt: skip
        return
    limit = (state.target.limit("max_threads_per_block") if state.target else None) or MOST_THREADS
    known = {name: n for name, n in sizes.items() if is_thread_axis(name) and n is not None}
    total = prod(known.values())
    text = " x ".join(f"{size} ({name})" for name, size in sorted(known.items()))
    require(
        total <= limit,
        "threadIdx product {0} > {1}: {2}",
        total,
        limit,
        text,
        nodes=[loop.node],
        legal=f"split loop {loop.name} by at most {max(limit // max(total // mine, 1), 1)} and bind the inner loop"
        if mine
        else "",
    )
    if axis.endswith(".z"):
        require(mine <= 64, "threadIdx.z is at most 64, loop {0} has {1}", loop.node, mine)


def _crosses_threads(state: State, loop: LoopRef) -> bool:
    """Whether the blocks below that ``loop`` reduces can be reduced across threads: a known commutative combiner, an
    arg-reduction, or several at once. Refuses if other statements stand among the loops of such a reduction."""
    blocks = state.index.blocks_below(loop)
    crossed = []
    for ref in blocks:
        block = ref.block
        moved = [i for i, v in zip(block.iter_vars, ref.node.iter_values) if uses_var(v, loop.var)]
        if any(i.iter_type == "reduce" for i in moved):
            if not _shares_reduction(ref) or any(i.iter_type != "reduce" for i in moved):
                return False
            crossed.append(ref)
        elif not distinguishes_iterations(ref.node, loop.node, [p.node for p in ref.loops() if loop in p.ancestors()]):
            return False
    if not crossed:
        return False
    for ref in crossed:
        _require_result_after(state, loop, ref)
        _require_one_result(ref)
    if not are_disjoint([b.block for b in blocks]):
        results = frozenset(b.data for ref in crossed for b in shared_results(ref.block))
        require_legal(check_parallel(state.func, loop.node, THREAD_BINDING, results), state.func)
    return True


def _shares_reduction(ref: BlockRef) -> bool:
    """Whether threads can each compute a partial result of ``ref``. Raises ``ScheduleError`` for an arg-max whose
    result depends on the order of its values."""
    found = Reduction.of(ref.block)
    if isinstance(found, OrderMatters):
        raise ScheduleError(found.rule, *found.parts, nodes=[ref.node])
    return threads_can_share(ref.block)


def _require_one_result(ref: BlockRef) -> None:
    """Refuse a reduction whose init does not run exactly at the first update of each result: threads combine all of
    its updates."""
    legal = "bind a spatial loop, or let the reduction iterators start where the loops do"
    with on_refusal(lambda error: error.find_legal(lambda: legal)):
        result_guards(ref.node, [p.node for p in ref.loops()])


def _require_one_writer(state: State, loop: LoopRef, axis: str) -> None:
    """Refuse to bind ``loop`` around a reduction across threads if its iterations would store one result."""
    for ref in state.index.blocks_below(loop):
        reduced = [v for i, v in zip(ref.block.iter_vars, ref.node.iter_values) if i.iter_type == "reduce"]
        loops = [p.node for p in ref.loops()]
        if any(is_thread_axis(f.thread) and any(uses_var(v, f.loop_var) for v in reduced) for f in loops):
            bound = loop.node.replace(kind=THREAD_BINDING, thread=axis)
            result_guards(ref.node, [bound if f is loop.node else f for f in loops])


def _require_result_after(state: State, loop: LoopRef, ref: BlockRef) -> None:
    """Refuse a reduction across threads whose result is used inside its loops: the partial results are combined
    once, after the outermost reduction loop."""
    reduced = {
        v for i, e in zip(ref.block.iter_vars, ref.node.iter_values) if i.iter_type == "reduce" for v in vars_in(e)
    }
    loops = ref.loops()
    spatial = {
        v for i, e in zip(ref.block.iter_vars, ref.node.iter_values) if i.iter_type != "reduce" for v in vars_in(e)
    }
    for p in loops:
        require(
            p.node.thread or p.var not in reduced & spatial,
            "block {0} would reduce across the threads of loop {1}, but loop {2} indexes both the result and the "
            "reduction of {0}: threads combine their partial results after all reduction loops",
            ref,
            loop.node,
            p.node,
            nodes=[p.node],
            legal=f"fuse or split so that {p.name} indexes only one of the two",
        )
    first = next(p for p in loops if p.var in reduced and (not p.node.thread or p is loop))
    results = memory_of(shared_results(ref.block))
    for other in state.index.blocks_below(first):
        uses = [e.buffer for e in effects(other.block).of(results)]
        require(
            other is ref or not uses,
            "block {0} would reduce across the threads of loop {1}, but {2} uses {3} inside loop {4}, before all "
            "threads' parts are combined",
            ref,
            loop.node,
            other,
            uses[0].name if uses else "",
            first.node,
            nodes=[other.node, ref.node],
            legal=f"fission {first.name}, or rfactor {loop.name} and bind the loop of the factor",
        )


def _mark(state: State, plan: KindPlan) -> State:
    f = plan.loop.node
    if f.kind == plan.kind and f.thread == plan.thread:
        return state
    marked = f.replace(kind=plan.kind, thread=plan.thread)
    return state.replace(f, with_private(marked, (*f.private, *plan.private)) if plan.private else marked)


for _name, _check, _keeps in (
    ("parallel", _check_parallel, Keeps.KERNELS | Keeps.FORM),
    ("vectorize", _check_vectorize, Keeps.KERNELS | Keeps.FORM),
    ("unroll", _check_unroll, Keeps.KERNELS | Keeps.FORM),
    ("bind", _check_bind, Keeps.BOUND),
):
    primitive(
        check=_check,
        name=_name,
        keeps=Keeps.ACCESSES | Keeps.LOOPS | _keeps,
        prepared_by=("fission", "rfactor"),
        group="parallel",
    )(_mark)
