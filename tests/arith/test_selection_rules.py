"""Whether a selection is associative and commutative, against brute force over more values than it samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tir.arith.pointwise import compile_expr
from tir.arith.selections import associativity_counterexample, is_independent_of_order
from tir.expr import EQ, GE, GT, LE, LT, NE, And, Call, CommReducer, Expr, Max, Min, Not, Or, Select, Var, const

LEAST, MOST = -(2**31), 2**31 - 1
X, Y = Var("x"), Var("y")
PAIRS = (Var("x0"), Var("x1"), Var("y0"), Var("y1"))
COMPARISONS = (EQ, NE, LT, LE, GT, GE)


def fault(results: tuple[Expr, ...], variables: tuple[Var, ...], starts: tuple[int, ...]) -> str | None:
    half = len(variables) // 2
    identity = tuple(const(s) for s in starts)
    return associativity_counterexample(CommReducer(variables[:half], variables[half:], results, identity))


def condition(r: Random, leaf: Callable[[], Expr], size: int) -> Expr:
    what = r.random()
    if size > 1 and what < 0.5:
        return r.choice([And, Or])(condition(r, leaf, size // 2), condition(r, leaf, size - size // 2))
    return Not(condition(r, leaf, size)) if what < 0.6 else leaf()


def comparison(r: Random) -> Expr:
    op, what, side = r.choice(COMPARISONS), r.random(), r.choice([X, Y])
    if what < 0.6:
        return op(*r.sample([X, Y], 2))
    if what < 0.8:
        return op(side, const(r.randint(-3, 5)))
    return op(X + r.randint(-2, 2), Y) if what < 0.9 else op(Min(X, Y), r.choice([side, Max(X, Y)]))


def order_is_free(join: Callable[[Any, Any], Any], start: Any, values: list[Any], apart: Callable[..., bool]) -> bool:
    """Of all values: in any grouping, in any order of two that are ``apart``, in parts that each begin with ``start``."""
    pairs = list(itertools.product(values, values))
    return (
        all(join(a, b) == join(b, a) for a, b in pairs if apart(a, b))
        and all(join(join(a, b), c) == join(a, join(b, c)) for a, b in pairs for c in values)
        and all(join(join(start, a), join(start, b)) == join(join(start, a), b) for a, b in pairs)
    )


@pytest.mark.parametrize("start", [LEAST, MOST, 0, 7, -7])
def test_selections_of_one_value(start):
    values = [v for v in {*range(-7, 9), start - 1, start, start + 1} if LEAST <= v <= MOST]
    seen = set()
    for seed in range(50):
        r = Random(f"{start} {seed}")
        asked = condition(r, lambda: comparison(r), r.randint(1, 3))
        chosen = Select(asked, X, Y) if seed % 2 else Call("if_then_else", (asked, X, Y), X.dtype)
        free = order_is_free(compile_expr(chosen, (X, Y)), start, values, lambda a, b: a != b)
        found = fault((chosen,), (X, Y), (start,))
        assert (found is None) == free, (chosen, found)
        seen.add(free)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("chosen", "start"),
    [
        (Select(And(GE(Y, const(-3)), LT(X, Y)), X, Y), 7),  # two values below -3 in either order
        (Select(Or(LE(Y, const(2)), LE(X, Y)), Y, X), MOST),
    ],
)
def test_a_selection_that_depends_on_the_order(chosen, start):
    assert fault((chosen,), (X, Y), (start,)) is not None


def lexicographic(r: Random) -> Expr:
    """A comparison of pairs: by one component, and by the other where that is equal; or something like it."""
    k = r.randint(0, 1)
    first, tie = (r.choice([LT, GT, LE, GE]) for _ in range(2))
    asked = Or(first(PAIRS[k], PAIRS[k + 2]), And(EQ(PAIRS[k], PAIRS[k + 2]), tie(PAIRS[1 - k], PAIRS[3 - k])))
    extra = r.choice(COMPARISONS)(*r.sample(PAIRS[k::2], 2))
    return asked if r.random() < 0.4 else r.choice([And, Or])(asked, extra)


@pytest.mark.parametrize("start", [(LEAST, -1), (MOST, 0), (0, -1), (0, 0), (LEAST, MOST)])
def test_selections_of_a_value_with_its_place(start):
    values = list(itertools.product([-2, -1, 0, 1, 2], repeat=2))
    seen = set()
    for seed in range(12):
        asked = lexicographic(Random(f"{start} {seed}"))
        results = (Select(asked, PAIRS[0], PAIRS[2]), Select(asked, PAIRS[1], PAIRS[3]))
        first, second = (compile_expr(e, PAIRS) for e in results)
        found = fault(results, PAIRS, start)
        seen.add(found is None)
        if found is None:  # else the sampled values prove it

            def join(a, b, first=first, second=second):
                return first(*a, *b), second(*a, *b)

            assert order_is_free(join, start, values, lambda a, b: a[0] != b[0] and a[1] != b[1]), asked
    assert seen == {True, False}


def test_what_only_computes_is_no_selection():
    assert fault((Min(X, Y),), (X, Y), (MOST,)) is None
    assert fault((X + Y,), (X, Y), (0,)) is None
    assert "cannot be proved" in (fault((Select(LT(X * 2, Y), X, Y),), (X, Y), (0,)) or "")


@pytest.mark.parametrize(("dtype", "value"), [("uint8", 0), ("uint8", 255), ("int8", -128), ("int8", 127)])
def test_the_least_and_the_greatest_value_are_tried(dtype, value):
    """Only this value is kept if it comes first."""
    x, y = Var("x", dtype), Var("y", dtype)
    chosen = Select(Or(EQ(x, const(value, dtype)), GT(x, y) if value <= 0 else LT(x, y)), x, y)
    start = const(value, dtype)
    assert associativity_counterexample(CommReducer((x,), (y,), (chosen,), (start,))) is not None


@pytest.mark.parametrize(("tie", "free"), [(LT, True), (EQ, False)])
def test_every_component_has_to_be_independent_of_the_order(tie, free):
    """The lesser value; of its places the lesser, or one of them."""
    x, i, y, j = PAIRS
    asked = Or(LT(x, y), And(EQ(x, y), tie(i, j) if tie is LT else EQ(i, i)))
    results = (Select(LT(x, y), x, y), Select(asked, i, j))
    assert is_independent_of_order(CommReducer((x, i), (y, j), results, (const(0), const(0)))) == free
