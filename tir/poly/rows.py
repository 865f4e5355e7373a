"""Conjunctions of linear constraints over named integers.

isl also reads text, which takes several times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """``sum(terms) + constant >= 0``, or ``= 0`` where ``equality``."""

    terms: Mapping[str, int]
    constant: int
    equality: bool = False

    def __str__(self) -> str:
        total = " + ".join([*(f"({c} * {name})" for name, c in self.terms.items()), f"({self.constant})"])
        return f"{total} {'=' if self.equality else '>='} 0"


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


def without_given(rows: Sequence[Row], names: Sequence[str]) -> tuple[list[Row], list[str]]:
    """The rows after eliminating those of ``names`` that an equality determines, and the remaining names."""
    left: list[str] = []
    found = list(rows)
    for name in names:
        given = next((r for r in found if r.equality and abs(r.terms.get(name, 0)) == 1), None)
        if given is None:
            if any(name in r.terms for r in found):
                left.append(name)
            continue
        sign = given.terms[name]
        swapped: list[Row] = []
        for row in found:
            c = row.terms.get(name)
            if row is given:
                continue
            if c is not None:
                terms, constant = plus((dict(row.terms), row.constant), (dict(given.terms), given.constant), -c * sign)
                row = Row(terms, constant, row.equality)
            swapped.append(row)
        found = swapped
    return found, left
