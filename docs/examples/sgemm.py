"""Single-precision matrix multiplication near the machine's peak, by a schedule of a dozen steps.

Prints the scheduled program, checks the result, and times it by turns with what ``tir.tune.default`` makes of the same program.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import tir
from codegen.machine_peak import FmaPeak
from tir.library.gemm import gemm


def schedule(sch: tir.Schedule, rows: int = 6, vectors: int = 4, panels: int = 4) -> tir.Schedule:
    """``panels`` panels of B at a time are packed, so that they are read in order; sums of ``rows`` rows by ``vectors`` vectors
    stay in registers for a whole row of A."""
    lanes = tir.target.vector_registers().lanes()
    columns = vectors * lanes
    packed = sch.cache_read("C", "B", "global")
    sums = sch.cache_write("C", 0, "local")
    sch.transform_layout(packed, ("write", 0), lambda p, j: [j // columns, p, j % columns])
    i, j, p = sch.get_loops("C")
    jo, jp, jv, lane = sch.split(j, [None, panels, vectors, lanes])
    io, ii = sch.split(i, [None, rows])
    po, pi = sch.split(p, [None, 4])
    sch.reorder(jo, io, jp, po, pi, ii, jv, lane)
    sch.compute_at(packed, jo, preserve_unit_loops=True)
    sch.reverse_compute_at(sums, jp, preserve_unit_loops=True)
    start = sch.decompose_reduction("C", po)
    sch.vectorize(lane)
    sch.vectorize(sch.get_loops(start)[-1])
    for copy in (packed, sums):
        _, each = sch.split(sch.get_loops(copy)[-1], [None, lanes])
        sch.vectorize(each)
    for loop in (pi, ii, jv, *sch.get_loops(start)[-3:-1], *sch.get_loops(sums)[-3:-1]):
        sch.unroll(loop)
    return sch


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
    program = gemm(m, n, k)
    sch = schedule(tir.Schedule(program))
    modules = [tir.build(sch), tir.build(tir.tune.default(program))]
    print(sch.trace.as_python())
    if args.show:
        sch.show()
        print(modules[0].report)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for module in modules:
        module(a, b, c)
        np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3)
    print(f"largest error {np.abs(c - expected).max():.2g} of values up to {np.abs(expected).max():.3g}")
    peak, best, speeds = FmaPeak(), [], [[], []]
    for _ in range(9):  # by turns, so that a machine whose clock moves moves all
        for module, found in zip(modules, speeds):
            seconds = module.time_evaluator(number=3, repeat=1)(a, b, c).median
            found.append(2 * m * n * k / seconds / 1e9)
        best.append(peak.rate(seconds * 3))
    most = sorted(best)[4]
    for name, found in zip(("by hand", "by default"), speeds):
        speed = sorted(found)[4]
        print(
            f"gemm {m}x{n}x{k}, {name}: {speed:.0f} GFLOP/s, {100 * speed / most:.0f} % of one core's FMA peak of {most:.0f}"
        )


if __name__ == "__main__":
    main()
