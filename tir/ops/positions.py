"""Where the largest and the least element are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import EQ, NE, DType, Expr, Select, compare, const, is_const, logical_and, logical_or, te
from ..te import Reducer, Tensor, error
from .cases import Case, arg, case
from .element_places import positions_type
from .reduction import SECTION, Reduction, highest, lowest
from .registry import operator
from .shapes import axis_of


def _reference(find: Callable[..., Any]) -> Callable[..., Any]:
    def run(
        x: Any, axis: Any = None, keepdims: bool = False, select_last_index: bool = False, dtype: Any = None
    ) -> Any:
        if not select_last_index:
            return find(x, axis=axis, keepdims=keepdims)
        size = x.size if axis is None else x.shape[axis]
        return size - 1 - find(np.flip(x, axis), axis=axis, keepdims=keepdims)

    return run


_CASES: list[Case] = [
    case(arg((3, 5), "float32"), axis=-1),
    case(arg((2, 3, 4), "float64"), axis=1, keepdims=True),
    case(arg((4, 7), "float16")),
    case(arg(("n", 3), "float32"), axis=0),
    case(arg((2, 9), "bfloat16"), keepdims=True),
    case(arg((16, 2), "float32", "special"), axis=0),
    case(arg((16, 2), "float32", "special"), axis=0, select_last_index=True),
    case(arg((2, 140), "float32", "special"), axis=1),
    case(arg((3, 70), "int32", 4), axis=1, select_last_index=True),
    case(arg((5,), "float32", -float("inf")), axis=0),
    case(arg((0, 3), "float32"), axis=1),
    case(arg((3, 9), "int8"), axis=1),
    case(arg((3, 9), "uint8"), axis=1, dtype="int32", select_last_index=True),
    case(arg((6,), "int64", -(2**63))),
]


@operator(shapes="(…) integer|float -> (…r)", section=SECTION, reference=_reference(np.argmax), cases=_CASES)
def argmax(
    x: te.Tensor, axis: int | None = None, keepdims: bool = False, select_last_index: bool = False, dtype: Any = "int64"
) -> te.Tensor:
    """The position of the largest element along ``axis``; of None that in the flattened tensor. nan is the largest.

    Of equal elements it is the first, or the last. Of no elements it is an error.

    >>> from tir import ops, te
    >>> ops.argmax(te.placeholder((4, 3)), axis=-1)
    Tensor(argmax, (4,), int64)
    """
    return _position("argmax", lowest, lambda a, b: a > b, x, axis, keepdims, select_last_index, dtype)


@operator(shapes="(…) integer|float -> (…r)", section=SECTION, reference=_reference(np.argmin), cases=_CASES)
def argmin(
    x: te.Tensor, axis: int | None = None, keepdims: bool = False, select_last_index: bool = False, dtype: Any = "int64"
) -> te.Tensor:
    """The position of the least element along ``axis``, as ``argmax`` gives that of the largest. nan is the least.

    >>> from tir import ops, te
    >>> ops.argmin(te.placeholder((4, 3)), axis=0, dtype="int32")
    Tensor(argmin_v0, (3,), int32)
    """
    return _position("argmin", highest, lambda a, b: a < b, x, axis, keepdims, select_last_index, dtype)


def _position(
    name: str,
    start: Callable[[DType], Expr],
    beats: Callable[[Any, Any], Expr],
    x: Tensor,
    axis: Any,
    keepdims: Any,
    last: Any,
    dtype: Any,
) -> Tensor:
    over = Reduction(x, tuple(range(x.ndim)) if axis is None else (axis_of(axis, x.ndim),), bool(keepdims))
    kind = positions_type(dtype, over.count)
    if not kind.is_int:
        raise error(f"positions are integers, not {kind}", 'dtype="int64"')
    if not any(is_const(extent, 0) for extent in over.shape):
        over.require_elements()
    counted = over.counting_type(kind)
    reducer = _reducer(name, start, beats, bool(last))

    def element(*indices: Any) -> Any:
        ks = over.iterators()
        if not ks or over.is_empty:  # of one element, and of a result without elements
            return const(0, counted), const(0, x.dtype)
        position: Any = const(0, counted)
        for n, k in ks.items():
            position = position * x.shape[n].astype(counted) + k.var.astype(counted)
        return reducer((position, x[over.source(indices, ks)]), axis=list(ks.values()))

    found = te.compute(over.shape, element, name=name if counted is kind else f"{name}_{counted}")[0]
    return found if counted is kind else te.compute(over.shape, lambda *i: found[i].astype(kind), name=name)


def _reducer(name: str, start: Callable[[DType], Expr], beats: Callable[[Any, Any], Expr], last: bool) -> Reducer:
    """Of two (position, value) the one that beats the other, and of equal ones the first or the last."""

    def combine(a: Any, b: Any) -> Any:
        (at, value), (other_at, other) = a, b
        is_earlier = at > other_at if last else at < other_at
        stays = logical_or(beats(value, other), logical_and(compare(EQ, value, other), is_earlier))
        if value.dtype.is_float:
            is_number = compare(EQ, other, other)
            is_nan = compare(NE, value, value)
            stays = logical_or(stays, logical_and(is_nan, logical_or(is_earlier, is_number)))
        return Select(stays, at, other_at), Select(stays, value, other)

    def identity(index: DType, value: DType) -> Any:
        return const(-1 if last and index.code == "int" else index.max_value, index), start(value)

    return te.comm_reducer(combine, identity, name=name)


position_of_greatest = _reducer("greatest", lowest, lambda a, b: a > b, last=False)
