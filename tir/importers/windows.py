"""What rows of several sources make of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ..graph import Value
from .making import Making, Unsupported

MOST_TAPS = 32  # elements of a window that are compared one by one: kernels of more take minutes to compile


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
    """The largest elements of windows of images ``(N, C, …)``, and their numbers in the image, the first of equal ones and the last nan: the windows'
    elements are compared in turn. ``steps`` are how far apart neighbours along each axis of an image are. Raises :class:`Unsupported` for more elements in a window."""
    rank = len(kernel)
    if math.prod(kernel) > MOST_TAPS:
        raise Unsupported(f"the places of the largest of {math.prod(kernel)} elements; at most of {MOST_TAPS}")
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank]
    made = c.op(f"nn.pool{rank}d", x, kernel, strides, dilation, pads, "max", up, layout, False)
    counts = made.shape[2:]
    least = -math.inf if x.dtype.is_float else x.dtype.min_value
    wide = under_windows(c, x, counts, kernel, strides, dilation, pads, least)
    taps: list[tuple[Value, Any]] = []
    for tap in product(*map(range, kernel)):
        begin = [t * d for t, d in zip(tap, dilation)]
        cuts = [slice(b, b + (m - 1) * s + 1, s) for b, m, s in zip(begin, counts, strides)]
        taps.append((c.sliced(wide, ((n + 2, cut) for n, cut in enumerate(cuts))), int(np.dot(begin, steps))))
    begins = [np.arange(m) * s - b for m, s, b in zip(counts, strides, pads)]
    inside = [-(np.minimum(b, 0) // d) * d for b, d in zip(begins, dilation)]
    place = place_of_largest(c, made, taps, numbers_of(inside, steps))
    return made, c.op("add", place, c.array(numbers_of(begins, steps)))


def under_windows(
    c: Making, x: Value, counts: Sequence[Any], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int], pads: Sequence[int], value: float,
) -> Value:  # fmt: skip
    """Images ``(N, C, …)`` with padding of ``value`` up to where the last of ``counts`` windows ends."""
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(counts, strides, kernel, dilation)]
    behind = [max(r - n - b, 0) for r, n, b in zip(reach, x.shape[2:], pads)]
    return c.padded(x, [(0, 0), (0, 0), *zip(pads[: len(reach)], behind)], "constant", value)


def numbers_of(places: Sequence[np.ndarray], steps: Sequence[int]) -> np.ndarray:
    """The numbers in an image, ``(1, 1, …)``, of elements by their places along each axis."""
    zero = np.zeros(1, "int64")
    return np.asarray(sum(np.ix_(zero, zero, *(p * s for p, s in zip(places, steps)))))


def place_of_largest(c: Making, largest: Value, taps: Sequence[tuple[Value, Any]], first: np.ndarray) -> Value:
    """The number of the element that is the ``largest`` of ``taps``, which have a number each: of the first of equal ones, of the
    last nan, and ``first`` where all are the least of their type."""
    place = c.array(first)
    least = -math.inf if largest.dtype.is_float else largest.dtype.min_value
    for part, number in reversed(taps):
        place = c.op("where", c.op("equal", part, largest), number, place)
    place = c.op("where", c.op("equal", largest, least), c.array(first), place)
    for part, number in taps if largest.dtype.is_float else ():
        place = c.op("where", c.op("isnan", part), number, place)
    return place
