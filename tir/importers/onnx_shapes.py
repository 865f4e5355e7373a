"""Rows of ONNX operators that move elements, or make tensors of shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..graph import Value
from ..graph.sizes import is_fixed, may_be
from .making import MOST, Unsupported, axis_of, broadcast
from .onnx_table import Call, dtype_of, row


def _axes(c: Call, index: int, before: int) -> list[int] | None:
    """The axes: an attribute before a version, an input since then."""
    if c.version < before:
        given = c.attribute("axes")
        return None if given is None else list(given)
    return c.integers(index, "axes")


@row("Shape")
def _shape(c: Call) -> Any:
    return c.numbers(c[0].shape[c.attribute("start", 0) : c.attribute("end")])


@row("Size")
def _size(c: Call) -> Any:
    return c.numbers(c[0].elements)


@row("Reshape", 5)
def _reshape(c: Call) -> Any:
    wanted = c.integers(1, "shape") or []
    x = c[0]
    if not c.attribute("allowzero", 0):
        if any(n == 0 and axis >= len(x.shape) for axis, n in enumerate(wanted)):
            raise Unsupported(f"shape {wanted} keeps a size that {list(x.shape)} has not")
        wanted = [x.shape[axis] if n == 0 else n for axis, n in enumerate(wanted)]
    if -1 not in wanted and math.prod(wanted) != x.elements:
        raise Unsupported(f"{list(x.shape)} has {x.elements} elements, and {wanted} has {math.prod(wanted)}")
    return c.shaped(x, wanted)


@row("Flatten")
def _flatten(c: Call) -> Any:
    x, axis = c[0], c.attribute("axis", 1)
    axis = axis if axis >= 0 else axis + len(x.shape)
    return c.op("reshape", x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@row("Squeeze")
def _squeeze(c: Call) -> Any:
    x, axes = c[0], _axes(c, 1, 13)
    if axes is None and (open_sizes := [size for size in x.shape if size != 1 and may_be(size, 1)]):
        raise Unsupported(
            f"without axes it drops sizes of 1, and whether {open_sizes[0]} is 1 is known only when it runs; give axes, or numbers for sizes, as shapes="
        )
    gone = (
        [n for n, size in enumerate(x.shape) if size == 1] if axes is None else [axis_of(a, len(x.shape)) for a in axes]
    )
    if any(x.shape[a] != 1 for a in gone):
        raise Unsupported(f"axes {axes} of {list(x.shape)} are not all of size 1")
    return c.op("reshape", x, tuple(size for n, size in enumerate(x.shape) if n not in gone))


@row("Unsqueeze")
def _unsqueeze(c: Call) -> Any:
    x, axes = c[0], _axes(c, 1, 13) or []
    rank = len(x.shape) + len(axes)
    new = {axis_of(a, rank) for a in axes}
    if len(new) < len(axes):
        raise Unsupported(f"axes {list(axes)} of {rank} dimensions name one of them twice")
    rest = iter(x.shape)
    return c.op("reshape", x, tuple(1 if n in new else next(rest) for n in range(rank)))


@row("Transpose")
def _transpose(c: Call) -> Any:
    order = c.attribute("perm") or tuple(reversed(range(len(c[0].shape))))
    return c.op("transpose", c[0], tuple(order)) if len(order) > 1 else c[0]


@row("Concat", 4)
def _concat(c: Call) -> Any:
    parts = [c[n] for n in range(len(c.inputs))]
    return c.joined(parts, axis_of(c.attribute("axis"), len(parts[0].shape)))


@row("Split", 2, 13)
def _split(c: Call) -> Any:
    axis = axis_of(c.attribute("axis", 0), len(c[0].shape))
    sizes = list(c.attribute("split") or []) if c.version < 13 else c.integers(1, "sizes") or []
    if not sizes:
        count = c.attribute("num_outputs", len(c.outputs))
        each = -(-c[0].shape[axis] // count)
        sizes = [min(each, c[0].shape[axis] - n * each) for n in range(count)]
    if is_fixed(c[0].shape[axis], *sizes) and (min(sizes) < 0 or sum(sizes) != c[0].shape[axis]):
        raise Unsupported(f"an axis of {c[0].shape[axis]} elements is no {' + '.join(map(str, sizes))}")
    return c.parts(c[0], axis, sizes)


@row("Slice")
def _slice_by_attributes(c: Call) -> Any:
    starts, ends = c.attribute("starts"), c.attribute("ends")
    return _sliced(c, list(starts), list(ends), c.attribute("axes"), None)


@row("Slice", 10)
def _slice(c: Call) -> Any:
    starts, ends = c.integers(1, "starts") or [], c.integers(2, "ends") or []
    return _sliced(c, starts, ends, c.integers(3, "axes"), c.integers(4, "steps"))


def _sliced(c: Call, starts: list[int], ends: list[int], axes: Any, steps: Any) -> Value:
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    return c.sliced(c[0], ((axis, slice(*each)) for axis, *each in zip(axes, starts, ends, steps)))


@row("Gather")
def _gather(c: Call) -> Any:
    x, indices = c[0], c[1]
    axis = axis_of(c.attribute("axis", 0), len(x.shape))
    known = c.known(indices)
    if known is not None and known.ndim == 0:
        return c.one_of(x, axis, int(known))
    return c.op("take", x, c.places(indices, x.shape[axis]), axis)


@row("GatherElements", 11)
def _gather_elements(c: Call) -> Any:
    axis = axis_of(c.attribute("axis", 0), len(c[0].shape))
    return c.op("gather", c[0], axis, c.places(c[1], c[0].shape[axis]))


@row("GatherND", 11)
def _gather_nd(c: Call) -> Any:
    return c.op("gather_nd", c[0], c.op("moveaxis", c[1], -1, 0), c.attribute("batch_dims", 0))


@row("Expand", 8)
def _expand(c: Call) -> Any:
    shape = broadcast(c[0].shape, c.integers(1, "shape") or ())
    return c[0] if shape == c[0].shape else c.op("broadcast_to", c[0], shape)


@row("Tile", 6)
def _tile(c: Call) -> Any:
    return c.op("tile", c[0], tuple(c.integers(1, "repeats") or ()))


@row("Pad", 2)
def _pad_by_attributes(c: Call) -> Any:
    return _padded(c, list(c.attribute("pads")), None, c.attribute("value", 0.0))


@row("Pad", 11)
def _pad(c: Call) -> Any:
    filled = c.constant(2, "value")
    value = filled.item() if filled is not None else 0
    return _padded(c, c.integers(1, "pads") or [], c.integers(3, "axes"), value)


def _padded(c: Call, pads: list[int], axes: list[int] | None, value: Any) -> Value:
    x = c[0]
    rank, half = len(x.shape), len(pads) // 2
    widths = [(0, 0)] * rank
    for n, axis in enumerate(axes if axes is not None else range(half)):
        widths[axis_of(axis, rank)] = (pads[n], pads[half + n])
    return c.padded(x, widths, c.attribute("mode", "constant"), value)


@row("ConstantOfShape", 9)
def _constant_of_shape(c: Call) -> Any:
    """One element, which is seen in each place: weights without their data are made so."""
    value = c.attribute("value", np.zeros(1, "float32"))
    sizes = c.integers(0, "shape") or ()
    if not is_fixed(*sizes):
        return c.op("full", tuple(sizes), value.reshape(-1)[0].item(), str(value.dtype))
    return c.array(np.broadcast_to(value.reshape(-1)[0], c.room(*sizes, most=4 * MOST)))


@row("Range", 11)
def _range(c: Call) -> Any:
    start, stop, step = (c.constant(n, what) for n, what in enumerate(("start", "limit", "delta")))
    assert start is not None and stop is not None and step is not None
    first, last, by = start.item(), stop.item(), step.item()
    if not is_fixed(first, last, by):
        return c.op("arange", first, last, by, str(c[0].dtype))
    if not by or not all(map(math.isfinite, (first, last, by))):
        raise Unsupported(f"it counts from {first} to {last} by {by}")
    c.room(max(0, math.ceil((last - first) / by)))
    return c.array(np.arange(first, last, by).astype(start.dtype))


@row("EyeLike", 9)
def _eye_like(c: Call) -> Any:
    kind = c[0].dtype if c.attribute("dtype") is None else dtype_of(c.attribute("dtype"))
    return c.op("eye", *c[0].shape, c.attribute("k", 0), kind)


@row("OneHot", 9)
def _one_hot(c: Call) -> Any:
    depth, values = c.constant(1, "depth"), c[2]
    assert depth is not None
    size = int(depth.reshape(-1)[0])
    axis = axis_of(c.attribute("axis", -1), len(c[0].shape) + 1)
    indices = c.op("astype", c[0], "int64") if c[0].dtype.is_float else c[0]
    indices = c.from_front(indices, size)
    places = c.array(np.arange(*c.room(size)).astype(str(indices.dtype)))
    here = c.op("equal", c.op("expand_dims", indices, axis), c.along(places, axis, len(c[0].shape) + 1))
    off, on = (c.op("reshape", c.op("strided_slice", values, [n], [n + 1]), ()) for n in (0, 1))
    return c.op("where", here, on, off)


@row("Trilu", 14)
@row("Trilu", domain="com.microsoft")
def _trilu(c: Call) -> Any:
    k = c.integers(1, "k") or [0]
    return c.op("trilu", c[0], k[0], bool(c.attribute("upper", 1)))


@row("DepthToSpace")
def _depth_to_space(c: Call) -> Any:
    return c.op("nn.depth_to_space", c[0], c.attribute("blocksize"), "NCHW", c.attribute("mode", "DCR"))


@row("SpaceToDepth")
def _space_to_depth(c: Call) -> Any:
    size = c.attribute("blocksize")
    if c.attribute("mode", "DCR") == "DCR":
        return c.op("nn.space_to_depth", c[0], size)
    n, channels, height, width = c[0].shape
    parts = c.op("reshape", c[0], (n, channels, height // size, size, width // size, size))
    turned = c.op("transpose", parts, (0, 1, 3, 5, 2, 4))
    return c.op("reshape", turned, (n, channels * size * size, height // size, width // size))


_REDUCED = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


@row("ScatterElements", 11)
@row("Scatter", 9)
def _scatter_elements(c: Call) -> Any:
    axis = axis_of(c.attribute("axis", 0), len(c[0].shape))
    indices = c.places(c[1], c[0].shape[axis])
    return c.op("scatter_elements", c[0], indices, c[2], axis, _REDUCED[c.attribute("reduction", "none")])


@row("ScatterND", 11)
def _scatter_nd(c: Call) -> Any:
    return c.op("scatter_nd", c[0], c.op("moveaxis", c[1], -1, 0), c[2], _REDUCED[c.attribute("reduction", "none")])


@row("TensorScatter", 24)
def _tensor_scatter(c: Call) -> Any:
    """A cache with rows written from a place on that each batch says; in mode ``circular`` round its end."""
    cache, update = c[0], c[1]
    axis = axis_of(c.attribute("axis", -2), len(cache.shape))
    if axis == 0:
        raise Unsupported("its axis is that of the batch")
    rank = len(cache.shape)
    places = c.along(c.array(np.arange(*c.room(update.shape[axis]))), axis, rank)
    if (begin := c.get(2)) is not None:
        places = c.op("add", places, c.op("astype", c.along(begin, 0, rank), "int64"))
    if c.attribute("mode", "linear") == "circular":
        places = c.op("remainder", places, cache.shape[axis])
    places = c.op("broadcast_to", places, update.shape)
    return c.op("scatter_elements", cache, places, update, axis, "update")
