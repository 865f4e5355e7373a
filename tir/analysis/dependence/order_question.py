"""The order question: is every dependence of the old program preserved by the new order?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...aliases import sharing
from ...equal import structural_equal
from ...expr import Expr, Var
from ...node import cached_property
from ...poly import Relation
from ...visit import vars_in
from .affine import AffineForms, in_one_iteration, index_determines_iteration
from .relations import (
    AccessRelation,
    Context,
    StatementRelations,
    by_loops,
    conflicting_pairs,
    same_element,
    why_unknown,
    witness,
)
from .statements import Access, Statement
from .tiers import NOT_SHOWN, PROVED, Question, Refuted, Tier, Unknown, Verdict, tier

Pair = tuple[AccessRelation, AccessRelation]


def compare(sides: Sequence[StatementRelations], context: Context, nodes: tuple[Any, ...]) -> Verdict:
    """Whether every dependence among ``sides`` in the old order is preserved by the new one."""
    for source in sides:
        for sink in sides:
            verdict = StatementOrder(source, sink, context, nodes).answer()
            if not verdict.is_proved:
                return verdict
    return PROVED


@dataclass(frozen=True, eq=False)
class StatementOrder(Question):
    """Dependences from instances of ``source`` to later instances of ``sink`` are preserved."""

    source: StatementRelations
    sink: StatementRelations
    context: Context
    nodes: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.source.unit.name or 'a statement'} stays before {self.sink.unit.name or 'a statement'}"

    @tier(Tier.UNCHANGED)
    def unchanged(self) -> Verdict:
        source, sink = self.source, self.sink
        # for a repeated block it is still to be shown that it is idempotent
        if not (source.kept and sink.kept) or source.pure or sink.pure:
            return NOT_SHOWN
        return PROVED if source is sink or same_order(source.moments, sink.moments) else NOT_SHOWN

    @tier(Tier.SIMPLE_BLOCK)
    def by_position(self) -> Verdict:
        """All instances of ``sink`` were before those of ``source``."""
        moments = self.source.moments[0], self.sink.moments[0]
        never = all(shared_order(s, t) == ([], False) for s in moments[0] for t in moments[1])
        return PROVED if never and all(moments) else NOT_SHOWN

    @tier(Tier.PAIRS)
    def by_pairs(self) -> Verdict:
        by_boxes: dict[Pair, list[Pair]] = {}
        for first, second in conflicting_pairs(self.source, self.sink):
            by_boxes.setdefault((self.source.boxes[first], self.sink.boxes[second]), []).append((first, second))
        for boxes, pairs in by_boxes.items():
            if len(pairs) > 1 and DependenceKept(self, *boxes).answer().is_proved:
                continue  # what is kept for all elements of boxes is kept for each access
            for pair in pairs:
                verdict = DependenceKept(self, *pair).answer()
                if not verdict.is_proved:
                    return verdict
        return PROVED

    @cached_property
    def ordered(self) -> Relation:
        """The pairs of instances of ``source`` and ``sink`` in this order in the old program."""
        earlier, later = _until_parted(self.source, self.sink, 0)
        return earlier.before(later).domain_in(self.source.before.domain()).range_in(self.sink.before.domain())

    @property
    def same(self) -> bool:
        return self.source is self.sink


@dataclass(frozen=True, eq=False)
class DependenceKept(Question):
    """For all (i, j) with i before j in the old schedule that access the same element by ``first`` and ``second``:
    i is before j in the new schedule, or (a read) some other write of the element is."""

    statements: StatementOrder
    first: AccessRelation
    second: AccessRelation

    def __str__(self) -> str:
        kinds = ["write" if a.access.write else "read" for a in (self.first, self.second)]
        return f"{kinds[0]} before {kinds[1]} of `{self.first.access.buffer.name}`: {self.statements}"

    @tier(Tier.REDUCTION)
    def by_commuting(self) -> Verdict:
        unit = self.statements.source.unit
        both = self.first.access, self.second.access
        return PROVED if self.statements.same and unit.commutes and _is_target(unit, *both) else NOT_SHOWN

    @tier(Tier.AFFINE)
    def by_coordinates(self) -> Verdict:
        source, both = self.statements.source, (self.first.access, self.second.access)
        kept = _one_element_each(source.unit, *both) if self.statements.same else self._is_local(*both)
        return PROVED if kept else NOT_SHOWN

    def _is_local(self, first: Access, second: Access) -> bool:
        """Whether after the step an element is accessed by both in one iteration only of each loop that they share, ``first``
        before ``second`` there."""
        source, sink = self.statements.source, self.statements.sink
        if source.run is None or sink.run is None:
            return False
        order = shared_order(source.run.time, sink.run.time)
        if order is None or not order[1]:
            return False
        runs, known = (source.run, sink.run), self.statements.context.local
        places = [(a.buffer, a.indices, a.loops, r.loops, r.coords, r.values) for r, a in zip(runs, (first, second))]
        key = (*places, *order[0])  # the init and the body of a block are in the same loops
        if key not in known:
            s, t = (AffineForms(by_loops(run), ()) for run in runs)
            known[key] = in_one_iteration(s, first, t, second, {*order[0]})
        return known[key]

    @tier(Tier.ITERATOR_MAP)
    def by_iterator_map(self) -> Verdict:
        """Also of elements at products of symbolic sizes, which sets do not take."""
        if not self.statements.same:
            return NOT_SHOWN
        unit = by_loops(self.statements.source.unit)
        forms, used = AffineForms(unit, unit.written), vars_in(*self.statements.source.unit.values)
        pair = forms, self.first.access, forms, self.second.access
        return PROVED if all(index_determines_iteration(*pair, v) for v in unit.coords if v in used) else NOT_SHOWN

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        statements = self.statements
        if statements.ordered.is_empty():
            return PROVED
        broken = statements.context.restrict(self._broken())
        if broken.is_empty():
            return PROVED
        return self._against(broken)

    def _broken(self) -> Relation:
        """The dependent pairs of instances whose order is not preserved."""
        source, sink = self.statements.source, self.statements.sink
        reads = not self.first.access.write, not self.second.access.write
        depend = same_element(self.first, self.second).intersect(self.statements.ordered)
        if source is sink and source.pure:
            depend = depend.different()
        elif sink.pure and reads[0]:
            # a repeated write of the value that the reader has always seen is not a change
            depend = _violated_flow(depend.reverse(), sink, source, 0).reverse()
        if depend.is_empty():
            return depend
        if not reads[0] and reads[1]:
            return _violated_flow(depend, source, sink)
        earlier, later = _until_parted(source, sink, 1)
        return depend.intersect(earlier.after(later))

    def _against(self, broken: Relation) -> Verdict:
        source, sink = self.statements.source, self.statements.sink
        first, second = self.first.access, self.second.access
        late = " first" if second.write and not first.write else ""
        proof = witness(broken, source, self.first, sink, self.second, ", which would now run later", late)
        nodes = self.statements.nodes or (*source.places[:1], *(sink.places[:1] if sink is not source else ()))
        reason = why_unknown([(source.unit, first), (sink.unit, second)])
        what = _BROKEN[first.write, second.write]
        if reason is None:
            return Refuted(what.format("would"), proof, nodes)
        claim = "cannot prove that the step keeps the program's meaning"
        return Unknown(f"{claim}, because {reason}: {what.format('may')}", proof, nodes)


def is_equal(a: Expr, b: Expr) -> bool:
    """Whether two expressions are the same."""
    return a is b or structural_equal(a, b)


_BROKEN = {
    (True, False): "a consumer {} read an element not yet written",
    (False, True): "an element {} be overwritten before it is read",
    (True, True): "two writes of one element {} change their order",
}


def same_order(s: tuple[list[Any], list[Any]], t: tuple[list[Any], list[Any]]) -> bool:
    """Whether two statements, given by their timestamps before and after, are ordered by the same loops as before."""
    before, after = (shared_order(s[p][0], t[p][0]) for p in (0, 1))
    if before is None or after is None or before[1] != after[1] or len(before[0]) != len(after[0]):
        return False
    return all(x is y for x, y in zip(before[0], after[0]))


def shared_order(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[list[Var], bool] | None:
    """The common loops of two timestamps, and whether the first is before the second where they diverge; None if they
    do not."""
    shared: list[Var] = []
    for x, y in zip(a, b):
        if type(x) is Var or type(y) is Var:
            if x is not y:
                return None
            shared.append(x)
        elif x != y:
            return shared, x < y
    return None


def _until_parted(s: StatementRelations, t: StatementRelations, program: int) -> tuple[Relation, Relation]:
    """Timestamps of both statements (0: old program, 1: new), cut after the first dimension that can order them; the
    rest only slows isl down."""
    both = [(s.before, t.before), (s.after, t.after)][program]
    depth = 0
    for a in s.moments[program]:
        for b in t.moments[program]:
            depth = max(depth, _parting(a, b))
    if not depth:
        return both
    first, second = (m.prefix(depth) if depth < m.target_rank else m for m in both)
    return first, second


def _parting(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    """How many entries of two timestamps can order them, whatever the loops: up to where their statements diverge."""
    for position, (x, y) in enumerate(zip(a, b)):
        if isinstance(x, Var) or isinstance(y, Var):
            if x is not y:
                break
        elif x != y:
            return position + 1
    return max(len(a), len(b))


def _violated_flow(depend: Relation, s: StatementRelations, t: StatementRelations, program: int = 1) -> Relation:
    """Flow dependences whose sink has an instance with no instance of the source before it (0: old program, 1: new)."""
    producer, consumer = _until_parted(s, t, program)
    first, second = (s.after, t.after) if program else (s.before, t.before)
    if first.is_single_valued() and second.is_single_valued():
        late = depend.intersect(producer.not_before(consumer))
        never = depend.range_in(second.domain()).domain_not_in(first.domain())
        return late.union(never)
    moments = depend.then(consumer)
    unmet = moments.subtract(producer.before(Relation.identity(consumer.target_rank)))
    return depend.intersect(unmet.then(consumer.reverse()))


def _is_target(unit: Statement, a: Access, b: Access) -> bool:
    return len(sharing([a, b], unit.written)) == 2


def _one_element_each(unit: Statement, first: Access, second: Access) -> bool:
    """Whether each instance has its own elements: the indices of both accesses are all the coordinates, once each."""
    coords = {id(v) for v in unit.coords}
    if any(a.indices is None or len(a.indices) < len(coords) for a in (first, second)):
        return False
    if first.buffer is not second.buffer:
        return False
    pairs = zip(first.indices or (), second.indices or ())
    same = [x for x, y in pairs if isinstance(x, Var) and x is y and id(x) in coords]
    return len({id(v) for v in same}) == len(coords)
