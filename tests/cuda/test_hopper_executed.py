"""What Hopper's operators compute: the compiled kernels, executed on the CPU, against NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from codegen.ptx.syntax import PTXFault
from tir.dtype import DType
from tir.interp.numbers import encode, is_small_float
from tir.script import parse

ORDERS = ("together", "forward", "reverse")


def compiled(text: str):
    return tir.build(parse(text), target="cuda-ptx -arch=sm_90a")


def copied(shape, box, at, to, dtype="float16", swizzle=0):
    """A kernel that copies the box of A at ``at`` to shared memory, and from there to C at ``to``."""
    count = int(np.prod(box))
    numbers = [", ".join(map(str, place)) for place in (at, to)]
    return f"""
@T.prim_func
def f(A: T.Buffer({shape}, "{dtype}"), C: T.Buffer({shape}, "{dtype}")):
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.alloc_buffer(({count},), "{dtype}", scope="shared")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_fence_barrier_init()
        T.ptx_arrive_barrier_expect_tx(0, {count * np.dtype(dtype).itemsize})
        T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(A, {box}, {swizzle}), 0, {numbers[0]})
        T.ptx_wait_barrier(0, 0)
        T.ptx_cp_async_bulk_tensor_store(T.tensor_map(C, {box}, {swizzle}), S.data, 0, {numbers[1]})
        T.ptx_cp_async_bulk_commit_group()
        T.ptx_cp_async_bulk_wait_group(0)
"""


def boxed(a: np.ndarray, box: tuple[int, ...], at: tuple[int, ...], to: tuple[int, ...]) -> np.ndarray:
    """What such a kernel leaves in C, which was zero."""
    c = np.zeros_like(a)
    for k in np.ndindex(*box):
        source, target = (tuple(x + i for x, i in zip(start, k)) for start in (at, to))
        if all(0 <= x < n for x, n in zip(target, a.shape)):
            inside = all(0 <= x < n for x, n in zip(source, a.shape))
            c[target] = a[source] if inside else 0
    return c


@pytest.mark.parametrize(
    "shape, box, at, to, dtype, swizzle",
    [
        ((40,), (16,), (32,), (-4,), "float32", 0),
        ((9, 24), (4, 16), (6, 16), (-1, 8), "float16", 32),
        ((20, 64), (16, 32), (-3, 8), (7, 40), "float16", 64),
        ((20, 64), (16, 64), (8, 0), (0, 0), "float16", 128),
        ((3, 5, 16), (2, 3, 16), (2, -1, 0), (0, 3, 0), "int8", 0),
        ((2, 3, 4, 8), (1, 2, 2, 4), (1, 2, 3, 6), (0, 0, 1, -1), "float32", 0),
        ((2, 2, 3, 2, 4), (2, 1, 2, 2, 4), (0, 1, 1, 0, 0), (1, 0, 2, 1, 0), "int32", 0),
    ],
)
def test_boxes_are_copied_with_zeros_out_of_bounds(shape, box, at, to, dtype, swizzle):
    module = compiled(copied(shape, box, at, to, dtype, swizzle))
    a = np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)
    c = np.zeros(shape, dtype)
    module(a, c)
    assert (c == boxed(a, box, at, to)).all() and c.any()


SYMBOLIC = """
@T.prim_func
def f(a: T.handle, C: T.Buffer((64, 8), "float16")):
    m, n = T.int32(), T.int32()
    A = T.match_buffer(a, (m, n), "float16", strides=(n, 1))
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.alloc_buffer((64, 8), "float16", scope="shared")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_fence_barrier_init()
    T.tvm_storage_sync("shared")
    if tx == 0:
        T.ptx_arrive_barrier_expect_tx(0, 1024)
        T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(A, (64, 8)), 0, 0, n - 8)
    T.ptx_wait_barrier(0, 0)
    for j in range(8):
        C[tx, j] = S[tx, j]
