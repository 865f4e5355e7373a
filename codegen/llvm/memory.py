"""Addresses, loads and stores: scalar, vector, strided (gather, scatter) and masked.

Indices may be flat (one per access, after flattening) or one per axis; a buffer's strides and offset apply to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import add
from typing import Any

from tir.aliases import shares_memory
from tir.arith import Analyzer
from tir.arith.linear import is_index, linear
from tir.arith.strided_lanes import first_lane, lane_offsets
from tir.buffer import Buffer
from tir.dtype import DType
from tir.expr import Add, BufferLoad, Expr, IntImm, Sub, as_expr, constant
from tir.node import cached_property, once
from tir.transform.layout import dot

from .generator import Generator, expr_rule
from .types import element_type, mangled, memory_element, splat, value_type, vector
from .vector_loads import Elements, constant_step, part_of, reversed_lanes


@once
def element_strides(buffer: Buffer) -> Sequence[Expr | int]:
    """The distance in elements between adjacent indices of each axis."""
    if buffer.strides:
        return [s.value if isinstance(s, IntImm) else s for s in buffer.strides]
    strides: list[Expr | int] = []
    step: Any = 1
    for size in reversed(buffer.shape):
        strides.append(step)
        step = (size.value if isinstance(size, IntImm) else size) * step
    return strides[::-1]


class Access:
    """The location of a load or store: the index of its first lane, and how far the others are, or a vector of indices."""

    def __init__(self, g: Generator, buffer: Buffer, indices: tuple[Expr, ...], is_made: bool = True):
        self.g, self.buffer, self.indices = g, buffer, indices
        self.is_made = is_made  # of an address alone it is not known that it is in bounds
        self.constant = 0  # of the index, beside ``first``
        lanes_of = [i.dtype.lanes for i in indices]
        self.lanes = max(lanes_of, default=1)
        if buffer.dtype.lanes > 1 and self.lanes > 1:
            raise g.error(f"vector index into `{buffer.name}`, whose elements are {buffer.dtype}")
        strides = element_strides(buffer)
        if len(strides) != len(indices):
            raise g.error(f"`{buffer.name}` has {len(strides)} axes and is indexed with {len(indices)}")
        self.offsets: tuple[int, ...] | None = (0,) * self.lanes  # of each lane from the first
        self.vector: str | None = None
        offsets = [] if buffer.elem_offset is None else [g.index(buffer.elem_offset)]
        vectors: list[str] = []
        for index, lanes, stride in zip(indices, lanes_of, strides):
            found = (index, ()) if lanes == 1 else lane_offsets(index)
            if found is not None and (isinstance(stride, int) or not any(found[1])):
                first, shifts = found
                if isinstance(stride, int):
                    first, constant = _apart(first)
                    self.constant += constant * stride
                    if any(shifts):
                        moved = shifts if stride == 1 else tuple(n * stride for n in shifts)
                        self.offsets = tuple(map(add, self.offsets, moved)) if any(self.offsets) else moved
                offsets.append(self._scaled(g.index(first, found[0]), stride, 1))
            else:
                vectors.append(self._scaled(g.index(index), stride, lanes))
        self.first = self._sum(offsets, 1)
        if vectors:
            self.vector = self._sum([self._from_first(), *vectors], self.lanes)
            self.offsets = None

    @cached_property
    def step(self) -> int | None:
        """The step from each lane to the next; None if that varies, or is not constant."""
        return None if self.offsets is None else constant_step(self.offsets)

    @property
    def is_own(self) -> bool:
        """Whether the element, or neighbouring lanes, are of an allocation of this thread, whatever a condition on them gives."""
        dtype, count = self.g.own.get(self.buffer.data, (None, 0))
        if dtype != self.buffer.dtype or self.buffer.elem_offset is not None or not (self.lanes == 1 or self.step == 1):
            return False
        first = dot([first_lane(i) for i in self.indices], [as_expr(s) for s in element_strides(self.buffer)])
        return all(self.g.analyzer.can_prove(c) for c in (first >= 0, first + self.lanes <= count))

    def around(self, step: int) -> tuple[int, int] | None:
        """How many elements before the lane that is first in memory, and after the last, a run of whole multiples of ``step`` has, but for
        those at its end that the buffer may not have; None where it is not known to have the others. Lanes of neighbours are of the same run."""
        size = prod(constant(s) or 0 for s in self.buffer.shape)
        if self.offsets is None or self.buffer.strides or self.buffer.elem_offset is not None or not size:
            return None
        first = dot([first_lane(i) for i in self.indices], [as_expr(s) for s in element_strides(self.buffer)])
        low, high = min(self.offsets), max(self.offsets)
        coefficient, base = Analyzer().modular(first)
        least, most = self.g.analyzer.bound(first)
        if coefficient % step == 0:  # each multiple that is begun begins in the buffer
            before = (base + low) % step
            after = (size - 1 - before) % step
        else:
            before, after = (linear(first).const + low) % step, 0
            if least is None or least + low < before:
                return None
        if most is not None:
            after = max(after, size - 1 - high - most)
        return before, min(after, step - 1 - before)

    def _from_first(self) -> str:
        """The vector of the indices of lanes at constant offsets."""
        base = self.g.out.splat("i64", self._sum([self.first, str(self.constant)], 1), self.lanes)
        if not any(self.offsets):  # type: ignore[arg-type]
            return base
        steps = ", ".join(f"i64 {offset}" for offset in self.offsets)  # type: ignore[union-attr]
        return self.g.out.value(f"add nsw {vector('i64', self.lanes)} {base}, <{steps}>")

    def _scaled(self, index: str, stride: Expr | int, lanes: int) -> str:
        if stride == 1 if isinstance(stride, int) else False:
            return index
        if isinstance(stride, int):
            if not index.startswith(("%", "splat")):
                return str(int(index) * stride)
            factor = splat("i64", str(stride), lanes)
        else:
            factor = self.g.out.splat("i64", self.g.index(stride), lanes)
        return self.g.out.value(f"mul nsw {vector('i64', lanes)} {index}, {factor}")

    def _sum(self, parts: list[str], lanes: int) -> str:
        if len(parts) == 1:
            return parts[0]
        type_ = vector("i64", lanes)
        constant = sum(int(p) for p in parts if not p.startswith(("%", "splat"))) if lanes == 1 else 0
        named = [p for p in parts if p.startswith(("%", "splat"))]
        if not named:
            return str(constant)
        total = named[0]
        for part in named[1:]:
            total = self.g.out.value(f"add nsw {type_} {total}, {part}")
        return total if constant == 0 else self.g.out.value(f"add nsw {type_} {total}, {constant}")

    def pointer(self, offset: int = 0) -> str:
        """The address of the first lane, ``offset`` elements further: in a block, from another one at a constant distance, if that is in bounds."""
        g, dtype, out = self.g, self.buffer.dtype, self.g.out
        base, constant = g.expr(self.buffer.data), self.constant + offset
        element = f"[{dtype.lanes} x {memory_element(dtype)}]" if dtype.lanes > 1 else memory_element(dtype)
        place = (base, element, self.first)
        near, at = out.places.get(place, (base, 0))
        index = str(constant - at) if near is not base else self._sum([self.first, str(constant)], 1)
        if index == "0":
            return near
        made = out.value(f"getelementptr inbounds {element}, ptr {near}, i64 {index}")
        is_sure = self.is_made and not (g.mask or g.speculative or out.terminated)
        if near is base and is_sure and self.first.startswith("%"):
            out.places[place] = made, constant
        return made

    def element(self, index: str) -> str:
        """The address of the element at an int64 index, from the buffer's offset on."""
        base, place = self.g.expr(self.buffer.data), self._sum([self.first, str(self.constant), index], 1)
        return self.g.out.value(f"getelementptr inbounds {memory_element(self.buffer.dtype)}, ptr {base}, i64 {place}")

    def pointers(self) -> str:
        """A vector of the addresses of all lanes."""
        g = self.g
        base = g.expr(self.buffer.data)
        index = self._from_first() if self.vector is None else self.vector
        element = memory_element(self.buffer.dtype)
        return g.out.value(f"getelementptr inbounds {element}, ptr {base}, {vector('i64', self.lanes)} {index}")


