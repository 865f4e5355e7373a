"""Random candidates compute what the reference does: a short run of ``python -m tests.fuzz.search``, and that it finds faults."""

from __future__ import annotations

from tests.fuzz.search import CPUS, SIMULATED, Report, run, run_example


def test_candidates_of_random_programs_are_right(capsys):
    report = Report()
    for seed in (3, 15, 17):  # small programs
        run_example(seed, report, CPUS, trials=3)
    assert report.candidates.total() >= 5 and sum(report.rules.values()) > 0
    assert "candidates by default" in str(report)


def test_candidates_for_a_gpu_are_right_on_the_simulator():
    report = Report()
    for seed in (13, 22):  # a product in tiles, and a program that is inlined and mapped to threads
        run_example(seed, report, SIMULATED, trials=1)
    assert report.candidates["default"] >= 2 and all(report.rules[of] for of in ("block_tiles", "inline", "threads"))


def test_a_wrong_result_is_a_failure_with_its_program(monkeypatch, capsys):
    class Idle:
        """A program that computes nothing."""

        def __getitem__(self, name):
            return lambda *args: None

    monkeypatch.setattr("codegen.build.build", lambda mod, target: Idle())
    report = run(1, seed=5)
    said = capsys.readouterr().out
    assert report.failures == [5] and "failures 1" in str(report)
    assert "program:" in said and "scheduled:" in said and "def main" in said
