"""Measuring in a child process: times, and every way in which a candidate can fail."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.target import Target
from tir.tune.machine import machine_key
from tir.tune.process import CandidateFailed, Child, ChildFailed
from tir.tune.runner import Job, LocalRunner, Problem, _margin, _Race

COPY = """
@T.prim_func
def copy(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(256):
        with T.block("B"):
            vi = T.axis.spatial(256, i)
            B[vi] = A[vi] * T.float32(2)
"""
BODY = COPY[COPY.index("    for i") :]
CHANGED_INPUT = COPY + "            A[vi] = T.float32(0)\n"
HALF = COPY.replace("(256, i)", "(256, i)\n            T.where(i < 128)")
OFF_BY_ONE = COPY.replace("float32(2)", "float32(3)")
ENDLESS = COPY.replace(
    BODY,
    """    x = T.alloc_buffer((1,), "int32")
    x[0] = 1
    while x[0] > 0:
        x[0] = 1
""",
)
SLOW = COPY.replace(
    BODY,
    """    for k in range(3000):
        for i in range(256):
            with T.block("B"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    B[vi] = A[vi] * T.float32(2)
                B[vi] = T.sqrt(B[vi] * B[vi] * T.Cast("float32", vk - vk + 1)) * T.if_then_else(A[vi] < T.float32(0), T.float32(-1), T.float32(1))
""",
)


@pytest.fixture(scope="module")
def runner():
    made = LocalRunner(timeout=1.0, rounds=3)
    yield made
    made.close()


@pytest.fixture(scope="module")
def problem():
    return Problem(tir.IRModule.of(parse(COPY)), Target.of("llvm"))


def jobs(*texts):
    return [Job(n, tir.IRModule.of(parse(text))) for n, text in enumerate(texts)]


def crashing():
    """A program that reads through a null pointer, where the compiler cannot see it."""
    return COPY.replace(BODY, '    T.evaluate(T.call_extern("int32", "raise", T.int32(11)))\n' + BODY)


def test_a_good_candidate_is_timed(runner, problem):
    (made,) = runner.measure(problem, jobs(COPY))
    assert made.status == "ok" and 0 < made.seconds < 1 and len(made.times) > 1 and made.seconds == min(made.times)
    assert made.build_seconds > 0 and made.error == ""


@pytest.mark.parametrize("text, word", [(OFF_BY_ONE, "B["), (HALF, "nan"), (CHANGED_INPUT, "A is an input")])
def test_a_wrong_result_is_told_from_a_right_one(runner, problem, text, word):
    wrong, right = runner.measure(problem, jobs(text, COPY))
    assert wrong.status == "wrong" and word in wrong.error and not wrong.ok and wrong.seconds == math.inf
    assert right.status == "ok"


def test_a_crash_an_endless_loop_and_an_exception_are_rows_and_the_rest_goes_on(runner, problem):
    found = runner.measure(problem, jobs(COPY, crashing(), ENDLESS, COPY, OFF_BY_ONE))
    assert [m.status for m in found] == ["ok", "crashed", "timeout", "ok", "wrong"]
    assert "SIGSEGV" in found[1].error and "longer than" in found[2].error


def test_comparing_large_results_does_not_count_as_running(runner, problem):
    asked = {}

    class Recorded:
        def __init__(self, child):
            self.child = child

        def request(self, name, mod=None, limit=None, **about):
            asked.setdefault(name, limit)
            return self.child.request(name, mod, limit, **about)

        def __getattr__(self, name):
            return getattr(self.child, name)

    runner._start(problem)
    found = runner.measure(problem, jobs(COPY))
    ready = runner._on_ready(jobs(COPY)[0])
    assert found[0].ok and runner._wrong(Recorded(ready), jobs(COPY)[0], 1.5) == ""
    assert asked["run"] == 1.5 and asked["compare"] == runner.reference_timeout


def test_rounding_of_long_sums_is_no_fault():
    import tir.tune.child as child

    exact = np.full(64, 3.0, "float32")
    near, far = exact * np.float32(1 + 6e-5), exact * np.float32(1 + 4e-3)
    kind = tir.DType("float32")
    assert child._difference("B", kind, exact, near, 16) and not child._difference("B", kind, exact, near, 4096)
    assert child._difference("B", kind, exact, far, 4096) and child._difference("B", kind, exact, far, 10**9)
    assert child._difference("B", tir.DType("int32"), exact.astype("int32"), exact.astype("int32") + 1, 10**9)


def test_the_caches_are_emptied_before_a_cold_call(monkeypatch):
    from tir.tune import child

    problem = Problem(tir.IRModule.of(parse(COPY)), Target.of("llvm"))
    filled = []
    monkeypatch.setattr(child, "fill_caches", lambda: filled.append(1))
    for cold, times in ((True, 3), (False, 0)):
        filled.clear()
        about = {"target": problem.spec, "sizes": {}, "seed": 0, "folder": "", "serial": True, "cold": cold}
        task = child.Task(problem.mod, about)
        loaded = child.Loaded(problem.mod, "llvm")
        loaded.run(task)
        assert not loaded.compare(task) and loaded.time(5, 3, task) > 0
        assert len(filled) == times


@pytest.mark.parametrize("factor, right", [(2, True), (3, False)])
def test_what_constants_determine_is_computed_once_before_a_candidate_is_timed(factor: int, right: bool):
    from tir.tune import child

    text = """
@T.prim_func
def scale(A: T.Buffer((64,), "float32"), W: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.func_attr({{"tir.constant": ["W"]}})
    V = T.alloc_buffer((64,), "float32")
    for i in range(64):
        with T.block("V"):
            vi = T.axis.spatial(64, i)
            V[vi] = W[63 - vi] * T.float32({})
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * V[vi]
"""
    problem = Problem(tir.IRModule.of(parse(text.format(2))), Target.of("llvm"))
    about = {"target": problem.spec, "sizes": {}, "seed": 0, "folder": "", "serial": True, "cold": False}
    task = child.Task(problem.mod, about)
    loaded = child.Loaded(tir.IRModule.of(parse(text.format(factor))), problem.spec)
    assert [b.name for b in loaded.module.entry.func.buffers()] == ["A", "B", "V"]
    loaded.run(task)
    assert ("B[" not in loaded.compare(task)) == right
    if right:
        assert loaded.time(2, 2, task) > 0


def test_times_with_empty_caches_are_kept_apart():
    keys = {machine_key(Target.of("llvm"), 1, cold) for cold in (True, False)}
    assert len(keys) == 2 and machine_key(Target.of("llvm"), 1) in keys


def test_a_gpu_has_no_cold_runs():
    with pytest.raises(tir.errors.TirError, match="cold=True"):
        tir.tune(parse(COPY), "cuda-sim", cold=True)


def test_the_margin_of_a_race_narrows():
    race = _Race(Job(0, tir.IRModule.of(parse(COPY))), [1.0], 0.0)
    assert _margin(race, 0, 12) == 10.0
    race.times = [0.01]
    assert _margin(race, 0, 12) == math.inf
    race.times = [0.01] * 12
    assert [_margin(race, turn, 12) for turn in (3, 7, 11)] == [1.5, 1.10, 1.03]


def test_what_cannot_be_built_is_a_row(runner, problem):
    text = COPY.replace("A[vi] *", "A[vi + 1] *")  # reads past the end
    bad, good = runner.measure(problem, jobs(text, COPY))
    assert (bad.status, good.status) == ("build", "ok") and "A" in bad.error


def test_a_slow_candidate_is_timed_less(runner, problem):
    slow, fast = runner.measure(problem, jobs(SLOW, COPY))
    assert slow.ok and len(slow.times) <= len(fast.times), (slow, fast)


def test_an_output_that_is_added_to_keeps_its_contents():
    text = COPY.replace("B[vi] = A[vi]", "B[vi] = B[vi] + A[vi]")
    runner = LocalRunner(rounds=3)
    try:
        (made,) = runner.measure(Problem(tir.IRModule.of(parse(text)), Target.of("llvm")), jobs(text))
        assert made.status == "ok"
        wrong = text.replace("B[vi] + A", "A[vi] + A")
        assert (
            runner.measure(Problem(tir.IRModule.of(parse(text)), Target.of("llvm")), jobs(wrong))[0].status == "wrong"
        )
    finally:
        runner.close()


def test_the_runner_killed_at_any_moment_is_replaced(runner, problem):
    runner.measure(problem, jobs(COPY))
    os.kill(runner._children[0].pid, signal.SIGKILL)
    os.kill(runner._children[1].pid, signal.SIGKILL)
    found = runner.measure(problem, jobs(COPY, COPY, COPY))
    # a child whose end is seen only when it is used takes the candidate with it; each of the two does so at most once
    assert "ok" in {m.status for m in found} <= {"ok", "build", "crashed"}


def test_a_reference_that_cannot_run_is_the_callers_error(problem):
    text = COPY.replace("A[vi] *", "A[vi + 1] *")
    runner = LocalRunner()
    try:
        with pytest.raises(CandidateFailed, match="A"):
            runner.measure(Problem(tir.IRModule.of(parse(text)), Target.of("llvm")), jobs(COPY))
    finally:
        runner.close()


def test_a_child_says_how_it_ended():
    child = Child()
    child.request("hello", limit=60, bytes=None)
    with pytest.raises(CandidateFailed, match="KeyError"):
        child.request("run", id=0)
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ChildFailed, match="SIGKILL"):
        child.request("hello", bytes=None)
    child.close()


def test_a_child_ends_with_its_parent():
    child = Child()
    child.request("hello", limit=60, bytes=None)
    child._process.stdin.close()
    assert child._process.wait(20) == 0
    child.close()


def test_the_folder_of_a_killed_tuner_is_removed_by_the_next(tmp_path, monkeypatch):
    """And neither that of one which lives, nor one of something else."""
    pytest.importorskip("fcntl")
    from tir.tune.folder import Folder

    code = "from tir.tune.folder import Folder; import sys; print(Folder().path, flush=True); sys.stdin.read()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    killed, alive = (subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes) for _ in range(2))
    left, kept = Path(killed.stdout.readline().strip()), Path(alive.stdout.readline().strip())
    (left / "0").mkdir()
    (left / "0" / "output.npy").write_bytes(b"1")
    killed.kill()
    killed.communicate()
    other = tmp_path / "tir-tune-of-mine"
    other.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = Folder()
    assert not left.exists() and kept.exists() and other.exists() and made.path.exists()
    made.close()
    alive.communicate("")
    assert not made.path.exists()
    made.open()  # a runner may be used again after it was closed
    assert made.path.exists() and Folder().path != made.path and made.path.exists()
