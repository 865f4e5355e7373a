"""Arithmetic of floats: every format and rounding, packed pairs, approximations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from .floats import F32, HALVES, add, directed64, flush, fma64, fma_narrow, quotient, root
from .table import Array, Elementwise, Mods, form, form_of_floats

_ROUNDINGS = ("rn", "rz", "rm", "rp")
_FLOATS = ("f32", "f64")
_REALS = (*HALVES, *_FLOATS)


def flushed(x: Array) -> Array:
    """A float32 array with its subnormal numbers as zeros."""
    return flush(x.view(np.uint32)).view(np.float32)


def canonical(x: Array) -> Array:
    """float32 results with the nan that the machine gives."""
    return np.where(np.isnan(x), np.uint32(0x7FFFFFFF), x.view(np.uint32)).view(np.float32)


def _saturated(x: Array) -> Array:
    """Within [0, 1], nan as 0, and -0 as 0."""
    return np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))


def _float32(m: Mods, function: Callable[..., Array], count: int, saturates: bool = False) -> Elementwise:
    ftz, sat = m.has("ftz"), saturates and m.has("sat")

    def run(*args: Array) -> Array:
        made = canonical(function(*(map(flushed, args) if ftz else args)))
        made = flushed(made) if ftz else made
        return _saturated(made) if sat else made

    return Elementwise(("f32",), ("f32",) * count, run)


def _bits(m: Mods, kind: str, pair: Callable[..., tuple[Array, Array]], count: int) -> Elementwise:
    """An operation on numbers of 16 bits, or on two of them at a time; ``pair`` takes and gives float64."""
    sat, relu, ftz = m.has("sat"), m.has("relu"), m.has("ftz")
    m.take("noftz", "rn")
    form_ = HALVES[kind]

    def run(*args: Array) -> Array:
        bits = [np.ascontiguousarray(a).view(np.uint16) for a in args]
        values = [form_.widen(flush(a, form_) if ftz else a) for a in bits]
        made = form_.rounded(*pair(*values))
        if ftz:
            made = flush(made, form_)
        if sat or relu:
            x = form_.widen(made)
            most = 1.0 if sat else np.inf
            low = np.where(np.isnan(x), np.nan if relu else 0.0, np.minimum(np.where(x > 0, x, 0.0), most))
            made = form_.rounded(low, np.zeros_like(low))
        return made.view(args[0].dtype)

    return Elementwise((kind,), (kind,) * count, run)


@dataclass(frozen=True)
class _Operation:
    """``plain``: of float32, rounded to nearest; ``pair``: of float64 that are numbers of at most 24 bits; ``float64``: by the
    rounding. ``is_sum``: whether what cancels is -0 where rounding is downward."""

    count: int
    plain: Callable[..., Array]
    pair: Callable[..., tuple[Array, Array]]
    float64: Callable[[str], Callable[..., Array] | None]
    is_sum: bool = False

    def float32(self, mode: str) -> Callable[..., Array]:
        def run(*args: Array) -> Array:
            s, e = self.pair(*(a.astype(np.float64) for a in args))
            made = F32.rounded(s, e, mode).view(np.float32)
            cancels = (s == 0) & (e == 0) & ~np.signbit(s) & (args[-1] != 0)
            return np.where(cancels, np.float32(-0.0), made) if self.is_sum and mode == "rm" else made

        return self.plain if mode == "rn" else run

    def form(self, m: Mods) -> Elementwise:
        """Of every format; to nearest, where no other rounding is given."""
        kind = m.type(*_REALS)
        if kind in HALVES:
            return _bits(m, kind, self.pair, self.count)
        return self.rounded(m, kind, m.take(*_ROUNDINGS) or "rn", saturates=True)

    def rounded(self, m: Mods, kind: str, mode: str, saturates: bool = False) -> Elementwise:
        if kind == "f32":
            return _float32(m, self.float32(mode), self.count, saturates)
        function = self.float64(mode)
        if function is None:
            raise m.unknown()
        return Elementwise((kind,), (kind,) * self.count, function)


def _directed(
    plain: Callable[..., Array], exact: Callable[..., Fraction | None], is_sum: bool = False
) -> Callable[[str], Any]:
    """Functions of float64 by their rounding. ``exact``: of fractions; None where the result is not finite."""

    def by(mode: str) -> Any:
        def run(*args: Array) -> Array:
            usual = plain(*args)
            made = directed64(exact, mode, *args)
            cancels = (usual == 0) & (args[-1] != 0) & is_sum & (mode == "rm")
            zero = np.where(cancels, -0.0, np.copysign(0.0, usual))
            return np.where(np.isnan(made), usual, np.where(made == 0, zero, made))

        return {"rn": plain}.get(mode, run) if mode in _ROUNDINGS else None

    return by


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    return a * b, np.zeros_like(a)


def _fused(a: Array, b: Array, c: Array) -> Array:
    x, y, z = (v.astype(np.float64) for v in (a, b, c))
    return F32.rounded(*fma_narrow(x, y, z)).view(np.float32)


_OPERATIONS = {
    "add": _Operation(2, np.add, add, _directed(np.add, lambda a, b: a + b, True), is_sum=True),
    "sub": _Operation(
        2, np.subtract, lambda a, b: add(a, -b), _directed(np.subtract, lambda a, b: a - b, True), is_sum=True
    ),
    "mul": _Operation(2, np.multiply, _product, _directed(np.multiply, lambda a, b: a * b)),
    "fma": _Operation(3, _fused, fma_narrow, lambda mode: partial(fma64, mode=mode), is_sum=True),
    "div": _Operation(2, np.divide, quotient, _directed(np.divide, lambda a, b: a / b if b else None)),
    "rcp": _Operation(
        1,
        np.reciprocal,
        lambda a: quotient(np.ones_like(a), a),
        _directed(np.reciprocal, lambda a: 1 / a if a else None),
    ),
    "sqrt": _Operation(1, np.sqrt, root, {"rn": np.sqrt}.get),
}


@form_of_floats("add", "sub", "mul")
def _arithmetic(m: Mods) -> Elementwise:
    return _OPERATIONS[m.inst.op].form(m)


@form("fma")
@form_of_floats("mad")
def _multiply_add(m: Mods) -> Elementwise:
    return _OPERATIONS["fma"].form(m)


@form_of_floats("div")
@form("rcp", "sqrt")
def _divided(m: Mods) -> Elementwise:
    kind, operation, is_quotient = m.type(*_FLOATS), _OPERATIONS[m.inst.op], m.inst.op == "div"
    mode = m.take(*_ROUNDINGS, "approx", *(["full"] if is_quotient else []))
    if not mode and not is_quotient:
        raise m.unknown()
    if kind == "f32":
        return operation.rounded(m, kind, mode if mode in _ROUNDINGS else "rn")
    m.has("ftz")
    if mode == "approx" and not is_quotient:
        return Elementwise((kind,), (kind,), lambda a: flush_top(operation.plain(flush_top(a))))
    return operation.rounded(m, kind, mode)


@form_of_floats("abs", "neg")
def _signs(m: Mods) -> Elementwise:
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
def _least(m: Mods) -> Elementwise:
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
    return Elementwise((kind,), (kind, kind), HALVES[kind].of_numbers(choose))


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


def flush_top(a: Array) -> Array:
    """The upper half of float64, as the approximations read them."""
    return (a.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)


@form("rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
def _function(m: Mods) -> Elementwise:
    """Approximations: here the nearest number."""
    kind, function = m.type(*_REALS), _FUNCTIONS[m.inst.op]
    if not m.has("approx"):
        raise m.unknown()
    if kind == "f32":
        return _float32(m, _through(function), 1)
    ftz = m.has("ftz")
    if kind == "f64":
        if m.inst.op != "rsqrt":
            raise m.unknown()
        # with ftz the upper half alone, for a kernel to refine; without, the system's own refinement
        return Elementwise((kind,), (kind,), (lambda a: flush_top(function(flush_top(a)))) if ftz else function)
    return _bits(m, kind, lambda a: (function(a), np.zeros_like(a)), 1)
