"""Refusals are confirmed by force: the oracle itself, and the rate on a few examples."""

import tir
from tests.fuzz.refusal_audit import Confirmations, is_confirmed
from tests.fuzz.steps import EVERY, run
from tests.prim_checks import schedule
from tir.testing.schedules import Attempt

CHAIN = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2.0
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[7 - v] + B[v]
"""


def attempt(sch, name, *args):
    try:
        getattr(sch, name)(*args)
    except tir.ScheduleError as refusal:
        return Attempt(name, args, {}, refusal)
    raise AssertionError(f"{name} was accepted")


def test_a_right_refusal_is_confirmed():
    sch = schedule(CHAIN)
    before = sch.mod
    tried = attempt(sch, "reverse_compute_at", sch.get_block("C"), sch.get_loops("B")[0])
    assert tried.refusal.witness
    assert is_confirmed(sch, tried) is True
    assert sch.mod is before


def test_a_step_that_changes_nothing_is_not_confirmed():
    sch = schedule(CHAIN)
    # as though a legal move had been refused
    tried = Attempt("compute_at", (sch.get_block("B"), sch.get_loops("C")[0]), {}, tir.ScheduleError("so"))
    assert is_confirmed(sch, tried) is False


def test_a_step_without_force():
    sch = schedule(CHAIN)
    tried = attempt(sch, "unswitch", sch.get_loops("B")[0])
    assert is_confirmed(sch, tried) is None


def test_counts():
    found = Confirmations()
    for outcome in (True, True, False, None):
        found.add("parallel", outcome, "seed 1", "block `B` would read A[3] 2 times")
    assert found.rate() == found.rate("parallel") == 2 / 3
    assert "66.7% confirmed" in str(found)
    assert "not confirmed:     1  parallel: block … would read … … times, e.g. seed 1" in str(found)


def test_most_refusals_of_a_short_run_are_confirmed():
    report = run(
        30,
        seed=5000,
        llvm_every=0,
        families=EVERY,
        primitives=["reverse_compute_at", "parallel"],
        log=False,
        force=True,
    )
    assert not report.failures and report.forced is not None
    assert report.forced.confirmed.total() >= 5
    assert report.forced.rate("parallel") >= 0.8
