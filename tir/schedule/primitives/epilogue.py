"""Fusing an elementwise epilogue into the reduction that produces its operand: fuse_reduction_epilogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...aliases import memory_of, sharing
from ...analysis.block_regions import with_regions
from ...analysis.dependence.domains import known
from ...analysis.index import BlockRef, common_host, order, top_statement, wrapped_in
from ...analysis.reduction_forms import Reduction, combination
from ...analysis.users import readers, uses_pointer, writers
from ...arith.itermap import detect_iter_map
from ...buffer import Buffer
from ...equal import structural_equal
from ...errors import require, require_none
from ...expr import EQ, BufferLoad, Expr, Var, all_of, conjuncts, is_const
from ...stmt import SERIAL, BlockRealize, BufferStore, For, IfThenElse, Stmt, seq
from ...visit import accesses, bound_inside, rewrite, substitute, uses_var
from ..nests import insert_before
from ..primitive import primitive, require_same_meaning
from ..state import State, blocks_with_init, scope_of, with_own_conditions
from ._inlining import (
    InlinePlan,
    apply_inline,
    domain_guards,
    require_no_address,
    require_no_views,
    require_spatial,
    solve_iters,
)


def _check_fuse_reduction_epilogue(
    state: State, reduction_block: BlockRef, epilogue_block: BlockRef, *, unsafe: bool = False
) -> InlinePlan:
    """Fuse ``epilogue_block``, which consumes the result of ``reduction_block``, into it; the epilogue block is
    removed.

    A bias added to a sum becomes the initial value of the sum, likewise for a product, a maximum or a minimum, and the
    intermediate buffer is removed. Any other epilogue (``relu``, a cast, a clip) runs in the last step of the
    reduction, which preserves its meaning; the intermediate buffer stays.

    Before, and after ``sch.fuse_reduction_epilogue("S", "B")``::

        S = T.alloc_buffer((8,), "float32")
        for i, k in T.grid(8, 4):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = 0.0
                S[vi] = S[vi] + A[vi, vk]
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = S[vi] + C[vi]

        for i, k in T.grid(8, 4):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = C[vi]
                B[vi] = B[vi] + A[vi, vk]

    Raises ``ScheduleError`` when the first block is not a reduction, when its result has other readers, when the
    epilogue does not read each result once, or when what it reads or writes is accessed or changed in between.
    """
    require(reduction_block.block.init is not None,
            "block {0} has no T.init(): it is not a whole reduction",
            reduction_block, legal=lambda: [f"the reduction `{name}`, first" for name in blocks_with_init(state)])  # fmt: skip
    return plan_epilogue(state, reduction_block, epilogue_block, unsafe)


def plan_epilogue(state: State, reduction: BlockRef, epilogue: BlockRef, unsafe: bool) -> InlinePlan:
    """The two blocks as one. Raises ``ScheduleError``."""
    state, epilogue, old = with_own_conditions(state, epilogue)
    reduction = state.find_block(reduction.name)
    scope = scope_of(reduction)
    require(epilogue.scope is scope, "blocks {0} and {1} are not in the same block", reduction, epilogue, nodes=())
    sums, load, store = _result(scope, reduction, epilogue)
    solved, conditions = solve_iters(epilogue, load.indices, _stored_at(reduction, sums), known(reduction))
    guards = domain_guards(reduction, epilogue, solved, conditions)
    start = _start(reduction, sums, store, solved)
    if start is not None and not unsafe and not _is_used_between(scope, reduction, epilogue, store):
        require_same_meaning(state, _run_behind(state, scope, reduction, epilogue, solved, guards))
        realize = _from_the_start(reduction, sums, store, solved, guards, start)
        return InlinePlan(scope, ((old, None), (reduction.node, realize)), (sums,))
    last = _is_last_step(reduction)
    require_same_meaning(state, run_after(state, reduction, epilogue, solved, [*guards, *last]), unsafe)
    result = BufferLoad(sums, tuple(_stored_at(reduction, sums)))
    realize = _in_the_last_step(reduction, store, result, solved, [*last, *guards])
    return InlinePlan(scope, ((old, None), (reduction.node, realize)), ())


def _is_last_step(reduction: BlockRef) -> list[Expr]:
    """The condition that every reduction iterator is at its last value."""
    reduced = [(i.var, i.dom) for i in reduction.block.iter_vars if i.iter_type == "reduce" and i.dom is not None]
    return [EQ(var, dom.min + (dom.extent - 1)) for var, dom in reduced if not is_const(dom.extent, 1)]


def run_after(
    state: State, reduction: BlockRef, epilogue: BlockRef, solved: dict[Var, Expr], conditions: Sequence[Expr]
) -> State:
    """The program with the epilogue run just after the reduction's block, under ``conditions`` on its iterators."""
    inner = reduction.bindings
    values = tuple(substitute(solved[i.var], inner) for i in epilogue.block.iter_vars)
    predicate = all_of([reduction.node.predicate, *(substitute(c, inner) for c in conditions)])
    run = epilogue.node.replace(iter_values=values, predicate=predicate)
    return state.replace(epilogue.node, None).replace(reduction.node, seq([reduction.node, run]))


