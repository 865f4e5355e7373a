"""Scheduled matrix multiplications against NumPy in float64, at sizes that are multiples of nothing too."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.library import gemm

SIZES = [(64, 64, 64), (37, 45, 51), (100, 99, 3), (1, 1, 1), (5, 200, 16), (23, 130, 17), (40, 7, 64)]


def run(sch: tir.Schedule, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    c = np.full((m, n), np.nan, np.float32)
    module = tir.build(sch.mod, target="llvm")
    for _ in range(2):  # the second call works in the memory that the first one left
        module(a, b, c)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("m, n, k", SIZES)
def test_gemm_of_any_size(m: int, n: int, k: int):
    run(gemm.scheduled_gemm(m, n, k, cores=1), m, n, k)


@pytest.mark.parametrize("parallel", ["columns", "rows"])
@pytest.mark.parametrize("m, n, k", SIZES[1:4])
def test_parallel_gemm(m: int, n: int, k: int, parallel: str):
    sch = tir.Schedule(gemm.gemm(m, n, k, 6, 32))
    run(gemm.schedule_gemm(sch, together=2, parallel=parallel), m, n, k)


def test_the_schedule_preserves_the_program():
    """The reference executor gives the same result before and after scheduling."""
    from tir.testing import assert_same_result

    before = gemm.gemm(7, 21, 5, 3, 16)
    after = gemm.schedule_gemm(tir.Schedule(before), together=2)
    assert_same_result(before, after.mod, engines=["interpreter"])


def test_tiles_fit_the_registers():
    for m, n in [(1024, 1024), (1000, 1000), (37, 4096), (4, 4), (3, 1000), (1023, 511)]:
        rows, columns = gemm.pick_tile(m, n)
        vectors = columns // gemm.LANES
        assert rows * vectors + vectors + 1 < gemm.REGISTERS and rows <= max(1, m)
