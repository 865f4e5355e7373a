"""The product of docs/examples/gpu/hopper_gemm.py with faults left in on purpose, and what finds them."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from codegen.ptx.syntax import PTXFault
from tests.gpu_examples import load
from tir.script import parse

ORDERS = ("together", "forward", "reverse")
NOTHING = "T.evaluate(0)"
FULL, EMPTY = "T.ptx_wait_barrier(i % 4, i // 4 % 2)", "T.ptx_wait_barrier(4 + i % 4, 1 - i // 4 % 2)"
ARRIVE = "T.ptx_arrive_barrier(4 + (i - 1) % 4)"
FAULTS = {
    "the wait for a tile is left out": {FULL: NOTHING},
    "a tile is waited for in the phase before": {FULL: FULL.replace("i // 4 % 2", "1 - i // 4 % 2")},
    "a tile is waited for in the first phase always": {FULL: "T.ptx_wait_barrier(i % 4, 0)"},
    "a stage is filled again without a wait": {EMPTY: NOTHING},
    "a stage is waited for in the phase after": {EMPTY: EMPTY.replace("1 - i // 4 % 2", "i // 4 % 2")},
    "nobody says that a stage is empty": {ARRIVE: NOTHING},
    "a stage is called empty while it is read": {"T.ptx_wgmma_wait_group(1)": NOTHING},
    "fewer bytes are expected than come": {"_tx(i % 4, 49152)": "_tx(i % 4, 32768)"},
    "the sums are read before they are there": {"T.ptx_wgmma_wait_group(0)": NOTHING},
    "the products are not fenced": {"T.ptx_wgmma_fence()": NOTHING},
    "the barriers are not fenced": {"T.ptx_fence_barrier_init()": NOTHING},
    "threads begin before the barriers are there": {'T.tvm_storage_sync("shared", dtype="void")': NOTHING},
}


@pytest.fixture(scope="module")
def text() -> str:
    return load("hopper_gemm").scheduled(64, 64, 5 * 64)[0].script()


def wrong(program: str, target: str, fault: type[Exception]) -> bool:
    """Whether the program computes something else in one of the orders, or a fault is found."""
    module = tir.build(parse(program), target=target)
    a, b = (np.random.default_rng(n).standard_normal((64, 320)).astype("float16") for n in range(2))
    for order in ORDERS:
        module.order = order
        c = np.zeros((64, 64), "float32")
        try:
            module(a, b, c)
        except fault:
            return True
        if not np.allclose(c, a.astype("float32") @ b.astype("float32").T, rtol=1e-3, atol=1e-3):
            return True
    return False


def test_the_product_is_right_in_each_order(text):
    assert not wrong(text, "cuda-ptx -arch=sm_90a", PTXFault)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_in_the_compiled_kernel(text, name):
    for good, bad in FAULTS[name].items():
        assert text.count(good) == 1
        text = text.replace(good, bad)
    assert wrong(text, "cuda-ptx -arch=sm_90a", PTXFault)
