"""Records: what is written is read, by several processes, after crashes, and from damaged or full files."""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys

import pytest

import tir
from tir.canonical import canonical
from tir.script import parse
from tir.tune import records as room
from tir.tune.record import Record, read_lines, split_decisions, with_decisions
from tir.tune.records import Records
from tir.tune.runner import Measurement

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + T.float32(1)
"""


def traces(count):
    """Traces of one sketch."""
    found = []
    for seed in range(100):
        sch = tir.Schedule(parse(PROGRAM), seed=seed)
        loop = sch.get_loops("B")[0]
        sch.split(loop, sch.sample_perfect_tile(loop, 2, 64))
        trace = sch.trace.as_json()
        if trace not in found:
            found.append(trace)
        if len(found) == count:
            break
    return found


TRACES = traces(6)
NAMED = canonical(parse(PROGRAM))
CHILD = f"""
import json, time
from tir.canonical import canonical
from tir.script import parse
from tir.tune.records import Records
from tir.tune.runner import Measurement
NAMED, TRACES = canonical(parse({PROGRAM!r})), json.loads({json.dumps(TRACES)!r})
"""


def ok(seconds):
    return Measurement(0, "ok", seconds, (seconds, 2 * seconds), "", 0.1, 1.5)


def test_a_trial_is_read_as_it_was_written(tmp_path):
    with Records(tmp_path / "tune.db") as made:
        trial = made.claim(NAMED, "here", TRACES[0], number=3, predicted=0.5, rules=["tiles"], sizes={"n": 4})
        made.finish(trial, ok(0.25))
    with Records(tmp_path / "tune.db") as again:
        (found,) = again.of(NAMED, "here", {"n": 4})
        assert split_decisions(found.trace) == split_decisions(TRACES[0])
        assert (found.status, found.seconds, found.times, found.predicted) == ("ok", 0.25, (0.25, 0.5), 0.5)
        assert (found.rules, found.sizes, found.number, found.load) == (("tiles",), {"n": 4}, 3, 1.5)
        assert again.of(NAMED, "elsewhere", {"n": 4}) == again.of(NAMED, "here") == []
        assert canonical(parse(found.script)).key == NAMED.key


def test_a_replay_of_a_stored_trace_is_the_schedule():
    for trace in TRACES:
        sketch, decisions = split_decisions(trace)
        stored = with_decisions(json.loads(json.dumps(sketch)), decisions)
        tir.assert_structural_equal(
            tir.Trace.from_json(stored).replay(parse(PROGRAM)).mod,
            tir.Trace.from_json(trace).replay(parse(PROGRAM)).mod,
        )
    assert len({json.dumps(split_decisions(trace)[0]) for trace in TRACES}) == 1


def test_a_claimed_trial_is_not_given_twice():
    made = Records(None)
    first = made.claim(NAMED, "here", TRACES[0])
    assert first is not None and made.claim(NAMED, "here", TRACES[0]) is None
    made.finish(first, ok(1.0))
    assert made.claim(NAMED, "here", TRACES[0]) is None
    assert made.claim(NAMED, "here", TRACES[0], again=True) is not None
    assert made.claim(NAMED, "there", TRACES[0]) is not None


def test_a_claim_of_a_dead_process_is_void(tmp_path):
    path = tmp_path / "tune.db"
    code = f"""{CHILD}
assert Records({str(path)!r}).claim(NAMED, "here", TRACES[0]) is not None
print("claimed", flush=True)
time.sleep(60)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "claimed\n"
    made = Records(path)
    assert made.claim(NAMED, "here", TRACES[0]) is None  # it is alive
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert made.is_whole()
    assert made.claim(NAMED, "here", TRACES[0]) is not None


def test_an_old_claim_is_void(monkeypatch):
    made = Records(None)
    made.claim(NAMED, "here", TRACES[0])
    monkeypatch.setattr(room, "STALE_SECONDS", -1.0)
    assert made.claim(NAMED, "here", TRACES[0]) is not None and made.count() == 1


def test_four_processes_measure_nothing_twice(tmp_path):
    path = tmp_path / "tune.db"
    code = f"""{CHILD}
made = Records({str(path)!r})
for n, trace in enumerate(TRACES):
    trial = made.claim(NAMED, "here", trace)
    if trial is not None:
        print(n, flush=True)
        made.finish(trial, Measurement(0, "ok", 1.0 + n, (1.0 + n, 2.0 + 2 * n), "", 0.1, 1.5))
"""
    four = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [child.communicate(timeout=120)[0].split() for child in four]
    assert all(child.returncode == 0 for child in four)
    assert sorted(n for part in said for n in part) == [str(n) for n in range(len(TRACES))]
    with Records(path) as made:
        rows = made.of(NAMED, "here")
        assert made.is_whole() and len(rows) == len(TRACES)
        decisions = [split_decisions(trace)[1] for trace in TRACES]
        for row in rows:  # each has the time of its own schedule
            assert row.seconds == 1.0 + decisions.index(split_decisions(row.trace)[1])


