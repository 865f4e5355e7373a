"""Comparisons, logic of bools, bits of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import EQ, NE, IntImm, Select, bit_op, compare, const, te
from .. import logical_and as and_
from .. import logical_not as not_
from .. import logical_or as or_
from .. import min as min_
from .cases import Case, arg, case
from .families import binary, pairs, singles, unary

_BOOL, _BITS, _ANY = ("bool",), ("bool", "integer"), ("bool", "integer", "float")
_INTEGER = ("integer",)


@binary(np.equal, pairs(kinds=_ANY), kinds=_ANY, result="bool")
def equal(x: Any, y: Any) -> Any:
    """Whether ``x`` is ``y``; nan equals nothing."""
    return compare(EQ, x, y)


@binary(np.not_equal, pairs(kinds=_ANY), kinds=_ANY, result="bool")
def not_equal(x: Any, y: Any) -> Any:
    """Whether ``x`` is not ``y``; nan differs from everything."""
    return compare(NE, x, y)


@binary(np.less, pairs(), result="bool")
def less(x: Any, y: Any) -> Any:
    """``x < y``; false where one is nan."""
    return x < y


@binary(np.less_equal, pairs(), result="bool")
def less_equal(x: Any, y: Any) -> Any:
    """``x <= y``; false where one is nan."""
    return x <= y


@binary(np.greater, pairs(), result="bool")
def greater(x: Any, y: Any) -> Any:
    """``x > y``; false where one is nan."""
    return x > y


@binary(np.greater_equal, pairs(), result="bool")
def greater_equal(x: Any, y: Any) -> Any:
    """``x >= y``; false where one is nan."""
    return x >= y


# ---------------------------------------------------------------- bools


@binary(np.logical_and, pairs(kinds=_BOOL), kinds=_BOOL)
def logical_and(x: Any, y: Any) -> Any:
    """Whether both are true. Of numbers say ``not_equal(x, 0)``."""
    return and_(x, y)


@binary(np.logical_or, pairs(kinds=_BOOL), kinds=_BOOL)
def logical_or(x: Any, y: Any) -> Any:
    """Whether one is true."""
    return or_(x, y)


@binary(np.logical_xor, pairs(kinds=_BOOL), kinds=_BOOL)
def logical_xor(x: Any, y: Any) -> Any:
    """Whether just one is true."""
    return compare(NE, x, y)


@unary(np.logical_not, singles(kinds=_BOOL), kinds=_BOOL)
def logical_not(x: Any) -> Any:
    """Whether it is false."""
    return not_(x)


# ---------------------------------------------------------------- bits


@binary(np.bitwise_and, pairs(kinds=_BITS), kinds=_BITS)
def bitwise_and(x: Any, y: Any) -> Any:
    """The bits that both have."""
    return x & y


@binary(np.bitwise_or, pairs(kinds=_BITS), kinds=_BITS)
def bitwise_or(x: Any, y: Any) -> Any:
    """The bits that one has."""
    return x | y


@binary(np.bitwise_xor, pairs(kinds=_BITS), kinds=_BITS)
def bitwise_xor(x: Any, y: Any) -> Any:
    """The bits that just one has."""
    return x ^ y


@unary(np.invert, singles(kinds=_BITS), kinds=_BITS, aliases=("bitwise_not",))
def bitwise_invert(x: Any) -> Any:
    """The bits that it has not."""
    return ~x


def _shifts() -> list[Case]:
    far = [case(arg((2, 1), dtype, "special"), arg((6,), dtype, [0, 1, 5, 7, 8, 100])) for dtype in ("int8", "uint8")]
    return [*pairs("any", "positive", kinds=_INTEGER), *far]


@binary(np.left_shift, _shifts(), kinds=_INTEGER, aliases=("left_shift",))
def bitwise_left_shift(x: Any, y: Any) -> Any:
    """``x`` with its bits moved up by ``y``, which is not negative. Moved by all its bits or more, it is 0."""
    return _shifted("shift_left", x, y, const(0, x.dtype))


@binary(np.right_shift, _shifts(), kinds=_INTEGER, aliases=("right_shift",))
def bitwise_right_shift(x: Any, y: Any) -> Any:
    """``x`` with its bits moved down by ``y``, which is not negative: ``x`` divided by ``2 ** y``, rounded down.

    Moved by all its bits or more, it is 0, and -1 if it is negative.
    """
    sign = const(0, x.dtype) if x.dtype.code == "uint" else Select(x < 0, const(-1, x.dtype), const(0, x.dtype))
    return _shifted("shift_right", x, y, sign)


def _shifted(op: str, x: Any, y: Any, beyond: Any) -> Any:
    if isinstance(y, IntImm):
        return bit_op(op, x, y) if y.value < x.dtype.bits else beyond
    last = const(x.dtype.bits - 1, x.dtype)
    return Select(y <= last, bit_op(op, x, min_(y, last)), beyond)


def _set_bits(x: np.ndarray) -> np.ndarray:
    return np.unpackbits(x[..., None].view(np.uint8), axis=-1).sum(-1)


@unary(_set_bits, singles(kinds=_INTEGER), kinds=_INTEGER)
def popcount(x: Any) -> Any:
    """How many bits are set, in the type of ``x``; of a negative number those of its two's complement."""
    return te.popcount(x)
