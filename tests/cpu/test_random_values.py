"""Random functions with types, judged by NumPy: the executor, compiled code for three levels of x86-64, and PTX."""

from __future__ import annotations

import dataclasses

import pytest

from tests.fuzz.straight_programs import straight_program
from tests.fuzz.typed_programs import typed_program
from tests.fuzz.values import CPU, PTX, differences, has_level


@pytest.mark.parametrize(("target", "count"), [*((target, 80) for target in CPU), (PTX, 30)])
def test_random_programs_are_what_numpy_computes(target, count):
    if target.startswith("llvm") and not has_level(target):
        pytest.skip(f"this CPU does not run {target}")
    programs = [typed_program(seed, largest=128) for seed in range(count)]
    found = differences(programs, target)
    assert not found, [(p.source("f"), what) for p, what in found.items()]


WRONG_ONCE = [(1564, 128), (2720, 128), (4250, 128), (3827, 128), (10877, 512)]  # seeds, and the most stores


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
@pytest.mark.parametrize("drawn", [[(seed, 128) for seed in range(20)], WRONG_ONCE], ids=["any", "wrong once"])
def test_straight_code_is_what_numpy_computes(target, drawn):
    """Each program alone, since what a module is compiled without is decided by all of its functions."""
    found = [differences([straight_program(seed, largest=most)], target) for seed, most in drawn]
    assert not any(found), [(p.source("f"), what) for each in found for p, what in each.items()]


def test_a_program_that_computes_something_else_is_found():
    programs = [typed_program(seed, largest=128) for seed in range(40)]
    program = next(p for p in programs if " // " in p.loops and p.is_parallel)
    changed = dataclasses.replace(program, loops=program.loops.replace(" // ", " % "))
    assert list(differences([program, changed][1:], "llvm")) == [changed]


@pytest.mark.parametrize("target", ["llvm", PTX])
def test_a_program_that_does_not_run_is_found_among_others(target):
    programs = [typed_program(seed, largest=128) for seed in range(5)]
    broken = dataclasses.replace(programs[2], loops=programs[2].loops.replace("O[", "nothing["))
    programs[2] = broken
    assert list(differences(programs, target)) == [broken]
