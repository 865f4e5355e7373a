"""Operators that cut parts out of tensors, and put them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .. import Expr, IntImm, as_expr, const, is_const, simplify
from .. import max as max_
from .. import min as min_
from ..te import Tensor, all, at_most, compute, equate_shapes, error, if_then_else
from .element_places import (
    MOVED_DTYPES,
    as_index,
    axes_in_order,
    clamped,
    constant,
    gathered,
    integer,
    listed,
    replaced,
    sized,
)
from .registry import arg, case, operator
from .shapes import axis_of


@dataclass(frozen=True)
class Steps:
    """The places ``begin``, ``begin + stride`` …, ``count`` of them, along one axis."""

    begin: Expr
    stride: int
    count: Expr

    def place(self, number: Any) -> Expr:
        """The place of step ``number``."""
        return self.begin + number * self.stride

    def number(self, place: Any) -> Expr:
        """The step that is at ``place``, where one is."""
        return (place - self.begin) // self.stride if self.stride != 1 else place - self.begin

    def contains(self, place: Any) -> list[Expr]:
        """The conditions under which a step is at ``place``."""
        number = self.number(place)
        at_a_step = [(place - self.begin) % abs(self.stride) == 0] if abs(self.stride) != 1 else []
        return [number >= 0, number < self.count, *at_a_step]


def steps_of(begin: Any, end: Any, stride: Any, extent: Expr) -> Steps:
    """The indices selected by ``begin:end:stride``, with Python's rules for negative and out-of-range bounds. Raises ``TensorExpressionError`` for a stride of 0."""
    step = 1 if stride is None else integer(stride, "a stride")
    if step == 0:
        raise error("a stride of 0 leads nowhere", "a positive or a negative stride")
    if step > 0:
        first = const(0) if begin is None else max_(_from_front(begin, extent), 0)
        last = extent if end is None else min_(_from_front(end, extent), extent)
        length = last - first
    else:
        first = extent - 1 if begin is None else min_(_from_front(begin, extent), extent - 1)
        last = const(-1) if end is None else max_(_from_front(end, extent), -1)
        length = first - last
    count = length if abs(step) == 1 else (length + (abs(step) - 1)) // abs(step)
    is_whole = begin is None and end is None
    return Steps(simplify(first), step, simplify(as_expr(count if is_whole else max_(count, 0))))


def _from_front(place: Any, extent: Expr) -> Expr:
    known = constant(place)
    if known is not None:
        return extent + known if known < 0 else const(known)
    return if_then_else(place < 0, place + extent, place)


# ---------------------------------------------------------------- slices


def _numpy_strided_slice(
    x: Any, begin: Any, end: Any, strides: Any = None, axes: Any = None, slice_mode: Any = "end"
) -> Any:
    begin, end = list(begin), list(end)
    axes = range(len(begin)) if axes is None else axes
    strides = [1] * len(begin) if strides is None else strides
    for a, b, e, s in zip(axes, begin, end, strides):
        if slice_mode == "size":
            e, s = (None if e == -1 else b + e), 1
        x = np.moveaxis(np.moveaxis(x, a, 0)[b:e:s], 0, a)
    return x


