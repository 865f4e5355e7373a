"""Windows of convolutions that are larger than what they see, or about as large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..ops.nn.checks import numbers
from ..ops.nn.window_shapes import dilated, pads_of
from ..target import CPUS
from .graph import Builder, Graph, Node, Value, for_targets
from .image_layout import CONVOLUTIONS, TRANSPOSED
from .sizes import is_fixed
from .winograd_pass import BYTE

CHANNELS = 32  # of images and results, from which products are as fast as a convolution
SHARE = 0.6  # of the time of all taps, that those parts that meet no padding may take at most


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


def pixels_apart(graph: Graph) -> Graph:
    """A transposed convolution of images of one pixel by a constant kernel, as generators and decoders begin with, becomes a product: each result is of
    one tap, where the windows of others are padding but for one element.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x, w = b.input("x", (2, 8, 1, 1)), b.constant(np.ones((8, 4, 3, 3), "float32"), "w")
    >>> [(n.operator, n.outputs[0].shape) for n in pixels_apart(b.graph(b.call("nn.conv2d_transpose", x, w))).nodes]
    [('reshape', (2, 8)), ('matmul', (2, 36)), ('reshape', (2, 4, 3, 3))]
    """

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        data, kernel = arguments.get("data"), arguments.get("kernel")
        if node.operator not in TRANSPOSED or kernel not in made.constants or {*data.shape[2:]} != {1}:
            return None
        others = ("data_layout", "kernel_layout", "out_dtype")
        is_plain = arguments.get("groups", 1) == 1 and not any(arguments.get(p) for p in others)
        shape = (data.shape[0], *kernel.shape[1:])
        if not is_plain or kernel.dtype != data.dtype or node.outputs[0].shape != shape or _has_padding(arguments):
            return None
        matrix = made.constant(made.constants[kernel].reshape(kernel.shape[0], -1), kernel.name)
        flat = made.call("reshape", data, data.shape[:2])
        (product,) = made.add("matmul", {"a": flat, "b": matrix}, [node.outputs[0].name], node.name)
        return [made.call("reshape", product, shape)]

    return graph.rewritten(visit)


def _has_padding(arguments: Mapping[str, Any]) -> bool:
    return any(np.any(np.asarray(arguments.get(p, 0)) != 0) for p in ("padding", "output_padding"))


def _dead(size: int, results: int, taps: int, step: int, gap: int, pad: tuple[int, int]) -> tuple[int, int]:
    """How many taps at the beginning and at the end of a window read padding alone; one tap at least stays, and no more than the padding goes."""
    last = (results - 1) * step - pad[0]  # what the first tap reads for the last result
    alive = [n for n in range(taps) if n * gap + last >= 0 and n * gap - pad[0] < size] or [0]
    return min(alive[0], pad[0] // gap), min(taps - 1 - alive[-1], pad[1] // gap)


@for_targets(*CPUS)
def taps_apart(graph: Graph) -> Graph:
    """Convolutions of images with channels last by constant kernels, whose taps mostly meet padding, become sums of a product for each tap, of the
    elements that it reads: those of an atrous convolution whose dilation is about as large as the image.

    A pass for CPUs.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x, w = b.input("x", (1, 40, 64)), b.constant(np.ones((3, 64, 32), "float32"), "w")
    >>> made = taps_apart(b.graph(b.call("nn.conv1d", x, w, 1, 36, 36, data_layout="NWC")))
    >>> [n.outputs[0].shape for n in made.nodes if n.operator == "nn.conv1d"]
    [(1, 40, 32), (1, 4, 32), (1, 4, 32)]
    """

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        kernel, layout = arguments.get("kernel"), CONVOLUTIONS.get(node.operator)
        if layout is None or kernel not in made.constants or arguments.get("data_layout") != layout:
            return None
        if arguments.get("groups", 1) != 1 or any(arguments.get(p) for p in ("kernel_layout", "out_dtype")):
            return None
        data, results = arguments["data"], node.outputs[0].shape[1:-1]
        sizes, taps = data.shape[1:-1], kernel.shape[:-2]
        is_wide = kernel.dtype.is_float and kernel.dtype.bits >= 32  # sums of taps lose nothing
        if not is_fixed(*sizes) or not is_wide or kernel.dtype != data.dtype:
            return None
        steps, gaps = (numbers(arguments.get(p, 1), len(sizes), p) for p in ("strides", "dilation"))
        pads = pads_of(arguments.get("padding", 0), [dilated(k, d) for k, d in zip(taps, gaps)], steps, sizes)
        axes = [
            [_Tap(n * gap - before, *each) for n in range(count)]
            for count, gap, (before, _), *each in zip(taps, gaps, pads, steps, sizes, results)
        ]
        return [_summed(made, node.operator, data, kernel, axes)] if _pays(axes, kernel) else None

    return graph.rewritten(visit)


@dataclass(frozen=True)
class _Tap:
    """What a tap reads along an axis: the element ``first`` for the first of the ``results``, and others by ``step``, of an image of ``size``."""

    first: int
    step: int
    size: int
    results: int

    @property
    def seen(self) -> range:
        """The results for which it reads an element of the image, not padding."""
        last = (self.size - 1 - self.first) // self.step
        return range(max(0, -(self.first // self.step)), min(self.results, last + 1))

    @property
    def read(self) -> range:
        """The elements that it reads."""
        begin = self.first + self.seen.start * self.step
        return range(begin, begin + len(self.seen) * self.step, self.step)


def _pays(axes: Sequence[Sequence[_Tap]], kernel: Value) -> bool:
    """Whether products of taps should take less time: by their multiply-adds, or by the weights that come from memory, of channels that are enough
    for products. The sums begin with one of a tap that meets no padding."""
    results, whole = prod(taps[0].results for taps in axes), [max(len(t.seen) for t in taps) for taps in axes]
    if prod(whole) < results or min(kernel.shape[-2:]) < CHANNELS:
        return False
    least = BYTE * kernel.dtype.bytes
    times = [max(prod(len(tap.seen) for tap in taps), least) for taps in product(*axes)]
    return sum(times) < SHARE * len(times) * max(results, least)


def _summed(made: Builder, operator: str, data: Value, kernel: Value, axes: Sequence[Sequence[_Tap]]) -> Value:
    """The sum of the taps at each axis in turn, those of the next one first, so that a part is no larger than the results that it is for."""
    sizes, rank = data.shape[1:-1], len(data.shape)

    def summed(chosen: tuple[int, ...]) -> Value:
        at = len(chosen)
        if at == len(axes):
            return one(chosen)
        taps = axes[at]
        whole = max(range(len(taps)), key=lambda n: len(taps[n].seen))
        total = summed((*chosen, whole))
        for n, tap in enumerate(taps):
            if n != whole and tap.seen:
                before, after = [0] * rank, [0] * rank
                before[at + 1], after[at + 1] = tap.seen.start, tap.results - tap.seen.stop
                total = made.call("add", total, made.call("nn.pad", summed((*chosen, n)), before, after))
        return total

    def one(chosen: tuple[int, ...]) -> Value:
        read, part = [taps[n].read for taps, n in zip(axes, chosen)], data
        if read != [range(n) for n in sizes]:
            begin, end, step = zip(*((r.start, r[-1] + 1, r.step) for r in read))
            part = made.call("strided_slice", data, begin, end, step, tuple(range(1, rank - 1)))
        weights = np.ascontiguousarray(made.constants[kernel][tuple(slice(n, n + 1) for n in chosen)])
        return made.call(operator, part, made.constant(weights, kernel.name), data_layout=CONVOLUTIONS[operator])

    return summed(())
