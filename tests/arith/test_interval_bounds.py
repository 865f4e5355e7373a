"""Bounds of operators on intervals: every small pair of intervals, closed or open to one side, against all values."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

import tir
from tir.arith import Analyzer, bounds, simplify
from tir.equal import structural_equal
from tir.expr import trunc_div

FAR = 40  # stands for an end that is not there
ENDS = [None, -3, -1, 0, 1, 3]
INTERVALS = [(a, b) for a in ENDS for b in ENDS if a is None or b is None or a <= b]


def values(interval) -> range:
    low, high = interval
    return range(-FAR if low is None else low, (FAR if high is None else high) + 1)


def trunc_mod(x: int, y: int) -> int:
    return x - trunc_div(x, y) * y


TIGHT: dict[str, tuple[Callable, Callable]] = {
    "plus": (bounds.plus, lambda x, y: x + y),
    "minimum": (bounds.minimum, min),
    "maximum": (bounds.maximum, max),
    "times": (bounds.times, lambda x, y: x * y),
    "floor_div": (bounds.floor_div, lambda x, y: x // y),
    "trunc_division": (bounds.trunc_division, trunc_div),
}
SOUND = {**TIGHT, "floor_mod": (bounds.floor_mod, lambda x, y: x % y), "trunc_modulo": (bounds.trunc_modulo, trunc_mod)}


def pairs(name: str):
    for a, b in itertools.product(INTERVALS, INTERVALS):
        if not ("div" in name or "mod" in name) or 0 not in values(b):
            yield a, b


@pytest.mark.parametrize("name", SOUND)
def test_every_value_is_within_the_bounds(name):
    bound, value = SOUND[name]
    for a, b in pairs(name):
        low, high = bound(a, b)
        found = {value(x, y) for x in values(a) for y in values(b)}
        assert (low is None or low <= min(found)) and (high is None or high >= max(found)), (a, b)


@pytest.mark.parametrize("name", TIGHT)
def test_closed_intervals_have_the_tightest_bounds(name):
    bound, value = TIGHT[name]
    for a, b in pairs(name):
        if None in (*a, *b) or (name == "trunc_division" and b[0] < 0):
            continue
        found = {value(x, y) for x in values(a) for y in values(b)}
        assert bound(a, b) == (min(found), max(found)), (a, b)


@pytest.mark.parametrize("name", ["plus", "minimum", "maximum", "floor_div", "trunc_division"])
def test_a_side_that_is_bounded_has_its_bound(name):
    """Where one interval is open, an end of the result is open only if the values have no bound there."""
    bound, value = TIGHT[name]
    for a, b in pairs(name):
        if None not in (*a, *b) or ("div" in name and (b[0] is None or b[0] < 0)):
            continue
        found = {value(x, y) for x in values(a) for y in values(b)}
        low, high = bound(a, b)
        assert (low == min(found)) if min(found) > -FAR // 4 else low is None, (a, b)
        assert (high == max(found)) if max(found) < FAR // 4 else high is None, (a, b)


@pytest.mark.parametrize("by", [-2, -1, 0, 1, 3])
def test_a_multiple_of_an_interval(by):
    for a in INTERVALS:
        if None not in a:
            assert bounds.scale(a, by) == (min(a[0] * by, a[1] * by), max(a[0] * by, a[1] * by))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_integers_made_from_floats_have_no_bounds(dtype):
    x = tir.Var("x", dtype)
    assert Analyzer().bound(tir.cast("int32", x)) == (None, None)


def test_squares_of_squares_stay_within_their_type():
    x = tir.Var("x", "int16")
    base = tir.Cast("int64", x)
    names = [tir.Var(f"s{n}", "int64") for n in range(64)]
    body: tir.Expr = names[-1]
    for n in reversed(range(64)):
        square = names[n - 1] if n else base
        body = tir.Let(names[n], square * square, body)
    assert structural_equal(simplify(body), body)  # a bound of 2 ** 64 digits would not end


def test_remainders_of_squares_of_squares_stay_within_their_type():
    analyzer, square = Analyzer(), tir.const(3, "int64")
    for n in range(64):
        name = tir.Var(f"s{n}", "int64")
        analyzer.bind(name, square)
        square = name * name
    assert all(rest < 2**63 for _, rest in analyzer.remainders.values())
