"""Scalar and vector data types: interned strings that know their parts."""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .names import did_you_mean

if TYPE_CHECKING:
    from .small_floats import SmallFloat

_PATTERN = re.compile(r"(int|uint|float)(\d+)?$")
CLASSIC = {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2"}  # TVM's names before ml_dtypes had any
_LEGAL_BITS = {"int": (2, 4, 8, 16, 32, 64), "uint": (1, 2, 4, 8, 16, 32, 64), "float": (16, 32, 64)}


class _Floats(NamedTuple):
    """Of a floating type: digits of the significand, the exponent of the least positive value, and the ends."""

    digits: int
    least_exponent: int
    least: float
    greatest: float
    has_infinity: bool = True


_IEEE = {
    "float16": _Floats(11, -24, -65504.0, 65504.0),
    "float32": _Floats(24, -149, -3.4028234663852886e38, 3.4028234663852886e38),
    "float64": _Floats(53, -1074, -sys.float_info.max, sys.float_info.max),
}
_NO_FLOATS = ("int", "uint", "bool", "handle", "void")


def _small_floats() -> Mapping[str, SmallFloat]:
    """The floating types of ml_dtypes; asked for when one is named, since they load NumPy."""
    from .small_floats import SMALL_FLOATS

    return SMALL_FLOATS


@functools.cache
def _floats(element: str) -> _Floats:
    """What a scalar floating type is."""
    if element in _IEEE:
        return _IEEE[element]
    import ml_dtypes

    small = _small_floats()[element]
    about = cast(Any, ml_dtypes.finfo(small.numpy))
    smallest = math.frexp(float(about.smallest_subnormal))[1] - 1
    return _Floats(int(about.nmant) + 1, smallest, float(about.min), float(about.max), small.has_infinity)


class DType(str):
    """A data type: a plain string (``"float32x4"``) with its parts as attributes.

    Equal to the string it spells, so ``buffer.dtype == "float32"`` works. ``code`` is one of
    int, uint, float, bfloat, bool, handle, void, or the whole name of a float of at most 8 bits, which are those of
    ml_dtypes (``"float8_e4m3fn"``); ``bits`` is per lane. ``is_int`` holds of signed and unsigned integers, not of bool.
    ``min_value`` and ``max_value`` are the least and the greatest finite value of one lane; 0 of a type that has none.

    Raises ``ValueError`` for a name that is not a data type.

    >>> DType("float16x8").lanes, DType("float16x8").bits, DType("float16x8").code
    (8, 16, 'float')
    """

    __slots__ = (
        "code", "bits", "lanes", "is_int", "is_float", "is_bool", "is_handle", "min_value", "max_value", "_element", "_bytes",
        "_of_lanes",
    )  # fmt: skip
    code: str
    bits: int
    lanes: int
    is_int: bool
    is_float: bool
    is_bool: bool
    is_handle: bool
    min_value: int | float
    max_value: int | float
    _element: DType
    _bytes: int
    _of_lanes: dict[int, DType]
    _interned: dict[str, DType] = {}

    def __new__(cls, name: str) -> DType:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            name = str(name)
        found = cls._interned.get(name)
        if found is None:
            code, bits, lanes = _parse(str(name))
            text = _spell(code, bits, lanes)
            found = cls._interned.get(text)
            if found is None:
                found = str.__new__(cls, text)
                found.code, found.bits, found.lanes = code, bits, lanes
                found.is_int, found.is_float = code in ("int", "uint"), code not in _NO_FLOATS
                found.is_bool, found.is_handle = code == "bool", code == "handle"
                found.min_value, found.max_value = _ends(code, bits)
                found._bytes = max(1, (bits + 7) // 8 * lanes)
                found._element = found if lanes == 1 else cls(_spell(code, bits, 1))
                found._of_lanes = {1: found} if lanes == 1 else found._element._of_lanes
                found._of_lanes[lanes] = found
                cls._interned[text] = found
            cls._interned[str(name)] = found
        return found

    def __reduce__(self):
        return (DType, (str(self),))

    @property
    def element(self) -> DType:
        """The scalar type of one lane."""
        return self._element

    def with_lanes(self, lanes: int) -> DType:
        return self._of_lanes.get(lanes) or DType(_spell(self.code, self.bits, lanes))

    @property
    def bytes(self) -> int:
        """Bytes of the whole value in memory: a lane of fewer than 8 bits takes one byte.

        >>> DType("float32x4").bytes, DType("boolx4").bytes, DType("float4_e2m1fnx4").bytes
        (16, 4, 4)
        """
        return self._bytes

    @property
    def digits(self) -> int:
        """Digits of the significand of a floating type, the first, which is not stored, included.

        >>> DType("float32").digits, DType("bfloat16").digits
        (24, 8)
        """
        return _floats(self.element).digits

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest number of a lane: the infinities, in floating types that have them.

        >>> DType("int8").ends, DType("float32").ends, DType("float8_e4m3fn").ends
        ((-128, 127), (-inf, inf), (-448.0, 448.0))
        """
        infinite = self.is_float and _floats(self.element).has_infinity
        return (-math.inf, math.inf) if infinite else (self.min_value, self.max_value)

    @property
    def least_normal(self) -> float:
        """The smallest positive number of a floating type that has all its digits."""
        return math.ldexp(1.0, _floats(self.element).least_exponent + self.digits - 1)

    def holds(self, value: float) -> bool:
        """Whether a lane of floating type has ``value``, rounded: it is not finite, or does not round to infinity.

        >>> DType("float16").holds(65519.0), DType("float16").holds(65520.0)
        (True, False)
        """
        if not math.isfinite(value):
            return True
        last = math.ldexp(0.5, math.frexp(self.max_value)[1] - self.digits)
        return abs(value) - self.max_value < last and (self.min_value <= 0 or value > 0)

    def represents(self, value: float) -> bool:
        """Whether a lane has ``value`` exactly.

        >>> DType("float16").represents(0.5), DType("float16").represents(0.1), DType("int8").represents(200)
        (True, False, False)
        """
        if self.is_float and not math.isfinite(value):
            return True
        if not (self.is_float or self.is_int or self.is_bool):
            return False
        if not math.isfinite(value) or not self.min_value <= value <= self.max_value:
            return False
        if not self.is_float:
            return value == int(value)
        return _is_multiple(value, max(math.frexp(value)[1] - self.digits, _floats(self.element).least_exponent))


def _ends(code: str, bits: int) -> tuple[int | float, int | float]:
    """The least and the greatest finite value of a scalar type."""
    if code == "int":
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if code in ("uint", "bool"):
        return 0, (1 << bits) - 1
    if code in _NO_FLOATS:
        return 0, 0
    known = _floats(_spell(code, bits, 1))
    return known.least, known.greatest


def _is_multiple(value: float, exponent: int) -> bool:
    """Whether ``value`` is an integer times ``2 ** exponent``."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << max(-exponent, 0)) % (denominator << max(exponent, 0)) == 0


def _parse(name: str) -> tuple[str, int, int]:
    base, lanes = name, 1
    if "vscale" in name:
        raise ValueError(
            f"scalable vectors are not supported: {name!r}; write a fixed number of lanes, as in 'float32x4'"
        )
    vector = re.fullmatch(r"(.+?)x(\d+)", name)
    if vector:
        base, lanes = vector.group(1), int(vector.group(2))
    base = CLASSIC.get(base, base)
    scalar = _PATTERN.fullmatch(base)
    if lanes == 0:
        pass  # of no type
    elif base in ("bool", "handle", "void", ""):
        bits = {"bool": 1, "handle": 64}.get(base, 0)
        return base or "void", bits, lanes
    elif scalar:
        code = scalar.group(1)
        bits = int(scalar.group(2) or 32)
        if bits in _LEGAL_BITS[code]:
            return code, bits, lanes
    else:
        small = _small_floats().get(base)
        if small is not None:
            return "bfloat" if base == "bfloat16" else base, small.bits, lanes
    usual = [f"{code}{bits}" for code, sizes in _LEGAL_BITS.items() for bits in sizes]
    raise ValueError(
        f"unknown data type {name!r}: expected bool, handle, int2..int64, uint2..uint64, float16/32/64, "
        f"{', '.join(_small_floats())}, optionally with lanes as in 'float32x4'"
        f"{did_you_mean(base, [*usual, *_small_floats()])}"
    )


def _spell(code: str, bits: int, lanes: int) -> str:
    base = f"{code}{bits}" if code in ("int", "uint", "float", "bfloat") else code
    return base if lanes == 1 else f"{base}x{lanes}"


BOOL = DType("bool")
INT32 = DType("int32")
INT64 = DType("int64")
FLOAT32 = DType("float32")
HANDLE = DType("handle")
VOID = DType("void")
