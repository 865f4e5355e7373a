"""Sorting of many short rows at once: a bitonic network (Batcher, 1968) whose comparators are minima and maxima of
vectors, with a row in each lane. Not stable; no element depends on another's value, so that there is no branch.

Three levels of comparators are made in registers before elements are stored again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from .. import DType, const, digits_of
from .. import max as max_
from .. import min as min_
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor
from ..te.hybrid import statements
from .element_places import constant, product, replaced
from .sort_keys import Key

VECTOR = 64  # bytes of the vectors that have an element of each row
LONGEST = 2048  # elements of a row: longer ones take less time by their digits
NEAR = 512  # elements of parts that stay in the first cache while they are sorted
LEVELS = 3  # of comparators in registers

Place = Callable[[int], Any]  # of each of a group of elements in registers


def suits(x: Tensor, axis: int) -> bool:
    """Whether the rows of ``x`` along ``axis`` are short, and enough for the lanes of a vector."""
    extent, rows = constant(x.shape[axis]), constant(product(replaced(x.shape, axis)))
    return extent is not None and 1 < extent <= LONGEST and rows is not None and rows >= lanes_of(x.dtype)


def lanes_of(dtype: DType) -> int:
    """How many rows are sorted at once."""
    return VECTOR // max(dtype.bytes, 1)


def sorted_rows(x: Tensor, axis: int, is_ascending: bool) -> Tensor:
    """The elements of ``x`` in order along ``axis``; -0.0 stands before 0.0, NaN after all others."""
    rows = _Rows(x, axis, Key(x.dtype, is_ascending))

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        with ib.for_range(0, -(-rows.count // rows.lanes), "rows") as group:
            tile = ib.allocate(str(rows.key.kind), (rows.size, rows.lanes), "tile", scope="local")
            rows.load(ib, group, ins[0], tile)
            _Network(ib, tile, rows.lanes).sort(rows.size)
            rows.store(ib, group, tile, outs[0])

    return statements("sorted", [x], [(x.shape, x.dtype)], body)[0]


class _Rows:
    """The rows of ``x`` along ``axis``, in groups of as many as there are lanes: element ``k`` of row ``n`` of a group is
    that of lane ``n`` in vector ``k`` of a tile. The tile has ``size`` vectors, a power of two."""

    def __init__(self, x: Tensor, axis: int, key: Key):
        self.x, self.axis, self.key = x, axis, key
        self.outer, self.extent = replaced(x.shape, axis), constant(x.shape[axis]) or 0
        self.count, self.lanes = constant(product(self.outer)) or 0, lanes_of(x.dtype)
        self.size = 1 << (self.extent - 1).bit_length()
        self.blocks = self.extent // self.lanes if axis == x.ndim - 1 else 0  # squares whose rows are contiguous

    def place(self, group: Any, lane: Any, k: Any) -> tuple[Any, ...]:
        """The indices of an element; lanes beyond the last row have that one."""
        row = group * self.lanes + lane
        at = digits_of(min_(row, self.count - 1) if self.count % self.lanes else row, self.outer)
        return (*at[: self.axis], k, *at[self.axis :])

    def load(self, ib: IRBuilder, group: Any, source: BufferVar, tile: BufferVar) -> None:
        """Fill the tile with keys, and with the greatest key beyond the rows' end.

        Squares are read by rows, and turned in memory whose columns are not in one set of the cache.
        """
        lanes = self.lanes
        square = ib.allocate(str(self.x.dtype), (lanes, lanes + 1), "square", scope="local") if self.blocks else None
        with ib.for_range(0, self.blocks, "block") as block:
            if square is not None:
                with ib.for_range(0, lanes, "row") as row, ib.for_range(0, lanes, "column", kind="vectorize") as k:
                    square[row, k] = source[self.place(group, row, block * lanes + k)]
                with ib.for_range(0, lanes, "k") as k, ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                    tile[block * lanes + k, lane] = self.key.of(square[lane, k])
        with self._each(ib, self.blocks * lanes, self.extent) as (k, lane):
            tile[k, lane] = self.key.of(source[self.place(group, lane, k)])
        with self._each(ib, self.extent, self.size) as (k, lane):
            tile[k, lane] = const(self.key.kind.max_value, self.key.kind)

    def store(self, ib: IRBuilder, group: Any, tile: BufferVar, target: BufferVar) -> None:
        """Store the elements of the tile's keys."""
        lanes, last = self.lanes, self.count - group * self.lanes
        has_tail = self.count % lanes
        with (
            ib.for_range(0, min_(lanes, last) if has_tail else lanes, "row") as row,
            ib.for_range(0, self.blocks, "block") as block,
            ib.for_range(0, lanes, "k", kind="vectorize") as k,
        ):
            target[self.place(group, row, block * lanes + k)] = self.key.value(tile[block * lanes + k, row])
        with (
            self._each(ib, self.blocks * lanes, self.extent) as (k, lane),
            ib.if_scope(lane < last) if has_tail else nullcontext(),
        ):
            target[self.place(group, lane, k)] = self.key.value(tile[k, lane])

    @contextmanager
    def _each(self, ib: IRBuilder, first: int, end: int) -> Iterator[tuple[Any, Any]]:
        """Loops over vectors of the tile, and their lanes."""
        with ib.for_range(first, end, "k") as k, ib.for_range(0, self.lanes, "lane", kind="vectorize") as lane:
            yield k, lane


