"""The correlation of two images over displacements, as networks of optical flow take it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import Expr, cast, simplify, te
from ...te import Tensor, error
from ..element_places import integer
from ..padding import nn_pad
from ..products import product_type
from . import _references as references
from ._operator import arg, case, nn_operator, of_products
from .window_shapes import pads_of


def _reference(
    data1: Any, data2: Any, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: Any, is_multiply: Any
) -> Any:  # fmt: skip
    top, left, bottom, right = references.each(padding, 4)
    a, b = (np.pad(d, ((0, 0), (0, 0), (top, bottom), (left, right))) for d in (data1, data2))
    border, radius = max_displacement + (kernel_size - 1) // 2, max_displacement // stride2
    high, wide = (-(-(n - 2 * border) // stride1) for n in a.shape[2:])
    steps = [n * stride2 for n in range(-radius, radius + 1)]
    made = np.zeros((len(a), len(steps) ** 2, high, wide))
    for q, y, x in np.ndindex(*made.shape[1:]):
        dy, dx = steps[q // len(steps)], steps[q % len(steps)]
        v, u = y * stride1 + max_displacement, x * stride1 + max_displacement
        one = a[:, :, v : v + kernel_size, u : u + kernel_size]
        other = b[:, :, v + dy : v + dy + kernel_size, u + dx : u + dx + kernel_size]
        made[:, q, y, x] = (one * other if is_multiply else np.abs(one - other)).mean((1, 2, 3))
    return made


@nn_operator(
    gives=(2, 25, 7, 8),
    shapes="(n, c, h, w) float, (n, c, h, w) -> (n, _, _, _)",
    reference=_reference,
    cases=(
        case(arg((2, 3, 7, 8)), arg((2, 3, 7, 8)), 1, 2, 1, 1, 2, True),
        case(arg((1, 2, 9, 8)), arg((1, 2, 9, 8)), 3, 2, 1, 2, (3, 2), True),
        case(arg((1, 2, 7, 8)), arg((1, 2, 7, 8)), 3, 4, 2, 2, 4, False),
        case(arg((1, 1, 4, 5), "float64"), arg((1, 1, 4, 5), "float64"), 1, 1, 1, 1, (1, 2, 0, 1), True),
    ),
    tolerance=of_products(27),
)
def correlation_nchw(
    data1: Tensor,
    data2: Tensor,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool,
) -> Tensor:
    """How windows of one image (NCHW) resemble those of another that are displaced: channel ``i * count + j`` of the result
    is of windows ``i - count // 2`` and ``j - count // 2`` strides further down and to the right.

    A result is the mean over channels and the window, ``kernel_size`` (odd) square, of products, or without ``is_multiply``
    of absolute differences. Windows are ``stride1`` apart, displacements ``stride2``, and at most ``max_displacement``
    (``count`` is ``2 * (max_displacement // stride2) + 1``). Zeros are around both images: ``padding`` elements on each side,
    or (height, width), or (top, left, bottom, right).
    """
    size, far = integer(kernel_size, "the size of a window"), integer(max_displacement, "the greatest displacement")
    step, apart = integer(stride1, "the stride of windows"), integer(stride2, "the stride of displacements")
    if size < 1 or size % 2 == 0 or min(step, apart) < 1 or far < 0:
        raise error(f"windows of {size}, {step} apart, displaced by {apart} to {far}", "odd windows, strides from 1 on")
    (top, bottom), (left, right) = pads_of(padding, [size] * 2, [1] * 2, data1.shape[2:])
    around = ((0, 0, top, left), (0, 0, bottom, right))
    first, second = (nn_pad(d, *around, name=f"padded_{d.name}") for d in (data1, data2))
    border, radius = far + size // 2, far // apart
    count = 2 * radius + 1
    high, wide = (simplify((n - 2 * border + step - 1) // step) for n in first.shape[2:])
    channel = te.reduce_axis((0, data1.shape[1]), "c")
    ky, kx = te.reduce_axis((0, size), "ky"), te.reduce_axis((0, size), "kx")
    types = product_type(None, data1, data2)
    elements = cast(types.inner, data1.shape[1] * (size * size))

    def element(n: Any, q: Any, y: Any, x: Any) -> Expr:
        v, u = y * step + far + ky, x * step + far + kx
        one = first(n, channel, v, u).astype(types.inner)
        moved = (v + (q // count - radius) * apart, u + (q % count - radius) * apart)
        other = second(n, channel, *moved).astype(types.inner)
        return te.sum(one * other if is_multiply else te.abs(one - other), axis=[channel, ky, kx])

    total = te.compute((data1.shape[0], count * count, high, wide), element, name="correlation_sum")
    return te.compute(total.shape, lambda *i: (total(*i) / elements).astype(types.result), name="correlation")
