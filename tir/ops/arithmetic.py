"""Arithmetic of two operands that broadcast. Integers wrap around, as NumPy's do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import DType, IntImm, Let, Select, Var, cast, const, te
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor
from ..te.hybrid import statements
from .families import SECTION, binary, pairs
from .imperative import loops
from .operands import Operand, common_type, elementwise, require_kind, values_of
from .promotion import wide
from .registry import operator

_FLOAT = ("float",)


@binary(np.add, pairs(), aliases=("broadcast_add",))
def add(x: Any, y: Any) -> Any:
    """``x + y``."""
    return x + y


@binary(np.subtract, pairs(), aliases=("broadcast_sub",))
def subtract(x: Any, y: Any) -> Any:
    """``x - y``."""
    return x - y


@binary(np.multiply, pairs(), aliases=("broadcast_mul",))
def multiply(x: Any, y: Any) -> Any:
    """``x * y``."""
    return x * y


@binary(np.divide, pairs(kinds=_FLOAT), kinds=_FLOAT, aliases=("broadcast_div", "div"))
def divide(x: Any, y: Any) -> Any:
    """``x / y`` of floats; of integers see ``floor_divide`` and ``trunc_divide``."""
    return x / y


@binary(np.floor_divide, pairs("any", "nonzero"), aliases=("floordiv",))
def floor_divide(x: Any, y: Any) -> Any:
    """The greatest integer that is not above ``x / y``. An integer divided by 0 is an error of the run.

    Of floats it is exact: ``1.0 // 0.1`` is 9. Of an infinite ``x`` it is nan.
    """
    if x.dtype.is_int:
        return x // y
    kind, result = wide(x.dtype), x.dtype
    x, y = cast(kind, x), cast(kind, y)
    rest = te.fmod(x, y)
    whole = (x - rest) / y - Select(_is_above(rest, y), const(1, kind), const(0, kind))
    return cast(result, Select(y == 0, x / y, te.copysign(te.nearbyint(whole), x / y)))


def _is_above(rest: Any, y: Any) -> Any:
    """Whether what a division toward 0 leaves is that of a quotient above the exact one."""
    return te.all(rest != 0, (rest < 0) != (y < 0))


def _trunc_divide(x: Any, y: Any) -> Any:
    quotient = np.trunc(np.divide(x, y))
    return quotient if quotient.dtype == np.result_type(x, y) else quotient.astype(np.result_type(x, y))


@binary(_trunc_divide, pairs("any", "nonzero"), aliases=("trunc_div", "truncdiv"))
def trunc_divide(x: Any, y: Any) -> Any:
    """``x / y`` rounded toward 0. An integer divided by 0 is an error of the run."""
    return te.truncdiv(x, y) if x.dtype.is_int else te.trunc(x / y)


@binary(np.remainder, pairs("any", "nonzero"), aliases=("floor_mod", "floormod", "broadcast_mod"))
def remainder(x: Any, y: Any) -> Any:
    """What ``floor_divide`` leaves, with the sign of ``y``: ``x % y`` of Python."""
    if x.dtype.is_int:
        return x % y
    rest = te.fmod(x, y)
    return Select(_is_above(rest, y), rest + y, rest)


@binary(np.fmod, pairs("any", "nonzero"), aliases=("mod", "trunc_mod", "truncmod"))
def fmod(x: Any, y: Any) -> Any:
    """What ``trunc_divide`` leaves, with the sign of ``x``: ``x % y`` of C."""
    return te.truncmod(x, y) if x.dtype.is_int else te.fmod(x, y)


@binary(np.power, pairs("positive", "positive"), aliases=("power", "broadcast_power"))
def pow(x: Any, y: Any) -> Any:
    """``x`` to the power of ``y``. A negative power of integers has no defined value."""
    if x.dtype.is_float:
        return te.pow(x, y)
    return _power(x, y.value) if isinstance(y, IntImm) else _integer_power(x, y)


def _power(x: Any, exponent: int) -> Any:
    """A constant power, by squaring."""
    made, base = const(1, x.dtype), x
    while exponent > 0:
        if exponent % 2:
            made = made * base
        exponent //= 2
        base = base * base
    return made


def _integer_power(x: Any, y: Any) -> Any:
    """By squaring too, one bit of the exponent after the other."""
    one = const(1, x.dtype)
    last = x.dtype.bits - 1 - (x.dtype.code == "int")

    def rest(base: Any, bit: int) -> Any:
        factor = Select((y >> bit) % 2 == 1, base, one)
        if bit == last:
            return factor
        square = Var(f"square_{bit}", x.dtype)
        return Let(square, base * base, factor * rest(square, bit + 1))

    first = Var("base", x.dtype)
    return Let(first, x, rest(first, 0))


@binary(np.maximum, pairs())
def maximum(x: Any, y: Any) -> Any:
    """The larger of two values; nan if either is nan."""
    return te.max(x, y)


@binary(np.minimum, pairs())
def minimum(x: Any, y: Any) -> Any:
    """The smaller of two values; nan if either is nan."""
    return te.min(x, y)


@binary(np.arctan2, pairs("nonzero", kinds=_FLOAT), kinds=_FLOAT)
def atan2(x: Any, y: Any) -> Any:
    """The angle of the point at ``(y, x)``, between -pi and pi: ``atan(x / y)`` in the right quadrant."""
    return te.atan2(x, y)


@binary(np.hypot, pairs(kinds=_FLOAT), kinds=_FLOAT)
def hypot(x: Any, y: Any) -> Any:
    """``sqrt(x * x + y * y)`` without overflow."""
    return te.hypot(x, y)


@binary(np.copysign, pairs(kinds=_FLOAT), kinds=_FLOAT)
def copysign(x: Any, y: Any) -> Any:
    """``x`` with the sign of ``y``."""
    return te.copysign(x, y)


def _numpy_nextafter(x: Any, y: Any) -> Any:
    """In the least type that has both: floats come as float64."""
    both = np.concatenate([np.ravel(x), np.ravel(y)])
    kinds = (np.float16, np.float32, np.float64)
    kind = next(k for k in kinds if np.array_equal(both.astype(k), both, equal_nan=True))
    return np.nextafter(np.asarray(x, kind), np.asarray(y, kind))


@binary(_numpy_nextafter, pairs(kinds=_FLOAT), kinds=_FLOAT)
def nextafter(x: Any, y: Any) -> Any:
    """The number of the type that is next to ``x`` on the way to ``y``; ``y`` where both are equal, nan if either is nan."""
    return te.nextafter(x, y)


@binary(np.logaddexp, pairs(kinds=_FLOAT), kinds=_FLOAT, aliases=("log_add_exp",))
def logaddexp(x: Any, y: Any) -> Any:
    """``log(exp(x) + exp(y))`` without overflow."""
    kind, result = wide(x.dtype), x.dtype
    return cast(result, te.logaddexp(cast(kind, x), cast(kind, y)))


@operator(shapes="(…*), (…*) -> (…*)", section=SECTION, reference=np.gcd, cases=pairs(kinds=("integer",)))
def gcd(x: Operand, y: Operand) -> Tensor:
    """The greatest common divisor, by Euclid's algorithm; 0 of two zeros.

    Operands broadcast, are promoted to a common type, and are integers.
    """
    operands = values_of(x), values_of(y)
    dtype = common_type(operands)
    require_kind(dtype, ("integer",), "an operand")
    unsigned = DType(f"uint{dtype.bits}")  # which has the magnitude of the least integer

    def magnitude(n: int) -> Tensor:
        def element(*pair: Any) -> Any:
            value = cast(unsigned, pair[n])
            return Select(pair[n] < 0, const(0, unsigned) - value, value)

        return elementwise(f"gcd_{'xy'[n]}", element, *operands, dtype=dtype)

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        a, b = (ib.allocate(unsigned, 1, name, scope="local") for name in "ab")
        with loops(ib, outs[0].buffer.shape) as i:
            a[0], b[0] = (values[i] for values in ins)
            with ib.while_loop(b[0] != const(0, unsigned)):
                rest = ib.let("rest", te.truncmod(a[0], b[0]))
                a[0], b[0] = b[0], rest
            outs[0][i] = cast(dtype, a[0])

    pair = [magnitude(0), magnitude(1)]
    (made,) = statements("gcd", pair, [(pair[0].shape, dtype)], body)
    return made
