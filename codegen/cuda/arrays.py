"""Arrays in a device's memory, and tensors of other libraries seen as such, nothing copied."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from tir.errors import RunError

CUDA, MANAGED = 2, 13  # DLPack's device types that a kernel can reach


class DeviceArray:
    """A compact row-major array on a device. ``array.numpy()`` copies it back.

    Has ``__cuda_array_interface__``, so that CuPy and torch take it as it is. For types that NumPy has not, the bits
    are in uint16 or uint8.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, driver: Any):
        self.shape, self.dtype, self.driver = tuple(shape), np.dtype(dtype), driver
        self.nbytes = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        self.kind = (self.shape, self.dtype.str)  # what tells whether two arrays take the same launches
        self.address = driver.allocate(self.nbytes)
        weakref.finalize(self, driver.free, self.address)

    @staticmethod
    def of(array: Any, driver: Any) -> DeviceArray:
        """A copy of a host array."""
        host = np.ascontiguousarray(array)
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
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3, "strides": None,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"<{self.dtype} array of shape {self.shape} on the device>"


class _View:
    """Device memory described to NumPy, which then knows its shape and strides; nobody reads it."""

    def __init__(self, interface: dict[str, Any]):
        self.__array_interface__ = interface


def shadow(shape: Any, dtype: np.dtype, strides: Any, address: int, read_only: bool = False) -> np.ndarray:
    """A NumPy array standing for device memory. Only its shape, strides, type and address may be asked for."""
    interface = {
        "shape": tuple(map(int, shape)), "typestr": dtype.str, "data": (int(address) or 64, read_only), "version": 3,
        "strides": None if strides is None else tuple(map(int, strides)),
    }  # fmt: skip
    return np.asarray(_View(interface))


def as_shadow(arg: Any) -> np.ndarray | None:
    """The shadow of a tensor on a device; None for what is not on one."""
    if isinstance(arg, np.ndarray):
        return None
    if isinstance(arg, DeviceArray):
        return shadow(arg.shape, arg.dtype, None, arg.address)
    kind = _device_type(arg)
    if kind is not None and kind not in (CUDA, MANAGED):
        return None
    if hasattr(type(arg), "__dlpack__") and kind is not None:
        return _from_dlpack(arg)
    interface = getattr(arg, "__cuda_array_interface__", None)
    if interface is None:
        return None
    address, read_only = interface["data"]
    return shadow(
        interface["shape"], np.dtype(interface["typestr"]), interface.get("strides"), address or 0, bool(read_only)
    )


def _device_type(arg: Any) -> int | None:
    ask = getattr(arg, "__dlpack_device__", None)
    return None if ask is None else int(ask()[0])


def device_number(arg: Any) -> int | None:
    """The number of the device that a tensor is on, where it tells."""
    if isinstance(arg, DeviceArray):
        return arg.driver.device_id
    ask = getattr(arg, "__dlpack_device__", None)
    return None if ask is None else int(ask()[1])


def where_is(arg: Any) -> str:
    """The device of an argument in words."""
    kind = _device_type(arg) if not isinstance(arg, np.ndarray) else 1
    return {1: "the cpu", 3: "the cpu (pinned)"}.get(kind or 1, f"a device of DLPack type {kind}")


class _Tensor(ctypes.Structure):
    """DLTensor, the head of what a DLPack capsule holds."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


_CODES = {0: "int", 1: "uint", 2: "float"}


def _from_dlpack(arg: Any) -> np.ndarray:
    """Shape, type and address of a tensor by its DLPack capsule, which stays unconsumed and frees itself.

    No stream is given, so that the producer waits for nothing: a kernel runs after what its own stream holds.
    """
    try:
        capsule = arg.__dlpack__(stream=-1)
    except (BufferError, RuntimeError, TypeError) as error:
        raise RunError(f"the tensor cannot be read through DLPack: {error}") from error
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(get(capsule, b"dltensor"))
    item = max(1, tensor.bits // 8)
    if tensor.code in _CODES:
        dtype = np.dtype(f"{_CODES[tensor.code]}{tensor.bits}")
    elif tensor.code == 6:
        dtype = np.dtype(np.bool_)
    else:  # bfloat16 and the floats of 8 bits are held as their bits
        dtype = np.dtype(f"uint{tensor.bits}")
    n = tensor.ndim
    shape = tensor.shape[:n]
    strides = [s * item for s in tensor.strides[:n]] if tensor.strides else None
    return shadow(shape, dtype, strides, (tensor.data or 0) + tensor.byte_offset)
