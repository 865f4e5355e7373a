"""``python -m tir.tune`` and ``tir.tune.explain``."""

from __future__ import annotations

import io
import json

import pytest
from test_search import MATMUL, Computed, clock, space

import tir
from tir.script import parse
from tir.tune.__main__ import main
from tir.tune.records import Records


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    path = tmp_path_factory.mktemp("tune") / "tune.db"
    tir.tune(parse(MATMUL), trials=4, space=space, runner=Computed(), clock=clock, db=path, verbose=False)
    return path


def test_records_are_exported_and_imported(db, tmp_path, capsys, monkeypatch):
    assert main(["export", str(db)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(json.loads(line)["script"] for line in lines)
    broken = json.loads(lines[1])
    broken["trace"] = [{"name": "no_such_primitive", "args": {}, "result": None}]
    file = tmp_path / "lines.json"
    file.write_text("\n".join([lines[0], lines[1][:50], json.dumps(broken), lines[2]]))
    other = tmp_path / "other.db"
    assert main(["import", str(other), str(file)]) == 1
    said = capsys.readouterr()
    assert "2 trials added, 0 were there" in said.out
    assert "line 2:" in said.err and "line 3:" in said.err and "no_such_primitive" in said.err
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    assert main(["import", str(other)]) == 0
    assert "2 trials added, 2 were there" in capsys.readouterr().out
    with Records(other) as records, Records(db) as first:
        assert sorted(r.seconds for r in records.all()) == sorted(r.seconds for r in first.all())
    sch = tir.tune.apply_best(parse(MATMUL), db=other)  # the same machine
    assert Computed().time(sch.mod) < 100


def test_records_are_shown_and_pruned(db, tmp_path, capsys):
    assert main(["show", str(db)]) == 0
    said = capsys.readouterr().out
    assert "4 trials, 0 failed" in said and "seed 0, 4 measurements, tir.tune(…, replay=1)" in said
    assert main(["show", str(tmp_path / "none.db")]) == 2 and "does not exist" in capsys.readouterr().err
    copy = tmp_path / "copy.db"
    copy.write_bytes(db.read_bytes())
    assert main(["prune", str(copy), "--keep", "1"]) == 0
    assert "kept" in capsys.readouterr().out
    bad = tmp_path / "bad.db"
    bad.write_text("no database" * 200)
    assert main(["show", str(bad)]) == 2 and "no database" in capsys.readouterr().err


def test_an_explanation_has_terms_and_choices():
    class Guess:
        seconds, terms, floor = 2e-3, {"core": 1e-3, "memory": 1.5e-3}, 1e-3

    text = repr(tir.tune.explain(parse(MATMUL), space=space, model=lambda sch: Guess(), draw=3))
    assert "predicted 2 ms, at least 1 ms" in text and "memory: 1.5 ms" in text and "sample_perfect_tile: [" in text


def test_files_that_cannot_be_read_are_named_and_the_others_are_read(db, tmp_path, capsys):
    assert main(["export", str(db)]) == 0
    good, binary = tmp_path / "good.jsonl", tmp_path / "binary"
    good.write_text(capsys.readouterr().out)
    binary.write_bytes(bytes(range(256)) * 10)
    other = str(tmp_path / "other.db")
    assert main(["import", other, str(tmp_path / "nope.jsonl"), str(binary), str(tmp_path), str(good)]) == 1
    said = capsys.readouterr()
    assert "4 trials added" in said.out and len(said.err.splitlines()) == 3
    assert said.err.count("cannot be read: ") == 3
    assert main(["import", other, "a\0b"]) == 1 and "cannot be read" in capsys.readouterr().err
    for wrong in (str(tmp_path), "a\0b", "/no/such/folder/a.db"):
        assert main(["import", wrong, str(good)]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_no_program_in_a_line_runs(db, tmp_path, capsys):
    assert main(["export", str(db)]) == 0
    line = json.loads(capsys.readouterr().out.splitlines()[0])
    trap = tmp_path / "ran"
    line["script"] = f"""
@T.prim_func
def f(A: T.Buffer((8 + 0 * len(__import__("os").popen("touch {trap}").read()),), "int32")):
    A[0] = 1
"""
    file = tmp_path / "line.json"
    file.write_text(json.dumps(line))
    assert main(["import", str(tmp_path / "other.db"), str(file)]) == 1
    assert "line 1: 1 error in the text" in capsys.readouterr().err and not trap.exists()
