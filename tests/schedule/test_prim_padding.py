"""decompose_padding: what it gives, and what it refuses with which words."""

from __future__ import annotations

import pytest
from prim_checks import refused, same, schedule

import tir

PAD = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((20,), "float32")):
    for i in range(20):
        with T.block("B"):
            vi = T.axis.spatial(20, i)
            B[vi] = {value}
"""

PAD2 = """
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((10, 8), "float32")):
    for i, j in T.grid(10, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(vi >= 2 and vi - 2 < 6, A[vi - 2, vj], T.float32(0))
"""


def test_box():
    sch = schedule(PAD.format(value="T.if_then_else(2 <= vi and vi < 18, A[vi - 2], T.float32(0))"))
    fill = sch.decompose_padding("B", "i")
    assert fill.name == "B_pad_const"
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((20,), "float32")):
    for i in range(20):
        with T.block("B_pad_const"):
            vi = T.axis.spatial(20, i)
            B[vi] = T.float32(0)
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi + 2] = A[vi]
""",
    )


@pytest.mark.parametrize(
    "condition",
    [
        "vi > 1 and 17 >= vi",
        "vi - 2 >= 0 and vi - 2 < 16",
        "18 > vi and 1 < vi",
        "2 <= vi and vi < 18 and vi >= 1",
        "vi + 3 <= 20 and 0 <= vi - 2",
        "0 - vi <= -2 and 17 - vi >= 0",
    ],
)
def test_spellings_of_one_box(condition):
    sch = schedule(PAD.format(value=f"T.if_then_else({condition}, A[vi - 2], T.float32(0))"))
    sch.decompose_padding("B", "i")
    assert int(sch.get(sch.get_loops("B")[0]).extent) == 16
    same(sch)


def test_under_an_outer_loop():
    sch = schedule(PAD2)
    sch.reorder("j", "i")
    sch.decompose_padding("B", "i")
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((10, 8), "float32")):
    for j in range(8):
        for i in range(10):
            with T.block("B_pad_const"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.float32(0)
        for i in range(6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi + 2, vj] = A[vi, vj]
""",
    )


def test_inner_loop_leaves_a_predicate():
    """The bounded loop is outside: its iterations stay, and the copy asks."""
    sch = schedule(PAD2)
    sch.decompose_padding("B", "j")
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((10, 8), "float32")):
    for i in range(10):
        for j in range(8):
            with T.block("B_pad_const"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.float32(0)
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i >= 2 and i - 2 < 6)
                B[vi, vj] = A[vi - 2, vj]
""",
    )


def test_after_split():
    sch = schedule(PAD.format(value="T.if_then_else(2 <= vi and vi < 18, A[vi - 2], T.float32(0))"))
    sch.split("i", [None, 8])
    sch.decompose_padding("B", "i_0")
    same(sch)
    sch.undo()
    sch.decompose_padding("B", "i_1")
    same(sch)
    sch.vectorize(sch.get_loops("B_pad_const")[-1])
    same(sch)


def test_dilated_and_select():
    sch = schedule(PAD.format(value="T.if_then_else(vi % 2 == 0, A[vi // 2], T.float32(1))"))
    sch.decompose_padding("B", "i")
    same(sch)
    sch = schedule(PAD.format(value="T.Select(vi < 16, A[vi % 16], T.float32(-1))"))
    sch.decompose_padding("B", "i")
    same(sch)


def test_an_empty_inside_keeps_the_predicate():
    sch = schedule(PAD.format(value="T.if_then_else(vi < 0, A[0], T.float32(3))"))
    sch.decompose_padding("B", "i")
    same(sch)


def test_refusals():
    sch = schedule(PAD.format(value="A[vi // 2]"))
    refused(lambda: sch.decompose_padding("B", "i"), "does not store T.if_then_else", "A[vi // 2]")
    sch = schedule(PAD.format(value="T.if_then_else(vi < 16, A[vi % 16], A[0])"))
    refused(lambda: sch.decompose_padding("B", "i"), "the padding `A[0]`", "reads memory")
    sch = schedule(PAD.format(value="T.if_then_else(vi < 16, B[vi] + T.float32(1), T.float32(0))"))
    refused(lambda: sch.decompose_padding("B", "i"), "reads B, which the fill would overwrite first")


def test_refuses_a_user_under_the_loop():
    text = """
@T.prim_func
def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 20), "float32"), C: T.Buffer((4, 20), "float32")):
    for i in range(4):
        for j in range(20):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(vj < 16, A[vi, vj], T.float32(0))
        for j in range(20):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]
"""
    sch = schedule(text)
    error = refused(lambda: sch.decompose_padding("B", "i"), "block `C` under loop `i` uses B")
    assert error.legal == "j"
    sch.decompose_padding("B", "B.j")
    same(sch)


def test_refuses_two_writers_of_one_element():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi // 2] = T.if_then_else(vi % 2 == 0, A[vi], T.float32(0))
"""
    )
    refused(lambda: sch.decompose_padding("B", "i"), "write the same element of B")
    sch.decompose_padding("B", "i", unsafe=True)
    assert isinstance(sch, tir.Schedule)


def test_handle_means_the_copy():
    sch = schedule(PAD.format(value="T.if_then_else(2 <= vi and vi < 18, A[vi - 2], T.float32(0))"))
    block = sch.get_block("B")
    sch.decompose_padding(block, "i")
    assert sch.get(block).name == "B"
    assert [b.name for b in sch.get_child_blocks("root")] == ["B_pad_const", "B"]


WINDOW = """
@T.prim_func
def main(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
    P = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("P"):
            v = T.axis.spatial(16, i)
            P[v] = T.if_then_else(CONDITION, A[v - 1], 7)
    for o, i in T.grid(7, 2):
        with T.block("C"):
            v = T.axis.spatial(14, o * 2 + i)
            C[v] = P[v] + P[v + 1] + P[v + 2]
"""


@pytest.mark.parametrize("condition", ["v >= 1 and v < 15", "v >= 1 and v < 15 and v % 3 > 0"])
@pytest.mark.parametrize("parallel", [False, True])
def test_fill_once_above_the_consumer(condition, parallel):
    sch = schedule(WINDOW.replace("CONDITION", condition))
    sch.compute_at("P", "C.o")
    outer = sch.get_loops("C")[0]
    if parallel:
        sch.parallel(outer)
        refused(lambda: sch.decompose_padding("P", outer), "the fill would come between")
        return
    sch.decompose_padding("P", outer)
    same(sch)


@pytest.mark.parametrize(
    "before,after",
    [
        ('    P = T.alloc_buffer((16,), "int32")\n', ""),
        ("C[v] = P[v] + P[v + 1] + P[v + 2]", "P[v] = P[v] + P[v + 1]"),
        ("v >= 1 and v < 15", "v >= 1 and A[v - 1] > 1"),
    ],
)
def test_a_fill_that_the_consumer_would_see(before, after):
    text = WINDOW.replace("CONDITION", "v >= 1 and v < 15").replace(before, after)
    if not after:
        text = text.replace("def main(", 'def main(P: T.Buffer((16,), "int32"), ')
    sch = schedule(text)
    sch.compute_at("P", "C.o", unsafe=True)
    refused(lambda: sch.decompose_padding("P", sch.get_loops("C")[0]), "the fill would come between")