def test_a_damaged_row_is_left_out(tmp_path):
    path = tmp_path / "tune.db"
    with Records(path) as made:
        for n, trace in enumerate(TRACES[:3]):
            made.finish(made.claim(NAMED, "here", trace), ok(1.0 + n))
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE trial SET decisions='[[1,' WHERE id=2")
    raw.close()
    with Records(path) as made:
        assert [r.seconds for r in made.of(NAMED, "here")] == [1.0, 3.0] and made.damaged == 1


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "tune.db"
    path.write_text("not a database, but long enough to look at" * 40)
    with pytest.raises(tir.TirError, match="tune.db is no database"):
        Records(path)


def test_records_of_another_format_are_refused(tmp_path):
    path = tmp_path / "tune.db"
    Records(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version=99")
    raw.close()
    with pytest.raises(tir.TirError, match="format 99"):
        Records(path)


@pytest.mark.parametrize("version", [0, 1])
def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path, version):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE trial(id INTEGER, patient TEXT)")
        raw.execute(f"PRAGMA user_version={version}")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(tir.TirError, match="is a database of something else"):
        Records(path)
    assert path.read_bytes() == before


def test_a_file_that_is_damaged_while_it_is_used_does_not_end_the_search(tmp_path):
    path = tmp_path / "tune.db"
    made = Records(path)
    made.finish(made.claim(NAMED, "here", TRACES[0]), ok(1.0))
    made._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    made._database.execute("PRAGMA cache_size=0")
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.warns(RuntimeWarning):
        made.finish(made.claim(NAMED, "here", TRACES[1]), ok(0.5))
        assert 0.5 in [r.seconds for r in made.of(NAMED, "here")]


def test_a_full_disk_does_not_end_the_search(tmp_path):
    path = tmp_path / "tune.db"
    made = Records(path)
    made.finish(made.claim(NAMED, "here", TRACES[0]), ok(1.0))
    pages = made._database.execute("PRAGMA page_count").fetchone()[0]
    made._database.execute(f"PRAGMA max_page_count={pages}")  # what SQLite raises is that of a full disk
    trial = made.claim(NAMED, "here", TRACES[1])
    with pytest.warns(RuntimeWarning, match="takes no more records"):
        made.finish(trial, Measurement(0, "wrong", error="x" * 100_000))
    made.finish(made.claim(NAMED, "here", TRACES[2]), ok(0.5))
    assert [r.seconds for r in made.of(NAMED, "here")] == [1.0, math.inf, 0.5]
    with Records(path) as left:
        assert left.is_whole() and [r.seconds for r in left.of(NAMED, "here")] == [1.0]


def test_lines_of_json_travel(tmp_path):
    one, other = Records(None), Records(None)
    one.finish(one.claim(NAMED, "here", TRACES[0], predicted=2.0), ok(1.0))
    one.finish(one.claim(NAMED, "here", TRACES[1]), Measurement(0, "crashed", error="SIGSEGV"))
    lines = [record.as_json() for record in one.all()]
    found = list(read_lines([lines[0], "", lines[1][:-7], '{"format": 1}', lines[1]]))
    assert [(n, isinstance(r, Record)) for n, r in found] == [(1, True), (3, False), (4, False), (5, True)]
    for _, record in found:
        if isinstance(record, Record):
            assert other.add(record, NAMED)
            assert not other.add(record, NAMED)
    assert [(r.seconds, r.status) for r in other.all()] == [(1.0, "ok"), (math.inf, "crashed")]


def test_pruning_keeps_the_best_and_the_worst_guesses():
    made = Records(None)
    for n, trace in enumerate(TRACES):
        made.finish(made.claim(NAMED, "here", trace, predicted=100.0 if n == 4 else 1.0 + n), ok(1.0 + n))
    assert made.prune(keep=2, misses=1) == len(TRACES) - 3
    assert [r.seconds for r in made.all()] == [1.0, 2.0, 5.0]


def test_the_family_has_the_best_of_other_sizes():
    made = Records(None)
    larger = canonical(parse(PROGRAM.replace("64", "96")))
    assert larger.family == NAMED.family
    for n, trace in enumerate(TRACES):
        made.finish(made.claim(NAMED, "here", trace), ok(1.0 + n))
    assert [r.seconds for r in made.family(larger)] == [1.0, 2.0]


# ---------------------------------------------------------------- damaged parts

