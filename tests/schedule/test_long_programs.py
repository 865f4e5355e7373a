"""A step on a long program does little more work than on a short one, in calls of functions."""

from __future__ import annotations

import sys
from functools import cache

import pytest

from benchmarks.many_blocks import STEPS, Subject

subject = cache(Subject)


def calls(name: str, blocks: int) -> int:
    """How many functions of Python a step calls in a program of so many blocks, once it has been taken in another copy."""
    on, count = subject(blocks), 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    STEPS[name](on.sch.copy(), on)
    taken = on.sch.copy()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        STEPS[name](taken, on)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", STEPS)
def test_ten_times_the_blocks_take_at_most_twice_the_calls(name):
    assert calls(name, 200) <= 2 * calls(name, 20)
