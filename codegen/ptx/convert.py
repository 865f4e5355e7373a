"""Conversions between types: ``cvt`` with its roundings and saturation."""

from __future__ import annotations

from typing import Any

import numpy as np

from .floats import FORMATS, SMALL, Format, directed64, flush
from .table import Array, Elementwise, Mods, bits_of, form, is_int, numpy_type

_TO_INT = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@form("cvt")
def _cvt(m: Mods) -> Elementwise:
    last, first = _types(m)
    if "x2" in first or "x2" in last:
        return _packed(m, first, last)
    sat = m.has("sat")
    if is_int(first) and is_int(last):
        return _integers(first, last, sat)
    if is_int(first):
        return _to_integer(m, first, last)
    if is_int(last):
        return _from_integer(m, first, last, sat)
    return _floats(m, first, last, sat)


def _types(m: Mods) -> tuple[str, str]:
    if len(m.left) < 2:
        raise m.unknown()
    last, first = m.left.pop(), m.left.pop()
    return last, first


def _integers(first: str, last: str, sat: bool) -> Elementwise:
    made = numpy_type(first)
    if not sat:
        return Elementwise((first,), (last,), lambda a: a.astype(made))
    low, high = np.iinfo(made).min, np.iinfo(made).max
    source = np.iinfo(numpy_type(last))

    def clip(a: Array) -> Array:
        return np.clip(a, max(low, source.min), min(high, source.max)).astype(made)

    return Elementwise((first,), (last,), clip)


def _wide(kind: str, ftz: bool) -> Any:
    """Arrays of a float type as float64."""
    if kind == "f64":
        return lambda a: a
    if kind == "f32":
        return lambda a: (flush(a.view(np.uint32)).view(np.float32) if ftz else a).astype(np.float64)
    return FORMATS[kind].widen


def _to_integer(m: Mods, first: str, last: str) -> Elementwise:
    """Out of range is the nearest number; nan is 0, of float64 and to 64 bits the number of the top bit alone."""
    mode, ftz = m.take(*_TO_INT), m.has("ftz")
    if not mode or last not in ("f16", "bf16", "f32", "f64"):
        raise m.unknown()
    made, widen, rounded = numpy_type(first), _wide(last, ftz), _TO_INT[mode]
    limits = np.iinfo(made)
    half = np.array(1 << bits_of(first) - 1, f"uint{bits_of(first)}").view(made)
    nan = half if last == "f64" or bits_of(first) == 64 else made.type(0)

    def convert(a: Array) -> Array:
        x = widen(a)
        y = rounded(np.where(np.isnan(x), 0.0, x))
        over, under = y >= float(limits.max), y <= float(limits.min)
        inside = np.where(over | under, 0.0, y).astype(made)
        result = np.where(over, made.type(limits.max), np.where(under, made.type(limits.min), inside))
        return np.where(np.isnan(x), nan, result).astype(made)

    return Elementwise((first,), (last,), convert)


def _from_integer(m: Mods, first: str, last: str, sat: bool) -> Elementwise:
    mode = m.take("rn", "rz", "rm", "rp")
    if not mode or first not in FORMATS:
        raise m.unknown()
    target = FORMATS[first]

    def convert(a: Array) -> Array:
        if first == "f64" and mode != "rn":
            return directed64(lambda x: x, mode, a.astype(np.float64)) if bits_of(last) < 64 else _exact(a, mode)
        s = a.astype(np.float64)
        e = np.zeros_like(s)
        if bits_of(last) == 64:
            e = _rest(a, s)
        if first == "f64":
            return s
        bits = target.rounded(s, e, mode)
        made = bits.view(np.float32) if first == "f32" else bits
        return np.clip(made, np.float32(0), np.float32(1)) if sat and first == "f32" else made

    return Elementwise((first,), (last,), convert)


def _rest(a: Array, s: Array) -> Array:
    """``a - s`` of 64-bit integers and what they are as float64: less than 2048."""
    top = s >= 2.0**63
    low = np.where(top, s - 2.0**63, s)
    back = low.astype(np.int64).view(np.uint64) + np.where(top, np.uint64(1 << 63), np.uint64(0))
    return (a.view(np.uint64) - back).view(np.int64).astype(np.float64)


