"""Operators whose number of results depends on the data: the results are as long as they can be, and a count says how many
there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import DType, Expr, const
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor, compute, equate, error
from ..te.hybrid import statements
from .element_places import product, sized
from .imperative import loops
from .registry import arg, case, operator
from .sorting import is_less, order_of

INT32 = DType("int32")

# ---------------------------------------------------------------- places


def _is_nonzero(value: Expr) -> Expr:
    return value if value.dtype.is_bool else value != const(0, value.dtype)


def _numpy_nonzero(x: Any) -> Any:
    found = np.argwhere(x)
    made = np.zeros((x.ndim, x.size))
    made[:, : len(found)] = found.T
    return made, np.array([len(found)])


@operator(
    gives=[(2, 12), (1,)], shapes="(…) -> (_, _), (1)", section="sort", reference=_numpy_nonzero,
    cases=[
        case(arg((3, 4), "bool")), case(arg((5,), values=np.array([0.0, -0.0, np.nan, 1, -2]))),
        case(arg((2, 1, 3), "int8", np.array([[[0, 1, 0]], [[3, 0, -1]]]))), case(arg((0, 2))),
        case(arg(("n",), "bool")),
    ],
)  # fmt: skip
def nonzero(x: Tensor) -> list[Tensor]:
    """The indices (dimensions, size of ``x``) of the elements that are not 0, in order, and (1,) how many they are.

    Indices are int64 and zeros beyond that number.
    """
    shape = (x.ndim, product(x.shape))

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        indices, count = outs
        with loops(ib, indices.buffer.shape, "z") as i:
            indices[i] = 0
        count[0] = 0
        with loops(ib, x.shape) as i, ib.if_scope(_is_nonzero(ins[0][i])):
            for n, place in enumerate(i):
                indices[n, count[0]] = place
            count[0] = count[0] + 1

    return statements("nonzero", [x], [(shape, DType("int64")), ((1,), INT32)], body)


def _numpy_argwhere(output_shape: Any, condition: Any) -> Any:
    found, made = np.argwhere(condition), np.zeros(output_shape)
    rows = min(len(found), output_shape[0])
    made[:rows] = found[:rows]
    return made


@operator(
    gives=(12, 2), shapes="(…) -> (_, _)", section="sort", reference=_numpy_argwhere,
    cases=[
        case((12, 2), arg((3, 4), "bool")), case((2, 2), arg((3, 4), "int8", "positive")),
        case((0, 1), arg((3,), "bool")),
    ],
)  # fmt: skip
def argwhere(output_shape: Any, condition: Tensor) -> Tensor:
    """The indices of the elements that are not 0, a row for each: the first of them, where ``output_shape`` (rows, dimensions)
    has fewer rows, and zeros after the last. See :func:`nonzero`, which counts them.
    """
    shape = sized(output_shape, "the shape of the indices")
    if len(shape) != 2 or not equate(shape[1], condition.ndim):
        raise error(f"indices of shape {shape} are not those of {condition.ndim} dimensions", "(rows, dimensions)")

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], memory: Sequence[BufferVar]) -> None:
        (indices,), (count,) = outs, memory
        with loops(ib, shape, "z") as i:
            indices[i] = 0
        count[0] = 0
        with loops(ib, condition.shape) as i, ib.if_scope(_is_nonzero(ins[0][i])):
            with ib.if_scope(count[0] < shape[0]):
                for n, place in enumerate(i):
                    indices[count[0], n] = place
            count[0] = count[0] + 1

    return statements("argwhere", [condition], [(shape, INT32)], body, [((1,), INT32)])[0]


# ---------------------------------------------------------------- values


def _numpy_unique(data: Any, is_sorted: bool = True, return_counts: bool = False) -> Any:
    values, first, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    if not is_sorted:
        order = np.argsort(first)
        values, first, counts = values[order], first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    made = [values, first, inverse, [len(values)], *([counts] if return_counts else [])]
    return [np.pad(m, (0, (len(data) if n != 3 else 1) - len(m))) for n, m in enumerate(made)]


@operator(
    shapes="(n) -> (n), (n), (n), (1), (n)", section="sort", reference=_numpy_unique,
    cases=[
        case(arg((9,), "int8"), False, True), case(arg((12,), values="special"), True, True),
        case(arg((0,)), return_counts=True), case(arg(("n",), "bool"), False),
    ],
)  # fmt: skip
def unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[Tensor]:
    """The different elements of ``data``, of one dimension: in ascending order, or without ``is_sorted`` as they first come.

    Gives these, the index at which each comes first, for each element of ``data`` the number of its value, (1,) how many
    values there are, and with ``return_counts`` how often each comes. All are as long as ``data``, and zeros beyond that number;
    indices are int32.
    """
    made = _grouped(data)
    found = made if is_sorted else _as_they_come(*made)
    return found if return_counts else found[:4]


def _specs(data: Tensor) -> list[tuple[Any, DType]]:
    whole = (data.shape, INT32)
    return [(data.shape, data.dtype), whole, whole, ((1,), INT32), whole]


def _grouped(data: Tensor) -> list[Tensor]:
    """What :func:`unique` gives, in ascending order."""

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        (keys, order), (values, first, inverse, number, counts) = ins, outs
        _cleared(ib, data.shape, (values, first, counts))
        number[0] = 0
        with ib.for_range(0, data.shape[0], "k") as k:
            with ib.if_scope(k == 0):
                _opened(keys[k], order[k], values, first, number)
            with ib.else_scope(), ib.if_scope(is_less(keys[k - 1], keys[k])):
                _opened(keys[k], order[k], values, first, number)
            inverse[order[k]] = number[0] - 1
            counts[number[0] - 1] = counts[number[0] - 1] + 1

    order = order_of(data, 0, True)
    keys = compute(data.shape, lambda k: data(order(k)), name="keys")
    return statements("unique", [keys, order], _specs(data), body)


def _opened(key: Expr, place: Expr, values: BufferVar, first: BufferVar, number: BufferVar) -> None:
    values[number[0]] = key
    first[number[0]] = place
    number[0] = number[0] + 1


def _cleared(ib: IRBuilder, shape: Sequence[Expr], buffers: Sequence[BufferVar]) -> None:
    with loops(ib, shape, "z") as i:
        for buffer in buffers:
            buffer[i] = 0


def _as_they_come(values: Tensor, first: Tensor, inverse: Tensor, number: Tensor, counts: Tensor) -> list[Tensor]:
    """The same, numbered in the order of the first elements."""

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], memory: Sequence[BufferVar]) -> None:
        (keys, places, groups, total, sizes), (begins, rank) = ins, memory
        made, firsts, numbers, count, lengths = outs
        _cleared(ib, values.shape, (made, firsts, lengths, begins))
        with ib.for_range(0, total[0], "g") as g:
            begins[places[g]] = g + 1
        count[0] = 0
        with ib.for_range(0, values.shape[0], "k") as k, ib.if_scope(begins[k] > 0):
            group = ib.let("group", begins[k] - 1)
            made[count[0]], firsts[count[0]], lengths[count[0]] = keys[group], k, sizes[group]
            rank[group] = count[0]
            count[0] = count[0] + 1
        with ib.for_range(0, values.shape[0], "j") as j:
            numbers[j] = rank[groups[j]]

    memory = [(values.shape, INT32), (values.shape, INT32)]
    return statements("unique", [values, first, inverse, number, counts], _specs(values), body, memory)
