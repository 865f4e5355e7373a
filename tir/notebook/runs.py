"""A program run on random arguments: its time, and whether it computes what another one does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..analysis.footprint import footprint
from ..analysis.footprint_table import duration, number
from ..errors import RunError, TirError
from ..function import IRModule, PrimFunc
from ..target import Target
from ..testing.oracle import compare, copied, random_inputs


@dataclass(frozen=True)
class Run:
    """The median time of a call, and a sentence with it: the rate, and whether the results are right."""

    seconds: float
    text: str


def timed(mod: IRModule, first: IRModule, target: Target | None, name: str) -> Run:
    """Time function ``name`` of ``mod``, and compare what it computes with the function in ``first``. Both are compiled for
    ``target``; symbolic sizes are drawn. Raises ``RunError`` for a target that does not run here, and what building and
    running raise.

    >>> import tir
    >>> program = tir.IRModule.of(tir.library.rows.row_sum(4, 8))
    >>> timed(program, program, None, next(iter(program))).text.rpartition(", ")[2]
    'right: it computes what the program without steps does'
    """
    from codegen.build import build

    where = target or Target("llvm")
    if where.kind != "llvm":
        raise RunError(f"the explorer times programs for llvm; this schedule is for {where.kind}")
    function, arguments = mod[name], random_inputs(mod[name])
    kernel = build(mod, where)
    wrong = _difference(build(first, where)[name], kernel[name], function, arguments)
    seconds = kernel.time_evaluator(name, number=1, repeat=5, min_repeat_ms=20)(*arguments).median
    rate = _rate(function, seconds)
    return Run(
        seconds, f"{duration(seconds)}{rate}, {wrong or 'right: it computes what the program without steps does'}"
    )


def _difference(expected: Any, actual: Any, function: PrimFunc, arguments: list[Any]) -> str:
    """The first element that the second function computes otherwise, in words; empty if there is none."""
    one, other = ([copied(a) for a in arguments] for _ in range(2))
    expected(*one)
    actual(*other)
    for param, x, y in zip(function.params, one, other):
        if isinstance(x, np.ndarray) and param in function.buffer_map:
            buffer = function.buffer_map[param]
            try:
                compare(buffer.name, buffer.dtype, x, y, None, 1e-6, "wrong")
            except AssertionError as error:
                return str(error)
    return ""


def _rate(function: PrimFunc, seconds: float) -> str:
    """Operations a second and their share of what the footprint allows one core, if their number is known."""
    try:
        found = footprint(function)
    except TirError:
        return ""
    if not found.flops or not found.bound:
        return ""
    rate = found.flops / seconds
    return (
        f", {number(rate, 'FLOP/s')} ({100 * rate / found.bound:.0f} % of the bound by {found.bottleneck} of one core)"
    )
