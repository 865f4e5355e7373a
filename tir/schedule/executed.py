"""``Schedule(f, verify="run")``: runs the reference executor on the program before and after a step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np

from ..errors import RunError
from ..function import PrimFunc
from .invariants import Delta, Invariant, Problem

SIZES = (7, 5, 11, 3, 13)  # awkward on purpose: tails show up


def awkward_inputs(func: PrimFunc) -> list[Any]:
    """Arguments for ``func`` at awkward sizes; floats that are no integers, of which few are equal: a selection among equals
    may give either."""
    from ..interp.same_results import random_inputs, symbolic_sizes

    rng = np.random.default_rng(0)
    inputs = random_inputs(func, sizes=dict(zip(symbolic_sizes(func), cycle(SIZES))))
    for array in inputs:
        if isinstance(array, np.ndarray) and array.dtype.kind == "f":
            array[...] = rng.standard_normal(array.shape)
    return inputs


def _same_meaning(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """The program computes what it did before the step."""
    if delta.modules is None or delta.before is None:
        return
    from ..interp import run
    from ..interp.same_results import assert_same_call

    before, module = delta.modules()

    def call(*args: Any) -> None:
        try:
            run(module, *args, func=delta.name)
        except RunError as error:
            raise AssertionError(f"the program after it fails: {error}") from error

    try:
        assert_same_call(before, call, awkward_inputs(delta.before), "after it", atol=1e-3, func=delta.name)
    except AssertionError as difference:
        yield Problem("results", f"the program would compute something else: {difference}")


EXECUTED = Invariant("executed", _same_meaning, proof=False)  # of the schedules that ask for it
