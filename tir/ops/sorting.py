"""Operators that put elements in order, and that search in what is ordered. NaN is greater than all other values.

Many short rows are sorted by a network, in vectors; others by radix, of as many passes as the type has digits:
values by keys alone, positions with their keys, which is stable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from .. import DType, Expr, cast, logical_and, logical_not, logical_or, te
from .. import max as max_
from .. import min as min_
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor, as_size, compute, equate_shapes, error
from ..te.hybrid import statements
from .element_places import as_index, constant, positions_type, replaced
from .imperative import loops
from .radix import RadixSort, finds_few, least_positions, row_memory
from .registry import arg, case, operator
from .shapes import axis_of
from .sort_keys import UnsignedKey, with_one_zero
from .sorting_network import sorted_rows, suits


def is_less(a: Expr, b: Expr) -> Expr:
    """Whether ``a`` stands before ``b`` in ascending order."""
    if a.dtype.is_bool:
        return logical_and(logical_not(a), b)
    if not a.dtype.is_float:
        return a < b
    wide = "float64" if a.dtype.bits == 64 else "float32"
    x, y = cast(wide, a), cast(wide, b)
    return logical_or(x < y, logical_and(te.isnan(y), logical_not(te.isnan(x))))


# ---------------------------------------------------------------- rows


@contextmanager
def _rows(ib: IRBuilder, x: Tensor, axis: int) -> Iterator[tuple[tuple[Any, ...], Callable[[Any], tuple[Any, ...]]]]:
    """Loops over the rows of ``x`` along ``axis``: the indices of each, and those of its element ``k``."""
    with loops(ib, replaced(x.shape, axis), "r") as row:
        yield row, lambda k: (*row[:axis], k, *row[axis:])


def order_of(x: Tensor, axis: int, is_ascending: bool, valid_count: Tensor | None = None) -> Tensor:
    """The positions (int32) of the elements of ``x`` in order along ``axis``; equal ones keep theirs."""
    key = UnsignedKey(x.dtype, is_ascending)
    kinds = [key.kind, DType("int32")]

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], memory: Sequence[BufferVar]) -> None:
        with _rows(ib, x, axis) as (row, at):
            given = as_index(ins[1][row]) if valid_count is not None else x.shape[axis]
            count = ib.let("count", cast("int32", max_(min_(given, x.shape[axis]), 0)))
            radix = RadixSort(ib, kinds, x.shape[axis], memory, at)
            found = radix.sort(lambda k: [key.of(with_one_zero(ins[0][at(k)])), cast("int32", k)], count)
            with ib.for_range(0, count, "k") as k:
                outs[0][at(k)] = found(k)[1]
            if valid_count is not None:
                with ib.for_range(count, x.shape[axis], "k") as k:
                    outs[0][at(k)] = cast("int32", k)

    inputs = [x] if valid_count is None else [x, valid_count]
    return statements("order", inputs, [(x.shape, DType("int32"))], body, row_memory(x.shape, axis, kinds))[0]


def _sorted_by_digits(x: Tensor, axis: int, is_ascending: bool) -> Tensor:
    """The elements of ``x`` in order along ``axis``, by keys that move alone; -0.0 stands before 0.0."""
    key = UnsignedKey(x.dtype, is_ascending)

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], memory: Sequence[BufferVar]) -> None:
        with _rows(ib, x, axis) as (_, at):
            count = ib.let("count", cast("int32", x.shape[axis]))
            found = RadixSort(ib, [key.kind], x.shape[axis], memory, at).sort(lambda k: [key.of(ins[0][at(k)])], count)
            with ib.for_range(0, count, "k") as k:
                outs[0][at(k)] = key.value(found(k)[0])

    return statements("sorted", [x], [(x.shape, x.dtype)], body, row_memory(x.shape, axis, [key.kind]))[0]


def _least(x: Tensor, axis: int, is_ascending: bool, count: int) -> Tensor:
    """The positions (int32) of the first ``count`` elements of ``x`` in order along ``axis``."""
    key = UnsignedKey(x.dtype, is_ascending)

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        with _rows(ib, x, axis) as (_, at):
            order = least_positions(ib, key.kind, lambda k: key.of(with_one_zero(ins[0][at(k)])), x.shape[axis], count)
            with ib.for_range(0, count, "k") as k:
                outs[0][at(k)] = order[k]

    return statements("topk_order", [x], [(replaced(x.shape, axis, count), DType("int32"))], body)[0]


# ---------------------------------------------------------------- order


_SORTED = [
    case(arg((14, 2), "float32", "special"), 0),
    case(arg((2, 6), "bfloat16", "special")),
    case(arg((2, 5, 2), "bool"), 1),
    case(arg((3, 1), "int64"), 1, 0),
    case(arg((2, 0))),
    case(arg(("n", 2), "int16"), 0, descending=True),
    case(arg((20, 13), "float32", "special")),
    case(arg((3, 2, 6), "float64", "special"), 1, descending=True),
    case(arg((9, 5, 4), "uint16"), 0),
    case(arg((70, 9), "bool")),
    case(arg((33, 2), "bfloat16", "special"), 1, False),
]


def _numpy_sort(
    x: Any, axis: int = -1, is_ascend: bool = True, *, descending: bool = False, stable: bool = True
) -> Any:
    made = np.sort(x, axis)
    return made if is_ascend and not descending else np.flip(made, axis)


@operator(shapes="(…) -> (…)", section="sort", reference=_numpy_sort, cases=_SORTED)
def sort(x: Tensor, axis: int = -1, is_ascend: bool = True, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements of ``x`` in ascending order along ``axis``, in descending order with ``descending`` or ``is_ascend=False``."""
    at, is_ascending = axis_of(axis, x.ndim), is_ascend and not descending
    return (sorted_rows if suits(x, at) else _sorted_by_digits)(x, at, is_ascending)


