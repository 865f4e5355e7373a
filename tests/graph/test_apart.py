"""Models compiled by a process of their own: as those that are compiled here, and compiled here where that fails."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tir import progress
from tir.config import override
from tir.errors import BuildError, ModelError
from tir.graph import PASSES, Builder, Graph, apart, compile_graph
from tir.graph import model as models
from tir.graph.graph_passes import fold_constants
from tir.outcome import Elsewhere
from tir.tune.process import Child

TARGET = "llvm -num-cores=1"
X = np.random.default_rng(1).standard_normal((3, 8)).astype("float32")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIR_CACHE", "1")
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(apart, "LEAST", 1)
    monkeypatch.setattr(apart, "is_single", lambda: False)  # a process that runs tests in parallel has threads
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


BEFORE = """
import logging, os, warnings
import tir.graph.kernels as kernels
import tir.workers
scheduled, first = kernels._scheduled, os.getpid()
def other(func, target):
    {0}
    return scheduled(func, target)
kernels._scheduled, tir.workers.cores = other, lambda: {1}
"""


@pytest.fixture
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the process run code before each kernel that it schedules, and have a number of cores."""

    def run(code: str, cores: int = 2) -> None:
        (folder / "sitecustomize.py").write_text(BEFORE.format(code, cores))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))

    return run


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
    assert first.module.compiled.code == second.module.compiled.code
    np.testing.assert_array_equal(first.weights, second.weights)
    for one, other in zip(run(first), run(second)):
        np.testing.assert_array_equal(one, other)


def test_processes_for_several_cores_make_what_one_makes(there, here, folder, monkeypatch):
    there("pass", 3)
    several = compile_graph(network(), TARGET, ["memory"])
    monkeypatch.setenv("TIR_CACHE_DIR", str(folder / "other"))
    there("pass", 1)
    one = compile_graph(network(), TARGET, ["memory"])
    assert not here and several.module.source("llvm") == one.module.source("llvm")
    assert several.module.compiled.code == one.module.compiled.code and several.plan.offsets == one.plan.offsets
    assert several.weights.tobytes() == one.weights.tobytes()


def test_processes_compile_symbolic_sizes_and_cases(there, here, folder, monkeypatch):
    there("pass", 2)
    b = Builder()
    w = b.constant(np.arange(32, dtype="float32").reshape(8, 4), "w")
    y = b.call("nn.softmax", b.call("matmul", b.input("x", ("n", 8)), w))
    graph = b.graph(b.call("concatenate", [y, y], axis=0))
    first = compile_graph(graph, TARGET, cases=[{"n": 1}])
    assert not here
    monkeypatch.setenv("TIR_CACHE_DIR", str(folder / "other"))
    monkeypatch.setattr(apart, "LEAST", 1000)
    second = compile_graph(graph, TARGET, cases=[{"n": 1}])
    assert len(here) == 1 and first.module.source("tir") == second.module.source("tir")
    assert first.module.source("llvm") == second.module.source("llvm")
    for x in (X, X[:1]):
        np.testing.assert_array_equal(first(x), second(x))


def test_log_records_and_warnings_are_given_out_here(there, here, caplog: pytest.LogCaptureFixture):
    there("warnings.warn('an odd kernel', RuntimeWarning); logging.getLogger('tir.odd').info('%s is odd', 'one')")
    with caplog.at_level(logging.INFO, "tir"), pytest.warns(RuntimeWarning, match="an odd kernel"):
        compile_graph(network(), TARGET, ["memory"])
    assert not here and caplog.messages.count("one is odd") == 3


@pytest.mark.parametrize("where", ["True", "os.getpid() != first"], ids=["in the process", "in a copy of it"])
def test_a_kernel_that_cannot_be_built_is_named_once(where: str, there, here, caplog: pytest.LogCaptureFixture):
    there(f"if {where}: logging.getLogger('tir').error('tried'); raise ValueError('no such shape')")
    with pytest.raises(BuildError, match=r"(?s)^kernel \w+ cannot be built for llvm.*: no such shape\n  ") as caught:
        compile_graph(network(), TARGET, ["memory"])
    assert not here and 1 <= caplog.messages.count("tried") <= 2
    program = re.search(r"its program is in (.*)$", str(caught.value))
    assert program is not None and "T.prim_func" in Path(program[1]).read_text()
    cause = caught.value.__cause__
    assert type(cause) is ValueError and isinstance(cause.__cause__, Elsewhere) and "Traceback" in str(cause.__cause__)


def test_a_process_that_dies_is_an_error(there, here, folder: Path):
    there("os.kill(first, 9)")
    with pytest.raises(ModelError, match="compiling the model: the process ended: SIGKILL"):
        compile_graph(network(), TARGET, ["memory"])
    assert not here and not list(folder.rglob("*.tmp"))


def test_a_copy_that_dies_is_an_error_of_its_kernel(there, here):
    there("if os.getpid() != first: os.kill(os.getpid(), 11)")
    with pytest.raises(
        BuildError, match=r"^kernel \w+ cannot be built .*: the process that compiled it ended: SIGSEGV\n"
    ):
        compile_graph(network(), TARGET, ["memory"])
    assert not here


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
    monkeypatch.setattr(apart.keys, "surroundings", lambda *_: "another")
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


COPIED = """
import logging, os, warnings
import numpy as np
import codegen.runtime.openmp as parallel
import tir.graph.kernels as kernels
from tests.graph.test_apart import network, run
from tir import workers
from tir.graph import apart, compile_graph, model
workers.cores = lambda: 2
apart.LEAST = 1
scheduled, first = kernels._scheduled, os.getpid()
def other(func, target):
    assert os.getpid() != first and parallel._process.lost
    {0}
    return scheduled(func, target)
kernels._scheduled = other
logging.basicConfig(format="%(message)s")
before, found = os.getpid(), network()
"""


def copied(code: str, then: str) -> str:
    """What a process of one thread prints where ``code`` is run before each kernel that its copies schedule."""
    with subprocess.Popen(
        [sys.executable, "-c", COPIED.format(code) + then], stdout=-1, stderr=-2, text=True
    ) as process:
        return process.communicate(timeout=120)[0]


def test_a_process_of_one_thread_is_copied():
    shown = copied(
        "warnings.warn('an odd kernel'); logging.getLogger('tir.odd').warning('one is odd')",
        "one = compile_graph(found, 'llvm -num-cores=2', ['memory'])\n"
        "kernels._scheduled = scheduled\n"
        "two = model.compile_here(None, found, 'llvm -num-cores=2', ['memory'])\n"
        "print(one.weights.tobytes() == two.weights.tobytes(), one.module.compiled.code == two.module.compiled.code)\n"
        "print(all(map(np.array_equal, run(one), run(two))), parallel._process.lost)\n",
    )
    assert shown.count("\none is odd") + shown.startswith("one is odd") == 3 and shown.count("an odd kernel\n") == 1
    assert shown.endswith("True True\nTrue False\n")


@pytest.mark.parametrize("code, error", [("raise KeyError('x')", "BuildError: kernel "), ("os.kill(os.getppid() if os.getppid() != first else os.getpid(), 9)", "ModelError: compiling the model: the process that compiled it ended: SIGKILL; with TIR_CACHE=0")])  # fmt: skip
def test_errors_of_a_copy_are_raised_here(code: str, error: str):
    shown = copied(code, "compile_graph(found, 'llvm -num-cores=1', ['memory'])")
    assert f"\ntir.errors.{error}" in shown
