"""Random steps, each with what the schedule makes of it: the program, or the refusal; and the code at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from tests.fuzz.gpu_schedules import random_gpu_schedule
from tests.fuzz.kernel_programs import FAMILIES, family_program
from tir.testing import Attempt, random_program, random_schedule
from tir.testing.schedules import ALL_PRIMITIVES

from .stages import Texts, cpu, generated

STEPS = 8


def primitives(seed: int) -> list[str]:
    """A quarter of them, which the seed draws: one that is added changes a quarter of the records."""
    return [name for name in ALL_PRIMITIVES if hashlib.sha256(f"{seed} {name}".encode()).digest()[0] % 4 == 0]


def taken(sch: Any, attempts: Sequence[Attempt]) -> Texts:
    """The attempts, each with its refusal, the trace, and the program."""
    lines = [f"{one}\n{'' if one.refusal is None else one.refusal}" for one in attempts]
    yield "attempts", "\n".join(lines)
    yield "trace", str(sch.trace)
    yield "program", sch.mod.script()


def chain(seed: int) -> Texts:
    func = random_program(seed)
    yield "begin", func.script()
    sch, attempts = random_schedule(func, seed, STEPS, primitives(seed))
    yield from taken(sch, attempts)
    yield from generated(sch.mod, cpu("v4"))


def family(name: str, seed: int) -> Texts:
    sch, attempts = random_schedule(family_program(name, seed), seed, STEPS, primitives(seed))
    yield from taken(sch, attempts)
    yield from generated(sch.mod, cpu("v2"))


def on_gpu(name: str, seed: int) -> Texts:
    sch, attempts = random_gpu_schedule(family_program(name, seed), seed, STEPS)
    yield from taken(sch, attempts)
    yield from generated(sch.mod, "cuda -arch=sm_80")


CASES = {
    **{f"chain-{seed:02}": partial(chain, seed) for seed in range(60)},
    **{f"{name}-{seed}": partial(family, name, seed) for name in FAMILIES for seed in range(10, 12)},
    **{f"{name}-gpu-{seed}": partial(on_gpu, name, seed) for name in FAMILIES for seed in range(20, 22)},
}