def _apart(index: Expr) -> tuple[Expr, int]:
    """An index without its constant, and that: one computation serves all indices that differ in it alone."""
    if type(index) in _SUMS and type(index.b) is IntImm and is_index(index.dtype):
        return index.a, index.b.value if type(index) is Add else -index.b.value
    return index, 0


_SUMS = {Add, Sub}


def from_memory(g: Generator, value: str, dtype: DType) -> str:
    """Convert a loaded operand from its memory type to its value type."""
    stored, wanted = vector(memory_element(dtype), dtype.lanes), value_type(dtype)
    if stored == wanted:
        return value
    if dtype.is_bool:
        return g.out.value(f"icmp ne {stored} {value}, {splat('i8', '0', dtype.lanes)}")
    return g.out.value(f"trunc {stored} {value} to {wanted}")


def to_memory(g: Generator, value: str, dtype: DType) -> str:
    """Convert a value to its memory type."""
    stored, have = vector(memory_element(dtype), dtype.lanes), value_type(dtype)
    if stored == have:
        return value
    return g.out.value(f"{'sext' if dtype.code == 'int' else 'zext'} {have} {value} to {stored}")


def alignment(dtype: DType) -> int:
    """The alignment in bytes of every element: that of one lane."""
    return dtype.element.bytes


