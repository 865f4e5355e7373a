"""Shapes of operands: broadcasting, and axes as the user counts them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from .. import Expr, IntImm, is_const, simplify
from ..te import error

Shape = tuple[Expr, ...]


def are_equal(a: Any, b: Any) -> bool:
    """Whether two extents are known to be equal.

    >>> from tir import te
    >>> n = te.var("n")
    >>> are_equal(n + 1, 1 + n), are_equal(n, 4)
    (True, False)
    """
    return a is b or is_const(simplify(a - b), 0)


def broadcast(*shapes: Shape) -> Shape:
    """The shape of operands of ``shapes`` together, aligned at the right; an extent of 1 goes with any other.

    Raises ``TensorExpressionError`` for extents that differ, or of which that cannot be told.

    >>> from tir.expr import const
    >>> broadcast((const(3), const(1)), (const(4),))
    (3, 4)
    """
    ndim = max(map(len, shapes))
    return tuple(
        _common([s[axis - ndim] for s in shapes if len(s) >= ndim - axis], axis, shapes) for axis in range(ndim)
    )


def _common(extents: Sequence[Expr], axis: int, shapes: Sequence[Shape]) -> Expr:
    found = extents[0]
    for extent in extents[1:]:
        if is_const(extent, 1) or are_equal(extent, found):
            continue
        if not is_const(found, 1):
            known = isinstance(extent, IntImm) and isinstance(found, IntImm)
            raise error(
                f"shapes {' and '.join(map(str, shapes))} do not broadcast: axis {axis} of the result would be {found} and "
                f"{extent}{'' if known else ', which are not known to be equal'}",
                "equal extents or 1, aligned at the right"
                + ("" if known else "; one te.var, or one name in `shapes`, for sizes that are equal"),
            )
        found = extent
    return found


def read_index(shape: Shape, out: Shape, indices: Sequence[Any]) -> tuple[Any, ...]:
    """The index of an operand of ``shape`` for the element at ``indices`` of a result of the broadcast shape ``out``."""
    first = len(out) - len(shape)
    return tuple(
        0 if is_const(extent, 1) and not is_const(whole, 1) else index
        for extent, whole, index in zip(shape, out[first:], indices[first:])
    )


def axis_of(axis: Any, ndim: int, what: str = "axis") -> int:
    """An axis counted from 0; the user may count from the end. Raises ``TensorExpressionError`` for one that is none.

    >>> axis_of(-1, 3)
    2
    """
    try:
        number = operator.index(axis)
    except TypeError:
        raise error(f"{what} is an integer, not {axis!r}", _axes_text(ndim)) from None
    if isinstance(axis, bool) or not -ndim <= number < ndim:
        raise error(f"{what} {axis} is none of a tensor of {ndim} dimension{'s' * (ndim != 1)}", _axes_text(ndim))
    return number % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes in ascending order: one, several, or all for ``None``. Raises ``TensorExpressionError`` for one named twice.

    >>> axes_of((-1, 0), 3), axes_of(None, 2)
    ((0, 2), (0, 1))
    """
    if axis is None:
        return tuple(range(ndim))
    found = [axis_of(a, ndim) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    if len(set(found)) < len(found):
        raise error(f"axis {axis} names an axis twice", "each axis once")
    return tuple(sorted(found))


def _axes_text(ndim: int) -> str:
    return f"from {-ndim} to {ndim - 1}" if ndim else "a tensor of 0 dimensions has no axes"
