"""Memory that a step left alone: what is not asked again would have had the same answer."""

from __future__ import annotations

import pytest

import tir
from tests.gpu_examples import load
from tests.prim_checks import schedule
from tir.schedule import schedule as steps
from tir.schedule.invariants import parallel_loops as independence
from tir.schedule.invariants import shared_memory as limits
from tir.schedule.invariants import thread_memory as kernels
from tir.schedule.invariants.delta import unchanged_buffers
from tir.testing.fuzz import run

CHAIN = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), D: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8), "float32")
    C = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * 2.0
    for i, j in T.grid(8, 8):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v, w] + 1.0
    for i, j in T.grid(8, 8):
        with T.block("D"):
            v, w = T.axis.remap("SS", [i, j])
            D[v, w] = C[v, w] + 1.0
"""


def left_alone(step) -> list[str]:
    sch = schedule(CHAIN)
    before = sch.func
    step(sch)
    return sorted(memory.name for memory in unchanged_buffers(before, sch.func))


@pytest.mark.parametrize(
    ("step", "names"),
    [
        (lambda s: s.split(s.get_loops("D")[0], [None, 2]), ["A", "B"]),
        (lambda s: s.annotate("B", "note", 1), ["C", "D"]),
        (lambda s: s.annotate(s.get_loops("B")[0], "note", 1), ["A", "B", "C", "D"]),
        (lambda s: s.parallel(s.get_loops("B")[0]), ["C", "D"]),
        (lambda s: s.reorder(*reversed(s.get_loops("C"))), ["A", "D"]),
        (lambda s: s.compute_at("B", s.get_loops("C")[0]), ["C", "D"]),
        (lambda s: s.cache_read("D", 0, "local"), ["A", "B"]),
        (lambda s: s.set_scope("C", 0, "shared"), ["A"]),
        (lambda s: s.merge(s.get_loops("C")[0], s.get_loops("D")[0]), ["A"]),
    ],
)
def test_what_is_left_alone(step, names):
    found = left_alone(step)
    assert [n for n in found if n in "ABCD"] == names


def test_a_loop_taken_apart_and_the_same_loop_are_different_uses():
    sch = schedule(CHAIN)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    before = sch.func
    sch.fission(sch.get_loops("B")[0], 1)
    assert "B" not in {memory.name for memory in unchanged_buffers(before, sch.func)}


def _agree(monkeypatch) -> list[str]:
    """From now on, each question about a step is asked in full as well; gives the list of those that differed in what
    was asked."""
    asked: list[str] = []
    problem, check, shared = independence._problem, kernels.check_kernels, limits.shared_buffers

    def both_problems(func, known, before=None):
        quick = problem(func, known, before)
        if before is not None and unchanged_buffers(before, func):
            asked.append("independence")
            assert (quick is None) == (problem(func, known) is None)
        return quick

    def refused(ask, *args):
        try:
            ask(*args)
        except tir.ScheduleError as error:
            return error.rule
        return None

    def both_kernels(before, after):
        quick = refused(check, before, after)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(kernels, "unchanged_buffers", lambda *_: frozenset())
            assert quick == refused(check, before, after)
        asked.append("kernels")
        check(before, after)

    def both_sizes(func, before=None):
        quick = shared(func, before)
        limits._SIZES.pop(func)
        assert [(b.buffer, b.bytes) for b in quick] == [(b.buffer, b.bytes) for b in shared(func)]
        asked.extend(["sizes"] * bool(quick))
        return quick

    monkeypatch.setattr(independence, "_problem", both_problems)
    monkeypatch.setattr(steps, "check_kernels", both_kernels)
    monkeypatch.setattr(limits, "shared_buffers", both_sizes)
    return asked


def test_random_schedules_get_the_same_answers(monkeypatch):
    asked = _agree(monkeypatch)
    report = run(40, seed=7100, steps=10, llvm_every=0, families=True, log=False)
    assert not report.failures, report.failures
    assert asked.count("independence") > 20


@pytest.mark.parametrize("name", ["sgemm", "softmax", "tensor_core_gemm"])
def test_kernels_get_the_same_answers(monkeypatch, name):
    asked = _agree(monkeypatch)
    load(name).small()
    assert asked.count("kernels") > 5 and asked.count("independence") > 5
    assert name == "softmax" or "sizes" in asked