@operator(
    gives=(3, 2), unstated="each extent is what the call leaves of it", section="transform", reference=_numpy_strided_slice,
    aliases=["slice"],
    cases=[
        case(arg((5, 6)), (1, 2), (4, 6), (1, 3)), case(arg((5, 6)), (-1, None), (-6, 1), (-2, -1)),
        case(arg((5, 6)), (3,), (100,)), case(arg((5, 6)), (4,), (2,)),
        case(arg((5, 6)), (-100, 100), (100, -100), (2, -4)), case(arg((5, 6)), (1,), (3,), axes=(-1,)),
        case(arg((5, 6)), (1, 2), (3, -1), slice_mode="size"), case(arg((0, 6)), (0,), (3,)),
        case(arg((1, 6)), (None,), (None,), (-1,)), case(arg(("n", 6)), (1,), (None,), (2,)),
        case(arg(("n", 6)), (-2,), (3,), (-1,)), *(case(arg((5,), dtype), (4,), (0,), (-2,)) for dtype in MOVED_DTYPES),
    ],
)  # fmt: skip
def strided_slice(
    x: Tensor,
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: Literal["end", "size", "inside"] = "end",
) -> Tensor:
    """``x[begin[0]:end[0]:strides[0], …]`` with the meaning of Python's slices: negative places count from the end, places
    beyond an end are left out, and None is the end itself.

    The slices are of the first axes, or of ``axes``. With ``slice_mode="size"``, ``end`` has numbers of elements, -1 for
    all that are left, and strides are 1; with ``"inside"``, places are counted from the front, and have to be in the tensor: symbolic sizes are
    not cut to it, but checked. Raises ``TensorExpressionError`` for a stride of 0, and for lists whose lengths differ.
    """
    found = _steps(x, begin, end, strides, axes, slice_mode)
    shape = [found[n].count if n in found else s for n, s in enumerate(x.shape)]
    return compute(
        shape, lambda *i: x(*(found[n].place(at) if n in found else at for n, at in enumerate(i))), name="strided_slice"
    )


def _steps(
    x: Tensor, begin: Any, end: Any, strides: Any, axes: Any, slice_mode: Literal["end", "size", "inside"] = "end"
) -> dict[int, Steps]:
    """The steps along each axis that is cut."""
    places = axes_in_order(range(len(begin)) if axes is None else axes, x.ndim) if len(begin) <= x.ndim else ()
    if slice_mode == "inside":
        return {a: _inside(b, e, x.shape[a]) for a, b, e in zip(places, begin, end)}
    if slice_mode == "size":
        strides = None
        end = [None if e is None or is_const(e, -1) else b + e for b, e in zip(begin, end)]
    steps = [None] * len(begin) if strides is None else [*strides, *[None] * (len(begin) - len(strides))]
    if not len(begin) == len(end) == len(places) == len(steps):
        raise error(
            f"slices from {tuple(begin)} to {tuple(end)} are not as many as the axes of shape {x.shape} that they cut",
            "a begin and an end for each axis",
        )
    return {a: steps_of(b, e, s, x.shape[a]) for a, b, e, s in zip(places, begin, end, steps)}


def _inside(begin: Any, end: Any, extent: Expr) -> Steps:
    """The places from ``begin`` up to ``end``, which are in an axis of ``extent``. Raises ``TensorExpressionError`` if they cannot be."""
    first, last = as_expr(begin), as_expr(end)
    if not (at_most(0, first) and at_most(first, last) and at_most(last, extent)):
        raise error(f"a slice from {begin} to {end} is not inside of {extent}", "0 <= begin <= end <= extent")
    return Steps(first, 1, simplify(last - first))


