"""Pictures as they are drawn, line by line: to change one, run ``pytest --update-golden`` and look at it."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

import tir
from tir.notebook.loop_tree import LoopTree, before_and_after
from tir.script import tir as T

GOLDEN = Path(__file__).parents[1] / "golden/pictures"
sys.path.insert(0, str(Path(__file__).parents[2] / "docs/examples/gpu"))


@pytest.fixture
def recorded(request):
    def compare(name: str, *texts: object) -> None:
        text = "\n".join(line.rstrip() for t in texts for line in str(t).replace("><", ">\n<").splitlines()) + "\n"
        path = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text("utf-8")

    return compare


@T.prim_func
def chain(A: T.Buffer((16, 32), "float32"), D: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16, 32), "float32")
    for i, j in T.grid(16, 32):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, k in T.grid(16, 32):
        with T.block("D"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + B[vi, vk]


def test_trees_of_loops(recorded):
    sch = tir.Schedule(chain, target="llvm -l1_bytes=1024 -l2_bytes=4096 -l3_bytes=65536")
    before = sch.loop_tree()
    sch.vectorize(sch.split("j", [None, 8])[1])
    sch.parallel("B.i")
    sch.unroll("k")
    sch.bind("D.i", "threadIdx.x")
    sch.blockize("j_1")
    found = sch.loop_tree()
    recorded("trees", found, found.svg(), found.drawing(), before_and_after(before, found), LoopTree(()).svg(), LoopTree(()).drawing({"B"}))  # fmt: skip


@T.prim_func
def symbolic(a: T.handle, B: T.Buffer((4, 4), "int8")):
    n = T.int32()
    A = T.match_buffer(a, (n, 2), "int8")
    for i in range(n * 2):
        with T.block("a_block_with_a_very_long_name_that_makes_the_figure_wide"):
            vi = T.axis.spatial(n * 2, i)
            A[vi // 2, vi % 2] = B[0, 0]


def test_a_tree_without_sizes(recorded):
    found = tir.Schedule(symbolic).loop_tree()
    recorded("symbolic_tree", found, found.svg(), found.drawing(()))


@T.prim_func
def parts(A: T.Buffer((4, 5, 3), "float32"), B: T.Buffer((40,), "int8"), C: T.Buffer((4, 4, 4), "float16")):
    for i, j in T.grid(14, 2):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi * 2 + vj + 3] = T.int8(1)
    for i in range(1, 3):
        for j in range(2, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj, 1] = T.cast(A[vi, vj, 2], "float16")


@pytest.mark.parametrize(
    ("name", "buffer", "loop", "at"),
    [
        ("one_dimension", "B", "B.i", None),
        ("inner_loop", "B", "B.j", {"i": 5}),
        ("a_box_inside", "C", "C.i", None),
        ("started_later", "A", "C.j", {"i": 2}),
        ("started_later_by_default", "A", "C.j", None),
    ],
)
def test_pictures_of_accesses(recorded, name, buffer, loop, at):
    found = tir.Schedule(parts).access_picture(buffer, loop, at=at)
    recorded(f"access_{name}", found, found._repr_html_())


@T.prim_func
def wide(A: T.Buffer((17, 130), "float32"), B: T.Buffer((3000,), "float64"), C: T.Buffer((2,), "float32")):
    for i in range(17):
        for j in range(130):
            A[i, j] = T.float32(0)
    for i in range(3000):
        B[i] = T.float64(0)
    for i in range(0):
        C[i] = T.float32(0)


def test_pictures_of_large_buffers_and_of_none(recorded):
    sch = tir.Schedule(wide)
    loops = [loop.name for loop in sch.loop_tree().rows]
    found = [sch.access_picture(name) for name in "ABC"]
    recorded("access_large", loops, *found, *(line for p in found for line in p.svg().replace("><", ">\n<").splitlines() if "<text" in line or "<svg" in line))  # fmt: skip
    for picture in found[:2]:  # where a cell of a figure stands
        grid, last = picture._grid(64), [len(picture._grid(64).cells) - 1, len(picture._grid(64).cells[0]) - 1]
        assert grid.index(0, 0) == [0] * len(picture.shape)
        assert all(0 <= at < size for at, size in zip(grid.index(*last), picture.shape))


@T.prim_func
def banks(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
    for _b in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("tile"):
            S = T.alloc_buffer((32, 32), "float32", scope="shared")
            for i in T.thread_binding(32, thread="threadIdx.x"):
                for j in range(8):
                    for v in T.vectorized(4):
                        with T.block("S"):
                            vi, vj = T.axis.spatial(32, i), T.axis.spatial(32, j * 4 + v)
                            S[vi, vj] = A[vi, vj]
            for i in T.thread_binding(32, thread="threadIdx.x"):
                for j in range(2):
                    with T.block("B"):
                        vi, vj = T.axis.spatial(32, i), T.axis.spatial(32, j)
                        B[vi, vj] = S[vi, vj] + S[vj, vi] + S[vi // 16, 0]


def test_pictures_of_banks(recorded):
    found = tir.Schedule(banks).access_picture("S")
    figures = list(found._repr_html_().split("<svg")[2:])
    texts = [line for figure in figures for line in figure.replace("><", ">\n<").splitlines() if "<text" in line]
    digests = [hashlib.sha256(figure.encode()).hexdigest() for figure in figures]  # of a thousand boxes each
    recorded("banks", *found.banks, found, *texts, *digests)


def test_what_a_picture_cannot_show():
    sch = tir.Schedule(parts)
    for arguments, said in (
        (("X",), "no access to a buffer `X`; there are A, B, C"),
        (("A", "B.i"), "loop `B.i` does not touch `A`"),
        (("B", "B.j", {"k": 0, "l": 1}), "no loop k, l around `B.j`; around it are i"),
        (("B", "B.i", {"j": 0}), "no loop j around `B.i`; around it are none"),
    ):
        with pytest.raises(tir.ScheduleError, match=f"^{said}"):
            sch.access_picture(arguments[0], *arguments[1:2], at=dict(*arguments[2:]))
    for buffer, said in (("A", "loop `i` has the size `n \\* 2`: a picture needs"),):
        with pytest.raises(ValueError, match=f"^{said}"):
            tir.Schedule(symbolic).access_picture(buffer)
    with pytest.raises(ValueError, match="^`A` has the size `n`: a picture needs constant sizes$"):
        sch = tir.Schedule(rows_of_any_number)
        sch.access_picture("A")
    found = tir.Schedule(parts).access_picture("B", "B.i")
    with pytest.raises(IndexError):
        found.elements(14)
    assert found.elements(13) == [(29,), (30,)] and found.summary.startswith(
        "B[40], loop B.i (14 iterations): 28 of 40"
    )


@T.prim_func
def rows_of_any_number(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(4):
        A[i] = T.float32(0)
