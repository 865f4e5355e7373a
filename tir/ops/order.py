"""Operators that give the elements of tensors another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import Expr
from .. import min as min_
from ..te import Tensor, as_size, compute, equate, error, if_then_else
from .element_places import MOVED_DTYPES, as_index, axes_in_order, gathered, listed, replaced
from .registry import arg, case, operator
from .shapes import axes_of, axis_of
from .transform import ravel, reshape

# ---------------------------------------------------------------- order


@operator(
    gives=(4, 3, 2), unstated="`axes` say the order of the result's", section="transform", reference=np.transpose,
    aliases=["permute_dims"],
    cases=[
        case(arg((2, 3, 4))), case(arg((2, 3, 4)), (1, -1, 0)), case(arg(())), case(arg((0, 3))),
        case(arg((1, 3)), (1, 0)), case(arg(("n", 3)), axes=(1, 0)),
        *(case(arg((2, 3), dtype)) for dtype in MOVED_DTYPES),
    ],
)  # fmt: skip
def transpose(x: Tensor, axes: Any = None) -> Tensor:
    """``x`` with dimension ``axes[n]`` at place ``n``; all of them reversed for None.

    Raises ``TensorExpressionError`` where ``axes`` does not name each axis once.
    """
    order = tuple(reversed(range(x.ndim))) if axes is None else axes_in_order(axes, x.ndim)
    if len(order) != x.ndim:
        raise error(f"{order} does not say where each of the {x.ndim} dimensions of {x.shape} goes", "each axis once")
    place = {axis: n for n, axis in enumerate(order)}
    return compute([x.shape[a] for a in order], lambda *i: x(*(i[place[a]] for a in range(x.ndim))), name="transpose")


@operator(
    shapes="(…, n, m) -> (…, m, n)", section="transform", reference=lambda x: np.swapaxes(x, -1, -2),
    cases=[
        case(arg((3, 5))), case(arg((2, 1, 3), "int8")), case(arg((2, 3, 4, 5), "float64")), case(arg((0, 3), "bool")),
        case(arg(("n", 1), "bfloat16")),
    ],
)  # fmt: skip
def matrix_transpose(x: Tensor) -> Tensor:
    """``x`` with its last two dimensions exchanged. Raises ``TensorExpressionError`` where there are fewer."""
    return transpose(x, (*range(x.ndim - 2), -1, -2))


@operator(
    gives=(3, 4, 2), unstated="`axes` say the order of the result's", section="transform", reference=np.moveaxis,
    cases=[case(arg((2, 3, 4)), 0, -1), case(arg((2, 3, 4, 1)), (0, 1), (-1, 0)), case(arg((2, 3), "int8"), [1], [0])],
)  # fmt: skip
def moveaxis(x: Tensor, source: Any, destination: Any) -> Tensor:
    """``x`` with its dimensions ``source`` at the places ``destination``, the others in their order."""
    origin, target = (axes_in_order(a, x.ndim) for a in (listed(source), listed(destination)))
    if len(origin) != len(target):
        raise error(f"{len(origin)} axes are to be moved to {len(target)} places")
    moved = dict(zip(target, origin))
    others = iter(a for a in range(x.ndim) if a not in origin)
    return transpose(x, [moved[n] if n in moved else next(others) for n in range(x.ndim)])


@operator(
    shapes="(…) -> (…)", section="transform", reference=np.flip, aliases=["reverse"],
    cases=[
        case(arg((2, 3))), case(arg((2, 3)), -1), case(arg((2, 3, 4), "bfloat16"), (0, 2)), case(arg(())),
        case(arg((0, 2), "bool")), case(arg(("n", 3), "int8"), axis=0),
    ],
)  # fmt: skip
def flip(x: Tensor, axis: Any = None) -> Tensor:
    """``x`` with the order of elements along ``axis`` reversed; along all axes for None."""
    turned = axes_of(axis, x.ndim)
    return compute(
        x.shape,
        lambda *i: x(*(s - 1 - at if n in turned else at for n, (s, at) in enumerate(zip(x.shape, i)))),
        name="flip",
    )


@operator(
    shapes="(…) -> (…)", section="transform", reference=np.roll,
    cases=[
        case(arg((2, 3)), 2), case(arg((2, 3)), -4, 1), case(arg((2, 3), "int8"), (1, -1), (0, 1)),
        case(arg((2, 3), "float16"), 1, (0, 1)), case(arg((2, 3)), (1, 1), (1, 1)), case(arg((0, 3)), 1, 0),
        case(arg(("n", 2)), 3, axis=0),
    ],
)  # fmt: skip
def roll(x: Tensor, shift: Any, axis: Any = None) -> Tensor:
    """``x`` with elements moved by ``shift`` places along ``axis``, what leaves at one end entering at the other.

    Without ``axis`` the elements move in row-major order. ``shift`` and ``axis`` may be tuples, as long as each other.
    """
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes, shifts = [axis_of(a, x.ndim) for a in listed(axis)], listed(shift)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise error(f"there are {len(shifts)} shifts for {len(axes)} axes")

    def element(*indices: Any) -> Expr:
        places = list(indices)
        for a, s in zip(axes, shifts):
            places[a] = (places[a] - as_size(s, "a shift")) % x.shape[a]
        return x(*places)

    return gathered(x.shape, x.dtype, element, "roll")


def _numpy_reverse_sequence(x: Any, seq_lengths: Any, seq_axis: int = 1, batch_axis: int = 0) -> Any:
    made = np.moveaxis(x, (batch_axis, seq_axis), (0, 1)).copy()
    for row, length in zip(made, seq_lengths):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(made, (0, 1), (batch_axis, seq_axis))


@operator(
    shapes="(…x), (_) integer -> (…x)", section="transform", reference=_numpy_reverse_sequence,
    cases=[
        case(arg((3, 5)), arg((3,), "int32", np.array([0, 5, 3]))),
        case(arg((4, 2, 3), "int8"), arg((3,), "int64", np.array([4, 1, 2])), 0, -1),
    ],
)  # fmt: skip
def reverse_sequence(x: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """``x`` with the first ``seq_lengths[b]`` elements along ``seq_axis`` reversed, for each place ``b`` of ``batch_axis``.

    Raises ``TensorExpressionError`` where ``seq_lengths`` is not one integer for each place of the batch.
    """
    sequence, batch = (axis_of(a, x.ndim) for a in (seq_axis, batch_axis))
    if not equate(seq_lengths.shape[0], x.shape[batch]):
        raise error(f"there are {seq_lengths.shape[0]} lengths for a batch of {x.shape[batch]}")
    if sequence == batch:
        raise error(f"axis {batch} is to be both that of the sequence and that of the batch")

    def element(*indices: Any) -> Expr:
        at, length = indices[sequence], min_(as_index(seq_lengths[indices[batch]]), x.shape[sequence])
        return x(*replaced(indices, sequence, if_then_else(at < length, length - 1 - at, at)))

    return compute(x.shape, element, name="reverse_sequence")
