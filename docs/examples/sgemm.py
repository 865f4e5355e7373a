"""Single-precision matrix multiplication near the machine's peak, by schedule alone.

The program and its schedule are ``tir.library.gemm``: this prints the steps, checks the result and times it.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import tir
from codegen.machine_peak import FmaPeak
from tir.library.gemm import gemm, pick_tile, schedule_gemm, scheduled_gemm

__all__ = ["gemm", "pick_tile", "schedule_gemm", "scheduled_gemm"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-m", type=int, default=1024)
    options.add_argument("-n", type=int, default=1024)
    options.add_argument("-k", type=int, default=1024)
    options.add_argument("--show", action="store_true", help="print the scheduled program and what became of its loops")
    args = options.parse_args()
    m, n, k = args.m, args.n, args.k
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    c = np.zeros((m, n), np.float32)
    sch = scheduled_gemm(m, n, k)
    module = tir.build(sch.mod, target="llvm")
    print(sch.trace.as_python())
    if args.show:
        sch.show()
        print(module.report)
    module(a, b, c)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3)
    print(f"largest error {np.abs(c - expected).max():.2g} of values up to {np.abs(expected).max():.3g}")
    peak, ours, best = FmaPeak(), [], []
    for _ in range(9):  # in turns, so that a machine whose clock moves moves both
        seconds = module.time_evaluator(number=3, repeat=1)(a, b, c).median
        ours.append(2 * m * n * k / seconds / 1e9)
        best.append(peak.rate(seconds * 3))
    speed, most = sorted(ours)[4], sorted(best)[4]
    print(f"gemm {m}x{n}x{k}: {speed:.0f} GFLOP/s, {100 * speed / most:.0f} % of one core's FMA peak of {most:.0f}")


if __name__ == "__main__":
    main()
