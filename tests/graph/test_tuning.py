"""Models tuned within a budget, and kernels by default that the disk cache keeps."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.random_graphs import expected
from tir.errors import ModelError, TirError
from tir.graph import Builder, compile_graph, kernels
from tir.graph.kernels import default_key
from tir.graph.tuning import tune_graph
from tir.tune.records import Records


def two_products():
    """A product that occurs twice, with weights of its own each time, and a softmax."""
    b, rng = Builder(), np.random.default_rng(0)
    y = b.input("x", (16, 16))
    for name in ("v", "w"):
        y = b.call("nn.relu", b.call("matmul", y, b.constant(rng.standard_normal((16, 16)).astype("float32"), name)))
    return b.graph({"y": b.call("nn.softmax", y)})


X = np.random.default_rng(1).standard_normal((16, 16)).astype("float32")


def test_a_tuned_model_computes_the_same_and_its_trials_are_kept(tmp_path):
    graph, path = two_products(), tmp_path / "models.db"
    model = tir.tune(graph, seconds=1, db=path, cold=False, verbose=False)
    np.testing.assert_allclose(model(X), expected(graph, [X])["y"], rtol=1e-4, atol=1e-5)
    # the schedules that are found decide whether the second product may be written over the first
    assert len(model.kernels) == 3 and len({name.partition("_over_")[0] for name in model.kernels}) == 2
    with Records(path) as records:
        begun = len(list(records.all()))
    assert begun >= 1
    again = tir.tune(graph, seconds=0.2, db=path, cold=False, verbose=False)
    np.testing.assert_allclose(again(X), expected(graph, [X])["y"], rtol=1e-4, atol=1e-5)


def test_time_goes_by_how_often_a_kernel_runs(monkeypatch):
    seen = {}

    def tune(module, target, **options):
        seen.update(options, functions=len(module), target=target)
        raise TirError("that is all")

    monkeypatch.setattr("tir.graph.tuning.tune", tune)
    with pytest.raises(TirError, match="that is all"):
        tune_graph(two_products(), "llvm -num-cores=1", seconds=7, seed=3, cold=False, verbose=False)
    assert seen["weights"] == {"kernel_0": 2.0, "kernel_1": 1.0} and seen["functions"] == 2
    assert (seen["seconds"], seen["seed"], seen["cold"], seen["verbose"], seen["db"]) == (7, 3, False, False, None)
    assert seen["target"] == "llvm -num-cores=1"


def test_what_was_not_reached_is_the_default(monkeypatch):
    """An interrupted search keeps what it found, and says nothing of the rest."""
    graph = two_products()
    from tir.graph import tuning

    real = tuning.tune

    def stopped(module, target, **options):
        result = real(module, target, **{**options, "trials": 2, "seconds": 20})
        result.tuned = result.tuned[:1]
        return result

    monkeypatch.setattr("tir.graph.tuning.tune", stopped)
    asked = []
    monkeypatch.setattr("tir.graph.tuning.by_default", lambda f, t: asked.append(f) or kernels.by_default(f, t))
    model = tune_graph(graph, cold=False, verbose=False)
    assert len(asked) == 1
    np.testing.assert_allclose(model(X), expected(graph, [X])["y"], rtol=1e-4, atol=1e-5)


def test_tune_takes_what_compile_takes(tmp_path):
    with pytest.raises(ModelError, match="missing.onnx"):
        tir.tune(tmp_path / "missing.onnx", seconds=1)
    result = tir.tune(tir.library.elementwise.scale_add(64), trials=1, verbose=False)
    assert type(result).__name__ == "Result"


# ---------------------------------------------------------------- kernels that the disk cache keeps


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_CACHE", "1")
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_a_second_compile_schedules_nothing(cache, monkeypatch):
    graph = two_products()
    first = compile_graph(graph)
    assert len(list(cache.rglob("*.kernel"))) == 2
    monkeypatch.setattr("tir.graph.kernels.default", lambda *_: pytest.fail("it was scheduled again"))
    monkeypatch.setattr("codegen.compiled.keep", lambda *_: pytest.fail("it was built again"))
    second = compile_graph(graph)
    np.testing.assert_array_equal(first(X), second(X))
    assert first.kernels == second.kernels and first.workspace_bytes == second.workspace_bytes


def test_rules_of_others_and_other_machines_have_kernels_of_their_own(cache):
    func = kernels.group_functions(tir.graph.groups(two_products()), ())
    one = next(iter(func.values()))
    keys = {
        default_key(one, target) for target in ("llvm", "llvm -num-cores=1", "llvm -num-cores=3", "llvm -mcpu=x86-64")
    }
    assert len(keys) == 4 and None not in keys
    assert default_key(one, "interpreter") is None

    @tir.tune.rule(order=99)
    def nothing_at_all(sch, block, env):
        return []

    try:
        assert default_key(one, "llvm") is None
    finally:
        tir.tune.remove("nothing_at_all")
    assert default_key(one, "llvm") in keys


def test_a_model_compiles_without_a_cache(monkeypatch):
    monkeypatch.setenv("TIR_CACHE", "0")
    graph = two_products()
    np.testing.assert_allclose(compile_graph(graph)(X), expected(graph, [X])["y"], rtol=1e-4, atol=1e-5)
