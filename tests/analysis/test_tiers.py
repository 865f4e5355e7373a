"""Every tier of the dependence oracle agrees with the exact one, on what random programs and schedules ask."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tir
from tests.fuzz.kernel_programs import family_program
from tests.gpu_examples import load
from tests.hand_schedules import attention, gemm
from tests.prim_checks import same, schedule
from tests.tier_checks import recorded, tiers
from tir import config
from tir.analysis.dependence.equivalence import SameMeaning
from tir.analysis.dependence.initialization import Initialized
from tir.analysis.dependence.loop_questions import CarriedDependence, LoopIndependent, check_parallel
from tir.analysis.dependence.order_question import DependenceKept, StatementOrder
from tir.analysis.dependence.tiers import PROVED, Proved, Question, Refuted, Tier, tier
from tir.buffer import decl_buffer
from tir.expr import BufferLoad, IntImm, Var, const
from tir.function import IRModule, PrimFunc
from tir.node import frozendict
from tir.script import tir as T
from tir.stmt import BufferStore, For, root_block, seq
from tir.testing import assert_same_result
from tir.testing.decisions import SeededChoice
from tir.testing.schedules import random_schedule

STEPS = ["split", "fuse", "reorder", "cache_read", "cache_write", "compute_at", "compute_at.index", "reverse_compute_at",
         "reverse_compute_at.index", "parallel", "vectorize", "reindex", "decompose_reduction", "merge"]  # fmt: skip
KERNELS = ("matmul", "conv2d", "stencil", "softmax", "padded")


def agreed(question: Question) -> set[Tier]:
    """The tiers that prove a question, none of which another one refutes."""
    answers = {name: question.answer_by(name) for name in question.tiers}
    proving = {name for name, verdict in answers.items() if isinstance(verdict, Proved)}
    refuting = {name for name, verdict in answers.items() if isinstance(verdict, Refuted)}
    if proving and refuting and isinstance(question, SameMeaning):
        # what is made anew may be the same in ways that instances do not show: a run decides
        before, after = (IRModule(frozendict({"main": f})) for f in (question.before, question.after))
        assert_same_result(before, after, engines=["interpreter"])
        return proving
    assert not (proving and refuting), (str(question), proving, refuting)
    return proving


def program(seed: int) -> PrimFunc:
    """One of the families, or a product in padded tiles: its tiles and what is stored are under conditions."""
    if seed % 6 == 5:
        return gemm.gemm(*((7, 9, 3), (8, 8, 2), (5, 4, 4))[seed % 3], 2, 4)
    return family_program(KERNELS[seed % 6], SeededChoice(seed))


def test_tiers_agree_on_random_schedules():
    proved: Counter[tuple[str, Tier]] = Counter()
    for seed in range(60):
        with recorded() as questions:
            random_schedule(program(seed), seed, 8, STEPS)
        for question in questions:
            proved.update((type(question).__name__, name) for name in agreed(question))
    cheap = [(q, t) for q, t in proved if t not in (Tier.SETS, Tier.PAIRS)]
    assert {q for q, _ in cheap} >= {"SameMeaning", "LoopIndependent", "CarriedDependence", "Initialized"}, proved
    assert proved["LoopIndependent", Tier.AFFINE]


@pytest.mark.parametrize("name", ["sgemm", "mma_gemm"])
def test_tiers_agree_on_kernels(name):
    with recorded() as questions:
        load(name).full()
    assert any(agreed(question) - {Tier.SETS, Tier.PAIRS} for question in questions)


A = decl_buffer((4096, 4096), name="A")
OUTER, LOOP, X, Y = (Var(n) for n in ("o", "v", "x", "y"))
EXTENTS = {OUTER: 2, LOOP: 3, X: 2, Y: 3}

terms = st.lists(st.tuples(st.sampled_from([OUTER, LOOP, X, Y]), st.integers(-2, 12)), max_size=3)


@st.composite
def indices(draw):
    """An expression over the loops, and what it is for values of them."""
    parts, base = draw(terms), draw(st.integers(0, 3))
    e, by, kind = const(base + 100), draw(st.integers(1, 6)), draw(st.sampled_from(["", "", "//", "%"]))
    for v, c in parts:
        e = e + v * c
    total = lambda at: base + 100 + sum(c * at[v] for v, c in parts)  # noqa: E731
    if kind == "//":
        return e // by, lambda at: total(at) // by
    if kind == "%":
        return e % by, lambda at: total(at) % by
    return e, total


def points(variables):
    return [dict(zip(variables, p)) for p in itertools.product(*(range(EXTENTS[v]) for v in variables))]


def carried(first, second) -> bool:
    """Whether two iterations of the loop have one element, at values of all loops."""
    for fixed, p, q in itertools.product(points([OUTER]), points([LOOP, X, Y]), points([LOOP, X, Y])):
        here, there = {**fixed, **p}, {**fixed, **q}
        if p[LOOP] != q[LOOP] and [f(here) for _, f in first] == [f(there) for _, f in second]:
            return True
    return False


@settings(max_examples=120)
@given(st.tuples(indices(), indices()), st.tuples(indices(), indices()))
def test_every_tier_agrees_with_counting(written, read):
    first = BufferStore(A, const(1.0, "float32"), tuple(e for e, _ in written))
    second = BufferStore(A, BufferLoad(A, tuple(e for e, _ in read)) * 2.0, tuple(e for e, _ in written))
    x, y = (For(v, IntImm(0), IntImm(EXTENTS[v]), "serial", s) for v, s in ((X, first), (Y, second)))
    both = [For(v, IntImm(0), IntImm(EXTENTS[v]), "serial", s) for v, s in ((Y, x), (X, y))]
    target = For(LOOP, IntImm(0), IntImm(EXTENTS[LOOP]), "serial", seq(both))
    handle = Var("a", "handle")
    func = PrimFunc(
        (handle,),
        root_block(For(OUTER, IntImm(0), IntImm(EXTENTS[OUTER]), "serial", target), ()),
        buffer_map=frozendict({handle: A}),
    )
    with recorded() as questions:
        verdict = check_parallel(func, target)
    assert verdict.is_proved == (not carried(written, written) and not carried(written, read))
    for question in questions:
        agreed(question)
    with tiers(only=[Tier.PAIRS, Tier.SETS]):
        assert LoopIndependent(func, target).holds() == verdict.is_proved


@T.prim_func
def fused(C: T.Buffer((24, 7), "float32")):
    for f in range(168):
        C[f // 7, f % 7] = 1.0


@T.prim_func
def windows(C: T.Buffer((64,), "float32")):
    for i in range(8):
        for j in range(9):
            C[i * 7 + j] = 1.0


@pytest.mark.parametrize(("func", "shown"), [(fused, True), (windows, False)])
def test_what_digits_of_a_fused_loop_tell(func, shown):
    with recorded() as questions, tiers(without=[Tier.SETS]):
        check_parallel(func, func.body)
    assert any(isinstance(q, CarriedDependence) for q in questions)
    assert all(q.answer_by(Tier.ITERATOR_MAP).is_proved == shown for q in questions if isinstance(q, CarriedDependence))


def test_answers_are_remembered_for_a_program_only_while_all_tiers_are_used():
    func, loop = windows, windows.body
    with tiers(only=[Tier.SIMPLE_BLOCK]):
        assert "no tier of proof" in check_parallel(func, loop).rule
    assert isinstance(check_parallel(func, loop), Refuted)
    with recorded() as questions:
        assert isinstance(check_parallel(func, loop), Refuted)
    assert not questions


@T.prim_func
def doubled(B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v] * 2.0


def test_a_step_explains_itself(capsys):
    sch = tir.Schedule(doubled)
    with config.override(explain=True):
        sch.parallel("C.i")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.split()[:3] == ["proved", "simple", "block"] and "iterations of loop `i` are independent" in line
    sch.undo()
    sch.parallel("C.i")
    assert not capsys.readouterr().err


def test_a_question_without_an_answer_says_why():
    sch = tir.Schedule(attention.attention(16, 16, 8))
    func = sch.func
    buffer = next(b for ref in sch.state.index.blocks.values() for b in ref.block.alloc_buffers)
    with tiers(only=[Tier.AFFINE]):
        verdict = Initialized(func, buffer).answer()
    assert not verdict.is_proved and buffer.name in verdict.rule


DIGITS = """
@T.prim_func
def main(A: T.Buffer((24,), "float32"), D: T.Buffer((24, 24), "float32")):
    for i, j in T.grid(4, 6):
        with T.block("D"):
            v = T.axis.spatial(24, i * 6 + j)
            D[INDEX] = D[INDEX] * 0.5 + A[v]
