"""Views of regions (``T.match_buffer`` in a block): what they declare defines a variable, or is a condition."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.buffer import MatchBufferRegion
from tir.script import parse
from tir.visit import free_vars, walk

ROWS = """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), m: T.int32, n: T.int32):
    for i in range(8):
        with T.block("v"):
            vi = T.axis.spatial(8, i)
            T.reads()
            T.writes(A[vi, 0:8])
            W = T.match_buffer(A[vi, 0:8], {})
            for j in range(8):
                W[0, j] = T.Cast("float32", n)
"""
TARGETS = ["interpreter", "llvm"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("declared", "fits", "contradicts"),
    [
        ("(1, 8), strides=(m, n), offset_factor=1", (8, 1), (3, 5)),
        ("(1, 8), strides=(m, n), offset_factor=1", (8, 1), (8, 2)),
        ("(1, 8), strides=(m + n, 1)", (3, 5), (3, 4)),
        ("(m, 8)", (1, 1), (2, 1)),
        ("(1, m)", (8, 1), (7, 1)),
        ("(1, 8), elem_offset=vi * m", (8, 1), (9, 1)),
    ],
)
def test_what_a_view_declares_by_parameters_is_checked(target, declared, fits, contradicts):
    module = tir.build(parse(ROWS.format(declared)), target)
    a = np.zeros((8, 8), "float32")
    module(a, *fits)
    assert (a == fits[1]).all()
    with pytest.raises(tir.RunError, match="match_buffer `W`.*is declared as"):
        module(a, *contradicts)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "declared", ["(1, 8), elem_offset=0", "(1, 8), elem_offset=vi * 8 + 1", "(1, 8), strides=(8, 2)", "(1, 7)"]
)
def test_constants_that_contradict_the_region_are_refused(target, declared):
    with pytest.raises((tir.RunError, tir.BuildError), match="match_buffer `W`.*is declared as"):
        tir.build(parse(ROWS.format(declared)), target)(np.zeros((8, 8), "float32"), 8, 1)


@pytest.mark.parametrize("target", TARGETS)
def test_the_offset_factor_of_a_view_divides_where_it_starts(target):
    source = ROWS.replace("A[vi, 0:8]", "A[vi, m : m + 4]")
    module = tir.build(parse(source.format("(1, 8), offset_factor=4").replace("(1, 8)", "(1, 4)")), target)
    a = np.zeros((8, 8), "float32")
    with pytest.raises((tir.RunError, tir.BuildError), match="`W`: offset_factor is declared as 4, but"):
        module(a, 1, 1)
    with pytest.raises((tir.RunError, tir.BuildError), match="`W`: offset_factor is declared as 16, but"):
        tir.build(parse(ROWS.format("(1, 8), offset_factor=16")), target)(a, 0, 1)


@pytest.mark.parametrize("target", [*TARGETS, "cuda-sim"])
def test_an_argument_starts_at_its_first_element(target):
    func = parse("""
@T.prim_func
def f(a: T.handle, B: T.Buffer((4,), "int32"), n: T.int32):
    A = T.match_buffer(a, (4,), "int32", elem_offset=n * 2)
    for i in range(4):
        B[i] = A[i]
""")
    a, b = np.arange(8, dtype="int32"), np.zeros(4, "int32")
    module = tir.build(func, target)
    module(a[:4], b, 0)
    assert b.tolist() == [0, 1, 2, 3]
    with pytest.raises(
        tir.RunError, match="`A` of f: its elem_offset is declared as `n \\* 2` = 4, but an array starts"
    ):
        module(a[:4], b, 2)


def test_a_contradiction_stops_a_kernel_on_the_simulator():
    sch = tir.Schedule(parse(ROWS.format("(1, 8), strides=(m, n), offset_factor=1")), target="cuda")
    sch.bind("i", "threadIdx.x")
    module = tir.build(sch.mod, target="cuda-sim")
    a = np.zeros((8, 8), "float32")
    module(a, 8, 1)
    assert (a == 1).all()
    with pytest.raises(tir.RunError, match="is declared as"):
        module(a, 8, 2)


@pytest.mark.parametrize("target", TARGETS)
def test_views_of_views(target):
    func = parse("""
