"""The elements of a tensor in a flat shape, and further apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import Expr, all_of, const, is_const, te
from ...te import Tensor, error
from ..contract import BY_PADS
from ..element_places import product
from ..shapes import axis_of
from ..transform import reshape
from ._operator import arg, case, nn_operator
from .checks import numbers, require_shape


@nn_operator(
    gives=(2, 12), shapes="(n, …) -> (n, _)", reference=lambda x: x.reshape(len(x), math.prod(x.shape[1:])),
    cases=(
        case(arg((2, 3, 4))), case(arg((3,), "int8")), case(arg((0, 3, 2))), case(arg(("n", 3, "w"))),
        case(arg((2, 0))),
    ),
)  # fmt: skip
def flatten(data: Tensor) -> Tensor:
    """``(N, …)`` as ``(N, K)``, with the elements of each example in their order.

    Raises ``TensorExpressionError`` for a scalar.
    """
    if not data.ndim:
        raise error(f"flatten takes a tensor of at least one dimension, but `{data.name}` is a scalar")
    return reshape(data, (data.shape[0], product(data.shape[1:])))


def _dilate_reference(x: np.ndarray, strides: Any, dilation_value: float = 0.0, name: str = "") -> np.ndarray:
    made = np.full([max((n - 1) * s + 1, 0) for n, s in zip(x.shape, strides)], dilation_value, x.dtype)
    made[tuple(slice(None, None, s) for s in strides)] = x
    return made


@nn_operator(
    gives=(2, 5, 10), unstated=BY_PADS, reference=_dilate_reference,
    cases=(
        case(arg((2, 3, 4)), (1, 2, 3)), case(arg((3, 1), "int8"), (2, 5), 7), case(arg(("n", 3)), (2, 1), -1.0),
        case(arg((2, 2)), (1, 1)), case(arg((0, 3)), (2, 2)),
    ),
)  # fmt: skip
def dilate(data: Tensor, strides: Any, dilation_value: float = 0.0, name: str = "dilate") -> Tensor:
    """``data`` with ``strides[d] - 1`` elements of ``dilation_value`` between any two along dimension ``d``.

    Raises ``TensorExpressionError`` for another number of strides than dimensions, and for one below 1.
    """
    steps = numbers(strides, data.ndim, "strides", 1)

    def element(*i: Any) -> Expr:
        on_element = [place % step == 0 for place, step in zip(i, steps) if step > 1]
        value = data(*(place if step == 1 else place // step for place, step in zip(i, steps)))
        if not on_element:
            return value
        return te.if_then_else(all_of(on_element), value, const(dilation_value, data.dtype))

    shape = [n if s == 1 or is_const(n, 0) else (n - 1) * s + 1 for n, s in zip(data.shape, steps)]
    return te.compute(shape, element, name=name)


def _fifo_reference(data: np.ndarray, buffer: np.ndarray, axis: int) -> np.ndarray:
    both = np.concatenate([buffer, data], axis)
    return both.take(range(data.shape[axis], both.shape[axis]), axis)


@nn_operator(
    shapes="(…d) T, (…b) T -> (…b)", reference=_fifo_reference,
    cases=(
        case(arg((2, 2)), arg((2, 5)), 1), case(arg((3, 2), "int8"), arg((3, 2), "int8"), 0),
        case(arg((4,)), arg((3,)), -1), case(arg((2, 1)), arg((2, "n")), 1),
    ),
)  # fmt: skip
def fifo_buffer(data: Tensor, buffer: Tensor, axis: int) -> Tensor:
    """``buffer`` with ``data`` behind it along ``axis``, without as many elements at the front: what a queue holds next.

    Raises ``TensorExpressionError`` where the two have other types, or other extents of other axes.
    """
    at = axis_of(axis, buffer.ndim)
    shape = [d if n == at else b for n, (d, b) in enumerate(zip(data.shape, buffer.shape))]
    require_shape(data, shape if data.ndim == buffer.ndim else buffer.shape, "what enters the buffer")
    more, size = data.shape[at], buffer.shape[at]

    def element(*i: Any) -> Expr:
        def of(tensor: Tensor, place: Any) -> Expr:
            return tensor(*i[:at], place, *i[at + 1 :])

        place = i[at] + more
        return te.if_then_else(place < size, of(buffer, place), of(data, place - size))

    return te.compute(buffer.shape, element, name="fifo_buffer")
