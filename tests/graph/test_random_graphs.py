"""Random graphs: what is compiled, with each pass left out in turn, computes what the references of the operators do."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_graphs import check, expected, inputs, random_graph
from tir.graph import check_plan, groups, optimized, plan

SEEDS = 3


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_graphs_are_right_without_any_pass(seed):
    check(random_graph(seed, 10), seed)


@pytest.mark.parametrize("seed", range(100, 100 + SEEDS))
def test_random_graphs_are_right_in_the_executor(seed):
    check(random_graph(seed, 10), seed, "interpreter")


@pytest.mark.parametrize("seed", range(12))
def test_passes_and_groups_keep_what_a_random_graph_is(seed):
    graph = random_graph(seed)
    given = inputs(graph, seed)
    made = optimized(graph)
    order = groups(made)
    assert [n for g in order for n in g.nodes if n not in made.nodes] == []
    assert sum(len(g.nodes) for g in order) == len(made.nodes)
    check_plan(plan(order, made.outputs.values()), order)
    for name, want in expected(graph, given).items():
        np.testing.assert_allclose(expected(made, given)[name], want, rtol=1e-3, atol=1e-4)
