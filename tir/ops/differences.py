"""Differences of neighbours, along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import const, simplify
from .. import max as max_
from ..te import Tensor, compute, error
from .creation import full
from .element_places import constant, integer, replaced
from .joining import concatenate
from .operands import Operand, require_kind
from .registry import arg, case, complete, operator
from .shapes import axis_of
from .unary import positive


def _numpy_diff(x: Any, n: int, axis: int, prepend: Any, append: Any) -> Any:
    ends = {name: value for name, value in (("prepend", prepend), ("append", append)) if value is not None}
    return np.diff(x, n, axis, **ends)


@operator(
    gives=(3, 4), shapes="(…, _@axis, …), (…p), (…q) -> (…, _@axis, …)", section="cumulative", reference=complete(_numpy_diff),
    cases=[
        case(arg((3, 5))), case(arg((7, 2), "float64"), 2, 0), case(arg((4, 3), "float16"), axis=-2),
        case(arg((2, 3), "int8"), 0), case(arg((2, 3), "uint8"), 1), case(arg((2, 2), "int64"), 3),
        case(arg((1,), "bfloat16")), case(arg((0, 3)), axis=0), case(arg((2, 3)), 9), case(arg((3, 0)), axis=0),
        case(arg(("n", 3)), axis=0), case(arg((3, "n"), "int32"), 2),
        case(arg((2, 3)), prepend=arg((2, 1)), append=arg((2, 4))),
        case(arg((3, 4), "int8"), 1, 0, 5, arg((1, 4), "int32")), case(arg((6,), "float32", "nonfinite")),
    ],
)  # fmt: skip
def diff(
    x: Tensor, n: int = 1, axis: int = -1, prepend: Operand | None = None, append: Operand | None = None
) -> Tensor:
    """The differences ``x[i + 1] - x[i]`` of neighbours along ``axis``, taken ``n`` times: each time there is one fewer.

    ``prepend`` and ``append`` are put before and behind ``x`` first: tensors, whose types are promoted with that of
    ``x``, or numbers. Integers wrap around. Raises ``TensorExpressionError`` for a negative ``n``, for tensors of no
    dimensions, and for bools.
    """
    require_kind(x.dtype, ("integer", "float"))
    at, times = axis_of(axis, x.ndim), integer(n, "how often differences are taken")
    if times < 0:
        raise error(f"differences are taken {times} times", "0 or more")
    ends = [end if end is None or isinstance(end, Tensor) else _row(end, x, at) for end in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    made = concatenate(parts, at) if len(parts) > 1 else x
    extent = constant(made.shape[at])
    for _ in range(times if extent is None else min(times, extent)):  # then there are none left
        made = _differences(made, at)
    return made if times and extent != 0 else positive(made)


def _row(value: Any, x: Tensor, axis: int) -> Tensor:
    """``value`` as the tensor that is joined to ``x`` along ``axis``."""
    return full(replaced(x.shape, axis, const(1)), value, x.dtype)


def _differences(x: Tensor, axis: int) -> Tensor:
    count = simplify(max_(x.shape[axis] - 1, 0))

    def element(*indices: Any) -> Any:
        return x(*replaced(indices, axis, indices[axis] + 1)) - x(*indices)

    return compute(replaced(x.shape, axis, count), element, name="diff")
