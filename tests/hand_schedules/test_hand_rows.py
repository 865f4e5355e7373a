"""Row kernels by hand against NumPy in float64, at sizes that are multiples of nothing too."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.hand_schedules import rows
from tir.target import vector_registers

SIZES = [(5, 64), (3, 1), (7, 53), (4, 131)]


def run(sch: tir.Schedule, arrays: list[np.ndarray], want: np.ndarray) -> None:
    """Compare the last array with ``want`` after a run on it, filled with NaN before."""
    arrays[-1].fill(np.nan)
    tir.build(sch.mod, target="llvm")(*arrays)
    np.testing.assert_allclose(arrays[-1], want, rtol=1e-4, atol=1e-5)


def inputs(m: int, n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((m, n), dtype=np.float32)


@pytest.mark.parametrize("m, n", SIZES)
@pytest.mark.parametrize("parallel", [False, True])
def test_softmax(m: int, n: int, parallel: bool):
    a = inputs(m, n) * 10
    power = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
    sch = rows.schedule_softmax(tir.Schedule(rows.softmax(m, n)), parallel)
    run(sch, [a, np.empty_like(a)], power / power.sum(1, keepdims=True))


@pytest.mark.parametrize("m, n", SIZES)
def test_layer_norm(m: int, n: int):
    a, (g, h) = inputs(m, n), inputs(2, n)
    wide = a.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * g + h
    sch = rows.schedule_layer_norm(tir.Schedule(rows.layer_norm(m, n)))
    run(sch, [a, g, h, np.empty_like(a)], want)


@pytest.mark.parametrize("m, n", SIZES)
@pytest.mark.parametrize("parallel", [False, True])
def test_sums(m: int, n: int, parallel: bool):
    a = inputs(m, n)
    sch = rows.schedule_row_sum(tir.Schedule(rows.row_sum(m, n)), parallel)
    run(sch, [a, np.empty(m, np.float32)], a.sum(1, dtype=np.float64))
    sch = rows.schedule_column_sum(tir.Schedule(rows.column_sum(m, n)), parallel)
    run(sch, [a, np.empty(n, np.float32)], a.sum(0, dtype=np.float64))


@pytest.mark.parametrize("columns", [1, 64, 101, 5000])
def test_sums_of_columns_stay_in_the_cache(columns: int):
    lanes = vector_registers().lanes()
    sch = rows.schedule_column_sum(tir.Schedule(rows.column_sum(16, columns)))
    outer, _, middle, step, lane = (sch.get(loop).extent.value for loop in sch.get_loops("total"))
    assert (lane, step) == (lanes, 8)
    assert middle * lane == min(4096, -(-columns // lanes) * lanes) and outer == -(-columns // (middle * lane))


def test_the_schedules_keep_the_meaning():
    """The reference executor gives the same result before and after scheduling."""
    from tir.testing import assert_same_result

    before = rows.softmax(2, 19)
    assert_same_result(before, rows.schedule_softmax(tir.Schedule(before)).mod, engines=["interpreter"], rtol=1e-5)


def test_exp_is_vector_code():
    text = tir.build(rows.schedule_softmax(tir.Schedule(rows.softmax(2, 64))).mod, target="llvm").source("llvm")
    assert "expf" not in text and f"<{vector_registers().lanes()} x float>" in text
