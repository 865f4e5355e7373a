"""What rows of several sources make of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from ..graph import Value
from .making import Making, Unsupported

MOST_TAPS = 64  # elements of a window that are compared one by one


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
    """The largest elements of windows of images ``(N, C, …)``, and their numbers in the image, the first of equal ones: the windows' elements are compared
    in turn. ``steps`` are how far apart neighbours along each axis of an image are. Raises :class:`Unsupported` for more than 64 elements in a window."""
    rank = len(kernel)
    if math.prod(kernel) > MOST_TAPS:
        raise Unsupported(f"the places of the largest of {math.prod(kernel)} elements; at most of {MOST_TAPS}")
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank]
    made = c.op(f"nn.pool{rank}d", x, kernel, strides, dilation, pads, "max", up, layout, False)
    counts, sizes = made.shape[2:], x.shape[2:]
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(counts, strides, kernel, dilation)]
    behind = [max(r - n - b, 0) for r, n, b in zip(reach, sizes, pads)]
    least = -math.inf if x.dtype.is_float else x.dtype.min_value
    wide = c.padded(x, [(0, 0), (0, 0), *zip(pads[:rank], behind)], "constant", least)
    best, place = None, None
    for tap in product(*map(range, kernel)):
        begin = [t * d for t, d in zip(tap, dilation)]
        cuts = [slice(b, b + (m - 1) * s + 1, s) for b, m, s in zip(begin, counts, strides)]
        part, number = c.sliced(wide, ((n + 2, cut) for n, cut in enumerate(cuts))), int(np.dot(begin, steps))
        if best is None:
            best, place = part, c.op("full", part.shape, number, "int64")
        else:
            larger = c.op("greater", part, best)
            best, place = c.op("where", larger, part, best), c.op("where", larger, number, place)
    first = np.zeros((1,) * (rank + 2), "int64")
    for n, (m, s, b, step) in enumerate(zip(counts, strides, pads, steps)):
        first = first + ((np.arange(m) * s - b) * step).reshape([-1 if k == n + 2 else 1 for k in range(rank + 2)])
    return made, c.op("add", place, c.array(first))
