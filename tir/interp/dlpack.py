"""Tensors of other libraries by DLPack, without copies: in host memory as NumPy arrays, elsewhere as descriptions."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..dtype import DType
from ..errors import RunError
from .numbers import storage_dtype

CPU, CUDA, PINNED, MANAGED = 1, 2, 3, 13  # device types of DLPack
_NUMBERS = {0: "int", 1: "uint", 2: "float"}
_SMALL_FLOATS = {  # DLPack codes of the types that NumPy lacks, by the names that add-on packages give them
    4: "bfloat16",
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
    15: "float6_e2m3fn",
    16: "float6_e3m2fn",
    17: "float4_e2m1fn",
}


def type_code(dtype: DType) -> tuple[int, int]:
    """DLPack's code of a type of elements, and the bits that an element has there.

    >>> type_code(DType("float32")), type_code(DType("bool")), type_code(DType("bfloat16"))
    ((2, 32), (6, 8), (4, 16))
    """
    codes = {name: code for code, name in {**_NUMBERS, **_SMALL_FLOATS, 6: "bool"}.items()}
    small = codes.get(str(dtype))
    return codes[dtype.code] if small is None else small, dtype.bits if dtype.is_float else max(8, dtype.bits)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


class Tensor(NamedTuple):
    """The contents of a DLPack capsule. ``dtype``: the NumPy type that holds the elements; ``name``: their type if NumPy
    lacks it, else None; ``strides``: in bytes, None for row-major; ``read_only``: whether the library says that it must not
    be written. The memory lives as long as ``capsule``."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype
    name: str | None
    read_only: bool
    capsule: Any


class _View:
    """Memory described to NumPy; the array made from it keeps this object alive, and so the memory's owner."""

    def __init__(self, interface: dict[str, Any], owner: Any):
        self.__array_interface__ = interface
        self.owner = owner


def device_type(arg: Any) -> int | None:
    """The DLPack device type of a tensor; None if it does not say. Raises ``RunError`` for a device that DLPack lacks."""
    ask = getattr(arg, "__dlpack_device__", None)
    try:
        return None if ask is None else int(ask()[0])
    except (BufferError, RuntimeError, ValueError) as error:  # torch's "meta"
        raise RunError(f"the tensor cannot be read through DLPack: {error}") from error


def is_array(arg: Any) -> bool:
    """Whether ``arg`` has elements in memory that can be used in place: by DLPack, NumPy's array interface, or the buffer
    protocol (``array.array``, ``memoryview``)."""
    if hasattr(arg, "__dlpack__") or hasattr(arg, "__array_interface__"):
        return True
    try:
        memoryview(arg).release()
    except TypeError:
        return False
    return True


def way_out(arg: Any) -> str:
    """What to pass instead of an object that is no array, where it says so itself: the columns of pandas and polars do."""
    return "; pass x.to_numpy() if it is only read" if hasattr(arg, "to_numpy") else ""


def torch_type(torch: Any, dtype: DType) -> Any:
    """The type of torch that holds elements of type ``dtype``: its own, else that of their bits."""
    found = getattr(torch, str(dtype.element), None) if dtype.bits >= 8 or dtype.is_bool else None
    return found if isinstance(found, torch.dtype) else getattr(torch, storage_dtype(dtype).name)


