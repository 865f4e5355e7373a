"""Operators of the elements of one tensor: functions of floats, rounding, signs, tests of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import FALSE, TRUE, Select, const, te
from .families import singles, unary

_NUMBERS = ("integer", "float")
_REAL = singles("any", _NUMBERS)


# ---------------------------------------------------------------- signs and rounding


@unary(np.abs, _REAL, _NUMBERS)
def abs(x: Any) -> Any:
    """The size of a number; the least signed integer keeps its sign."""
    return te.abs(x)


@unary(np.negative, _REAL, _NUMBERS)
def negative(x: Any) -> Any:
    """``-x``; of an unsigned integer modulo its range."""
    return -x


@unary(np.positive, _REAL, _NUMBERS, aliases=("identity",))
def positive(x: Any) -> Any:
    """A copy."""
    return x


@unary(np.sign, _REAL, _NUMBERS)
def sign(x: Any) -> Any:
    """-1, 0 or 1; nan of nan."""
    zero, one = const(0, x.dtype), const(1, x.dtype)
    below = x if x.dtype.code == "uint" else Select(x < zero, const(-1, x.dtype), x)
    return Select(x > zero, one, below)


@unary(np.signbit, singles(), result="bool")
def signbit(x: Any) -> Any:
    """Whether it has a minus sign: true of -0.0."""
    return te.copysign(const(1, x.dtype), x) < 0


@unary(np.square, _REAL, _NUMBERS)
def square(x: Any) -> Any:
    """``x * x``."""
    return x * x


@unary(np.reciprocal, singles("nonzero"))
def reciprocal(x: Any) -> Any:
    """``1 / x``."""
    return const(1, x.dtype) / x


def _rounded(op: str, x: Any) -> Any:
    return x if x.dtype.is_int else getattr(te, op)(x)


@unary(np.floor, _REAL, _NUMBERS)
def floor(x: Any) -> Any:
    """The greatest integer not above ``x``, in its type."""
    return _rounded("floor", x)


@unary(np.ceil, _REAL, _NUMBERS)
def ceil(x: Any) -> Any:
    """The least integer not below ``x``, in its type."""
    return _rounded("ceil", x)


@unary(np.trunc, _REAL, _NUMBERS)
def trunc(x: Any) -> Any:
    """The nearest integer toward 0, in the type of ``x``."""
    return _rounded("trunc", x)


@unary(np.round, _REAL, _NUMBERS)
def round(x: Any) -> Any:
    """The nearest integer, in the type of ``x``; halves go to the even one."""
    return _rounded("nearbyint", x)


# ---------------------------------------------------------------- tests


@unary(np.isnan, _REAL, _NUMBERS, result="bool")
def isnan(x: Any) -> Any:
    """Whether it is nan."""
    return FALSE if x.dtype.is_int else te.isnan(x)


@unary(np.isinf, _REAL, _NUMBERS, result="bool")
def isinf(x: Any) -> Any:
    """Whether it is infinite, of either sign."""
    return FALSE if x.dtype.is_int else te.isinf(x)


@unary(np.isfinite, _REAL, _NUMBERS, result="bool")
def isfinite(x: Any) -> Any:
    """Whether it is a number that is not infinite."""
    return TRUE if x.dtype.is_int else te.isfinite(x)


# ---------------------------------------------------------------- functions of floats, a row each


def _function(name: str, reference: Any, values: str, doc: str, *aliases: str) -> Any:
    """The operator of one tensor whose elements are the float function ``name`` of :mod:`tir.op`."""

    def formula(x: Any) -> Any:
        return getattr(te, name)(x)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = doc
    return unary(reference, singles(values), aliases=aliases)(formula)


_ERF, _ERFC = (np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc))
_ROWS = [
    _function("exp", np.exp, "any", "e to the power of ``x``.", "fast_exp"),
    _function("exp2", np.exp2, "any", "2 to the power of ``x``."),
    _function("exp10", lambda x: np.power(10.0, x), "any", "10 to the power of ``x``."),
    _function("expm1", np.expm1, "any", "``exp(x) - 1``, accurate near 0."),
    _function("log", np.log, "positive", "The natural logarithm: -inf at 0, nan below."),
    _function("log2", np.log2, "positive", "The logarithm to base 2."),
    _function("log10", np.log10, "positive", "The logarithm to base 10."),
    _function("log1p", np.log1p, "positive", "``log(1 + x)``, accurate near 0."),
    _function("sqrt", np.sqrt, "positive", "The square root: nan below 0."),
    _function("rsqrt", lambda x: 1 / np.sqrt(x), "positive", "``1 / sqrt(x)``."),
    _function("sigmoid", lambda x: 1 / (1 + np.exp(-x)), "any", "``1 / (1 + exp(-x))``, between 0 and 1."),
    _function("erf", _ERF, "any", "The error function.", "fast_erf"),
    _function("erfc", _ERFC, "any", "``1 - erf(x)``, accurate for large ``x``."),
    _function("sin", np.sin, "any", "The sine of an angle in radians."),
    _function("cos", np.cos, "any", "The cosine of an angle in radians."),
    _function("tan", np.tan, "small", "The tangent of an angle in radians."),
    _function(
        "asin", np.arcsin, "small", "The angle between -pi/2 and pi/2 whose sine is ``x``: nan where there is none."
    ),
    _function("acos", np.arccos, "small", "The angle between 0 and pi whose cosine is ``x``: nan where there is none."),
    _function("atan", np.arctan, "any", "The angle between -pi/2 and pi/2 whose tangent is ``x``."),
    _function("sinh", np.sinh, "any", "The hyperbolic sine."),
    _function("cosh", np.cosh, "any", "The hyperbolic cosine."),
    _function("tanh", np.tanh, "any", "The hyperbolic tangent, between -1 and 1.", "fast_tanh"),
    _function("asinh", np.arcsinh, "any", "The inverse of ``sinh``."),
    _function("acosh", np.arccosh, "positive", "The inverse of ``cosh``: nan below 1."),
    _function("atanh", np.arctanh, "small", "The inverse of ``tanh``: infinite at -1 and 1, nan beyond."),
]
__test__ = {f.__name__: f for f in _ROWS}  # their docstrings have examples
