"""Models compiled by a process of their own: as those that are compiled here, and compiled here where that fails."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tir import progress
from tir.config import override
from tir.errors import ModelError
from tir.graph import PASSES, Builder, Graph, apart, compile_graph
from tir.graph import model as models
from tir.graph.passes import fold_constants
from tir.tune.process import Child

TARGET = "llvm -num-cores=1"
X = np.random.default_rng(1).standard_normal((3, 8)).astype("float32")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIR_CACHE", "1")
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(apart, "LEAST", 1)
    return tmp_path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list:
    """The graphs that are compiled in this process."""
    made = []
    compile_optimized = models.compile_optimized
    monkeypatch.setattr(
        models, "compile_optimized", lambda graph, *rest, **named: made.append(graph) or compile_optimized(graph, *rest, **named)
    )  # fmt: skip
    return made


def network() -> Graph:
    b = Builder()
    x, memory = b.input("x", (3, 8)), b.input("memory", (3, 4))
    w = b.constant(np.arange(32, dtype="float32").reshape(8, 4), "w")
    none, half = b.constant(np.zeros((3, 0), "float32"), "none"), b.constant(np.ones(4, "float16"), "half")
    product = b.call("matmul", x, b.call("multiply", w, 2.0))
    joined = b.call("concatenate", [product, none], 1)
    return b.graph({"memory": b.call("add", memory, joined), "y": b.call("multiply", product, b.call("cast", half, "float32"))})  # fmt: skip


def run(model):
    state = {"memory": np.ones((3, 4), "float32")}
    return model(X, state=state), state["memory"]


def test_a_process_compiles_what_this_one_would(here: list, folder: Path, monkeypatch: pytest.MonkeyPatch):
    first = compile_graph(network(), TARGET, ["memory"])
    assert not here and not list(folder.rglob("*.tmp"))
    monkeypatch.setenv("TIR_CACHE_DIR", str(folder / "other"))
    monkeypatch.setattr(apart, "LEAST", 1000)
    second = compile_graph(network(), TARGET, ["memory"])
    assert len(here) == 1 and first.key == second.key
    assert first.module.source("llvm") == second.module.source("llvm") and str(first.graph) == str(second.graph)
    np.testing.assert_array_equal(first.weights, second.weights)
    for one, other in zip(run(first), run(second)):
        np.testing.assert_array_equal(one, other)


def test_the_process_has_the_passes_of_this_one(here: list, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(apart, "PASSES", [one for one in PASSES if one is not fold_constants])
    monkeypatch.setattr(models, "PASSES", apart.PASSES)
    model = compile_graph(network(), TARGET, ["memory"])
    assert not here and "multiply" in " ".join(model.kernels)


@pytest.mark.parametrize("executable", ["", "/no/such/python", "/bin/false"])
def test_where_no_process_can_be_started_the_model_is_compiled_here(executable, here, monkeypatch):
    monkeypatch.setattr(sys, "executable", executable)
    run(compile_graph(network(), TARGET, ["memory"]))
    assert len(here) == 1


def test_where_nothing_can_be_written_no_process_is_started(here, folder, monkeypatch):
    (folder / "cache").write_text("a file")
    monkeypatch.setattr(apart, "Child", None)
    run(compile_graph(network(), TARGET, ["memory"]))
    assert len(here) == 1


def test_a_process_of_another_machine_compiles_nothing(here: list, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(apart.kept, "surroundings", lambda *_: "another")
    run(compile_graph(network(), TARGET, ["memory"]))
    assert len(here) == 1


def test_proofs_are_printed_by_this_process(here: list, capsys: pytest.CaptureFixture):
    with override(explain=True):
        compile_graph(network(), TARGET, ["memory"])
    assert len(here) == 1


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_the_process_shows_how_far_it_is_where_somebody_looks(wanted: str, here: list, monkeypatch: pytest.MonkeyPatch):
    started = []

    def child(memory, environment, module, heard):
        started.append((environment, heard))
        return Child(memory, environment, module, heard)

    monkeypatch.setattr(apart, "Child", child)
    with override(progress=wanted):
        compile_graph(network(), TARGET, ["memory"])
    assert started == [({"TIR_PROGRESS": wanted}, wanted == "1")] and not here


def test_kernels_are_counted_where_somebody_looks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "bar", lambda what, total, done=0: None)
    with override(progress="1"):
        models.compile_here(None, network(), TARGET, ["memory"])
    shown = capsys.readouterr().err
    assert "scheduling kernels: 2 of 3" in shown and "compiling functions: 4 of 5" in shown


def test_errors_are_those_of_this_process():
    with pytest.raises(ModelError, match="state 'other' must be an input and a result"):
        compile_graph(network(), TARGET, ["other"])


def test_an_interrupt_ends_the_process(folder: Path, monkeypatch: pytest.MonkeyPatch):
    started = []

    def interrupted(self, limit):
        started.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Child, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_graph(network(), TARGET, ["memory"])
    assert not started[0].alive and not [each for each in folder.rglob("*") if each.is_file()]
