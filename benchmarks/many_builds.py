"""Whether a process that builds for a long time stays the same size.

``python -m benchmarks.many_builds`` builds 10,000 different small programs (parsed, scheduled, compiled without the disk
cache, called, dropped) and prints after each 1,000 of them the process' resident memory in MB, its Python
objects, and the nodes of programs that are still alive, which should be none of those built.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from pathlib import Path

import numpy as np

import tir
from tir.node import Node
from tir.script import from_source

MARKS = range(1000, 10001, 1000)
TEXT = """
@T.prim_func
def step(A: T.Buffer(({n},), "float32"), B: T.Buffer(({n},), "float32")):
    for i in range({n}):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            B[vi] = A[vi] + T.float32({k})
"""


def build_one(k: int) -> None:
    """Build the ``k``-th program, which no other is equal to, and check what it computes."""
    n = 4 + k % 61
    sch = tir.Schedule(from_source(TEXT.format(n=n, k=k)))
    outer, inner = sch.split("i", [None, 4])
    if k % 2:
        sch.vectorize(inner)
    if k % 3 == 0:
        sch.parallel(outer)
    if k % 5 == 0:
        sch.undo()
    a, b = np.ones(n, "float32"), np.zeros(n, "float32")
    tir.build(sch.mod, target="llvm")(a, b)
    if not (b == 1 + k).all():
        raise AssertionError(f"program {k} computed {b[0]}")


def live_objects() -> tuple[int, int]:
    """Python objects that the collector tracks, and the nodes of programs among them."""
    gc.collect()
    found = gc.get_objects()
    return len(found), sum(isinstance(o, Node) for o in found)


def resident_mb() -> float:
    """Resident memory of this process in MB (Linux); nan elsewhere."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return float("nan")
    return pages * 4096 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", type=int, default=MARKS[-1])
    builds = parser.parse_args().builds
    print(f"{'builds':>8}{'MB':>8}{'objects':>10}{'nodes':>8}{'ms each':>9}", flush=True)
    start, before = time.perf_counter(), 0
    os.environ["TIR_CACHE"] = "0"
    for k in range(1, builds + 1):
        build_one(k)
        if k in (100, *MARKS, builds):
            objects, nodes = live_objects()
            each = 1e3 * (time.perf_counter() - start) / (k - before)
            print(f"{k:8}{resident_mb():8.1f}{objects:10}{nodes:8}{each:9.1f}", flush=True)
            start, before = time.perf_counter(), k


if __name__ == "__main__":
    main()
