"""Regions of images, which are data, in bins: roi_align and roi_pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import DType, Expr, cast, const, te
from .. import max as max_
from .. import min as min_
from ..te import Tensor, compute, error, if_then_else, reduce_axis
from ..te import any as any_
from ..te import sum as sum_
from .element_places import chosen, clamped, gathered, integer, listed, sized
from .reduction import maximum_reducer
from .registry import arg, case, operator
from .resizing import at_number, interpolated, taps_of
from .sampling import numpy_sample


def _numpy_roi_align(
    data: Any,
    rois: Any,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> Any:
    mode = mode if isinstance(mode, str) else {0: "avg", 1: "max"}[mode]
    high, wide = pooled_size if isinstance(pooled_size, (list, tuple)) else (pooled_size, pooled_size)
    made = np.zeros((len(rois), data.shape[1], high, wide))
    height, width = data.shape[2:]
    for r, (batch, x1, y1, x2, y2) in enumerate(rois):
        x1, y1, x2, y2 = (v * spatial_scale - 0.5 * aligned for v in (x1, y1, x2, y2))
        least = -np.inf if aligned else 1.0
        bin_h, bin_w = max(y2 - y1, least) / high, max(x2 - x1, least) / wide
        count_h = sample_ratio if sample_ratio > 0 else int(np.ceil(bin_h))
        count_w = sample_ratio if sample_ratio > 0 else int(np.ceil(bin_w))
        for i, j in np.ndindex(high, wide):
            values = []
            for p, q in np.ndindex(count_h, count_w):
                y = y1 + i * bin_h + (p + 0.5) * bin_h / count_h
                x = x1 + j * bin_w + (q + 0.5) * bin_w / count_w
                beyond = y < -1 or y > height or x < -1 or x > width
                values.append(np.zeros(data.shape[1]) if beyond else numpy_sample(data[int(batch)], y, x))
            made[r, :, i, j] = np.mean(values, 0) if mode == "avg" else np.max(values, 0)
    return made


_ROIS = np.array([[1, 0.3, 0.2, 4.1, 3.3], [0, -2.1, 1.3, 2.2, 7.9], [0, 1.1, 1.1, 1.2, 1.2]])


@operator(
    gives=(3, 2, 2, 3), shapes="(n, c, h, w), (r, 5) -> (r, c, _, _)", section="vision", namespace="vision", reference=_numpy_roi_align,
    cases=[
        case(arg((2, 2, 5, 6)), arg((3, 5), values=_ROIS), (2, 3), 0.9, "avg"),
        case(arg((2, 1, 5, 6)), arg((3, 5), values=_ROIS), 2, 1.0, "max", 2),
        case(arg((2, 1, 5, 6)), arg((3, 5), values=_ROIS), (1, 2), 0.5, 0, 3),
        case(arg((2, 2, 5, 6)), arg((3, 5), values=_ROIS), (2, 3), 0.9, "avg", aligned=True),
        case(arg((2, 1, 5, 6)), arg((3, 5), values=_ROIS), (2, 2), 1.0, "max", 2, aligned=True),
    ],
    tolerance=64,
)  # fmt: skip
def roi_align_nchw(
    data: Tensor,
    rois: Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """Regions of images (NCHW) in bins, ``pooled_size`` (rows, columns) of them: of each the average or the greatest of
    bilinear samples.

    ``rois`` (number, 5): which image, and x, y, x, y, which ``spatial_scale`` makes places of ``data``. ``mode`` is ``"avg"`` (0) or
    ``"max"`` (1). There are ``sample_ratio`` samples a side of a bin, or as many as a bin has elements. Regions are one
    element long at least; ``aligned``, they are as long as they say, and elements are half a place further on.
    """
    rows, columns = _pooled(pooled_size)
    word = chosen({0: "avg", 1: "max"}.get(mode, mode), ("avg", "max"), "the mode")
    kind, ratio = DType("float64" if data.dtype == "float64" else "float32"), integer(sample_ratio, "the sample ratio")
    half, one = const(0.5, kind), const(1, kind)

    def bin_of(roi: Any, n: Any, is_length: Any) -> Expr:
        """Where the region begins, and how long a bin is (1), along y (0) or x (1)."""
        first, last = (cast(kind, rois[roi, k - n]) * const(float(spatial_scale), kind) for k in (2, 4))
        cells = if_then_else(n == 0, cast(kind, rows), cast(kind, columns))
        if aligned:
            return if_then_else(is_length == 0, first - half, (last - first) / cells)
        return if_then_else(is_length == 0, first, max_(last - first, one) / cells)

    bins = compute((rois.shape[0], 2, 2), bin_of, name="roi_bins")

    def samples(roi: Any, n: int) -> Expr:
        return const(ratio) if ratio > 0 else cast("int32", te.ceil(bins(roi, n, 1)))

    def place(roi: Any, n: int, cell: Any, k: Any) -> Expr:
        step = (cast(kind, k) + half) / cast(kind, samples(roi, n))
        return bins(roi, n, 0) + (cast(kind, cell) + step) * bins(roi, n, 1)

    def of_samples(n: int, name: str, value: Callable[[Any, Any, Any], Expr]) -> Callable[..., Expr]:
        """``value`` of sample ``k`` of a cell of a region: from a table, where all cells have as many."""
        return compute((rois.shape[0], (rows, columns)[n], ratio), value, name=name) if ratio > 0 else value

    def taps_along(
        n: int, size: Any
    ) -> tuple[Callable[..., Expr], list[tuple[Callable[..., Expr], Callable[..., Expr]]]]:
        """Along y (0) or x (1): the place of a sample, and the elements around it with their weights."""
        at = of_samples(n, "roi_places", lambda r, c, k: place(r, n, c, k))

        def tap(r: Any, c: Any, k: Any, number: int) -> tuple[Expr, Any]:
            inside = max_(min_(at(r, c, k), cast(kind, size) - one), const(0, kind))
            return taps_of(at_number(inside), "linear", "floor", 0.0)[number]

        def tables(number: int) -> tuple[Callable[..., Expr], Callable[..., Expr]]:
            element = of_samples(n, "roi_elements", lambda r, c, k: clamped(tap(r, c, k, number)[0], size))
            return element, of_samples(n, "roi_weights", lambda r, c, k: tap(r, c, k, number)[1])

        return at, [tables(number) for number in (0, 1)]

    along = [taps_along(n, size) for n, size in enumerate(data.shape[2:])]

    def element(roi: Any, channel: Any, i: Any, j: Any) -> Expr:
        counts = [samples(roi, n) for n in (0, 1)]
        p, q = reduce_axis((0, counts[0]), "p"), reduce_axis((0, counts[1]), "q")
        points = [(roi, i, p.var), (roi, j, q.var)]
        places = [at(*point) for (at, _), point in zip(along, points)]
        beyond = [c for v, s in zip(places, data.shape[2:]) for c in (v < -one, v > cast(kind, s))]
        taps = [[(at(*point), weight(*point)) for at, weight in tables] for (_, tables), point in zip(along, points)]
        image = clamped(cast("int32", rois[roi, 0]), data.shape[0])
        sample = interpolated(taps, lambda at: cast(kind, data(image, channel, *at)))
        value = if_then_else(any_(*beyond), const(0, kind), sample)
        if word == "max":
            return maximum_reducer(value, axis=[p, q])
        return sum_(value / cast(kind, counts[0] * counts[1]), axis=[p, q])

    made = gathered((rois.shape[0], data.shape[1], rows, columns), kind, element, "roi_align")
    return (
        made
        if kind is data.dtype
        else compute(made.shape, lambda *i: cast(data.dtype, made(*i)), name="roi_align_cast")
    )


def _pooled(pooled_size: Any) -> tuple[Expr, Expr]:
    """How many rows and columns of bins there are."""
    size = sized(pooled_size if len(listed(pooled_size)) > 1 else listed(pooled_size) * 2, "the number of bins")
    if len(size) != 2:
        raise error(f"regions in {size} bins", "(rows, columns)")
    return size[0], size[1]


def _numpy_roi_pool(data: Any, rois: Any, pooled_size: Any, spatial_scale: float) -> Any:
    high, wide = pooled_size
    made = np.zeros((len(rois), data.shape[1], high, wide))
    for r, (batch, *corners) in enumerate(rois):
        x1, y1, x2, y2 = (int(np.floor(v * spatial_scale + 0.5)) for v in corners)
        bin_h, bin_w = max(y2 - y1 + 1, 1) / high, max(x2 - x1 + 1, 1) / wide
        for i, j in np.ndindex(high, wide):
            rows = range(max(y1 + int(np.floor(i * bin_h)), 0), min(y1 + int(np.ceil((i + 1) * bin_h)), data.shape[2]))
            columns = range(
                max(x1 + int(np.floor(j * bin_w)), 0), min(x1 + int(np.ceil((j + 1) * bin_w)), data.shape[3])
            )
            values = [data[int(batch), :, y, x] for y in rows for x in columns]
            made[r, :, i, j] = np.max(values, 0) if values else 0
    return made


@operator(
    gives=(3, 2, 2, 3), shapes="(n, c, h, w), (r, 5) -> (r, c, _, _)", section="vision", namespace="vision", reference=_numpy_roi_pool,
    cases=[case(arg((2, 2, 5, 6)), arg((3, 5), values=_ROIS), (2, 3), 0.9)],
)  # fmt: skip
def roi_pool_nchw(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float) -> Tensor:
    """The greatest element in each of ``pooled_size`` (rows, columns) bins of regions of images (NCHW), 0 of an empty one.

    ``rois`` (number, 5): which image, and x, y, x, y, which are multiplied by ``spatial_scale`` and rounded.
    """
    rows, columns = _pooled(pooled_size)
    kind = rois.dtype

    def bounds(roi: Any, n: int, cell: Any, cells: Expr) -> tuple[Expr, Expr]:
        first, last = (
            cast("int32", te.floor(rois[roi, k - n] * const(float(spatial_scale), kind) + const(0.5, kind)))
            for k in (2, 4)
        )
        length, extent = max_(last - first + 1, 1), data.shape[2 + n]
        begin, end = first + cell * length // cells, first - (-((cell + 1) * length) // cells)
        return clamp_bound(begin, extent), clamp_bound(end, extent)

    def element(roi: Any, channel: Any, i: Any, j: Any) -> Expr:
        (top, bottom), (left, right) = bounds(roi, 0, i, rows), bounds(roi, 1, j, columns)
        y, x = reduce_axis((top, bottom), "y"), reduce_axis((left, right), "x")
        is_empty = any_(bottom <= top, right <= left)
        greatest = maximum_reducer(
            data(clamped(cast("int32", rois[roi, 0]), data.shape[0]), channel, y, x), axis=[y, x]
        )
        return if_then_else(is_empty, const(0, data.dtype), greatest)

    return gathered((rois.shape[0], data.shape[1], rows, columns), data.dtype, element, "roi_pool")


def clamp_bound(place: Expr, extent: Expr) -> Expr:
    """A bound of elements of an axis."""
    return max_(min_(place, extent), 0)
