"""Rows of ONNX operators on signals: Fourier transforms, of windows too, and the weights of mel filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .making import Unsupported, axis_of
from .onnx_table import Call, dtype_of, row
from .spectra import of_half, transformed


@row("DFT", 17, 20)
def _dft(c: Call) -> Any:
    """A transform of ``(…, 1)`` real or ``(…, 2)`` complex numbers along an axis; with ``onesided`` one half of the frequencies."""
    x, inverse, half = c[0], bool(c.attribute("inverse", 0)), bool(c.attribute("onesided", 0))
    rank = len(x.shape)
    said = [c.attribute("axis", 1)] if c.version < 20 else c.integers(2, "axis") or [-2]
    axis = axis_of(said[0], rank)
    if axis == rank - 1 or x.shape[-1] not in (1, 2):
        raise Unsupported(f"axis {axis} of {list(x.shape)}, whose last axis is that of real and imaginary parts")
    length = (c.integers(1, "length") or [2 * (x.shape[axis] - 1) if inverse and half else x.shape[axis]])[0]
    if length < 1:
        raise Unsupported(f"a transform of {length} elements")
    turned = c.op("moveaxis", x, axis, -2)
    known = length // 2 + 1 if inverse and half else length
    resized = c.padded(turned, [*[(0, 0)] * (rank - 2), (0, known - turned.shape[-2]), (0, 0)], "constant", 0)
    parts = [c.one_of(resized, rank - 1, n) for n in range(x.shape[-1])]
    if inverse and half:
        made = c.op("expand_dims", of_half(c, parts, length), rank - 1)
    else:
        made = c.op("stack", transformed(c, parts, inverse), -1)
    if half and not inverse:
        made = c.sliced(made, [(-2, slice(0, length // 2 + 1))])
    return c.op("moveaxis", made, -2, axis)


@row("STFT", 17)
def _stft(c: Call) -> Any:
    """Transforms of windows ``(batch, windows, frequencies, 2)``, each ``frame_step`` elements after the one before."""
    x, window = c[0], c.get(2)
    (step,) = c.integers(1, "step") or [0]
    length = (c.integers(3, "length") or [window.elements if window is not None else x.shape[1]])[0]
    if step < 1 or not 0 < length <= x.shape[1] or len(x.shape) != 3:
        raise Unsupported(f"windows of {length} elements, one each {step}, of {list(x.shape)}")
    count = 1 + (x.shape[1] - length) // step
    places = np.arange(count)[:, None] * step + np.arange(length)
    c.room(*places.shape)
    parts = []
    for n in range(x.shape[2]):
        frames = c.op("take", c.one_of(x, 2, n), c.array(places), 1)
        parts.append(frames if window is None else c.op("multiply", frames, window))
    made = c.op("stack", transformed(c, parts, inverse=False), -1)
    return c.sliced(made, [(-2, slice(0, length // 2 + 1))]) if c.attribute("onesided", 1) else made


@row("MelWeightMatrix", 17)
def _mel(c: Call) -> Any:
    """Triangles over frequencies ``(bins, filters)`` whose corners are at equal distances in mel."""
    names = ("number of filters", "length of the transform", "rate of samples", "lower edge", "upper edge")
    found = [c.constant(n, what) for n, what in enumerate(names)]
    filters, length, rate, low, high = (0.0 if f is None else float(f.reshape(-1)[0]) for f in found)
    count, bins = int(filters), int(length) // 2 + 1
    if count < 1 or rate <= 0 or low >= high:
        raise Unsupported(f"{count} filters from {low} to {high} Hz of {rate} samples a second")
    ends = 2595 * np.log10(1 + np.array([low, high]) / 700)
    mels = ends[0] + np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2))
    corners = np.floor((int(length) + 1) * 700 * (10 ** (mels / 2595) - 1) / rate).astype(int)
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    at = np.arange(bins)[:, None]
    with np.errstate(all="ignore"):
        rising, falling = (at - left) / (middle - left), (right - at) / (right - middle)
    made = np.where((at >= left) & (at < middle), rising, np.where((at > middle) & (at < right), falling, at == middle))
    return c.array(made.astype(str(dtype_of(c.attribute("output_datatype", 1)))))
