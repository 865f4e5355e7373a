"""Decisions in order before they are scheduled, and the reference in the order of memory."""

from __future__ import annotations

import random

import pytest

import tir
from tests.fuzz.kernel_programs import FAMILIES, family_program
from tests.tune.test_contraction import SMALL, product
from tir.function import IRModule
from tir.testing import assert_same_result
from tir.tune.drawing import RuleSource
from tir.tune.ranking import ranked, samplings
from tir.tune.reference import in_order
from tir.tune.space import choose, space_of


def chosen(costs: list[float]) -> tir.Schedule:
    sch = tir.Schedule(product((8, 4), (4, 8), "ik,kj->ij"))
    sch.split(sch.get_loops("C")[0], [None, choose(sch, [1, 2, 4], costs)])
    return sch


def test_cheap_decisions_of_fast_sketches_come_first():
    sketches = [chosen([1.0, 1.1, 3.0]).trace, chosen([1.5, 1.0, 1.2]).trace]
    found = ranked(sketches, [1.0, 1.05], random.Random(0))
    assert [(r.sketch, r.decisions) for r in found] == [(0, (1,)), (1, (2,)), (1, (0,)), (0, (2,))]
    assert [r.seconds for r in found] == pytest.approx([1.1, 1.26, 1.575, 3.0])


def test_a_choice_without_odds_is_drawn_later():
    sch = tir.Schedule(product((8, 4), (4, 8), "ik,kj->ij"))
    sch.split(sch.get_loops("C")[0], sch.sample_perfect_tile(sch.get_loops("C")[0], n=2))
    assert [r.decisions for r in ranked([sch.trace], [1.0], random.Random(0))] == [(None,)]


def test_the_same_seed_draws_the_same_schedules():
    mod = IRModule.of(product((60, 12), (12, 32), "ik,kj->ij"))
    drawn = []
    for _ in range(2):
        source = RuleSource(space_of(SMALL.format(cores=1)), mod)
        drawn.append([sch.mod.script() for sch in source.draw(random.Random(3), 12)])
        assert source.considered > 20
    assert drawn[0] == drawn[1] and len(set(drawn[0])) > 8


def test_what_is_drawn_once_is_not_drawn_again():
    source = RuleSource(space_of(SMALL.format(cores=1)), IRModule.of(product((60, 12), (12, 32), "ik,kj->ij")))
    generator = random.Random(0)
    traces = [
        repr([s.args for s in samplings(sch.trace)]) + str(len(sch.trace))
        for _ in range(2)
        for sch in source.draw(generator, 8)
    ]
    assert len(set(traces)) == len(traces)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reference_in_order_computes_the_same(family: str):
    program = family_program(family, 0)
    if isinstance(program, IRModule) and len(program) > 1:
        pytest.skip("a search has one function at a time")
    mod = IRModule.of(program)
    assert_same_result(mod, in_order(mod, tir.Target("llvm")), engines=("llvm",), func=next(iter(mod)))


def test_the_reference_reads_along_rows():
    mod = IRModule.of(product((8, 4), (4, 8), "ik,kj->ij"))
    sch = tir.Schedule(in_order(mod, tir.Target("llvm")))
    assert [sch.get(loop).extent.value for loop in sch.get_loops("C_update")] == [8, 4, 8]
    across = IRModule.of(product((8, 4), (8, 4), "ik,jk->ij"))
    assert in_order(across, tir.Target("llvm")).script() == tir.Schedule(across).mod.script()
