"""How values of every dtype are represented while a program runs, and the exact conversions between them.

Integers are Python ints in the range of their dtype. float16/32/64 are NumPy scalars of that type. The small floats of
ml_dtypes are NumPy float32 scalars that hold a representable number. Vectors are NumPy arrays of lanes. In memory small
floats are their bits: bfloat16 is uint16, the others are uint8, also those of 4 and 6 bits; integers of 2 and 4 bits take one byte too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from ..dtype import DType
from ..errors import RunError
from ..small_floats import SMALL_FLOATS

_STORAGE = {"bool": np.bool_, "int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8, "uint1": np.uint8}


def is_small_float(dtype: DType) -> bool:
    """Whether the type is a float that NumPy does not have (bfloat16, and those of at most 8 bits)."""
    return dtype.is_float and dtype.code != "float"


@cache
def storage_dtype(dtype: DType) -> np.dtype:
    """The NumPy dtype of one element in memory.

    >>> storage_dtype(DType("bfloat16"))
    dtype('uint16')
    """
    if dtype.is_handle:
        return np.dtype(np.uint64)
    if is_small_float(dtype):
        return SMALL_FLOATS[dtype.element].storage
    return np.dtype(_STORAGE.get(dtype.element, dtype.element))


@cache
def array_dtype(dtype: DType) -> np.dtype:
    """The dtype of an array of such elements: NumPy's, or that of ml_dtypes where NumPy has none.

    >>> array_dtype(DType("float32")), array_dtype(DType("float4_e2m1fn"))
    (dtype('float32'), dtype(float4_e2m1fn))
    """
    known = getattr(ml_dtypes, dtype.element, None)
    return storage_dtype(dtype) if known is None or dtype.bits == 1 else np.dtype(known)


@cache
def value_dtype(dtype: DType) -> np.dtype:
    """The NumPy dtype a lane is computed in."""
    return np.dtype(np.float32) if is_small_float(dtype) else storage_dtype(dtype)


@cache
def decode_table(dtype: DType) -> np.ndarray:
    """The float32 value of every pattern of the bits that a small float is held in; unused high bits do not count."""
    small = SMALL_FLOATS[dtype.element]
    patterns = np.arange(1 << 8 * small.storage.itemsize, dtype=small.storage)
    return (patterns & ((1 << small.bits) - 1)).view(small.numpy).astype(np.float32)


def encode(value: Any, dtype: DType) -> Any:
    """Bit patterns of floats rounded (to nearest, ties to even) to a small float type; scalar or array.

    Overflow gives infinity, nan where the type has none (float8_e4m3fn), the greatest value where it has neither
    (float4_e2m1fn, whose zeros with a sign stand for nan, too): as ml_dtypes has it, whatever the sign of a nan.

    >>> int(encode(1.0, DType("bfloat16"))) == 0x3F80
    True
    """
    small = SMALL_FLOATS[dtype.element]
    single = _to_odd_float32(np.asarray(value))  # ml_dtypes rounds doubles twice
    with np.errstate(over="ignore", invalid="ignore"):
        bits = single.astype(small.numpy).view(small.storage)
    return np.where(np.isnan(single), small.storage.type(small.nan), bits)[()]


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

    A float becomes the nearest integer that there is, of at least 32 bits, of which narrower types get the low bits; nan is 0.
    """
    if source.lanes > 1:
        return convert_lanes(value, source, target)
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


def convert_lanes(x: np.ndarray, source: DType, target: DType) -> np.ndarray:
    """As :func:`convert`, of an array; ``source`` and ``target`` are the types of its elements, or of vectors of them."""
    if target.is_bool:
        return x != 0
    if is_small_float(target):
        return round_small(x if source.is_float else x.astype(np.float64), target)
    if target.is_int and source.is_float:
        wide = target if target.bits >= 32 else DType("int32")
        exact = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
        low, high = float(wide.min_value), float(wide.max_value)
        inside = np.clip(exact, low, np.nextafter(high, 0) if high > 2**53 else high)
        whole = inside.astype(np.uint64 if wide.code == "uint" and wide.bits == 64 else np.int64)
        whole = np.where(exact >= high, np.array(int(wide.max_value)).astype(whole.dtype), whole)
        return wrap_lanes(whole.astype(storage_dtype(target)), target)
    return typed_lanes(x, target)


def typed_lanes(x: Any, dtype: DType) -> np.ndarray:
    """The held form of lanes that NumPy computed, rounded or wrapped to ``dtype``."""
    x = np.asarray(x)
    if is_small_float(dtype):
        return round_small(x, dtype)
    return wrap_lanes(x.astype(value_dtype(dtype), copy=False), dtype)


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
    raw, held = np.atleast_1d(raw), storage_dtype(target)
    if raw.nbytes != target.lanes * held.itemsize:
        raise RunError(f"reinterpret from {source} to {target}: the sizes differ")
    raw = raw.view(held)
    return from_storage(raw if target.lanes > 1 else raw[0], target)


def constant_data(data: Any, dtype: DType) -> np.ndarray:
    """The elements in memory of a constant array of numbers, one after another.

    >>> import numpy as np
    >>> constant_data(np.array([[1.0], [-2.0]], "float32"), DType("bfloat16")) == [0x3F80, 0xC000]
    array([ True,  True])
    """
    flat = np.ascontiguousarray(data).reshape(-1)
    made = encode(flat, dtype) if is_small_float(dtype) else flat
    return np.asarray(made, storage_dtype(dtype))


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
        return typed_lanes(value, dtype)
    if dtype.is_float:
        return round_small(value, dtype) if is_small_float(dtype) else value_dtype(dtype).type(value)
    return bool(value) if dtype.is_bool else wrap(int(value), dtype) if dtype.is_int else value


def next_after(x: Any, y: Any, dtype: DType) -> Any:
    """The number of ``dtype`` next to ``x`` on the way to ``y``; ``y`` where both are equal.

    >>> float(next_after(np.float32(1), np.float32(2), DType("bfloat16")))
    1.0078125
    """
    small = SMALL_FLOATS.get(dtype.element)
    with np.errstate(all="ignore"):
        if small is None:
            following = np.nextafter(x, y)
        else:
            bits = (np.asarray(encode(v, dtype)).view(small.numpy) for v in (x, y))
            following = np.nextafter(*bits).astype(np.float32)
    return np.where(x == y, y, following)[()]


def atomic_add(memory: np.ndarray, value: Any) -> Any:
    """Add to the first element, modulo a power of two if it is an integer; its old value."""
    old = memory[0]
    memory[:1] += np.asarray([value]).astype(memory.dtype)
    return int(old) if memory.dtype.kind in "iu" else old


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
