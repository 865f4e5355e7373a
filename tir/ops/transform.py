"""Operators that give tensors another shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import Expr, as_expr, const, digits_of, is_const, simplify
from ..te import Tensor, as_size, compute, equate, error, is_multiple
from .contract import BY_CALL
from .element_places import (
    MOVED_DTYPES,
    constant,
    flat_index,
    gathered,
    integer,
    is_empty,
    is_one,
    listed,
    of_zeros,
    one_of,
    product,
    replaced,
    require_integers,
    require_rank,
    sized,
)
from .registry import arg, case, operator
from .shapes import are_equal, axes_of, axis_of, broadcast

# ---------------------------------------------------------------- shape


@operator(
    unstated=BY_CALL, section="transform", reference=np.reshape,
    cases=[
        case(arg((2, 3, 4)), (4, -1)), case(arg((2, 3, 4)), 24), case(arg((6,)), (1, 2, 1, 3)), case(arg((1, 1)), ()),
        case(arg(()), (1, 1)), case(arg((2, 0, 3)), (0, 5)), case(arg((2, 6, 5)), (3, 4, -1)),
        *(case(arg((2, 6), dtype), (3, 4)) for dtype in MOVED_DTYPES),
    ],
)  # fmt: skip
def reshape(x: Tensor, newshape: Any) -> Tensor:
    """The elements of ``x`` in row-major order in ``newshape``; one extent may be -1, which is what is left.

    Raises ``TensorExpressionError`` where the numbers of elements differ.

    >>> from tir import ops, te
    >>> n = te.var("n")
    >>> ops.reshape(te.placeholder((n, 2, 3), name="x"), (n, -1))
    Tensor(reshape, (n, 6), float32)
    """
    shape = _whole_shape(x, newshape)
    if is_empty(shape) or is_empty(x.shape):
        return of_zeros(shape, x.dtype, "reshape")
    groups = _groups(x.shape, shape)

    def element(*indices: Any) -> Expr:
        places: list[Expr] = []
        for old, new in groups:
            places += _regrouped(indices[new], shape[new], x.shape[old])
        return x(*places)

    return compute(shape, element, name="reshape")


def _whole_shape(x: Tensor, newshape: Any) -> tuple[Expr, ...]:
    """``newshape`` with -1 replaced."""
    given = [as_size(s, "an extent") for s in listed(newshape)]
    open_axes = [n for n, s in enumerate(given) if is_const(s, -1)]
    if len(open_axes) > 1:
        raise error(f"{len(open_axes)} extents are left open in {listed(newshape)}", "one -1 at most")
    count = product(x.shape)
    if open_axes:
        given[open_axes[0]] = _left_over(x.shape, [s for s in given if not is_const(s, -1)])
    elif not equate(count, product(given)):
        raise error(
            f"{x.shape} has {count} elements, but {tuple(given)} has {product(given)}",
            "as many elements, or one extent of -1",
        )
    return sized(given, "the shape")


def _left_over(old: Sequence[Expr], new: Sequence[Expr]) -> Expr:
    """The number of elements of shape ``old`` by that of shape ``new``."""
    numerator, denominator = list(old), []
    for extent in new:
        same = next((n for n, s in enumerate(numerator) if are_equal(s, extent)), None)
        if same is None:
            denominator.append(extent)
        else:
            del numerator[same]
    count, parts = product(numerator), product(denominator)
    if constant(parts) == 0 or not is_multiple(count, parts):
        raise error(f"the elements of shape {tuple(old)} cannot be shared out in {tuple(new)} and an extent of -1")
    return simplify(count // parts)


def _groups(old: Sequence[Expr], new: Sequence[Expr]) -> list[tuple[slice, slice]]:
    """Runs of axes of both shapes, as short as possible, that have as many elements."""
    cuts = [(0, 0)]
    for a in range(1, len(old)):
        cut = next((b for b in range(cuts[-1][1] + 1, len(new)) if are_equal(product(old[:a]), product(new[:b]))), None)
        if cut is not None:
            cuts.append((a, cut))
    cuts.append((len(old), len(new)))
    return [(slice(a, c), slice(b, d)) for (a, b), (c, d) in zip(cuts, cuts[1:])]


def _regrouped(indices: Sequence[Any], new: Sequence[Expr], old: Sequence[Expr]) -> list[Expr]:
    if len(new) == len(old) == 1:
        return [indices[0]]
    return digits_of(flat_index(indices, new), old)


@operator(
    gives=(6,), shapes="(…) -> (_)", section="transform", reference=np.ravel,
    cases=[case(arg((2, 3))), case(arg(())), case(arg((0, 3))), case(arg(("n", 2), "int16"))],
)  # fmt: skip
def ravel(x: Tensor) -> Tensor:
    """All elements of ``x`` in one dimension, in row-major order."""
    return reshape(x, (-1,) if not is_empty(x.shape) else (0,))


@operator(
    gives=(3,), unstated=BY_CALL, section="transform", reference=np.squeeze,
    cases=[
        case(arg((1, 3, 1))), case(arg((1, 3, 1)), -1), case(arg((1, 3, 1), "int8"), (0, 2)), case(arg((1, 1))),
        case(arg((1, 0)), 0), case(arg(("n", 1), "bool"), axis=1),
    ],
)  # fmt: skip
def squeeze(x: Tensor, axis: Any = None) -> Tensor:
    """``x`` without the dimensions ``axis``, all that have extent 1 for None.

    Raises ``TensorExpressionError`` for an extent other than 1.
    """
    ones = [n for n, s in enumerate(x.shape) if is_one(s)]
    gone = ones if axis is None else axes_of(axis, x.ndim)
    for n in gone:
        if not equate(x.shape[n], 1):
            raise error(
                f"axis {n} of shape {x.shape} has extent {x.shape[n]}, and 1 alone is dropped", f"an axis of {ones}"
            )
    kept = [n for n in range(x.ndim) if n not in gone]

    def element(*indices: Any) -> Expr:
        places = dict(zip(kept, indices))
        return x(*(places.get(n, 0) for n in range(x.ndim)))

    return compute([x.shape[n] for n in kept], element, name="squeeze")


def _numpy_expand_dims(x: Any, axis: Any = 0, num_newaxis: int = 1) -> Any:
    for _ in range(num_newaxis):
        x = np.expand_dims(x, axis)
    return x


@operator(
    gives=(1, 2, 3), unstated=BY_CALL, section="transform", reference=_numpy_expand_dims,
    cases=[
        case(arg((2, 3))), case(arg((2, 3)), -1), case(arg((2, 3), "bfloat16"), 1, 2), case(arg((2, 3)), (0, -1)),
        case(arg(()), 0), case(arg((0,)), 0), case(arg(("n",), "uint8"), axis=1),
    ],
)  # fmt: skip
def expand_dims(x: Tensor, axis: Any = 0, num_newaxis: int = 1) -> Tensor:
    """``x`` with new dimensions of extent 1: ``num_newaxis`` at ``axis``, or one at each of a tuple of places."""
    count = integer(num_newaxis, "the number of new axes")
    if isinstance(axis, (list, tuple)):
        ndim = x.ndim + len(axis)
        new = set(axes_of(axis, ndim))
    else:
        first = axis_of(axis, x.ndim + 1)
        ndim, new = x.ndim + count, set(range(first, first + count))
    old = iter(x.shape)
    shape = [const(1) if n in new else next(old) for n in range(ndim)]
    kept = [n for n in range(ndim) if n not in new]
    return compute(shape, lambda *i: x(*(i[n] for n in kept)), name="expand_dims")


@operator(
    gives=(2, 3, 4), unstated=BY_CALL, section="transform", reference=np.broadcast_to,
    cases=[
        case(arg((3, 1)), (2, 3, 4)), case(arg(()), (2, 2)), case(arg((1,)), (0,)), case(arg((1,)), (1, 5)),
        *(case(arg((2, 1), dtype), (2, 3)) for dtype in MOVED_DTYPES),
    ],
)  # fmt: skip
def broadcast_to(x: Tensor, shape: Any) -> Tensor:
    """``x`` repeated along dimensions of extent 1 and new leading ones.

    Raises ``TensorExpressionError`` where an extent is neither 1 nor that of ``shape``.
    """
    target = sized(shape, "the shape")
    lead = len(target) - x.ndim
    if lead < 0:
        raise error(f"shape {x.shape} has more dimensions than {target}")
    for old, new in zip(x.shape, target[lead:]):
        if not is_one(old) and not equate(old, new):
            raise error(f"shape {x.shape} does not become {target}: extent {old} is neither 1 nor {new}")
    repeated = [is_one(s) for s in x.shape]
    return compute(
        target, lambda *i: x(*(0 if one else at for one, at in zip(repeated, i[lead:]))), name="broadcast_to"
    )


@operator(
    shapes="[(…*)] -> [(…*)]", section="transform", reference=lambda *arrays: list(np.broadcast_arrays(*arrays)),
    cases=[
        case(arg((3, 1)), arg((4,), "int8")), case(arg((2, 1, 3), "float16"), arg((1, 5, 1), "bool"), arg((), "uint8")),
        case(arg((5,), "int64")), case(arg((0, 1)), arg((3,), "bfloat16")), case(arg(("n", 1), "float64"), arg((7,))),
    ],
)  # fmt: skip
def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The tensors ``arrays``, each of the shape that they have together and of its own type.

    Raises ``TensorExpressionError`` for shapes that do not broadcast, and for no tensors.

    >>> from tir import ops, te
    >>> x, y = te.placeholder((3, 1), name="x"), te.placeholder((4,), "int8", name="y")
    >>> [(t.shape, t.dtype) for t in ops.broadcast_arrays(x, y)]
    [((3, 4), 'float32'), ((3, 4), 'int8')]
    """
    if not arrays:
        raise error("there is no tensor to broadcast")
    target = broadcast(*(x.shape for x in arrays))
    return [broadcast_to(x, target) for x in arrays]


