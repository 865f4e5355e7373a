"""Elementwise chains, transposition and blur by hand against NumPy in float64; stores around the cache."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tir
from tests.hand_schedules import elementwise, rows

SIZES = [(32, 48), (37, 53), (16, 16), (5, 40), (40, 5), (17, 16), (64, 131)]


def inputs(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("m, n", SIZES)
@pytest.mark.parametrize("parallel", [False, True])
def test_transpose(m: int, n: int, parallel: bool):
    a, b = inputs(m, n), np.full((n, m), np.nan, np.float32)
    sch = elementwise.schedule_transpose(tir.Schedule(elementwise.transpose(m, n)), parallel)
    tir.build(sch.mod, target="llvm")(a, b)
    np.testing.assert_array_equal(b, a.T)


@pytest.mark.parametrize("m, n", [(8, 64), (37, 53), (1, 1)])
@pytest.mark.parametrize("parallel", [False, True])
def test_blur(m: int, n: int, parallel: bool):
    a, b = inputs(m + 2, n + 2), np.full((m, n), np.nan, np.float32)
    sch = elementwise.schedule_blur(tir.Schedule(elementwise.blur(m, n)), strip=8, parallel=parallel)
    tir.build(sch.mod, target="llvm")(a, b)
    wide = a.astype(np.float64)
    want = sum(wide[y : y + m, x : x + n] for y in range(3) for x in range(3)) / 9
    np.testing.assert_allclose(b, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 64, 1001])
@pytest.mark.parametrize("parallel", [False, True])
def test_chains(size: int, parallel: bool):
    a, s, h = inputs(3, size)
    b = np.full(size, np.nan, np.float32)
    sch = elementwise.schedule_gelu_chain(tir.Schedule(elementwise.gelu_chain(size)), parallel)
    tir.build(sch.mod, target="llvm")(a, s, h, b)
    x = a.astype(np.float64) * s + h
    np.testing.assert_allclose(b, x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))), rtol=1e-5, atol=1e-6)
    sch = elementwise.schedule_scale_add(tir.Schedule(elementwise.scale_add(size)), parallel)
    tir.build(sch.mod, target="llvm")(a, b)
    np.testing.assert_allclose(b, a.astype(np.float64) * 3 + 1, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("offset", [0, 4, 1])  # of the array in elements: 64-byte, 16-byte and 4-byte aligned
@pytest.mark.parametrize("pragma", ["pragma_nontemporal", "pragma_nontemporal_lines"])
@pytest.mark.parametrize("parallel", [False, True])
def test_stores_around_the_cache(offset: int, pragma: str, parallel: bool):
    size = 200
    memory = np.full(size + 64, np.nan, np.float32)
    start = -(memory.ctypes.data // 4) % 16 + offset
    a, b = inputs(size), memory[start : start + size]
    sch = tir.Schedule(elementwise.scale_add(size))
    rows.vectorize_by(sch, "i", lanes=16)  # a cache line, whatever this machine's vectors are
    outer = sch.get_loops("out")[0]
    sch.annotate(outer, pragma, "B")
    if parallel:
        sch.parallel(outer)
    module = tir.build(sch.mod, target="llvm")
    assert "!nontemporal" in module.source("llvm") and "vmovntps" in module.source("asm")
    module(a, b)
    np.testing.assert_allclose(b, a.astype(np.float64) * 3 + 1, rtol=1e-6, atol=1e-6)
    assert np.isnan(memory[:start]).all() and np.isnan(memory[start + size :]).all()


def test_large_results_go_around_the_cache():
    sch = elementwise.schedule_scale_add(tir.Schedule(elementwise.scale_add(1 << 28)))
    assert 'pragma_nontemporal": "B"' in str(sch.mod)
    sch = rows.schedule_softmax(tir.Schedule(rows.softmax(1 << 16, 1 << 12)))
    assert 'pragma_nontemporal": "B"' in str(sch.mod)


@pytest.mark.parametrize(
    "func, schedule",
    [(elementwise.transpose, elementwise.schedule_transpose), (elementwise.blur, elementwise.schedule_blur)],
)
def test_the_schedules_keep_the_meaning(func, schedule):
    from tir.testing import assert_same_result

    before = func(17, 33)
    assert_same_result(before, schedule(tir.Schedule(before)).mod, engines=["interpreter"])
