"""Programs as users of TVM write them: parse, print, schedule with the steps typical for each, and mean the same."""

import pytest

import tir
from tests.user_programs import PROGRAMS, conv, dense, gpu, nn  # noqa: F401  (each registers its programs)
from tir.equal import assert_structural_equal
from tir.interp import run
from tir.schedule.executed import awkward_inputs
from tir.script import parse
from tir.testing.oracle import assert_same_result


def test_there_are_many():
    assert len(PROGRAMS) >= 60


def cases():
    for case in PROGRAMS:
        marks = [pytest.mark.xfail(strict=True, reason=case.gap, raises=tir.ScheduleError)] if case.gap else []
        yield pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", list(cases()))
def test_user_program(case):
    parsed = parse(case.text)
    assert_round_trip(parsed)
    if case.steps is None:
        if case.run:
            func = tir.IRModule.of(parsed)
            name = next(iter(func))
            run(func, *awkward_inputs(func[name]), func=name)
        return
    sch = tir.Schedule(parsed, seed=1)
    before = sch.mod
    case.steps(sch)
    assert_round_trip(sch.mod)
    if case.run:
        for name in before:
            assert_same_result(
                before, sch.mod, awkward_inputs(before[name]), engines=["interpreter"], atol=1e-3, func=name
            )


def assert_round_trip(program):
    printed = program.script()
    again = parse(printed)
    assert_structural_equal(program, again)
    assert again.script() == printed
