"""Rows of ATen operators that reduce axes, order elements, or sum along an axis."""

from __future__ import annotations

from typing import Any

from ..dtype import DType
from ..graph import Value
from .making import Unsupported, axis_of
from .torch_table import Call, Number, row

Axes = int | list[int] | None


def _axes(x: Value, dim: Axes) -> tuple[int, ...]:
    """The axes counted from the front; all where none is named."""
    several = [] if dim is None else [dim] if isinstance(dim, int) else dim
    return tuple(axis_of(a, len(x.shape)) for a in several) if several else tuple(range(len(x.shape)))


def _reduced(c: Call, ours: str, x: Value, dim: Axes, keepdim: bool, **more: Any) -> Value:
    axes = _axes(x, dim)
    if not x.elements and ours not in ("sum", "prod", "any", "all"):
        raise Unsupported(f"{ours} over no elements")
    return c.op(ours, x, axis=axes, keepdims=bool(keepdim), **more) if axes else x


@row("sum", "prod", "mean")
def _sum(c: Call, x: Value, dim: Axes = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    kind = {} if c.operator == "mean" else {"dtype": c.dtype}
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
        return c.op(f"{c.operator}imum", c.operand(x, c.dtype), c.operand(other, c.dtype))
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
    truth = x if x.dtype.is_bool else c.op("not_equal", x, 0.0 if x.dtype.is_float else 0)
    return c.operand(_reduced(c, c.operator, truth, dim, keepdim), c.dtype)


@row("var", "std", "var_mean", "std_mean")
def _var(
    c: Call, x: Value, dim: Any = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False
) -> Any:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    less = float(correction if correction is not None else 1 if unbiased else 0)
    made = _reduced(c, c.operator.removesuffix("_mean"), x, dim, keepdim, correction=less)
    return (made, _reduced(c, "mean", x, dim, keepdim)) if c.operator.endswith("_mean") else made


@row("logsumexp")
def _logsumexp(c: Call, x: Value, dim: Axes, keepdim: bool = False) -> Any:
    return _reduced(c, "logsumexp", c.tensor(x, c.dtype), dim, keepdim)


@row("linalg_vector_norm", "norm")
def _norm(
    c: Call, x: Value, ord: Number = 2, dim: Axes = None, keepdim: bool = False, p: Any = None, dtype: Any = None
) -> Any:
    power = ord if c.operator == "linalg_vector_norm" else 2 if p is None else p
    x = c.tensor(x, c.dtype)
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
    x = c.tensor(x, c.dtype)
    return c.op(c.operator, x, axis_of(dim, len(x.shape)), c.dtype) if x.shape else x


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
    x = c.tensor(x, c.dtype)
    if not x.shape:
        return c.filled((), 0.0 if "log" in c.operator else 1.0, c.dtype)
    return c.op(ours, x, axis_of(dim, len(x.shape)))


@row("_safe_softmax")
def _safe_softmax(c: Call, x: Value, dim: int, dtype: DType | None = None) -> Any:
    """Zeros where all elements are minus infinity."""
    axis = axis_of(dim, len(x.shape))
    is_empty = c.op("equal", c.op("max", x, (axis,), True), float("-inf"))
    return c.op("where", is_empty, c.tensor(0.0, x.dtype), c.op("nn.softmax", x, axis))


@row("median", "mode", "kthvalue")
def _by_order(c: Call, x: Value, dim: int = -1, keepdim: bool = False, k: int | None = None) -> Any:
    if c.operator == "mode" or (c.operator == "median" and not c.results[1:]):
        raise Unsupported("it counts or orders all elements")
    axis = axis_of(dim, len(x.shape))
    at = (x.shape[axis] - 1) // 2 if k is None else k - 1
    order = c.op("argsort", x, axis=axis)
    made = c.op("take_along_axis", x, order, axis)
    several = [c.sliced(each, [(axis, slice(at, at + 1))]) for each in (made, order)]
    if keepdim:
        return several
    return [c.op("reshape", s, (*x.shape[:axis], *x.shape[axis + 1 :])) for s in several]


@row("bincount", "nonzero", "unique", "_unique2", "masked_select")
def _sized_by_values(c: Call, x: Value, **more: Any) -> Any:
    raise Unsupported("the size of its result depends on values that are known only when it runs")
