"""Programs in steps, each of which goes on with what the one before has made: blocks in loops that others are in, too."""

from __future__ import annotations

import pytest

import tir
from benchmarks.random_plain import Draw, repeated
from tir.stmt import For
from tir.testing import assert_same_result
from tir.visit import walk

STEPS = """
@T.prim_func
def main(A: T.Buffer((N, N), "float32"), x: T.Buffer((T + 1, N), "float32"), y: T.Buffer((N,), "float32"), s: T.Buffer((1,), "float32")):
    for t in range(T):
        for i, k in T.grid(N, N):
            with T.block("y"):
                vt = T.axis.opaque(T, t)
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    y[vi] = T.float32(0)
                y[vi] = y[vi] + A[vi, vk] * x[vt, vk]
        for k in range(N):
            with T.block("s"):
                v0 = T.axis.spatial(1, 0)
                vk = T.axis.reduce(N, k)
                with T.init():
                    s[v0] = T.float32(0)
                s[v0] = s[v0] + y[vk] * y[vk]
        for i in range(N):
            with T.block("x"):
                vt = T.axis.opaque(T, t)
                vi = T.axis.spatial(N, i)
                x[vt + 1, vi] = y[vi] / (T.sqrt(s[0]) + T.float32(1))
"""


def scheduled(func: tir.PrimFunc) -> tir.Schedule:
    sch = tir.tune.default(func, "llvm -num-cores=1 -vector_width=512 -l1_bytes=32768 -l2_bytes=1048576")
    assert_same_result(func, sch.mod, engines=("llvm", "interpreter"), rtol=1e-3, atol=1e-4)
    return sch


@pytest.mark.parametrize("size", [48, 64, 100])
def test_sums_along_rows_are_partial_sums_in_each_step(size: int):
    text = STEPS.replace("T.grid(N, N)", f"T.grid({size}, {size})").replace("N", str(size))
    sch = scheduled(
        tir.script.parse(text.replace("range(T)", "range(3)").replace("(T, t)", "(3, t)").replace("(T + 1", "(4"))
    )
    for block in ("y", "s"):
        assert any(b.name.startswith(f"{block}_rf") for b in sch.get_child_blocks("root"))
    outer = [n for n in walk(sch.mod["main"].body) if isinstance(n, For) and n.loop_var.name == "t"]
    assert len(outer) == 1, "the steps are in one loop"


@pytest.mark.parametrize("seed", range(8))
def test_products_in_steps_are_tiled(seed: int):
    sch = scheduled(repeated(Draw(seed)))
    assert "T.vectorized" in sch.mod.script()
