"""Which stage changed a result: the first wrong step of a schedule, the first wrong pass of lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..analysis.private_clause import infer_private
from ..errors import RunError, TirError
from ..function import IRModule, PrimFunc
from ..levels import is_shared
from ..script.change import program_diff
from ..target import GPUS, Target
from ..transform.pipeline import name_of, passes_for
from ..visit import buffers_in
from .oracle import assert_same_result, random_inputs

Program = PrimFunc | IRModule


def check_lowering(
    program: Program,
    target: Any = "llvm",
    *,
    inputs: Sequence[Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    passes: Iterable[Callable[[IRModule], IRModule]] | None = None,
    seed: int = 0,
) -> IRModule:
    """Lower ``program`` for ``target`` pass by pass, and run every stage with the reference executor; the last stage.

    ``passes`` replaces the passes of the target. The arguments are ``inputs``, or random ones (symbolic ``sizes`` by
    name). Raises ``AssertionError`` that names the pass which changed the result, or after which the program no longer
    runs, with what it changed. Stages that the executor cannot run (instructions of a GPU) are passed over; the message
    then names all passes since the last stage that it ran. For a GPU the simulator runs the last stage, and decides about
    those whose threads exchange values in shared memory: the executor runs one thread after the other.

    >>> import tir
    >>> from tir import testing
    >>> double = tir.script.parse('''
    ... @T.prim_func
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in T.vectorized(8):
    ...         B[i] = A[i] * T.float32(2)
    ... ''')
    >>> lowered = testing.check_lowering(double)
    """
    where = Target.of(target)
    origin = IRModule.of(program).map_functions(infer_private)
    stages = _lowered(origin, passes_for(where) if passes is None else passes)
    chosen = {name: list(inputs) if inputs is not None else random_inputs(f, seed, sizes) for name, f in origin.items()}
    good, since, last = origin, [], origin
    simulated = where.kind in GPUS and passes is None
    for name, mod in stages:
        since.append(name)
        last = mod
        try:
            _check(origin, mod, chosen)
        except _CannotRun:
            continue
        except (AssertionError, TirError) as error:
            if simulated and _threads_exchange(mod):
                continue
            raise _wrong_pass(since, good, mod, error) from error
        good, since = mod, []
    if simulated:
        try:
            for name, values in chosen.items():
                assert_same_result(origin, IRModule.of(program), values, ["cuda-sim"], func=name)
        except (AssertionError, TirError) as error:
            raise _wrong_pass(since or ["the simulator"], good, last, error) from error
    return last


def _lowered(mod: IRModule, passes: Iterable[Callable[[IRModule], IRModule]]) -> Iterator[tuple[str, IRModule]]:
    """The name of each pass that changes the program, and the program after it."""
    for step in passes:
        made = step(mod)
        if made is not mod:
            yield name_of(step), made
        mod = made


def _threads_exchange(mod: IRModule) -> bool:
    """Whether there is memory through which threads of a block, or of a warp, exchange values."""
    return any(b.scope == "warp" or is_shared(b.scope) for _, func in mod.items() for b in buffers_in(func.body))


class _CannotRun(Exception):
    """The executor has no meaning for an operator of the program."""


def _check(origin: IRModule, mod: IRModule, inputs: Mapping[str, Sequence[Any]]) -> None:
    for name, values in inputs.items():
        try:
            assert_same_result(origin, mod, values, ["interpreter"], func=name)
        except RunError as error:
            if "cannot evaluate" in str(error) or "is not registered" in str(error):
                raise _CannotRun from error
            raise


def _wrong_pass(names: Sequence[str], before: IRModule, after: IRModule, error: Exception) -> AssertionError:
    who = f"pass {names[0]}" if len(names) == 1 else f"one of the passes {', '.join(names)}"
    return _changed(who, before, after, f"after {names[-1]}", error)


def _changed(who: str, before: IRModule, after: IRModule, head: str, error: Exception) -> AssertionError:
    return AssertionError(f"{who} changed the result: {error}\n{program_diff(before, after, head)}")


def first_wrong_step(sch: Any, inputs: Mapping[str, Sequence[Any]], engines: Sequence[str]) -> AssertionError | None:
    """The first step of a schedule that changed what the program computes; None if every stage computes the same.

    ``inputs``: the arguments of each function.
    """
    history = sch.history
    origin = history[0].mod
    for before, step in zip(history, history[1:]):
        try:
            for name, values in inputs.items():
                assert_same_result(origin, step.mod, values, engines, func=name)
        except (AssertionError, TirError) as error:
            who = f"step {step.number} of {len(history) - 1}, `{step.text}`,"
            return _changed(who, before.mod, step.mod, step.text, error)
    return None
