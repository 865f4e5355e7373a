"""Single-precision matmul against the machine's measured FMA peak and NumPy, in one run."""

from __future__ import annotations

import importlib.util
import pathlib
import time
from collections.abc import Iterator

import numpy as np

import tir
from codegen.peak import measure_fma_peak


def _example():
    path = pathlib.Path(__file__).parent.parent / "docs" / "examples" / "matmul.py"
    spec = importlib.util.spec_from_file_location("matmul_example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(n: int = 1024) -> Iterator[dict]:
    example = _example()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    c = np.zeros((n, n), np.float32)
    sch = tir.Schedule(example.matmul(n))
    for _ in example.schedule(sch):
        pass
    start = time.perf_counter()
    tir.build(sch.mod, target="llvm")
    yield {"what": "build of the scheduled sgemm", "value": time.perf_counter() - start, "unit": "s"}
    peak = measure_fma_peak()
    ours = example.gflops(sch.mod, [a, b, c], a @ b, 3)
    numpy = example.numpy_gflops(a, b)
    yield {"what": f"sgemm {n}, ours", "value": ours, "unit": "GFLOP/s"}
    yield {"what": f"sgemm {n}, NumPy", "value": numpy, "unit": "GFLOP/s"}
    yield {"what": f"sgemm {n}, share of the FMA peak", "value": ours / peak, "unit": "1"}
    yield {"what": f"sgemm {n}, ratio to NumPy", "value": ours / numpy, "unit": "1"}
