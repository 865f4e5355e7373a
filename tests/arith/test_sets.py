"""Conditions as exact integer sets, compared point by point."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.set_points import contains
from tests.set_points import points as points_of
from tir.arith import Analyzer
from tir.arith.pointwise import compile_expr
from tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Select,
    Var,
    cast,
    const,
)
from tir.op import call
from tir.poly import Formula, Names, NotAffine

I, J, P = Var("i"), Var("j"), Var("p")
SPAN = range(-4, 5)


leaves = st.sampled_from([I, J, P]) | st.integers(-3, 3).map(const)
divisors = st.sampled_from([-3, -2, 1, 2, 3, 4]).map(const)
COMPARISONS = (EQ, NE, LT, LE, GT, GE)


def _grow(inner):
    pair = st.tuples(inner, inner)
    kinds = st.sampled_from([FloorDiv, FloorMod, Div, Mod])
    test = st.tuples(st.sampled_from(COMPARISONS), inner, inner).map(lambda p: p[0](p[1], p[2]))
    return st.one_of(
        pair.map(lambda p: p[0] + p[1]),
        pair.map(lambda p: p[0] - p[1]),
        st.tuples(inner, st.integers(-3, 3)).map(lambda p: p[0] * p[1]),
        st.tuples(kinds, inner, divisors).map(lambda p: p[0](p[1], p[2])),
        st.tuples(st.sampled_from([Min, Max]), inner, inner).map(lambda p: p[0](p[1], p[2])),
        st.tuples(test, inner, inner).map(lambda p: Select(*p)),
        test.map(lambda t: cast("int32", t)),
    )


sums = st.recursive(leaves, _grow, max_leaves=5)
comparisons = st.tuples(st.sampled_from(COMPARISONS), sums, sums).map(lambda p: p[0](p[1], p[2]))
conditions = st.recursive(
    comparisons,
    lambda c: st.one_of(st.tuples(st.sampled_from([And, Or]), c, c).map(lambda p: p[0](p[1], p[2])), c.map(Not)),
    max_leaves=3,
)


@settings(max_examples=50)
@given(conditions, sums)
def test_a_formula_holds_at_the_points_where_its_conditions_do(condition, value):
    names, out = Names(), Var("o")
    formula = Formula(names)
    formula.within(I, const(-4), const(9))
    formula.within(J, P - 2, const(4))
    formula.require(condition)
    formula.equal(formula.var(out), value)
    dims, result = [names.of(I), names.of(J)], names.of(out)
    points, relation = formula.set([*dims, result]), formula.map(dims, [result, "2", names.of(I)], [result])
    holds, of = compile_expr(condition, (I, J, P)), compile_expr(value, (I, J, P))
    for i, j, p in itertools.product(SPAN, SPAN, (-1, 2)):
        inside = p - 2 <= j < p + 2 and bool(holds(i, j, p))
        assert contains(points, [i, j, of(i, j, p)], {names.of(P): p}) == inside
        assert contains(relation.at([i, j]), [of(i, j, p), 2, i], {names.of(P): p}) == inside


def test_what_is_not_affine_leaves_no_trace():
    formula = Formula(Names())
    for refused in (And(LT(I // 3, J), EQ(Max(I, J) * I, const(2))), Not(LT(I // 4, Max(I, P) % P))):
        with pytest.raises(NotAffine):
            formula.require(refused)
    with pytest.raises(NotAffine):
        formula.equal(formula.var(I), I // 5 + J * J)
    assert not formula.parts and not formula.helpers and not formula.values and list(formula.used) == [formula.var(I)]


def test_a_condition_that_never_holds_is_the_empty_set():
    formula = Formula(Names())
    formula.within(I, const(0), const(4))
    formula.require(LT(I, I))
    assert formula.set([formula.var(I)]).is_empty()


def satisfying(condition: Expr) -> set[int]:
    """The values of ``I`` in [0, 8) for which it holds, by the set."""
    formula = Formula(Names())
    formula.within(I, const(0), const(8))
    name = formula.var(I)
    formula.require(condition)
    return {x for (x,) in points_of(formula.set([name]))}


@pytest.mark.parametrize(
    "name, meaning", [("bitwise_and", int.__and__), ("bitwise_or", int.__or__), ("bitwise_xor", int.__xor__)]
)
def test_operations_on_bits(name, meaning):
    assert satisfying(EQ(call(name, I, const(5)), const(5))) == {x for x in range(8) if meaning(x, 5) == 5}


@pytest.mark.parametrize("mask", [0, 6, 5, 255])
def test_operations_on_bits_of_a_negative_number(mask):
    for name, meaning in (("bitwise_and", int.__and__), ("bitwise_or", int.__or__), ("bitwise_xor", int.__xor__)):
        held = EQ(call(name, I - 4, const(mask)), const(meaning(-3, mask)))
        assert satisfying(held) == {x for x in range(8) if meaning(x - 4, mask) == meaning(-3, mask)}


def test_shifts_by_a_constant():
    assert satisfying(EQ(call("shift_left", I - 4, const(1)), const(-6))) == {1}
    assert satisfying(EQ(call("shift_right", I - 4, const(1)), const(-2))) == {0, 1}


@pytest.mark.parametrize(
    ("condition", "points"),
    [
        (Not(const(True)), ()),
        (Not(const(False)), range(8)),
        (Not(call("likely", LT(I, const(3)))), range(3, 8)),
        (Not(call("bitwise_and", GT(I, const(1)), LT(I, const(4)))), (0, 1, 4, 5, 6, 7)),
        (Not(call("bitwise_or", LT(I, const(2)), GT(I, const(5)))), range(2, 6)),
    ],
)
def test_the_opposite_of_what_is_no_comparison(condition, points):
    assert satisfying(condition) == set(points)


@pytest.mark.parametrize(
    ("condition", "points"),
    [
        (const(True), range(8)),
        (const(False), ()),
        (call("likely", LT(I, const(3))), range(3)),
        (call("likely", Or(LT(I, const(2)), GT(I, const(5)))), (0, 1, 6, 7)),
        (call("bitwise_and", GT(I, const(1)), LT(I, const(4))), (2, 3)),
        (call("bitwise_or", LT(I, const(2)), GT(I, const(5))), (0, 1, 6, 7)),
    ],
)
def test_conditions_that_are_no_comparisons(condition, points):
    assert satisfying(condition) == set(points)


@pytest.mark.parametrize("condition", [call("isnan", Var("x", "float32")), LT(Var("x", "float32"), const(1.0))])
def test_conditions_on_floats_are_not_affine(condition):
    for each in (condition, Not(condition), call("likely", condition)):
        with pytest.raises(NotAffine):
            satisfying(each)


@pytest.mark.parametrize(
    "e",
    [
        call("shift_left", I, J),
        call("shift_right", I, J),
        call("shift_left", I, const(30)),
        call("popcount", I),
    ],
    ids=repr,
)
def test_other_calls_are_no_operations_on_bits(e):
    formula = Formula(Names())
    formula.within(I, const(0), const(8))
    with pytest.raises(NotAffine):
        formula.require(EQ(e, const(2)))


@pytest.mark.parametrize(
    ("op", "bounds"), [("popcount", (0, 32)), ("clz", (0, 32)), ("abs", (0, None)), ("bitwise_not", (None, None))]
)
def test_bounds_of_operators_of_bits(op, bounds):
    assert Analyzer().bound(call(op, I)) == bounds
