"""Operators that keep a part of a tensor: triangles, diagonals, and the beginnings of sequences."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .. import Expr, as_expr, cast, const, simplify
from .. import max as max_
from .. import min as min_
from ..te import Tensor, all, compute, equate, equate_shapes, error, if_then_else
from .element_places import MOVED_DTYPES, as_index, constant_of, integer, listed
from .registry import arg, case, operator
from .shapes import axis_of

# ---------------------------------------------------------------- triangles


def _triangle(x: Tensor, k: Any, is_upper: bool, name: str) -> Tensor:
    diagonal = as_index(k(*[0] * k.ndim)) if isinstance(k, Tensor) else as_expr(k)
    zero = const(0, x.dtype)

    def element(*indices: Any) -> Expr:
        row, column = indices[-2:]
        is_kept = column - row >= diagonal if is_upper else column - row <= diagonal
        return if_then_else(is_kept, x(*indices), zero)

    return compute(x.shape, element, name=name)


@operator(
    shapes="(…, n, m) -> (…, n, m)", section="transform", reference=np.tril,
    cases=[
        case(arg((3, 4))), case(arg((2, 3, 3), "int8"), -1), case(arg((3, 4), "bool"), 2), case(arg((0, 3))),
        case(arg(("n", 4)), k=1),
    ],
)  # fmt: skip
def tril(x: Tensor, k: Any = 0) -> Tensor:
    """The matrices ``x`` with zeros above diagonal ``k``."""
    return _triangle(x, k, False, "tril")


@operator(
    shapes="(…, n, m) -> (…, n, m)", section="transform", reference=np.triu,
    cases=[case(arg((3, 4))), case(arg((2, 3, 3), "int8"), -1), case(arg((3, 4)), 9), case(arg((1, 1), "bfloat16"))],
)  # fmt: skip
def triu(x: Tensor, k: Any = 0) -> Tensor:
    """The matrices ``x`` with zeros below diagonal ``k``."""
    return _triangle(x, k, True, "triu")


@operator(
    shapes="(…, n, m) -> (…, n, m)", section="transform",
    reference=lambda x, k, upper: (np.triu if upper else np.tril)(x, int(np.asarray(k).item())),
    cases=[
        case(arg((3, 4)), 1, True), case(arg((3, 4)), 0, False),
        case(arg((2, 3, 3), "int16"), arg((), "int64", np.array(-1)), True),
        *(case(arg((2, 2), dtype), 0, True) for dtype in MOVED_DTYPES),
    ],
)  # fmt: skip
def trilu(x: Tensor, k: Any, upper: bool) -> Tensor:
    """:func:`triu` or :func:`tril`, of a diagonal that may be a tensor of one integer."""
    return _triangle(x, k, bool(upper), "trilu")


# ---------------------------------------------------------------- diagonals


def _numpy_matrix_set_diag(x: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    made = x.copy()
    low, high = k if isinstance(k, (list, tuple)) else (k, k)
    rows, columns = x.shape[-2:]
    lengths = {d: len(np.diagonal(np.zeros((rows, columns)), d)) for d in range(low, high + 1)}
    longest = max(lengths.values())
    above, below = align.split("_")
    for d, length in lengths.items():
        side = "LEFT" if (d >= 0 and above == "LEFT") or (d <= 0 and below == "LEFT") else "RIGHT"
        values = diagonal if low == high else diagonal[..., high - d, :]
        values = values[..., :length] if side == "LEFT" else values[..., longest - length :]
        for n in range(length):
            made[..., n + max(0, -d), n + max(0, d)] = values[..., n]
    return made


@operator(
    shapes="(…x) T, (…d) T -> (…x)", section="transform", reference=_numpy_matrix_set_diag,
    cases=[
        case(arg((3, 4)), arg((3,))), case(arg((2, 3, 4), "int8"), arg((2, 3), "int8"), 1),
        case(arg((2, 4, 3)), arg((2, 2)), -2),
        *(
            case(arg((3, 4)), arg((4, 3)), (-1, 2), align)
            for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
        ),
    ],
)  # fmt: skip
def matrix_set_diag(
    x: Tensor,
    diagonal: Tensor,
    k: Any = 0,
    align: Literal["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"] = "RIGHT_LEFT",
) -> Tensor:
    """The matrices ``x`` with other diagonals: number ``k``, above the main one where positive, or from ``k[0]`` to ``k[1]``.

    ``diagonal`` has the last dimension of the longest; of several, a dimension before that for each, from ``k[1]`` down.
    ``align`` says for those above and below the main one where shorter ones stand: ``"RIGHT_LEFT"``, ``"LEFT_RIGHT"`` ….

    Raises ``TensorExpressionError`` where ``diagonal`` has another shape or type.
    """
    numbers = [integer(n, "a diagonal") for n in listed(k)]
    low, high = (numbers[0], numbers[-1]) if numbers else (1, 0)
    if x.ndim < 2 or len(numbers) > 2 or low > high:
        raise error(f"there are no diagonals {k!r} of shape {x.shape}", "one number, or the lowest and the highest")
    rows, columns = x.shape[-2:]
    longest = simplify(min_(rows + min(high, 0), columns - max(low, 0)))
    expected = [*x.shape[:-2], *([const(high - low + 1)] if low != high else []), longest]
    if not equate_shapes(diagonal.shape, expected):
        raise error(f"the diagonals of shape {x.shape} have shape {tuple(expected)}, not {diagonal.shape}")
    above, below = (side == "LEFT" for side in align.split("_"))

    def element(*indices: Any) -> Expr:
        row, column = indices[-2:]
        d = column - row
        length = min_(rows + min_(d, 0), columns - max_(d, 0))
        at_left = if_then_else(d == 0, above or below, if_then_else(d > 0, above, below))
        place = column - max_(d, 0) + if_then_else(at_left, 0, longest - length)
        which = [high - d] if low != high else []
        value = diagonal(*indices[:-2], *which, place)
        return if_then_else(all(d >= low, d <= high), value, x(*indices))

    return compute(x.shape, element, name="matrix_set_diag")


# ---------------------------------------------------------------- sequences


def _numpy_sequence_mask(data: Any, valid_length: Any, mask_value: Any = 0, axis: int = 0) -> Any:
    made = np.moveaxis(data.copy(), axis, 0)  # a view: time first, the batch second
    for b, length in enumerate(valid_length):
        made[int(length) :, b] = mask_value
    return np.moveaxis(made, 0, axis)


@operator(
    shapes="(…x), (_) integer -> (…x)", section="transform", reference=_numpy_sequence_mask,
    cases=[
        case(arg((4, 3)), arg((3,), "int32", np.array([0, 4, 2]))),
        case(arg((3, 4, 2), "int8"), arg((3,), "int64", np.array([1, 9, 3])), -1, 1),
    ],
)  # fmt: skip
def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: Any = 0, axis: int = 0) -> Tensor:
    """``data`` with ``mask_value`` from place ``valid_length[b]`` of ``axis`` on. Time is axis 0 and the batch axis 1, or the
    other way round.
    """
    time = axis_of(axis, data.ndim)
    if time > 1 or data.ndim < 2:
        raise error(f"time is axis {time} of shape {data.shape}", "axis 0 or 1 of two or more")
    if not equate(valid_length.shape[0], data.shape[1 - time]):
        raise error(f"there are {valid_length.shape[0]} lengths for a batch of {data.shape[1 - time]}")
    masked = constant_of(mask_value, data.dtype)

    def element(*indices: Any) -> Expr:
        is_valid = cast("int64", indices[time]) < as_index(valid_length[indices[1 - time]])
        return if_then_else(is_valid, data(*indices), masked)

    return compute(data.shape, element, name="sequence_mask")
