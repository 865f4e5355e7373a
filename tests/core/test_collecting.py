"""Python's search for reference cycles is seldom made meanwhile, and as before afterwards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from tir.collecting import ALL, SELDOM, seldom_collected


@pytest.fixture(autouse=True)
def usual() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 11, 12)
    yield 700, 11, 12
    gc.set_threshold(*before)


def test_it_is_as_before_after_nested_uses_and_errors(usual: tuple[int, int, int]):
    with pytest.raises(KeyError), seldom_collected, seldom_collected:
        assert gc.get_threshold() == (SELDOM, 11, ALL * 12)
        raise KeyError
    assert gc.get_threshold() == usual


def test_it_is_as_before_after_the_last_of_several_threads(usual: tuple[int, int, int]):
    entered, leave = threading.Event(), threading.Event()

    def other():
        with seldom_collected:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with seldom_collected:
        thread.start()
        entered.wait()
    assert gc.get_threshold()[0] == SELDOM
    leave.set()
    thread.join()
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("number", [0, SELDOM + 1])
def test_a_search_that_is_never_or_more_seldom_made_stays_so(number: int):
    gc.set_threshold(number, 11, 12)
    with seldom_collected:
        assert gc.get_threshold() == (number, 11, 12)
    assert gc.get_threshold() == (number, 11, 12)
