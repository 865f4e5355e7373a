"""Rows of ONNX operators on windows of images: pools, where their largest elements are, and the way back; parts of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ops.nn.window_shapes import dilated, pads_of
from ..ops.promotion import wide
from .making import LAYOUTS, Unsupported
from .onnx_networks import padding, per_axis, spatial
from .onnx_table import Call, row
from .window_rows import largest_of_windows


@row("MaxPool")
@row("AveragePool")
def _pool(c: Call) -> Any:
    if len(c.outputs) > 1:
        return _pool_with_places(c)
    counted = bool(c.attribute("count_include_pad", 0))
    return _windows(c, "pool", "max" if c.operator == "MaxPool" else "avg", counted=(counted,))


@row("LpPool", 2)
def _lp_pool(c: Call) -> Any:
    return _windows(c, "lp_pool", float(c.attribute("p", 2)))


def _windows(c: Call, operator: str, kind: str | float, counted: tuple[bool, ...] = ()) -> Any:
    """``nn.pool2d`` and its like: what they take of the windows, and what they do with one."""
    rank = spatial(c)
    return c.op(
        f"nn.{operator}{rank}d",
        c[0],
        list(c.attribute("kernel_shape")),
        per_axis(c, "strides", rank),
        per_axis(c, "dilations", rank),
        padding(c, rank),
        kind,
        bool(c.attribute("ceil_mode", 0)),
        LAYOUTS[rank],
        *counted,
    )


def _pool_with_places(c: Call) -> Any:
    """The largest element of each window, and its number in the whole tensor."""
    x, rank = c[0], spatial(c)
    steps = _steps(x.shape[2:], bool(c.attribute("storage_order", 0)))
    kernel, strides, gaps = (
        list(c.attribute("kernel_shape")),
        per_axis(c, "strides", rank),
        per_axis(c, "dilations", rank),
    )
    ends = pads_of(padding(c, rank), list(map(dilated, kernel, gaps)), strides, x.shape[2:])
    pads = [*(before for before, _ in ends), *(after for _, after in ends)]
    made, place = largest_of_windows(c, x, kernel, strides, gaps, pads, bool(c.attribute("ceil_mode", 0)), steps)
    images = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * rank) * math.prod(x.shape[2:])
    return [made, c.op("add", place, c.array(images))]


def _steps(sizes: Sequence[int], first_fastest: bool) -> list[int]:
    """How far apart neighbours along each axis of an image are: the last axis counts fastest, or the first."""
    order = list(sizes) if first_fastest else list(reversed(sizes))
    steps = [math.prod(order[:n]) for n in range(len(order))]
    return steps if first_fastest else steps[::-1]


@row("MaxUnpool", 9)
def _unpool(c: Call) -> Any:
    """Zeros, but for elements at the places that ``MaxPool`` gave."""
    x, rank = c[0], spatial(c)
    kernel, strides = c.attribute("kernel_shape"), per_axis(c, "strides", rank)
    pads = list(c.attribute("pads", (0,) * 2 * rank))
    sizes = [(n - 1) * s + k - b - e for n, s, k, b, e in zip(x.shape[2:], strides, kernel, pads[:rank], pads[rank:])]
    whole = (*x.shape[:2], *sizes)
    zeros = c.op("full", (math.prod(c.room(*whole)),), 0, str(x.dtype))
    flat = [c.op("reshape", value, (x.elements,)) for value in (x, c[1])]
    made = c.op("reshape", c.op("scatter_elements", zeros, flat[1], flat[0], 0, "update"), whole)
    wanted = c.integers(2, "shape")
    return made if wanted is None else c.padded(made, [(0, w - n) for w, n in zip(wanted, whole)], "constant", 0)


@row("GlobalAveragePool")
@row("GlobalMaxPool")
def _global_pool(c: Call) -> Any:
    axes = tuple(range(2, len(c[0].shape)))
    return c.op("mean" if c.operator == "GlobalAveragePool" else "max", c[0], axes, True)


@row("GlobalLpPool", 2)
def _global_lp_pool(c: Call) -> Any:
    p, kind = c.attribute("p", 2), c[0].dtype
    size = c.op("abs", c.of_type(c[0], wide(kind)))
    total = c.op("sum", c.op("pow", size, float(p)), tuple(range(2, len(size.shape))), True)
    return c.of_type(c.op("pow", total, 1 / p), kind)


@row("Col2Im", 18)
def _image_of_columns(c: Call) -> Any:
    """Windows ``(N, channels × elements, windows)`` added where they were: a transposed convolution with ones."""
    image, block = c.integers(1, "image") or [], c.integers(2, "block") or []
    rank, taps = len(image), math.prod(block)
    if rank not in (1, 2, 3) or c[0].shape[1] % taps:
        raise Unsupported(f"{list(c[0].shape)} as windows {block} of an image {image}")
    strides, dilation = per_axis(c, "strides", rank), per_axis(c, "dilations", rank)
    pads = list(c.attribute("pads", (0,) * 2 * rank))
    reach = [(k - 1) * d + 1 for k, d in zip(block, dilation)]
    counts = [(n + b + e - r) // s + 1 for n, b, e, r, s in zip(image, pads[:rank], pads[rank:], reach, strides)]
    channels = c[0].shape[1] // taps
    data = c.op("reshape", c[0], (c[0].shape[0], channels * taps, *counts))
    ones = np.tile(np.eye(taps).reshape(taps, 1, *block), (channels, *[1] * (rank + 1))).astype(str(c[0].dtype))
    made = c.op(f"nn.conv{rank}d_transpose", data, c.array(ones), strides=strides, groups=channels, dilation=dilation)
    widths = [(-b, n + b - m) for b, n, m in zip(pads, image, made.shape[2:])]
    return c.padded(made, [(0, 0), (0, 0), *widths], "constant", 0)


@row("RoiAlign", 10)
def _roi_align(c: Call) -> Any:
    usual = "half_pixel" if c.version >= 16 else "output_half_pixel"
    half = c.attribute("coordinate_transformation_mode", usual) == "half_pixel"
    if c.attribute("mode", "avg") != "avg":
        raise Unsupported("mode max, where ONNX takes the largest of corners times what they count for, not of samples")
    batch = c.op("expand_dims", c.op("astype", c[2], c[1].dtype), 1)
    return c.op(
        "vision.roi_align_nchw",
        c[0],
        c.op("concatenate", [batch, c[1]], 1),
        (c.attribute("output_height", 1), c.attribute("output_width", 1)),
        float(c.attribute("spatial_scale", 1.0)),
        "avg",
        c.attribute("sampling_ratio", 0) or -1,
        half,
    )
