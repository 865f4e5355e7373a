"""Transaction barriers and bulk copies on simulated threads: results in every order, and planted faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tir
from tir.interp.gpu import ORDERS, SimReport, simulate

RING = """
@T.prim_func
def ring(A: T.Buffer((512,), "float32"), B: T.Buffer((128,), "float32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 96)
    memory = T.allocate([128], "float32", "shared")
    L_data = T.allocate([1], "float32", "local")
    S = T.decl_buffer((128,), "float32", data=memory, scope="shared")
    L = T.decl_buffer((1,), "float32", data=L_data, scope="local")
    T.create_barriers(4)
    if tx == 0:
        for s in range(2):
            T.ptx_init_barrier_thread_count(s, 1)
            T.ptx_init_barrier_thread_count(2 + s, 64)
        T.ptx_fence_barrier_init()
    T.tvm_storage_sync("shared")
    if tx < 32:
        if tx == 0:
            for k in range(4):
                T.ptx_wait_barrier(2 + k % 2, k // 2 % 2 + 1)
                T.ptx_arrive_barrier_expect_tx(k % 2, 256)
                T.ptx_cp_async_bulk(memory, k % 2 * 64, A.data, bx * 256 + k * 64, 256, k % 2, dtype="float32")
    else:
        L[0] = T.float32(0)
        for k in range(4):
            T.ptx_wait_barrier(k % 2, k // 2 % 2)
            L[0] = L[0] + S[k % 2 * 64 + 95 - tx]
            T.ptx_arrive_barrier(2 + k % 2)
        B[bx * 64 + tx - 32] = L[0]
"""


def run(text: str, *args: Any, order: str = "forward", seed: int = 0) -> SimReport:
    return simulate(tir.script.parse(text), args, order=order, seed=seed, strict=False)


def ring_of(text: str, order: str, seed: int = 0) -> tuple[SimReport, bool]:
    """The report, and whether the result is right."""
    a, b = np.arange(512, dtype="float32") % 11, np.zeros(128, "float32")
    report = run(text, a, b, order=order, seed=seed)
    return report, np.array_equal(b.reshape(2, 64), a.reshape(2, 4, 64).sum(1)[:, ::-1])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_ring_of_stages_is_right_in_every_order(order: str, seed: int):
    report, right = ring_of(RING, order, seed)
    assert report.ok and right, report
    copy = next(t for t in report.accesses if t.site.what == "read" and t.site.buffer == "A")
    assert (copy.requests, copy.sectors, copy.width, copy.efficiency) == (8, 64, 256, 1.0)


# ``right`` is replaced by ``wrong``: in every order a finding of ``kind`` whose lines hold ``first`` and ``second``
FAULTS = {
    "the consumer does not wait": (
        "            T.ptx_wait_barrier(k % 2, k // 2 % 2)\n", "", "async|uninitialised", "L[0] + S[", ""),
    "the producer does not wait": (
        "T.ptx_wait_barrier(2 + k % 2, k // 2 % 2 + 1)", "T.evaluate(0)", "race|async", "T.ptx_cp_async_bulk", ""),
    "the consumer waits for the wrong phase": (
        "T.ptx_wait_barrier(k % 2, k // 2 % 2)", "T.ptx_wait_barrier(k % 2, k // 2 % 2 + 1)", "async|uninitialised",
        "L[0] + S[", ""),
    "the producer waits for the wrong phase": (
        "k // 2 % 2 + 1)", "k // 2 % 2)", "barrier", "T.ptx_wait_barrier(2 + k % 2", ""),
    "the stage is released before it is read": (
        "            L[0] = L[0] + S[k % 2 * 64 + 95 - tx]\n            T.ptx_arrive_barrier(2 + k % 2)\n",
        "            T.ptx_arrive_barrier(2 + k % 2)\n            L[0] = L[0] + S[k % 2 * 64 + 95 - tx]\n",
        "race|async", "T.ptx_cp_async_bulk", "L[0] + S["),
    "half of the consumers release the stage": (
        "            T.ptx_arrive_barrier(2 + k % 2)\n", "            if tx < 64:\n                T.ptx_arrive_barrier(2 + k % 2)\n",
        "barrier", "T.ptx_wait_barrier(2 + k % 2", ""),
    "the release waits for half of the consumers": (
        "(2 + s, 64)", "(2 + s, 32)", "race|barrier|async", "", ""),
    "too many bytes are announced": ("(k % 2, 256)\n", "(k % 2, 512)\n", "barrier", "T.ptx_wait_barrier(k % 2", ""),
    "too few bytes are announced": ("(k % 2, 256)\n", "(k % 2, 128)\n", "barrier", "T.ptx_wait_barrier(k % 2", ""),
    "a barrier is used before it is initialised": (
        '    T.tvm_storage_sync("shared")\n', "", "barrier", "T.ptx_", ""),
    "the copy engine does not know the barrier": (
        "        T.ptx_fence_barrier_init()\n", "", "async", "T.ptx_cp_async_bulk", "T.ptx_init_barrier_thread_count"),
    "the wrong stage is filled": ("memory, k % 2 * 64,", "memory, (k + 1) % 2 * 64,", "race|async|uninitialised", "", ""),
    "a barrier does not exist": ("T.ptx_arrive_barrier(2 + k % 2)", "T.ptx_arrive_barrier(4 + k % 2)", "bounds",
                                 "T.ptx_arrive_barrier(4", ""),
    "a copy is not aligned": ("memory, k % 2 * 64,", "memory, k % 2 * 60 + 2,", "alignment", "T.ptx_cp_async_bulk", ""),
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_ring_is_found_in_every_order(name: str, order: str):
    right, wrong, kind, first, second = FAULTS[name]
    assert right in RING
    report, _ = ring_of(RING.replace(right, wrong), order)
    texts = [[a.site.text for a in f.accesses] for f in report.findings if f.kind in kind.split("|")]
    assert any(any(first in t for t in lines) and (not second or any(second in t for t in lines)) for lines in texts), (
        f"{name}, {order}:\n{report}"
    )


def test_what_a_phase_lacks_is_said():
    report, _ = ring_of(RING.replace("(k % 2, 256)\n", "(k % 2, 384)\n"), "forward")
    assert "in phase 0 128 bytes were announced that no copy brings" in str(report)
    report, _ = ring_of(RING.replace("(k % 2, 256)\n", "(k % 2, 240)\n"), "forward")
    assert "copies bring 16 bytes more than were announced" in str(report)
    report, _ = ring_of(RING.replace("(2 + s, 64)", "(2 + s, 80)"), "forward")
    assert "16 of 80 arrivals are missing" in str(report)


EXCHANGE = """
@T.prim_func
def exchange(B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    memory = T.allocate([64], "int32", "shared")
    S = T.decl_buffer((64,), "int32", data=memory, scope="shared")
    T.create_barriers(2)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_init_barrier_thread_count(1, 63)
    T.tvm_storage_sync("shared")
    if tx == 5:
        S[5] = 50
        T.ptx_arrive_barrier(0)
        T.ptx_wait_barrier(1)
        B[5] = S[4] + S[6] + S[63]
    else:
        S[tx] = tx
        T.ptx_arrive_barrier(1)
        T.ptx_wait_barrier(0)
        B[tx] = S[5] + tx
"""


@pytest.mark.parametrize("order", ORDERS)
def test_branches_of_one_warp_wait_for_each_other(order: str):
    b = np.zeros(64, "int32")
    report = run(EXCHANGE, b, order=order)
    expected = np.arange(64) + 50
    expected[5] = 4 + 6 + 63
    assert report.ok and np.array_equal(b, expected), report


def test_threads_that_arrive_at_one_barrier_are_not_ordered_by_it():
    text = EXCHANGE.replace("B[tx] = S[5] + tx", "B[tx] = S[5] + S[63 - tx]")
    for order in ORDERS:
        (race, *_) = run(text, np.zeros(64, "int32"), order=order).of_kind("race")
        assert {a.note for a in race.accesses} == {"reads", "writes"}


COPIES = """
@T.prim_func
def copies(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    memory = T.allocate([256], "float32", "shared")
    S = T.decl_buffer((256,), "float32", data=memory, scope="shared")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 64)
    T.tvm_storage_sync("shared")
    T.ptx_cp_async(memory, tx * 4, A.data, tx * 4, 16, dtype="float32")
    T.ptx_cp_async_barrier(0)
    T.ptx_arrive_barrier(0)
    T.ptx_wait_barrier(0, 0)
    for i in range(4):
        B[i * 64 + tx] = S[255 - (i * 64 + tx)]
"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_waits_for_the_asynchronous_copies_of_threads(order: str):
    a, b = np.arange(256, dtype="float32"), np.zeros(256, "float32")
    assert run(COPIES, a, b, order=order).ok and np.array_equal(b, a[::-1])
    lines = {
        "    T.ptx_cp_async_barrier(0)\n": "async",
        "    T.ptx_wait_barrier(0, 0)\n": "async",
        "    T.ptx_arrive_barrier(0)\n": "barrier",
    }
    for line, kind in lines.items():
        assert run(COPIES.replace(line, ""), a, b, order=order).of_kind(kind), line


MIXED = """
@T.prim_func
def mixed(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    memory = T.allocate([64], "float32", "shared")
    S = T.decl_buffer((64,), "float32", data=memory, scope="shared")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 32)
    T.tvm_storage_sync("shared")
    for k in range(3):
        S[tx] = A[tx] + T.Cast("float32", k)
        T.tvm_storage_sync("shared")
        B[tx] = S[63 - tx]
        T.tvm_storage_sync("shared")
    if tx < 32:
        S[tx] = A[tx]
        T.ptx_arrive_barrier(0)
    if tx >= 32:
        T.ptx_wait_barrier(0)
        B[tx] = S[tx - 32]
"""


@pytest.mark.parametrize("order", ORDERS)
def test_barriers_of_the_block_order_beside_transaction_barriers(order: str):
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    report = run(MIXED, a, b, order=order)
    assert report.ok and np.array_equal(b, [*(a[63 - t] + 2 for t in range(32)), *a[:32]]), report
    sync = '        B[tx] = S[63 - tx]\n        T.tvm_storage_sync("shared")\n'
    assert sync in MIXED
    (finding,) = run(MIXED.replace(sync, "        B[tx] = S[63 - tx]\n"), a, b, order=order).of_kind("race")[:1]
    assert finding.accesses
    assert run(MIXED.replace("        T.ptx_wait_barrier(0)\n", ""), a, b, order=order).of_kind("race")


def test_a_kernel_makes_its_barriers_once():
    with pytest.raises(tir.RunError, match="one create_barriers"):
        run(
            MIXED.replace("T.create_barriers(1)", "T.create_barriers(1)\n    T.create_barriers(1)"),
            *[np.zeros(64, "float32")] * 2,
        )
    with pytest.raises(tir.RunError, match="create_barriers makes them"):
        run(MIXED.replace("    T.create_barriers(1)\n", ""), *[np.zeros(64, "float32")] * 2)
