"""Comparisons have one form, whichever way they are written."""

from __future__ import annotations

import random

import pytest

from tir.arith import Analyzer
from tir.arith.comparisons import MIRRORED, OPPOSITE
from tir.arith.linear import key
from tir.expr import EQ, GE, GT, LE, LT, NE, Expr, Not, Var, const

VARIABLES = [Var(name) for name in "xyz"]
SHIFTED = {LT: (LE, -1), GE: (GT, -1), LE: (LT, 1), GT: (GE, 1)}  # a < b is a <= b - 1


def side(rng: random.Random) -> Expr:
    e: Expr = const(rng.randrange(-9, 10))
    for _ in range(rng.randrange(4)):
        v, c = rng.choice(VARIABLES), rng.choice([-6, -4, -1, 1, 1, 2, 3])
        e = e + rng.choice([v, v // 4, v % 4]) * c
    return e


@pytest.mark.parametrize("seed", range(60))
def test_a_comparison_has_one_form(seed):
    rng = random.Random(f"comparison {seed}")
    a, b, more = side(rng), side(rng), side(rng)
    kind = rng.choice([LT, LE, GT, GE, EQ, NE])
    other, shift = SHIFTED.get(kind, (kind, 0))
    ways = [
        kind(a, b), MIRRORED[kind](b, a), Not(OPPOSITE[kind](a, b)), kind(a - b, const(0)), kind(const(0), b - a),
        kind(a + more, b + more), kind(a * 3, b * 3), MIRRORED[kind](a * -2, b * -2), other(a, b + shift),
    ]  # fmt: skip
    forms = [Analyzer().simplify(way) for way in ways]
    assert {key(form) for form in forms} == {key(forms[0])}, dict(zip(ways, forms))
    assert all(Analyzer().simplify(form) is form for form in forms)
