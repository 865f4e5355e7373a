"""Random models: what is compiled, with each pass left out in turn, computes what ``onnx.reference`` does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_graphs import check, check_sizes, expected, random_model
from tir.graph import optimized, parse

pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")


@pytest.fixture(scope="module", params=range(12))
def model(request):
    return random_model(request.param, 16)


@pytest.mark.parametrize("seed", range(100, 106))
def test_random_models_are_right_in_code(seed):
    check(random_model(seed, 10), seed)


@pytest.mark.parametrize(
    ("seed", "target"),
    [*((seed, "interpreter") for seed in range(200, 203)), *((seed, "cuda-sim") for seed in range(210, 214))],
)
def test_random_models_are_right_for_every_target(seed, target):
    check(random_model(seed, 10), seed, target)


@pytest.mark.parametrize(
    ("seed", "target"), [(306, "llvm"), (309, "llvm"), (302, "interpreter"), (303, "interpreter"), (305, "cuda-sim")]
)
def test_random_models_are_right_at_several_sizes(seed, target):
    assert check_sizes(random_model(seed, 8), seed, target) > 1


def test_passes_and_references_keep_what_a_random_model_computes(model):
    graph = model.graph
    for made in (graph, optimized(graph)):
        for name, want in model.wanted.items():
            np.testing.assert_allclose(expected(made, model.given)[name], want, rtol=1e-3, atol=5e-4)


def test_a_random_graph_parses_from_what_it_prints(model):
    graph = model.graph
    made = parse(str(graph), {v.name: a for v, a in graph.constants.items()})
    assert str(made) == str(graph)
    assert [n.arguments.keys() for n in made.nodes] == [n.arguments.keys() for n in graph.nodes]
    for one, other in zip(expected(graph, model.given).values(), expected(made, model.given).values()):
        np.testing.assert_array_equal(one, other)
