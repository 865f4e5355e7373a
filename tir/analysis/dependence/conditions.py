"""Non-affine conditions: exact sets omit them, so both programs must evaluate the same ones before each instance."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ...expr import BufferLoad, Expr, FloatImm, IntImm, StringImm, Var, all_of, conjuncts
from ...poly import Formula, IntegerSet, Names, NotAffine, Relation
from ...visit import walk
from .relations import add_affine_loops
from .statements import Statement

Question = tuple[Any, Relation]  # its form, and the numbers in it that each instance puts there


def other_condition(
    before: Statement, after: Sequence[Statement], names: Names, dims: Sequence[str], instances: IntegerSet
) -> Expr | None:
    """A condition under which one of ``instances`` runs in one program but possibly not in the other; None if both
    programs evaluate the same conditions. Raises ``Undecided``.

    Two conditions are the same if they have the same form, and each instance supplies the same numbers and elements.
    """
    if not any(_open_parts(unit) for unit in (before, *after)):
        return None
    asked = list(_questions(before, names, dims))
    for run in after:
        again = list(_questions(run, names, dims))
        for mine, others in ((asked, again), (again, asked)):
            for condition, question in mine:
                if not any(_same(question, other, instances) for _, other in others):
                    return condition
    return None


def moved_condition(before: Statement, after: Sequence[Statement], written: Collection[Var]) -> Expr | None:
    """A condition on memory of ``written`` that one program evaluates just before the block runs, and the other at an
    ``if`` further out."""
    for run in after:
        moved = (before.asked ^ run.asked).intersection(written)
        for condition in (*before.guards, *run.guards) if moved else ():
            if any(isinstance(n, BufferLoad) and n.buffer.data in moved for n in walk(condition)):
                return condition
    return None


def _open_parts(unit: Statement) -> list[Expr]:
    """The conjuncts of the conditions of a statement that exact sets omit."""
    formula = Formula(Names())
    return [c for c in conjuncts(all_of(unit.guards)) if not _requires(formula, c)]


def _requires(formula: Formula, condition: Expr) -> bool:
    try:
        formula.require(condition)
    except NotAffine:
        return False
    return True


def _questions(unit: Statement, names: Names, dims: Sequence[str]) -> Iterator[tuple[Expr, Question]]:
    for condition in _open_parts(unit):
        formula = Formula(names)
        add_affine_loops(formula, unit.loops)
        for name, value in zip(dims, unit.values):
            formula.equal(name, value)
        numbers: list[str] = []
        form = _form(condition, formula, numbers)
        loops = [names.of(v) for v, _, _ in unit.loops]
        yield condition, (form, formula.map(dims, numbers, [*loops, *numbers]))


def _form(e: Any, formula: Formula, numbers: list[str]) -> Any:
    """``e`` with its affine parts abstracted into ``numbers``."""
    if isinstance(e, (StringImm, FloatImm)):
        return e.value
    if isinstance(e, Expr) and e.dtype.is_int and e.dtype.lanes == 1 and not isinstance(e, BufferLoad):
        number = formula.names.fresh("q")
        try:
            formula.equal(number, e)
        except NotAffine:
            pass
        else:
            numbers.append(number)
            return len(numbers)
    if isinstance(e, BufferLoad):
        return (e.buffer, *(_form(i, formula, numbers) for i in e.indices))
    if isinstance(e, (Var, IntImm)) or not isinstance(e, Expr):
        return e
    return (type(e), getattr(e, "op", ""), e.dtype, *(_form(c, formula, numbers) for c in e.children()))


def _same(a: Question, b: Question, instances: IntegerSet) -> bool:
    if not _alike(a[0], b[0]):
        return False
    return a[1].domain_in(instances).is_equal(b[1].domain_in(instances))


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    return a is b or (not isinstance(a, Expr) and not isinstance(b, Expr) and a == b)
