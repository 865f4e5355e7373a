"""Kernels with Hopper's operators, as texts, which both judges run: the simulator, and the executor of PTX."""

from __future__ import annotations

from typing import Any

import numpy as np

import tir
from tir.interp.numbers import decode_table, encode

BOX = """
def box(A: T.Buffer((20, 48), "float16"), B: T.Buffer((BYTES,), "uint8"), C: T.Buffer((20, 48), "float16")):
    tx = T.launch_thread("threadIdx.x", 32)
    memory = T.allocate([BYTES], "uint8", "shared")
    S = T.decl_buffer((BYTES,), "uint8", data=memory, scope="shared")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_fence_barrier_init()
        T.ptx_arrive_barrier_expect_tx(0, BYTES)
        T.ptx_cp_async_bulk_tensor(memory, 0, T.tensor_map(A.data, "float16", SWIZZLE, 20, 48, 48, 1, ROWS, COLUMNS), 0, Y, X)
    T.tvm_storage_sync("shared")
    T.ptx_wait_barrier(0, 0)
    for i in range(BYTES // 32):
        B[i * 32 + tx] = S[i * 32 + tx]
    if tx == 1:
        T.ptx_cp_async_bulk_tensor_store(T.tensor_map(C.data, "float16", SWIZZLE, 20, 48, 48, 1, ROWS, COLUMNS), memory, 0, Y, X)
        T.ptx_cp_async_bulk_commit_group()
        T.ptx_cp_async_bulk_wait_group(0)
"""

PRODUCT = """
def product(A: T.Buffer((M_AXES), "TYPE_A"), B: T.Buffer((N_AXES), "TYPE_B"), C: T.Buffer((64, N), "SUM")):
    tx = T.launch_thread("threadIdx.x", 128)
    left = T.allocate([64 * 32 * 2], "TYPE_A", "shared")
    right = T.allocate([N * 32 * 2], "TYPE_B", "shared")
    D_data = T.allocate([N // 2], "SUM", "local")
    D = T.decl_buffer((N // 2,), "SUM", data=D_data, scope="local")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_fence_barrier_init()
        T.ptx_arrive_barrier_expect_tx(0, TOTAL)
        for j in range(COPIES_A):
            T.ptx_cp_async_bulk_tensor(left, j * STEP_A, T.tensor_map(A.data, "TYPE_A", SWIZZLE, M_AXES, MAP_A), 0, PLACE_A)
        for j in range(COPIES_B):
            T.ptx_cp_async_bulk_tensor(right, j * STEP_B, T.tensor_map(B.data, "TYPE_B", SWIZZLE, N_AXES, MAP_B), 0, PLACE_B)
    T.tvm_storage_sync("shared")
    T.ptx_wait_barrier(0, 0)
    for r in range(N // 2):
        D[r] = T.Cast("SUM", r)
    T.ptx_wgmma_fence()
    for p in range(2):
        T.ptx_wgmma("m64nNkDEPTH", "NAME_A", "NAME_B", "NAME_D", D_data, 0, left, p * NEXT_A, LAYOUT_A, right, p * NEXT_B, LAYOUT_B, ADD)
    T.ptx_wgmma_commit_group()
    T.ptx_wgmma_wait_group(0)
    for r in range(N // 2):
        C[tx // 32 * 16 + tx % 32 // 4 + r // 2 % 2 * 8, r // 4 * 8 + tx % 4 * 2 + r % 2] = D[r]
"""
TYPES = {"fp16": "float16", "bf16": "bfloat16", "tf32": "float32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
         "int8": "int8", "uint8": "uint8", "fp32": "float32", "int32": "int32"}  # fmt: skip


