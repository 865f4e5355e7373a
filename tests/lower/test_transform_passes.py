# ruff: noqa: E501
"""Each pass, before and after, in the dialect."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import transform
from tir.script import parse
from tir.stmt import seq
from tir.testing.oracle import assert_roundtrip, assert_same_result

CASES = [
    pytest.param(
        "lower_init_block",
        """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    # with T.block("root"):
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            if vk == 0:
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
""",
        id="lower_init_block",
    ),
    pytest.param(
        "plan_and_update_buffer_allocation_location",
        """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8), "float32")
    for i in range(8):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    # with T.block("root"):
    for i in range(8):
        with T.block("B_scope"):
            T.reads(A[i, 0:8])
            T.writes(C[i, 0:8])
            B = T.alloc_buffer((8, 8), "float32")
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj] + 1.0
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(B[vi, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = B[vi, vj] * 2.0
""",
        id="plan_and_update_buffer_allocation_location",
    ),
    pytest.param(
        "convert_blocks_to_opaque",
        """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i, j in T.grid(2, 4):
        with T.block("B"):
            vi = T.axis.spatial(8, i * 4 + j)
            B[vi] = A[vi]
""",
        """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    # with T.block("root"):
    for i, j in T.grid(2, 4):
        with T.block("B"):
            T.reads(A[i * 4 + j])
            T.writes(B[i * 4 + j])
            B[i * 4 + j] = A[i * 4 + j]
""",
        id="convert_blocks_to_opaque",
    ),
    pytest.param(
        "lower_match_buffer",
        """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32")):
    for i in range(2):
        with T.block("tile"):
            T.reads()
            T.writes(A[i * 4:i * 4 + 4, 0:8])
            V = T.match_buffer(A[i * 4:i * 4 + 4, 0:8], (4, 8), "float32")
            for j in range(4):
                V[j, 3] = T.float32(1)
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32")):
    # with T.block("root"):
    for i in range(2):
        with T.block("tile"):
            T.reads()
            T.writes(A[i * 4 : i * 4 + 4, 0:8])
            for j in range(4):
                A[i * 4 + j, 3] = T.float32(1)
""",
        id="lower_match_buffer",
    ),
    pytest.param(
        "compact_buffer_allocation",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for i in range(8):
        with T.block("tile"):
            T.reads(A[i * 8:i * 8 + 8])
            T.writes(C[i * 8:i * 8 + 8])
            B = T.alloc_buffer((64,), "float32")
            for j in range(8):
                B[i * 8 + j] = A[i * 8 + j]
            for j in range(8):
                C[i * 8 + j] = B[i * 8 + j]
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    # with T.block("root"):
    for i in range(8):
        with T.block("tile"):
            T.reads(A[i * 8 : i * 8 + 8])
            T.writes(C[i * 8 : i * 8 + 8])
            B = T.alloc_buffer((8,), "float32")
            for j in range(8):
                B[j] = A[i * 8 + j]
            for j in range(8):
                C[i * 8 + j] = B[j]
""",
        id="compact_buffer_allocation",
    ),
    pytest.param(
        "lower_opaque_block",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for i, u in T.grid(8, 1):
        with T.block("tile"):
            T.where(i < 7)
            T.reads(A[i * 8])
            T.writes(C[i * 8])
            T.block_attr({"pragma_auto_unroll_max_step": 16})
            B = T.alloc_buffer((1,), "float32")
            B[u] = A[i * 8]
            C[i * 8] = B[u]
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for i in range(8):
        if i < 7:
            T.attr(T.int32(0), "pragma_auto_unroll_max_step", 16)
            B = T.allocate([1], "float32", "global")
            B_1 = T.decl_buffer((1,), "float32", data=B)
            B_1[0] = A[i * 8]
            C[i * 8] = B_1[0]
""",
        id="lower_opaque_block",
    ),
    pytest.param(
        "flatten_buffer",
        """
@T.prim_func
def f(a: T.handle, B: T.Buffer((4, 8), "float32")):
    A = T.match_buffer(a, (4, 8), "float32", strides=[16, 1])
    p = T.allocate([4, 8], "float32", "global")
    C = T.decl_buffer((4, 8), "float32", data=p)
    for i, j in T.grid(4, 8):
        C[i, j] = A[i, j]
        B[i, j] = C[i, j]
""",
        """
@T.prim_func
def f(a: T.handle, B: T.Buffer((4, 8), "float32")):
    A = T.match_buffer(a, (4, 8), "float32", strides=[16, 1])
    A_1 = T.decl_buffer((56,), "float32", data=A.data)
    B_1 = T.decl_buffer((32,), "float32", data=B.data)
    p = T.allocate([32], "float32", "global")
    C = T.decl_buffer((32,), "float32", data=p)
    for i, j in T.grid(4, 8):
        C[i * 8 + j] = A_1[i * 16 + j]
        B_1[i * 8 + j] = C[i * 8 + j]
""",
        id="flatten_buffer",
    ),
    pytest.param(
        "simplify",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for i, j in T.grid(4, 8):
        if (i * 8 + j) // 8 < 4:
            B[(i * 8 + j) // 8 * 8 + (i * 8 + j) % 8] = A[i * 8 + j]
""",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for i, j in T.grid(4, 8):
        B[i * 8 + j] = A[i * 8 + j]
""",
        id="simplify",
    ),
    pytest.param(
        "remove_likely",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), n: T.int32):
    for i in range(32):
        if T.likely(i < n):
            A[i] = T.float32(0)
""",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), n: T.int32):
    for i in range(32):
        if i < n:
            A[i] = T.float32(0)
