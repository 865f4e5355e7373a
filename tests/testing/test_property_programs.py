"""Generated programs: they round-trip, run the same in the executor and compiled, and survive random schedules."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tir
from tests.fuzz import steps
from tests.fuzz.classes import CLASSES, classes_of
from tests.fuzz.kernel_programs import FAMILIES, family_program
from tests.fuzz.steps import Report, run_example
from tests.fuzz.tensor_programs import stages
from tir.equal import assert_structural_equal
from tir.interp import run
from tir.testing import (
    assert_roundtrip,
    assert_same_result,
    programs,
    random_inputs,
    random_program,
    random_schedule,
    schedules,
)
from tir.testing.decisions import SeededChoice
from tir.testing.sample_intrinsics import intrinsics
from tir.testing.schedules import BLOCK_PRIMITIVES, LOOP_PRIMITIVES, Attempt, every_primitive

QUICK = settings(max_examples=40, suppress_health_check=list(HealthCheck), derandomize=True)
SLOW = settings(QUICK, max_examples=8)


@QUICK
@given(programs())
def test_text_and_back(func):
    assert_roundtrip(func)


@QUICK
@given(programs(), st.integers(0, 100))
def test_programs_keep_their_declared_regions(func, seed):
    run(func, *random_inputs(func, seed), regions=True)


@SLOW
@given(programs(), st.integers(0, 100))
def test_compiled_code_agrees(func, seed):
    assert_same_result(func, func, random_inputs(func, seed), engines=("llvm",))


@QUICK
@given(st.data())
def test_loop_schedules_keep_the_meaning(data):
    func = data.draw(programs(max_stages=3))
    sch, _ = data.draw(schedules(func))
    assert_same_result(func, sch.mod["main"], engines=("interpreter",))
    assert_roundtrip(sch.mod)
    assert_structural_equal(sch.trace.replay(func).mod, sch.mod)


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_seeded_schedules(first):
    report = Report()
    for seed in range(first, first + 30):
        run_example(seed, report, 6, None, llvm=seed % 10 == 0)
    assert report.accepted.total() > report.refused.total() / 2


@pytest.mark.parametrize("first", range(10_000, 10_040, 20))
def test_seeded_schedules_of_every_family(first):
    report = Report()
    for seed in range(first, first + 20):
        run_example(seed, report, 6, [*LOOP_PRIMITIVES, *BLOCK_PRIMITIVES], llvm=seed % 15 == 0)


@pytest.mark.parametrize("seed", range(0, 30, 3))
def test_every_lowered_stage_means_the_same(seed):
    from tir.function import IRModule
    from tir.transform.pipeline import cpu_pipeline, lower, name_of

    func = random_program(seed)
    inputs = random_inputs(func, seed)
    for step in cpu_pipeline():
        stage = lower(IRModule.of(func), upto=name_of(step))
        assert_same_result(func, stage, inputs, engines=("interpreter",), func="main")
        assert_roundtrip(stage)


def test_every_family_under_every_primitive():
    """What ``make fuzz`` does at length."""
    count = len(steps.EVERY)
    report = steps.run(count, seed=count * 100, steps=12, primitives=every_primitive(), families=steps.EVERY)
    assert not report.failures
    assert set(report.families) == set(steps.EVERY) and report.accepted.total() > 75


def test_the_shares_of_checks_leave_the_programs_and_the_steps_as_they_are(monkeypatch):
    replayed, counts = [], []
    monkeypatch.setattr(steps, "_check_history", lambda sch: replayed.append(sch))
    for shares in (steps.Shares(0, 0), steps.Shares(1, 1)):
        report = steps.run(4, steps=4, llvm_every=0, families=("few",), shares=shares)
        counts.append((report.accepted, report.refused, len(replayed)))
    assert counts[0][:2] == counts[1][:2]
    assert [replays for *_, replays in counts] == [0, 4]


def test_a_share_is_drawn_by_the_seed():
    shares = steps.Shares(0.1, 0.25)
    replays = [shares.has_replay(seed) for seed in range(400)]
    texts = [shares.has_text(seed, number) for seed in range(40) for number in range(10)]
    assert 70 < sum(replays) < 130 and 20 < sum(texts) < 60
    assert replays == [shares.has_replay(seed) for seed in range(400)]


@pytest.mark.parametrize("share", [0, 1])
def test_a_refusal_without_a_word_is_a_failure(share):
    attempt = Attempt("split", (), {}, tir.ScheduleError(""))
    with pytest.raises(AssertionError, match="without a word"):
        steps._count(Report(), [attempt], 0, steps.Shares(texts=share))


def test_a_stage_schedule_draws_the_same_random_numbers_each_time():
    scripts = set()
    for _ in range(3):
        sch, _ = random_schedule(stages(SeededChoice(7136))[1], 1, 6, ["sample_categorical"])
        scripts.add(sch.trace.as_python())
    assert len(scripts) == 1


def test_every_class_of_programs_is_drawn():
    found = set()
    for name in FAMILIES:
        for seed in range(60 if name == "steered" else 4):  # steered: three ways for memory to decide are rare
            found.update(classes_of(family_program(name, seed)))
    assert found == set(CLASSES)


@pytest.mark.parametrize(
    ("family", "name"),
    [("views", "view with strides that are variables"), ("reduction", "reduction with an instance that runs twice")],
)
def test_a_class_is_drawn_in_an_eighth_of_its_family_at_least(family, name):
    drawn = [name in classes_of(family_program(family, seed)) for seed in range(64)]
    assert sum(drawn) >= 8


def test_the_intrinsics_fit_programs_that_are_drawn():
    scale, dot = intrinsics()
    accepted = 0
    for seed in range(12):
        sch = tir.Schedule(family_program("instructions", seed))
        for block, name in (("B", scale), ("S", dot)):
            try:
                sch.tensorize(sch.get_loops(block)[-1], name)
            except tir.ScheduleError:
                continue
            accepted += 1
        assert_same_result(sch.history[0].mod, sch.mod, engines=("interpreter",))
    assert accepted >= 6