"""


def test_one_kernel_copies_from_tensors_of_any_size():
    module = compiled(SYMBOLIC)
    for m, n in ((64, 8), (10, 24)):
        a, c = np.random.rand(m, n).astype("float16"), np.ones((64, 8), "float16")
        module(a, c)
        assert (c[:m] == a[:64, -8:]).all() and not c[m:].any()


CLUSTER = """
@T.prim_func
def f(A: T.Buffer((128,), "float32"), C: T.Buffer((4, 128), "float32")):
    T.func_attr({"tir.cluster": [2, 1, 1]})
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.alloc_buffer((128,), "float32", scope="shared")
    T.create_barriers(2)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_init_barrier_thread_count(1, 2)
        T.ptx_fence_barrier_init()
    T.ptx_cluster_arrive()
    T.ptx_cluster_wait()
    if tx == 0:
        T.ptx_arrive_barrier_expect_tx(0, 512)
        T.ptx_cp_async_bulk_tensor_multicast(S.data, bx % 2 * 64, T.tensor_map(A, (64,)), 0, 3, bx % 2 * 64)
    T.ptx_wait_barrier(0, 0)
    for i in range(2):
        C[bx, i * 64 + tx] = S[i * 64 + tx]
    if tx == 0:
        T.ptx_arrive_barrier_cluster(1, 0)
        T.ptx_arrive_barrier_cluster(1, 1)
    T.ptx_wait_barrier(1, 0)
    T.ptx_cluster_arrive()
    T.ptx_cluster_wait()
"""


def test_each_block_of_a_cluster_copies_a_half_for_both():
    module = compiled(CLUSTER)
    a = np.random.rand(128).astype("float32")
    for order in ORDERS:
        c = np.zeros((4, 128), "float32")
        module.order = order
        module(a, c)
        assert (c == a).all()


def test_a_block_that_does_not_wait_for_its_cluster_is_found():
    early = CLUSTER.replace(
        "    T.ptx_cluster_arrive()\n    T.ptx_cluster_wait()\n    if", "    T.tvm_storage_sync('shared')\n    if", 1
    )
    assert early != CLUSTER
    with pytest.raises(PTXFault):
        compiled(early)(np.ones(128, "float32"), np.zeros((4, 128), "float32"))


def test_what_threads_stored_is_fenced_before_the_copy_engine_reads_it():
    text = """
