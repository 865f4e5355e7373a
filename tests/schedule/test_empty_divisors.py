"""Regions that divide by a size: a step computes them where the block that they come from need not run."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import tir
from tir.script import parse

PROGRAM = """
@T.prim_func
def main(n: T.int32, A: T.Buffer((8,), "int32"), D_handle: T.handle, S: T.Buffer((8,), "int32")):
    D = T.match_buffer(D_handle, (n,), "int32")
    B = T.alloc_buffer((n,), "int32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = D[vi] * 2
    for i in range(8):
        for k in range({extent}):
            with T.block("S"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.opaque({extent}, k)
                S[vi] = {value}
"""
PROGRAMS = {
    "loop that may be empty": PROGRAM.format(extent="n", value="A[vi] + B[(7 - vi) % n] + vk"),
    "condition in the body": PROGRAM.format(extent=4, value="A[vi] + T.if_then_else(n > 0, B[(7 - vi) % n], vk)"),
}
STEPS = {
    "prefetch": lambda s: s.prefetch("S.i", "S", "B", 2),
    "read_at": lambda s: s.read_at("S.i", "S", "B", "global"),
    "compute_at": lambda s: s.compute_at("B", "S.i"),
    "cache_read": lambda s: s.compute_at(s.cache_read("S", "B", "global"), "S.i"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("n", [0, 1, 3, 8, 11])
def test_a_size_of_zero(program, step, n):
    func = parse(PROGRAMS[program])
    sch = tir.Schedule(func)
    if step != "prefetch":  # a copy of what is read only where a condition holds may be refused
        with contextlib.suppress(tir.ScheduleError):
            STEPS[step](sch)
    else:
        STEPS[step](sch)
    data, given = np.arange(1, n + 1, dtype="int32"), np.arange(8, dtype="int32")
    wanted, found, built = np.zeros((3, 8), "int32")
    tir.interp.run(func, n, given, data, wanted)
    tir.interp.run(sch.mod, n, given, data, found)
    tir.build(sch.mod, "llvm")(n, given, data, built)
    assert wanted.tolist() == found.tolist() == built.tolist()


def test_what_is_requested_ahead_divides_by_no_zero():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), S: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("S"):
            vi = T.axis.spatial(8, i)
            S[vi] = A[48 // (8 - vi)]
""")
    sch = tir.Schedule(func)
    sch.prefetch("S.i", "S", "A", 3)
    found = np.zeros(8, "int32")
    tir.interp.run(sch.mod, np.arange(64, dtype="int32"), found)
    assert found.tolist() == [48 // (8 - i) for i in range(8)]
