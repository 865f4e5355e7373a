"""Tensor expressions: the program of each of ``te_programs``, its schedules for CPUs and GPUs, and their code."""

from __future__ import annotations

from functools import partial

import tir
from tests.te_programs import PROGRAMS
from tir import te

from .stages import CPU, GPU, Texts, cpu, generated, tuned


def program(name: str) -> Texts:
    func = te.create_prim_func(PROGRAMS[name](te, tir))
    yield "program", func.script()
    yield from generated(func, cpu("v2", 1), "plain.")
    yield from tuned(func, CPU)
    if len(name) % 2:  # half of them: that takes longer
        yield from tuned(func, GPU, "gpu.")


CASES = {name: partial(program, name) for name in PROGRAMS}
