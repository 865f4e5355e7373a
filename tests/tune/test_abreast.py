"""Chains of steps that nothing may reorder, of several rows at a time; and planes, parts and rows of data that decide vectors."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.testing import assert_same_result
from tir.tune.nest import extent_of

pytestmark = pytest.mark.usefixtures("rules_alone")

FILTER = """
@T.prim_func
def f(X: T.Buffer((ROWS, STEPS), "float32"), Y: T.Buffer((ROWS, STEPS), "float32")):
    for i in range(ROWS):
        with T.block("first"):
            vi = T.axis.spatial(ROWS, i)
            Y[vi, 0] = X[vi, 0]
    for i, j in T.grid(ROWS, STEPS - 1):
        with T.block("next"):
            vi = T.axis.spatial(ROWS, i)
            vj = T.axis.KIND(STEPS - 1, j)
            Y[vi, vj + 1] = VALUE
"""
CHAINED = "T.float32(0.5) * Y[vi, vj] + X[vi, vj + 1]"

BEST = """
@T.prim_func
def f(A: T.Buffer((ROWS, STEPS), "float32"), V: T.Buffer((ROWS,), "float32"), I: T.Buffer((ROWS,), "int32")):
    for i, k in T.grid(ROWS, STEPS):
        with T.block("best"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                V[vi] = T.min_value("float32")
                I[vi] = -1
            value: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            place: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
            V[vi] = value
            I[vi] = place
"""

SCATTERED = """
@T.prim_func
def f(I: T.Buffer((50,), "int32"), X: T.Buffer((50, 32), "float32"), O: T.Buffer((9, 32), "float32")):
    for i, j in T.grid(9, 32):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = T.float32(0)
    for k, j in T.grid(50, 32):
        with T.block("add"):
            vk, vj = T.axis.remap("RS", [k, j])
            O[I[vk], vj] += X[vk, vj]
"""


def chains(rows: int = 32, steps: int = 40, kind: str = "opaque", value: str = CHAINED) -> tir.PrimFunc:
    text = FILTER.replace("KIND", kind).replace("VALUE", value)
    return parse(text.replace("ROWS", str(rows)).replace("STEPS", str(steps)))


def default(func: tir.PrimFunc, *inputs: np.ndarray) -> tir.Schedule:
    """Its default schedule, which computes the same."""
    sch = tir.tune.default(func, "llvm -num-cores=1 -vector_width=512")
    wanted, found = (tir.build(m, t).new(*inputs) for m, t in ((func, "interpreter"), (sch.mod, "llvm")))
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (wanted, found))):
        np.testing.assert_array_equal(a, b)
    return sch


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-9, 9, shape).astype("float32")


def abreast(sch: tir.Schedule, block: str) -> int:
    """How many rows take a step together; 1 if the last loop is one of steps."""
    inner = sch.get_loops(block)[-1]
    return extent_of(sch, inner) if sch.get(inner).kind == "unrolled" else 1


@pytest.mark.parametrize("kind", ["opaque", "spatial"])
@pytest.mark.parametrize(("rows", "together"), [(32, 16), (24, 8), (20, 10), (9, 3), (13, 1), (1, 1)])
def test_steps_of_several_rows_are_taken_together(rows: int, together: int, kind: str):
    sch = default(chains(rows, kind=kind), numbers(rows, 40))
    assert abreast(sch, "next") == together


@pytest.mark.parametrize(("pitch", "together"), [(1024, 4), (1040, 16), (512, 8)])
def test_rows_whose_lines_push_each_other_out_are_fewer(pitch: int, together: int):
    """Of two arrays, 8 lines are in one set of the L1 cache."""
    func = tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((16, {pitch}), "float32"), B: T.Buffer((16, {pitch}), "float32")):
    for i, j in T.grid(16, {pitch}):
        with T.block("next"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(vj == 0, A[vi, vj], B[vi, vj - 1] * T.float32(0.5) + A[vi, vj])
""")
    assert abreast(default(func, numbers(16, pitch)), "next") == together


