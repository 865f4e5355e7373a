"""Linear constraints over named integers: conjunctions of them, and alternatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """``sum(terms) + constant >= 0``, or ``= 0`` where ``equality``."""

    terms: Mapping[str, int]
    constant: int
    equality: bool = False


Alternatives = list[list[Row]]  # one of several conjunctions holds
Constraints = Sequence["Row | Alternatives"]  # all of them hold
Sum = tuple[dict[str, int], int]  # multiples of names, and a number


def plus(a: Sum, b: Sum, times: int = 1) -> Sum:
    """a + times * b."""
    terms = dict(a[0])
    for name, c in b[0].items():
        total = terms.get(name, 0) + times * c
        if total:
            terms[name] = total
        else:
            terms.pop(name, None)
    return terms, a[1] + times * b[1]


def both(a: Alternatives, b: Alternatives) -> Alternatives:
    """One of ``a`` and one of ``b``."""
    return [[*x, *y] for x in a for y in b]


def without_given(parts: Constraints, names: Sequence[str]) -> tuple[list[Row | Alternatives], list[str]]:
    """The parts after eliminating those of ``names`` that an equality determines, and the remaining names. Those in
    alternatives stay."""
    found = [part for part in parts if isinstance(part, Row)]
    choices = [part for part in parts if not isinstance(part, Row)]
    chosen = {name for choice in choices for case in choice for row in case for name in row.terms}
    left: list[str] = []
    for name in names:
        given = next((r for r in found if r.equality and abs(r.terms.get(name, 0)) == 1), None)
        if given is None or name in chosen:
            if name in chosen or any(name in r.terms for r in found):
                left.append(name)
            continue
        found = [_without(name, row, given) for row in found if row is not given]
    return [*found, *choices], left


def _without(name: str, row: Row, given: Row) -> Row:
    """``row`` with ``name`` replaced by what the equality ``given`` says of it."""
    c = row.terms.get(name)
    if c is None:
        return row
    times = -c * given.terms[name]
    return Row(*plus((dict(row.terms), row.constant), (dict(given.terms), given.constant), times), row.equality)
