"""Images read at places that are data: grids and boxes; and morphology."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .. import DType, Expr, cast, const, te
from .. import max as max_
from .. import min as min_
from ..te import Tensor, all, compute, data_type, equate, error, if_then_else, reduce_axis
from ..te import any as any_
from .cases import Case
from .contract import BY_LAYOUT
from .element_places import as_index, chosen, clamped, constant_of, gathered, integer, listed, require_rank, sized
from .nn._references import laid_out, plain
from .nn.window_shapes import dilated, pads_of, window_count
from .promotion import wide
from .reduction import maximum_reducer
from .registry import arg, case, complete, operator
from .resizing import METHODS, Taps, at_number, cubic_weights, interpolated, numpy_cubic, spatial_axes, taps_of
from .variants import Definition

# ---------------------------------------------------------------- boxes


@complete
def _numpy_crop_and_resize(
    data: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    layout: str,
    method: str,
    extrapolation_value: Any,
    out_dtype: Any,
) -> Any:
    image = data if layout == "NCHW" else data.transpose(0, 3, 1, 2)
    _, channels, height, width = image.shape
    made = np.full((len(boxes), channels, *crop_size), extrapolation_value or 0.0)
    for n, (y1, x1, y2, x2) in enumerate(boxes):
        for i in range(crop_size[0]):
            for j in range(crop_size[1]):
                y, x = (
                    a * (s - 1) + k * (b - a) * (s - 1) / (c - 1) if c > 1 else (a + b) * (s - 1) / 2
                    for a, b, s, c, k in ((y1, y2, height, crop_size[0], i), (x1, x2, width, crop_size[1], j))
                )
                if 0 <= y <= height - 1 and 0 <= x <= width - 1:
                    made[n, :, i, j] = numpy_sample(image[int(box_indices[n])], y, x, method)
    return made if layout == "NCHW" else made.transpose(0, 2, 3, 1)


def numpy_sample(image: Any, y: float, x: float, method: str = "bilinear") -> Any:
    """Of all channels; beyond the border the nearest elements."""
    height, width = image.shape[-2:]
    if method.startswith("nearest"):
        return image[:, int(np.floor(y + 0.5)), int(np.floor(x + 0.5))]
    rows, columns = (np.arange(s) for s in (height, width))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    by_row, by_column = np.maximum(0, 1 - abs(rows - y)), np.maximum(0, 1 - abs(columns - x))
    return np.einsum("chw,h,w->c", image, by_row, by_column)


_BOXES = np.array([[0.1, 0.2, 0.9, 0.7], [-0.2, 0.0, 1.3, 1.0], [0.8, 0.9, 0.3, 0.1]])


@operator(gives=(3, 2, 3, 4), shapes="(_, _, _, _), (n, 4), (n) integer -> (n, _, _, _)",
    section="image",
    namespace="image",
    reference=_numpy_crop_and_resize,
    cases=[
        case(arg((2, 2, 4, 5)), arg((3, 4), values=_BOXES), arg((3,), "int32", np.array([1, 0, 1])), (3, 4)),
        case(
            arg((1, 4, 5, 2)), arg((3, 4), values=_BOXES), arg((3,), "int32", np.array([0, 0, 0])), (2, 1),
            "NHWC", "nearest_neighbor", 5.0,
        ),
    ],
)  # fmt: skip
def crop_and_resize(
    data: Tensor, boxes: Tensor, box_indices: Tensor, crop_size: Any, layout: str = "NCHW",
    method: Literal["bilinear", "nearest_neighbor"] = "bilinear",
    extrapolation_value: Any = None, out_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """Parts of images in ``crop_size`` (height, width): ``boxes`` (number, 4) of corners y, x, y, x as parts of the image
    ``box_indices[n]`` of ``data``.

    Places outside of the image give ``extrapolation_value``, or 0. ``method`` is ``"bilinear"`` or ``"nearest_neighbor"``.
    """
    axes, how = spatial_axes(layout, "HW"), METHODS[method]
    kind, result, new = boxes.dtype, data_type(out_dtype or data.dtype), sized(crop_size, "the size of the parts")
    if len(new) != 2:
        raise error(f"parts of size {new}", "(height, width)")
    outside = constant_of(0.0 if extrapolation_value is None else extrapolation_value, result)

    def place(box: Any, n: int, k: Any) -> Expr:
        first, last, whole = boxes[box, n], boxes[box, n + 2], cast(kind, data.shape[axes[n]] - 1)
        step = (last - first) * whole / cast(kind, max_(new[n] - 1, 1))
        return if_then_else(new[n] > 1, first * whole + cast(kind, k) * step, (first + last) * whole * const(0.5, kind))

    def element(*indices: Any) -> Expr:
        numbers = [place(indices[0], n, indices[axis]) for n, axis in enumerate(axes)]
        extents = [data.shape[a] for a in axes]
        beyond = [c for v, s in zip(numbers, extents) for c in (v < 0, v > cast(kind, s - 1))]
        taps = [
            [(clamped(p, s), w) for p, w in taps_of(at_number(v), how, "round", 0.0)] for v, s in zip(numbers, extents)
        ]

        def read(chosen_: tuple[Expr, ...]) -> Expr:
            at = dict(zip(axes, chosen_))
            return cast(
                kind,
                data(
                    clamped(as_index(box_indices[indices[0]]), data.shape[0]),
                    *(at.get(n, indices[n]) for n in (1, 2, 3)),
                ),
            )

        return if_then_else(any_(*beyond), outside, cast(result, interpolated(taps, read)))

    shape = [boxes.shape[0], *data.shape[1:]]
    for n, axis in enumerate(axes):
        shape[axis] = new[n]
    return gathered(shape, result, element, "crop_and_resize")


# ---------------------------------------------------------------- grids


def _numpy_affine_grid(data: Any, target_shape: Any, align_corners: bool = True) -> Any:
    if align_corners:
        axes = [np.linspace(-1, 1, s) if s > 1 else np.array([-1.0]) for s in target_shape]
    else:
        axes = [(2 * np.arange(s) + 1) / s - 1 for s in target_shape]
    grids = np.meshgrid(*axes, indexing="ij")
    points = np.stack([*grids[::-1], np.ones(target_shape)])
    return np.einsum("nij,j...->ni...", data, points)


@operator(
    gives=(2, 2, 3, 4), shapes="(b, _, _) -> (b, _, …)", section="image", namespace="image", reference=_numpy_affine_grid,
    cases=[
        case(arg((2, 2, 3)), (3, 4)), case(arg((1, 3, 4), "float64"), (2, 1, 3)),
        case(arg((2, 2, 3)), (3, 1), align_corners=False),
    ],
)  # fmt: skip
def affine_grid(data: Tensor, target_shape: Any, align_corners: bool = True) -> Tensor:
    """Where the elements of images of ``target_shape`` are in other images: ``data`` (batch, 2, 3), or (batch, 3, 4) of
    volumes, times (x, y, 1), coordinates from -1 to 1. What :func:`grid_sample` takes.

    -1 and 1 are the centers of the first and the last element, without ``align_corners`` the edges of the image.
    """
    size, kind = sized(target_shape, "the target shape"), data.dtype
    count = len(size)
    if count not in (2, 3) or not equate(data.shape[1], count) or not equate(data.shape[2], count + 1):
        raise error(
            f"matrices of shape {data.shape} are not those of {count} coordinates", "(batch, 2, 3), (batch, 3, 4)"
        )

    def element(batch: Any, row: Any, *places: Any) -> Expr:
        made = data[batch, row, count]
        for n, (place, extent) in enumerate(zip(reversed(places), reversed(size))):
            cells = max_(extent - 1, 1) if align_corners else extent
            first = const(1, kind) if align_corners else const(1, kind) - const(1, kind) / cast(kind, cells)
            step = const(2, kind) / cast(kind, cells)
            made = made + data[batch, row, n] * (cast(kind, place) * step - first)
        return made

    return compute((data.shape[0], count, *size), element, name="affine_grid")


@complete
def _numpy_grid_sample(data: Any, grid: Any, method: str, layout: str, padding_mode: str, align_corners: bool) -> Any:
    count = data.ndim - 2
    made = np.zeros((*data.shape[:2], *grid.shape[2:]))
    for at in np.ndindex(*grid.shape[2:]):
        for batch in range(data.shape[0]):
            weights = []
            for axis in range(count):
                size, g = data.shape[2 + axis], grid[(batch, count - 1 - axis, *at)]
                place = (g + 1) / 2 * (size - 1) if align_corners else ((g + 1) * size - 1) / 2
                weights.append(_numpy_grid_row(place, size, method, padding_mode, align_corners))
            value = data[batch]
            for row in weights:
                value = np.tensordot(value, row, (1, 0))
            made[(batch, slice(None), *at)] = value
    return made


def _numpy_grid_row(place: float, size: int, method: str, padding: str, align: bool) -> Any:
    def inside(p: float) -> float:
        if padding == "border":
            return min(max(p, 0), size - 1)
        if padding == "reflection":
            low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
            while high > low and not low <= p <= high:
                p = 2 * low - p if p < low else 2 * high - p
            return min(max(p, 0), size - 1)
        return p

    row = np.zeros(size)

    def add(index: float, weight: float) -> None:
        if 0 <= index < size:
            row[int(index)] += weight

    if method == "nearest":
        add(np.rint(inside(place)), 1.0)
    elif method == "bilinear":
        p = inside(place)
        add(np.floor(p), 1 - (p - np.floor(p)))
        add(np.floor(p) + 1, p - np.floor(p))
    else:
        for k in range(-1, 3):
            add(inside(np.floor(place) + k), float(numpy_cubic(place - np.floor(place) - k, -0.75)))
    return row


_PADDINGS = ("zeros", "border", "reflection")


@operator(
    gives=(1, 2, 2, 5), unstated=BY_LAYOUT, section="image", namespace="image", reference=_numpy_grid_sample,
    cases=[
        *(
            case(arg((1, 2, 3, 4)), arg((1, 2, 2, 5)), method, "NCHW", padding, align)
            for method, padding, align in (
                ("bilinear", "zeros", True),
                ("nearest", "border", False),
                ("bicubic", "zeros", False),
                ("bicubic", "reflection", True),
            )
        ),
        case(arg((1, 1, 3, 4)), arg((1, 2, 2, 5)), "bilinear", "NCHW", "reflection", False),
        case(arg((1, 1, 2, 3, 2)), arg((1, 3, 1, 2, 2)), "bilinear", "NCDHW", "border", False),
    ],
    tolerance=128,
)  # fmt: skip
def grid_sample(
    data: Tensor, grid: Tensor, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Tensor:  # fmt: skip
    """The elements of images ``data`` (NCHW or NCDHW) at the places ``grid`` (batch, coordinates, rows, columns): x, y (and z)
    from -1 to 1.

    ``method`` is ``"bilinear"``, ``"nearest"`` or ``"bicubic"`` (of two coordinates). ``padding_mode`` says what is beyond the
    border: ``"zeros"``, the ``"border"`` itself, or a ``"reflection"``. -1 and 1 are the middles of the outermost elements with
    ``align_corners``, and their outer edges without.
    """
    chosen(layout, ("NCHW", "NCDHW"), "the layout")
    chosen(padding_mode, _PADDINGS, "the padding mode")
    count, how = len(layout) - 2, METHODS[chosen(method, ("bilinear", "nearest", "bicubic"), "the method")]
    for t, what in ((data, "an image"), (grid, "the grid")):
        require_rank(t, count + 2, f"{what} of layout {layout!r}")
    if not grid.dtype.is_float or not equate(grid.shape[1], count) or not equate(grid.shape[0], data.shape[0]):
        raise error(f"a grid of {grid.shape} {grid.dtype} for {data.shape}", f"floats, one batch, {count} coordinates")
    kind = wide(grid.dtype)
    places, weights = _grid_taps(grid, data.shape[2:], how, padding_mode, align_corners)

    def element(batch: Any, channel: Any, *at: Any) -> Expr:
        taps: list[Taps] = [
            [(places(batch, count - 1 - n, k, *at), weights(batch, count - 1 - n, k, *at)) for k in range(_TAPS[how])]
            for n in range(count)
        ]

        def read(chosen_: tuple[Expr, ...]) -> Expr:
            inside = [c for p, s in zip(chosen_, data.shape[2:]) for c in (p >= 0, p < s)]
            return if_then_else(all(*inside), cast(kind, data(batch, channel, *chosen_)), const(0, kind))

        return cast(data.dtype, interpolated(taps, read))

    return compute((*data.shape[:2], *grid.shape[2:]), element, name="grid_sample")


_TAPS = {"nearest": 1, "linear": 2, "cubic": 4}


def _grid_taps(grid: Tensor, extents: Sequence[Expr], how: str, padding: str, align_corners: bool) -> list[Tensor]:
    """For each coordinate the elements that are read, and what they count for: (batch, coordinates, elements, places)."""
    kind = wide(grid.dtype)

    def place(batch: Any, axis: Any, at: Sequence[Any]) -> tuple[Expr, Expr]:
        extent = extents[0]
        for n, s in enumerate(reversed(extents[1:])):
            extent = if_then_else(axis == n, s, extent)
        size = cast(kind, extent)
        scaled = (cast(kind, grid(batch, axis, *at)) + const(1, kind)) * const(0.5, kind)
        return scaled * (size - const(1, kind)) if align_corners else scaled * size - const(0.5, kind), extent

    def element(batch: Any, axis: Any, k: Any, *at: Any) -> tuple[Expr, Expr]:
        number, extent = place(batch, axis, at)
        if how != "cubic":
            number = _padded(number, extent, padding, align_corners)
            return _one_of(taps_of(at_number(number), how, "even", 0.0), k, kind)
        base = te.floor(number)
        weight = _one_of([(extent, w) for w in cubic_weights(number - base, -0.75)], k, kind)[1]
        moved = _padded(base + cast(kind, k - 1), extent, padding, align_corners)
        return cast("int32", moved), weight

    return compute((*grid.shape[:2], _TAPS[how], *grid.shape[2:]), element, name="grid_places")


def _one_of(taps: Taps, number: Any, kind: DType) -> tuple[Expr, Expr]:
    place, weight = taps[-1]
    weight = const(1, kind) if weight is None else weight
    for n, (p, w) in reversed(list(enumerate(taps[:-1]))):
        place, weight = if_then_else(number == n, p, place), if_then_else(number == n, w, weight)
    return place, weight


def _padded(place: Expr, extent: Expr, mode: str, align_corners: bool) -> Expr:
    """The place that is read, within the image unless the mode is "zeros"."""
    kind = place.dtype
    if mode == "zeros":
        return place
    last = cast(kind, extent) - const(1, kind)
    if mode == "reflection":
        low, span = (0.0, last) if align_corners else (-0.5, last + const(1, kind))
        span = max_(span, const(1, kind)) if align_corners else span
        from_low = te.fabs(place - const(low, kind))
        turns = te.floor(from_low / span)
        rest = from_low - turns * span
        is_even = turns - te.floor(turns * const(0.5, kind)) * const(2, kind) < const(0.5, kind)
        place = if_then_else(is_even, rest, span - rest) + const(low, kind)
    return max_(min_(place, last), const(0, kind))


# ---------------------------------------------------------------- morphology


def _numpy_dilation2d(
    input: Any, filter: Any, stride: Any, padding: Any, dilations: Any, out_dtype: Any, layout: str
) -> Any:
    data, kernel = plain(input, layout, "NCHW"), plain(filter, layout.replace("N", ""), "CHW")
    pads = ((1, 1), (0, 0)) if padding == (1, 0) else ((padding, padding),) * 2 if padding else ((0, 0), (0, 0))
    beyond = np.pad(np.zeros(data.shape, bool), ((0, 0), (0, 0), *pads), constant_values=True)
    data = np.pad(data, ((0, 0), (0, 0), *pads))
    high, wide = ((s - (k - 1) * d - 1) // stride + 1 for s, k, d in zip(data.shape[2:], kernel.shape[1:], dilations))
    made = np.full((*data.shape[:2], high, wide), -np.inf)
    for y, x in np.ndindex(*kernel.shape[1:]):
        top, left = y * dilations[0], x * dilations[1]
        part = np.s_[:, :, top : top + (high - 1) * stride + 1 : stride, left : left + (wide - 1) * stride + 1 : stride]
        value = data[part].astype(np.float64) + kernel[:, y, x][:, None, None]
        made = np.maximum(made, np.where(beyond[part], -np.inf, value))
    return laid_out(made, "NCHW", layout)


def _dilation2d(
    input: Tensor, filter: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: Any = None, *, layout: str
) -> Tensor:
    image, kernel, order = input, filter, layout.replace("N", "")
    result = data_type(out_dtype or image.dtype)
    steps, apart = (_both(v, what) for v, what in ((stride, "a stride"), (dilations, "a dilation")))
    old = {name: image.shape[n] for n, name in enumerate(layout)}
    sizes = [integer(kernel.shape[order.index(n)], "the extent of a filter") for n in "HW"]
    wide = [dilated(s, d) for s, d in zip(sizes, apart)]
    pads = pads_of(padding, wide, steps, [old[n] for n in "HW"])
    counts = [window_count(old[n], w, s, p, "a filter") for n, w, s, p in zip("HW", wide, steps, pads)]
    axes = [reduce_axis((0, s), n) for s, n in zip(sizes, ("dy", "dx"))]

    def element(*indices: Any) -> Expr:
        at = dict(zip(layout, indices))
        places = [at[n] * s + k.var * d - p for n, s, k, d, (p, _) in zip("HW", steps, axes, apart, pads)]
        inside = [c for v, n in zip(places, "HW") for c in (v >= 0, v < old[n])]
        moved = {**at, **dict(zip("HW", places))}
        pixel = image(*(moved[n] for n in layout))
        weight = kernel(*({"C": at["C"], "H": axes[0], "W": axes[1]}[n] for n in order))
        value = if_then_else(all(*inside), cast(result, pixel) + cast(result, weight), const(result.ends[0], result))
        return maximum_reducer(value, axis=axes)

    return compute([{**old, **dict(zip("HW", counts))}[n] for n in layout], element, name="dilation2d")


def _both(value: Any, what: str) -> Sequence[int]:
    made = [integer(v, what) for v in listed(value)]
    if len(made) not in (1, 2) or min(made) < 1:
        raise error(f"{what} is 1 or more, along height and width, not {value!r}")
    return made * 2 if len(made) == 1 else made


def _dilation(doc: str, layout: str, shapes: str, gives: tuple[int, ...], *cases: Case) -> Any:
    return Definition(_dilation2d, _numpy_dilation2d, "image", "image").variant(
        f"dilation2d_{layout.lower()}",
        "input filter stride padding dilations out_dtype",
        doc,
        cases,
        gives,
        shapes=shapes,
        layout=layout,
    )


_DILATIONS = [
    _dilation(
        """
        Grey dilation of an image (NCHW) by ``filter`` (channels, height, width): the greatest sum of an element and the
        filter's. Elements beyond the border take no part.
        """,
        "NCHW",
        "(n, c, h, w) T, (c, _, _) T -> (n, c, _, _)",
        (1, 2, 6, 4),
        case(arg((1, 2, 5, 6)), arg((2, 2, 3)), 1, (1, 0), (1, 1)),
        case(arg((1, 1, 6, 7)), arg((1, 2, 2)), 2, 0, (2, 1)),
        case(arg((1, 1, 4, 5), "uint8", "special"), arg((1, 2, 2), "uint8", "special"), 1, 1, (1, 1), "int32"),
    ),
    _dilation(
        ":func:`dilation2d_nchw` of an image (NHWC) and a filter (height, width, channels).",
        "NHWC",
        "(n, h, w, c) T, (_, _, c) T -> (n, _, _, c)",
        (1, 6, 6, 2),
        case(arg((1, 5, 6, 2)), arg((2, 3, 2)), 1, 1, (1, 1)),
    ),
]
__test__ = {f.__name__: f for f in _DILATIONS}  # their docstrings have examples
