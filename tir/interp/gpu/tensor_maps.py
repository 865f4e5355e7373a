"""Tensor maps: boxes of tensors in global memory, which the copy engine moves to and from shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtype import DType
from ...errors import RunError
from .barriers import named
from .engine import Start, Store, begin_store
from .lanes import Lanes
from .memory import View
from .report import Site

SWIZZLES = {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}  # the bits of an address that are exchanged, by the bytes of a row


def swizzled(address: np.ndarray, swizzle: int) -> np.ndarray:
    """Byte addresses in shared memory: bits from 4 on are combined with those from 7 on."""
    return address ^ (address >> 3 & SWIZZLES[swizzle])


@dataclass(frozen=True)
class Map:
    """A tensor behind ``view``: for each axis, outermost first, its extent, its stride in elements, and that of a box."""

    view: View
    dtype: DType
    swizzle: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The bytes of a box."""
        return int(np.prod(self.box)) * self.dtype.bytes

    def elements(self, coordinates: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """The index of each element of the box, in row-major order, and whether it is in the tensor."""
        index, inside = np.zeros(1, np.int64), np.ones(1, bool)
        for begin, extent, stride, size in zip(coordinates, self.shape, self.strides, self.box):
            at = begin + np.arange(size)
            index = (index[:, None] + at * stride).reshape(-1)
            inside = (inside[:, None] & (at >= 0) & (at < extent)).reshape(-1)
        return index, inside


def tensor_map(pointer: tuple[Any, Any], dtype: DType, swizzle: int, *numbers: int) -> Map:
    """The map of a call of ``T.tensor_map``. Raises ``RunError`` for what the copy engine does not take."""
    rank = len(numbers) // 3
    shape, strides, box = (tuple(int(n) for n in numbers[k * rank : (k + 1) * rank]) for k in range(3))
    view, first = pointer
    made = Map(view, dtype, swizzle, shape, strides, box)
    size = dtype.bytes
    rules = (
        (rank > 5, f"it has {rank} axes; at most 5"),
        (np.ndim(first) > 0 or first != 0, "it begins at the first element of its memory"),
        (dtype.bytes != view.item, f"its elements are {dtype}, those of its memory {view.dtype}"),
        (swizzle not in SWIZZLES, f"its swizzle is of {swizzle} bytes, not of 0, 32, 64 or 128"),
        (any(not 1 <= n <= 256 for n in box), f"its box is {box}; along each axis it has 1 to 256 elements"),
        (box[-1] * size % 16 != 0, f"its box has {box[-1] * size} bytes along the last axis, not a multiple of 16"),
        (
            0 < swizzle < box[-1] * size,
            f"its box has {box[-1] * size} bytes along the last axis, more than the swizzle",
        ),
        (strides[-1] != 1, f"its stride along the last axis is {strides[-1]}, not 1"),
        (any(n * size % 16 for n in strides[:-1]), f"its strides {strides} are not multiples of 16 bytes"),
        (view.memory.data.ctypes.data % 16 != 0, "its memory begins at an address that is not a multiple of 16"),
    )
    for broken, rule in rules:
        if broken:
            raise RunError(f"a tensor map of `{view.name}` is not one for the copy engine: {rule}")
    return made


def _shared(
    lanes: Lanes, view: View, begin: int, made: Map, thread: int, site: Site, place: int | None = None
) -> np.ndarray:
    """Positions of a box in shared memory from element ``begin`` on, in its row-major order and units of the view."""
    first = (begin + view.offset) * view.item
    if first % 128:
        text = f"a box at byte offset {first} of shared memory, which is not a multiple of 128"
        lanes.fail("alignment", text, site, thread)
        return np.zeros(0, np.int64)
    address = swizzled(first + np.arange(0, made.bytes, view.item), made.swizzle)
    return view.of_one(address // view.item - view.offset, thread, site, place)


def _coordinates(lanes: Lanes, coordinates: tuple[Any, ...], made: Map, thread: int) -> tuple[int, ...]:
    if len(coordinates) != len(made.shape):
        raise RunError(f"a box of {len(made.shape)} axes is copied at {len(coordinates)} coordinates")
    return tuple(int(lanes.spread(c)[thread]) for c in coordinates)


def load(
    lanes: Lanes,
    act: Any,
    site: Site,
    source: Site,
    dst: tuple[Any, Any],
    made: Map,
    number: Any,
    *coordinates: Any,
    mask: Any = None,
) -> None:
    """Begin a copy of a box to shared memory by each active thread; to all blocks of the cluster in ``mask``."""
    to: View = dst[0]
    begin = lanes.whole(dst[1])
    for own, b, threads in named(lanes, act, site, number):
        for thread in (int(t) for t in threads):
            index, inside = made.elements(_coordinates(lanes, coordinates, made, thread))
            where = made.view.of_one(index[inside], thread, source)
            if len(where) < int(inside.sum()):
                continue
            for place in [own] if mask is None else _places(lanes, int(lanes.spread(mask)[thread]), site, thread):
                at = _shared(lanes, to, int(begin[thread]), made, thread, site, place)
                copy = Start(lanes, site, thread, place, b)
                if len(at) and copy.ready:
                    values = np.zeros(len(index), made.view.storage)
                    values[inside] = copy.read(made.view, where, source)
                    copy.write(to, at, values.view(np.uint8).view(to.storage), made.bytes)


def _places(lanes: Lanes, mask: int, site: Site, thread: int) -> list[int]:
    blocks = len(lanes.group.blocks)
    places = [k for k in range(16) if mask >> k & 1]
    if not places or places[-1] >= blocks:
        text = f"a copy to the blocks of mask {mask:#x}, in a cluster of {blocks} blocks"
        lanes.fail("bounds", text, site, thread)
    return [k for k in places if k < blocks]


def store(lanes: Lanes, act: Any, site: Site, made: Map, src: tuple[Any, Any], *coordinates: Any) -> None:
    """Begin a copy of a box in shared memory to the tensor, by each active thread."""
    view: View = src[0]
    begin = lanes.whole(src[1])
    for thread in (int(t) for t in (lanes.all if act is None else act)):
        index, inside = made.elements(_coordinates(lanes, coordinates, made, thread))
        where = made.view.of_one(index[inside], thread, site)
        at = _shared(lanes, view, int(begin[thread]), made, thread, site)
        if len(at) and len(where) == int(inside.sum()):
            values = np.ascontiguousarray(view.flat[at]).view(np.uint8).view(made.view.storage)[inside]
            begin_store(lanes, thread, Store(view, at, made.view, where, values, site))
