"""transform_layout, transform_block_layout, reindex and their kin: results, goldens, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from layout_programs import BLUR, MATMUL, TWO
from prim_checks import refused, same, schedule

import tir
from tir.interp import run
from tir.schedule.trace import Trace
from tir.script import parse


def test_tiles() -> None:
    sch = schedule(TWO)
    sch.transform_layout("B", ("write", 0), lambda i, j: (i // 4, j, i % 4))
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((16, 10), "float32"), C: T.Buffer((16, 10), "float32")):
    B = T.alloc_buffer((4, 10, 4), "float32")
    for i, j in T.grid(16, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi // 4, vj, vi % 4] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi // 4, vj, vi % 4] + T.float32(1)
""",
    )


@pytest.mark.parametrize("which", ["B", ("write", 0), ["write", 0]])
def test_ways_to_name_the_buffer(which) -> None:
    sch = schedule(TWO)
    sch.transform_layout("B", which, lambda i, j: (j, i))
    same(sch)
    assert "(10, 16)" in sch.script()


@pytest.mark.parametrize(
    "index_map",
    [
        lambda i, j: (j, i),
        lambda i, j: (i * 10 + j,),
        lambda i, j: (j // 5, i // 8, i % 8, j % 5),
        lambda i, j: (15 - i, j),
        lambda i, j: (i, 2 * j),
        lambda i, j: (i, j + 3),
        lambda i, j: (i // 5, i % 5, j // 4, j % 4),
        lambda i, j: ((i * 10 + j) // 7, (i * 10 + j) % 7),
        lambda i, j: (i, (i + j) % 16),
        lambda i, *rest: (*rest, i),
        tir.IndexMap.from_func(lambda i, j: [j, i]),
    ],
)
def test_maps_keep_the_meaning(index_map) -> None:
    sch = schedule(TWO)
    sch.transform_layout("B", "B", index_map)
    same(sch)


def test_neighbours_follow() -> None:
    sch = schedule(BLUR)
    sch.transform_layout("B", "B", lambda i: (i // 4, i % 4))
    same(sch)


def test_axis_separators() -> None:
    sch = schedule(TWO)
    sch.transform_layout("B", "B", lambda i, j: [i, tir.IndexMap.AXIS_SEPARATOR, j])
    same(sch)
    assert sch.get(sch.get_block("B")).writes[0].buffer.axis_separators == (1,)
    assert "tir.IndexMap.AXIS_SEPARATOR" in str(sch.trace)


def test_parameter_changes_the_interface() -> None:
    from tir.interp import run

    sch = schedule(TWO)
    sch.transform_layout("B", ("read", 0), lambda i, j: (j // 5, i, j % 5))
    sch.transform_layout("C", ("write", 0), lambda i, j: (j, i))
    a = np.random.default_rng(0).standard_normal((16, 10)).astype("float32")
    c = np.zeros((10, 16), "float32")
    run(sch.mod, np.ascontiguousarray(a.reshape(16, 2, 5).transpose(1, 0, 2)), c)
    np.testing.assert_allclose(c.T, a * 2 + 1)


def test_padding_is_stored() -> None:
    sch = schedule(TWO)
    sch.transform_layout("B", "B", lambda i, j: (i, j // 4, j % 4), pad_value=0.0)
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((16, 10), "float32"), C: T.Buffer((16, 10), "float32")):
    B = T.alloc_buffer((16, 3, 4), "float32")
    for i, j in T.grid(16, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj // 4, vj % 4] = A[vi, vj] * T.float32(2)
    for ax0, ax1, ax2 in T.grid(16, 3, 4):
        with T.block("B_padding"):
            v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
            T.where(ax1 * 4 + ax2 >= 10)
            B[v0, v1, v2] = T.float32(0)
    for i, j in T.grid(16, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj // 4, vj % 4] + T.float32(1)
""",
    )


def test_padding_of_an_output() -> None:
    from tir.interp import run

    sch = schedule(TWO)
    sch.transform_layout("C", "C", lambda i, j: (i, j // 4, j % 4), pad_value=lambda i, p, q: p * 10 + q)
    a = np.random.default_rng(0).standard_normal((16, 10)).astype("float32")
    c = np.full((16, 3, 4), np.nan, "float32")
    run(sch.mod, a, c)
    np.testing.assert_allclose(c.reshape(16, 12)[:, :10], a * 2 + 1)
    np.testing.assert_allclose(c[:, 2, 2:], [[22, 23]] * 16)
    tir.assert_structural_equal(sch.trace.replay(parse(TWO)).mod, sch.mod)
    assert "lambda i0, i1, i2" in str(sch.trace)


def test_padding_of_an_input_is_assumed() -> None:
    from tir.interp import run

    sch = schedule(TWO)
    sch.transform_layout("B", ("read", 0), lambda i, j: (i, j // 4, j % 4), pad_value=0.0)
    tir.assert_structural_equal(parse(sch.script())["main"], sch.mod["main"])
    a = np.ones((16, 12), "float32")
    a[:, 10:] = 0
    c = np.zeros((16, 10), "float32")
    run(sch.mod, a.reshape(16, 3, 4), c)
    np.testing.assert_allclose(c, np.full((16, 10), 3))


def test_no_padding_no_block() -> None:
    sch = schedule(TWO)
    sch.transform_layout("B", "B", lambda i, j: (j, i), pad_value=0.0)
    same(sch)
    assert "padding" not in sch.script()


def test_int64_indices() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((T.int64(16),), "float32"), C: T.Buffer((T.int64(16),), "float32")):
    B = T.alloc_buffer((T.int64(16),), "float32")
    for i in range(T.int64(16)):
        with T.block("B"):
            vi = T.axis.spatial(T.int64(16), i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(T.int64(16)):
        with T.block("C"):
            vi = T.axis.spatial(T.int64(16), i)
            C[vi] = B[vi]
""")
    sch.transform_layout("B", "B", lambda i: (i % 4, i // 4))
    same(sch)


def test_after_blockize_and_compute_at() -> None:
    sch = schedule(TWO)
    sch.split(sch.get_loops("B")[0], [None, 4])
    sch.blockize(sch.get_loops("B")[1])
    sch.compute_at("B_o", sch.get_loops("C")[0])
    sch.transform_layout("B_o", "B", lambda i, j: (j // 2, i, j % 2))
    same(sch)


def test_two_elements_in_one_place() -> None:
    sch = schedule(TWO)
    before = sch.mod
    error = refused(
        lambda: sch.transform_layout("B", "B", lambda i, j: (i + j,)), "two elements of buffer B would go to one place"
    )
    assert len(error.witness) == 2 and error.witness[0] != error.witness[1]
    assert sch.mod is before


def test_not_provably_injective() -> None:
    sch = schedule(SYMBOLIC)
    refused(lambda: sch.transform_layout("B", "B", lambda i, j: (i * j, i, j * j)), "cannot prove", "product")


def test_small_buffers_are_counted_through() -> None:
    sch = schedule(TWO)
    sch.transform_layout("B", "B", lambda i, j: (i, j * j))
    same(sch)


SYMBOLIC = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 10), "float32")
    C = T.match_buffer(c, (n, 10), "float32")
    B = T.alloc_buffer((n, 10), "float32")
    for i, j in T.grid(n, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(n, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
"""

SWIZZLED = """
@T.prim_func
def main(A: T.Buffer((16, 32), "float32"), C: T.Buffer((16, 32), "float32")):
    B = T.alloc_buffer((16, 32), "float32")
    for i, j in T.grid(16, 32):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 32):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def test_swizzle() -> None:
    """Chunks of 4 elements, xored by the row: vectors stay vectors, and other steps see through the layout."""
    sch = schedule(SWIZZLED)
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, (j // 4 ^ (i % 8)) * 4 + j % 4))
    sch.compute_at("B", sch.get_loops("C")[0])
    for block in ("B", "C"):
        sch.vectorize(sch.split(sch.get_loops(block)[1], [None, 4])[1])
    sch.parallel(sch.get_loops("C")[0])
    same(sch)
    text = tir.lower(sch.mod).script()
    assert " ^ " in text and "T.vectorized" not in text and "T.Broadcast(T.float32(2), 4)" in text


def test_swizzle_of_a_width_that_is_no_power_of_two() -> None:
    """Columns 8 and 9 may come to 10 and 11; the places in between hold nothing."""
    sch = schedule(TWO)
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j ^ (i % 4)))
    assert 'B = T.alloc_buffer((16, 12), "float32")' in sch.mod["main"].script()
    same(sch)


def test_swizzle_that_loses_elements() -> None:
    sch = schedule(TWO)
    error = refused(
        lambda: sch.transform_layout("B", "B", lambda i, j: (i // 2, j ^ (i % 2))),
        "two elements of buffer B would go to one place",
        "(i=0, j=0) goes to [0, 0]",
        "(i=1, j=1) goes to [0, 0]",
    )
    assert len(error.witness) == 2


def test_swizzle_of_any_height() -> None:
    """Where there are no elements to count."""
    sch = schedule(SYMBOLIC)
    refused(lambda: sch.transform_layout("B", "B", lambda i, j: (i // 2, j ^ (i % 4))), "cannot prove")
    sch.transform_layout("B", "B", lambda i, j: (i, j ^ (i % 4)))
    same(sch, n=7)


def test_on_trust() -> None:
    sch = schedule(TWO)
    sch.transform_layout("B", "B", lambda i, j: (i * j, i, j), assume_injective_transform=True)
    same(sch)


def test_negative_index() -> None:
    sch = schedule(TWO)
    refused(lambda: sch.transform_layout("B", "B", lambda i, j: (i - 1, j)), "can be -1")


def test_wrong_number_of_indices() -> None:
    sch = schedule(TWO)
    refused(lambda: sch.transform_layout("B", "B", lambda i: (i,)), "takes 1 index, but the buffer has 2 axes")


def test_a_function_that_fails() -> None:
    sch = schedule(TWO)
    with pytest.raises(TypeError, match="index_map does not compute indices"):
        sch.transform_layout("B", "B", lambda i, j: (i // "x", j))


def test_not_a_function() -> None:
    sch = schedule(TWO)
    with pytest.raises(TypeError, match="`index_map` is a tir.IndexMap or a function of the indices"):
        sch.transform_layout("B", "B", 3)


def test_pointer_uses() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.reads()
            T.writes(B[vi])
            B[vi] = T.float32(0)
            T.evaluate(T.call_extern("int32", "f", B.data))
    for i in range(16):
        with T.block("A"):
            vi = T.axis.spatial(16, i)
            A[vi] = B[vi]
""")
    refused(lambda: sch.transform_layout("B", "B", lambda i: (i // 4, i % 4)), "used by its pointer")


def test_unknown_buffer() -> None:
    sch = schedule(TWO)
    refused(lambda: sch.transform_layout("B", "X", lambda i: (i,)), "neither writes nor reads a buffer `X`")
    refused(lambda: sch.transform_layout("B", ("read", 4), lambda i: (i,)), "there is no number 4")
    refused(lambda: sch.transform_layout("B", ("both", 0), lambda i: (i,)), 'legal: "read" or "write"')


# ---------------------------------------------------------------- transform_block_layout


def test_block_flattened() -> None:
    sch = schedule(TWO)
    sch.transform_block_layout("B", lambda i, j: (i * 10 + j,))
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((16, 10), "float32"), C: T.Buffer((16, 10), "float32")):
    B = T.alloc_buffer((16, 10), "float32")
    for ax0 in range(160):
        with T.block("B"):
            v0 = T.axis.spatial(160, ax0)
            B[v0 // 10, v0 % 10] = A[v0 // 10, v0 % 10] * T.float32(2)
    for i, j in T.grid(16, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
""",
    )


@pytest.mark.parametrize(
    "index_map",
    [
        lambda i, j, k: (j, i, k),
        lambda i, j, k: (k, i, j),
        lambda i, j, k: (i // 4, j // 4, k // 4, i % 4, j % 4, k % 4),
        lambda i, j, k: (i * 16 + j, k),
        lambda i, j, k: (i, 0, j, k),
    ],
)
def test_block_of_a_reduction(index_map) -> None:
    sch = schedule(MATMUL)
    sch.transform_block_layout("C", index_map)
    same(sch)


def test_block_after_split() -> None:
    sch = schedule(MATMUL)
    sch.split("i", [None, 3])
    sch.transform_block_layout("C", lambda i, j, k: (j, i, k))
    same(sch)


def test_block_mixing_kinds() -> None:
    sch = schedule(MATMUL)
    refused(lambda: sch.transform_block_layout("C", lambda i, j, k: (i * 12 + k, j)), "mixes reduce and spatial")


def test_block_not_bijective() -> None:
    sch = schedule(MATMUL)
    refused(lambda: sch.transform_block_layout("C", lambda i, j, k: (i, j // 3, j % 3, k)), "no inverse")


def test_block_with_company() -> None:
    sch = schedule(TWO)
    sch.compute_at("B", sch.get_loops("C")[0])
    refused(lambda: sch.transform_block_layout("B", lambda i, j: (j, i)))


def test_block_order_that_breaks_a_dependence() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(7, 7):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] + T.float32(1)
""")
    refused(lambda: sch.transform_block_layout("A", lambda i, j: (j, i)), "transform_block_layout")
    sch.transform_block_layout("A", lambda i, j: (i, j))
    same(sch)


def test_block_iterators_reordered() -> None:
    sch = schedule(MATMUL)
    sch.reorder_block_iter_var("C", [2, 0, 1])
    same(sch)
    assert [i.var.name for i in sch.get(sch.get_block("C")).iter_vars] == ["vk", "vi", "vj"]
    refused(lambda: sch.reorder_block_iter_var("C", [0, 0, 1]), "not an order of the 3 iterators")
    refused(lambda: sch.reorder_block_iter_var("C", [0, 1]), "permutation")


# ---------------------------------------------------------------- reindex


# ---------------------------------------------------------------- regions said


def test_annotate_buffer_access() -> None:
    sch = schedule(BLUR)
    sch.annotate_buffer_access("C", 0, "read", lambda vi: [(vi, vi + 3)])
    same(sch)
    assert '"explicit_read_region": [0]' in sch.script()
    assert "gen_new_ranges=lambda vi: [(vi, vi + 3)]" in str(sch.trace)
    refused(
        lambda: sch.annotate_buffer_access("C", 0, "read", lambda vi: [vi, vi]), "2 ranges are given for the 1 axes"
    )
    refused(lambda: sch.annotate_buffer_access("C", 0, "both", lambda vi: [vi]), 'legal: "read" or "write"')


def test_unsafe_hide_buffer_access() -> None:
    sch = schedule(MATMUL)
    sch.unsafe_hide_buffer_access("C", "read", [1])
    assert [r.buffer.name for r in sch.get(sch.get_block("C")).reads] == ["A"]
    tir.assert_structural_equal(sch.trace.replay(parse(MATMUL)).mod, sch.mod)
    refused(lambda: sch.unsafe_hide_buffer_access("C", "read", [3]), "no number 3")


def test_index_maps_are_saved_in_a_trace():
    sch = schedule(TWO)
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // 4, i, tir.IndexMap.AXIS_SEPARATOR, j % 4))
    trace = Trace.from_json(sch.trace.as_json())
    tir.assert_structural_equal(trace.replay(sch.history[0].mod).mod, sch.mod)
    for text in ("().__class__", "T.int32.__class__", "open(i)[j]", "[x for x in i]"):
        with pytest.raises(tir.TirError, match="is not an index map"):
            Trace.from_json(json.dumps(sch.trace.as_json()).replace("j // 4", text))


@pytest.mark.parametrize("size", [4, 16, 32])
def test_what_is_known_of_swizzled_buffers(size: int) -> None:
    """However many bits: rows are independent, and moving a producer keeps what is read covered."""
    sch = schedule(SWIZZLED)
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j ^ (i % size)))
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.parallel(sch.get_loops("B")[0])
    same(sch)


def test_dependences_of_swizzled_buffers() -> None:
    """Each row comes of the row before: no row can go by itself, but all columns can."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((16, 32), "float32"), C: T.Buffer((16, 32), "float32")):
    B = T.alloc_buffer((16, 32), "float32")
    for i, j in T.grid(16, 32):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(15, 32):
        with T.block("step"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi + 1, vj] = B[vi + 1, vj] + B[vi, vj]
    for i, j in T.grid(16, 32):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
""")
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j ^ (i % 8)))
    i, j = sch.get_loops("step")
    refused(lambda: sch.parallel(i), "step at (i=1, j=0)", "step at (i=0, j=0)")
    sch.reorder(j, i)
    sch.parallel(j)
    same(sch)


def test_copies_of_a_swizzled_buffer() -> None:
    """Whole runs of elements that are exchanged are written where they were before."""
    sch = schedule(SWIZZLED)
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j ^ (i % 8)))
    sch.cache_read("C", 0, "local")
    same(sch)


def test_copies_of_a_swizzled_buffer_that_is_written_in_part() -> None:
    sch = schedule(SWIZZLED.replace("T.grid(16, 32)", "T.grid(16, 28)", 1))
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j ^ (i % 8)))
    refused(lambda: sch.cache_read("C", 0, "local"), "copy a buffer before a swizzled layout")


@pytest.mark.parametrize("block,access", [("P", ("write", 0)), ("C", ("read", 0))])
@pytest.mark.parametrize("by", [1, 3, 6])
def test_a_shifted_layout_is_padded_at_both_ends(block, access, by):
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
    P = T.alloc_buffer((14,), "int32")
    for i in range(14):
        with T.block("P"):
            v = T.axis.spatial(14, i)
            P[v] = A[v] + 1
    for i in range(14):
        with T.block("C"):
            v = T.axis.spatial(14, i)
            C[v] = P[v] * 2
""")
    sch.transform_layout(block, access, lambda i: ((i + by) // 4, (i + by) % 4), pad_value=7)
    same(sch)


@pytest.mark.parametrize("rows", [1, 3, 4, 6])
def test_padding_fills_whole_tiles_also_of_fewer_rows_than_one(rows: int) -> None:
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((ROWS, 4), "float32"), C: T.Buffer((ROWS, 4), "float32")):
    B = T.alloc_buffer((ROWS, 4), "float32")
    for i, j in T.grid(ROWS, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(ROWS, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
""".replace("ROWS", str(rows))
    )
    sch.transform_layout("B", ("write", 0), lambda i, j: (i // 4, j, i % 4), pad_value=0.0)
    assert f"B = T.alloc_buffer(({(rows + 3) // 4}, 4, 4)" in sch.script()
    same(sch)


TILED = """
@T.prim_func
def main(n: T.int32, a: T.handle, c: T.handle):
    A = T.match_buffer(a, (EXTENT,), "float32")
    C = T.match_buffer(c, (EXTENT,), "float32")
    B = T.alloc_buffer((EXTENT,), "float32")
    for i in range(EXTENT):
        with T.block("B"):
            vi = T.axis.spatial(EXTENT, i)
            B[vi] = A[vi] * 2.0
    for i in range(EXTENT):
        with T.block("C"):
            vi = T.axis.spatial(EXTENT, i)
            C[vi] = B[vi] + 1.0
"""


def tiles(sch: tir.Schedule, buffer: str, order: int = 1, pad_value: float | None = 0.0) -> None:
    n = sch.mod["main"].params[0]
    sch.transform_layout(buffer, ("write", 0), lambda i: (i // n, i % n)[::order], pad_value=pad_value)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("extent, tiles_of_3", [("16", 6), ("n + 3", 2), ("n * 4", 4)])
def test_tiles_of_a_symbolic_size_with_padding(extent: str, tiles_of_3: int, order: int) -> None:
    sch = schedule(TILED.replace("EXTENT", extent))
    tiles(sch, "C", order)
    n, size = 3, {"16": 16, "n + 3": 6, "n * 4": 12}[extent]
    given, made = np.arange(size, dtype="float32"), np.full((tiles_of_3, n)[::order], 9, "float32")
    run(sch.mod["main"], n, given, made)
    flat = (made if order == 1 else made.T).reshape(-1)
    np.testing.assert_array_equal(flat[:size], given * 2 + 1)
    assert not flat[size:].any()


def test_tiles_of_a_size_that_may_be_zero_are_refused_where_elements_exist_without_it() -> None:
    for extent, pad_value in (("16", 0.0), ("1", None)):
        sch = schedule(TILED.replace("EXTENT", extent))
        refused(lambda: tiles(sch, "B", pad_value=pad_value), "divides by `n`", "not known to be positive")
    sch = schedule(TILED.replace("EXTENT", "n * 4"))
    tiles(sch, "B")
    same(sch, n=0)
    same(sch, n=3)
    n = sch.mod["main"].params[0]
    below = lambda: sch.transform_layout("C", ("write", 0), lambda i: (i // n - 1, i % n), pad_value=0.0)  # noqa: E731
    refused(below, "can be -1")


def test_a_new_shape_does_not_divide_by_a_size_that_is_only_another_axis() -> None:
    sch = schedule("""
@T.prim_func
def main(a: T.handle, c: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (m, n), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    B = T.alloc_buffer((m, n), "float32")
    for i, j in T.grid(m, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(m, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
""")
    n = sch.mod["main"].params[2]
    tiled = lambda: sch.transform_layout("B", ("write", 0), lambda i, j: (i // n, j, i % n), pad_value=0.0)  # noqa: E731
    refused(tiled, "the new shape of buffer B divides by it")
