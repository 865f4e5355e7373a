"""Refusals as values: a plan that is tried, the first of several that is accepted, and errors completed on their way."""

from __future__ import annotations

from functools import partial

import pytest

import tir
from tir.errors import BuildError, ScheduleError, attempt, first_legal, on_refusal, refusal, require, require_none


def only(number: int, limit: int) -> int:
    require(number < limit, "{0} is not below {1}", number, limit)
    return number


def test_an_attempt_is_the_plan_or_its_refusal():
    assert attempt(partial(only, 1, 2)) == 1
    found = attempt(partial(only, 3, 2))
    assert isinstance(found, ScheduleError) and found.rule == "3 is not below 2"


def test_an_error_that_is_no_refusal_goes_on():
    with pytest.raises(ZeroDivisionError):
        attempt(lambda: 1 // 0)


def test_an_accepted_plan_has_no_refusal():
    assert refusal(partial(only, 0, 2)) is None
    assert str(refusal(partial(only, 2, 2))) == "2 is not below 2"


def test_the_first_accepted_plan_is_taken_and_no_later_one_is_tried():
    tried: list[int] = []

    def plan(number: int) -> int:
        tried.append(number)
        return only(number, 3)

    assert first_legal(partial(plan, n) for n in (5, 2, 1)) == 2
    assert tried == [5, 2]


def test_where_no_plan_is_accepted_the_first_refusal_is_raised():
    with pytest.raises(ScheduleError, match="5 is not below 3"):
        first_legal(partial(only, n, 3) for n in (5, 4))


def test_a_refusal_is_completed_on_its_way():
    with pytest.raises(ScheduleError) as caught, on_refusal(lambda error: error.find_legal(lambda: "0 or 1")):
        only(2, 2)
    assert caught.value.legal == "0 or 1"


def test_a_refusal_that_names_what_is_legal_keeps_it():
    with pytest.raises(ScheduleError) as caught, on_refusal(lambda error: error.find_legal(lambda: "another")):
        require(False, "too large", legal="0")
    assert caught.value.legal == "0"


def test_a_refusal_becomes_another_error():
    def as_build_error(error: ScheduleError) -> None:
        raise BuildError(error.rule) from None

    with pytest.raises(BuildError, match="2 is not below 2"), on_refusal(as_build_error):
        only(2, 2)


def test_of_several_offenders_the_first_is_named():
    found = refusal(lambda: require_none([3, 5], "{0} is odd, {1} comes after it, of {2}", lambda n: n + 1, "two"))
    assert str(found) == "3 is odd, 4 comes after it, of two"
    assert refusal(lambda: require_none([], "{0} is odd")) is None


def test_the_places_of_an_error_are_those_of_all_offenders():
    sch = tir.Schedule(tir.library.rows.softmax(8, 16))
    loops = [sch.state.find_loop(loop) for loop in sch.get_loops("out")]
    found = refusal(lambda: require_none(loops, "loop {0} is in the way"))
    assert found is not None and found.nodes == [loop.node for loop in loops]
    assert found.rule == f"loop `{loops[0].name}` is in the way"


def test_the_place_of_an_error_is_what_its_message_names():
    state = tir.Schedule(tir.library.rows.softmax(8, 16)).state
    block, loop = state.find_block("out"), state.find_loop("out.i")
    found = [
        refusal(lambda more=more: require(False, "{0}, {1}, {2}", block, "i", loop.node, **more))
        for more in ({}, {"nodes": [loop.node]}, {"nodes": ()})
    ]
    assert [error.nodes for error in found if error] == [[block.node, loop.node], [loop.node], []]
