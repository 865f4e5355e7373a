"""Buffers of no elements, in memory of every scope, in kernels that do something else as well."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((0,), "int32"), S: T.Buffer((2,), "int32"), n: T.int32):
    B = T.alloc_buffer((0,), "int32", scope="{scope}")
    for t in T.thread_binding(2, thread="threadIdx.x"):
        for j in range({never}):
            with T.block("B"):
                vj = T.axis.spatial(0, j)
                B[vj] = A[vj]
        with T.block("F"):
            vi = T.axis.spatial(2, t)
            S[vi] = 5
        for j in range({never}):
            with T.block("C"):
                vj = T.axis.spatial(0, j)
                S[vj] = B[vj]
"""


@pytest.mark.parametrize("never", ["0", "T.min(n, 0)"])
@pytest.mark.parametrize("scope", ["global", "shared", "shared.dyn", "local"])
def test_a_kernel_with_memory_of_no_elements_runs(scope, never):
    func = parse(PROGRAM.format(scope=scope, never=never))
    for target in ("interpreter", "cuda-sim"):
        result = np.full(2, 7, "int32")
        tir.build(func, target=target)(np.zeros(0, "int32"), result, 3)
        assert result.tolist() == [5, 5], target
    tir.build(func, target="cuda")  # compiled, if there is a compiler for it, and not run


def test_lanes_that_ask_each_other_for_elements_that_are_not_there():
    func = parse("""
@T.prim_func
def main(n: T.int32, B: T.Buffer((32,), "float32")):
    with T.launch_thread("blockIdx.x", n) as b:
        with T.launch_thread("threadIdx.x", 32) as tx:
            W = T.allocate([0], "float32", "warp")
            W[tx] = 1.0
            B[tx] = W[31 - tx]
""")
    assert "tvm_warp_shuffle" in tir.transform.lower_warp_memory(func).script()


def test_memory_that_nothing_uses_goes():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((2,), "int32")):
    P = T.allocate([4], "int32", "global")
    B = T.decl_buffer((4,), "int32", data=P)
    for i in range(0):
        B[i] = A[i]
    A[0] = 1
""")
    text = tir.transform.remove_no_op(func).script()
    assert "allocate" not in text and "decl_buffer" not in text and "A[0] = 1" in text
