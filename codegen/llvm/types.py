"""How data types are spelled in LLVM: as values, and in memory.

Two types differ between value and memory: ``bool`` (``i1`` / one byte) and the 4-bit integers (``i4`` / one byte each:
NumPy has no packed 4-bit array, and one byte per element keeps addresses simple). The small floats of ml_dtypes are held as
bits, ``bfloat16`` as ``i16`` and the others as ``i8``, in both; arithmetic converts to ``float``.
"""

from __future__ import annotations

import functools
import struct

from tir.dtype import DType
from tir.errors import BuildError
from tir.small_floats import SMALL_FLOATS

FLOATS = {16: "half", 32: "float", 64: "double"}


@functools.cache
def element_type(dtype: DType) -> str:
    """The LLVM type of one lane as a value."""
    code = dtype.code
    if code in ("int", "uint"):
        return f"i{dtype.bits}"
    if code == "bool":
        return "i1"
    if code == "float":
        return FLOATS[dtype.bits]
    if emulated(dtype):
        return f"i{8 * SMALL_FLOATS[dtype.element].storage.itemsize}"
    if code == "handle":
        return "ptr"
    raise BuildError(f"a value of type {dtype} has no LLVM type")


def vector(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


@functools.cache
def value_type(dtype: DType) -> str:
    """The LLVM type of a value of ``dtype``, vectors included.

    >>> value_type(DType("float32x16")), value_type(DType("bool"))
    ('<16 x float>', 'i1')
    """
    return vector(element_type(dtype), dtype.lanes)


@functools.cache
def memory_element(dtype: DType) -> str:
    """The LLVM type of one lane in memory."""
    if dtype.code == "bool" or (dtype.is_int and dtype.bits < 8):
        return "i8"
    return element_type(dtype)


def emulated(dtype: DType) -> bool:
    """Whether arithmetic on ``dtype`` converts to ``float``: a small float of ml_dtypes."""
    return dtype.element in SMALL_FLOATS


def float_constant(value: float, dtype: DType) -> str:
    """A float constant of a type LLVM knows (16, 32, 64 bits), exact, inf and nan included."""
    if dtype.bits == 16:
        try:
            bits = struct.unpack("<H", struct.pack("<e", value))[0]
        except OverflowError:
            bits = 0x7C00 if value > 0 else 0xFC00
        return f"0xH{bits:04X}"
    if dtype.bits == 32:
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def splat(element: str, text: str, lanes: int) -> str:
    """A constant in every lane."""
    return text if lanes == 1 else f"splat ({element} {text})"


def mangled(element: str, lanes: int) -> str:
    """The type suffix of an overloaded intrinsic: ``v16f32``."""
    name = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(element, element)
    return name if lanes == 1 else f"v{lanes}{name}"
