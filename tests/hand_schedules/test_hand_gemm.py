"""Scheduled matrix multiplications against NumPy in float64, at sizes that are multiples of nothing too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tir
from tests.hand_schedules import dot_gemm, gemm, gemv
from tir.amx_permission import tiles_available
from tir.target import VectorRegisters

REGISTERS = [VectorRegisters(bits, count) for bits, count in ((512, 32), (256, 16), (128, 32), (128, 16))]
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


@pytest.mark.parametrize("m, n, k", [(7, 100, 40), (37, 130, 33), (1, 64, 5), (16, 49, 64)])
@pytest.mark.parametrize("cores", [1, 2])
def test_thin_gemm(m: int, n: int, k: int, cores: int):
    sch = gemm.schedule_thin_gemm(tir.Schedule(gemm.thin_gemm(m, n, k)), min(m, 5), 32, 8, cores)
    run(sch, m, n, k)


@pytest.mark.parametrize("m, n, k", [(7, 101, 40), (37, 130, 33), (1, 64, 5), (16, 49, 64)])
@pytest.mark.parametrize("cores", [1, 2])
def test_deep_gemm(m: int, n: int, k: int, cores: int):
    run(gemm.schedule_deep_gemm(tir.Schedule(gemm.deep_gemm(m, n, k)), min(m, 5), 8, cores), m, n, k)


def test_a_large_b_of_odd_rows_is_packed_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gemm, "cache_bytes", lambda level: 1 << 14)
    sch = gemm.scheduled_gemm(17, 61, 300, cores=1)
    assert len(sch.get_loops("pack")) == 6  # two of them around the product too
    run(sch, 17, 61, 300)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_large_c_is_written_around_the_cache(monkeypatch: pytest.MonkeyPatch, cores: int):
    monkeypatch.setattr(gemm, "streams", lambda elements: True)
    sch = gemm.scheduled_gemm(61, 144, 9, cores)
    assert "pragma_nontemporal" in sch.script()
    run(sch, 61, 144, 9)


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
    for registers in REGISTERS:
        for m, n in [(1024, 1024), (1000, 1000), (37, 4096), (4, 4), (3, 1000), (1023, 511)]:
            rows, columns = gemm.pick_tile(m, n, registers)
            vectors = columns // registers.lanes()
            assert rows * vectors + vectors + 1 <= registers.count and rows <= max(1, m)


@pytest.mark.parametrize("count, m, n, k", [(3, 37, 45, 21), (2, 64, 64, 64), (5, 4, 3, 2)])
@pytest.mark.parametrize("cores", [1, 2])
def test_batched_gemm(count: int, m: int, n: int, k: int, cores: int):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((count, m, k), dtype=np.float32), rng.standard_normal((count, k, n), dtype=np.float32)
    c = np.full((count, m, n), np.nan, np.float32)
    tir.build(gemm.scheduled_batched_gemm(count, m, n, k, cores).mod)(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("m, k", [(64, 64), (37, 51), (12, 1000), (1, 1), (5, 3)])
@pytest.mark.parametrize("cores", [1, 2])
def test_gemv(m: int, k: int, cores: int):
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal(k, dtype=np.float32)
    y = np.full(m, np.nan, np.float32)
    rows = next(r for r in (4, 3, 1) if m % r == 0)
    sch = gemv.schedule_gemv(tir.Schedule(gemv.gemv(m, k)), rows, parallel=cores > 1)
    tir.build(sch.mod)(a, x, y)
    np.testing.assert_allclose(y, a.astype(np.float64) @ x.astype(np.float64), rtol=1e-4, atol=1e-4)
    assert gemv.scheduled_gemv(m, k, cores).trace


def bits_of_bfloat16(x: np.ndarray) -> np.ndarray:
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def value_of_bfloat16(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


DOT_SIZES = [(8, 32, 16), (37, 45, 51), (6, 64, 8), (5, 130, 3)]
# without the instructions the unscheduled program is compiled: the meaning is the same
FEATURES = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""


@pytest.mark.parametrize("m, n, k", DOT_SIZES)
def test_int8_gemm(m: int, n: int, k: int):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (m, k), dtype=np.uint8)
    b = rng.integers(-128, 128, (k, n), dtype=np.int8)
    c = np.full((m, n), -1, np.int32)
    sch = dot_gemm.scheduled_dot_gemm(m, n, k, "int8", cores=1, tiles=False)
    native = "avx512_vnni" in FEATURES
    tir.build(sch.mod if native else dot_gemm.dot_gemm(m, n, k, "int8"))(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.parametrize("m, n, k", DOT_SIZES)
def test_bfloat16_gemm(m: int, n: int, k: int):
    rng = np.random.default_rng(0)
    a = bits_of_bfloat16(rng.standard_normal((m, k), dtype=np.float32))
    b = bits_of_bfloat16(rng.standard_normal((k, n), dtype=np.float32))
    c = np.full((m, n), np.nan, np.float32)
    sch = dot_gemm.scheduled_dot_gemm(m, n, k, "bfloat16", cores=2, tiles=False)
    native = "avx512_bf16" in FEATURES
    tir.build(sch.mod if native else dot_gemm.dot_gemm(m, n, k, "bfloat16"))(a, b, c)
    np.testing.assert_allclose(c, value_of_bfloat16(a) @ value_of_bfloat16(b), rtol=1e-3, atol=1e-3)


def product_of_tiles(sch: tir.Schedule, kind: str, m: int, n: int, k: int) -> None:
    """On the lowered program the executor runs the tile operators; native where the machine has the registers."""
    rng = np.random.default_rng(0)
    if kind == "int8":
        a = rng.integers(0, 256, (m, k), dtype=np.uint8)
        b = rng.integers(-128, 128, (k, n), dtype=np.int8)
        want, blank, tolerance = a.astype(np.int64) @ b.astype(np.int64), np.full((m, n), -1, np.int32), 0.0
    else:
        a, b = (bits_of_bfloat16(rng.standard_normal(s, dtype=np.float32)) for s in ((m, k), (k, n)))
        want, blank, tolerance = value_of_bfloat16(a) @ value_of_bfloat16(b), np.full((m, n), np.nan, np.float32), 1e-4
    runs = [tir.build(sch.mod)] if tiles_available(kind) else []
    if m * n * k < 1e5:
        runs.append(tir.build(tir.lower(sch.mod), target="interpreter"))
    for run_it in runs:
        c = blank.copy()
        for _ in range(2):
            run_it(a, b, c)
            np.testing.assert_allclose(c, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["int8", "bfloat16"])
@pytest.mark.parametrize(
    "m, n, k, cores", [(37, 45, 33, 1), (5, 70, 3, 1), (32, 32, 64, 1), (100, 130, 300, 2), (64, 256, 600, 2)]
)
def test_gemm_on_tiles(kind: str, m: int, n: int, k: int, cores: int):
    product_of_tiles(dot_gemm.scheduled_dot_gemm(m, n, k, kind, cores, tiles=True), kind, m, n, k)


def test_tiles_are_used_where_they_are():
    used = "amx_tile_dot" in dot_gemm.scheduled_dot_gemm(32, 32, 32, "bfloat16", cores=1).script()
    assert used == tiles_available("bfloat16")
