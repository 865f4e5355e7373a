"""Rows of ATen operators that reduce axes, order elements, or sum along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtype import DType
from ..graph import Value
from .making import Unsupported, axis_of
from .torch_elementwise import paired, truth
from .torch_table import Call, Number, promoted, rounded_once, row

Axes = int | list[int] | None


def _axes(x: Value, dim: Axes) -> tuple[int, ...]:
    """The axes counted from the front; all where none is named."""
    several = [] if dim is None else [dim] if isinstance(dim, int) else dim
    return tuple(axis_of(a, len(x.shape)) for a in several) if several else tuple(range(len(x.shape)))


def _reduced(c: Call, ours: str, x: Value, dim: Axes, keepdim: bool, **more: Any) -> Value:
    if not x.shape:
        x, dim, keepdim = c.shaped(x, (1,)), None, False
    axes = _axes(x, dim)
    if any(x.shape[a] == 0 for a in axes) and ours not in ("sum", "prod", "any", "all"):
        raise Unsupported(f"{ours} over no elements")
    return c.op(ours, x, axis=axes, keepdims=bool(keepdim), **more)


@row("sum", "prod", "mean", "logsumexp")
def _sum(c: Call, x: Value, dim: Axes = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    kind = {"dtype": c.dtype} if c.operator in ("sum", "prod") else {}
    return _reduced(c, c.operator, c.tensor(x, c.dtype), dim, keepdim, **kind)


@row("amax", "amin")
def _extreme(c: Call, x: Value, dim: Axes = None, keepdim: bool = False) -> Any:
    return _ordered(c, c.operator[1:], x, dim, keepdim)


def _ordered(c: Call, ours: str, x: Value, dim: Axes, keepdim: bool) -> Value:
    """The largest or smallest elements; of bools, whether any or all are true."""
    return _reduced(c, {"max": "any", "min": "all"}[ours] if x.dtype.is_bool else ours, x, dim, keepdim)


@row("max", "min")
def _max(c: Call, x: Value, dim: Any = None, keepdim: bool = False, other: Value | None = None) -> Any:
    if other is not None:
        return paired(c, f"{c.operator}imum", x, other, c.dtype)
    made = _ordered(c, c.operator, x, dim, keepdim)
    return made if dim is None else (made, _place(c, c.operator, x, dim, keepdim))


@row("argmax", "argmin")
def _arg(c: Call, x: Value, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(c, c.operator[3:], x, dim, keepdim)


def _place(c: Call, which: str, x: Value, dim: int | None, keepdim: bool) -> Value:
    if not x.shape:
        return c.filled((), 0, DType("int64"))
    x = c.op("astype", x, "int8") if x.dtype.is_bool else x
    return c.op(f"arg{which}", x, None if dim is None else axis_of(dim, len(x.shape)), bool(keepdim))


@row("any", "all")
def _any(c: Call, x: Value, dim: Axes = None, keepdim: bool = False) -> Any:
    return c.operand(_reduced(c, c.operator, truth(c, x), dim, keepdim), c.dtype)


@row("var", "std", "var_mean", "std_mean")
def _var(
    c: Call, x: Value, dim: Any = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False
) -> Any:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    less = float(correction if correction is not None else 1 if unbiased else 0)
    made = _reduced(c, c.operator.removesuffix("_mean"), x, dim, keepdim, correction=less)
    return (made, _reduced(c, "mean", x, dim, keepdim)) if c.operator.endswith("_mean") else made


@row("linalg_vector_norm", "norm")
@rounded_once
def _norm(
    c: Call, x: Value, ord: Number = 2, dim: Axes = None, keepdim: bool = False, p: Any = None, dtype: Any = None
) -> Any:
    power = ord if c.operator == "linalg_vector_norm" else 2 if p is None else p
    return _of_power(c, c.tensor(x, c.dtype), power, dim, keepdim)


@row("_cdist_forward", "cdist")
@rounded_once
def _cdist(c: Call, x1: Value, x2: Value, p: Number = 2, compute_mode: int | None = None) -> Any:
    """The distance of each row of one, ``(…, P, M)``, from each of the other, ``(…, R, M)``."""
    first, second = (
        c.shaped(x, (*x.shape[:at], 1, *x.shape[at:])) for x, at in ((x1, len(x1.shape) - 1), (x2, len(x2.shape) - 2))
    )
    return _of_power(c, c.op("subtract", first, second), p, -1, False)


@row("dist")
@rounded_once
def _dist(c: Call, x: Value, other: Value, p: Number = 2) -> Any:
    return _of_power(c, c.op("subtract", c.tensor(x, c.dtype), c.tensor(other, c.dtype)), p, None, False)


@row("_pdist_forward")
@rounded_once
def _pdist(c: Call, x: Value, p: Number = 2) -> Any:
    """The distance of each row from each row after it."""
    c.room(x.shape[0], x.shape[0])
    first, second = (c.op("take", x, c.array(places), 0) for places in np.triu_indices(x.shape[0], 1))
    return _of_power(c, c.op("subtract", first, second), p, -1, False)


def _of_power(c: Call, x: Value, power: Number, dim: Axes, keepdim: bool) -> Any:
    """Norms of a power."""
    if power == 2:
        return c.op("sqrt", _reduced(c, "sum", c.op("square", x), dim, keepdim))
    size = c.op("abs", x)
    if power == 1:
        return _reduced(c, "sum", size, dim, keepdim)
    if abs(power) == float("inf"):
        return _reduced(c, "max" if power > 0 else "min", size, dim, keepdim)
    if power == 0:
        return _reduced(c, "sum", c.op("astype", c.op("not_equal", size, 0.0), x.dtype), dim, keepdim)
    return c.op("pow", _reduced(c, "sum", c.op("pow", size, float(power)), dim, keepdim), 1 / float(power))


@row("cumsum", "cumprod")
def _cumulative(c: Call, x: Value, dim: int, dtype: DType | None = None) -> Any:
    return c.op(c.operator, c.tensor(x, c.dtype), axis_of(dim, len(x.shape)), c.dtype)


@row("logcumsumexp")
def _logcumsumexp(c: Call, x: Value, dim: int) -> Any:
    return c.op("logcumsumexp", x, axis_of(dim, len(x.shape)))


@row("cummax", "cummin")
def _extreme_so_far(c: Call, x: Value, dim: int) -> Any:
    """The values, and where the last is that equals each."""
    axis = axis_of(dim, len(x.shape))
    made = c.op(c.operator, x, axis)
    places = c.along(c.op("arange", 0, x.shape[axis], 1, "int64"), axis, len(x.shape))
    is_here = c.op("equal", x, made)
    if x.dtype.is_float:
        is_here = c.op("logical_or", is_here, c.op("isnan", x))
    return made, c.op("cummax", c.op("where", is_here, places, c.tensor(0, DType("int64"))), axis)


@row("bucketize", "searchsorted")
def _searched(
    c: Call, x: Value | Number, boundaries: Value | None = None, sorted_sequence: Value | None = None,
    out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Value | None = None,
) -> Any:  # fmt: skip
    sequence = boundaries if sorted_sequence is None else sorted_sequence
    assert sequence is not None
    if sorter is not None:
        sequence = c.op("take_along_axis", sequence, sorter, len(sequence.shape) - 1)
    kind = promoted(x, sequence) if isinstance(x, Value) else sequence.dtype
    goes_after = right if side is None else side == "right"
    return c.op("searchsorted", c.tensor(sequence, kind), c.tensor(x, kind), goes_after, str(c.dtype))


@row("histc")
def _histc(c: Call, x: Value, bins: int = 100, min: Number = 0, max: Number = 0) -> Any:
    """How many elements are in each of ``bins`` equal parts of a range; of the range of the elements where none is given."""
    x = c.shaped(x, (-1,))
    low, high = min, max
    length: Any = high - low
    if low == high:
        low, high = c.op("min", x), c.op("max", x)
        is_one = c.op("equal", low, high)
        low, high = (c.op("where", is_one, c.op("add", n, more), n) for n, more in ((low, -1.0), (high, 1.0)))
        length = c.op("subtract", high, low)
    part = c.op(
        "floor",
        c.op(
            "divide",
            c.op("multiply", c.op("subtract", x, c.operand(low, x.dtype)), float(bins)),
            c.operand(length, x.dtype),
        ),
    )
    ends = (c.operand(n, x.dtype) for n in (low, high))
    is_inside = c.op("logical_and", *(c.op(how, x, n) for how, n in zip(("greater_equal", "less_equal"), ends)))
    place = c.op("astype", c.op("where", is_inside, c.op("minimum", part, bins - 1.0), c.tensor(0.0, x.dtype)), "int64")
    return c.op("scatter_elements", c.filled((bins,), 0, x.dtype), place, c.op("astype", is_inside, x.dtype), 0, "add")


@row("sort", "argsort")
def _sort(c: Call, x: Value, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    axis = axis_of(dim, len(x.shape))
    order = c.op("argsort", x, axis=axis, is_ascend=not descending)
    return order if c.operator == "argsort" else (c.op("take_along_axis", x, order, axis), order)


@row("topk")
def _topk(c: Call, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return c.op("topk", x, k, axis_of(dim, len(x.shape)), "both", not largest)


@row("softmax", "_softmax", "log_softmax", "_log_softmax")
def _softmax(c: Call, x: Value, dim: int, dtype: DType | None = None, half_to_float: bool = False) -> Any:
    ours = "nn.log_softmax" if "log" in c.operator else "nn.softmax"
    return c.op(ours, c.tensor(x, c.dtype), axis_of(dim, len(x.shape)))


@row("_safe_softmax")
def _safe_softmax(c: Call, x: Value, dim: int, dtype: DType | None = None) -> Any:
    """Zeros where all elements are minus infinity."""
    axis = axis_of(dim, len(x.shape))
    is_empty = c.op("equal", c.op("max", x, (axis,), True), float("-inf"))
    return c.op("where", is_empty, c.tensor(0.0, x.dtype), c.op("nn.softmax", x, axis))


@row("median", "nanmedian", "kthvalue")
def _by_order(c: Call, x: Value, dim: int = -1, keepdim: bool = False, k: int | None = None) -> Any:
    is_of_all = k is None and not c.results[1:]
    x, dim = (c.shaped(x, (-1,)), 0) if is_of_all else (x, dim)
    axis = axis_of(dim, len(x.shape))
    order = c.op("argsort", x, axis=axis)
    made = c.op("take_along_axis", x, order, axis)
    if k is None and x.dtype.is_float:
        at = _middle(c, x, axis)
        several = [c.op("take_along_axis", each, at, axis) for each in (made, order)]
    else:
        place = (x.shape[axis] - 1) // 2 if k is None else k - 1
        several = [c.sliced(each, [(axis, slice(place, place + 1))]) for each in (made, order)]
    made = several if keepdim else [c.shaped(s, (*x.shape[:axis], *x.shape[axis + 1 :])) for s in several]
    return made[0] if is_of_all else made


@row("mode")
def _mode(c: Call, x: Value, dim: int = -1, keepdim: bool = False) -> Any:
    """The end of the first of the longest runs of equal elements in order: the least of the most frequent, where it is last."""
    axis, rank = axis_of(dim, len(x.shape)), len(x.shape)
    order = c.op("argsort", x, axis=axis)
    made = c.op("take_along_axis", x, order, axis)
    count = x.shape[axis]
    place = c.along(c.op("arange", 0, count, 1, "int64"), axis, rank)
    before, after = (c.sliced(made, [(axis, s)]) for s in (slice(0, count - 1), slice(1, count)))
    is_first = c.op("not_equal", before, after)
    widths = [(0, 0)] * rank
    widths[axis] = (1, 0)
    first = c.op("cummax", c.op("where", c.op("pad", is_first, widths, "constant", True), place, 0), axis)
    at = c.op("argmax", c.op("subtract", place, first), axis, True)
    several = [c.op("take_along_axis", each, at, axis) for each in (made, order)]
    return several if keepdim else [c.shaped(s, (*x.shape[:axis], *x.shape[axis + 1 :])) for s in several]


def _middle(c: Call, x: Value, axis: int) -> Value:
    """Where the median is in order, in which nan is last: a median is the first nan if there is one, else the lower of those in
    the middle; a ``nanmedian`` is that of the numbers."""
    size = x.shape[axis]
    count = c.op("sum", c.op("astype", c.op("logical_not", c.op("isnan", x)), "int64"), (axis,), True)
    if c.operator == "nanmedian":
        return c.op("maximum", c.op("floor_divide", c.op("subtract", count, 1), 2), 0)
    return c.op("where", c.op("less", count, size), count, (size - 1) // 2)


@row("bincount", "nonzero", "unique", "_unique2", "masked_select")
def _sized_by_values(c: Call, x: Value, **more: Any) -> Any:
    raise Unsupported("the size of its result depends on values that are known only when it runs")
