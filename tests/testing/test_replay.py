"""The two measures of a change of the proofs: process replay, and the costs of schedules in counts."""

from __future__ import annotations

import multiprocessing

import pytest

import tir
from benchmarks import counts
from tests.tools import replay


def test_a_folder_has_every_step_and_refusal(tmp_path):
    assert replay.write(tmp_path, 1, "primitives/reorder/") > 5
    texts = replay.read(tmp_path)
    assert all(name.startswith("primitives/reorder/") for name in texts)
    assert any("== refused: sch.reorder(" in t and "would change their order" in t for t in texts.values())
    assert any("== step 1: reorder(" in t and "@T.prim_func" in t for t in texts.values())


def test_every_kind_of_schedule_is_there():
    groups = {"/".join(name.split("/")[:2]) for name in replay.cases()}
    assert {"primitives/split", "examples/gpu", "examples/matmul", "library/attention-1"} <= groups
    assert sum(name.startswith("classic/") for name in replay.cases()) >= 150


def test_two_states_are_compared():
    old = {"a": "== step 1: f\nx\n", "b": "== step 1: f\nx\n", "c": "== refused: f\nno\n", "d": "gone"}
    new = {"a": "== step 1: f\nx\n", "b": "== refused: f\nno\n", "c": "== step 1: f\nx\n", "e": "new"}
    text = replay.compare(old, new)
    assert "1 accepted before, refused now: b" in text and "1 refused before, accepted now: c" in text
    assert "1 no longer there: d" in text and "1 new: e" in text and "-x" in text and "+no" in text
    assert replay.compare(old, old) == ""


def test_a_failure_is_part_of_the_text(monkeypatch: pytest.MonkeyPatch):
    def fail(*args, **options):
        raise ValueError("no such thing")

    monkeypatch.setattr(tir.Schedule, "split", fail)
    assert "== raised ValueError: sch.split(" in replay.cases()["primitives/split/a_block_handle"]()


def test_counts_of_a_schedule():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(counts.count, ("gpu/conv2d",))
    assert found["steps"] > 40 and found["simplify calls"] > 0 and found["set operations"] > 0


def test_counts_are_compared():
    old = {"layer norm": dict(zip(counts.COLUMNS, (7, 0, 120))), "gemm": dict(zip(counts.COLUMNS, (3, 4, 5)))}
    assert counts.parsed(counts.table(old)) == old
    new = {**old, "gemm": dict(zip(counts.COLUMNS, (3, 4, 6)))}
    assert counts.difference(old, new).count("was") == 1 and "6 (was 5)" in counts.difference(old, new)