def test_short_chains_and_steps_that_do_not_wait_stay_as_they_are():
    assert abreast(default(chains(steps=9), numbers(32, 9)), "next") == 1
    assert abreast(default(chains(steps=10), numbers(32, 10)), "next") == 16
    free = default(chains(steps=41, kind="spatial", value="X[vi, vj] + X[vi, vj + 1]"), numbers(32, 41))
    assert "T.vectorized" in free.mod.script()


@pytest.mark.parametrize(("rows", "steps"), [(32, 48), (32, 41), (16, 9), (24, 41)])
def test_a_selection_that_leaves_open_what_it_does_with_equals_keeps_its_order(rows: int, steps: int):
    """Of rows that fill vectors, steps of these: what lies along the rows is turned."""
    data = numbers(rows, steps)
    data[3, 7] = np.nan
    sch = default(parse(BEST.replace("ROWS", str(rows)).replace("STEPS", str(steps))), data)
    kind, extent = ("vectorized", 16) if rows % 16 == 0 else ("unrolled", 8)
    inner = sch.get_loops("best")[-1]
    assert (sch.get(inner).kind, extent_of(sch, inner)) == (kind, extent)


def test_rows_that_data_chooses_are_added_to_as_they_lie_in_memory():
    sch = default(parse(SCATTERED), np.random.default_rng(0).integers(0, 9, 50, "int32"), numbers(50, 32))
    first, *_ = sch.get_loops("add")
    assert extent_of(sch, first) == 50


PLANES = """
@T.prim_func
def f(X: T.Buffer((4, 6, 7, 9), "float32"), S: T.Buffer((4, 3), "float32"), Q: T.Buffer((4, 3), "float32")):
    for n, g, c, h, w in T.grid(4, 3, 2, 7, 9):
        with T.block("sums"):
            vn, vg, vc, vh, vw = T.axis.remap("SSRRR", [n, g, c, h, w])
            with T.init():
                S[vn, vg] = T.float32(0)
                Q[vn, vg] = T.float32(0)
            S[vn, vg] += X[vn, vg * 2 + vc, vh, vw]
            Q[vn, vg] += X[vn, vg * 2 + vc, vh, vw] * X[vn, vg * 2 + vc, vh, vw]
"""


def test_planes_of_short_rows_are_summed_in_vectors():
    sch = default(parse(PLANES), numbers(4, 6, 7, 9))
    assert 'transform_block_layout("sums"' in sch.trace.as_python() and "T.vectorized(16)" in sch.mod.script()


@pytest.mark.parametrize(
    ("shape", "is_one"), [((5, 5), False), ((5, 7), True), ((3, 16), False), ((6, 40), True), ((8, 48), False)]
)
def test_a_plane_becomes_one_row_where_vectors_along_its_rows_would_be_partly_empty(
    shape: tuple[int, int], is_one: bool
):
    x = tir.te.placeholder((4, 3, *shape), name="x")
    func = tir.ops.function_of(tir.ops.max(x, axis=(2, 3)))
    sch = default(func, numbers(4, 3, *shape))
    assert ("transform_block_layout" in sch.trace.as_python()) is is_one


def test_the_mean_of_each_plane_of_a_row_of_planes_is_no_stage_of_that_row():
    x = tir.te.placeholder((4, 48, 13, 13), name="x")
    sch = default(tir.ops.function_of(tir.ops.max(x, axis=(2, 3)) + 1.0), numbers(4, 48, 13, 13))
    lanes = [
        extent_of(sch, l)
        for b in sch.get_child_blocks("root")
        for l in sch.get_loops(b)
        if sch.get(l).kind == "vectorized"
    ]
    assert "48 + ax" not in sch.mod.script() and 16 in lanes


