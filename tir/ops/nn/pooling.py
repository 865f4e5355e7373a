"""Pooling: the largest element, the mean or the p-norm of windows of an image, in any layout.

Sums are made in float32 for floats of 16 bits and less, in int32 for smaller integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ... import DType, Expr, simplify, te
from ...te import Tensor, error
from ..cases import Case
from ..contract import BY_LAYOUT
from ..element_places import constant, integer
from ..promotion import wide
from ..reduction import maximum_reducer
from ..variants import Definition
from . import _references as references
from ._operator import arg, case
from .checks import numbers
from .layouts import Arranged, Layout, arranged
from .window_shapes import dilated, padded, pads_of, window_count


@dataclass(frozen=True)
class WindowAxis:
    """The windows along one axis of an image of ``extent`` elements.

    ``begins`` and ``ends`` are the places, counted from the first element of the image, that padding reaches to.
    """

    name: str
    extent: Any
    size: int
    stride: int
    dilation: int
    begins: int
    ends: Any
    count: Any

    @property
    def pads(self) -> tuple[Any, Any]:
        """What must be added so that every window is inside."""
        last = (self.count - 1) * self.stride + dilated(self.size, self.dilation)
        have = simplify(self.ends - self.extent)
        known = constant(simplify(last + self.begins - self.extent))
        return -self.begins, have if known is None else max(constant(have) or 0, known)

    def first(self, at: Any) -> Any:
        return at * self.stride + self.begins

    def inside(self, at: Any, low: Any, high: Any) -> Any:
        """How many elements of window ``at`` are in ``low`` to ``high``."""
        first, d = self.first(at), self.dilation
        skipped = te.max(0, (low - first + d - 1) // d)
        taken = te.min(self.size, (high - first + d - 1) // d)
        return te.max(taken - skipped, 0)


def window_axes(
    spatial: str, image: Arranged, kernel: Any, stride: Any, dilation: Any, padding: Any, ceil_mode: bool
) -> list[WindowAxis]:
    count = len(spatial)
    sizes, steps = numbers(kernel, count, "the kernel", 1), numbers(stride, count, "the stride", 1)
    gaps = numbers(dilation, count, "the dilation", 1)
    spans = [dilated(k, d) for k, d in zip(sizes, gaps)]
    extents = [image.extent(a) for a in spatial]
    pads = pads_of(padding, spans, steps, extents)
    made = []
    for a, extent, size, span, step, gap, pad in zip(spatial, extents, sizes, spans, steps, gaps, pads):
        windows = window_count(extent, span, step, pad, "the window")
        if ceil_mode:
            whole = integer(extent, "the extent of an image that is pooled with ceil_mode")
            windows = -(-(whole + sum(pad) - span) // step) + 1
            windows -= (windows - 1) * step >= whole + pad[0]
        made.append(WindowAxis(a, extent, size, step, gap, -pad[0], simplify(extent + pad[1]), windows))
    return made


def sum_type(dtype: DType) -> DType:
    return DType("int32") if dtype.is_int and dtype.bits < 32 else wide(dtype)


def _pool(image: Arranged, axes: Sequence[WindowAxis], kind: str, count_include_pad: bool, name: str) -> Tensor:
    dtype = image.tensor.dtype
    if kind == "max":
        return _over_windows(image, axes, maximum_reducer, name, dtype.ends[0])
    sums = _over_windows(image, axes, lambda v, axis: te.sum(v.astype(sum_type(dtype)), axis=axis), f"{name}_sum")
    return mean_of(sums, image.layout, lambda place: averaged(axes, place, count_include_pad), dtype, name)


def _over_windows(image: Arranged, axes: Sequence[WindowAxis], reduced: Any, name: str, outside: Any = 0) -> Tensor:
    """``reduced(value, axis=…)`` of the elements of each window; those of the padding are ``outside``."""
    source = padded(image, {a.name: a.pads for a in axes}, outside)
    window: list[Any] = [te.reduce_axis((0, a.size), f"r{a.name.lower()}") for a in axes]

    def element(*indices: Any) -> Expr:
        place = image.layout.coordinates(indices)
        at = {a.name: place[a.name] * a.stride + k * a.dilation for a, k in zip(axes, window)}
        return reduced(source.at({**place, **at}), axis=window)

    shape = image.layout.shape({**extents_of(image), **{a.name: a.count for a in axes}})
    return te.compute(shape, element, name=name)


def averaged(axes: Sequence[WindowAxis], place: Any, count_include_pad: bool) -> Any:
    """Of how many elements the mean of the window at ``place`` is."""
    limits = [(a.begins, a.ends) if count_include_pad else (0, a.extent) for a in axes]
    return te.max(_product(a.inside(place[a.name], *ends) for a, ends in zip(axes, limits)), 1)


def mean_of(sums: Tensor, layout: Layout, elements: Callable[[Any], Any], dtype: DType, name: str) -> Tensor:
    """``sums``, each divided by its number of elements, as ``dtype``. Integers are divided towards 0."""

    def element(*indices: Any) -> Expr:
        count = te.const(1, "int32") * elements(layout.coordinates(indices))
        total = sums(*indices)
        if dtype.is_float:
            return (total / count.astype(sums.dtype)).astype(dtype)
        return te.truncdiv(total, count.astype(sums.dtype)).astype(dtype)

    return te.compute(sums.shape, element, name=name)


def _product(values: Any) -> Any:
    made: Any = 1
    for value in values:
        made = made * value
    return made


def extents_of(image: Arranged) -> dict[str, Any]:
    return {a: image.extent(a) for a in image.layout.parts if a.isupper()}


def pooled_image(data: Tensor, layout: str, spatial: str) -> Arranged:
    made = arranged(data, layout, f"NC{spatial}", "the data")
    if any(a in made.layout.factors for a in spatial):
        raise error(f"the layout of a pooled image is {layout!r}", "one dimension for each axis that is pooled")
    return made


def _windowed(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: Literal["max", "avg"],
    ceil_mode: bool = False,
    layout: str = "",
    count_include_pad: bool = True,
    *,
    spatial: str,
) -> Tensor:
    image = pooled_image(data, layout, spatial)
    axes = window_axes(spatial, image, kernel, stride, dilation, padding, ceil_mode)
    return _pool(image, axes, pool_type, count_include_pad, f"{pool_type}_pool")


# ---------------------------------------------------------------- windows, one by one


def _reference(
    data: Any, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool, layout: str,
    count_include_pad: bool, spatial: str,
) -> Any:  # fmt: skip
    image = references.plain(data, layout, f"NC{spatial}")
    made = _pooled(image, kernel, stride, dilation, padding, pool_type, ceil_mode, count_include_pad)
    return references.laid_out(made, f"NC{spatial}", layout, data.shape[-1])


def _pooled(
    x: np.ndarray, kernel: Any, stride: Any, dilation: Any, padding: Any, kind: Any, ceil_mode: bool, include_pad: bool
) -> np.ndarray:
    """``kind`` is "max", "avg", or the p of a norm. Elements are marked as image, padding or beyond, and counted."""
    count = x.ndim - 2
    sizes, strides, gaps = (references.each(v, count) for v in (kernel, stride, dilation))
    spans = [(k - 1) * d + 1 for k, d in zip(sizes, gaps)]
    ends = references.pads(padding, spans, strides, x.shape[2:])
    mark = np.pad(np.full(x.shape[2:], 2), ends, constant_values=1)
    image = np.pad(x, [(0, 0), (0, 0), *ends])
    if ceil_mode:
        more = [(0, -(n - k) % s) for n, k, s in zip(mark.shape, spans, strides)]
        mark, image = np.pad(mark, more), np.pad(image, [(0, 0), (0, 0), *more])
    found = {}
    marks = dict(references.windows(mark, sizes, strides, gaps))
    for at, window in references.windows(image, sizes, strides, gaps):
        if ceil_mode and any(n * s >= extent + e[0] for n, s, extent, e in zip(at, strides, x.shape[2:], ends)):
            continue  # it would begin behind the image
        found[at] = _of_window(window.reshape(*x.shape[:2], math.prod(sizes)), marks[at].ravel(), kind, include_pad)
    return references.gathered(found)


def _of_window(values: np.ndarray, mark: np.ndarray, kind: Any, include_pad: bool) -> np.ndarray:
    inside = values[:, :, mark == 2]
    if kind == "max":
        least = -np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
        return inside.max(axis=-1, initial=least)
    if kind == "avg":
        total = inside.sum(axis=-1, dtype=None if values.dtype.kind == "f" else np.int64)
        mean = total / max(1, (mark >= (1 if include_pad else 2)).sum())
        return mean if values.dtype.kind == "f" else np.trunc(mean).astype(np.int64)
    return (np.abs(inside) ** kind).sum(axis=-1) ** (1 / kind)


def _cases(spatial: str) -> Any:
    channels_last = "N" + spatial + "C"
    shape, count = (1, 2, 7, 6, 5)[: 2 + len(spatial)], len(spatial)
    padding = (0, 1, 1)[:count] + (1, 1, 0)[:count]
    return (
        case(arg(shape), 3, 2, 1, 1, "max"),
        case(arg(shape), 2, 2, 1, 0, "avg"),
        case(arg(shape), 2, 3, 2, padding, "max", True),
        case(arg(shape), 3, 2, 1, padding, "avg", True, "NC" + spatial, False),
        case(arg(shape), 3, 2, 1, padding, "avg", True, "NC" + spatial, True),
        case(arg((1, *shape[2:], 2)), 3, 2, 1, "SAME", "avg", False, channels_last, False),
    )


def _operator(doc: str, spatial: str, gives: tuple[int, ...], *cases: Case) -> Any:
    return Definition(_windowed, _reference, "nn", "nn").variant(
        f"pool{len(spatial)}d", "data kernel stride dilation padding pool_type ceil_mode layout count_include_pad", doc, cases,
        gives, unstated=BY_LAYOUT, spatial=spatial, layout=f"NC{spatial}",
    )  # fmt: skip


_POOLS = [
    _operator(
        "As :func:`pool2d`, of one dimension.",
        "W",
        (1, 2, 4),
        *_cases("W"),
        case(arg(("n", 2, "w")), 3, 2, 1, 1, "avg"),
        case(arg(("n", 2, "w")), 3, 2, 1, "SAME_UPPER", "max"),
        case(arg((2, 1, 2)), 5, 1, 2, 4, "max"),
    ),
    _operator(
        """
        The largest element (``pool_type="max"``) or the mean (``"avg"``) of each window of an image.

        ``data`` is ``(N, C, H, W)`` or in another ``layout``. ``kernel``, ``stride`` and ``dilation`` are one integer, or one
        each; ``padding`` as of :func:`conv2d`. ``ceil_mode`` also counts a last window that is partly beyond the padding, unless
        it begins in it. Padding is never the largest, and counts among the elements of a mean unless
        ``count_include_pad`` is false; what is beyond the padding never does.

        Raises ``TensorExpressionError`` for a window larger than the padded image, and for other attributes.
        """,
        "HW",
        (1, 2, 4, 3),
        *_cases("HW"),
        case(arg((1, 2, 4, 4, 3)), (2, 3), 1, 1, 0, "max", layout="NCHWc"),
        case(arg((1, 2, 4, 5), "int8"), 2, 2, 1, 0, "max"),
        case(arg((1, 2, 4, 5), "int8"), (2, 3), 2, 1, 1, "avg"),
        case(arg((1, 2, 4, 4), "float16"), 2, 2, 1, 0, "avg"),
        case(arg((0, 2, 4, 4)), 2, 2, 1, 0, "max"),
        case(arg((1, 1, 2, 2), values=[[[[math.nan, -math.inf], [-math.inf, -math.inf]]]]), 1, 1, 1, 1, "max"),
        case(arg(("n", 2, "h", "w")), 2, 2, 1, 1, "max"),
    ),
    _operator("As :func:`pool2d`, of three dimensions.", "DHW", (1, 2, 3, 3, 2), *_cases("DHW")[1:4]),
]


# ---------------------------------------------------------------- norms of windows


def _lp_pool(
    data: Tensor,
    kernel: Any,
    stride: Any = 1,
    dilation: Any = 1,
    padding: Any = 0,
    p: float = 2,
    ceil_mode: bool = False,
    layout: str = "",
    *,
    spatial: str,
) -> Tensor:
    image = pooled_image(data, layout, spatial)
    dtype = image.tensor.dtype
    if not p > 0 or not dtype.is_float:
        raise error(f"p is {p!r}, and `{image.tensor.name}` is {dtype}", "p above 0, and a floating type")
    axes = window_axes(spatial, image, kernel, stride, dilation, padding, ceil_mode)
    inner = wide(dtype)

    def power(*i: Any) -> Expr:
        size = te.abs(image.tensor(*i).astype(inner))
        return size * size if p == 2 else size if p == 1 else te.pow(size, te.const(p, inner))

    powers = Arranged(te.compute(image.tensor.shape, power, name="lp_pool_power"), image.layout)
    sums = _over_windows(powers, axes, te.sum, "lp_pool_sum")

    def root(*i: Any) -> Expr:
        total = sums(*i)
        made = te.sqrt(total) if p == 2 else total if p == 1 else te.pow(total, te.const(1 / p, inner))
        return made.astype(dtype)

    return te.compute(sums.shape, root, name="lp_pool")


def _lp_reference(
    data: Any,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    p: float,
    ceil_mode: bool,
    layout: str,
    spatial: str,
) -> Any:
    image = references.plain(data, layout, f"NC{spatial}")
    made = _pooled(image, kernel, stride, dilation, padding, p, ceil_mode, True)
    return references.laid_out(made, f"NC{spatial}", layout)


def _lp_operator(doc: str, spatial: str, gives: tuple[int, ...], *cases: Case) -> Any:
    return Definition(_lp_pool, _lp_reference, "nn", "nn").variant(
        f"lp_pool{len(spatial)}d", "data kernel stride dilation padding p ceil_mode layout", doc, cases, gives, tolerance=64,
        unstated=BY_LAYOUT, spatial=spatial, layout=f"NC{spatial}",
    )  # fmt: skip


_NORMS = [
    _lp_operator(
        "As :func:`lp_pool2d`, of one dimension.",
        "W",
        (2, 3, 4),
        case(arg((2, 3, 7)), 3, 2, 1, 1),
        case(arg((1, 1, 4)), 2, p=3),
    ),
    _lp_operator(
        """
        The p-norm of each window, ``sum(|x| ** p) ** (1 / p)``; the other attributes are those of :func:`pool2d`.

        Raises ``TensorExpressionError`` as :func:`pool2d`, for a ``p`` that is not positive, and for integers.
        """,
        "HW",
        (1, 2, 3, 2),
        case(arg((1, 2, 5, 4)), (2, 3), 2, 1, 1),
        case(arg((1, 4, 5, 2)), 2, 2, p=1, ceil_mode=True, layout="NHWC"),
        case(arg((1, 1, 4, 4), "float16"), 2, 2, p=1.5),
    ),
    _lp_operator(
        "As :func:`lp_pool2d`, of three dimensions.", "DHW", (1, 2, 2, 3, 2), case(arg((1, 2, 3, 4, 3)), 2, 2, 1, 1)
    ),
]
__test__ = {f.__name__: f for f in (*_POOLS, *_NORMS)}  # their docstrings have examples
