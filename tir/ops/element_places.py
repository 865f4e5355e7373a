"""Axes, extents and places of elements: what operators that move elements have in common."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from .. import DType, Expr, IntImm, as_expr, cast, const, is_const, simplify
from .. import max as max_
from .. import min as min_
from ..te import Tensor, as_size, at_most, compute, data_type, error, if_then_else
from .shapes import axis_of

MOVED_DTYPES = ("int8", "uint16", "int64", "float16", "bfloat16", "float64", "bool")  # that cases move elements of

# ---------------------------------------------------------------- attributes


def constant(value: Any) -> int | None:
    """The integer that ``value`` is, or None for an expression whose value is not known."""
    if isinstance(value, Expr):
        simple = simplify(value)
        return int(simple.value) if isinstance(simple, IntImm) else None
    return operator.index(value)


def integer(value: Any, what: str) -> int:
    """``value`` as an integer that is known. Raises ``TensorExpressionError`` for anything else."""
    try:
        known = constant(value)
    except TypeError:
        known = None
    if known is None or isinstance(value, bool):
        raise error(f"{what} is an integer that is known, not {value!r}")
    return known


def listed(value: Any) -> tuple[Any, ...]:
    """``value`` as a tuple: of one item, where it is no list and no tuple."""
    return tuple(value) if isinstance(value, (list, tuple, range)) else (value,)


def axes_in_order(axes: Any, ndim: int) -> tuple[int, ...]:
    """``axes`` counted from 0, as the user orders them. Raises ``TensorExpressionError`` for one named twice."""
    places = tuple(axis_of(a, ndim) for a in listed(axes))
    if len(set(places)) < len(places):
        raise error(f"an axis is named twice: {listed(axes)} of {ndim} dimensions", "each axis once")
    return places


def require_rank(x: Tensor, ndim: int, what: str) -> None:
    """Raise ``TensorExpressionError`` unless ``x``, which is ``what``, has ``ndim`` dimensions."""
    if x.ndim != ndim:
        raise error(f"{what} has {ndim} dimension{'s' * (ndim != 1)}, not the shape {x.shape}")


def require_integers(x: Tensor, what: str) -> None:
    """Raise ``TensorExpressionError`` unless ``x``, which is ``what``, has integers."""
    if not x.dtype.is_int or x.dtype.is_bool:
        raise error(f"{what} has integers, not {x.dtype}", "cast it before")


def require_same_dtype(x: Tensor, other: Tensor, what: str) -> None:
    """Raise ``TensorExpressionError`` unless ``other``, which is ``what``, has the data type of ``x``."""
    if x.dtype is not other.dtype:
        raise error(f"{what} is {other.dtype}, but the data are {x.dtype}", "cast one of them before")


def chosen(value: Any, legal: Sequence[str], what: str) -> str:
    """``value``, one of the words that are ``legal``. Raises ``TensorExpressionError`` for another."""
    if value not in legal:
        raise error(f"{what} is not {value!r}", ", ".join(map(repr, legal)))
    return str(value)


def positions_type(dtype: Any, count: Any) -> DType:
    """``dtype`` as the type of positions below ``count``. Raises ``TensorExpressionError`` where it is known not to hold them."""
    made, known = data_type(dtype), constant(count)
    if known is not None and made.is_int and known - 1 > made.max_value:
        raise error(f"positions up to {known - 1} are no {made}, which ends at {made.max_value}", 'dtype="int32"')
    return made


# ---------------------------------------------------------------- extents


def product(extents: Sequence[Any]) -> Expr:
    """The product of ``extents``; 1 of none."""
    made: Expr = const(1)
    for extent in extents:
        made = extent if is_const(made, 1) else made * extent
    return simplify(as_expr(made))


def is_empty(shape: Sequence[Any]) -> bool:
    """Whether an extent of ``shape`` is known to be 0."""
    return any(is_const(s, 0) for s in shape)


def is_one(extent: Any) -> bool:
    """Whether ``extent`` is known to be 1."""
    return constant(extent) == 1


# ---------------------------------------------------------------- places of elements


def flat_index(indices: Sequence[Any], shape: Sequence[Any]) -> Expr:
    """The place of an element in row-major order."""
    made: Expr = const(0)
    for index, extent in zip(indices, shape):
        made = index if is_const(made, 0) else made * extent + index
    return as_expr(made)


def as_index(value: Expr) -> Expr:
    """An integer that was read from a tensor, in a signed type in which indices are computed."""
    if value.dtype.is_bool or value.dtype.bits < 32:
        return cast("int32", value)
    return cast("int64", value) if value.dtype.code == "uint" else value


def clamped(place: Any, extent: Any) -> Expr:
    """The element of an axis that is nearest to ``place``. Raises ``TensorExpressionError`` for an axis of no elements."""
    if not at_most(1, extent):
        raise error("an axis that has no elements is read at computed indices", "an extent of at least 1")
    return max_(min_(place, extent - 1), 0)


def replaced(items: Sequence[Any], at: int, *new: Any) -> tuple[Any, ...]:
    """``items`` with ``new`` in the place of item ``at``."""
    return (*items[:at], *new, *items[at + 1 :])


def constant_of(value: Any, dtype: DType) -> Expr:
    """A number or a scalar expression in ``dtype``."""
    return cast(dtype, value) if isinstance(value, Expr) else const(value, dtype)


def one_of(values: Sequence[Expr], number: Any, ends: Sequence[Any] = ()) -> Expr:
    """The expression of this number, or the first that ends after it; ``number`` is that of one. A balanced tree of choices, as there may be thousands."""
    if len(values) == 1:
        return values[0]
    ends, half = ends or range(1, len(values) + 1), len(values) // 2
    below, beyond = (one_of(values[part], number, ends[part]) for part in (slice(half), slice(half, None)))
    return if_then_else(number < ends[half - 1], below, beyond)


def of_zeros(shape: Sequence[Any], dtype: Any, name: str) -> Tensor:
    """A tensor of zeros: what an operator gives that has no elements to read."""
    kind = DType(dtype)
    return compute(tuple(shape), lambda *_: const(0, kind), name=name)


def gathered(shape: Sequence[Any], dtype: Any, element: Callable[..., Any], name: str) -> Tensor:
    """The tensor of ``element(*indices)``; one that has no elements reads none."""
    return of_zeros(shape, dtype, name) if is_empty(shape) else compute(tuple(shape), element, name=name)


def sized(shape: Any, what: str) -> tuple[Expr, ...]:
    """``shape`` as integer expressions. Raises ``TensorExpressionError`` for a negative extent and for what is none."""
    made = tuple(as_size(s, f"an extent of {what}") for s in listed(shape))
    if any(isinstance(s, IntImm) and s.value < 0 for s in made):
        raise error(f"{what} is {made}: an extent is at least 0")
    return made
