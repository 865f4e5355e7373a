"""Sorting of rows by the digits of keys, a stable pass for each digit, the lowest first; and the least of a row.

A key is an unsigned integer as wide as the elements, and as great as they are in order; NaN is the greatest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import DType
from ..expr import EQ, Expr, Select, cast, compare, const, min_
from ..ir_builder import BufferVar, IRBuilder
from ..op import call
from ..te import if_then_else
from .places import constant

CHUNK, LINE = 32, 64  # keys, and bytes, at least, of which only the least is compared, where it is not below those kept
SHORT = 128  # elements of a row for which counters of 8 bits take longer than the elements
LOCAL = (
    4096  # elements of a row that has memory of its own, which stays in the cache (and which a GPU's thread can have)
)


def key_type(dtype: DType) -> DType:
    """The type of the keys of elements of ``dtype``."""
    return DType(f"uint{max(dtype.bits, 8)}")


def key_of(x: Expr, is_ascending: bool) -> Expr:
    """The key of an element."""
    kind = key_type(x.dtype)
    key = cast(kind, x) if x.dtype.is_bool or x.dtype.code == "uint" else _signed_key(x, kind)
    return key if is_ascending else call("bitwise_not", key)


def _signed_key(x: Expr, kind: DType) -> Expr:
    bits = call("reinterpret", x, dtype=str(kind))
    top = const(1 << (kind.bits - 1), kind)
    if not x.dtype.is_float:
        return bits ^ top
    wide = cast("float64" if x.dtype.bits == 64 else "float32", x)
    is_zero = compare(EQ, wide, const(0, wide.dtype))  # of either sign
    turned = Select(compare(EQ, bits & top, const(0, kind)), bits ^ top, call("bitwise_not", bits))
    return Select(call("isnan", wide), const(kind.max_value, kind), Select(is_zero, top, turned))


def row_memory(shape: Sequence[Expr], axis: int, kind: DType) -> list[tuple[Any, Any]]:
    """The memory for the rows along ``axis`` of a tensor of ``shape``; none, if each row has its own."""
    if _is_small(shape[axis]):
        return []
    return [(shape, kind)] * 2 + [(shape, DType("int32"))] * 2


def _is_small(extent: Expr) -> bool:
    known = constant(extent)
    return known is not None and known <= LOCAL


class RadixSort:
    """Sorting of a row of ``extent`` keys of type ``kind``, in memory of the row: what ``row_memory`` asked for, of which
    ``at(k)`` are the places, or its own."""

    def __init__(self, ib: IRBuilder, kind: DType, extent: Expr, memory: Sequence[BufferVar], at: Callable[[Any], Any]):
        self.ib, self.kind, self.at = ib, kind, at
        self.keys, self.order = memory[:2], memory[2:]
        if _is_small(extent):
            self.keys = [ib.allocate(str(kind), (extent,), f"keys_{n}", scope="local") for n in range(2)]
            self.order = [ib.allocate("int32", (extent,), f"order_{n}", scope="local") for n in range(2)]
            self.at = lambda k: k
        known = constant(extent)
        self.width = 4 if known is not None and known < SHORT else 8
        self.passes = kind.bits // self.width
        self.counts = ib.allocate("int32", (self.passes << self.width,), "counts", scope="local")

    def sort(self, key: Callable[[Any], Expr], count: Expr) -> Callable[[Any], Expr]:
        """The positions of the first ``count`` elements in the order of ``key(k)``, of the element at place ``k``."""
        ib, keys, order, at = self.ib, self.keys, self.order, self.at
        with ib.for_range(0, self.passes << self.width, "c") as c:
            self.counts[c] = 0
        with ib.for_range(0, count, "k") as k:
            keys[0][at(k)] = key(k)
            order[0][at(k)] = cast("int32", k)
            for number in range(self.passes):
                digit = self._counter(number, keys[0][at(k)])
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
        return lambda k: order[self.passes % 2][at(k)]

    def _counter(self, number: int, key: Any) -> Expr:
        kind = self.kind
        shifted = key >> const(number * self.width, kind) if number else key
        digit = cast("int32", shifted & const((1 << self.width) - 1, kind))
        return digit + (number << self.width)

    def _pass(self, number: int, count: Expr) -> None:
        """Move the elements to where the counters of their digits say."""
        ib, at, keys, order = self.ib, self.at, self.keys, self.order
        source, target = number % 2, 1 - number % 2
        with ib.for_range(0, count, "k") as k:
            key = ib.let("key", keys[source][at(k)])
            counter = ib.let("counter", self._counter(number, key))
            place = ib.let("place", self.counts[counter])
            self.counts[counter] = place + 1
            keys[target][at(place)] = key
            order[target][at(place)] = order[source][at(k)]


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
