"""Steps on blocks that stand under a let between their loops: what they access is told with the let's value in its place."""

from __future__ import annotations

import pytest
from prim_checks import same

import tir
from tir.script import parse

LETS = """
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), D: T.Buffer((8, 16), "float32")):
    C = T.alloc_buffer((8, 16), "float32")
    for i in range(8):
        with T.LetStmt(7 - i) as m:
            for j in range(16):
                with T.LetStmt(m * 16 + j) as n:
                    with T.block("C"):
                        vi = T.axis.spatial(8, n // 16)
                        vj = T.axis.spatial(16, n % 16)
                        C[vi, vj] = A[vi, vj] * T.float32(2)
    for x in range(8):
        with T.LetStmt(VALUE) as m:
            for y in range(16):
                with T.block("D"):
                    vi = T.axis.spatial(8, m)
                    vj = T.axis.spatial(16, y)
                    D[vi, vj] = C[vi, vj] + T.float32(1)
"""
STEPS = {
    "cache_read": lambda sch: sch.cache_read("D", "C", "local"),
    "cache_read of an input": lambda sch: sch.cache_read("C", "A", "local"),
    "cache_write": lambda sch: sch.cache_write("D", "D", "local"),
    "cache_write of what is read": lambda sch: sch.cache_write("C", "C", "local"),
    "stage": lambda sch: sch.stage("D", "C", "x"),
    "stage of a result": lambda sch: sch.stage("D", "D", "x"),
    "compute_at": lambda sch: sch.compute_at("C", "y"),
    "reverse_compute_at": lambda sch: sch.reverse_compute_at("D", "i"),
    "reverse_compute_at inside": lambda sch: sch.reverse_compute_at("D", "j"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_let_between_the_loops_of_a_block_is_no_obstacle(step):
    sch = tir.Schedule(parse(LETS.replace("VALUE", "x")))
    STEPS[step](sch)
    same(sch)


def test_a_value_that_a_call_makes_is_not_moved():
    call = parse(LETS.replace("VALUE", 'T.call_extern("int32", "row", x)'))
    answer = tir.Schedule(call).can.cache_read("D", "C", "local")
    assert not answer and "`m` would be used outside" in answer.reason
