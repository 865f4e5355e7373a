"""Spelling of data types and constants in CUDA C.

Vectors have the dialect's names (``float32x4``) and are arrays aligned to their size, for one access of up to 16 bytes.
"""

from __future__ import annotations

import math
import struct

from tir.dtype import DType
from tir.errors import BuildError
from tir.small_floats import SMALL_FLOATS

_SCALARS = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
    "float16": "half", "float32": "float", "float64": "double", "uint1": "bool", "void": "void", "handle": "void*",
}  # fmt: skip
_SCALARS |= {name: name for name in SMALL_FLOATS}


def scalar_type(dtype: DType) -> str:
    """The C type of one lane. Raises ``BuildError`` for a type that CUDA does not have."""
    found = _SCALARS.get(str(dtype.element))
    if found is None:
        raise BuildError(f"CUDA has no type for {dtype}; int4 and uint4 live packed in int32 registers of tensor cores")
    return found


def c_type(dtype: DType) -> str:
    """The C type of a value."""
    return scalar_type(dtype) if dtype.lanes == 1 else f"vec<{scalar_type(dtype)}, {dtype.lanes}>"


def is_small(dtype: DType) -> bool:
    return dtype.element == "float16" or dtype.element in SMALL_FLOATS


def int_constant(value: int, dtype: DType) -> str:
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.bits == 64:
        if dtype.code == "uint":
            return f"{value}ull"
        return "(-9223372036854775807ll - 1)" if value == -(2**63) else f"{value}ll" if value >= 0 else f"({value}ll)"
    if dtype.code == "uint":
        return (
            (f"{value:#x}u" if value >= 2**31 else f"{value}u")
            if dtype.bits == 32
            else f"({scalar_type(dtype)}){value}"
        )
    if value == -(2**31):
        return "(-2147483647 - 1)"
    text = str(value) if value >= 0 else f"({value})"
    return text if dtype.bits == 32 else f"({scalar_type(dtype)}){text}"


def float_constant(value: float, dtype: DType) -> str:
    """A constant of exactly ``value`` rounded to ``dtype``; nan and infinities by their bits."""
    name = str(dtype.element)
    if name == "float64":
        if math.isfinite(value):
            return repr(value) if math.copysign(1, value) > 0 else f"({value!r})"
        bits = struct.unpack("<q", struct.pack("<d", value))[0]
        return f"__longlong_as_double({bits & (2**64 - 1):#x}ll)"
    if name == "float32":
        import numpy as np

        with np.errstate(over="ignore"):
            rounded = np.float32(value)
        if np.isfinite(rounded):
            text = str(rounded)
            text += "f" if "." in text or "e" in text else ".0f"
            return f"({text})" if text.startswith("-") else text
        return f"__int_as_float({int(rounded.view(np.uint32)):#x})"
    from tir.interp.numbers import encode, is_small_float

    if is_small_float(dtype):
        bits = int(encode(value, dtype.element))
    else:
        import numpy as np

        with np.errstate(over="ignore"):
            bits = int(np.float16(value).view(np.uint16))
    return f"{scalar_type(dtype)}::of_bits({bits:#x}) /* {value:.6g} */"
