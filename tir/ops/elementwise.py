"""Operators of the elements of one tensor: functions of floats, rounding, signs, tests of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import te
from ..expr import FALSE, TRUE, Select, const
from ..op import call
from .families import singles, unary

_NUMBERS = ("integer", "float")


def _real(values: str = "any") -> Any:
    return singles(values, _NUMBERS)


# ---------------------------------------------------------------- signs and rounding


@unary(np.abs, _real(), _NUMBERS)
def abs(x: Any) -> Any:
    """The size of a number; the least signed integer keeps its sign."""
    return te.abs(x)


@unary(np.negative, _real(), _NUMBERS)
def negative(x: Any) -> Any:
    """``-x``; of an unsigned integer modulo its range."""
    return -x


@unary(np.positive, _real(), _NUMBERS, aliases=("identity",))
def positive(x: Any) -> Any:
    """A copy."""
    return x


@unary(np.sign, _real(), _NUMBERS)
def sign(x: Any) -> Any:
    """-1, 0 or 1; nan of nan."""
    zero, one = const(0, x.dtype), const(1, x.dtype)
    below = x if x.dtype.code == "uint" else Select(x < zero, const(-1, x.dtype), x)
    return Select(x > zero, one, below)


@unary(np.signbit, singles(), result="bool")
def signbit(x: Any) -> Any:
    """Whether it has a minus sign: true of -0.0."""
    return call("copysign", const(1, x.dtype), x) < 0


@unary(np.square, _real(), _NUMBERS)
def square(x: Any) -> Any:
    """``x * x``."""
    return x * x


@unary(np.reciprocal, singles("nonzero"))
def reciprocal(x: Any) -> Any:
    """``1 / x``."""
    return const(1, x.dtype) / x


def _rounded(op: str, x: Any) -> Any:
    return x if x.dtype.is_int else call(op, x)


@unary(np.floor, _real(), _NUMBERS)
def floor(x: Any) -> Any:
    """The greatest integer not above ``x``, in its type."""
    return _rounded("floor", x)


@unary(np.ceil, _real(), _NUMBERS)
def ceil(x: Any) -> Any:
    """The least integer not below ``x``, in its type."""
    return _rounded("ceil", x)


@unary(np.trunc, _real(), _NUMBERS)
def trunc(x: Any) -> Any:
    """The nearest integer toward 0, in the type of ``x``."""
    return _rounded("trunc", x)


@unary(np.round, _real(), _NUMBERS)
def round(x: Any) -> Any:
    """The nearest integer, in the type of ``x``; halves go to the even one."""
    return _rounded("nearbyint", x)


# ---------------------------------------------------------------- tests


@unary(np.isnan, _real(), _NUMBERS, result="bool")
def isnan(x: Any) -> Any:
    """Whether it is nan."""
    return FALSE if x.dtype.is_int else call("isnan", x)


@unary(np.isinf, _real(), _NUMBERS, result="bool")
def isinf(x: Any) -> Any:
    """Whether it is infinite, of either sign."""
    return FALSE if x.dtype.is_int else call("isinf", x)


@unary(np.isfinite, _real(), _NUMBERS, result="bool")
def isfinite(x: Any) -> Any:
    """Whether it is a number that is not infinite."""
    return TRUE if x.dtype.is_int else call("isfinite", x)


# ---------------------------------------------------------------- exponentials, logarithms, roots


@unary(np.exp, singles(), aliases=("fast_exp",))
def exp(x: Any) -> Any:
    """e to the power of ``x``."""
    return call("exp", x)


@unary(np.exp2, singles())
def exp2(x: Any) -> Any:
    """2 to the power of ``x``."""
    return call("exp2", x)


@unary(lambda x: np.power(10.0, x), singles())
def exp10(x: Any) -> Any:
    """10 to the power of ``x``."""
    return call("exp10", x)


@unary(np.expm1, singles())
def expm1(x: Any) -> Any:
    """``exp(x) - 1``, accurate near 0."""
    return call("expm1", x)


@unary(np.log, singles("positive"))
def log(x: Any) -> Any:
    """The natural logarithm: -inf at 0, nan below."""
    return call("log", x)


@unary(np.log2, singles("positive"))
def log2(x: Any) -> Any:
    """The logarithm to base 2."""
    return call("log2", x)


@unary(np.log10, singles("positive"))
def log10(x: Any) -> Any:
    """The logarithm to base 10."""
    return call("log10", x)


@unary(np.log1p, singles("positive"))
def log1p(x: Any) -> Any:
    """``log(1 + x)``, accurate near 0."""
    return call("log1p", x)


@unary(np.sqrt, singles("positive"))
def sqrt(x: Any) -> Any:
    """The square root: nan below 0."""
    return call("sqrt", x)


@unary(lambda x: 1 / np.sqrt(x), singles("positive"))
def rsqrt(x: Any) -> Any:
    """``1 / sqrt(x)``."""
    return call("rsqrt", x)


@unary(lambda x: 1 / (1 + np.exp(-x)), singles())
def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, between 0 and 1."""
    return call("sigmoid", x)


@unary(np.vectorize(math.erf, otypes=[np.float64]), singles(), aliases=("fast_erf",))
def erf(x: Any) -> Any:
    """The error function."""
    return call("erf", x)


@unary(np.vectorize(math.erfc, otypes=[np.float64]), singles())
def erfc(x: Any) -> Any:
    """``1 - erf(x)``, accurate for large ``x``."""
    return call("erfc", x)


# ---------------------------------------------------------------- angles


@unary(np.sin, singles())
def sin(x: Any) -> Any:
    """The sine of an angle in radians."""
    return call("sin", x)


@unary(np.cos, singles())
def cos(x: Any) -> Any:
    """The cosine of an angle in radians."""
    return call("cos", x)


@unary(np.tan, singles("small"))
def tan(x: Any) -> Any:
    """The tangent of an angle in radians."""
    return call("tan", x)


@unary(np.arcsin, singles("small"))
def asin(x: Any) -> Any:
    """The angle between -pi/2 and pi/2 whose sine is ``x``: nan where there is none."""
    return call("asin", x)


@unary(np.arccos, singles("small"))
def acos(x: Any) -> Any:
    """The angle between 0 and pi whose cosine is ``x``: nan where there is none."""
    return call("acos", x)


@unary(np.arctan, singles())
def atan(x: Any) -> Any:
    """The angle between -pi/2 and pi/2 whose tangent is ``x``."""
    return call("atan", x)


@unary(np.sinh, singles())
def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    return call("sinh", x)


@unary(np.cosh, singles())
def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    return call("cosh", x)


@unary(np.tanh, singles(), aliases=("fast_tanh",))
def tanh(x: Any) -> Any:
    """The hyperbolic tangent, between -1 and 1."""
    return call("tanh", x)


@unary(np.arcsinh, singles())
def asinh(x: Any) -> Any:
    """The inverse of ``sinh``."""
    return call("asinh", x)


@unary(np.arccosh, singles("positive"))
def acosh(x: Any) -> Any:
    """The inverse of ``cosh``: nan below 1."""
    return call("acosh", x)


@unary(np.arctanh, singles("small"))
def atanh(x: Any) -> Any:
    """The inverse of ``tanh``: infinite at -1 and 1, nan beyond."""
    return call("atanh", x)
