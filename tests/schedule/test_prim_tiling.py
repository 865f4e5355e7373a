"""tile, skew, fission, unswitch: what each gives, and what it refuses with which words."""

from __future__ import annotations

import numpy as np
from prim_checks import refused, same, schedule

import tir

SCALE = """
@T.prim_func
def main(A: T.Buffer((16, 30), "float32"), B: T.Buffer((16, 30), "float32")):
    for i, j in T.grid(16, 30):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""

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

STENCIL = """
@T.prim_func
def main(A: T.Buffer((5, 18), "float32")):
    for t, i in T.grid(4, 16):
        with T.block("A"):
            vt, vi = T.axis.remap("SS", [t, i])
            A[vt + 1, vi + 1] = A[vt, vi] + A[vt, vi + 2]
"""

CHAIN = """
@T.prim_func
def main(A: T.Buffer((17,), "float32"), B: T.Buffer((17,), "float32"), C: T.Buffer((17,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi{write}] = A[vi] * T.float32(2)
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi{read}] + T.float32(1)
"""

BRANCH = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
        if {condition}:
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi] + T.float32(1)
"""


# ---------------------------------------------------------------- tile


def test_tile_two_loops():
    sch = schedule(SCALE)
    loops = sch.tile(["i", "j"], [4, 8])
    assert [loop.name for loop in loops] == ["i_0", "j_0", "i_1", "j_1"]
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((16, 30), "float32"), B: T.Buffer((16, 30), "float32")):
    for i_0, j_0, i_1, j_1 in T.grid(4, 4, 4, 8):
        with T.block("B"):
            vi = T.axis.spatial(16, i_0 * 4 + i_1)
            vj = T.axis.spatial(30, j_0 * 8 + j_1)
            T.where(j_0 * 8 + j_1 < 30)
            B[vi, vj] = A[vi, vj] * T.float32(2)
""",
    )


def test_tile_levels():
    sch = schedule(MATMUL)
    loops = sch.tile(["i", "j"], [[4, 2], [2, 2]])
    assert [loop.name for loop in loops] == ["i_0", "j_0", "i_1", "j_1", "i_2", "j_2"]
    assert [loop.name for loop in sch.get_loops("C")] == ["i_0", "j_0", "i_1", "j_1", "i_2", "j_2", "k"]
    same(sch)


def test_tile_block_takes_its_innermost_loops():
    sch = schedule(MATMUL)
    sch.tile("C", [4, 8])
    assert [loop.name for loop in sch.get_loops("C")] == ["i", "j_0", "k_0", "j_1", "k_1"]
    same(sch)


def test_tile_is_one_step():
    sch = schedule(SCALE)
    i, _j = sch.get_loops("B")
    sch.tile("B", [4, 5])
    refused(lambda: sch.split(i, [None, 2]), "i_0, i_1")
    sch.undo()
    assert [loop.name for loop in sch.get_loops("B")] == ["i", "j"]


def test_tile_refusals():
    sch = schedule(SCALE)
    refused(lambda: sch.tile(["i"], [4, 8]), "1 loops but 2 factors")
    refused(lambda: sch.tile("B", [4, 8, 2]), "`B`", "2 loops", "3 factors")
    refused(lambda: sch.tile(["i", "j"], [4, [2, 2]]), "1, 2")
    refused(lambda: sch.tile(["i", "j"], [4, 8], tail="exact"), "do not divide", "30")
    refused(lambda: sch.tile(["i", "j"], [4, 8], tail="cut"), "guard")


def test_tile_refuses_a_reversed_dependence():
    sch = schedule(STENCIL)
    error = refused(lambda: sch.tile(["t", "i"], [2, 4]), "not yet written", "A at (")
    assert len(error.witness) == 2
    sch.tile(["t", "i"], [2, 4], unsafe=True)


# ---------------------------------------------------------------- skew


def test_skew():
    sch = schedule(STENCIL)
    assert sch.skew("t", "i", 1).name == "i_s"
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((5, 18), "float32")):
    for t, i_s in T.grid(4, 19):
        with T.block("A"):
            vt = T.axis.spatial(4, t)
            vi = T.axis.spatial(16, i_s - t)
            T.where(t <= i_s and i_s < t + 16)
            A[vt + 1, vi + 1] = A[vt, vi] + A[vt, vi + 2]
""",
    )


