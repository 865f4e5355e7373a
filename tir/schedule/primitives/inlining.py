"""Inlining: compute_inline, reverse_compute_inline, auto_inline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any

from ...aliases import memory_of, sharing
from ...analysis.block_regions import with_regions
from ...analysis.contents import named
from ...analysis.dependence.domains import chosen_value, known
from ...analysis.evaluation import steering_loads
from ...analysis.index import BlockRef, order
from ...analysis.users import bare_writers, readers, uses_pointer, writers
from ...arith import Analyzer
from ...buffer import Buffer, IterVar
from ...errors import ScheduleError, attempt, require
from ...expr import BufferLoad, Expr, Var, all_of, const, is_const
from ...stmt import Block, BlockRealize, BufferStore, Evaluate, For, Stmt, first_line, seq
from ...visit import LEAVES, accesses, is_pure, rewrite, substitute, uses_var, walk
from ..primitive import primitive, require_same_meaning
from ..staged_copies import require_stored_in_blocks
from ..state import State, scope_of, with_own_conditions
from ._inlining import (
    InlinePlan,
    apply_inline,
    domain_guards,
    reads_element,
    require_no_address,
    require_no_views,
    require_spatial,
    solve_iters,
)
from .epilogue import plan_epilogue, run_after


def plan_compute_inline(state: State, block: BlockRef, *, unsafe: bool = False) -> InlinePlan:
    """Substitute the expression that ``block`` stores for each load of it; removes the block and its buffer.

    A block whose buffer nothing reads is removed.

    Before, and after ``sch.compute_inline("H")``::

        H = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("H"):
                vi = T.axis.spatial(8, i)
                H[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = H[vi] + 1.0

        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0 + 1.0

    Raises ``ScheduleError`` for a reduction, a block of more than one store, an output of the function, a buffer with
    another writer, or when what the block reads is overwritten before a consumer runs.
    """
    scope = scope_of(block)
    store, buffer = _single_store(state, scope, block)
    asking = _asking(scope, buffer)
    consumers = list(dict.fromkeys(c for c in (*readers(scope, buffer), *asking) if c is not block))
    if not consumers:
        _require_unused(scope, block, store)
        return InlinePlan(scope, ((block.node, None),), (buffer,))
    require_no_views(block)
    _require_unchanged(state, scope, block, consumers, store, unsafe)
    changes: list[tuple[Stmt, Stmt | None]] = [(block.node, None)]
    for consumer in consumers:
        require(not uses_pointer(consumer.node, buffer),
                "block {0} uses the pointer of buffer {1}", consumer, buffer.name, nodes=())  # fmt: skip
        changes.append((consumer.node, _with_values(consumer, {buffer: (block, store)})))
    require_no_address(scope, buffer)
    return InlinePlan(scope, tuple(changes), (buffer,))


def plan_reverse_compute_inline(state: State, block: BlockRef, *, unsafe: bool = False) -> InlinePlan:
    """Inline ``block``, an elementwise consumer, into its only producer; removes the block and the intermediate buffer.

    Before, and after ``sch.reverse_compute_inline("B")``::

        H = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("H"):
                vi = T.axis.spatial(8, i)
                H[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = H[vi] + 1.0

        for i in range(8):
            with T.block("H"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0 + 1.0

    Of several producers the last is used. A producer whose domain exceeds the consumer's gets the consumer's bounds as
    its predicate. Inlining into a reduction is ``fuse_reduction_epilogue``. Raises ``ScheduleError`` when the producer
    has other consumers, or when the consumer does not read each element once or runs where the producer does not.
    """
    given = state, block
    state, block, old = with_own_conditions(state, block)
    scope = scope_of(block)
    own = {r.buffer for r in block.block.writes}
    made = [b for b in dict.fromkeys(r.buffer for r in block.block.reads) if b not in own and writers(scope, b)]
    require(made, "no block in this scope produces what block {0} reads", block, nodes=())
    # Of several producers the last: when it runs, the others have already produced the block's other operands.
    buffer = max(made, key=lambda b: max(order(scope, w) for w in writers(scope, b)))
    makers = writers(scope, buffer)
    require(len(makers) == 1, "buffer {0} is written by {1} blocks", buffer.name, len(makers))
    producer = makers[0]
    if producer.block.init is not None:
        return plan_epilogue(given[0], given[0].find_block(producer.name), given[1], unsafe)
    store, _ = _single_store(state, scope, producer)
    require_no_address(scope, buffer)
    users = list(dict.fromkeys([*readers(scope, buffer), *_asking(scope, buffer)]))
    require(users == [block],
            "buffer {0} is also read by {1}", buffer.name, ", ".join(u.name for u in users if u is not block))  # fmt: skip
    require_spatial(block)
    require_no_views(block)
    body = block.block.body
    require(isinstance(body, BufferStore), "block {0} is more than one store", block)
    loads = [a for a in accesses(body) if isinstance(a, BufferLoad) and a.buffer is buffer]
    require(len({id(x) for x in loads}) >= 1, "block {0} does not load {1}", block, buffer.name, nodes=())
    solved, conditions = solve_iters(block, loads[0].indices, store.indices, known(producer))
    same = all(reads_element(x, solved, store.indices, known(producer)) for x in loads[1:])
    require(same, "block {0} reads buffer {1} at several places", block, buffer.name, nodes=())
    merged = rewrite(body, lambda n: store.value if isinstance(n, BufferLoad) and n.buffer is buffer else None)
    new_body = substitute(merged, solved)
    guards = domain_guards(producer, block, solved, conditions)
    predicate = all_of([producer.node.predicate, *guards])
    # what the merged block does: run the consumer just after its producer
    require_same_meaning(state, run_after(state, producer, block, solved, guards), unsafe)
    new_block = with_regions(producer.block.replace(body=new_body))
    realize = producer.node.replace(block=new_block, predicate=_with_value(predicate, producer, store))
    return InlinePlan(scope, ((old, None), (producer.node, realize)), (buffer,))


def _with_value(predicate: Expr, producer: BlockRef, store: BufferStore) -> Expr:
    """``predicate``, over the loops of ``producer``, with the value that this stores for what it reads of it. Refuses if it
    reads an element that another instance stores."""
    analyzer, values = _around(producer), producer.bindings
    stored = [substitute(index, values) for index in store.indices]

    def value(node: Any) -> Expr | None:
        if not isinstance(node, BufferLoad) or node.buffer is not store.buffer:
            return None
        require(all(analyzer.can_prove_equal(a, b) for a, b in zip(node.indices, stored)),
                "`{0}`, in the condition of the consumer, is not the element that block {1} stores there",
                node, producer, nodes=[producer.node])  # fmt: skip
        return substitute(store.value, values)

    return rewrite(predicate, value)


def _single_store(state: State, scope: BlockRef, block: BlockRef) -> tuple[BufferStore, Buffer]:
    """The only store of a spatial block, to a buffer allocated in ``scope`` that has no other writer."""
    require_spatial(block)
    body = block.block.body
    require(isinstance(body, BufferStore), "block {0} is more than one store", block)
    assert isinstance(body, BufferStore)
    buffer = body.buffer
    given = sharing(state.func.buffers(), buffer)
    require(
        buffer in scope.block.alloc_buffers,
        "buffer {0} is {1}, so block {2} has to write it",
        buffer.name,
        "an output of the function"
        if given
        else f"not allocated by block `{scope.name}`, and others may use its memory",
        block,
    )
    others = [w.name for w in writers(scope, buffer) if w is not block]
    require(not others, "buffer {0} is also written by {1}", buffer.name, ", ".join(others))
    require_stored_in_blocks(buffer, [scope.block.body])
    own = [a for a in accesses(body.value) if a.buffer is buffer]
    require(not own, "block {0} reads the buffer it writes", block)
    return body, buffer


def _require_unused(scope: BlockRef, block: BlockRef, store: BufferStore) -> None:
    """Nothing but ``block`` uses the memory it stores to, and its value has no effect."""
    require(is_pure(store.value), "the value that block {0} stores has an effect", block)
    body = rewrite(scope.block.body, lambda n: Evaluate(const(0)) if n is block.node else None)
    require(named(body).isdisjoint(memory_of([store])),
            "the memory of buffer {0} is used outside of block {1}", store.buffer.name, block)  # fmt: skip


def _require_unchanged(
    state: State, scope: BlockRef, block: BlockRef, consumers: Sequence[BlockRef], store: BufferStore, unsafe: bool
) -> None:
    """Require that what ``block`` reads is unchanged between the block and its consumers."""
    last = max(order(scope, c) for c in consumers)
    if _is_unchanged(store, order(scope, block), last, partial(_writes, scope)):
        return
        # Decided on the program in which the block runs again before each consumer, at the elements that it loads.
    probe = state.replace(block.node, None)
    for consumer in consumers:
        runs = [_run_for(block, store, load, consumer) for load in _loads(consumer, store.buffer)]
        probe = probe.replace(consumer.node, seq([*runs, consumer.node]))
    require_same_meaning(state, probe, unsafe)


def _is_unchanged(store: BufferStore, first: int, last: int, writes: Callable[[Buffer], Collection[int]]) -> bool:
    """Whether no statement of a scope, from the ``first`` to the ``last``, is among those that ``writes`` what a store reads."""
    return not any(first <= at <= last for b in {a.buffer for a in accesses(store.value)} for at in writes(b))


def _writes(scope: BlockRef, buffer: Buffer) -> set[int]:
    """The numbers of the statements of ``scope`` that write a buffer."""
    return {order(scope, w) for w in (*writers(scope, buffer), *bare_writers(scope, buffer))}


def _asking(scope: BlockRef, buffer: Buffer) -> list[BlockRef]:
    """The blocks of ``scope`` that read ``buffer`` before their bodies. Refuses if anything else outside of the bodies of
    blocks reads it, because nothing can be substituted there."""
    asking = [place for place, load in steering_loads(scope.block.body) if load.buffer is buffer]
    places: dict[Stmt, BlockRef] = {child.node: child for child in scope.children} if asking else {}
    for place in asking:
        require(
            place in places, "`{0}` reads buffer {1} outside of a block", first_line(place), buffer.name, nodes=[place]
        )
    return [places[place] for place in asking]


def _loads(consumer: BlockRef, buffer: Buffer) -> list[BufferLoad]:
    return [a for a in accesses(consumer.node) if isinstance(a, BufferLoad) and a.buffer is buffer]


def _around(consumer: BlockRef) -> Analyzer:
    """An analyzer that knows ``consumer``'s iterators and the loops used in its predicate and bindings."""
    analyzer = known(consumer)
    for loop in consumer.loops():
        analyzer.bind(loop.var, loop.node.domain, loop.node)
    return analyzer


def _run_for(block: BlockRef, store: BufferStore, load: BufferLoad, consumer: BlockRef) -> BlockRealize:
    analyzer = _around(consumer)
    solved, conditions = solve_iters(block, store.indices, load.indices, analyzer)
    for iterator in block.block.iter_vars:
        at = solved[iterator.var]
        conditions += [at >= iterator.dom.min, at < iterator.dom.min + iterator.dom.extent]
    own = consumer.bindings
    inner = {
        n.loop_var if isinstance(n, For) else n.var for n in walk(consumer.block.body) if isinstance(n, (For, IterVar))
    }
    require(not any(uses_var(e, inner) for e in solved.values()),
            "cannot prove that what block {0} reads is unchanged where {1} runs: loops inside {1} choose what it reads",
            block, consumer, nodes=[consumer.node])  # fmt: skip
    open_ = [substitute(c, own) for c in conditions if not analyzer.can_prove(c)]
    values = tuple(substitute(solved[i.var], own) for i in block.block.iter_vars)
    return block.node.replace(iter_values=values, predicate=all_of([consumer.node.predicate, *open_]))


def _value_at(block: BlockRef, store: BufferStore, load: BufferLoad, analyzer: Analyzer) -> Expr:
    """The value that ``block`` has stored in the element that ``load`` reads."""
    solved, _ = solve_iters(block, store.indices, load.indices, analyzer)
    return substitute(chosen_value(block.block), solved)


def _with_values(consumer: BlockRef, inlined: Mapping[Buffer, tuple[BlockRef, BufferStore]]) -> BlockRealize:
    """``consumer`` with values in the place of loads: those that the block of each buffer ``inlined`` stores, with the values of other ones in them."""
    analyzer = _around(consumer)
    memo: dict[Any, Any] = {}

    def visit(item: Any) -> Any:
        kind = type(item)
        if kind in LEAVES:
            return item
        done = memo.get(item)
        if done is None:
            done = item.map_children(visit)  # noqa: F821  (deleted only afterwards)
            if kind is BufferLoad and done.buffer in inlined:
                done = visit(_value_at(*inlined[done.buffer], done, analyzer))  # noqa: F821
            elif kind is Block and any(r.buffer in inlined for r in done.reads):
                done = with_regions(done)
            memo[item] = done
        return done

    block, node = consumer.block, consumer.node
    body = visit(block.body)
    init = None if block.init is None else visit(block.init)
    views = tuple(map(visit, block.match_buffers))
    made = node.replace(
        iter_values=tuple(map(visit, node.iter_values)),
        predicate=visit(node.predicate),
        block=with_regions(block.replace(body=body, init=init, match_buffers=views)),
    )
    del visit  # it refers to itself, and would stay until garbage is collected
    return made


@primitive(check=plan_compute_inline, instead=("compute_at", "reverse_compute_inline"), group="order")
def compute_inline(state: State, plan: InlinePlan) -> State:
    return apply_inline(state, plan)


@primitive(check=plan_reverse_compute_inline, instead=("reverse_compute_at", "compute_inline"), group="order")
def reverse_compute_inline(state: State, plan: InlinePlan) -> State:
    return apply_inline(state, plan)


def _check_auto_inline(state: State, *blocks: BlockRef) -> list[str]:
    """Inline those of ``blocks``, by default of all, that can be inlined: elementwise producers into their consumers.

    Blocks that cannot be inlined stay as they are; returns nothing.

    Before, and after ``sch.auto_inline()``::

        H = T.alloc_buffer((4, 8), "float32")
        for i, j in T.grid(4, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0

        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0 + 1.0
    """
    chosen = {b.name for b in blocks}
    return [n for n, ref in state.index.blocks.items() if ref.scope is not None and (n in chosen or not blocks)]


@primitive(check=_check_auto_inline, group="order")
def auto_inline(state: State, plan: list[str]) -> State:
    scopes = dict.fromkeys(state.index.blocks[name].scope for name in plan)
    for scope in scopes:
        together = None if scope is None else _plan_together(state, scope, plan)
        state = state if together is None else apply_inline(state, together)
    for name in plan:
        ref = state.index.blocks.get(name)
        step = None if ref is None else attempt(partial(plan_compute_inline, state, ref))
        if isinstance(step, InlinePlan):
            state = apply_inline(state, step)
    return state


def _plan_together(state: State, scope: BlockRef, names: Collection[str]) -> InlinePlan | None:
    """The plan to inline several blocks of a scope at once: each consumer is rewritten once, and not for each of its producers. Of the blocks that can be
    inlined, it leaves out those of which that takes more than a look at the block and at who uses its buffer."""
    scope = state.find_block(scope.name)
    found: dict[Buffer, tuple[BlockRef, BufferStore]] = {}
    last: dict[BlockRef, int] = {}  # the statement of the last consumer, of blocks that are inlined
    changed: dict[BlockRef, None] = {}
    steering = {load.buffer for _, load in steering_loads(scope.block.body)}
    place = {child: n for n, child in enumerate(scope.children)}
    writes = cache(partial(_writes, scope))
    for block in reversed(scope.children):
        plain = attempt(partial(_plain_store, state, scope, block)) if block.name in names else None
        if not isinstance(plain, BufferStore) or plain.buffer in steering:
            continue
        consumers = [c for c in readers(scope, plain.buffer) if c is not block]
        end = max((last.get(c, order(scope, c)) for c in consumers), default=-1)
        is_first = consumers and all(place[block] < place[c] for c in consumers)
        if is_first and _is_unchanged(plain, order(scope, block), end, writes):
            found[plain.buffer], last[block] = (block, plain), end
            changed.update(dict.fromkeys(consumers))
    if len(found) < 2:
        return None
    rest = [c for c in changed if c not in last]
    made = attempt(lambda: [(c.node, _with_values(c, found)) for c in rest])
    if isinstance(made, ScheduleError):
        return None
    return InlinePlan(scope, (*((block.node, None) for block in last), *made), tuple(found))


def _plain_store(state: State, scope: BlockRef, block: BlockRef) -> BufferStore:
    """The store of a block at its iterators. Refuses for a block that is no more than that store, or cannot be inlined."""
    store, buffer = _single_store(state, scope, block)
    require_no_views(block)
    require_no_address(scope, buffer)
    at = [i for i in store.indices if isinstance(i, Var)]
    open_ = {i.var for i in block.block.iter_vars if not is_const(i.dom.extent, 1)}
    is_plain = len(set(at)) == len(at) and open_.issubset(at) and len(at) == len(store.indices)
    require(is_plain, "block {0} stores at ({1})", block, ", ".join(map(repr, store.indices)))
    pointing = next((c for c in readers(scope, buffer) if uses_pointer(c.node, buffer)), None)
    require(pointing is None, "block {0} uses the pointer of buffer {1}", pointing, buffer.name)
    return store
