# ruff: noqa: E501
"""Tensor-core tiles through views and pointers: tiles compacted, padded, pipelined, with one barrier an iteration."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu_passes import run_everywhere
from tir.script import parse
from tir.stmt import Allocate, Evaluate, For
from tir.visit import walk

WMMA = """
@T.prim_func(check_well_formed=False)
def mm(A: T.Buffer((32, 64), "float16"), B: T.Buffer((64, 32), "float16"), C: T.Buffer((32, 32), "float32")):
    A_s = T.alloc_buffer((32, 64), "float16", scope="SCOPE")
    B_s = T.alloc_buffer((64, 32), "float16", scope="SCOPE")
    A_f = T.alloc_buffer((32, 64), "float16", scope="wmma.matrix_a")
    B_f = T.alloc_buffer((64, 32), "float16", scope="wmma.matrix_b")
    C_f = T.alloc_buffer((32, 32), "float32", scope="wmma.accumulator")
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for ty in T.thread_binding(2, thread="threadIdx.y"):
            with T.block("fill"):
                v = T.axis.spatial(2, ty)
                w = T.axis.spatial(2, bx)
                T.reads()
                T.writes(C_f[v * 16 : v * 16 + 16, w * 16 : w * 16 + 16])
                C0 = T.match_buffer(C_f[v * 16 : v * 16 + 16, w * 16 : w * 16 + 16], (16, 16), "float32", scope="wmma.accumulator", offset_factor=16, strides=[T.int32(), 1])
                T.tvm_fill_fragment(C0.data, 16, 16, 16, C0.elem_offset // C0.strides[0] // 16 * (C0.strides[0] // 16) + C0.elem_offset % C0.strides[0] // 16, T.float32(0), dtype="handle")
            for ko in LOOP:
                for l in T.vectorized(4):
                    for t1 in T.thread_binding(2, thread="threadIdx.y"):
                        for t0 in T.thread_binding(32, thread="threadIdx.x"):
                          for ax in range(2):
                            with T.block("A_s"):
                                v0 = T.axis.spatial(32, (ax * 256 + t1 * 128 + t0 * 4 + l) // 16)
                                v1 = T.axis.spatial(64, ko * 16 + (ax * 256 + t1 * 128 + t0 * 4 + l) % 16)
                                A_s[v0, v1] = A[v0, v1]
                for t1 in T.thread_binding(2, thread="threadIdx.y"):
                    for t0 in T.thread_binding(32, thread="threadIdx.x"):
                      for l in T.vectorized(4):
                        with T.block("B_s"):
                            v0 = T.axis.spatial(64, ko * 16 + (t1 * 128 + t0 * 4 + l) // 16)
                            v1 = T.axis.spatial(32, bx * 16 + (t1 * 128 + t0 * 4 + l) % 16)
                            T.block_attr({"buffer_dim_align": [[0, 0, 16, 8]]})
                            B_s[v0, v1] = B[v0, v1]
                with T.block("loadA"):
                    v = T.axis.spatial(2, ty)
                    k = T.axis.spatial(4, ko)
                    T.reads(A_s[v * 16 : v * 16 + 16, k * 16 : k * 16 + 16])
                    T.writes(A_f[v * 16 : v * 16 + 16, k * 16 : k * 16 + 16])
                    S = T.match_buffer(A_s[v * 16 : v * 16 + 16, k * 16 : k * 16 + 16], (16, 16), "float16", scope="SCOPE", offset_factor=16, strides=[T.int32(), 1])
                    F = T.match_buffer(A_f[v * 16 : v * 16 + 16, k * 16 : k * 16 + 16], (16, 16), "float16", scope="wmma.matrix_a", offset_factor=16, strides=[T.int32(), 1])
                    T.tvm_load_matrix_sync(F.data, 16, 16, 16, F.elem_offset // F.strides[0] // 16 * (F.strides[0] // 16) + F.elem_offset % F.strides[0] // 16, S.access_ptr("r"), S.strides[0], "row_major", dtype="handle")
                with T.block("loadB"):
                    v = T.axis.spatial(2, bx)
                    k = T.axis.spatial(4, ko)
                    T.reads(B_s[k * 16 : k * 16 + 16, v * 16 : v * 16 + 16])
                    T.writes(B_f[k * 16 : k * 16 + 16, v * 16 : v * 16 + 16])
                    S = T.match_buffer(B_s[k * 16 : k * 16 + 16, v * 16 : v * 16 + 16], (16, 16), "float16", scope="SCOPE", offset_factor=8, strides=[T.int32(), 1])
                    F = T.match_buffer(B_f[k * 16 : k * 16 + 16, v * 16 : v * 16 + 16], (16, 16), "float16", scope="wmma.matrix_b", offset_factor=16, strides=[T.int32(), 1])
                    T.tvm_load_matrix_sync(F.data, 16, 16, 16, F.elem_offset // F.strides[0] // 16 * (F.strides[0] // 16) + F.elem_offset % F.strides[0] // 16, S.access_ptr("r"), S.strides[0], "row_major", dtype="handle")
                with T.block("mma"):
                    v = T.axis.spatial(2, ty)
                    w = T.axis.spatial(2, bx)
                    k = T.axis.reduce(4, ko)
                    T.reads(A_f[v * 16 : v * 16 + 16, k * 16 : k * 16 + 16], B_f[k * 16 : k * 16 + 16, w * 16 : w * 16 + 16], C_f[v * 16 : v * 16 + 16, w * 16 : w * 16 + 16])
                    T.writes(C_f[v * 16 : v * 16 + 16, w * 16 : w * 16 + 16])
                    F = T.match_buffer(A_f[v * 16 : v * 16 + 16, k * 16 : k * 16 + 16], (16, 16), "float16", scope="wmma.matrix_a", offset_factor=16, strides=[T.int32(), 1])
                    G = T.match_buffer(B_f[k * 16 : k * 16 + 16, w * 16 : w * 16 + 16], (16, 16), "float16", scope="wmma.matrix_b", offset_factor=16, strides=[T.int32(), 1])
                    H = T.match_buffer(C_f[v * 16 : v * 16 + 16, w * 16 : w * 16 + 16], (16, 16), "float32", scope="wmma.accumulator", offset_factor=16, strides=[T.int32(), 1])
                    T.tvm_mma_sync(H.data, H.elem_offset // 256, F.data, F.elem_offset // F.strides[0] // 16 * (F.strides[0] // 16) + F.elem_offset % F.strides[0] // 16, G.data, G.elem_offset // G.strides[0] // 16 * (G.strides[0] // 16) + G.elem_offset % G.strides[0] // 16, H.data, H.elem_offset // 256, dtype="handle")
            with T.block("store"):
                v = T.axis.spatial(2, ty)
                w = T.axis.spatial(2, bx)
                T.reads(C_f[v * 16 : v * 16 + 16, w * 16 : w * 16 + 16])
                T.writes(C[v * 16 : v * 16 + 16, w * 16 : w * 16 + 16])
                H = T.match_buffer(C_f[v * 16 : v * 16 + 16, w * 16 : w * 16 + 16], (16, 16), "float32", scope="wmma.accumulator", offset_factor=16, strides=[T.int32(), 1])
                D = T.match_buffer(C[v * 16 : v * 16 + 16, w * 16 : w * 16 + 16], (16, 16), "float32", offset_factor=16, strides=[T.int32(), 1])
                T.tvm_store_matrix_sync(H.data, 16, 16, 16, H.elem_offset // 256, D.access_ptr("w"), D.strides[0], "row_major", dtype="handle")
"""

PIPELINE = """T.serial(4, annotations={"software_pipeline_stage": [0, 0, 2, 2, 2], "software_pipeline_order": [0, 1, 2, 3, 4], "software_pipeline_async_stages": [0]})"""


@pytest.mark.parametrize("loop, scope, inside", [("range(4)", "shared", 2), (PIPELINE, "shared.dyn", 1)])
def test_wmma(loop, scope, inside):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype("float16") for shape in ((32, 64), (64, 32)))
    c = np.zeros((32, 32), "float32")
    mod = run_everywhere(parse(WMMA.replace("LOOP", loop).replace("SCOPE", scope)), [a, b, c])
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))
    kernel = mod.lowered["main_kernel"].body
    sizes = {n.buffer_var.name: int(n.extents[0]) for n in walk(kernel) if isinstance(n, Allocate)}
    assert (sizes["A_f"], sizes["B_f"], sizes["C_f"]) == (256, 256, 256)
    (ko,) = [n for n in walk(kernel) if isinstance(n, For) and n.loop_var.name == "ko"]
    calls = [n.value.op for n in walk(ko.body) if isinstance(n, Evaluate)]
    assert calls.count("tvm_storage_sync") == inside
