"""A call with effects is made as often after simplification as before it."""

from __future__ import annotations

import pytest

from tir.arith import Analyzer
from tir.expr import EQ, TRUE, And, Call, FloorMod, Min, Mul, Or, Select, StringImm, Var, const, logical_and, logical_or
from tir.op import call
from tir.visit import walk

F = call("call_extern", StringImm("f"), dtype="int32")
X = Var("x")


def calls(e) -> int:
    return sum(isinstance(n, Call) and n.op == "call_extern" for n in walk(e))


@pytest.mark.parametrize(
    "e",
    [
        Mul(F, const(0)),
        FloorMod(F, const(1)),
        Or(F > 0, TRUE),
        And(F > 0, F < 0),
        F - F,
        F + F,
        EQ(F, F),
        Min(F, F),
        Select(TRUE, X, F),
        F // F,
        call("bitwise_xor", F, F),
        X + F - X - F,
    ],
)
def test_simplification_keeps_calls_with_effects(e):
    assert calls(Analyzer().simplify(e)) == calls(e)


@pytest.mark.parametrize(
    "build",
    [
        lambda: F * 0,
        lambda: 0 * F,
        lambda: F % 1,
        lambda: 0 // F,
        lambda: logical_and(F > 0, False),
        lambda: logical_or(F > 0, True),
    ],
)
def test_builders_keep_calls_with_effects(build):
    assert calls(build()) == 1


def test_a_condition_on_such_a_call_tells_nothing_of_the_next():
    analyzer = Analyzer()
    with analyzer.constraint(F > 0):
        assert calls(analyzer.simplify(F > 0)) == 1


@pytest.mark.parametrize("a, b", [(F, F), (F + X, X + F), (F - F, const(0)), (Min(F, X), Min(X, F))])
def test_two_calls_may_give_two_values(a, b):
    assert not Analyzer().can_prove_equal(a, b)
    assert not Analyzer().can_prove(EQ(a, b))
    assert Analyzer().can_prove_equal(call("abs", X), call("abs", X))


def test_what_is_not_evaluated_is_dropped():
    assert Analyzer().simplify(call("if_then_else", TRUE, X, F, dtype="int32")) is X
    assert Analyzer().simplify(Mul(call("abs", X), const(0))).value == 0