@expr_rule(BufferLoad)
def _load(g: Generator, e: BufferLoad) -> str:
    access = Access(g, e.buffer, e.indices)
    around, g.out.source = g.out.source, e.buffer.data
    value = _loaded(g, e, access)
    g.out.source = around
    return value


def _loaded(g: Generator, e: BufferLoad, access: Access) -> str:
    """The value of a load."""
    dtype, align = e.buffer.dtype, alignment(e.buffer.dtype)
    element, lanes = memory_element(dtype), access.lanes
    in_force = None if e in g.speculatable else g.mask
    if lanes == 1:
        type_ = vector(element, dtype.lanes)

        def read() -> str:
            return g.out.value(f"load {type_}, ptr {access.pointer()}, align {align}")

        if in_force is not None and not access.is_own:  # the address is known to be valid only if some lane is active
            zero = "zeroinitializer" if dtype.lanes > 1 else {"ptr": "null"}.get(element, _zero(element))
            return from_memory(g, g.choose(g.any_lane(in_force, g.mask_lanes), read, lambda: zero, type_), dtype)
        return from_memory(g, read(), dtype)
    type_, result = vector(element, lanes), dtype.with_lanes(lanes)
    mask = in_force if g.mask_lanes == lanes and not access.is_own else None
    vector_of = Elements(g, element, lanes, align, shares_memory(e, g.own))
    if mask is None and access.offsets is not None:
        return from_memory(g, vector_of.at(access.offsets, access.pointer, access.around), result)
    if access.step == 1:
        on = vector("i1", lanes), mask or ""
        args = [("ptr", access.pointer()), ("i32", str(align)), on, (type_, "zeroinitializer")]
        return from_memory(g, g.out.call(f"llvm.masked.load.{mangled(element, lanes)}.p0", type_, args), result)

    if mask is not None and access.offsets is not None:
        found = vector_of.under(mask, access.offsets, access.pointer)
        if found is not None:
            return from_memory(g, found, result)

    def gather() -> str:
        return vector_of.gathered(access.pointers(), mask)

    if mask is None and len(e.indices) == 1 and not e.buffer.strides:
        return from_memory(g, vector_of.by_step(e.indices[0], access.element, gather), result)
    return from_memory(g, gather(), result)


def _zero(element: str) -> str:
    return "0" if element.startswith("i") else "0xH0000" if element == "half" else "0.0"


def store(g: Generator, buffer: Buffer, indices: tuple[Expr, ...], value: Expr) -> None:
    """``buffer[indices] = value``; a scalar stored to a vector index goes to every lane."""
    text = g.plain(value)
    if g.later is None:
        _put(g, buffer, indices, value, text)
    else:
        g.later.append(lambda: _put(g, buffer, indices, value, text))


