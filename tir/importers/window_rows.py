"""What rows of several sources make of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Value
from .making import LAYOUTS, Making


def largest_of_windows(
    c: Making,
    x: Value,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    up: bool,
    steps: Sequence[int],
) -> tuple[Value, Value]:
    """The largest elements of windows of images ``(N, C, …)``, and their numbers in the image: :func:`places_of_largest`. ``steps`` are how
    far apart neighbours along each axis of an image are."""
    rank = len(kernel)
    made = c.op(f"nn.pool{rank}d", x, kernel, strides, dilation, pads, "max", up, LAYOUTS[rank], False)
    places: list[np.ndarray] = []
    for n, m, k, s, d, pad in zip(x.shape[2:], made.shape[2:], kernel, strides, dilation, pads):
        begin = np.arange(m)[:, None] * s - pad
        inside = np.clip(np.arange(k), -(np.minimum(begin, 0) // d), (n - 1 - begin) // d)
        places.append(np.clip(begin + inside * d, 0, n - 1))
    return made, places_of_largest(c, x, made, places, steps)


def under_windows(
    c: Making, x: Value, counts: Sequence[Any], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int], pads: Sequence[int], value: float,
) -> Value:  # fmt: skip
    """Images ``(N, C, …)`` with padding of ``value`` up to where the last of ``counts`` windows ends."""
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(counts, strides, kernel, dilation)]
    behind = [max(r - n - b, 0) for r, n, b in zip(reach, x.shape[2:], pads)]
    return c.padded(x, [(0, 0), (0, 0), *zip(pads[: len(reach)], behind)], "constant", value)


def places_of_largest(c: Making, x: Value, largest: Value, places: Sequence[np.ndarray], steps: Sequence[int]) -> Value:
    """The numbers in an image of the ``largest`` elements of windows: of the first of equal ones, of the last nan. ``places`` has for each axis those of
    the elements of each window, in order; an element that comes again, in the place of one outside of the image, changes nothing."""
    rank, parts, sizes = len(places), x, [each.shape[1] for each in places]
    for n, each in enumerate(places, 2):
        parts = c.op("take", parts, c.array(each.T.reshape(-1)), n)
    parts = c.op("reshape", parts, (*x.shape[:2], *(n for each in places for n in each.T.shape)))
    parts = c.op("transpose", parts, (0, 1, *range(2, 2 * rank + 2, 2), *range(3, 2 * rank + 2, 2)))
    parts = c.op("reshape", parts, (*x.shape[:2], math.prod(sizes), *largest.shape[2:]))
    taps = c.array(np.arange(math.prod(sizes), dtype="int32").reshape(-1, *[1] * rank))
    is_it = c.op("equal", parts, c.op("expand_dims", largest, 2))
    tap = c.op("min", c.op("where", is_it, taps, math.prod(sizes) - 1), 2)
    if x.dtype.is_float:
        last = c.op("max", c.op("where", c.op("isnan", parts), taps, 0), 2)
        tap = c.op("where", c.op("isnan", largest), last, tap)
    number = c.array(np.zeros(1, "int64"))
    for n, (each, step) in enumerate(zip(places, steps)):
        own = c.op("floor_mod", c.op("floor_divide", tap, math.prod(sizes[n + 1 :])), sizes[n])
        begin = (np.arange(len(each), dtype="int32") * sizes[n]).reshape(-1, *[1] * (rank - 1 - n))
        table = c.array(each.reshape(-1) * step)
        number = c.op("add", number, c.op("take", table, c.op("add", own, c.array(begin)), 0))
    return number