def _run_behind(
    state: State,
    scope: BlockRef,
    reduction: BlockRef,
    epilogue: BlockRef,
    solved: dict[Var, Expr],
    guards: Sequence[Expr],
) -> State:
    """The program with the epilogue run behind the nest of ``reduction``, for all its results: also for those that no step
    makes, which the epilogue reads uninitialised."""
    host = common_host([reduction, epilogue], scope)
    ranges = reduction.loop_ranges(host)
    spatial = [e for i, e in zip(reduction.block.iter_vars, reduction.node.iter_values) if i.iter_type != "reduce"]
    fresh = {v: Var(v.name, v.dtype) for v in ranges if any(uses_var(e, {v}) for e in spatial)}
    bounds = [e for v in fresh for e in (ranges[v].min, ranges[v].extent)]
    dropped = ranges.keys() - fresh.keys()
    if wrapped_in(reduction, host) is not None or any(uses_var(e, dropped) for e in bounds):
        return run_after(state, reduction, epilogue, solved, [*guards, *_is_last_step(reduction)])
    inner = {i: substitute(e, fresh) for i, e in reduction.bindings.items()}
    conditions = [*conjuncts(reduction.node.predicate), *(part for g in guards for part in conjuncts(g))]
    nest: Stmt = epilogue.node.replace(
        iter_values=tuple(substitute(solved[i.var], inner) for i in epilogue.block.iter_vars),
        predicate=all_of([substitute(c, fresh) for c in conditions if not uses_var(c, dropped)]),
    )
    for v in reversed(fresh):
        low, extent = (substitute(e, fresh) for e in (ranges[v].min, ranges[v].extent))
        nest = For(fresh[v], low, extent, SERIAL, nest)
    return insert_before(state.replace(epilogue.node, None), top_statement(reduction, host), nest, after=True)


def _result(scope: BlockRef, reduction: BlockRef, epilogue: BlockRef) -> tuple[Buffer, BufferLoad, BufferStore]:
    """The intermediate buffer, the indices at which the epilogue loads it, and what the epilogue stores."""
    made = {r.buffer for r in reduction.block.writes}
    used = [b for b in dict.fromkeys(r.buffer for r in epilogue.block.reads) if b in made]
    require(used, "block {0} does not read the result of block {1}", epilogue, reduction, nodes=[epilogue.node])
    buffer = used[0]
    require_spatial(epilogue)
    require_no_views(epilogue)
    body = epilogue.block.body
    require(isinstance(body, BufferStore), "block {0} is more than one store", epilogue)
    assert isinstance(body, BufferStore)
    others = [w for w in writers(scope, buffer) if w is not reduction]
    users = [r for r in readers(scope, buffer) if r is not epilogue and r is not reduction]
    require_none(others, "buffer {1} is also written by {0}", buffer.name)
    require(buffer in scope.block.alloc_buffers and not users,
            "buffer {0} is also used by {1}, so the reduction has to leave it",
            buffer.name, users[0].name if users else "the caller: it is an output of the function")  # fmt: skip
    require(not uses_pointer(scope.node, buffer), "the pointer of buffer {0} is used", buffer.name)
    require_no_address(scope, buffer)
    loads = [a for a in accesses(body.value) if isinstance(a, BufferLoad) and a.buffer is buffer]
    require(loads, "block {0} does not load {1} in what it stores", epilogue, buffer.name)
    require(all(structural_equal(x.indices, loads[0].indices) for x in loads),
            "block {0} reads buffer {1} at several places", epilogue, buffer.name)  # fmt: skip
    return buffer, loads[0], body


def _stored_at(reduction: BlockRef, buffer: Buffer) -> Sequence[Expr]:
    """The indices of the reduction's result, which are the same at each of its steps."""
    stores = [a for a in accesses(reduction.block.body) if isinstance(a, BufferStore) and a.buffer is buffer]
    require(stores and all(structural_equal(s.indices, stores[0].indices) for s in stores),
            "block {0} stores to {1} at several places", reduction, buffer.name)  # fmt: skip
    inner = bound_inside(reduction.block)
    require(not any(uses_var(i, inner) for i in stores[0].indices),
            "one instance of block {0} stores several results in {1}", reduction, buffer.name)  # fmt: skip
    return stores[0].indices


