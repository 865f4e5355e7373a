"""Conjunctions of linear constraints over named integers, made into isl's relations constraint by constraint.

isl also reads text, which takes several times as long.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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


def relation(
    rows: Sequence[Row], params: Sequence[str], dims: Sequence[str], out: Sequence[str | int], hidden: Collection[str]
) -> Any:
    """The relation from ``dims`` to ``out`` (names or numbers), ``hidden`` names being quantified away."""
    import islpy as isl

    kinds = isl.dim_type
    place: dict[str, tuple[Any, int]] = {name: (kinds.param, n) for n, name in enumerate(params)}
    place.update((name, (kinds.in_, n)) for n, name in enumerate(dims))
    left = [name for name in dict.fromkeys(hidden) if name not in place]
    all_rows = list(rows)
    for n, result in enumerate(out):
        if isinstance(result, str) and result in left:
            left.remove(result)
            place[result] = (kinds.out, n)
            continue
        name = f" {n}"  # no variable has a blank in its name
        place[name] = (kinds.out, n)
        terms = {name: 1, result: -1} if isinstance(result, str) else {name: 1}
        all_rows.append(Row(terms, 0 if isinstance(result, str) else -result, True))
    all_rows, left = _without(all_rows, left)
    place.update((name, (kinds.out, len(out) + n)) for n, name in enumerate(left))
    space = isl.Space.alloc(isl.DEFAULT_CONTEXT, len(params), len(dims), len(out) + len(left))
    for n, name in enumerate(params):
        space = space.set_dim_name(kinds.param, n, name)
    return _filled(isl, isl.BasicMap, space, all_rows, place).project_out(kinds.out, len(out), len(left)).to_map()


def points(rows: Sequence[Row], params: Sequence[str], dims: Sequence[str], hidden: Collection[str]) -> Any:
    """The set of ``dims``, ``hidden`` names being quantified away."""
    import islpy as isl

    kinds = isl.dim_type
    place: dict[str, tuple[Any, int]] = {name: (kinds.param, n) for n, name in enumerate(params)}
    place.update((name, (kinds.set, n)) for n, name in enumerate(dims))
    all_rows, left = _without(rows, [name for name in dict.fromkeys(hidden) if name not in place])
    place.update((name, (kinds.set, len(dims) + n)) for n, name in enumerate(left))
    space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, len(params), len(dims) + len(left))
    for n, name in enumerate(params):
        space = space.set_dim_name(kinds.param, n, name)
    return _filled(isl, isl.BasicSet, space, all_rows, place).project_out(kinds.set, len(dims), len(left)).to_set()


def _filled(isl: Any, kind: Any, space: Any, rows: Sequence[Row], place: Mapping[str, tuple[Any, int]]) -> Any:
    made = kind.universe(space)
    local = isl.LocalSpace.from_space(space)
    for row in rows:
        start = isl.Constraint.alloc_equality if row.equality else isl.Constraint.alloc_inequality
        constraint = start(local)
        for name, c in row.terms.items():
            constraint = constraint.set_coefficient_val(*place[name], c)
        made = made.add_constraint(constraint.set_constant_val(row.constant) if row.constant else constraint)
    return made


def _without(rows: Sequence[Row], names: Sequence[str]) -> tuple[list[Row], list[str]]:
    """The rows without those of ``names`` that an equality gives the value of, and the names that stay."""
    left = []
    found = list(rows)
    for name in names:
        given = next((r for r in found if r.equality and abs(r.terms.get(name, 0)) == 1), None)
        if given is None:
            if any(name in r.terms for r in found):
                left.append(name)
            continue
        sign = given.terms[name]
        swapped = []
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
