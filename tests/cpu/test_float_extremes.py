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
