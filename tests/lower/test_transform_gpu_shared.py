# ruff: noqa: E501
"""Places in shared memory, and barriers, before and after."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.gpu_passes import assert_lowers
from tir.interp.gpu import simulate
from tir.interp.numbers import array_dtype
from tir.script import parse

CASES = [
    pytest.param(
        "plan_shared_memory",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), H: T.Buffer((1024,), "float16"), B: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 512)
    S = T.allocate([512], "float32", "shared.dyn")
    S1 = T.decl_buffer((512,), "float32", data=S, scope="shared.dyn")
    G = T.allocate([1024], "float16", "shared.dyn")
    G1 = T.decl_buffer((1024,), "float16", data=G, scope="shared.dyn")
    R = T.allocate([512], "float32", "shared.dyn")
    R1 = T.decl_buffer((512,), "float32", data=R, scope="shared.dyn")
    S1[tx] = A[tx]
    G1[tx] = H[tx] + T.cast(S1[511 - tx], "float16")
    R1[tx] = T.cast(G1[511 - tx], "float32")
    B[tx] = R1[511 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), H: T.Buffer((1024,), "float16"), B: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 512)
    dyn_shared = T.allocate([4096], "uint8", "shared.dyn")
    S1 = T.decl_buffer((512,), "float32", data=dyn_shared)
    G1 = T.decl_buffer((1024,), "float16", data=dyn_shared, elem_offset=1024)
    R1 = T.decl_buffer((512,), "float32", data=dyn_shared)
    S1[tx] = A[tx]
    G1[tx] = H[tx] + T.Cast("float16", S1[511 - tx])
    R1[tx] = T.Cast("float32", G1[511 - tx])
    B[tx] = R1[511 - tx]
""",
        id="plan_shared_memory-dynamic",
    ),
    pytest.param(
        "plan_shared_memory",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), H: T.Buffer((1024,), "float16"), B: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 512)
    S = T.allocate([512], "float32", "shared")
    S1 = T.decl_buffer((512,), "float32", data=S, scope="shared")
    G = T.allocate([1024], "float16", "shared")
    G1 = T.decl_buffer((1024,), "float16", data=G, scope="shared")
    R = T.allocate([512], "float32", "shared")
    R1 = T.decl_buffer((512,), "float32", data=R, scope="shared")
    S1[tx] = A[tx]
    G1[tx] = H[tx] + T.cast(S1[511 - tx], "float16")
    R1[tx] = T.cast(G1[511 - tx], "float32")
    B[tx] = R1[511 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), H: T.Buffer((1024,), "float16"), B: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 512)
    static_shared = T.allocate([4096], "uint8", "shared")
    S1 = T.decl_buffer((512,), "float32", data=static_shared)
    G1 = T.decl_buffer((1024,), "float16", data=static_shared, elem_offset=1024)
    R1 = T.decl_buffer((512,), "float32", data=static_shared)
    S1[tx] = A[tx]
    G1[tx] = H[tx] + T.Cast("float16", S1[511 - tx])
    R1[tx] = T.Cast("float32", G1[511 - tx])
    B[tx] = R1[511 - tx]
