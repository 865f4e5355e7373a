"""Models with kernels of their own for some values of their symbols."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import tir
from tir.errors import ModelError
from tir.graph import Builder, compile_graph, quantize
from tir.graph.model import compile_optimized

RNG = np.random.default_rng(0)
W = RNG.standard_normal((64, 2048)).astype("float32") / 8
TABLE = RNG.standard_normal((500, 64)).astype("float32")


def words(kind="int8"):
    """Rows of a table, by quantized weights: a row reads integers, rows of symbolic number read floats."""
    b = Builder()
    rows = b.call("take", b.constant(TABLE, "table"), b.input("ids", ("n",), "int64"), 0)
    graph = b.graph({"y": b.call("tanh", b.call("matmul", rows, b.constant(W, "w")))})
    return quantize(graph, kind)


def expected(ids):
    return np.tanh(TABLE[ids] @ W)


@pytest.fixture(scope="module")
def model():
    return compile_graph(words(), cases=[{"n": 1}])


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_module_runs_the_kernels_of_the_case_that_a_call_is(model, rows):
    ids = RNG.integers(0, 500, rows)
    np.testing.assert_allclose(model(ids), expected(ids), atol=0.05)
    (case,) = model.cases
    names = {k.kernel for k in model.profile(ids, repeat=1).kernels}
    assert names == set(case.kernels if rows == 1 else model.kernels)
    assert model.case({"n": rows}).kernels == (case.kernels if rows == 1 else model.kernels)


def test_a_case_reads_constants_of_its_own_and_shares_the_others(model):
    (case,) = model.cases
    kinds = [sorted({str(v.dtype) for v in graph.constants}) for graph in (model.graph, case.graph)]
    assert kinds == [["float32"], ["float32", "int8"]]
    integers = 64 * 2048 * (1 + 4 / 32)
    assert model.weights_bytes == TABLE.nbytes + W.nbytes + integers
    (table,) = model.graph.constants.keys() & case.graph.constants.keys()
    assert np.shares_memory(model.graph.constants[table], case.graph.constants[table])


def test_constants_of_one_name_that_differ_are_apart():
    x = np.ones((3, 2), "float32")
    b = Builder()
    moved = b.call("add", b.input("x", ("n", 2)), b.constant(np.float32([1, 2]), "w"))
    graph = b.graph({"y": moved})
    w = next(iter(graph.constants))
    other = replace(graph.at({"n": 1}), constants={w: np.float32([5, 6])})
    made = compile_optimized(graph, "interpreter", cases=[({"n": 1}, other)])
    np.testing.assert_array_equal(made(x), [[2, 3]] * 3)
    np.testing.assert_array_equal(made(x[:1]), [[6, 7]])


def test_threads_and_copies_of_a_model_have_its_cases(model):
    several = [RNG.integers(0, 500, n) for n in (1, 5, 1, 2, 1, 9)]
    with ThreadPoolExecutor(3) as pool:
        for ids, made in zip(several * 4, pool.map(model, several * 4)):
            np.testing.assert_allclose(made, expected(ids), atol=0.05)
    again = pickle.loads(pickle.dumps(model))
    assert again.cases[0].kernels == model.cases[0].kernels
    np.testing.assert_array_equal(again(several[0]), model(several[0]))


def test_a_saved_model_has_its_cases(model, tmp_path):
    model.save(tmp_path / "m.so", header=tmp_path / "m.h")
    loaded = tir.load(tmp_path / "m.so")
    for n in (1, 3):
        ids = RNG.integers(0, 500, n)
        np.testing.assert_array_equal(loaded(ids), model(ids))
    assert loaded.workspace_bytes == model.workspace_bytes


def test_cases_may_leave_symbols_open_and_the_first_that_holds_is_run():
    b = Builder()
    x = b.input("x", ("n", "m"))
    sums = b.call("cumsum", b.call("multiply", b.call("sum", x, 1, True), x), 0)
    cases = [{"n": 1, "m": 4}, {"n": 1}, {"m": 8}]
    made = compile_graph(b.graph({"y": sums}), cases=cases)
    assert [c.graph.symbols for c in made.cases] == [(), ("m",), ("n",)]
    for shape, case in (((1, 4), 0), ((1, 5), 1), ((3, 8), 2), ((1, 8), 1), ((3, 4), None)):
        values = dict(zip("nm", shape))
        found = made.case(values)
        assert found.values == ({} if case is None else cases[case])
        given = RNG.standard_normal(shape).astype("float32")
        np.testing.assert_allclose(made(given), np.cumsum(given.sum(1, keepdims=True) * given, 0), rtol=1e-4, atol=1e-5)
        assert {k.kernel for k in made.profile(given, repeat=1).kernels} == set(found.kernels)
        assert made.sized([given]).nbytes >= found.plan.at(values).nbytes


def test_a_state_is_updated_in_place_in_each_case():
    b = Builder()
    kept, x = b.input("kept", (4,)), b.input("x", ("n", 4))
    graph = b.graph({"kept": b.call("add", kept, b.call("sum", x, 0)), "y": b.call("exp", x)})
    model = compile_graph(graph, state=["kept"], cases=[{"n": 2}])
    state = model.new_state()
    for n in (1, 2, 3):
        model(np.ones((n, 4), "float32"), state=state)
    np.testing.assert_array_equal(state["kept"], [6] * 4)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ({"rows": 1}, r"case {'rows': 1} names 'rows', which is no symbol; they are n"),
        ({"n": 0}, r"case {'n': 0}: n is at least 1"),
        ({}, "a case without values is every call; give values of symbols"),
    ],
)
def test_cases_that_are_none_are_refused(case, why):
    with pytest.raises(ModelError, match=why):
        compile_graph(words(), cases=[case])


def test_a_graph_of_numbers_has_no_cases():
    with pytest.raises(ModelError, match="which is no symbol; all sizes of the graph are numbers"):
        compile_graph(words().at({"n": 3}), cases=[{"n": 1}])
