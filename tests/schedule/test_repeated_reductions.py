"""Reductions whose instances repeat: their init runs again, so the order of their iterations matters."""

from __future__ import annotations

import pytest
from prim_checks import refused, same, schedule

REPEATED = """
@T.prim_func
def main(A: T.Buffer((4, 3), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid({rows}, {columns}):
        with T.block("B"):
            vi = T.axis.spatial(4, {row})
            vk = T.axis.reduce(3, {column})
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
"""
FUSED = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    q = T.int32()
    m = T.int32()
    n = T.int32()
    A = T.match_buffer(a, (q, m, n, 4), "int32")
    C = T.match_buffer(c, (q, m, n), "int32")
    for h, i, j, k in T.grid(q, m, n, 4):
        with T.block("C"):
            vh, vi, vj, vk = T.axis.remap("SSSR", [h, i, j, k])
            with T.init():
                C[vh, vi, vj] = 0
            C[vh, vi, vj] = C[vh, vi, vj] + A[vh, vi, vj, vk]
"""


@pytest.mark.parametrize(("rows", "row"), [(8, "i // 2"), (8, "i % 4")])
def test_loops_over_rows_that_repeat_stay_outside_of_the_reduction(rows, row):
    sch = schedule(REPEATED.format(rows=rows, row=row, columns=3, column="k"))
    refused(lambda: sch.reorder("k", "i"), "would change their order")


def test_a_loop_that_repeats_a_term_stays_inside_of_the_reduction():
    sch = schedule(REPEATED.format(rows=4, row="i", columns=6, column="k // 2"))
    outer, inner = sch.split("k", [None, 2])
    refused(lambda: sch.reorder(inner, outer), "would change their order")


@pytest.mark.parametrize(("columns", "column"), [(6, "k // 2"), (6, "k % 3")])
def test_the_init_of_a_block_of_repeated_terms_stays_with_them(columns, column):
    sch = schedule(REPEATED.format(rows=4, row="i", columns=columns, column=column))
    refused(lambda: sch.blockize("k"), "init of block `B`")


@pytest.mark.parametrize("head", ["for t, i, k in T.grid(2, 4, 6)", "for i, t, k in T.grid(4, 2, 6)"])
def test_a_loop_that_repeats_whole_reductions_stays_around_the_block(head):
    text = REPEATED.format(rows=4, row="i", columns=6, column="k").replace("for i, k in T.grid(4, 6)", head)
    sch = schedule(text.replace("(4, 3)", "(4, 6)").replace("reduce(3", "reduce(6"))
    sch.split("k", [None, 3])
    sch.blockize("k_1")
    same(sch)


def test_repeated_reductions_inside_of_the_new_block_stay_in_order():
    text = REPEATED.format(rows=4, row="i", columns=6, column="k").replace(
        "i, k in T.grid(4, 6)", "i, t, k in T.grid(4, 2, 6)"
    )
    sch = schedule(text.replace("(4, 3)", "(4, 6)").replace("reduce(3", "reduce(6"))
    refused(lambda: sch.blockize("t"), "init of block `B`")


@pytest.mark.parametrize("fused", [2, 3])
def test_rows_of_symbolic_sizes_that_are_fused_do_not_repeat(fused):
    sch = schedule(FUSED)
    *rows, last = sch.get_loops("C")
    row = sch.fuse(*rows[3 - fused :])
    sch.reorder(last, row)
    same(sch, q=2, m=2, n=3)


@pytest.mark.parametrize(("rows", "columns", "loop"), [(2, 0, "i"), (2, 0, "k")])
def test_a_reduction_over_nothing_keeps_its_init(rows, columns, loop):
    sch = schedule(REPEATED.format(rows=rows, row="i", columns=columns, column="k"))
    refused(lambda: sch.decompose_reduction("B", loop), "loop `k` has no iteration", "its init, before")


def test_partial_results_of_each_row_are_not_made_before_the_rows():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((2, 4), "int32"), Y: T.Buffer((2, 3), "int32")):
    R = T.alloc_buffer((3,), "int32")
    for i in range(2):
        for j, k in T.grid(3, 4):
            with T.block("R"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    R[vj] = 0
                R[vj] = R[vj] + A[vi, vk] * vj
        for j in range(3):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = R[vj]
""")
    refused(lambda: sch.rfactor(sch.get_loops("R")[2], 0), "write the same element of R", "(vi=1, vj=0) goes to [0]")


def test_partial_results_of_instances_that_update_one_element_are_refused():
    """Each iteration of `i` would begin the partial result anew, and only the last would be added up."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((5,), "int32"), O: T.Buffer((1,), "int32")):
    for i, u in T.grid(5, 1):
        with T.block("sum"):
            vi, vu = T.axis.remap("SR", [i, u])
            O[0] = O[0] + A[vi]
""")
    refused(lambda: sch.rfactor(sch.get_loops("sum")[1], 0), "two instances of block `sum` write the same element of O")
