"""Attention by hand against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.hand_schedules import attention


@pytest.mark.parametrize("queries, keys, depth, parallel", [(12, 70, 16, False), (7, 33, 20, True), (1, 1, 3, False)])
def test_attention(queries: int, keys: int, depth: int, parallel: bool):
    rng = np.random.default_rng(0)
    q = rng.standard_normal((queries, depth), dtype=np.float32)
    k, v = rng.standard_normal((2, keys, depth), dtype=np.float32)
    out = np.full((queries, depth), np.nan, np.float32)
    sch = attention.schedule_attention(tir.Schedule(attention.attention(queries, keys, depth)), parallel)
    tir.build(sch.mod, target="llvm")(q, k, v, out)
    power = np.exp(q.astype(np.float64) @ k.T / np.sqrt(depth))
    np.testing.assert_allclose(out, power / power.sum(1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
