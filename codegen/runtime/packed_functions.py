"""Python functions that compiled code can call by name (``T.call_packed("name", …)``)."""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tir.dtype import DType
from tir.errors import RunError
from tir.interp.host_functions import PACKED as _FUNCTIONS
from tir.interp.host_functions import PRINT
from tir.interp.numbers import storage_dtype

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)


def register_func(name: str, function: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Make ``function`` callable from programs as ``T.call_packed(name, …)``; without ``function``, a decorator.

    It receives numbers, strings, NumPy arrays for buffers, and for pointers addresses (ints); from the reference executor
    arrays of one dimension. Raises ``ValueError`` when the name is taken and
    ``override`` is false.

    >>> import numpy as np
    >>> import tir
    >>> @tir.register_func("example.fill")
    ... def fill(array, value):
    ...     array[:] = value
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((3,), "float32")):
    ...     T.evaluate(T.call_packed("example.fill", T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(3), 0, 1, T.float32(0), 0), 7))
    ... ''')
    >>> tir.build(f, "interpreter").new()
    array([7., 7., 7.], dtype=float32)
    """
    if function is None:
        return lambda fn: register_func(name, fn, override)
    if name in _FUNCTIONS and not override:
        raise ValueError(f"a function {name!r} is already registered; pass override=True to replace it")
    _FUNCTIONS[name] = function
    return function


@functools.partial(register_func, PRINT)
def _print(*values: str) -> None:
    """Print a line at once, so that threads do not mix theirs."""
    sys.stdout.write(" ".join(values) + "\n")


class PackedCalls:
    """The call sites of one module; ``pointer`` is what compiled code calls. Keeps the last exception."""

    def __init__(self, sites: Sequence[dict[str, Any]]):
        self.sites = sites
        self.error: BaseException | None = None
        self._callback = CALLBACK(self._call)
        self.pointer = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _call(self, number: int, array: int) -> int:
        try:
            site = self.sites[number]
            function = _FUNCTIONS.get(site["name"])
            if function is None:
                known = ", ".join(sorted(_FUNCTIONS)) or "none"
                raise RunError(f"call_packed: no Python function {site['name']!r} is registered; known: {known}")
            slots = itertools.count(array, 8)
            args = [_argument(kind, what, slots) for kind, what in site["args"]]
            result = function(*args)
            if site["result"] != "void":
                _slot(next(slots), DType(site["result"]))[0] = result
            return 0
        except BaseException as error:  # cannot pass through compiled code: kept, and raised by the caller
            self.error = error
            return 1


def _argument(kind: str, what: str, slots: Iterator[int]) -> Any:
    """An argument from the slots it takes: a string none, a number one; an array those of its address, offset, shape
    and, if it has any, strides."""
    if kind == "string":
        return what
    if kind in ("value", "shown"):
        value = _slot(next(slots), DType(what))[0]
        return value.item() if kind == "value" else str(value)
    name, rank, strides = what.split(":")
    address, offset, *sizes = (int(_slot(next(slots), DType("int64"))[0]) for _ in range(2 + int(rank) + int(strides)))
    dtype = storage_dtype(DType(name))
    return array_at(address + offset * dtype.itemsize, dtype, sizes[: int(rank)], sizes[int(rank) :])


def array_at(address: int, dtype: np.dtype, shape: Sequence[int], strides: Sequence[int] = ()) -> np.ndarray:
    """The array at an address; ``strides`` in elements, compact if there are none."""
    if not strides:
        strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if all(shape) else 0
    memory: Any = (ctypes.c_char * (reach * dtype.itemsize)).from_address(address)
    flat = np.frombuffer(memory, dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, [s * dtype.itemsize for s in strides])


def _slot(address: int, dtype: DType) -> np.ndarray:
    kind = storage_dtype(dtype)
    memory: Any = (ctypes.c_char * kind.itemsize).from_address(address)
    return np.frombuffer(memory, kind)