def _numpy_argsort(
    x: Any,
    valid_count: Any = None,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: Any = "int64",
    *,
    descending: bool = False,
    stable: bool = True,
) -> Any:
    rows = np.moveaxis(x, axis, -1)
    made = np.tile(np.arange(rows.shape[-1]), (*rows.shape[:-1], 1))
    for at in np.ndindex(*rows.shape[:-1]):
        count = rows.shape[-1] if valid_count is None else int(valid_count[at])
        row = rows[at][:count]
        ascending = is_ascend and not descending
        order = (
            np.argsort(row, kind="stable") if ascending else len(row) - 1 - np.argsort(row[::-1], kind="stable")[::-1]
        )
        made[at][:count] = order
    return np.moveaxis(made, -1, axis)


@operator(
    shapes="(…), (…c) integer -> (…)", section="sort", reference=_numpy_argsort,
    cases=[
        case(arg((17, 2), "int8"), axis=0), case(arg((9,), "float64", "special"), None, -1, 0, "int32"),
        case(arg((2, 9), "int8"), descending=True),
        case(arg((2, 9), "int8"), arg((2,), "int32", np.array([4, 9])), dtype="float32"), case(arg((0, 2)), axis=0),
    ],
)  # fmt: skip
def argsort(
    x: Tensor,
    valid_count: Tensor | None = None,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: Any = "int64",
    *,
    descending: bool = False,
    stable: bool = True,
) -> Tensor:
    """The indices along ``axis`` at which the elements of ``x`` are in order; equal elements keep theirs.

    With ``valid_count``, a tensor of the shape without ``axis``, only so many elements of each row are ordered.

    >>> from tir import ops, te
    >>> ops.argsort(te.placeholder((2, 17), name="x"), axis=0).dtype
    'int64'
    """
    at = axis_of(axis, x.ndim)
    kind = positions_type(dtype, x.shape[at])
    if valid_count is not None:
        expected = replaced(x.shape, at)
        if not equate_shapes(valid_count.shape, expected):
            raise error(f"counts of shape {valid_count.shape} are not one for each row of {x.shape} along axis {at}")
    order = order_of(x, at, is_ascend and not descending, valid_count)
    return compute(x.shape, lambda *i: cast(kind, order(*i)), name="argsort")


def _numpy_topk(
    x: Any, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: Any = "int64"
) -> Any:
    order = _numpy_argsort(x, None, axis, is_ascend)
    count = k if k > 0 else x.shape[axis]
    order = np.take(order, np.arange(min(count, x.shape[axis])), axis)
    found = {"values": np.take_along_axis(x, order, axis), "indices": order}
    return [found["values"], found["indices"]] if ret_type == "both" else found[ret_type]


