"""Computing where used: compute_inline, reverse_compute_inline, auto_inline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...analysis.access import block_access_region
from ...arith import Analyzer
from ...arith.itermap import IterMap, detect_iter_map, inverse_iter_map
from ...buffer import Buffer
from ...errors import ScheduleError, require
from ...expr import (
    EQ,
    BufferLoad,
    Expr,
    IntImm,
    Var,
    all_of,
    const,
    floordiv,
    floormod,
    is_const,
)
from ...script.printer import short_text
from ...stmt import BlockRealize, BufferStore, seq
from ...visit import accesses, rewrite, substitute, uses_var, walk
from ..blocks import (
    about_iterators,
    affine_in_one,
    readers,
    require_same_meaning,
    scope_of,
    statements,
    top_statement,
    uses_pointer,
    writers,
)
from ..primitive import primitive
from ..state import BlockRef, State


@dataclass(frozen=True)
class InlinePlan:
    """Realizes to replace (None removes), and the buffer that goes."""

    scope: BlockRef
    changes: tuple[tuple[BlockRealize, BlockRealize | None], ...]
    buffer: Buffer


def _check_compute_inline(state: State, block: BlockRef, *, unsafe: bool = False) -> InlinePlan:
    """Put the expression that ``block`` stores into each place that reads it; the block and its buffer go.

    Before → after, for ``sch.compute_inline("B")``::

        for i in range(8):                       for i in range(8):
            B[i] = A[i] * 2.0                        C[i] = A[i] * 2.0 + 1.0
        for i in range(8):
            C[i] = B[i] + 1.0

    Raises ``ScheduleError`` for a reduction, a block of more than one store, an output of the function, a buffer with
    another writer, or when what the block reads is overwritten before a consumer runs.
    """
    scope = scope_of(state, block)
    store, buffer = _single_store(state, scope, block)
    consumers = [c for c in readers(scope, buffer) if c is not block]
    require(consumers, "nothing in this scope reads buffer {0}, so there is nowhere to put it", buffer.name)
    _require_unchanged(state, scope, block, consumers, store, unsafe)
    changes: list[tuple[BlockRealize, BlockRealize | None]] = [(block.node, None)]
    for consumer in consumers:
        require(
            not uses_pointer(consumer.node, buffer), "block {0} uses the pointer of buffer {1}", consumer, buffer.name
        )
        known = _known(consumer)
        value = partial(_value_at, block, store, analyzer=known)
        changes.append((consumer.node, _with_loads(consumer, buffer, value)))
    return InlinePlan(scope, tuple(changes), buffer)


def _check_reverse_compute_inline(state: State, block: BlockRef, *, unsafe: bool = False) -> InlinePlan:
    """Put ``block``, an elementwise consumer, into its only producer; the block and the buffer between them go.

    Before → after, for ``sch.reverse_compute_inline("C")``::

        for i in range(8):                       for i in range(8):
            B[i] = A[i] * 2.0                        C[i] = A[i] * 2.0 + 1.0
        for i in range(8):
            C[i] = B[i] + 1.0

    Of several producers the last is taken. One that makes more than is consumed gets the consumer's bounds as its
    predicate. Raises ``ScheduleError`` when the producer is a reduction, has other consumers, or when the consumer
    does not read each element once or runs where the producer does not.
    """
    scope = scope_of(state, block)
    made = [b for b in dict.fromkeys(r.buffer for r in block.block.reads) if writers(scope, b)]
    require(made, "no block in this scope produces what block {0} reads", block)
    # Of several producers the last: where it runs, the others have made what the block reads too.
    buffer = max(made, key=lambda b: max(_order(scope, w) for w in writers(scope, b)))
    makers = writers(scope, buffer)
    require(len(makers) == 1, "buffer {0} is written by {1} blocks", buffer.name, len(makers))
    producer = makers[0]
    store, _ = _single_store(state, scope, producer)
    users = readers(scope, buffer)
    require(
        users == [block],
        "buffer {0} is also read by {1}",
        buffer.name,
        ", ".join(u.name for u in users if u is not block),
    )
    _require_spatial(block)
    body = block.block.body
    require(isinstance(body, BufferStore), "block {0} is more than one store", block, nodes=[block.node])
    loads = [a for a in accesses(body) if isinstance(a, BufferLoad) and a.buffer is buffer]
    require(len({id(x) for x in loads}) >= 1, "block {0} does not load {1}", block, buffer.name)
    solved, conditions = _solve_iters(block, loads[0].indices, store.indices, _known(producer))
    same = all(_same_indices(loads[0].indices, x.indices) for x in loads)
    require(same, "block {0} reads buffer {1} at several places", block, buffer.name)
    value = rewrite(body.value, lambda n: store.value if isinstance(n, BufferLoad) and n.buffer is buffer else None)
    merged = body.replace(value=value)
    new_body = substitute(merged, solved)
    guards = _domain_guards(producer, block, solved, conditions)
    predicate = all_of([producer.node.predicate, *guards])
    inner = {i.var: v for i, v in zip(producer.block.iter_vars, producer.node.iter_values)}
    values = tuple(substitute(solved[i.var], inner) for i in block.block.iter_vars)
    # The same program, were the consumer run just after its producer: what the merged block does.
    moved = block.node.replace(iter_values=values, predicate=predicate)
    probe = state.replace(block.node, None).replace(producer.node, seq([producer.node, moved]))
    require_same_meaning(state, probe, unsafe)
    new_block = _with_regions(producer.block.replace(body=new_body))
    realize = producer.node.replace(block=new_block, predicate=predicate)
    return InlinePlan(scope, ((block.node, None), (producer.node, realize)), buffer)


def _require_spatial(block: BlockRef) -> None:
    reduce = [i.var.name for i in block.block.iter_vars if i.iter_type == "reduce" and not _unit(i)]
    require(not reduce, "block {0} is a reduction over {1}", block, ", ".join(reduce), nodes=[block.node],
            legal="decompose_reduction or rfactor first, or keep it")  # fmt: skip
    require(block.block.init is None, "block {0} has an init: it is a reduction", block, nodes=[block.node])


def _unit(iterator: Any) -> bool:
    return isinstance(iterator.dom.extent, IntImm) and iterator.dom.extent.value == 1


def _single_store(state: State, scope: BlockRef, block: BlockRef) -> tuple[BufferStore, Buffer]:
    """The one store of a spatial block, to a buffer that lives in ``scope`` and has no other writer."""
    _require_spatial(block)
    body = block.block.body
    require(isinstance(body, BufferStore), "block {0} is more than one store", block, nodes=[block.node])
    assert isinstance(body, BufferStore)
    buffer = body.buffer
    require(
        buffer in scope.block.alloc_buffers,
        "buffer {0} is an output of the function, so block {1} has to write it",
        buffer.name, block, nodes=[block.node],
    )  # fmt: skip
    others = [w.name for w in writers(scope, buffer) if w is not block]
    require(not others, "buffer {0} is also written by {1}", buffer.name, ", ".join(others))
    own = [a for a in accesses(body.value) if a.buffer is buffer]
    require(not own, "block {0} reads the buffer it writes", block, nodes=[block.node])
    return body, buffer


def _require_unchanged(
    state: State, scope: BlockRef, block: BlockRef, consumers: Sequence[BlockRef], store: BufferStore, unsafe: bool
) -> None:
    """What ``block`` reads is the same where its consumers run as where it runs."""
    read = {a.buffer for a in accesses(store.value)}
    first, last = _order(scope, block), max(_order(scope, c) for c in consumers)
    if not any(first <= _order(scope, w) <= last for b in read for w in writers(scope, b)):
        return
    # Decided on the program in which the block runs again before each consumer, at the elements that one loads.
    probe = state.replace(block.node, None)
    for consumer in consumers:
        runs = [_run_for(block, store, load, consumer) for load in _loads(consumer, store.buffer)]
        probe = probe.replace(consumer.node, seq([*runs, consumer.node]))
    require_same_meaning(state, probe, unsafe)


def _loads(consumer: BlockRef, buffer: Buffer) -> list[BufferLoad]:
    return [a for a in accesses(consumer.block) if isinstance(a, BufferLoad) and a.buffer is buffer]


def _run_for(block: BlockRef, store: BufferStore, load: BufferLoad, consumer: BlockRef) -> BlockRealize:
    analyzer = _known(consumer)
    solved, conditions = _solve_iters(block, store.indices, load.indices, analyzer)
    for iterator in block.block.iter_vars:
        at = solved[iterator.var]
        conditions += [at >= iterator.dom.min, at < iterator.dom.min + iterator.dom.extent]
    own = {i.var: v for i, v in zip(consumer.block.iter_vars, consumer.node.iter_values)}
    inner = {v for i in walk(consumer.block.body) if (v := getattr(i, "loop_var", None)) is not None}
    require(
        not any(uses_var(e, inner) for e in solved.values()),
        "cannot prove that what block {0} reads is unchanged where {1} runs: loops inside {1} choose what it reads",
        block, consumer, nodes=[consumer.node],
    )  # fmt: skip
    open_ = [substitute(c, own) for c in conditions if not analyzer.can_prove(c)]
    values = tuple(substitute(solved[i.var], own) for i in block.block.iter_vars)
    return block.node.replace(iter_values=values, predicate=all_of([consumer.node.predicate, *open_]))


def _order(scope: BlockRef, block: BlockRef) -> int:
    top = top_statement(block, scope).node
    return next(n for n, s in enumerate(statements(scope)) if s is top)


def _value_at(block: BlockRef, store: BufferStore, load: BufferLoad, analyzer: Analyzer) -> Expr:
    """What ``block`` stores at the element that ``load`` reads, which it has written."""
    solved, _ = _solve_iters(block, store.indices, load.indices, analyzer)
    return substitute(store.value, solved)


def _solve_iters(
    block: BlockRef, indices: Sequence[Expr], given: Sequence[Expr], analyzer: Analyzer
) -> tuple[dict[Var, Expr], list[Expr]]:
    """The iterators of ``block`` for which ``indices`` equal ``given``, and what must hold for there to be any.

    The conditions leave out that the iterators are in their domains. ``analyzer`` knows the variables of ``given``.
    """
    iters = {i.var: i for i in block.block.iter_vars}
    solved: dict[Var, Expr] = {v: i.dom.min for v, i in iters.items() if _unit(i)}
    conditions: list[Expr] = []
    moving = [(e, g) for e, g in zip(indices, given) if uses_var(e, iters)]
    conditions += [EQ(e, g) for e, g in zip(indices, given) if not uses_var(e, iters)]
    axes = [affine_in_one(e, iters) for e, _ in moving]
    names = [a[0] for a in axes if a is not None]
    if len(names) == len(moving) and len(set(names)) == len(names):
        for axis, (_, value) in zip(axes, moving):
            assert axis is not None
            var, scale, offset = axis
            rest = value if is_const(offset, 0) else value - offset
            step = const(scale, rest.dtype)
            solved[var] = rest if scale == 1 else const(0, rest.dtype) - rest if scale == -1 else floordiv(rest, step)
            if abs(scale) != 1:
                conditions.append(EQ(floormod(rest, const(abs(scale), rest.dtype)), const(0, rest.dtype)))
    else:
        domains = {v: i.dom for v, i in iters.items() if i.dom is not None}
        found = detect_iter_map(list(indices), domains, check="bijective")
        require(
            found,
            "cannot prove that block {0} touches each element once: its indices are ({1})",
            block, ", ".join(short_text(e) for e in indices), nodes=[block.node],
        )  # fmt: skip
        assert isinstance(found, IterMap)
        solved.update(inverse_iter_map(found, list(given)))
    missing = [v.name for v in iters if v not in solved]
    require(not missing, "the indices of block {0} do not determine its iterator {1}", block, ", ".join(missing),
            nodes=[block.node])  # fmt: skip
    simple = {v: e if isinstance(e, Var) else analyzer.simplify(e) for v, e in solved.items()}
    return simple, [c for c in conditions if not analyzer.can_prove(c)]


def _known(block: BlockRef) -> Analyzer:
    analyzer = Analyzer()
    for iterator in block.block.iter_vars:
        analyzer.bind(iterator.var, iterator.dom)
    return analyzer


def _same_indices(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    from ...equal import structural_equal

    return all(structural_equal(x, y) for x, y in zip(a, b))


def _domain_guards(
    producer: BlockRef, consumer: BlockRef, solved: dict[Var, Expr], conditions: Sequence[Expr]
) -> list[Expr]:
    """That the consumer has an instance for the producer's, said of the producer's loops."""
    analyzer = _known(producer)
    own = about_iterators(consumer, [solved[i.var] for i in consumer.block.iter_vars])
    require(
        own is not None,
        "cannot prove what becomes of the condition of block {0}, because it is not about one of its iterators",
        consumer, nodes=[consumer.node],
    )  # fmt: skip
    values = {i.var: v for i, v in zip(producer.block.iter_vars, producer.node.iter_values)}
    guards = [substitute(c, values) for c in (*conditions, *(own or ()))]
    for iterator in consumer.block.iter_vars:
        at = solved[iterator.var]
        for guard in (at >= iterator.dom.min, at < iterator.dom.min + iterator.dom.extent):
            if not analyzer.can_prove(guard):
                guards.append(substitute(guard, values))
    return guards


def _with_loads(consumer: BlockRef, buffer: Buffer, value: Any) -> BlockRealize:
    def visit(node: Any) -> Any:
        return value(node) if isinstance(node, BufferLoad) and node.buffer is buffer else None

    block = consumer.block
    body = rewrite(block.body, visit)
    init = None if block.init is None else rewrite(block.init, visit)
    return consumer.node.replace(block=_with_regions(block.replace(body=body, init=init)))


def _with_regions(block: Any) -> Any:
    reads, writes = block_access_region(block)
    return block.replace(reads=reads, writes=writes)


def _apply(state: State, plan: InlinePlan) -> State:
    for old, new in plan.changes:
        state = state.replace(old, new)
    scope = state.find_block(plan.scope.name)
    kept = tuple(b for b in scope.block.alloc_buffers if b is not plan.buffer)
    return state.replace(scope.block, scope.block.replace(alloc_buffers=kept))


@primitive(check=_check_compute_inline)
def compute_inline(state: State, plan: InlinePlan) -> State:
    return _apply(state, plan)


@primitive(check=_check_reverse_compute_inline)
def reverse_compute_inline(state: State, plan: InlinePlan) -> State:
    return _apply(state, plan)


def _check_auto_inline(state: State) -> list[str]:
    """Inline every block that can be: elementwise producers into their consumers, first to last.

    Blocks that cannot be inlined stay as they are; returns nothing.
    """
    return [name for name, ref in state.index.blocks.items() if ref.scope is not None]


@primitive(check=_check_auto_inline)
def auto_inline(state: State, plan: list[str]) -> State:
    for name in plan:
        ref = state.index.blocks.get(name)
        if ref is None:
            continue
        try:
            step = _check_compute_inline(state, ref)
        except ScheduleError:
            continue
        state = _apply(state, step)
    return state
