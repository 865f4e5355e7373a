"""The order question: does every dependence of the program before hold in the order after?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...expr import Var
from ...poly import Relation
from .relations import AccessRelation, Context, StatementRelations, conflicting_pairs, same_element
from .statements import Access, Statement
from .verdict import Violation
from .witness import why_unknown, witness


def compare(sides: Sequence[StatementRelations], context: Context, nodes: tuple[Any, ...]) -> Violation | None:
    ran = {id(s): s.before.domain() for s in sides}
    for s in sides:
        for t in sides:
            ordered: Relation | None = None
            # of a block that is repeated it has yet to be shown that its runs make the same values
            if _order_kept(s, t) and not (s.pure or t.pure):
                continue
            for a, b in conflicting_pairs(s, t):
                if s is t and s.unit.commutes and _is_target(s.unit, a.access, b.access):
                    continue
                if s is t and _one_element_each(s, a, b):
                    continue
                if ordered is None:
                    earlier, later = _until_parted(s, t, 0)
                    ordered = earlier.before(later)
                    if ordered.is_empty():
                        break
                depend = same_element(s, a, t, b).intersect(ordered)
                depend = depend.domain_in(ran[id(s)]).range_in(ran[id(t)])
                if s is t and s.pure:
                    depend = depend.different()
                elif t.pure and not a.access.write:
                    # what a repeat overwrites with the value that the reader has always seen is no change
                    depend = _violated_flow(depend.reverse(), t, s, 0).reverse()
                if depend.is_empty():
                    continue
                if a.access.write and not b.access.write:
                    broken = _violated_flow(depend, s, t)
                else:
                    earlier, later = _until_parted(s, t, 1)
                    broken = depend.intersect(earlier.after(later))
                broken = context.restrict(broken)
                if not broken.is_empty():
                    rule = _RULES[a.access.write, b.access.write]
                    reason = why_unknown([(s.unit, a.access), (t.unit, b.access)])
                    if reason is not None:
                        rule = (
                            f"cannot prove that the step keeps the program's meaning, because {reason}: "
                            + rule.replace("would", "may", 1)
                        )
                    late = " first" if b.access.write and not a.access.write else ""
                    proof = witness(broken, s, a, t, b, ", which would now run later", late)
                    places = nodes or (*s.places[:1], *(t.places[:1] if t is not s else ()))
                    return Violation(rule, proof, places)
    return None


_RULES = {
    (True, False): "a consumer would read an element not yet written",
    (False, True): "an element would be overwritten before it is read",
    (True, True): "two writes of one element would change their order",
}


def _order_kept(s: StatementRelations, t: StatementRelations) -> bool:
    """Whether runs of ``s`` and ``t``, whose loops the step leaves alone, are ordered as before: by the same loops that
    they share, then by which statement is first."""
    if not (s.kept and t.kept):
        return False
    return s is t or same_order(s.moments, t.moments)


def same_order(s: tuple[list[Any], list[Any]], t: tuple[list[Any], list[Any]]) -> bool:
    """Whether one run each, told by its times before and after, is ordered to the other by the same loops as before."""
    before, after = (_shared_order(s[p][0], t[p][0]) for p in (0, 1))
    if before is None or after is None or before[1] != after[1] or len(before[0]) != len(after[0]):
        return False
    return all(x is y for x, y in zip(before[0], after[0]))


def _shared_order(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[list[Var], bool] | None:
    """The loops two times share, and whether the first's statement comes first where they part; None where they do not."""
    shared: list[Var] = []
    for x, y in zip(a, b):
        if isinstance(x, Var) or isinstance(y, Var):
            if x is not y:
                return None
            shared.append(x)
        elif x != y:
            return shared, x < y
    return None


def _until_parted(s: StatementRelations, t: StatementRelations, program: int) -> tuple[Relation, Relation]:
    """When ``s`` and ``t`` run in a program (0 before, 1 after), just as far as needed to order them: loops that only one
    of them is in say nothing of that, and exact sets of many loops are slow."""
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
    """How many entries of two times decide which is first, whatever the loops: up to where their statements part."""
    for position, (x, y) in enumerate(zip(a, b)):
        if isinstance(x, Var) or isinstance(y, Var):
            if x is not y:
                break
        elif x != y:
            return position + 1
    return max(len(a), len(b))


def _violated_flow(depend: Relation, s: StatementRelations, t: StatementRelations, program: int = 1) -> Relation:
    """Flow pairs whose consumer has a run with no run of the producer before it, in a program (0 before, 1 after)."""
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
    written = {w.buffer.data for w in unit.writes()}
    return a.buffer.data in written and b.buffer.data in written


def _one_element_each(s: StatementRelations, a: AccessRelation, b: AccessRelation) -> bool:
    """Whether instances plainly keep to elements of their own: indices are all the coordinates, once each."""
    coords = {id(v) for v in s.unit.coords}
    for access in (a.access, b.access):
        if access.indices is None or len(access.indices) < len(coords):
            return False
    if a.access.buffer is not b.access.buffer:
        return False
    same = [
        x
        for x, y in zip(a.access.indices or (), b.access.indices or ())
        if isinstance(x, Var) and x is y and id(x) in coords
    ]
    return len({id(v) for v in same}) == len(coords)
