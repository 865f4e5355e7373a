"""Instructions on the GPU simulator: tensor cores, asynchronous copies, shuffles, atomics."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from simulated_kernels import parse, run

import tir
from tir.interp.gpu import ORDERS, SimulationError, simulate
from tir.interp.gpu.matrix import layout_a, layout_b, layout_c
from tir.interp.numbers import encode


def product(rows: int, depth: int, dtype: str, out: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -3
    return r.integers(low, 4, (rows, depth)).astype("float64"), r.integers(low, 4, (depth, 8)).astype("float64")


MMA = [
    ("m16n8k16", "fp16", "fp32"),
    ("m16n8k8", "fp16", "fp32"),
    ("m16n8k16", "bf16", "fp32"),
    ("m16n8k16", "fp16", "fp16"),
    ("m16n8k8", "tf32", "fp32"),
    ("m16n8k4", "tf32", "fp32"),
    ("m16n8k16", "int8", "int32"),
    ("m16n8k32", "int8", "int32"),
    ("m16n8k32", "uint8", "int32"),
    ("m16n8k32", "e4m3", "fp32"),
    ("m16n8k32", "e5m2", "fp32"),
    ("m8n8k4", "fp64", "fp64"),
    ("m8n8k16", "int8", "int32"),
]

NAMES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "fp64": "float64",
    "fp32": "float32",
}


@pytest.mark.parametrize(("shape", "kind", "out"), MMA)
def test_mma_multiplies_by_the_layout_of_ptx(shape: str, kind: str, out: str):
    rows, _, depth = (int(n) for n in re.findall(r"\d+", shape))
    dtype, result = tir.DType(NAMES.get(kind, kind)), tir.DType(NAMES.get(out, out))
    na, nb, nc = rows * depth // 32, depth * 8 // 32, rows * 8 // 32
    text = f"""
def f(A: T.Buffer(({32 * na},), "{dtype}"), B: T.Buffer(({32 * nb},), "{dtype}"), C: T.Buffer(({32 * nc},), "{result}")):
    a = T.allocate([{na}], "{dtype}", "local")
    b = T.allocate([{nb}], "{dtype}", "local")
    c = T.allocate([{nc}], "{result}", "local")
    tx = T.launch_thread("threadIdx.x", 32)
    ra = T.decl_buffer(({na},), "{dtype}", data=a, scope="local")
    rb = T.decl_buffer(({nb},), "{dtype}", data=b, scope="local")
    rc = T.decl_buffer(({nc},), "{result}", data=c, scope="local")
    for i in range({na}):
        ra[i] = A[tx * {na} + i]
    for i in range({nb}):
        rb[i] = B[tx * {nb} + i]
    for i in range({nc}):
        rc[i] = C[tx * {nc} + i]
    T.ptx_mma("{shape}", "row", "col", "{kind}", "{kind}", "{out}", a, 0, b, 0, c, 0, False, dtype="{result}")
    for i in range({nc}):
        C[tx * {nc} + i] = rc[i]
"""
    left, right = product(rows, depth, str(dtype), str(result), 1)
    e = max(1, 32 // dtype.bits)
    small = dtype.code not in ("float", "int", "uint")
    hold = (lambda x: encode(x, dtype)) if small else (lambda x: x.astype(str(dtype)))
    c = np.ones(32 * nc, str(result))
    simulate(parse(text), [hold(left[layout_a(rows, depth, e)]).ravel(), hold(right[layout_b(depth, e)]).ravel(), c])
    want = 1 + left @ right
    np.testing.assert_array_equal(c.reshape(32, nc), want[layout_c(rows)])


def test_layouts_are_those_ptx_tells():
    """Spot checks against the figures of the PTX manual: lane 13 is in group 3 and has position 1."""
    row, column = layout_a(16, 16, 2)  # m16n8k16, f16: (g, 2t) (g + 8, 2t) (g, 2t + 8) (g + 8, 2t + 8), pairs
    assert row[13].tolist() == [3, 3, 11, 11, 3, 3, 11, 11] and column[13].tolist() == [2, 3, 2, 3, 10, 11, 10, 11]
    row, column = layout_b(16, 2)
    assert row[13].tolist() == [2, 3, 10, 11] and column[13].tolist() == [3, 3, 3, 3]
    row, column = layout_a(16, 8, 1)  # m16n8k8, tf32
    assert row[13].tolist() == [3, 11, 3, 11] and column[13].tolist() == [1, 1, 5, 5]
    row, column = layout_a(16, 32, 4)  # m16n8k32, s8
    assert row[13].tolist() == [3] * 4 + [11] * 4 + [3] * 4 + [11] * 4
    assert column[13].tolist() == [4, 5, 6, 7] * 2 + [20, 21, 22, 23] * 2
    row, column = layout_c(16)
    assert row[13].tolist() == [3, 3, 11, 11] and column[13].tolist() == [2, 3, 2, 3]


@pytest.mark.parametrize("trans", [False, True])
def test_ldmatrix_gives_each_lane_its_elements(trans: bool):
    out = np.zeros(256, "float16")
    data = np.arange(256).astype("float16")
    run(
        f"""
