"""Floats of every format by their bits: exact sums and products, and the roundings of PTX.

A real number is a pair of float64 ``(s, e)`` that stands for ``s + e``, with ``e`` below half a unit of ``s``. Narrow
formats are computed in such pairs and rounded once; float64 has its own exact sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

Array = np.ndarray


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """``a + b`` as a pair; the error is 0 where the sum is not finite."""
    s = a + b
    back = s - a
    e = (a - (s - back)) + (b - back)
    return s, np.where(np.isfinite(s), e, 0.0)


def to_odd(s: Array, e: Array) -> Array:
    """The float64 next to ``s + e`` whose last bit is odd, or ``s`` if it is exact: rounding that again is right."""
    even = (s.view(np.uint64) & np.uint64(1)) == 0
    return np.where((e != 0) & even, np.nextafter(s, np.where(e > 0, np.inf, -np.inf)), s)


@dataclass(frozen=True)
class Format:
    """A float format in ``bits`` bits: ``widen`` gives float64, ``nearest`` the bits of a float64 rounded to nearest,
    ties to even; ``nan`` are the bits of the nan that operations give."""

    name: str
    bits: int
    nan: int
    widen: Callable[[Array], Array]
    nearest: Callable[[Array], Array]

    @property
    def unsigned(self) -> Any:
        return np.dtype(f"uint{self.bits}")

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    def rounded(self, s: Array, e: Array, mode: str = "rn") -> Array:
        """The bits of ``s + e``."""
        found = self.nearest(to_odd(s, e))
        if mode != "rn":
            found = self._directed(found, s, e, mode)
        return np.where(np.isnan(s), self.unsigned.type(self.nan), found)

    def of_numbers(self, function: Callable[..., Array]) -> Callable[..., Array]:
        """``function`` of float64, on arrays of words that have one number each, or several."""

        def run(*args: Array) -> Array:
            made = function(*(self.widen(np.ascontiguousarray(a).view(self.unsigned)) for a in args))
            return self.rounded(made, np.zeros_like(made)).view(args[0].dtype)

        return run

    def _directed(self, found: Array, s: Array, e: Array, mode: str) -> Array:
        value = self.widen(found)
        with np.errstate(invalid="ignore"):
            off = np.where(np.isfinite(s), np.where(s == value, e, np.where(s > value, 1.0, -1.0)), 0.0)
        low, high = off < 0, off > 0  # the number is below, or above, what nearest has given
        if mode == "rz":
            low, high = low & (s > 0), high & (s < 0)
        elif mode == "rm":
            high = np.zeros_like(high)
        elif mode == "rp":
            low = np.zeros_like(low)
        else:
            raise ValueError(mode)
        return np.where(low, self.neighbour(found, -1), np.where(high, self.neighbour(found, 1), found))

    def neighbour(self, bits: Array, way: int) -> Array:
        """The next number up (``way`` 1) or down (-1)."""
        u = self.unsigned.type
        negative = (bits & u(self.sign)) != 0
        zero = (bits & u(self.sign - 1)) == 0
        away = negative if way < 0 else ~negative
        stepped = np.where(away, bits + u(1), bits - u(1))
        return np.where(zero, u(1) if way > 0 else u(self.sign | 1), stepped).astype(self.unsigned)


def _f32_odd(x: Array) -> Array:
    """float64 to float32 with the last bit odd where inexact."""
    f = x.astype(np.float32)
    back = f.astype(np.float64)
    even = (f.view(np.uint32) & np.uint32(1)) == 0
    inexact = (back != x) & ~np.isnan(x)
    return np.where(inexact & even, np.nextafter(f, np.where(x > back, np.float32(np.inf), np.float32(-np.inf))), f)


def _cut(x: Array, drop: int) -> Array:
    """The bits of float32 rounded to nearest even, ``drop`` of them cut off, in place."""
    u = _f32_odd(x).view(np.uint32)
    nan = np.isnan(x)
    half = np.uint32((1 << (drop - 1)) - 1)
    made = (u + half + ((u >> np.uint32(drop)) & np.uint32(1))) & np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)
    return np.where(nan, np.uint32(0x7FFFFFFF), made)


F64 = Format("f64", 64, 0x7FF8000000000000, lambda b: b.view(np.float64), lambda x: x.view(np.uint64))
F32 = Format(
    "f32",
    32,
    0x7FFFFFFF,
    lambda b: b.view(np.float32).astype(np.float64),
    lambda x: x.astype(np.float32).view(np.uint32),
)
F16 = Format(
    "f16", 16, 0x7FFF, lambda b: b.view(np.float16).astype(np.float64), lambda x: x.astype(np.float16).view(np.uint16)
)
BF16 = Format(
    "bf16",
    16,
    0x7FFF,
    lambda b: (b.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64),
    lambda x: (_cut(x, 16) >> np.uint32(16)).astype(np.uint16),
)
TF32 = Format(
    "tf32",
    32,
    0x7FFFFFFF,
    lambda b: (b & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64),
    lambda x: _cut(x, 13),
)
HALVES = {"f16": F16, "f16x2": F16, "bf16": BF16, "bf16x2": BF16}  # one, or two in a word
FORMATS = {f.name: f for f in (F64, F32, F16, BF16, TF32)}


def flush(bits: Array, form: Format = F32) -> Array:
    """``ftz``: subnormal numbers as zeros of their sign."""
    u = form.unsigned.type
    exponent = {32: 0x7F800000, 16: 0x7C00, 64: 0x7FF << 52}[form.bits]
    return np.where((bits & u(exponent)) == 0, bits & u(form.sign), bits).astype(form.unsigned)


# ------------------------------------------------------------ sums and products as pairs


def add(a: Array, b: Array) -> tuple[Array, Array]:
    return two_sum(a, b)


def fma_narrow(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """``a * b + c`` of numbers of at most 24 bits, whose products are exact."""
    return two_sum(a * b, c)


def quotient(a: Array, b: Array) -> tuple[Array, Array]:
    """``a / b`` of numbers of at most 24 bits: the sign of the rest is the sign of the error."""
    q = a / b
    s, e = product64(q, b)
    rest = np.where(np.isfinite(q) & (b != 0) & np.isfinite(b), (a - s) - e, 0.0)
    return q, rest * np.sign(np.where(b == 0, 1.0, b)) * _tiny(q)


def root(a: Array) -> tuple[Array, Array]:
    r = np.sqrt(a)
    s, e = product64(r, r)
    rest = np.where(np.isfinite(r), (a - s) - e, 0.0)
    return r, np.sign(rest) * _tiny(r)


def _tiny(q: Array) -> Array:
    """Less than half a unit of ``q``: an error of which the sign alone is known."""
    return np.where(np.isfinite(q), np.abs(np.spacing(np.where(np.isfinite(q), q, 1.0))) * 0.25, 0.0)


def product64(a: Array, b: Array) -> tuple[Array, Array]:
    """``a * b`` of float64 as a pair (Dekker), exact if nothing overflows or becomes subnormal."""
    p = a * b
    split = 134217729.0
    ah = a * split - (a * split - a)
    bh = b * split - (b * split - b)
    al, bl = a - ah, b - bh
    e = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    return p, np.where(np.isfinite(e), e, 0.0)


def _fma_sum(a: Array, b: Array, c: Array) -> Array:
    """float64 fma rounded to nearest, by Boldo and Melquiond, with the sum of the errors rounded to odd."""
    uh, ul = product64(a, b)
    th, tl = two_sum(c, ul)
    vh, vl = two_sum(uh, th)
    s, e = two_sum(tl, vl)
    return vh + to_odd(s, e)


def fma64(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """float64 ``a * b + c``, rounded once."""
    made = _fma_sum(a, b, c)
    size = np.maximum(np.abs(a * b), np.abs(c))
    fine = np.isfinite(made) & (size < 1e290) & (np.abs(a) < 1e290) & (np.abs(b) < 1e290)
    fine &= (np.abs(a * b) > 1e-270) & (np.abs(made) > 1e-290) | (a * b == 0) & ((a == 0) | (b == 0))
    plain = np.where(np.isfinite(a) & np.isfinite(b) & np.isinf(c), c, a * b + c)
    special = ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c)
    made = np.where(special | ((a == 0) | (b == 0)), plain, made)
    slow = ~(fine | special | ((a == 0) | (b == 0))) if mode == "rn" else ~special
    for k in np.nonzero(slow)[0]:
        exact = Fraction(float(a[k])) * Fraction(float(b[k])) + Fraction(float(c[k]))
        made[k] = round64(exact, mode) if exact else plain[k]
    return made


def round64(exact: Fraction, mode: str) -> float:
    """A number as float64."""
    try:
        near = float(exact)
    except OverflowError:
        near = float("inf") if exact > 0 else -float("inf")
    if mode == "rn":
        return near
    below = near == float("inf") or (near != -float("inf") and Fraction(near) > exact)
    above = near == -float("inf") or (near != float("inf") and Fraction(near) < exact)
    if below and (mode == "rm" or (mode == "rz" and exact > 0)):
        return float(np.nextafter(near, -np.inf))
    if above and (mode == "rp" or (mode == "rz" and exact < 0)):
        return float(np.nextafter(near, np.inf))
    return near


def directed64(operation: Callable[..., Fraction | None], mode: str, *args: Array) -> Array:
    """``operation`` of single numbers, rounded to float64; where it gives None (not finite) the usual one is the answer."""
    made = []
    for items in zip(*args):
        exact = operation(*(Fraction(float(x)) for x in items)) if all(map(np.isfinite, items)) else None
        made.append(float("nan") if exact is None else round64(exact, mode))
    return np.array(made, np.float64)


# ------------------------------------------------------------ floats of 8 bits


@dataclass(frozen=True)
class Small:
    """e4m3 and e5m2 by their table of values: ``top`` is the code of the greatest number."""

    fraction: int
    bias: int
    top: int
    nan: int
    infinite: bool

    def values(self) -> Array:
        codes = np.arange(128)
        e, f = codes >> self.fraction, codes & ((1 << self.fraction) - 1)
        unit = 2.0**-self.fraction
        low = f * unit * 2.0 ** (1 - self.bias)
        made = np.where(e == 0, low, (1 + f * unit) * 2.0 ** (e.astype(float) - self.bias))
        made[codes > self.top] = np.nan
        if self.infinite:
            made[self.top + 1] = np.inf
        return np.concatenate([made, -made])

    def nearest(self, x: Array, relu: bool = False) -> Array:
        """The codes of float64 ``x``, ties to even, saturated to the greatest number."""
        if relu:
            x = np.where(np.isnan(x), x, np.maximum(x, 0.0))
        sizes = self.values()[: self.top + 1]
        size = np.minimum(np.abs(np.where(np.isnan(x), 0.0, x)), sizes[-1])
        above = np.minimum(np.searchsorted(sizes, size), self.top)
        below = np.maximum(above - 1, 0)
        up, down = sizes[above] - size, size - sizes[below]
        code = np.where((up < down) | ((up == down) & (above % 2 == 0)) | (sizes[above] == size), above, below)
        code = code | np.where(np.signbit(x), 0x80, 0)
        return np.where(np.isnan(x), self.nan, code).astype(np.uint8)


SMALL = {"e4m3": Small(3, 7, 0x7E, 0x7F, False), "e5m2": Small(2, 15, 0x7B, 0x7F, True)}
