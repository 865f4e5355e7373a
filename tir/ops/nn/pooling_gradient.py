"""The gradient of pooling: what each element of an image has to do with each result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ... import Expr, all_of, cast, const, te
from ...te import Tensor
from ..contract import BY_LAYOUT
from ..element_places import require_same_dtype
from ..positions import position_of_greatest
from ..promotion import wide
from . import _references as references
from ._operator import arg, case, nn_operator
from .checks import require_float, require_shape
from .layouts import Arranged
from .pooling import WindowAxis, averaged, extents_of, pooled_image, window_axes
from .window_shapes import padded


def _reference(
    grads: Any, data: Any, kernel: Any, stride: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
    count_include_pad: bool = True, layout: str = "NCHW",
) -> Any:  # fmt: skip
    image, given = (references.plain(d, layout, "NCHW") for d in (data, grads))
    ends = references.pads(padding, kernel, stride, image.shape[2:])
    made = np.zeros(image.shape)
    for at in np.ndindex(*given.shape):
        first = [n * s - e[0] for n, s, e in zip(at[2:], stride, ends)]
        box = [(max(f, 0), min(f + k, n)) for f, k, n in zip(first, kernel, image.shape[2:])]
        part = (*at[:2], *(slice(*b) for b in box))
        if pool_type == "max":
            place = np.unravel_index(np.argmax(image[part]), image[part].shape)
            made[(*at[:2], *(p + b[0] for p, b in zip(place, box)))] += given[at]
        else:
            whole = [min(f + k, n + e[1]) - f for f, k, n, e in zip(first, kernel, image.shape[2:], ends)]
            inside = [b - a for a, b in box]
            made[part] += given[at] / max(np.prod(whole if count_include_pad else inside), 1)
    return references.laid_out(made, "NCHW", layout, data.shape[-1])


@nn_operator(
    gives=(1, 2, 7, 8), unstated=BY_LAYOUT,
    reference=_reference,
    cases=(
        case(arg((1, 2, 3, 4)), arg((1, 2, 7, 8), "float32", "distinct"), (2, 2), (2, 2), (0, 0, 0, 0), "max"),
        case(arg((1, 2, 4, 4)), arg((1, 2, 7, 8), "float32", "distinct"), (3, 3), (2, 2), (1, 1, 1, 1), "max"),
        case(arg((1, 2, 4, 4)), arg((1, 2, 7, 8)), (3, 3), (2, 2), (1, 1, 1, 1), "avg"),
        case(arg((1, 2, 4, 4)), arg((1, 2, 7, 8)), (3, 3), (2, 2), (1, 1, 1, 1), "avg", False, False),
        case(arg((1, 2, 6, 5)), arg((1, 2, 7, 8)), (3, 2), (1, 2), (0, 1, 1, 0), "avg", True),
        case(arg((1, 3, 4, 2), "float64"), arg((1, 7, 8, 2), "float64"), (3, 2), (2, 2), (0, 0, 0, 0), "max", layout="NHWC"),
        case(arg((1, 1, 3, 3, 4)), arg((1, 1, 5, 5, 4)), (2, 2), (2, 2), (0, 0, 1, 1), "avg", layout="NCHW4c"),
    ),
)  # fmt: skip
def pool_grad(
    grads: Tensor,
    data: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    pool_type: Literal["max", "avg"],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
) -> Tensor:
    """The gradient of a function by the image ``data``, given ``grads``, that by what :func:`pool2d` makes of it.

    That of a maximum goes to the first greatest element of its window, that of a mean to all, in equal parts.
    """
    require_float(data, "an image")
    require_same_dtype(data, grads, "the gradient")
    image = pooled_image(data, layout, "HW")
    axes = window_axes("HW", image, kernel, stride, 1, padding, ceil_mode)
    results = image.layout.shape({**extents_of(image), **{a.name: a.count for a in axes}})
    given = Arranged(require_shape(grads, results, "the gradient"), image.layout)
    inner = wide(data.dtype)
    greatest = Arranged(_greatest(image, axes, results), image.layout) if pool_type == "max" else None

    def share(place: Any, within: Sequence[Any]) -> Expr:
        """What the element ``within`` the window at ``place`` gets of its gradient."""
        if greatest is not None:
            is_it = greatest.at(place) == within[0] * axes[1].size + within[1]
            return te.if_then_else(is_it, given.at(place).astype(inner), const(0, inner))
        return given.at(place).astype(inner) / cast(inner, averaged(axes, place, count_include_pad))

    def element(*indices: Any) -> Expr:
        place = image.layout.coordinates(indices)
        # the windows that an element is in: the last that begins before it, and some before that one
        back = [te.reduce_axis((0, -(-a.size // a.stride)), f"w{a.name.lower()}") for a in axes]
        at = {a.name: (place[a.name] - a.begins) // a.stride - k for a, k in zip(axes, back)}
        within = [place[a.name] - a.first(at[a.name]) for a in axes]
        inside = [c for a, w in zip(axes, within) for c in (at[a.name] >= 0, at[a.name] < a.count, w < a.size)]
        value = te.if_then_else(all_of(inside), share({**place, **at}, within), const(0, inner))
        return te.sum(value, axis=back).astype(data.dtype)

    return te.compute(data.shape, element, name="pool_grad")


def _greatest(image: Arranged, axes: Sequence[WindowAxis], shape: Sequence[Any]) -> Tensor:
    """The number, row by row, of the first greatest element of each window."""
    source = padded(image, {a.name: a.pads for a in axes}, image.tensor.dtype.ends[0])

    def element(*indices: Any) -> Any:
        place, window = image.layout.coordinates(indices), [te.reduce_axis((0, a.size), "k") for a in axes]
        at = {a.name: place[a.name] * a.stride + k for a, k in zip(axes, window)}
        number = window[0].var * axes[1].size + window[1].var
        return position_of_greatest((number, source.at({**place, **at})), axis=window)

    return te.compute(shape, element, name="pool_greatest")[0]
