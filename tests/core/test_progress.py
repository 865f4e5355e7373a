"""Long runs say how far they are, to those who look, and change nothing of what is run."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import config, progress
from tir.script import tir as T


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)


@T.prim_func
def scaled(A: T.Buffer((4, 5), "float32"), B: T.Buffer((4, 5), "float32")):
    for _o in range(1):
        for i in range(4):
            for j in range(5):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)


def without_tqdm(monkeypatch):
    monkeypatch.setattr(progress, "bar", lambda what, total, done=0: None)


def test_the_outermost_loop_that_repeats_is_counted(monkeypatch, capsys):
    without_tqdm(monkeypatch)
    with config.override(progress="1"):
        found = tir.build(scaled, target="interpreter").new(np.ones((4, 5), "float32"))
    assert (found == 2).all()
    assert capsys.readouterr().err.splitlines() == [f"scaled: loop i: {n} of 4" for n in range(4)]


def test_the_simulator_counts_blocks_and_barriers(monkeypatch, capsys):
    without_tqdm(monkeypatch)
    sch = tir.Schedule(scaled)
    sch.bind("i", "blockIdx.x")
    sch.bind("j", "threadIdx.x")
    with config.override(progress="1"):
        tir.build(sch.mod, "cuda-sim").new(np.ones((4, 5), "float32"))
    assert "simulator: 4 thread blocks at a time: 0 of 1" in capsys.readouterr().err


def test_nothing_is_shown_where_nobody_looks(monkeypatch, capsys):
    without_tqdm(monkeypatch)
    for wanted in ("", "0"):
        with config.override(progress=wanted):
            assert list(progress.track(range(3), "counting", 3)) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_tqdm_draws_the_bar_where_it_is(capsys):
    pytest.importorskip("tqdm", reason="tqdm is not installed: the bar is drawn by it")
    with config.override(progress="1"):
        assert list(progress.track(range(3), "counting", 3)) == [0, 1, 2]
    assert "counting" in capsys.readouterr().err


def test_a_loop_that_is_left_early_ends_its_bar(monkeypatch):
    closed = []

    class Bar:
        def update(self, done):
            pass

        def close(self):
            closed.append(True)

    monkeypatch.setattr(progress, "bar", lambda what, total, done=0: Bar())
    with config.override(progress="1"):
        items = progress.track(range(3), "counting", 3)
        next(items), next(items)
        items.close()
    assert closed == [True]