@T.prim_func
def f(C: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.alloc_buffer((64,), "float32", scope="shared")
    S[tx] = T.float32(tx)
    FENCE
    T.tvm_storage_sync("shared")
    if tx == 0:
        T.ptx_cp_async_bulk_tensor_store(T.tensor_map(C, (64,)), S.data, 0, 0)
        T.ptx_cp_async_bulk_commit_group()
        T.ptx_cp_async_bulk_wait_group_read(0)
"""
    c = np.zeros(64, "float32")
    compiled(text.replace("FENCE", "T.ptx_fence_proxy_async()"))(c)
    assert (c == np.arange(64)).all()
    with pytest.raises(PTXFault, match="proxy"):
        compiled(text.replace("FENCE", "T.evaluate(0)"))(c)


# ---------------------------------------------------------------- products

PRODUCT = """
@T.prim_func
def f(A: T.Buffer((64, K), "DTYPE"), B: T.Buffer((N, K), "DTYPE"), C: T.Buffer((64, N), "SUM")):
    tx = T.launch_thread("threadIdx.x", 128)
    rows = T.alloc_buffer((64, K), "DTYPE", scope="shared")
    columns = T.alloc_buffer((N, K), "DTYPE", scope="shared")
    sums = T.alloc_buffer((N // 2,), "SUM", scope="local")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_fence_barrier_init()
    T.tvm_storage_sync("shared")
    if tx == 0:
        T.ptx_arrive_barrier_expect_tx(0, (64 + N) * WIDTH)
        T.ptx_cp_async_bulk_tensor(rows.data, 0, T.tensor_map(A, (64, K), SWIZZLE), 0, 0, 0)
        T.ptx_cp_async_bulk_tensor(columns.data, 0, T.tensor_map(B, (N, K), SWIZZLE), 0, 0, 0)
    T.ptx_wait_barrier(0, 0)
    T.ptx_wgmma_fence()
    for k in T.unroll(WIDTH // 32):
        T.ptx_wgmma(
            "mSHAPE", KINDS, sums.data, 0,
            rows.data, k * DEPTH, 0, 8 * WIDTH, SWIZZLE, 0,
            columns.data, k * DEPTH, 0, 8 * WIDTH, SWIZZLE, 0,
            k > 0,
        )
    T.ptx_wgmma_commit_group()
    T.ptx_wgmma_wait_group(0)
    for r in T.unroll(N // 2):
        C[tx // 32 * 16 + tx % 32 // 4 + r // 2 % 2 * 8, r // 4 * 8 + tx % 4 * 2 + r % 2] = sums[r]
"""


@pytest.mark.parametrize(
    "kinds, dtype, sums, n, swizzle",
    [
        (("fp16", "fp16", "fp32"), "float16", "float32", 64, 128),
        (("fp16", "fp16", "fp16"), "float16", "float16", 16, 64),
        (("bf16", "bf16", "fp32"), "bfloat16", "float32", 8, 32),
        (("tf32", "tf32", "fp32"), "float32", "float32", 24, 128),
        (("e4m3", "e4m3", "fp32"), "float8_e4m3fn", "float32", 32, 64),
        (("int8", "int8", "int32"), "int8", "int32", 32, 128),
    ],
    ids=lambda x: x[0] if isinstance(x, tuple) else str(x),
)
def test_a_warpgroup_multiplies(kinds, dtype, sums, n, swizzle):
    size = DType(dtype).bytes
    named = {
        "KINDS": ", ".join(f'"{kind}"' for kind in kinds),
        "SHAPE": f"64n{n}k{32 // size}",
        "SWIZZLE": swizzle,
        "WIDTH": swizzle,
        "DEPTH": 32 // size,
        "DTYPE": dtype,
        "SUM": sums,
        "N": n,
        "K": swizzle // size,
    }
    text = PRODUCT
    for name, value in named.items():
        text = re.sub(rf"\b{name}\b|(?<=m){name}", str(value), text)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (rows, swizzle // size)).astype("float32") for rows in (64, n))
    c = np.zeros((64, n), sums)
    compiled(text)(*(encode(x, DType(dtype)) if is_small_float(DType(dtype)) else x.astype(dtype) for x in (a, b)), c)
    assert (c == a @ b.T).all() and c.any()


BY_COLUMNS = """
@T.prim_func
def f(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 128), "float16"), C: T.Buffer((64, 128), "float32")):
    tx = T.launch_thread("threadIdx.x", 128)
    columns = T.alloc_buffer((2, 64, 64), "float16", scope="shared")
    left = T.alloc_buffer((8,), "float16", scope="local")
    sums = T.alloc_buffer((64,), "float32", scope="local")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_fence_barrier_init()
    T.tvm_storage_sync("shared")
    if tx == 0:
        T.ptx_arrive_barrier_expect_tx(0, 2 * 64 * 64 * 2)
        for half in range(2):
            T.ptx_cp_async_bulk_tensor(columns.data, half * 4096, T.tensor_map(B, (64, 64), 128), 0, 0, half * 64)
    T.ptx_wait_barrier(0, 0)
    for k in T.unroll(4):
        for e in T.unroll(8):
            left[e] = A[tx // 32 * 16 + tx % 32 // 4 + e // 2 % 2 * 8, k * 16 + e // 4 * 8 + tx % 4 * 2 + e % 2]
        T.ptx_wgmma_fence()
        T.ptx_wgmma(
            "m64n128k16", "fp16", "fp16", "fp32", sums.data, 0, left.data, 0, 0, 0, 0, 0,
            columns.data, k * 1024, 8192, 1024, 128, 1, k > 0,
        )
        T.ptx_wgmma_commit_group()
        T.ptx_wgmma_wait_group(0)
    for r in T.unroll(64):
        C[tx // 32 * 16 + tx % 32 // 4 + r // 2 % 2 * 8, r // 4 * 8 + tx % 4 * 2 + r % 2] = sums[r]
"""


def test_a_warpgroup_multiplies_registers_by_a_matrix_in_columns():
    a, b = (np.random.default_rng(n).integers(-3, 4, (64, 64 * (n + 1))).astype("float16") for n in range(2))
    c = np.zeros((64, 128), "float32")
    compiled(BY_COLUMNS)(a, b, c)
    assert (c == a.astype("float32") @ b.astype("float32")).all()
