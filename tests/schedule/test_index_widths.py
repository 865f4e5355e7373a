"""int32 loops beside int64 loops and buffers: what a step computes from both is in one type."""

from __future__ import annotations

import pytest

from tests.prim_checks import same, schedule
from tir.testing.oracle import assert_roundtrip

REDUCTION = """
@T.prim_func
def main(A: T.Buffer((SIZE, SIZE), "int32"), C: T.Buffer((8,), "int32")):
    for i, k in T.grid(ROWS, COLUMNS):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
"""
MIXED = [
    ("T.int64(8)", "8", "T.int64(8)"),
    ("8", "T.int64(8)", "8"),
    ("T.int64(8)", "8", "8"),
    ("8", "8", "T.int64(8)"),
]


def mixed(size, rows, columns):
    return schedule(REDUCTION.replace("SIZE", size).replace("ROWS", rows).replace("COLUMNS", columns))


@pytest.mark.parametrize("widths", MIXED)
@pytest.mark.parametrize("decomposed", [False, True])
def test_reindex_in_a_block_of_blocks(widths, decomposed):
    sch = mixed(*widths)
    outer, inner = sch.split("k", [None, 4])
    block = sch.blockize(inner)
    if decomposed:
        sch.decompose_reduction(block, outer)
    sch.reindex_cache_read("C", "A", "local", lambda *v: tuple(reversed(v)))
    same(sch)


@pytest.mark.parametrize("widths", MIXED)
@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.reindex("C", "A"),
        lambda s: s.reindex_cache_write("C", "C", "local", lambda i, k: (7 - i,)),
        lambda s: s.read_at("i", "C", "A", "local"),
        lambda s: s.read_at(s.split("i", [None, 3])[0], "C", "A", "local"),
        lambda s: s.write_at("i", "C", "C", "local"),
        lambda s: s.rfactor(s.split("k", [None, 3])[1], 0),
        lambda s: s.pad_einsum("C", [3, 5]),
        lambda s: s.stage("C", "A", "i"),
        lambda s: s.loop_partition("i", [3]),
    ],
)
def test_a_step(step, widths):
    sch = mixed(*widths)
    step(sch)
    same(sch)


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.compute_at("B", s.split("C.i", [None, 5])[0]),
        lambda s: s.compute_at(s.cache_read("C", "B", "local"), "C.i"),
        lambda s: s.cache_index("C", "global", 0),
        lambda s: s.read_at(s.split("C.i", [None, 5])[0], "C", "B", "local"),
        lambda s: s.reindex_cache_write("B", "B", "local", lambda i: (15 - i,)),
        lambda s: s.compute_inline("B"),
    ],
)
def test_a_window_of_another_width(step):
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((T.int64(16),), "int32"), C: T.Buffer((16,), "int32")):
    B = T.alloc_buffer((T.int64(16),), "int32")
    for i in range(T.int64(16)):
        with T.block("B"):
            v = T.axis.spatial(T.int64(16), i)
            B[v] = A[v] + 1
    for i in range(12):
        with T.block("C"):
            v = T.axis.spatial(16, i + 2)
            C[v] = B[v] + B[v + 1] + B[v - 2]
""")
    step(sch)
    same(sch)


@pytest.mark.parametrize("row", ["i % 2", "(i & 1)"])
def test_a_layout_that_mixes_the_axes_bitwise(row):
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4, T.int64(4)), "float32"), C: T.Buffer((4, T.int64(4)), "float32")):
    B = T.alloc_buffer((4, T.int64(4)), "float32")
    for i, j in T.grid(4, T.int64(4)):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(4, T.int64(4)):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0
""")
    sch.transform_layout("B", "B", eval(f"lambda i, j: [i, j ^ {row}]"))
    assert_roundtrip(sch.mod)
    same(sch)


WINDOWS = """
@T.prim_func
def main(A: T.Buffer((12, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((12, 8), "float32")
    for i, j in T.grid(MADE, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[WRITE, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(USED, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[READ, vj] + B[READ + 2, vj]
"""


@pytest.mark.parametrize(
    ("made", "write", "used", "read"),
    [
        ("10", 'T.Cast("int64", vi)', "8", "vi"),
        ("10", "vi", "8", 'T.Cast("int64", vi)'),
        ("T.int64(10)", "vi", "8", 'T.Cast("int64", vi)'),
        ("T.int64(10)", 'T.Cast("int32", vi)', "8", "vi"),
        ("10", "vi", "T.int64(8)", 'T.Cast("int32", vi)'),
    ],
)
def test_windows_whose_indices_are_cast(made, write, used, read):
    text = WINDOWS.replace("MADE", made).replace("WRITE", write).replace("USED", used).replace("READ", read)
    sch = schedule(text)
    sch.compute_at("B", "C.i")
    sch.rolling_buffer("B", 0)
    same(sch)


def test_loops_of_two_widths_are_merged():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
    for j in range(T.int64(8)):
        with T.block("C"):
            vi = T.axis.spatial(T.int64(8), j)
            C[vi] = B[vi] * 2
""")
    sch.merge("i", "j")
    same(sch)


def test_a_block_layout_of_iterators_of_two_widths():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((2, 4), "float32"), B: T.Buffer((2, 4), "float32")):
    for i, j in T.grid(T.int64(2), 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
            if vj == 3:
                B[vi, vj] = A[vi, vj] + 1.0
""")
    sch.transform_block_layout("B", lambda i, j: (j, i))
    same(sch)
