"""Conditions out of loops: hoisting those that are loop-invariant, and running the one iteration that an equality selects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...aliases import memory_of, sharing
from ...analysis.block_regions import with_regions
from ...analysis.evaluation import evaluated_parts, may_fail
from ...analysis.index import BlockRef, LoopRef
from ...analysis.reduction_forms import NotAReduction, Reduction
from ...arith import Analyzer, simplify
from ...arith.linear import key
from ...arith.pointwise import compile_expr
from ...errors import first_legal, require
from ...expr import (
    EQ,
    And,
    BufferLoad,
    Cast,
    Expr,
    Var,
    all_of,
    cast,
    choice_parts,
    conjuncts,
    const,
    constant,
    is_const,
)
from ...op import call
from ...script.printer import short_text
from ...stmt import THREAD_BINDING, BlockRealize, BufferStore, For, IfThenElse, SeqStmt, Stmt, is_nop, seq
from ...visit import accesses, buffers_in, has_load, nodes_of, rewrite, substitute, vars_in, walk
from ..nests import copy_renamed, renest
from ..primitive import primitive
from ..state import State, require_above
from .loops import require_plain

MOST_ITERATIONS = 1024  # of a loop, at which a condition is evaluated to say where it changes


@primitive(instead=("hoist",), group="order")
def unswitch(state: State, loop: LoopRef) -> State:
    """Hoist a loop-invariant condition out of the loop.

    Takes the first ``if`` under ``loop`` whose condition neither uses a loop variable from ``loop`` inwards nor reads
    what is written there; the rest of the body is duplicated into both branches, the copied blocks renamed. If there is
    no such ``if``, takes the invariant conjuncts from the predicate of the only block of the nest.

    Raises ``ScheduleError`` when there is no such condition, with the reason for each candidate.

    Before, and after ``sch.unswitch("i")``::

        for i in range(16):
            if n > 4:
                with T.block("B"):
                    vi = T.axis.spatial(16, i)
                    B[vi] = A[vi] * 2.0

        if n > 4:
            for i in range(16):
                with T.block("B"):
                    vi = T.axis.spatial(16, i)
                    B[vi] = A[vi] * 2.0
    """
    return _without_condition(state, loop, None)


@primitive(instead=("unswitch",), group="order")
def hoist(state: State, block: BlockRef, loop: LoopRef | None = None) -> State:
    """Hoist a loop-invariant condition of ``block`` out of ``loop``.

    A condition of ``block`` is an ``if`` around it or a conjunct of its predicate; ``unswitch`` takes the first
    condition under the loop, of any block. By default ``loop`` is the outermost loop that a condition can leave. If the
    loop contains other statements too, those outside an ``if`` are duplicated into both branches; a conjunct of a
    predicate stays, as it does not apply to them.

    Raises ``ScheduleError`` when there is no such condition, with the reason for each candidate.

    Before, and after ``sch.hoist("B", "j")``::

        for i, j in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i < n)
                B[vi, vj] = A[vi, vj] * 2.0

        for i in range(16):
            if i < n:
                for j in range(8):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vi, vj] * 2.0
    """
    loops = block.loops()
    require(loops, "block {0} is in no loop", block)
    if loop is not None:
        require_above(state, loop, block)
        return _without_condition(state, loop, block)
    candidates = [p for p in loops if p.node.kind != THREAD_BINDING] or loops
    return first_legal(partial(_without_condition, state, candidate, block) for candidate in candidates)


def _without_condition(state: State, loop: LoopRef, about: BlockRef | None) -> State:
    """The program with the first condition outside of ``loop`` that can leave it; of block ``about``, where that is given."""
    node = loop.node
    require(node.kind != THREAD_BINDING,
            "loop {0} is bound to {1}; a condition can be moved out of other loops only", node, node.thread)  # fmt: skip
    written = _written(state, loop)
    reasons: list[str] = []
    places: list[Stmt] = []
    for stmt, inner, surely in _conditional(node):
        if about is not None and stmt is not about.node and not any(n is about.node for n in nodes_of(stmt)):
            continue
        taken, against = _invariant_parts(stmt, inner, surely, written)
        reasons += against
        places += [stmt] * bool(against)
        if taken and (isinstance(stmt, IfThenElse) or _alone(node, stmt)):
            return _moved_out(state, node, stmt, taken)
        if taken:
            reasons.append(f"`{short_text(taken[0])}` is about block `{stmt.block.name}` only")  # type: ignore[union-attr]
    of = "" if about is None else f" of block `{about.name}`"
    require(False,
            "no condition" + of + " under loop {0} is the same for all its iterations",
            node, witness=reasons or ["there is no `if` and no predicate"], nodes=places or [node],
            legal="" if about is not None else lambda: _partitions(loop))  # fmt: skip
    raise AssertionError


def _written(state: State, loop: LoopRef) -> set[Var]:
    """The memory that may be written under ``loop``."""
    written = {*memory_of(s for s in accesses(loop.node) if isinstance(s, BufferStore))}
    written |= memory_of(r for b in state.index.below(loop) if isinstance(b, BlockRef) for r in b.block.writes)
    written |= {v for v in nodes_of(loop.node) if isinstance(v, Var) and v.dtype.is_handle}  # passed on by pointer
    return written


def _invariant_parts(
    stmt: IfThenElse | BlockRealize, inner: set[Var], surely: bool, written: set[Var]
) -> tuple[list[Expr], list[str]]:
    """The conjuncts of a condition that can be evaluated once, before the loop; and why the others cannot."""
    taken: list[Expr] = []
    against: list[str] = []
    for position, part in enumerate(_parts(stmt)):
        why = _varies(part, inner, written)
        if not why and may_fail(part) and (not surely or position != len(taken)):
            why = "could fail where the loop does not ask it"
        if why:
            against.append(f"`{short_text(part)}` {why}")
        else:
            taken.append(part)
    return taken, against


def _partitions(loop: LoopRef) -> list[str]:
    """The calls of ``loop_partition`` that cut a loop where a condition on it alone changes its value once."""
    node = loop.node
    length, start = constant(node.extent), constant(node.min)
    if length is None or start is None or length > MOST_ITERATIONS:
        return []
    found: dict[str, None] = {}
    for stmt, _, _ in _conditional(node):
        for part in _parts(stmt):
            if vars_in(part) == {node.loop_var} and not has_load(part):
                holds = compile_expr(part, [node.loop_var])
                changes = [n for n in range(1, length) if bool(holds(start + n)) != bool(holds(start + n - 1))]
                found |= {f'loop_partition("{loop.name}", [{n}, None])': None for n in changes if len(changes) == 1}
    return list(found)


def _parts(stmt: IfThenElse | BlockRealize) -> Sequence[Expr]:
    """The conditions of an ``if``, or of the predicate of a block, that may leave a loop."""
    return [stmt.condition] if isinstance(stmt, IfThenElse) else conjuncts(stmt.predicate)


def _conditional(loop: For) -> list[tuple[IfThenElse | BlockRealize, set[Var], bool]]:
    """``if`` statements and blocks with a predicate under ``loop``, ``if`` first: each with the variables bound above
    it, and whether it is certain to be reached."""
    found: list[tuple[Any, set[Var], bool]] = []

    def visit(stmt: Any, bound: set[Var], surely: bool) -> None:
        if isinstance(stmt, IfThenElse) or (isinstance(stmt, BlockRealize) and conjuncts(stmt.predicate)):
            found.append((stmt, bound, surely))
        if isinstance(stmt, (For, SeqStmt, IfThenElse)):
            inside = bound | {stmt.loop_var} if isinstance(stmt, For) else bound
            for part, condition in evaluated_parts(stmt):
                visit(part, inside, surely and condition is None)

    visit(loop, set(), True)
    return sorted(found, key=lambda pair: not isinstance(pair[0], IfThenElse))


def _varies(condition: Expr, inner: set[Var], written: set[Var]) -> str:
    """Why ``condition`` cannot be evaluated once before ``loop``; empty if it can."""
    used = [v.name for v in vars_in(condition) if v in inner]
    if used:
        return f"changes with {' and '.join(sorted(used))}"
    stored = sharing(buffers_in(condition), written)
    if stored:
        return f"reads {stored[0].name}, which the loop writes"
    return ""


def _alone(loop: For, block: BlockRealize) -> bool:
    """Whether the nest of ``loop`` contains nothing but ``block``."""
    body: Any = loop
    while isinstance(body, For):
        body = body.body
    return body is block


def _moved_out(state: State, node: For, found: IfThenElse | BlockRealize, conditions: Sequence[Expr]) -> State:
    """The ``if`` outside of a loop; or of a block the ``conditions`` of its predicate."""
    if isinstance(found, BlockRealize):
        kept = [c for c in conjuncts(found.predicate) if not any(c is t for t in conditions)]
        inner = _put(node, found, found.replace(predicate=all_of(kept)))
        return state.replace(node, IfThenElse(all_of(conditions), inner))
    then = _put(node, found, found.then_case)
    other = _put(node, found, found.else_case) if found.else_case is not None else _without(node, found)
    if other is not None:
        kept_names = {s.block.name for s in walk(then) if isinstance(s, BlockRealize)}
        taken: set[str] = set()

        def rename(old: str) -> str:
            if old not in kept_names:
                return old
            taken.add(name := state.fresh_block_name(f"{old}_else", taken))
            return name

        other = copy_renamed(other, rename)
    return state.replace(node, IfThenElse(found.condition, then, other))


def _put(root: Stmt, old: Stmt, new: Stmt) -> Any:
    flat = rewrite(root, lambda s: new if s is old else None)
    return rewrite(flat, lambda s: seq(s.stmts) if isinstance(s, SeqStmt) else None)


def _without(loop: For, found: Stmt) -> Any:
    """``loop`` without ``found`` and the statements that become empty; None when nothing is left."""

    def visit(stmt: Any) -> Any:
        if stmt is found or is_nop(stmt):
            return None
        if isinstance(stmt, For):
            body = visit(stmt.body)
            return None if body is None else renest([stmt], body)
        if isinstance(stmt, SeqStmt):
            kept = [s for s in map(visit, stmt.stmts) if s is not None]
            return seq(kept) if kept else None
        if isinstance(stmt, IfThenElse):
            then, other = visit(stmt.then_case), stmt.else_case and visit(stmt.else_case)
            if then is None and other is None:
                return None
            return stmt.replace(then_case=then or seq(()), else_case=other)
        return stmt

    return visit(loop)


# ---------------------------------------------------------------- select_iteration


@primitive(group="reduction")
def select_iteration(state: State, loop: LoopRef) -> State:
    """Run, instead of ``loop``, the one iteration in which the term of a reduction counts.

    In the loop is one block, in loops of its own, whose only store combines a result with ``T.if_then_else(at == v, term, identity)``, or
    the like with more conditions, or an integer that is converted from ``at == v``: ``v`` is the iterator that the loop is bound to, and ``at`` the same for all
    iterations. As all others would leave the results as they are, an ``if`` whether ``at`` is one of the iterations takes the place of the loop. So
    a scatter, a histogram or a lookup that is written as a sum of what a condition selects takes no more steps than one that is not.

    Raises ``ScheduleError`` when the loop is not serial or has anything else in it, when the block has a ``T.init()`` or a predicate, when no such equality
    decides its term, or ``at`` changes with loops inside, with what the block writes, or might be read out of bounds. A sum of floating-point numbers that is -0.0 stays so.

    Before, and after ``sch.select_iteration("b")``::

        for k, b in T.grid(32, 8):
            with T.block("C"):
                vk, vb = T.axis.remap("RS", [k, b])
                C[vb] = C[vb] + T.if_then_else(at[vk] == vb, A[vk], T.float32(0))

        for k in range(32):
            if 0 <= at[k] and at[k] < 8:
                with T.block("C"):
                    vk = T.axis.reduce(32, k)
                    vb = T.axis.spatial(8, at[k])
                    C[vb] = C[vb] + A[vk]
    """
    require_plain(loop, "select_iteration")
    node, realize = loop.node, _only_block(loop)
    block, inner = realize.block, {n.loop_var for n in walk(node) if isinstance(n, For)}
    require(block.init is None, "block {0} starts its results", realize, legal="decompose_reduction first")
    require(
        is_const(realize.predicate, 1), "block {0} has a predicate", realize, legal="select_iteration first, then split"
    )
    term, parts = _counted_term(realize)
    conditions, reasons = conjuncts(parts[0]), list[str]()
    written = _written(state, loop)
    for number, part in enumerate(conditions):
        at = _selected(substitute(part, realize.bindings), node.loop_var)
        if at is None:
            continue
        why = _varies(at, inner, written) or ("might fail" if number and not _is_inside(at, loop) else "")
        if not why:
            rest = all_of([c for c in conditions if c is not part])
            value = (
                parts[1] if is_const(rest, 1) else call("if_then_else", rest, parts[1], parts[2], dtype=parts[1].dtype)
            )
            body = rewrite(block.body, lambda n: value if n is term else None)
            made = realize.replace(block=with_regions(block.replace(body=body)))
            inside = rewrite(node.body, lambda n: made if n is realize else None)
            return state.replace(node, _if_reached(node, inside, at))
        reasons.append(f"`{short_text(at)}` {why}")
    require(
        False,
        "no equality selects one iteration of loop {0}",
        node,
        witness=reasons or [f"`{short_text(parts[0])}` does not compare {node.loop_var.name} with anything"],
        nodes=[realize],
        legal=f"a condition at == {node.loop_var.name} whose place `at` no loop inside changes; reorder these out first",
    )
    raise AssertionError


def _is_inside(e: Expr, loop: LoopRef) -> bool:
    """Whether ``e`` reads elements of its buffers alone, in every iteration of the loops around ``loop``, and cannot fail otherwise."""
    known = Analyzer({p.var: p.range for p in loop.loops()})
    loads = [n for n in walk(e) if isinstance(n, BufferLoad)]
    inside = [And(i >= 0, i < n) for load in loads for i, n in zip(load.indices, load.buffer.shape)]
    alone = rewrite(e, lambda n: Var("element", n.dtype) if isinstance(n, BufferLoad) else None)
    return not may_fail(alone) and all(known.can_prove(condition) for condition in inside)


def _only_block(loop: LoopRef) -> BlockRealize:
    """The block that is alone in ``loop``, in loops of its own."""
    body: Any = loop.node
    while isinstance(body, For):
        body = body.body
    require(isinstance(body, BlockRealize), "loop {0} has other statements in it than one block", loop.node)
    return body


def _counted_term(realize: BlockRealize) -> tuple[Expr, tuple[Expr, Expr, Expr]]:
    """The one term that a block combines its result with, and the condition and the values that it is."""
    found = Reduction.of(realize.block)
    one = None if isinstance(found, NotAReduction) else found.of_one_value()
    how = one.combination if one else None
    parts = _counted(how.terms[0].value) if how and len(how.terms) == 1 else None
    require(how and parts and key(parts[2]) == key(how.combiner.identity(parts[2].dtype)),
            "block {0} does not combine its result with what a condition selects, or else with the identity",
            realize, legal="a value T.if_then_else(at == v, term, 0) that is added up")  # fmt: skip
    assert how is not None and parts is not None
    return how.terms[0].value, parts


def _counted(term: Expr) -> tuple[Expr, Expr, Expr] | None:
    """The condition, and the two values, of a term that a condition selects."""
    if isinstance(term, Cast) and term.value.dtype.is_bool:
        return term.value, const(1, term.dtype), const(0, term.dtype)
    return choice_parts(term)


def _selected(condition: Expr, var: Var) -> Expr | None:
    """What ``condition`` says that ``var`` is equal to; None if it is anything else."""
    if not isinstance(condition, EQ):
        return None
    for one, other in ((condition.a, condition.b), (condition.b, condition.a)):
        is_wider = isinstance(one, Cast) and one.dtype.code == "int" and one.dtype.bits >= var.dtype.bits
        if (one.value if is_wider else one) is var:
            return other
    return None


def _if_reached(loop: For, body: Stmt, at: Expr) -> Stmt:
    """``body`` in the iteration ``at`` of ``loop``, if that is one."""
    start, end = (cast(at.dtype, e) for e in (loop.min, simplify(loop.min + loop.extent)))
    return IfThenElse(all_of([start <= at, at < end]), substitute(body, {loop.loop_var: cast(loop.loop_var.dtype, at)}))
