"""What the source of an expression calls while a program runs: operations on the lanes of vectors, and checked operands."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..expr import trunc_div


def lane_by_lane(condition: np.ndarray, then: Any, other: Any, kind: np.dtype) -> np.ndarray:
    """``then`` in the lanes where ``condition`` holds, ``other`` in the rest; each is evaluated only for its lanes."""
    result = np.empty(condition.shape, kind)
    for case, lanes in ((then, np.flatnonzero(condition)), (other, np.flatnonzero(~condition))):
        if lanes.size:
            result[lanes] = case(lanes)
    return result


def lanes_left(decided: np.ndarray, where: bool, case: Any) -> np.ndarray:
    """``decided``, with the lanes equal to ``where`` replaced by ``case``, which is evaluated only for these lanes."""
    result = decided.copy()
    lanes = np.flatnonzero(decided == where)
    if lanes.size:
        result[lanes] = case(lanes)
    return result


def joined(parts: tuple[Any, ...], dtype: np.dtype) -> np.ndarray:
    return np.concatenate([np.atleast_1d(np.asarray(p, dtype)) for p in parts])


def divide_lanes(a: np.ndarray, b: np.ndarray, how: str, site: Any, values: tuple[Any, ...]) -> np.ndarray:
    if np.any(b == 0):
        site.fail("division by zero in a lane of a vector", values)
    return _DIVISIONS[how](a, b)


def divide_checked(a: int, b: int, how: str, site: Any, values: tuple[Any, ...]) -> int:
    if b == 0:
        site.fail(f"division by zero: {a} {how} 0", values)
    return _DIVISIONS[how](a, b)


def truncdiv(a: Any, b: Any) -> Any:
    """The quotient, of numbers or of lanes, rounded towards zero."""
    return trunc_div(a, b) if isinstance(a, int) and isinstance(b, int) else (a - np.fmod(a, b)) // b


def truncmod(a: Any, b: Any) -> Any:
    """What :func:`truncdiv` leaves."""
    return a - b * trunc_div(a, b) if isinstance(a, int) and isinstance(b, int) else np.fmod(a, b)


_DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "//": operator.floordiv, "%": operator.mod, "truncdiv": truncdiv, "truncmod": truncmod,
}  # fmt: skip


def shift_amount(amount: int, bits: int, site: Any, values: tuple[Any, ...]) -> int:
    if not 0 <= amount < bits:
        site.fail(f"shift by {amount} of a {bits}-bit integer: the amount must be in [0, {bits})", values)
    return amount


def shift_amounts(amounts: np.ndarray, bits: int, site: Any, values: tuple[Any, ...]) -> np.ndarray:
    for amount in amounts[(amounts < 0) | (amounts >= bits)]:
        shift_amount(int(amount), bits, site, values)
    return amounts


def shaped(memory: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """The array of ``shape`` that starts ``offset`` elements from the beginning; ``strides`` in elements."""
    if not strides:
        return memory[offset : offset + int(np.prod(shape))].reshape(shape)
    return np.lib.stride_tricks.as_strided(memory[offset:], shape, [s * memory.itemsize for s in strides])
