"""Faults at random moments: the tuner killed, several tuners on one database. ``python tests/tune/test_faults.py 100`` kills
a tuner and its runner a hundred times."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tir.tune.records import Records

HERE = str(Path(__file__).parent)
TUNER = f"""
import sys; sys.path[:0] = [{HERE!r}]
import tir.tune.search
from test_search import *
tir.tune.search.learner = lambda seed, count: Nearest()
import time

class Slow(Computed):
    def measure(self, problem, jobs, best=math.inf):
        time.sleep(0.02)
        return super().measure(problem, jobs, best)

print("ready", flush=True)
result = tuned(db=sys.argv[1], seed=int(sys.argv[2]), trials=int(sys.argv[3]), runner=Slow(), patience=100)
print(sum(t.origin != "record" for t in result.trials), result.best_seconds)
"""


def tuner(db, seed, trials, code=TUNER):
    command = [sys.executable, "-c", code, str(db), str(seed), str(trials)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


def rows(db):
    """The rows of a database that are done, each checked against its schedule."""
    from test_search import MATMUL, Computed

    import tir
    from tir.script import parse
    from tir.tune.naming import Naming

    naming = Naming(tir.IRModule.of(parse(MATMUL)))
    with Records(db) as records:
        assert records.is_whole()
        found = list(records.all())
    for row in found:
        sch = tir.Trace.from_json(naming.own(row.trace)).replay(naming.mod)
        assert Computed().time(sch.mod) == row.seconds
    return found


def kill_tuners(db, times, seed, trials):
    """Start a tuner of so many ``trials`` on ``db`` and kill it after a random time, again and again."""
    generator = random.Random(seed)
    for number in range(times):
        child = tuner(db, number, trials)
        time.sleep(generator.uniform(0.0, 1.0))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        with Records(db) as records:
            assert records.is_whole()


def test_a_tuner_killed_at_random_moments_resumes(tmp_path):
    db = tmp_path / "tune.db"
    kill_tuners(db, 2, 0, 24)  # the space has 50 schedules: some are left, however fast the machine is
    before = len(rows(db))
    assert before <= 24
    child = tuner(db, 9, before + 8)
    said = child.communicate(timeout=120)[0].split()
    assert child.returncode == 0 and 0 < int(said[0]) <= 8  # what was done is not done again
    with Records(db) as records:
        assert len(list(records.all())) >= before + int(said[0])  # claims of the dead are void: no one waits for them


def test_four_tuners_on_one_database_measure_nothing_twice(tmp_path):
    db = tmp_path / "tune.db"
    four = [tuner(db, seed, 8) for seed in range(4)]
    said = [child.communicate(timeout=300)[0].split() for child in four]
    assert all(child.returncode == 0 for child in four)
    found = rows(db)
    assert sum(int(measured) for measured, _ in said) == len(found)
    assert len({(row.key, str(row.trace)) for row in found}) == len(found)


LIMITED = """
import resource, sys, warnings
from tir.tune.records import Records
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
assert Records(sys.argv[1] + "none").path is None  # in memory: there is no room for a file
resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, resource.RLIM_INFINITY))
"""


def test_a_tuner_whose_files_cannot_grow_ends_with_its_result(tmp_path):
    child = tuner(tmp_path / "tune.db", 0, 12, LIMITED + TUNER)
    said = child.communicate(timeout=120)[0].split()
    assert child.returncode == 0 and int(said[0]) == 12


def kill_runners(times, seed):
    """Kill the processes of a runner at random moments while it measures."""
    import threading

    from test_runner import COPY, jobs

    import tir
    from tir.script import parse
    from tir.target import Target
    from tir.tune.runner import LocalRunner, Problem

    generator = random.Random(seed)
    runner = LocalRunner(rounds=4)
    problem = Problem(tir.IRModule.of(parse(COPY)), Target.of("llvm"))
    runner.measure(problem, jobs(COPY))

    def shoot():
        for child in list(runner._children)[: generator.choice([1, 1, 2])]:
            child._process.kill()
            child._process.wait()  # one that is about to end would take the next candidate with it

    for _ in range(times):
        timer = threading.Timer(generator.uniform(0.0, 0.3), shoot)
        timer.start()
        found = runner.measure(problem, jobs(COPY, COPY, COPY))
        timer.join()
        assert {m.status for m in found} <= {"ok", "crashed", "build", "censored"}, found
    assert runner.measure(problem, jobs(COPY))[-1].status == "ok"
    runner.close()


def test_a_runner_killed_at_random_moments_goes_on():
    kill_runners(3, 1)


if __name__ == "__main__":
    import tempfile

    sys.path[:0] = [HERE]
    count = int(sys.argv[1])
    kill_runners(count, 7)
    with tempfile.TemporaryDirectory() as folder:
        kill_tuners(Path(folder) / "tune.db", count, 7, 500)
        print(len(rows(Path(folder) / "tune.db")), "rows, all right")