def test_skew_makes_a_stencil_tileable():
    sch = schedule(STENCIL)
    refused(lambda: sch.reorder("i", "t"), "not yet written")
    sch.skew("t", "i", 1)
    sch.tile(["t", "i_s"], [2, 4])
    same(sch)


def test_skew_of_two_reorders():
    sch = schedule(STENCIL)
    sch.skew("t", "i", 2)
    sch.reorder("i_s", "t")
    same(sch)


def test_skew_backwards():
    sch = schedule(STENCIL)
    sch.skew("t", "i", -1)
    same(sch)
    refused(lambda: sch.reorder("i_s", "t"), "not yet written")


def test_skew_refusals():
    sch = schedule(STENCIL)
    refused(lambda: sch.skew("i", "t"), "not outside")
    refused(lambda: sch.skew("t", "i", 0), "does not skew")
    sch.parallel("i", unsafe=True)
    refused(lambda: sch.skew("t", "i"), "parallel")


# ---------------------------------------------------------------- fission


def test_fission():
    sch = schedule(CHAIN.format(write="", read=""))
    assert [loop.name for loop in sch.fission("i")] == ["i_0", "i_1"]
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((17,), "float32"), B: T.Buffer((17,), "float32"), C: T.Buffer((17,), "float32")):
    for i_0 in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i_0)
            B[vi] = A[vi] * T.float32(2)
    for i_1 in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i_1)
            C[vi] = B[vi] + T.float32(1)
""",
    )


def test_fission_where_the_reader_lags():
    sch = schedule(CHAIN.format(write=" + 1", read=""))
    sch.fission("i", 1)
    same(sch)


def test_fission_refuses_an_overwritten_read():
    sch = schedule(CHAIN.format(write="", read=" + 1"))
    error = refused(lambda: sch.fission("i"), "overwritten before it is read", "C at (i=0) reads B[1]")
    assert "B at (i=1) writes B[1] first" in error.witness
    sch.fission("i", unsafe=True)
    assert len(sch.get_child_blocks("root")) == 2


def test_fission_refuses_a_scratch_value():
    """One element that carries a value between the parts is overwritten before it is used."""
    sch = schedule(CHAIN.format(write=" * 0", read=" * 0"))
    refused(lambda: sch.fission("i"), "B[0]")


def test_fission_keeps_a_carried_dependence():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((17,), "float32"), B: T.Buffer((17,), "float32")):
    for i in range(16):
        with T.block("A"):
            vi = T.axis.spatial(16, i)
            A[vi + 1] = A[vi] + B[vi]
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi + 1] = A[vi] * T.float32(2)
"""
    )
    refused(lambda: sch.fission("i"), "not yet written")


def test_fission_at():
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    for i in T.parallel(4):
        for j in range(8):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(1)
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]
"""
    sch = schedule(text)
    first, second = sch.fission("i", [2])
    assert sch.get(first).kind == sch.get(second).kind == "parallel"
    assert [b.name for b in sch.get_child_blocks(first)] == ["A", "B"]
    same(sch)
    assert len(schedule(text).fission("i", at=[1, 2])) == 3


def test_fission_refusals():
    sch = schedule(SCALE)
    refused(lambda: sch.fission("i"), "one statement")
    sch = schedule(CHAIN.format(write="", read=""))
    refused(lambda: sch.fission("i", 2), "2 statements", "1 to 1")
    refused(lambda: sch.fission("i", 0), "nothing on one side")


# ---------------------------------------------------------------- unswitch


def test_unswitch_with_rest():
    sch = schedule(BRANCH.format(condition="n > 4"))
    sch.unswitch("i")
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32"), n: T.int32):
    if n > 4:
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] * T.float32(2)
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi] + T.float32(1)
    else:
        for i in range(16):
            with T.block("B_else"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] * T.float32(2)
""",
        n=5,
    )
    same(sch, n=3)


