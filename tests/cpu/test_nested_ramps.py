"""A ramp of vectors is the vectors one behind the other."""

from __future__ import annotations

import numpy as np
import pytest

import tir


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_a_ramp_of_ramps_reads_and_writes_tiles(target):
    func = tir.script.parse("""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((16,), "float32")):
    B[T.Ramp(T.Ramp(0, 1, 4), T.Broadcast(8, 4), 2)] = A[T.Ramp(T.Ramp(16, 2, 4), 16, 2)]
""")
    a, b = np.arange(64, dtype="float32"), np.zeros(16, "float32")
    tir.build(func, target)(a, b)
    np.testing.assert_array_equal(b, [16, 18, 20, 22, 0, 0, 0, 0, 32, 34, 36, 38, 0, 0, 0, 0])
