"""Single-precision matrix multiplication near the machine's peak: packed panels and a register tile, by schedule alone.

``sgemm(m, n, k)`` says what is computed: A in panels of ``rows`` rows, B in panels of ``columns`` columns, both padded
with zeros to whole panels, the product of panels, and its copy to C without the padding. ``schedule_sgemm`` says how.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import tir
from tir.script import tir as T

ROWS, COLUMNS, LANES = 6, 64, 16


def sgemm(m: int, n: int, k: int, rows: int = ROWS, columns: int = COLUMNS) -> tir.PrimFunc:
    """C = A @ B for float32 A (m, k), B (k, n), C (m, n) of any sizes."""
    mp, np_ = -(-m // rows), -(-n // columns)

    @T.prim_func
    def sgemm(A: T.Buffer((m, k), "float32"), B: T.Buffer((k, n), "float32"), C: T.Buffer((m, n), "float32")):
        A_panels = T.alloc_buffer((mp, k, rows), "float32")
        B_panels = T.alloc_buffer((np_, k, columns), "float32")
        tiles = T.alloc_buffer((mp, np_, rows, columns), "float32")
        for io, p, ii in T.grid(mp, k, rows):
            with T.block("pack_A"):
                vio, vp, vii = T.axis.remap("SSS", [io, p, ii])
                A_panels[vio, vp, vii] = T.if_then_else(vio * rows + vii < m, A[vio * rows + vii, vp], T.float32(0))
        for jo, p, ji in T.grid(np_, k, columns):
            with T.block("pack_B"):
                vjo, vp, vji = T.axis.remap("SSS", [jo, p, ji])
                B_panels[vjo, vp, vji] = T.if_then_else(
                    vjo * columns + vji < n, B[vp, vjo * columns + vji], T.float32(0)
                )
        for io, jo, p, ii, ji in T.grid(mp, np_, k, rows, columns):
            with T.block("multiply"):
                vio, vjo, vp, vii, vji = T.axis.remap("SSRSS", [io, jo, p, ii, ji])
                with T.init():
                    tiles[vio, vjo, vii, vji] = T.float32(0)
                tiles[vio, vjo, vii, vji] += A_panels[vio, vp, vii] * B_panels[vjo, vp, vji]
        for io, jo, ii, ji in T.grid(mp, np_, rows, columns):
            with T.block("store"):
                vio, vjo, vii, vji = T.axis.remap("SSSS", [io, jo, ii, ji])
                if vio * rows + vii < m and vjo * columns + vji < n:
                    C[vio * rows + vii, vjo * columns + vji] = tiles[vio, vjo, vii, vji]

    return sgemm


def schedule_sgemm(sch: tir.Schedule, block_rows: int = 168, lanes: int = LANES, parallel: bool = True) -> tir.Schedule:
    """Schedule ``sgemm``: blocks of about ``block_rows`` rows of A stay in L2, one register tile at a time."""
    io, jo, p, ii, ji = sch.get_loops("multiply")
    rows = sch.get(ii).extent.value
    ic, ir = sch.split(io, [None, max(1, min(block_rows // rows, sch.get(io).extent.value))], names=["ic", "ir"])
    jv, lane = sch.split(ji, [None, lanes], names=["jv", "lane"])
    sch.reorder(ic, jo, ir, p, ii, jv, lane)
    sch.reverse_compute_at("store", ir)
    sch.set_scope("multiply", 0, "local")
    sch.vectorize(lane)
    for loop in (ii, jv):
        sch.unroll(loop)
    init = sch.decompose_reduction("multiply", p)
    for loop in sch.get_loops(init)[3:-1]:
        sch.unroll(loop)
    *_, row, column = sch.get_loops("store")
    column, lane = sch.split(column, [None, lanes])
    sch.vectorize(lane)
    for loop in (row, column):
        sch.unroll(loop)
    sch.vectorize(sch.split(sch.get_loops("pack_B")[-1], [None, lanes])[1])
    if parallel:
        for block in ("pack_A", "pack_B"):
            sch.parallel(sch.get_loops(block)[0])
    if parallel:
        sch.parallel(ic)
    return sch


def main() -> None:
    from codegen.peak import measure_fma_peak

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-n", type=int, default=1024)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--columns", type=int, default=COLUMNS)
    options.add_argument("--show", action="store_true", help="print the schedule")
    args = options.parse_args()
    n = args.n
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    c = np.zeros((n, n), np.float32)
    sch = schedule_sgemm(tir.Schedule(sgemm(n, n, n, args.rows, args.columns)), parallel=False)
    if args.show:
        sch.show()
    module = tir.build(sch.mod, target="llvm")
    module(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-3, atol=1e-3)
    peak = measure_fma_peak()
    seconds = module.time_evaluator(number=3, repeat=5)(a, b, c).median
    speed = 2 * n**3 / seconds / 1e9
    print(f"sgemm {n}: {speed:.0f} GFLOP/s, {100 * speed / peak:.0f} % of one core's FMA peak of {peak:.0f}")


if __name__ == "__main__":
    main()
