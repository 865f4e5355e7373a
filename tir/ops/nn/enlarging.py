"""Images and volumes made larger by factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from ... import Expr, cast, const, te
from ...te import Tensor
from ..contract import BY_LAYOUT
from ..element_places import constant, require_rank
from ..resizing import ALPHA, numpy_resized, resized, spatial_axes
from ._operator import arg, case, nn_operator

_METHODS = {"nearest_neighbor": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic", "trilinear": "linear"}


def _grown(extent: Any, factor: Any) -> Any:
    """``extent`` times ``factor``, rounded, halves up."""
    known = constant(extent)
    if known is not None:
        return math.floor(known * factor + 0.5)
    if float(factor).is_integer():
        return extent * int(factor)
    size = cast("float64", extent) * const(float(factor), "float64")
    return cast(extent.dtype, te.floor(size + const(0.5, "float64")))


def _size(data: Tensor, factors: Sequence[Any], layout: str, letters: str) -> list[Expr]:
    axes = spatial_axes(layout, letters)
    require_rank(data, sum(c.isalpha() for c in layout), f"an image of layout {layout!r}")
    return [_grown(data.shape[axis], f) for axis, f in zip(axes, factors)]


def _reference(data: Any, factors: Sequence[float], layout: str, letters: str, method: str, mode: str) -> Any:
    sizes = [_grown(data.shape[a], f) for a, f in zip(spatial_axes(layout, letters), factors)]
    return numpy_resized(data, None, sizes, layout, _METHODS[method], mode, "", ALPHA, 0, 0.0, None, None, letters)


def _reference2d(
    data: Any, scale_h: float, scale_w: float, layout: str = "NCHW", method: str = "nearest_neighbor",
    align_corners: bool = False, output_shape: Any = None,
) -> Any:  # fmt: skip
    mode = "align_corners" if align_corners else "asymmetric"
    return _reference(data, (scale_h, scale_w), layout, "HW", method, mode)


@nn_operator(
    gives=(1, 2, 6, 8), unstated=BY_LAYOUT, reference=_reference2d,
    cases=(
        case(arg((1, 2, 3, 4)), 2, 2), case(arg((1, 3, 4, 2)), 2, 3.0, "NHWC", "bilinear"),
        case(arg((1, 1, 3, 4)), 2, 2, "NCHW", "bilinear", True), case(arg((1, 1, 4, 5)), 1.5, 0.6, "NCHW", "bicubic"),
        case(arg((1, 1, 3, 2, 4), "int8"), 2, 2, "NCHW4c"), case(arg((1, 2, "h", 3)), 2, 2, "NCHW", "bilinear"),
    ),
)  # fmt: skip
def upsampling(
    data: Tensor,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: Literal["nearest_neighbor", "bilinear", "bicubic"] = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Any = None,
) -> Tensor:
    """Images ``scale_h`` times as high and ``scale_w`` times as wide: :func:`image.resize2d` to these sizes, rounded.

    ``method`` is ``"nearest_neighbor"``, ``"bilinear"`` or ``"bicubic"`` (``bicubic_alpha`` is -0.75). The first elements stand on the first, or, with
    ``align_corners``, the first and the last on the first and the last. ``output_shape`` is ignored: it is known.
    """
    size = _size(data, (scale_h, scale_w), layout, "HW")
    mode = "align_corners" if align_corners else "asymmetric"
    return resized(data, None, size, layout, _METHODS[method], mode, letters="HW")


def _reference3d(
    data: Any, scale_d: float, scale_h: float, scale_w: float, layout: str = "NCDHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel", output_shape: Any = None,
) -> Any:  # fmt: skip
    factors = (scale_d, scale_h, scale_w)
    return _reference(data, factors, layout, "DHW", method, coordinate_transformation_mode)


@nn_operator(
    gives=(1, 2, 4, 6, 4), unstated=BY_LAYOUT, reference=_reference3d,
    cases=(
        case(arg((1, 2, 2, 3, 2)), 2, 2, 2), case(arg((1, 2, 2, 2, 3)), 2, 1, 1.5, "NDHWC", "trilinear"),
        case(arg((1, 1, 2, 2, 3)), 2, 2, 2, "NCDHW", "trilinear", "align_corners"),
    ),
)  # fmt: skip
def upsampling3d(
    data: Tensor,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: Literal["nearest_neighbor", "trilinear"] = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: Any = None,
) -> Tensor:
    """Volumes larger by a factor along each axis: :func:`image.resize3d` to these sizes, rounded.

    ``method`` is ``"nearest_neighbor"`` or ``"trilinear"``; for ``coordinate_transformation_mode`` see
    :func:`image.resize2d`. ``output_shape`` is ignored: it is known.
    """
    size = _size(data, (scale_d, scale_h, scale_w), layout, "DHW")
    return resized(data, None, size, layout, _METHODS[method], coordinate_transformation_mode, letters="DHW")
