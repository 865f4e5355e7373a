"""Code of unscheduled programs, for three levels of x86-64 and a GPU: of each family of the fuzzer, and of programs with
numbers of every type."""

from __future__ import annotations

from functools import partial

from tests.fuzz.kernel_programs import FAMILIES, family_program
from tests.fuzz.typed_programs import typed_program
from tir.script import parse

from .stages import GPU, Texts, cpu, generated

LEVELS = ("v2", "v3", "v4")


def family(name: str, seed: int) -> Texts:
    made = family_program(name, seed)
    yield "program", made.script()
    yield from generated(made, cpu(LEVELS[seed % 3]))


def typed(seed: int) -> Texts:
    drawn = typed_program(seed)
    made = parse(drawn.source("main"))
    yield "program", made.script()
    yield from generated(made, cpu(LEVELS[seed % 3]))
    yield from generated(parse(drawn.source("main", threads=True)), GPU, "gpu.")


CASES = {
    **{f"{name}-{seed}": partial(family, name, seed) for name in FAMILIES for seed in range(3)},
    **{f"typed-{seed:02}": partial(typed, seed) for seed in range(60)},
}
