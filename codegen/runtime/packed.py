"""Python functions that compiled code can call by name (``T.call_packed("name", …)``)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tir.dtype import DType
from tir.errors import RunError

_FUNCTIONS: dict[str, Callable[..., Any]] = {}
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)


def register_func(name: str, function: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Make ``function`` callable from programs as ``T.call_packed(name, …)``; without ``function``, a decorator.

    It receives numbers, strings, and addresses (ints) for pointers. Raises ``ValueError`` when the name is taken and
    ``override`` is false.
    """
    if function is None:
        return lambda fn: register_func(name, fn, override)
    if name in _FUNCTIONS and not override:
        raise ValueError(f"a function {name!r} is already registered; pass override=True to replace it")
    _FUNCTIONS[name] = function
    return function


def numpy_dtype(dtype: DType) -> np.dtype:
    """The NumPy type of one lane in memory; bfloat16 and the 8-bit floats as their bits."""
    if dtype.is_bool:
        return np.dtype(np.bool_)
    if dtype.is_handle:
        return np.dtype(np.uint64)
    if dtype.code == "bfloat":
        return np.dtype(np.uint16)
    if dtype.code.startswith("float8"):
        return np.dtype(np.uint8)
    return np.dtype(f"{dtype.code}{max(8, dtype.bits)}")


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
            args = []
            for k, (kind, what) in enumerate(site["args"]):
                args.append(what if kind == "string" else _slot(array + 8 * k, DType(what))[0].item())
            result = function(*args)
            if site["result"] != "void":
                _slot(array + 8 * len(args), DType(site["result"]))[0] = result
            return 0
        except BaseException as error:  # cannot pass through compiled code: kept, and raised by the caller
            self.error = error
            return 1


def _slot(address: int, dtype: DType) -> np.ndarray:
    kind = numpy_dtype(dtype)
    memory: Any = (ctypes.c_char * kind.itemsize).from_address(address)
    return np.frombuffer(memory, kind)
