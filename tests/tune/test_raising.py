"""Rules, spaces, models and templates that raise: a row with the traceback each, and the search goes on."""

from __future__ import annotations

import random

import pytest
from test_runner import COPY
from test_search import MATMUL, space, tuned

import tir
from tir.script import parse
from tir.tune.faults import Faults
from tir.tune.space import remove
from tir.tune.template import TemplateSource, template

pytestmark = pytest.mark.filterwarnings("ignore:.*raised")


@pytest.fixture
def usual():
    """The default schedule by the rules there are."""
    return tir.tune.default(parse(MATMUL))


@pytest.fixture
def careless():
    """Rules that raise, before the others and behind them; one returns no schedule."""

    @tir.tune.rule(order=1)
    def hasty(sch, block, env):
        return [next(iter(()))]

    @tir.tune.rule(order=2)
    def wordy(sch, block, env):
        return "no schedule"

    @tir.tune.rule(order=3)
    def lazy(sch, block, env):
        return [lambda: {}["nothing"]]

    yield
    for name in ("hasty", "wordy", "lazy"):
        remove(name)


def test_rules_that_raise_are_rows_with_their_tracebacks(careless):
    with pytest.warns(RuntimeWarning, match="rule hasty raised StopIteration"):
        result = tuned(COPY, trials=2, space=None)
    told = {t.origin: t.result.error for t in result.trials if t.status == "refused"}
    assert len(told) == 3 and {t.origin: t.status for t in result.trials}["default"] == "ok"
    assert "in hasty" in told["rule hasty"] and "KeyError: 'nothing'" in told["rule lazy"]
    assert "where a schedule is wanted" in told["rule wordy"]
    assert "rule hasty raised StopIteration" in repr(result) and "refused" in repr(result.trials)


def test_the_default_schedule_is_made_without_a_rule_that_raises(usual, careless):
    with pytest.warns(RuntimeWarning, match="rule lazy raised KeyError: 'nothing'"):
        sch = tir.tune.default(parse(MATMUL))
    tir.assert_structural_equal(sch.mod, usual.mod)


def test_a_space_that_raises_in_some_draws_gives_the_others():
    def odd(sch):
        space(sch)
        if sch.get(sch.get_loops("C")[-1]).extent.value > 8:
            raise ValueError("too wide")

    with pytest.warns(RuntimeWarning, match="the space raised ValueError: too wide"):
        result = tuned(space=odd, trials=10)
    assert len(result.trials) == 11 and result.trials[-1].origin == "the space"
    with pytest.warns(RuntimeWarning, match="it returned 3, where a schedule is wanted"):
        assert [t.origin for t in tuned(space=lambda sch: 3, trials=1).trials] == ["default", "the space"]


def test_a_model_that_raises_predicts_nothing():
    with pytest.warns(RuntimeWarning, match="the model raised ZeroDivisionError"):
        result = tuned(model=lambda sch: 1 / 0, trials=4)
    assert len(result.trials) == 5 and all(t.predicted is None for t in result.trials)


def test_explain_tells_what_was_raised(careless):
    with pytest.warns(RuntimeWarning):
        text = repr(tir.tune.explain(parse(MATMUL), draw=2, count=1, model=lambda sch: None))
    assert "raised by rule hasty" in text


def test_a_template_starts_with_the_first_configuration_that_can_be_scheduled():
    @template
    def choosy(cfg, least):
        sch = tir.Schedule(parse(MATMUL))
        cfg.define_knob("way", [0, 1, 2])
        if cfg["way"].val < least:
            sch.parallel(sch.get_loops("C")[2])
        assert cfg["way"].val != 2, "no such way"
        return sch

    source = TemplateSource(choosy, (0,), "random")
    assert source.wanted[id(source.default())] == {"way": 0}
    with pytest.warns(RuntimeWarning, match="template choosy raised AssertionError"):
        assert len(list(source.draw(random.Random(0), 50))) == 2


def test_faults_of_one_place_are_counted_together():
    found = Faults()
    with pytest.warns(RuntimeWarning):
        for number in range(3):
            try:
                raise ValueError(number)
            except ValueError as error:
                found.add("here", error)
    (one,) = found
    assert (one.count, one.error) == (3, "ValueError: 0")


def test_a_rule_that_takes_steps_in_its_argument_leaves_no_mark(usual):
    @tir.tune.rule(order=1)
    def careless_rule(sch, block, env):
        sch.split(sch.get_loops(block)[0], [None, 2])
        return []

    try:
        with pytest.warns(RuntimeWarning, match="rule careless_rule raised ValueError: it took steps in the schedule"):
            sch = tir.tune.default(parse(MATMUL))
    finally:
        tir.tune.remove("careless_rule")
    tir.assert_structural_equal(sch.mod, usual.mod)
