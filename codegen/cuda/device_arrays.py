"""Arrays in a device's memory, and descriptions of other libraries' device tensors, without copies."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from tir.dtype import DType
from tir.interp import dlpack


class DeviceArray:
    """A compact row-major array on a device. ``array.numpy()`` copies it back.

    CuPy and torch accept it through ``__cuda_array_interface__``. Types that NumPy lacks are stored as bits in uint16 or
    uint8.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, driver: Any):
        self.shape, self.dtype, self.driver = tuple(shape), np.dtype(dtype), driver
        self.nbytes = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        self.kind = (self.shape, self.dtype.str)  # arrays of equal kind get the same launches
        self.address = driver.allocate(self.nbytes)
        weakref.finalize(self, driver.free, self.address)

    @staticmethod
    def of(array: Any, driver: Any) -> DeviceArray:
        """A copy of a host array."""
        host = np.ascontiguousarray(dlpack.plain(array) if isinstance(array, np.ndarray) else array)
        made = DeviceArray(np.shape(array), host.dtype, driver)
        if host.nbytes:
            driver.copy_in(made.address, host.ctypes.data, host.nbytes)
        return made

    def numpy(self) -> np.ndarray:
        made = np.empty(self.shape, self.dtype)
        if made.nbytes:
            self.driver.copy_out(made.ctypes.data, self.address, made.nbytes)
        return made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return interface(self.shape, self.dtype, self.address)

    def __repr__(self) -> str:
        return f"<{self.dtype} array of shape {self.shape} on the device>"


def interface(
    shape: tuple[int, ...], dtype: Any, address: int, strides: tuple[int, ...] | None = None, read_only: bool = False
) -> dict[str, Any]:
    """The ``__cuda_array_interface__`` of an array."""
    data = {"data": (address, read_only), "version": 3}
    return {"shape": shape, "typestr": type_of(dtype), "strides": strides, **data}


def type_of(dtype: np.dtype[Any]) -> str:
    """What ``__cuda_array_interface__`` calls a type; of a small float of ml_dtypes that of its bits.

    >>> type_of(np.dtype("float32"))
    '<f4'
    """
    return dtype.str if dtype.isbuiltin == 1 else f"<u{dtype.itemsize}"


class DevicePart:
    """A compact array in the memory of another on the device, which begins some bytes into it."""

    def __init__(self, whole: Any, begin: int, shape: tuple[int, ...], dtype: np.dtype):
        seen = as_shadow(whole, DType("uint8"))
        assert seen is not None, "the array is on the device"
        self._held = whole
        self.shape, self.dtype = shape, dtype
        self.nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.__cuda_array_interface__ = interface(shape, dtype, seen.ctypes.data + begin)


def as_shadow(arg: Any, dtype: DType) -> np.ndarray | None:
    """A NumPy array with the shape, type, strides and address of a device tensor; None if ``arg`` is not on a device.

    Raises ``RunError`` for elements of a type that NumPy lacks other than ``dtype``.
    """
    if isinstance(arg, np.ndarray):
        return None
    if isinstance(arg, DeviceArray):
        return dlpack.view(arg.shape, arg.dtype, None, arg.address)
    kind = dlpack.device_type(arg)
    if kind is not None and kind not in (dlpack.CUDA, dlpack.MANAGED):
        return None
    if hasattr(type(arg), "__dlpack__") and kind is not None:
        return _from_dlpack(arg, dtype)
    interface = getattr(arg, "__cuda_array_interface__", None)
    if interface is None:
        return None
    address, read_only = interface["data"]
    return dlpack.view(
        interface["shape"], np.dtype(interface["typestr"]), interface.get("strides"), address or 0, bool(read_only)
    )


def device_number(arg: Any) -> int | None:
    """The number of a tensor's device; None if the tensor does not say."""
    if isinstance(arg, DeviceArray):
        return arg.driver.device_id
    ask = getattr(arg, "__dlpack_device__", None)
    return None if ask is None else int(ask()[1])


def where_is(arg: Any) -> str:
    """The device of an argument in words."""
    kind = dlpack.device_type(arg) if not isinstance(arg, np.ndarray) else 1
    return {1: "the cpu", 3: "the cpu (pinned)"}.get(kind or 1, f"a device of DLPack type {kind}")


def _from_dlpack(arg: Any, dtype: DType) -> np.ndarray:
    """The producer need not synchronize (stream -1): the kernel runs in order on its own stream."""
    tensor = dlpack.read(arg, stream=-1)
    dlpack.require_elements(tensor, dtype)
    return dlpack.view(tensor.shape, tensor.dtype, tensor.strides, tensor.address)
