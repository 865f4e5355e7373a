"""Discrete Fourier transforms, as products with tables of cosines and sines.

A transform of n = r m elements is one of r for each of m classes of elements, a rotation, and one of m for each of the r
results (Cooley and Tukey, Mathematics of Computation 19, 1965): r + m steps an element instead of n. One of a large prime is a
convolution (Bluestein, IEEE Transactions on Audio and Electroacoustics 18, 1970), of which the factors may be chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from .. import Expr, cast, const, digits_of, simplify
from ..te import Tensor, at_most, compute, cos, equate, equate_shapes, error, if_then_else, reduce_axis, sin
from ..te import all as all_
from ..te import any as any_
from ..te import sum as sum_
from .element_places import constant, integer
from .registry import arg, case, operator

STAGE = 16  # steps of a product that cost as much as another pass over the elements
TABLE = 1024  # elements whose transform is a product with a table of all angles; of more, each angle is looked up


def _angle(product: Any, period: Any, dtype: Any) -> Expr:
    """2 π times the part of ``product / period`` after the point."""
    turns = cast(dtype, cast("int64", product) % cast("int64", period)) / cast(dtype, period)
    return turns * const(2 * math.pi, dtype)


@lru_cache(maxsize=256)
def _factors(length: int) -> tuple[int, ...]:
    """The numbers of elements of transforms that together transform ``length``, with the least steps."""

    @cache
    def least(n: int) -> tuple[int, tuple[int, ...]]:
        found = (_own_steps(n), (n,))
        for r in range(2, math.isqrt(n) + 1):
            if n % r == 0:
                for first in (r, n // r):
                    cost, rest = least(n // first)
                    found = min(found, (first + STAGE + cost, (first, *rest)))
        return found

    return least(length)[1]


def _least(length: int) -> int:
    """The steps of a transform of ``length`` elements, for each of them."""
    factors = _factors(length)
    return sum(map(_own_steps, factors)) + STAGE * (len(factors) - 1)


def _own_steps(length: int) -> int:
    """The steps of a transform that is not done by factors, for each element."""
    return _steps_of_convolution(length) if _is_convolved(length) else length


@cache
def _is_convolved(length: int) -> bool:
    """Whether the transform of so many elements is a convolution: of a prime, where that is less than a step for each."""
    is_prime = all(length % r for r in range(2, math.isqrt(length) + 1))
    return length > 4 * STAGE and is_prime and _steps_of_convolution(length) < length


def _steps_of_convolution(length: int) -> int:
    return 3 * _least(_convolved_length(length)) + 4 * STAGE


def _convolved_length(length: int) -> int:
    """A power of two that holds the results of a convolution, and the elements before them."""
    return 1 << (2 * length - 2).bit_length()


def _wave(part: Any, product: Any, period: Any, inverse: bool, dtype: Any) -> Expr:
    """The real part (0) or the imaginary part (1) of the root of unity of a transform, to the power ``product``."""
    angle = _angle(product, period, dtype)
    return if_then_else(part == 0, cos(angle), sin(angle) if inverse else -sin(angle))


def _weights(length: Any, inverse: bool, dtype: Any) -> Callable[..., Expr]:
    """What an element's part (0 real, 1 imaginary) is multiplied with, for a part of a result: ``(to, result, part,
    element)``."""
    known = constant(length)
    if known is not None and known <= TABLE:

        def weight(to: Any, k: Any, part: Any, j: Any) -> Expr:
            product = cast("int64", k) * cast("int64", j)
            wave = _wave((to - part) % 2, product, length, inverse, dtype)
            return if_then_else(part > to, -wave, wave)

        return compute((2, length, 2, length), weight, name="dft_weights")
    waves = compute((2, length), lambda part, n: _wave(part, n, length, inverse, dtype), name="dft_waves")

    def found(to: Any, k: Any, part: Any, j: Any) -> Expr:
        wave = waves((to - part) % 2, cast("int64", k) * cast("int64", j) % cast("int64", length))
        return if_then_else(part > to, -wave, wave)

    return found


def _transformed(x: Tensor, inverse: bool) -> Tensor:
    """The transform of ``x`` (parts, …, elements), whose result is (2, …, the digits of the number of the result).

    ``x`` has one part if it is real.
    """
    digits, length = x.ndim - 1, x.shape[-1]
    known = constant(length)
    if known == 0:
        return x
    factors: tuple[Any, ...] = (length,) if known is None else _factors(known)
    for n, factor in enumerate(factors):
        rest = math.prod(factors[n + 1 :])
        x = _of_classes(x, digits, factor, rest, inverse)
        if rest > 1:
            x = _rotated(x, digits, factor * rest, inverse)
    return x


def _of_classes(x: Tensor, digits: int, count: Any, rest: int, inverse: bool) -> Tensor:
    """Transforms of ``count`` elements of ``x``, each ``rest`` after the one before; the results are axis ``digits``."""
    if _is_convolved(constant(count) or 0):
        return _of_large_primes(x, digits, count, rest, inverse)
    weight = _weights(count, inverse, x.dtype)
    part, j = reduce_axis((0, x.shape[0]), "part"), reduce_axis((0, count), "j")

    def value(to: Any, *i: Any) -> Expr:
        batch, result, others = i[: digits - 1], i[digits - 1], i[digits:]
        element = (*others[:-1], j.var * rest + others[-1]) if rest > 1 else (*others, j.var)
        return sum_(weight(to, result, part.var, j.var) * x(part.var, *batch, *element), axis=[part, j])

    shape = (2, *x.shape[1:digits], count, *x.shape[digits:-1], *([rest] if rest > 1 else []))
    return compute(shape, value, name="dft_classes")


def _of_large_primes(x: Tensor, digits: int, count: int, rest: int, inverse: bool) -> Tensor:
    """As :func:`_of_classes`, by convolutions along a last axis of the elements of a class."""
    classes = (*x.shape[:-1], *([rest] if rest > 1 else []), count)

    def element(*i: Any) -> Expr:
        return x(*i[:-2], i[-1] * rest + i[-2]) if rest > 1 else x(*i)

    made = _convolved(compute(classes, element, name="dft_class"), inverse)
    shape = (*made.shape[:digits], count, *made.shape[digits:-1])
    return compute(shape, lambda *i: made(*i[:digits], *i[digits + 1 :], i[digits]), name="dft_classes")


def _convolved(x: Tensor, inverse: bool) -> Tensor:
    """The transforms along the last axis of ``x`` (parts, …, n), by Bluestein's formula: with w(j) the root of unity of 2 n to
    the power j², the result k is w(k) times the sum over j of x(j) w(j) / w(k - j), as 2 j k = j² + k² - (k - j)²."""
    length, kind = integer(x.shape[-1], "a length"), x.dtype
    whole = _convolved_length(length)

    def wave(part: Any, j: Any) -> Expr:
        return _wave(part, cast("int64", j) * cast("int64", j), 2 * length, inverse, kind)

    waves = compute((2, length), wave, name="dft_chirp")

    def given(part: Any, *i: Any) -> Expr:
        parts = [x(n, *i) for n in range(integer(x.shape[0], "the number of parts"))]
        return if_then_else(
            i[-1] < length, _product_part(part, parts, [waves(n, i[-1]) for n in (0, 1)]), const(0, kind)
        )

    def chirp(part: Any, j: Any) -> Expr:
        distance = if_then_else(j < length, j, whole - j)
        value = waves(part, distance)
        return if_then_else(distance < length, if_then_else(part == 0, value, -value), const(0, kind))

    shape = (2, *x.shape[1:-1], whole)
    one = _transformed(compute(shape, given, name="dft_chirped"), inverse=False)
    other = _transformed(compute((2, whole), chirp, name="dft_chirps"), inverse=False)
    sizes = other.shape[1:]

    def multiplied(part: Any, *i: Any) -> Expr:
        at = digits_of(i[-1], sizes)
        return _product_part(part, [one(n, *i[:-1], *at) for n in (0, 1)], [other(n, *at) for n in (0, 1)])

    back = _transformed(compute(shape, multiplied, name="dft_spectrum"), inverse=True)

    def result(part: Any, *i: Any) -> Expr:
        parts = [back(n, *i[:-1], *digits_of(i[-1], back.shape[x.ndim - 1 :])) for n in (0, 1)]
        return _product_part(part, parts, [waves(n, i[-1]) for n in (0, 1)]) * const(1 / whole, kind)

    return compute((2, *x.shape[1:]), result, name="dft_convolved")


def _product_part(part: Any, one: Sequence[Expr], other: Sequence[Expr]) -> Expr:
    """A part of the product of two complex numbers; ``one`` has the real part alone if it is real."""
    if len(one) == 1:
        return one[0] * if_then_else(part == 0, other[0], other[1])
    real = one[0] * other[0] - one[1] * other[1]
    return if_then_else(part == 0, real, one[0] * other[1] + one[1] * other[0])


def _rotated(x: Tensor, digits: int, length: int, inverse: bool) -> Tensor:
    """``x`` times the root of unity of ``length`` to the power of the result (axis ``digits``) and the element (the last)."""

    def wave(part: Any, k: Any, j: Any) -> Expr:
        return _wave(part, cast("int64", k) * cast("int64", j), length, inverse, x.dtype)

    waves = compute((2, x.shape[digits], x.shape[-1]), wave, name="dft_turns")

    def value(to: Any, *i: Any) -> Expr:
        cosine, sine = waves(0, i[digits - 1], i[-1]), waves(1, i[digits - 1], i[-1])
        return x(to, *i) * cosine + if_then_else(to == 0, -x(1, *i), x(0, *i)) * sine

    return compute(x.shape, value, name="dft_rotated")


def _numpy_dft(re_data: Any, im_data: Any, inverse: bool = False) -> Any:
    if not re_data.shape[-1]:  # which NumPy refuses
        return re_data, im_data
    made = (np.fft.ifft if inverse else np.fft.fft)(re_data + 1j * im_data)
    return made.real, made.imag


@operator(
    shapes="(…) T, (…) T -> (…), (…)",
    section="signal",
    reference=_numpy_dft,
    cases=[
        case(arg((2, 6)), arg((2, 6))),
        case(arg((2, 0)), arg((2, 0))),
        case(arg((3, 64)), arg((3, 64))),
        case(arg((2, 2, 120), "float64"), arg((2, 2, 120), "float64"), True),
        case(arg((5,), "float64"), arg((5,), "float64"), True),
        case(arg((3, 1)), arg((3, 1)), inverse=True),
        case(arg((1, "n")), arg((1, "n"))),
    ],
    tolerance=128,  # of sums of up to 120 terms
)
def dft(re_data: Tensor, im_data: Tensor, inverse: bool = False) -> list[Tensor]:
    """The Fourier transform along the last axis of complex numbers, given and taken as real and imaginary parts.

    The inverse is divided by the number of elements. The steps for an element are about the sum of the factors of n; some hundreds
    where n has large prime factors; n where n is not known.
    """
    _require_floats(re_data)
    if not re_data.ndim or not equate_shapes(re_data.shape, im_data.shape):
        raise error(
            f"real parts of shape {re_data.shape} and imaginary parts of {im_data.shape}", "one shape, of 1 or more"
        )
    extent, kind = re_data.shape[-1], re_data.dtype
    scale = const(1, kind) / cast(kind, extent) if inverse else const(1, kind)

    parts = compute(
        (2, *re_data.shape), lambda part, *i: if_then_else(part == 0, re_data(*i), im_data(*i)), name="dft_parts"
    )
    made = _transformed(parts, inverse)
    sizes = made.shape[re_data.ndim :]

    def result(part: int) -> Tensor:
        def element(*i: Any) -> Expr:
            return made(part, *i[:-1], *digits_of(i[-1], sizes)) * scale

        return compute(re_data.shape, element, name=("dft_real", "dft_imaginary")[part])

    return [result(0), result(1)]


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
    gives=(2, 3, 4, 2),
    shapes="(b, _) T, (_) T -> (b, _, _, 2)",
    section="signal",
    reference=_numpy_stft,
    cases=[
        case(arg((2, 11)), 4, 2, 4, arg((4,)), False, True),
        case(arg((1, 9)), 5, 3, 3, arg((3,)), True, False),
        case(arg((2, 300)), 144, 50, 140, arg((140,)), False, True),
    ],
    tolerance=128,  # of sums of up to 280 terms
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
    """
    _require_floats(data)
    length, hop, wide = (integer(v, "a length") for v in (n_fft, hop_length, win_length))
    if not 0 < wide <= length or hop < 1 or not equate(window.shape[0], wide):
        raise error(f"a window of {window.shape[0]} elements of {wide} in parts of {length}, {hop} apart")
    frames = simplify((data.shape[1] - length) // hop + 1)
    if not at_most(0, frames):
        raise error(f"{data.shape[1]} elements have no part of {length}")
    kind, before = data.dtype, (length - wide) // 2
    scale = const(1 / math.sqrt(length) if normalized else 1.0, kind)
    shape = (data.shape[0], length // 2 + 1 if onesided else length, frames, 2)
    if wide <= 2 * _least(length):
        return _product(data, window, length, shape, hop, before, scale)

    def element(_: Any, batch: Any, frame: Any, j: Any) -> Expr:
        inside = all_(j >= before, j < before + wide)
        return if_then_else(inside, data[batch, frame * hop + j] * window[j - before] * scale, const(0, kind))

    made = _transformed(compute((1, data.shape[0], frames, length), element, name="stft_parts"), inverse=False)
    sizes = made.shape[3:]
    return compute(shape, lambda b, f, t, part: made(part, b, t, *digits_of(f, sizes)), name="stft")


def _product(
    data: Tensor, window: Tensor, length: int, shape: Sequence[Any], hop: int, before: int, scale: Expr
) -> Tensor:
    """The short-time transform as a product with ``length`` numbers: the real parts up to half of the frequencies, and the
    imaginary parts between 0 and half. Those above half are the conjugates of those below, as the elements are real."""
    half, kind = length // 2, data.dtype

    def weight(k: Any, n: Any) -> Expr:
        part, frequency = cast("int32", n > half), if_then_else(n > half, n - half, n)
        return window[k] * scale * _wave(part, frequency * (k + before), length, False, kind)

    weights = compute((window.shape[0], length), weight, name="stft_weights")
    k = reduce_axis((0, window.shape[0]), "k")

    def product(batch: Any, frame: Any, n: Any) -> Expr:
        return sum_(data[batch, frame * hop + before + k] * weights[k, n], axis=k)

    spectra = compute((shape[0], shape[2], length), product, name="stft_spectra")

    def element(batch: Any, frequency: Any, frame: Any, part: Any) -> Expr:
        below = if_then_else(frequency > half, length - frequency, frequency)
        is_real = any_(below == 0, below * 2 == length)
        sine = if_then_else(is_real, const(0, kind), spectra[batch, frame, if_then_else(is_real, 0, half + below)])
        imaginary = if_then_else(frequency > half, -sine, sine)
        return if_then_else(part == 0, spectra[batch, frame, below], imaginary)

    return compute(shape, element, name="stft")
