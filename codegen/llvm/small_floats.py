"""The small floats of ml_dtypes from and to float32, by arithmetic on bits. Rounding is to nearest, ties to even.

Where the exponent of a type is that of float32 (bfloat16, float8_e8m0fnu), its bits are the upper ones of a float32. The
others have a smaller exponent: multiplying by a power of two moves it, which also makes their subnormal numbers right.
"""

from __future__ import annotations

from tir.small_floats import SmallFloat

from .mathlib import Lanes

_BIAS, _FRACTION = 127, 23  # of float32
_NAN, _INFINITY = 0x7FC00000, 0x7F800000


def widen(m: Lanes, code: str, small: SmallFloat) -> str:
    """The float32 of the bits in an i32: always exact."""
    shift = m.int(_FRACTION - small.fraction)
    if small.bias == _BIAS:
        bits = m.iop("shl", code, shift)
        return m.from_bits(bits if small.signed else _exponent_alone(m, bits))
    magnitude = m.iop("and", code, m.int((1 << (small.bits - 1)) - 1))
    moved = m.op("fmul", m.from_bits(m.iop("shl", magnitude, shift)), m.const(2.0 ** (_BIAS - small.bias)))
    bits = m.bits(moved)
    if small.has_infinity:  # infinity, and nan above it
        bits = _if(m, m.compare("uge", magnitude, small.above), m.iop("or", bits, m.int(_INFINITY)), bits)
    elif small.has_nan:
        pattern = magnitude if small.has_negative_zero else m.iop("and", code, m.int((1 << small.bits) - 1))
        bits = _if(m, m.compare("eq", pattern, small.nan), m.int(_NAN), bits)
    sign = m.iop("and", code, m.int(1 << (small.bits - 1)))
    return m.from_bits(m.iop("or", bits, m.iop("shl", sign, m.int(32 - small.bits))))


def _exponent_alone(m: Lanes, bits: str) -> str:
    """float8_e8m0fnu: the smallest is subnormal in float32, the greatest exponent is nan."""
    bits = _if(m, m.compare("eq", bits, 0), m.int(1 << (_FRACTION - 1)), bits)
    return _if(m, m.compare("eq", bits, 0xFF << _FRACTION), m.int(_NAN), bits)


def narrow(m: Lanes, value: str, small: SmallFloat) -> str:
    """The bits, in an i32, of a float32 rounded to the type. What is too great, and nan, become what ml_dtypes makes of them."""
    bits = m.bits(value)
    if small.bias == _BIAS:
        no_number = m.less("uno", value, value) if small.signed else _not_positive(m, bits)
        return _if(m, no_number, m.int(small.nan), _without_last_digits(m, bits, small))
    magnitude = m.iop("and", bits, m.int(0x7FFFFFFF))
    code = _without_last_digits(m, m.iop("sub", magnitude, m.int((_BIAS - small.bias) << _FRACTION)), small)
    code = _if(m, m.compare("ugt", code, small.top), m.int(small.above), code)
    is_subnormal = m.compare("ult", magnitude, (_BIAS + 1 - small.bias) << _FRACTION)
    code = _if(m, is_subnormal, _steps_from_zero(m, magnitude, small), code)
    sign = m.iop("and", m.iop("lshr", bits, m.int(32 - small.bits)), m.int(1 << (small.bits - 1)))
    if not small.has_negative_zero:
        sign = _if(m, m.compare("eq", code, 0), m.int(0), sign)
    return _if(m, m.less("uno", value, value), m.int(small.nan), m.iop("or", code, sign))


def _not_positive(m: Lanes, bits: str) -> str:
    return m.compare("uge", m.iop("sub", bits, m.int(1)), _INFINITY)


def _without_last_digits(m: Lanes, bits: str, small: SmallFloat) -> str:
    shift = _FRACTION - small.fraction
    half = m.iop("add", _lowest_kept(m, bits, small), m.int((1 << (shift - 1)) - 1))
    return m.iop("lshr", m.iop("add", bits, half), m.int(shift))


def _lowest_kept(m: Lanes, bits: str, small: SmallFloat) -> str:
    """The last digit kept. Without a fraction it is the first, which is 1; 2**-127 is not to be rounded and takes 0."""
    if small.fraction:
        return m.iop("and", m.iop("lshr", bits, m.int(_FRACTION - small.fraction)), m.int(1))
    return _if(m, m.compare("eq", bits, 1 << (_FRACTION - 1)), m.int(0), m.int(1))


def _steps_from_zero(m: Lanes, magnitude: str, small: SmallFloat) -> str:
    """Multiples of the smallest positive number: adding the float32 that has it as unit in the last place rounds to them."""
    grid = 1 - small.bias - small.fraction + _FRACTION
    shifted = m.bits(m.op("fadd", m.from_bits(magnitude), m.const(2.0**grid)))
    return m.iop("sub", shifted, m.int((grid + _BIAS) << _FRACTION))


def _if(m: Lanes, condition: str, a: str, b: str) -> str:
    return m.out.value(f"select {m.b} {condition}, {m.i} {a}, {m.i} {b}")