def _exact(a: Array, mode: str) -> Array:
    from fractions import Fraction

    from .floats import round64

    return np.array([round64(Fraction(int(x)), mode) for x in a], np.float64)


def _floats(m: Mods, first: str, last: str, sat: bool) -> Elementwise:
    whole = m.take(*_TO_INT)
    mode = m.take("rna", "rn", "rz", "rm", "rp") or "rn"
    ftz, relu, finite = m.has("ftz"), m.has("relu"), m.has("satfinite")
    if first not in FORMATS or last not in FORMATS or (mode == "rna" and first != "tf32"):
        raise m.unknown()
    widen, target = _wide(last, ftz), FORMATS[first]

    def convert(a: Array) -> Array:
        x = widen(a)
        if whole:
            x = _TO_INT[whole](x)
        if sat:
            x = np.where(x > 0, np.minimum(x, 1.0), 0.0)
        if relu:
            x = np.where(np.isnan(x) | (x > 0), x, 0.0)
        if first == "f64":
            return x
        bits = _tf32(x, mode) if first == "tf32" else target.rounded(x, np.zeros_like(x), mode)
        if finite:
            bits = np.where(np.isinf(target.widen(bits)), bits - target.unsigned.type(1), bits)
        if ftz and first == "f32":
            bits = flush(bits)
        return bits.view(np.float32) if first == "f32" else bits

    return Elementwise((first,), (last,), convert)


def _tf32(x: Array, mode: str) -> Array:
    """To 10 bits of fraction; rna: ties away from zero."""
    if mode != "rna":
        return FORMATS["tf32"].rounded(x, np.zeros_like(x), mode)
    u = x.astype(np.float32).view(np.uint32)
    cut = (u + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(x), cut, np.where(np.isnan(x), np.uint32(0x7FFFFFFF), u))


# ------------------------------------------------------------ two at a time


def _packed(m: Mods, first: str, last: str) -> Elementwise:
    """``cvt.rn.f16x2.f32 d, a, b``: ``a`` in the upper half; and to and from pairs of 8-bit floats."""
    mode, relu, finite = m.take("rn", "rz") or "rn", m.has("relu"), m.has("satfinite")
    small = SMALL.get(first.removesuffix("x2")), SMALL.get(last.removesuffix("x2"))

    def limited(x: Array, form_: Format) -> Array:
        x = np.where(np.isnan(x) | (x > 0), x, 0.0) if relu else x
        bits = form_.rounded(x, np.zeros_like(x), mode)
        return np.where(np.isinf(form_.widen(bits)), bits - form_.unsigned.type(1), bits) if finite else bits

    if first in ("f16x2", "bf16x2") and last == "f32":
        form_ = FORMATS[first[:-2]]

        def join(a: Array, b: Array) -> Array:
            up, down = (limited(x.astype(np.float64), form_).astype(np.uint32) for x in (a, b))
            return up << np.uint32(16) | down

        return Elementwise((first,), ("f32", "f32"), join)
    if small[0] is not None and last in ("f32", "f16x2") and finite:
        table = small[0]
        if last == "f32":

            def narrow(a: Array, b: Array) -> Array:
                up, down = (table.nearest(x.astype(np.float64), relu).astype(np.uint16) for x in (a, b))
                return up << np.uint16(8) | down

            return Elementwise(("b16",), ("f32", "f32"), narrow)

        def halves(a: Array) -> Array:
            pair = np.ascontiguousarray(a).view(np.uint16)
            return table.nearest(FORMATS["f16"].widen(pair), relu).view(np.uint16)

        return Elementwise(("b16",), ("b32",), halves)
    if small[1] is not None and first == "f16x2":
        values = small[1].values()

        def widen(a: Array) -> Array:
            x = values[np.ascontiguousarray(a).view(np.uint8)]
            x = np.where(np.isnan(x) | (x > 0), x, 0.0) if relu else x
            return FORMATS["f16"].rounded(x, np.zeros_like(x)).view(np.uint32)

        return Elementwise(("b32",), ("b16",), widen)
    raise m.unknown()
