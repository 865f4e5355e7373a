"""Operators that join tensors, and that take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .. import Expr, cast, const, is_const, simplify
from ..te import Tensor, compute, error
from .element_places import MOVED_DTYPES, integer, listed, one_of, replaced
from .promotion import result_type
from .registry import arg, case, operator
from .shapes import axis_of
from .transform import ravel

# ---------------------------------------------------------------- several tensors


@operator(
    gives=(6, 3), shapes="[(…, _@axis, …)] -> (…, _@axis, …)", section="transform", reference=np.concatenate, aliases=["concat"],
    cases=[
        case([arg((2, 3)), arg((4, 3))]), case([arg((2, 3)), arg((2, 1)), arg((2, 2))], -1),
        case([arg((2, 3)), arg((2,)), arg(())], None), case([arg((2, 0)), arg((2, 3)), arg((2, 0))], 1),
        case([arg((0, 2)), arg((0, 2))]), case([arg((2, 2), "int8"), arg((1, 2), "uint8"), arg((1, 2), "int64")]),
        case([arg(("n", 2)), arg((3, 2))], axis=0),
        *(case([arg((2,), dtype), arg((3,), dtype)]) for dtype in MOVED_DTYPES),
    ],
)  # fmt: skip
def concatenate(arrays: Sequence[Tensor], axis: int | None = 0) -> Tensor:
    """The tensors ``arrays`` one after another along ``axis``; all their elements in one dimension for None.

    Types are promoted. Raises ``TensorExpressionError`` where numbers of dimensions or other extents differ.
    """
    if axis is None:
        arrays, axis = [ravel(t) for t in arrays], 0
    tensors = _tensors(arrays)
    first, dtype = tensors[0], result_type(t.dtype for t in tensors)
    at = axis_of(axis, first.ndim)
    ends: list[Expr] = []
    for t in tensors:
        ends.append(simplify(ends[-1] + t.shape[at]) if ends else t.shape[at])
    parts = [(t, end - t.shape[at], end) for t, end in zip(tensors, ends) if not is_const(t.shape[at], 0)] or [
        (first, const(0), ends[0])
    ]

    def element(*indices: Any) -> Expr:
        place = indices[at]
        reads = [cast(dtype, t(*replaced(indices, at, place - begin))) for t, begin, _ in parts]
        return one_of(reads, place, [end for *_, end in parts])

    return compute(replaced(first.shape, at, ends[-1]), element, name="concatenate")


def _tensors(arrays: Any) -> list[Tensor]:
    """The tensors of a list. Raises ``TensorExpressionError`` for what is none, and for an empty one."""
    tensors = list(listed(arrays))
    for t in tensors:
        if not isinstance(t, Tensor):
            raise error(f"a list of tensors is joined; {t!r} is none")
    if not tensors:
        raise error("there is no tensor to be joined")
    return tensors


@operator(
    gives=(2, 2, 3), shapes="[(…a)] -> (…r)", section="transform", reference=np.stack,
    cases=[
        case([arg((2, 3)), arg((2, 3))]), case([arg((2,), "int8"), arg((2,), "int8"), arg((2,), "int8")], -1),
        case([arg(()), arg(())]), case([arg((0, 2)), arg((0, 2))], axis=1),
        case([arg((2,), "bfloat16"), arg((2,), "float16")]),
    ],
)  # fmt: skip
def stack(arrays: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors ``arrays``, of one shape, along a new dimension ``axis``. Types are promoted."""
    tensors = _tensors(arrays)
    first, dtype = tensors[0], result_type(t.dtype for t in tensors)
    at = axis_of(axis, first.ndim + 1)

    def element(*indices: Any) -> Expr:
        rest = replaced(indices, at)
        return one_of([cast(dtype, t(*rest)) for t in tensors], indices[at])

    return compute((*first.shape[:at], const(len(tensors)), *first.shape[at:]), element, name="stack")


@operator(
    gives=[(3,), (3,)],
    unstated="the parts have one dimension less than the tensor",
    section="transform",
    reference=lambda x, axis=0: list(np.moveaxis(x, axis, 0)),
    cases=[case(arg((2, 3))), case(arg((2, 3), "int8"), -1), case(arg((1, 0)))],
)
def unstack(x: Tensor, axis: int = 0) -> list[Tensor]:
    """The tensors that ``x`` has along ``axis``, whose extent is known, without that dimension."""
    at = axis_of(axis, x.ndim)
    count = integer(x.shape[at], "the extent of what is taken apart")
    shape = replaced(x.shape, at)
    return [compute(shape, _row_of(x, at, n), name=f"unstack_{n}") for n in range(count)]


def _row_of(x: Tensor, axis: int, place: int) -> Any:
    return lambda *i: x(*i[:axis], place, *i[axis:])


def _numpy_meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    if isinstance(arrays[-1], str):
        return np.meshgrid(*arrays[0], indexing=arrays[1])  # type: ignore[call-overload]
    return np.meshgrid(*arrays, indexing=indexing)  # type: ignore[call-overload]


@operator(
    gives=[(2, 3), (2, 3)], shapes="-> [(…g)]", section="transform", reference=_numpy_meshgrid,
    cases=[
        case(arg((3,)), arg((2,))), case(arg((3,)), arg((2,), "int8"), arg((4,)), indexing="xy"),
        case([arg((3,)), arg((2,)), arg(())], "ij"), case(arg((3,))), case(arg((0,)), arg((2,))),
    ],
)  # fmt: skip
def meshgrid(*arrays: Any, indexing: Literal["xy", "ij"] = "xy") -> list[Tensor]:
    """Grids of the coordinates in ``arrays``, tensors of one dimension: one grid each, of as many dimensions.

    With ``indexing="ij"`` dimension ``n`` is that of array ``n``; with ``"xy"`` the first two are exchanged. Also called
    as ``meshgrid([x, y], "ij")``.
    """
    if arrays and isinstance(arrays[-1], str):
        *arrays, indexing = arrays  # type: ignore[assignment]
    lists = [t for a in arrays for t in listed(a)]
    for t in lists:
        if not isinstance(t, Tensor):
            raise error(f"a grid is made of tensors, not of {t!r}")
        if t.ndim > 1:
            raise error(f"coordinates have one dimension, not the shape {t.shape}")
    order = list(range(len(lists)))
    if indexing == "xy" and len(lists) > 1:
        order[:2] = [1, 0]
    lengths = [t.shape[0] if t.ndim else const(1) for t in lists]
    shape = [lengths[n] for n in order]
    return [compute(shape, _grid_of(t, order.index(n)), name=f"meshgrid_{n}") for n, t in enumerate(lists)]


def _grid_of(x: Tensor, axis: int) -> Any:
    return lambda *i: x(*(i[axis],) * x.ndim)
