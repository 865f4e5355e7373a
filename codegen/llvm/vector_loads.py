"""Loads of vectors without a mask: whole vectors where the lanes are close, single elements where a step leads on, else gathers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tir.arith import simplify
from tir.arith.linear import is_index, key
from tir.arith.strided_lanes import first_lane, lane_offsets
from tir.expr import Add, Broadcast, Cast, Expr, FloorMod, IntImm, Max, Min, Mul, Ramp, Select, Sub, cast, is_const
from tir.node import record
from tir.visit import walk

from .generator import Generator
from .types import element_type, mangled, splat, value_type, vector

CLOSE = 4  # vectors in which all lanes are loaded whole, and selected: faster than an element at a time


@dataclass(frozen=True)
class Part:
    """The first ``used`` lanes of a register of ``lanes`` elements."""

    element: str
    used: int
    lanes: int

    @property
    def type(self) -> str:
        """The LLVM type of the register."""
        return vector(self.element, self.lanes)

    @property
    def mask_type(self) -> str:
        return vector("i1", self.lanes)

    @property
    def mask(self) -> str:
        """The constant mask of the lanes that are used."""
        flags = ", ".join(f"i1 {'true' if lane < self.used else 'false'}" for lane in range(self.lanes))
        return f"<{flags}>"

    def order(self, lanes: int) -> str:
        """The mask of a shuffle that has the used lanes, and others to make ``lanes``."""
        picks = ", ".join(f"i32 {lane}" if lane < self.used else "i32 poison" for lane in range(lanes))
        return f"<{lanes} x i32> <{picks}>"


def part_of(g: Generator, element: str, lanes: int) -> Part | None:
    """The register that holds ``lanes`` elements, fewer than it has room for, where one masked instruction loads or stores them; LLVM's own
    code takes one instruction for each power of two. None for whole registers, and without masked instructions."""
    whole = 1 << (lanes - 1).bit_length()
    return Part(element, lanes, whole) if whole > lanes > 2 and is_maskable(g, element, whole) else None


def is_maskable(g: Generator, element: str, lanes: int) -> bool:
    """Whether one masked instruction loads the neighbours whose lanes are set in a mask register."""
    bits = {"float": 32, "i32": 32, "double": 64, "i64": 64}.get(element)
    return bits is not None and lanes * bits <= 512 and "+avx512vl" in g.out.module.features


@record
class Elements:
    """What a vector of ``lanes`` loads: elements of an LLVM type, aligned to ``align`` bytes. ``own``: of an allocation of this thread,
    which becomes registers."""

    g: Generator
    element: str
    lanes: int
    align: int
    own: bool = False

    @property
    def type(self) -> str:
        """The LLVM type of the vector."""
        return vector(self.element, self.lanes)

    def whole(self, pointer: str) -> str:
        """Neighbours, from ``pointer`` on."""
        part = None if self.own else part_of(self.g, self.element, self.lanes)
        if part is not None:
            name, mask = f"llvm.masked.load.{mangled(self.element, part.lanes)}.p0", (part.mask_type, part.mask)
            args = [("ptr", pointer), ("i32", str(self.align)), mask, (part.type, "poison")]
            found = self.g.out.call(name, part.type, args)
            return self.g.out.value(f"shufflevector {part.type} {found}, {part.type} poison, {part.order(self.lanes)}")
        return self.g.out.value(f"load {self.type}, ptr {pointer}, align {self.align}")

    def at(
        self,
        offsets: tuple[int, ...],
        pointer: Callable[[int], str],
        around: Callable[[int], tuple[int, int] | None] = lambda _: None,
    ) -> str:
        """The lanes at constant offsets; ``pointer(n)`` is the address of the element at the offset ``n``. ``around(step)`` is how many
        elements before the first of them and after the last may be read, of the multiples of ``step`` that they are in; None if that is
        not known."""
        step = constant_step(offsets)
        if step == 0:
            one = self.g.out.value(f"load {self.element}, ptr {pointer(offsets[0])}, align {self.align}")
            return self.g.out.splat(self.element, one, self.lanes)
        if step == 1:
            return self.whole(pointer(offsets[0]))
        if step == -1:
            return reversed_lanes(self.g, self.whole(pointer(offsets[-1])), self.type, self.lanes)
        starts = self._vectors(offsets, around(abs(step)) if step and abs(step) <= CLOSE else None)
        if self.lanes >= 4 and len(starts) <= CLOSE:
            return self._picked(offsets, pointer, starts)
        return self.single([pointer(offset) for offset in offsets])

    def _vectors(self, offsets: Sequence[int], around: tuple[int, int] | None) -> list[int]:
        """Where whole vectors begin that have all lanes, within the first element and the last: none beyond is read. Where it is known what is
        ``around`` these, whole multiples of the step: loads of the others of these are the same loads, but for a last one that ends earlier."""
        low, high = min(offsets), max(offsets)
        if around is not None:  # of a step of CLOSE at most, all multiples
            before, after = around
            last = max(low - before, high + after + 1 - self.lanes)
            return [min(start, last) for start in range(low - before, high + 1, self.lanes)]
        starts = list[int]()
        for offset in sorted(offsets):
            if not starts or offset >= starts[-1] + self.lanes:
                starts.append(max(low, min(offset, high + 1 - self.lanes)))
        return starts

    def _picked(self, offsets: Sequence[int], pointer: Callable[[int], str], starts: Sequence[int]) -> str:
        """The lanes from the vectors that begin at ``starts``, or from one of fewer elements that are all there are between the first lane
        and the last. Those of each two vectors are put in their places; where four are joined then, each lane stays in its own."""
        g = self.g
        width = min(self.lanes, max(offsets) - min(offsets) + 1)
        type_ = vector(self.element, width)
        parts = [
            (
                g.out.value(f"load {type_}, ptr {pointer(start)}, align {self.align}"),
                {lane: offset - start for lane, offset in enumerate(offsets) if start <= offset < start + width},
            )
            for start in starts
        ] + [("poison", {})] * (len(starts) == 1)
        while len(parts) > 1:
            parts = [self._joined(type_, width, *parts[n : n + 2]) for n in range(0, len(parts), 2)]
        return parts[0][0]

    def _joined(self, type_: str, width: int, *parts: tuple[str, Mapping[int, int]]) -> tuple[str, Mapping[int, int]]:
        """The vector of the lanes of two of type ``type_``, given where each has what lanes; one alone stays as it is."""
        if len(parts) == 1:
            return parts[0]
        (a, from_a), (b, from_b) = parts
        picks = {**from_a, **{lane: width + place for lane, place in from_b.items()}}
        order = ", ".join(f"i32 {picks.get(lane, 'poison')}" for lane in range(self.lanes))
        value = self.g.out.value(f"shufflevector {type_} {a}, {type_} {b}, <{self.lanes} x i32> <{order}>")
        return value, {lane: lane for lane in picks}

    def single(self, pointers: Sequence[str]) -> str:
        """One element from each pointer: as fast as a gather where that is fast, and twice as fast elsewhere."""
        out, result = self.g.out, "poison"
        for lane, pointer in enumerate(pointers):
            one = out.value(f"load {self.element}, ptr {pointer}, align {self.align}")
            result = out.value(f"insertelement {self.type} {result}, {self.element} {one}, i64 {lane}")
        return result

    def gathered(self, pointers: str, mask: str | None = None) -> str:
        """From a vector of addresses, in the lanes of ``mask``; zero in the others."""
        lanes = self.lanes
        on = vector("i1", lanes), mask or splat("i1", "true", lanes)
        args = [(vector("ptr", lanes), pointers), ("i32", str(self.align)), on, (self.type, "zeroinitializer")]
        return self.g.out.call(f"llvm.masked.gather.{mangled(self.element, lanes)}.v{lanes}p0", self.type, args)

    def under(self, mask: str, offsets: tuple[int, ...], pointer: Callable[[int], str]) -> str | None:
        """Load the lanes that ``mask`` selects, at a constant step, by masked loads that touch no other element; the other lanes are zero.
        None where a gather is as fast."""
        g, lanes = self.g, self.lanes
        step = constant_step(offsets) or 0
        if not 1 < step <= CLOSE or lanes < 4 or not is_maskable(g, self.element, lanes):
            return None
        first, flags, parts = pointer(offsets[0]), vector("i1", lanes), list[tuple[str, Mapping[int, int]]]()
        for start in range(0, step * (lanes - 1) + 1, lanes):
            places = {n: (n * step) - start for n in range(lanes) if start <= n * step < start + lanes}
            lane_at = {place: n for n, place in places.items()}
            order = ", ".join(f"i32 {lane_at.get(place, lanes)}" for place in range(lanes))  # lane ``lanes``: false
            on = g.out.value(f"shufflevector {flags} {mask}, {flags} zeroinitializer, <{lanes} x i32> <{order}>")
            at = g.out.value(f"getelementptr {self.element}, ptr {first}, i64 {start}") if start else first
            args = [("ptr", at), ("i32", str(self.align)), (flags, on), (self.type, "zeroinitializer")]
            parts.append((g.out.call(f"llvm.masked.load.{mangled(self.element, lanes)}.p0", self.type, args), places))
        while len(parts) > 1:
            parts = [self._joined(self.type, lanes, *parts[n : n + 2]) for n in range(0, len(parts), 2)]
        return parts[0][0]

    def by_step(self, index: Expr, pointer: Callable[[str], str], gather: Callable[[], str]) -> str:
        """The lanes of a vector index that leads on by one step, perhaps with jumps, for which it is tested; else by
        ``gather``. ``pointer(n)`` is the address of the element at the int64 index ``n``."""
        step = _main_step(index)
        if step is None:
            return gather()
        if not _jumps(index):
            return self._stepping(self.g.index(first_lane(index)), step, pointer)
        steady, first = _is_steady(self.g, index, step)
        return self.g.choose(steady, lambda: self._stepping(first, step, pointer), gather, self.type)

    def _stepping(self, first: str, step: Expr, pointer: Callable[[str], str]) -> str:
        """The lanes from the int64 index ``first`` on, by ``step``."""
        g, start = self.g, pointer(first)

        def further(offset: str, pointer: str) -> str:
            return g.out.value(f"getelementptr inbounds {self.element}, ptr {pointer}, i64 {offset}")

        if isinstance(step, IntImm):
            offsets = tuple(k * step.value for k in range(self.lanes))
            return self.at(offsets, lambda offset: further(str(offset), start) if offset else start)
        by = g.index(step)

        def single() -> str:
            pointers = [start]
            while len(pointers) < self.lanes:
                pointers.append(further(by, pointers[-1]))
            return self.single(pointers)

        return g.choose(g.out.value(f"icmp eq i64 {by}, 1"), lambda: self.whole(start), single, self.type)


@lru_cache(maxsize=4096)
def constant_step(offsets: tuple[int, ...]) -> int | None:
    """The step between lanes at ``offsets``; None if it varies."""
    first, count = offsets[0], len(offsets)
    step = offsets[1] - first if count > 1 else 0
    steady = tuple(range(first, first + count * step, step)) if step else (first,) * count
    return step if steady == offsets else None


def reversed_lanes(g: Generator, value: str, type_: str, lanes: int) -> str:
    """``value`` with its last lane first."""
    order = ", ".join(f"i32 {k}" for k in reversed(range(lanes)))
    return g.out.value(f"shufflevector {type_} {value}, {type_} poison, <{lanes} x i32> <{order}>")


def _is_steady(g: Generator, index: Expr, step: Expr) -> tuple[str, str]:
    """Whether each lane of a vector index is ``step`` after the one before, and the first, as an int64."""
    lanes, kind, element = index.dtype.lanes, value_type(index.dtype), element_type(index.dtype)
    value = g.in_address(index)
    first = g.out.value(f"extractelement {kind} {value}, i64 0")
    counts = f"<{', '.join(f'{element} {k}' for k in range(lanes))}>"
    by = g.out.splat(element, g.in_address(cast(index.dtype.element, step)), lanes)
    steps = counts if is_const(step, 1) else g.out.value(f"mul {kind} {by}, {counts}")
    wanted = g.out.value(f"add {kind} {g.out.splat(element, first, lanes)}, {steps}")
    same = g.out.value(f"icmp eq {kind} {value}, {wanted}")
    steady = g.out.reduced("and", same, lanes)
    return steady, first if element == "i64" else g.out.value(f"sext {element} {first} to i64")


def _main_step(index: Expr) -> Expr | None:
    """The step by which most lanes of a vector index follow: 1 where some do, else the only other one; None if there is none."""
    steps = _steps(index) or ()
    moving = [s for s in steps if not is_const(s, 0)]
    return next((s for s in moving if is_const(s, 1)), moving[0] if len(moving) == 1 else None)


def _steps(e: Expr) -> tuple[Expr, ...] | None:
    """The steps between lanes of a vector index, but for jumps: wherever a remainder, a minimum or a selection takes another
    piece. None if it need not have such pieces."""
    dtype = e.dtype.element
    if not is_index(dtype):
        return None
    lanes = lane_offsets(e)
    if lanes is not None:
        step = constant_step(lanes[1])
        return None if step is None else (IntImm(step, dtype),)
    if isinstance(e, Ramp):
        return (e.stride,) if e.base.dtype.lanes == 1 else None
    if isinstance(e, (Cast, FloorMod, Mul)):
        return _steps_of_one(e)
    if isinstance(e, (Add, Sub, Min, Max)):
        a, b = _steps(e.a), _steps(e.b)
    elif isinstance(e, Select):
        a, b = _steps(e.true_value), _steps(e.false_value)
    else:
        return None
    if a is None or b is None:
        return None
    found: list[Expr] = [x + y if isinstance(e, Add) else x - y for x in a for y in b]
    found = found if isinstance(e, (Add, Sub)) else [*a, *b]
    return tuple({key(s): s for s in map(simplify, found)}.values())


def _steps_of_one(e: Any) -> tuple[Expr, ...] | None:
    """:func:`_steps` of a cast, a remainder or a product with a number."""
    if isinstance(e, Cast):
        steps = _steps(e.value)
        return steps and tuple(cast(e.dtype.element, s) for s in steps)
    a, b = (e.b, e.a) if isinstance(e.a, Broadcast) and isinstance(e, Mul) else (e.a, e.b)
    steps = _steps(a) if isinstance(b, Broadcast) and b.value.dtype.lanes == 1 else None
    return steps if isinstance(e, FloorMod) or steps is None else tuple(simplify(s * b.value) for s in steps)


def _jumps(e: Expr) -> bool:
    """Whether the lanes of a vector index of :func:`_steps` may take another step between two of them."""
    return any(isinstance(n, (FloorMod, Min, Max, Select)) and n.dtype.lanes > 1 for n in walk(e))
