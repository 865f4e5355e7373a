"""What a step changes, statement by statement."""

from __future__ import annotations

import pytest

import tir
from tir import te, testing
from tir.script.change import Line, changes


def schedule() -> tir.Schedule:
    A, k = te.placeholder((8, 16), name="A"), te.reduce_axis((0, 16), "k")
    B = te.compute((8, 16), lambda i, j: A[i, j] + 1.0, "B")
    return tir.Schedule(te.create_prim_func([A, te.compute((8,), lambda y: te.sum(B[y, k], axis=k), "C")]))


def changed(sch: tir.Schedule) -> list[Line]:
    found = changes(sch.history[-2].mod, sch.history[-1].mod)
    return [line for line in found if line.kind not in ("same", "gap")]


def words(line: Line) -> list[tuple[str, str]]:
    return [word for word in line.words if word[0] != "same"]


@pytest.mark.parametrize("loop", ["i", "y"])
def test_a_parallel_loop_is_one_word(loop):
    sch = schedule()
    sch.parallel(loop)
    (line,) = changed(sch)
    assert words(line) == [("removed", "T.serial"), ("added", "T.parallel")]


def test_a_loop_around_others_is_one_line():
    sch = schedule()
    sch.add_unit_loop("i")
    (line,) = changed(sch)
    assert line.kind == "added" and line.text == "for u in T.serial(1):"


def test_loops_that_change_places_have_moved():
    sch = schedule()
    sch.reorder("j", "i")
    kinds = [line.kind for line in changed(sch)]
    assert sorted(kinds) == ["from", "to"] and len({line.text for line in changed(sch)}) == 1


def test_a_block_that_is_gone_is_removed():
    sch = schedule()
    sch.compute_inline("B")
    found = changed(sch)
    assert any(line.kind == "removed" and line.text.startswith("B = T.alloc_buffer") for line in found)
    assert not any(line.kind == "added" for line in found)


def test_each_change_stands_in_its_loops():
    sch = schedule()
    sch.unroll("k")
    texts = [(line.kind, line.text.partition(" in ")[0]) for line in changes(sch.history[0].mod, sch.mod, context=0)]
    assert texts == [("gap", "…"), ("same", "for y"), ("changed", "for k")]


def test_equal_programs_have_no_changes():
    assert changes(schedule().mod, schedule().mod) == []


@pytest.mark.parametrize("seed", range(20))
def test_the_lines_of_a_program_are_those_kept_and_those_that_came(seed):
    """Without what was removed, the lines are the new program; without what was added, the old one."""
    one, other = (tir.IRModule.of(testing.random_program(n)) for n in (seed, seed + 1))
    found = changes(one, other, context=10_000)

    def texts(without: str) -> list[str]:
        kept = ("".join(text for kind, text in line.words if kind != without) for line in found)
        return sorted(text for text in kept if text)

    def lines(program: tir.IRModule) -> list[str]:
        text = program.script(syntax_sugar=False, header=False)
        return sorted(line.strip() for line in text.splitlines() if line.strip())

    assert texts("removed") == lines(other) and texts("added") == lines(one)
