"""The schedules of docs/examples give the results of NumPy, at sizes that are multiples of nothing too."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import pytest

import tir


def example(name: str):
    path = pathlib.Path(__file__).parent.parent / "docs" / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (37, 45, 51), (100, 99, 3), (1, 1, 1), (5, 200, 16)])
def test_sgemm(m: int, n: int, k: int, parallel: bool):
    ex = example("sgemm")
    sch = ex.schedule_sgemm(tir.Schedule(ex.sgemm(m, n, k)), block_rows=28, parallel=parallel)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    c = np.full((m, n), np.nan, np.float32)
    module = tir.build(sch.mod, target="llvm")
    for _ in range(2):  # the second call works in the memory that the first one left
        module(a, b, c)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)
