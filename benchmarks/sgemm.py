"""Single-precision matmul against the machine's measured FMA peak and NumPy's libraries, in turns within one run."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

import tir
from codegen.peak import FmaPeak
from tir.library.gemm import scheduled_gemm

SQUARE = (1024, 2048)
ODD = ((1000, 1000, 1000), (1023, 1023, 1023), (37, 4096, 511), (4096, 37, 511), (37, 511, 4096))
SMALL = tuple((n, n, n) for n in (16, 32, 64, 128))
SKINNY = ((2048, 16, 2048), (16, 2048, 2048), (2048, 2048, 16))

WORKER = """
import sys, time, numpy as np
rng, arrays = np.random.default_rng(0), {}
for line in sys.stdin:
    m, n, k, number = map(int, line.split())
    if (m, n, k) not in arrays:
        arrays[m, n, k] = (rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32),
                           np.empty((m, n), np.float32))
    a, b, c = arrays[m, n, k]
    np.matmul(a, b, out=c)
    clock = getattr(time, sys.argv[1])
    start = clock()
    for _ in range(number):
        np.matmul(a, b, out=c)
    print((clock() - start) / number, flush=True)
"""


class NumPyPeer:
    """NumPy in a process of its own, where its library reads the environment afresh; asked for one timing at a time."""

    def __init__(self, threads: int, core_type: str | None):
        env = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
        if core_type:
            env["OPENBLAS_CORETYPE"] = core_type
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, _clock(threads)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, m: int, n: int, k: int, number: int) -> float:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{m} {n} {k} {number}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def _clock(threads: int) -> str:
    """One thread is timed by the time it ran, which others on the machine disturb less; several by the clock."""
    return "thread_time" if threads == 1 else "perf_counter"


def measure(repeat: int = 9) -> Iterator[dict]:
    cores = len(os.sched_getaffinity(0))
    for n in SQUARE:
        for threads in sorted({1, cores}):
            yield from _size(n, n, n, threads, repeat)
    for sizes in (*ODD, *SMALL, *SKINNY):
        yield from _size(*sizes, 1, repeat)


def _size(m: int, n: int, k: int, threads: int, repeat: int) -> Iterator[dict]:
    """Rows of one size: how long to schedule and build, and medians of timings taken in turns."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    c = np.zeros((m, n), np.float32)
    name = f"sgemm {m}x{n}x{k}, {threads} thread{'s' * (threads > 1)}"
    start = time.perf_counter()
    sch = scheduled_gemm(m, n, k, threads)
    scheduled = time.perf_counter()
    module = tir.build(sch.mod, target={"kind": "llvm", "num_cores": threads})
    built = time.perf_counter()
    yield {"what": f"{name}: schedule", "value": scheduled - start, "unit": "s"}
    yield {"what": f"{name}: build", "value": built - scheduled, "unit": "s"}
    flops = 2 * m * n * k
    number = max(1, int(5e8 / flops) if flops < 5e8 else 1)
    peers = {"NumPy": NumPyPeer(threads, None), "OpenBLAS SkylakeX": NumPyPeer(threads, "SkylakeX")}
    peak, times, peaks = FmaPeak(), {label: [] for label in ("ours", *peers)}, []
    clock = getattr(time, _clock(threads))
    module(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-3, atol=1e-3)
    for _ in range(repeat):
        start = clock()
        for _ in range(number):
            module(a, b, c)
        times["ours"].append((clock() - start) / number)
        for label, peer in peers.items():
            times[label].append(peer.seconds(m, n, k, number))
        peaks.append(peak.rate(max(0.005, times["ours"][-1])))
    for peer in peers.values():
        peer.close()
    rate = {label: flops / statistics.median(samples) / 1e9 for label, samples in times.items()}
    yield {"what": f"{name}: ours", "value": rate["ours"], "unit": "GFLOP/s"}
    share = rate["ours"] / statistics.median(peaks) / threads
    yield {"what": f"{name}: share of the FMA peak", "value": share, "unit": "1"}
    for label in peers:
        yield {"what": f"{name}: {label}", "value": rate[label], "unit": "GFLOP/s"}
        yield {"what": f"{name}: ratio to {label}", "value": rate["ours"] / rate[label], "unit": "1"}
