"""The search with a runner that computes times from decisions: no clock, no child, the same in every process."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

import tir
from tir import te
from tir.script import parse
from tir.tune import search_progress
from tir.tune.cost_model import Roofline
from tir.tune.drawing import neighbouring_decisions, numbers
from tir.tune.learner import Forest, Nearest
from tir.tune.records import Records
from tir.tune.runner import Measurement
from tir.tune.search import Search

MATMUL = """
@T.prim_func
def matmul(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def space(sch: tir.Schedule) -> None:
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, 2, 64), names=["rows", "row"])
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, 2, 64), names=["columns", "column"])
    sch.reorder(i0, j0, k, i1, j1)


class Computed:
    """A runner whose time is a function of the tile sizes: least, 1, at 8 × 16. ``say`` is called with each job."""

    def __init__(self, say=lambda job: None, bad=()):
        self.say, self.bad, self.closed = say, bad, False

    def time(self, mod):
        extents = {loop.name: loop.extent for loop in loops(mod)}
        tile = [extents.get("row"), extents.get("column")]
        if None in tile:
            return 100.0
        return 1.0 + abs(math.log2(tile[0] / 8)) + abs(math.log2(tile[1] / 16))

    def measure(self, problem, jobs, best=math.inf):
        found = []
        for job in jobs:
            self.say(job)
            status = "crashed" if len(found) in self.bad else "ok"
            seconds = self.time(job.mod)
            found.append(Measurement(job.number, status, math.inf if status != "ok" else seconds, (seconds,)))
        return found

    def close(self):
        self.closed = True


def loops(mod):
    from types import SimpleNamespace

    from tir.visit import walk

    for node in walk(mod["main"].body):
        if isinstance(node, tir.For):
            yield SimpleNamespace(name=node.loop_var.name, extent=node.extent.value)


def clock():
    return 0.0


def unknown(sch):
    """A model that has no answer."""


def tuned(text=MATMUL, **options):
    given = {
        "trials": 40,
        "space": space,
        "runner": Computed(),
        "clock": clock,
        "verbose": False,
        "model": unknown,
        **options,
    }
    return tir.tune(parse(text), **given)


def told(result):
    return [(t.number, t.origin, t.decisions, t.status, t.seconds) for t in result.trials]


@pytest.fixture(autouse=True)
def quick_learner(monkeypatch, request):
    """scikit-learn takes seconds to import: only the test that is about it does."""
    if "scikit" not in request.node.name:
        monkeypatch.setattr("tir.tune.search.learner", lambda seed, count: Nearest())


def test_the_best_of_a_space_is_found_in_part_of_it():
    result = tuned(patience=6)
    assert result.best_seconds == 1.0 and len(result.trials) <= 40 < 49
    assert result.trials[0].origin == "default"
    assert {"neighbour"} <= {t.origin for t in result.trials}
    tir.assert_structural_equal(result.best.mod, result.best.trace.replay(parse(MATMUL)).mod)


def test_the_same_seed_gives_the_same_trials():
    first, again, other = (told(tuned(seed=seed, trials=14)) for seed in (5, 5, 6))
    assert first == again != other


def test_the_same_trials_in_another_process_with_other_hashes():
    code = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_search import *
