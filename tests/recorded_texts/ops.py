"""Every operator: the program of each of its cases, and of the first one the code for a CPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import tir
from tir import ops, te
from tir.ops.cases import Case, concrete

from .stages import CPU, Texts, generated, tuned


def program_of(operator: Any, of: Case) -> tir.PrimFunc:
    """The function of a case: its inputs, then its outputs."""
    call = concrete(of)
    args, attributes = call.symbolic()
    made = operator.function(*args, **attributes)
    outputs = list(made) if isinstance(made, (tuple, list)) else [made]
    return te.create_prim_func([*call.inputs, *(out for out in outputs if out not in call.inputs)])


def operator(name: str) -> Texts:
    found = ops.operators()[name]
    for number, of in enumerate(found.cases):
        func = program_of(found, of)
        yield f"{number}", func.script()
        if number == 0:
            yield "pattern", ops.pattern(func).name
            yield from generated(func, CPU, "plain.")
            if len(name) % 2:  # half of them: the others' programs are alike
                yield from tuned(func, CPU)


CASES = {name: partial(operator, name) for name in ops.operators()}