def operand(side: str, rows: int, depth: int, size: int, swizzle: int, transposed: bool) -> dict[str, str]:
    """A matrix of 2 * depth along k as copies by the copy engine leave it, and its descriptor's numbers."""
    total, width = 2 * depth, (swizzle or 16) // size
    axes = (total, rows) if transposed else (rows, total)
    inner, outer = (rows, total) if transposed else (total, rows)
    width = min(width, inner)
    copies = -(-inner // width)
    row = width * size
    if not transposed:
        layout = (0, 8 * row, swizzle, 0) if swizzle else (rows * 16, 128, 0, 0)
        following = depth if swizzle and width == total else depth // width * rows * width
    elif swizzle:
        layout, following = (total * row, 8 * row, swizzle, 1), depth * width
    else:
        layout, following = (128, total * 16, 0, 1), depth * width
    return {
        f"{'M' if side == 'A' else 'N'}_AXES": ", ".join(map(str, axes)),
        f"COPIES_{side}": str(copies),
        f"STEP_{side}": str(outer * width),
        f"MAP_{side}": f"{axes[1]}, 1, {axes[0]}, {width}",
        f"PLACE_{side}": f"0, j * {width}",
        f"LAYOUT_{side}": ", ".join(map(str, layout)),
        f"NEXT_{side}": str(following),
    }


def numbers(r: Any, name: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """An array of a type in its memory form, and its numbers."""
    dtype = tir.DType(TYPES[name])
    whole = r.integers(0 if name == "uint8" else -3, 4, shape)
    if name in ("bf16", "e4m3", "e5m2"):
        raw = encode(whole.astype("float32"), dtype)
        return raw, decode_table(dtype)[raw].astype("float64")
    return whole.astype(str(dtype)), whole.astype("float64")


def product(a: str, b: str, d: str, n: int, swizzle: int, ta: bool, tb: bool, add: bool) -> str:
    size = tir.DType(TYPES[a]).bytes
    depth = 32 // size
    parts = operand("A", 64, depth, size, swizzle, ta) | operand("B", n, depth, size, swizzle, tb)
    parts |= {"TYPE_A": TYPES[a], "TYPE_B": TYPES[b], "NAME_A": a, "NAME_B": b, "NAME_D": d, "SUM": TYPES[d]}
    parts |= {"TOTAL": str((64 + n) * 2 * depth * size), "SWIZZLE": str(swizzle), "DEPTH": str(depth), "ADD": str(add)}
    text = PRODUCT
    for name in sorted(parts, key=len, reverse=True):
        text = text.replace(name, parts[name])
    return (
        text.replace("nNk", f"n{n}k")
        .replace("(64, N)", f"(64, {n})")
        .replace("N // 2", f"{n // 2}")
        .replace("[N *", f"[{n} *")
    )


CASES = [
    ("fp16", "fp16", "fp32", 64, 64, False, False),
    ("fp16", "fp16", "fp32", 8, 32, False, False),
    ("fp16", "fp16", "fp16", 32, 0, False, False),
    ("bf16", "bf16", "fp32", 256, 64, False, False),
    ("bf16", "bf16", "fp32", 64, 128, True, True),
    ("fp16", "fp16", "fp32", 32, 64, False, True),
    ("fp16", "fp16", "fp32", 64, 32, True, False),
    ("fp16", "fp16", "fp32", 16, 0, True, True),
    ("tf32", "tf32", "fp32", 24, 64, False, False),
    ("e4m3", "e5m2", "fp32", 16, 64, False, False),
    ("int8", "uint8", "int32", 48, 32, False, False),
]

REGISTERS = """
def registers(A: T.Buffer((64, 16), "float16"), B: T.Buffer((8, 16), "float16"), C: T.Buffer((64, 8), "float32")):
    tx = T.launch_thread("threadIdx.x", 128)
    right = T.allocate([128], "float16", "shared")
    L_data = T.allocate([8], "float16", "local")
    D_data = T.allocate([4], "float32", "local")
    S = T.decl_buffer((128,), "float16", data=right, scope="shared")
    L = T.decl_buffer((8,), "float16", data=L_data, scope="local")
    D = T.decl_buffer((4,), "float32", data=D_data, scope="local")
    for i in range(8):
        L[i] = A[tx // 32 * 16 + tx % 32 // 4 + i // 2 % 2 * 8, i // 4 * 8 + tx % 4 * 2 + i % 2]
    S[tx % 16 // 8 * 64 + tx // 16 * 8 + tx % 8] = B[tx // 16, tx % 16]
    T.ptx_fence_proxy_async()
    T.tvm_storage_sync("shared")
    T.ptx_wgmma_fence()
    T.ptx_wgmma("m64n8k16", "fp16", "fp16", "fp32", D_data, 0, L_data, 0, 0, 0, 0, 0, right, 0, 128, 128, 0, 0, False)
    T.ptx_wgmma_commit_group()
    T.ptx_wgmma_wait_group(0)
    for r in range(4):
        C[tx // 32 * 16 + tx % 32 // 4 + r // 2 * 8, tx % 4 * 2 + r % 2] = D[r]
"""

GEMM = """
def gemm(A: T.Buffer((64, 256), "float16"), B: T.Buffer((64, 256), "float16"), C: T.Buffer((64, 64), "float32")):
    tx = T.launch_thread("threadIdx.x", 384)
    left = T.allocate([3 * 4096], "float16", "shared")
    right = T.allocate([3 * 4096], "float16", "shared")
    D_data = T.allocate([16], "float32", "local")
    D = T.decl_buffer((16,), "float32", data=D_data, scope="local")
    T.create_barriers(6)
    if tx == 0:
        for s in range(3):
            T.ptx_init_barrier_thread_count(s, 1)
            T.ptx_init_barrier_thread_count(3 + s, 8)
        T.ptx_fence_barrier_init()
    T.tvm_storage_sync("shared")
    if tx < 128:
        T.ptx_setmaxnreg(40, 0)
        if tx == 0:
            for i in range(4):
                T.ptx_wait_barrier(3 + i % 3, 1 - i // 3 % 2)
                T.ptx_arrive_barrier_expect_tx(i % 3, 16384)
                T.ptx_cp_async_bulk_tensor(left, i % 3 * 4096, T.tensor_map(A.data, "float16", 128, 64, 256, 256, 1, 64, 64), i % 3, 0, i * 64)
                T.ptx_cp_async_bulk_tensor(right, i % 3 * 4096, T.tensor_map(B.data, "float16", 128, 64, 256, 256, 1, 64, 64), i % 3, 0, i * 64)
    else:
        T.ptx_setmaxnreg(232, 1)
        for i in range(4):
            T.ptx_wait_barrier(i % 3, i // 3 % 2)
            T.ptx_wgmma_fence()
            for p in range(4):
                T.ptx_wgmma("m64n32k16", "fp16", "fp16", "fp32", D_data, 0, left, i % 3 * 4096 + p * 16, 0, 1024, 128, 0, right, i % 3 * 4096 + (tx // 128 - 1) * 2048 + p * 16, 0, 1024, 128, 0, i + p > 0)
            T.ptx_wgmma_commit_group()
            T.ptx_wgmma_wait_group(1)
            if i > 0 and tx % 32 == 0:
                T.ptx_arrive_barrier(3 + (i - 1) % 3)
        T.ptx_wgmma_wait_group(0)
        for r in range(16):
            C[tx % 128 // 32 * 16 + tx % 32 // 4 + r // 2 % 2 * 8, (tx // 128 - 1) * 32 + r // 4 * 8 + tx % 4 * 2 + r % 2] = D[r]
"""

STORES = """
def stores(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    memory = T.allocate([64], "float32", "shared")
    S = T.decl_buffer((64,), "float32", data=memory, scope="shared")
    for k in range(2):
        S[tx] = A[k * 64 + tx] + T.float32(1)
        T.ptx_fence_proxy_async()
        T.tvm_storage_sync("shared")
        if tx == 0:
            T.ptx_cp_async_bulk_tensor_store(T.tensor_map(B.data, "float32", 0, 128, 1, 64), memory, 0, k * 64)
            T.ptx_cp_async_bulk_commit_group()
            T.ptx_cp_async_bulk_wait_group_read(0)
        T.tvm_storage_sync("shared")
"""

CLUSTER = """
def cluster(A: T.Buffer((128,), "float32"), B: T.Buffer((256,), "float32")):
    T.func_attr({"tir.cluster": [2, 1, 1]})
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 32)
    memory = T.allocate([64], "float32", "shared")
    S = T.decl_buffer((64,), "float32", data=memory, scope="shared")
    T.create_barriers(2)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_init_barrier_thread_count(1, 64)
        T.ptx_fence_barrier_init()
    T.tvm_storage_sync("warp")
    T.ptx_cluster_arrive()
    T.ptx_cluster_wait()
    for k in range(2):
        if tx == 0:
            T.ptx_arrive_barrier_expect_tx(0, 256)
            T.ptx_cp_async_bulk_tensor_multicast(memory, bx % 2 * 32, T.tensor_map(A.data, "float32", 0, 128, 1, 32), 0, 3, k * 64 + bx % 2 * 32)
        T.ptx_wait_barrier(0, k)
        B[bx * 64 + k * 32 + tx] = S[tx] + S[63 - tx]
        T.ptx_arrive_barrier_cluster(1, 0)
        T.ptx_arrive_barrier_cluster(1, 1)
        T.ptx_wait_barrier(1, k)
    T.ptx_cluster_arrive()
    T.ptx_cluster_wait()
"""
