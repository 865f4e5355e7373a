"""rolling_buffer: overlapping windows become circular buffers, nothing is made twice, and what would be lost is refused."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import refused, same, schedule

import tir
from tir.expr import BufferLoad, Var, const
from tir.interp import run
from tir.stmt import BlockRealize, BufferStore, seq
from tir.visit import rewrite

STENCIL = """
@T.prim_func
def main(A: T.Buffer((14, 18), "float32"), C: T.Buffer((12, 16), "float32")):
    B = T.alloc_buffer((14, 18), "float32")
    for i, j in T.grid(14, 18):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(12, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 1, vj + 1] + B[vi + 2, vj + 2]
"""

CONV = """
@T.prim_func
def main(A: T.Buffer((12, 12), "int32"), C: T.Buffer((8, 8), "int32")):
    B = T.alloc_buffer((10, 10), "int32")
    for i0, i1 in T.grid(2, 2):
        for i, j, k in T.grid(6, 6, 3):
            with T.block("B"):
                vi = T.axis.spatial(10, i0 * 4 + i)
                vj = T.axis.spatial(10, i1 * 4 + j)
                vk = T.axis.reduce(3, k)
                with T.init():
                    B[vi, vj] = 0
                B[vi, vj] = B[vi, vj] + A[vi + vk, vj]
        for i, j, k in T.grid(4, 4, 3):
            with T.block("C"):
                vi = T.axis.spatial(8, i0 * 4 + i)
                vj = T.axis.spatial(8, i1 * 4 + j)
                vk = T.axis.reduce(3, k)
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + B[vi + vk, vj + vk]
"""

LINE = """
@T.prim_func
def main(A: T.Buffer((12,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((10,), "float32")
    for i in range(8):
        for ax0 in range(3):
            with T.block("B"):
                vi = T.axis.spatial(10, i + ax0)
                B[vi] = A[vi] * T.float32(2)
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + B[vi + 2]
"""


def runs(sch: tir.Schedule, name: str) -> int:
    """How often the body of block ``name`` runs, counted by a counter stored in the program itself."""
    func = sch.mod["main"]
    counter = tir.decl_buffer((1,), "int32", "runs")
    zero = (const(0),)

    def counted(item):
        if isinstance(item, BlockRealize) and item.block.name == name:
            bump = BufferStore(counter, BufferLoad(counter, zero) + 1, zero)
            reads = (*item.block.reads, counter.full_region())
            block = item.block.replace(
                body=seq([bump, item.block.body]), reads=reads, writes=(*item.block.writes, counter.full_region())
            )
            return item.replace(block=block)
        return None

    handle = Var("count", "handle")
    changed = func.replace(
        params=(*func.params, handle), buffer_map={**func.buffer_map, handle: counter}, body=rewrite(func.body, counted)
    )
    args = [np.zeros([int(n) for n in b.shape], b.dtype) for b in (*func.buffer_map.values(), counter)]
    run(changed, *args)
    return int(args[-1][0])


def test_one_axis():
    sch = schedule(STENCIL)
    sch.compute_at("B", "C.i")
    assert runs(sch, "B") == 12 * 3 * 18
    sch.rolling_buffer("B", 0)
    assert runs(sch, "B") == 14 * 18
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((14, 18), "float32"), C: T.Buffer((12, 16), "float32")):
    B = T.alloc_buffer((3, 18), "float32")
    for i in range(12):
        for ax0, ax1 in T.grid(3, 18):
            with T.block("B"):
                vi = T.axis.opaque(14, i + ax0)
                vj = T.axis.spatial(18, ax1)
                T.where(i < 1 or ax0 >= 2)
                B[vi % 3, vj] = A[vi, vj] * T.float32(2)
        for j in range(16):
            with T.block("C"):
                vi = T.axis.opaque(12, i)
                vj = T.axis.spatial(16, j)
                T.reads(B[0:3, vj : vj + 3])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vi % 3, vj] + B[(vi + 1) % 3, vj + 1] + B[(vi + 2) % 3, vj + 2]
""",
    )


def test_two_axes_make_nothing_twice():
    sch = schedule(STENCIL)
    sch.tile("C", [4, 4])
    sch.compute_at("B", "j_0")
    sch.rolling_buffer("B", "B")
    assert [int(s) for s in buffer_of(sch).shape] == [6, 18]
    assert runs(sch, "B") == 14 * 18
    same(sch)


def test_loops_that_follow_on_count_as_one():
    sch = schedule(STENCIL)
    sch.split("C.i", [3, 4])
    sch.compute_at("B", "i_1")
    sch.rolling_buffer("B", 0)
    assert [int(s) for s in buffer_of(sch).shape] == [3, 18]
    assert runs(sch, "B") == 14 * 18
    same(sch)


def test_a_reduction():
    sch = schedule(CONV)
    sch.rolling_buffer("B", 0)
    assert [int(s) for s in buffer_of(sch).shape] == [6, 10]
    same(sch)


def test_unrolled_loops_roll_too():
    sch = schedule(LINE)
    sch.unroll("i")
    sch.rolling_buffer("B", 0)
    same(sch)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("columns", [2, 4, 16])
def test_any_tile_of_a_stencil(rows, columns):
    sch = schedule(STENCIL)
    sch.tile("C", [rows, columns])
    sch.compute_at("B", "j_0")
    assert sch.can.rolling_buffer("B", 0)
    sch.rolling_buffer("B", 0)
    same(sch)


def test_a_chain_of_windows():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), D: T.Buffer((12,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    C = T.alloc_buffer((14,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi] + B[vi + 2]
    for i in range(12):
        with T.block("D"):
            vi = T.axis.spatial(12, i)
            D[vi] = C[vi] + C[vi + 2]
"""
    )
    sch.split("D.i", [3, 4])
    sch.compute_at("C", "i_0")
    sch.rolling_buffer("C", 0)
    sch.compute_at("B", "i_0")
    sch.rolling_buffer("B", 0)
    assert runs(sch, "B") == 16 and runs(sch, "C") == 14
    same(sch)


def buffer_of(sch: tir.Schedule):
    return sch.mod["main"].body.block.alloc_buffers[0]


def test_refuses_an_output():
    sch = schedule(
        LINE.replace('    B = T.alloc_buffer((10,), "float32")\n', "").replace(
            'C: T.Buffer((8,), "float32")', 'C: T.Buffer((8,), "float32"), B: T.Buffer((10,), "float32")'
        )
    )
    refused(lambda: sch.rolling_buffer("B", 0), "buffer B is not allocated by block `root`")


def test_refuses_another_writer():
    sch = schedule(
        LINE.replace(
            '        with T.block("C"):',
            '        with T.block("B2"):\n'
            '            vi = T.axis.spatial(8, i)\n            B[vi] = T.float32(1)\n        with T.block("C"):',
        )
    )
    refused(lambda: sch.rolling_buffer("B", 0), "block `B2` writes B too")


def test_refuses_a_buffer_that_nothing_reads():
    sch = schedule(LINE.replace("B[vi] + B[vi + 2]", "A[vi]"))
    refused(lambda: sch.rolling_buffer("B", 0), "nothing reads buffer B")


def test_refuses_where_no_loop_is_shared():
    sch = schedule(STENCIL)
    refused(lambda: sch.rolling_buffer("B", 0), "share no loop", "legal: compute_at first")


def test_refuses_windows_that_do_not_overlap():
    sch = schedule(LINE.replace("range(3)", "range(1)").replace("+ B[vi + 2]", ""))
    refused(lambda: sch.rolling_buffer("B", 0), "overlaps the one of the next iteration", "by 1, and it is 1 long")
    still = schedule(LINE.replace("i + ax0", "ax0").replace("B[vi] + B[vi + 2]", "B[0] + B[2]"))
    refused(lambda: still.rolling_buffer("B", 0), "no loop moves it")
    back = schedule(LINE.replace("i + ax0", "7 - i + ax0").replace("(8, i)", "(8, 7 - i)"))
    refused(lambda: back.rolling_buffer("B", 0), "loop i moves it backwards")


def test_refuses_a_parallel_loop():
    sch = schedule(LINE)
    sch.parallel("i")
    refused(lambda: sch.rolling_buffer("B", 0), "loop `i` is parallel")


def test_refuses_a_pointer():
    sch = schedule(LINE.replace("C[vi] = B[vi] + B[vi + 2]", 'C[vi] = T.call_extern("float32", "f", B.data)'))
    refused(lambda: sch.rolling_buffer("B", 0), "B")


KEPT_LONGER = (
    LINE
    + """    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            C[vi] = C[vi] + B[vi]
"""
)

SKIPS = LINE.replace("C[vi] = B[vi] + B[vi + 2]", "C[vi] = B[vi] + B[T.max(vi - 2, 0)]")


def test_refuses_an_element_gone_before_it_is_read():
    sch = schedule(SKIPS)
    error = refused(lambda: sch.rolling_buffer("B", 0), "would be gone before it is read", "of axis 0 only 3 are kept")
    assert len(error.witness) == 2 and "reads B[" in error.witness[0] and "writes B[" in error.witness[1]
    sch.rolling_buffer("B", 0, unsafe=True)
    with pytest.raises(AssertionError):
        same(sch)


def test_refuses_a_reader_outside_the_loop():
    refused(lambda: schedule(KEPT_LONGER).rolling_buffer("B", 0), "share no loop")


def test_refuses_what_was_not_all_the_same():
    """The window reads an input that the loop overwrites: making an element early and late gives different values."""
    sch = schedule(
        LINE.replace(
            '        with T.block("C"):',
            """        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi + 2] = A[vi + 2] + T.float32(1)
        with T.block("C"):""",
        )
    )
    error = refused(lambda: sch.rolling_buffer("B", 0), "without making elements of `B` again")
    assert error.witness


def test_names_of_buffers():
    refused(lambda: schedule(LINE).rolling_buffer("B", 1), "no number 1", "0 (B)")
    refused(lambda: schedule(LINE).rolling_buffer("B", "Z"), "`Z`")


UNEVEN = """
@T.prim_func
def main(A: T.Buffer((80,), "int32"), C: T.Buffer((12,), "int32")):
    B = T.alloc_buffer((80,), "int32")
    for i in range(80):
        with T.block("B"):
            v = T.axis.spatial(80, i)
            B[v] = A[v] + 1
    for i in LOOP:
        with T.block("C"):
            v = T.axis.spatial(12, i - START)
            C[v] = B[PLACE] + B[PLACE + 1] + B[PLACE + 3]
"""


@pytest.mark.parametrize("loop,start", [("range(12)", "0"), ("range(3, 15)", "3")])
@pytest.mark.parametrize("place", ["v * 5 // 2", "v * 8 // 3", "v // 2", "v // 2 + v * 2", "v * 5 // 2 - v"])
def test_a_window_that_moves_unevenly(loop, start, place):
    sch = schedule(UNEVEN.replace("LOOP", loop).replace("START", start).replace("PLACE", place))
    sch.compute_at("B", "C.i")
    sch.rolling_buffer("B", 0)
    assert [int(n) for n in sch.get_block("C") and sch.mod["main"].body.block.alloc_buffers[0].shape] == [4]
    same(sch)


@pytest.mark.parametrize("place", ["v * 10 // 3", "40 - v * 5 // 2", "v * 5 // 2 % 20", "v * v"])
def test_a_window_that_moves_too_far_or_back(place):
    sch = schedule(UNEVEN.replace("LOOP", "range(12)").replace("START", "0").replace("PLACE", f"({place})"))
    sch.compute_at("B", "C.i")
    refused(lambda: sch.rolling_buffer("B", 0))