""",
        id="remove_likely",
    ),
    pytest.param(
        "remove_no_op",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), n: T.int32):
    for i in range(32):
        if i < n:
            T.evaluate(0)
    A[0] = T.float32(0)
""",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), n: T.int32):
    A[0] = T.float32(0)
""",
        id="remove_no_op",
    ),
    pytest.param(
        "loop_partition",
        """
@T.prim_func
def f(A: T.Buffer((20,), "float32"), B: T.Buffer((20,), "float32")):
    for io in range(3):
        for ii in T.vectorized(8):
            if io * 8 + ii < 20:
                B[io * 8 + ii] = A[io * 8 + ii]
""",
        """
@T.prim_func
def f(A: T.Buffer((20,), "float32"), B: T.Buffer((20,), "float32")):
    for io in range(2):
        for ii in T.vectorized(8):
            B[io * 8 + ii] = A[io * 8 + ii]
    for ii in T.vectorized(4):
        B[T.Mul(2, 8) + ii] = A[T.Mul(2, 8) + ii]
""",
        id="loop_partition",
    ),
    pytest.param(
        "loop_partition",
        """
@T.prim_func
def f(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for io in range((n + 7) // 8):
        for ii in T.vectorized(8):
            if io * 8 + ii < n:
                A[io * 8 + ii] = T.float32(1)
""",
        """
@T.prim_func
def f(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for io in range(n // 8):
        for ii in T.vectorized(8):
            A[io * 8 + ii] = T.float32(1)
    if n // 8 < (n + 7) // 8:
        for ii in T.vectorized(8):
            if n // 8 * 8 + ii < n:
                A[n // 8 * 8 + ii] = T.float32(1)
""",
        id="loop_partition-symbolic",
    ),
    pytest.param(
        "loop_partition",
        """
@T.prim_func
def f(A: T.Buffer((20,), "float32")):
    for i in T.serial(20, annotations={"pragma_loop_partition_hint": 1}):
        if i < 5:
            A[i] = T.float32(1)
""",
        """
@T.prim_func
def f(A: T.Buffer((20,), "float32")):
    for i in range(5):
        A[i] = T.float32(1)
""",
        id="loop_partition-hint",
    ),
    pytest.param(
        "vectorize_loop",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float16"), s: T.float32):
    for i in range(4):
        for j in T.vectorized(16):
            for k in range(2):
                B[i * 16 + j] = T.Cast("float16", T.Select(A[i * 16 + j] > s, T.exp(A[k]), A[j * 2 + k]))
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float16"), s: T.float32):
    for i, k in T.grid(4, 2):
        B[i * 16 : i * 16 + 16] = T.Cast("float16x16", T.Select(A[i * 16 : i * 16 + 16] > T.Broadcast(s, 16), T.Broadcast(T.exp(A[k]), 16), A[T.Ramp(k, 2, 16)]))
""",
        id="vectorize_loop",
    ),
    pytest.param(
        "vectorize_loop",
        """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((1,), "float32"), n: T.int32):
    for j in T.vectorized(16):
        B[j] = A[j]
        C[0] = C[0] + A[j]
        if j < n:
            B[j] = T.float32(0)
        if n < 4:
            B[j] = T.float32(3)
""",
        """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((1,), "float32"), n: T.int32):
    B[0:16] = A[0:16]
    for j in T.serial(16, annotations={"scalar_because": "all lanes write one element of C"}):
        C[0] = C[0] + A[j]
    for j in T.serial(16, annotations={"scalar_because": "the condition differs between lanes"}):
        if j < n:
            B[j] = T.float32(0)
    if n < 4:
        B[0:16] = T.Broadcast(T.float32(3), 16)
""",
        id="vectorize_loop-scalar_parts",
    ),
    pytest.param(
        "vectorize_loop",
        """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for j in T.vectorized(16):
        B[j] = T.if_then_else(j < n, T.float32(1), T.float32(2))
    for j in T.vectorized(16):
        B[j] = T.if_then_else(j < n, A[j], T.float32(0))
    for j in T.vectorized(16):
        x: T.float32 = A[j] * T.float32(2)
        B[j] = x + x
""",
        """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0:16] = T.Select(T.Ramp(0, 1, 16) < T.Broadcast(n, 16), T.Broadcast(T.float32(1), 16), T.Broadcast(T.float32(2), 16))
    for j in T.serial(16, annotations={"scalar_because": "a condition that guards a load differs between lanes"}):
        B[j] = T.if_then_else(j < n, A[j], T.float32(0))
    x: T.float32x16 = A[0:16] * T.Broadcast(T.float32(2), 16)
    B[0:16] = x + x
""",
        id="vectorize_loop-padding",
    ),
    pytest.param(
        "vectorize_loop",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), P: T.Buffer((16,), "int32")):
    for j in T.vectorized(16):
        own = T.allocate([4], "float32", "local")
        x = T.decl_buffer((4,), "float32", data=own)
        for k in range(4):
            x[k] = A[j + k]
        A[j] = x[P[j] % 4] + x[2]
    for j in T.vectorized(16):
        own2 = T.allocate([4], "float32", "local")
        y = T.decl_buffer((4,), "float32", data=own2)
        z = T.decl_buffer((16,), "int8", data=own2)
        y[1] = A[j]
        A[j] = T.Cast("float32", z[5])
""",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), P: T.Buffer((16,), "int32")):
    with T.allocate([64], "float32", "local") as own:
        x = T.decl_buffer((64,), "float32", data=own)
        for k in range(4):
            x[k * 16 : k * 16 + 16] = A[k : k + 16]
        A[0:16] = x[P[0:16] % T.Broadcast(4, 16) * T.Broadcast(16, 16) + T.Ramp(0, 1, 16)] + x[32:48]
    for j in T.serial(16, annotations={"scalar_because": "z is a view of what each lane has of its own"}):
        own2 = T.allocate([4], "float32", "local")
        y = T.decl_buffer((4,), "float32", data=own2)
        z = T.decl_buffer((16,), "int8", data=own2)
        y[1] = A[j]
        A[j] = T.Cast("float32", z[5])
""",
        id="vectorize_loop-own_memory",
    ),
    pytest.param(
        "unroll_loop",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(n):
        for j in T.unroll(2):
            for k in range(3):
                A[i * 2 + j] = A[k]
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(n):
        for k in range(3):
            A[T.Add(i * 2, 0)] = A[k]
        for k in range(3):
            A[i * 2 + 1] = A[k]
""",
        id="unroll_loop",
    ),
    pytest.param(
        "unroll_loop",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((8,), "int32"), n: T.int32):
    for k in range(8):
        for i in T.unroll(3):
            if i < n % 4 and n > 0:
                A[k + i] = 1.0
        for i in T.unroll(2):
            if i >= n:
                A[k + i] = 2.0
        for i in T.unroll(2):
            if i < B[0]:
                B[k + i] = 0
        for i in T.unroll(0):
            if i < n:
                A[k + i] = 3.0
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((8,), "int32"), n: T.int32):
    for k in range(8):
        if 0 < n % 4 and n > 0:
            A[T.Add(k, 0)] = T.float32(1)
            if 1 < n % 4 and n > 0:
                A[k + 1] = T.float32(1)
                if 2 < n % 4 and n > 0:
                    A[k + 2] = T.float32(1)
        if 0 >= n:
            A[T.Add(k, 0)] = T.float32(2)
        if 1 >= n:
            A[k + 1] = T.float32(2)
        if 0 < B[0]:
            B[T.Add(k, 0)] = 0
        if 1 < B[0]:
            B[k + 1] = 0
""",
        id="unroll_loop-guarded",
    ),
    pytest.param(
        "unroll_loop",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), n: T.int32):
    with T.attr(0, "pragma_auto_unroll_max_step", 4):
        for i in range(n):
            for j in range(3):
                A[i * 3 + j] = T.float32(0)
            for j in range(5):
                A[i * 5 + j] = T.float32(0)
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(n):
        A[T.Add(i * 3, 0)] = T.float32(0)
        A[i * 3 + 1] = T.float32(0)
        A[i * 3 + 2] = T.float32(0)
        for j in range(5):
            A[i * 5 + j] = T.float32(0)
""",
        id="unroll_loop-automatic",
    ),
    pytest.param(
        "storage_rewrite",
        """
@T.prim_func
def f(A: T.Buffer((512,), "float32"), D: T.Buffer((512,), "float32")):
    p = T.allocate([512], "float32", "global")
    B = T.decl_buffer((512,), "float32", data=p)
    q = T.allocate([512], "float32", "global")
    C = T.decl_buffer((512,), "float32", data=q)
    r = T.allocate([512], "float32", "global")
    E = T.decl_buffer((512,), "float32", data=r)
    for i in range(512):
        B[i] = A[i]
    for i in range(512):
        C[i] = B[511 - i]
    for i in range(512):
        E[i] = C[i // 2]
    for i in range(512):
        D[i] = E[i]
""",
        """
@T.prim_func
def f(A: T.Buffer((512,), "float32"), D: T.Buffer((512,), "float32")):
    p = T.allocate([512], "float32", "global")
    B = T.decl_buffer((512,), "float32", data=p)
    q = T.allocate([512], "float32", "global")
    C = T.decl_buffer((512,), "float32", data=q)
    E = T.decl_buffer((512,), "float32", data=p)
    for i in range(512):
        B[i] = A[i]
    for i in range(512):
        C[i] = B[511 - i]
    for i in range(512):
        E[i] = C[i // 2]
    for i in range(512):
        D[i] = E[i]
""",
        id="storage_rewrite",
    ),
    pytest.param(
        "common_subexpr_elim",
        """
@T.prim_func
def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), n: T.int32):
    for i in range(64):
        B[i * 5 // 7 + i % n] = A[i * 5 // 7] + i * 5 // 7
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), n: T.int32):
    for i in range(64):
        cse_v1: T.int32 = i * 5 // 7
        B[cse_v1 + i % n] = A[cse_v1] + cse_v1
