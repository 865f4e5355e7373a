"""What Hopper's operators compute: the compiled kernels, executed on the CPU, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from codegen.ptx.syntax import PTXFault
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
