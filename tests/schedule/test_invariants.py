"""What is asked after a step, and what a primitive keeps from being asked."""

from __future__ import annotations

import pytest

from tests.gpu_examples import load
from tests.prim_checks import refused, schedule
from tir.analysis.index import index_of
from tir.schedule import invariants
from tir.schedule.invariants import Delta, Keeps, Problem
from tir.schedule.invariants.shared_memory import shared_buffers
from tir.schedule.primitive import PRIMITIVES, primitive

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * T.float32(2)
"""


@pytest.fixture
def asked(monkeypatch):
    """The primitives after whose steps an invariant that ``Keeps.LOOPS`` keeps was asked."""
    names: list[str] = []

    def count_loops(after, delta):
        if delta.before is not None:
            names.append(delta.primitive)
        yield from ()

    made = invariants.Invariant("count_loops", count_loops, Keeps.LOOPS)
    monkeypatch.setitem(invariants.INVARIANTS, "count_loops", made)
    return names


def test_a_step_that_keeps_what_an_invariant_needs_is_not_asked(asked):
    sch = schedule(PROGRAM)
    i, j = sch.get_loops("B")
    sch.parallel(i)
    sch.annotate("B", "note", 1)
    sch.split(j, [None, 4])
    assert asked == ["split"]


TILED = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8), scope="local")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        for j, k in T.grid(4, 2):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                w = T.axis.spatial(8, j * 2 + k)
                B[v, w] = A[v, w] * T.float32(2)
        for j, k in T.grid(4, 2):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                w = T.axis.spatial(8, j * 2 + k)
                C[v, w] = B[v, w]
"""


def test_a_step_says_what_it_keeps_besides(monkeypatch):
    names: list[str] = []

    def of_threads(after, delta):
        names.append(delta.primitive)
        yield from ()

    made = invariants.Invariant("of_threads", of_threads, Keeps.THREADS)
    monkeypatch.setitem(invariants.INVARIANTS, "of_threads", made)
    sch = schedule(TILED)
    i, j, k = sch.get_loops("B")
    sch.reorder(k, j)
    sch.transform_layout("B", ("write", 0), lambda i, j: (j, i))
    assert names == []
    sch.transform_layout("B", ("write", 0), lambda i, j: (j, i + 8), assume_injective_transform=True)
    assert names == ["transform_layout"]


def test_a_reorder_that_moves_a_bound_loop_is_asked_about_threads(monkeypatch):
    names: list[str] = []

    def of_threads(after, delta):
        names.append(delta.primitive)
        yield from ()

    sch = schedule(PROGRAM)
    sch.bind("j", "threadIdx.x")
    made = invariants.Invariant("of_threads", of_threads, Keeps.THREADS)
    monkeypatch.setitem(invariants.INVARIANTS, "of_threads", made)
    sch.reorder("j", "i")
    assert names == ["reorder"]


def test_a_primitive_from_outside_says_what_it_keeps(asked):
    def _check_hint(state, block):
        return block

    try:
        for name, keeps in (("hint", Keeps.LOOPS), ("plain_hint", Keeps.NOTHING)):

            @primitive(check=_check_hint, name=name, keeps=keeps)
            def hint(state, plan, name=name):
                block = state.find_block("B").block
                return state.replace(block, block.replace(annotations={**block.annotations, name: 1}))

        sch = schedule(PROGRAM)
        sch.hint("B")
        sch.plain_hint("B")
        assert asked == ["plain_hint"]
    finally:
        for name in ("hint", "plain_hint"):
            PRIMITIVES.pop(name, None)


def test_a_problem_that_was_there_before_is_not_held_against_a_step(monkeypatch):
    def deep_nests(after, delta):
        depth = len(index_of(after).loops)
        if depth > 2:
            yield Problem("depth", f"{depth} loops", excess=depth)

    sch = schedule(PROGRAM)
    sch.split("j", [None, 4])
    monkeypatch.setitem(
        invariants.INVARIANTS,
        "deep_nests",
        invariants.Invariant("deep_nests", deep_nests, Keeps.NOTHING | Keeps.THREADS),
    )
    sch.annotate("B", "note", 1)
    sch.reorder("j_1", "j_0")
    assert sch.can.fuse("j_1", "j_0")
    monkeypatch.setitem(invariants.INVARIANTS, "deep_nests", invariants.Invariant("deep_nests", deep_nests))
    refused(lambda: sch.split("i", [None, 4]), "4 loops")


def test_an_unsafe_step_is_not_asked_for_proofs_but_for_limits(monkeypatch):
    def never(after, delta):
        yield Problem(after, "never")  # about this program: the one before had another problem

    sch = schedule(PROGRAM)
    monkeypatch.setitem(invariants.INVARIANTS, "never", invariants.Invariant("never", never))
    sch.parallel("i", unsafe=True)
    monkeypatch.setitem(invariants.INVARIANTS, "never", invariants.Invariant("never", never, proof=False))
    refused(lambda: sch.parallel("j", unsafe=True), "never")


@pytest.mark.parametrize("name", ["sgemm", "mma_gemm"])
def test_what_is_kept_from_step_to_step_is_what_the_program_alone_says(name):
    _, sch = load(name).small()
    for state in sch.states:
        alone = state.func.replace()  # of which nothing is known
        kept, found = shared_buffers(state.func), shared_buffers(alone)
        assert [(b.buffer, b.bytes) for b in kept] == [(b.buffer, b.bytes) for b in found]
    for state in sch.states[::6]:
        delta = Delta(None, state.func)
        for each in invariants.INVARIANTS.values():
            assert not list(each.problems(state.func, delta))


def test_a_race_beside_one_that_cannot_be_decided_is_refused():
    """That the loop had a dependence of which nothing could be proved hid the race that the step made."""
    sch = schedule("""
@T.prim_func
def main(M: T.Buffer((4,), "int32"), P: T.Buffer((4,), "int32")):
    S = T.alloc_buffer((4,), "int32", scope="shared")
    for z in T.thread_binding(8, thread="threadIdx.z"):
        for y in T.thread_binding(4, thread="threadIdx.y"):
            with T.block("S"):
                v0 = T.axis.spatial(4, y)
                S[v0] = M[v0]
        with T.block("P"):
            vz = T.axis.spatial(4, z)
            T.where(z < 4)
            P[vz ^ vz // 2] = S[vz]
""")
    refused(lambda: sch.set_scope("S", 0, "global"), "touch the same element", "writes S[0]")
