"""Rows of ATen's special functions: computed in float64 by series, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtype import DType
from ..graph import Value
from .making import Unsupported
from .torch_table import Call, row


class Formula:
    """What formulas are written with: operators by name, of values and numbers."""

    def __init__(self, c: Call):
        self.op = c.op

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: self.op(name, *arguments)

    def polynomial(self, x: Value, *factors: float) -> Any:
        """That of ``factors``, the one of the highest power first."""
        made: Any = factors[0]
        for factor in factors[1:]:
            made = self.add(self.multiply(made, x), factor)
        return made

    def sum(self, terms: Sequence[Any]) -> Any:
        made = terms[0]
        for term in terms[1:]:
            made = self.add(made, term)
        return made


def _of(function: Callable[[Formula, Value], Value]) -> Callable[..., Value]:
    def made(c: Call, x: Value) -> Value:
        return c.op("astype", function(Formula(c), c.tensor(x, DType("float64"))), c.dtype)

    return made


def _lgamma(f: Formula, x: Value) -> Value:
    """By Lanczos' sum with g = 7 of 9 terms; of what is below 0.5 by reflection."""
    factors = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
               -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7]  # fmt: skip
    below = f.less(x, 0.5)
    z = f.where(below, f.subtract(0.0, x), f.subtract(x, 1.0))  # the gamma function of z + 1
    total = f.sum([0.99999999999980993, *(f.divide(p, f.add(z, n + 1.0)) for n, p in enumerate(factors))])
    t = f.add(z, 7.5)
    whole = f.add(f.subtract(f.multiply(f.add(z, 0.5), f.log(t)), t), f.log(f.multiply(total, math.sqrt(2 * math.pi))))
    sine = f.abs(f.sin(f.multiply(f.subtract(x, f.floor(f.add(x, 0.5))), math.pi)))
    made = f.where(below, f.subtract(f.log(f.divide(math.pi, sine)), whole), whole)
    return f.where(f.isinf(x), math.inf, made)


def _digamma(f: Formula, x: Value) -> Value:
    """By the asymptotic series, ten steps up; of what is below 0.5 by reflection."""
    below = f.less(x, 0.5)
    z = f.where(below, f.subtract(1.0, x), x)
    high = f.add(z, 10.0)
    square = f.divide(1.0, f.multiply(high, high))
    series = f.multiply(square, f.polynomial(square, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12))
    whole = f.subtract(f.subtract(f.log(high), f.divide(0.5, high)), series)
    whole = f.subtract(whole, f.sum([f.divide(1.0, f.add(z, float(n))) for n in range(10)]))
    part = f.where(f.equal(x, 0.0), x, f.subtract(x, f.floor(f.add(x, 0.5))))
    made = f.where(below, f.subtract(whole, f.divide(math.pi, f.tan(f.multiply(part, math.pi)))), whole)
    return f.where(f.logical_and(f.less(x, 0.0), f.equal(x, f.floor(x))), math.nan, made)


def _trigamma(f: Formula, x: Value) -> Value:
    """The derivative of the digamma function, in the same way."""
    below = f.less(x, 0.5)
    z = f.where(below, f.subtract(1.0, x), x)
    one = f.divide(1.0, f.add(z, 10.0))
    square = f.multiply(one, one)
    series = f.polynomial(square, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6, 1.0)
    whole = f.add(f.multiply(one, series), f.multiply(square, 0.5))
    steps = [f.divide(1.0, f.add(z, float(n))) for n in range(10)]
    whole = f.add(whole, f.sum([f.multiply(s, s) for s in steps]))
    sine = f.sin(f.multiply(f.subtract(x, f.floor(f.add(x, 0.5))), math.pi))
    return f.where(below, f.subtract(f.divide(math.pi**2, f.multiply(sine, sine)), whole), whole)