@operator(
    gives=[(2, 2), (2, 2), (2, 2)], shapes="(…, _@axis, …) -> [(…, _@axis, …)]", section="transform", reference=np.split,
    cases=[
        case(arg((6, 2)), 3), case(arg((2, 7)), (2, 3), 1), case(arg((2, 5), "int8"), (0, 3, 9), -1),
        case(arg((4,)), (-1,)), case(arg((0, 2)), 2), case(arg(("n", 6), "bool"), 2, axis=1),
    ],
)  # fmt: skip
def split(x: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """``x`` in parts along ``axis``: in so many of one size, or cut before each of the places that are given.

    Raises ``TensorExpressionError`` where parts of one size do not come out even.
    """
    at = axis_of(axis, x.ndim)
    if isinstance(indices_or_sections, (list, tuple)):
        cuts: list[Any] = list(indices_or_sections)
    else:
        count, extent = (
            integer(indices_or_sections, "the number of parts"),
            integer(x.shape[at], "the extent that is cut"),
        )
        if count < 1 or extent % count:
            raise error(f"{extent} elements along axis {at} do not make {count} parts of one size", "places of cuts")
        cuts = [n * (extent // count) for n in range(1, count)]
    ends = zip([None, *cuts], [*cuts, None])
    return [_part(x, at, steps_of(b, e, None, x.shape[at]), n) for n, (b, e) in enumerate(ends)]


def _part(x: Tensor, axis: int, steps: Steps, number: int) -> Tensor:
    return compute(
        replaced(x.shape, axis, steps.count),
        lambda *i: x(*replaced(i, axis, steps.place(i[axis]))),
        name=f"split_{number}",
    )


@operator(
    gives=(3, 3),
    shapes="(…x), (k) integer, (k) integer, (k) integer -> (…r)",
    section="transform",
    reference=lambda x, begin, end, strides, output_shape: x[
        tuple(slice(b, e, s) for b, e, s in zip(begin, end, strides))
    ],
    cases=[
        case(
            arg((5, 6)),
            arg((2,), "int64", np.array([1, 5])),
            arg((2,), "int64", np.array([4, 0])),
            arg((2,), "int64", np.array([1, -2])),
            output_shape=(3, 3),
        ),
        case(
            arg((5, 6), "int8"),
            arg((1,), "int32", np.array([-2])),
            arg((1,), "int32", np.array([100])),
            arg((1,), "int32", np.array([1])),
            output_shape=(2, 6),
        ),
    ],
)
def dynamic_strided_slice(x: Tensor, begin: Tensor, end: Tensor, strides: Tensor, output_shape: Any) -> Tensor:
    """:func:`strided_slice` of places that are known when the program runs: tensors of integers, one for each axis.

    The caller says the shape of the result; elements of it beyond the slice are the nearest of ``x``.
    """
    shape = sized(output_shape, "the shape of the result")
    count = integer(begin.shape[0], "the number of slices")
    if count > x.ndim or len(shape) != x.ndim:
        raise error(f"{count} slices of shape {x.shape} do not give the shape {shape}", f"{x.ndim} dimensions")

    def place(axis: int, at: Any) -> Expr:
        if axis >= count:
            return clamped(at, x.shape[axis])
        extent = x.shape[axis].astype("int64")
        first, step = as_index(begin[axis]).astype("int64"), as_index(strides[axis]).astype("int64")
        first = if_then_else(first < 0, first + extent, first)
        # from within the tensor, by steps no longer than it: the same places, and mostly numbers that int32 holds
        first, step = clamped(first, extent), max_(min_(step, extent), -extent)
        sizes = [n.value if isinstance(n, IntImm) else None for n in (x.shape[axis], shape[axis])]
        fits = None not in sizes and sizes[0] * (sizes[1] + 1) < 2**31  # type: ignore[operator]
        kind = at.dtype if fits else "int64"
        return clamped(first.astype(kind) + at * step.astype(kind), extent.astype(kind))

    return gathered(shape, x.dtype, lambda *i: x(*(place(n, at) for n, at in enumerate(i))), "dynamic_strided_slice")


def _numpy_strided_set(x: Any, v: Any, begin: Any, end: Any, strides: Any = None) -> Any:
    made = x.copy()
    strides = [1] * len(begin) if strides is None else strides
    made[tuple(slice(b, e, s) for b, e, s in zip(begin, end, strides))] = v
    return made


@operator(
    shapes="(…x) T, (…v) T -> (…x)", section="transform", reference=_numpy_strided_set,
    cases=[
        case(arg((5, 6)), arg((3, 2)), (1, 2), (4, 6), (1, 2)),
        case(arg((5, 6), "int8"), arg((3, 6), "int8"), (4,), (-6,), (-2,)),
        case(arg((4,), "bfloat16"), arg((0,), "bfloat16"), (2,), (2,)), case(arg((5,)), arg((2,)), (-2,), (100,)),
    ],
)  # fmt: skip
def strided_set(
    x: Tensor, v: Tensor, begin: Sequence[Any], end: Sequence[Any], strides: Sequence[int] | None = None
) -> Tensor:
    """``x`` with ``v`` in the place of ``x[begin[0]:end[0]:strides[0], …]``, slices as of :func:`strided_slice`.

    Raises ``TensorExpressionError`` where ``v`` has not the shape of the slice.
    """
    found = _steps(x, begin, end, strides, None)
    expected = [found[n].count if n in found else s for n, s in enumerate(x.shape)]
    if not equate_shapes(v.shape, expected):
        raise error(f"the slice has shape {tuple(expected)}, and what is stored in it {v.shape}")

    def element(*indices: Any) -> Expr:
        inside = [c for n, steps in found.items() for c in steps.contains(indices[n])]
        places = [found[n].number(at) if n in found else at for n, at in enumerate(indices)]
        return if_then_else(all(*inside), v(*places), x(*indices)) if inside else v(*indices)

    return compute(x.shape, element, name="strided_set")


def _numpy_slice_scatter(input_tensor: Any, src: Any, start: Any, end: Any, step: int, axis: int) -> Any:
    made = np.moveaxis(input_tensor.copy(), axis, 0)
    made[start:end:step] = np.moveaxis(src, axis, 0)
    return np.moveaxis(made, 0, axis)


@operator(
    shapes="(…x) T, (…v) T -> (…x)", section="transform", reference=_numpy_slice_scatter,
    cases=[
        case(arg((5, 6)), arg((5, 2)), 1, 5, 2, 1), case(arg((5, 6), "int8"), arg((3, 6), "int8"), 2, 100, 1, 0),
        case(arg((3, 4)), arg((3, 2)), -3, -1, 1, -1), case(arg(("n", 4)), arg(("n", 1)), 3, 4, 1, 1),
    ],
)  # fmt: skip
def slice_scatter(input_tensor: Tensor, src: Tensor, start: Any, end: Any, step: int, axis: int) -> Tensor:
    """``input_tensor`` with ``src`` in the place of the slice ``start:end:step`` along ``axis``: :func:`strided_set` of one axis."""
    at = axis_of(axis, input_tensor.ndim)
    begin = [0] * at + [start]
    return strided_set(input_tensor, src, begin, [*input_tensor.shape[:at], end], [1] * at + [step])


def _numpy_sliding_window(x: Any, axis: int, window_shape: Any, strides: Any) -> Any:
    axes = range(axis, axis + len(window_shape))
    made = np.lib.stride_tricks.sliding_window_view(x, window_shape, tuple(axes))
    return made[tuple([slice(None)] * axis + [slice(None, None, s) for s in strides])]


@operator(
    gives=(2, 3, 2, 3, 4), unstated="each extent is what the call leaves of it", section="transform", reference=_numpy_sliding_window,
    cases=[
        case(arg((2, 5, 7)), 1, (3, 4), (1, 2)), case(arg((6,), "int8"), 0, (2,), (3,)),
        case(arg((2, 4)), 0, (2, 4), (1, 1)),
    ],
)  # fmt: skip
def sliding_window(x: Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """The windows of ``x`` along the axes from ``axis`` on: dimensions that number them, then those of a window."""
    first, window = axis_of(axis, x.ndim), sized(window_shape, "a window")
    steps = [integer(s, "a stride") for s in listed(strides)]
    if len(steps) != len(window) or first + len(window) != x.ndim:
        raise error(
            f"windows {window} with strides {tuple(steps)} are not of the axes from {first} on of {x.shape}",
            f"{x.ndim - first} of each",
        )
    counts = [simplify((s - w) // step + 1) for s, w, step in zip(x.shape[first:], window, steps)]
    if any(not at_most(0, c) for c in counts):
        raise error(f"a window of {window} does not fit in {x.shape[first:]}")

    def element(*indices: Any) -> Expr:
        numbers, inside = indices[first : first + len(window)], indices[first + len(window) :]
        return x(*indices[:first], *(n * s + i for n, s, i in zip(numbers, steps, inside)))

    return compute((*x.shape[:first], *counts, *window), element, name="sliding_window")