@operator(
    shapes="(…, _@axis, …) -> (…, _@axis, …), (…, _@axis, …)", section="sort", reference=_numpy_topk,
    cases=[
        case(arg((3, 7), "int8"), 2), case(arg((7, 3)), 3, 0, "both", True, "int32"),
        case(arg((3, 50), "float32", "special"), 33, 1, "values"), case(arg((2, 50), "float32", "special"), 7),
        case(arg((2, 4), "bfloat16"), 0, 1, "values"), case(arg(("n",), "int32"), 3, ret_type="indices"),
    ],
)  # fmt: skip
def topk(
    x: Tensor,
    k: Any = 1,
    axis: int = -1,
    ret_type: Literal["both", "values", "indices"] = "both",
    is_ascend: bool = False,
    dtype: Any = "int64",
) -> Any:
    """The ``k`` largest elements along ``axis`` in descending order, and their indices; all, where ``k`` is below 1.

    The smallest in ascending order with ``is_ascend``. Of equal elements the first come first. ``ret_type`` is ``"both"``, ``"values"``
    or ``"indices"`` (of ``dtype``). Raises ``TensorExpressionError`` for more elements than there are.

    >>> from tir import ops, te
    >>> values, indices = ops.topk(te.placeholder((3, 7), name="x"), 2)
    >>> values, indices.dtype
    (Tensor(topk_values, (3, 2), float32), 'int64')
    """
    at, count = axis_of(axis, x.ndim), as_size(k, "how many there are")
    kind = positions_type(dtype, x.shape[at])
    known, extent = constant(count), constant(x.shape[at])
    if known is not None and known < 1:
        count = x.shape[at]
    elif known is not None and extent is not None and known > extent:
        raise error(f"there are {extent} elements along axis {at}, not {known}")
    shape = replaced(x.shape, at, count)
    if known is not None and extent is not None and known > 0 and finds_few(extent, known):
        order = _least(x, at, is_ascend, known)
    else:
        order = order_of(x, at, is_ascend)
    first = compute(shape, lambda *i: x(*i[:at], order(*i), *i[at + 1 :]), name="topk_values")
    places = compute(shape, lambda *i: cast(kind, order(*i)), name="topk_indices")
    return {"both": [first, places], "values": first, "indices": places}[ret_type]


# ---------------------------------------------------------------- search


def _numpy_searchsorted(
    sorted_sequence: Any, values: Any, right: bool = False, out_dtype: Any = "int64", *, side: str | None = None
) -> Any:
    word: Any = side or ("right" if right else "left")
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, word)
    made = np.zeros(values.shape)
    for at in np.ndindex(*values.shape[:-1]):
        made[at] = np.searchsorted(sorted_sequence[at], values[at], word)
    return made


@operator(
    shapes="(…s, _) T, (…v) T -> (…v)", section="sort", reference=_numpy_searchsorted,
    cases=[
        case(arg((7,), "int8", np.array([-5, -5, -1, 0, 2, 2, 6])), arg((2, 8), "int8")),
        case(arg((7,), "int8", np.array([-5, -5, -1, 0, 2, 2, 6])), arg((8,), "int8"), True, "int32"),
        case(arg((2, 3), values=np.array([[-1, 0, 1], [0, 0, np.inf]])), arg((2, 4)), side="right"),
        case(arg((4,), "float16", np.array([-np.inf, 0, 1, np.nan])), arg((14,), "float16", "special")),
        case(arg((0,)), arg((3,))), case(arg(("n",), values=np.arange(5.0)), arg(())),
    ],
)  # fmt: skip
def searchsorted(
    sorted_sequence: Tensor,
    values: Tensor,
    right: bool = False,
    out_dtype: Any = "int64",
    *,
    side: Literal["left", "right"] | None = None,
) -> Tensor:
    """For each value the index in ``sorted_sequence`` before which it stands in order: before equal ones, or, with ``right``
    or ``side="right"``, after them.

    The sequence has one dimension, or those of ``values``, and is ascending along the last.
    """
    goes_after = right if side is None else side == "right"
    outer, own = sorted_sequence.shape[:-1], values.shape[:-1]
    if outer and not equate_shapes(outer, own):
        raise error(f"{sorted_sequence.shape} has no row for each one of {values.shape}", "a sequence of one dimension")
    extent = sorted_sequence.shape[-1]
    known = constant(extent)

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        sequence, searched = ins
        with loops(ib, values.shape, "v") as i:
            low, high = (ib.allocate("int32", (1,), name, scope="local") for name in ("low", "high"))
            low[0], high[0] = 0, cast("int32", extent)
            with ib.for_range(0, 32 if known is None else known.bit_length(), "step"), ib.if_scope(low[0] < high[0]):
                middle = ib.let("middle", low[0] + (high[0] - low[0]) // 2)
                element = sequence[(*(i[:-1] if outer else ()), middle)]
                is_after = logical_not(is_less(searched[i], element)) if goes_after else is_less(element, searched[i])
                with ib.if_scope(is_after):
                    low[0] = middle + 1
                with ib.else_scope():
                    high[0] = middle
            outs[0][i] = low[0]

    inputs = [sorted_sequence, values]
    return statements("searchsorted", inputs, [(values.shape, positions_type(out_dtype, extent + 1))], body)[0]
