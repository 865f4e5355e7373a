# ruff: noqa: E501
"""Pipelined loops and asynchronous copies, before and after."""

from __future__ import annotations

import pytest

from tests.gpu_passes import assert_lowers

CASES = [
    pytest.param(
        "inject_software_pipeline",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            with T.block("body"):
                T.reads(A[i, tx])
                T.writes(B[i, tx])
                S = T.alloc_buffer((16,), "float32", scope="shared")
                with T.block("load"):
                    T.reads(A[i, tx])
                    T.writes(S[tx])
                    S[tx] = A[i, tx]
                with T.block("use"):
                    T.reads(S[tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[tx] * T.float32(2)
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    # with T.block("root"):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        with T.block("i_pipeline"):
            T.reads()
            T.writes()
            S = T.alloc_buffer((2, 16), "float32", scope="shared")
            with T.block("load"):
                T.reads(A[0, tx])
                T.writes(S[0, tx])
                S[0, tx] = A[0, tx]
            for i in range(7):
                with T.block("load_1"):
                    T.reads(A[i + 1, tx])
                    T.writes(S[(i + 1) % 2, tx])
                    S[(i + 1) % 2, tx] = A[i + 1, tx]
                with T.block("use"):
                    T.reads(S[i % 2, tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[i % 2, tx] * 2.0
            with T.block("use_1"):
                T.reads(S[1, tx])
                T.writes(B[7, tx])
                B[7, tx] = S[1, tx] * 2.0
""",
        id="inject_software_pipeline-two_stages",
    ),
    pytest.param(
        "inject_software_pipeline",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 2], "software_pipeline_order": [0, 1], "software_pipeline_async_stages": [0]}):
            with T.block("body"):
                T.reads(A[i, tx])
                T.writes(B[i, tx])
                S = T.alloc_buffer((16,), "float32", scope="shared")
                with T.block("load"):
                    T.reads(A[i, tx])
                    T.writes(S[tx])
                    S[tx] = A[i, tx]
                with T.block("use"):
                    T.reads(S[tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[tx] * T.float32(2)
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    # with T.block("root"):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        with T.block("i_pipeline"):
            T.reads()
            T.writes()
            S = T.alloc_buffer((3, 16), "float32", scope="shared")
            with T.attr(T.int32(0), "async_scope", 1):
                with T.block("load"):
                    T.reads(A[0, tx])
                    T.writes(S[0, tx])
                    S[0, tx] = A[0, tx]
            T.ptx_commit_group()
            with T.attr(T.int32(0), "async_scope", 1):
                with T.block("load_1"):
                    T.reads(A[1, tx])
                    T.writes(S[1, tx])
                    S[1, tx] = A[1, tx]
            T.ptx_commit_group()
            for i in range(6):
                T.ptx_wait_group(1)
                with T.attr(T.int32(0), "async_scope", 1):
                    with T.block("load_2"):
                        T.reads(A[i + 2, tx])
                        T.writes(S[(i + 2) % 3, tx])
                        S[(i + 2) % 3, tx] = A[i + 2, tx]
                T.ptx_commit_group()
                with T.block("use"):
                    T.reads(S[i % 3, tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[i % 3, tx] * 2.0
            T.ptx_wait_group(1)
            with T.block("use_1"):
                T.reads(S[0, tx])
                T.writes(B[6, tx])
                B[6, tx] = S[0, tx] * 2.0
            T.ptx_wait_group(0)
            with T.block("use_2"):
                T.reads(S[1, tx])
                T.writes(B[7, tx])
                B[7, tx] = S[1, tx] * 2.0
""",
        id="inject_software_pipeline-asynchronous_three_stages",
    ),
    pytest.param(
        "inject_software_pipeline",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [1, 0]}):
            with T.block("body"):
                T.reads(A[i, tx])
                T.writes(B[i, tx])
                S = T.alloc_buffer((16,), "float32", scope="shared")
                with T.block("load"):
                    T.reads(A[i, tx])
                    T.writes(S[tx])
                    S[tx] = A[i, tx]
                with T.block("use"):
                    T.reads(S[tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[tx] * T.float32(2)
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    # with T.block("root"):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        with T.block("i_pipeline"):
            T.reads()
            T.writes()
            S = T.alloc_buffer((16,), "float32", scope="shared")
            with T.block("load"):
                T.reads(A[0, tx])
                T.writes(S[tx])
                S[tx] = A[0, tx]
            for i in range(7):
                with T.block("use"):
                    T.reads(S[tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[tx] * 2.0
                with T.block("load_1"):
                    T.reads(A[i + 1, tx])
                    T.writes(S[tx])
                    S[tx] = A[i + 1, tx]
            with T.block("use_1"):
                T.reads(S[tx])
                T.writes(B[7, tx])
                B[7, tx] = S[tx] * 2.0
""",
        id="inject_software_pipeline-reader_first_needs_no_copy",
    ),
    pytest.param(
        "inject_software_pipeline",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32"), n: T.int32):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial(n, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            with T.block("body"):
                T.reads(A[i, tx])
                T.writes(B[i, tx])
                S = T.alloc_buffer((16,), "float32", scope="shared")
                with T.block("load"):
                    T.reads(A[i, tx])
                    T.writes(S[tx])
                    S[tx] = A[i, tx]
                with T.block("use"):
                    T.reads(S[tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[tx] * T.float32(2)
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32"), n: T.int32):
    # with T.block("root"):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        with T.block("i_pipeline"):
            T.reads()
            T.writes()
            S = T.alloc_buffer((2, 16), "float32", scope="shared")
            if 0 < n:
                with T.block("load"):
                    T.reads(A[0, tx])
                    T.writes(S[0, tx])
                    S[0, tx] = A[0, tx]
            for i in range(n - 1):
                with T.block("load_1"):
                    T.reads(A[i + 1, tx])
                    T.writes(S[(i + 1) % 2, tx])
                    S[(i + 1) % 2, tx] = A[i + 1, tx]
                with T.block("use"):
                    T.reads(S[i % 2, tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[i % 2, tx] * 2.0
            if n >= 1:
                with T.block("use_1"):
                    T.reads(S[(n + 1) % 2, tx])
                    T.writes(B[n - 1, tx])
                    B[n - 1, tx] = S[(n + 1) % 2, tx] * 2.0
""",
        id="inject_software_pipeline-unknown_extent",
    ),
    pytest.param(
        "inject_double_buffer",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in range(8):
            with T.block("body"):
                T.reads(A[i, tx])
                T.writes(B[i, tx])
                S = T.alloc_buffer((16,), "float32", scope="shared")
                with T.block("load"):
                    T.reads(A[i, tx])
                    T.writes(S[tx])
                    T.block_attr({"double_buffer_scope": 0})
                    S[tx] = A[i, tx]
                with T.block("use"):
                    T.reads(S[tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[tx] * T.float32(2)
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    # with T.block("root"):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            with T.block("body"):
                T.reads(A[i, tx])
                T.writes(B[i, tx])
                S = T.alloc_buffer((16,), "float32", scope="shared")
                with T.block("load"):
                    T.reads(A[i, tx])
                    T.writes(S[tx])
                    S[tx] = A[i, tx]
                with T.block("use"):
                    T.reads(S[tx])
                    T.writes(B[i, tx])
                    B[i, tx] = S[tx] * 2.0
""",
        id="inject_double_buffer",
    ),
    pytest.param(
        "inject_ptx_async_copy",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), H: T.Buffer((64,), "float16"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 16)
    S = T.allocate([64], "float32", "shared")
    S1 = T.decl_buffer((64,), "float32", data=S, scope="shared")
    G = T.allocate([64], "float16", "shared")
    G1 = T.decl_buffer((64,), "float16", data=G, scope="shared")
    with T.attr(0, "async_scope", 1):
        S1[tx * 4 : tx * 4 + 4] = A[tx * 4 : tx * 4 + 4]
    with T.attr(0, "async_scope", 1):
        S1[tx] = T.if_then_else(tx < n, A[tx], T.float32(0))
    with T.attr(0, "async_scope", 1):
        G1[tx] = H[tx]
        S1[tx] = A[tx] * T.float32(2)
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), H: T.Buffer((64,), "float16"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 16)
    S = T.allocate([64], "float32", "shared")
    S1 = T.decl_buffer((64,), "float32", data=S)
    G = T.allocate([64], "float16", "shared")
    G1 = T.decl_buffer((64,), "float16", data=G)
    T.ptx_cp_async(S, tx * 4, A.data, tx * 4, 16, dtype="float32")
    T.ptx_cp_async(S, tx, A.data, tx, 4, tx < n, dtype="float32")
    G1[tx] = H[tx]
    S1[tx] = A[tx] * 2.0
""",
        id="inject_ptx_async_copy",
    ),
    pytest.param(
        "inject_ptx_async_copy",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 16)
    A1 = T.decl_buffer((32,), "float32", data=A.data, elem_offset=n * 32)
    S = T.allocate([64], "float32", "shared")
    S1 = T.decl_buffer((32,), "float32", data=S, elem_offset=16)
    with T.attr(0, "async_scope", 1):
        S1[tx] = A1[tx + 8]
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 16)
    A1 = T.decl_buffer((32,), "float32", data=A.data, elem_offset=n * 32)
    S = T.allocate([64], "float32", "shared")
    S1 = T.decl_buffer((32,), "float32", data=S, elem_offset=16)
    T.ptx_cp_async(S, tx + 16, A.data, tx + 8 + n * 32, 4, dtype="float32")
""",
        id="inject_ptx_async_copy-of_views_that_begin_later",
    ),
    pytest.param(
        "lower_warp_memory",
        """
@T.prim_func
def f(A: T.Buffer((512,), "float16"), C: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    a = T.allocate([512], "float16", "warp")
    c = T.allocate([256], "float32", "warp")
    s = T.allocate([512], "float16", "shared")
    A_warp = T.decl_buffer((512,), "float16", data=a, scope="warp")
    C_warp = T.decl_buffer((256,), "float32", data=c, scope="warp")
    T.mma_fill(8, c, 0, dtype="float32")
    for i in range(2):
        T.ptx_ldmatrix(False, 4, ".b16", a, i * 256 + tx * 8, s, i * 256 + tx * 8, dtype="float16")
    for j in range(8):
        A_warp[256 + tx * 8 + j] = A[tx * 8 + j]
    T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a, tx * 8, a, 256 + tx * 8 + 4, c, tx * 8, False, dtype="float32")
    for j in range(8):
        C[tx * 8 + j] = C_warp[tx * 8 + j]
""",
        """
@T.prim_func
def f(A: T.Buffer((512,), "float16"), C: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    a = T.allocate([16], "float16", "local")
    c = T.allocate([8], "float32", "local")
    s = T.allocate([512], "float16", "shared")
    A_warp = T.decl_buffer((16,), "float16", data=a)
    C_warp = T.decl_buffer((8,), "float32", data=c)
    T.mma_fill(8, c, 0, dtype="float32")
    for i in range(2):
        T.ptx_ldmatrix(False, 4, ".b16", a, i * 8, s, i * 256 + tx * 8, dtype="float16")
    for j in range(8):
        A_warp[j + 8] = A[tx * 8 + j]
    T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a, 0, a, 12, c, 0, False, dtype="float32")
    for j in range(8):
        C[tx * 8 + j] = C_warp[j]
""",
        id="lower_warp_memory",
    ),
]


@pytest.mark.parametrize("name, before, after", CASES)
def test_pass(name, before, after):
    assert_lowers(name, before, after)