def _put(g: Generator, buffer: Buffer, indices: tuple[Expr, ...], value: Expr, text: str) -> None:
    """Store ``value``, which is computed as ``text``."""
    access = Access(g, buffer, indices)
    dtype, align = buffer.dtype, alignment(buffer.dtype)
    element, lanes = memory_element(dtype), access.lanes
    whole = dtype.with_lanes(dtype.lanes * lanes)
    if value.dtype.element is not dtype.element:
        raise g.error(f"`{buffer.name}` holds {dtype} and is stored a {value.dtype}")
    if value.dtype.lanes != whole.lanes:
        if value.dtype.lanes != 1:
            raise g.error(f"storing {value.dtype.lanes} lanes to {whole.lanes} elements of `{buffer.name}`")
        text = g.out.splat(element_type(dtype), text, whole.lanes)
    text = to_memory(g, text, whole)
    type_ = vector(element, whole.lanes)
    if lanes == 1:
        if g.mask is not None:
            raise g.error(f"scalar store to `{buffer.name}` under a vector condition")
        g.store(f"store {type_} {text}, ptr {access.pointer()}, align {align}", buffer.data)
        return
    mask = g.mask if g.mask_lanes == lanes else None
    flags = vector("i1", lanes)
    if mask is not None and access.is_own:  # as a whole vector it stays in a register
        kept = g.out.value(f"load {type_}, ptr {access.pointer()}, align {align}")
        text, mask = g.out.value(f"select {flags} {mask}, {type_} {text}, {type_} {kept}"), None
    if access.step == 1 and mask is None:
        size = whole.lanes * dtype.element.bytes
        least = g.streamed.get(buffer.data.name)
        if least is not None and least <= size and size in (16, 32, 64):
            _stream(g, type_, text, access.pointer(), (size, least), align)
        elif dtype.lanes == 1 and buffer.data not in g.own and (part := part_of(g, element, lanes)):
            padded = g.out.value(f"shufflevector {type_} {text}, {type_} poison, {part.order(part.lanes)}")
            args = [(part.type, padded), ("ptr", access.pointer()), ("i32", str(align)), (part.mask_type, part.mask)]
            g.out.call(f"llvm.masked.store.{mangled(element, part.lanes)}.p0", "void", args)
        else:
            g.store(f"store {type_} {text}, ptr {access.pointer()}, align {align}", buffer.data)
    elif access.step == -1 and mask is None:
        turned = reversed_lanes(g, text, type_, lanes)
        g.store(f"store {type_} {turned}, ptr {access.pointer(1 - lanes)}, align {align}", buffer.data)
    elif access.step == 1:
        if g.out.truncations:  # constant masks of narrowed integers are compiled wrongly: see loops.py
            known = g.out.value(f"icmp ne i32 {g.out.value(g.out.hidden('i32', '1'))}, 0")
            mask = g.out.value(f"and {flags} {mask}, {g.out.splat('i1', known, lanes)}")
        args = [(type_, text), ("ptr", access.pointer()), ("i32", str(align)), (flags, mask or "")]
        g.out.call(f"llvm.masked.store.{mangled(element, lanes)}.p0", "void", args)
    elif mask is None and access.offsets is not None:
        for lane, offset in enumerate(access.offsets):
            one = g.out.value(f"extractelement {type_} {text}, i64 {lane}")
            g.store(f"store {element} {one}, ptr {access.pointer(offset)}, align {align}", buffer.data)
    else:
        on = flags, mask or splat("i1", "true", lanes)
        args = [(type_, text), (vector("ptr", lanes), access.pointers()), ("i32", str(align)), on]
        g.out.call(f"llvm.masked.scatter.{mangled(element, lanes)}.v{lanes}p0", "void", args)


def _stream(g: Generator, type_: str, text: str, pointer: str, pieces: tuple[int, int], align: int) -> None:
    """A non-temporal store: in one piece if the address is aligned to it; else in pieces of 16 bytes, if those are
    allowed and aligned (the processor combines them to cache lines); else an ordinary store."""
    out, size = g.out, pieces[0]
    address = out.value(f"ptrtoint ptr {pointer} to i64")
    note = f"!nontemporal {out.module.meta('!{i32 1}')}"
    end = out.label("stored")
    for piece in sorted({*pieces}, reverse=True):
        low = out.value(f"and i64 {address}, {piece - 1}")
        aligned, other = out.label("aligned"), out.label("unaligned")
        out.branch(out.value(f"icmp eq i64 {low}, 0"), aligned, other)
        out.start(aligned)
        if piece == size:
            out.emit(f"store {type_} {text}, ptr {pointer}, align {size}, {note}")
        else:
            whole = out.value(f"bitcast {type_} {text} to <{size // 8} x i64>")
            for at in range(0, size, 16):
                order = f"<2 x i32> <i32 {at // 8}, i32 {at // 8 + 1}>"
                half = out.value(f"shufflevector <{size // 8} x i64> {whole}, <{size // 8} x i64> poison, {order}")
                place = out.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {at}")
                out.emit(f"store <2 x i64> {half}, ptr {place}, align 16, {note}")
        out.jump(end)
        out.start(other)
    out.emit(f"store {type_} {text}, ptr {pointer}, align {align}")
    out.start(end)