""",
        id="common_subexpr_elim",
    ),
    pytest.param(
        "lower_intrin",
        """
@T.prim_func
def f(A: T.Buffer((64,), "int32"), n: T.int32):
    for i in range(64):
        A[i // 3] = n // 8 + n % 16 + n // 3 + i % 5
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "int32"), n: T.int32):
    for i in range(64):
        A[T.truncdiv(i, 3)] = (n >> 3) + (n & 15) + n // 3 + T.truncmod(i, 5)
""",
        id="lower_intrin",
    ),
]


@pytest.mark.parametrize("name,before,after", CASES)
def test_pass(name, before, after):
    func = tir.script.parse(before.strip())
    made = getattr(transform, name)(func)
    tir.assert_structural_equal(made, tir.script.parse(after.strip()))
    assert_roundtrip(made)


def test_alignment_of_a_buffer_that_only_its_block_uses():
    """The block allocates it, and no longer says that it writes it: the rows that number its writes follow."""
    sch = tir.Schedule(
        tir.script.parse("""
@T.prim_func
def main(A: T.Buffer((2, 8), "float32"), O: T.Buffer((2, 8), "float32")):
    B = T.alloc_buffer((2, 8), "float32")
    C = T.alloc_buffer((2, 8), "float32")
    for i, j in T.grid(2, 8):
        with T.block("both"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
            C[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(2, 8):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = C[vi, 7 - vj]
""")
    )
    sch.storage_align("both", 0, 0, 8, 1)
    sch.storage_align("both", 1, 0, 8, 1)
    moved = transform.plan_and_update_buffer_allocation_location(
        transform.convert_blocks_to_opaque(transform.lower_init_block(sch.mod))
    )
    assert '"buffer_dim_align": [[0, 0, 8, 1]]' in moved.script()
    assert_same_result(sch.mod, sch.mod, engines=("llvm",))


def test_copies_of_a_let_that_share_its_variable_are_vectorized_apart():
    program = tir.script.parse("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), O: T.Buffer((4,), "float32")):
    for i in T.vectorized(4):
        x: T.float32 = A[i]
        O[i] = O[i] * T.float32(2) + x
""")
    loop = program.body
    twice = program.with_body(loop.replace(body=seq([loop.body, loop.body.replace(value=loop.body.value + 1.0)])))
    assert_same_result(twice, transform.vectorize_loop(twice), engines=("interpreter",))


def test_an_allocation_stays_around_iterations_of_which_one_writes():
    func = tir.script.parse("""
@T.prim_func
def main(B: T.Buffer((2, 1), "int32"), O: T.Buffer((2,), "int32")):
    S = T.alloc_buffer((2,), "int32")
    for f in range(8):
        for z in range(1):
            for k in range(2):
                with T.block("S"):
                    vi = T.axis.spatial(2, (f + z) // 4)
                    vk = T.axis.reduce(1, (f + z) % 4 * 2 + k)
                    T.where((f + z) % 4 * 2 + k < 1)
                    with T.init():
                        S[vi] = 0
                    S[vi] = S[vi] + B[vi, vk]
            with T.block("O"):
                vi = T.axis.spatial(2, (f + z) // 4)
                O[vi] = S[vi]
""")
    moved = tir.transform.plan_and_update_buffer_allocation_location(func)
    assert [b.name for b in moved.body.block.alloc_buffers] == ["S"]


@pytest.mark.parametrize(("second", "stays"), [("n > 0", []), ("n > 1", ["S"])])
def test_what_is_never_written_need_not_be_kept(second, stays):
    """Under one condition on all writes, that no loop changes, an iteration reads its own, or what was never set."""
    func = tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), n: T.int32, O: T.Buffer((8,), "int32")):
    S = T.alloc_buffer((8,), "int32")
    for i in range(8):
        if n > 0:
            S[i] = A[i]
        if {second}:
            S[i] = A[i] * 2
        O[i] = S[i] // n