import tir.tune.search
tir.tune.search.learner = lambda seed, count: Nearest()
print(told(tuned(seed=5, trials=12)))
"""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(told(tuned(seed=5, trials=12)))


def test_scikit_learn_learns_what_the_model_gets_wrong():
    pytest.importorskip("sklearn")
    assert tuned(patience=6).best_seconds == 1.0
    rows = [[float(a), float(b)] for a in range(16) for b in range(16)]
    wanted = [0.1 * a - 0.2 * b for a, b in rows]
    for count in (24, 250):
        made = Forest(0)
        step = len(rows) // count
        made.fit(rows[::step][:count], wanted[::step][:count])
        guess, sure = made.guess(rows[:40])
        assert max(abs(g - w) for g, w in zip(guess, wanted)) < 0.5 and min(sure) > 0


def test_budgets_are_kept():
    assert len(tuned(trials=3).trials) == 3
    times = iter(range(1000))
    result = tuned(clock=lambda: float(next(times)), seconds=30.0)
    assert 0 < len(result.trials) < 40


@pytest.mark.parametrize(("each_round", "ends"), [(1.0, True), (0.995, True), (0.98, False)])
def test_rounds_without_an_improvement_of_one_percent_end_it(each_round, ends):
    class Rounds(Computed):
        seconds = 100.0

        def time(self, mod):
            return self.seconds

        def measure(self, problem, jobs, best=math.inf):
            self.seconds *= each_round
            return super().measure(problem, jobs, best)

    result = tuned(patience=3, runner=Rounds(), trials=48)
    assert ("3 rounds brought no improvement of 1 %" in result.reasons) is ends
    assert (len(result.trials) < 48) is ends


def test_failed_trials_count_and_do_not_end_it():
    result = tuned(trials=16, runner=Computed(bad=(1, 3)))
    assert [t.status for t in result.trials].count("crashed") >= 2 and result.best_seconds < 100
    assert "failed" in repr(result) and "crashed" in repr(result.trials)


def test_no_valid_trial_is_an_error_with_the_first_failure():
    class Broken(Computed):
        def measure(self, problem, jobs, best=math.inf):
            return [Measurement(job.number, "build", error="no such instruction") for job in jobs]

    with pytest.raises(
        tir.TirError, match=r"no trial gave a result \(4 build\); the first failure: no such instruction"
    ):
        tuned(trials=4, runner=Broken())


def test_a_space_that_is_measured_to_its_end_says_so():
    result = tuned(trials=500, patience=100)
    assert len(result.trials) == 49 + 1 and "every schedule" in result.reasons[0]
    assert len({str(t.decisions) for t in result.trials[1:]}) == 49  # 7 tilings of each axis, none twice


def test_a_space_whose_steps_are_all_refused_still_has_the_default():
    def impossible(sch):
        sch.parallel(sch.get_loops("C")[2])

    result = tuned(space=impossible)
    assert result.trials[0].origin == "default" and not {"model", "random"} & {t.origin for t in result.trials}


def test_a_floor_that_is_reached_ends_it():
    class Guess:
        def __init__(self, seconds):
            self.seconds, self.terms, self.floor = seconds, {"core": seconds}, 1.9

    result = tuned(model=lambda sch: Guess(Computed().time(sch.mod)))
    assert "least time" in result.reasons[0] and len(result.trials) <= 9
    assert result.trials[1].origin == "model" and result.best_seconds <= 2.0


def test_the_database_counts_and_the_search_goes_on(tmp_path):
    db = tmp_path / "tune.db"
    first = tuned(trials=10, db=db)
    again = tuned(trials=24, db=db)
    assert [t.seconds for t in again.trials[:10]] == [t.seconds for t in first.trials]
    assert [t.origin for t in again.trials[:10]] == ["record"] * 10 and len(again.trials) == 24
    with Records(db) as records:
        assert records.count() == 24 and records.is_whole()
    assert len(tuned(trials=24, db=db).trials) == 24
    assert [t.origin for t in tuned(trials=5, db=db, fresh=True).trials][0] == "default"


class Noisy(Computed):
    """As ``Computed``, but the times of each batch have noise of their own; its process is killed at the batch ``last``."""

    def __init__(self, begin=0, last=1000):
        super().__init__()
        self.calls, self.last = begin, last

    def measure(self, problem, jobs, best=math.inf):
        if self.calls == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        noise = random.Random(self.calls)
        self.calls += 1
        found = [(m, m.seconds * noise.uniform(1.0, 1.3)) for m in super().measure(problem, jobs)]
        return [replace(m, seconds=seconds, times=(seconds,)) for m, seconds in found]

    def confirm(self, problem, jobs):
        return self.measure(problem, jobs)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_run_is_replayed_without_measuring(tmp_path, fresh):
    db = tmp_path / "tune.db"
    tuned(db=db, seed=1, trials=6, runner=Noisy())
    first = tuned(db=db, seed=3, trials=20, runner=Noisy(), patience=9, fresh=fresh)
    tuned(db=db, seed=2, trials=24, runner=Noisy())
    again = Noisy()
    second = tuned(db=db, seed=0, trials=20, runner=again, patience=9, replay=first.run)
    assert again.calls == 0 and told(second) == told(first)
    assert [t.origin for t in second.trials].count("record") == (0 if fresh else 6)
    with Records(db) as records:
        records.prune()
    with pytest.raises(tir.TirError, match="no run 2 to replay; there is none"):
        tuned(db=db, replay=2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process that is killed is made by fork")
@pytest.mark.parametrize("batches", [1, 3])
def test_a_run_that_was_killed_is_the_same_once_it_goes_on(tmp_path, batches):
    options = {"db": tmp_path / "tune.db", "trials": 40, "patience": 9}
    child = os.fork()
    if not child:
        tuned(seed=3, runner=Noisy(last=batches), **options)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    resumed = tuned(replay=1, runner=Noisy(begin=batches), **options)
    assert told(resumed) == told(tuned(seed=3, runner=Noisy(), **{**options, "db": None}))


def test_the_database_is_found_under_other_names(tmp_path):
    db = tmp_path / "tune.db"
    best = tuned(db=db, patience=6)
    other = parse(MATMUL.replace("A", "X").replace("vi", "row").replace('"C"', '"sum"').replace("matmul", "product"))
    sch = tir.tune.apply_best(other, db=db)
    assert 'get_loops("sum")' in sch.trace.as_python()
    assert Computed().time(sch.mod) == best.best_seconds == 1.0


def test_without_a_record_the_default_is_applied_and_said(tmp_path):
    with pytest.warns(RuntimeWarning, match="no record of main on this machine"):
        sch = tir.tune.apply_best(parse(MATMUL), db=tmp_path / "tune.db")
    tir.assert_structural_equal(sch.mod, tir.tune.default(parse(MATMUL)).mod)


def test_without_a_record_a_function_of_symbolic_sizes_gets_its_versions():
    n, m = te.var("n"), te.var("m")
    X = te.placeholder((n, m), name="X")
    func = te.create_prim_func([X, tir.ops.sum(X, axis=1)])
    with pytest.warns(RuntimeWarning, match="no record of main"):
        sch = tir.tune.apply_best(func, db=tir.tune.Records(None))
    assert "if m < 32:" in sch.mod.script()
    tir.assert_structural_equal(sch.mod, tir.tune.default(func).mod)


def test_a_schedule_is_searched_on_from_its_program():
    sch = tir.Schedule(parse(MATMUL))
    sch.parallel(sch.get_loops("C")[0])
    with pytest.warns(RuntimeWarning, match="no record of main"):
        sch_of_db = tir.tune.apply_best(sch, db=tir.tune.Records(None))
    tir.assert_structural_equal(sch_of_db.mod, tir.tune.default(sch).mod)
    assert tir.tune.explain(sch, draw=1, count=1).candidates[0].origin == "default"
    options = {"trials": 1, "runner": Computed(), "clock": clock, "verbose": False, "model": unknown}
    found = tir.tune(sch, **options).best
    found.undo(len(found.history) - 1)
    tir.assert_structural_equal(found.mod, sch.mod)


def test_another_size_starts_from_the_best_of_this_one(tmp_path):
    db = tmp_path / "tune.db"
    tuned(db=db, patience=6)
    result = tuned(MATMUL.replace("64", "96"), db=db, trials=4)
    assert [t.origin for t in result.trials[:2]] == ["default", "family"]
    assert result.best_seconds == 1.0


def test_an_interrupt_gives_what_there_is_and_the_same_call_goes_on(tmp_path):
    db = tmp_path / "tune.db"

    def interrupt(job):
        if job.number == 2:
            os.kill(os.getpid(), signal.SIGINT)

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    result = tuned(db=db, runner=Computed(say=interrupt), trials=40)
    assert result.interrupted and 0 < len(result.trials) < 40 and "goes on" in repr(result)
    assert not tuned(db=db, trials=40).interrupted
    assert signal.signal(signal.SIGINT, usual) is signal.default_int_handler


def test_a_second_interrupt_ends_it_at_once_and_claims_are_given_back(tmp_path):
    db = tmp_path / "tune.db"

    def interrupt(job):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    runner = Computed(say=interrupt)
    result = tuned(db=db, runner=runner)
    assert result.interrupted and runner.closed and len(result.trials) == 0
    with Records(db) as records:
        assert records.count() == 0
    with pytest.raises(tir.TirError, match="nothing was measured"):
        result.best  # noqa: B018


def test_a_program_that_is_drawn_again_is_not_predicted_again():
    programs = []

    def model(sch):
        programs.append(sch.mod.script())

    assert len(tuned(trials=12, model=model).trials) == 12
    assert len(programs) == len(set(programs)) > 12


def test_functions_that_are_one_program_are_tuned_once():
    a, b = parse(MATMUL), parse(MATMUL.replace("64", "32"))
    renamed = parse(MATMUL.replace("vi", "row").replace('"C"', '"sum"'))
    mod = tir.IRModule.of({"one": a, "two": b, "three": renamed})

    def any_space(sch):
        block = sch.get_child_blocks("root")[0]
        i, j, k = sch.get_loops(block)
        sch.split(i, sch.sample_perfect_tile(i, 2, 64), names=["rows", "row"])

    result = tir.tune(
        mod,
        trials=12,
        space=any_space,
        runner=Computed(),
        clock=clock,
        model=unknown,
        verbose=False,
        weights={"two": 100},
    )
    assert [one.task.names for one in result.tuned] == [("one", "three"), ("two",)]
    assert len(result.tuned[1].search.trials) > 0 and len(result.trials) <= 12
    assert list(result.best.mod) == ["one", "two", "three"]
    tir.assert_structural_equal(result.best.trace.replay(mod).mod, result.best.mod)


def test_records_of_one_task_do_not_use_up_the_trials_of_another(tmp_path):
    db = tmp_path / "tune.db"
    tuned(trials=10, db=db)
    mod = tir.IRModule.of({"known": parse(MATMUL), "new": parse(MATMUL.replace("64", "32"))})
    result = tir.tune(mod, trials=4, db=db, space=space, runner=Computed(), clock=clock, model=unknown, verbose=False)
    assert [len(one.search.trials) for one in result.tuned] == [10, 1]


def test_the_table_and_the_pictures_show_themselves():
    from xml.etree import ElementTree

    result = tuned(trials=10)
    assert len(repr(result.trials).splitlines()) == 11 and "default" in repr(result.trials[:1])
    ElementTree.fromstring(f"<div>{result._repr_html_()}</div>")
    assert "<svg" in result.plot().svg and "def schedule(sch" in result.script
    assert "currentColor" in result.plot().svg and "black" not in result.plot().svg, "text is legible on dark pages"


def test_the_roofline_shows_where_the_best_schedule_stands(monkeypatch):
    limits = Roofline(operations=2e9, bytes=1e6, peak=1e9, bandwidth=1e6)
    monkeypatch.setattr(Search, "limits", limits)
    result = tuned(trials=4)
    search = result.tuned[0].search
    assert limits.seconds == 2.0 and search.share_of_peak == pytest.approx(2.0 / result.best_seconds)
    text = result.plot().svg
    assert "of the roof" in text and "0.001 GB/s" in text and "2e+03 operations for each byte" in text
    assert "4 trials" in text and "seconds of the search" not in text, "no time has passed"


def test_the_line_of_progress_has_what_one_waits_for(capsys, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None)
    tuned(trials=10, verbose=True, model=lambda sch: None)
    lines = capsys.readouterr().err.splitlines()
    assert lines and lines[0].startswith("trial 0: best 100 s") and len(lines) < 10


class Later:
    """A clock that goes on by ten seconds each time it is asked."""

    def __init__(self):
        self.now = -10.0

    def __call__(self):
        self.now += 10.0
        return self.now


@pytest.mark.parametrize(
    ("trials", "seconds", "left"), [(1000, 120.0, range(120)), (None, 120.0, range(120)), (3, 1e6, range(1000))]
)
def test_the_line_of_progress_knows_both_limits(capsys, monkeypatch, trials, seconds, left):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None)
    tuned(trials=trials, seconds=seconds, verbose=True, clock=Later(), batch=1)
    lines = [line for line in capsys.readouterr().err.splitlines() if "left at most" in line]
    said = [int(line.rpartition(", ")[2].partition(" s left at most")[0]) for line in lines]
    assert said and all(n in left for n in said) and said == sorted(said, reverse=True)


def test_a_bar_of_any_number_of_trials_has_the_seconds_that_are_left(monkeypatch):
    totals, lines = [], []
    shown = SimpleNamespace(update=id, close=list, set_postfix_str=lines.append)
    monkeypatch.setattr(search_progress, "bar", lambda what, total: totals.append(total) or shown)
    tuned(trials=None, seconds=120.0, verbose=True, clock=Later(), batch=1)
    assert totals == [None] and lines and all(line.endswith(" s left at most") for line in lines)


class Confirming(Computed):
    """As ``Computed``, and times once more what it is asked to."""

    confirmed = ()

    def confirm(self, problem, jobs):
        self.confirmed = [self.time(job.mod) for job in jobs]
        return self.measure(problem, jobs)


def test_a_run_that_goes_on_keeps_the_time_of_its_default(tmp_path):
    db = tmp_path / "tune.db"
    first = tuned(trials=8, db=db)
    assert first.tuned[0].search.default is first.trials[0]
    runner = Confirming()
    again = tuned(trials=16, db=db, runner=runner)
    default = again.tuned[0].search.default
    assert default is again.trials[0] and default.origin == "record" and default.seconds == 100.0
    assert "times as fast as the default schedule" in repr(again)
    assert 100.0 in runner.confirmed, "timed once more beside the best"


def test_a_default_that_the_records_lack_is_measured_first(tmp_path):
    db = tmp_path / "tune.db"
    tuned(trials=24, db=db)
    with Records(db) as records:
        records.prune(keep=3, misses=0)
    again = tuned(trials=8, db=db)
    assert [t.origin for t in again.trials[:4]] == ["record"] * 3 + ["default"]
    assert again.tuned[0].search.default is again.trials[3]


def test_neighbours_change_one_decision_by_one_step():
    sch = tir.Schedule(parse(MATMUL), seed=1)
    space(sch)
    now = [step.args["decision"] for step in sch.trace.steps if "decision" in step.args]
    for decisions in neighbouring_decisions(sch.trace):
        changed = [a for a, b in zip(decisions, now) if a != b]
        assert len(changed) == 1 and math.prod(numbers(changed)) == 64


def test_a_size_that_no_function_has():
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    func = te.create_prim_func([X, te.compute((n,), lambda i: X[i] + 1.0, name="Y")])
    for call in (tir.tune, tir.tune.apply_best):
        with pytest.raises(tir.TirError, match="there is no symbolic size `m`\\nlegal: of main: n"):
            call(func, sizes={"n": 4, "m": 3})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda jobs: None, "answered None"),
        (lambda jobs: [], "answered 0 measurements, of the jobs none"),
        (lambda jobs: [1.0 for _ in jobs], r"answered \[1.0"),
        (lambda jobs: [tir.tune.Measurement(9, "ok", 1.0)], "answered 1 measurements, of the jobs 9"),
        (
            lambda jobs: [tir.tune.Measurement(j.number, "ok", math.nan) for j in jobs],
            "answered 'ok' after nan s for job 0",
        ),
        (lambda jobs: [tir.tune.Measurement(j.number, "ok", 0.0) for j in jobs], "answered 'ok' after 0.0 s"),
        (lambda jobs: [tir.tune.Measurement(j.number, "fine", 1.0) for j in jobs], "answered 'fine' after"),
    ],
)
def test_an_answer_that_is_no_measurement_of_each_job_is_refused(answer, told):
    class Careless(Computed):
        def measure(self, problem, jobs, best=math.inf):
            return answer(jobs)

    with pytest.raises(tir.TirError, match=rf"Careless.measure {told}(.|\n)*legal: a list of one Measurement"):
        tuned(trials=2, runner=Careless())


def test_a_seed_has_64_bits_as_the_records_keep_it():
    for seed in (1 << 63, -(1 << 63) - 1, 10**30):
        with pytest.raises(tir.TirError, match="a seed is an integer of 64 bits"):
            tuned(seed=seed)
    assert tuned(seed=(1 << 63) - 1, trials=1).trials
