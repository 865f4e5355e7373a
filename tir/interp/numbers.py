"""How values of every dtype are represented while a program runs, and the exact conversions between them.

Integers are Python ints in the range of their dtype. float16/32/64 are NumPy scalars of that type. bfloat16 and float8
are NumPy float32 scalars that hold a representable number. Vectors are NumPy arrays of lanes. In memory bfloat16 is
uint16, float8 is uint8, int4 and uint4 take one byte an element.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..dtype import DType
from ..errors import RunError

_STORAGE = {
    "bfloat16": np.uint16,
    "float8_e4m3": np.uint8,
    "float8_e5m2": np.uint8,
    "bool": np.bool_,
    "int4": np.int8,
    "uint4": np.uint8,
    "uint1": np.uint8,
}


def is_small_float(dtype: DType) -> bool:
    """Whether the type is one that NumPy does not have (bfloat16, float8)."""
    return dtype.is_float and dtype.code != "float"


@cache
def storage_dtype(dtype: DType) -> np.dtype:
    """The NumPy dtype of one element in memory.

    >>> storage_dtype(DType("bfloat16"))
    dtype('uint16')
    """
    if dtype.is_handle:
        return np.dtype(np.uint64)
    found = _STORAGE.get(str(dtype.element))
    return np.dtype(found if found is not None else str(dtype.element))


@cache
def value_dtype(dtype: DType) -> np.dtype:
    """The NumPy dtype a lane is computed in."""
    return np.dtype(np.float32) if is_small_float(dtype) else storage_dtype(dtype)


@cache
def decode_table(dtype: DType) -> np.ndarray:
    """The float32 value of every bit pattern of a small float type."""
    if dtype.code == "bfloat":
        return (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    exponent_bits, fraction_bits, bias = (4, 3, 7) if dtype.code == "float8_e4m3" else (5, 2, 15)
    values = np.empty(256, np.float32)
    for bits in range(256):
        exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1)
        fraction = bits & ((1 << fraction_bits) - 1)
        if exponent == 0:
            value = fraction * 2.0 ** (1 - bias - fraction_bits)
        else:
            value = (1 + fraction * 2.0**-fraction_bits) * 2.0 ** (exponent - bias)
        if dtype.code == "float8_e4m3" and bits & 0x7F == 0x7F:
            value = float("nan")
        if dtype.code == "float8_e5m2" and exponent == 31:
            value = float("nan") if fraction else float("inf")
        values[bits] = -value if bits & 0x80 else value
    return values


@cache
def _positive_values(dtype: DType) -> np.ndarray:
    """The finite non-negative values in ascending order: the index of a value is its bit pattern."""
    table = decode_table(dtype)[:128].astype(np.float64)
    return table[np.isfinite(table)]


def encode(value: Any, dtype: DType) -> Any:
    """Bit patterns of floats rounded (to nearest, ties to even) to a small float type; scalar or array.

    Overflow gives infinity, nan where the type has none (e4m3).

    >>> int(encode(1.0, DType("bfloat16"))) == 0x3F80
    True
    """
    x = np.asarray(value)
    if dtype.code == "bfloat":
        single = _to_odd_float32(x)
        bits = single.view(np.uint32).astype(np.uint64)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)[()]
    values = _positive_values(dtype)
    size = np.abs(x.astype(np.float64))
    above = np.searchsorted(values, size, side="left").clip(1, len(values) - 1)
    low, high = values[above - 1], values[above]
    nearer_high = (size - low > high - size) | ((size - low == high - size) & (above % 2 == 0))
    bits = np.where(nearer_high, above, above - 1)
    step = values[-1] - values[-2]
    half_over = values[-1] + step / 2
    over = (size > half_over) | ((size == half_over) & (len(values) % 2 == 0))
    bits = np.where(over, 0x7F if dtype.code == "float8_e4m3" else 0x7C, bits)
    bits = np.where(np.isnan(x), 0x7F if dtype.code == "float8_e4m3" else 0x7E, bits)
    return (bits | np.where(np.signbit(x) & ~np.isnan(x), 0x80, 0)).astype(np.uint8)[()]


def _to_odd_float32(x: np.ndarray) -> np.ndarray:
    """float32 of ``x``, wider inputs rounded to odd so that a second rounding is exact."""
    if x.dtype == np.float32:
        return x
    wide = x.astype(np.float64)
    with np.errstate(over="ignore"):
        single = wide.astype(np.float32)
    bits = single.view(np.uint32).copy() if single.ndim else np.array([single]).view(np.uint32)[0]
    back = single.astype(np.float64)
    inexact = (back != wide) & np.isfinite(single)
    with np.errstate(over="ignore"):  # of zero, whose predecessor is not used
        bits = np.where(inexact & (np.abs(back) > np.abs(wide)), bits - np.uint32(1), bits)
    bits = np.where(inexact, bits | np.uint32(1), bits).astype(np.uint32)
    return bits.view(np.float32)


def round_small(value: Any, dtype: DType) -> Any:
    """``value`` rounded to a small float type, as float32."""
    return decode_table(dtype)[encode(value, dtype)]


def wrap(value: int, dtype: DType) -> int:
    """An integer reduced to the range of ``dtype``, modulo a power of two, as machines do.

    >>> wrap(2**31, DType("int32"))
    -2147483648
    """
    mask = (1 << dtype.bits) - 1
    value &= mask
    return value - (mask + 1) if dtype.code == "int" and value >> (dtype.bits - 1) else value


def wrap_lanes(value: np.ndarray, dtype: DType) -> np.ndarray:
    """Lanes of a 4-bit integer vector wrapped to range."""
    if dtype.bits >= 8 or not dtype.is_int:
        return value
    low = value & ((1 << dtype.bits) - 1)
    if dtype.code == "int":
        low = np.where(low >> (dtype.bits - 1), low - (1 << dtype.bits), low)
    return low.astype(storage_dtype(dtype))


def convert(value: Any, source: DType, target: DType) -> Any:
    """Convert ``value`` from its held form as ``source`` to that as ``target`` (of equal lanes).

    A float out of an integer's range has no defined result; here it saturates to int32/int64 first, and nan gives 0.
    """
    if source.lanes > 1:
        return _convert_lanes(value, source, target)
    if target.is_bool:
        return bool(value != 0)
    if target.is_int:
        if source.is_float:
            return wrap(_float_to_int(float(value), target), target)
        return wrap(int(value), target)
    if not target.is_float:
        return value
    exact = value if source.is_float else np.array(int(value), np.uint64 if value > 2**63 - 1 else np.int64)
    if is_small_float(target):
        return round_small(exact if source.is_float else exact.astype(np.float64), target)
    return np.asarray(exact).astype(value_dtype(target))[()]


def _float_to_int(value: float, target: DType) -> int:
    if value != value:
        return 0
    wide = target if target.bits >= 32 else DType("int32")
    if value <= wide.min_value:
        return int(wide.min_value)
    return int(wide.max_value) if value >= wide.max_value else int(value)


def _convert_lanes(value: np.ndarray, source: DType, target: DType) -> np.ndarray:
    if target.is_bool:
        return np.asarray(value != 0)
    if target.is_int and source.is_float:
        return np.array([convert(v, source.element, target.element) for v in value], storage_dtype(target))
    if is_small_float(target):
        return round_small(value if source.is_float else value.astype(np.float64), target)
    return wrap_lanes(np.asarray(value).astype(value_dtype(target)), target)


def constant(value: int | float, dtype: DType) -> Any:
    """The held form of a Python number."""
    if dtype.is_int:
        return wrap(int(value), dtype)
    if dtype.is_bool:
        return bool(value)
    if is_small_float(dtype):
        return round_small(np.float64(value), dtype)
    return value_dtype(dtype).type(value)


def reinterpret(value: Any, source: DType, target: DType) -> Any:
    """The same bits as another type of the same size."""
    if source.is_handle or target.is_handle:
        return value
    raw = encode(value, source) if is_small_float(source) else np.asarray(value, storage_dtype(source))
    raw = np.atleast_1d(raw).view(storage_dtype(target))
    if raw.size != target.lanes:
        raise RunError(f"reinterpret from {source} to {target}: the sizes differ")
    return from_storage(raw if target.lanes > 1 else raw[0], target)


def from_storage(raw: Any, dtype: DType) -> Any:
    """The held form of an element of memory."""
    if is_small_float(dtype):
        return decode_table(dtype.element)[raw]
    if dtype.lanes > 1:
        return wrap_lanes(raw, dtype)
    if dtype.is_int:
        return wrap(int(raw), dtype) if dtype.bits < 8 else int(raw)
    return bool(raw) if dtype.is_bool else raw


def from_numpy(value: Any, dtype: DType) -> Any:
    """The held form of a NumPy result, rounded or wrapped to ``dtype``."""
    if dtype.lanes > 1:
        value = np.asarray(value)
        if is_small_float(dtype):
            return round_small(value, dtype)
        return wrap_lanes(value.astype(value_dtype(dtype)), dtype)
    if dtype.is_float:
        return round_small(value, dtype) if is_small_float(dtype) else value_dtype(dtype).type(value)
    return bool(value) if dtype.is_bool else wrap(int(value), dtype) if dtype.is_int else value


def dp4a(a: Any, b: Any, total: Any, left: DType, right: DType, out: DType) -> Any:
    """``total`` and four products of bytes, modulo 2^32. ``a`` and ``b`` are vectors of four bytes, along the last axis, or
    a 32-bit word that holds them, signed as their types say."""

    def parts(x: Any, dtype: DType) -> np.ndarray:
        if dtype.lanes == 4:
            return np.asarray(x).astype(np.int64)
        word = np.asarray(x).astype(value_dtype(dtype))[..., None]
        return word.view(np.int8 if dtype.code == "int" else np.uint8).astype(np.int64)

    exact = np.asarray(total).astype(np.int64) + (parts(a, left) * parts(b, right)).sum(axis=-1)
    wrapped = exact.astype(value_dtype(out))
    return wrapped if wrapped.ndim else int(wrapped)
