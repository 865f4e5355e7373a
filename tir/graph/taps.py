"""Windows of convolutions that are larger than what they see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ops.nn.checks import numbers
from ..ops.nn.window_shapes import dilated, pads_of
from .graph import Builder, Graph, Node, Value
from .sizes import is_fixed

CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


def leave_out_taps(graph: Graph) -> Graph:
    """The outer taps of constant kernels that meet padding alone, for every result, are left out, with that padding: those of an atrous convolution
    whose dilation is as large as the image.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x, w = b.input("x", (1, 4, 8, 8)), b.constant(np.ones((16, 4, 3, 3), "float32"), "w")
    >>> (node,) = leave_out_taps(b.graph(b.call("nn.conv2d", x, w, 1, 12, 12))).nodes
    >>> node.arguments["kernel"].shape, node.arguments["padding"], node.outputs[0].shape
    ((16, 4, 1, 1), (0, 0, 0, 0), (1, 16, 8, 8))
    """

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        kernel = arguments.get("kernel")
        is_usual = not any(arguments.get(p) for p in ("data_layout", "kernel_layout"))
        if node.operator not in CONVOLUTIONS or kernel not in made.constants or not is_usual:
            return None
        sizes, results = arguments["data"].shape[2:], node.outputs[0].shape[2:]
        if not is_fixed(*sizes):
            return None
        steps, gaps = (numbers(arguments.get(p, 1), len(sizes), p) for p in ("strides", "dilation"))
        spans = [dilated(k, d) for k, d in zip(kernel.shape[2:], gaps)]
        pads = pads_of(arguments.get("padding", 0), spans, steps, sizes)
        cut = [_dead(*each) for each in zip(sizes, results, kernel.shape[2:], steps, gaps, pads)]
        if not any(map(any, cut)):
            return None
        kept = [slice(first, k - last) for (first, last), k in zip(cut, kernel.shape[2:])]
        array = np.ascontiguousarray(made.constants[kernel][(slice(None), slice(None), *kept)])
        padding = tuple(pad[end] - n[end] * d for end in (0, 1) for pad, n, d in zip(pads, cut, gaps))
        changed = {**arguments, "kernel": made.constant(array, kernel.name), "padding": padding}
        return made.add(node.operator, changed, [v.name for v in node.outputs], node.name)

    return graph.rewritten(visit)


def _dead(size: int, results: int, taps: int, step: int, gap: int, pad: tuple[int, int]) -> tuple[int, int]:
    """How many taps at the beginning and at the end of a window read padding alone; one tap at least stays, and no more than the padding goes."""
    last = (results - 1) * step - pad[0]  # what the first tap reads for the last result
    alive = [n for n in range(taps) if n * gap + last >= 0 and n * gap - pad[0] < size] or [0]
    return min(alive[0], pad[0] // gap), min(taps - 1 - alive[-1], pad[1] // gap)
