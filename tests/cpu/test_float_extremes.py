"""Minima and maxima of floats: nan if an operand is, in any order."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse

REDUCTIONS = {
    "the result so far first": "C[i] = T.OP(C[i], A[i, k])",
    "the result so far last": "C[i] = T.OP(A[i, k], C[i])",
    "two at a time": "C[i] = T.OP(T.OP(C[i], A[i, k]), A[i, 8 - k])",
    "of another buffer": "C[i] = T.OP(T.OP(A[i, 8 - k], A[i, k]), C[i])",
}


@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("operator", ["min", "max"])
@pytest.mark.parametrize("update", REDUCTIONS.values(), ids=REDUCTIONS)
def test_nan_anywhere_makes_a_reduction_nan(update: str, operator: str, dtype: str, kind: str):
    text = f"""
@T.prim_func
def main(A: T.Buffer((12, 9), "{dtype}"), C: T.Buffer((12,), "{dtype}")):
    for k in range(9):
        for i in T.{kind}(12):
            {update.replace("OP", operator)}
"""
    a = (np.arange(108).reshape(12, 9) * 37 % 101 - 50).astype(dtype)
    c = np.zeros(12, dtype)
    for row in range(9):
        a[row, row] = np.nan
    c[9] = np.nan
    a[10], a[11] = np.inf, -np.inf
    reduced = getattr(np, operator)(np.concatenate([c[:, None], a], 1), axis=1)
    tir.build(parse(text))(a, c)
    np.testing.assert_array_equal(c, reduced)


ENDS = [2.0**n + k for n in (7, 8, 15, 16, 31, 32, 63, 64) for k in (-1.0, -0.5, 0.0, 0.5)]


@pytest.mark.parametrize("loop", ["range(len)", "T.vectorized(len)"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_a_float_beyond_an_integer_type_is_its_nearest_and_not_one_number_at_a_time(
    source: str, target: str, loop: str
):
    with np.errstate(over="ignore"):
        a = np.array([*ENDS, *(-e for e in ENDS), 0.99, -0.99, -0.0, 1e30, -1e30, np.inf, -np.inf, np.nan]).astype(
            source
        )
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer(({len(a)},), "{source}"), B: T.Buffer(({len(a)},), "{target}")):
    for i in {loop.replace("len", str(len(a)))}:
        B[i] = T.Cast("{target}", A[i])
""")
    wanted, found = np.zeros(len(a), target), np.zeros(len(a), target)
    tir.build(func, "interpreter")(a, wanted)
    module = tir.build(func, "llvm")
    module(a, found)
    np.testing.assert_array_equal(found, wanted)
    assert ".sat." not in module.source("llvm")  # which LLVM makes of vectors one number at a time
