"""The testing kit: it makes what it says, and its oracles catch what they should."""

import numpy as np
import pytest

import tir
from tests.fuzz import steps
from tir import te
from tir.library import rows
from tir.script import parse
from tir.testing import (
    assert_roundtrip,
    assert_same_result,
    check_schedule,
    random_inputs,
    random_program,
    random_schedule,
)
from tir.testing.decisions import SeededChoice
from tir.testing.programs import STAGES, _Array, _Builder, random_text
from tir.testing.schedules import ALL_PRIMITIVES, _Scene, _tensorize, every_primitive

ADD = parse("""
@T.prim_func
def add(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8), "float32")
    B = T.match_buffer(b, (n, 8), "float32")
    for i, j in T.grid(n, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
""")


def changed(func, old, new):
    text = func.script()
    assert old in text
    return parse(text.replace(old, new))


def test_programs_are_the_same_for_a_seed_and_of_every_kind():
    texts = [random_text(SeededChoice(seed)) for seed in range(150)]
    assert texts[7] == random_text(SeededChoice(7))
    assert len(set(texts)) > 100 and len(STAGES) >= 12
    everything = "\n".join(texts)
    for sign in ("T.init", "T.where", "T.int64", "alloc_buffer", "u_B", "t_B", "c_B", "if_then_else", "v0 * 2"):
        assert sign in everything


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("inputs", [[(1, 1)], [(4, 3), (3,)], [(5, 7), (7,)]])
def test_a_stage_says_whether_it_wrote_a_block(stage, inputs):
    for seed in range(6):
        arrays = [_Array(f"A{n}", shape) for n, shape in enumerate(inputs)]
        builder = _Builder(SeededChoice(seed), "int32", False, [*arrays])
        if stage(builder):
            assert sum("T.block" in line for line in builder.body) >= 1 and builder.count >= 1
            params = [f'{a.name}: T.Buffer({a.shape}, "int32")' for a in (*arrays, *builder.made)]
            lines = ["@T.prim_func", f"def main({', '.join(params)}):", *(f"    {line}" for line in builder.body)]
            tir.build(parse("\n".join(lines)), "interpreter")
        else:
            assert not builder.body and not builder.made


def test_inputs_follow_the_parameters():
    a, b = random_inputs(ADD, seed=1, sizes={"n": 5})
    assert a.shape == b.shape == (5, 8) and a.dtype == np.float32
    assert (a == random_inputs(ADD, seed=1, sizes={"n": 5})[0]).all()
    assert np.abs(a).max() <= 3


def test_unknown_strides_leave_a_gap_of_one_element():
    func = parse("""
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle):
    s, t, u, v = T.int32(), T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (3, 5), "float32", strides=[s, 1])
    B = T.match_buffer(b, (2, 3, 5), "int8", strides=[t, u, v])
    C = T.match_buffer(c, (3, 5), "float32", strides=[8, 1])
    T.evaluate(0)
""")
    steps = [tuple(s // a.itemsize for s in a.strides) for a in random_inputs(func)]
    assert steps == [(6, 1), (19, 6, 1), (8, 1)]


def test_a_primitive_without_an_entry_is_drawn_by_its_parameters(monkeypatch):
    """One of a package of your own, say, or one that is new."""
    for name in ("unroll", "rfactor", "add_unit_loop", "cache_read", "stage"):
        monkeypatch.delitem(ALL_PRIMITIVES, name)
        _, attempts = random_schedule(rows.softmax(4, 8), seed=0, steps=12, primitives=[name])
        assert {a.name for a in attempts} == {name} and any(a.accepted for a in attempts)
        assert name in every_primitive()


def test_a_primitive_that_is_not_there_is_not_drawn():
    with pytest.raises(KeyError, match="did you mean split"):
        random_schedule(rows.softmax(4, 8), seed=0, steps=1, primitives=["splti"])


def test_tensorize_is_drawn_at_innermost_loops(monkeypatch):
    monkeypatch.setitem(_tensorize.__globals__, "intrinsics", lambda: ("dot",))  # the fuzzer's would stay registered
    sch = tir.Schedule(te.create_prim_func([te.compute((4, 4), lambda i, j: i + j)]))
    drawn = [_tensorize(_Scene(sch, SeededChoice(seed)))[0][0] for seed in range(8)]
    assert {sch.get(loop).loop_var.name for loop in drawn} == {"j"}


def test_inputs_that_are_indices_are_within_bounds():
    table, rows, narrow = (
        tir.te.placeholder(s, d, n)
        for s, d, n in (((50, 4), "float32", "T"), ((90,), "int64", "r"), ((90,), "int8", "n"))
    )
    taken = tir.te.compute((90, 4), lambda i, j: table[rows[i], j] + table[narrow[i].astype("int32"), j])
    func = tir.te.create_prim_func([table, rows, narrow, taken])
    for array in random_inputs(func)[1:3]:
        assert array.min() >= 0 and 40 < array.max() < 50


def test_a_different_result_is_reported():
    other = changed(ADD, "+ 1.0", "+ 2.0")
    with pytest.raises(AssertionError, match=r"interpreter: B\[0, 0\] is .* elements differ"):
        assert_same_result(ADD, other, engines=("interpreter",))
    assert_same_result(ADD, ADD)


def test_check_schedule_runs_its_oracles():
    def steps(sch):
        i, j = sch.get_loops(sch.get_block("B"))
        sch.split(i, [None, 3])
        sch.vectorize(j)

    sch = check_schedule(ADD, steps, sizes={"n": 7}, engines=("interpreter", "llvm"))
    after = sch.mod
    check_schedule(ADD, steps, after, sizes={"n": 7})
    with pytest.raises(AssertionError):
        check_schedule(ADD, lambda sch: None, after)


def test_roundtrip_of_a_module():
    assert_roundtrip(tir.IRModule.of(ADD))


def test_a_fault_inside_a_step_is_no_refusal(monkeypatch):
    def fails(*args, **named):
        raise tir.errors.InternalError("a fault inside split")

    monkeypatch.setattr(tir.Schedule, "split", fails)
    with pytest.raises(AssertionError, match="a fault inside split"):
        random_schedule(random_program(1), 1, 1, ["split"])


def test_attempts_are_refused_with_a_reason():
    attempts = [a for seed in range(30) for a in random_schedule(random_program(seed), seed)[1]]
    refusals = [a.refusal for a in attempts if not a.accepted]
    assert refusals and len(refusals) < len(attempts)
    assert all(isinstance(r, tir.ScheduleError) and str(r).strip() for r in refusals)


def test_fuzz_entry(capsys):
    assert steps.main(["--examples", "12", "--seed", "4", "--llvm-every", "6"]) == 0
    out = capsys.readouterr().out
    assert "programs 12" in out and "failures 0" in out


def test_fuzz_reports_a_failure(capsys, monkeypatch):
    def broken(*args, **kwargs):
        raise AssertionError("not the same")

    monkeypatch.setattr(steps, "assert_same_call", broken)
    assert steps.main(["--examples", "1"]) == 1
    out = capsys.readouterr().out
    assert "seed 0 failed" in out and "not the same" in out and "scheduled:" in out
