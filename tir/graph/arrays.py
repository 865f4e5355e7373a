"""The arrays that a model is called with: in the process, or on the device of its module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.module import Module

from ..errors import RunError
from ..interp.dlpack import host_array, is_array, way_out
from ..interp.numbers import array_dtype, storage_dtype
from .sizes import ALIGNMENT, Size

if TYPE_CHECKING:
    from .graph import Value
    from .model_calls import Parameter


def memory(nbytes: int) -> np.ndarray:
    """Bytes of memory that begin at a multiple of the alignment; at least one."""
    raw = np.empty(nbytes + ALIGNMENT + 1, np.uint8)
    begin = -raw.ctypes.data % ALIGNMENT
    return raw[begin : begin + max(nbytes, 1)]


def part(packed: np.ndarray, begin: int, value: Value) -> np.ndarray:
    """The array of ``value`` that begins at a byte of ``packed``."""
    return packed[begin : begin + value.nbytes].view(array_dtype(value.dtype)).reshape(tuple(map(int, value.shape)))


class HostArrays:
    """Arrays in the memory of the process, which kernels read and write where they are."""

    what = "contiguous NumPy array that may be written"

    def input(self, parameter: Parameter, given: Any) -> Any:
        """An input as a compact array. Raises ``RunError`` for one of another type or shape."""
        return input_array(parameter, given)

    def seen(self, parameter: Parameter, array: Any) -> np.ndarray | None:
        """An array with the shape, type, strides and address of one that kernels can use; None for another."""
        return array if isinstance(array, np.ndarray) else None

    def empty(self, parameter: Parameter) -> Any:
        """A new array for a parameter, where its sizes are numbers."""
        return np.empty(tuple(map(int, parameter.shape)), storage_dtype(parameter.dtype))

    def zeros(self, parameter: Parameter) -> Any:
        """The same, of zeros."""
        return np.zeros(tuple(map(int, parameter.shape)), storage_dtype(parameter.dtype))

    def bytes(self, nbytes: int) -> Any:
        """Memory that calls work in."""
        return memory(nbytes)

    def held(self, weights: np.ndarray) -> Any:
        """The weights where kernels read them."""
        return weights

    def result(self, parameter: Parameter, made: Any, stays: bool) -> Any:
        """A result as the caller of the model gets it; where it ``stays`` on the device, as there."""
        return made.view(array_dtype(parameter.dtype))

    def part(self, whole: Any, begin: int, shape: Sequence[int], dtype: np.dtype) -> Any:
        """The array that begins some bytes into another."""
        count = int(np.prod(shape, dtype=np.int64))
        return whole.reshape(-1).view(np.uint8)[begin : begin + count * dtype.itemsize].view(dtype).reshape(shape)

    def timed(self, calls: Iterable[Callable[[], None]]) -> list[float]:
        """The seconds of each call, one after another."""
        now = time.perf_counter
        ends = [now()]
        for call in calls:
            call()
            ends.append(now())
        return [b - a for a, b in zip(ends, ends[1:])]


class DeviceArrays(HostArrays):
    """Arrays on a GPU. Inputs in host memory are copied there, and results back, if no input is on the device."""

    what = "contiguous array on the device that may be written; model.module.array(x) makes one of an array x"

    def __init__(self, module: Any):
        self._module = module
        self._held: Any = None

    def input(self, parameter: Parameter, given: Any) -> Any:
        seen = self.seen(parameter, given)
        if seen is None:
            return self._module.array(input_array(parameter, given))
        if wrong := mismatch(parameter, seen):
            raise RunError(f"input {parameter}: {wrong}")
        if not seen.flags.c_contiguous:
            raise RunError(
                f"input {parameter}: the array on the device is not contiguous; copy it, as by x.contiguous()"
            )
        return given

    def seen(self, parameter: Parameter, array: Any) -> np.ndarray | None:
        from codegen.cuda.device_arrays import as_shadow

        return as_shadow(array, parameter.dtype)

    def empty(self, parameter: Parameter) -> Any:
        return self._new(tuple(map(int, parameter.shape)), storage_dtype(parameter.dtype))

    def zeros(self, parameter: Parameter) -> Any:
        return self._module.array(super().zeros(parameter))

    def bytes(self, nbytes: int) -> Any:
        return self._new((max(nbytes, 1),), np.dtype(np.uint8))

    def held(self, weights: np.ndarray) -> Any:
        if self._held is None:
            self._held = self._module.array(weights)
        return self._held

    def result(self, parameter: Parameter, made: Any, stays: bool) -> Any:
        return made if stays else made.numpy().view(array_dtype(parameter.dtype))

    def part(self, whole: Any, begin: int, shape: Sequence[int], dtype: np.dtype) -> Any:
        from codegen.cuda.device_arrays import DevicePart

        return DevicePart(whole, begin, tuple(shape), dtype)

    def timed(self, calls: Iterable[Callable[[], None]]) -> list[float]:
        """By events on the default stream."""
        device = self._module.device
        events = [device.event()]
        device.record(events[0], 0)
        for call in calls:
            call()
            events.append(device.event())
            device.record(events[-1], 0)
        seconds = [device.seconds_between(a, b) for a, b in zip(events, events[1:])]
        for event in events:
            device.destroy_event(event)
        return seconds

    def _new(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        from codegen.cuda.device_arrays import DeviceArray

        return DeviceArray(shape, dtype, self._module.device)


def arrays_of(module: Module) -> HostArrays:
    """The arrays that a module's functions take."""
    return DeviceArrays(module) if module.target.kind == "cuda" else HostArrays()


def input_array(parameter: Parameter, given: Any) -> np.ndarray:
    """An argument as a compact array. Raises ``RunError`` for one of another type or shape."""
    if isinstance(given, (int, float, bool, list, tuple)):
        given = np.asarray(given, storage_dtype(parameter.dtype))
    elif not isinstance(given, (np.ndarray, np.generic)) and not is_array(given):
        raise RunError(f"input {parameter}: {type(given).__name__} is no array{way_out(given)}")
    try:
        array = np.asarray(given) if isinstance(given, np.generic) else host_array(given, parameter.dtype)
    except RunError as error:
        raise RunError(f"input {parameter}: {error}") from error
    if wrong := mismatch(parameter, array):
        raise RunError(f"input {parameter}: {wrong}")
    if array.flags.carray:  # contiguous, aligned, writeable: the module takes what it is given as if it might write it
        return array
    return np.require(array, requirements=["C", "A", "W"])


def mismatch(parameter: Parameter, array: np.ndarray) -> str:
    """Why an array is none for a parameter: its type or its shape; nothing, where it is one."""
    if array.dtype not in (array_dtype(parameter.dtype), storage_dtype(parameter.dtype)):
        return f"the array is of {array.dtype}; convert it, as by x.astype({str(parameter.dtype)!r})"
    if array.ndim != len(parameter.shape):
        return f"the array has {array.ndim} dimensions, {list(array.shape)}"
    for axis, (size, wanted) in enumerate(zip(array.shape, parameter.shape)):
        if size != wanted and not isinstance(wanted, Size):
            return f"the array has {list(array.shape)}: size {axis} is {array.shape[axis]}"
    return ""
