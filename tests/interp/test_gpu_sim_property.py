"""Random programs under random GPU schedules: the simulator gives what the program means, in any order of threads, and
has nothing to report."""

from __future__ import annotations

import pytest

from tests.fuzz import steps
from tests.fuzz.steps import Report, Shares, run_gpu_example


def test_every_family_on_the_simulator():
    """What ``make fuzz-gpu`` does at length."""
    count = len(steps.EVERY)
    report = steps.run(count, seed=count * 40, steps=2, families=steps.EVERY, gpu=True)
    assert not report.failures
    assert report.compiled >= count / 3 and report.accepted["bind"] > count


@pytest.mark.parametrize("first", [0, 8])
def test_random_chains(first: int):
    report = Report()
    for seed in range(first, first + 4):
        run_gpu_example(seed, report, 6, families=steps.CHAIN)
    assert report.compiled >= 2


def test_compiled_kernels_are_executed_as_ptx():
    report = Report()
    for seed in range(170, 176):
        run_gpu_example(seed, report, 4, steps.EVERY, Shares(0, 0, executed=1))
    assert 3 <= report.executed <= report.compiled


def test_a_wrong_result_is_a_failure(monkeypatch, capsys):
    def wrong(*args, **kwargs):
        raise AssertionError("not the same")

    monkeypatch.setattr(steps, "assert_same_call", wrong)
    report = steps.run(2, seed=0, gpu=True)
    assert report.failures and report.compiled == len(report.failures)
    assert "not the same" in capsys.readouterr().out