def test_unswitch_else():
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32"), n: T.int32):
    for i, j in T.grid(4, 8):
        if n > 4:
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        else:
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
"""
    sch = schedule(text)
    sch.unswitch("i")
    assert [b.name for b in sch.get_child_blocks("root")] == ["B", "D"]
    same(sch, n=5)
    same(sch, n=3)
    sch = schedule(text)
    sch.unswitch("j")
    assert [loop.name for loop in sch.get_loops("D")] == ["i", "j"]
    same(sch, n=3)


def test_unswitch_predicate():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.where(i < 12 and n > 4)
            B[vi] = A[vi]
"""
    )
    sch.unswitch("i")
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    if n > 4:
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                T.where(i < 12)
                B[vi] = A[vi]
""",
        n=5,
    )


def test_unswitch_refusals():
    sch = schedule(BRANCH.format(condition="i > 4"))
    refused(lambda: sch.unswitch("i"), "`i > 4` changes with i")
    sch = schedule(BRANCH.format(condition="B[0] > T.float32(0)"))
    refused(lambda: sch.unswitch("i"), "reads B, which the loop writes")
    refused(lambda: schedule(SCALE).unswitch("i"), "no condition under loop `i`")
    sch = schedule(BRANCH.format(condition="A[0] > T.float32(0)"))
    sch.unswitch("i")
    same(sch, n=1)


def test_hoist_does_not_speak_of_loops_bound_to_threads():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in T.thread_binding(4, "blockIdx.x"):
        for j in range(8):
            if j > i:
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]
""")
    refused(lambda: sch.hoist("B"), "`j > i` changes with j")


def test_unswitch_does_not_ask_what_was_not_asked():
    """A condition that reads memory stays where the loop may not run, or where another condition guards it."""
    text = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in range({extent}):
        if {guard}:
            if A[n] > T.float32(0):
                with T.block("B"):
                    vi = T.axis.spatial(16, i)
                    B[vi] = A[vi]
"""
    sch = schedule(text.format(extent="n", guard="n >= 0"))
    refused(lambda: sch.unswitch("missing"), "missing")
    sch.unswitch("i")
    assert isinstance(sch.mod["main"].root.body, tir.IfThenElse)
    sch = schedule(text.format(extent="16", guard="n > i"))
    refused(lambda: sch.unswitch("i"), "could fail where the loop does not ask it")


def test_unswitch_does_not_ask_what_an_inner_loop_may_not():
    text = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16, 4), "float32"), n: T.int32):
    for i in range(16):
        for j in range({extent}):
            if A[n] > T.float32(0):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi]
"""
    refused(lambda: schedule(text.format(extent="n")).unswitch("i"), "could fail where the loop does not ask it")
    sch = schedule(text.format(extent="4"))
    sch.unswitch("i")
    assert isinstance(sch.mod["main"].root.body, tir.IfThenElse)


def test_new_loops_do_not_evaluate_ranges_that_an_empty_loop_never_did():
    """A skewed loop, or one split by covering factors, runs where the loop before was empty: a range below it may divide
    by what is 0 then."""
    f = tir.script.parse("""
        @T.prim_func
        def main(a: T.handle, n: T.int32, m: T.int32):
            A = T.match_buffer(a, (4, 8), "int32")
            for t in range(4):
                for i in range(T.min(n, 8)):
                    for k in range(24 // m):
                        with T.block("A"):
                            vt, vi = T.axis.remap("SS", [t, i])
                            vk = T.axis.reduce(24 // m, k)
                            A[vt, vi] = A[vt, vi] + 1
    """)
    steps = (lambda sch: sch.skew("t", "i", 1), lambda sch: sch.split("i", [2, 4]))
    for step in steps:
        sch = tir.Schedule(f)
        step(sch)
        for n, m in ((0, 0), (0, 3), (5, 3), (9, 3)):
            for call in (lambda *args: tir.interp.run(sch.mod["main"], *args), tir.build(sch.mod)):
                result = np.zeros((4, 8), "int32")
                call(result, n, m)
                assert (result[:, : min(n, 8)] == 8).all() and result.sum() == 32 * min(n, 8)
