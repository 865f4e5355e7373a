"""Barriers where the index of shared memory is a swizzle: it may be any number of as many bits, and no other."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.transform import thread_storage_sync

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32"), m: T.int32):
    tx = T.launch_thread("threadIdx.x", 32)
    memory = T.allocate([128], "int32", "shared")
    S = T.decl_buffer((128,), "int32", data=memory, scope="shared")
    S[{written}] = A[tx]
    B[tx] = S[{read}]
"""


@pytest.mark.parametrize(
    ("written", "read", "barrier"),
    [
        ("T.bitwise_xor(tx, tx // 4)", "0", True),
        ("T.bitwise_xor(tx, tx // 4)", "31", True),
        ("T.bitwise_xor(tx, tx // 4)", "32 + tx", False),
        ("T.bitwise_xor(tx, tx // 4) + 64", "64", True),
        ("T.bitwise_xor(tx, tx // 4) + 64", "tx", False),
        ("T.bitwise_xor(tx, tx // 4) + 64", "96 + tx", False),
        ("tx", "T.bitwise_xor(tx, tx // 4)", True),
        ("tx * 2 % 64 + 32", "T.bitwise_and(tx, 31)", False),
        ("T.bitwise_or(tx, tx // 4)", "31", True),
        ("T.bitwise_xor(tx, m)", "32 + tx", True),  # numbers of any size, or below zero, are not bounded by their bits
        ("T.bitwise_xor(tx - 32, -1)", "16 + tx % 16", True),
    ],
)
def test_a_barrier_where_threads_may_meet(written, read, barrier):
    func = parse(PROGRAM.format(written=written, read=read))
    assert ("tvm_storage_sync" in thread_storage_sync(func).script()) == barrier


def test_threads_that_exchange_pairs_need_no_barrier_between():
    """Of a bitonic sort: the partner of a thread is told apart by each amount of the shift."""
    func = parse("""
@T.prim_func
def f(A: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.alloc_buffer((64,), "int32", scope="shared")
    S[tx] = A[tx]
    for k in range(6):
        for j in range(k + 1):
            p: T.int32 = tx ^ (1 << (k - j))
            if p > tx:
                a: T.int32 = S[tx]
                b: T.int32 = S[p]
                if (a > b) == ((tx & (2 << k)) == 0):
                    S[tx] = b
                    S[p] = a
    A[tx] = S[tx]
""")
    module = tir.build(func, "cuda-sim")
    for module.order in ("forward", "reverse", "random"):
        data = np.random.default_rng(0).integers(0, 99, 64).astype("int32")
        wanted = np.sort(data)
        module(data)
        assert module.report().ok
        np.testing.assert_array_equal(data, wanted)
