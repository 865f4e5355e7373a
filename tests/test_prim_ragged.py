"""Loops whose length data decides: what a step can still prove of the loops around them."""

from __future__ import annotations

import numpy as np

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
