"""Blockized reductions whose iterator does not start at zero: their init runs at its first value."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((2, 16), "int32"), S: T.Buffer((2,), "int32")):
    for i in range(2):
        {loops}
            with T.block("S"):
                vi = T.axis.spatial(2, i)
                vk = T.axis.reduce({domain}, {binding})
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + A[vi, vk]
"""
STARTS = {
    "one loop": ("(1, 4)", "for k in range(1, 4):", "k"),
    "whole parts": ("(4, 12)", "for ko in range(1, 3):\n          for ki in range(4):", "ko * 4 + ki"),
    "parts of one": ("(2, 6)", "for ko in range(1, 3):\n          for ki in range(1):", "ko * 2"),
}


@pytest.mark.parametrize("units", [True, False])
@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("name", STARTS)
def test_init_runs_at_the_first_value(name, at, units):
    domain, loops, binding = STARTS[name]
    func = parse(PROGRAM.format(domain=domain, loops=loops, binding=binding))
    sch = tir.Schedule(func)
    handles = sch.get_loops("S")
    sch.blockize(handles[min(at, len(handles) - 1)], preserve_unit_iters=units)
    data, results = np.arange(32, dtype="int32").reshape(2, 16), np.full((2, 2), 77, "int32")
    tir.interp.run(func, data, results[0])
    tir.interp.run(sch.mod, data, results[1])
    np.testing.assert_array_equal(results[0], results[1])


def test_a_start_that_depends_on_a_loop_outside_is_refused():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((6, 8), "int32"), S: T.Buffer((6,), "int32")):
    for i in range(6):
        for k in range(i, i + 3):
            with T.block("S"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(3, k - i)
                with T.init():
                    S[vi] = 1
                S[vi] = S[vi] + A[vi, vk + vi]
""")
    with pytest.raises(tir.ScheduleError, match="the start of loop `k` depends on i, which is outside"):
        tir.Schedule(func).blockize("k")
    sch = tir.Schedule(func)
    sch.blockize("i")
    tir.testing.assert_same_result(func, sch.mod)
