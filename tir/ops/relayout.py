"""Operators between layouts: letters and factors, and blocks of space in channels or in the batch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .. import Expr, const, digits_of, simplify
from ..te import Tensor, at_most, compute, equate, error, is_multiple
from .contract import BY_LAYOUT
from .element_places import flat_index, gathered, integer, listed, require_rank, sized
from .order import transpose
from .padding import nn_pad
from .registry import arg, case, operator
from .slicing import strided_slice
from .transform import reshape

# ---------------------------------------------------------------- letters and factors


def _parts(layout: Any) -> list[tuple[str, int]]:
    """The letters of a layout and their factors: 0 for a whole dimension. ``NCHW16c`` has five dimensions."""
    if not isinstance(layout, str) or not re.fullmatch(r"(\d*[A-Za-z])*", layout):
        raise error(f"{layout!r} is no layout", '"NCHW", "NCHW16c": letters, those of a part small, after its factor')
    found = [(letter, int(digits or 0)) for digits, letter in re.findall(r"(\d*)([A-Za-z])", layout)]
    for letter, factor in found:
        if letter.isupper() != (factor == 0):
            raise error(
                f"{layout!r} is no layout: `{letter}`", "capitals for dimensions, a factor before a small letter"
            )
    names = [letter for letter, _ in found]
    if len(set(names)) < len(names) or any(n.islower() and n.upper() not in names for n in names):
        raise error(f"{layout!r} is no layout: each letter stands once, and a small one only beside its capital")
    return found


def _numpy_layout_transform(x: Any, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> Any:
    def letters(layout: str) -> list[tuple[str, int]]:
        return [(name, int(digits or 1)) for digits, name in re.findall(r"(\d*)([A-Za-z])", layout)]

    source, target = letters(src_layout), letters(dst_layout)
    small = {name.upper(): size for name, size in target if name.islower()}
    names = [name for name, _ in source]
    order = sorted(range(len(names)), key=lambda n: (names[n].upper(), names[n].islower()))
    x = x.transpose(order)
    capitals = sorted({n.upper() for n in names})
    wholes = {c: int(np.prod([x.shape[k] for k, n in enumerate(order) if names[n].upper() == c])) for c in capitals}
    split = {c: (wholes[c] // small.get(c, 1), small.get(c, 1)) for c in capitals}
    x = x.reshape([part for c in capitals for part in split[c]])
    places = {c: 2 * n for n, c in enumerate(capitals)} | {c.lower(): 2 * n + 1 for n, c in enumerate(capitals)}
    kept = [places[name] for name, _ in target]
    left = [n for n in range(x.ndim) if n not in kept]
    return x.transpose([*kept, *left]).reshape([x.shape[n] for n in kept])


@operator(
    gives=(2, 3, 2, 8), unstated=BY_LAYOUT, section="transform", reference=_numpy_layout_transform,
    cases=[
        case(arg((2, 8, 3, 2)), "NCHW", "NHWC"), case(arg((2, 8, 3, 2)), "NCHW", "NCHW4c"),
        case(arg((2, 2, 3, 2, 4), "int8"), "NCHW4c", "NHWC"), case(arg((2, 2, 3, 2, 4), "int8"), "NCHW4c", "NCHW2c"),
        case(arg((8, 4, 1, 3)), "OIHW", "OIHW2i4o"), case(arg((2, 1, 1, 3, 4, 4), "bfloat16"), "OIHW4i4o", "HWIO"),
        case(arg((4, "n"), "bool"), "NC", "CN2n"), case(arg((0, 4)), "NC", "NC2c"),
    ],
)  # fmt: skip
def layout_transform(x: Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> Tensor:
    """``x`` of ``src_layout`` in ``dst_layout``: ``"NCHW"`` as ``"NHWC"``, or ``"NCHW16c"``, channels in blocks of 16.

    Capitals are dimensions; a small letter after its factor is the inner part of one. Raises ``TensorExpressionError``
    for layouts of other letters, and where a factor does not divide an extent.
    """
    source, target = _parts(src_layout), _parts(dst_layout)
    if {n.upper() for n, _ in source} != {n.upper() for n, _ in target}:
        raise error(f"{src_layout!r} and {dst_layout!r} have not the same dimensions")
    require_rank(x, len(source), f"a tensor of layout {src_layout!r}")
    for (letter, factor), extent in zip(source, x.shape):
        if factor and not equate(extent, factor):
            raise error(f"`{factor}{letter}` of {src_layout!r} has extent {extent} in {x.shape}")
    sizes = {letter: extent for (letter, _), extent in zip(source, x.shape)}
    factors = dict(target)
    wholes = {n: simplify(s * sizes.get(n.lower(), const(1))) for n, s in sizes.items() if n.isupper()}
    for letter, factor in target:
        whole = wholes[letter.upper()]
        if factor and not is_multiple(whole, factor):
            raise error(f"`{factor}{letter}` of {dst_layout!r} does not divide {whole}, the extent of {letter.upper()}")
    shape = [const(f) if f else simplify(wholes[n] // max(1, factors.get(n.lower(), 1))) for n, f in target]
    names = [n for n, _ in target]

    def element(*indices: Any) -> Expr:
        at = dict(zip(names, indices))
        whole = {n: at[n] * factors[n.lower()] + at[n.lower()] if n.lower() in at else at[n] for n in wholes}
        return x(*(_within(n, whole[n.upper()], sizes) for n, _ in source))

    return compute(shape, element, name="layout_transform")


def _within(letter: str, whole: Any, sizes: dict[str, Expr]) -> Expr:
    """The index of the dimension, or of the part of one, that a letter of the source stands for."""
    inner = sizes.get(letter.lower())
    if inner is None:
        return whole
    return whole // inner if letter.isupper() else whole % inner


# ---------------------------------------------------------------- blocks in channels


def _numpy_space_to_depth(x: Any, block_size: int, layout: str = "NCHW") -> Any:
    x = x if layout == "NCHW" else x.transpose(0, 3, 1, 2)
    parts = [x[:, :, r::block_size, c::block_size] for r in range(block_size) for c in range(block_size)]
    made = np.concatenate(parts, 1)
    return made if layout == "NCHW" else made.transpose(0, 2, 3, 1)


def _blocks(x: Tensor, block_size: Any, layout: str) -> tuple[tuple[Expr, ...], int]:
    """The extents N, C, H and W of an image, and the block size."""
    block = integer(block_size, "the size of a block")
    if block < 1:
        raise error(f"a block of {block} elements a side", "1 or more")
    return tuple(x.shape[layout.index(n)] for n in "NCHW"), block


def _require_divisible(extent: Expr, by: int, what: str) -> None:
    if not is_multiple(extent, by):
        raise error(f"{what}, {extent}, is no multiple of {by}")


@operator(
    gives=(2, 12, 2, 3), shapes="(_, _, _, _) -> (_, _, _, _)", section="transform", namespace="nn", reference=_numpy_space_to_depth,
    cases=[case(arg((2, 3, 4, 6)), 2), case(arg((1, 4, 6, 2), "int8"), 2, "NHWC"), case(arg((1, 2, 3, 3)), 1)],
)  # fmt: skip
def space_to_depth(x: Tensor, block_size: int, layout: Literal["NCHW", "NHWC"] = "NCHW") -> Tensor:
    """Blocks of an image as channels: channel ``(r * block_size + c) * C + k`` has row ``r`` and column ``c`` of each block."""
    (n, c, h, w), block = _blocks(x, block_size, layout)
    _require_divisible(h, block, "the height")
    _require_divisible(w, block, "the width")
    sizes = {"N": n, "C": c * block * block, "H": h // block, "W": w // block}

    def element(*indices: Any) -> Expr:
        at = dict(zip(layout, indices))
        cell = at["C"] // c
        places = {
            "N": at["N"],
            "C": at["C"] % c,
            "H": at["H"] * block + cell // block,
            "W": at["W"] * block + cell % block,
        }
        return x(*(places[n] for n in layout))

    return compute([simplify(sizes[n]) for n in layout], element, name="space_to_depth")


def _numpy_depth_to_space(x: Any, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Any:
    x = x if layout == "NCHW" else x.transpose(0, 3, 1, 2)
    n, channels, h, w = x.shape
    c = channels // block_size**2
    made = np.zeros((n, c, h * block_size, w * block_size), x.dtype)
    for k in range(c):
        for row in range(block_size):
            for column in range(block_size):
                cell = row * block_size + column
                source = cell * c + k if mode == "DCR" else k * block_size**2 + cell
                made[:, k, row::block_size, column::block_size] = x[:, source]
    return made if layout == "NCHW" else made.transpose(0, 2, 3, 1)


@operator(
    gives=(2, 2, 4, 6), shapes="(_, _, _, _) -> (_, _, _, _)", section="transform", namespace="nn", reference=_numpy_depth_to_space,
    cases=[
        case(arg((2, 8, 2, 3)), 2), case(arg((2, 8, 2, 3), "int8"), 2, mode="CRD"), case(arg((1, 2, 1, 9)), 3, "NHWC"),
    ],
)  # fmt: skip
def depth_to_space(
    x: Tensor, block_size: int, layout: Literal["NCHW", "NHWC"] = "NCHW", mode: Literal["DCR", "CRD"] = "DCR"
) -> Tensor:
    """Channels of an image as blocks: the inverse of :func:`space_to_depth` (``"DCR"``), or, with ``mode="CRD"``, from
    channels ``k * block_size² + r * block_size + c``.
    """
    (n, channels, h, w), block = _blocks(x, block_size, layout)
    _require_divisible(channels, block * block, "the number of channels")
    c = simplify(channels // (block * block))
    sizes = {"N": n, "C": c, "H": h * block, "W": w * block}

    def element(*indices: Any) -> Expr:
        at = dict(zip(layout, indices))
        cell = (at["H"] % block) * block + at["W"] % block
        source = cell * c + at["C"] if mode == "DCR" else at["C"] * (block * block) + cell
        places = {"N": at["N"], "C": source, "H": at["H"] // block, "W": at["W"] // block}
        return x(*(places[n] for n in layout))

    return compute([simplify(sizes[n]) for n in layout], element, name="depth_to_space")


# ---------------------------------------------------------------- blocks in the batch


def _numpy_space_to_batch_nd(x: Any, block_shape: Any, pad_before: Any, pad_after: Any, pad_value: Any = 0) -> Any:
    extra = [(0, 0)] * (x.ndim - 1 - len(block_shape))
    x = np.pad(x, [(0, 0), *zip(pad_before, pad_after), *extra], constant_values=pad_value)
    offsets = np.ndindex(*block_shape)
    return np.concatenate([x[(slice(None), *(slice(o, None, b) for o, b in zip(at, block_shape)))] for at in offsets])


@operator(
    gives=(12, 2, 2, 3), shapes="(_, …x) -> (_, …r)", section="transform", namespace="nn", reference=_numpy_space_to_batch_nd,
    cases=[
        case(arg((2, 4, 6, 3)), (2, 3), (0, 0), (0, 0)), case(arg((1, 3, 5), "int8"), (2, 2), (1, 0), (0, 1), 7),
        case(arg((2, 4)), (2,), (0,), (0,)),
    ],
)  # fmt: skip
def space_to_batch_nd(
    x: Tensor, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int], pad_value: Any = 0.0
) -> Tensor:
    """Blocks of the dimensions after the first, which is the batch, as more of the batch, after padding."""
    blocks = _block_shape(x, block_shape)
    count, rest = len(blocks), (0,) * (x.ndim - 1 - len(blocks))
    padded = nn_pad(x, (0, *pad_before, *rest), (0, *pad_after, *rest), pad_value)
    for n, block in enumerate(blocks):
        _require_divisible(padded.shape[n + 1], block, f"the padded extent of axis {n + 1}")
    batch, *space = padded.shape
    cells = [simplify(s // b) for s, b in zip(space, blocks)]
    parts = [part for pair in zip(cells, blocks) for part in pair]
    apart = reshape(padded, (batch, *parts, *space[count:]))
    inner, outer = [2 * n + 2 for n in range(count)], [2 * n + 1 for n in range(count)]
    moved = transpose(apart, (*inner, 0, *outer, *range(2 * count + 1, apart.ndim)))
    whole = batch
    for b in blocks:
        whole = whole * b
    return reshape(moved, (simplify(whole), *cells, *space[count:]))


def _block_shape(x: Tensor, block_shape: Any) -> list[int]:
    blocks = [integer(b, "the size of a block") for b in listed(block_shape)]
    if len(blocks) >= x.ndim or any(b < 1 for b in blocks):
        raise error(
            f"blocks of {tuple(blocks)} are not of the dimensions after the first of {x.shape}", "1 or more each"
        )
    return blocks


def _numpy_batch_to_space_nd(x: Any, block_shape: Any, crop_begin_list: Any, crop_end_list: Any) -> Any:
    batch = x.shape[0] // int(np.prod(block_shape))
    space = [s * b for s, b in zip(x.shape[1:], block_shape)]
    made = np.zeros((batch, *space, *x.shape[1 + len(space) :]), x.dtype)
    for n, at in enumerate(np.ndindex(*block_shape)):
        target = (slice(None), *(slice(o, None, b) for o, b in zip(at, block_shape)))
        made[target] = x[n * batch : (n + 1) * batch]
    return made[(slice(None), *(slice(b, s - e) for b, e, s in zip(crop_begin_list, crop_end_list, space)))]


@operator(
    gives=(1, 4, 3, 3), shapes="(_, …x) -> (_, …r)", section="transform", namespace="nn", reference=_numpy_batch_to_space_nd,
    cases=[
        case(arg((6, 2, 1, 3)), (2, 3), (0, 0), (0, 0)), case(arg((4, 2, 3), "int8"), (2, 2), (1, 0), (0, 2)),
        case(arg((4, 3)), (2,), (0,), (1,)),
    ],
)  # fmt: skip
def batch_to_space_nd(
    x: Tensor, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
) -> Tensor:
    """The inverse of :func:`space_to_batch_nd`: parts of the batch as blocks, and then cropped."""
    blocks = _block_shape(x, block_shape)
    count, total = len(blocks), int(np.prod(blocks))
    _require_divisible(x.shape[0], total, "the batch")
    batch = simplify(x.shape[0] // total)
    apart = reshape(x, (*blocks, batch, *x.shape[1:]))
    order = [count, *(axis for n in range(count) for axis in (count + 1 + n, n)), *range(2 * count + 1, apart.ndim)]
    space = [simplify(s * b) for s, b in zip(x.shape[1:], blocks)]
    whole = reshape(transpose(apart, order), (batch, *space, *x.shape[1 + count :]))
    begins = sized(crop_begin_list, "what is cropped")
    ends = sized(crop_end_list, "what is cropped")
    if not len(begins) == len(ends) == count:
        raise error(f"{begins} and {ends} are cropped of {count} dimensions", "one number each")
    sizes = [simplify(s - b - e) for s, b, e in zip(space, begins, ends)]
    if not all(at_most(0, s) for s in sizes):
        raise error(f"{begins} and {ends} cannot be cropped of {tuple(space)}")
    return strided_slice(whole, begins, [b + s for b, s in zip(begins, sizes)], axes=range(1, count + 1))


# ---------------------------------------------------------------- yolo


def _numpy_reorg(x: Any, stride: int) -> Any:
    n, c, h, w = x.shape
    flat, made = x.reshape(n, -1), np.zeros((n, c * h * w), x.dtype)
    depth = c // stride**2
    for k in range(c):
        for j in range(h):
            for i in range(w):
                offset = k // depth
                row, column = j * stride + offset // stride, i * stride + offset % stride
                made[:, i + w * (j + h * k)] = flat[:, column + w * stride * (row + h * stride * (k % depth))]
    return made.reshape(n, c * stride**2, h // stride, w // stride)


@operator(
    gives=(2, 16, 2, 3), shapes="(n, _, _, _) -> (n, _, _, _)", section="vision", namespace="vision", reference=_numpy_reorg,
    cases=[case(arg((2, 4, 4, 6)), 2), case(arg((1, 8, 2, 2), "int8"), 2)],
)  # fmt: skip
def reorg(x: Tensor, stride: int) -> Tensor:
    """YOLO's reorganisation of an image (batch, channels, height, width) for a passthrough layer."""
    (n, c, h, w), step = _blocks(x, stride, "NCHW")
    _require_divisible(c, step * step, "the number of channels")
    _require_divisible(h, step, "the height")
    _require_divisible(w, step, "the width")
    shape = [simplify(s) for s in (n, c * step * step, h // step, w // step)]
    depth = c // (step * step)

    def element(*indices: Any) -> Expr:
        k, j, i = digits_of(flat_index(indices[1:], shape[1:]), (c, h, w))
        cell = k // depth
        wide = (depth, h * step, w * step)
        source = (k % depth, j * step + cell // step, i * step + cell % step)
        return x(indices[0], *digits_of(flat_index(source, wide), (c, h, w)))

    return gathered(shape, x.dtype, element, "reorg")
