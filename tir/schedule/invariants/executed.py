"""``Schedule(f, verify="run")``: runs the reference executor on the program before and after a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...dtype import DType
from ...errors import RunError
from ...expr import IntImm, Var
from ...function import IRModule, PrimFunc
from ...visit import walk
from . import Invariant, Problem
from .delta import Delta

SIZES = (7, 5, 11, 3, 13)  # awkward on purpose: tails show up


def random_arguments(func: PrimFunc, seed: int = 0) -> list[Any]:
    """Arguments for ``func``: random arrays, and for symbolic sizes small primes."""
    from ...arith import simplify
    from ...visit import substitute

    rng = np.random.default_rng(seed)
    sizes: dict[Var, int] = {}
    for buffer in func.buffers():
        for part in (*buffer.shape, *buffer.strides):
            for v in walk(part):
                if isinstance(v, Var) and v not in sizes:
                    sizes[v] = SIZES[len(sizes) % len(SIZES)]
    values = {v: IntImm(n, v.dtype) for v, n in sizes.items()}
    arguments: list[Any] = []
    for p in func.params:
        buffer = func.buffer_map.get(p)
        if buffer is None:
            arguments.append(sizes.get(p, 3) if not p.dtype.is_float else 1.5)
            continue
        shape = [int(simplify(substitute(s, values))) for s in buffer.shape]  # type: ignore[arg-type]
        arguments.append(_random(rng, shape, str(buffer.dtype)))
    return arguments


def _random(rng: np.random.Generator, shape: list[int], dtype: str) -> np.ndarray:
    from ...interp.numbers import encode, is_small_float

    if is_small_float(DType(dtype)):
        return np.asarray(encode(rng.standard_normal(shape).astype("float32"), DType(dtype)))
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        return rng.integers(0, 8, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _values(array: np.ndarray, dtype: DType) -> np.ndarray:
    """The numbers that an argument of element type ``dtype`` holds."""
    from ...interp.numbers import decode_table, is_small_float

    return decode_table(dtype)[array] if is_small_float(dtype) else array


def same_results(before: IRModule, after: IRModule, name: str) -> str | None:
    """None if both give the same results on random inputs; otherwise the first argument that differs, and where."""
    from ...interp import run

    first = random_arguments(before[name])
    second = [a.copy() if isinstance(a, np.ndarray) else a for a in first]
    run(before, *first, func=name)
    try:
        run(after, *second, func=name)
    except RunError as error:
        return f"the program after it fails: {error}"
    for param, a, b in zip(before[name].params, first, second):
        if not isinstance(a, np.ndarray):
            continue
        buffer = before[name].buffer_map[param]
        a, b = _values(a, buffer.dtype), _values(b, buffer.dtype)
        tolerance = 1e-3 if a.dtype.itemsize <= 4 else 1e-9
        differ = ~np.isclose(a.astype("float64"), b.astype("float64"), rtol=tolerance, atol=tolerance, equal_nan=True)
        if differ.any():
            at = tuple(int(x) for x in np.argwhere(differ)[0])
            return f"argument {buffer.name} at {list(at)} was {a[at]}, and would be {b[at]}"
    return None


def _same_meaning(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """The program computes what it did before the step."""
    if delta.modules is not None and delta.before is not None:
        difference = same_results(*delta.modules(), delta.name)
        if difference:
            yield Problem("results", f"the program would compute something else: {difference}")


EXECUTED = Invariant("executed", _same_meaning, proof=False)  # of the schedules that ask for it
