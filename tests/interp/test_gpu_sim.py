"""The GPU simulator: what kernels compute, what it counts, how it is looked into."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tir
from tir.interp.gpu import ORDERS, Breakpoint, SimulationError, simulate
from tir.interp.gpu.matrix import layout_a, layout_b, layout_c
from tir.interp.numbers import encode
from tir.script import tir as T


def parse(text: str) -> tir.PrimFunc:
    return tir.script.parse(f"@T.prim_func\n{text.strip()}\n")


def run(text: str, *args: Any, **options: Any) -> Any:
    return simulate(parse(text), args, **options)


def elementwise(dtype: str, value: str, out: str | None = None) -> tir.PrimFunc:
    return parse(f"""
def f(A: T.Buffer((96,), "{dtype}"), B: T.Buffer((96,), "{dtype}"), C: T.Buffer((96,), "{out or dtype}")):
    for tx in T.thread_binding(96, thread="threadIdx.x"):
        with T.block("C"):
            vi = T.axis.spatial(96, tx)
            C[vi] = {value}
""")


VALUES = [
    ("float32", "A[vi] * B[vi] + A[95 - vi] / B[vi]", None),
    ("float32", "T.exp(A[vi]) + T.sqrt(T.abs(B[vi])) - T.max(A[vi], B[vi])", None),
    ("float32", "T.floor(A[vi]) % B[vi]", None),
    ("float32", "T.Cast('int32', A[vi])", "int32"),
    ("float32", "T.reinterpret('int32', A[vi])", "int32"),
    ("float32", "T.Cast('bfloat16', A[vi] * T.float32(1.01))", "bfloat16"),
    ("float16", "A[vi] * B[vi] + A[vi]", None),
    ("bfloat16", "A[vi] * B[vi] + A[vi]", None),
    ("float8_e4m3", "A[vi] + B[vi]", None),
    ("int32", "A[vi] // B[vi] + A[vi] % B[vi]", None),
    ("int32", "T.truncdiv(A[vi], B[vi]) * 3 + T.truncmod(A[vi], B[vi])", None),
    ("int32", "A[vi] * 1103515245 + vi * 12345 << 3", None),
    ("int32", "(A[vi] ^ B[vi]) & ~A[vi] | A[vi] >> 2", None),
    ("int32", "T.min(A[vi], 3) // 4 + A[vi] % 8", None),
    ("int32", "T.if_then_else(A[vi] > 0, B[A[vi]], -1)", None),
    ("int32", "T.Select(A[vi] > 0 and B[vi] < 0, vi, A[vi])", None),
    ("int32", "T.if_then_else(vi > 0 and A[vi - 1] > 0 or vi == 5, 1, 2)", None),
    ("int32", "T.popcount(A[vi]) + T.clz(A[vi])", None),
    ("int32", "T.Cast('float16', A[vi])", "float16"),
    ("uint8", "A[vi] - B[vi]", None),
    ("int8", "A[vi] * B[vi]", None),
    ("int64", "A[vi] * T.int64(4611686018427387904) + B[vi]", None),
    ("bool", "not A[vi] or B[vi]", None),
]


@pytest.mark.parametrize(("dtype", "value", "out"), VALUES, ids=lambda v: v if isinstance(v, str) else "")
def test_values_are_the_reference_executors(dtype: str, value: str, out: str | None):
    f = elementwise(dtype, value, out)
    inputs = tir.testing.random_inputs(f, seed=5)
    if "//" in value or "truncdiv" in value or dtype == "float32":
        inputs[1][inputs[1] == 0] = 1
    want = [x.copy() for x in inputs]
    tir.interp.run(f, *want)
    mod = tir.build(f, target="cuda-sim")
    mod(*inputs)
    np.testing.assert_array_equal(inputs[2].view(np.uint8), want[2].view(np.uint8))


# ---------------------------------------------------------------- tensor cores


def product(rows: int, depth: int, dtype: str, out: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -3
    return r.integers(low, 4, (rows, depth)).astype("float64"), r.integers(low, 4, (depth, 8)).astype("float64")


MMA = [
    ("m16n8k16", "fp16", "fp32"), ("m16n8k8", "fp16", "fp32"), ("m16n8k16", "bf16", "fp32"), ("m16n8k16", "fp16", "fp16"),
    ("m16n8k8", "tf32", "fp32"), ("m16n8k4", "tf32", "fp32"), ("m16n8k16", "int8", "int32"), ("m16n8k32", "int8", "int32"),
    ("m16n8k32", "uint8", "int32"), ("m16n8k32", "e4m3", "fp32"), ("m16n8k32", "e5m2", "fp32"), ("m8n8k4", "fp64", "fp64"),
    ("m8n8k16", "int8", "int32"),
]  # fmt: skip
NAMES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "e4m3": "float8_e4m3",
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


# ---------------------------------------------------------------- asynchronous copies, warps, atomics


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


# ---------------------------------------------------------------- counts

COPY = """
def f(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
    S_data = T.allocate([4096], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((4096,), "float32", data=S_data, scope="shared")
    S[{shared}] = A[{source}]
"""


@pytest.mark.parametrize(
    ("source", "sectors", "efficiency"),
    [
        ("tx", 4, 1.0),
        ("tx + 1", 5, 0.8),
        ("tx * 2", 8, 0.5),
        ("tx * 32", 32, 0.125),
        ("0 * tx", 1, 0.125),
        ("31 - tx", 4, 1.0),
        ("tx // 8 * 1024", 4, 0.125),
    ],
)
def test_sectors_of_global_memory(source: str, sectors: int, efficiency: float):
    zeros = np.zeros(4096, "float32")
    report = run(COPY.format(shared="tx", source=source), zeros, zeros)
    read = next(t for t in report.accesses if t.site.buffer == "A")
    assert (read.requests, read.sectors, read.efficiency) == (1, sectors, pytest.approx(efficiency))


@pytest.mark.parametrize(
    ("shared", "passes"),
    [
        ("tx", 1),
        ("tx * 2", 2),
        ("tx * 32", 32),
        ("tx * 33", 1),
        ("tx * 16", 16),
        ("tx // 2 * 32 + tx % 2", 16),
        ("(tx * 32) + T.bitwise_xor(tx, 5)", 1),
    ],
)
def test_bank_conflicts(shared: str, passes: int):
    zeros = np.zeros(4096, "float32")
    report = run(COPY.format(shared=shared, source="tx"), zeros, zeros)
    write = next(t for t in report.accesses if t.site.buffer == "S")
    assert (write.passes, write.conflicts) == (passes, passes - 1)
    assert report.conflicts == passes - 1


def test_vectors_are_served_a_quarter_of_a_warp_at_a_time():
    text = """
def f(A: T.Buffer((4096,), "float32")):
    S_data = T.allocate([4096], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((4096,), "float32", data=S_data, scope="shared")
    S[PLACE:PLACE + 4] = A[tx * 4:tx * 4 + 4]
"""
    zeros = np.zeros(4096, "float32")
    for place, passes in (("tx * 4", 4), ("tx * 32", 32), ("tx * 36", 4)):
        report = run(text.replace("PLACE", place), zeros)
        read, write = sorted(report.accesses, key=lambda t: t.scope)
        assert (read.sectors, read.efficiency, read.width) == (16, 1.0, 16)
        assert (write.passes, write.ideal) == (passes, 4)


def test_requests_of_partial_warps_and_idle_lanes():
    zeros = np.zeros(64, "float32")
    report = run(
        """
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 40)
    if tx % 8 == 0:
        B[tx] = A[tx]
""",
        zeros,
        zeros.copy(),
    )
    for t in report.accesses:
        assert (t.requests, t.sectors, t.useful) == (2, 5, 20)


@pytest.mark.parametrize("order", ORDERS)
def test_counts_do_not_depend_on_the_order(order: str):
    a, b, c = (np.ones(4096, "float32") for _ in range(3))
    report = run(TILED, a, b, c, order=order)
    found = {(t.site.line, t.site.buffer): (t.requests, t.sectors, t.passes) for t in report.accesses}
    base = run(TILED, a, b, c)
    assert found == {(t.site.line, t.site.buffer): (t.requests, t.sectors, t.passes) for t in base.accesses}
    assert report.barriers == base.barriers == 16 * 8 and report.shared_bytes == 2048


TILED = """
def mm(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32"), C: T.Buffer((4096,), "float32")):
    bx = T.launch_thread("blockIdx.x", 16)
    As_data = T.allocate([256], "float32", "shared")
    Bs_data = T.allocate([256], "float32", "shared")
    acc_data = T.allocate([1], "float32", "local")
    tx = T.launch_thread("threadIdx.x", 16)
    ty = T.launch_thread("threadIdx.y", 16)
    As = T.decl_buffer((256,), "float32", data=As_data, scope="shared")
    Bs = T.decl_buffer((256,), "float32", data=Bs_data, scope="shared")
    acc = T.decl_buffer((1,), "float32", data=acc_data, scope="local")
    acc[0] = T.float32(0)
    for ko in range(4):
        As[ty * 16 + tx] = A[(bx // 4 * 16 + ty) * 64 + ko * 16 + tx]
        Bs[ty * 16 + tx] = B[(ko * 16 + ty) * 64 + bx % 4 * 16 + tx]
        T.tvm_storage_sync("shared")
        for k in range(16):
            acc[0] = acc[0] + As[ty * 16 + k] * Bs[k * 16 + tx]
        T.tvm_storage_sync("shared")
    C[(bx // 4 * 16 + ty) * 64 + bx % 4 * 16 + tx] = acc[0]
"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_tiled_product(order: str):
    r = np.random.default_rng(0)
    a, b = (r.integers(-3, 4, (64, 64)).astype("float32") for _ in range(2))
    c = np.zeros((64, 64), "float32")
    report = run(TILED, a.ravel(), b.ravel(), c.reshape(-1), order=order, seed=7)
    np.testing.assert_array_equal(c, a @ b)
    assert report.ok and report.conflicts == 0


# ---------------------------------------------------------------- looking in


@T.prim_func
def scale(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i0 in T.thread_binding(2, thread="blockIdx.x"):
        for i1 in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(64, i0 * 32 + i1)
                B[vi] = A[vi] * T.float32(2)


def test_a_module_reports_its_launches():
    mod = tir.build(scale, target="cuda-sim")
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    mod(a, b)
    np.testing.assert_array_equal(b, a * 2)
    (report,) = mod.report()
    assert report.ok and report.sectors == 16 and report.grid == (2, 1, 1) and report.block == (32, 1, 1)
    assert "read A" in str(mod.last_report) and "<table>" in mod.last_report._repr_html_()
    assert "main_kernel" in mod.source("lowered") and " 1 |" in mod.kernel_source()


def test_the_target_can_say_the_order():
    mod = tir.build(scale, target="cuda-sim -order=random -seed=3")
    mod(np.ones(64, "float32"), np.zeros(64, "float32"))
    assert mod.last_report[0].order == "random" and mod.seed == 3


def test_breakpoints_and_traces():
    mod = tir.build(scale, target="cuda-sim")
    line = next(n for n, text in enumerate(mod.kernel_source().splitlines(), 1) if "* 2.0" in text)
    stops: list[Any] = []
    mod.breakpoint(line, thread=3, block=1, action=stops.append)
    seen: list[int] = []
    mod.trace = lambda stop: seen.append(stop.line)
    a = np.arange(64, dtype="float32")
    mod(a, np.zeros(64, "float32"))
    (stop,) = stops
    assert stop.threads == [((1, 0, 0), (3, 0, 0))] and stop.line == line
    assert stop["i1"].tolist() == [3] and stop["i0"].tolist() == [1]
    name = next(n for n in stop._views if n.startswith("A"))
    assert stop.read(name, 35).tolist() == [35.0]
    assert seen == [line] and "i1=3" in str(stop)
    with pytest.raises(KeyError, match="no variable 'q'"):
        stop["q"]


def test_a_breakpoint_prints_by_default(capsys: pytest.CaptureFixture[str]):
    kernel = parse("""
def f(C: T.Buffer((4,), "int32")):
    tx = T.launch_thread("threadIdx.x", 4)
    C[tx] = tx * 2
""")
    line = next(n for n, text in enumerate(kernel.script().splitlines(), 1) if "C[tx]" in text)
    simulate(kernel, [np.zeros(4, "int32")], breakpoints=[Breakpoint(line, thread=2)])
    assert capsys.readouterr().out.splitlines()[1] == "  block (0, 0, 0) thread (2, 0, 0): tx=2"


def test_threads_print():
    report = run(
        """
def f(C: T.Buffer((4,), "int32")):
    tx = T.launch_thread("threadIdx.x", 4)
    C[tx] = tx * 2
    if tx > 1:
        T.evaluate(T.call_extern("int32", "print", "value", C[tx]))
""",
        np.zeros(4, "int32"),
    )
    assert report.prints == ["block (0, 0, 0) thread (2, 0, 0): value 4", "block (0, 0, 0) thread (3, 0, 0): value 6"]


def test_a_finding_names_the_users_own_line():
    @T.prim_func
    def shifted(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi + 1]

    with pytest.raises(SimulationError) as raised:
        tir.build(shifted, target="cuda-sim")(np.zeros(64, "float32"), np.zeros(64, "float32"))
    text = str(raised.value)
    assert "read of A[64] is out of bounds: it has 64 elements" in text and "thread (63, 0, 0)" in text
    assert "test_gpu_sim.py" in text and "B[vi] = A[vi + 1]" in text


def test_strict_off_gives_the_report_and_keeps_going():
    mod = tir.build(scale, target="cuda-sim")
    mod.strict = False
    mod(np.ones(64, "float32"), np.zeros(64, "float32"))
    assert mod.last_report.ok
    out = np.zeros(32, "float32")
    report = run(
        """
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx] = A[tx * 2]
""",
        np.ones(32, "float32"),
        out,
        strict=False,
    )
    (finding,) = report.findings
    assert finding.kind == "bounds" and finding.count == 16 and out[:16].all() and not out[16:32].any()
    with pytest.raises(SimulationError):
        report.require()


def test_runs_are_deterministic():
    for order in ORDERS:
        text = [str(run(TILED, *(np.ones(4096, "float32") for _ in range(3)), order=order, seed=3)) for _ in range(2)]
        assert text[0] == text[1]


# ---------------------------------------------------------------- what cannot run


def test_what_a_launch_must_fit():
    kernel = parse("""
def f(C: T.Buffer((4,), "int32")):
    tx = T.launch_thread("threadIdx.x", 4)
    C[tx] = tx
""")
    out = np.zeros(4, "int32")
    with pytest.raises(tir.RunError, match="threadIdx.x is launched with extent 8; the kernel is made for 4"):
        simulate(kernel, [out], 1, 8)
    with pytest.raises(tir.RunError, match="no thread order 'sideways'"):
        simulate(kernel, [out], order="sideways")
    with pytest.raises(tir.RunError, match="positive extents"):
        simulate(kernel, [out], 0, 4)
    with pytest.raises(tir.RunError, match="expected dtype int32"):
        simulate(kernel, [np.zeros(4, "float32")])
    with pytest.raises(tir.RunError, match="the simulator takes kernels after lowering"):
        simulate(scale, [np.zeros(64, "float32"), np.zeros(64, "float32")])


@pytest.mark.parametrize(("call", "message"), [
    ('T.ptx_cp_async(T.address_of(S[tx]), 0, T.address_of(C[tx]), 0, 12, dtype="float32")', "4, 8 or 16 bytes, not 12"),
    ('T.ptx_mma("m8n8k4", "row", "row", "fp16", "fp16", "fp32", S_data, 0, S_data, 0, S_data, 0, False, dtype="float32")',
     "rows and B in columns"),
    ("T.ptx_init_barrier_thread_count(0, 32)", "cannot evaluate `ptx_init_barrier_thread_count`"),
    ('T.evaluate(T.call_extern("int32", "my_function", 3))', "'my_function', which the simulator does not implement"),
])  # fmt: skip
def test_what_has_no_meaning_is_told(call: str, message: str):
    with pytest.raises(tir.RunError, match=message):
        run(
            f"""
def f(C: T.Buffer((32,), "float32")):
    S_data = T.allocate([64], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((64,), "float32", data=S_data, scope="shared")
    {call}
""",
            np.zeros(32, "float32"),
        )


def test_dynamic_shared_memory_must_be_launched_with_enough():
    text = """
def f(C: T.Buffer((32,), "float32")):
    buf = T.allocate([256], "uint8", "shared.dyn")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((32,), "float32", data=buf, scope="shared.dyn")
    H = T.decl_buffer((32,), "float16", data=buf, scope="shared.dyn", elem_offset=64)
    S[tx] = C[tx]
    H[tx] = T.float16(1)
    C[tx] = S[tx] + T.Cast("float32", H[tx])
"""
    out = np.ones(32, "float32")
    assert simulate(parse(text), [out], 1, 32, 256).shared_bytes == 256 and (out == 2).all()
    with pytest.raises(tir.RunError, match="launched with 128 bytes of dynamic shared memory, uses 256"):
        simulate(parse(text), [out], 1, 32, 128)


def test_a_loop_that_does_not_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tir.interp.gpu.compiler._MAX_ROUNDS", 1000)
    with pytest.raises(tir.RunError, match="waits for another block"):
        run(
            """
def f(flag: T.Buffer((1,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    while flag[0] == 0:
        T.evaluate(0)
""",
            np.zeros(1, "int32"),
        )


def test_memory_between_launches_starts_undefined():
    a = np.zeros(64, "float32")
    written = np.zeros(64, bool)
    first = (
        "def f(A: T.Buffer((64,), 'float32')):\n    tx = T.launch_thread('threadIdx.x', 32)\n    A[tx] = T.float32(1)"
    )
    second = first.replace("A[tx] = T.float32(1)", "A[tx] = A[tx + 1]").replace("32)\n", "31)\n", 1)
    simulate(parse(first), [a], fresh={a.ctypes.data: written})
    assert written[:32].all() and not written[32:].any()
    with pytest.raises(SimulationError, match="race"):
        simulate(parse(second), [a], fresh={a.ctypes.data: written})
    third = first.replace("A[tx] = T.float32(1)", "A[tx] = A[tx + 32]")
    with pytest.raises(SimulationError, match="global memory starts undefined"):
        simulate(parse(third), [a], fresh={a.ctypes.data: written})


@pytest.mark.parametrize("shared", [True, False])
def test_races_are_found_exactly_where_two_accesses_are_unordered(shared: bool):
    """Random accesses of two blocks of three threads, against every pair of them."""
    from types import SimpleNamespace

    from tir.interp.gpu.lanes import EPOCHS
    from tir.interp.gpu.records import Races
    from tir.interp.gpu.report import Site

    threads, slots, outcomes = 3, 4, set()
    r = np.random.default_rng(0)
    for _ in range(600):
        races = Races(2, shared)
        races.threads, races.slots = threads, slots
        blocks = 1 if shared else 2
        epoch = [0] * blocks
        seen: list[tuple[int, int, int, int, bool]] = []
        found = wanted = False
        for step in range(r.integers(2, 9)):
            block = int(r.integers(blocks))
            if r.random() < 0.3:
                epoch[block] += 1
                continue
            count = int(r.integers(1, threads + 1))
            thread = r.permutation(threads)[:count]
            at, write = r.integers(0, 2, count), bool(r.random() < 0.4)
            low = (block * EPOCHS + epoch[block]) * slots
            full = np.full(count, 1)
            who: Any = SimpleNamespace(stamp=low + thread, low=low * full, block_low=block * EPOCHS * slots * full)
            site = Site(step, 1, "")
            found = bool(races.write(at, who, site) if write else races.read(at, who, site)) or found
            now = [(block, epoch[block], int(t), int(a), write) for t, a in zip(thread, at)]
            seen += now
        for i, (b1, e1, t1, a1, w1) in enumerate(seen):
            for b2, e2, t2, a2, w2 in seen[:i]:
                unordered = b1 != b2 or (e1 == e2 and t1 != t2)
                wanted = wanted or (a1 == a2 and (w1 or w2) and unordered)
        assert found == wanted, seen
        outcomes.add(found)
    assert outcomes == {True, False}


@T.prim_func
def gathered(A: T.Buffer((66,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[T.Ramp(tx * 2, 1, 2)] = A[T.Ramp(tx * 2, 1, 2) // T.Broadcast(64, 2) + T.Ramp(tx * 2 + 1, 1, 2)]


def test_lanes_that_are_gathered_are_no_vector():
    """Their places are computed one by one, so they are moved one by one: no alignment is asked of them."""
    a, b = np.arange(66, dtype="float32"), np.zeros(64, "float32")
    report = simulate(gathered, [a, b])
    assert report.ok, str(report)
    assert (b == a[1:65]).all()
    read = next(t for t in report.accesses if t.site.what == "read")
    assert (read.width, read.requests) == (4, 2)
