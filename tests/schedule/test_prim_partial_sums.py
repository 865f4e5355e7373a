"""Partial results of a reduction whose length is not a multiple of their number: moved, and their init split off."""

from __future__ import annotations

import pytest
from prim_checks import refused, same, schedule

from tir.testing import assert_same_result

SUMS = """
@T.prim_func
def main(A: T.Buffer((3, {n}), "float32"), B: T.Buffer((3,), "float32")):
    for i, k in T.grid(3, {n}):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""


@pytest.mark.parametrize("n", [5, 8, 21])
def test_init_of_partial_results(n: int):
    sch = schedule(SUMS.format(n=n))
    _, part = sch.split("k", [None, 8])
    partial = sch.rfactor(part, 0)
    row = sch.get_loops("B")[0]
    sch.compute_at(partial, row, preserve_unit_loops=True)
    *_, part, _, outer = sch.get_loops(partial)
    sch.reorder(outer, part)
    init = sch.decompose_reduction(partial, outer)
    for block in (partial, init):
        sch.vectorize(sch.get_loops(block)[-1])
    assert_same_result(schedule(SUMS.format(n=n)).mod, sch.mod)


def test_a_reduction_that_starts_late_for_some_results():
    late = SUMS.format(n=21).replace("vi, vk =", "T.where(2 <= i + k)\n            vi, vk =")
    sch = schedule(late)
    sch.decompose_reduction("B", "k")
    assert "T.where(i >= 2)" in sch.mod.script()  # the other results never begin: they add to what was there
    same(sch)


def test_a_condition_on_memory_that_the_same_loops_write_is_not_asked_again_after_them():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((3,), "int32"), P: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    for i in range(3):
        for u in range(1):
            with T.block("one"):
                vi = T.axis.spatial(3, i)
                T.where(P[i] > 0)
                B[vi] = B[vi] + A[vi]
        with T.block("write"):
            vi = T.axis.spatial(3, i)
            P[vi] = A[vi]
""")
    refused(lambda: sch.rfactor("u", 0), "condition on memory that `write` writes in the same loops")


def test_an_extent_that_depends_on_an_iterator_is_refused_where_a_parameter_is_a_pointer():
    sch = schedule("""
@T.prim_func
def main(R: T.Buffer((6,), "int32"), A: T.Buffer((20,), "int32"), O: T.Buffer((5,), "int32")):
    for i in range(5):
        with T.block("row"):
            vi = T.axis.spatial(5, i)
            for k in range(vi + 1):
                with T.block("O"):
                    vk = T.axis.reduce(vi + 1, k)
                    with T.init():
                        O[vi] = 0
                    O[vi] += A[R[vi] + vk]
""")
    refused(lambda: sch.rfactor("k", 0), "changes while the function runs")
