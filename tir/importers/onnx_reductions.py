"""Rows of ONNX operators that reduce axes, order elements, or sum along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import Value
from .making import Unsupported, axis_of
from .onnx_table import Call, of_floats, row

# name -> what is done before, the reduction, what is done after
_OF_AXES: dict[str, tuple[str, str, str]] = {
    "ReduceSum": ("", "sum", ""), "ReduceMean": ("", "mean", ""), "ReduceMax": ("", "max", ""), "ReduceMin": ("", "min", ""),
    "ReduceProd": ("", "prod", ""), "ReduceL1": ("abs", "sum", ""), "ReduceL2": ("square", "sum", "sqrt"),
    "ReduceSumSquare": ("square", "sum", ""), "ReduceLogSumExp": ("", "logsumexp", ""), "ReduceLogSum": ("", "sum", "log"),
}  # fmt: skip
_OF_FLOATS = ("ReduceL2", "ReduceLogSumExp", "ReduceLogSum")
_OF_BOOLS = {"max": "any", "min": "all"}


def _reduced(c: Call, ours: str, value: Value) -> Any:
    since = 13 if c.operator == "ReduceSum" else 18
    axes = (
        (None if c.attribute("axes") is None else list(c.attribute("axes")))
        if c.version < since
        else c.integers(1, "axes")
    )
    if not axes and c.attribute("noop_with_empty_axes", 0):
        return value
    chosen = tuple(axis_of(a, len(value.shape)) for a in axes) if axes else tuple(range(len(value.shape)))
    keeps = bool(c.attribute("keepdims", 1))
    if any(value.shape[a] == 0 for a in chosen) and ours not in ("sum", "prod"):
        return _of_nothing(c, ours, value, chosen, keeps)
    if ours == "mean" and value.dtype.is_int:
        total = c.op("sum", value, chosen, keeps, dtype="int64") if chosen else value
        return c.op("astype", c.op("trunc_divide", total, value.elements // max(total.elements, 1)), value.dtype)
    kept = {"dtype": value.dtype} if ours in ("sum", "prod") else {}
    return c.op(ours, value, chosen, keeps, **kept) if chosen else value


def _of_nothing(c: Call, ours: str, value: Value, axes: Sequence[int], keeps: bool) -> Value:
    """A reduction of axes without elements: what leaves each number as it is."""
    kind, is_float = value.dtype, value.dtype.is_float
    if ours == "mean" and not is_float:
        raise Unsupported("the mean of no integers")
    least, most = kind.ends
    found = {"max": least, "min": most, "logsumexp": -math.inf, "mean": math.nan, "any": False, "all": True}[ours]
    shape = [1 if n in axes else size for n, size in enumerate(value.shape) if keeps or n not in axes]
    return c.array(np.full(c.room(*shape), found, str(kind)))


def _rows_of_table() -> None:
    for name, (before, ours, after) in _OF_AXES.items():

        def reduced(c: Call, before: str = before, ours: str = ours, after: str = after) -> Any:
            x = c.op(before, c[0]) if before else c[0]
            made = _reduced(c, _OF_BOOLS.get(ours, ours) if x.dtype.is_bool else ours, x)
            return c.op(after, made) if after else made

        row(name)(of_floats(reduced) if name in _OF_FLOATS else reduced)


_rows_of_table()


@row("ArgMax")
@row("ArgMin")
def _arg(c: Call) -> Any:
    axis = axis_of(c.attribute("axis", 0), len(c[0].shape))
    last = bool(c.attribute("select_last_index", 0))
    return c.op(c.operator.lower(), c[0], axis, bool(c.attribute("keepdims", 1)), last)


@row("CumSum", 11)
@row("CumProd", 26)
def _cumulative(c: Call) -> Any:
    axis = axis_of((c.integers(1, "axis") or [0])[0], len(c[0].shape))
    x = c.op("flip", c[0], axis) if c.attribute("reverse", 0) else c[0]
    made = c.op(c.operator.lower(), x, axis, x.dtype, bool(c.attribute("exclusive", 0)))
    return c.op("flip", made, axis) if c.attribute("reverse", 0) else made


@row("Hardmax", 13)
def _hardmax(c: Call) -> Any:
    axis = axis_of(c.attribute("axis", -1), len(c[0].shape))
    return c.op("one_hot", c.op("argmax", c[0], axis), 1, 0, c[0].shape[axis], axis, c[0].dtype)


@row("Hardmax")
def _hardmax_of_matrix(c: Call) -> Any:
    return _of_matrix(c, _hardmax)


@row("TopK")
def _topk(c: Call) -> Any:
    (k,) = (c.integers(1, "k") if c.version >= 10 else None) or [c.attribute("k", 0)]
    axis = axis_of(c.attribute("axis", -1), len(c[0].shape))
    if isinstance(k, int) and k < 1:
        nothing = c.sliced(c[0], [(axis, slice(0, 0))])
        return nothing, c.of_type(nothing, "int64")
    return c.op("topk", c[0], k, axis, "both", not c.attribute("largest", 1))


@row("Softmax", 13)
@row("LogSoftmax", 13)
def _softmax(c: Call) -> Any:
    ours = "nn.softmax" if c.operator == "Softmax" else "nn.log_softmax"
    return c.op(ours, c[0], axis_of(c.attribute("axis", -1), len(c[0].shape)))


@row("Softmax")
@row("LogSoftmax")
def _softmax_of_matrix(c: Call) -> Any:
    return _of_matrix(c, _softmax)


def _of_matrix(c: Call, of_axis: Callable[[Call], Any]) -> Any:
    """What a row makes along the last axis: before version 13 all axes from ``axis`` on are one."""
    x, axis = c[0], axis_of(c.attribute("axis", 1), len(c[0].shape))
    flat = c.op("reshape", x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    made = of_axis(Call(c.builder, c.operator, c.version, [flat], {"axis": 1}, c.outputs))
    return c.op("reshape", made, x.shape)
