"""Conditions that say less than others, that leave one value, or that have a name; constants of operators."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tir
from tir.arith import Analyzer, simplify
from tir.arith.linear import same
from tir.arith.pointwise import compile_expr
from tir.buffer import decl_buffer
from tir.dtype import DType
from tir.expr import EQ, GE, GT, LE, LT, NE, And, BufferLoad, Expr, FloatImm, FloorDiv, IntImm, Not, Or, Var, cast
from tir.op import call

BOUNDED = settings(derandomize=True, max_examples=400)
I, J = Var("i"), Var("j")
A = decl_buffer((8,), "int32", name="A")
KINDS = [EQ, NE, LT, LE, GT, GE]

BETTER = [
    (And(I < 10, I < 5), I < 5),
    (And(I < 5, I < 10), I < 5),
    (And(And(I < 10, J < 2), I < 5), And(J < 2, I < 5)),
    (And(I * 2 + J < 10, I * 2 + J < 4), I * 2 + J < 4),
    (And(I <= 0, I >= 0), EQ(I, IntImm(0))),
    (And(I >= 3, I < 4), EQ(I, IntImm(3))),
    (And(I > 2, I <= 3), EQ(I, IntImm(3))),
    (And(I - J <= 2, I - J >= 2), EQ(I - J, IntImm(2))),
    (Or(I < 5, I < 10), I < 10),
    (Or(I < 10, I < 5), I < 10),
    (Or(I < 5, I <= 5), I <= 5),
    (Or(EQ(I, IntImm(5)), I <= 5), I <= 5),
]


@pytest.mark.parametrize("number", range(len(BETTER)))
def test_the_looser_condition_goes(number):
    e, want = BETTER[number]
    simple = simplify(e)
    assert same(simple, simplify(want)), simple
    assert simplify(simple) is simple


@pytest.mark.parametrize(
    "last", [And(EQ(BufferLoad(A, (I,)), IntImm(1)), I < 5), And(LT(FloorDiv(J, I), IntImm(3)), I < 5)]
)
def test_a_condition_that_keeps_a_later_one_from_failing_stays(last):
    """A[i] and j // i may fail where i < 7 does not hold, and i < 5 comes after them."""
    e = And(I < 7, last)
    assert same(simplify(e), And(And(I < 7, last.a), I < 5))


def comparison(r: Random) -> Expr:
    index = r.choice([I, J, I + J, I - J, I * 2 + J, I * 2])
    made = r.choice(KINDS)(index, IntImm(r.randint(-4, 6)))
    return Not(made) if r.random() < 0.2 else made


def condition(r: Random, size: int) -> Expr:
    if size == 1:
        return comparison(r)
    half = r.randint(1, size - 1)
    return r.choice([And, And, Or])(condition(r, half), condition(r, size - half))


@BOUNDED
@given(st.integers(0, 2**32), st.booleans())
def test_conjunctions_and_disjunctions_keep_their_value(seed, named):
    """At every point, with and without a condition assumed by its name."""
    r = Random(seed)
    e, known = condition(r, 2 + seed % 4), condition(r, 1 + seed % 3)
    name, ctx = Var("c", "bool"), Analyzer()
    before, plain, premise = (compile_expr(x, (I, J)) for x in (e, simplify(e), known))
    if named:
        ctx.bind(name, known)
    ctx.assume(name if named else known)
    under = compile_expr(ctx.simplify(e), (I, J))
    for p in itertools.product(range(-9, 10), repeat=2):
        assert bool(plain(*p)) == bool(before(*p)), (p, e, simplify(e))
        assert not premise(*p) or bool(under(*p)) == bool(before(*p)), (p, known, e)


def test_a_named_condition_is_known_where_the_name_is():
    name, ctx = Var("c", "bool"), Analyzer()
    ctx.bind(name, And(I < J, I >= 0))
    assert not ctx.can_prove(I < J)
    with ctx.constraint(name):
        assert ctx.can_prove(I < J + 1) and ctx.can_prove(J > 0)
    with ctx.constraint(Not(name)):
        assert not ctx.can_prove(I >= J)


UNARY = ["exp", "log2", "sqrt", "ceil", "floor", "trunc", "round", "nearbyint", "tanh", "rsqrt", "erf", "log", "sin"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", UNARY)
def test_operators_on_constants_are_what_the_executor_computes(name, dtype):
    text = f"""
@T.prim_func
def main(out: T.Buffer((3,), "{dtype}")):
    out[0] = T.{name}(T.{dtype}(14))
    out[1] = T.{name}(T.{dtype}(0.3))
    out[2] = T.{name}(T.{dtype}(0))
"""
    func = tir.script.parse(text)
    got, want = np.zeros(3, dtype), np.zeros(3, dtype)
    with np.errstate(all="ignore"):
        tir.interp.run(tir.transform.simplify(func), got)
        tir.interp.run(func, want)
    np.testing.assert_array_equal(got, want)


def test_the_logarithm_of_a_constant_size():
    f32 = DType("float32")
    e = cast("int32", call("ceil", call("log2", FloatImm(14.0, f32))))
    assert simplify(e).value == 4
    assert simplify(cast("int32", FloatImm(-2.5, f32))).value == -2
    for value in (float("nan"), float("inf"), 3e9):
        assert not isinstance(simplify(cast("int32", FloatImm(value, f32))), IntImm)


@pytest.mark.parametrize(
    ("known", "other", "shown"),
    [
        (I >= 0, EQ(I, IntImm(0)), I >= 1),
        (I >= 3, EQ(IntImm(3), I), I >= 4),
        (I <= 7, EQ(I, IntImm(7)), I <= 6),
        (I - J >= 2, EQ(I, J + 2), I > J + 2),
    ],
)
def test_what_is_not_an_end_of_a_range_is_inside_of_it(known: Expr, other: Expr, shown: Expr):
    ctx = Analyzer()
    ctx.assume(known)
    assert not ctx.can_prove(shown)
    with ctx.constraint(Not(other)):
        assert ctx.can_prove(shown)
    assert not ctx.can_prove(shown)