KRONECKER = """
@T.prim_func
def f(A: T.Buffer((3, 4), "float32"), B: T.Buffer((5, SIZE), "float32"), C: T.Buffer((15, 4 * SIZE), "float32")):
    for i, j in T.grid(15, 4 * SIZE):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi // 5, vj // SIZE] * B[vi % 5, vj % SIZE]
"""


@pytest.mark.parametrize(("size", "lanes"), [(24, 8), (40, 8), (32, 16), (20, 16), (28, 16), (8, 8)])
def test_no_vector_lies_across_the_border_of_two_parts(size: int, lanes: int):
    sch = default(parse(KRONECKER.replace("SIZE", str(size))), numbers(3, 4), numbers(5, size))
    assert extent_of(sch, sch.get_loops("c")[-1]) == lanes
    assert size % 8 == 0 or f" < {size})" in sch.mod.script(), "the second vector of a part is partly empty"


@pytest.mark.parametrize(("times", "vectors"), [(2, 4), (3, 3), (6, 3), (20, 5)])
def test_repeated_elements_are_selected_from_vectors_that_begin_with_one(times: int, vectors: int):
    x = tir.te.placeholder((5, 499 // times + 1), name="x")
    func = tir.te.create_prim_func([x, tir.te.compute((5, 499), lambda i, j: x[i, j // times], name="y")])
    sch = tir.tune.default(func, "llvm -num-cores=1 -vector_width=512")
    *_, straight, lane = sch.get_loops("y")
    assert (extent_of(sch, straight), extent_of(sch, lane)) == (vectors, 16)
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_a_rolled_array_is_no_vector_of_gathers():
    x = tir.te.placeholder((20, 300), name="x")
    func = tir.te.create_prim_func([x, tir.ops.roll(x, [3, 5], [0, 1])])
    sch = tir.tune.default(func, "llvm -num-cores=1 -vector_width=512")
    assert "vectorized" not in sch.mod.script()
    assert "%" not in tir.lower(sch.mod).script(), "the places where an array begins again are cut off"
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_what_an_outer_axis_selects_is_a_loop_of_its_own():
    x = tir.te.placeholder((20, 300), name="x")
    value = lambda b, i, j: tir.Select(b == 0, x[i, j] + 1.0, tir.Select(b == 1, x[i, j] * 2.0, x[19 - i, j]))
    func = tir.te.create_prim_func([x, tir.te.compute((3, 20, 300), value, name="y")])
    sch = tir.tune.default(func, "llvm -num-cores=1 -vector_width=512")
    assert "Select" not in tir.lower(sch.mod).script()
    assert_same_result(func, sch.mod, engines=("llvm",))


SPARSE = """
@T.prim_func
def f(p: T.Buffer((65,), "int32"), d: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for r in range(64):
        with T.block("row"):
            vr = T.axis.spatial(64, r)
            T.reads(p[vr : vr + 2], d[0:64])
            T.writes(y[vr])
            y[vr] = T.float32(0)
            for q in range(p[vr + 1] - p[vr]):
                y[vr] = y[vr] + d[p[vr] + q]
"""


def test_rows_of_different_lengths_are_no_vector():
    p = np.concatenate([[0], np.sort(np.random.default_rng(0).integers(0, 65, 63)), [64]]).astype("int32")
    assert "vectorized" not in default(parse(SPARSE), p, numbers(64)).mod.script()


@pytest.mark.parametrize(
    ("rows", "terms", "is_packed"), [(16, 64, True), (9, 64, True), (8, 64, False), (16, 128, False), (17, 320, True)]
)
def test_few_rows_of_short_sums_are_multiplied_by_panels(rows: int, terms: int, is_packed: bool):
    a, b = tir.te.placeholder((rows, terms), name="a"), tir.te.placeholder((96, terms), name="b")
    sch = tir.tune.default(tir.ops.function_of(tir.ops.nn.dense(a, b)), "llvm -num-cores=1 -vector_width=512")
    assert ("cache_read" in sch.trace.as_python()) is is_packed
