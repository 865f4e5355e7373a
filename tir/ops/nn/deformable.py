"""Deformable convolutions: windows whose elements are displaced by offsets, and read between the elements of the image."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np

from ... import Expr, te
from ...te import Tensor, equate_shapes, error, is_multiple
from ..cases import Case
from ..element_places import clamped, integer
from ..products import ProductType, product_type
from ..promotion import wide
from ..variants import Definition
from . import _references as references
from ._operator import arg, case, of_products
from .checks import numbers
from .convolution import channels_of_group, usual_kernel_layout
from .layouts import Arranged, arranged
from .window_shapes import dilated, pads_of, window_count


def _deformable(
    data: Tensor,
    offset: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    deformable_groups: int = 1,
    groups: int = 1,
    out_dtype: Any = None,
    mask: Tensor | None = None,
    borders: Literal["zeros", "inside"] = "zeros",
    *,
    layout: str,
) -> Tensor:
    image, moves = (arranged(x, layout, "NCHW", f"the {what}") for x, what in ((data, "data"), (offset, "offset")))
    weight = arranged(kernel, usual_kernel_layout(layout), "OIHW", "the kernel")
    steps, gaps = numbers(strides, 2, "strides", 1), numbers(dilation, 2, "dilation", 1)
    sizes = [integer(weight.extent(a), f"the extent {a} of the kernel") for a in "HW"]
    spans = [dilated(k, d) for k, d in zip(sizes, gaps)]
    extents = [image.extent(a) for a in "HW"]
    pads = pads_of(padding, spans, steps, extents)
    out = [window_count(*each, "the kernel") for each in zip(extents, spans, steps, pads)]
    per_part = _channels_of_part(image, deformable_groups)
    _require_moves(moves, [image.extent("N"), 2 * deformable_groups * sizes[0] * sizes[1], *out], "offset")
    factors = None if mask is None else arranged(mask, layout, "NCHW", "the mask")
    if factors is not None:
        _require_moves(factors, [image.extent("N"), deformable_groups * sizes[0] * sizes[1], *out], "mask")
    inner = wide(data.dtype)

    def sample(n: Any, c: Any, kh: Any, kw: Any, y: Any, x: Any) -> Expr:
        which = (c // per_part * sizes[0] + kh) * sizes[1] + kw
        place = []
        for axis, (at, k) in enumerate(((y, kh), (x, kw))):
            move = moves.at({"N": n, "C": which * 2 + axis, "H": y, "W": x}).astype(inner)
            place.append((at * steps[axis] + k * gaps[axis] - pads[axis][0]).astype(inner) + move)
        value = _between(image, n, c, place, borders)
        if factors is not None:
            value = value * factors.at({"N": n, "C": which, "H": y, "W": x}).astype(inner)
        return value.astype(data.dtype)

    shape = (image.extent("N"), image.extent("C"), *sizes, *out)
    samples = te.compute(shape, sample, name="deformed")
    return _summed(samples, image, weight, out, groups, product_type(out_dtype, data, kernel))


def _channels_of_part(image: Arranged, parts: Any) -> Any:
    channels = image.extent("C")
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1 or not is_multiple(channels, parts):
        raise error(
            f"deformable_groups is {parts!r}, and the data have {channels!r} channels", "a divisor of the channels"
        )
    return channels // parts


def _require_moves(given: Arranged, expected: list[Any], what: str) -> None:
    if not equate_shapes([given.extent(a) for a in "NCHW"], expected):
        raise error(
            f"the {what} `{given.tensor.name}` has shape {given.tensor.shape} in layout {given.layout}",
            f"(N, C, H, W) of {tuple(expected)}: one for each element of the kernel, at each place of the result",
        )


def _between(image: Arranged, n: Any, c: Any, place: list[Any], borders: str) -> Expr:
    """The value at a place between elements: the mean of the four around it by their nearness, of which those outside of the
    image are 0; with ``borders`` "inside" 0 before the first element."""
    low = [te.floor(p) for p in place]
    whole = [image.extent(s) for s in "HW"]
    known = [p >= 0.0 for p in place] if borders == "inside" else []
    total: Any = None
    for corner in itertools.product((0, 1), repeat=2):
        at = [value + te.const(d, value.dtype) for value, d in zip(low, corner)]
        near: Any = [(p - a) if d else (a - p) + 1.0 for p, a, d in zip(place, low, corner)]
        inside = te.all(*known, *(c for a, s in zip(at, whole) for c in (a >= 0.0, a < s.astype(a.dtype))))
        rows, columns = (clamped(a.astype("int32"), s) for a, s in zip(at, whole))
        value = image.at({"N": n, "C": c, "H": rows, "W": columns}).astype(at[0].dtype)
        part = te.if_then_else(inside, near[0] * near[1] * value, te.const(0, at[0].dtype))
        total = part if total is None else total + part
    return total


def _summed(
    samples: Tensor, image: Arranged, weight: Arranged, out: list[Any], groups: int, types: ProductType
) -> Tensor:
    per_group, inputs = channels_of_group(image, weight, groups)
    shape = image.layout.shape({"N": image.extent("N"), "C": weight.extent("O"), "H": out[0], "W": out[1]})
    rc = te.reduce_axis((0, inputs), "rc")
    rh, rw = (te.reduce_axis((0, weight.extent(a)), f"r{a.lower()}") for a in "HW")

    def element(*indices: Any) -> Expr:
        place = image.layout.coordinates(indices)
        output = place["C"]
        channel: Any = rc if groups == 1 else output // per_group * inputs + rc
        x = samples(place["N"], channel, rh, rw, place["H"], place["W"])
        w = weight.at({"O": output, "I": rc, "H": rh, "W": rw})
        return types.sum(x.astype(types.inner) * w.astype(types.inner), axis=[rc, rh, rw])

    return te.compute(shape, element, name="deformable_conv2d")


def _reference(
    data: Any, offset: Any, kernel: Any, strides: Any, padding: Any, dilation: Any, deformable_groups: int, groups: int,
    out_dtype: Any, mask: Any, borders: str, layout: str,
) -> Any:  # fmt: skip
    x, moves = references.plain(data, layout, "NCHW"), references.plain(offset, layout, "NCHW")
    w = references.plain(kernel, usual_kernel_layout(layout), "OIHW")
    factors = None if mask is None else references.plain(mask, layout, "NCHW")
    made = _loops(x, moves, w, strides, padding, dilation, deformable_groups, groups, factors, borders)
    return references.laid_out(made, "NCHW", layout)


def _loops(
    x: np.ndarray,
    offset: np.ndarray,
    w: np.ndarray,
    strides: Any,
    padding: Any,
    dilation: Any,
    parts: int,
    groups: int,
    factors: Any,
    borders: str,
) -> np.ndarray:
    sizes, steps, gaps = w.shape[2:], references.each(strides, 2), references.each(dilation, 2)
    spans = [(k - 1) * d + 1 for k, d in zip(sizes, gaps)]
    first = [p[0] for p in references.pads(padding, spans, steps, x.shape[2:])]
    per_part, inputs, outputs = x.shape[1] // parts, w.shape[1], len(w) // groups
    made = np.zeros((len(x), len(w), *offset.shape[2:]))
    for n, o, i, y, z in np.ndindex(len(x), len(w), inputs, *offset.shape[2:]):
        c = o // outputs * inputs + i
        for kh, kw in np.ndindex(*sizes):
            which = (c // per_part * sizes[0] + kh) * sizes[1] + kw
            row = y * steps[0] - first[0] + kh * gaps[0] + offset[n, 2 * which, y, z]
            column = z * steps[1] - first[1] + kw * gaps[1] + offset[n, 2 * which + 1, y, z]
            value = _interpolated(x[n, c], row, column, borders) * (1 if factors is None else factors[n, which, y, z])
            made[n, o, y, z] += value * w[o, i, kh, kw]
    return made


def _interpolated(image: np.ndarray, row: float, column: float, borders: str) -> float:
    least = 0 if borders == "inside" else -1
    if not (least <= row < image.shape[0] and least <= column < image.shape[1]):
        return 0.0
    a, b = int(np.floor(row)), int(np.floor(column))
    corners = np.pad(image, 1)[a + 1 : a + 3, b + 1 : b + 3]
    return float(np.array([a + 1 - row, row - a]) @ corners @ np.array([b + 1 - column, column - b]))


def _operator(layout: str, shapes: str, doc: str, gives: tuple[int, ...], *cases: Case) -> Any:
    return Definition(_deformable, _reference, "nn", "nn").variant(
        f"deformable_conv2d_{layout.lower()}",
        "data offset kernel strides padding dilation deformable_groups groups out_dtype mask borders",
        doc,
        cases,
        gives,
        shapes=shapes,
        tolerance=of_products(24),
        layout=layout,
    )


_OPERATORS = [
    _operator(
        "NCHW",
        "(n, c, h, w), (n, _, y, x), (o, _, _, _), (n, _, y, x) -> (n, o, y, x)",
        """
        :func:`conv2d` of windows whose elements are displaced (Dai et al., "Deformable Convolutional Networks", 2017).

        ``offset`` is ``(N, 2 * G * KH * KW, OH, OW)``: for each of ``G = deformable_groups`` groups of channels and each
        element of the kernel how far down and how far right it is read, at each place of the result. Between elements the
        image is linear, and elements around it are 0; with ``borders="inside"``, so are places before its first element, as
        topi has it. ``mask``, ``(N, G * KH * KW, OH, OW)``, is what is read times (the second version,
        2019). The rest is as in :func:`conv2d`. Raises ``TensorExpressionError`` where shapes do not agree.
        """,
        (1, 2, 4, 5),
        case(arg((1, 2, 4, 5)), arg((1, 18, 4, 5)), arg((2, 2, 3, 3)), 1, 1),
        case(arg((2, 4, 4, 4)), arg((2, 16, 2, 2)), arg((2, 2, 2, 2)), 2, 0, 1, 2, 2),
        case(arg((1, 1, 5, 5)), arg((1, 8, 3, 3)), arg((1, 1, 2, 2)), 1, 0, 2, mask=arg((1, 4, 3, 3))),
        case(arg((1, 1, 3, 3)), arg((1, 8, 2, 2)), arg((1, 1, 2, 2)), borders="inside"),
    ),
    _operator(
        "NHWC",
        "(n, h, w, c), (n, y, x, _), (_, _, _, o), (n, y, x, _) -> (n, y, x, o)",
        """
        :func:`deformable_conv2d_nchw` of ``(N, H, W, C)`` by ``(H, W, C / groups, O)``; ``offset`` has channels last, too.
        """,
        (1, 3, 2, 3),
        case(arg((1, 4, 3, 2)), arg((1, 3, 2, 8)), arg((2, 2, 2, 3))),
    ),
]
__test__ = {f.__name__: f for f in _OPERATORS}  # their docstrings have examples