def as_given(result: np.ndarray, dtype: DType, given: Iterable[Any]) -> Any:
    """A result of elements of type ``dtype`` as a tensor of torch in the same memory, if one of the arguments is a tensor."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not any(isinstance(arg, torch.Tensor) for arg in given):
        return result
    bits = result if result.dtype == np.bool_ else result.view(storage_dtype(dtype))
    return torch.from_numpy(bits).view(torch_type(torch, dtype))


def read(arg: Any, **options: Any) -> Tensor:
    """The contents of a tensor's capsule, which is not consumed and frees itself. ``options`` are passed to
    ``__dlpack__``. Raises ``RunError`` if the tensor gives no capsule, or has a type that no array can hold."""
    try:
        capsule = _capsule(arg, options)
        tensor, read_only = _contents(capsule)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise RunError(f"the tensor cannot be read through DLPack: {error}") from error
    kind = f"type {tensor.code} of {tensor.bits} bits"
    name = _SMALL_FLOATS.get(tensor.code)
    if tensor.lanes != 1 or tensor.bits not in (8, 16, 32, 64):
        pairs = "; give it as its bytes, for a buffer of uint8" if tensor.bits * tensor.lanes == 8 else ""
        raise RunError(
            f"the tensor cannot be read through DLPack: no array holds its elements, {name or kind} in {tensor.lanes} "
            f"lane{'s' * (tensor.lanes != 1)}{pairs}"
        )
    if tensor.code in _NUMBERS:
        dtype = np.dtype(f"{_NUMBERS[tensor.code]}{tensor.bits}")
    elif name is not None:
        dtype = np.dtype(f"uint{tensor.bits}")  # held as their bits
    elif tensor.code == 6:
        dtype = np.dtype(np.bool_)
    else:
        raise RunError(f"the tensor cannot be read through DLPack: no array holds its elements, {kind}")
    n = tensor.ndim
    strides = tuple(s * dtype.itemsize for s in tensor.strides[:n]) if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset
    return Tensor(address, tuple(tensor.shape[:n]), strides, dtype, name, read_only or _is_of_jax(arg), capsule)


def _capsule(arg: Any, options: dict[str, Any]) -> Any:
    try:
        return arg.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a library that knows nothing of versions
        return arg.__dlpack__(**options)


def _contents(capsule: Any) -> tuple[_DLTensor, bool]:
    """The tensor of a capsule, and whether it says that it is read-only: the first version could not."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    if "dltensor_versioned" not in str(capsule):
        return _DLTensor.from_address(get(capsule, b"dltensor")), False
    versioned = _Versioned.from_address(get(capsule, b"dltensor_versioned"))
    return versioned.tensor, bool(versioned.flags & 1)


def _is_of_jax(arg: Any) -> bool:
    """Whether ``arg`` is an array of JAX: they are immutable, and their capsules cannot say so."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(arg, jax.Array)


def view(
    shape: Any, dtype: np.dtype, strides: Any, address: int, read_only: bool = False, owner: Any = None
) -> np.ndarray:
    """A NumPy array over memory at ``address``, which ``owner`` keeps alive. Of device memory only the array's shape,
    strides, type and address may be used."""
    interface = {
        "shape": tuple(map(int, shape)),
        "typestr": dtype.str,
        "data": (int(address) or 64, read_only),
        "version": 3,
        "strides": None if strides is None else tuple(map(int, strides)),
    }
    return np.asarray(_View(interface, owner))


def require_elements(tensor: Tensor, dtype: DType) -> None:
    """Raise ``RunError`` if the elements are of a type that NumPy lacks, other than ``dtype``."""
    if tensor.name is not None and tensor.name != dtype.element:
        raise RunError(f"expected dtype {dtype}, got {tensor.name}")


def plain(array: np.ndarray) -> np.ndarray:
    """An array of NumPy, in place, as one that indexes by the usual rules, which np.matrix does not. Raises ``RunError`` for
    one with masked elements."""
    if type(array) is np.ndarray:
        return array
    if np.ma.is_masked(array):
        raise RunError(
            "the array has masked elements, and a function sees no mask: pass x.filled(value), or x.data with all elements"
        )
    return array.view(np.ndarray)


def host_array(arg: Any, dtype: DType) -> np.ndarray:
    """A tensor in host memory as an array, in place; elements of a type that NumPy lacks are given as bits.

    ``arg`` is an array of NumPy, or has DLPack, NumPy's array interface, or the buffer protocol. Raises ``RunError`` for an
    array with masked elements, for a tensor on a device, for one without DLPack support, and for elements of a type that
    NumPy lacks other than ``dtype``.
    """
    if isinstance(arg, np.ndarray):
        return plain(arg)
    if not hasattr(arg, "__dlpack__"):
        return np.asarray(arg if hasattr(arg, "__array_interface__") else memoryview(arg))
    device = device_type(arg)
    if device not in (None, CPU, PINNED, MANAGED):
        raise RunError(f"the tensor is on a device of DLPack type {device}; expected one in host memory")
    try:
        array = np.from_dlpack(arg)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        tensor = read(arg)
        if tensor.name is None:
            raise RunError(f"the tensor cannot be read through DLPack: {error}") from error
        require_elements(tensor, dtype)
    else:
        if array.flags.writeable:
            return array
        tensor = read(arg)  # to NumPy, what does not say that it may be written is read-only
    return view(tensor.shape, tensor.dtype, tensor.strides, tensor.address, tensor.read_only, tensor.capsule)
