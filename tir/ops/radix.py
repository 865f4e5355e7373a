"""Sorting of rows by the digits of keys, a stable pass for each digit, the lowest first; and the least of a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import DType, Expr, Select, cast, const
from .. import min as min_
from ..ir_builder import BufferVar, IRBuilder
from ..te import if_then_else
from .element_places import constant

CHUNK, LINE = 32, 64  # keys, and bytes, at least, of which only the least is compared, where it is not below those kept
WIDTHS = (4, 6, 8)  # bits of digits; more counters than of 8 are not kept in the first cache
MOVE = 5  # counters that are cleared and added up in the time in which an element moves by one digit
COMPARED = 30  # elements that are kept are compared with a key in the time in which sorting moves one by all its digits
LOCAL = (
    4096  # elements of a row that has memory of its own, which stays in the cache (and which a GPU's thread can have)
)


def row_memory(shape: Sequence[Expr], axis: int, kinds: Sequence[DType]) -> list[tuple[Any, Any]]:
    """The memory for keys and what goes with them, of types ``kinds``, of the rows along ``axis`` of a tensor of
    ``shape``; none, if each row has its own."""
    if _is_small(shape[axis]):
        return []
    return [(shape, kind) for kind in kinds for _ in range(2)]


def _is_small(extent: Expr) -> bool:
    known = constant(extent)
    return known is not None and known <= LOCAL


class RadixSort:
    """Sorting of a row of ``extent`` keys, each with what goes with it; ``kinds`` are the types of the key and of the
    others. In memory of the row: what ``row_memory`` asked for, in which ``at(k)`` are its places, or its own."""

    def __init__(
        self, ib: IRBuilder, kinds: Sequence[DType], extent: Expr, memory: Sequence[BufferVar], at: Callable[[Any], Any]
    ):
        self.ib, self.kind, self.at = ib, kinds[0], at
        if _is_small(extent):
            memory = [ib.allocate(str(kind), (extent,), f"row_{n}", scope="local") for kind in kinds for n in range(2)]
            self.at = lambda k: k
        self.columns = list(zip(memory[::2], memory[1::2]))
        bits, known = self.kind.bits, constant(extent)
        count = LOCAL if known is None else known
        self.width = min(WIDTHS, key=lambda width: -(-bits // width) * (MOVE * count + (1 << width)))
        self.passes = -(-bits // self.width)
        self.counts = ib.allocate("int32", (self.passes << self.width,), "counts", scope="local")

    def sort(self, row: Callable[[Any], Sequence[Expr]], count: Expr) -> Callable[[Any], list[Expr]]:
        """The first ``count`` rows in the order of their keys; ``row(k)`` is the key at place ``k``, and what goes with it."""
        ib, at = self.ib, self.at
        with ib.for_range(0, self.passes << self.width, "c") as c:
            self.counts[c] = 0
        with ib.for_range(0, count, "k") as k:
            for (first, _), value in zip(self.columns, row(k)):
                first[at(k)] = value
            for number in range(self.passes):
                digit = self._counter(number, self.columns[0][0][at(k)])
                self.counts[digit] = self.counts[digit] + 1
        total = ib.allocate("int32", (1,), "total", scope="local")
        with ib.for_range(0, self.passes, "p") as p:
            total[0] = 0
            with ib.for_range(0, 1 << self.width, "d") as d:
                counter = p * (1 << self.width) + d
                total[0] = total[0] + self.counts[counter]
                self.counts[counter] = total[0] - self.counts[counter]
        for number in range(self.passes):
            self._pass(number, count)
        return lambda k: [column[self.passes % 2][at(k)] for column in self.columns]

    def _counter(self, number: int, key: Any) -> Expr:
        kind = self.kind
        shifted = key >> const(number * self.width, kind) if number else key
        digit = cast("int32", shifted & const((1 << self.width) - 1, kind))
        return digit + (number << self.width)

    def _pass(self, number: int, count: Expr) -> None:
        """Move the elements to where the counters of their digits say."""
        ib, at = self.ib, self.at
        source, target = number % 2, 1 - number % 2
        with ib.for_range(0, count, "k") as k:
            values = [ib.let("value", column[source][at(k)]) for column in self.columns]
            counter = ib.let("counter", self._counter(number, values[0]))
            place = ib.let("place", self.counts[counter])
            self.counts[counter] = place + 1
            for column, value in zip(self.columns, values):
                column[target][at(place)] = value


def finds_few(count: int, few: int) -> bool:
    """Whether ``least_positions`` takes less time than sorting: on rows in random order, and never four times as long.

    In random order, element ``k`` is among the ``few`` least of the first ``k`` with probability ``few / k``. In the worst
    order each element is inserted.
    """
    inserted = few * (1 + math.log(max(count, few, 1) / max(few, 1)))
    return few <= 4 * COMPARED and inserted * few <= COMPARED * count


def least_positions(ib: IRBuilder, kind: DType, key: Callable[[Any], Expr], count: Expr, few: int) -> BufferVar:
    """The positions of the ``few`` least of the keys ``key(k)`` with k below ``count``, which is not less, in order.

    Keys are looked at in chunks, of which most have none that is below the last of those kept. Where one has, those that
    are below it are collected without a branch, and then placed.
    """
    length = max(CHUNK, LINE // kind.bytes)
    least, order = ib.allocate(str(kind), few, "least", "local"), ib.allocate("int32", few, "least_order", "local")
    keys, found = ib.allocate(str(kind), length, "keys", "local"), ib.allocate("int32", length, "found", "local")
    hole, number = ib.allocate("int32", 1, "hole", "local"), ib.allocate("int32", 1, "number", "local")
    lowest = ib.allocate(str(kind), 1, "lowest", "local")

    def insert(value: Any, k: Any) -> None:
        """Insert one of the first keys among those before it."""
        hole[0] = cast("int32", k)
        with ib.while_loop(if_then_else(hole[0] > 0, value < least[hole[0] - 1], const(False))):
            least[hole[0]], order[hole[0]] = least[hole[0] - 1], order[hole[0] - 1]
            hole[0] = hole[0] - 1
        least[hole[0]], order[hole[0]] = value, cast("int32", k)

    def place_if_below(value: Any, k: Any) -> None:
        """Insert a key that is below the last of those kept, which is lost; without a branch for each of them."""
        with ib.if_scope(value < least[few - 1]):
            position = ib.let("position", cast("int32", k))
            with ib.for_range(0, few - 1, "i") as i:
                at = few - 1 - i
                before, own = ib.let("before", least[at - 1]), ib.let("own", least[at])
                is_after, is_here = value < before, value < own
                order[at] = Select(is_after, order[at - 1], Select(is_here, position, order[at]))
                least[at] = Select(is_after, before, Select(is_here, value, own))
            order[0] = Select(value < least[0], position, order[0])
            least[0] = min_(value, least[0])

    with ib.for_range(0, few, "k") as k:
        insert(ib.let("key", key(k)), k)
    whole = ib.let("whole", cast("int32", (count - few) // length))
    with ib.for_range(0, whole, "chunk") as chunk:
        lowest[0] = const(kind.max_value, kind)
        with ib.for_range(0, length, "k") as k:
            keys[k] = key(few + chunk * length + k)
            lowest[0] = min_(lowest[0], keys[k])
        with ib.if_scope(lowest[0] < least[few - 1]):
            bound = ib.let("bound", least[few - 1])
            number[0] = 0
            with ib.for_range(0, length, "k") as k:
                found[number[0]] = cast("int32", k)
                number[0] = number[0] + cast("int32", keys[k] < bound)
            with ib.for_range(0, number[0], "n") as n:
                k = ib.let("k", found[n])
                place_if_below(ib.let("key", keys[k]), few + chunk * length + k)
    with ib.for_range(few + whole * length, count, "k") as k:
        place_if_below(ib.let("key", key(k)), k)
    return order
