"""Layers whose names mean something else in TOPI than here: with TOPI's parameters and meaning."""

from __future__ import annotations

from typing import Any

from ..ops import nn
from ..ops.registry import reshown
from ..te import Tensor

_own = reshown("nn")


@_own
def conv1d(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1,
    data_layout: str = "NCW", kernel_layout: str = "", out_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """``ops.nn.conv1d`` with the groups before the layouts.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 4, 8), name="x"), te.placeholder((4, 1, 3), name="w")
    >>> topi.nn.conv1d(x, w, 1, "VALID", 1, 4).shape
    (1, 4, 6)
    """
    return nn.conv1d(data, kernel, strides, padding, dilation, data_layout, kernel_layout, out_dtype, groups)


@_own
def conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, out_dtype: Any = "float32"
) -> Tensor:
    """``ops.nn.conv2d_nhwc`` in float32, where no type is named.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 4, 4, 2), "int8", name="x"), te.placeholder((3, 3, 2, 5), "int8", name="w")
    >>> topi.nn.conv2d_nhwc(x, w).dtype
    'float32'
    """
    return nn.conv2d_nhwc(Input, Filter, stride, padding, dilation, out_dtype)


@_own
def conv3d_ndhwc(
    Input: Tensor, Filter: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    out_dtype: Any = "float32",
) -> Tensor:  # fmt: skip
    """``ops.nn.conv3d_ndhwc`` in float32, where no type is named.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 4, 4, 4, 2), "int8", name="x"), te.placeholder((3, 3, 3, 2, 5), "int8", name="w")
    >>> topi.nn.conv3d_ndhwc(x, w).dtype
    'float32'
    """
    return nn.conv3d_ndhwc(Input, Filter, stride, padding, dilation, groups, out_dtype)


@_own
def conv2d_NCHWc(
    data: Tensor, kernel: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, layout: str = "NCHWc",
    out_layout: str = "NCHWc", out_dtype: Any = "float32",
) -> Tensor:  # fmt: skip
    """``ops.nn.conv2d_NCHWc`` in float32, where no type is named.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 1, 4, 4, 4), "int8", name="x"), te.placeholder((2, 1, 3, 3, 4, 8), "int8", name="w")
    >>> topi.nn.conv2d_NCHWc(x, w).dtype
    'float32'
    """
    return nn.conv2d_NCHWc(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype)


@_own
def deformable_conv2d_nchw(
    data: Tensor, offset: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = 0, dilation: Any = 1,
    deformable_groups: int = 1, groups: int = 1, out_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """``ops.nn.deformable_conv2d_nchw``, in which places before the first element of an image are 0.

    >>> from tir import te, topi
    >>> x, moves = te.placeholder((1, 2, 4, 4), name="x"), te.placeholder((1, 18, 2, 2), name="moves")
    >>> topi.nn.deformable_conv2d_nchw(x, moves, te.placeholder((3, 2, 3, 3), name="w")).shape
    (1, 3, 2, 2)
    """
    return nn.deformable_conv2d_nchw(
        data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype, borders="inside"
    )


@_own
def deformable_conv2d_nhwc(
    data: Tensor, offset: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = 0, dilation: Any = 1,
    deformable_groups: int = 1, groups: int = 1, out_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """``ops.nn.deformable_conv2d_nhwc``, in which places before the first element of an image are 0.

    >>> from tir import te, topi
    >>> x, moves = te.placeholder((1, 4, 4, 2), name="x"), te.placeholder((1, 2, 2, 18), name="moves")
    >>> topi.nn.deformable_conv2d_nhwc(x, moves, te.placeholder((3, 3, 2, 3), name="w")).shape
    (1, 2, 2, 3)
    """
    return nn.deformable_conv2d_nhwc(
        data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype, borders="inside"
    )
