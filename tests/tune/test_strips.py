"""Memory-bound programs: tiles of transposes, strips of stencils, vectors times matrices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.expr import BufferLoad, Ramp, constant
from tir.intrin import x86
from tir.library import elementwise
from tir.testing import assert_same_result
from tir.tune import cost_model, space
from tir.visit import walk

WIDE = "llvm -vector_width=512 -num-cores={}"


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs run in parallel too."""
    monkeypatch.setattr(space, "PARALLEL", 0)
    monkeypatch.setattr(cost_model, "START", 0.0)


def same(func: tir.PrimFunc, cores: int) -> tir.Schedule:
    sch = tir.tune.default(func, WIDE.format(cores))
    assert_same_result(func, sch.mod, engines=("llvm",))
    return sch


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("sizes", [(32, 48), (33, 50), (17, 16), (40, 31)])
def test_tiles_of_a_transpose_are_turned_in_registers(sizes: tuple[int, int], cores: int):
    assert "Shuffle" in same(elementwise.transpose(*sizes), cores).mod.script()


@pytest.mark.parametrize("axes", [(1, 0), (0, 2, 1)])
def test_iterators_in_the_order_of_the_result_are_turned_too(axes: tuple[int, ...]):
    A = te.placeholder((33, 40) if len(axes) == 2 else (33, 20, 40), name="A")
    assert "Shuffle" in same(te.create_prim_func([A, ops.transpose(A, axes)]), 1).mod.script()


TURNS = {
    "to the left": "B[vi, vj] = A[vj, {m} - vi]",
    "to the right": "B[vi, vj] = A[{n} - vj, vi]",
    "about the other diagonal": "B[vi, vj] = A[{n} - vj, {m} - vi]",
    "with rows stored backwards": "B[{m} - vi, vj] = A[vj, vi]",
}


