"""What images, kernels and windows are in NumPy: plain loops, for the references of operators."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def plain(x: np.ndarray, layout: str, order: str) -> np.ndarray:
    """An array with whole axes in ``order``."""
    parts = re.findall(r"[A-Za-z]", layout)
    positions = [[parts.index(p) for p in (axis, axis.lower()) if p in parts] for axis in order]
    moved = x.transpose([p for group in positions for p in group])
    return moved.reshape([int(np.prod([x.shape[p] for p in group])) for group in positions])


def laid_out(x: np.ndarray, order: str, layout: str, factor: int = 1) -> np.ndarray:
    """An array of whole axes in ``order`` as ``layout`` has it; its one small letter is in groups of ``factor``."""
    parts = re.findall(r"[A-Za-z]", layout)
    shape, names = [], []
    for axis, extent in zip(order, x.shape):
        is_split = axis.lower() in parts
        shape += [extent // factor, factor] if is_split else [extent]
        names += [axis, axis.lower()] if is_split else [axis]
    return x.reshape(shape).transpose([names.index(p) for p in parts])


def each(value: Any, count: int) -> list[Any]:
    """``value`` for each of ``count`` dimensions."""
    return list(value) * (count // len(value)) if isinstance(value, (list, tuple)) else [value] * count


def pads(padding: Any, sizes: Sequence[int], strides: Sequence[int], extents: Sequence[int]) -> list[tuple[int, int]]:
    """Of each dimension, what is added before and after it."""
    count = len(sizes)
    if isinstance(padding, str):
        made = []
        for size, stride, extent in zip(sizes, strides, extents):
            step = 1 if padding == "SAME" else stride
            total = max((int(np.ceil(extent / step)) - 1) * step + size - extent, 0) * (padding != "VALID")
            before = total // 2 if padding == "SAME_UPPER" else int(np.ceil(total / 2))
            made.append((before, total - before))
        return made
    both = each(padding, 2 * count)
    return list(zip(both[:count], both[count:]))


def windows(
    x: np.ndarray, sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Every window over the last dimensions of ``x``: where it goes in the result, and what is in it."""
    whole = x.shape[x.ndim - len(sizes) :]
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(whole, sizes, strides, dilation)]
    for at in itertools.product(*map(range, counts)):
        cut = [slice(a * s, a * s + (k - 1) * d + 1, d) for a, k, s, d in zip(at, sizes, strides, dilation)]
        yield at, x[(..., *cut)]


def convolved(x: np.ndarray, w: np.ndarray, strides: Any, padding: Any, dilation: Any, groups: int) -> np.ndarray:
    """``x`` is (N, C, …), ``w`` (O, C / groups, …)."""
    kind = np.float64 if x.dtype.kind == "f" else np.int64
    x, w = x.astype(kind), w.astype(kind)
    sizes, count = w.shape[2:], w.ndim - 2
    strides, dilation = each(strides, count), each(dilation, count)
    spans = [(k - 1) * d + 1 for k, d in zip(sizes, dilation)]
    x = np.pad(x, [(0, 0), (0, 0), *pads(padding, spans, strides, x.shape[2:])])
    inputs, outputs = w.shape[1], w.shape[0] // groups
    found = {}
    for at, window in windows(x, sizes, strides, dilation):
        parts = []
        for g in range(groups):
            x_part, w_part = window[:, g * inputs : (g + 1) * inputs], w[g * outputs : (g + 1) * outputs]
            parts.append(x_part.reshape(len(x), w_part[0].size) @ w_part.reshape(outputs, w_part[0].size).T)
        found[at] = np.concatenate(parts, axis=1)
    return gathered(found)


def gathered(found: dict[tuple[int, ...], np.ndarray]) -> np.ndarray:
    """An array of (N, C, …) from arrays of (N, C) at each place."""
    last = max(found)
    made = np.empty((*next(iter(found.values())).shape, *(n + 1 for n in last)))
    made = made.astype(next(iter(found.values())).dtype)
    for at, value in found.items():
        made[(..., *at)] = value
    return made
