"""Loops whose iterations write the memory that their bounds are read from: bounds are read once."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from codegen.cuda.kernel import emit_kernel, source_of
from tir.script import parse
from tir.testing import assert_same_result
from tir.testing.oracle import assert_same_call

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), O: T.Buffer((8, 8), "int32")):
    L = T.alloc_buffer((8,), "int32")
    for z in range(8):
        with T.block("L"):
            vz = T.axis.spatial(8, z)
            L[vz] = A[vz] + 3
    for b in range(8):
        for i in range({outer}):
            for j in range({inner}):
                with T.block("O"):
                    vb = T.axis.spatial(8, b)
                    vi = T.axis.opaque(8, i)
                    vj = T.axis.opaque(8, j)
                    O[vb, vj] = O[vb, vj] + vi + 1
                    L[vb] = {change}
"""
BOUNDS = {
    "outer": ("T.min(L[b], 6)", "4"),
    "inner": ("4", "T.min(L[b], 6)"),
    "start": ("2, T.max(L[b], 2)", "3"),
    "neither": ("4", "4"),
}
STEPS = {
    "split": lambda sch: sch.split("i", [None, 2]),
    "split by parts": lambda sch: sch.split("i", [2, None]),
    "split inner": lambda sch: sch.split("j", [None, 4, 2]),
    "fuse": lambda sch: sch.fuse("i", "j"),
    "fuse all": lambda sch: sch.fuse("b", "i"),
    "reorder": lambda sch: sch.reorder("j", "i"),
    "skew": lambda sch: sch.skew("i", "j", 1),
    "tile": lambda sch: sch.tile(["i", "j"], [2, 2]),
}  # fmt: skip


@pytest.mark.parametrize("change", ["T.max(L[vb] - 1, 1)", "0"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("which", BOUNDS)
def test_bounds_are_not_read_again(which, step, change):
    outer, inner = BOUNDS[which]
    func = parse(PROGRAM.format(outer=outer, inner=inner, change=change))
    sch = tir.Schedule(func)
    try:
        STEPS[step](sch)
    except tir.ScheduleError as refusal:
        assert "fault inside" not in str(refusal)
    assert_same_result(func, sch.mod, [np.array([0, 1, 2, 3, -1, 1, 2, 0], "int32"), np.zeros((8, 8), "int32")])


def test_the_refusal_names_the_bound():
    func = parse(PROGRAM.format(outer="T.min(L[b], 6)", inner="4", change="0"))
    with pytest.raises(
        tir.ScheduleError, match=r"loop `i` may change `T.min\(L\[b\], 6\)`, which its bounds are read from"
    ):
        tir.Schedule(func).split("i", [None, 2])


def test_cuda_reads_bounds_once():
    """C would evaluate the condition of a ``for`` before each iteration."""
    func = parse("""
@T.prim_func
def main(V: T.handle("int32"), O: T.handle("int32")):
    V_1 = T.decl_buffer((8,), "int32", data=V)
    O_1 = T.decl_buffer((8,), "int32", data=O)
    b = T.launch_thread("blockIdx.x", 8)
    L = T.allocate([1], "int32", "local")
    L_1 = T.decl_buffer((1,), "int32", data=L, scope="local")
    L_1[0] = V_1[b]
    for i in range(L_1[0]):
        L_1[0] = L_1[0] - 1
        O_1[b] = O_1[b] + 1
    for i in range(V_1[b]):
        O_1[b] = O_1[b] + 1
""")
    text = source_of([emit_kernel(func, "main")])
    assert "const int i_end = L;" in text and "i < i_end;" in text
    assert "i < V[b];" in text  # nothing writes it


TESTED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), M: T.Buffer((2,), "float32"), O: T.Buffer((8,), "float32")):
    S = T.alloc_buffer((8,), "float32", scope="shared")
    V = T.alloc_buffer((2,), "float32", scope="SCOPE")
    at = T.alloc_buffer((1,), "float32", scope="local")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("at"):
            at[0] = T.float32(0)
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("S"):
                vt = T.axis.spatial(8, t)
                S[vt] = A[vt] * T.float32(2)
        with T.block("start"):
            V[0] = T.float32(-1)
            V[1] = T.float32(2)
        for i in range(8):
            with T.block("most"):
                vi = T.axis.opaque(8, i)
                STATEMENT
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("O"):
                vt = T.axis.spatial(8, t)
                O[vt] = S[vt] + at[0] + V[1]
        with T.block("M"):
            M[0] = V[0]
            M[1] = V[1]
"""
STATEMENTS = {
    "if": "if V[0] < S[vi]:\n                    V[0] = S[vi]",
    "all threads and one": "if V[0] < S[vi]:\n                    V[0] = S[vi]\n                    at[0] = T.Cast('float32', vi)",
    "predicate": "T.where(V[0] < S[i])\n                V[0] = S[vi]",
    "else": "if V[0] < S[vi]:\n                    V[0] = S[vi]\n                else:\n                    V[1] = V[1] + V[0]",
    "bound": "for j in range(T.Cast('int32', T.min(T.abs(V[1]), T.float32(3)))):\n                    V[1] = V[1] - T.float32(1)",
}


@pytest.mark.parametrize("scope", ["shared", "global"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_all_threads_test_before_one_writes(name, scope):
    """A condition is read by all threads; what it decides is written by the first."""
    func = parse(TESTED.replace("SCOPE", scope).replace("STATEMENT", STATEMENTS[name]))
    built = tir.build(func, "cuda-sim")
    inputs = [np.array([3, -1, 4, 1, 5, -9, 2, 6], "float32"), np.zeros(2, "float32"), np.zeros(8, "float32")]
    for order in ("forward", "random"):
        built.order = order
        assert_same_call(func, built["main"], inputs, order)
