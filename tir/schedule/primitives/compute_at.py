"""Moving a block into the loops of another and out: compute_at, reverse_compute_at, compute_root.

The loops are rebuilt from the region that is needed (or produced) under the target loop; the move is accepted if it
preserves the dependences of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import is_
from typing import Any

from ...aliases import memory_of
from ...analysis.block_regions import accessed_box, accessed_regions
from ...analysis.dependence.domains import about_iterators, is_same_box, known
from ...analysis.dependence.equivalence import check_recomputing
from ...analysis.dependence.syntactic import consumer_move_is_legal, producer_move_is_legal
from ...analysis.evaluation import entered
from ...analysis.index import BlockRef, LoopRef, loops_below, top_statement
from ...analysis.users import blocks_using
from ...arith import Analyzer
from ...arith.linear import linear, uncast
from ...arith.regions import joined_digits, relax, union, values_reaching
from ...buffer import Buffer, BufferRegion, IterVar, Range
from ...dtype import DType
from ...errors import attempt, first_legal, on_refusal, refusal, require
from ...expr import BufferLoad, Expr, IntImm, Var, all_of, conjuncts, const, is_const
from ...levels import shared_axes
from ...script.printer import short_text
from ...stmt import SERIAL, BufferStore, SeqStmt, Stmt, nest, seq
from ...visit import accesses, free_vars, substitute, uses_var
from ..handles import Location
from ..nests import insert_before
from ..primitive import primitive, require_same_meaning
from ..queries import consumers_of, producers_of
from ..state import State, label, with_own_conditions
from ._inlining import domain_guards, reads_element, solve_iters
from .inlining import compute_inline, plan_compute_inline, plan_reverse_compute_inline


@primitive(group="order")
def compute_at(
    state: State,
    block: BlockRef,
    loop: LoopRef | Location,
    preserve_unit_loops: bool = False,
    index: int = -1,
    *,
    unsafe: bool = False,
) -> State:
    """Move the producer ``block`` under ``loop``, where it is consumed, and compute just the region needed there.

    ``index`` is the position in the body of ``loop``: -1 just before the first consumer, -2 as early as the producers
    of ``block`` allow, otherwise the position itself. ``preserve_unit_loops`` keeps loops of extent one. Loops of the
    block below ``loop`` are called ``ax0``, ``ax1`` …

    Before, and after ``sch.compute_at("H", "B.i")``::

        H = T.alloc_buffer((8, 8), "float32")
        for i, j in T.grid(8, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0

        H = T.alloc_buffer((8, 8), "float32")
        for i in range(8):
            for ax0 in range(8):
                with T.block("H"):
                    vi, vj = T.axis.remap("SS", [i, ax0])
                    H[vi, vj] = A[vi, vj] * 2.0
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = H[vi, vj] + 1.0

    A block that writes ``shared`` memory computes what all threads around need, not one thread's part: loops bound to
    ``threadIdx`` and ``vthread`` count with all their iterations (for ``warp``, ``threadIdx.x``). Bind its own loops to
    the same axes again to distribute the work over the threads.

    Raises ``ScheduleError`` when no consumer is under ``loop``, or a consumer would read an element not yet written.
    """
    if isinstance(loop, Location):
        return _at_location(state, block, loop, plan_compute_inline, unsafe)
    with on_refusal(lambda error: error.find_legal(lambda: _legal_locations(state, block, loop, _move_producer))):
        return _move_producer(state, block, loop, preserve_unit_loops, index, unsafe)


@primitive(group="order")
def reverse_compute_at(
    state: State,
    block: BlockRef,
    loop: LoopRef | Location,
    preserve_unit_loops: bool = False,
    index: int = -1,
    *,
    unsafe: bool = False,
) -> State:
    """Move the consumer ``block`` under ``loop``, where its operands are produced, and consume just that region there.

    ``index`` is the position in the body of ``loop``: -1 as late as the consumers of ``block`` allow, -2 just after the
    last producer, otherwise the position itself. ``preserve_unit_loops`` keeps loops of extent one.

    Before, and after ``sch.reverse_compute_at("B", "H.i")``::

        H = T.alloc_buffer((8, 8), "float32")
        for i, j in T.grid(8, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0

        H = T.alloc_buffer((8, 8), "float32")
        for i in range(8):
            for j in range(8):
                with T.block("H"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    H[vi, vj] = A[vi, vj] * 2.0
            for ax0 in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, ax0])
                    B[vi, vj] = H[vi, vj] + 1.0

    Raises ``ScheduleError`` when no producer is under ``loop``, or the move would read an element not yet written.
    """
    if isinstance(loop, Location):
        return _at_location(state, block, loop, plan_reverse_compute_inline, unsafe)
    with on_refusal(lambda error: error.find_legal(lambda: _legal_locations(state, block, loop, _move_consumer))):
        return _move_consumer(state, block, loop, preserve_unit_loops, index, unsafe)


@primitive(group="order")
def compute_root(state: State, block: BlockRef, *, unsafe: bool = False) -> State:
    """Move a block out of shared loops, into a loop nest of its own: the inverse of compute_at and reverse_compute_at.

    It is placed just before the statement that contained it, if that is legal, otherwise just after it.

    Before, and after ``sch.compute_root("H")``::

        H = T.alloc_buffer((8, 8), "float32")
        for i in range(8):
            for ax0 in range(8):
                with T.block("H"):
                    vi, vj = T.axis.remap("SS", [i, ax0])
                    H[vi, vj] = A[vi, vj] * 2.0
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = H[vi, vj] + 1.0

        H = T.alloc_buffer((8, 8), "float32")
        for ax0, ax1 in T.grid(8, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [ax0, ax1])
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0

    Raises ``ScheduleError`` when the block shares no loop, or needs what is computed in the loops that it leaves.
    """
    require(block.scope is not None, "the root block cannot be moved")
    state, block, _ = with_own_conditions(state, block)
    assert block.scope is not None
    top = top_statement(block, block.scope)
    require(state.index.blocks_below(top) != [block], "block {0} shares no loop with another", block, nodes=())
    loops = block.loop_ranges()
    points = [Range(v, const(1, v.dtype)) for v in block.node.iter_values]
    box = relax(points, loops, predicate=block.node.predicate)
    domains = {i.var: r for i, r in zip(block.block.iter_vars, box or ())}
    around = [p for p in block.all_loops() if p.var not in loops]
    bound = {v: r for v, r in loops.items() if any(uses_var(e, v) for e in block.node.iter_values)}
    when = entered([r.extent for v, r in loops.items() if v not in bound], Analyzer(bound))
    require(
        not any(uses_var(c, loops) for c in when), "whether block {0} runs depends on a loop that it would leave", block
    )
    moved = _rebuild(block, around, domains, False, when)

    def placed(late: bool) -> State:
        after = insert_before(state, top, moved, after=late).replace(block.node, None)
        error = refusal(lambda: require_same_meaning(state, after, unsafe))
        # a block that computed some elements several times computes each of them once there
        if error is not None and not check_recomputing(state.func, after.func).is_proved:
            raise error
        return after

    return first_legal(partial(placed, late) for late in (False, True))


def locations(state: State, block: BlockRef) -> tuple[str, dict[LoopRef | str, Callable[[], Any]]]:
    """Where ``block`` may be computed: the primitive that moves it there, and the plan for "inline", for "root" and for
    each candidate loop, outermost first.

    A block with consumers moves to the first of them by ``compute_at``; one without, to its last producer by
    ``reverse_compute_at``.
    """
    consumers, producers = consumers_of(block), producers_of(block)
    near = consumers[:1] or producers[-1:]
    move, inline = (_move_producer, plan_compute_inline) if consumers else (_move_consumer, plan_reverse_compute_inline)
    plans: dict[LoopRef | str, Callable[[], Any]] = {
        "inline": partial(inline, state, block),
        "root": partial(_move_to_root, state, block),
    }
    plans |= {loop: partial(move, state, block, loop) for loop in (near[0].loops() if near else [])}
    return "compute_at" if consumers else "reverse_compute_at", plans


def _at_location(state: State, block: BlockRef, place: Location, inline: Callable[..., Any], unsafe: bool) -> State:
    """A block moved to a location that is not a loop: inlined, or at the root (where it may be already)."""
    if place.name == "inline":
        return compute_inline(state, inline(state, block, unsafe=unsafe))
    return _move_to_root(state, block, unsafe=unsafe)


def _move_to_root(state: State, block: BlockRef, *, unsafe: bool = False) -> State:
    """``compute_root``, accepting a block that is at the root already."""
    require(block.scope is not None, "the root block cannot be moved")
    assert block.scope is not None
    if state.index.blocks_below(top_statement(block, block.scope)) == [block]:
        return state
    return compute_root(state, block, unsafe=unsafe)


MOST_LOCATIONS = 12


def _legal_locations(state: State, block: BlockRef, refused: LoopRef, plan: Callable[..., State]) -> str:
    """The loops at which the same step would be legal, as text."""
    scope = block.scope
    if scope is None:
        return ""
    own = set(block.loops())
    tried = [ref for ref in state.index.loops.values() if ref.scope is scope and ref not in own and ref is not refused]
    found = ["root"] if not any(len(state.index.blocks_below(ref)) > 1 for ref in own) else []
    found += [label(state, ref) for ref in tried[:MOST_LOCATIONS] if not refusal(partial(plan, state, block, ref))]
    more = f" (of the first {MOST_LOCATIONS} loops)" if len(tried) > MOST_LOCATIONS else ""
    return f'legal locations for "{block.name}": {", ".join(found) or "none"}{more}'


def _with_conditions_inside(state: State, block: BlockRef, loop: LoopRef) -> tuple[State, BlockRef, LoopRef]:
    state, block, _ = with_own_conditions(state, block)
    return state, block, state.index.loops[loop.var]


def _move_producer(
    state: State, block: BlockRef, loop: LoopRef, keep_units: bool = False, index: int = -1, unsafe: bool = False
) -> State:
    state, block, loop = _with_conditions_inside(state, block, loop)
    written = [r.buffer for r in block.block.writes]
    below = _movable(state, block, loop)
    consumers = [b for b in below if any(r.buffer in written for r in b.block.reads)]
    require(
        consumers,
        "no consumer of block {0} is under loop {1}; its consumers are {2}",
        block, loop.node, lambda: _other_users(block, written, "reads") or "outside this function", nodes=[loop.node],
    )  # fmt: skip
    needed = {b: accessed_box(consumers, b, loop, "reads", shared_by=shared_axes(b.scope)) for b in written}
    domains = _solve_domains(block, accessed_regions(block.block)["writes"], needed)
    first = min(position_under(loop, c) for c in consumers)
    # a later one computes it for the next iteration, if at all: the dependences decide
    producers = [p for p in _producer_positions(loop, below, block) if p < first]
    before_all = index in range(-2, first + 1)
    move = partial(producer_move_is_legal, block, loop, consumers, needed) if before_all else None
    place = (index, max(producers, default=-1) + 1, first, unsafe)
    moved = _rebuild(block, [*loop.all_loops(), loop], domains, keep_units)
    return _put(state, block, loop, moved, *place, move)


def _other_users(block: BlockRef, buffers: Sequence[Buffer], side: str) -> str:
    """The other blocks of the scope that read or write the memory of one of ``buffers``, as text."""
    others = blocks_using(block.scope, memory_of(buffers), side) if block.scope is not None else []
    return ", ".join(c.name for c in others if c is not block)


def _move_consumer(
    state: State, block: BlockRef, loop: LoopRef, keep_units: bool = False, index: int = -1, unsafe: bool = False
) -> State:
    state, block, loop = _with_conditions_inside(state, block, loop)
    read = [r.buffer for r in block.block.reads]
    below = _movable(state, block, loop)
    producers = [b for b in below if any(r.buffer in read for r in b.block.writes)]
    require(
        producers,
        "no producer of block {0} is under loop {1}; its producers are {2}",
        block, loop.node, lambda: _other_users(block, read, "writes") or "outside this function", nodes=[loop.node],
    )  # fmt: skip
    last = max(position_under(loop, p) for p in producers) + 1
    written = [r.buffer for r in block.block.writes]
    users = [position_under(loop, b) for b in below if any(r.buffer in written for r in b.block.reads)]
    latest = min((u for u in users if u >= last), default=_size(loop))
    move = _ConsumerMove(state, block, loop, producers, keep_units, (index, last, latest, unsafe))
    idle = partial(_idle_conditions, loop)
    if not is_const(block.node.predicate, 1) and any(map(idle, producers)):
        # loops over all threads that write it, so that they can be bound to these; the guard stays
        boxes = {b: r for b in read if (r := accessed_box(producers, b, loop, "writes", without=idle)) is not None}
        plan = attempt(partial(move.over, boxes))
        if isinstance(plan, State):
            return plan  # otherwise it reads more than what they made
    return first_legal(move.plans(read))


@dataclass(frozen=True)
class _ConsumerMove:
    """``block`` moved under ``loop``, behind its ``producers`` there, to a ``place`` (index, earliest, latest, unsafe)."""

    state: State
    block: BlockRef
    loop: LoopRef
    producers: Sequence[BlockRef]
    keep_units: bool
    place: tuple[int, int, int, bool]

    def plans(self, read: Sequence[Buffer]) -> Iterator[Callable[[], State]]:
        """Over the box that an iteration of ``loop`` writes. Where that cannot be consumed there: each instance when the
        last element that it reads is written (sliding window), or in the loops of its only producer (tiles that do not
        divide the rows)."""
        boxes = ((b, accessed_box(self.producers, b, self.loop, "writes")) for b in read)
        made = {b: box for b, box in boxes if box is not None}
        yield partial(self.over, made)
        steps = {self.loop.var, *(p.var for p in self.loop.loops())}
        if any(uses_var(r.min, steps) for box in made.values() for r in box):
            yield from (partial(self.over, made, steps, end) for end in (1, 0))
        if len(self.producers) == 1:
            yield self.beside

    def over(self, boxes: Mapping[Buffer, tuple[Range, ...]], steps: Collection[Var] = (), end: int = 0) -> State:
        """In loops over the instances that read elements of ``boxes``."""
        regions = [r for r in accessed_regions(self.block.block)["reads"] if boxes.get(r.buffer) is not None]
        domains = _solve_domains(self.block, regions, boxes, steps, end)
        moved = _rebuild(self.block, [*self.loop.all_loops(), self.loop], domains, self.keep_units, self.when)
        index, last, _, _ = self.place
        behind = not steps and (index >= last or index in (-1, -2)) and _are_all(domains, self.block, regions, boxes)
        move = partial(consumer_move_is_legal, self.block, self.loop, self.producers, boxes, moved) if behind else None
        return _put(self.state, self.block, self.loop, moved, *self.place, move)

    def beside(self) -> State:
        """In copies of the loops of the only producer."""
        moved = _beside(self.block, self.loop, self.producers[0])
        rule = "block {0} does not read one element for each that {1} writes"
        require(moved is not None, rule, self.block, self.producers[0], nodes=())
        assert moved is not None
        return _put(self.state, self.block, self.loop, moved, *self.place)

    @cached_property
    def when(self) -> list[Expr]:
        """Under which conditions on the loops around anything is written, if there is one producer."""
        return _runs_when(self.loop, self.producers[0]) if len(self.producers) == 1 else []


def _beside(block: BlockRef, loop: LoopRef, producer: BlockRef) -> Stmt | None:
    """``block`` in copies of the loops around its producer below ``loop``: one instance for each element produced."""
    store = producer.block.body
    loads = [a for a in accesses(block.block.body) if isinstance(a, BufferLoad)]
    if not isinstance(store, BufferStore) or producer.block.init is not None or block.block.init is not None:
        return None
    used = [a for a in loads if a.buffer is store.buffer]
    if not used:
        return None
    there = known(producer)
    solved, conditions = solve_iters(block, used[0].indices, store.indices, there)
    if not all(reads_element(a, solved, store.indices, there) for a in used[1:]):
        return None
    guards = domain_guards(producer, block, solved, conditions)
    own = producer.bindings
    inner = loops_below(producer, loop)
    fresh = {p.var: Var(f"ax{n}", p.var.dtype) for n, p in enumerate(inner)}
    if any(p.node.kind != SERIAL or uses_var(p.node.extent, fresh) or not is_const(p.node.min, 0) for p in inner):
        return None
    values = tuple(substitute(substitute(solved[i.var], own), fresh) for i in block.block.iter_vars)
    condition = substitute(all_of([producer.node.predicate, *guards]), fresh)
    realize = block.node.replace(iter_values=values, predicate=condition)
    return nest([(fresh[p.var], p.node.extent) for p in inner], realize)


def _runs_when(loop: LoopRef, producer: BlockRef) -> list[Expr]:
    """The conjuncts of the predicate of ``producer`` that involve ``loop`` and the loops around it: where they are
    false, nothing is produced."""
    inner = {p.var for p in loops_below(producer, loop)}
    outer = {loop.var, *(p.var for p in loop.loops())}
    parts = conjuncts(producer.node.predicate)
    return [c for c in parts if uses_var(c, outer) and not uses_var(c, inner)]


def _idle_conditions(loop: LoopRef, producer: BlockRef) -> list[Expr]:
    """The conjuncts of the predicate of ``producer`` that leave threads under ``loop`` idle."""
    inner = loops_below(producer, loop)
    threads = {p.var for p in inner if p.node.thread}
    written = {v for region in producer.block.writes for axis in region.region for v in free_vars(axis)}
    where = [e for i, e in zip(producer.block.iter_vars, producer.node.iter_values) if i.var in written]
    others = {p.var for p in inner if not p.node.thread and any(uses_var(e, p.var) for e in where)}
    parts = conjuncts(producer.node.predicate)
    return [c for c in parts if uses_var(c, threads) and not uses_var(c, others)]


def _movable(state: State, block: BlockRef, loop: LoopRef) -> list[BlockRef]:
    """The blocks under ``loop``; refuses a loop in another scope, or one above ``block`` itself."""
    require(block.scope is not None, "the root block cannot be moved")
    require(
        loop.scope is block.scope,
        "loop {0} and block {1} are not in the same block: {0} is inside `{2}`, {1} inside `{3}`",
        loop.node, block, loop.scope.name if loop.scope else "?", block.scope.name, nodes=()
    )  # fmt: skip
    require(loop not in block.loops(), "loop {0} already is above block {1}", loop.node, block, nodes=())
    return state.index.blocks_below(loop)


def _members(loop: LoopRef) -> tuple[Stmt, ...]:
    body = loop.node.body
    return body.stmts if isinstance(body, SeqStmt) else (body,)


def _size(loop: LoopRef) -> int:
    return len(_members(loop))


def position_under(loop: LoopRef, block: BlockRef) -> int:
    """The position in the body of ``loop`` of the statement that contains ``block``."""
    above = {id(p.node) for p in (block, *block.ancestors())}
    return next(n for n, s in enumerate(_members(loop)) if id(s) in above)


def _producer_positions(loop: LoopRef, below: Sequence[BlockRef], block: BlockRef) -> list[int]:
    read = {r.buffer for r in block.block.reads}
    return [position_under(loop, b) for b in below if any(r.buffer in read for r in b.block.writes)]


def _put(
    state: State, block: BlockRef, loop: LoopRef, moved: Stmt, index: int, earliest: int, latest: int, unsafe: bool,
    move: Callable[[], bool] | None = None,
) -> State:  # fmt: skip
    """``moved``, the block in its new loops, at its place under ``loop``. ``move``: whether the program's form shows that
    its order is legal. Raises ``ScheduleError``."""
    position = latest if index == -1 else earliest if index == -2 else index
    require(
        0 <= position <= _size(loop),
        "index {0} is not in the body of loop {1}, which has {2} statements",
        index, loop.node, _size(loop), legal=f"-1, -2, or {earliest} to {latest}", nodes=()
    )  # fmt: skip
    members = list(_members(loop))
    members.insert(position, moved)
    new_loop = loop.node.replace(body=seq(members))
    after = state.replace_both(loop.node, new_loop, block.node)
    require_same_meaning(state, after, unsafe, move)
    return after


def _rebuild(
    block: BlockRef,
    around: Sequence[LoopRef],
    domains: Mapping[Var, Range],
    keep_units: bool,
    when: Sequence[Expr] = (),
) -> Stmt:
    """The block in new loops inside those ``around``: iterators run over ``domains`` (one of none, that only loops around bind, keeps
    its value), guarded by their own domains, and by ``when`` if that is stronger. A domain that depends on a loop depends on what is now in the place of that loop."""
    analyzer = Analyzer()
    for above in around:
        analyzer.bind(above.var, above.range)
    left = {p.var for p in block.loops()}.difference(p.var for p in around)
    now: dict[Var, Expr] = {}
    iters: list[IterVar] = []
    loops: list[tuple[Var, Expr]] = []
    values: list[Expr] = []
    guards: list[Expr] = []
    for iterator, old in zip(block.block.iter_vars, block.node.iter_values):
        dom: Any = substitute(iterator.dom, now) if uses_var(iterator.dom, now) else iterator.dom
        require(
            not uses_var(dom, left),
            "how many values iterator {0} of block {1} has depends on a loop that no iterator before it is bound to",
            iterator.var.name,
            block,
        )
        iters.append(iterator if dom is iterator.dom else iterator.replace(dom=dom))
        low, extent = _smaller(analyzer, dom, domains.get(iterator.var, dom))
        if iterator.var not in domains and not is_const(extent, 1) and not uses_var(old, left):
            value = old  # a loop around both places decides it: a step in time
        elif isinstance(extent, IntImm) and extent.value == 1 and not keep_units:
            value = analyzer.simplify(low)
        else:
            var = Var(f"ax{len(loops)}", iterator.var.dtype)
            loops.append((var, extent))
            analyzer.bind(var, Range(const(0, var.dtype), extent))
            # a kept loop of extent one stays in the iterator's value, so that fuse and get_loops find it
            value = analyzer.simplify(low) + var if is_const(extent, 1) else analyzer.simplify(low + var)
        values.append(value)
        if isinstance(old, Var) and old in left:
            now[old] = value
        guards += map(analyzer.simplify, analyzer.unproved(value, dom))
    for guard in guards:
        analyzer.assume(guard)
    guards += [c for c in when if not analyzer.can_prove(c)]
    kept = _own_predicate(block, values)
    inner = block.block
    if not all(map(is_, iters, inner.iter_vars)):
        inner = inner.replace(iter_vars=tuple(iters))
    return nest(loops, block.node.replace(block=inner, iter_values=tuple(values), predicate=all_of([*guards, *kept])))


def _solve_domains(
    block: BlockRef,
    regions: Sequence[BufferRegion],
    wanted: Mapping[Buffer, tuple[Range, ...] | None],
    steps: Collection[Var] = (),
    end: int = 0,
) -> dict[Var, Range]:
    """For each iterator of ``block``, the values for which its access overlaps the wanted boxes; absent: its domain.

    If a box moves with ``steps``, only the access's last element (``end`` 1) or first one (0) has to be in it.
    """
    found: dict[Var, list[Range]] = {}
    iters = {i.var for i in block.block.iter_vars}
    for region in regions:
        box = wanted.get(region.buffer)
        if box is None:
            continue
        for axis, want in joined_digits(region.region, box):
            if steps and uses_var(want.min, steps):
                one = const(1, axis.min.dtype)
                axis = Range(axis.min + (axis.extent - 1) * end, one)
            solved = values_reaching(axis, want, iters)
            if solved is not None:
                found.setdefault(solved[0], []).append(solved[1])
    return {var: _of_type(union([(r,) for r in ranges])[0], var.dtype) for var, ranges in found.items()}


def _are_all(
    domains: Mapping[Var, Range], block: BlockRef, regions: Sequence[BufferRegion], wanted: Mapping[Buffer, Any]
) -> bool:
    """Whether ``domains``, solved for all ``regions``, have every instance that reads some of ``wanted``: what limits an
    iterator in one region limits it in each."""
    if len(regions) < 2:
        return True
    dom = {i.var: i.dom for i in block.block.iter_vars if i.dom is not None}
    limited = {v for v, found in domains.items() if v not in dom or not is_same_box([found], [dom[v]])}
    return all(limited <= _solve_domains(block, [r], wanted).keys() for r in regions)


def _of_type(values: Range, dtype: DType) -> Range:
    low, extent = (e if e.dtype is dtype else linear(e, uncast).build(dtype) for e in (values.min, values.extent))
    return Range(low, extent)


def _smaller(analyzer: Analyzer, dom: Any, box: Any) -> tuple[Expr, Expr]:
    """The first value, not simplified, and the number of values in ``box``; in ``dom`` where these are no more."""
    extent, most = analyzer.simplify(box.extent), dom.extent
    if isinstance(most, IntImm) and isinstance(extent, IntImm):
        no_more = most.value <= extent.value
    else:
        no_more = analyzer.can_prove(most <= extent)
    return (dom.min, most) if no_more else (box.min, extent)


def _own_predicate(block: BlockRef, values: Sequence[Expr]) -> list[Expr]:
    kept = about_iterators(block, values)
    require(
        kept is not None,
        "the predicate `{0}` of block {1} uses a loop that no iterator is bound to, so it cannot move with the block",
        short_text(block.node.predicate) if kept is None else "", block
    )  # fmt: skip
    assert kept is not None
    return kept
