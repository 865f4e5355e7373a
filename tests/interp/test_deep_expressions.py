"""Expressions nested deeper than Python takes brackets, as programs made by Python loops have them."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te
from tir.expr import Expr, FloorDiv, Let, Var, const, logical_and
from tir.op import call

DEPTH = 230
A = np.array([1, 2, 3, 1], "int32")


def nested(step, depth: int = DEPTH) -> tir.PrimFunc:
    """C[i] is ``step`` applied to A[i] ``depth`` times."""
    data = te.placeholder((4,), "int32", "A")

    def value(i):
        made = data[i]
        for n in range(depth):
            made = step(made, data, n)
        return made

    return te.create_prim_func([data, te.compute((4,), value, name="C")])


def expected(step, depth: int = DEPTH) -> list[int]:
    made = A
    for n in range(depth):
        made = step(made, A, n)
    return made.tolist()


def result(func: tir.PrimFunc, target: str) -> list[int]:
    sch = tir.Schedule(func)
    if target == "cuda-sim":
        sch.bind(sch.get_loops("C")[0], "threadIdx.x")
    out = np.zeros(4, "int32")
    tir.build(sch.mod, target)(A, out)
    return out.tolist()


@pytest.mark.parametrize("target", ["interpreter", "cuda-sim"])
@pytest.mark.parametrize(
    "step",
    [lambda x, a, n: x ^ a[n % 4], lambda x, a, n: (x.astype("int64") * 3 % 1001).astype("int32")],
    ids=["xor", "cast"],
)
def test_deep_arithmetic(step, target):
    assert result(nested(step), target) == expected(step)


@pytest.mark.parametrize("target", ["interpreter", "cuda-sim"])
def test_deep_loads(target):
    assert result(nested(lambda x, a, n: a[x % 4], 90), target) == expected(lambda x, a, n: a[x % 4], 90)


def test_what_a_condition_guards_is_not_evaluated():
    """The innermost value divides by zero, and is not asked for."""

    def lazy(x: Expr, a, n: int) -> Expr:
        inner = FloorDiv(x, a[0] - 1) if n == 0 else x ^ a[1]
        return call("if_then_else", a[0] > 1, inner, a[2], dtype="int32") if n % 50 == 49 else inner

    assert result(nested(lazy, 150), "interpreter") == [3] * 4


def test_variables_defined_inside():
    def let(x: Expr, a, n: int) -> Expr:
        if n % 40:
            return x ^ a[1]
        var = Var(f"x{n}")
        return Let(var, x ^ const(5), (var ^ a[0]) + var)

    def plain(x, a, n):
        return x ^ a[1] if n % 40 else ((x ^ 5) ^ a[0]) + (x ^ 5)

    assert result(nested(let, 200), "interpreter") == expected(plain, 200)


def test_simplification_of_deep_conditions_is_quick():
    """Each level asks for the keys of the levels below: once made, they are kept."""
    from tir.arith import linear

    made, number = linear._key, 0

    def counted(e):
        nonlocal number
        number += 1
        return made(e)

    linear._key = counted
    try:
        func = nested(lambda x, a, n: call("if_then_else", logical_and(x > 0, a[0] > 0), a[1], a[0], dtype="int32"), 40)
        tir.lower(func)
    finally:
        linear._key = made
    assert number < 40 * 100
