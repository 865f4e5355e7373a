"""The tiles that a search may draw for any nest: right at small odd sizes, and in the space of every program."""

from __future__ import annotations

import random

import pytest

import tir
from tir import te
from tir.function import IRModule
from tir.testing import assert_same_result
from tir.tune.drawing import RuleSource
from tir.tune.space import Env, Space, rules_of

NARROW = "llvm -vector_width=64 -num-cores=1"


def depthwise() -> tir.PrimFunc:
    x, w = te.placeholder((3, 9, 11), name="X"), te.placeholder((3, 3, 3), name="W")
    p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")
    y = te.compute((3, 7, 9), lambda c, i, j: te.sum(x[c, i + p, j + q] * w[c, p, q], axis=[p, q]), name="Y")
    return te.create_prim_func([x, w, y])


def turned() -> tir.PrimFunc:
    x = te.placeholder((7, 7), name="X")
    return te.create_prim_func([x, te.compute((7, 7), lambda i, j: x[i, j] + x[j, i], name="Y")])


def rows() -> tir.PrimFunc:
    x, k = te.placeholder((5, 13), "int32", name="X"), te.reduce_axis((0, 13), "k")
    return te.create_prim_func([x, te.compute((5,), lambda i: te.max(x[i, k], axis=k), name="Y")])


def scan() -> tir.PrimFunc:
    x, state = te.placeholder((6, 9), name="X"), te.placeholder((6, 9), name="state")
    step = te.compute((6, 9), lambda t, j: state[t - 1, j] * 0.5 + x[t, j])
    return te.create_prim_func([x, te.scan(te.compute((1, 9), lambda _, j: x[0, j]), step, state, name="Y")])


@pytest.mark.parametrize("make", [depthwise, turned, rows, scan])
def test_whatever_is_drawn_computes_the_same(make):
    program, env = make(), Env.of(NARROW)
    space = Space(env, [r for r in rules_of(env.target) if r.name == "generic"])
    source = RuleSource(space, IRModule.of(program))
    drawn = list(source.draw(random.Random(0), 12))
    assert source.considered > 1 and not list(space.faults)
    for sch in drawn:
        assert_same_result(program, sch.mod, engines=("llvm",))


def test_an_explanation_names_rules_and_what_they_decide():
    text = repr(tir.tune.explain(depthwise(), NARROW, draw=24, count=24))
    assert "rule generic on Y\n       split of" in text
