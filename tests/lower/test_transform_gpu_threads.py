# ruff: noqa: E501
"""Passes that bind, place and launch threads, before and after."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.gpu_passes import assert_lowers
from tir.script import parse
from tir.transform import default_thread_binding

CASES = [
    pytest.param(
        "default_thread_binding",
        """
@T.prim_func
def f(A: T.Buffer((10, 70), "float32"), S: T.Buffer((1,), "float32")):
    B = T.alloc_buffer((10, 70), "float32")
    for i, j in T.grid(10, 70):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(10, 70):
        with T.block("S"):
            vi, vj = T.axis.remap("RR", [i, j])
            with T.init():
                S[0] = T.float32(0)
            S[0] += B[vi, vj]
""",
        """
@T.prim_func
def f(A: T.Buffer((10, 70), "float32"), S: T.Buffer((1,), "float32")):
    # with T.block("root"):
    B = T.alloc_buffer((10, 70), "float32")
    for i_j_fused_0 in T.thread_binding(3, thread="blockIdx.x"):
        for i_j_fused_1 in T.thread_binding(256, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(10, (i_j_fused_0 * 256 + i_j_fused_1) // 70)
                vj = T.axis.spatial(70, (i_j_fused_0 * 256 + i_j_fused_1) % 70)
                T.where(i_j_fused_0 * 256 + i_j_fused_1 < 700)
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[vi, vj] * 2.0
    for blockIdx in T.thread_binding(1, thread="blockIdx.x"):
        for threadIdx in T.thread_binding(1, thread="threadIdx.x"):
            for i, j in T.grid(10, 70):
                with T.block("S"):
                    vi, vj = T.axis.remap("RR", [i, j])
                    T.reads(B[vi, vj])
                    T.writes(S[0])
                    with T.init():
                        S[0] = T.float32(0)
                    S[0] = S[0] + B[vi, vj]
""",
        id="default_thread_binding-spatial_and_reduction",
    ),
    pytest.param(
        "unify_thread_binding",
        """
@T.prim_func(check_well_formed=False)
def f(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    S = T.alloc_buffer((32,), "float32", scope="shared")
    for bx in T.thread_binding(8, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                S[t] = A[bx, t]
            B[bx, tx] = S[31 - tx]
        for u in T.thread_binding(32, thread="threadIdx.x"):
            B[bx, u] = B[bx, u] + T.float32(1)
        B[bx, 0] = T.float32(0)
""",
        """
@T.prim_func
def f(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    # with T.block("root"):
    for bx in T.thread_binding(8, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("S_scope"):
                T.reads()
                T.writes()
                S = T.alloc_buffer((32,), "float32", scope="shared")
                S[tx] = A[bx, tx]
                B[bx, tx] = S[31 - tx]
                B[bx, tx] = B[bx, tx] + 1.0
                if tx == 0:
                    B[bx, 0] = T.float32(0)
""",
        id="unify_thread_binding-side_by_side_and_nested",
    ),
    pytest.param(
        "compact_buffer_allocation",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("tile"):
                T.reads(A[bx * 16 + tx])
                T.writes(B[bx * 16 + tx])
                S = T.alloc_buffer((64,), "float32", scope="shared")
                L = T.alloc_buffer((64,), "float32", scope="local")
                S[bx * 16 + tx] = A[bx * 16 + tx]
                L[bx * 16 + tx] = S[bx * 16 + 15 - tx]
                B[bx * 16 + tx] = L[bx * 16 + tx]
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    # with T.block("root"):
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("tile"):
                T.reads(A[bx * 16 + tx])
                T.writes(B[bx * 16 + tx])
                S = T.alloc_buffer((16,), "float32", scope="shared")
                L = T.alloc_buffer((1,), "float32", scope="local")
                S[tx] = A[bx * 16 + tx]
                L[0] = S[15 - tx]
                B[bx * 16 + tx] = L[0]
""",
        id="compact_buffer_allocation-shared_by_all_threads",
    ),
    pytest.param(
        "compact_buffer_allocation",
        """
@T.prim_func
def f(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 64), "float32")):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("tile"):
                T.reads(A[bx * 32 : bx * 32 + 32, tx])
                T.writes(B[tx, bx * 32 : bx * 32 + 32])
                S = T.alloc_buffer((64, 32), "float32", scope="shared")
                for i in range(32):
                    with T.block("load"):
                        T.reads(A[bx * 32 + i, tx])
                        T.writes(S[bx * 32 + i, tx])
                        T.block_attr({"buffer_dim_align": [[0, 0, 32, 1]]})
                        S[bx * 32 + i, tx] = A[bx * 32 + i, tx]
                for i in range(32):
                    B[i, bx * 32 + tx] = S[bx * 32 + tx, i]
""",
        """
@T.prim_func
def f(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 64), "float32")):
    # with T.block("root"):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("tile"):
                T.reads(A[bx * 32 : bx * 32 + 32, tx])
                T.writes(B[tx, bx * 32 : bx * 32 + 32])
                S = T.alloc_buffer((32, 32), "float32", strides=[33, 1], scope="shared")
                for i in range(32):
                    with T.block("load"):
                        T.reads(A[bx * 32 + i, tx])
                        T.writes(S[i, tx])
                        T.block_attr({"buffer_dim_align": [[0, 0, 32, 1]]})
                        S[i, tx] = A[bx * 32 + i, tx]
                for i in range(32):
                    B[i, bx * 32 + tx] = S[tx, i]
""",
        id="compact_buffer_allocation-padding_of_shared_tile",
    ),
    pytest.param(
        "inject_virtual_thread",
        """
@T.prim_func
def f(A: T.Buffer((2, 4), "float32"), B: T.Buffer((2, 4), "float32"), C: T.Buffer((4,), "float32")):
    v = T.launch_thread("vthread", 2)
    L = T.allocate([1], "float32", "local")
    L1 = T.decl_buffer((1,), "float32", data=L)
    W = T.allocate([1], "float32", "local")
    W1 = T.decl_buffer((1,), "float32", data=W)
    L1[0] = T.float32(0)
    for k in range(4):
        W1[0] = C[k]
        L1[0] = L1[0] + A[v, k] * W1[0]
        if k < 2:
            B[v, k] = L1[0]
    if v == 1:
        B[v, 3] = L1[0]
""",
        """
@T.prim_func
def f(A: T.Buffer((2, 4), "float32"), B: T.Buffer((2, 4), "float32"), C: T.Buffer((4,), "float32")):
    L = T.allocate([2, 1], "float32", "local")
    L1 = T.decl_buffer((2, 1), "float32", data=L)
    W = T.allocate([1], "float32", "local")
    W1 = T.decl_buffer((1,), "float32", data=W)
    for v in T.unroll(2):
        L1[v, 0] = T.float32(0)
    for k in range(4):
        W1[0] = C[k]
        for v in T.unroll(2):
            L1[v, 0] = L1[v, 0] + A[v, k] * W1[0]
        if k < 2:
            for v in T.unroll(2):
                B[v, k] = L1[v, 0]
    for v in T.unroll(2):
        if v == 1:
            B[v, 3] = L1[v, 0]
""",
        id="inject_virtual_thread-interleaved_and_private",
    ),
    pytest.param(
        "legalize_vector_width",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), H: T.Buffer((64,), "float16"), B: T.Buffer((70,), "float32")):
    tx = T.launch_thread("threadIdx.x", 4)
    for v in T.vectorized(16):
        A[tx * 16 + v] = A[tx * 16 + v] + T.float32(1)
    for v in T.vectorized(8):
        H[tx * 8 + v] = T.float16(0)
    for v in T.vectorized(4):
        B[tx * 4 + v + 2] = T.float32(0)
    for v in T.vectorized(3):
        B[tx * 3 + v] = T.float32(0)
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), H: T.Buffer((64,), "float16"), B: T.Buffer((70,), "float32")):
    tx = T.launch_thread("threadIdx.x", 4)
    for v_0 in T.unroll(4):
        for v in T.vectorized(4):
            A[tx * 16 + (v_0 * 4 + v)] = A[tx * 16 + (v_0 * 4 + v)] + 1.0
    for v in T.vectorized(8):
        H[tx * 8 + v] = T.float16(0)
    for v_0 in T.unroll(2):
        for v in T.vectorized(2):
            B[tx * 4 + (v_0 * 2 + v) + 2] = T.float32(0)
    for v in T.unroll(3, annotations={"scalar_because": "3 x float32 of B are no power of two up to 16 bytes"}):
        B[tx * 3 + v] = T.float32(0)
""",
        id="legalize_vector_width",
    ),
    pytest.param(
        "verify_gpu_code",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    A[tx] = T.float32(0)
""",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    A[tx] = T.float32(0)
""",
        id="verify_gpu_code",
    ),
    pytest.param(
        "split_host_device",
        """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), b: T.handle, n: T.int32):
    B = T.match_buffer(b, (n,), "float32")
    w = T.allocate([n], "float32", "global")
    W = T.decl_buffer((n,), "float32", data=w)
    with T.launch_thread("blockIdx.x", (n + 63) // 64) as bx:
        tx = T.launch_thread("threadIdx.x", 64)
        if bx * 64 + tx < n:
            W[bx * 64 + tx] = A[tx]
    for k in range(2):
        ty = T.launch_thread("threadIdx.x", 64)
        d = T.allocate([256], "uint8", "shared.dyn")
        D = T.decl_buffer((64,), "float32", data=d, scope="shared.dyn")
        D[ty] = W[ty]
        B[ty] = D[ty] + T.cast(k, "float32")
""",
        """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), b: T.handle, n: T.int32):
        T.func_attr({"global_symbol": "f", "calling_conv": "host", "target": T.target({"kind": "cuda", "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152, "thread_warp_size": 32})})
        B = T.match_buffer(b, (n,), "float32")
        w = T.allocate([n], "float32", "global")
        if (n + 63) // 64 > 0:
            T.tvm_call_packed("main_kernel", A.data, w, n, (n + 63) // 64, 64, dtype="int32")
        for k in range(2):
            T.tvm_call_packed("main_kernel_1", B.data, w, n, k, 64, 256, dtype="int32")

    @T.prim_func
    def main_kernel(A: T.handle("float32"), w: T.handle("float32"), n: T.int32):
        T.func_attr({"target": T.target({"kind": "cuda", "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152, "thread_warp_size": 32}), "calling_conv": "device_kernel", "tir.kernel_launch_params": ["blockIdx.x", "threadIdx.x"], "tir.noalias": True})
        W = T.decl_buffer((n,), "float32", data=w)
        A_1 = T.decl_buffer((64,), "float32", data=A)
        bx = T.launch_thread("blockIdx.x", (n + 63) // 64)
        tx = T.launch_thread("threadIdx.x", 64)
        if bx * 64 + tx < n:
            W[bx * 64 + tx] = A_1[tx]

    @T.prim_func
    def main_kernel_1(B: T.handle("float32"), w: T.handle("float32"), n: T.int32, k: T.int32):
        T.func_attr({"target": T.target({"kind": "cuda", "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152, "thread_warp_size": 32}), "calling_conv": "device_kernel", "tir.kernel_launch_params": ["threadIdx.x", "tir.use_dyn_shared_memory"], "tir.noalias": True})
        W = T.decl_buffer((n,), "float32", data=w)
        B_1 = T.decl_buffer((n,), "float32", data=B)
        ty = T.launch_thread("threadIdx.x", 64)
        d = T.allocate([256], "uint8", "shared.dyn")
        D = T.decl_buffer((64,), "float32", data=d)
        D[ty] = W[ty]
        B_1[ty] = D[ty] + T.Cast("float32", k)
""",
        id="split_host_device-two_kernels_and_memory_between",
    ),
]


@pytest.mark.parametrize("name, before, after", CASES)
def test_pass(name, before, after):
    assert_lowers(name, before, after)


def test_a_nest_marked_parallel_runs_on_threads():
    """As one that is not marked; it ran on one thread."""
    text = """
@T.prim_func
def f(A: T.Buffer((10, 70), "float32"), B: T.Buffer((10, 70), "float32")):
    for i in T.KIND(10):
        for j in range(70):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
"""
    marked, plain = (default_thread_binding(parse(text.replace("KIND", kind))) for kind in ("parallel", "serial"))
    tir.assert_structural_equal(marked, plain)
    assert "T.thread_binding(3" in marked.script()


@pytest.mark.parametrize("axis", ["blockIdx.y", "threadIdx.y"])
@pytest.mark.parametrize("extent, size", [(0, "n"), (1, "n"), (3, "n"), (0, "0"), (3, "3")])
def test_statements_beside_a_loop_of_threads_run_where_it_is_empty(axis, extent, size):
    text = """
@T.prim_func
def f(n: T.int32, A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for x in T.thread_binding(4, thread="threadIdx.x"):
        for y in T.thread_binding(SIZE, thread="AXIS"):
            with T.block("B"):
                vx, vy = T.axis.remap("SS", [x, y])
                T.where(y == 0)
                B[vx] = A[vx] + 1
        with T.block("C"):
            vx = T.axis.spatial(4, x)
            C[vx] = A[vx] * 2
"""
    func = parse(text.replace("AXIS", axis).replace("SIZE", size))
    if size == "n" or axis.startswith("blockIdx"):
        with pytest.raises(tir.BuildError, match=axis):
            tir.build(func, "cuda-sim")
        return
    a, b, c = np.arange(4, dtype="int32"), np.full(4, -1, "int32"), np.full(4, -1, "int32")
    tir.build(func, "cuda-sim")(extent, a, b, c)
    assert c.tolist() == [0, 2, 4, 6]
    assert b.tolist() == ([1, 2, 3, 4] if extent else [-1] * 4)


READS_FIRST = {
    "a value": "x: T.float32 = O[vo] + V[vk]\n                O[vo] = x",
    "a condition": "if O[vo] < 100.0:\n                    O[vo] = O[vo] + V[vk]",
    "a bound": "for n in range(T.Cast('int32', O[vo]) + 1):\n                    O[vo] = T.max(O[vo], T.Cast('float32', n) + 1.0)",
}


@pytest.mark.parametrize("reads", READS_FIRST.values(), ids=READS_FIRST)
def test_one_thread_reads_what_decides_on_its_stores(reads):
    """The others would read memory while it is written."""
    program = parse(f"""
@T.prim_func
def f(A: T.Buffer((4,), "float32"), V: T.Buffer((4,), "float32"), O: T.Buffer((1,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.y"):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("V"):
                vi = T.axis.spatial(4, i)
                T.where(i < 1)
                V[vi] = A[vi] + 1.0
        for k in range(4):
            with T.block("O"):
                vk = T.axis.reduce(4, k)
                vo = T.axis.spatial(1, b)
                with T.init():
                    O[vo] = 0.0
                {reads}
""")
    a, (v, o), (w, p) = np.arange(4, dtype="float32"), np.zeros((2, 4), "float32"), np.zeros((2, 4), "float32")
    tir.build(program, "cuda-sim")(a, v, o[:1])
    tir.build(program, "interpreter")(a, w, p[:1])
    assert o[0] == p[0] != 0 and (v == w).all()


ATOMIC = """
@T.prim_func
def main(A: T.Buffer((40,), "int32"), H: T.Buffer((8,), "int32")):
    for b in range(8):
        with T.block("zero"):
            vb = T.axis.spatial(8, b)
            H[vb] = 2**31 - 1
    for i in range(40):
        with T.block("count"):
            vi = T.axis.spatial(40, i)
            T.reads(A[vi], H[0:8])
            T.writes(H[0:8])
            T.evaluate(T.atomic_add(T.address_of(H[A[vi] & 7]), A[vi], dtype="int32"))
"""
SHARED = """
@T.prim_func
def main(A: T.Buffer((40,), "int32"), H: T.Buffer((8,), "int32")):
    memory = T.allocate([40], "int32", "global")
    W = T.decl_buffer((40,), "int32", data=memory)
    B = T.decl_buffer((160,), "uint8", data=memory)
    for i in range(40):
        W[i] = A[i] * 3
    for i in range(8):
        H[i] = T.Cast("int32", B[i * 5]) + W[39 - i]
"""
PARALLEL = """
@T.prim_func
def main(A: T.Buffer((40,), "int32"), H: T.Buffer((8,), "int32")):
    for i in T.parallel(8):
        memory = T.allocate([5], "int32", "global")
        W = T.decl_buffer((5,), "int32", data=memory)
        for j in range(5):
            W[j] = A[i * 5 + j] * j
        H[i] = W[4] - W[1]
"""
LOCAL = """
@T.prim_func
def main(A: T.Buffer((40,), "int32"), H: T.Buffer((8,), "int32")):
    i = T.alloc_buffer((1,), "int32", scope="local")
    S = T.alloc_buffer((8,), "int32", scope="local")
    for j in range(8):
        H[j] = A[j]
    i[0] = 0
    while i[0] < 40:
        S[i[0] % 8] = A[i[0]] * 3
        i[0] += 7
    for j in range(8):
        with T.block("H"):
            vj = T.axis.spatial(8, j)
            T.where(j > 2)
            H[vj] = S[vj] + i[0]
"""


@pytest.mark.parametrize(
    "text", [ATOMIC, SHARED, PARALLEL, LOCAL], ids=["atomic", "memory before kernels", "parallel", "memory of a kernel"]
)
@pytest.mark.parametrize("target", ["llvm", "cuda-sim"])
def test_what_no_loop_is_bound_of_is_a_kernel_of_one_thread(text, target):
    program = parse(text)
    a = np.arange(40, dtype="int32")
    expected, found = np.zeros((2, 8), "int32")
    tir.build(program, "interpreter")(a, expected)
    tir.build(program, target)(a, found)
    np.testing.assert_array_equal(found, expected)
    if text is ATOMIC:
        sums = np.bincount(a & 7, weights=a).astype("int64") + 2**31 - 1
        np.testing.assert_array_equal(expected, sums.astype("int32"))


def around_threads(body: str, memory: str = "") -> tir.PrimFunc:
    """A kernel of 32 threads whose first block has ``body`` and is outside of their loop."""
    return parse(f"""
@T.prim_func
def main(A: T.Buffer((5, 5), "int32"), H: T.Buffer((4,), "int32"), E: T.Buffer((5, 5), "int32"), O: T.Buffer((4,), "int32")):
    {memory}
    for b in T.thread_binding(1, "blockIdx.x"):
        for i, j in T.grid(5, 5):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj], H[0:4])
                T.writes(H[0:4], E[vi, vj])
                {body}
        for t in T.thread_binding(32, "threadIdx.x"):
            with T.block("O"):
                v = T.axis.spatial(4, t)
                T.where(t < 4)
                O[v] = H[v]
""")


UPDATE = 'T.atomic_add(H.data, A[vi, vj], dtype="int32")'


@pytest.mark.parametrize(
    "body",
    [
        *(
            f'T.evaluate(T.atomic_add({place}, A[vi, vj], dtype="int32"))'
            for place in ("T.address_of(H[A[vi, vj] & 3])", "H.data", 'H.access_ptr("rw", offset=vj % 4)')
        ),
        f"T.evaluate({UPDATE} + 1)",
        f"E[vi, vj] = {UPDATE}",
        f"x: T.int32 = {UPDATE}\n{' ' * 16}E[vi, vj] = x * x",
        f"if {UPDATE} > 9:\n{' ' * 20}E[vi, vj] = 1",
        f'for q in range(T.atomic_add(H.data, 1, dtype="int32") & 3):\n{" " * 20}E[vi, vj] = q',
        f'L = T.alloc_buffer((1,), "int32", scope="local")\n{" " * 16}L[0] = {UPDATE}\n{" " * 16}E[vi, vj] = L[0]',
    ],
)
def test_an_update_outside_of_thread_loops_is_made_by_one_thread(body):
    program, a, results = around_threads(body), np.arange(25, dtype="int32").reshape(5, 5), []
    for target in ("interpreter", "cuda-sim"):
        results.append([np.zeros(4, "int32"), np.zeros((5, 5), "int32"), np.zeros(4, "int32")])
        tir.build(program, target)(a, *results[-1])
    for expected, found in zip(*results):
        np.testing.assert_array_equal(found, expected)


def test_an_old_value_that_each_thread_keeps_is_refused():
    program = around_threads(f"L[0] = {UPDATE}", 'L = T.alloc_buffer((1,), "int32", scope="local")')
    program = parse(str(program).replace("O[v] = H[v]", "O[v] = L[0]").replace("T.reads(H[v])", "T.reads(L[0])"))
    with pytest.raises(
        tir.BuildError, match=r"(?s)changes memory outside of the loops of threadIdx.x.* keep that in shared"
    ):
        tir.build(program, "cuda-sim")