"""


@pytest.mark.parametrize(
    ("index", "shown"),
    [
        ("v // 4, v % 4", True),
        ("v % 4, v // 4", True),
        ("v, 0", True),
        ("v // 4, v // 4", False),
        ("v % 6, v // 4", True),
        ("v // 8, v % 4", False),
        ("T.bitwise_xor(v, 1), 0", True),
        ("v // 12, T.bitwise_xor(v % 12, 2)", True),
        ("T.bitwise_and(v, 15), 0", False),
        ("T.bitwise_xor(v, v), v // 4", False),
    ],
)
def test_digits_and_bits_that_tell_an_instance(index, shown):
    sch = schedule(DIGITS.replace("INDEX", index))
    with tiers(without=[Tier.SIMPLE_BLOCK, Tier.REDUCTION]):
        assert bool(sch.can.reorder(*reversed(sch.get_loops("D")))) == shown


KEPT = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    X = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2.0
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[7 - v]
    for i in range(8):
        with T.block("X"):
            v = T.axis.spatial(8, i)
            X[v] = A[v] * 2.0
    for i in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, i)
            D[v] = X[v]
"""


def test_nothing_is_asked_of_statements_that_a_step_keeps():
    sch = schedule(KEPT)
    with recorded() as questions, tiers(without=[Tier.SIMPLE_BLOCK]):
        sch.compute_at("X", sch.get_loops("D")[0])
    asked = {s.unit.name for q in questions if isinstance(q, StatementOrder) for s in (q.source, q.sink)}
    assert asked == {"X", "D"}


