"""Operators that make tensors of nothing: constants, sequences and identities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import DType, Expr, as_expr, cast, const, simplify, te
from .. import max as max_
from ..te import Tensor, compute, data_type, error, if_then_else
from .element_places import as_index, constant_of, integer, sized
from .registry import arg, case, operator
from .shapes import axis_of


def _is_dtype(value: Any) -> bool:
    return isinstance(value, (str, DType, type, np.dtype))


def _numpy_full(shape: Any, fill_value: Any, dtype: Any = "float32") -> Any:
    return np.full(shape, dtype if isinstance(fill_value, str) else fill_value, np.float64)


@operator(
    shapes="-> (…)", section="creation", reference=_numpy_full,
    cases=[
        case((2, 3), 1.5), case((2,), 7, "int8"), case((), True, "bool"), case((0, 2), 1, "bfloat16"),
        case((3,), "float16", -0.5),
    ],
)  # fmt: skip
def full(shape: Any, fill_value: Any, dtype: Any = "float32") -> Tensor:
    """A tensor of ``shape`` with ``fill_value`` everywhere. The order ``full(shape, dtype, fill_value)`` is taken too.

    >>> from tir import ops
    >>> ops.full((2, 3), 7, "int8")
    Tensor(full, (2, 3), int8)
    """
    value, kind = (dtype, fill_value) if _is_dtype(fill_value) else (fill_value, dtype)
    made = constant_of(value, data_type(kind))
    return compute(sized(shape, "the shape"), lambda *_: made, name="full")


@operator(
    shapes="-> (…)", section="creation", reference=lambda shape, dtype="float32": np.zeros(shape),
    cases=[case((2, 3)), case((), "int64"), case((0,), "bool")],
)  # fmt: skip
def zeros(shape: Any, dtype: Any = "float32") -> Tensor:
    """A tensor of zeros.

    >>> from tir import ops
    >>> ops.zeros((2, 3))
    Tensor(zeros, (2, 3), float32)
    """
    return compute(sized(shape, "the shape"), lambda *_: const(0, data_type(dtype)), name="zeros")


@operator(
    shapes="-> (…)", section="creation", reference=lambda shape, dtype="float32": np.ones(shape),
    cases=[case((2, 3)), case((), "uint8"), case(3, "bool")],
)  # fmt: skip
def ones(shape: Any, dtype: Any = "float32") -> Tensor:
    """A tensor of ones.

    >>> from tir import ops
    >>> ops.ones((2, 3), "int8")
    Tensor(ones, (2, 3), int8)
    """
    return compute(sized(shape, "the shape"), lambda *_: const(1, data_type(dtype)), name="ones")


def _numpy_arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    return np.arange(start, stop, step) if stop is not None else np.arange(0, start, step)


@operator(
    shapes="-> (_)", section="creation", reference=_numpy_arange,
    cases=[
        case(5), case(2, 11, 3), case(11, 2, -4, "int64"), case(0.5, 3.0, 0.4), case(5, 5), case(5, 2),
        case(0, 6, 2, dtype="uint8"), case(0, 1, 0.1, "float64"), case(4, dtype="bfloat16"),
    ],
)  # fmt: skip
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """The numbers from ``start`` (0, where one bound alone is given) up to ``stop``, which is not among them, by ``step``.

    Bounds may be scalar expressions of integers. Without ``dtype``, integers are int32 and floats float32. Raises
    ``TensorExpressionError`` for a step of 0.

    >>> from tir import ops
    >>> ops.arange(2, 11, 3)
    Tensor(arange, (3,), int32)
    """
    first, last = (0, start) if stop is None else (start, stop)
    if not isinstance(step, (int, float)) or step == 0:
        raise error(f"a step is a number other than 0, not {step!r}")
    has_floats = any(isinstance(v, float) or (isinstance(v, Expr) and v.dtype.is_float) for v in (first, last, step))
    kind = data_type(dtype or ("float32" if has_floats else "int32"))
    wide = "float64" if has_floats or kind.is_float else "int64"

    def element(number: Any) -> Expr:
        return cast(kind, cast(wide, as_expr(first)) + cast(wide, number) * const(step, wide))

    return compute((_count(first, last, step),), element, name="arange")


def _count(first: Any, last: Any, step: Any) -> Expr:
    """How many numbers there are from ``first`` up to ``last``."""
    if isinstance(first, (int, float)) and isinstance(last, (int, float)):
        return const(max(0, math.ceil((last - first) / step)))
    if isinstance(step, float) or any(not as_expr(v).dtype.is_int for v in (first, last)):
        raise error(f"how many numbers there are from {first!r} to {last!r} by {step!r} is not known", "integers")
    length = last - first if step > 0 else first - last
    return simplify(max_((length + (abs(step) - 1)) // abs(step), 0))


@operator(
    shapes="-> (_)", section="creation",
    reference=lambda start, stop, num=50, dtype="float32", endpoint=True: np.linspace(start, stop, num, endpoint),
    cases=[
        case(0, 1, 5), case(-1.0, 2.0, 4, endpoint=False), case(3, 4, 1), case(3, 4, 0), case(10, -10, 7, "float64"),
    ],
)  # fmt: skip
def linspace(start: float, stop: float, num: int = 50, dtype: Any = "float32", endpoint: bool = True) -> Tensor:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which is the last, or with ``endpoint=False`` is left
    out.

    Raises ``TensorExpressionError`` for a negative number of them, and for a type that is not one of floats.

    >>> from tir import ops
    >>> ops.linspace(0, 1, 5)
    Tensor(linspace, (5,), float32)
    """
    count, kind = integer(num, "how many numbers there are"), data_type(dtype)
    if count < 0 or not kind.is_float:
        raise error(f"{count} numbers of {kind}", "0 or more, of floats")
    parts = count - 1 if endpoint else count
    step = (stop - start) / parts if parts else 0.0

    def element(number: Any) -> Expr:
        made = const(float(start), "float64") + cast("float64", number) * const(step, "float64")
        last = const(float(stop), "float64")
        return cast(kind, if_then_else(number == parts, last, made) if endpoint and parts else made)

    return compute((count,), element, name="linspace")


