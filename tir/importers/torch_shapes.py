"""Rows of ATen operators that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtype import DType
from ..graph import Value
from ..graph.sizes import Extent, Size, is_fixed
from ..ops.promotion import wide
from .making import Unsupported, axis_of, place_of
from .torch_table import Call, NotMade, Number, real_row, rounded_once, row


@row("sym_size", "size")
def _size(c: Call, x: Value, dim: int | None = None) -> Any:
    if dim is None:
        raise Unsupported("all sizes at once")
    return x.shape[axis_of(dim, len(x.shape))]


@row("sym_numel", "numel")
def _numel(c: Call, x: Value) -> Any:
    return x.elements


@row("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy")
def _view(c: Call, x: Value, size: Any = None, shape: Any = None, dtype: DType | None = None) -> Any:
    if dtype is not None:  # view.dtype: the bits in another type
        return c.op("reinterpret", x, dtype)
    return c.shaped(x, shape if size is None else size)


@row("flatten")
def _flatten(c: Call, x: Value, start_dim: int = 0, end_dim: int = -1) -> Any:
    if not x.shape:
        return c.shaped(x, (1,))
    first, last = axis_of(start_dim, len(x.shape)), axis_of(end_dim, len(x.shape))
    return c.shaped(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@row("unflatten")
def _unflatten(c: Call, x: Value, dim: int, sizes: Sequence[int]) -> Any:
    axis = axis_of(dim, len(x.shape))
    rest = math.prod(s for s in sizes if s != -1)
    filled = [x.shape[axis] // rest if s == -1 else s for s in sizes]
    return c.shaped(x, (*x.shape[:axis], *filled, *x.shape[axis + 1 :]))


@row("squeeze")
def _squeeze(c: Call, x: Value, dim: Any = None) -> Any:
    several = range(len(x.shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {axis_of(a, len(x.shape)) for a in several} if x.shape else set()
    return c.shaped(x, [size for n, size in enumerate(x.shape) if n not in gone or size != 1])


@row("unsqueeze")
def _unsqueeze(c: Call, x: Value, dim: int) -> Any:
    axis = axis_of(dim, len(x.shape) + 1)
    return c.shaped(x, (*x.shape[:axis], 1, *x.shape[axis:]))


@row("permute", "permute_copy")
def _permute(c: Call, x: Value, dims: Sequence[int]) -> Any:
    order = tuple(axis_of(a, len(x.shape)) for a in dims)
    return x if order == tuple(range(len(order))) else c.op("transpose", x, order)


@row("transpose", "swapdims", "swapaxes", "t", "mT", "numpy_T", "adjoint")
def _transpose(
    c: Call, x: Value, dim0: int = 0, dim1: int = 1, axis0: int | None = None, axis1: int | None = None
) -> Any:
    rank = len(x.shape)
    dim0, dim1 = dim0 if axis0 is None else axis0, dim1 if axis1 is None else axis1
    if rank < 2:
        return x
    if c.operator in ("mT", "adjoint"):
        dim0, dim1 = -2, -1
    order = list(range(rank))
    if c.operator == "numpy_T":
        return _permute(c, x, order[::-1])
    first, second = axis_of(dim0, rank), axis_of(dim1, rank)
    order[first], order[second] = second, first
    return _permute(c, x, order)


@row("movedim")
def _movedim(c: Call, x: Value, source: Any, destination: Any) -> Any:
    return c.op("moveaxis", x, source, destination)


@row("expand", "expand_as", "broadcast_to")
def _expand(c: Call, x: Value, size: Any = None, other: Value | None = None) -> Any:
    wanted = list(size if other is None else other.shape)
    new = len(wanted) - len(x.shape)
    wanted = [x.shape[n - new] if s == -1 else s for n, s in enumerate(wanted)]
    return x if tuple(wanted) == x.shape else c.op("broadcast_to", x, tuple(wanted))


@row("repeat", "tile")
def _repeat(c: Call, x: Value, repeats: Any = None, dims: Any = None) -> Any:
    counts = list(repeats if dims is None else dims)
    counts = [1] * (len(x.shape) - len(counts)) + counts
    x = c.shaped(x, [1] * (len(counts) - len(x.shape)) + list(x.shape))
    return x if set(counts) <= {1} else c.op("tile", x, tuple(counts))


@row("repeat_interleave")
def _repeat_interleave(
    c: Call, x: Value | None = None, repeats: Any = None, dim: int | None = None, output_size: Any = None
) -> Any:
    if x is None or not isinstance(repeats, int):
        raise Unsupported("a number of repetitions for each element")
    if dim is None:
        x, dim = c.shaped(x, (-1,)), 0
    axis = axis_of(dim, len(x.shape))
    wide = c.shaped(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
    wide = c.op("broadcast_to", wide, (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]))
    return c.shaped(wide, (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


@row("cat", "concat")
def _cat(c: Call, tensors: Sequence[Value], dim: int = 0) -> Any:
    parts = [t for t in tensors if t.shape != (0,)] or list(tensors[:1])
    return c.joined([c.tensor(p, c.dtype) for p in parts], axis_of(dim, len(parts[0].shape)))


@row("stack")
def _stack(c: Call, tensors: Sequence[Value], dim: int = 0) -> Any:
    axis = axis_of(dim, len(tensors[0].shape) + 1)
    return c.joined([_unsqueeze(c, c.tensor(t, c.dtype), axis) for t in tensors], axis)


@row(
    "split",
    "split_with_sizes",
    "chunk",
    "unsafe_chunk",
    "unsafe_split",
    "tensor_split",
    "split_copy",
    "split_with_sizes_copy",
)
def _split(
    c: Call, x: Value, split_size: Any = None, dim: int = 0, split_sizes: Any = None, chunks: Any = None,
    sections: Any = None, indices: Any = None, tensor_indices_or_sections: Value | None = None,
) -> Any:  # fmt: skip
    axis = axis_of(dim, len(x.shape))
    size = x.shape[axis]
    if tensor_indices_or_sections is not None:
        found = c.known(tensor_indices_or_sections)
        if found is None:
            raise Unsupported("where it is split is known only when it runs")
        sections, indices = (int(found), None) if found.ndim == 0 else (None, found.tolist())
    if isinstance(sections, int):
        sizes = [size // sections + (n < size % sections) for n in range(sections)]
    elif indices is not None:
        bounds = [0, *indices, size]
        sizes = [e - b for b, e in zip(bounds, bounds[1:])]
    elif (several := split_sizes if split_sizes is not None else split_size) is not None and not isinstance(
        several, int
    ):
        sizes = list(several)
    else:
        each = max(-(-size // chunks) if chunks is not None else split_size, 1)
        sizes = [min(each, size - at) for at in range(0, size, each)] or [0]
    return c.parts(x, axis, sizes)


@row("unbind", "unbind_copy")
def _unbind(c: Call, x: Value, dim: int = 0) -> Any:
    axis = axis_of(dim, len(x.shape))
    return [c.one_of(x, axis, n) for n in range(x.shape[axis])]


@row("slice", "slice_copy")
def _slice(c: Call, x: Value, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return c.sliced(x, [(dim, slice(start, end, step))])


@row("narrow", "narrow_copy")
def _narrow(c: Call, x: Value, dim: int, start: int, length: int) -> Any:
    return c.sliced(x, [(dim, slice(start, start + length))])


@row("select", "select_copy")
def _select(c: Call, x: Value, dim: int, index: int) -> Any:
    axis = axis_of(dim, len(x.shape))
    return c.one_of(x, axis, index)


@row("slice_scatter")
def _slice_scatter(
    c: Call, x: Value, src: Value, dim: int = 0, start: Extent | None = None, end: Extent | None = None, step: int = 1
) -> Any:
    axis = axis_of(dim, len(x.shape))
    extent, src = x.shape[axis], c.tensor(src, x.dtype)
    if isinstance(extent, int) and not isinstance(start, Size) and not isinstance(end, Size):
        first, last, stride = slice(start, end, step).indices(extent)
        return c.op("slice_scatter", x, src, first, max(first, last), stride, axis)
    if step != 1:
        raise Unsupported(f"steps of {step} along an axis of {extent} elements")
    first, last = place_of(start, extent, 0), place_of(end, extent, extent)
    place = c.op("arange", 0, extent, 1, "int64")
    behind = c.op("subtract", place, first)
    own = c.op("minimum", c.op("maximum", behind, 0), src.shape[axis] - 1)
    is_inside = c.op("logical_and", c.op("greater_equal", behind, 0), c.op("less", place, last))
    is_inside = c.shaped(is_inside, (extent, *[1] * (len(x.shape) - axis - 1)))
    return c.op("where", is_inside, c.op("take", src, own, axis), x)


@row("select_scatter")
def _select_scatter(c: Call, x: Value, src: Value, dim: int, index: int) -> Any:
    axis = axis_of(dim, len(x.shape))
    return _slice_scatter(c, x, _unsqueeze(c, src, axis), axis, index, index + 1 or None)


@row("flip")
def _flip(c: Call, x: Value, dims: Sequence[int]) -> Any:
    return c.op("flip", x, tuple(axis_of(d, len(x.shape)) for d in dims)) if dims else x


@row("roll")
def _roll(c: Call, x: Value, shifts: Any, dims: Any = ()) -> Any:
    shifts, dims = ([a] if isinstance(a, int) else list(a) for a in (shifts, dims))
    return c.op("roll", x, shifts if dims else shifts[0], [axis_of(d, len(x.shape)) for d in dims] or None)


@row("tril", "triu")
def _triangle(c: Call, x: Value, diagonal: int = 0) -> Any:
    return c.op("trilu", x, diagonal, c.operator == "triu")


@row("diagonal")
def _diagonal(c: Call, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    rank = len(x.shape)
    first, second = axis_of(dim1, rank), axis_of(dim2, rank)
    rest = [n for n in range(rank) if n not in (first, second)]
    turned = c.op("transpose", x, (*rest, first, second))
    rows, columns = turned.shape[-2:]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    begin = -offset * columns if offset < 0 else offset
    flat = c.shaped(turned, (*turned.shape[:-2], rows * columns))
    return c.sliced(
        flat, [(-1, slice(begin, begin + (count - 1) * (columns + 1) + 1 if count else begin, columns + 1))]
    )


@row("constant_pad_nd", "pad", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d",
     "replication_pad2d", "replication_pad3d")  # fmt: skip
def _pad(
    c: Call, x: Value, pad: Any = None, padding: Any = None, value: Number | None = None, mode: str = "constant"
) -> Any:
    given = list(pad if padding is None else padding)
    widths = [(0, 0)] * (len(x.shape) - len(given) // 2)
    widths += [(given[n], given[n + 1]) for n in range(len(given) - 2, -1, -2)]
    mode = {"refl": "reflect", "repl": "edge"}.get(c.operator[:4], mode)
    return c.padded(x, widths, {"replicate": "edge", "circular": "wrap"}.get(mode, mode), value or 0)


@row("pixel_shuffle", "pixel_unshuffle")
def _pixel_shuffle(c: Call, x: Value, upscale_factor: int = 1, downscale_factor: int = 1) -> Any:
    *batch, channels, height, width = x.shape
    if c.operator == "pixel_shuffle":
        r = upscale_factor
        parts = c.shaped(x, (*batch, channels // r**2, r, r, height, width))
        order, sizes = (0, 3, 1, 4, 2), (channels // r**2, height * r, width * r)
    else:
        r = downscale_factor
        parts = c.shaped(x, (*batch, channels, height // r, r, width // r, r))
        order, sizes = (0, 2, 4, 1, 3), (channels * r**2, height // r, width // r)
    turned = c.op("transpose", parts, (*range(len(batch)), *(len(batch) + n for n in order)))
    return c.shaped(turned, (*batch, *sizes))


@row("channel_shuffle", "native_channel_shuffle")
def _channel_shuffle(c: Call, x: Value, groups: int) -> Any:
    n, channels, *rest = x.shape
    parts = c.shaped(x, (n, groups, channels // groups, *rest))
    return c.shaped(c.op("transpose", parts, (0, 2, 1, *range(3, 3 + len(rest)))), x.shape)


@row("unfold")
def _unfold(c: Call, x: Value, dimension: int, size: int, step: int) -> Any:
    axis = axis_of(dimension, len(x.shape))
    count = (x.shape[axis] - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    made = c.op("take", x, c.array(places.astype("int64")), axis)
    return c.op("moveaxis", made, axis + 1, -1)


@row("as_strided", "as_strided_copy")
def _as_strided(
    c: Call, x: Value, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None, memory: Any = None
) -> Any:
    """Elements by their places in memory; ``memory`` has the strides of ``x``, and the place of its first element."""
    strides, begin = memory or (np.cumprod([1, *reversed(x.shape)])[:-1][::-1].tolist(), 0)
    if not is_fixed(*x.shape, *strides, *size, *stride):
        raise Unsupported(f"strides {list(stride)} of {list(size)}")
    held, places = (
        _places(c, x.shape, strides, begin),
        _places(c, size, stride, begin if storage_offset is None else storage_offset),
    )
    order = np.argsort(held)
    found = order.take(np.searchsorted(held, places, sorter=order), mode="clip")
    if not np.array_equal(held[found], places):
        raise Unsupported(f"strides {list(stride)} of {list(size)} from {storage_offset} lead out of its tensor")
    if np.array_equal(found, np.arange(x.elements)):
        return c.shaped(x, size)
    return c.shaped(c.op("take", c.shaped(x, (-1,)), c.array(found), 0), size)


def _places(c: Call, sizes: Sequence[int], strides: Sequence[int], begin: int) -> np.ndarray:
    """Where the elements are in memory, in order."""
    places = np.full(c.room(*sizes), begin, "int64")
    for axis, stride in enumerate(strides):
        places += np.arange(sizes[axis]).reshape(-1, *[1] * (len(sizes) - axis - 1)) * stride
    return places.ravel()


@row("diagonal_scatter", "as_strided_scatter")
def _put_in_view(c: Call, x: Value, src: Value, **view: Any) -> Any:
    """A tensor with the elements of ``src`` at the places that a view of it has."""
    if not is_fixed(*x.shape):
        raise Unsupported(f"a view of {list(x.shape)}")
    inner = Call(c.builder, c.operator.removesuffix("_scatter"), "", c.results, c.label)
    numbers = c.array(np.arange(math.prod(c.room(*x.shape))).reshape(x.shape))
    at = real_row(inner, inner.operator, {"x": numbers, **view})
    source = c.shaped(c.tensor(src, x.dtype), (-1,))
    made = c.op("scatter_elements", c.shaped(x, (-1,)), c.shaped(at, (-1,)), source, 0, "update")
    return c.shaped(made, x.shape)


# ---------------------------------------------------------------- by index


@row("embedding")
def _embedding(c: Call, weight: Value, indices: Value, **without_meaning: Any) -> Any:
    return c.op("take", weight, indices, 0)


@row("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(
    c: Call, weight: Value, indices: Value, offsets: Value, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Value | None = None, include_last_offset: bool = False, padding_idx: int = -1,
) -> Any:  # fmt: skip
    """For each offset the sum, the mean or the largest (``mode``) of the rows from there up to the next; zeros where there are none."""
    bags = offsets.shape[0] - include_last_offset
    offsets = c.sliced(offsets, [(0, slice(0, bags))])
    bag = c.op("searchsorted", offsets, c.op("arange", 0, indices.shape[0], 1, str(offsets.dtype)), True)
    bag = c.shaped(c.op("subtract", bag, 1), (-1, 1))
    rows = c.of_type(c.op("take", weight, indices, 0), wide(weight.dtype))
    if per_sample_weights is not None:
        rows = c.op("multiply", rows, c.shaped(c.of_type(per_sample_weights, rows.dtype), (-1, 1)))
    counts = c.filled((indices.shape[0], 1), 1, rows.dtype)
    lowest = float("-inf") if mode == 2 else 0.0
    if padding_idx >= 0:
        is_padding = c.shaped(c.op("equal", indices, padding_idx), (-1, 1))
        rows, counts = (
            c.op("where", is_padding, c.tensor(n, rows.dtype), x) for x, n in ((rows, lowest), (counts, 0.0))
        )

    def gathered(x: Value, start: float, how: str) -> Value:
        width = x.shape[1]
        return c.op(
            "scatter_elements", c.filled((bags, width), start, x.dtype), c.op("broadcast_to", bag, x.shape), x, 0, how
        )

    made = gathered(rows, lowest, "max" if mode == 2 else "add")
    if mode:
        count = gathered(counts, 0.0, "add")
        zero = c.tensor(0.0, rows.dtype)
        made = (
            c.op("divide", made, c.op("maximum", count, 1.0))
            if mode == 1
            else c.op("where", c.op("equal", count, 0.0), zero, made)
        )
    others = "only its first result is made, the bags"
    return c.of_type(made, weight.dtype), *[NotMade(others)] * 3


@row("index_select")
def _index_select(c: Call, x: Value, dim: int, index: Value) -> Any:
    return c.op("take", x, index, axis_of(dim, len(x.shape)))


@row("gather")
def _gather(c: Call, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Any:
    return c.op("gather", x, axis_of(dim, len(x.shape)), index)


@row("index", "_unsafe_index")
def _index(c: Call, x: Value, indices: Sequence[Value | None]) -> Any:
    used = {n: i for n, i in enumerate(indices) if i is not None}
    if any(i.dtype.is_bool for i in used.values()):
        raise Unsupported("the size of its result depends on a mask that is known only when it runs")
    places = [c.places(i, x.shape[n]) for n, i in used.items()]
    first = min(used)
    if len(used) == 1:
        return c.op("take", x, places[0], first)
    turned = _permute(c, x, (*used, *(n for n in range(len(x.shape)) if n not in used)))
    made = c.op("adv_index", turned, places)
    if not first or not _are_adjacent(list(used)):  # torch: what indices give comes first
        return made
    count = max(len(i.shape) for i in places)
    return c.op("moveaxis", made, tuple(range(count)), tuple(range(first, first + count)))


def _are_adjacent(axes: Sequence[int]) -> bool:
    return axes[-1] - axes[0] == len(axes) - 1


@row("index_put", "_unsafe_index_put")
def _index_put(c: Call, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False) -> Any:
    places = [i for i in indices if i is not None]
    if any(i.dtype.is_bool for i in places):
        if len(places) > 1:
            raise Unsupported("a mask beside other indices")
        return _put_where(c, x, indices.index(places[0]), places[0], values, accumulate)
    if len(places) < len(indices):  # x[:, i] = v: with all indices of the axes between
        whole = [n for n, i in enumerate(indices) if i is None]
        given = [n for n, i in enumerate(indices) if i is not None]
        rank = max(len(i.shape) for i in places)
        before = given[0] if _are_adjacent(given) else 0
        after = [n for n in whole if whole.index(n) >= before]
        places = []
        for n, index in enumerate(indices):
            if index is None:
                every = c.op("arange", 0, x.shape[n], 1, "int64")
                behind = len(whole) - whole.index(n) - 1 + (rank if whole.index(n) < before else 0)
                places.append(c.shaped(every, (x.shape[n], *[1] * behind)))
            else:
                places.append(c.shaped(index, (*index.shape, *[1] * len(after))))
    several = [c.places(i, n) for i, n in zip(places, x.shape)]
    return (_put_sum if accumulate else _put)(c, x, several, values, accumulate)


def _put(c: Call, x: Value, places: Sequence[Value], values: Value, accumulate: bool) -> Value:
    return c.op("index_put", x, places, values, accumulate)


_put_sum = rounded_once(_put)


@row("masked_scatter")
def _masked_scatter(c: Call, x: Value, mask: Value, source: Value) -> Any:
    """The elements of ``source``, in order, where the mask is true."""
    if not source.elements:
        return x
    mask = mask if mask.shape == x.shape else c.op("broadcast_to", mask, x.shape)
    made = _put_where(c, c.shaped(x, (-1,)), 0, c.shaped(mask, (-1,)), c.shaped(source, (-1,)), False)
    return c.shaped(made, x.shape)


def _put_where(c: Call, x: Value, axis: int, mask: Value, values: Value, accumulate: bool) -> Value:
    """``x[:, mask] = values``, with a mask of the axes from one on: the values in order, or one of them everywhere."""
    behind = len(x.shape) - axis - len(mask.shape)
    values = c.shaped(values, (*[1] * (axis + 1 + behind - len(values.shape)), *values.shape))
    places = [1] * len(mask.shape)
    if values.shape[axis] != 1:
        number = c.op("cumsum", c.shaped(c.op("astype", mask, "int64"), (-1,)), 0)
        number = c.op("minimum", c.op("maximum", c.op("subtract", number, 1), 0), values.shape[axis] - 1)
        values, places = c.op("take", values, number, axis), mask.shape
    values = c.shaped(values, (*values.shape[:axis], *places, *values.shape[axis + 1 :]))
    mask = c.shaped(mask, (*mask.shape, *[1] * behind))
    return c.op("where", mask, c.op("add", x, values) if accumulate else values, x)


_REDUCED = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amin": "min", "amax": "max", "mean": "mean"}
_NEUTRAL = {
    "add": lambda dtype: 0,
    "mul": lambda dtype: 1,
    "min": lambda dtype: dtype.ends[1],
    "max": lambda dtype: dtype.ends[0],
}


@row("scatter", "scatter_add", "scatter_reduce")
def _scatter(
    c: Call, x: Value, dim: int, index: Value, src: Value | None = None, value: Number | None = None,
    reduce: str | None = None, include_self: bool = True,
) -> Any:  # fmt: skip
    how = "add" if c.operator == "scatter_add" else "update" if reduce is None else _REDUCED[reduce]
    updates = c.filled(index.shape, value, x.dtype) if src is None and value is not None else src
    assert updates is not None
    updates = c.sliced(updates, [(n, slice(0, size)) for n, size in enumerate(index.shape)])
    made = _set if how == "update" else _gathered
    return made(c, x, index, updates, axis_of(dim, len(x.shape)), how, include_self)


def _set(c: Call, x: Value, index: Value, updates: Value, axis: int, how: str, include_self: bool = True) -> Value:
    if not include_self:
        first = c.filled(index.shape, _NEUTRAL[how](x.dtype), x.dtype)
        x = c.op("scatter_elements", x, index, first, axis, "update")
    return c.op("scatter_elements", x, index, updates, axis, how)


@rounded_once
def _gathered(c: Call, x: Value, index: Value, updates: Value, axis: int, how: str, include_self: bool) -> Value:
    """Sums, products and means of several."""
    if how != "mean":
        return _set(c, x, index, updates, axis, how, include_self)
    total = _set(c, x, index, updates, axis, "add", include_self)
    ones = c.filled(index.shape, 1, x.dtype)
    count = c.op("scatter_elements", c.filled(x.shape, int(include_self), x.dtype), index, ones, axis, "add")
    return c.op("divide" if x.dtype.is_float else "floor_divide", total, c.op("maximum", count, 1))


@row("index_add")
@rounded_once
def _index_add(c: Call, x: Value, dim: int, index: Value, source: Value, alpha: Number = 1) -> Any:
    source = source if alpha == 1 else c.op("multiply", source, c.operand(alpha, x.dtype))
    return _set(c, x, _of_rows(c, index, source, dim), source, axis_of(dim, len(x.shape)), "add")


@row("index_reduce")
def _index_reduce(
    c: Call, x: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool = True
) -> Any:
    places = _of_rows(c, index, source, dim)
    return _gathered(c, x, places, source, axis_of(dim, len(x.shape)), _REDUCED[reduce], include_self)


def _of_rows(c: Call, index: Value, source: Value, dim: int) -> Value:
    """The place of each element of ``source`` along an axis, of the places of its rows."""
    rank = len(source.shape)
    return c.op("broadcast_to", c.along(index, axis_of(dim, rank), rank), source.shape)


@row("put")
def _put_flat(c: Call, x: Value, index: Value, source: Value, accumulate: bool = False) -> Any:
    """Elements at places in the flat tensor."""
    flat, places = c.shaped(x, (-1,)), c.shaped(index, (-1,))
    return c.shaped(_index_put(c, flat, [places], c.shaped(source, (-1,)), accumulate), x.shape)
