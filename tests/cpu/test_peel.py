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