@T.prim_func
def f(A: T.Buffer((8, 16), "int32")):
    for i in range(2):
        with T.block("outer"):
            vi = T.axis.spatial(2, i)
            s = T.int32()
            W = T.match_buffer(A[vi * 4 : vi * 4 + 4, 0:8], (4, 8), "int32", strides=(s, 1), offset_factor=1)
            for j in range(4):
                with T.block("inner"):
                    vj = T.axis.spatial(4, j)
                    o = T.int32()
                    V = T.match_buffer(W[vj, 0:8], (1, 8), "int32", strides=(16, 1), elem_offset=o)
                    V[0, vj] = s + o
""")
    a = np.zeros((8, 16), "int32")
    tir.build(func, target)(a)
    wanted = np.zeros((8, 16), "int32")
    for row in range(8):
        wanted[row, row % 4] = 16 + row * 16
    np.testing.assert_array_equal(a, wanted)


@pytest.mark.parametrize("target", TARGETS)
def test_two_views_that_share_a_variable_agree_about_it(target):
    func = parse(
        """
@T.prim_func
def f(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, WIDE), "int32")):
    for i in range(4):
        with T.block("v"):
            vi = T.axis.spatial(4, i)
            s = T.int32()
            V = T.match_buffer(A[vi, 0:8], (1, 8), "int32", strides=(s, 1))
            W = T.match_buffer(B[vi, 0:8], (1, 8), "int32", strides=(s, 1))
            V[0, 0] = s + W[0, 0]
""".replace("WIDE", "8")
    )
    a = np.zeros((4, 8), "int32")
    tir.build(func, target)(a, np.ones((4, 8), "int32"))
    assert (a[:, 0] == 9).all()
    other = parse(func.script().replace('B: T.Buffer((4, 8), "int32")', 'B: T.Buffer((4, 9), "int32")'))
    with pytest.raises((tir.RunError, tir.BuildError), match=r"match_buffer `W`: strides\[0\]"):
        tir.build(other, target)(a, np.ones((4, 9), "int32"))


@pytest.mark.parametrize("target", TARGETS)
def test_views_of_no_axes(target):
    func = parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.reads(A[v])
            T.writes(B[v])
            W = T.match_buffer(B[v], (), offset_factor=1)
            W[()] = A[v] * T.float32(2)
    for i in T.parallel(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            T.reads(B[v])
            T.writes(C[v])
            R = T.match_buffer(B[v], (), offset_factor=1)
            C[v] = R[()] + T.float32(1)
""")
    a, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tir.build(func, target)(a, c)
    np.testing.assert_array_equal(c, a * 2 + 1)


def test_a_view_keeps_a_condition_on_a_loop_that_a_step_replaces():
    sch = tir.Schedule(parse(ROWS.format("(1, 8), elem_offset=i, offset_factor=1")))
    sch.split("i", [None, 2])
    (view,) = [n.buffer for n in walk(sch.func.body) if isinstance(n, MatchBufferRegion)]
    assert {v.name for v in free_vars(view.elem_offset)} == {"i_0", "i_1"}


@pytest.mark.parametrize("target", ["llvm", "cuda-sim"])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_a_physical_axis_of_their_own_are_not_padded(axis: int, target: str):
    """Padded places would lie beyond the memory of the buffer."""
    func = parse("""
@T.prim_func
def main(A: T.Buffer((4, 6), "int32"), B: T.Buffer((4, 6), "int32")):
    H = T.alloc_buffer((4, 6), "int32")
    for i, j in T.grid(4, 6):
        with T.block("H"):
            vi, vj = T.axis.remap("SS", [i, j])
            H[vi, vj] = A[vi, vj] * 2
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = H[3 - vi, vj]
""")
    sch = tir.Schedule(func)
    sch.set_axis_separator("H", "H", [1])
    sch.storage_align("H", 0, axis, 32, 1)
    a, b = np.arange(24, dtype="int32").reshape(4, 6), np.zeros((4, 6), "int32")
    tir.build(sch.mod, target)(a, b)
    np.testing.assert_array_equal(b, a[::-1] * 2)