DEEP = json.loads("[" * 300 + "]" * 300)
DAMAGED = [
    ("number", math.inf), ("number", 1 << 64), ("number", -(1 << 64)), ("number", "3"), ("number", True), ("number", None),
    ("sizes", []), ("sizes", {"n": 1.5}), ("sizes", {"n": 1 << 70}), ("script", 5), ("script", "\ud800"), ("key", None), ("key", ["k"]),
    ("family", 1.0), ("machine", {}), ("trace", {}), ("trace", "x"), ("trace", [5]), ("trace", [{"name": "split"}]), ("trace", DEEP),
    ("trace", [{"name": "f", "args": {"a": DEEP}, "result": None}]), ("status", "fine"), ("status", []), ("seconds", "1"), ("seconds", -1.0),
    ("seconds", math.nan), ("seconds", [1.0]), ("times", 5), ("times", ["a"]), ("times", [math.nan]), ("predicted", "x"),
    ("predicted", math.inf), ("error", 5), ("rules", [1]), ("rules", 3), ("made", 7), ("load", math.nan), ("load", "x"),
    ("build_seconds", []), ("build_seconds", 1 << 64), ("unknown", 1), ("format", 7), ("format", None),
]  # fmt: skip


@pytest.fixture(scope="module")
def line():
    made = Records(None)
    made.finish(made.claim(NAMED, "here", TRACES[0]), ok(1.0))
    return json.loads(next(made.all()).as_json())


@pytest.mark.parametrize(("name", "value"), DAMAGED)
def test_a_line_with_a_damaged_part_is_no_record(line, name, value):
    assert isinstance(Record.from_json(json.dumps(line)), Record)
    with pytest.raises(ValueError, match=r"no record|another version"):
        Record.from_json(json.dumps({**line, name: value}))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{" * 10, "null", "5", "[]", '"x"', "9" * 5000, "{}", '{"format": 1}', "\ud800", "\0"]
)
def test_a_line_that_is_no_object_is_no_record(text):
    with pytest.raises(ValueError):
        Record.from_json(text)


COLUMNS = {
    "trial": ["decisions", "predicted", "status", "best", "times", "error", "build_s", "load", "made", "number"],
    "workload": ["script", "sizes", "family"],
    "sketch": ["trace", "rules"],
    "machine": ["about", "key"],
    "run": ["started", "seed", "options"],
    "answer": ["task", "batch", "trace", "status", "seconds", "error"],
}
CONTENTS = [None, 9e999, -9e999, 1 << 62, "x", b"\xff\xfe", "[" * 100_000, "[1]", "{}", "5", "1e999", '"\\ud800"', ""]


@pytest.mark.parametrize("table", COLUMNS)
@pytest.mark.filterwarnings("ignore:.*is damaged")
def test_no_door_of_a_database_with_a_damaged_row_raises(tmp_path, table):
    path = tmp_path / "tune.db"
    with Records(path) as made:
        run = made.begin_run(0, {"fresh": True})
        made.add_machine("here", {"cpu": "a"})
        for n, trace in enumerate(TRACES[:2]):
            made.finish(made.claim(NAMED, "here", trace, run=run), ok(1.0 + n))
        made.note(run, NAMED, "here", {}, 0, [("t", ok(1.0))])
        assert made.answers(run, NAMED, "here", {}) and made.runs() and made.begun(run) and made.machines()
    whole = path.read_bytes()
    read = 0
    for column in COLUMNS[table]:
        for content in CONTENTS:
            path.write_bytes(whole)
            with sqlite3.connect(path) as raw:
                raw.execute("PRAGMA ignore_check_constraints=1")
                value = "CAST(? AS TEXT)" if content == b"\xff\xfe" else "?"
                raw.execute(f"UPDATE {table} SET {column}={value} WHERE rowid=1", [content])
            raw.close()
            with Records(path) as made:
                found = list(made.all())
                assert table != "trial" or 2.0 in [r.seconds for r in found]  # the other row
                for record in (*found, *made.of(NAMED, "here"), *made.best(NAMED, "here"), *made.family(NAMED)):
                    assert Record.from_json(record.as_json()) == record
                made.runs(), made.machines(), made.answers(run, NAMED, "here", {})
                try:
                    made.begun(run)
                except tir.TirError as error:
                    assert "replay" in str(error)
                read += made.damaged
    assert read


def test_a_record_of_a_wrong_type_leaves_the_database_where_it_is(tmp_path):
    with Records(tmp_path / "tune.db") as made:
        with pytest.raises(sqlite3.Error):
            made.finish(made.claim(NAMED, "here", TRACES[0]), Measurement(0, "ok", 1.0, build_seconds=[]))
        assert made.path is not None
