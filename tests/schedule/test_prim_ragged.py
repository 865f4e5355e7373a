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
    assert not answer and "`P[i + 1]` depends on data" in answer.reason


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


ROWS = """
@T.prim_func
def main(P: T.Buffer((7,), "int32"), V: T.Buffer((20, 3), "float32"), W: T.Buffer((20, 3), "float32"), y: T.Buffer((6, 3), "float32")):
    for i in range(6):
        for j in range(P[i], P[i + 1]):
            BODY
"""  # noqa: E501
SUM = """for k in range(3):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    vj = T.axis.reduce(20, j)
                    y[vi, vk] = y[vi, vk] + V[vj, vk]"""
BARE = """for k in range(3):
                W[j, k] = W[j, k] + V[j, k] * T.float32(2)
                y[i, k] = y[i, k] + W[j, k]"""
SHIFTED = """for k in range(3):
                W[j, k] = V[j, k] + y[i, k]
                y[i, (k + 1) % 3] = W[j, k]"""
APART = """for k in range(3):
                W[j, k] = V[j, k] * T.float32(2)
            for k in range(3):
                y[i, k] = y[i, k] + W[j, k]"""
BACK = """for k in range(3):
                W[j, k] = y[i, k]
            for k in range(3):
                y[i, k] = y[i, k] + V[j, k]"""


def ragged(body: str) -> tir.Schedule:
    return tir.Schedule(parse(ROWS.replace("BODY", body)))


def assert_same_rows(sch: tir.Schedule) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        starts = np.sort(rng.integers(0, 20, 7)).astype("int32")
        arrays = [rng.integers(0, 9, shape).astype("float32") for shape in ((20, 3), (20, 3), (6, 3))]
        results = []
        for mod, engine in ((sch.history[0].mod, "interpreter"), (sch.mod, "interpreter"), (sch.mod, "llvm")):
            given = [a.copy() for a in arrays]
            tir.build(mod, engine)(starts.copy(), *given)
            results.append(given)
        for found in results[1:]:
            for a, b in zip(results[0], found):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("body", [SUM, BARE])
def test_loops_inside_of_a_row_of_unknown_length_are_reordered(body):
    """Elements keep to one k, and in it the order of the entries stays, however many there are."""
    sch = ragged(body)
    sch.reorder("k", "j")
    assert_same_rows(sch)


def test_a_row_of_unknown_length_in_which_k_meets_k_stays():
    answer = ragged(SHIFTED).can.reorder("k", "j")
    assert not answer and "depends on data" in answer.reason


def test_a_row_of_unknown_length_is_distributed():
    sch = ragged(APART)
    sch.fission("j")
    assert_same_rows(sch)
    assert not sch.can.fission("i")  # rows may overlap


def test_a_row_of_unknown_length_that_reads_back_is_not_distributed():
    answer = ragged(BACK).can.fission("j")
    assert not answer and "depends on data" in answer.reason


@pytest.mark.parametrize("step", [lambda sch: sch.reorder("k", "j"), lambda sch: sch.fission("j")])
@pytest.mark.parametrize("write", ["P[j] = P[j] + k", "P[i + 1] = T.max(P[i + 1] - 1, 0)", "Q[0, 0] = 3"])
def test_a_row_whose_length_its_iterations_change_is_not_run_again(step, write):
    view = 'Q = T.decl_buffer((1, 7), "int32", data=P.data)\n    ' if write.startswith("Q") else ""
    text = ROWS.replace("BODY", f"for k in range(3):\n                {write}\n                y[i, k] = V[j, k]")
    if "fission" in step.__code__.co_names:
        text = ROWS.replace("BODY", f"for k in range(3):\n                {write}\n            y[i, 0] = V[j, 0]")
    sch = tir.Schedule(parse(text.replace("for i in range(6)", f"{view}for i in range(6)", 1)))
    with pytest.raises(tir.ScheduleError, match="the iterations of loop `j` may change"):
        step(sch)


MOVED = """
@T.prim_func
def main(P: T.Buffer((5, 3), "int32"), n: T.int32):
    for j in range(P[0, 1]):
        for k in range(3):
            with T.block("P"):
                vj, vk = T.axis.remap("SS", [j, k])
                P[vj, vk] = n
"""


def test_a_range_that_the_block_itself_writes_is_not_read_again():
    """Each instance has an element of its own, so that no dependence among instances says it."""
    with pytest.raises(tir.ScheduleError, match="the iterations of loop `j` may change"):
        tir.Schedule(parse(MOVED)).reorder("k", "j")


TWO = """
@T.prim_func
def main(P: T.Buffer((5, 3), "int32"), Y: T.Buffer((5,), "int32"), Z: T.Buffer((5,), "int32")):
    for j in range(P[0, 1]):
        BODY
    for k in range(P[0, 1]):
        with T.block("Z"):
            v = T.axis.spatial(5, k)
            Z[v] = Y[v] + 1
"""


def test_nests_of_one_unknown_length_are_merged():
    sch = tir.Schedule(parse(TWO.replace("BODY", "Y[j] = 2")))
    sch.merge("j", "k")
    results = []
    for mod in (sch.history[0].mod, sch.mod):
        arrays = [np.full((5, 3), 4, "int32"), np.arange(5, dtype="int32"), np.zeros(5, "int32")]
        tir.build(mod, "interpreter")(*arrays)
        results.append(arrays[2])
    assert results[0].tolist() == results[1].tolist() == [3, 3, 3, 3, 0]


@pytest.mark.parametrize(
    "body",
    [
        "P[0, 1] = 3",
        """with T.block("P"):
            u = T.axis.spatial(5, j)
            P[u, 1] = 2""",
    ],
)
def test_nests_of_which_the_first_changes_the_length_of_the_second_are_not_merged(body):
    with pytest.raises(tir.ScheduleError, match="the iterations of loop `j` may change"):
        tir.Schedule(parse(TWO.replace("BODY", body))).merge("j", "k")
