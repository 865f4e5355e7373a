"""Arithmetic of floats: every format and rounding, packed pairs, approximations."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from .floats import BF16, F16, F32, add, directed64, flush, fma64, fma_narrow, quotient, root
from .table import Array, Elementwise, Mods, form, form_of_floats

_ROUNDINGS = ("rn", "rz", "rm", "rp")
NARROW = {"f16": F16, "bf16": BF16, "f32": F32}
_PAIRS = {"f16x2": F16, "bf16x2": BF16}


def flushed(x: Array) -> Array:
    """A float32 array with its subnormal numbers as zeros."""
    return flush(x.view(np.uint32)).view(np.float32)


def canonical(x: Array) -> Array:
    """float32 results with the nan that the machine gives."""
    return np.where(np.isnan(x), np.uint32(0x7FFFFFFF), x.view(np.uint32)).view(np.float32)


def _saturated(x: Array) -> Array:
    """Within [0, 1], nan as 0, and -0 as 0."""
    return np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))


def _float32(m: Mods, function: Callable[..., Array], count: int, ftz: bool, sat: bool) -> Elementwise:
    def run(*args: Array) -> Array:
        made = canonical(function(*(map(flushed, args) if ftz else args)))
        made = flushed(made) if ftz else made
        return _saturated(made) if sat else made

    return Elementwise(("f32",), ("f32",) * count, run)


def _bits(m: Mods, kind: str, pair: Callable[..., tuple[Array, Array]], count: int) -> Elementwise:
    """An operation on numbers of 16 bits, or on two of them at a time; ``pair`` takes and gives float64."""
    sat, relu, ftz = m.has("sat"), m.has("relu"), m.has("ftz")
    m.take("noftz", "rn")
    form_ = _PAIRS.get(kind) or NARROW[kind]

    def one(*args: Array) -> Array:
        values = [form_.widen(flush(a, form_) if ftz else a) for a in args]
        made = form_.rounded(*pair(*values))
        if ftz:
            made = flush(made, form_)
        if sat or relu:
            x = form_.widen(made)
            most = 1.0 if sat else np.inf
            low = np.where(np.isnan(x), np.nan if relu else 0.0, np.minimum(np.where(x > 0, x, 0.0), most))
            made = form_.rounded(low, np.zeros_like(low))
        return made

    if kind not in _PAIRS:
        return Elementwise((kind,), (kind,) * count, one)

    def two(*args: Array) -> Array:
        split = [np.ascontiguousarray(a).view(np.uint16) for a in args]
        return one(*split).view(np.uint32)

    return Elementwise((kind,), (kind,) * count, two)


_REALS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")


def _exact64(operation: Callable[..., Fraction | None]) -> Callable[..., Callable[..., Array]]:
    def by(mode: str, plain: Callable[..., Array]) -> Callable[..., Array]:
        def run(*args: Array) -> Array:
            usual = plain(*args)
            made = directed64(operation, mode, *args)
            return np.where(np.isnan(made) | (usual == 0), usual, made)

        return run

    return by


@form_of_floats("add", "sub")
def total(m: Mods) -> Elementwise:
    """add and sub."""
    plus = m.inst.op == "add"
    kind = m.type(*_REALS)
    if kind not in ("f32", "f64"):
        return _bits(m, kind, lambda a, b: add(a, b if plus else -b), 2)
    mode = m.take(*_ROUNDINGS) or "rn"
    plain = np.add if plus else np.subtract
    if kind == "f64":
        exact = _exact64(lambda a, b: a + (b if plus else -b))
        return Elementwise((kind,), (kind, kind), plain if mode == "rn" else exact(mode, plain))
    ftz, sat = m.has("ftz"), m.has("sat")
    if mode == "rn":
        return _float32(m, plain, 2, ftz, sat)
    return _float32(m, _in_pairs(lambda a, b: add(a, b if plus else -b), mode), 2, ftz, sat)


def _in_pairs(pair: Callable[..., tuple[Array, Array]], mode: str) -> Callable[..., Array]:
    def run(*args: Array) -> Array:
        s, e = pair(*(a.astype(np.float64) for a in args))
        made = F32.rounded(s, e, mode).view(np.float32)
        zero = (s == 0) & (e == 0) & ~np.signbit(s) & (mode == "rm")
        # a sum of opposite numbers is -0 where rounding is downward
        return np.where(zero & (len(args) > 1) & _cancels(*args), np.float32(-0.0), made)

    return run


def _cancels(*args: Array) -> Array:
    return args[-1] != 0


@form_of_floats("mul")
def product(m: Mods) -> Elementwise:
    kind = m.type(*_REALS)
    if kind not in ("f32", "f64"):
        return _bits(m, kind, lambda a, b: (a * b, np.zeros_like(a)), 2)
    mode = m.take(*_ROUNDINGS) or "rn"
    if kind == "f64":
        exact = _exact64(lambda a, b: a * b)
        return Elementwise((kind,), (kind, kind), np.multiply if mode == "rn" else exact(mode, np.multiply))
    ftz, sat = m.has("ftz"), m.has("sat")
    if mode == "rn":
        return _float32(m, np.multiply, 2, ftz, sat)

    def rounded(a: Array, b: Array) -> Array:
        s = a.astype(np.float64) * b.astype(np.float64)
        return F32.rounded(s, np.zeros_like(s), mode).view(np.float32)

    return _float32(m, rounded, 2, ftz, sat)


@form("fma")
@form_of_floats("mad")
def fused(m: Mods) -> Elementwise:
    """fma, and mad of floats, which is the same."""
    kind = m.type(*_REALS)
    if kind not in ("f32", "f64"):
        return _bits(m, kind, fma_narrow, 3)
    mode = m.take(*_ROUNDINGS) or "rn"
    if kind == "f64":
        return Elementwise((kind,), (kind,) * 3, lambda a, b, c: fma64(a, b, c, mode))
    ftz, sat = m.has("ftz"), m.has("sat")

    def run(a: Array, b: Array, c: Array) -> Array:
        x, y, z = (v.astype(np.float64) for v in (a, b, c))
        s, e = fma_narrow(x, y, z)
        made = F32.rounded(s, e, mode).view(np.float32)
        cancelled = (s == 0) & (e == 0) & (z != 0) & (mode == "rm")
        return np.where(cancelled, np.float32(-0.0), made)

    return _float32(m, run, 3, ftz, sat)


@form_of_floats("div")
def quotient_of(m: Mods) -> Elementwise:
    kind = m.type("f32", "f64")
    mode, ftz = m.take(*_ROUNDINGS, "approx", "full"), m.has("ftz")
    if kind == "f64":
        if mode not in _ROUNDINGS:
            raise m.unknown()
        exact = _exact64(lambda a, b: a / b if b else None)
        return Elementwise((kind,), (kind, kind), np.divide if mode == "rn" else exact(mode, np.divide))
    if mode in ("rn", "approx", "full", ""):
        return _float32(m, np.divide, 2, ftz, False)
    return _float32(m, _in_pairs(quotient, mode), 2, ftz, False)


@form_of_floats("abs", "neg")
def signs(m: Mods) -> Elementwise:
    """abs and neg: of bits, so that nan keeps its own."""
    kind, ftz = m.type(*_REALS), m.has("ftz")
    negate = m.inst.op == "neg"
    if kind in ("f32", "f64"):
        change = np.negative if negate else np.abs
        if ftz:
            return Elementwise((kind,), (kind,), lambda a: change(flushed(a)))
        return Elementwise((kind,), (kind,), change)
    mask = {"f16": 0x8000, "bf16": 0x8000}.get(kind, 0x80008000)
    t = np.uint16 if mask == 0x8000 else np.uint32
    if negate:
        return Elementwise((kind,), (kind,), lambda a: a ^ t(mask))
    return Elementwise((kind,), (kind,), lambda a: a & ~t(mask))


@form_of_floats("min", "max")
def least(m: Mods) -> Elementwise:
    """min and max: the other one where one is nan, or nan with .NaN; -0 is below 0."""
    kind = m.type(*_REALS)
    keep, ftz = m.has("NaN"), m.has("ftz")
    smaller = m.inst.op == "min"

    def choose(a: Array, b: Array) -> Array:
        first = (a < b) | ((a == b) & np.signbit(a)) if smaller else (a > b) | ((a == b) & ~np.signbit(a))
        made = np.where(first, a, b)
        made = np.where(np.isnan(a), b, np.where(np.isnan(b), a, made))
        return np.where(np.isnan(a) | np.isnan(b), np.nan, made).astype(a.dtype) if keep else made

    if kind in ("f32", "f64"):

        def run(a: Array, b: Array) -> Array:
            if ftz:
                a, b = flushed(a), flushed(b)
            made = choose(a, b)
            return canonical(made) if kind == "f32" else made

        return Elementwise((kind,), (kind, kind), run)
    form_ = _PAIRS.get(kind) or NARROW[kind]

    def narrow(a: Array, b: Array) -> Array:
        x, y = (np.ascontiguousarray(v).view(np.uint16) for v in (a, b))
        made = choose(form_.widen(x), form_.widen(y))
        return form_.rounded(made, np.zeros_like(made)).view(a.dtype)

    return Elementwise((kind,), (kind, kind), narrow)


@form("copysign")
def _copysign(m: Mods) -> Elementwise:
    kind = m.type("f32", "f64")
    return Elementwise((kind,), (kind, kind), lambda a, b: np.copysign(b, a))


@form("testp")
def _testp(m: Mods) -> Elementwise:
    kind = m.type("f32", "f64")
    what = m.take("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    least_normal = np.finfo(np.float32 if kind == "f32" else np.float64).tiny
    tests: dict[str, Any] = {
        "finite": np.isfinite, "infinite": np.isinf, "number": lambda a: ~np.isnan(a), "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= least_normal),
        "subnormal": lambda a: (np.abs(a) < least_normal) & (a != 0),
    }  # fmt: skip
    return Elementwise(("pred",), (kind,), tests[what])


# ------------------------------------------------------------ roots and functions


def _through(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of float64, on float32."""
    return lambda a: function(a.astype(np.float64)).astype(np.float32)


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": lambda x: np.where(np.isfinite(x), np.sin(np.where(np.isfinite(x), x, 0.0)), np.nan),
    "cos": lambda x: np.where(np.isfinite(x), np.cos(np.where(np.isfinite(x), x, 0.0)), np.nan),
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


