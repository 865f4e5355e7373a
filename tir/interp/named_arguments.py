"""Calls by parameter name, and arrays for the results of a call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..buffer import Buffer
from ..errors import RunError
from ..expr import Var
from ..function import PrimFunc
from ..names import did_you_mean
from .arguments import bind_one, evaluate
from .numbers import array_dtype

ALIGNMENT = 64  # bytes, of the arrays made here


def parameter_names(func: PrimFunc) -> list[str]:
    """The names of a function's parameters as a user wrote them: those of the buffers, where they are buffers."""
    return [buffer.name if (buffer := func.buffer_map.get(p)) is not None else p.name for p in func.params]


def in_order(func: PrimFunc, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call by position. Raises ``RunError`` for a name that no parameter has, one given twice, and one
    that is missing between others."""
    names = parameter_names(func)
    values = dict(zip(names, args))
    for name, value in named.items():
        if name not in names:
            raise RunError(
                f"{func.name} has no parameter `{name}`; it takes {', '.join(names)}{did_you_mean(name, names)}"
            )
        if name in values:
            raise RunError(f"{func.name}: `{name}` is given by position and by name")
        values[name] = value
    missing = [n for n in names if n not in values]
    if missing:
        raise RunError(f"{func.name}: {', '.join(f'`{n}`' for n in missing)} missing; it takes {', '.join(names)}")
    return (*(values[n] for n in names), *args[len(names) :])


def split_outputs(
    func: PrimFunc, written: frozenset[int], args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[dict[str, Any], list[int]]:
    """The arguments given, by name, and the positions of the arrays that are to be made: written ones not given by name.

    ``args`` are the others, in order. Raises ``RunError`` if they are too many, or nothing is to be made.
    """
    names = parameter_names(func)
    made = [k for k in sorted(written) if func.params[k] in func.buffer_map and names[k] not in named]
    inputs = [name for k, name in enumerate(names) if k not in made and name not in named]
    if not made:
        raise RunError(f"{func.name}: there is no array to make, all that it writes are given; call it as it is")
    if len(args) > len(inputs):
        makes = ", ".join(names[k] for k in made)
        takes = ", ".join(inputs) or "nothing"
        raise RunError(f"{func.name}: new takes {takes} by position and makes {makes}, but got {len(args)} arguments")
    return {**dict(zip(inputs, args)), **named}, made


def output_shapes(func: PrimFunc, given: Mapping[str, Any], made: Sequence[int]) -> list[tuple[int, ...]]:
    """The shapes of the parameters at positions ``made``, from the arguments ``given`` by name. Raises ``RunError`` for
    one that they do not determine, and for one with strides."""
    values: dict[Var, Any] = {}
    for name, param in zip(parameter_names(func), func.params):
        if name in given:
            bind_one(func, param, given[name], values)
    return [_shape(func, func.buffer_map[func.params[k]], values) for k in made]


def _shape(func: PrimFunc, buffer: Buffer, values: dict[Var, Any]) -> tuple[int, ...]:
    sizes = [evaluate(size, values) for size in buffer.shape]
    if buffer.strides or any(size is None for size in sizes):
        why = "has strides" if buffer.strides else "has a shape that the arguments do not determine"
        raise RunError(f"{func.name}: `{buffer.name}` {why}: make the array yourself, and give it as {buffer.name}=")
    return (*(int(size) for size in sizes), *((buffer.dtype.lanes,) if buffer.dtype.lanes > 1 else ()))


def zeros(shape: Sequence[int], buffer: Buffer) -> np.ndarray:
    """A compact array of zeros for ``buffer``; of ml_dtypes where NumPy has no such type."""
    return aligned_zeros(shape, array_dtype(buffer.dtype), max(ALIGNMENT, buffer.data_alignment))


def aligned_zeros(shape: Sequence[int], dtype: np.dtype[Any], align: int = ALIGNMENT) -> np.ndarray:
    """A compact array of zeros that begins at a multiple of ``align`` bytes."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + align, np.uint8)
    start = -memory.ctypes.data % align
    return memory[start : start + size].view(dtype).reshape(tuple(shape))