def _start(reduction: BlockRef, sums: Buffer, store: BufferStore, solved: dict[Var, Expr]) -> Expr | None:
    """The initial value with which the reduction yields the epilogue's result; None if there is none."""
    found, init = Reduction.of(reduction.block), reduction.block.init
    if not isinstance(found, Reduction) or not isinstance(init, BufferStore):
        return None
    one = found.of_one_value()
    if one is None or one.store.buffer is not sums or store.buffer.dtype != sums.dtype:
        return None
    more = combination(store.value, lambda e: isinstance(e, BufferLoad) and e.buffer is sums)
    if more is None or one.combination is None or more.combiner is not one.combination.combiner:
        return None
    if any(a.buffer is sums for t in more.terms for a in accesses(t.value)) or not _stays_apart(
        reduction, store, solved
    ):
        return None
    anew = found.starts_at_identity() and not all(t.negated for t in more.terms)
    return substitute(more.applied_to(None if anew else init.value), solved)


def _stays_apart(reduction: BlockRef, store: BufferStore, solved: Mapping[Var, Expr]) -> bool:
    """Whether no two results meet at one element of the epilogue's buffer, where they would be summed."""
    iters = reduction.block.iter_vars
    spatial = {i.var: i.dom for i in iters if i.iter_type != "reduce" and i.dom is not None}
    return bool(detect_iter_map([substitute(i, solved) for i in store.indices], spatial, check="bijective"))


def _is_used_between(scope: BlockRef, reduction: BlockRef, epilogue: BlockRef, store: BufferStore) -> bool:
    """Whether another block, between the two, uses what the epilogue writes or changes what it reads."""
    first, last = order(scope, reduction), order(scope, epilogue)
    read = memory_of(accesses(store.value))
    memory = memory_of([store.buffer])
    for other in scope.children:
        if other is reduction or other is epilogue or not first <= order(scope, other) <= last:
            continue
        if sharing((*other.block.reads, *other.block.writes), memory) or sharing(other.block.writes, read):
            return True
    return bool(read & memory or sharing(accesses(reduction.block), memory))


def _from_the_start(
    reduction: BlockRef, sums: Buffer, store: BufferStore, solved: dict[Var, Expr], guards: list[Expr], start: Expr
) -> BlockRealize:
    """The reduction into the epilogue's buffer, from ``start``."""
    place = tuple(substitute(i, solved) for i in store.indices)

    def moved(item: Any) -> Any:
        if isinstance(item, BufferLoad) and item.buffer is sums:
            return BufferLoad(store.buffer, place)
        if isinstance(item, BufferStore) and item.buffer is sums:
            return item.replace(buffer=store.buffer, indices=place)
        return None

    init = BufferStore(store.buffer, start, place)
    block = reduction.block.replace(body=rewrite(reduction.block.body, moved), init=init)
    return reduction.node.replace(block=with_regions(block), predicate=all_of([reduction.node.predicate, *guards]))


def _in_the_last_step(
    reduction: BlockRef, store: BufferStore, result: BufferLoad, solved: dict[Var, Expr], conditions: Sequence[Expr]
) -> BlockRealize:
    """The reduction with the epilogue behind its update, under ``conditions`` on the loops."""
    backwards = {value: var for var, value in reduction.bindings.items() if isinstance(value, Var)}
    here = [substitute(c, backwards) for c in conditions]
    unknown = [p for p in reduction.all_loops() if any(uses_var(c, p.var) for c in here)]
    rule = "when the last step of {1} is depends on loop {2}, which is no iterator of the block"
    require_none(unknown, rule, reduction, lambda p: p.name, nodes=[reduction.node])
    merged = substitute(
        rewrite(store, lambda n: result if isinstance(n, BufferLoad) and n.buffer is result.buffer else None), solved
    )
    tail = IfThenElse(all_of(here), merged) if here else merged
    return reduction.node.replace(block=with_regions(reduction.block.replace(body=seq([reduction.block.body, tail]))))


@primitive(
    check=_check_fuse_reduction_epilogue, instead=("reverse_compute_at", "reverse_compute_inline"), group="reduction"
)
def fuse_reduction_epilogue(state: State, plan: InlinePlan) -> State:
    return apply_inline(state, plan)
