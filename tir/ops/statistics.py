"""Reductions of several steps: means, variances, the logarithm of a sum of exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import DType, Expr, Select, cast, const, te
from ..te import Tensor, data_type, error
from .cases import arg, case
from .contract import BY_AXES
from .promotion import wide
from .reduction import SECTION, Axes, Reduction, accumulator, max, reduction, reduction_cases
from .registry import operator
from .variants import Definition

_FLOAT = ("float",)


def _float_type(x: Tensor, dtype: Any) -> DType:
    """The type of a mean."""
    made = x.dtype if dtype is None else data_type(dtype)
    if not made.is_float:
        raise error(
            f"the result would be {made}, and a mean is a float", 'dtype="float32", or ops.astype(x, "float32")'
        )
    return made


def _mean(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None, acc_dtype: Any = None) -> Any:
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=np.float64) / _count(x, axis)


def _count(x: Any, axis: Any) -> Any:
    axes = range(x.ndim) if axis is None else np.atleast_1d(np.asarray(axis, int))
    return np.float64(np.prod([x.shape[a] for a in axes]))


@operator(
    gives=(3,), unstated=BY_AXES, section=SECTION, reference=_mean,
    cases=[
        *reduction_cases(_FLOAT), case(arg((3, 4), "int8"), axis=1, dtype="float32"),
        case(arg((40,), "float16"), acc_dtype="float64"),
    ],
)  # fmt: skip
def mean(
    x: te.Tensor, axis: Axes = None, keepdims: bool = False, dtype: Any = None, acc_dtype: Any = None
) -> te.Tensor:
    """The mean over ``axis`` (one, several, all for None), a float of ``dtype``, by default that of ``x``; of no elements nan."""
    over, result = reduction(x, axis, keepdims), _float_type(x, dtype)
    kind = accumulator(result, acc_dtype)
    return te.compute(over.shape, lambda *i: cast(result, _mean_at(over, lambda at: x[at], kind, i)), name="mean")


def _mean_at(over: Reduction, value: Any, kind: DType, indices: Any, correction: float = 0) -> Expr:
    """The mean of ``value(index of x)``, as ``kind``: the sum divided by the number of elements, less ``correction``."""
    total = over.of(te.sum, lambda at: cast(kind, value(at)), indices, const(0, kind))
    count = cast(kind, over.count)
    if correction:
        count = te.max(count - const(correction, kind), const(0, kind))
    return total / count


_CORRECTED = [
    case(arg((4, 3)), axis=1, correction=1),
    *reduction_cases(_FLOAT),
    case(arg((5, 1), "float64"), axis=1, correction=1),
    case(arg((3, 4), "uint8"), dtype="float64", correction=0.5),
]


def _spread(
    x: te.Tensor,
    axis: Axes = None,
    correction: float = 0,
    keepdims: bool = False,
    dtype: Any = None,
    acc_dtype: Any = None,
    *,
    name: str,
) -> te.Tensor:
    if not isinstance(correction, (int, float)):
        raise error(f"correction is a number, not {correction!r}", "0, or 1 for the variance of a sample")
    over, whole, result = reduction(x, axis, keepdims), reduction(x, axis, True), _float_type(x, dtype)
    kind = accumulator(result, acc_dtype)
    finish = (lambda v: te.sqrt(v)) if name == "std" else (lambda v: v)
    center = te.compute(whole.shape, lambda *i: _mean_at(whole, lambda at: x[at], kind, i), name=f"{name}_mean")

    def square(at: Any) -> Expr:
        apart = cast(kind, x[at]) - center[tuple(0 if n in over.axes else i for n, i in enumerate(at))]
        return apart * apart

    def element(*indices: Any) -> Expr:
        return cast(result, finish(_mean_at(over, square, kind, indices, correction)))

    return te.compute(over.shape, element, name=name)


def _spread_reference(
    x: Any, axis: Any, correction: float, keepdims: bool, dtype: Any, acc_dtype: Any, name: str
) -> Any:
    apart = np.square(x - np.sum(x, axis=axis, keepdims=True) / _count(x, axis))
    made = np.sum(apart, axis=axis, keepdims=keepdims) / np.maximum(_count(x, axis) - correction, 0)
    return np.sqrt(made) if name == "std" else made


def _spread_operator(name: str, doc: str) -> Any:
    parameters = "x axis correction keepdims dtype acc_dtype"
    definition = Definition(_spread, _spread_reference, SECTION, "")
    return definition.variant(name, parameters, doc, _CORRECTED, (4,), unstated=BY_AXES, tolerance=32, name=name)


_SPREADS = [
    _spread_operator(
        "var",
        """
        The variance over ``axis``: the mean square of the distance from the mean, in two passes.

        ``correction`` is taken from the number of elements (1 for that of a sample). For types see ``mean``.
        """,
    ),
    _spread_operator("std", "The standard deviation over ``axis``: the square root of ``var``."),
]
__test__ = {f.__name__: f for f in _SPREADS}  # their docstrings have examples


def _logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis=None if axis is None else axis)


@operator(
    gives=(3,),
    shapes="(…) float -> (…r)",
    section=SECTION,
    reference=_logsumexp,
    cases=reduction_cases(_FLOAT, empty=False),
)
def logsumexp(x: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """The logarithm of the sum of exponentials over ``axis``, without overflow."""
    over, kind = reduction(x, axis, keepdims), wide(x.dtype)
    largest = max(x, axis, True)

    def top(at: Any) -> Expr:
        value = cast(kind, largest[tuple(0 if n in over.axes else i for n, i in enumerate(at))])
        return Select(te.isfinite(value), value, const(0, kind))

    def element(*indices: Any) -> Expr:
        total = over.of(te.sum, lambda at: te.exp(cast(kind, x[at]) - top(at)), indices, const(0, kind))
        return cast(x.dtype, te.log(total) + top(over.source(indices, dict.fromkeys(over.axes, 0))))

    return te.compute(over.shape, element, name="logsumexp")
