"""Determinants of small matrices, and inverses."""

from __future__ import annotations

from itertools import combinations

from ..graph import Value
from .making import Making, Unsupported


def inverse(c: Making, x: Value) -> Value:
    """The inverses of matrices; NaN for those that are singular."""
    return c.op("solve", x, c.op("broadcast_to", c.op("eye", *x.shape[-2:], 0, str(x.dtype)), x.shape))


def determinant(c: Making, x: Value) -> Value:
    """The determinant of matrices of up to four rows, by minors of the last rows."""
    rank, size = len(x.shape), x.shape[-1]
    if not isinstance(size, int) or not 1 <= size <= 4 or x.shape[-2] != size:
        raise Unsupported(f"determinants of matrices {list(x.shape[-2:])}; known are those of up to 4 rows")
    rows = [c.one_of(x, rank - 2, n) for n in range(size)]
    elements = [[c.one_of(r, rank - 2, n) for n in range(size)] for r in rows]
    minors: dict[tuple[int, ...], Value] = {(n,): elements[-1][n] for n in range(size)}
    for count in range(2, size + 1):
        above = elements[size - count]
        larger: dict[tuple[int, ...], Value] = {}
        for columns in combinations(range(size), count):
            terms = [c.op("multiply", above[n], minors[tuple(k for k in columns if k != n)]) for n in columns]
            made = terms[0]
            for number, term in enumerate(terms[1:]):
                made = c.op("add" if number % 2 else "subtract", made, term)
            larger[columns] = made
        minors = larger
    return minors[tuple(range(size))]
