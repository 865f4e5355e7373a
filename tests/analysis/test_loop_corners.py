"""Corners of the analysis of loops; each was found by a mutant that no test killed."""

from __future__ import annotations

import tir
from tests.prim_checks import refused
from tir.analysis.structure import entered
from tir.arith import Analyzer
from tir.expr import IntImm, Var

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
        sch = tir.Schedule(tir.script.parse(SPARSE.replace("LIMIT", str(limit))))
        if independent:
            sch.parallel("i")
        else:
            refused(lambda sch=sch: sch.parallel("i"), "i")


def test_which_loops_may_not_run():
    n = Var("n")
    assert entered([IntImm(1), IntImm(4)], Analyzer()) == []
    assert [repr(c) for c in entered([n, n, IntImm(1)], Analyzer())] == ["n > 0"]
