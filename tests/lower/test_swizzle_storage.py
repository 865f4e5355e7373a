"""storage_swizzle, lowered: the same results whatever the rows, no bank met twice, and what cannot be swizzled is told."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.gpu_examples import load
from tir import BuildError
from tir.script import parse

TURN = """
@T.prim_func
def main(A: T.Buffer((ROWS, COLUMNS), "DTYPE"), B: T.Buffer((COLUMNS, ROWS), "DTYPE")):
    S = T.alloc_buffer((ROWS, COLUMNS), "DTYPE", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(ROWS, thread="threadIdx.x"):
            for j in range(COLUMNS):
                with T.block("S"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    S[vi, vj] = A[vi, vj]
        for i in T.thread_binding(ROWS, thread="threadIdx.x"):
            for j in range(COLUMNS):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vj, vi] = S[vi, vj]
"""


def turn(rows: int, columns: int, dtype: str, swizzled: bool = True) -> tir.Schedule:
    text = TURN.replace("ROWS", str(rows)).replace("COLUMNS", str(columns)).replace("DTYPE", dtype)
    sch = tir.Schedule(parse(text), target="cuda -arch=sm_80")
    piece = 16 // tir.DType(dtype).bytes
    sch.vectorize(sch.split(sch.get_loops("S")[2], [None, piece])[1])
    if swizzled:
        sch.storage_swizzle("S", 0)
    return sch


def run(sch: tir.Schedule, rows: int, columns: int, dtype: str) -> int:
    """The bank conflicts of the copy to shared memory; what comes out is checked."""
    a = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
    b = np.zeros((columns, rows), dtype)
    mod = tir.build(sch.mod, target="cuda-sim")
    mod(a, b)
    assert (b == a.T).all() and mod.report().ok
    (report,) = mod.report()
    assert report.shared_bytes == a.nbytes
    return sum(t.conflicts or 0 for t in report.accesses if t.site.what == "write")


@pytest.mark.parametrize(
    ("rows", "columns", "dtype"),
    [
        (16, 64, "float16"),
        (16, 32, "float16"),
        (32, 16, "float16"),
        (8, 256, "int8"),
        (8, 64, "float32"),
        (8, 4, "float64"),
    ],
)
def test_columns_of_pieces_lie_in_different_banks(rows, columns, dtype):
    """Every thread writes a piece of a row of its own, the same column at a time."""
    plain = run(turn(rows, columns, dtype, swizzled=False), rows, columns, dtype)
    assert run(turn(rows, columns, dtype), rows, columns, dtype) == 0 < plain


def test_the_kernel_as_c():
    code = tir.build(turn(16, 64, "float16").mod, target="cuda -arch=sm_80").source("cuda")
    assert "S[i * 64 + (j_0 ^ (i & 7)) * 8]" in code, code


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (8, 24, "rows of 2, 4 or a multiple of 8 pieces"),
        (8, 6, "whole pieces of 16 bytes"),
        (4, 32, "8 rows or a multiple"),
        (8, 0, "whole pieces of 16 bytes"),
        (0, 32, "whole pieces of 16 bytes"),
    ],
)
def test_rows_that_cannot_be_swizzled(rows, columns, message):
    text = TURN.replace("ROWS", str(rows)).replace("COLUMNS", str(columns)).replace("DTYPE", "float32")
    sch = tir.Schedule(parse(text))
    sch.storage_swizzle("S", 0)
    with pytest.raises(BuildError, match=rf"`S` of shape \({rows}, {columns}\) float32 cannot be swizzled.*{message}"):
        tir.lower(sch.mod, target="cuda")


def test_wmma_takes_rows_in_order():
    _, sch = load("tensor_core_gemm").scheduled(64, 64, 32, tile=64, pipelined=False)
    shared = sch.get_block("A_shared.dyn")
    sch.unannotate(shared, "buffer_dim_align")
    sch.storage_swizzle(shared, 0)
    with pytest.raises(
        BuildError, match=r"`tvm_load_matrix_sync` assumes that the rows of `A_shared_dyn` lie in order.*ldmatrix"
    ):
        tir.lower(sch.mod, target="cuda")


@pytest.mark.parametrize(("k", "depth", "stages"), [(128, 64, 2), (96, 32, 3), (64, 16, 2)])
def test_ldmatrix_of_any_depth(k, depth, stages):
    example = load("mma_gemm")
    _, sch = example.scheduled(64, 64, k, tile=(64, 64), depth=depth, stages=stages)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float16") for s in ((64, k), (k, 64)))
    c = np.full((64, 64), np.nan, "float32")
    mod = tir.build(sch.mod, target="cuda-sim")
    mod(a, b, c)
    np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-4, atol=1e-4)
    (report,) = mod.report()
    assert report.ok and report.shared_bytes == stages * 2 * 64 * depth * 2
    assert sum(t.conflicts or 0 for t in report.accesses) == 0, str(report)
    assert report.barriers == k // depth
