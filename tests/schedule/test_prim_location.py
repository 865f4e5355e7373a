"""compute_at, reverse_compute_at, compute_root: what moves, what is refused and with which witness."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import refused, same, schedule

from tir.interp import run

MATMUL = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

TWO = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), "float32")
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for x, y in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [x, y])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""

BLUR = """
@T.prim_func
def main(A: T.Buffer((18, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((18, 16), "float32")
    for i, j in T.grid(18, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for x, y in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [x, y])
            C[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]
"""

SYM = """
@T.prim_func
def main(a: T.handle, c: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    B = T.alloc_buffer((n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for x, y in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [x, y])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""

CHAIN = """
@T.prim_func
def main(A: T.Buffer((8, 12), "float32"), D: T.Buffer((8, 12), "float32")):
    B = T.alloc_buffer((8, 12), "float32")
    for i, j in T.grid(8, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 12):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + T.float32(1)
"""

NESTED = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for o in range(16):
        with T.block("outer"):
            vo = T.axis.spatial(16, o)
            T.reads(A[vo, 0:16])
            T.writes(C[vo, 0:16])
            B = T.alloc_buffer((16,), "float32")
            for i in range(16):
                with T.block("B"):
                    vi = T.axis.spatial(16, i)
                    B[vi] = A[vo, vi] * T.float32(2)
            for j in range(16):
                with T.block("C"):
                    vj = T.axis.spatial(16, j)
                    C[vo, vj] = B[vj] + T.float32(1)
"""

TWO_AT_X = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), "float32")
    for x in range(16):
        for ax1 in range(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [x, ax1])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for y in range(16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [x, y])
                C[vi, vj] = B[vi, vj] + T.float32(1)
"""

TWO_AT_I = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), "float32")
    for i in range(16):
        for j in range(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for ax1 in range(16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, ax1])
                C[vi, vj] = B[vi, vj] + T.float32(1)
"""

BLUR_TAIL = """
@T.prim_func
def main(A: T.Buffer((18, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((18, 16), "float32")
    for x_0 in range(4):
        for ax0, ax1 in T.grid(7, 16):
            with T.block("B"):
                vi = T.axis.spatial(18, x_0 * 5 + ax0)
                vj = T.axis.spatial(16, ax1)
                T.where(x_0 * 5 + ax0 < 18)
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for x_1, y in T.grid(5, 16):
            with T.block("C"):
                vi = T.axis.spatial(16, x_0 * 5 + x_1)
                vj = T.axis.spatial(16, y)
                T.where(x_0 * 5 + x_1 < 16)
                C[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]
"""


def tiled(sch, n, k=4):
    i, j, k_ = sch.get_loops("C")
    io, ii = sch.split(i, [None, n])
    jo, ji = sch.split(j, [None, n])
    ko, ki = sch.split(k_, [None, k])
    sch.reorder(io, jo, ko, ki, ii, ji)
    return jo, ko


def test_compute_at():
    sch = schedule(TWO)
    sch.compute_at("B", "x")
    same(sch, TWO_AT_X)


def test_reverse_compute_at():
    sch = schedule(TWO)
    sch.reverse_compute_at("C", "i")
    same(sch, TWO_AT_I)


def test_unit_loops():
    sch = schedule(TWO)
    sch.compute_at("B", "y")
    same(sch)
    assert sch.get_loops("B") == sch.get_loops("C")
    sch.undo()
    sch.compute_at("B", "y", preserve_unit_loops=True)
    same(sch)
    assert [loop.name for loop in sch.get_loops("B")] == ["x", "y", "ax0", "ax1"]


def test_a_halo_with_a_tail():
    sch = schedule(BLUR)
    outer, _ = sch.split("x", [None, 5])
    sch.compute_at("B", outer)
    same(sch, BLUR_TAIL)
    sch.compute_root("B")
    same(sch)


@pytest.mark.parametrize("n", [4, 5])
def test_write_cache_of_a_tile(n):
    sch = schedule(MATMUL)
    copy = sch.cache_write("C", 0, "local")
    jo, ko = tiled(sch, n)
    sch.reverse_compute_at(copy, jo)
    sch.decompose_reduction("C", ko)
    same(sch)
    assert [loop.name for loop in sch.get_loops(copy)] == ["i_0", "j_0", "ax0", "ax1"]


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("k", [4, 3])
def test_operands_packed_at_ko(n, k):
    sch = schedule(MATMUL)
    copies = [sch.cache_read("C", number, "shared") for number in (0, 1)]
    _, ko = tiled(sch, n, k)
    for copy in copies:
        sch.compute_at(copy, ko)
    same(sch)
    assert [len(sch.get_loops(copy)) for copy in copies] == [5, 5]


def test_symbolic_tiles():
    for reverse in (False, True):
        sch = schedule(SYM)
        rows, columns = ("i", "j") if reverse else ("x", "y")
        a, b = sch.split(rows, [None, 4])
        c, d = sch.split(columns, [None, 4])
        sch.reorder(a, c, b, d)
        if reverse:
            sch.reverse_compute_at("C", c)
        else:
            sch.compute_at("B", c)
        same(sch, n=5, m=7)


@pytest.mark.parametrize("n", [96, 67])
def test_parts_of_packed_panels_are_packed_once(n):
    """A panel of 48 columns is a quotient and a remainder of the column: of one quotient, 16 remainders are 16 columns."""
    sch = schedule(TWO.replace("(16, 16)", f"(16, {n})").replace("T.grid(16, 16)", f"T.grid(16, {n})"))
    sch.split(sch.get_loops("C")[-1], [None, 3, 16])
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 48, j % 48))
    sch.compute_at("B", sch.get_loops("C")[-2])
    assert int(sch.get(sch.get_loops("B")[-1]).extent) == 16
    same(sch)


def test_a_predicated_producer_moves():
    sch = schedule(CHAIN)
    sch.split(sch.fuse("B.i", "B.j"), [None, 5])
    sch.compute_at("B", "D.i")
    same(sch)


def test_inside_a_block():
    sch = schedule(NESTED)
    sch.compute_at("B", "j")
    same(sch)
    refused(lambda: schedule(NESTED).compute_at("B", "o"), "not in the same block", "inside `outer`")


def test_index():
    sch = schedule(MATMUL)
    sch.cache_read("C", 0, "shared")
    for index in (-1, -2, 0):
        sch.compute_at("A_shared", "k", index=index)
        same(sch)
        sch.undo()
    refused(lambda: sch.compute_at("A_shared", "k", index=1), "not yet written", "reads A_shared[0, 0]")
    refused(lambda: sch.compute_at("A_shared", "k", index=5), "index 5", "0 to 0")


def test_neighbours_are_refused_with_a_witness_and_legal_places():
    error = refused(
        lambda: schedule(BLUR).reverse_compute_at("C", "i", index=0),
        'reverse_compute_at("C", "i", index=0): a consumer would read an element not yet written',
        "C at (vi=0, vj=0) reads B[0, 0]",
        "B at (vi=0, vj=0) writes B[0, 0], which would now run later",
    )
    assert error.legal == 'legal locations for "C": root, j'
    error = refused(lambda: schedule(TWO).compute_at("B", "i"), "already is above")
    assert error.legal == 'legal locations for "B": root, x, y'


def test_a_sum_is_not_copied_out_before_it_is_whole():
    sch = schedule(MATMUL)
    copy = sch.cache_write("C", 0, "local")
    error = refused(lambda: sch.reverse_compute_at(copy, "k"), "vk=1) writes C_local[0, 0], which would now run later")
    assert error.legal == 'legal locations for "C_local": root, i, j'


def test_no_consumer_or_producer():
    refused(lambda: schedule(TWO).compute_at("C", "i"), "its consumers are outside this function")
    refused(lambda: schedule(TWO).reverse_compute_at("B", "x"), "its producers are outside this function")


def test_compute_root():
    sch = schedule(TWO)
    start = sch.func
    sch.compute_at("B", "x")
    sch.compute_root("B")
    same(sch)
    assert [loop.name for loop in sch.get_loops("B")] == ["ax0", "ax1"]
    sch = schedule(TWO)
    sch.reverse_compute_at("C", "i")
    sch.compute_root("C")
    same(sch)
    assert sch.func is not start
    refused(lambda: schedule(TWO).compute_root("B"), "shares no loop")


def test_a_condition_that_a_size_decides_moves_along():
    """Found by a reduction in two parts: the condition of the moved block was lost."""
    sch = schedule(
        """
@T.prim_func
def main(a: T.handle, C: T.Buffer((4,), "float32"), m: T.int32):
    A = T.match_buffer(a, (4, m), "float32")
    B = T.alloc_buffer((4, 16), "float32")
    for i, k in T.grid(4, 16):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            T.where(k < m)
            B[vi, vk] = A[vi, vk]
    for i, k in T.grid(4, 16):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(k < m)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi, vk]
"""
    )
    sch.reverse_compute_at("C", "B.i")
    assert sch.script().count("T.where") == 2
    same(sch, m=5)


WINDOW = """
@T.prim_func
def main(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((18,), "float32")
    for i in range(18):
        with T.block("B"):
            v = T.axis.spatial(18, i)
            B[v] = A[v] * 2.0
    for i in range(16):
        with T.block("C"):
            v = T.axis.spatial(16, i)
            C[v] = B[v] + B[v + 2]
"""


def test_a_consumer_follows_as_a_window_slides():
    sch = schedule(WINDOW)
    sch.reverse_compute_at("C", "B.i")
    assert "v = T.axis.spatial(16, i - 2)" in sch.mod.script()
    same(sch)


def test_a_window_of_a_producer_that_runs_backwards():
    sch = schedule(WINDOW.replace("v = T.axis.spatial(18, i)", "v = T.axis.spatial(18, 17 - i)"))
    sch.reverse_compute_at("C", "B.i")
    assert "v = T.axis.spatial(16, 17 - i)" in sch.mod.script()
    same(sch)


def test_a_window_over_rows():
    sch = schedule(BLUR)
    sch.reverse_compute_at("C", "i")
    same(sch)


def test_a_window_in_tiles():
    sch = schedule(WINDOW)
    outer, _ = sch.split("B.i", [None, 4])
    sch.reverse_compute_at("C", outer)
    same(sch)


def test_a_window_whose_elements_are_made_in_no_order_is_refused():
    sch = schedule(WINDOW.replace("v = T.axis.spatial(18, i)", "v = T.axis.spatial(18, (i % 2) * 9 + i // 2)"))
    error = refused(lambda: sch.reverse_compute_at("C", "B.i"), "not yet written")
    assert error.witness


def test_a_tile_that_does_not_divide_the_rows():
    for size in (4, 7, 16):
        sch = schedule(TWO)
        outer, _ = sch.split(sch.fuse("i", "j"), [None, size])
        sch.reverse_compute_at("C", outer)
        same(sch)


TRIANGLE = """
@T.prim_func
def main(A: T.Buffer((5,), "float32")):
    C = T.alloc_buffer((5,), "float32")
    P = T.alloc_buffer((5, 8), "float32")
    for z in range(5):
        with T.block("Z"):
            vz = T.axis.spatial(5, z)
            C[vz] = T.float32(0)
    for i in range(5):
        for j in range(i + 1):
            with T.block("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = A[vi - vj]
            with T.block("C"):
                vi = T.axis.spatial(5, i)
                vj = T.axis.reduce(8, j)
                C[vi] = C[vi] + P[vi, vj]
"""


def test_compute_root_runs_no_instance_that_did_not_run():
    """Also where nothing reads the result, here ``C``: it would read what has no value."""
    refused(lambda: schedule(TRIANGLE).compute_root("C"), "block `C` would run where it did not before")
    sch = schedule(TRIANGLE)
    sch.compute_root("P")
    same(sch)


def test_a_block_that_never_runs_stays_so_at_the_root():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((2,), "int32"), n: T.int32, O: T.Buffer((2,), "int32")):
    S = T.alloc_buffer((2,), "int32")
    for i in range(2):
        for k in range(n):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + A[vi]
        for k in range(n):
            with T.block("O"):
                vi = T.axis.spatial(2, i)
                O[vi] = S[vi]
""")
    before = sch.mod
    sch.compute_root("O")
    for n in (0, 2):
        found = np.zeros((2, 2), "int32")
        for mod, result in zip((before, sch.mod), found):
            run(mod, np.ones(2, "int32"), n, result)
        assert found[0].tolist() == found[1].tolist() == [n, n]