class _Network:
    """The comparators that sort the columns of ``tile``."""

    def __init__(self, ib: IRBuilder, tile: BufferVar, lanes: int):
        self.ib, self.tile, self.lanes = ib, tile, lanes

    def sort(self, size: int) -> None:
        """Sort ``size`` elements, a power of two: parts that are near first, then what they make."""
        near = min(size, NEAR)
        with self.ib.for_range(0, size // near, "part") as part:
            run = 2
            while run <= near:
                self._merge(part * near, near, run)
                run *= 2
        while run <= size:
            self._merge(0, size, run)
            run *= 2

    def _merge(self, base: Any, size: int, run: int) -> None:
        """Merge the sorted halves of each ``run`` elements, from ``base`` on."""
        levels = min(LEVELS, run.bit_length() - 1)
        near = run >> levels  # the distance of neighbours in registers
        half = 1 << (levels - 1)

        def mirrored(first: Any, at: Any) -> Place:
            """The lower half of a group in order, then the upper one, whose elements are those mirrored."""
            return lambda n: first + at + n * near if n < half else first + (run - 1) - at - (2 * half - 1 - n) * near

        pairs = [(n, 2 * half - 1 - n) for n in range(half)]
        self._each(base, size, run, near, mirrored, 2 * half, [pairs, *_halvings(2 * half)[1:]])
        run = near
        while run > 1:
            levels = min(LEVELS, run.bit_length() - 1)
            near, count = run >> levels, 1 << levels

            def spaced(first: Any, at: Any, near: int = near) -> Place:
                return lambda n: first + at + n * near

            self._each(base, size, run, near, spaced, count, _halvings(count))
            run = near

    def _each(
        self, base: Any, size: int, run: int, near: int, places: Callable[[Any, Any], Place], count: int, levels: Any
    ) -> None:
        """For each run, and each of its first ``near`` elements, the comparators of ``levels`` in ``count`` registers."""
        ib, tile = self.ib, self.tile
        with (
            ib.for_range(0, size // run, "run") as number,
            ib.for_range(0, near, "at") as at,
            ib.for_range(0, self.lanes, "lane", kind="vectorize") as lane,
        ):
            place = places(base + number * run, at)
            held: list[Any] = [ib.let(f"x{n}", tile[place(n), lane]) for n in range(count)]
            for pairs in levels:
                for low, high in pairs:
                    a, b = held[low], held[high]
                    held[low], held[high] = ib.let("low", min_(a, b)), ib.let("high", max_(a, b))
            for n, value in enumerate(held):
                tile[place(n), lane] = value


def _halvings(count: int) -> list[list[tuple[int, int]]]:
    """The levels of comparators that sort a bitonic sequence: at half of ``count``, then at half of that."""
    made = []
    distance = count // 2
    while distance:
        made.append([(n, n + distance) for n in range(count) if n % (2 * distance) < distance])
        distance //= 2
    return made
