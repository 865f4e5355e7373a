"""What the examples of this folder print when they are run: the schedule, the kernel's resources, a checked run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tir
from codegen.cuda.driver import has_device
from tir.testing import random_inputs

Made = Callable[[], "tuple[tir.PrimFunc, tir.Schedule]"]
Inputs = Callable[[tir.PrimFunc, np.random.Generator], "list[np.ndarray]"]


def _random(func: tir.PrimFunc, rng: np.random.Generator) -> list[np.ndarray]:
    return random_inputs(func)


def show(
    small: Made,
    full: Made,
    reference: Callable[..., Any],
    target: str = "cuda",
    inputs: Inputs = _random,
) -> None:
    """Print the schedule of ``full``, what it compiles to for ``target``, and what the simulator counts for ``small``; on a
    GPU, the time. ``inputs`` makes the arrays, the output last."""
    func, sch = full()
    print(sch.trace.as_python())
    try:
        module = tir.build(sch.mod, target=target)
        print(module.report())
    except tir.BuildError as error:
        print(f"not compiled: {error}")
    _simulate(small, reference, inputs)
    if has_device():
        args = [tir.nd.array(x, tir.cuda()) for x in inputs(func, np.random.default_rng(0))]
        timing = module.time_evaluator(number=10, repeat=5)(*args)
        print(f"on the device: {timing.median * 1e6:.1f} us")
    else:
        print("no CUDA device here: the kernel was simulated, not timed")


def _simulate(small: Made, reference: Callable[..., Any], inputs: Inputs) -> None:
    func, sch = small()
    *given, output = inputs(func, np.random.default_rng(0))
    simulated = tir.build(sch.mod, target="cuda-sim")
    simulated(*given, output)
    expected = reference(*(x.astype(np.float64) for x in given))
    error = np.abs(output - expected).max()
    shapes = ", ".join(str(x.shape) for x in (*given, output))
    print(f"simulated on {shapes}: largest error {error:.2g} of values up to {np.abs(expected).max():.3g}")
    print(simulated.report())
