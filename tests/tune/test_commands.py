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
