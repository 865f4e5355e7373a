"""The product of docs/examples/gpu/hopper_gemm.py with faults left in on purpose, and what finds them; the same by clusters."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest

import tir
from codegen.ptx.syntax import PTXFault
from tests.gpu_examples import load
from tir.interp.gpu import SimulationError
from tir.script import parse

# what runs a kernel without a GPU: the target, its orders of threads, and what it raises
JUDGES = {
    "compiled": ("cuda-ptx -arch=sm_90a", ("together", "forward", "reverse"), PTXFault),
    "simulated": ("cuda-sim", ("forward", "reverse"), SimulationError),
}
NOTHING = "T.evaluate(0)"
FULL, EMPTY = "T.ptx_wait_barrier(i % 4, i // 4 % 2)", "T.ptx_wait_barrier(4 + i % 4, 1 - i // 4 % 2)"
ARRIVE = "T.ptx_arrive_barrier(4 + (i - 1) % 4)"
SYNC = 'T.tvm_storage_sync("shared", dtype="void")'
FAULTS = {
    "the wait for a tile is left out": {FULL: NOTHING},
    "a tile is waited for in the phase before": {FULL: FULL.replace("i // 4 % 2", "1 - i // 4 % 2")},
    "a stage is filled again without a wait": {EMPTY: NOTHING},
    "nobody says that a stage is empty": {ARRIVE: NOTHING},
    "a stage is called empty one product early": {ARRIVE: "T.ptx_arrive_barrier(4 + i % 4)", "i > 0 and tx": "tx"},
    "fewer bytes are expected than come": {"_tx(i % 4, 49152)": "_tx(i % 4, 32768)"},
    "the sums are read before they are there": {"T.ptx_wgmma_wait_group(0)": NOTHING},
    "the products are not fenced": {"T.ptx_wgmma_fence()": NOTHING},
    "the barriers are not fenced": {"T.ptx_fence_barrier_init()": NOTHING},
    "threads begin before the barriers are there": {SYNC: NOTHING},
}


def changed(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def text() -> str:
    return load("hopper_gemm").scheduled(64, 64, 5 * 64)[0].script()


def wrong(judge: str, program: str, rows: int = 64) -> bool:
    """Whether a product computes something else in one of the orders, or a fault is found."""
    target, orders, fault = JUDGES[judge]
    module = tir.build(parse(program), target=target)
    a, b = (np.random.default_rng(n).integers(-4, 5, (n, 320)).astype("float16") for n in (rows, 64))
    for order in orders:
        module.order = order
        c = np.zeros((rows, 64), "float32")
        try:
            module(a, b, c)
        except fault:
            return True
        if (c != a.astype("float32") @ b.astype("float32").T).any():
            return True
    return False


@pytest.mark.parametrize("judge", JUDGES)
def test_the_product_is_right_in_each_order(text, judge):
    assert not wrong(judge, text)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(text, name, judge):
    assert wrong(judge, changed(text, FAULTS[name]))


# ---------------------------------------------------------------- a cluster of two blocks, which share the columns

BOTH = "; ".join(f"T.ptx_arrive_barrier_cluster(4 + (i - 1) % 4, {rank})" for rank in range(2))
MEET = "T.ptx_cluster_arrive(); T.ptx_cluster_wait()"


@pytest.fixture(scope="module")
def in_clusters() -> str:
    """Each block copies half of the columns to both, and both say when a stage of either is empty."""
    text = load("hopper_gemm").scheduled(256, 64, 5 * 64)[0].script()
    copy = re.search(r"T\.ptx_cp_async_bulk_tensor\(columns.*", text)
    assert copy is not None
    half = copy[0].replace("tensor(", "tensor_multicast(").replace("256, 64)", "128, 64)")
    changes = {
        '"float32")):\n': '"float32")):\n    T.func_attr({"tir.cluster": [2, 1, 1]})\n',
        "count(4 + s % 4, 8)": "count(4 + s % 4, 16)",
        SYNC: MEET,
        copy[0]: half.replace("256 * 64,", "256 * 64 + bx * 8192,").replace("i % 4, 0, i", "i % 4, 3, bx * 128, i"),
        ARRIVE: BOTH,
    }
    return changed(text, changes).rstrip("\n") + f"\n    {MEET}\n"


@pytest.mark.parametrize("judge", JUDGES)
def test_blocks_of_a_cluster_copy_for_each_other(in_clusters, judge):
    assert not wrong(judge, in_clusters, 256)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(
    "changes",
    [
        {BOTH: "T.ptx_arrive_barrier_cluster(4 + (i - 1) % 4, bx)", "count(4 + s % 4, 16)": "count(4 + s % 4, 8)"},
        {f"fence_barrier_init()\n    {MEET}": f"fence_barrier_init()\n    {SYNC}"},
        {"i % 4, 3, bx": "i % 4, 1, bx"},
    ],
    ids=[
        "a stage of the other block is filled while it reads",
        "a block begins before the other",
        "one half is not shared",
    ],
)
def test_a_fault_of_a_cluster_is_found(in_clusters, changes, judge):
    assert wrong(judge, changed(in_clusters, changes), 256)