def _numpy_hamming(window_size: int, periodic: bool, alpha: float, beta: float, dtype: Any) -> Any:
    parts = window_size if periodic else window_size - 1
    return alpha - beta * np.cos(2 * np.pi * np.arange(window_size) / max(parts, 1))


@operator(
    gives=(8,), shapes="-> (_)", section="creation", reference=_numpy_hamming,
    cases=[
        case(8, True, 0.54, 0.46, "float32"), case(7, False, 0.5, 0.5, "float64"),
        case(1, False, 0.54, 0.46, "float32"), case(0, True, 0.54, 0.46, "float32"),
    ],
)  # fmt: skip
def hamming_window(window_size: int, periodic: bool, alpha: float, beta: float, dtype: Any) -> Tensor:
    """``alpha - beta * cos(2 * pi * n / count)`` for ``n`` below ``window_size``: a window of signals, as ``stft`` takes one.

    ``count`` is ``window_size`` where the window is ``periodic``, else one less, which makes it symmetric.
    """
    count, kind = integer(window_size, "the size of a window"), data_type(dtype)
    if count < 0 or not kind.is_float:
        raise error(f"a window of {count} elements of {kind}", "0 or more, of floats")
    turn = 2 * math.pi / max(count if periodic else count - 1, 1)

    def element(number: Any) -> Expr:
        wave = te.cos(cast("float64", number) * const(turn, "float64"))
        return cast(kind, const(float(alpha), "float64") - const(float(beta), "float64") * wave)

    return compute((count,), element, name="hamming_window")


@operator(
    gives=(3, 3), shapes="-> (_, _)", section="creation",
    reference=lambda n, m=None, k=0, dtype="float32": np.eye(n, m, k),
    cases=[case(3), case(2, 4, 1), case(3, 2, -1, "int8"), case(0, 3), case(2, 2, 5, dtype="bool")],
)  # fmt: skip
def eye(n: Any, m: Any = None, k: int = 0, dtype: Any = "float32") -> Tensor:
    """``n`` rows and ``m`` (as many, for None) columns of zeros with ones on diagonal ``k``, above the main one where positive."""
    shape, kind, above = sized((n, n if m is None else m), "the shape"), data_type(dtype), integer(k, "a diagonal")
    return compute(shape, lambda i, j: if_then_else(j - i == above, const(1, kind), const(0, kind)), name="eye")


def _numpy_one_hot(
    indices: Any, on_value: Any, off_value: Any, depth: int, axis: int = -1, dtype: Any = "float32"
) -> Any:
    at = np.arange(depth).reshape([-1 if n == axis % (indices.ndim + 1) else 1 for n in range(indices.ndim + 1)])
    return np.where(np.expand_dims(indices, axis).astype(np.int64) == at, on_value, off_value)


@operator(
    gives=(2, 3, 4), shapes="(…) integer -> (…r)", section="creation", reference=_numpy_one_hot,
    cases=[
        case(arg((2, 3), "int32", "indices below 4"), 1, 0, 4),
        case(arg((3,), "uint8", "indices below 4"), 5, -2, 4, 0, "int8"),
        case(arg((), "int64", "indices below 4"), True, False, 4, -1, "bool"),
        case(arg((2,), "int32", np.array([-1, 9])), 1, 0, 3),
    ],
)  # fmt: skip
def one_hot(
    indices: Tensor, on_value: Any, off_value: Any, depth: Any, axis: int = -1, dtype: Any = "float32"
) -> Tensor:
    """``on_value`` at place ``indices[…]`` of a new dimension ``axis`` of extent ``depth``, and ``off_value`` elsewhere.

    An index outside has ``off_value`` everywhere. Raises ``TensorExpressionError`` for indices that are no integers.
    """
    at, kind, (extent,) = axis_of(axis, indices.ndim + 1), data_type(dtype), sized(depth, "the depth")
    on, off = constant_of(on_value, kind), constant_of(off_value, kind)

    def element(*places: Any) -> Expr:
        hot = as_index(indices(*places[:at], *places[at + 1 :]))
        return if_then_else(hot == places[at], on, off)

    shape = (*indices.shape[:at], extent, *indices.shape[at:])
    return compute(shape, element, name="one_hot")
