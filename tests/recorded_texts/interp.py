"""What the executor computes, and what the simulator reports of kernels: of programs of integers."""

from __future__ import annotations

from functools import partial
from typing import Any

import tir
from tests.fuzz.gpu_schedules import wider
from tests.fuzz.kernel_programs import FAMILIES, family_program
from tests.fuzz.typed_programs import typed_program
from tir.function import IRModule
from tir.interp import run
from tir.script import parse
from tir.testing import random_inputs

from .stages import GPU, Texts


def values(given: Any) -> str:
    """Arguments after a call; of floats, whose last digits are the platform's, how many there are."""
    return "\n".join(
        str(x) if not hasattr(x, "dtype") else f"{x.shape} {x.dtype} {x.tolist() if x.dtype.kind in 'biu' else ''}"
        for x in given
    )


def executed(name: str, seed: int) -> Texts:
    program = IRModule.of(family_program(name, seed))
    for entry, func in program.items():
        given = random_inputs(func, seed)
        try:
            run(program, *given, func=entry)
        except tir.RunError as error:
            yield f"{entry}.error", str(error)
        yield f"{entry}.values", values(given)


def typed(seed: int) -> Texts:
    drawn = typed_program(seed)
    given = [*(a.copy() for a in drawn.params.values()), drawn.before.copy()]
    run(parse(drawn.source("main")), *given)
    yield "values", values(given[-1:])


def simulated(name: str, seed: int) -> Texts:
    program = IRModule.of(family_program(name, seed))
    sch = wider(tir.tune.default(program, GPU))
    try:
        module = tir.build(sch.mod, "cuda-sim")
    except tir.BuildError as error:
        yield "error", str(error)
        return
    for entry in program:
        given = random_inputs(program[entry], seed)
        try:
            module[entry](*given)
        except tir.RunError as error:
            yield f"{entry}.error", str(error)
        yield f"{entry}.values", values(given)
        yield f"{entry}.report", "\n".join(map(str, module.last_report))


CASES = {
    **{f"{name}-{seed}": partial(executed, name, seed) for name in FAMILIES for seed in (7,)},
    **{f"typed-{seed}": partial(typed, seed) for seed in range(100, 130)},
    **{f"{name}-gpu": partial(simulated, name, 8) for name in FAMILIES},
}
