"""Equivalence of two programs: the same block instances in an order that preserves every dependence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import replace
from functools import cache
from itertools import chain
from operator import is_
from typing import Any

from ...aliases import memory_of, shares_memory, sharing
from ...arith.linear import in_terms_of, key, with_products_named
from ...buffer import Range
from ...equal import structural_equal
from ...expr import BufferLoad, Call, Expr, Var, all_of, conjuncts, is_const
from ...function import PrimFunc
from ...node import cached_property, record
from ...op import OPS, effect_of
from ...poly import Formula, Names
from ...render import short_text
from ...stmt import Block, BlockRealize, BufferStore, Evaluate, For, SeqStmt
from ...visit import is_pure, nodes_of, substitute, uses_var
from ..contents import MembersBy, has_blocks, kept_members, path_to
from ..effects import effects
from ..evaluation import starts
from ..users import used_memory
from .delinearize import split_sizes
from .domains import are_distinct, fills_domain
from .order_question import compare, is_equal, same_order
from .reduction_summary import with_reductions_collapsed
from .relations import Context, StatementRelations, by_loops, same_element, show_element, without_swizzles
from .statements import Loop, Statement, statements_of_both
from .tiers import NOT_SHOWN, PROVED, Question, Refuted, Tier, Unknown, Verdict, by_sets, tier


@record
class SameMeaning(Question):
    """Every dependence of ``before`` is preserved in ``after``; a complete reduction may be recomputed.

    ``move``: a syntactic test whether the move of a block that leads from one to the other is legal.
    """

    before: PrimFunc
    after: PrimFunc
    move: Callable[[], bool] | None = None

    def __str__(self) -> str:
        return "the step keeps the program's meaning"

    @tier(Tier.SIMPLE_BLOCK)
    def by_form(self) -> Verdict:
        return PROVED if self.move is not None and self.move() else NOT_SHOWN

    @tier(Tier.PAIRS)
    def by_pairs(self) -> Verdict:
        verdict = check(self.before, self.after)
        if not verdict.is_proved:
            # recomputing a reduction, including its init, gives the same result
            collapsed = with_reductions_collapsed(self.before, self.after)
            if collapsed is not None and check(*collapsed).is_proved:
                return PROVED
        return verdict

    @tier(Tier.SPLIT)
    def by_digits(self) -> Verdict:
        split = split_sizes(self.before, self.after)
        programs = split or (self.before, self.after)
        bodies, products = with_products_named(*(f.body for f in programs))
        named = [f.with_body(body) for f, body in zip(programs, bodies)] if products else None
        return PROVED if any(SameMeaning(*p).by_pairs().is_proved for p in (split, named) if p) else NOT_SHOWN


def check(before: PrimFunc, after: PrimFunc) -> Verdict:
    """Whether ``after`` runs the block instances of ``before`` in an order that keeps every dependence.

    Instances are identified by block name and iterator values, those of a statement outside of blocks by the values of its
    loops, with which it has to do the same in both. A block may run an instance more than once if it is idempotent; an
    instance whose result is dead may be omitted.

    A block is idempotent if it reads nothing that it writes; if it is repeated by loops that no iterator uses, running
    an instance again is legal.
    """
    return _check_parts(_Compared.changed(before, after))


def check_whole(before: PrimFunc, after: PrimFunc) -> Verdict:
    """As :func:`check`, comparing all of both programs, not just the smallest part that differs: for a step that moves
    work between iterations of a loop that it does not change."""
    return _check_parts(_Compared.whole(before, after))


def check_recomputing(before: PrimFunc, after: PrimFunc) -> Verdict:
    """As :func:`check`; idempotent instances may run again also where tiles overlap, so that iterators take the same
    values again."""
    verdict, compared = check(before, after), _Compared.changed(before, after)
    return verdict if verdict.is_proved or not _check_once(compared).is_proved else PROVED


def _check_parts(compared: _Compared) -> Verdict:
    verdict = _check(compared)
    if verdict.is_proved or not _repeats(compared):
        return verdict
    return PROVED if _check_once(compared).is_proved else verdict


def _check_once(compared: _Compared) -> Verdict:
    """As :func:`_check`; idempotent blocks that loops repeat count once for each value of their iterators."""
    was, now = compared.was, compared.now
    pure = {u.key for u in was if _is_pure(u)} & {u.key for u in now if _is_pure(u)}
    was = [_without_repeats(u) if u.key in pure else u for u in was]
    now = [_without_repeats(u) if u.key in pure else u for u in now]
    return _check(replace(compared, was=was, now=now), pure)


@record
class _Compared:
    """The parts ``old`` and ``new`` of two programs that are compared, and their statements."""

    before: PrimFunc
    after: PrimFunc
    old: Any
    new: Any
    was: list[Statement]
    now: list[Statement]

    @cached_property
    def length(self) -> int:
        """The most entries of a timestamp."""
        return max((len(u.time) for u in (*self.was, *self.now)), default=0)

    @cached_property
    def distinct(self) -> Callable[[tuple[Expr, ...], tuple[Loop, ...]], bool]:
        """:func:`are_distinct`; the init and the body of a block have the same loops and values."""
        return cache(are_distinct)

    @staticmethod
    def whole(before: PrimFunc, after: PrimFunc) -> _Compared:
        return _Compared.of(before, after, before.body, after.body, frozenset())

    @staticmethod
    def of(before: PrimFunc, after: PrimFunc, old: Any, new: Any, apart: frozenset[Any]) -> _Compared:
        """Both parts without the members ``apart``; swizzles that all accesses of a buffer share are removed."""
        was, now = statements_of_both(old, new, apart)
        plain = without_swizzles([*was, *now])
        return _Compared(before, after, old, new, plain[: len(was)], plain[len(was) :])

    @staticmethod
    def changed(before: PrimFunc, after: PrimFunc) -> _Compared:
        """The smallest part that differs, without members of a sequence that share no memory with what changed in it."""
        old, new = _changed(before.body, after.body)
        if old is new:
            return _Compared(before, after, old, new, [], [])
        return _Compared.of(before, after, old, new, _unrelated(old, new))


def _unrelated(old: Any, new: Any) -> frozenset[Any]:
    """The members of two sequences that stand in both, in one order, and access no memory that the other members
    write, nor write what those access."""
    if not (isinstance(old, SeqStmt) and isinstance(new, SeqStmt)):
        return frozenset()
    kept = kept_members(old, new)
    changed = [effects(s) for s in (*old.stmts, *new.stmts) if s not in kept]
    written = frozenset().union(*(e.writes for e in changed))
    touched = written.union(*(e.reads for e in changed))
    return kept.difference(_READING.of_any(new, written), _WRITING.of_any(new, touched))


_READING = MembersBy(lambda s: effects(s).reads)
_WRITING = MembersBy(lambda s: effects(s).writes)


def _repeats(compared: _Compared) -> bool:
    """Whether a block is idempotent and repeated by loops."""
    return any(_bare_coords(u) != len(u.coords) and _is_pure(u) for u in (*compared.was, *compared.now))


def _bare_coords(unit: Statement) -> int:
    """How many coordinates are block iterators: those after them are loops that only repeat the statement."""
    loops = {v for v, _, _ in unit.loops}
    return sum(v not in loops for v in unit.coords)


def _is_pure(unit: Statement) -> bool:
    opaque = not unit.writes() or not all(isinstance(a.node, (BufferLoad, BufferStore)) for a in unit.accesses)
    return isinstance(unit.node, Block) and not opaque and not sharing(unit.reads(), unit.written)


def _without_repeats(unit: Statement) -> Statement:
    count = _bare_coords(unit)
    return replace(unit, coords=unit.coords[:count], values=unit.values[:count])


def _check(compared: _Compared, pure: Collection[tuple[str, str]] = frozenset()) -> Verdict:
    """``pure``: the blocks of which a further run of an instance makes the same values again."""
    return by_sets(_compare_instances, compared, pure)


def _compare_instances(compared: _Compared, pure: Collection[tuple[str, str]]) -> Verdict:
    before, old, was, now = compared.before, compared.old, compared.was, compared.now
    if old is compared.new:
        return PROVED
    names = Names()
    runs: dict[tuple[str, str], list[Statement]] = {}
    for unit in now:
        runs.setdefault(unit.key, []).append(unit)
    places = [runs.pop(unit.key, []) for unit in was]
    written = memory_of(a for u in was for a in u.writes())
    for added in runs.values():
        if not all(_is_control(u) and not sharing(u.accesses, written) for u in added):
            rule = f"{_title(added[0].name)} is new: it runs what the program before did not"
            return Refuted(rule, nodes=(added[0].node,))
    sides: list[StatementRelations] = []

    def outside() -> Set[Var]:
        around = path_to(before.body, old)[:-1]
        declared = [part for n in around if isinstance(n, Block) for part in (*n.reads, *n.writes, *n.match_buffers)]
        return memory_of(before.buffer_map.values()).union(used_memory(before.body, {old, *declared}, around))

    for unit, there in _in_question(was, places, pure):
        side = _side(unit, there, compared, names, pure)
        sides.append(side)
        verdict = _does_the_same(side, unit, there, written)
        if not verdict.is_proved:
            return verdict
    context = Context(before, old, names)
    for side in sides:
        verdict = PROVED if side.run is not None else _same_instances(side, context, outside)
        if not verdict.is_proved:
            return verdict
    return compare(sides, context, ())


def _side(
    unit: Statement,
    there: Sequence[Statement],
    compared: _Compared,
    names: Names,
    pure: Collection[tuple[str, str]],
) -> StatementRelations:
    """The relations of a statement of the program before, which runs ``there`` after the step."""
    side = StatementRelations.renamed(unit, names)
    side.length, side.kept = compared.length, _is_kept(unit, there)
    may_repeat = side.kept or unit.key in pure
    repeated = may_repeat and not compared.distinct(unit.values, unit.loops) and not side.before.is_single_valued()
    side.pure = unit.key in pure and repeated
    if side.kept and repeated and not side.pure:
        # instances are distinguished by the loops, which the step does not change
        side, there = StatementRelations.renamed(by_loops(unit), names), [by_loops(there[0])]
        side.length, side.kept = compared.length, True
    side.there = there
    if side.kept or (len(there) == 1 and _run_everywhere(unit, there[0])):
        side.run = there[0]
    else:
        _ = side.before, side.after  # the reason why sets have no answer, before any other
    side.moments = _moments(unit, there)
    side.places = tuple(u.node for u in there)
    side.touch()
    return side


def _does_the_same(side: StatementRelations, unit: Statement, there: Sequence[Statement], written: Set[Var]) -> Verdict:
    """Whether each instance of a statement does what it did, under the same conditions."""
    verdict = PROVED if side.kept else _same_work(unit, there)
    return _same_conditions(side, there, written) if verdict.is_proved and not side.kept else verdict


def _is_control(unit: Statement) -> bool:
    """Whether a statement only evaluates conditions, bounds or bindings."""
    value = unit.node.value if isinstance(unit.node, Evaluate) else unit.node
    return isinstance(value, Expr) and is_pure(value)


def _same_work(unit: Statement, there: Sequence[Statement]) -> Verdict:
    """Whether a statement outside of blocks does the same as before at the same values of its loops: the variables of a
    loop that was renumbered are new, and stand for other iterations."""
    for run in there if not isinstance(unit.node, Block) else ():
        renamed = {new: old for new, old in zip(run.coords, unit.coords) if new is not old}
        if renamed and not structural_equal(substitute(run.node, renamed), unit.node):
            rule = "cannot prove that the step keeps the program's meaning: the values of the loops around {} stand for other iterations than before"
            return Unknown(rule.format(_title(unit.name)), nodes=(unit.node,))
    return PROVED


def _same_conditions(side: StatementRelations, there: Sequence[Statement], written: Set[Var]) -> Verdict:
    """Whether instances run under the same data-dependent conditions as before."""
    unit = side.unit
    other = other_condition(unit, there)
    if other is not None:
        rule = f"cannot prove that block `{unit.name}` would run under the condition `{short_text(other)}` as before"
        return Unknown(rule, nodes=(unit.node,))
    moved = moved_condition(unit, there, written)
    if moved is None:
        return PROVED
    rule = f"the condition `{short_text(moved)}` of block `{unit.name}` would be evaluated at another time, and what it reads is written"
    return Refuted(rule, nodes=(unit.node,))


def _is_kept(unit: Statement, there: Sequence[Statement]) -> bool:
    return len(there) == 1 and _same_loops(unit, there[0])


def _same_loops(a: Statement, b: Statement) -> bool:
    """Whether two statements have the same loops, in the same order, with the same bounds, values and guards."""
    parts = [(*chain(*u.loops), *u.values, *u.guards) for u in (a, b)]
    if len(a.loops) != len(b.loops) or len(parts[0]) != len(parts[1]):
        return False
    return all(map(is_, *parts)) or all(map(is_equal, *parts))


def _moments(unit: Statement, there: Sequence[Statement]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    return [unit.time], [u.time for u in there]


def _in_question(
    was: Sequence[Statement], places: Sequence[list[Statement]], pure: Collection[tuple[str, str]]
) -> list[tuple[Statement, list[Statement]]]:
    """The statements, with their new timestamps, except those that the step trivially preserves: in the same loops, and
    ordered as before relative to all that conflict with them."""
    kept = [_is_kept(u, there) and u.key not in pure for u, there in zip(was, places)]
    moments = [_moments(u, there) for u, there in zip(was, places)]
    touched = [(memory_of(u.accesses), u.written) for u in was]

    users: dict[Var, list[int]] = {}
    for n, (memory, _) in enumerate(touched):
        for pointer in memory:
            users.setdefault(pointer, []).append(n)

    def is_settled(m: int, n: int) -> bool:
        if kept[m] and kept[n] and (m == n or same_order(moments[m], moments[n])):
            return True
        return touched[m][0].isdisjoint(touched[n][1]) and touched[n][0].isdisjoint(touched[m][1])

    def is_kept(n: int) -> bool:
        meeting = {m for pointer in touched[n][0] for m in users[pointer]}
        return kept[n] and all(is_settled(m, n) for m in meeting)

    return [(was[n], places[n]) for n in range(len(was)) if not is_kept(n)]


def _title(name: str) -> str:
    """What a message calls a statement: a block by its name, a statement outside of blocks by where it is."""
    block, outside, _ = name.partition("#")
    if not outside:
        return f"block `{block}`"
    return f"a statement of block `{block}`" if block else "a statement outside of blocks"


def _changed(old: Any, new: Any) -> tuple[Any, Any]:
    """The smallest part that differs: what the programs share above it keeps its order."""
    while old is not new and type(old) is type(new):
        inside = _changed_inside(old, new)
        if inside is None:
            break
        old, new = inside
    return old, new


def _changed_inside(old: Any, new: Any) -> tuple[Any, Any] | None:
    """The only children of two statements of one kind that differ; None where more does."""
    if isinstance(old, For):
        same = old.loop_var is new.loop_var and old.min is new.min and old.extent is new.extent
        return (old.body, new.body) if same else None
    if isinstance(old, SeqStmt):
        differ = [(a, b) for a, b in zip(old.stmts, new.stmts) if a is not b]
        return differ[0] if len(differ) == 1 and len(old.stmts) == len(new.stmts) else None
    if not isinstance(old, BlockRealize) or old.predicate is not new.predicate:
        return None
    a, b = old.block, new.block
    sides = (
        (a.init, *old.iter_values, *(i.var for i in a.iter_vars)),
        (b.init, *new.iter_values, *(i.var for i in b.iter_vars)),
    )
    if len(sides[0]) != len(sides[1]) or any(x is not y for x, y in zip(*sides)):
        return None
    opened = has_blocks(a) and has_blocks(b)
    return (a.body, b.body) if opened else None


def _run_everywhere(unit: Statement, run: Statement) -> bool:
    """Whether a block runs once for all values of its iterators in both programs, shown without sets."""
    alike = isinstance(unit.node, Block) and unit.node.iter_vars == run.node.iter_vars
    return alike and _runs_everywhere(unit) and _runs_everywhere(run)


def _runs_everywhere(unit: Statement) -> bool:
    """Whether a block runs once for all values of its iterators, shown without sets."""
    iterators, loops = unit.node.iter_vars, {v: Range(low, extent) for v, low, extent in unit.loops}
    if len(unit.coords) != len(iterators) or any(i.dom is None for i in iterators):
        return False
    guards = unit.guards[: len(unit.guards) - len(starts(unit.node))] if unit.part == "init" else unit.guards
    return fills_domain([*zip(iterators, unit.values)], all_of(guards), loops, loops, "bijective")


def _same_instances(side: StatementRelations, context: Context, outside: Callable[[], Set[Var]]) -> Verdict:
    """Whether a statement runs after the step for the same instances as before. Instances may be omitted if they write
    only memory which no other statement (``outside``) uses; those that are repeated must be idempotent."""
    unit = side.unit
    if not side.pure and not side.before.is_single_valued():
        if side.before.is_equal(side.after):
            return PROVED
        claim = "cannot prove that the step keeps the program's meaning"
        why = f"{_title(unit.name)} runs several times for the same iterator values"
        return Unknown(f"{claim}: {why}", nodes=(unit.node,))
    ran, runs = side.before.domain(), side.after.domain()
    extra = context.restrict(runs.subtract(ran)).sample()
    if extra is not None:
        rule = f"{_title(unit.name)} would run where it did not before"
        return Refuted(rule, [f"{side.show(extra)} runs only afterwards"], (unit.node,))
    missing = context.restrict(ran.subtract(runs)).sample()
    if missing is not None and not unit.written.isdisjoint(outside()):
        rule = f"{_title(unit.name)} would no longer run for every iterator value"
        return Refuted(rule, [f"{side.show(missing)} would not run"], (unit.node,))
    if side.after.is_single_valued():
        return PROVED
    foreign = next((e for e in nodes_of(unit.node) if _is_foreign(e)), None)
    if foreign is not None:
        rule = f"{_title(unit.name)} would run more than once, and what `{short_text(foreign)}` does beside its regions is not known"
        return Unknown(rule, nodes=(unit.node,))
    for a in side.writes:
        for b in side.reads:
            if not shares_memory(a.access, b.access.buffer):
                continue
            twice = context.restrict(same_element(a, b)).domain().sample()
            if twice is not None:
                rule = f"{_title(unit.name)} would run more than once, and it reads what it writes"
                proof = f"{side.show(twice)} reads and writes {show_element(a.access, [])}"
                return Refuted(rule, [proof], (unit.node,))
    return PROVED


def _is_foreign(e: Any) -> bool:
    """Whether it is a call that may do anything: the operator table has nothing on its pointers."""
    return isinstance(e, Call) and effect_of(e) == "opaque" and not getattr(OPS.get(e.op), "pointers", ())


def other_condition(before: Statement, after: Sequence[Statement]) -> Expr | None:
    """A condition outside of exact sets under which an instance runs in one program but possibly not in the other; None
    if both programs evaluate the same ones: in terms of the coordinates, and of nothing else that loops decide."""
    marks = [v.replace() for v in before.coords]
    first, *others = (_open_conditions(unit, marks) for unit in (before, *after))
    moving = {v for unit in (before, *after) for v, _, _ in unit.loops}
    alike = {k for k in first if all(k in again for again in others) and not uses_var(first[k][1], moving)}
    return next((c for found in (first, *others) for k, (c, _) in found.items() if k not in alike), None)


def moved_condition(before: Statement, after: Sequence[Statement], written: Collection[Var]) -> Expr | None:
    """A condition on memory of ``written`` that one program evaluates just before the block runs, and the other at an
    ``if`` further out."""
    for run in after:
        moved = (before.control ^ run.control).intersection(written)
        for condition in (*before.guards, *run.guards) if moved else ():
            if sharing((n for n in nodes_of(condition) if isinstance(n, BufferLoad)), moved):
                return condition
    return None


def _open_parts(unit: Statement) -> list[Expr]:
    """The conjuncts of the conditions of a statement that exact sets omit."""
    formula = Formula(Names())
    return [c for c in conjuncts(all_of(unit.guards)) if not Formula.takes(formula.require, c)]


def _open_conditions(unit: Statement, marks: Sequence[Var]) -> dict[Any, tuple[Expr, Expr]]:
    """The conditions of a statement that exact sets omit, by what is comparable: each with it in terms of ``marks``, which
    take the place of the coordinates' values."""
    one = {v: low for v, low, extent in unit.loops if is_const(extent, 1)}
    values = {mark: substitute(value, one) for mark, value in zip(marks, unit.values)}
    parts = [(c, in_terms_of(substitute(c, one), values)) for c in _open_parts(unit)]
    return {key(t): (c, t) for c, t in parts}