def f(A: T.Buffer((256,), "float16"), C: T.Buffer((256,), "float16")):
    S_data = T.allocate([256], "float16", "shared")
    r_data = T.allocate([8], "float16", "local")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((256,), "float16", data=S_data, scope="shared")
    r = T.decl_buffer((8,), "float16", data=r_data, scope="local")
    S[tx * 8:tx * 8 + 8] = A[tx * 8:tx * 8 + 8]
    T.tvm_storage_sync("shared")
    T.ptx_ldmatrix({trans}, 4, ".b16", r_data, 0, T.address_of(S[0]), tx * 8, dtype="float16")
    C[tx * 8:tx * 8 + 8] = r[0:8]
""",
        data,
        out,
    )
    for lane in range(32):
        for matrix in range(4):
            tile = data.reshape(4, 8, 8)[matrix].T if trans else data.reshape(4, 8, 8)[matrix]
            want = tile[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2]
            assert out[lane * 8 + 2 * matrix : lane * 8 + 2 * matrix + 2].tolist() == want.tolist()


WMMA = """
def f(A: T.Buffer((512,), "float16"), B: T.Buffer((512,), "float16"), C: T.Buffer((1024,), "float32")):
    a = T.allocate([256], "float16", "wmma.matrix_a")
    b = T.allocate([256], "float16", "wmma.matrix_b")
    c = T.allocate([256], "float32", "wmma.accumulator")
    ty = T.launch_thread("threadIdx.y", 4)
    tx = T.launch_thread("threadIdx.x", 32)
    T.tvm_fill_fragment(c, 16, 16, 16, 0, T.float32(1), dtype="handle")
    T.tvm_load_matrix_sync(a, 16, 16, 16, 0, T.address_of(A[ty // 2 * 256]), 16, "row_major", dtype="handle")
    T.tvm_load_matrix_sync(b, 16, 16, 16, 0, T.tvm_access_ptr(T.type_annotation(dtype="float16"), B.data, ty % 2 * 256, 256, 1, dtype="handle"), 16, "col_major", dtype="handle")
    T.tvm_mma_sync(c, 0, a, 0, b, 0, c, 0, dtype="handle")
    T.tvm_store_matrix_sync(c, 16, 16, 16, 0, T.address_of(C[ty // 2 * 512 + ty % 2 * 16]), 32, "row_major", dtype="handle")
"""


@pytest.mark.parametrize("order", ORDERS)
def test_wmma_fragments_belong_to_warps(order: str):
    r = np.random.default_rng(0)
    a, b = r.integers(-3, 4, 512).astype("float16"), r.integers(-3, 4, 512).astype("float16")
    c = np.zeros(1024, "float32")
    report = run(WMMA, a, b, c, order=order)
    want = a.reshape(32, 16).astype("float32") @ b.reshape(32, 16).T.astype("float32") + 1
    np.testing.assert_array_equal(c.reshape(32, 32), want)
    assert report.ok


def test_elements_of_a_fragment_cannot_be_accessed():
    with pytest.raises(tir.RunError, match="fragment"):
        run(
            """
def f(C: T.Buffer((32,), "float32")):
    c = T.allocate([256], "float32", "wmma.accumulator")
    tx = T.launch_thread("threadIdx.x", 32)
    f = T.decl_buffer((256,), "float32", data=c, scope="wmma.accumulator")
    T.tvm_fill_fragment(c, 16, 16, 16, 0, T.float32(1), dtype="handle")
    C[tx] = f[tx]
""",
            np.zeros(32, "float32"),
        )


def test_a_predicated_copy_writes_zeros_where_it_does_not_read():
    out = np.full(64, 7, "float32")
    report = run(
        """
def f(A: T.Buffer((40,), "float32"), C: T.Buffer((64,), "float32")):
    S_data = T.allocate([64], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((64,), "float32", data=S_data, scope="shared")
    T.ptx_cp_async(T.address_of(S[tx]), 0, A.data, tx, 4, tx < 40, dtype="float32")
    T.ptx_commit_group()
    T.ptx_wait_group(0)
    C[tx] = S[tx]
""",
        np.ones(40, "float32"),
        out,
    )
    assert report.ok and out.tolist() == [1.0] * 40 + [0.0] * 24


def test_groups_land_oldest_first():
    """Two groups in flight: after waiting for all but one only the first has landed."""
    text = """
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    S_data = T.allocate([64], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((64,), "float32", data=S_data, scope="shared")
    for g in range(2):
        T.ptx_cp_async(T.address_of(S[g * 32 + tx]), 0, T.address_of(A[g * 32 + tx]), 0, 4, dtype="float32")
        T.ptx_commit_group()
    T.ptx_wait_group(1)
    C[tx] = S[GROUP * 32 + tx]
"""
    a, c = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    assert run(text.replace("GROUP", "0"), a, c).ok and (c[:32] == a[:32]).all()
    with pytest.raises(SimulationError, match="before the asynchronous copy"):
        run(text.replace("GROUP", "1"), a, c)


@pytest.mark.parametrize("order", ORDERS)
def test_threads_may_copy_the_same_bytes_twice(order: str):
    text = """
def f(A: T.Buffer((128,), "float32"), C: T.Buffer((64,), "float32")):
    S_data = T.allocate([8], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((8,), "float32", data=S_data, scope="shared")
    T.ptx_cp_async(T.address_of(S[tx % 8]), 0, T.address_of(A[SOURCE]), 0, 4, dtype="float32")
    T.ptx_commit_group()
    T.ptx_wait_group(0)
    T.tvm_storage_sync("shared")
    C[tx] = S[tx % 8]
"""
    a, c = np.arange(1, 129, dtype="float32"), np.zeros(64, "float32")
    assert run(text.replace("SOURCE", "tx % 8"), a, c, order=order).ok
    assert c.tolist() == [float(t % 8 + 1) for t in range(64)]
    with pytest.raises(SimulationError, match="race|async"):
        run(text.replace("SOURCE", "tx"), a, c, order=order)


@pytest.mark.parametrize(
    ("op", "source"),
    [
        ("shuffle_up", lambda i: max(i - 3, i // 8 * 8 if i % 8 >= 3 else i)),
        ("shuffle_down", lambda i: i + 3 if i % 8 < 5 else i),
        ("shuffle_xor", lambda i: i ^ 3),
        ("shuffle", lambda i: i // 8 * 8 + 3),
    ],
)
def test_shuffles(op: str, source: Any):
    out = np.zeros(32, "int32")
    run(
        f"""
def f(A: T.Buffer((32,), "int32"), C: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    C[tx] = T.tvm_warp_{op}(T.tvm_warp_activemask(dtype="uint32"), A[tx], 3, 8, 32, dtype="int32")
""",
        np.arange(32, dtype="int32"),
        out,
    )
    assert out.tolist() == [source(i) for i in range(32)]


def test_an_active_mask_is_that_of_the_branch():
    out = np.zeros(64, "uint32")
    run(
        """
def f(C: T.Buffer((64,), "uint32")):
    tx = T.launch_thread("threadIdx.x", 64)
    if tx % 2 == 0 or tx >= 32:
        C[tx] = T.tvm_warp_activemask(dtype="uint32")
""",
        out,
    )
    assert out[0] == 0x55555555 and out[1] == 0 and out[63] == 0xFFFFFFFF


@pytest.mark.parametrize("order", ORDERS)
def test_atomic_additions_do_not_race(order: str):
    a, out = np.arange(256, dtype="int32"), np.zeros(8, "int32")
    report = run(
        """
def f(A: T.Buffer((256,), "int32"), C: T.Buffer((8,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    T.evaluate(T.atomic_add(T.address_of(C[A[bx * 64 + tx] % 8]), A[bx * 64 + tx], dtype="int32"))
""",
        a,
        out,
        order=order,
    )
    assert report.ok and out.tolist() == [int(a[a % 8 == k].sum()) for k in range(8)]


def test_a_warp_barrier_orders_the_warp_only():
    text = """
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    S_data = T.allocate([64], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((64,), "float32", data=S_data, scope="shared")
    S[tx] = A[tx]
    T.tvm_storage_sync("warp")
    C[tx] = S[SOURCE]
"""
    a = np.arange(64, dtype="float32")
    assert run(text.replace("SOURCE", "T.bitwise_xor(tx, 31)"), a, np.zeros(64, "float32")).ok
    with pytest.raises(SimulationError, match="race"):
        run(text.replace("SOURCE", "63 - tx"), a, np.zeros(64, "float32"))


def test_threads_that_copy_the_same_bytes_twice_are_counted_not_reported():
    text = """
def f(A: T.Buffer((8,), "float32"), C: T.Buffer((64,), "float32")):
    S_data = T.allocate([8], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((8,), "float32", data=S_data, scope="shared")
    S[tx % 8] = VALUE
    T.tvm_storage_sync("shared")
    C[tx] = S[tx % 8]
"""
    a, c = np.arange(8, dtype="float32"), np.zeros(64, "float32")
    report = run(text.replace("VALUE", "A[tx % 8]"), a, c)
    assert sum(t.redundant for t in report.accesses) == 56
    with pytest.raises(SimulationError, match="race"):
        run(text.replace("VALUE", "A[tx // 8]"), a, c)


def test_control_flow_that_differs_between_threads():
    out = np.zeros(96, "int32")
    run(
        """
def f(C: T.Buffer((96,), "int32")):
    n = T.allocate([1], "int32", "local")
    tx = T.launch_thread("threadIdx.x", 96)
    N = T.decl_buffer((1,), "int32", data=n, scope="local")
    N[0] = tx + 1
    C[tx] = 0
    while N[0] > 1:
        if N[0] % 2 == 0:
            N[0] = N[0] // 2
        else:
            N[0] = N[0] * 3 + 1
        C[tx] = C[tx] + 1
    for i in range(tx % 5):
        for j in T.serial(i, tx % 3 + i):
            C[tx] = C[tx] + 1000
""",
        out,
    )

    def collatz(n: int) -> int:
        steps = 0
        while n > 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    assert out.tolist() == [collatz(t + 1) + 1000 * (t % 5) * (t % 3) for t in range(96)]
