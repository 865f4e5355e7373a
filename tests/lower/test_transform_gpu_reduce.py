# ruff: noqa: E501
"""Reductions across threads, before and after."""

from __future__ import annotations

import pytest

from tests.gpu_passes import assert_lowers

CASES = [
    pytest.param(
        "lower_cross_thread_reduction",
        """
@T.prim_func
def f(A: T.Buffer((8, 100), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for k0 in range(4):
            for k1 in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    vk = T.axis.reduce(100, k0 * 32 + k1)
                    T.where(k0 * 32 + k1 < 100)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] += A[vi, vk]
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 100), "float32"), B: T.Buffer((8,), "float32")):
    # with T.block("root"):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for k1 in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B_cross_thread"):
                T.reads(A[i, k1 : k1 + 97])
                T.writes(B[i])
                B_partial = T.alloc_buffer((1,), "float32", scope="local")
                B_reduced = T.alloc_buffer((1,), "float32", scope="local")
                B_partial[0] = T.float32(0)
                for k0 in range(4):
                    if k0 * 32 + k1 < 100:
                        B_partial[0] = B_partial[0] + A[i, k0 * 32 + k1]
                with T.attr(T.comm_reducer(lambda x0, y0: x0 + y0, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
                    T.tvm_thread_allreduce(T.uint32(1), B_partial[0], True, B_reduced[0], k1)
                if k1 == 0:
                    B[i] = B_reduced[0]
""",
        id="lower_cross_thread_reduction-guarded",
    ),
    pytest.param(
        "lower_cross_thread_reduction",
        """
@T.prim_func
def f(A: T.Buffer((4, 2, 32), "float32"), B: T.Buffer((4, 2), "float32")):
    L = T.alloc_buffer((4, 2), "float32", scope="local")
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for j in range(2):
            with T.block("start"):
                vi, vj = T.axis.remap("SS", [i, j])
                L[vi, vj] = T.float32(5)
        for k1 in T.thread_binding(16, thread="threadIdx.x"):
            for k0, j in T.grid(2, 2):
                with T.block("L"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.spatial(2, j)
                    vk = T.axis.reduce(32, k0 * 16 + k1)
                    L[vi, vj] = T.max(L[vi, vj], A[vi, vj, vk])
        for j in range(2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = L[vi, vj]
""",
        """
@T.prim_func
def f(A: T.Buffer((4, 2, 32), "float32"), B: T.Buffer((4, 2), "float32")):
    # with T.block("root"):
    L = T.alloc_buffer((4, 2), "float32", scope="local")
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for j in range(2):
            with T.block("start"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(L[vi, vj])
                L[vi, vj] = T.float32(5)
        for k1 in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("L_cross_thread"):
                T.reads(A[i, 0:2, k1 : k1 + 17], L[i, 0:2])
                T.writes(L[i, 0:2])
                L_partial = T.alloc_buffer((2,), "float32", scope="local")
                L_reduced = T.alloc_buffer((2,), "float32", scope="local")
                for j in range(2):
                    L_partial[j] = T.float32("-inf")
                for k0, j in T.grid(2, 2):
                    L_partial[j] = T.max(L_partial[j], A[i, j, k0 * 16 + k1])
                for j in range(2):
                    T.attr(T.comm_reducer(lambda x0, y0: T.max(x0, y0), [T.float32("-inf")]), "reduce_scope", T.reinterpret("handle", T.uint64(0)))
                    T.tvm_thread_allreduce(T.uint32(1), L_partial[j], True, L_reduced[j], k1)
                for j in range(2):
                    L[i, j] = T.max(L[i, j], L_reduced[j])
        for j in range(2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(L[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = L[vi, vj]
""",
        id="lower_cross_thread_reduction-no_init_local_spread",
    ),
    pytest.param(
        "lower_cross_thread_reduction",
        """
@T.prim_func
def f(idx: T.Buffer((8, 64), "int32"), val: T.Buffer((8, 64), "float32"), a0: T.Buffer((8,), "int32"), a1: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.y"):
        for k in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    a0[vi] = -1
                    a1[vi] = T.min_value("float32")
                v0: T.int32 = T.Select(a1[vi] >= val[vi, vk], a0[vi], idx[vi, vk])
                v1: T.float32 = T.Select(a1[vi] >= val[vi, vk], a1[vi], val[vi, vk])
                a0[vi] = v0
                a1[vi] = v1
""",
        """
@T.prim_func
def f(idx: T.Buffer((8, 64), "int32"), val: T.Buffer((8, 64), "float32"), a0: T.Buffer((8,), "int32"), a1: T.Buffer((8,), "float32")):
    # with T.block("root"):
    for i in T.thread_binding(8, thread="threadIdx.y"):
        for k in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("argmax_cross_thread"):
                T.reads(val[i, k], idx[i, k])
                T.writes(a0[i], a1[i])
                a0_partial = T.alloc_buffer((1,), "int32", scope="local")
                a1_partial = T.alloc_buffer((1,), "float32", scope="local")
                a0_reduced = T.alloc_buffer((1,), "int32", scope="local")
                a1_reduced = T.alloc_buffer((1,), "float32", scope="local")
                a0_partial[0] = -1
                a1_partial[0] = T.float32(-3.4028234663852886e+38)
                with T.LetStmt(T.Select(a1_partial[0] >= val[i, k], a0_partial[0], idx[i, k]), T.int32) as v0:
                    v1: T.float32 = T.Select(a1_partial[0] >= val[i, k], a1_partial[0], val[i, k])
                    a0_partial[0] = v0
                    a1_partial[0] = v1
                with T.attr(T.comm_reducer(lambda x0, x1, y0, y1: (T.Select(x1 >= y1, x0, y0), T.Select(x1 >= y1, x1, y1)), [-1, T.float32(-3.4028234663852886e+38)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
                    T.tvm_thread_allreduce(T.uint32(2), a0_partial[0], a1_partial[0], True, a0_reduced[0], a1_reduced[0], k)
                if k == 0:
                    a0[i] = a0_reduced[0]
                    a1[i] = a1_reduced[0]
""",
        id="lower_cross_thread_reduction-tuple_by_selection",
    ),
    pytest.param(
        "lower_thread_allreduce",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
        T.tvm_thread_allreduce(T.uint32(1), A[tx], True, R[0], tx)
    B[tx] = R[0]
""",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    R[0] = A[tx]
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 1, 32, 32, dtype="float32"), T.float32) as other:
        R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 2, 32, 32, dtype="float32"), T.float32) as other:
        R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 4, 32, 32, dtype="float32"), T.float32) as other:
        R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 8, 32, 32, dtype="float32"), T.float32) as other:
        R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 16, 32, 32, dtype="float32"), T.float32) as other:
        R[0] = R[0] + other
    R[0] = T.tvm_warp_shuffle(T.uint32(4294967295), R[0], 0, 32, 32, dtype="float32")
    B[tx] = R[0]
""",
        id="lower_thread_allreduce-warp",
    ),
    pytest.param(
        "lower_thread_allreduce",
        """
@T.prim_func
def f(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    tx = T.launch_thread("threadIdx.x", 8)
    ty = T.launch_thread("threadIdx.y", 16)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
        T.tvm_thread_allreduce(T.uint32(1), A[ty * 8 + tx], True, R[0], tx)
    B[ty * 8 + tx] = R[0]
""",
        """
@T.prim_func
def f(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    tx = T.launch_thread("threadIdx.x", 8)
    ty = T.launch_thread("threadIdx.y", 16)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    R[0] = A[ty * 8 + tx]
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 1, 8, 32, dtype="float32"), T.float32) as other:
        R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 2, 8, 32, dtype="float32"), T.float32) as other:
        R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 4, 8, 32, dtype="float32"), T.float32) as other:
        R[0] = R[0] + other
    R[0] = T.tvm_warp_shuffle(T.uint32(4294967295), R[0], 0, 8, 32, dtype="float32")
    B[ty * 8 + tx] = R[0]
""",
        id="lower_thread_allreduce-groups_within_a_warp",
    ),
    pytest.param(
        "lower_thread_allreduce",
        """
@T.prim_func
def f(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    tx = T.launch_thread("threadIdx.x", 128)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
        T.tvm_thread_allreduce(T.uint32(1), A[tx], True, R[0], tx)
    B[tx] = R[0]
""",
        """
@T.prim_func
def f(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    tx = T.launch_thread("threadIdx.x", 128)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    with T.allocate([4], "float32", "shared") as red_R:
        red_R_1 = T.decl_buffer((4,), "float32", data=red_R)
        R[0] = A[tx]
        with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 1, 32, 32, dtype="float32"), T.float32) as other:
            R[0] = R[0] + other
        with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 2, 32, 32, dtype="float32"), T.float32) as other:
            R[0] = R[0] + other
        with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 4, 32, 32, dtype="float32"), T.float32) as other:
            R[0] = R[0] + other
        with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 8, 32, 32, dtype="float32"), T.float32) as other:
            R[0] = R[0] + other
        with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 16, 32, 32, dtype="float32"), T.float32) as other:
            R[0] = R[0] + other
        if tx % 32 == 0:
            red_R_1[tx // 32] = R[0]
        R[0] = T.float32(0)
        if tx % 32 < 4:
            R[0] = red_R_1[tx % 32]
        with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 1, 4, 32, dtype="float32"), T.float32) as other:
            R[0] = R[0] + other
        with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], 2, 4, 32, dtype="float32"), T.float32) as other:
            R[0] = R[0] + other
        R[0] = T.tvm_warp_shuffle(T.uint32(4294967295), R[0], 0, 32, 32, dtype="float32")
    B[tx] = R[0]
""",
        id="lower_thread_allreduce-several_warps",
    ),
    pytest.param(
        "lower_thread_allreduce",
        """
@T.prim_func
def f(A: T.Buffer((20,), "float32"), B: T.Buffer((20,), "float32")):
    tx = T.launch_thread("threadIdx.x", 20)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
        T.tvm_thread_allreduce(T.uint32(1), A[tx], True, R[0], tx)
    B[tx] = R[0]
""",
        """
@T.prim_func
def f(A: T.Buffer((20,), "float32"), B: T.Buffer((20,), "float32")):
    tx = T.launch_thread("threadIdx.x", 20)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    R[0] = A[tx]
    with T.LetStmt(T.tvm_warp_shuffle(T.uint32(1048575), R[0], T.min(tx + 1, 19) % 32, 32, 32, dtype="float32"), T.float32) as other:
        if tx + 1 < 20:
            R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle(T.uint32(1048575), R[0], T.min(tx + 2, 19) % 32, 32, 32, dtype="float32"), T.float32) as other:
        if tx + 2 < 20:
            R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle(T.uint32(1048575), R[0], T.min(tx + 4, 19) % 32, 32, 32, dtype="float32"), T.float32) as other:
        if tx + 4 < 20:
            R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle(T.uint32(1048575), R[0], T.min(tx + 8, 19) % 32, 32, 32, dtype="float32"), T.float32) as other:
        if tx + 8 < 20:
            R[0] = R[0] + other
    with T.LetStmt(T.tvm_warp_shuffle(T.uint32(1048575), R[0], T.min(tx + 16, 19) % 32, 32, 32, dtype="float32"), T.float32) as other:
        if tx + 16 < 20:
            R[0] = R[0] + other
    R[0] = T.tvm_warp_shuffle(T.uint32(1048575), R[0], 0, 32, 32, dtype="float32")
    B[tx] = R[0]
""",
        id="lower_thread_allreduce-partial_warp",
    ),
    pytest.param(
        "lower_thread_allreduce",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    tx = T.launch_thread("threadIdx.x", 4)
    ty = T.launch_thread("threadIdx.y", 8)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
        T.tvm_thread_allreduce(T.uint32(1), A[ty * 4 + tx], True, R[0], ty)
    B[ty * 4 + tx] = R[0]
""",
        """
@T.prim_func
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    tx = T.launch_thread("threadIdx.x", 4)
    ty = T.launch_thread("threadIdx.y", 8)
    r = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=r)
    with T.allocate([32], "float32", "shared") as red_R:
        red_R_1 = T.decl_buffer((32,), "float32", data=red_R)
        red_R_1[ty * 4 + tx] = A[ty * 4 + tx]
        if ty < 4:
            red_R_1[ty * 4 + tx] = red_R_1[ty * 4 + tx] + red_R_1[(ty + 4) * 4 + tx]
        if ty < 2:
            red_R_1[ty * 4 + tx] = red_R_1[ty * 4 + tx] + red_R_1[(ty + 2) * 4 + tx]
        if ty < 1:
            red_R_1[ty * 4 + tx] = red_R_1[ty * 4 + tx] + red_R_1[(ty + 1) * 4 + tx]
        R[0] = red_R_1[tx]
    B[ty * 4 + tx] = R[0]
""",
        id="lower_thread_allreduce-not_neighbours",
    ),
]


@pytest.mark.parametrize("name, before, after", CASES)
def test_pass(name, before, after):
    assert_lowers(name, before, after)
