"""Corners of the analysis of loops; each was found by a mutant that no test killed."""

from __future__ import annotations

import pytest

import tir
from tests.prim_checks import refused
from tests.tier_checks import tiers
from tir.analysis.dependence.equivalence import SameMeaning
from tir.analysis.dependence.tiers import Tier
from tir.analysis.evaluation import entered
from tir.arith import Analyzer
from tir.expr import IntImm, Var
from tir.script import parse
from tir.stmt import BlockRealize
from tir.visit import rewrite

SPARSE = """
@T.prim_func
def f(P: T.Buffer((8,), "int32"), B: T.Buffer((32,), "int32")):
    for i in range(8):
        for k in range(P[i]):
            if 0 <= k and k < LIMIT:
                B[i * 4 + k] = 1
"""


def test_a_loop_whose_trip_count_is_data_may_run_in_a_parallel_one():
    for limit, independent in ((4, True), (5, False)):
        sch = tir.Schedule(parse(SPARSE.replace("LIMIT", str(limit))))
        if independent:
            sch.parallel("i")
        else:
            refused(lambda sch=sch: sch.parallel("i"), "i")


def test_which_loops_may_not_run():
    n = Var("n")
    assert entered([IntImm(1), IntImm(4)], Analyzer()) == []
    assert [repr(c) for c in entered([n, n, IntImm(1)], Analyzer())] == ["n > 0"]


NESTED = """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    for i in range(8):
        with T.block("outer"):
            vi = T.axis.spatial(8, i)
            T.where(i < 9)
            for j in range(1):
                with T.block("inner"):
                    B[0] = A[vi]
"""


@pytest.mark.parametrize("part", ["iter_values", "predicate"])
def test_a_change_of_a_block_around_is_seen(part):
    """The last iteration that runs leaves its value."""
    func = parse(NESTED)

    def changed(node):
        if not isinstance(node, BlockRealize) or node.block.name != "outer":
            return None
        (value,) = node.iter_values
        return node.replace(iter_values=(7 - value,)) if part == "iter_values" else node.replace(predicate=value < 4)

    after = func.with_body(rewrite(func.body, changed))
    assert SameMeaning(func, func).answer().is_proved
    assert not SameMeaning(func, after).answer().is_proved


SWIZZLED = """
@T.prim_func
def f(A: T.Buffer((8, 4), "int32"), B: T.Buffer((8, 4), "int32"), O: T.Buffer((8, 4), "int32")):
    for i in range(8):
        for j in range(4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj ^ (vi % 4)] = A[vi, vj]
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = B[vi, vj ^ (vi % MODULUS)]
"""


def test_two_swizzles_of_one_buffer_are_not_one():
    tir.Schedule(parse(SWIZZLED.replace("MODULUS", "4"))).parallel("j")
    refused(lambda: tir.Schedule(parse(SWIZZLED.replace("MODULUS", "2"))).parallel("j"), "`j`")


NESTS = """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = READ[v]
"""


@pytest.mark.parametrize(("read", "free"), [("A", True), ("B", False)])
def test_unchanged_nests_in_another_order(read, free):
    func = parse(NESTS.replace("READ", read))
    body = func.body.block.body
    swapped = func.with_body(rewrite(func.body, lambda n: n.replace(stmts=n.stmts[::-1]) if n is body else None))
    assert SameMeaning(func, func).answer().is_proved
    assert SameMeaning(func, swapped).answer().is_proved == free


@pytest.mark.parametrize(
    ("text", "step", "places"),
    [
        (NESTS.replace("READ[v]", "B[7 - v]"), lambda sch: sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0]), 2),
        (NESTS.replace("B[v] = A[v]", "B[v] = B[7 - v]"), lambda sch: sch.parallel(sch.get_loops("B")[0]), 1),
    ],
)
def test_a_conflict_marks_each_statement_once(text, step, places):
    error = refused(lambda: step(tir.Schedule(parse(text.replace("READ", "B")))))
    assert str(error).count("^ here") == places, error


SCATTERED = """
@T.prim_func
def f(A: T.Buffer((16,), "int32"), P: T.Buffer((1,), "int32")):
    B = T.alloc_buffer((1,), "int32")
    for i in range(4):
        B[0] = 3 - i
        A[START[0] + i] = i
"""


def test_an_index_tells_no_iteration_where_it_reads_what_changes():
    tir.Schedule(parse(SCATTERED.replace("START", "P"))).parallel("i")
    refused(lambda: tir.Schedule(parse(SCATTERED.replace("START", "B"))).parallel("i"), "depends on data")


PAIRED = """
@T.prim_func
def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for f in range(32):
        A[f % 8 * 4 + f // 8] = 1
        B[f] = A[SECOND]
"""


@pytest.mark.parametrize(
    "second, independent",
    [("f % 8 * 4 + f // 8", True), ("f % 8 * 4 + f // 8 + 1", False), ("f % 4 * 8 + f // 4", False)],
)
def test_two_accesses_of_the_same_injective_index_meet_in_one_iteration(second, independent):
    sch = tir.Schedule(parse(PAIRED.replace("SECOND", second)))
    with tiers(without=[Tier.SETS]):
        if independent:
            sch.parallel("f")
        else:
            refused(lambda: sch.parallel("f"), "cannot prove")


VECTORS = """
@T.prim_func
def f(A: T.Buffer((96,), "int32")):
    for f in range(FIRST):
        A[T.ramp(f % 4 * 16 + f // 4 * 8, 1, 8)] = T.broadcast(1, 8)
"""


@pytest.mark.parametrize("iterations, independent", [(8, True), (12, False)])
def test_vectors_tell_the_iteration_that_writes_them(iterations, independent):
    sch = tir.Schedule(parse(VECTORS.replace("FIRST", str(iterations))))
    with tiers(without=[Tier.SETS]):
        if independent:
            sch.parallel("f")
        else:
            refused(lambda: sch.parallel("f"), "cannot prove")
