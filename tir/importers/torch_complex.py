"""Rows of ATen operators on complex numbers, which a graph has as two tensors of real ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..graph import Value
from .making import Unsupported, axis_of, broadcast
from .spectra import of_half, transformed
from .torch_table import PARTS, Call, Complex, Operand, complex_row, real_row, type_named

# ---------------------------------------------------------------- of real numbers, and back


@complex_row("complex")
def _complex(c: Call, real: Value, imag: Value) -> Any:
    shape = broadcast(real.shape, imag.shape)
    return Complex(*(part if part.shape == shape else c.op("broadcast_to", part, shape) for part in (real, imag)))


@complex_row("polar")
def _polar(c: Call, abs: Value, angle: Value) -> Any:
    return Complex(*(c.op("multiply", abs, c.op(wave, angle)) for wave in ("cos", "sin")))


@complex_row("exp")
def _exp(c: Call, x: Complex) -> Any:
    return _polar(c, c.op("exp", x.real), x.imaginary)


@complex_row("view_as_complex")
def _view_as_complex(c: Call, x: Value) -> Any:
    return Complex(*(c.one_of(x, len(x.shape) - 1, n) for n in range(2)))


@complex_row("view_as_real")
def _view_as_real(c: Call, x: Complex) -> Any:
    return c.op("stack", [x.real, x.imaginary], -1)


@complex_row("real", "imag")
def _part(c: Call, x: Complex) -> Any:
    return x.real if c.operator == "real" else x.imaginary


@complex_row("abs", "angle")
def _abs(c: Call, x: Complex) -> Any:
    if c.operator == "angle":
        return c.op("atan2", x.imaginary, x.real)
    return c.op("sqrt", c.op("add", c.op("square", x.real), c.op("square", x.imaginary)))


@complex_row("_conj", "conj", "conj_physical", "_conj_physical")
def _conj(c: Call, x: Complex) -> Any:
    return Complex(x.real, c.op("negative", x.imaginary))


@complex_row("_to_copy", "to")
def _to_copy(c: Call, x: Value | Complex, **without_meaning: Any) -> Any:
    kind = type_named(PARTS.get(c.results[0].dtype, c.results[0].dtype))
    if c.results[0].dtype not in PARTS:
        raise Unsupported("the imaginary parts would be lost")
    if isinstance(x, Complex):
        return Complex(*(c.tensor(part, kind) for part in (x.real, x.imaginary)))
    real = c.tensor(x, kind)
    return Complex(real, c.op("zeros_like", real))


# ---------------------------------------------------------------- what is done with each part


@complex_row(
    *("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy", "flatten", "unflatten", "squeeze", "unsqueeze", "permute"),
    *("transpose", "swapaxes", "t", "mT", "numpy_T", "movedim", "expand", "expand_as", "broadcast_to", "repeat", "tile", "cat", "concat"),
    *("stack", "select", "slice", "split", "split_with_sizes", "chunk", "unbind", "narrow", "index", "index_select", "gather", "roll"),
    *("flip", "clone", "contiguous", "detach", "alias", "lift_fresh_copy", "resolve_conj", "resolve_neg", "diagonal", "tril", "triu", "zeros", "new_zeros"),
    *("zeros_like", "empty", "empty_like", "constant_pad_nd", "pad", "slice_scatter", "select_scatter", "index_put", "copy", "where", "unfold"),
    *("neg", "sum", "mean", "cumsum", "add", "sub", "rsub"),
)  # fmt: skip
def _by_parts(c: Call, **arguments: Any) -> Any:
    made = [real_row(c, c.operator, _parts(c, arguments, n)) for n in range(2)]
    if isinstance(made[0], (list, tuple)):
        return tuple(Complex(real, imaginary) for real, imaginary in zip(*made))
    real, imaginary = made
    return Complex(real, imaginary)


def _parts(c: Call, arguments: dict[str, Any], n: int) -> dict[str, Any]:
    """The real (0) or the imaginary parts of arguments. Those of real floats, and of a number that is added, are 0."""
    adds = c.operator in ("add", "sub", "rsub", "where")

    def part(argument: Any, is_term: bool) -> Any:
        if isinstance(argument, list):
            return [part(each, is_term) for each in argument]
        if isinstance(argument, Complex):
            return argument.imaginary if n else argument.real
        if isinstance(argument, complex):
            return argument.imag if n else argument.real
        if isinstance(argument, Value):
            is_term = argument.dtype.is_float or (adds and not argument.dtype.is_bool)
            return c.op("zeros_like", argument) if n and is_term else argument
        if argument is not None and str(argument).removeprefix("torch.") in PARTS:
            return type_named(PARTS[str(argument).removeprefix("torch.")])
        return 0 if n and is_term and isinstance(argument, (int, float)) else argument

    return {k: part(a, adds and k in ("x", "other")) for k, a in arguments.items()}


# ---------------------------------------------------------------- products


def _product(c: Call, a: Any, b: Any, times: Callable[[Any, Any], Value]) -> Complex:
    """The product of two, of which one may be real, by products of their parts."""
    if not isinstance(b, (Complex, complex)):
        return Complex(*(times(part, b) for part in _pair(a)))
    if not isinstance(a, (Complex, complex)):
        return Complex(*(times(a, part) for part in _pair(b)))
    (p, q), (r, s) = _pair(a), _pair(b)
    return Complex(c.op("subtract", times(p, r), times(q, s)), c.op("add", times(p, s), times(q, r)))


def _pair(x: Complex | complex) -> tuple[Operand, Operand]:
    return (x.real, x.imaginary) if isinstance(x, Complex) else (x.real, x.imag)


@complex_row("mul", "mm", "bmm", "matmul", "mv", "dot")
def _times(c: Call, x: Any, **other: Any) -> Any:
    ((name, second),) = other.items()
    return _product(c, x, second, lambda p, q: real_row(c, c.operator, {"x": c.tensor(p), name: q}))


@complex_row("einsum")
def _einsum(c: Call, equation: str, tensors: Sequence[Any], path: Any = None) -> Any:
    if len(tensors) != 2:
        raise Unsupported(f"{len(tensors)} complex tensors")
    first, second = tensors
    return _product(c, first, second, lambda p, q: real_row(c, "einsum", {"equation": equation, "tensors": [p, q]}))


@complex_row("div")
def _div(c: Call, x: Any, other: Any) -> Any:
    if isinstance(other, (Complex, complex)):
        r, s = (c.tensor(part) for part in _pair(other))
        size = c.op("add", c.op("square", r), c.op("square", s))
        other = Complex(c.op("divide", r, size), c.op("divide", c.op("negative", s), size))
        return _product(c, x, other, lambda p, q: real_row(c, "mul", {"x": c.tensor(p), "other": q}))
    return Complex(*(real_row(c, "div", {"x": part, "other": other}) for part in _pair(x)))


@complex_row("reciprocal")
def _reciprocal(c: Call, x: Complex) -> Any:
    return _div(c, 1.0, x)


# ---------------------------------------------------------------- Fourier transforms


def _along(
    c: Call, parts: Sequence[Value], dims: Sequence[int], transform: Callable[[Sequence[Value]], Sequence[Value]]
) -> list[Value]:
    """A transform of the last axis along each of ``dims``, the last of them first."""
    made = list(parts)
    for dim in reversed(dims):
        axis = axis_of(dim, len(made[0].shape))
        turned = [c.op("moveaxis", part, axis, -1) for part in made]
        made = [c.op("moveaxis", part, -1, axis) for part in transform(turned)]
    return made


def _scaled(c: Call, parts: list[Value], sizes: Sequence[int], normalization: int, inverse: bool) -> list[Value]:
    """Results of transforms with the factor of torch: 1, 1 / sqrt(n) or 1 / n, of transforms forward and back."""
    count = math.prod(sizes)
    factor = (1.0, count**-0.5, 1.0 / count)[normalization] * (count if inverse else 1)
    return parts if factor == 1 else [c.op("multiply", part, factor) for part in parts]


@complex_row("_fft_c2c")
def _fft_c2c(c: Call, x: Complex, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    made = _along(c, (x.real, x.imaginary), dim, lambda parts: transformed(c, parts, not forward))
    return Complex(*_scaled(c, made, [x.real.shape[d] for d in dim], normalization, not forward))


@complex_row("_fft_r2c")
def _fft_r2c(c: Call, x: Value, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    def first(parts: Sequence[Value]) -> list[Value]:
        made = transformed(c, parts, False)
        count = parts[0].shape[-1]
        return [c.sliced(part, [(-1, slice(0, count // 2 + 1))]) for part in made] if onesided else made

    made = _along(c, _along(c, [x], dim[-1:], first), dim[:-1], lambda parts: transformed(c, parts, False))
    return Complex(*_scaled(c, made, [x.shape[d] for d in dim], normalization, False))


@complex_row("_fft_c2r")
def _fft_c2r(c: Call, x: Complex, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    made = _along(c, (x.real, x.imaginary), dim[:-1], lambda parts: transformed(c, parts, True))
    known = last_dim_size // 2 + 1

    def last(parts: Sequence[Value]) -> list[Value]:
        return [of_half(c, [c.sliced(part, [(-1, slice(0, known))]) for part in parts], last_dim_size)]

    sizes = [*(x.real.shape[d] for d in dim[:-1]), last_dim_size]
    return _scaled(c, _along(c, made, dim[-1:], last), sizes, normalization, True)[0]
