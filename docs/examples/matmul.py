"""A float32 matrix multiplication (768 x 768), scheduled step by step, checked against NumPy and timed.

Every step is a loop primitive; each is printed with the difference it makes, and the table at the end shows what it
is worth on this machine.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import tir
from codegen.machine_peak import measure_fma_peak
from tir.script import tir as T


def matmul(n: int) -> tir.PrimFunc:
    """C = A @ B for n x n float32 matrices."""

    @T.prim_func
    def matmul(A: T.Buffer((n, n), "float32"), B: T.Buffer((n, n), "float32"), C: T.Buffer((n, n), "float32")):
        for i, j, k in T.grid(n, n, n):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    return matmul


def schedule(sch: tir.Schedule, rows: int = 8, columns: int = 32, depth: int = 256, lanes: int = 16):
    """The steps, as (what it does, the schedule after it); a register tile of ``rows`` x ``columns``."""
    i, j, k = sch.get_loops("C")
    j_outer, j_vector, lane = sch.split(j, [None, columns // lanes, lanes], names=["jo", "jv", "ji"])
    i_outer, i_inner = sch.split(i, [None, rows], names=["io", "ii"])
    yield "tile"
    k_outer, k_inner = sch.split(k, [None, depth], names=["ko", "ki"])
    sch.reorder(k_outer, i_outer, j_outer, k_inner, i_inner, j_vector, lane)
    yield "reorder"
    sch.vectorize(lane)
    yield "vectorize"
    sch.unroll(i_inner)
    sch.unroll(j_vector)
    yield "unroll"


def gflops(func: tir.PrimFunc | tir.IRModule, arrays: list[np.ndarray], want: np.ndarray) -> float:
    """Speed of the built function in GFLOP/s; its result is compared with ``want``."""
    module = tir.build(func, target="llvm")
    seconds = least(lambda: module(*arrays))
    np.testing.assert_allclose(arrays[2], want, rtol=1e-3, atol=1e-3)
    return 2 * want.shape[0] ** 3 / seconds / 1e9


def least(call: Callable[[], object], budget: float = 0.5) -> float:
    """The least time of a call, in seconds: of one that takes longer than ``budget`` seconds, the first."""
    best, end = float("inf"), time.perf_counter() + budget
    while best == float("inf") or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-n", type=int, default=768, help="rows and columns; powers of two make the first steps slow")
    options.add_argument("--quiet", action="store_true", help="print the table only")
    args = options.parse_args()

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((args.n, args.n), dtype=np.float32) for _ in range(2))
    c = np.zeros((args.n, args.n), np.float32)
    want = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)

    func = matmul(args.n)
    if not args.quiet:
        func.show()
        sch = tir.Schedule(func)
        for what in schedule(sch):
            print(f"\n--- {what} ---")
            print(sch.diff())
        print("\nthe schedule, as Python:\n")
        print(sch.trace.as_python())

    peak = measure_fma_peak()
    print(f"\n{args.n} x {args.n} float32 matmul, one thread; this machine's FMA peak is {peak:.0f} GFLOP/s\n")
    print(f"{'':<20}{'GFLOP/s':>10}{'% of peak':>12}")

    def row(name: str, measure: Callable[[], float]) -> None:
        print(f"{name:<20}", end="", flush=True)
        speed = measure()
        print(f"{speed:>10.1f}{100 * speed / peak:>11.1f}%", flush=True)

    row("naive", lambda: gflops(func, [a, b, c], want))
    sch = tir.Schedule(func)
    for what in schedule(sch):
        row(what, lambda: gflops(sch.mod, [a, b, c], want))
    row("tir.tune.default", lambda: gflops(tir.tune.default(func, "llvm").mod, [a, b, c], want))
    row("NumPy", lambda: 2 * args.n**3 / least(lambda: a @ b) / 1e9)


if __name__ == "__main__":
    main()
