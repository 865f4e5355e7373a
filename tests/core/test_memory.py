"""What is done with a program leaves nothing of it behind."""

from __future__ import annotations

import gc

import pytest

import tir
from tests.fuzz.steps import EVERY, Report, Shares, run_example, run_gpu_example
from tir.node import Memo, Node

ALL = Shares(1, 1)


def left_by(work) -> list[Node]:
    """The nodes that are there only since ``work`` was done a second time."""
    work()  # what is made once: tables, registered intrinsics
    gc.collect()
    gc.freeze()  # what is there by now is not listed
    try:
        work()
        gc.collect()
        return [o for o in gc.get_objects() if isinstance(o, Node)]
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("seed", range(3))
def test_random_schedules_that_are_refused_built_and_run_leave_no_node(seed):
    report = Report()
    assert left_by(lambda: run_example(seed, report, 8, None, True, EVERY, ALL)) == []


def test_a_gpu_schedule_on_the_simulator_leaves_no_node():
    assert left_by(lambda: run_gpu_example(3, Report(), 6, shares=ALL)) == []


def test_nodes_that_something_keeps_are_found():
    kept = []
    assert len(left_by(lambda: kept.append(tir.Var("x")))) == 1


def test_a_memo_is_freed_with_its_node_though_it_refers_to_it():
    memo: Memo[object] = Memo()

    def work():
        x = tir.Var("x")
        memo[x] = [x]

    assert left_by(work) == []


def test_a_memo_does_not_travel_with_a_copy_or_a_pickle():
    import copy
    import pickle

    memo: Memo[int] = Memo()
    x = tir.Var("x")
    memo[x] = 1
    assert memo.setdefault(x, 2) == 1
    assert memo.get(x.replace()) is None
    assert memo.get(copy.copy(x)) is None
    assert memo.get(pickle.loads(pickle.dumps(x))) is None
