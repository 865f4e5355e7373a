"""Schedules in the classic spelling, as users of TensorIR write them: each is accepted, prints, and replays.

``classic_schedules.txt`` has programs (``== program NAME``), each followed by schedules of it (``== schedule NAME``).
"""

import re

import numpy as np
import pytest
from golden_cases import CLASSIC_PROGRAMS as PROGRAMS
from golden_cases import CLASSIC_SCHEDULES as CASES
from prim_checks import results

import tir
from tir.script import parse


def title(case):
    """The program and the primitives used."""
    return "-".join([case[0], *re.findall(r"sch\.(?!get_)(\w+)\(", case[1])])


def scheduled(program, steps):
    sch = tir.Schedule(parse(program), seed=0)
    exec(steps, {"sch": sch})
    return sch


def test_there_are_many():
    assert len(PROGRAMS) >= 20 and len(CASES) >= 150


@pytest.mark.parametrize("program, steps", CASES, ids=map(title, CASES))
def test_accepted(program, steps):
    sch = scheduled(PROGRAMS[program], steps)
    tir.assert_structural_equal(parse(sch.mod.script()), sch.mod)
    tir.assert_structural_equal(sch.trace.replay(sch.history[0].mod).mod, sch.mod)


# changes of what a parameter is, or of the meaning on the caller's word; sizes that are for 128 only
OTHER = ("unsafe_", "sample_perfect_tile", 'transform_layout("C"', 'transform_layout("update"')
PLAIN = ("matmul", "elementwise", "chain", "row_sum", "argmin")
SMALL = [c for c in CASES if c[0] in PLAIN and not any(word in c[1] for word in OTHER)]


@pytest.mark.parametrize("program, steps", SMALL, ids=map(title, SMALL))
def test_the_same_results_on_eight(program, steps):
    """With 8 for 128, so that most tiles are ragged."""
    sch = scheduled(PROGRAMS[program].replace("128", "8"), steps)
    for a, b in zip(results(sch.history[0].mod["main"], {}), results(sch.mod["main"], {})):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
