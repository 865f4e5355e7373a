"""Images of another size: nearest, linear and cubic interpolation along one to three axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as combinations
from typing import Any

import numpy as np

from .. import DType, Expr, as_expr, cast, const, te
from .. import max as max_
from ..te import Tensor, all, any, data_type, error, if_then_else
from .cases import Case, arg, case
from .contract import BY_LAYOUT
from .element_places import chosen, clamped, constant, constant_of, gathered, require_rank, sized
from .variants import Definition

# ---------------------------------------------------------------- places between elements


@dataclass(frozen=True)
class Between:
    """A place between the elements of an axis: after element ``base``, by ``part`` of the way to the next.

    ``nearest`` gives, for a rounding method, the element that is taken.
    """

    base: Expr
    part: Expr
    nearest: Callable[[str], Expr]


def at_fraction(numerator: Expr, denominator: Expr, dtype: DType) -> Between:
    """The place ``numerator / denominator``, exactly: both are integers."""
    base = numerator // denominator
    part = cast(dtype, numerator - base * denominator) / cast(dtype, denominator)

    def nearest(rounding: str) -> Expr:
        if rounding == "floor":
            return base
        if rounding == "ceil":
            return -((-numerator) // denominator)
        if rounding == "round_prefer_floor":
            return -((denominator - numerator * 2) // (denominator * 2))
        return (numerator * 2 + denominator) // (denominator * 2)

    return Between(base, part, nearest)


def at_number(value: Expr) -> Between:
    """The index nearest below a floating-point coordinate."""
    base = cast("int32", te.floor(value))

    def nearest(rounding: str) -> Expr:
        rounded = {
            "floor": te.floor(value),
            "ceil": te.ceil(value),
            "round_prefer_floor": te.ceil(value - 0.5),
            "even": te.nearbyint(value),
        }
        return cast("int32", rounded.get(rounding, te.floor(value + 0.5)))

    return Between(base, value - te.floor(value), nearest)


ROUNDINGS = ("round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def cubic_weights(part: Expr, alpha: float) -> list[Expr]:
    """What the elements before, at, after and two after a place count for (Keys 1981)."""
    t, square = part, part * part
    cube = square * t
    return [
        alpha * (cube - 2.0 * square + t),
        (alpha + 2) * cube - (alpha + 3) * square + 1.0,
        -(alpha + 2) * cube + (2 * alpha + 3) * square - alpha * t,
        alpha * (square - cube),
    ]


Taps = list[tuple[Expr, Any]]  # elements, and what they count for (None: all)


def taps_of(at: Between, method: str, rounding: str, alpha: float) -> Taps:
    """The elements that an interpolated value is made of; some may be out of range."""
    if method == "nearest":
        return [(at.nearest(rounding), None)]
    if method == "linear":
        return [(at.base, 1.0 - at.part), (at.base + 1, at.part)]
    return [(at.base + n - 1, weight) for n, weight in enumerate(cubic_weights(at.part, alpha))]


def interpolated(taps: Sequence[Taps], read: Callable[[tuple[Expr, ...]], Expr]) -> Expr:
    """The sum of elements over all axes, each times what it counts for."""

    def value(chosen_: tuple[Expr, ...]) -> Expr:
        if len(chosen_) == len(taps):
            return read(chosen_)
        parts = [(value((*chosen_, place)), weight) for place, weight in taps[len(chosen_)]]
        made = [v if weight is None else v * weight for v, weight in parts]
        return sum(made[1:], made[0])

    return value(())


ALPHA = -0.75  # of cubic interpolation: torch and ONNX have it, too
METHODS = {
    "nearest_neighbor": "nearest", "nearest": "nearest", "linear": "linear", "bilinear": "linear",
    "trilinear": "linear", "cubic": "cubic", "bicubic": "cubic",
}  # fmt: skip


# ---------------------------------------------------------------- coordinates


def _coordinate(mode: str, x: Any, old: Any, new: Any, region: tuple[Any, Any], dtype: DType) -> Between:
    """Where element ``x`` of ``new`` stands among ``old`` elements."""
    if mode == "tf_crop_and_resize":
        return at_number(_in_region(x, old, new, region, dtype))
    if mode == "align_corners":
        return at_fraction(x * (old - 1), max_(new - 1, 1), dtype)
    if mode == "asymmetric":
        return at_fraction(x * old, new, dtype)
    if mode == "tf_half_pixel_for_nn":
        return at_fraction((x * 2 + 1) * old, new * 2, dtype)
    numerator = (x * 2 + 1) * old - new
    if mode == "pytorch_half_pixel":
        numerator = if_then_else(as_expr(new) > 1, numerator, 0)
    return at_fraction(numerator, new * 2, dtype)


def _in_region(x: Any, old: Any, new: Any, region: tuple[Any, Any], dtype: DType) -> Expr:
    first, last = (constant_of(end, dtype) for end in region)
    whole = cast(dtype, old - 1)
    step = (last - first) * whole / cast(dtype, max_(new - 1, 1))
    middle = (first + last) * whole * const(0.5, dtype)
    return if_then_else(as_expr(new) > 1, first * whole + cast(dtype, x) * step, middle)


_MODES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize",
)  # fmt: skip


@dataclass(frozen=True)
class _Resize:
    """What is asked of a resize, beside sizes."""

    method: str
    mode: str
    rounding: str
    alpha: float
    excludes: bool
    outside: Any

    @staticmethod
    def of(method: str, mode: str, rounding: str, alpha: float, exclude: Any, outside: Any) -> _Resize:
        chosen(method, tuple(METHODS), "the method")
        chosen(mode, _MODES, "the coordinate transformation mode")
        chosen(rounding or "floor", ROUNDINGS, "the rounding method")
        usual = "round" if mode == "align_corners" else "floor"
        return _Resize(METHODS[method], mode, rounding or usual, float(alpha), bool(exclude), outside)

    def taps(self, at: Between, extent: Any, dtype: DType) -> Taps:
        found = taps_of(at, self.method, self.rounding, self.alpha)
        if self.method == "cubic" and self.excludes:
            inside = [if_then_else(all(p >= 0, p < extent), w, const(0, dtype)) for p, w in found]
            total = sum(inside[1:], inside[0])
            found = [(p, w / total) for (p, _), w in zip(found, inside)]
        return [(clamped(p, extent), w) for p, w in found]


def spatial_axes(layout: Any, letters: str) -> list[int]:
    """The places of ``letters`` in a layout. Raises ``TensorExpressionError`` where one is missing."""
    names = [c for c in layout if c.isalpha()] if isinstance(layout, str) else []
    if [n for n in names if n in letters] != list(letters):
        raise error(
            f"{layout!r} is no layout of images with the axes {', '.join(letters)}", f"'NC{letters}', 'N{letters}C'"
        )
    return [names.index(n) for n in letters]


def resized(
    data: Tensor,
    roi: Any,
    size: Any,
    layout: str = "",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = ALPHA,
    bicubic_exclude: Any = 0,
    extrapolation_value: float = 0.0,
    out_dtype: Any = None,
    output_shape: Any = None,
    *,
    letters: str,
) -> Tensor:
    how = _Resize.of(
        method, coordinate_transformation_mode, rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value
    )
    axes = spatial_axes(layout, letters)
    require_rank(data, sum(c.isalpha() for c in layout), f"an image of layout {layout!r}")
    new = sized(size, "the new size")
    if len(new) != len(axes):
        raise error(f"the new size {new} is not that of {', '.join(letters)}")
    if 0 in [constant(n) for n in new]:
        raise error(f"the new size is {new}", "at least 1 along each axis")
    return _interpolate(data, axes, new, _regions(how, roi, letters), how, data_type(out_dtype or data.dtype))


def _regions(how: _Resize, region: Any, letters: str) -> list[tuple[Any, Any]]:
    """Where the part of each axis that is read begins and ends."""
    count = len(letters)
    if how.mode != "tf_crop_and_resize":
        return [(0, 1)] * count
    if not isinstance(region, (list, tuple)) or len(region) != 2 * count:
        raise error(
            f"the region {region!r} does not say where {', '.join(letters)} begin and end", "all begins, all ends"
        )
    return list(zip(region[:count], region[count:]))


def _interpolate(
    x: Tensor, axes: Sequence[int], new: Sequence[Expr], regions: Sequence[Any], how: _Resize, result: DType
) -> Tensor:
    kind = x.dtype if how.method == "nearest" else DType("float64" if x.dtype == "float64" else "float32")
    number, old = kind if kind.is_float else DType("float32"), [x.shape[a] for a in axes]

    def element(*indices: Any) -> Expr:
        places = [_coordinate(how.mode, indices[a], o, n, r, number) for a, o, n, r in zip(axes, old, new, regions)]
        taps = [how.taps(at, extent, number) for at, extent in zip(places, old)]

        def read(chosen_: tuple[Expr, ...]) -> Expr:
            at = dict(zip(axes, chosen_))
            return cast(kind, x(*(at.get(n, i) for n, i in enumerate(indices))))

        made = cast(result, interpolated(taps, read))
        if how.mode != "tf_crop_and_resize":
            return made
        numbers = [_in_region(indices[a], o, n, r, number) for a, o, n, r in zip(axes, old, new, regions)]
        outside = [c for v, o in zip(numbers, old) for c in (v < 0, v > cast(number, o - 1))]
        return if_then_else(any(*outside), constant_of(how.outside, result), made)

    shape = list(x.shape)
    for a, n in zip(axes, new):
        shape[a] = n
    return gathered(shape, result, element, f"resize{len(axes)}d")


# ---------------------------------------------------------------- NumPy


def _numpy_place(mode: str, k: int, old: int, new: int, begin: Any, end: Any) -> Any:
    scale = Fraction(old, new)
    if mode == "tf_crop_and_resize":
        wide = (end - begin) * (old - 1)
        return begin * (old - 1) + k * wide / (new - 1) if new > 1 else (begin + end) * (old - 1) / 2
    if mode == "align_corners":
        return Fraction(k * (old - 1), new - 1) if new > 1 else Fraction(0)
    if mode == "pytorch_half_pixel" and new == 1:
        return Fraction(0)
    shift = {"asymmetric": (0, 0), "tf_half_pixel_for_nn": (Fraction(1, 2), 0)}.get(
        mode, (Fraction(1, 2), Fraction(1, 2))
    )
    return (k + shift[0]) * scale - shift[1]


def numpy_cubic(distance: Any, alpha: float) -> Any:
    """What an element counts for at a distance (Keys 1981)."""
    d = np.abs(distance)
    near = (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
    return np.where(d <= 1, near, np.where(d < 2, alpha * (d**3 - 5 * d**2 + 8 * d - 4), 0.0))


def _numpy_row(place: Any, old: int, method: str, rounding: str, alpha: float, exclude: Any) -> Any:
    row = np.zeros(old)
    clip = lambda k: min(max(int(k), 0), old - 1)  # noqa: E731
    half = Fraction(1, 2)
    if method == "nearest":
        rounded = {"floor": np.floor(place), "ceil": np.ceil(place), "round_prefer_floor": np.ceil(place - half)}
        row[clip(rounded.get(rounding, np.floor(place + half)))] = 1
    elif method == "linear":
        first = int(np.floor(place))
        row[clip(first)] += 1 - float(place - first)
        row[clip(first + 1)] += float(place - first)
    else:
        for k in range(int(np.floor(place)) - 1, int(np.floor(place)) + 3):
            if not exclude or 0 <= k < old:
                row[clip(k)] += numpy_cubic(float(place - k), alpha)
        row = row / row.sum() if exclude else row
    return row


def numpy_resized(
    data: Any, roi: Any, size: Any, layout: str, method: str, coordinate_transformation_mode: str, rounding_method: str,
    bicubic_alpha: float, bicubic_exclude: Any, extrapolation_value: float, out_dtype: Any, output_shape: Any, letters: str,
) -> Any:  # fmt: skip
    mode, made = coordinate_transformation_mode, data
    rounding = rounding_method or ("round" if mode == "align_corners" else "floor")
    sizes, count = (size if isinstance(size, (tuple, list)) else (size,)), len(letters)
    names = [c for c in layout if c.isalpha()]
    for n, letter in enumerate(letters):
        axis = names.index(letter)
        begin, end = (roi[n], roi[n + count]) if roi else (0, 1)
        places = [_numpy_place(mode, k, data.shape[axis], sizes[n], begin, end) for k in range(sizes[n])]
        how = (METHODS[method], rounding, bicubic_alpha, bicubic_exclude)
        rows = np.array([_numpy_row(p, data.shape[axis], *how) for p in places])
        made = np.moveaxis(np.tensordot(rows, made, (1, axis)), 0, axis)
        for k, p in enumerate(places) if mode == "tf_crop_and_resize" else ():
            if p < 0 or p > data.shape[axis] - 1:
                np.moveaxis(made, axis, 0)[k] = extrapolation_value
    return made


def _operator(doc: str, letters: str, gives: tuple[int, ...], *cases: Case) -> Any:
    return Definition(resized, numpy_resized, "image", "image").variant(
        f"resize{len(letters)}d",
        "data roi size layout method coordinate_transformation_mode rounding_method bicubic_alpha bicubic_exclude "
        "extrapolation_value out_dtype output_shape",
        doc,
        cases,
        gives,
        unstated=BY_LAYOUT,
        letters=letters,
        layout=f"NC{letters}",
    )


_SIZES = [(5, 3), (2, 8)]
_OPERATORS = [
    _operator(
        "A sequence (NCW or NWC) of another length; for the parameters see :func:`resize2d`.",
        "W",
        (2, 3, 8),
        case(arg((2, 3, 5)), None, (8,)),
        case(arg((2, 5, 3)), None, 3, "NWC", "cubic", "align_corners"),
        case(arg((1, 1, 4), "int8"), None, (9,), method="nearest_neighbor", rounding_method="ceil"),
        case(arg((1, 1, 5)), (-0.2, 0.9), (4,), "NCW", "linear", "tf_crop_and_resize", extrapolation_value=7.0),
        case(arg((1, 1, 1)), None, (3,), method="cubic", bicubic_exclude=1),
    ),
    _operator(
        """
        An image (NCHW, NHWC, NCHW4c …) of ``size`` (height, width).

        ``method`` is ``"nearest_neighbor"``, ``"linear"`` or ``"cubic"`` (with ``bicubic_alpha``; ``bicubic_exclude`` leaves out
        elements beyond the border). ``coordinate_transformation_mode`` says where an element stands in the old image, as ONNX
        does: ``half_pixel``, ``align_corners``, ``asymmetric``, ``pytorch_half_pixel``, ``tf_half_pixel_for_nn``,
        ``tf_crop_and_resize`` (of the region ``roi``: begins, then ends, as parts of the axes; outside of the image is
        ``extrapolation_value``). ``rounding_method`` of the nearest: ``round``, ``round_prefer_floor``,
        ``round_prefer_ceil``, ``floor`` (the usual one), ``ceil``. Values are computed in float32 (float64 of float64) and
        converted to ``out_dtype``, or the type of ``data``.
        """,
        "HW",
        (1, 2, 3, 4),
        case(arg((1, 2, 4, 5)), None, (3, 4)),
        *(
            case(arg((1, 2, 4, 5)), (0.1, -0.1, 0.9, 1.2), new, "NCHW", method, mode)
            for (new, method), mode in zip(list(combinations(_SIZES, ("linear", "cubic"))) * 2, _MODES)
        ),
        *(
            case(arg((1, 6, 5, 1)), None, (7, 3), "NHWC", "nearest_neighbor", mode, rounding)
            for rounding, mode in zip((*ROUNDINGS, ""), (*_MODES[:5], "align_corners"))
        ),
        case(arg((1, 1, 4, 3)), None, (1, 1), "NCHW", "linear", "pytorch_half_pixel"),
        case(arg((1, 1, 4, 3)), None, (6, 6), "NCHW", "cubic", bicubic_alpha=-0.75, bicubic_exclude=1),
        case(arg((1, 1, 3, 3, 4), "int8"), None, (6, 2), "NCHW4c", "nearest_neighbor", "asymmetric"),
        case(arg((1, 1, 2, 2), "float16"), None, (3, 4), out_dtype="float32"),
        case(arg((1, 1, "h", 3)), None, (4, 4)),
    ),
    _operator(
        "A volume (NCDHW or NDHWC) of another size (depth, height, width); for the parameters see :func:`resize2d`.",
        "DHW",
        (1, 1, 3, 4, 5),
        case(arg((1, 1, 2, 3, 2)), None, (3, 4, 5)),
        case(arg((1, 3, 2, 4, 1)), None, (2, 3, 2), "NDHWC", "nearest_neighbor", "align_corners"),
        case(arg((1, 1, 2, 2, 2)), None, (2, 1, 3), "NCDHW", "cubic", "asymmetric"),
    ),
]
__test__ = {f.__name__: f for f in _OPERATORS}  # their docstrings have examples
