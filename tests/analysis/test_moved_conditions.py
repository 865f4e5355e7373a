"""A condition on memory is evaluated just before its block, or at an `if` further out: not the same where it is written."""

from __future__ import annotations

import pytest

from tir.analysis.dependence.equivalence import check
from tir.expr import TRUE
from tir.script import parse
from tir.stmt import For, IfThenElse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), P: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("b"):
            v = T.axis.spatial(4, i)
            T.where(P[0] > 0)
            {written}[v] = 7
"""


@pytest.mark.parametrize("written", ["A", "P"])
def test_a_condition_moved_out_of_a_loop(written):
    before = parse(PROGRAM.format(written=written))
    root = before.body
    loop = root.block.body
    assert isinstance(loop, For)
    bare = loop.replace(body=loop.body.replace(predicate=TRUE))
    after = before.with_body(root.replace(block=root.block.replace(body=IfThenElse(loop.body.predicate, bare))))
    verdicts = [check(before, after), check(after, before)]
    assert [v.is_proved for v in verdicts] == [written == "A"] * 2
    rule = "the condition `P[0] > 0` of block `b` would be evaluated at another time, and what it reads is written"
    assert any(getattr(v, "rule", "") == rule for v in verdicts) == (written == "P")
