"""What a linear form tells: coefficients, parts by variables, bounds; compared with the values of its expression."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tir.arith.linear import linear
from tir.arith.pointwise import compile_expr
from tir.expr import Var, const
from tir.visit import uses_var

I, J, N = VARS = (Var("i"), Var("j"), Var("n"))
SPAN = range(-2, 4)
POINTS = list(itertools.product(SPAN, repeat=3))

leaves = st.sampled_from(VARS) | st.integers(-3, 3).map(const)


def _grow(inner):
    pair = st.tuples(inner, inner)
    number = st.tuples(inner, st.integers(-3, 4))
    return st.one_of(
        pair.map(lambda p: p[0] + p[1]),
        pair.map(lambda p: p[0] - p[1]),
        pair.map(lambda p: p[0] * p[1]),
        number.map(lambda p: p[0] * p[1]),
        number.map(lambda p: p[0] // max(p[1], 1)),
    )


expressions = st.recursive(leaves, _grow, max_leaves=6)


def values(e):
    of = compile_expr(e, VARS)
    return [of(*p) for p in POINTS]


@settings(max_examples=100)
@given(expressions)
def test_parts_by_variables_add_up(e):
    using, rest = linear(e).split([I, J])
    assert not uses_var(rest.build(e.dtype), [I, J])
    assert values(using.build(e.dtype) + rest.build(e.dtype)) == values(e)


@settings(max_examples=100)
@given(expressions)
def test_coefficients_and_bounds_are_those_of_the_values(e):
    form = linear(e)
    found, ends = form.coefficients(), form.interval(dict.fromkeys(VARS, (SPAN[0], SPAN[-1])))
    assert (found is None) == (ends is None)
    if found is not None and ends is not None:
        assert values(e) == [form.const + sum(c * dict(zip(VARS, p))[v] for v, c in found.items()) for p in POINTS]
        assert all(form.coefficient(v) == found.get(v, 0) for v in VARS)
        assert ends == (min(values(e)), max(values(e)))


@settings(max_examples=100)
@given(expressions)
def test_a_form_in_one_variable(e):
    found = linear(e).in_one([I, J])
    if found is not None:
        var, scale, rest = found
        assert var in {I, J} and scale and not uses_var(rest.build(e.dtype), [I, J])
        assert values(var * scale + rest.build(e.dtype)) == values(e)


@pytest.mark.parametrize(
    ("e", "answer"),
    [
        (I * 3 + N, ("i", 3)),
        (N - I, ("i", -1)),
        ((I + N) * 2 - I, ("i", 1)),  # in two terms
        (I + J, None),
        (N + 1, None),
        (I * N, None),
        (I // 2, None),
        (I - I + 4, None),
    ],
)
def test_which_forms_are_in_one_variable(e, answer):
    found = linear(e).in_one([I, J])
    assert (None if found is None else (found[0].name, found[1])) == answer


def test_forms_that_differ_by_a_number_have_one_key():
    assert linear(I * 2 + J + 1).terms_key() == linear(J + I + I - 5).terms_key()
    assert linear(I * 2 + J).terms_key() != linear(I * 2 - J).terms_key()


def test_a_variable_without_known_ends_has_no_bounds():
    assert linear(I + J).interval({I: (0, 3)}) is None
    assert linear(I + J).interval({I: (0, 3), J: None}) is None
