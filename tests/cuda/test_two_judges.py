"""Kernels with Hopper's operators give the same on the simulator and compiled, by the executor of PTX: neither knows the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tir
from tests.hopper_kernels import BOX, CASES, CLUSTER, GEMM, REGISTERS, STORES, TYPES, numbers, product
from tir.interp.gpu import simulate

TARGET = "cuda-ptx -arch=sm_90a"


def same(text: str, *args: Any) -> None:
    """Both judges write the same arrays, and the simulator finds nothing."""
    kernel = tir.script.parse("@T.prim_func\n" + text.strip())
    mine, theirs = [a.copy() for a in args], [a.copy() for a in args]
    simulate(kernel, mine)
    tir.build(kernel, target=TARGET)(*theirs)
    for a, b in zip(mine, theirs):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_products(case: tuple[Any, ...]):
    a_type, b_type, d_type, n, swizzle, ta, tb = case
    depth = 64 // tir.DType(TYPES[a_type]).bytes
    r = np.random.default_rng(n)
    a, b = numbers(r, a_type, (64, depth))[0], numbers(r, b_type, (n, depth))[0]
    args = [np.ascontiguousarray(x.T) if t else x for x, t in ((a, ta), (b, tb))]
    same(product(*case, True), *args, np.zeros((64, n), TYPES[d_type]))


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_boxes(swizzle: int):
    columns = swizzle // 2 or 40
    text = BOX.replace("SWIZZLE", str(swizzle)).replace("ROWS", "16").replace("COLUMNS", str(columns))
    text = text.replace("BYTES", str(32 * columns)).replace("Y, X", "-3, 24")
    a = np.arange(1, 961).astype("float16").reshape(20, 48)
    same(text, a, np.zeros(32 * columns, "uint8"), np.zeros((20, 48), "float16"))


def test_registers_rings_stores_and_clusters():
    r = np.random.default_rng(0)
    a, b, c = (r.integers(-3, 4, s).astype("float16") for s in ((64, 256), (64, 16), (8, 16)))
    same(GEMM, a, a[::-1].copy(), np.zeros((64, 64), "float32"))
    same(REGISTERS, b, c, np.zeros((64, 8), "float32"))
    same(STORES, np.arange(128, dtype="float32"), np.zeros(128, "float32"))
    same(CLUSTER, np.arange(128, dtype="float32"), np.zeros(256, "float32"))
