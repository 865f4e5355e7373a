"""Single-precision matmul against the machine's measured FMA peak and NumPy, interleaved in one run."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

import tir
from codegen.peak import measure_fma_peak

NUMPY = """
import sys, time, numpy as np
n = int(sys.argv[1])
a, b = (np.random.default_rng(0).standard_normal((n, n), dtype=np.float32) for _ in range(2))
c, times = np.empty((n, n), np.float32), []
for _ in range(7):
    start = time.perf_counter()
    np.matmul(a, b, out=c)
    times.append(time.perf_counter() - start)
print(sorted(times)[3])
"""


def _example():
    path = pathlib.Path(__file__).parent.parent / "docs" / "examples" / "sgemm.py"
    spec = importlib.util.spec_from_file_location("sgemm_example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(sizes: tuple[int, ...] = (1024, 2048), repeat: int = 7) -> Iterator[dict]:
    example = _example()
    cores = len(os.sched_getaffinity(0))
    for n in sizes:
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
        c = np.zeros((n, n), np.float32)
        modules = {}
        for threads in sorted({1, cores}):
            start = time.perf_counter()
            sch = example.schedule_sgemm(tir.Schedule(example.sgemm(n, n, n)), parallel=threads > 1)
            scheduled = time.perf_counter()
            modules[threads] = tir.build(sch.mod, target="llvm")
            built = time.perf_counter()
            yield {"what": f"schedule of sgemm {n}, {threads} threads", "value": scheduled - start, "unit": "s"}
            yield {"what": f"build of sgemm {n}, {threads} threads", "value": built - scheduled, "unit": "s"}
        times: dict[int, list[float]] = {threads: [] for threads in modules}
        peaks = []
        for _ in range(repeat):
            peaks.append(measure_fma_peak(seconds=0.05))
            for threads, module in modules.items():
                times[threads].append(_seconds(lambda module=module: module(a, b, c)))
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-3, atol=1e-3)
        peak = statistics.median(peaks)
        for threads, samples in times.items():
            ours = 2 * n**3 / statistics.median(samples) / 1e9
            name = f"sgemm {n}, {threads} threads"
            yield {"what": f"{name}, ours", "value": ours, "unit": "GFLOP/s"}
            yield {"what": f"{name}, share of the FMA peak", "value": ours / peak / threads, "unit": "1"}
            for label, core_type in (("NumPy", None), ("OpenBLAS SkylakeX", "SkylakeX")):
                theirs = 2 * n**3 / _numpy_seconds(n, threads, core_type) / 1e9
                yield {"what": f"{name}, {label}", "value": theirs, "unit": "GFLOP/s"}
                yield {"what": f"{name}, ratio to {label}", "value": ours / theirs, "unit": "1"}


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _numpy_seconds(n: int, threads: int, core_type: str | None) -> float:
    """Median seconds of NumPy's matmul in a process of its own, where the library reads its environment afresh."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    if core_type:
        env["OPENBLAS_CORETYPE"] = core_type
    done = subprocess.run([sys.executable, "-c", NUMPY, str(n)], env=env, capture_output=True, text=True, check=True)
    return float(done.stdout)