@form("rcp", "sqrt")
def _rcp(m: Mods) -> Elementwise:
    kind = m.type("f32", "f64")
    mode, ftz, is_root = m.take(*_ROUNDINGS, "approx"), m.has("ftz"), m.inst.op == "sqrt"
    plain: Any = np.sqrt if is_root else np.reciprocal
    if not mode:
        raise m.unknown()
    if kind == "f64":
        if mode == "approx":
            return Elementwise((kind,), (kind,), lambda a: flush_top(plain(flush_top(a))))
        if mode == "rn":
            return Elementwise((kind,), (kind,), plain)
        if is_root:
            raise m.unknown()
        return Elementwise((kind,), (kind,), _exact64(lambda a: 1 / a if a else None)(mode, plain))
    if mode in ("rn", "approx"):
        return _float32(m, plain, 1, ftz, False)
    pair = root if is_root else lambda a: quotient(np.ones_like(a), a)
    return _float32(m, _in_pairs(pair, mode), 1, ftz, False)


def flush_top(a: Array) -> Array:
    """The upper half of float64, as the approximations read them."""
    return (a.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)


@form("rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
def _function(m: Mods) -> Elementwise:
    """Approximations: here the nearest number."""
    kind, ftz = m.type("f16", "f16x2", "bf16", "bf16x2", "f32", "f64"), m.has("ftz")
    if not m.has("approx"):
        raise m.unknown()
    function = _FUNCTIONS[m.inst.op]
    if kind == "f64":
        if m.inst.op != "rsqrt":
            raise m.unknown()
        # with ftz the upper half alone, for a kernel to refine; without, the system's own refinement
        return Elementwise((kind,), (kind,), (lambda a: flush_top(function(flush_top(a)))) if ftz else function)
    if kind == "f32":
        return _float32(m, _through(function), 1, ftz, False)
    return _bits(m, kind, lambda a: (function(a), np.zeros_like(a)), 1)