NO_SETS = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), P: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((64,), "int32")
    C = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] * 2
    for i in range(8):
        for k in range({extent}):
            with T.block("X"):
                v = T.axis.spatial(8, i)
                w = T.axis.spatial(64, k)
                B[w] = P[v]
        with T.block("Y"):
            v = T.axis.spatial(8, i)
            D[v] = C[v] + B[v // 8]
"""


@pytest.mark.parametrize("extent", ["i * i + 1", "P[i] + 1"])
def test_a_statement_that_sets_cannot_hold_stays_beside_those_that_a_step_moves(extent):
    sch = schedule(NO_SETS.format(extent=extent))
    with tiers(without=[Tier.SIMPLE_BLOCK]):
        sch.compute_at("C", sch.get_loops("Y")[0])
    same(sch)


@pytest.mark.parametrize(
    ("read", "shown"),
    [("v * 2 + 1", True), ("v * 2 + 3", False), ("v * 2 + 2", False), ("v * 2 + 16", False), ("v * 3", False)],
)
def test_strides_that_pass_what_else_an_index_says_need_no_sets(read, shown):
    sch = schedule(f"""
@T.prim_func
def main(B: T.Buffer((40,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v * 2] = B[{read}]
""")
    with tiers(without=[t for t in Tier if t not in (Tier.AFFINE, Tier.PAIRS)]):
        assert bool(sch.can.parallel("i")) == shown


def test_tiers_are_tried_in_order_of_cost():
    class Always(Question):
        @tier(Tier.SETS)
        def by_sets(self):
            raise AssertionError("a cheaper tier has answered")

        @tier(Tier.AFFINE)
        def by_forms(self):
            return PROVED

    assert list(Always.tiers) == [Tier.AFFINE, Tier.SETS] and Always().holds()


AT_PLACES = """
@T.prim_func
def main(A: T.Buffer((3, 8), "float32"), C: T.Buffer((8,), "float32")):
    P = T.alloc_buffer((3, 8), "float32")
    for x in range(8):
        for e in range(3):
            with T.block("P"):
                ve, vx = T.axis.remap("SS", [e, x])
                P[ve, vx] = A[ve, vx]
        FUSED
            with T.block("C"):
                vx = T.axis.spatial(8, INDEX)
                C[vx] = P[0, vx] + P[1, vx] + P[2, READ]
"""


@pytest.mark.parametrize(("read", "shown", "asked"), [("vx", True, 1), ("7 - vx", False, 3)])
def test_reads_at_several_numbers_are_one_question(read, shown, asked):
    apart, fused = (
        tir.script.parse(AT_PLACES.replace("FUSED", loop).replace("INDEX", index).replace("READ", read))
        for loop, index in (
            ("pass\n    for y in range(8):\n        for one in range(1):", "y"),
            ("for one in range(1):", "x"),
        )
    )
    with recorded() as questions:
        assert SameMeaning(apart, fused).answer_by(Tier.PAIRS).is_proved == shown
    found = [
        q for q in questions if isinstance(q, DependenceKept) and q.first.access.write and not q.second.access.write
    ]
    assert len(found) <= asked
