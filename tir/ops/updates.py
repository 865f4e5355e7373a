"""Operators that store at indices which are tensors: later stores to an element come after earlier ones.

Indices count from the end where they are negative; an update whose index is out of range is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from .. import Expr, cast
from .. import max as max_
from .. import min as min_
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor, compute, equate_shapes, error
from ..te import all as all_
from ..te.hybrid import statements
from .creation import ones
from .element_places import MOVED_DTYPES, constant_of, integer, replaced, sized
from .imperative import copy, loops
from .indexing import counted, index_tensors, require_within
from .registry import arg, case, operator
from .shapes import axis_of, broadcast, read_index

_COMBINED: dict[str, Callable[[Expr, Expr], Expr]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": max_,
    "min": min_,
}
_NUMPY: dict[str, Callable[..., Any]] = {
    "update": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
_REDUCTIONS = tuple(_COMBINED)


def _stored(
    ib: IRBuilder, target: BufferVar, at: Sequence[Any], axes: Sequence[int], value: Expr, reduction: str = "update"
) -> None:
    """Combine ``value`` with the element ``at``, unless an index along ``axes``, from data, is out of range."""
    inside = [c for n in axes for c in (at[n] >= 0, at[n] < target.buffer.shape[n])]
    with ib.if_scope(all_(*inside)):
        target[tuple(at)] = _COMBINED[reduction](target[tuple(at)], value)


# ---------------------------------------------------------------- along one axis


def _numpy_scatter_elements(x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "update") -> Any:
    found: dict[tuple[int, ...], list[Any]] = {}
    for at in np.ndindex(*indices.shape):
        target = list(at)
        target[axis] = int(indices[at]) % x.shape[axis]
        found.setdefault(tuple(target), []).append(updates[at])
    made = x.copy()
    for target, values in found.items():
        if reduction == "mean":
            total = sum(values, x[target])
            made[target] = total // (len(values) + 1) if made.dtype.kind == "i" else total / (len(values) + 1)
        for value in values if reduction != "mean" else ():
            made[target] = _NUMPY[reduction](made[target], value)
    return made


@operator(
    shapes="(…x) T, (…i) integer, (…i) T -> (…x)", section="indexing", reference=_numpy_scatter_elements,
    aliases=["scatter"],
    cases=[
        *(
            case(arg((3, 4)), arg((5, 2), "int64", "indices below 3"), arg((5, 2)), 0, reduction)
            for reduction in (*_REDUCTIONS, "mean")
        ),
        *(
            case(arg((3, 4), "int8"), arg((3, 2), "int32", np.array([[-1, 0]] * 3)), arg((3, 2), "int8"), 1, reduction)
            for reduction in ("update", "add", "mean")
        ),
        case(arg((4,)), arg((0,), "int32"), arg((0,)), -1),
        *(case(arg((4,), d), arg((3,), "uint8", "indices below 4"), arg((3,), d)) for d in MOVED_DTYPES),
    ],
)  # fmt: skip
def scatter_elements(
    x: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: int = 0,
    reduction: Literal["update", "add", "mul", "max", "min", "mean"] = "update",
) -> Tensor:
    """``x`` with ``updates[…]`` at the index ``indices[…]`` along ``axis`` and that of the update along the others.

    ``reduction`` combines with what was there: ``"update"`` replaces it, in the order of ``updates``; ``"add"``, ``"mul"``,
    ``"max"``, ``"min"``; ``"mean"`` is that of the element of ``x`` and all its updates (rounded down, of integers).

    Raises ``TensorExpressionError`` where the shapes or the data types do not go together.
    """
    at = axis_of(axis, x.ndim)
    require_within(x, at, indices)
    if reduction == "mean":
        return _mean(x, indices, updates, at)

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        data, places, values = ins
        copy(ib, data, outs[0])
        with loops(ib, indices.shape, "u") as i:
            target = replaced(i, at, counted(places[i], x.shape[at]))
            _stored(ib, outs[0], target, [at], values[i], reduction)

    return statements("scatter_elements", [x, indices, updates], [(x.shape, x.dtype)], body)[0]


def _require_shape(updates: Tensor, expected: Sequence[Any]) -> None:
    if not equate_shapes(updates.shape, expected):
        raise error(f"what is stored has shape {updates.shape}, and its places {tuple(expected)}", "one shape")


def _mean(x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    total = scatter_elements(x, indices, updates, axis, "add")
    count = scatter_elements(ones(x.shape, "int32"), indices, ones(updates.shape, "int32"), axis, "add")

    def element(*i: Any) -> Expr:
        if x.dtype.is_float:
            return total(*i) / cast(x.dtype, count(*i))
        return cast(x.dtype, cast("int64", total(*i)) // cast("int64", count(*i)))

    return compute(x.shape, element, name="scatter_mean")


# ---------------------------------------------------------------- along several axes


def _numpy_scatter_nd(x: Any, indices: Any, updates: Any, mode: str = "add") -> Any:
    made = x.copy()
    for at in np.ndindex(*indices.shape[1:]):
        target = tuple(indices[(slice(None), *at)])
        made[target] = _NUMPY[mode](made[target], updates[at])
    return made


@operator(
    shapes="(…x) T, (_, …i) integer, (…u) T -> (…x)", section="indexing", reference=_numpy_scatter_nd,
    cases=[
        *(case(arg((3, 4)), arg((2, 6), "int64", "indices below 3"), arg((6,)), mode) for mode in _REDUCTIONS),
        case(
            arg((3, 4), "int8"), arg((1, 2, 2), "int32", np.array([[[-1, 0], [0, 1]]])), arg((2, 2, 4), "int8"), "add"
        ),
        case(arg((3,), "bfloat16"), arg((1, 0), "int32"), arg((0,), "bfloat16"), "update"),
    ],
)  # fmt: skip
def scatter_nd(
    x: Tensor, indices: Tensor, updates: Tensor, mode: Literal["update", "add", "mul", "max", "min"] = "add"
) -> Tensor:
    """``x`` with ``updates[…]`` combined with the part at ``indices[0, …], indices[1, …] …``, in order.

    ``mode`` is ``"add"``, ``"update"``, ``"mul"``, ``"max"`` or ``"min"``. Raises ``TensorExpressionError`` where the shapes or the data
    types do not go together.
    """
    count = integer(indices.shape[0], "the number of axes with indices") if indices.ndim else 0
    if not 0 < count <= x.ndim:
        raise error(f"indices of shape {indices.shape} give {count} indices for shape {x.shape}", f"1 to {x.ndim}")
    outer = indices.shape[1:]
    _require_shape(updates, (*outer, *x.shape[count:]))

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        data, places, values = ins
        copy(ib, data, outs[0])
        with loops(ib, updates.shape, "u") as i:
            first = [counted(places[(n, *i[: len(outer)])], x.shape[n]) for n in range(count)]
            _stored(ib, outs[0], (*first, *i[len(outer) :]), range(count), values[i], mode)

    return statements("scatter_nd", [x, indices, updates], [(x.shape, x.dtype)], body)[0]


def _numpy_index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    made, places = x.copy(), tuple(i.astype(np.int64) for i in indices)
    if accumulate:
        np.add.at(made, places, values)
    else:
        made[places] = values
    return made


@operator(
    shapes="(…x) T, [(…*)], (…v) T -> (…x)", section="indexing", reference=_numpy_index_put,
    cases=[
        case(
            arg((3, 4)), [arg((5,), "int32", "indices below 3"), arg((5,), "int64", "indices below 4")], arg((5,)), True
        ),
        case(arg((3, 4), "int8"), [arg((2, 1), "int32", np.array([[-1], [0]]))], arg((4,), "int8")),
        case(arg((4,)), [arg((3,), "int64", np.array([0, 2, 1]))], arg(()), False),
    ],
)  # fmt: skip
def index_put(x: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """``x`` after ``x[indices[0], indices[1], …] = values``, or with ``accumulate`` after ``+=`` for each index.

    Indices are of the first axes and broadcast, and ``values`` broadcasts with what they choose.
    """
    tensors = index_tensors(x, indices)
    common = broadcast(*(t.shape for t in tensors))
    whole = (*common, *x.shape[len(tensors) :])
    if not equate_shapes(broadcast(values.shape, whole), whole):
        raise error(f"{values.shape} does not broadcast to {whole}, what the indices choose")

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        data, new, *places = ins
        copy(ib, data, outs[0])
        with loops(ib, whole, "u") as i:
            first = [p[read_index(p.buffer.shape, common, i[: len(common)])] for p in places]
            at = [counted(index, s) for index, s in zip(first, x.shape)]
            value = new[read_index(values.shape, whole, i)]
            _stored(ib, outs[0], (*at, *i[len(common) :]), range(len(at)), value, "add" if accumulate else "update")

    return statements("index_put", [x, values, *tensors], [(x.shape, x.dtype)], body)[0]


def _numpy_sparse_to_dense(sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any = 0) -> Any:
    made = np.full(output_shape, default_value, np.float64)
    places = np.atleast_1d(sparse_indices)
    places = places.reshape(len(places), -1)
    for at, value in zip(places, np.broadcast_to(sparse_values, len(places))):
        made[tuple(at)] = value
    return made


@operator(
    gives=(4,), shapes="(…i) integer, (…v) -> (…r)", section="indexing", reference=_numpy_sparse_to_dense,
    cases=[
        case(arg((), "int32", "indices below 4"), (4,), arg((), values="positive")),
        case(arg((3,), "int32", np.array([0, 3, 1])), (5,), arg((3,), "int8"), 7),
        case(arg((3, 2), "int64", np.array([[0, 1], [1, 0], [1, 3]])), (2, 4), arg((3,)), -1.0),
        case(arg((2, 2), "int32", np.array([[0, 1], [1, 0]])), (2, 2), arg(())),
    ],
)  # fmt: skip
def sparse_to_dense(sparse_indices: Tensor, output_shape: Any, sparse_values: Tensor, default_value: Any = 0) -> Tensor:
    """A tensor of ``output_shape`` with ``sparse_values`` at ``sparse_indices`` and ``default_value`` elsewhere.

    Indices are one, a tensor of them, or (number, dimensions); values one for each, or one for all.
    """
    shape, default = sized(output_shape, "the shape"), constant_of(default_value, sparse_values.dtype)
    ndim = integer(sparse_indices.shape[1], "the number of dimensions") if sparse_indices.ndim == 2 else 1
    if sparse_indices.ndim > 2 or ndim != len(shape):
        raise error(f"indices of shape {sparse_indices.shape} are not those of {len(shape)} dimensions")
    if sparse_values.ndim:
        _require_shape(sparse_values, sparse_indices.shape[:1])

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        places, values = ins
        with loops(ib, shape, "d") as i:
            outs[0][i] = default
        with loops(ib, sparse_indices.shape[:1], "u") as i:
            at = [places[(*i, n)] for n in range(ndim)] if sparse_indices.ndim == 2 else [places[i]]
            target = [counted(p, s) for p, s in zip(at, shape)]
            _stored(ib, outs[0], target, range(ndim), values[i if sparse_values.ndim else ()])

    return statements("sparse_to_dense", [sparse_indices, sparse_values], [(shape, sparse_values.dtype)], body)[0]
