"""Functions whose names mean something else in TOPI than in the Array API: with TOPI's parameters and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .. import ops
from ..expr import as_expr, constant
from ..ops.registry import reshown
from ..te import Tensor

_own = reshown("")


@_own
def flip(a: Tensor, axis: int = 0) -> Tensor:
    """``ops.flip`` along one axis: the first, where none is named.

    >>> from tir import te, topi
    >>> topi.flip(te.placeholder((2, 3), name="a")).shape
    (2, 3)
    """
    return ops.flip(a, axis)


@_own
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = "float32") -> Tensor:
    """``ops.arange`` of floats, where no type is named.

    >>> from tir import topi
    >>> topi.arange(4)
    Tensor(arange, (4,), float32)
    """
    return ops.arange(start, stop, step, dtype)


@_own
def meshgrid(a_tuple: Sequence[Tensor], indexing: Literal["xy", "ij"]) -> list[Tensor]:
    """``ops.meshgrid`` of a list of tensors, whose indexing is named.

    >>> from tir import te, topi
    >>> topi.meshgrid([te.placeholder((2,), name="x"), te.placeholder((3,), name="y")], "ij")[0].shape
    (2, 3)
    """
    return ops.meshgrid(*a_tuple, indexing=indexing)


@_own
def strided_slice(
    a: Tensor,
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: Literal["end", "size", "inside"] = "end",
    assume_inbound: bool = True,
) -> Tensor:
    """``ops.strided_slice``; with ``assume_inbound``, slices in steps of 1 of symbolic axes are inside of them, which calls check.

    >>> from tir import te, topi
    >>> n = te.var("n")
    >>> topi.strided_slice(te.placeholder((n,), name="x"), [1], [n - 1]).shape
    (n - 2,)
    """
    cut = range(len(begin)) if axes is None else axes
    inside = assume_inbound and slice_mode == "end" and {*(strides or ())} <= {1} and None not in (*begin, *end)
    if (
        inside
        and all(constant(a.shape[axis]) is None for axis in cut)
        and all((constant(as_expr(p)) or 0) >= 0 for p in (*begin, *end))
    ):
        return ops.strided_slice(a, begin, end, axes=axes, slice_mode="inside")
    return ops.strided_slice(a, begin, end, strides, axes, slice_mode)


@_own
def argsort(
    data: Tensor, valid_count: Tensor | None = None, axis: int = -1, is_ascend: bool = True, dtype: Any = "float32"
) -> Tensor:
    """``ops.argsort`` with positions as floats, where no type is named.

    >>> from tir import te, topi
    >>> topi.argsort(te.placeholder((4,), name="x")).dtype
    'float32'
    """
    return ops.argsort(data, valid_count, axis, is_ascend, dtype)


@_own
def argmax(data: Tensor, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """``ops.argmax`` with positions of type int32.

    >>> from tir import te, topi
    >>> topi.argmax(te.placeholder((4, 3), name="x"), 1).dtype
    'int32'
    """
    return ops.argmax(data, axis, keepdims, select_last_index, "int32")


@_own
def argmin(data: Tensor, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """``ops.argmin`` with positions of type int32.

    >>> from tir import te, topi
    >>> topi.argmin(te.placeholder((4, 3), name="x"), 1).dtype
    'int32'
    """
    return ops.argmin(data, axis, keepdims, select_last_index, "int32")


@_own
def sum(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """``ops.sum`` in the type of the tensor.

    >>> from tir import te, topi
    >>> topi.sum(te.placeholder((4, 3), "int8", name="x"), 1).dtype
    'int8'
    """
    return ops.sum(data, axis, keepdims, _type(data))


@_own
def prod(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """``ops.prod`` in the type of the tensor.

    >>> from tir import te, topi
    >>> topi.prod(te.placeholder((4, 3), "int8", name="x"), 1).dtype
    'int8'
    """
    return ops.prod(data, axis, keepdims, _type(data))


@_own
def cumsum(data: Tensor, axis: int | None = None, dtype: Any = None, exclusive: bool | None = None) -> Tensor:
    """``ops.cumsum`` in the type of the tensor, where none is named.

    >>> from tir import te, topi
    >>> topi.cumsum(te.placeholder((4, 3), "int8", name="x"), 1).dtype
    'int8'
    """
    return ops.cumsum(data, axis, dtype or _type(data), bool(exclusive))


@_own
def cumprod(data: Tensor, axis: int | None = None, dtype: Any = None, exclusive: bool | None = None) -> Tensor:
    """``ops.cumprod`` in the type of the tensor, where none is named.

    >>> from tir import te, topi
    >>> topi.cumprod(te.placeholder((4, 3), "int8", name="x"), 1).dtype
    'int8'
    """
    return ops.cumprod(data, axis, dtype or _type(data), bool(exclusive))


def _type(data: Tensor) -> Any:
    """The type in which elements are added; bools are counted."""
    return None if data.dtype.is_bool else data.dtype
