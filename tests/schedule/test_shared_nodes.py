"""Programs made by hand in which one node stands at two places: a schedule refuses them, and takes them after ``convert_ssa``."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.analysis.wellformed import verify
from tir.errors import WellFormedError
from tir.script import parse
from tir.stmt import BlockRealize, SeqStmt

ADD = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            t = T.alloc_buffer((1,), "float32")
            t[0] = C[v] + A[v]
            C[v] = t[0]
    for j in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, j)
            C[v] = C[v] * T.float32(2)
"""


def with_loops(change) -> tir.PrimFunc:
    """``ADD`` with its two loops changed."""
    func = parse(ADD)
    root = func.body
    assert isinstance(root, BlockRealize) and isinstance(root.block.body, SeqStmt)
    body = SeqStmt(tuple(change(*root.block.body.stmts)))
    return func.with_body(root.replace(block=root.block.replace(body=body)))


SHARED = {
    "a loop": lambda i, j: (i, i),
    "a loop around others": lambda i, j: (i, j, i),
    "a realization": lambda i, j: (i, j.replace(body=i.body, loop_var=i.loop_var)),
    "a block": lambda i, j: (i, j.replace(body=j.body.replace(block=i.body.block))),
}


@pytest.mark.parametrize("what", SHARED)
def test_each_place_is_a_block_of_its_own(what):
    func = with_loops(SHARED[what])
    with pytest.raises(tir.ScheduleError, match="is defined at two places.*(\n.*)*convert_ssa"):
        tir.Schedule(func)
    sch = tir.Schedule(tir.transform.convert_ssa(func))
    verify(sch.mod)
    assert [b for b in sch.state.index.blocks if b.startswith("C")] == ["C", "C_1"]
    first, second = (sch.get_loops(name)[0] for name in ("C", "C_1"))
    assert first.var is not second.var
    sch.split(second, [None, 4])
    sch.parallel(first)
    sch.cache_read("C_1", "A", "local")
    assert sch.get(first).kind == "parallel" and len(sch.get_loops("C")) == 1 and len(sch.get_loops("C_1")) == 2
    a, c = np.arange(8, dtype="float32"), np.ones(8, "float32")
    results = [c.copy(), c.copy()]
    for program, result in zip((func, sch.mod), results):
        tir.build(program, "interpreter")(a, result)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("what", SHARED)
def test_a_block_at_two_places_is_two_blocks_of_one_name(what):
    with pytest.raises(WellFormedError, match="two blocks are called `C`"):
        verify(with_loops(SHARED[what]))


def test_a_program_that_shares_nothing_stays_the_object_that_it_is():
    func = parse(ADD)
    mod = tir.Schedule(func).mod
    assert tir.Schedule(mod).mod is mod
