"""Fourier transforms along the last axis, of tensors that are given as real and imaginary parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import Value
from .making import Making


def transformed(c: Making, parts: Sequence[Value], inverse: bool) -> list[Value]:
    """The parts of the transform of ``parts``, of which the second may be left out; an inverse one is divided by the length."""
    real = parts[0]
    imaginary = parts[1] if len(parts) > 1 else c.op("zeros_like", real)
    return list(c.op("dft", real, imaginary, inverse))


def of_half(c: Making, parts: Sequence[Value], length: int) -> Value:
    """The inverse transform, ``length`` real numbers, of the frequencies up to the half, of which the others are the conjugates."""
    behind = (-1, slice((length - 1) // 2, 0, -1))
    whole = [c.joined([p, c.sliced(p, [behind])], len(p.shape) - 1) for p in parts]
    if len(parts) > 1:
        count = parts[1].shape[-1]
        # of a real signal the first frequency, and the middle one of an even number, have no imaginary part
        signs = np.ones(length, str(parts[1].dtype))
        signs[count:] = -1
        signs[0] = 0
        if length % 2 == 0:
            signs[length // 2] = 0
        whole[1] = c.op("multiply", whole[1], c.array(signs))
    return transformed(c, whole, inverse=True)[0]