""")
    moved = tir.transform.plan_and_update_buffer_allocation_location(func)
    assert [b.name for b in moved.body.block.alloc_buffers] == stays


@pytest.mark.parametrize("separators", ["", ", axis_separators=[1]"])
def test_vectors_in_vectors_fill_all_elements(separators):
    func = tir.script.parse(
        """
@T.prim_func
def main(A: T.Buffer((2, 6), "float32"), C: T.Buffer((2, 6), "float32")):
    B = T.alloc_buffer((2, 6), "float32"{separators})
    for b in T.vectorized(2):
        for i in T.vectorized(2):
            for j in range(3):
                with T.block("B"):
                    B[b, i * 3 + j] = 1.0
                with T.block("update"):
                    B[b, i * 3 + j] = B[b, i * 3 + j] + A[b, i * 3 + j]
    for i, j in T.grid(2, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
""".replace("{separators}", separators)
    )
    assert_same_result(func, func, engines=("llvm",))


def test_a_value_of_each_lane_that_a_scalar_store_uses():
    """The lanes of the value are no variable of a scalar loop: all of the let is one."""
    func = parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    for i in T.vectorized(8):
        x: T.float32 = A[i] * T.float32(3)
        B[i] = x
        C[0] = x
""")
    made = tir.transform.vectorize_loop(func)
    assert not tir.analysis.wellformed.check(made)
    a, b, c = np.arange(8, dtype="float32"), np.zeros(8, "float32"), np.zeros(1, "float32")
    tir.interp.run(made, a, b, c)
    assert b.tolist() == (a * 3).tolist() and c.tolist() == [21]


@pytest.mark.parametrize(
    "body",
    [
        "B[i, T.ramp(0, 1, 8)] = A[i, T.ramp(0, 1, 8)] * T.broadcast(T.float32(2), 8)",
        "B[i, T.ramp(i * 2, 1, 2)] = T.broadcast(A[i, 0], 2)",
        "for j in T.vectorized(8):\n            B[i, j] = A[i, j] + T.Cast('float32', j)",
    ],
)
def test_a_loop_around_vectors_stays_a_loop_and_says_why(body):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in T.vectorized(4):
        {body}
""")
    made = tir.transform.vectorize_loop(func)
    assert "it holds vectors already" in made.script() and "T.vectorized" not in made.script()
    a = np.arange(32, dtype="float32").reshape(4, 8)
    results = np.zeros((2, 4, 8), "float32")
    for program, result in zip((func, made), results):
        tir.interp.run(program, a, result)
    np.testing.assert_array_equal(*results)
