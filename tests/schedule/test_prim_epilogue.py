"""fuse_reduction_epilogue where the epilogue takes a part of what the reduction makes."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import refused, results, same, schedule

import tir

PARTLY = """
@T.prim_func
def main(A: T.Buffer((7, 2, 3), "float32"), bias: T.Buffer((2,), "float32"), M: T.Buffer((7,), "int32"), D: T.Buffer((7, 2), "float32"), n: T.int32):
    C = T.alloc_buffer((7, 2), "float32")
    for i, j, k in T.grid(7, 2, 3):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vj, vk]
    {around}
            with T.block("D"):
                vi, vj = T.axis.spatial(7, {at}), T.axis.spatial(2, y)
                D[vi, vj] = {value}
"""
VALUES = {"from the start": "C[vi, vj] + bias[vj]", "in the last step": "T.max(C[vi, vj] + bias[vj], T.float32(0))"}
STEPS = {
    "fuse_reduction_epilogue": lambda sch: sch.fuse_reduction_epilogue("C", "D"),
    "reverse_compute_inline": lambda sch: sch.reverse_compute_inline("D"),
}


def partly(around: str, value: str, at: str = "x") -> tir.Schedule:
    return schedule(PARTLY.format(around=around, at=at, value=VALUES[value]))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("bound", [0, 5, 7])
def test_an_if_around_the_epilogue_moves_with_it(step, value, bound):
    sch = partly(f"for x, y in T.grid(7, 2):\n        if x < {bound}:", value)
    STEPS[step](sch)
    assert 'T.block("D")' not in sch.mod["main"].script()
    same(sch, n=1)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "around, at",
    [
        ("for x, y in T.grid(5, 2):", "x"),
        ("for x, y in T.grid(5, 2):", "x + 2"),
        ("for x, y in T.grid(7, n):", "x"),
        ("for x, y in T.grid(T.min(n, 7), 2):", "x"),
        ("for x, y in T.grid(M[0], 2):", "x"),
        ("for r, x, y in T.grid(n, 7, 2):", "x"),
    ],
)
def test_an_epilogue_of_some_results_is_not_run_for_all(step, value, around, at):
    sch = partly(around, value, at)
    refused(lambda: STEPS[step](sch), "D")


@pytest.mark.parametrize("place", ["0", "x"])
def test_a_condition_on_memory_of_the_whole_epilogue(place):
    sch = partly(f"for x, y in T.grid(7, 2):\n        if M[{place}] > 0:", "from the start")
    sch.fuse_reduction_epilogue("C", "D")
    same(sch, n=1)


def test_a_sum_of_as_many_terms_as_a_parameter_says():
    """With none, the epilogue reads what nothing has written: that it is no longer run changes no result."""
    text = PARTLY.format(around="for x, y in T.grid(7, 2):", at="x", value=VALUES["from the start"])
    sch = schedule(text.replace("T.grid(7, 2, 3)", "T.grid(7, 2, n)").replace("(7, 2, 3)", "(7, 2, n)"))
    sch.fuse_reduction_epilogue("C", "D")
    for n in (1, 4):
        before, after = (results(m["main"], {"n": n}) for m in (sch.history[0].mod, sch.mod))
        for a, b in zip(before, after):
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("around", ["for x, y in T.grid(7, 2):", "for x, y in T.grid(7, 2):\n        if x >= 7:"])
@pytest.mark.parametrize("value", VALUES)
def test_a_block_whose_instance_makes_several_results(around, value):
    sch = partly(around, value)
    sch.blockize(sch.get_loops("C")[0])
    refused(lambda: sch.fuse_reduction_epilogue("C_o", "D"), "one instance of block `C_o` stores several results in C")
