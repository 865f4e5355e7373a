"""Compiled models that are found in the disk cache: what names them, that they are as compiled ones, and what is not kept."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tir
from codegen import disk
from tir.config import override
from tir.graph import PASSES, Builder, compile_graph, kept, kernels, keys
from tir.graph import model as models
from tir.ops import registry
from tir.target import Target

TARGET = "llvm -num-cores=1"
X = np.random.default_rng(1).standard_normal((3, 8)).astype("float32")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIR_CACHE", "1")
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path))
    return tmp_path


def network(by: float = 1.0, name: str = "x", rows: int | str = 3):
    b = Builder()
    w = b.constant((np.arange(32).reshape(8, 4) * by).astype("float32"), "w")
    return b.graph({"y": b.call("nn.relu", b.call("matmul", b.input(name, (rows, 8)), w))})


def updated():
    b = Builder()
    memory = b.input("memory", (4,))
    total = b.call("add", memory, b.input("x", (4,)))
    return b.graph({"memory": total, "twice": b.call("multiply", total, 2.0)})


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch):
    """The graphs that are compiled, not found."""
    made = []
    compile_optimized = models.compile_optimized

    def counting(graph, *rest, **named):
        made.append(graph)
        return compile_optimized(graph, *rest, **named)

    monkeypatch.setattr(models, "compile_optimized", counting)
    return made


def test_a_model_that_is_found_is_as_the_one_that_was_compiled(compilations, folder):
    first, second = (compile_graph(network(), TARGET) for _ in range(2))
    assert len(compilations) == 1
    np.testing.assert_array_equal(first(X), second(X))
    np.testing.assert_array_equal(first.weights, second.weights)
    assert second.weights.ctypes.data % 64 == 0
    assert (first.inputs, first.outputs, first.kernels) == (second.inputs, second.outputs, second.kernels)
    assert (first.weights_bytes, first.workspace_bytes) == (second.weights_bytes, second.workspace_bytes)
    assert str(first.graph) == str(second.graph) and repr(first.plan) == repr(second.plan)
    for value, array in first.graph.constants.items():
        np.testing.assert_array_equal(array, second.graph.constants[value])
    for kind in ("tir", "lowered", "llvm"):
        assert first.module.source(kind) == second.module.source(kind)
    assert [k.bytes for k in second.profile(X, repeat=1).kernels] == [k.bytes for k in first.profile(X).kernels]
    second.save(folder / "model.o")
    np.testing.assert_array_equal(tir.load(folder / "model.o")(X), first(X))


def test_weights_of_one_model_have_the_same_bytes(monkeypatch):
    b = Builder()
    half = b.constant(np.ones(4, "float16"), "half")
    graph = b.graph({"y": b.call("add", b.input("x", (4,), "float16"), half)})
    monkeypatch.setenv("TIR_CACHE", "0")
    monkeypatch.setattr(kernels, "memory", lambda nbytes: np.full(max(nbytes, 1), 255, "uint8"))
    assert not compile_graph(graph, TARGET).weights[8:].any()
    assert not compile_graph(updated(), TARGET).weights.any()


def test_a_state_is_found_with_its_model(compilations):
    for _ in range(2):
        model = compile_graph(updated(), TARGET, state=["memory"])
        state = model.new_state()
        model(np.ones(4, "float32"), state=state)
        np.testing.assert_array_equal(state["memory"], np.ones(4))
    assert len(compilations) == 1
    compile_graph(updated(), TARGET)
    assert len(compilations) == 2, "without a state it is another model"


@pytest.mark.parametrize("cases", [[], [{"n": 1}]])
def test_a_model_of_symbolic_sizes_is_found_with_its_cases(compilations, folder, cases):
    b = Builder()
    w = b.constant(np.arange(32).reshape(8, 4).astype("float32"), "w")
    y = b.call("matmul", b.input("x", ("n", 8)), w)
    graph = b.graph({"y": b.call("concatenate", [y, y], axis=0)})
    first, second = (compile_graph(graph, TARGET, cases=cases) for _ in range(2))
    assert len(compilations) == 1
    for x in (X, X[:1]):
        np.testing.assert_array_equal(second(x), first(x))
    assert [(c.values, c.kernels) for c in first.cases] == [(c.values, c.kernels) for c in second.cases]
    assert (first.inputs, first.workspace_bytes) == (second.inputs, second.workspace_bytes)
    assert first.inputs[0].shape[0] - second.inputs[0].shape[0] == 0, "the symbol is the same"
    assert [k.bytes for k in second.profile(X, repeat=1).kernels] == [
        k.bytes for k in first.profile(X, repeat=1).kernels
    ]
    second.save(folder / "model.o")
    np.testing.assert_array_equal(tir.load(folder / "model.o")(X), first(X))


def test_whatever_makes_another_model_names_another_one(monkeypatch):
    def key(graph=None, target=TARGET, passes=PASSES, cases=()):
        return keys.model_key(graph or network(), Target.of(target), (), passes, cases)

    made = [
        key(),
        key(network(2.0)),
        key(network(name="z")),
        key(network(rows=4)),
        key(target="llvm -num-cores=2"),
        key(passes=PASSES[1:]),
        key(network(rows="n")),
        key(network(rows="n"), cases=[{"n": 1}]),
        key(network(rows="n"), cases=[{"n": 2}]),
    ]
    assert None not in made and len(set(made)) == len(made) and key() == made[0]


def test_code_of_others_and_the_executor_have_no_name():
    def own(graph):
        return graph

    assert keys.model_key(network(), Target.of(TARGET), (), [*PASSES, own]) is None
    assert keys.model_key(network(), Target.of("interpreter"), (), PASSES) is None
    with override(verify=True):
        assert keys.model_key(network(), Target.of(TARGET), (), PASSES) is None


def test_operators_of_others_have_no_name(monkeypatch):
    def foreign(*_):
        raise AssertionError

    graph = network()
    found = registry.find("nn.relu")
    monkeypatch.setattr(keys.registry, "find", lambda name: found if name != "nn.relu" else _Foreign(foreign))
    assert keys.model_key(graph, Target.of(TARGET), (), PASSES) is None


class _Foreign:
    def __init__(self, function):
        self.function = function


def test_a_damaged_file_is_made_again(compilations, folder):
    want = compile_graph(network(), TARGET)(X)
    for count, suffix in enumerate((".weights", ".model"), 2):
        (file,) = folder.rglob(f"*{suffix}")
        file.write_bytes(b"\1" + file.read_bytes()[1:])
        with pytest.warns(RuntimeWarning, match="is damaged; compiling again"):
            np.testing.assert_array_equal(compile_graph(network(), TARGET)(X), want)
        assert len(compilations) == count
    (file,) = folder.rglob("*.weights")
    file.write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="is damaged"):
        compile_graph(network(), TARGET)
    file.unlink()
    compile_graph(network(), TARGET)
    assert len(compilations) == 5


def test_many_weights_are_not_kept(compilations, folder, monkeypatch):
    monkeypatch.setattr(keys, "MOST", 127)
    compile_graph(network(), TARGET)
    assert not list(folder.rglob("*.weights")) and not list(folder.rglob("*.model"))


def test_no_cache_no_model(compilations, folder, monkeypatch):
    monkeypatch.setenv("TIR_CACHE", "0")
    for _ in range(2):
        compile_graph(network(), TARGET)
    assert len(compilations) == 2 and not list(folder.rglob("*.model"))


def test_weights_of_the_models_that_were_read_last_are_kept(compilations, folder, monkeypatch):
    least = compile_graph(network(), TARGET).weights.nbytes + 32  # and the digest of the file
    monkeypatch.setattr(kept, "ALL", 2 * least)
    compile_graph(network(2.0), TARGET)
    (first,) = [
        f
        for f in folder.rglob("*.weights")
        if f.stat().st_mtime_ns == min(g.stat().st_mtime_ns for g in folder.rglob("*.weights"))
    ]
    compile_graph(network(), TARGET)  # is read, and the other one is older now
    compile_graph(network(3.0), TARGET)
    assert first in (files := set(folder.rglob("*.weights"))) and len(files) == 2
    compile_graph(network(), TARGET)
    assert len(compilations) == 3
    compile_graph(network(2.0), TARGET)
    assert len(compilations) == 4


def test_a_process_looks_at_all_that_is_kept_with_its_first_model_and_after_each_share(folder, monkeypatch):
    looks = []
    monkeypatch.setattr(disk, "trim", lambda path, most: looks.append(most))
    monkeypatch.setattr(kept, "_added", kept.ALL)
    for by in (1.0, 2.0, 3.0):
        compile_graph(network(by), TARGET)
    assert looks == [kept.ALL]
    monkeypatch.setattr(kept, "ALL", kept.SHARE * 300)
    for by in (4.0, 5.0, 6.0):
        compile_graph(network(by), TARGET)  # 128 bytes of weights each: with the two before, 256 are less than 300
    assert looks[1:] == [kept.ALL]


def test_the_last_model_is_kept_whatever_it_takes(compilations, folder, monkeypatch):
    monkeypatch.setattr(kept, "ALL", 0)
    compile_graph(network(), TARGET)
    compile_graph(network(), TARGET)
    compile_graph(network(2.0), TARGET)
    assert len(list(folder.rglob("*.weights"))) == 1 and len(compilations) == 2


def test_the_checksum_of_weights_is_computed_once_for_a_version_of_their_file(compilations, folder, monkeypatch):
    compile_graph(network(), TARGET)
    compile_graph(network(), TARGET)
    (weights,) = folder.rglob("*.weights")
    with monkeypatch.context() as patch:
        patch.setattr(
            disk,
            "_digest",
            lambda path, content, digest=disk._digest: digest(path, content) if path != weights else b"",
        )
        compile_graph(network(), TARGET)
        assert len(compilations) == 1
        os.utime(weights)
        with pytest.warns(RuntimeWarning, match="is damaged"):
            compile_graph(network(), TARGET)
    assert len(compilations) == 2


def test_weights_of_a_process_are_its_own(compilations):
    compile_graph(network(), TARGET)
    first, second = (compile_graph(network(), TARGET) for _ in range(2))
    first.weights[:] = 0
    assert len(compilations) == 1 and not first(X).any() and second(X).any()
