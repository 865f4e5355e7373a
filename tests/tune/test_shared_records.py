"""Tuners that share records: each ends with the best that any of them has measured, however small the space."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest
from test_search import MATMUL, Computed, tuned

import tir
from tir.canonical import canonical
from tir.script import parse
from tir.tune.machine import machine_key
from tir.tune.records import Records
from tir.tune.runner import Measurement
from tir.tune.session import thread_count


def small(sch: tir.Schedule) -> None:
    """Three schedules."""
    i, j, _ = sch.get_loops("C")
    size = sch.sample_categorical([2, 4, 8], [1.0, 1.0, 1.0])
    sch.split(i, [None, size], names=["rows", "row"])
    sch.split(j, [None, 16], names=["columns", "column"])


def traces() -> list:
    """Of all schedules of the space, the default among them."""
    made = tuned(space=small, trials=8)
    return [trial.trace for trial in made.trials]


def claim_all(records: Records) -> list[int]:
    from tir.tune.naming import Naming

    naming, target = Naming(tir.IRModule.of(parse(MATMUL))), tir.Target.of("llvm")
    here = machine_key(target, thread_count(target))
    found = [records.claim(naming.program, here, naming.canonical(trace)) for trace in traces()]
    assert len(found) >= 3 and None not in found
    return found


@pytest.mark.parametrize("count", [3])
def test_processes_that_share_a_small_space_all_give_its_best(tmp_path, count):
    code = f"""
import sys, time; sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_shared_records import *
import tir.tune.search
from tir.tune.learner import Nearest
tir.tune.search.learner = lambda seed, count: Nearest()
sys.stdin.readline()
made = tuned(space=small, trials=6, seconds=60, clock=time.monotonic, db={str(tmp_path / "a.db")!r}, batch=2,
             runner=Computed(lambda job: time.sleep(0.1)))
print(made.best_seconds)
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([sys.executable, "-c", code], **pipes) for _ in range(count)]
    said = [one.communicate("go\n", timeout=120) for one in running]
    assert [one.returncode for one in running] == [0] * count, said
    assert [out for out, _ in said] == ["1.0\n"] * count
    with Records(tmp_path / "a.db") as made:
        assert made.count() == len(traces())


def test_results_that_come_while_candidates_wait_are_taken(tmp_path):
    path = tmp_path / "a.db"
    first = []

    def other_tuner(job):
        if not first:  # the first job: the others are drawn, and wait
            first.append(job)
            with Records(path) as records:
                for trial in claims:
                    records.finish(trial, Measurement(0, "ok", 1.0, (1.0,)))

    with Records(path) as records:
        default, *claims = claim_all(records)
        records.release([default])
    result = tuned(space=small, db=path, batch=1, runner=Computed(other_tuner), clock=time.monotonic, seconds=30)
    assert result.best_seconds == 1.0 and "record" in {t.origin for t in result.trials}


def test_the_results_of_others_are_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("tir.tune.search.WAITING_SECONDS", 0.01)
    path = tmp_path / "a.db"
    with Records(path) as records:
        claims = claim_all(records)

    def finish():
        time.sleep(0.1)
        with Records(path) as other:
            for number, trial in enumerate(claims):
                other.finish(trial, Measurement(0, "ok", 3.0 - number / 10, (3.0,)))

    thread = threading.Thread(target=finish)
    thread.start()
    result = tuned(
        space=small,
        db=path,
        clock=time.monotonic,
        seconds=60,
        runner=Computed(lambda job: pytest.fail("measured twice")),
    )
    thread.join()
    assert result.best_seconds == 3.0 - (len(claims) - 1) / 10 and {t.origin for t in result.trials} == {"record"}


def test_where_no_result_comes_in_time_that_is_what_the_error_says(tmp_path, monkeypatch):
    monkeypatch.setattr("tir.tune.search.WAITING_SECONDS", 0.01)
    with Records(tmp_path / "a.db") as records:
        claim_all(records)
    with pytest.raises(tir.TirError, match="other processes that share the records had claimed every schedule"):
        tuned(space=small, db=tmp_path / "a.db", clock=time.monotonic, seconds=0.3)


def test_what_a_dead_process_has_claimed_is_measured(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    monkeypatch.setattr("tir.tune.records.process_name", lambda: f"{os.uname().nodename}:an earlier boot:1")
    with Records(path) as records:
        claim_all(records)
    monkeypatch.undo()
    monkeypatch.setattr("tir.tune.records._is_gone", lambda owner: "an earlier boot" in owner)
    monkeypatch.setattr("tir.tune.search.learner", lambda seed, count: pytest.fail("too few to learn from"))
    assert tuned(space=small, db=path, patience=2).best_seconds == 1.0


def test_a_failed_first_trial_is_told_as_itself(tmp_path):
    with pytest.raises(tir.TirError, match="no trial gave a result"):
        tuned(space=small, trials=1, runner=Computed(bad=[0]), db=tmp_path / "a.db")


def test_claims_are_counted_by_program_and_machine():
    made, named = Records(None), canonical(parse(MATMUL))
    assert made.claimed(named, "here", {}) == 0
    trial = made.claim(named, "here", [])
    assert (
        made.claimed(named, "here", {}),
        made.claimed(named, "there", {}),
        made.claimed(named, "here", {"n": 1}),
    ) == (
        1,
        0,
        0,
    )
    made.finish(trial, Measurement(0, "ok", 1.0))
    assert made.claimed(named, "here", {}) == 0


@pytest.mark.parametrize("gone, old", [(True, False), (False, True), (True, True)])
def test_claims_of_processes_that_ended_or_wait_too_long_do_not_count(monkeypatch, gone, old):
    made, named = Records(None), canonical(parse(MATMUL))
    made.claim(named, "here", [])
    monkeypatch.setattr("tir.tune.records._is_gone", lambda owner: gone)
    monkeypatch.setattr("tir.tune.records._is_old", lambda when: old)
    assert made.claimed(named, "here", {}) == 0