@pytest.mark.parametrize("sizes", [(32, 48), (33, 50)])
@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_matrices_are_turned_in_registers(turn: str, sizes: tuple[int, int]):
    n, m = sizes
    func = tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float32"), B: T.Buffer(({m}, {n}), "float32")):
    for i, j in T.grid({m}, {n}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            {turn.format(n=n - 1, m=m - 1)}
""")
    assert "Shuffle" in same(func, 1).mod.script()


@pytest.mark.parametrize(
    ("sizes", "shared", "ahead"),
    [
        ((64, 64), 64, []),
        ((100, 98), 64, ["B[v0 * 16 + ax0, v1 * 16 + 16]"]),  # rows begin within lines
        ((512, 48), 64, ["B[ax0, v0 * 32 + ax1 * 16 + 32]"]),  # more than L2 keeps
        ((100, 98), 32, []),  # an L3 that is near
        ((512, 48), 32, []),
    ],
)
def test_lines_of_a_result_are_requested_that_are_far_or_that_rows_share(
    sizes: tuple[int, int], shared: int, ahead: list[str]
):
    func = elementwise.transpose(*sizes)
    sch = tir.tune.default(func, f"{WIDE.format(1)} -l1_bytes=32768 -l2_bytes=131072 -l3_bytes={shared << 20}")
    assert re.findall(r"prefetch\(T.address_of\((.*)\), 1,", sch.mod.script()) == ahead
    assert_same_result(func, sch.mod, engines=("llvm",))


@pytest.mark.parametrize(("rows", "groups"), [(80, [1, 4]), (81, [2, 4]), (96, [2, 4]), (1024, [1, 1])])
def test_tiles_are_alone_where_lines_of_a_group_push_each_other_out(rows: int, groups: list[int]):
    sch = tir.tune.default(elementwise.transpose(rows, 64), f"{WIDE.format(1)} -l2_bytes=1048576 -l3_bytes=33554432")
    store = sch.get_child_blocks("root")[-1]
    assert [sch.get(loop).extent.value for loop in sch.get_loops(store)[2:4]] == groups


def test_threads_share_out_tiles_that_are_stored_past_the_caches():
    script = tir.tune.default(elementwise.transpose(8192, 4096), WIDE.format(2)).mod.script()
    assert "Shuffle" in script and re.search(r"T.parallel\(.*pragma_nontemporal_lines", script)


@pytest.mark.parametrize("dtype", sorted(x86.TRANSPOSE))
def test_tiles_of_each_type_are_turned_in_registers(dtype: str):
    A = te.placeholder((25, 34), dtype, name="A")
    assert "Shuffle" in same(te.create_prim_func([A, ops.transpose(A)]), 1).mod.script()


@pytest.mark.parametrize(
    "shape, axes",
    [
        ((33, 20, 40), (2, 1, 0)),  # an axis between those of a tile
        ((2, 24, 7, 5), (0, 2, 3, 1)),  # short axes that continue each other
        ((2, 7, 5, 24), (0, 3, 1, 2)),
        ((1, 5, 4, 3, 6), (0, 3, 4, 1, 2)),
    ],
)
def test_axes_that_are_walked_through_as_one_are_one_side_of_a_tile(shape: tuple[int, ...], axes: tuple[int, ...]):
    A = te.placeholder(shape, name="A")
    sch = same(te.create_prim_func([A, ops.transpose(A, axes)]), 1)
    assert "Shuffle" in sch.mod.script()
    assert "//" not in tir.lower(sch.mod).script(), "each element has its address computed from digits"


def test_tiles_that_are_computed_are_loops():
    A = te.placeholder((33, 20, 40), name="A")
    sch = same(te.create_prim_func([A, te.compute((40, 20, 33), lambda k, j, i: A[i, j, k] * 2.0, name="B")]), 1)
    assert [sch.get(loop).extent.value for loop in sch.get_loops("B")[-2:]] == [16, 16]


@pytest.mark.parametrize("cores", [1, 2])
def test_an_image_changes_its_layout_in_tiles(cores: int):
    A = te.placeholder((2, 20, 3, 33), name="A")
    same(te.create_prim_func([A, te.compute((2, 33, 20, 3), lambda n, c, y, x: A[n, y, x, c], name="B")]), cores)
    same(te.create_prim_func([A, te.compute((2, 33, 20, 3), lambda n, c, y, x: A[n, y, x, c] + 1.0, name="B")]), cores)
    wide = te.compute((33, 2, 3, 20), lambda c, n, x, y: A[n, y, x, c] * 2.0, name="B")
    sch = same(te.create_prim_func([A, wide]), cores)
    assert [sch.get(loop).extent.value for loop in sch.get_loops("B")[-2:]] == [16, 16]


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("sizes", [(64, 48), (37, 50), (72, 130)])
def test_stages_of_a_stencil_are_computed_for_a_strip(sizes: tuple[int, int], cores: int):
    sch = same(elementwise.blur(*sizes), cores)
    assert sch.get_loops("along")[0] == sch.get_loops("out")[0], "each stage has loops of its own"


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("sizes", [(8, 256), (7, 140), (5, 133)])
def test_results_that_share_a_vector_are_computed_together(sizes: tuple[int, int], cores: int):
    A, x = te.placeholder(sizes, name="A"), te.placeholder(sizes[1:], name="x")
    k = te.reduce_axis((0, sizes[1]), "k")
    sch = same(
        te.create_prim_func([A, x, te.compute(sizes[:1], lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")]), cores
    )
    assert any(b.scope == "local" for b in sch.func.root.alloc_buffers)


@pytest.mark.parametrize("rows", [1, 2, 3, 6, 7, 16])
@pytest.mark.parametrize("columns", [64, 37])
def test_few_rows_read_a_matrix_that_lies_along_the_terms_in_place(rows: int, columns: int):
    x, w = te.placeholder((rows, 130), name="x"), te.placeholder((columns, 130), name="w")
    sch = same(te.create_prim_func([x, w, ops.nn.dense(x, w)]), 1)
    assert all(b.scope == "local" for b in sch.func.root.alloc_buffers), "the matrix is packed"
    assert sum(block.name.endswith("_init") for block in sch.get_child_blocks("root")), "the sums are no vectors"


@pytest.mark.parametrize(("rows", "strip"), [(5, 5), (7, 4), (8, 4), (13, 5), (16, 6)])
def test_few_rows_are_as_few_equal_strips_as_there_can_be(rows: int, strip: int):
    """So that the matrix is read as seldom as can be. Their partial sums are added up in vectors, too."""
    x, w = te.placeholder((rows, 136), name="x"), te.placeholder((12, 136), name="w")
    sch = same(te.create_prim_func([x, w, ops.nn.dense(x, w)]), 1)
    _, strips, row, *_ = sch.get_loops("dense")
    assert [sch.get(loop).extent for loop in (strips, row)] == [-(-rows // strip), strip]
    assert [b.shape[-1] for b in sch.func.root.alloc_buffers][-1] == 4


@pytest.mark.parametrize("terms", [37, 64, te.var("k")])
def test_any_number_of_few_rows(terms: Any):
    x, w = te.placeholder((te.var("n"), terms), name="x"), te.placeholder((24, terms), name="w")
    run, rng = (
        tir.build(tir.tune.default(te.create_prim_func([x, w, ops.nn.dense(x, w)]), WIDE.format(1)).mod),
        np.random.default_rng(0),
    )
    weights = rng.standard_normal((24, terms if isinstance(terms, int) else 9)).astype("float32")
    for n in range(9):
        rows, found = rng.standard_normal((n, weights.shape[1])).astype("float32"), np.full((n, 24), np.nan, "float32")
        run(rows, weights, found)
        np.testing.assert_allclose(found, rows.astype("float64") @ weights.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sizes", [(1, 200, 512), (1, 33, 70)])
def test_one_row_times_a_matrix_reads_whole_rows_of_it(sizes: tuple[int, int, int]):
    rows, terms, columns = sizes
    x, w = te.placeholder((rows, terms), name="x"), te.placeholder((terms, columns), name="w")
    sch = same(te.create_prim_func([x, w, ops.matmul(x, w)]), 1)
    assert not sch.func.root.alloc_buffers, "the matrix is packed, or read by columns"


def test_a_matrix_times_one_column_is_a_matrix_times_a_vector():
    w, x = te.placeholder((40, 130), name="w"), te.placeholder((130, 1), name="x")
    sch = same(te.create_prim_func([w, x, ops.matmul(w, x)]), 1)
    assert all(b.scope == "local" for b in sch.func.root.alloc_buffers)


def blurred(shape: tuple[int, ...], stages: int = 1) -> tir.PrimFunc:
    """Sums of three neighbours along the last axis, ``stages`` times, and then along the one before."""
    x = a = te.placeholder(shape, name="x")
    for n in range(stages):
        size = (*(int(s) for s in a.shape[:-1]), int(a.shape[-1]) - 2)
        a = te.compute(size, lambda *i, a=a: a[i] + a[(*i[:-1], i[-1] + 1)] + a[(*i[:-1], i[-1] + 2)], name=f"a{n}")
    size = (*(int(s) for s in a.shape[:-2]), int(a.shape[-2]) - 2, int(a.shape[-1]))
    down = lambda *i: a[i] + a[(*i[:-2], i[-2] + 1, i[-1])] + a[(*i[:-2], i[-2] + 2, i[-1])]  # noqa: E731
    return te.create_prim_func([x, te.compute(size, down, name="b")])


@pytest.mark.parametrize("shape", [(40, 50), (3, 20, 37), (9, 24)])
@pytest.mark.parametrize("stages", [1, 2])
def test_one_thread_keeps_the_last_rows_of_a_stage(shape: tuple[int, ...], stages: int):
    func = blurred(shape, stages)
    sch = same(func, 1)
    assert any(b.shape[-2].value == 3 for b in sch.func.root.alloc_buffers), "three rows, of which one is new"
    assert "T.parallel" not in sch.mod.script()


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("columns", "apart"), [(100, 112), (116, 144)])
def test_rows_of_a_stage_begin_an_odd_number_of_lines_apart(columns: int, apart: int, cores: int):
    lowered = tir.lower(same(blurred((40, columns)), cores).mod, "compact_buffer_allocation")
    assert f"strides=[{apart}, 1]" in lowered.script()


def test_several_threads_compute_strips():
    sch = same(blurred((40, 50)), 2)
    assert sch.func.root.alloc_buffers[0].shape[-2].value == 40 and "T.parallel" in sch.mod.script()


def test_little_work_is_done_by_one_thread(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(space, "PARALLEL", 1 << 20)
    assert same(blurred((40, 50)), 2).func.root.alloc_buffers[0].shape[-2].value == 3


@pytest.mark.parametrize("sizes", [((5, 7), (10, 14)), ((12, 20), (24, 40)), ((8, 30), (13, 41))])
@pytest.mark.parametrize("method", ["linear", "nearest_neighbor"])
def test_images_are_resized_without_clamps_inside(sizes: tuple[tuple[int, int], tuple[int, int]], method: str):
    x = te.placeholder((1, 2, *sizes[0]), name="x")
    y = ops.image.resize2d(x, (0.0, 0.0, 0.0, 0.0), sizes[1], method=method)
    sch = same(te.create_prim_func([x, y]), 1)
    assert method != "linear" or "pragma_loop_partition_hint" in sch.mod.script()


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("reducer", [te.sum, te.max])
@pytest.mark.parametrize("sizes", [(24, 16, 32), (9, 20, 50), (2, 33, 16)])
def test_sums_across_what_they_load_are_vectors_of_that(sizes: tuple[int, ...], reducer: Any, cores: int):
    """Such as the sum of matrices, turned: the loads are vectors, and the stores are not."""
    n, p, q = sizes
    A, w, k = te.placeholder(sizes, name="A"), te.placeholder((n,), name="w"), te.reduce_axis((0, n), "k")
    func = te.create_prim_func([A, w, te.compute((q, p), lambda i, j: reducer(A[k, j, i] * w[k], axis=k), name="B")])
    sch = tir.tune.default(func, WIDE.format(cores))
    assert_same_result(func, sch.mod, engines=("llvm", "interpreter"), rtol=1e-4, atol=1e-5)
    loads = [n for n in walk(tir.lower(sch.mod)["main"].body) if isinstance(n, BufferLoad) and n.buffer.name == "A"]
    steps = {constant(i.stride) if isinstance(i, Ramp) else None for load in loads for i in load.indices}
    assert loads and steps - {None} == {1}
