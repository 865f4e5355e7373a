"""Operators that read tensors at indices which are tensors themselves.

Indices count from the end where they are negative, except where a mode says what becomes of them; what is out of range
has no defined value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .. import Expr
from ..te import Tensor, at_most, equate_shapes, error, if_then_else
from .element_places import MOVED_DTYPES, as_index, clamped, gathered, integer, listed, replaced, require_integers
from .registry import arg, case, operator
from .shapes import axis_of, broadcast, read_index
from .transform import ravel


def from_front(index: Expr, extent: Expr) -> Expr:
    """An index that was read from a tensor, counted from 0; of one that is out of range, the nearest element."""
    return clamped(counted(index, extent), extent)


def counted(index: Expr, extent: Expr) -> Expr:
    """An index that was read from a tensor, counted from 0, in range or not."""
    place = as_index(index)
    return place if index.dtype.code == "uint" else if_then_else(place < 0, place + extent, place)


# ---------------------------------------------------------------- along one axis


def _numpy_take(x: Any, indices: Any, axis: Any = None, batch_dims: int = 0, mode: Any = "clip") -> Any:
    mode = "raise" if mode == "fast" else mode
    if not batch_dims:
        return np.take(x, indices, axis, mode=mode)
    rows = [_numpy_take(r, i, axis % x.ndim - 1, batch_dims - 1, mode) for r, i in zip(x, indices)]
    return np.stack(rows)


@operator(
    gives=(2, 5), shapes="(…x), (…i) integer -> (…r)", section="indexing", reference=_numpy_take,
    cases=[
        case(arg((3, 4)), arg((2, 5), "int32", "indices below 12")),
        case(arg((3, 4)), arg((5,), "int64", np.array([-9, -1, 0, 2, 9])), 1),
        case(arg((3, 4)), arg((5,), "int32", np.array([-9, -1, 0, 2, 9])), 1, mode="wrap"),
        case(arg((3, 4)), arg((2, 2), "uint8", "indices below 4"), -1, mode="fast"),
        case(arg((3, 4)), arg((), "int32", "indices below 3"), 0), case(arg((3, 4)), arg((0,), "int32"), 0),
        case(arg((2, 3, 4)), arg((2, 5), "int32", "indices below 4"), 2, 1),
        case(arg((2, 3, 4)), arg((2, 3, 1), "int32", "indices below 4"), -1, 2),
        case(arg(("n", 2)), arg((3,), "int64", "indices below 5"), axis=0),
        *(case(arg((4,), dtype), arg((3,), "int32", "indices below 4"), 0) for dtype in MOVED_DTYPES),
    ],
)  # fmt: skip
def take(
    x: Tensor,
    indices: Tensor,
    axis: int | None = None,
    batch_dims: int = 0,
    mode: Literal["clip", "wrap", "fast"] = "clip",
) -> Tensor:
    """The elements of ``x`` at ``indices`` along ``axis``; of all elements in one dimension for None.

    The result has the dimensions of ``indices`` in the place of ``axis``. The first ``batch_dims`` dimensions are the same for
    both. ``mode`` says what an index out of range reads: ``"clip"`` the nearest element, also for a negative one; ``"wrap"``
    counts around; ``"fast"`` is for indices that are known to be in range.
    """
    if axis is None:
        return take(ravel(x), indices, 0, batch_dims, mode)
    at, batch = axis_of(axis, x.ndim), integer(batch_dims, "the number of batch dimensions")
    if not 0 <= batch <= min(at, indices.ndim):
        raise error(f"{batch} dimensions of a batch stand before axis {at} of {x.shape} and in {indices.shape}")
    if not equate_shapes(x.shape[:batch], indices.shape[:batch]):
        raise error(f"the first {batch} dimensions of {x.shape} and {indices.shape} differ", "one batch for both")
    own = indices.ndim - batch
    shape = (*x.shape[:at], *indices.shape[batch:], *x.shape[at + 1 :])

    def element(*places: Any) -> Expr:
        index = as_index(indices(*places[:batch], *places[at : at + own]))
        return x(*places[:at], _MODES[mode](index, x.shape[at]), *places[at + own :])

    return gathered(shape, x.dtype, element, "take")


_MODES: dict[str, Any] = {
    "clip": clamped,
    "wrap": lambda index, extent: index % extent,
    "fast": lambda index, extent: index,
}


@operator(
    gives=(3, 2), shapes="(…x), (…i) integer -> (…r)", section="indexing", reference=np.take_along_axis,
    cases=[
        case(arg((3, 4)), arg((3, 2), "int32", "indices below 4"), 1),
        case(arg((3, 4)), arg((2, 4), "int64", np.array([[-1, 0, 2, -3]] * 2)), 0),
        case(arg((2, 3, 4), "int8"), arg((2, 1, 2), "int64", "indices below 4"), -1),
        case(arg((1, 4)), arg((3, 2), "uint8", "indices below 4")), case(arg((3, 4)), arg((3, 0), "int32"), 1),
    ],
)  # fmt: skip
def take_along_axis(x: Tensor, indices: Tensor, axis: int = -1) -> Tensor:
    """The elements of ``x`` whose index along ``axis`` is ``indices[…]``, and that of the result along the others.

    Other dimensions than ``axis`` broadcast. Raises ``TensorExpressionError`` where they do not, or their number differs.
    """
    at = axis_of(axis, x.ndim)
    if x.ndim != indices.ndim:
        raise error(f"indices of shape {indices.shape} are of another number of dimensions than {x.shape}")
    common = broadcast(replaced(x.shape, at), replaced(indices.shape, at))
    shape = (*common[:at], indices.shape[at], *common[at:])

    def element(*places: Any) -> Expr:
        index = indices(*read_index(indices.shape, shape, places))
        around = read_index(replaced(x.shape, at), common, replaced(places, at))
        return x(*around[:at], from_front(index, x.shape[at]), *around[at:])

    return gathered(shape, x.dtype, element, "take_along_axis")


def _numpy_gather(x: Any, axis: int, indices: Any) -> Any:
    made = np.zeros(indices.shape, x.dtype)
    for at in np.ndindex(*indices.shape):
        source = list(at)
        source[axis] = indices[at]
        made[at] = x[tuple(source)]
    return made


@operator(
    shapes="(…x), (…i) integer -> (…i)", section="indexing", reference=_numpy_gather, aliases=["gather_elements"],
    cases=[
        case(arg((3, 4)), 1, arg((3, 2), "int32", "indices below 4")),
        case(arg((3, 4), "int8"), 0, arg((5, 2), "int64", np.array([[-1, 0]] * 5))),
        case(arg((3, 4)), -1, arg((0, 2), "int32")),
    ],
)  # fmt: skip
def gather(x: Tensor, axis: int, indices: Tensor) -> Tensor:
    """The elements of ``x`` whose index along ``axis`` is ``indices[…]``: as :func:`take_along_axis`, but other dimensions of
    ``indices`` may be shorter than those of ``x``, and do not broadcast.
    """
    at = axis_of(axis, x.ndim)
    require_within(x, at, indices)
    return gathered(
        indices.shape, x.dtype, lambda *i: x(*replaced(i, at, from_front(indices(*i), x.shape[at]))), "gather"
    )


def require_within(x: Tensor, axis: int, indices: Tensor) -> None:
    """Raise ``TensorExpressionError`` where ``indices`` are of more elements than ``x`` beside ``axis``."""
    beside = (pair for n, pair in enumerate(zip(indices.shape, x.shape)) if n != axis)
    if x.ndim != indices.ndim or not all(at_most(a, b) for a, b in beside):
        raise error(
            f"indices of shape {indices.shape} do not go with {x.shape} beside axis {axis}",
            "no longer, of as many dimensions",
        )


# ---------------------------------------------------------------- along several axes


def _numpy_gather_nd(x: Any, indices: Any, batch_dims: int = 0) -> Any:
    made = np.zeros((*indices.shape[1:], *x.shape[batch_dims + len(indices) :]), x.dtype)
    for at in np.ndindex(*indices.shape[1:]):
        made[at] = x[(*at[:batch_dims], *indices[(slice(None), *at)])]
    return made


@operator(
    gives=(5,), shapes="(…x), (_, …i) integer -> (…r)", section="indexing", reference=_numpy_gather_nd,
    cases=[
        case(arg((3, 4)), arg((2, 5), "int32", "indices below 3")),
        case(arg((3, 4), "int8"), arg((1, 2, 2), "int64", np.array([[[-1, 0], [2, 1]]]))),
        case(arg((2, 3, 4)), arg((1, 2, 5), "int32", "indices below 3"), 1),
        case(arg((2, 3, 4)), arg((2, 2), "int32", "indices below 3"), batch_dims=1),
    ],
)  # fmt: skip
def gather_nd(x: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """The parts of ``x`` at ``indices[0, …], indices[1, …] …``, which are the first indices after ``batch_dims`` of a batch."""
    count = integer(indices.shape[0], "the number of axes with indices")
    batch, outer = integer(batch_dims, "the number of batch dimensions"), indices.ndim - 1
    if not 0 <= batch <= outer or batch + count > x.ndim:
        raise error(f"{count} indices after {batch} dimensions of a batch are too many for shape {x.shape}")
    if not equate_shapes(x.shape[:batch], indices.shape[1 : batch + 1]):
        raise error(f"the batch is {x.shape[:batch]}, and {indices.shape[1 : batch + 1]} of the indices")

    def element(*places: Any) -> Expr:
        read = [from_front(indices(n, *places[:outer]), x.shape[batch + n]) for n in range(count)]
        return x(*places[:batch], *read, *places[outer:])

    return gathered((*indices.shape[1:], *x.shape[batch + count :]), x.dtype, element, "gather_nd")


@operator(
    gives=(5,),
    shapes="(…x), [(…*)] -> (…r)",
    section="indexing",
    reference=lambda x, indices: x[tuple(i.astype(np.int64) for i in indices)],
    cases=[
        case(arg((3, 4)), [arg((5,), "int32", "indices below 3"), arg((5,), "int64", "indices below 4")]),
        case(
            arg((3, 4, 2), "int8"), [arg((2, 1), "int64", np.array([[-1], [0]])), arg((3,), "int32", "indices below 4")]
        ),
        case(arg((3, 4)), [arg((), "int32", "indices below 3")]),
    ],
    aliases=("index_tensor",),
)
def adv_index(x: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """``x[indices[0], indices[1], …]`` as in NumPy: indices of the first axes, which broadcast."""
    tensors = index_tensors(x, indices)
    common = broadcast(*(t.shape for t in tensors))

    def element(*places: Any) -> Expr:
        first = places[: len(common)]
        read = [from_front(t(*read_index(t.shape, common, first)), s) for t, s in zip(tensors, x.shape)]
        return x(*read, *places[len(common) :])

    return gathered((*common, *x.shape[len(tensors) :]), x.dtype, element, "adv_index")


def index_tensors(x: Tensor, indices: Any) -> list[Tensor]:
    """Tensors of integers for the first axes of ``x``. Raises ``TensorExpressionError`` for others."""
    tensors = list(listed(indices))
    for t in tensors:
        if not isinstance(t, Tensor):
            raise error(f"an index is a tensor of integers, not {t!r}")
        require_integers(t, "a tensor of indices")
    if not 0 < len(tensors) <= x.ndim:
        raise error(f"there are {len(tensors)} indices for shape {x.shape}", f"1 to {x.ndim}")
    return tensors


@operator(
    gives=(2, 3, 4), shapes="(…i) integer, (_, …w) -> (…r)", section="indexing", namespace="nn",
    reference=lambda indices, weight: weight[indices.astype(np.int64)],
    cases=[
        case(arg((2, 3), "int64", "indices below 5"), arg((5, 4))),
        case(arg((), "int32", "indices below 5"), arg((5, 4), "bfloat16")),
    ],
)  # fmt: skip
def embedding(indices: Tensor, weight: Tensor) -> Tensor:
    """The rows of ``weight`` (entries, size) at ``indices``, as :func:`take` reads them."""
    return take(weight, indices, 0)
