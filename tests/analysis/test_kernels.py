"""What kernels need of a GPU, beside limits: ``tir.analysis.verify_gpu_code``."""

from __future__ import annotations

import pytest

import tir
from tir.script import parse

KERNELS = """
@T.prim_func
def f(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32"), n: T.int32):
    with T.launch_thread("blockIdx.x", n) as bx:
        tx = T.launch_thread("threadIdx.x", 32)
        ty = T.launch_thread("threadIdx.y", 4)
        v = T.launch_thread("vthread", 2)
        S = T.allocate([128], "float32", "shared")
        D = T.allocate([16], "float32", "shared.dyn")
        L = T.allocate([6], "float16", "local")
        s = T.decl_buffer((128,), "float32", data=S, scope="shared")
        d = T.decl_buffer((16,), "float32", data=D, scope="shared.dyn")
        l = T.decl_buffer((6,), "float16", data=L, scope="local")
        l[0:6] = T.broadcast(T.float16(1), 6)
        s[tx * 4 + ty] = A[tx * 4 + ty + v]
        d[ty] = T.float32(l[ty])
        B[tx * 4 : tx * 4 + 2] = A[tx * 4 : tx * 4 + 2]
    with T.launch_thread("threadIdx.x", 64) as tx:
        B[tx] = A[tx]
"""
NEEDS = {
    "max_threads_per_block": 128, "max_thread_x": 64, "max_thread_y": 4, "max_thread_z": 1, "max_vthread": 2,
    "max_shared_memory_per_block": 128 * 4 + 16 * 4, "max_local_memory_per_block": 6 * 2, "max_vector_bytes": 8,
    "max_kernels": 2,
}  # fmt: skip


def test_what_kernels_need_is_within_limits_of_that_size():
    assert tir.analysis.verify_gpu_code(parse(KERNELS), NEEDS)


@pytest.mark.parametrize("limit", NEEDS)
def test_a_limit_that_is_smaller_by_one_is_exceeded(limit):
    assert not tir.analysis.verify_gpu_code(parse(KERNELS), {**NEEDS, limit: NEEDS[limit] - 1})


def test_a_number_of_threads_that_is_not_known_is_within_no_limit():
    f = parse(KERNELS.replace('"threadIdx.y", 4', '"threadIdx.y", n'))
    assert not tir.analysis.verify_gpu_code(f, {"max_thread_y": 1024})
    assert tir.analysis.verify_gpu_code(f, {"max_thread_x": 64})


def test_kernels_of_a_lowered_schedule():
    sch = tir.Schedule(tir.library.elementwise.scale_add(256))
    sch.bind("i", "threadIdx.x")
    with pytest.raises(ValueError, match="is not lowered"):
        tir.analysis.verify_gpu_code(sch.mod["main"], {"max_threads_per_block": 256})
    lowered = tir.lower(sch.mod, target="cuda")
    verdicts = {
        n: [tir.analysis.verify_gpu_code(f, {"max_threads_per_block": n}) for _, f in lowered.items()]
        for n in (255, 256)
    }
    assert not all(verdicts[255]) and all(verdicts[256])


def test_a_limit_of_another_name_is_refused():
    with pytest.raises(ValueError, match="max_thread_x"):
        tir.analysis.verify_gpu_code(parse(KERNELS), {"max_threads_x": 1})
