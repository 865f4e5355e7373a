"""Accesses that are surely out of bounds are refused by a build, and nothing else is."""

from __future__ import annotations

import pytest

import tir
from codegen.bounds_check import check_bounds
from tir.script import parse


def program(body: str) -> tir.PrimFunc:
    params = 'A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32"), P: T.Buffer((4,), "int32"), n: T.int32'
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return parse(f"@T.prim_func\ndef main({params}):\n{lines}\n")


@pytest.mark.parametrize("target", ["llvm", "cuda"])
@pytest.mark.parametrize(
    "body, says",
    [
        ("A[16, 0] = 1.0", "`A[16, 0]` is out of bounds: index 0 is 16, and `A` has 16 there"),
        ("for i in range(4):\n    A[i, 0] = B[i, i + 5]", "`B[i, i + 5]` is out of bounds: index 1 is 8 at (i=3)"),
        ("for i in range(4):\n    A[2 - i, 0] = 1.0", "index 0 is -1 at (i=3)"),
        (
            "for i, j in T.grid(16, 8):\n    with T.block('B'):\n        vi, vj = T.axis.remap('SS', [i, j])\n"
            "        B[vi, vj] = A[vi + 1, vj]",
            "`A[vi + 1, vj]` is out of bounds: index 0 is 16 at (i=15)",
        ),
        (
            "L = T.alloc_buffer((3,), 'float32')\nfor i in range(1, 4):\n    L[i] = A[i, 0]",
            "`L[i]` is out of bounds: index 0 is 3 at (i=3), and `L` has 3 there",
        ),
        ("for i in range(4):\n    A[i, 0:4] = B[i, i * 2:i * 2 + 4]", "index 1 is 9 at (i=3), and `B` has 8 there"),
        ("for i in range(4):\n    A[i, T.Ramp(i, -1, 4)] = T.Broadcast(T.float32(1), 4)", "index 1 is -3 at (i=0)"),
        ("for i in range(4):\n    A[i, 0:4] = B[i, T.Broadcast(i + 6, 4)]", "index 1 is 9 at (i=3)"),
    ],
)
def test_refused(body: str, says: str, target: str):
    with pytest.raises(tir.BuildError) as caught:
        tir.build(program(body), target)
    assert says in str(caught.value) and "^^^ here" in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(20):\n    if i < 16:\n        A[i, 0] = 1.0",
        "for i in range(16):\n    A[i, 0] = T.if_then_else(i > 0, B[i - 1, 0], T.float32(0))",
        "for i in range(16):\n    if i > 0 and B[i - 1, 0] > T.float32(0):\n        A[i, 0] = 1.0",
        "for i in range(n):\n    A[i + 20, 0] = 1.0",
        "for i in range(0):\n    A[20, 0] = 1.0",
        "for i in range(4):\n    A[P[i], 0] = 1.0",
        "for i in range(4):\n    A[i, T.Ramp(7 - i, -1, 4)] = B[i, i:i + 4]",
        "for i in range(40):\n    A[i % 16, i // 5] = 1.0",
        "for i, j in T.grid(4, 20):\n    with T.block('b'):\n        vi = T.axis.spatial(4, i)\n"
        "        vj = T.axis.spatial(8, j)\n        T.where(j < 8)\n        A[vi, vj] = 1.0",
        "for i in range(4):\n    for j in range(i + 5):\n        A[i, j] = 1.0",
    ],
)
def test_left(body: str):
    func = program(body)
    check_bounds(tir.IRModule.of(func))


def test_a_prefetch_past_the_end_is_no_access():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            T.evaluate(T.prefetch(T.address_of(A[vi + 16]), 0, 3, 1))
            B[vi] = A[vi]
""")
    check_bounds(tir.IRModule({"main": func}))


def test_both_values_of_a_select_are_read():
    with pytest.raises(tir.BuildError, match=r"`A\[vi \+ 1\]` is out of bounds: index 0 is 16"):
        tir.build(
            parse("""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.Select(vi < 15, A[vi + 1], 0)
"""),
            "llvm",
        )


def test_an_access_through_a_view_is_one_of_what_it_views():
    with pytest.raises(tir.BuildError, match=r"`V\[k\]` is out of bounds: index 0 is 8 at \(i=3, k=2\), and `A` has 8"):
        tir.build(
            parse("""
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            V = T.match_buffer(A[vi * 2:vi * 2 + 2], (2,), "int32")
            for k in range(3):
                V[k] = 1
"""),
            "llvm",
        )
