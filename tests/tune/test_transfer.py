"""What was found for some sizes of a program serves for another one: the rules' steps for that size, the nearest values."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import tir
from tests.tune.test_contraction import SMALL, product
from tir.equal import structural_digest
from tir.function import IRModule
from tir.library import elementwise
from tir.schedule import Trace
from tir.stmt import For
from tir.target import Target
from tir.tune.drawing import RuleSource
from tir.tune.learner import Nearest
from tir.tune.naming import Naming
from tir.tune.ranking import samplings
from tir.tune.runner import Measurement
from tir.tune.space import space_of
from tir.tune.transfer import _fitting
from tir.visit import walk

ROOT = Path(__file__).parents[2]
TARGET = SMALL.format(cores=1)


class Tiles:
    """A runner whose time is least, 1, where the sum is in straight code of 3 rows by 2 vectors, 2 terms at a time."""

    def time(self, mod):
        best = 100.0
        for node in walk(mod["main"].body):
            if isinstance(node, For) and node.kind == "serial":
                counts = straight(node)
                if len(counts) == 3:
                    best = min(best, 1.0 + sum(abs(math.log2(n / m)) for n, m in zip(counts, (2, 3, 2))))
        return best

    def measure(self, problem, jobs, best=math.inf):
        return [Measurement(job.number, "ok", self.time(job.mod)) for job in jobs]

    def close(self):
        pass


def straight(loop):
    """The extents of the unrolled loops, one in the other, under a loop: terms, rows, vectors."""
    found, inner = [], loop.body
    while isinstance(inner, For) and inner.kind == "unrolled":
        found.append(inner.extent.value)
        inner = inner.body
    return found


@pytest.fixture(autouse=True)
def quick_learner(monkeypatch):
    """scikit-learn takes seconds to import."""
    monkeypatch.setattr("tir.tune.search.learner", lambda seed, count: Nearest())


def tuned(sizes, db, **options):
    m, n, k = sizes
    func = product((m, k), (k, n), "ik,kj->ij")
    given = {"target": TARGET, "runner": Tiles(), "clock": lambda: 0.0, "verbose": False, "db": db, **options}
    return tir.tune(func, **given)


def test_three_trials_of_another_size_are_as_good_as_many(tmp_path):
    db = tmp_path / "tune.db"
    tuned((64, 64, 16), db, trials=12)
    alone = tuned((51, 37, 17), None, trials=12)
    again = tuned((51, 37, 17), db, trials=3)
    assert [t.origin for t in again.trials][:2] == ["default", "family"]
    assert again.best_seconds <= alone.best_seconds / 0.95


def test_the_steps_are_those_of_the_new_size():
    even, odd = (IRModule.of(product((m, 16), (16, m), "ik,kj->ij")) for m in (64, 51))
    there, here = (RuleSource(space_of(TARGET), mod) for mod in (even, odd))
    old = next(there.draw(random.Random(0), 1))
    made = here.nearest(old.trace, random.Random(1))
    own = next(here.draw(random.Random(1), 1))
    assert [s.name for s in made.trace.steps] == [s.name for s in own.trace.steps]
    values = [s.args["candidates"][s.args["decision"]] for s in samplings(made.trace)]
    assert len(values) == len(samplings(old.trace)) > 0


@pytest.mark.parametrize(
    ("extent", "decision", "fitting"),
    [(12, [5, 3], [4, 3]), (12, [9, 2, 3], [2, 2, 3]), (10, [4, 3], None), (7, [4, 3], None), (12, [None, "x"], None)],
)
def test_a_tiling_of_another_size_keeps_its_inner_factors_if_they_divide(extent, decision, fitting):
    sch = tir.Schedule(product((extent, 4), (4, 4), "ik,kj->ij"))
    provide = _fitting(sch)
    assert provide(None, {"loop": sch.get_loops("C")[0]}, decision) == fitting
    assert provide(None, {"loop": sch.get_loops("C")[0]}, 3) == 3 and provide(None, {}, decision) == decision


def test_what_is_not_alike_is_not_transferred():
    source = RuleSource(space_of(TARGET), IRModule.of(product((64, 16), (16, 64), "ik,kj->ij")))
    other = tir.Schedule(product((64, 16), (16, 64), "ik,kj->ij"))
    other.split(other.get_loops("C")[0], [None, 8])
    assert source.nearest(other.trace, random.Random(0)) is None
    assert source.nearest(Trace(()), random.Random(0)) is None


def test_the_script_of_a_result_makes_its_schedule_and_asks_nothing_in_vain():
    result = tuned((51, 37, 17), None, trials=2)
    names = {"tir": tir}
    exec(result.script, names)
    sch = tir.Schedule(result.mod)
    names["schedule"](sch)
    tir.assert_structural_equal(sch.mod, result.best.mod)
    assert result.script.count('sch.get_loops("C")') == 1 and "get_producers" not in result.script


def listed(db):
    """Every trial of a search of the rules' space whose times follow from the schedules."""

    class Told(Tiles):
        def time(self, mod):
            return 1.0 + int(structural_digest(mod)[:6], 16) / 2**24

    result = tuned((60, 33, 12), db, trials=12, runner=Told(), seed=3)
    return str([(t.number, t.origin, t.decisions, t.seconds) for t in result.trials])


def test_the_same_seed_gives_the_same_trials_of_the_rules_in_any_process(tmp_path):
    db = tmp_path / "tune.db"
    tir.tune(
        elementwise.scale_add(64), TARGET, trials=2, runner=Tiles(), clock=lambda: 0.0, verbose=False, db=db
    )  # rows of another program
    code = "import sys; from tests.tune.test_transfer import *\nprint(listed(sys.argv[1]))"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code, str(db)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == listed(None)


def test_a_trace_of_no_use_is_none_and_logged(caplog):
    naming = Naming(tir.IRModule.of(tir.library.rows.row_sum(4, 8)))
    with caplog.at_level("INFO", logger="tir.tune"):
        assert naming.schedule([["no such primitive"]], Target.of("llvm")) is None
    (record,) = caplog.records
    assert record.getMessage().startswith("a stored trace is of no use to main: ")
