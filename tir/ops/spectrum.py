"""Discrete Fourier transforms, as sums over all elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arith import simplify
from ..expr import Expr, cast, const
from ..te import Tensor, compute, cos, if_then_else, reduce_axis, sin
from ..te import sum as sum_
from ..te.places import error
from .places import constant, integer, may_differ, require_rank, require_same_dtype
from .registry import arg, case, operator


def _angle(product: Any, period: Any, dtype: Any) -> Expr:
    """2 π times the part of ``product / period`` after the point."""
    turns = cast(dtype, cast("int64", product) % cast("int64", period)) / cast(dtype, period)
    return turns * const(2 * math.pi, dtype)


def _numpy_dft(re_data: Any, im_data: Any, inverse: bool = False) -> Any:
    made = (np.fft.ifft if inverse else np.fft.fft)(re_data + 1j * im_data)
    return made.real, made.imag


@operator(
    section="signal",
    reference=_numpy_dft,
    cases=[
        case(arg((2, 6)), arg((2, 6))),
        case(arg((5,), "float64"), arg((5,), "float64"), True),
        case(arg((3, 1)), arg((3, 1)), inverse=True),
        case(arg((1, "n")), arg((1, "n"))),
    ],
)
def dft(re_data: Tensor, im_data: Tensor, inverse: bool = False) -> list[Tensor]:
    """The Fourier transform along the last axis of complex numbers, given and taken as real and imaginary parts.

    The inverse is divided by the number of elements. n² steps a row.

    >>> from tir import ops, te
    >>> real, imaginary = ops.dft(te.placeholder((2, 6), name="re"), te.placeholder((2, 6), name="im"))
    >>> real.shape
    (2, 6)
    """
    require_same_dtype(re_data, im_data, "the imaginary part")
    _require_floats(re_data)
    if re_data.ndim != im_data.ndim or not re_data.ndim or any(map(may_differ, re_data.shape, im_data.shape)):
        raise error(
            f"real parts of shape {re_data.shape} and imaginary parts of {im_data.shape}", "one shape, of 1 or more"
        )
    extent, kind = re_data.shape[-1], re_data.dtype
    scale = const(1, kind) / cast(kind, extent) if inverse else const(1, kind)

    def part(is_real: bool) -> Tensor:
        k = reduce_axis((0, extent), "k")

        def element(*i: Any) -> Expr:
            angle = _angle(cast("int64", i[-1]) * cast("int64", k.var), extent, kind)
            turn = sin(angle) if inverse else -sin(angle)
            real, imaginary = re_data(*i[:-1], k), im_data(*i[:-1], k)
            value = real * cos(angle) - imaginary * turn if is_real else real * turn + imaginary * cos(angle)
            return sum_(value * scale, axis=k)

        return compute(re_data.shape, element, name="dft_real" if is_real else "dft_imaginary")

    return [part(True), part(False)]


def _require_floats(x: Tensor) -> None:
    if not x.dtype.is_float or x.dtype.bits < 32:
        raise error(f"a Fourier transform is of float32 or float64, not {x.dtype}", 'ops.astype(x, "float32")')


def _numpy_stft(
    data: Any,
    n_fft: int,
    hop_length: int,
    win_length: int,
    window: Any,
    normalized: bool,
    onesided: bool,
    output_shape: Any = None,
) -> Any:
    frames = (data.shape[-1] - n_fft) // hop_length + 1
    pad = (n_fft - win_length) // 2
    weights = np.pad(window, (pad, n_fft - win_length - pad))
    made = []
    for n in range(frames):
        part = data[:, n * hop_length : n * hop_length + n_fft] * weights
        spectrum = np.fft.rfft(part) if onesided else np.fft.fft(part)
        made.append(spectrum / np.sqrt(n_fft) if normalized else spectrum)
    whole = np.stack(made, -1)
    return np.stack([whole.real, whole.imag], -1)


@operator(
    section="signal",
    reference=_numpy_stft,
    cases=[
        case(arg((2, 11)), 4, 2, 4, arg((4,)), False, True),
        case(arg((1, 9)), 5, 3, 3, arg((3,)), True, False),
    ],
    tolerance=32,
)
def stft(
    data: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    window: Tensor,
    normalized: bool,
    onesided: bool,
    output_shape: Any = None,
) -> Tensor:
    """Fourier transforms (batch, frequencies, frames, real and imaginary part) of parts of ``data`` (batch, length).

    Parts of ``n_fft`` elements begin at every ``hop_length``; ``window`` (``win_length``) stands in their middle. ``normalized``
    divides by √n_fft; ``onesided`` leaves out the frequencies above half.

    >>> from tir import ops, te
    >>> ops.stft(te.placeholder((2, 11), name="x"), 4, 2, 4, te.placeholder((4,), name="w"), False, True).shape
    (2, 3, 4, 2)
    """
    _require_floats(data)
    require_rank(data, 2, "what is transformed")
    require_rank(window, 1, "the window")
    require_same_dtype(data, window, "the window")
    length, hop, wide = (integer(v, "a length") for v in (n_fft, hop_length, win_length))
    if not 0 < wide <= length or hop < 1 or may_differ(window.shape[0], wide):
        raise error(f"a window of {window.shape[0]} elements of {wide} in parts of {length}, {hop} apart")
    frames = simplify((data.shape[1] - length) // hop + 1)
    if (constant(frames) or 0) < 0:
        raise error(f"{data.shape[1]} elements have no part of {length}")
    kind, before = data.dtype, (length - wide) // 2
    scale = const(1 / math.sqrt(length) if normalized else 1.0, kind)
    k = reduce_axis((0, wide), "k")

    def element(batch: Any, frequency: Any, frame: Any, part: Any) -> Expr:
        angle = _angle(frequency * (k.var + before), length, kind)
        value = data[batch, frame * hop + before + k] * window[k]
        return sum_(value * if_then_else(part == 0, cos(angle), -sin(angle)) * scale, axis=k)

    shape = (data.shape[0], length // 2 + 1 if onesided else length, frames, 2)
    return compute(shape, element, name="stft")
