"""Convolutions by kernels of 3 x 3 in fewer products, where that takes less time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..ops.nn.checks import numbers
from ..ops.nn.window_shapes import pads_of
from ..ops.nn.winograd import TAPS
from ..target import CPUS
from .graph import Builder, Graph, Node, Value, for_targets
from .image_layout import CHANNELS
from .sizes import is_fixed

TILE = 2  # the side of a tile, the usual one: larger ones take fewer products, and err ten times as much
TRANSFORM = 4  # multiply-adds in whose time an element is transformed, written and read
BYTE = 3  # multiply-adds in whose time a byte of the kernel comes from beyond the L2 cache
LAYOUTS = {"nn.conv2d": "NHWC", "nn.conv3d": "NDHWC"}
GAIN = 0.8  # of the time of plain products, that a convolution may take at most


@for_targets(*CPUS)
def winograd(graph: Graph) -> Graph:
    """Convolutions of images with channels last by constant kernels of 3 x 3, without strides, become ``nn.conv2d_winograd_nhwc``, which has 4/9 of
    the products, where it should take less time: by its products, what it transforms, and the kernel, which is 16/9 as large. Those of volumes
    are such convolutions of frames, with the frames that a window has beside each as more channels.

    A pass for CPUs. An infinity in the image makes the results of its tile NaN, which else were infinite or without it.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x, w = b.input("x", (1, 14, 14, 64)), b.constant(np.ones((3, 3, 64, 64), "float32"), "w")
    >>> print(winograd(b.graph({"y": b.call("nn.conv2d", x, w, 1, 1, data_layout="NHWC")})))
    graph(%x: float32[1, 14, 14, 64])
      %w: float32[3, 3, 64, 64] = constant
      %conv2d: float32[1, 14, 14, 64] = nn.conv2d_winograd_nhwc(data=%x, kernel=%w, padding=1)
      return y=%conv2d
    """

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        if node.operator not in LAYOUTS or arguments.get("data_layout") != LAYOUTS[node.operator]:
            return None
        if arguments["kernel"] not in made.constants or not _is_plain(arguments) or not _pays(node):
            return None
        names = [v.name for v in node.outputs]
        if node.operator == "nn.conv2d":
            given = {name: arguments[name] for name in ("data", "kernel", "padding") if name in arguments}
            return made.add("nn.conv2d_winograd_nhwc", given, names, node.name)
        frames = made.call("nn.conv2d_winograd_nhwc", **_of_frames(made, arguments, node.outputs[0].shape))
        return made.add("reshape", {"x": frames, "newshape": node.outputs[0].shape}, names, node.name)

    return graph.rewritten(visit)


def _is_plain(arguments: Mapping[str, Any]) -> bool:
    """Whether the algorithm is for a convolution, in the types that hold what it adds."""
    kernel, data = arguments["kernel"], arguments["data"]
    if arguments.get("groups", 1) != 1 or any(arguments.get(p) for p in ("kernel_layout", "out_dtype")):
        return False
    *_, down, right = numbers(arguments.get("strides", 1), rank := len(data.shape) - 2, "strides")
    return (
        kernel.shape[-4:-2] == (TAPS, TAPS)
        and {down, right, *numbers(arguments.get("dilation", 1), rank, "dilation")} == {1}
        and kernel.dtype == data.dtype
        and kernel.dtype.is_float
        and kernel.dtype.bits >= 32
    )


def _pays(node: Node) -> bool:
    """Whether a convolution should take less time by the algorithm, by multiply-adds of an image, or of a frame."""
    *_, height, width, outputs = node.outputs[0].shape
    size, kernel, channels = (height, width), node.arguments["kernel"], node.arguments["data"].shape[-1]
    if not is_fixed(*size, channels) or channels % CHANNELS or outputs % CHANNELS:
        return False
    inputs = channels * prod(kernel.shape[:-4])
    places, square = (TILE + TAPS - 1) ** 2, inputs * outputs
    tiles = -(-size[0] // TILE) * -(-size[1] // TILE)

    def time(sums: int, taps: int) -> int:
        return square * max(sums, BYTE * kernel.dtype.bytes * taps)

    by_tiles = time(tiles * places, places) + TRANSFORM * tiles * places * (inputs + outputs)
    return by_tiles < GAIN * time(size[0] * size[1] * TAPS * TAPS, TAPS * TAPS)


def _of_frames(made: Builder, arguments: Mapping[str, Any], shape: Sequence[Any]) -> dict[str, Any]:
    """The arguments of a convolution of images that computes one of volumes with results of ``shape``."""
    data, kernel = arguments["data"], made.constants[arguments["kernel"]]
    depth, *_, inputs, outputs = kernel.shape
    step, *others = numbers(arguments.get("strides", 1), 3, "strides")
    pads = pads_of(arguments.get("padding", 0), kernel.shape[:3], (step, *others), data.shape[1:4])
    (before, after), *around = pads
    padded = made.call("nn.pad", data, (0, before, 0, 0, 0), (0, after, 0, 0, 0)) if before or after else data
    windows = made.call("sliding_window", padded, 1, (depth, 1, 1, 1), (step, 1, 1, 1))
    beside = made.call("transpose", windows, (0, 1, 2, 3, 5, 4, 6, 7, 8))  # the frames of a window before channels
    array = np.moveaxis(kernel, 0, 2).reshape(TAPS, TAPS, depth * inputs, outputs)
    return {
        "data": made.call("reshape", beside, (shape[0] * shape[1], *windows.shape[2:4], depth * inputs)),
        "kernel": made.constant(np.ascontiguousarray(array), arguments["kernel"].name),
        "padding": tuple(pad[end] for end in (0, 1) for pad in around),
    }
