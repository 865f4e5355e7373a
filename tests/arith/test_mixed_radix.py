"""A value taken apart into digits, and put together again, is the value."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tir.arith import Analyzer
from tir.arith.linear import key, same
from tir.arith.pointwise import compile_expr
from tir.buffer import Range
from tir.expr import Expr, FloorDiv, FloorMod, Var, as_expr
from tir.visit import walk

BOUNDED = settings(derandomize=True, max_examples=200)
I, J, K, N, M = (Var(name) for name in "ijknm")
LOOPS = (I, J, K)


def digits(e: Expr, radices: list[int]) -> list[Expr]:
    """The digits of ``e``, the least significant last; the first is not bounded."""
    size, found = 1, []
    for radix in reversed(radices):
        found.insert(0, FloorDiv(FloorMod(e, as_expr(size * radix)), as_expr(size)))
        size *= radix
    return [FloorDiv(e, as_expr(size)), *found]


def joined(parts: list[Expr], radices: list[int]) -> Expr:
    total = parts[0]
    for part, radix in zip(parts[1:], radices):
        total = total * radix + part
    return total


def radices(r: Random) -> list[int]:
    return [r.choice([2, 3, 4, 5, 6, 7, 8, 12]) for _ in range(r.randint(1, 3))]


@BOUNDED
@given(st.integers(0, 2**32))
def test_digits_put_together_are_the_value(seed):
    """Digits as written and as simplified, of sums of loops; taken apart again in another radix, and again."""
    r = Random(seed)
    sizes = [r.choice([1, 2, 3, 4, 6, 8, 16]) for _ in LOOPS]
    ctx = Analyzer({v: Range(as_expr(0), as_expr(n)) for v, n in zip(LOOPS, sizes)})
    strides = [sizes[1] * sizes[2], sizes[2], 1] if r.random() < 0.5 else [r.randint(1, 30) for _ in LOOPS]
    flat = sum((v * s for v, s in zip(LOOPS, strides)), as_expr(r.randint(-3, 3)))
    e = flat
    for _ in range(r.randint(1, 3)):
        chosen = radices(r)
        early = r.random() < 0.7  # digits may have been simplified where they were made
        e = joined([ctx.simplify(d) if early else d for d in digits(e, chosen)], chosen)
    want, made = ctx.simplify(flat), ctx.simplify(e)
    assert key(made) == key(want), (e, made, want)
    assert ctx.can_prove_equal(e, flat)
    value, plain = compile_expr(e, LOOPS), compile_expr(flat, LOOPS)
    for point in itertools.product(*(range(n) for n in sizes)):
        assert value(*point) == plain(*point)


@BOUNDED
@given(st.integers(0, 2**32))
def test_some_digits_of_a_value_keep_it(seed):
    """Digits with weights of their own, in any order: equal at every point, and no more divisions than before."""
    r = Random(seed)
    sizes = [r.choice([2, 3, 4, 8]) for _ in LOOPS]
    ctx = Analyzer({v: Range(as_expr(0), as_expr(n)) for v, n in zip(LOOPS, sizes)})
    flat = sum((v * r.choice([1, 3, 4, 12, 24]) for v in LOOPS), as_expr(r.randint(-3, 3)))
    parts = digits(flat, radices(r)) + digits(flat + r.randint(-2, 2), radices(r)) + list(LOOPS)
    e = sum((ctx.simplify(r.choice(parts)) * r.choice([-12, -4, -1, 1, 2, 4, 8, 12]) for _ in range(4)), as_expr(0))
    made = ctx.simplify(e)
    assert ctx.simplify(made) is made
    assert _divisions(made) <= _divisions(e)
    value, simple = compile_expr(e, LOOPS), compile_expr(made, LOOPS)
    for point in itertools.product(*(range(n) for n in sizes)):
        assert value(*point) == simple(*point), (point, e, made)


def _divisions(e: Expr) -> int:
    return sum(isinstance(n, (FloorDiv, FloorMod)) for n in walk(e))


F = I * N * M + J * M + K
SYMBOLIC = [
    (I // N * N + I % N, I),
    (I // (N + 1) * (N + 1) + I % (N + 1), I),
    (I // (N * 4) * (N * 4) + I % (N * 4) // N * N + I % N, I),
    (I // (N * M) * (N * M) + I % (N * M) // M * M + I % M, I),
    (I // (N * M) * N + I % (N * M) // M, I // M),
    ((J * 8 + I % 8) // M * M + (J * 8 + I % 8) % M, J * 8 + I % 8),
    (F // (N * M) * (N * M) + F % (N * M) // M * M + F % M, F),
    (F // (M * 4) * (M * 4) + F % (M * 4) // M * M + F % M, F),
    (I - I % N, I // N * N),
    ((I - I % N) % N, as_expr(0)),
    ((I - I % N) // N, I // N),
]


@pytest.mark.parametrize("number", range(len(SYMBOLIC)))
def test_digits_of_symbolic_sizes(number):
    e, want = SYMBOLIC[number]
    for known in ({}, {J: Range(as_expr(0), N), K: Range(as_expr(0), M)}):
        ctx = Analyzer(known)
        assert key(ctx.simplify(e)) == key(ctx.simplify(want)), ctx.simplify(e)
        variables = (I, J, K, N, M)
        value, simple = compile_expr(e, variables), compile_expr(ctx.simplify(e), variables)
        for point in itertools.product((0, 1, 5), (0, 1), (0, 1), (2, 3), (2, 5)):
            assert value(*point) == simple(*point)


def test_the_inner_remainder_makes_no_difference():
    for e, want in (
        ((I % 12 * 3 + J) % 4, (I * 3 + J) % 4),
        ((I % (N * 3) + J) % N, (I + J) % N),
        ((I % 24 // 2 + J) % 4, (I // 2 + J) % 4),
        ((I % 12 * 3 + J) % 8, (I % 12 * 3 + J) % 8),
        ((I % 2 + (I + 1) % 2), as_expr(1)),
        ((I % 5 + (4 - I) % 5), as_expr(4)),
        ((I - J) % 2, (I + J) % 2),
    ):
        assert same(Analyzer().simplify(e), want), Analyzer().simplify(e)