@operator(
    shapes="(…x), (…l) -> (…l)", section="transform",
    reference=lambda x, shape_like, axis: np.broadcast_to(np.expand_dims(x, axis), shape_like.shape),
    cases=[
        case(arg((3,)), arg((2, 3, 4)), (0, 2)), case(arg((2, 3), "int32"), arg((2, 3, 4)), -1),
        case(arg(()), arg((2,)), 0),
    ],
)  # fmt: skip
def expand_like(x: Tensor, shape_like: Tensor, axis: Any) -> Tensor:
    """``x`` with new dimensions at ``axis`` of ``shape_like``, and repeated along them."""
    new = axes_of(axis, shape_like.ndim)
    if shape_like.ndim != x.ndim + len(new):
        raise error(f"{x.shape} with {len(new)} dimensions more is not of as many as {shape_like.shape}")
    return broadcast_to(expand_dims(x, new), shape_like.shape)


# ---------------------------------------------------------------- repetition


@operator(
    gives=(4, 6), unstated=BY_CALL, section="transform", reference=np.tile,
    cases=[
        case(arg((2, 3)), (2, 2)), case(arg((2, 3), "int8"), 2), case(arg((3,), "bool"), (2, 1, 2)), case(arg((2,)), 0),
        case(arg((0, 2)), (2, 1)), case(arg(("n", 2)), (2, 1)),
    ],
)  # fmt: skip
def tile(x: Tensor, reps: Any) -> Tensor:
    """``x`` repeated ``reps[n]`` times along dimension ``n``; missing dimensions and numbers in front are 1."""
    times = sized(reps, "the number of repetitions")
    ndim = max(x.ndim, len(times))
    times = (const(1),) * (ndim - len(times)) + times
    old = (const(1),) * (ndim - x.ndim) + x.shape
    shape = [simplify(s * t) for s, t in zip(old, times)]

    def element(*indices: Any) -> Expr:
        places = [i if is_one(t) else i % s for i, s, t in zip(indices, old, times)]
        return x(*places[ndim - x.ndim :])

    return gathered(shape, x.dtype, element, "tile")


