"""A program run on random arguments: its time, what is wrong with it, and whether it computes what another one does."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..analysis.effects import effects
from ..cost.footprint import footprint
from ..cost.footprint_table import number
from ..display import duration
from ..errors import RunError, TirError
from ..expr import IntImm
from ..function import IRModule, PrimFunc
from ..interp import run
from ..interp.same_results import compare, copied, symbolic_sizes
from ..target import GPUS, Target
from ..testing.oracle import assert_same_call, random_inputs, usual_engine

MOST_CHECKED = 40_000_000  # iterations, some two microseconds each


@dataclass(frozen=True)
class Run:
    """The median time of a call, and a sentence with it: the rate, and whether the results are right."""

    seconds: float
    text: str


def timed(mod: IRModule, first: IRModule, target: Target | None, name: str) -> Run:
    """Time function ``name`` of ``mod``, and compare what it computes with the function in ``first``. Both are compiled for
    ``target``; symbolic sizes are chosen, and told. Raises ``RunError`` for a target that does not run here, and what building and
    running raise.

    >>> import tir
    >>> program = tir.IRModule.of(tir.library.rows.row_sum(4, 8))
    >>> timed(program, program, None, next(iter(program))).text.rpartition(", ")[2]
    'right: it computes what the program without steps does'
    """
    from codegen.build import build

    where = target or Target("llvm")
    if where.kind != "llvm":
        raise RunError(
            f"the explorer times programs for llvm; this schedule is for {where.kind}: Check runs it on the simulator"
        )
    function, names = mod[name], symbolic_sizes(mod[name])
    sizes = dict.fromkeys(names, 1 << 20 // max(len(names), 1))
    arguments = random_inputs(function, sizes=sizes)
    kernel = build(mod, where)
    wrong = _difference(build(first, where)[name], kernel[name], function, arguments)
    seconds = kernel.time_evaluator(name, number=1, repeat=5, min_repeat_ms=20)(*arguments).median
    at = "".join(f", {name} = {size}" for name, size in sizes.items()) + _rate(function, seconds)
    return Run(seconds, f"{duration(seconds)}{at}, {wrong or 'right: it computes what the program without steps does'}")


@dataclass(frozen=True)
class Check:
    """What a check found: ``text`` is a sentence, ``fault`` the error with its place; empty if there is none."""

    text: str
    fault: str = ""


def checked(mod: IRModule, first: IRModule, target: Target | None, name: str) -> Check:
    """Run function ``name`` of ``mod`` where every access is watched, on random arguments, and compare what it computes with
    the function in ``first``: by the reference executor, a program for a GPU by the simulator. Both tell accesses out of
    bounds, reads of what nobody wrote, and races; the executor also regions that a block does not name. Raises ``RunError``
    for a program that takes too long.

    >>> import tir
    >>> program = tir.IRModule.of(tir.library.rows.row_sum(4, 8))
    >>> checked(program, program, None, next(iter(program))).text.partition(":")[0]
    'right by the reference executor'
    """
    from codegen.build import build

    where = target or Target(usual_engine(mod))
    judge = "the simulator" if where.kind in GPUS else "the reference executor"
    work = iterations(mod[name]) + iterations(first[name])
    if work > MOST_CHECKED:
        raise RunError(
            f"{judge} would take minutes for the {number(work)} iterations of this program and of the one without steps, and "
            f"checks {number(MOST_CHECKED)}: schedule it with smaller sizes, or Run it, which compares compiled programs"
        )

    def call(*args: Any) -> None:
        if where.kind in GPUS:
            build(mod, Target("cuda-sim", **where.attrs))[name](*args)
        else:
            run(mod, *args, func=name, regions=True)

    try:
        assert_same_call(first, call, random_inputs(first[name]), judge, func=name)
    except (AssertionError, TirError) as error:
        return Check(f"wrong by {judge}", str(error))
    return Check(f"right by {judge}: no fault, and it computes what the program without steps does")


def iterations(function: PrimFunc) -> int:
    """How often the statement that runs most often does; loops whose extent is not known count once.

    >>> import tir
    >>> iterations(tir.library.rows.row_sum(4, 8))
    32
    """
    nests = (e.loops for e in effects(function.body).located())
    return max((prod(n.value for _, _, n in loops if isinstance(n, IntImm)) for loops in nests), default=1)


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
    except (TirError, ValueError):  # sizes are not known
        return ""
    if not found.flops or not found.bound:
        return ""
    rate = found.flops / seconds
    return (
        f", {number(rate, 'FLOP/s')} ({100 * rate / found.bound:.0f} % of the bound by {found.bottleneck} of one core)"
    )
