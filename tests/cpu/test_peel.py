"""Which conditions single out the first iteration of a loop, so that it is peeled; the result stays the same."""

import numpy as np
import pytest

from codegen.llvm.peel import peel_first_iterations
from tir.interp.executor import run
from tir.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((4, 6), "int32")):
    for i in range(4):
        for k in range(6):
            if CONDITION:
                A[i, k] = 7
            else:
                A[i, k] = A[i, k] + i * 10 + k
"""
PEELED = ["k == 0", "0 == k", "k <= 0", "k < 1", "k + i == 0", "0 == i * 2 + k", "k * 3 + i * 2 < 1", "3 == k + 3"]
KEPT = ["k == 1", "k <= 1", "k - i == 0", "k > 0", "k == i + 1", "k * i == 0", "k // 2 == 0", "k + 1 <= 0"]


@pytest.mark.parametrize("condition", PEELED)
def test_a_condition_of_the_first_iteration(condition):
    before = parse(PROGRAM.replace("CONDITION", condition))
    after = peel_first_iterations(before)
    assert after is not before
    results = []
    for func in (before, after):
        a = np.arange(24, dtype="int32").reshape(4, 6)
        run(func, a)
        results.append(a)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("condition", KEPT)
def test_a_condition_of_other_iterations(condition):
    before = parse(PROGRAM.replace("CONDITION", condition))
    assert peel_first_iterations(before) is before


EXTENTS = """
@T.prim_func
def main(A: T.Buffer((4, 6), "int32"), n: T.int32):
    for i in range(4):
        for k in range(EXTENT):
            STORE
"""
STORES = {
    "if": "if k == 0:\n                A[i, k] = 7",
    "if and else": "if k == 0:\n                A[i, k] = 7\n            else:\n                A[i, k] += i * 10 + k",
    "select": "A[i, k] = T.Select(k == 0, 7, A[i, k] + k)",
    "lazy": "A[i, k] = T.if_then_else(k <= 0, 7, A[i, k - 1] + k)",
    "nested": "for j in range(2):\n                if j + k == 0:\n                    A[i, k] = 7\n                A[i, k] += j",
}


@pytest.mark.parametrize("extent", ["0", "1", "2", "5", "n"])
@pytest.mark.parametrize("store", STORES)
def test_loops_of_any_extent(store, extent):
    before = parse(EXTENTS.replace("STORE", STORES[store]).replace("EXTENT", extent))
    after = peel_first_iterations(before)
    assert after is not before
    for n in (0, 1, 3) if extent == "n" else (9,):
        results = []
        for func in (before, after):
            a = np.arange(24, dtype="int32").reshape(4, 6)
            run(func, a, n)
            results.append(a)
        np.testing.assert_array_equal(*results)
