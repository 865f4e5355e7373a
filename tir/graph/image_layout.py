"""The layout of images: channels last, where convolutions prefer it, and few transpositions stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import TirError
from ..node import frozendict
from ..ops import registry
from ..te import Pattern
from .fusion import is_pointwise, pattern_of, view_of
from .graph import Builder, Graph, Node, Value, mapped, results, values_in
from .sizes import Extent, is_fixed, usual

CONVOLUTIONS = {"nn.conv1d": "NWC", "nn.conv2d": "NHWC", "nn.conv3d": "NDHWC"}
TRANSPOSED = {"nn.conv1d_transpose": "NWC", "nn.conv2d_transpose": "NHWC", "nn.conv3d_transpose": "NDHWC"}
AXES = {
    "concatenate": ("axis",),
    "nn.batch_norm": ("axis",),
    "nn.group_norm": ("channel_axis", "axes"),
    "nn.instance_norm": ("channel_axis", "axis"),
    "nn.prelu": ("axis",),
    "strided_slice": ("axes",),
}  # the parameters that have axes of the data
CHANNELS = 16  # a multiple of these fills whole vectors
MOVED = 0.25  # of the elements of convolutions that may be transposed, for a gain


def channels_last(graph: Graph) -> Graph:
    """Convolutions of constant kernels, and what stands between them, on images whose channels are last in memory.

    There a pixel's channels are vectors, no image is rearranged for products, and panels of the kernel are made once. Pools,
    elementwise operators, reductions, slices and concatenations follow; a transposition stays at the borders of these. Where more
    would stay than a part of what convolutions read and write, transposed convolutions follow too, which take longer so; the
    graph is left as it is if that does not help.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x, w = b.input("x", (1, 3, 8, 8)), b.constant(np.zeros((16, 3, 3, 3), "float32"), "w")
    >>> y = b.call("mean", b.call("nn.relu", b.call("nn.conv2d", x, w)), (2, 3))
    >>> [node.operator for node in channels_last(b.graph(y)).nodes]
    ['transpose', 'nn.conv2d', 'nn.relu', 'mean']
    """
    images = _Images(), _Images(TRANSPOSED)
    return next(filter(None, (_gaining(graph, graph.rewritten(each.visit)) for each in images)), graph)


def _gaining(graph: Graph, made: Graph) -> Graph | None:
    """What a graph was made, if few transpositions stay for what convolutions gain."""
    kernels = [n for n in made.nodes if n.arguments.get("data_layout") in CONVOLUTIONS.values()]
    copied = [n for n in made.nodes if n.operator == "transpose" and view_of(n) is None]
    already = [n for n in graph.nodes if n.operator == "transpose" and view_of(n) is None]
    gained = sum(usual(n.arguments["data"].elements + n.outputs[0].elements) for n in kernels)
    return made if _elements(copied) - _elements(already) <= MOVED * gained else None


def _elements(nodes: Sequence[Node]) -> int:
    return sum(usual(v.elements) for n in nodes for v in n.outputs)


def _last(rank: int) -> tuple[int, ...]:
    """The axes of an image in the order in which its channels are last."""
    return (0, *range(2, rank), 1)


def _first(rank: int) -> tuple[int, ...]:
    """The axes of an image whose channels are last in the usual order."""
    return (0, rank - 1, *range(1, rank - 1))


class _Images:
    """What is rewritten: ``last`` has, for an image of the new graph, the same with channels last. Transposed convolutions with
    a layout in ``transposed`` follow."""

    def __init__(self, transposed: Mapping[str, str] = frozendict()) -> None:
        self._last: dict[Value, Value] = {}
        self._layouts = transposed

    def visit(self, made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        changed = self._changed(made, node, arguments)
        if changed is None or (shapes := _shapes(node.operator, changed)) is None:
            return None
        expected = [_permuted(v.shape, len(v.shape) == _rank(node)) for v in node.outputs]
        if shapes != [(shape, v.dtype) for shape, v in zip(expected, node.outputs)]:
            return None
        outputs = made.add(node.operator, changed, [v.name for v in node.outputs], node.name)
        return [self._plain(made, v) if len(v.shape) == _rank(node) else v for v in outputs]

    def _plain(self, made: Builder, value: Value) -> Value:
        """An image in the usual order; left out where nothing reads it."""
        (plain,) = made.add("transpose", {"x": value, "axes": _first(len(value.shape))}, [f"{value.name}_first"])
        self._last[plain] = value
        return plain

    def _changed(self, made: Builder, node: Node, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The arguments with channels last; None for a node that does not follow."""
        if node.operator in CONVOLUTIONS:
            return self._convolution(made, node, arguments)
        images = [v for v in values_in(arguments.values()) if v in self._last]
        if not images or len({len(v.shape) for v in images}) > 1:
            return None
        rank = len(images[0].shape)
        if node.operator in self._layouts:
            return self._transposed_convolution(node, arguments)
        if "layout" in registry.find(node.operator).signature.parameters:
            return self._in_layout(arguments, rank)
        if names := _axes(node, arguments):
            defaults = {n: registry.find(node.operator).signature.parameters[n].default for n in names}
            return self._along_axes({**defaults, **arguments}, names, rank)
        return self._elementwise(made, node, arguments, rank) if is_pointwise(node) else None

    def _convolution(self, made: Builder, node: Node, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        data, kernel = arguments["data"], arguments["kernel"]
        if kernel not in made.constants or any(arguments.get(p) for p in ("data_layout", "kernel_layout")):
            return None
        array = np.moveaxis(made.constants[kernel], (0, 1), (-1, -2))
        return {
            **arguments,
            "data": self._last.get(data) or _transposed(made, data, _last(len(data.shape))),
            "kernel": made.constant(np.require(array, requirements="C"), kernel.name),
            "data_layout": CONVOLUTIONS[node.operator],
        }

    def _transposed_convolution(self, node: Node, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        data, channels = arguments["data"], node.outputs[0].shape[1]
        laid_out = any(arguments.get(p) for p in ("data_layout", "kernel_layout"))
        if laid_out or data not in self._last or not is_fixed(channels) or channels % CHANNELS:
            return None
        return {**arguments, "data": self._last[data], "data_layout": self._layouts[node.operator]}

    def _in_layout(self, arguments: Mapping[str, Any], rank: int) -> dict[str, Any] | None:
        """Of an operator that takes one image, and its layout."""
        usual = {3: "NCW", 4: "NCHW", 5: "NCDHW"}.get(rank)
        if len(list(values_in(arguments.values()))) != 1 or usual is None or arguments.get("layout", usual) != usual:
            return None
        return {**{k: mapped(a, self._last.__getitem__) for k, a in arguments.items()}, "layout": f"N{usual[2:]}C"}

    def _along_axes(self, arguments: Mapping[str, Any], names: Sequence[str], rank: int) -> dict[str, Any] | None:
        """Of an operator with axes of its images in parameters, and all else of one axis."""
        if any(v not in self._last and len(v.shape) > 1 for v in values_in(arguments.values())):
            return None
        if any(arguments[name] is None for name in names):
            return None
        moved = {name: mapped(arguments[name], lambda a: _last(rank).index(a % rank), int) for name in names}
        return {**{k: mapped(a, lambda v: self._last.get(v, v)) for k, a in arguments.items()}, **moved}

    def _elementwise(self, made: Builder, node: Node, arguments: Mapping[str, Any], rank: int) -> dict[str, Any] | None:
        """Of an operator whose operands are aligned at their last axes, as in NumPy."""
        if any(p in registry.find(node.operator).signature.parameters for p in ("axis", "axes", "shape", "newshape")):
            return None
        size = max(usual(v.elements) for v in node.outputs)
        others = [v for v in values_in(arguments.values()) if v not in self._last and v.shape]
        if any(len(v.shape) > rank or (v not in made.constants and 2 * usual(v.elements) > size) for v in others):
            return None

        def turned(value: Value) -> Value:
            if value in self._last or not value.shape:
                return self._last.get(value, value)
            shape = (*[1] * (rank - len(value.shape)), *value.shape)
            if value in made.constants:
                array = made.constants[value].reshape(shape).transpose(_last(rank))
                return made.constant(np.require(array, requirements="C"), value.name)
            wide = value if value.shape == shape else made.call("reshape", value, shape)
            return _transposed(made, wide, _last(rank))

        return {k: mapped(a, turned) for k, a in arguments.items()}


def _rank(node: Node) -> int:
    return max(len(v.shape) for v in node.inputs)


def _permuted(shape: tuple[Extent, ...], is_image: bool) -> tuple[Extent, ...]:
    return tuple(shape[n] for n in _last(len(shape))) if is_image else shape


def _transposed(made: Builder, value: Value, axes: tuple[int, ...]) -> Value:
    (turned,) = made.add("transpose", {"x": value, "axes": axes}, [f"{value.name}_last"])
    return turned


def _axes(node: Node, arguments: Mapping[str, Any]) -> Sequence[str]:
    """The parameters that have axes of the images: of reductions that keep the order of the axes left, and in ``AXES``."""
    parameters = registry.find(node.operator).signature.parameters
    if {"axis", "keepdims"} <= parameters.keys() and pattern_of(node) is Pattern.REDUCTION:
        rank = len(node.inputs[0].shape)
        given = arguments.get("axis")
        several = given if isinstance(given, (list, tuple)) else () if given is None else (given,)
        spatial = set(range(2, rank)) <= {int(a) % rank for a in several}
        return ("axis",) if arguments.get("keepdims") or spatial else ()
    return AXES.get(node.operator, ())


def _shapes(operator: str, arguments: Mapping[str, Any]) -> list[tuple[tuple[Extent, ...], Any]] | None:
    try:
        return list(results(operator, arguments))
    except TirError:
        return None
