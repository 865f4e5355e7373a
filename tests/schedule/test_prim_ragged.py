"""Loops whose length data decides: what a step can still prove of the loops around them."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse

CSR = """
@T.prim_func
def main(P: T.Buffer((7,), "int32"), J: T.Buffer((20,), "int32"), V: T.Buffer((20,), "float32"), x: T.Buffer((6,), "float32"), y: T.Buffer((6,), "float32")):
    for i in range(6):
        with T.block("row"):
            vi = T.axis.spatial(6, i)
            y[vi] = T.float32(0)
            for k in range(P[vi + 1] - P[vi]):
                with T.block("entry"):
                    vk = T.axis.reduce(P[vi + 1] - P[vi], k)
                    y[OUT] = y[OUT] + V[P[vi] + vk] * x[J[P[vi] + vk]]
"""  # noqa: E501


def test_rows_of_a_sparse_matrix_are_independent():
    """How many entries a row has is data, but each row is summed into an element of its own."""
    sch = tir.Schedule(parse(CSR.replace("OUT", "vi")))
    sch.parallel("i")
    counts = np.array([3, 0, 4, 1, 2, 5])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype("int32")
    rng = np.random.default_rng(0)
    columns, values = rng.integers(0, 6, 20).astype("int32"), rng.random(20).astype("float32")
    x, y = rng.random(6).astype("float32"), np.zeros(6, "float32")
    tir.build(sch.mod, "interpreter")(starts, columns, values, x, y)
    dense = np.zeros((6, 6))
    for row in range(6):
        np.add.at(dense[row], columns[starts[row] : starts[row + 1]], values[starts[row] : starts[row + 1]])
    np.testing.assert_allclose(y, dense @ x, rtol=1e-5)


def test_columns_of_a_sparse_matrix_are_not():
    sch = tir.Schedule(parse(CSR.replace("OUT", "J[P[vi] + vk]")))
    answer = sch.can.parallel("i")
    assert not answer and "it depends on data" in answer.reason


PRODUCT = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    k = T.int32()
    A = T.match_buffer(a, (5, k), "float32")
    B = T.match_buffer(b, (k, 6), "float32")
    C = T.match_buffer(c, (5, 6), "float32")
    for i, j, kk in T.grid(5, 6, k):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, kk])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]
"""


@pytest.mark.parametrize("target, scope", [("llvm", "global"), ("cuda-sim", "shared")])
@pytest.mark.parametrize("size", [None, 11])
def test_a_window_with_a_ragged_tail_has_the_size_of_a_tile(target, scope, size):
    """The last tile of ``k`` is not full, nor is ``k`` known: each step still needs no more than a tile of A."""
    text = (
        PRODUCT
        if size is None
        else PRODUCT.replace("    k = T.int32()\n", "").replace("k)", "11)").replace("(k,", "(11,")
    )
    sch = tir.Schedule(parse(text))
    i, j, k = sch.get_loops("C")
    if scope == "shared":
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")
    outer, _ = sch.split(k, [None, 4])
    sch.compute_at(sch.cache_read("C", "A", scope), outer)
    lowered = tir.lower(sch.mod, target=target.split("-")[0], upto="compact_buffer_allocation")
    assert f'A_{scope} = T.alloc_buffer((1, 4), "float32"' in lowered.script()
    rng = np.random.default_rng(0)
    a, b, c = rng.random((5, 11), "float32"), rng.random((11, 6), "float32"), np.zeros((5, 6), "float32")
    tir.build(sch.mod, target)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
