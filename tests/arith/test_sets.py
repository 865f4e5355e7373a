"""Conditions as exact integer sets: by rows of coefficients, by text, and point by point."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tir.arith import Analyzer
from tir.expr import EQ, GE, LT, And, Expr, IntImm, Max, Var, const
from tir.op import call
from tir.poly import Formula, Names, NotAffine

I, J, P = Var("i"), Var("j"), Var("p")
SPAN = range(-4, 5)


class ByText(Formula):
    """A formula that writes everything as text."""

    def _linear(self, e):
        return None


def _at(e: Expr, values):
    if isinstance(e, IntImm):
        return e.value
    if isinstance(e, Var):
        return values[e]
    a, b = _at(e.a, values), _at(e.b, values)
    return {
        "Add": lambda: a + b, "Sub": lambda: a - b, "Mul": lambda: a * b, "FloorDiv": lambda: a // b,
        "FloorMod": lambda: a % b, "LT": lambda: a < b, "GE": lambda: a >= b, "EQ": lambda: a == b,
        "And": lambda: bool(a and b), "Max": lambda: max(a, b),
    }[type(e).__name__]()  # fmt: skip


leaves = st.sampled_from([I, J, P]) | st.integers(-3, 3).map(const)


def _grow(inner):
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: p[0] + p[1]),
        pair.map(lambda p: p[0] - p[1]),
        st.tuples(inner, st.integers(-3, 3)).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.integers(1, 4)).map(lambda p: p[0] // p[1]),
        st.tuples(inner, st.integers(1, 4)).map(lambda p: p[0] % p[1]),
    )


sums = st.recursive(leaves, _grow, max_leaves=5)
pieces = st.one_of(
    st.tuples(st.sampled_from([LT, GE, EQ]), sums, sums).map(lambda p: p[0](p[1], p[2])),
    st.tuples(sums, sums).map(lambda p: LT(Max(p[0], p[1]), const(3))),
)
conditions = st.recursive(pieces, lambda c: st.tuples(c, c).map(lambda p: And(*p)), max_leaves=3)


def _filled(kind, condition, value):
    names = Names()
    formula = kind(names)
    formula.within(I, const(-4), const(9))
    formula.within(J, P - 2, const(4))
    formula.require(condition)
    formula.equal(formula.var(Var("o")), value)
    dims = [names.of(I), names.of(J)]
    out = [name for name in formula.used if name.startswith("o_")]
    return names, formula.set([*dims, *out]), formula.map(dims, [*out, "2", names.of(I)], out)


@settings(max_examples=150, deadline=None)
@given(conditions, sums)
def test_rows_and_text_are_one_set(condition, value):
    names, points, relation = _filled(Formula, condition, value)
    _, points_by_text, relation_by_text = _filled(ByText, condition, value)
    assert points.is_equal(points_by_text) and relation.is_equal(relation_by_text)
    for i, j, p in itertools.product(SPAN, SPAN, (-1, 2)):
        at = {I: i, J: j, P: p}
        inside = p - 2 <= j < p + 2 and bool(_at(condition, at))
        assert points.contains([i, j, _at(value, at)], {names.of(P): p}) == inside


def test_what_is_no_row_leaves_no_trace():
    formula = Formula(Names())
    formula.require(And(LT(I // 3, J), EQ(Max(I, J), const(2))))
    assert all(isinstance(part, str) for part in formula.parts)
    assert len(formula.helpers) == 1  # of the maximum


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
    return {x for (x,) in formula.set([name]).points()}


@pytest.mark.parametrize(
    "name, meaning", [("bitwise_and", int.__and__), ("bitwise_or", int.__or__), ("bitwise_xor", int.__xor__)]
)
def test_operations_on_bits(name, meaning):
    assert satisfying(EQ(call(name, I, const(5)), const(5))) == {x for x in range(8) if meaning(x, 5) == 5}


@pytest.mark.parametrize(
    "e",
    [call("shift_left", I, const(1)), call("shift_right", I, const(1)), call("bitwise_not", I), call("popcount", I)],
    ids=repr,
)
def test_other_calls_are_no_operations_on_bits(e):
    for formula in (Formula(Names()), ByText(Names())):
        formula.within(I, const(0), const(8))
        with pytest.raises(NotAffine):
            formula.require(EQ(e, const(2)))


@pytest.mark.parametrize(
    ("op", "bounds"), [("popcount", (0, 32)), ("clz", (0, 32)), ("abs", (0, None)), ("bitwise_not", (None, None))]
)
def test_bounds_of_operators_of_bits(op, bounds):
    assert Analyzer().bound(call(op, I)) == bounds