@operator(
    gives=(12,), unstated=BY_CALL, section="transform", reference=np.repeat,
    cases=[
        case(arg((2, 3)), 2), case(arg((2, 3), "int8"), 3, -1), case(arg((2, 3)), 0, 1),
        case(arg((0, 2), "float16"), 2, 1), case(arg(("n", 2)), 2, axis=0),
    ],
)  # fmt: skip
def repeat(x: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    """``x`` with each element along ``axis`` ``repeats`` times; of all elements in one dimension for None.

    Raises ``TensorExpressionError`` for a number for each element: ``repeats`` is one integer.
    """
    if axis is None:
        return repeat(ravel(x), repeats, 0)
    at, (times, *more) = axis_of(axis, x.ndim), sized(repeats, "the number of repetitions")
    if more:
        raise error(f"all elements are repeated as often: {repeats!r} is not one number")
    shape = replaced(x.shape, at, simplify(x.shape[at] * times))
    return gathered(shape, x.dtype, lambda *i: x(*replaced(i, at, i[at] // times)), "repeat")


# ---------------------------------------------------------------- indices and sizes


@operator(
    gives=(3, 5), shapes="(…i) integer -> (_, …i)", section="transform",
    reference=lambda indices, shape: np.stack(np.unravel_index(indices, tuple(shape))),
    cases=[
        case(arg((5,), "int32", "indices below 24"), (2, 3, 4)), case(arg((2, 3), "int64", "indices below 6"), (6,)),
        case(arg((), "uint8", "indices below 6"), (2, 3)),
        case(arg((5,), "int32", "indices below 24"), arg((3,), "int32", np.array([2, 3, 4]))),
    ],
)  # fmt: skip
def unravel_index(indices: Tensor, shape: Any) -> Tensor:
    """The indices, in a tensor of ``shape``, of the elements at places ``indices`` in row-major order.

    The result has a first dimension for those of ``shape``, a tuple or a tensor of integers.
    """
    if isinstance(shape, Tensor):
        require_integers(shape, "a shape")
        require_rank(shape, 1, "a shape")
        extents: list[Expr] = [shape[n] for n in range(integer(shape.shape[0], "the number of dimensions"))]
    else:
        extents = list(sized(shape, "the shape"))
    if not extents:
        raise error("an index is of a shape of one dimension at least, not of ()")
    if is_empty(extents):
        raise error(f"there are no elements in a tensor of shape {tuple(extents)}")

    def element(axis: Any, *at: Any) -> Expr:
        places = [p.astype(indices.dtype) for p in digits_of(indices(*at), [as_expr(e) for e in extents])]
        return one_of(places, axis)

    return compute((len(extents), *indices.shape), element, name="unravel_index")


@operator(
    shapes="(…) -> (_)", section="transform", reference=lambda x, dtype="int32": np.array(x.shape),
    cases=[case(arg((2, 3))), case(arg(("n", 0, 4)), "int64"), case(arg(()))],
)  # fmt: skip
def shape(x: Tensor, dtype: Any = "int32") -> Tensor:
    """The extents of ``x`` as a tensor of one dimension.

    >>> from tir import ops, te
    >>> ops.shape(te.placeholder((2, 3), name="x"))
    Tensor(shape, (2,), int32)
    """

    def element(axis: Any) -> Expr:
        return one_of([extent.astype(dtype) for extent in x.shape] or [const(0, dtype)], axis)

    return compute((x.ndim,), element, name="shape")


@operator(
    gives=(), shapes="(…) -> ()", section="transform", reference=lambda x, dtype="int32": np.size(x),
    cases=[case(arg((2, 3))), case(arg(("n", 4)), "int64"), case(arg((0, 2))), case(arg(()))], aliases=("tensor_size",),
)  # fmt: skip
def ndarray_size(x: Tensor, dtype: Any = "int32") -> Tensor:
    """The number of elements of ``x`` as a tensor without dimensions."""
    return compute((), lambda: product(x.shape).astype(dtype), name="size")
