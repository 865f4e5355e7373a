"""Softmax and what is like it: one reduction for the largest element, one for the sum.

Types of 16 bits and less are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import Expr, Select, const, te
from ...te import Tensor
from ..promotion import wide
from ..reduction import maximum_reducer
from ..shapes import axis_of
from ._operator import arg, case, nn_operator

_ROWS = [[0.0, 1.0, -2.0], [1e4, 1e4, -1e4], [-math.inf, 0.0, 1.0], [math.nan, 0.0, 1.0], [math.inf, 0.0, 1.0]]
_CASES = (
    case(arg((3, 5), "float32")),
    case(arg((2, 4, 3), "float64"), axis=1),
    case(arg((4,), "float32"), axis=0),
    case(arg((2, 1), "float32")),
    case(arg((0, 3), "float32")),
    case(arg((3, 6), "float16")),
    case(arg((5, 3), "float32", values=_ROWS)),
    case(arg((1, 2), "float32", values=[[-math.inf, -math.inf]])),
    case(arg((2, 3), "float32", values=[[0.0, -100.0, -87.0], [1.0, -87.0, 0.5]])),
)


_LEAST = math.log(np.finfo(np.float32).tiny)  # exp of what is less is subnormal in float32


def weight_of(shifted: Expr) -> Expr:
    """``exp(shifted)`` of what is 0 at the largest element of a row, where the power becomes a weight of other numbers.

    A power below the least normal number of float32 is 0: beside the weight 1 of the largest it changes no sum, and processors
    take a hundred cycles for each operation on a subnormal number (masks of -100 make whole rows of them).
    """
    if shifted.dtype != "float32":
        return te.exp(shifted)
    return te.exp(Select(shifted < const(_LEAST, shifted.dtype), const(-math.inf, shifted.dtype), shifted))


class _Rows:
    """The elements of ``x`` along ``axis``, less the largest of them, in the type that is computed in."""

    def __init__(self, x: Tensor, axis: int, name: str):
        self.data = x
        self.axis = axis_of(axis, self.data.ndim)
        self.name = name
        self.inner = wide(self.data.dtype)
        self.outer_shape = self.outside(self.data.shape)
        k = self.reduce_axis()
        self.largest = te.compute(
            self.outer_shape,
            lambda *i: maximum_reducer(self.data(*self.with_axis(i, k)).astype(self.inner), axis=k),
            name=f"{name}_maximum",
        )

    def outside(self, items: Any) -> tuple[Any, ...]:
        """``items`` without that of the axis."""
        return (*items[: self.axis], *items[self.axis + 1 :])

    def with_axis(self, items: Any, item: Any) -> tuple[Any, ...]:
        return (*items[: self.axis], item, *items[self.axis :])

    def reduce_axis(self) -> Any:
        return te.reduce_axis((0, self.data.shape[self.axis]), "k")

    def shifted(self, *i: Any) -> Expr:
        return self.data(*i).astype(self.inner) - self.largest(*self.outside(i))

    def sum(self, element: Any) -> Tensor:
        k = self.reduce_axis()
        return te.compute(
            self.outer_shape, lambda *i: te.sum(element(*self.with_axis(i, k)), axis=k), name=f"{self.name}_sum"
        )

    def result(self, element: Any) -> Tensor:
        return te.compute(self.data.shape, lambda *i: element(*i).astype(self.data.dtype), name=self.name)


def _softmax_reference(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@nn_operator(shapes="(…) float -> (…)", reference=_softmax_reference, aliases=("fast_softmax",), cases=_CASES)
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``axis``, computed without overflow.

    A row with NaN or +inf, or of -inf alone, is NaN. Raises ``TensorExpressionError`` for an axis that ``x`` does not
    have, and for a type that is not floating.

    >>> from tir import te, topi
    >>> topi.nn.softmax(te.placeholder((2, 3), name="x"))
    Tensor(softmax, (2, 3), float32)
    """
    rows = _Rows(x, axis, "softmax")
    powers = te.compute(rows.data.shape, lambda *i: weight_of(rows.shifted(*i)), name="softmax_exp")
    total = rows.sum(powers)
    return rows.result(lambda *i: powers(*i) / total(*rows.outside(i)))


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, axis=-1: np.log(_softmax_reference(x, axis)),
    cases=(*(c for c in _CASES if c is not _CASES[6]), case(arg((4, 3), "float32", values=_ROWS[:1] + _ROWS[2:]))),
)
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """``log(softmax(x, axis))``, computed without overflow. Raises as :func:`softmax`.

    >>> from tir import te, topi
    >>> topi.nn.log_softmax(te.placeholder((3, 5)))
    Tensor(log_softmax, (3, 5), float32)
    """
    rows = _Rows(x, axis, "log_softmax")
    total = rows.sum(lambda *i: te.exp(rows.shifted(*i)))
    logarithm = te.compute(rows.outer_shape, lambda *i: te.log(total(*i)), name="log_softmax_log")
    return rows.result(lambda *i: rows.shifted(*i) - logarithm(*rows.outside(i)))