def _erfinv(f: Formula, x: Value) -> Value:
    """By Giles' polynomials (Approximating the erfinv function, 2010), and a step of Newton's."""
    w = f.negative(f.log(f.multiply(f.subtract(1.0, x), f.add(1.0, x))))
    near = f.polynomial(
        f.subtract(w, 2.5), 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
        -0.00417768164, 0.246640727, 1.50140941,
    )  # fmt: skip
    far = f.polynomial(
        f.subtract(f.sqrt(w), 3.0), -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
        0.00943887047, 1.00167406, 2.83297682,
    )  # fmt: skip
    made = f.multiply(x, f.where(f.less(w, 5.0), near, far))
    slope = f.multiply(f.exp(f.negative(f.multiply(made, made))), 2 / math.sqrt(math.pi))
    made = f.subtract(made, f.divide(f.subtract(f.erf(made), x), slope))
    return f.where(f.equal(f.abs(x), 1.0), f.multiply(x, math.inf), made)


def _bessel(order: int, is_scaled: bool) -> Callable[[Formula, Value], Value]:
    """The modified Bessel function of the first kind of order 0 or 1, also times ``exp(-abs(x))``: by its power series, and from 20 on by the asymptotic one."""
    powers = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(50, -1, -1)]
    factors = [1.0]
    for k in range(1, 12):
        factors.append(factors[-1] * ((2 * k - 1) ** 2 - 4 * order) / (8 * k))

    def function(f: Formula, x: Value) -> Value:
        size = f.abs(x)
        small = f.polynomial(f.multiply(f.multiply(size, size), 0.25), *powers)
        small = f.multiply(small, f.multiply(size, 0.5)) if order else small
        large = f.divide(f.polynomial(f.divide(1.0, size), *factors[::-1]), f.sqrt(f.multiply(size, 2 * math.pi)))
        if is_scaled:
            small = f.multiply(small, f.exp(f.negative(size)))
        else:
            half = f.exp(f.multiply(size, 0.5))  # twice, so that the product is finite where the result is
            large = f.multiply(f.multiply(large, half), half)
        made = f.where(f.less(size, 20.0), small, large)
        return f.where(f.less(x, 0.0), f.negative(made), made) if order else made

    return function


def _erfcx(f: Formula, x: Value) -> Value:
    """``exp(x * x) * erfc(x)``; from 3 on by a continued fraction, in which neither is out of range."""
    size = f.maximum(x, 3.0)
    made = size
    for k in range(40, 0, -1):
        made = f.add(size, f.divide(k / 2, made))
    small = f.minimum(x, 3.0)
    near = f.multiply(f.exp(f.multiply(small, small)), f.erfc(small))
    return f.where(f.less(x, 3.0), near, f.divide(1 / math.sqrt(math.pi), made))


@row("polygamma", "special_polygamma")
def _polygamma(c: Call, n: int, x: Value) -> Value:
    if n not in (0, 1):
        raise Unsupported(f"derivative {n} of the digamma function; known are 0 and 1")
    return _of([_digamma, _trigamma][n])(c, x)


@row("frexp")
def _frexp(c: Call, x: Value) -> Any:
    """By the bits of float64, in which numbers of narrower types are never subnormal."""
    f, x = Formula(c), c.tensor(x, DType("float64"))
    is_small = f.less(f.abs(x), 2.0**-1022)
    bits = f.reinterpret(f.where(is_small, f.multiply(x, 2.0**54), x), "int64")
    above = f.bitwise_and(f.right_shift(bits, 52), 2047)
    rest = f.bitwise_or(f.bitwise_and(bits, c.array(np.int64(~(2047 << 52)))), c.array(np.int64(1022 << 52)))
    power = f.subtract(above, f.add(f.multiply(c.of_type(is_small, "int64"), 54), 1022))
    is_kept = f.logical_or(f.equal(x, 0.0), f.equal(above, 2047))
    made = f.where(is_kept, x, f.reinterpret(rest, "float64"))
    return c.of_type(made, c.dtype), c.of_type(f.where(is_kept, c.array(np.zeros((), "int64")), power), "int32")


_FUNCTIONS = {
    ("lgamma",): _lgamma, ("digamma",): _digamma, ("erfinv",): _erfinv, ("i0", "special_i0"): _bessel(0, False),
    ("special_i0e",): _bessel(0, True), ("special_i1",): _bessel(1, False), ("special_i1e",): _bessel(1, True), ("special_erfcx",): _erfcx,
}  # fmt: skip
for _names, _function in _FUNCTIONS.items():
    row(*_names)(_of(_function))
