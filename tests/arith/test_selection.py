"""Arg-max and its kin: accepted where the order of values is free, refused where a sequence of values shows it is not."""

from __future__ import annotations

import itertools
import operator

import pytest

import tir
from tir import ops, te
from tir.analysis.reduction_forms import Reduction
from tir.arith.selections import _samples
from tir.dtype import DType
from tir.expr import EQ, Select, logical_and, logical_or
from tir.script import parse
from tir.stmt import Block
from tir.visit import walk

OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
STARTS = {"T.min_value('int32')": -(2**31), "T.max_value('int32')": 2**31 - 1, "0": 0}
PROGRAM = """
@T.prim_func
def best(A: T.Buffer((4, 8), "int32"), P: T.Buffer((4,), "int32"), V: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 8):
        with T.block("best"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                P[vi] = -1
                V[vi] = {start}
            p: T.int32 = T.Select(V[vi] {first} A[vi, vk], P[vi], vk)
            v: T.int32 = T.Select(V[vi] {second} A[vi, vk], V[vi], A[vi, vk])
            P[vi] = p
            V[vi] = v
"""


def order_is_free(first: str, second: str, start: int) -> bool:
    """By trying every short sequence: in parts that each start from ``start``, and in every order where no two values are
    equal (which of equal candidates wins is open)."""

    def join(x, y):
        return (x[0] if OPS[first](x[1], y[1]) else y[0], x[1] if OPS[second](x[1], y[1]) else y[1])

    def fold(items):
        found = (-1, start)
        for item in items:
            found = join(found, item)
        return found

    for values in itertools.product([-2, -1, 0, 1, 2], repeat=3):
        items = list(enumerate(values))
        whole = fold(items)
        if any(fold([fold(items[:n]), fold(items[n:])]) != whole for n in (1, 2)):
            return False
        if len({*values}) == 3 and any(fold(order) != whole for order in itertools.permutations(items)):
            return False
    return True


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("first", OPS)
@pytest.mark.parametrize("second", OPS)
def test_selection(first: str, second: str, start: str):
    sch = tir.Schedule(parse(PROGRAM.format(first=first, second=second, start=start)))
    sch.split("k", [None, 2])
    answer = sch.can.rfactor("k_0", 0)
    free = order_is_free(first, second, STARTS[start])
    # A start that no value replaces makes any program a constant: that is not looked for.
    swallowed = all((STARTS[start] if OPS[second](STARTS[start], v) else v) == STARTS[start] for v in range(-2, 3))
    assert bool(answer) == free or (swallowed and not answer), answer.reason
    if not answer:
        assert "which is no reduction" in answer.error.rule
        assert ("the conditions differ" in answer.error.rule) == (first != second)
        assert not sch.can.reorder("k_1", "k_0")
    else:
        assert sch.can.reorder("k_1", "k_0")


def _best_of_rows(stays):
    A = te.placeholder((4, 8), "int32", name="A")
    k = te.reduce_axis((0, 8), "k")

    def combine(x, y):
        return Select(stays(x, y), x[0], y[0]), Select(stays(x, y), x[1], y[1])

    best = te.comm_reducer(combine, lambda i, v: (te.const(9, i), te.min_value(v)), name="best")
    func = te.create_prim_func([A, *te.compute((4,), lambda i: best((k.var, A[i, k]), axis=k), name="B")])
    return Reduction.of(next(n for n in walk(func.body) if isinstance(n, Block) and n.name == "B"))


def test_a_selection_that_decides_among_equals_is_the_same_in_any_order():
    def first(x, y):
        return logical_or(x[1] > y[1], logical_and(EQ(x[1], y[1]), x[0] < y[0]))

    classic = _best_of_rows(lambda x, y: x[1] >= y[1])
    assert classic.selects and not classic.is_independent_of_order
    assert _best_of_rows(first).is_independent_of_order


def test_nan_makes_a_selection_depend_on_order_unless_it_is_decided_too():
    def position(name):
        func = te.create_prim_func(
            [A := te.placeholder((4, 8), name="A"), getattr(ops, name)(A, axis=1, dtype="int32")]
        )
        return Reduction.of(next(n for n in walk(func.body) if isinstance(n, Block) and n.name != "root"))

    assert position("argmax").is_independent_of_order and position("argmin").is_independent_of_order
    text = PROGRAM.replace('"int32"', '"float32"', 1).replace(
        'V: T.Buffer((4,), "int32")', 'V: T.Buffer((4,), "float32")'
    )
    ignoring = parse(
        text.replace("v: T.int32", "v: T.float32").format(
            first="> A[vi, vk] or V[vi] == A[vi, vk] and P[vi] < vk or V[vi] >",
            second="> A[vi, vk] or V[vi] == A[vi, vk] and P[vi] < vk or V[vi] >",
            start="T.min_value('float32')",
        )
    )
    found = Reduction.of(next(n for n in walk(ignoring.body) if isinstance(n, Block) and n.name == "best"))
    assert found.selects and not found.is_independent_of_order


@pytest.mark.parametrize(
    ("dtype", "start", "constants", "values"),
    [
        ("uint8", 0, [], [0, 1, 2]),
        ("uint8", 255, [0], [0, 1, 2, 3, 254, 255]),
        ("int8", -128, [127], [124, 125, 126, 127, -128, -127]),
        ("bool", 0, [1], [0, 1]),
        ("int32", 9, [4], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    ],
)
def test_the_values_that_are_tried_are_all_that_a_type_has_near_a_constant(dtype, start, constants, values):
    assert sorted(_samples(DType(dtype), start, constants)) == sorted(values)
