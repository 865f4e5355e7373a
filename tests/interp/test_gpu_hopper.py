"""Hopper's operators on simulated threads: tensor maps, products of warpgroups, proxies and clusters, and planted faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tir
from tests.hopper_kernels import BOX, CASES, CLUSTER, GEMM, REGISTERS, STORES, TYPES, numbers, product
from tir.interp.gpu import ORDERS, SimReport, simulate


def run(text: str, *args: Any, order: str = "forward", seed: int = 0) -> SimReport:
    return simulate(tir.script.parse("@T.prim_func\n" + text.strip()), args, order=order, seed=seed, strict=False)


# ---------------------------------------------------------------- tensor maps


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(("y", "x"), [(0, 0), (3, 8), (-5, -8), (10, 40), (30, 0)])
def test_a_box_is_copied_with_its_swizzle_and_zeros_outside(swizzle: int, y: int, x: int):
    columns = swizzle // 2 or 40
    size = 16 * columns * 2
    text = BOX.replace("SWIZZLE", str(swizzle)).replace("ROWS", "16").replace("COLUMNS", str(columns))
    text = text.replace("BYTES", str(size)).replace("Y, X", f"{y}, {x}")
    a = (np.arange(960) % 2048 + 1).astype("float16").reshape(20, 48)
    b, c = np.zeros(size, "uint8"), np.zeros((20, 48), "float16")
    assert run(text, a, b, c).ok
    big = np.zeros((100, 200), "float16")
    big[40:60, 80:128] = a
    box = big[40 + y : 56 + y, 80 + x : 80 + x + columns]
    chunk = np.ascontiguousarray(box).view("uint8").reshape(-1, 16)
    for k in range(len(chunk)):  # 16-byte pieces: their number in a line of 128 is combined with that of the line
        row, piece = divmod(k * 16, 128)
        piece = piece // 16 ^ {0: 0, 32: row & 1, 64: row & 3, 128: row & 7}[swizzle]
        assert (b[row * 128 + piece * 16 :][:16] == chunk[k]).all(), (k, row, piece)
    expected = np.zeros((100, 200), "float16")
    expected[40 + y : 56 + y, 80 + x : 80 + x + columns] = box
    np.testing.assert_array_equal(c, expected[40:60, 80:128])


def test_a_map_that_the_copy_engine_does_not_take_is_refused():
    text = BOX.replace("SWIZZLE", "32").replace("ROWS", "16").replace("BYTES", "512").replace("Y, X", "0, 0")
    args = np.zeros((20, 48), "float16"), np.zeros(512, "uint8"), np.zeros((20, 48), "float16")
    for old, new, rule in (
        ("16, COLUMNS", "16, 32", "more than the swizzle"),
        ("16, COLUMNS", "300, 16", "1 to 256 elements"),
        ("16, COLUMNS", "16, 12", "not a multiple of 16"),
        ("20, 48, 48, 1, 16, COLUMNS", "20, 48, 12, 1, 16, 16", "multiples of 16 bytes"),
        ("20, 48, 48, 1, 16, COLUMNS", "20, 48, 48, 2, 16, 16", "along the last axis is 2"),
        ("20, 48, 48, 1, 16, COLUMNS", "960, 1, 16", "2 coordinates"),
    ):
        with pytest.raises(tir.RunError, match=rule):
            run(text.replace(old, new).replace("COLUMNS", "16"), *args)


# ---------------------------------------------------------------- products of warpgroups


@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_a_product_is_that_of_numpy(case: tuple[Any, ...], add: bool):
    a_type, b_type, d_type, n, swizzle, ta, tb = case
    depth = 64 // tir.DType(TYPES[a_type]).bytes
    r = np.random.default_rng(n)
    (raw_a, a), (raw_b, b) = numbers(r, a_type, (64, depth)), numbers(r, b_type, (n, depth))
    c = np.zeros((64, n), TYPES[d_type])
    args = [np.ascontiguousarray(x.T) if t else x for x, t in ((raw_a, ta), (raw_b, tb))]
    report = run(product(a_type, b_type, d_type, n, swizzle, ta, tb, add), *args, c)
    assert report.ok, report
    expected = a @ b.T
    if add:  # register r of each thread began as r
        column = np.arange(n)[None, :]
        expected = expected + column // 8 * 4 + column % 2 + np.arange(64)[:, None] % 16 // 8 * 2
    else:
        expected = (a[:, depth // 2 :] @ b[:, depth // 2 :].T).astype("float64")
    np.testing.assert_array_equal(c.astype("float64"), expected)


@pytest.mark.parametrize("order", ORDERS)
def test_a_product_takes_registers_and_what_threads_stored(order: str):
    r = np.random.default_rng(1)
    a, b = (r.integers(-4, 5, s).astype("float16") for s in ((64, 16), (8, 16)))
    c = np.zeros((64, 8), "float32")
    report = run(REGISTERS, a, b, c, order=order)
    assert report.ok, report
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32").T)


FENCE = "    T.ptx_fence_proxy_async()\n"
SYNC = '    T.tvm_storage_sync("shared")\n'
WAIT = "    T.ptx_wgmma_wait_group(0)\n"
OF_REGISTERS = {
    "no proxy fence": (FENCE, "", "async", "T.ptx_wgmma(", "S["),
    "a proxy fence before the stores": (FENCE, "", "async", "T.ptx_wgmma(", "S["),
    "no barrier": (SYNC, "", "race", "T.ptx_wgmma(", "S["),
    "no fence of registers": ("    T.ptx_wgmma_fence()\n", "", "async", "T.ptx_wgmma(", ""),
    "a register is changed after the fence": (
        "    T.ptx_wgmma_fence()\n", "    T.ptx_wgmma_fence()\n    L[0] = T.float16(0)\n", "async", "T.ptx_wgmma(", ""),
    "sums are read before the wait": (WAIT, "", "async", "= D[r]", "T.ptx_wgmma("),
    "a group is not committed": ("    T.ptx_wgmma_commit_group()\n", "", "async", "= D[r]", "T.ptx_wgmma("),
    "registers are changed before the wait": (WAIT, "    L[3] = T.float16(0)\n" + WAIT, "async", "L[3] =", "T.ptx_wgmma("),
    "shared memory is changed before the wait": (WAIT, "    S[tx] = T.float16(0)\n" + WAIT, "async", "S[tx] =", "T.ptx_wgmma("),
    "sums that nothing has set": ("0, 0, False)", "0, 0, True)", "uninitialised", "T.ptx_wgmma(", ""),
    "half of a warpgroup": ("    T.ptx_wgmma_commit_group()\n", "    if tx < 64:\n        T.ptx_wgmma_commit_group()\n",
                            "warp", "T.ptx_wgmma_commit_group", ""),
    "a matrix that is not aligned": ("right, 0,", "right, 4,", "alignment", "T.ptx_wgmma(", ""),
    "a matrix that is not all there": ("right, 0,", "right, 64,", "bounds", "T.ptx_wgmma(", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_REGISTERS)
def test_a_fault_of_a_product_is_found(name: str):
    right, wrong, kind, first, second = OF_REGISTERS[name]
    text = REGISTERS.replace(right, wrong)
    assert text != REGISTERS
    if name == "a proxy fence before the stores":
        text = text.replace("    for i in range(8):\n", FENCE + "    for i in range(8):\n", 1)
    found_in(
        run(text, *(np.ones(s, t) for s, t in (((64, 16), "float16"), ((8, 16), "float16"), ((64, 8), "float32")))),
        kind,
        first,
        second,
    )


def found_in(report: SimReport, kind: str, first: str, second: str = "") -> None:
    """There is a finding of the kind (or one of several) whose accesses are at lines that hold these texts."""
    texts = [[a.site.text for a in f.accesses] for f in report.findings if f.kind in kind.split("|")]
    assert any(any(first in t for t in lines) and (not second or any(second in t for t in lines)) for lines in texts), (
        report
    )


def test_a_product_that_the_hardware_does_not_have_is_refused():
    args = (np.ones((64, 16), "float16"), np.ones((8, 16), "float16"), np.ones((64, 8), "float32"))
    for old, new, rule in (
        ('"m64n8k16"', '"m64n12k16"', "no shape 'm64n12k16'"),
        ('"m64n8k16"', '"m64n8k8"', "k 16"),
        ('"m64n8k16", "fp16", "fp16", "fp32"', '"m64n40k32", "int8", "int8", "int32"', "a multiple of 16, or 8 or 24"),
        ('"fp16", "fp16", "fp32"', '"fp16", "bf16", "fp32"', "no product of fp16 and bf16"),
        ('"fp16", "fp16", "fp32"', '"bf16", "bf16", "fp16"', "in fp16"),
        ("right, 0, 128, 128, 0, 0", "right, 0, 128, 128, 16, 0", "swizzle of 0, 32, 64 or 128"),
    ):
        with pytest.raises(tir.RunError, match=rule):
            run(REGISTERS.replace(old, new), *args)


# ---------------------------------------------------------------- a product in stages, by specialized warpgroups


def gemm_of(text: str, order: str = "forward", seed: int = 0) -> tuple[SimReport, bool]:
    r = np.random.default_rng(3)
    a, b = (r.integers(-3, 4, (64, 256)).astype("float16") for _ in range(2))
    c = np.zeros((64, 64), "float32")
    report = run(text, a, b, c, order=order, seed=seed)
    return report, np.array_equal(c, a.astype("float32") @ b.astype("float32").T)


@pytest.mark.parametrize("order", ORDERS)
def test_a_ring_of_stages_between_warpgroups_is_right_in_every_order(order: str):
    report, right = gemm_of(GEMM, order)
    assert report.ok and right, report


def test_two_warps_of_a_warpgroup_copy_each_in_its_own_time():
    begin, rest = GEMM.split("        if tx == 0:\n            for i", 1)
    loop, end = rest.split("    else:\n", 1)
    lines = (" for i" + loop).lstrip(" ").splitlines()
    text = begin.replace("(s, 1)", "(s, 2)")
    for thread, other in ((0, "(right"), (32, "(left")):
        text += f"        if tx == {thread}:\n            "
        text += "\n".join(line for line in lines if other not in line).replace("16384", "8192") + "\n"
    text += "    else:\n" + end
    for order in ORDERS:
        report, right = gemm_of(text, order)
        assert report.ok and right, report


OF_GEMM = {
    "the consumers do not wait": ("            T.ptx_wait_barrier(i % 3, i // 3 % 2)\n", "", "async|uninitialised", "T.ptx_wgmma(", ""),
    "the consumers wait for the wrong phase": ("(i % 3, i // 3 % 2)", "(i % 3, 1 - i // 3 % 2)", "async|uninitialised", "T.ptx_wgmma(", ""),
    "the producer does not wait": ("T.ptx_wait_barrier(3 + i % 3, 1 - i // 3 % 2)", "T.evaluate(0)", "async", "T.ptx_", "T.ptx_cp_async_bulk_tensor"),
    "the producer waits for the wrong phase": ("1 - i // 3 % 2)", "i // 3 % 2)", "barrier", "T.ptx_wait_barrier(3 + ", ""),
    "the stage is released while products read it": (
        "            if i > 0 and tx % 32 == 0:\n                T.ptx_arrive_barrier(3 + (i - 1) % 3)\n",
        "            if tx % 32 == 0:\n                T.ptx_arrive_barrier(3 + i % 3)\n", "async|race", "T.ptx_wgmma(",
        "T.ptx_cp_async_bulk_tensor"),
    "products are not waited for before the release": ("T.ptx_wgmma_wait_group(1)", "T.ptx_wgmma_wait_group(2)", "async|race", "T.ptx_wgmma(",
                                                       "T.ptx_cp_async_bulk_tensor"),
    "the last products are not waited for": ("        T.ptx_wgmma_wait_group(0)\n", "", "async", "= D[r]", "T.ptx_wgmma("),
    "one warpgroup releases alone": ("(3 + s, 8)", "(3 + s, 4)", "async|barrier", "T.ptx_", ""),
    "bytes of one copy alone are announced": ("16384", "8192", "async", "T.ptx_wgmma(", "T.ptx_cp_async_bulk_tensor(right"),
    "warps of a warpgroup do different things": (
        "        T.ptx_setmaxnreg(40, 0)\n",
        "        if tx < 32:\n            T.ptx_setmaxnreg(40, 0)\n        else:\n            T.ptx_wgmma_fence()\n", "warp", "T.ptx_", "T.ptx_"),
    "more registers than there are": ("(40, 0)", "(64, 0)", "barrier", "T.ptx_setmaxnreg", ""),
}  # fmt: skip


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize("name", OF_GEMM)
def test_a_fault_of_the_ring_of_products_is_found(name: str, order: str):
    right, wrong, kind, first, second = OF_GEMM[name]
    assert right in GEMM
    found_in(gemm_of(GEMM.replace(right, wrong), order)[0], kind, first, second)


# ---------------------------------------------------------------- bulk stores


@pytest.mark.parametrize("order", ORDERS)
def test_bulk_stores_write_what_threads_stored(order: str):
    a, b = np.arange(128, dtype="float32"), np.zeros(128, "float32")
    report = run(STORES, a, b, order=order)
    assert report.ok and np.array_equal(b, a + 1), report
    store = next(t for t in report.accesses if t.site.buffer == "B")
    assert (store.requests, store.sectors, store.efficiency) == (2, 16, 1.0)


def test_a_fault_of_bulk_stores_is_found():
    def of(right: str, wrong: str) -> SimReport:
        assert right in STORES
        return run(STORES.replace(right, wrong), np.ones(128, "float32"), np.ones(128, "float32"))

    begin, wait = "T.ptx_cp_async_bulk_tensor_store", "            T.ptx_cp_async_bulk_wait_group_read(0)\n"
    found_in(of("        T.ptx_fence_proxy_async()\n", ""), "async", begin, "S[tx] =")
    found_in(of(wait, ""), "async", "S[tx] =", begin)
    found_in(of("wait_group_read(0)", "wait_group_read(1)"), "async", "S[tx] =", begin)
    found_in(of(wait, ""), "async", begin)
    found_in(of(wait, wait + "            A[k * 64] = B[k * 64]\n"), "async", "= B[k * 64]", begin)
    assert of("wait_group_read(0)\n", "wait_group(0)\n            A[k * 64] = B[k * 64]\n").ok
    last = wait + '        T.tvm_storage_sync("shared")\n'
    found_in(of(last, wait), "race", "S[tx] =", begin)


# ---------------------------------------------------------------- clusters


def cluster_of(text: str, order: str) -> tuple[SimReport, bool]:
    a, b = np.arange(128, dtype="float32") ** 2, np.zeros(256, "float32")
    report = run(text, a, b, order=order)
    parts = a.reshape(2, 64)
    return report, np.array_equal(b, np.tile((parts[:, :32] + parts[:, :31:-1]).reshape(-1), 4))


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_of_a_cluster_copy_to_each_other(order: str):
    report, right = cluster_of(CLUSTER, order)
    assert report.ok and right, report


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_a_fault_of_a_cluster_is_found(order: str):
    def of(right: str, wrong: str) -> SimReport:
        assert right in CLUSTER
        return cluster_of(CLUSTER.replace(right, wrong, 1), order)[0]

    begin = "T.ptx_cp_async_bulk_tensor_multicast"
    found_in(of("    T.ptx_cluster_arrive()\n    T.ptx_cluster_wait()\n", ""), "barrier", "T.ptx_")
    found_in(of("        T.ptx_arrive_barrier_cluster(1, 1)\n", ""), "barrier", "T.ptx_wait_barrier(1, k)")
    found_in(of("        T.ptx_wait_barrier(1, k)\n", ""), "race|async", begin)
    found_in(of("        T.ptx_wait_barrier(0, k)\n", ""), "async|uninitialised", "S[tx]")
    found_in(of("0, 3, k * 64", "0, 2, k * 64"), "barrier|async", "T.ptx_")
    found_in(of("0, 3, k * 64", "0, 5, k * 64"), "bounds", begin)
    found_in(of("(1, 1)", "(1, 2)"), "bounds", "T.ptx_arrive_barrier_cluster(1, 2)")
    found_in(
        of("    T.ptx_cluster_arrive()\n    T.ptx_cluster_wait()\n    for", "    T.ptx_cluster_wait()\n    for"),
        "barrier",
        "T.ptx_cluster_wait",
    )
    with pytest.raises(tir.RunError, match="do not divide"):
        cluster_of(CLUSTER.replace("[2, 1, 1]", "[3, 1, 1]"), order)
