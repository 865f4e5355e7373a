"""lower_intrin changes divisions, and nothing else."""

from __future__ import annotations

import numpy as np

import tir
from tir import transform
from tir.script import parse

LETS = """
@T.prim_func
def f(A: T.Buffer((16,), "int32"), n: T.int32):
    for i in range(16):
        x: T.int32 = i * 2 - 16
        y: T.int32 = {value}
        A[i] = x + y
"""


def test_a_program_without_divisions_stays_the_same_object():
    func = parse(LETS.format(value="x + n // 3"))  # n may be negative
    assert transform.lower_intrin(func) is func


def test_divisions_bound_to_variables_are_lowered():
    func = parse(LETS.format(value="(x + 16) // 4 + n"))
    made = transform.lower_intrin(func)
    assert made is not func and "//" not in made.script()
    first, second = np.zeros(16, "int32"), np.zeros(16, "int32")
    tir.interp.run(func, first, 5)
    tir.interp.run(made, second, 5)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, [x + (x + 16) // 4 + 5 for x in range(-16, 16, 2)])