""",
        id="plan_shared_memory-static",
    ),
    pytest.param(
        "plan_shared_memory",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    for k in range(4):
        S = T.allocate([64], "float32", "shared")
        S1 = T.decl_buffer((64,), "float32", data=S, scope="shared")
        S1[tx] = A[tx]
        B[tx] = S1[63 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.allocate([64], "float32", "shared")
    for k in range(4):
        S1 = T.decl_buffer((64,), "float32", data=S)
        S1[tx] = A[tx]
        B[tx] = S1[63 - tx]
""",
        id="plan_shared_memory-static_apart",
    ),
    pytest.param(
        "plan_shared_memory",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.allocate([128], "float32", "shared.dyn")
    G = T.allocate([128], "float32", "shared.dyn")
    S1 = T.decl_buffer((128,), "float32", data=S, scope="shared.dyn")
    G1 = T.decl_buffer((128,), "float32", data=G, scope="shared.dyn")
    T.ptx_cp_async(G, tx * 4, A.data, tx * 4, 16, dtype="float32")
    T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), G, 32, 16, 2, dtype="handle"))
    T.call_extern("void", "fill", S)
    A[tx] = G1[tx] + S1[tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    dyn_shared = T.allocate([1024], "uint8", "shared.dyn")
    S1 = T.decl_buffer((128,), "float32", data=dyn_shared)
    G1 = T.decl_buffer((128,), "float32", data=dyn_shared, elem_offset=128)
    T.ptx_cp_async(T.address_of(G1[tx * 4]), 0, A.data, tx * 4, 16, dtype="float32")
    T.tvm_access_ptr(T.type_annotation("float32"), dyn_shared, 160, 16, 2)
    T.call_extern("void", "fill", T.address_of(S1[0]))
    A[tx] = G1[tx] + S1[tx]
""",
        id="plan_shared_memory-pointers",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    S[tx] = A[tx]
    B[tx] = S[63 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    S[tx] = A[tx]
    T.tvm_storage_sync("shared", dtype="void")
    B[tx] = S[63 - tx]
""",
        id="thread_storage_sync-write_then_read",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    S[tx] = A[tx]
    B[tx] = S[tx]
    S[tx + 64] = B[tx]
    B[tx] = S[tx + 64] + S[tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    S[tx] = A[tx]
    B[tx] = S[tx]
    S[tx + 64] = B[tx]
    B[tx] = S[tx + 64] + S[tx]
""",
        id="thread_storage_sync-own_element_needs_none",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    for k in range(8):
        S[tx] = A[k * 64 + tx]
        B[k * 64 + tx] = S[63 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    for k in range(8):
        T.tvm_storage_sync("shared", dtype="void")
        S[tx] = A[k * 64 + tx]
        T.tvm_storage_sync("shared", dtype="void")
        B[k * 64 + tx] = S[63 - tx]
""",
        id="thread_storage_sync-loop_with_reuse",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    for k in range(8):
        S[k % 2 * 64 + tx] = A[k * 64 + tx]
        B[k * 64 + tx] = S[k % 2 * 64 + 63 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    for k in range(8):
        S[k % 2 * 64 + tx] = A[k * 64 + tx]
        T.tvm_storage_sync("shared", dtype="void")
        B[k * 64 + tx] = S[k % 2 * 64 + 63 - tx]
""",
        id="thread_storage_sync-loop_of_two_halves_needs_one",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    S[tx] = A[tx]
    for k in range(64):
        B[tx] = B[tx] + S[k]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    S[tx] = A[tx]
    T.tvm_storage_sync("shared", dtype="void")
    for k in range(64):
        B[tx] = B[tx] + S[k]
""",
        id="thread_storage_sync-before_the_loop_not_in_it",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    S[tx] = A[tx]
    if n < 4:
        B[tx] = S[63 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    S[tx] = A[tx]
    T.tvm_storage_sync("shared", dtype="void")
    if n < 4:
        B[tx] = S[63 - tx]
""",
        id="thread_storage_sync-uniform_condition",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    if tx < n:
        S[tx] = A[tx]
        B[tx] = S[0]
    else:
        B[tx] = T.float32(0)
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    if tx < n:
        S[tx] = A[tx]
    T.tvm_storage_sync("shared", dtype="void")
    if tx < n:
        B[tx] = S[0]
    if not tx < n:
        B[tx] = T.float32(0)
""",
        id="thread_storage_sync-divergent_condition_is_parted",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    if tx < 32:
        for k in range(4):
            S[tx] = A[k * 32 + tx]
            B[k * 32 + tx] = S[31 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    for k in range(4):
        T.tvm_storage_sync("shared", dtype="void")
        if tx < 32:
            S[tx] = A[k * 32 + tx]
        T.tvm_storage_sync("shared", dtype="void")
        if tx < 32:
            B[k * 32 + tx] = S[31 - tx]
""",
        id="thread_storage_sync-divergent_condition_around_a_loop",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    H = T.decl_buffer((256,), "float16", data=s, scope="shared")
    S[tx] = A[tx]
    B[tx] = T.cast(H[tx], "float32")
    H[tx + 128] = T.float16(0)
    H[tx + 192] = T.float16(0)
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    H = T.decl_buffer((256,), "float16", data=s)
    S[tx] = A[tx]
    T.tvm_storage_sync("shared", dtype="void")
    B[tx] = T.Cast("float32", H[tx])
    H[tx + 128] = T.float16(0)
    H[tx + 192] = T.float16(0)
""",
        id="thread_storage_sync-views_of_one_memory",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    T.ptx_cp_async(s, tx, A.data, tx, 4, dtype="float32")
    T.ptx_commit_group()
    B[tx] = B[tx] + T.float32(1)
    T.ptx_wait_group(0)
    B[tx] = S[63 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    T.ptx_cp_async(s, tx, A.data, tx, 4, dtype="float32")
    T.ptx_commit_group()
    B[tx] = B[tx] + 1.0
    T.ptx_wait_group(0)
    T.tvm_storage_sync("shared", dtype="void")
    B[tx] = S[63 - tx]
""",
        id="thread_storage_sync-after_the_wait",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    S[tx] = A[tx]
    T.tvm_storage_sync("shared")
    B[tx] = S[63 - tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    S[tx] = A[tx]
    T.tvm_storage_sync("shared", dtype="void")
    B[tx] = S[63 - tx]
""",
        id="thread_storage_sync-barrier_that_is_there",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s, scope="shared")
    for k in range(8):
        S[k % 2 * 64 + T.bitwise_xor(tx, k)] = A[k * 64 + tx]
        B[k * 64 + tx] = S[k % 2 * 64 + T.bitwise_xor(tx, 21)]
""",
        """
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([128], "float32", "shared")
    S = T.decl_buffer((128,), "float32", data=s)
    for k in range(8):
        S[k % 2 * 64 + (tx ^ k)] = A[k * 64 + tx]
        T.tvm_storage_sync("shared", dtype="void")
        B[k * 64 + tx] = S[k % 2 * 64 + (tx ^ 21)]
""",
        id="thread_storage_sync-swizzled_halves_need_one",
    ),
    pytest.param(
        "thread_storage_sync",
        """
@T.prim_func
def f(A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([64], "int32", "shared")
    S = T.decl_buffer((64,), "int32", data=s, scope="shared")
    S[tx] = tx
    B[tx] = S[T.Cast("int32", A[tx] & T.uint8(63))]
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([64], "int32", "shared")
    S = T.decl_buffer((64,), "int32", data=s)
    S[tx] = tx
    T.tvm_storage_sync("shared", dtype="void")
    B[tx] = S[T.Cast("int32", A[tx] & T.uint8(63))]
""",
        id="thread_storage_sync-bits_of_a_byte_as_a_place",
    ),
]


@pytest.mark.parametrize("name, before, after", CASES)
def test_pass(name, before, after):
    assert_lowers(name, before, after)


def test_a_buffer_inside_of_an_allocation_keeps_its_place_there():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    first = T.allocate([96], "float32", "shared.dyn")
    F = T.decl_buffer((64,), "float32", data=first, elem_offset=16, scope="shared.dyn")
    second = T.allocate([96], "float32", "shared.dyn")
    S = T.decl_buffer((64,), "float32", data=second, elem_offset=32, scope="shared.dyn")
    F[tx] = A[tx] + T.float32(1)
    S[tx] = A[tx] + T.float32(2)
    B[tx] = F[tx] * S[tx]
""")
    planned = tir.transform.plan_shared_memory(func)
    assert planned.script().count("T.allocate") == 1
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    tir.interp.run(planned, a, b)
    np.testing.assert_array_equal(b, (a + 1) * (a + 2))


def test_a_loop_as_often_as_memory_says_that_no_thread_writes():
    """All threads of a block read the same number, so each gets to the barriers in the loop."""
    func = parse("""
@T.prim_func
def main(A: T.Buffer((4, 64), "int32"), K: T.Buffer((4,), "int32"), O: T.Buffer((4, 64), "int32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("tile"):
                vb, vt = T.axis.remap("SS", [b, t])
                S = T.alloc_buffer((64,), "int32", scope="shared")
                for k in range(K[vb]):
                    S[vt] = A[vb, vt] + k
                    O[vb, vt] = S[63 - vt]
""")
    data, counts, out = (
        np.arange(256, dtype="int32").reshape(4, 64),
        np.array([1, 0, 2, 0], "int32"),
        np.zeros((4, 64), "int32"),
    )
    tir.build(func, "cuda-sim")(data, counts, out)
    want = (data[:, ::-1] + counts[:, None] - 1) * (counts[:, None] > 0)
    np.testing.assert_array_equal(out, want)
    with pytest.raises(tir.BuildError, match="not all threads of the block get there"):
        tir.lower(parse(func.script().replace("range(K[vb])", "range(K[vt % 4])")), target="cuda-sim")


@pytest.mark.parametrize("here", ["j % 2 * 128", "here"])
def test_halves_taken_in_turn_need_one_barrier_an_iteration_also_by_a_name(here: str):
    """While one half is read the next copies go to the other; the barrier after the wait is all they need."""
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.allocate([256], "float32", "shared")
    for j in range(8):
        here: T.int32 = j % 2 * 128
        T.evaluate(here)
        for x in range(1):
            T.evaluate(T.ptx_cp_async("float32", S, {here} + tx * 4, A.data, j * 128 + tx * 4, 16))
        T.evaluate(T.ptx_commit_group())
        T.evaluate(T.ptx_wait_group(0))
        T.evaluate(T.tvm_storage_sync("shared"))
        T.evaluate(T.ptx_cp_async("float32", B.data, 124 - tx * 4, S, {here} + 124 - tx * 4, 16))
""")
    assert tir.transform.thread_storage_sync(func).script().count("tvm_storage_sync") == 1


@pytest.mark.parametrize(
    "place, before, barriers",
    [
        ("P[0] + tx", "", 0),
        ("P[P[1]] + tx", "", 0),
        ("P[bx] * 2 + tx", "", 0),
        ("tx * 8 - P[0] * P[1] // 3 * 4", "", 0),
        ("(P[0] + tx) % 100", "", 1),
        ("P[tx] + tx", "", 1),
        ("P[j] + tx", "", 1),
        ("P[0] + tx", "P[tx] = 1", 1),
    ],
)
def test_a_place_that_memory_gives_all_threads_is_one_place(place, before, barriers):
    """Not where threads or iterations load another number, or the kernel writes it."""
    func = parse(f"""
@T.prim_func
def f(P: T.Buffer((64,), "int32"), B: T.Buffer((512,), "float32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.allocate([512], "float32", "shared")
    {before}
    for j in range(8):
        S[{place}] = B[j * 64 + tx]
        B[j * 64 + tx] = S[{place}] + 1.0
""")
    assert tir.transform.thread_storage_sync(func).script().count("tvm_storage_sync") >= barriers
    assert barriers or "tvm_storage_sync" not in tir.transform.thread_storage_sync(func).script()


def test_rows_at_a_place_that_memory_gives_are_apart():
    """Wherever the tile of 16 columns begins, it is narrower than a row of 20."""
    func = parse("""
@T.prim_func
def f(P: T.Buffer((2,), "int32"), C: T.Buffer((160,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    for k in range(2):
        if P[1] // 3 + tx % 8 * 2 + k < 20:
            C[P[0] * 20 + tx // 8 * 20 + P[1] // 3 + (tx % 8 * 2 + k)] = 1.0
""")
    assert "tvm_storage_sync" not in tir.transform.thread_storage_sync(func).script()


@pytest.mark.parametrize("dtype", ["boolx8", "uint1x8", "int4x8", "float4_e2m1fnx8"])
def test_each_lane_of_a_type_of_fewer_than_eight_bits_has_a_byte(dtype):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((8,), "{dtype}"), B: T.Buffer((8,), "{dtype}"), C: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    S = T.alloc_buffer((8,), "{dtype}", scope="shared.dyn")
    R = T.alloc_buffer((8,), "int32", scope="shared.dyn")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        S[t] = A[t]
        R[t] = C[t]
        B[7 - t] = S[t]
        D[7 - t] = R[t]
""")
    a = np.random.default_rng(0).integers(0, 2, (8, 8)).astype(array_dtype(tir.DType(dtype)))
    c, b, d = np.arange(8, dtype="int32"), np.zeros_like(a), np.zeros(8, "int32")
    tir.build(func, "cuda-sim")(a, b, c, d)
    assert (b[::-1] == a).all() and (d[::-1] == c).all()


def test_asynchronous_copies_of_floats_of_four_bits_are_whole():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((64,), "float4_e2m1fn"), B: T.Buffer((64,), "float4_e2m1fn")):
    tx = T.launch_thread("threadIdx.x", 4)
    S = T.allocate([64], "float4_e2m1fn", "shared")
    S1 = T.decl_buffer((64,), "float4_e2m1fn", data=S, scope="shared")
    with T.attr(0, "async_scope", 1):
        S1[tx * 16 : tx * 16 + 16] = A[tx * 16 : tx * 16 + 16]
    T.ptx_commit_group()
    T.ptx_wait_group(0)
    B[tx * 16 : tx * 16 + 16] = S1[tx * 16 : tx * 16 + 16]
""")
    copied = tir.transform.inject_ptx_async_copy(func)
    assert "ptx_cp_async" in copied.script()
    a = np.arange(64, dtype="uint8") % 16
    a, b = a.view(array_dtype(tir.DType("float4_e2m1fn"))), np.zeros(64, array_dtype(tir.DType("float4_e2m1fn")))
    simulate(copied, [a, b])
    assert (b.view("uint8") == a.view("uint8")).all()
