"""Buffers: pointers in the kernel, loads, stores, addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir.aliases import shares_memory
from tir.buffer import Buffer
from tir.dtype import DType
from tir.expr import Add, BufferLoad, Call, Expr, IntImm, Ramp, Var, is_const
from tir.levels import is_fragment
from tir.stmt import BufferStore, DeclBuffer, LetStmt
from tir.transform.layout import dot, strides_of
from tir.visit import walk

from .expr import bare, declare_type
from .generator import Generator, expr_rule

WARP = 32
_ADDED_IN_PLACE = ("uint32", "uint64", "float32", "float64")  # the sum of signed integers may overflow


@dataclass
class Place:
    """What a pointer variable of the IR is in C.

    ``element``: the type it points to. ``const``: nothing is written through it. ``constant``: nothing writes the memory
    while the kernel runs (:mod:`codegen.cuda.promises`). ``lanes_of_warp``: warp memory held in
    registers, with that many elements per lane (0: ordinary memory). ``aligned``: the alignment in bytes that accesses
    rely on. ``scalar``: a variable instead of an array of one element.
    """

    name: str
    element: DType
    scope: str = ""
    const: bool = False
    constant: bool = False
    lanes_of_warp: int = 0
    aligned: int = 1
    scalar: bool = False

    def text(self, g: Generator) -> str:
        return self.name


def place_of(g: Generator, data: Any) -> Place:
    found = g.pointers.get(data)
    if found is None:
        raise g.error(f"pointer `{getattr(data, 'name', data)}` is not allocated")
    return found


def base_of(g: Generator, buffer: Buffer) -> str:
    """Text of a pointer to the first element of ``buffer``."""
    alias = g.names.get(buffer)
    if alias is not None:
        return alias
    place = place_of(g, buffer.data)
    text = place.name
    if place.element is not buffer.dtype:
        text = f"(({'const ' * place.const}{declare_type(g, buffer.dtype)}*){text})"
    if buffer.elem_offset is not None and not is_const(buffer.elem_offset, 0):
        text = f"({text} + {g.expr(buffer.elem_offset)})"
    return text


def flat_index(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The flat index of an access: row-major, or by the buffer's strides."""
    return indices[0] if len(indices) == 1 and not buffer.strides else dot(indices, strides_of(buffer))


def own_index(place: Place, index: Expr) -> Expr:
    """The register in which a lane holds element ``index`` of warp memory, numbered by fragment, then by element."""
    each = place.lanes_of_warp
    return index // (WARP * each) * each + index % each


def own_pointer(g: Generator, place: Place, offset: Expr) -> str:
    from tir.arith import simplify

    return plus(place.name, g.expr(simplify(own_index(place, offset))))


def _resolve(g: Generator, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[str, Expr]:
    index = flat_index(buffer, indices)
    place = place_of(g, buffer.data)
    if is_fragment(place.scope):
        raise g.error(f"`{buffer.name}` is a tensor-core fragment ({place.scope}): only wmma operations touch it")
    if place.lanes_of_warp:
        if buffer.elem_offset is not None:
            index = index + buffer.elem_offset
        from tir.arith import simplify

        if isinstance(index, Ramp):
            return place.name, Ramp(simplify(own_index(place, index.base)), index.stride, index.lanes)
        return place.name, simplify(own_index(place, index))
    return base_of(g, buffer), index


def _alignment(g: Generator, buffer: Buffer, index: Ramp, lanes: int) -> int:
    """How many adjacent elements of a vector access may be one access: as many as the proved alignment allows."""
    most = max(1, 16 // buffer.dtype.bytes)
    size = g.multiple_of(index.base, min(most, lanes & -lanes))
    if buffer.elem_offset is not None:
        size = min(size, g.multiple_of(buffer.elem_offset, size))
    place = place_of(g, buffer.data)
    place.aligned = max(place.aligned, size * buffer.dtype.bytes)
    return size


def _whole(size: int, lanes: int, element: DType) -> bool:
    return lanes & (lanes - 1) == 0 and size >= min(lanes, max(1, 16 // element.bytes))


def _is_run(index: Expr, buffer: Buffer) -> bool:
    return isinstance(index, Ramp) and is_const(index.stride, 1) and buffer.dtype.lanes == 1


@expr_rule(BufferLoad)
def _load(g: Generator, e: BufferLoad) -> str:
    base, index = _resolve(g, e.buffer, e.indices)
    if index.dtype.lanes == 1:
        declare_type(g, e.buffer.dtype)
        return base if place_of(g, e.buffer.data).scalar else f"{base}[{bare(g.in_address(index))}]"
    declare_type(g, e.dtype)
    if _is_run(index, e.buffer):
        assert isinstance(index, Ramp)
        size = _alignment(g, e.buffer, index, index.lanes)
        address = f"&{base}[{bare(g.in_address(index.base))}]"
        if _whole(size, index.lanes, e.buffer.dtype):
            return f"*(const {declare_type(g, e.dtype)}*){address}"
        return f"{g.need('load_lanes')}<{index.lanes}, {size}>({address})"
    if e.buffer.dtype.lanes > 1:
        raise g.error(f"`{e!r}`: vectors of vectors have no CUDA spelling; lower it first")
    return f"{g.need('gather')}({base}, {g.expr(index)})"


def store(g: Generator, buffer: Buffer, indices: tuple[Expr, ...], value: Expr) -> str:
    """The statement that stores ``value``."""
    base, index = _resolve(g, buffer, indices)
    declare_type(g, buffer.dtype)
    if index.dtype.lanes == 1:
        target = base if place_of(g, buffer.data).scalar else f"{base}[{bare(g.in_address(index))}]"
        if isinstance(value, Add) and isinstance(value.a, BufferLoad) and str(value.dtype) in _ADDED_IN_PLACE:
            if g.expr(value.a) == target:
                return f"{target} += {bare(g.expr(value.b))};"
        return f"{target} = {bare(g.expr(value))};"
    text = g.expr(value)
    if _is_run(index, buffer):
        assert isinstance(index, Ramp)
        size = _alignment(g, buffer, index, index.lanes)
        address = f"&{base}[{bare(g.in_address(index.base))}]"
        if _whole(size, index.lanes, buffer.dtype):
            return f"*({declare_type(g, value.dtype)}*){address} = {bare(text)};"
        return f"{g.need('store_lanes')}<{size}>({address}, {bare(text)});"
    if buffer.dtype.lanes > 1:
        raise g.error(f"a store of vectors of vectors to `{buffer.name}` has no CUDA spelling; lower it first")
    return f"{g.need('scatter')}({base}, {g.expr(index)}, {bare(text)});"


def pointer(g: Generator, e: Any, offset: Expr | None = None) -> str:
    """The address of an operator's pointer argument, plus ``offset`` elements."""
    if isinstance(e, Call) and e.op == "address_of":
        load = _addressed(g, e)
        index = flat_index(load.buffer, load.indices)
        if isinstance(index, Ramp):
            index = index.base
        place = place_of(g, load.buffer.data)
        if place.lanes_of_warp:
            total = index if offset is None else index + offset
            return own_pointer(g, place, total)
        text = base_of(g, load.buffer)
        return plus(text, _sum(g, index, offset))
    if isinstance(e, Call) and e.op == "tvm_access_ptr":
        kind, data, first = e.args[0], e.args[1], e.args[2]
        place = place_of(g, data)
        total = first if offset is None else first + offset
        if place.lanes_of_warp:
            return own_pointer(g, place, total)
        text = place.name
        if kind.dtype is not place.element and kind.dtype.code != "void":
            text = f"(({'const ' * place.const}{declare_type(g, kind.dtype)}*){text})"
        return plus(text, g.expr(total))
    if isinstance(e, Var) and e in g.pointers:
        place = g.pointers[e]
        if place.lanes_of_warp:
            return own_pointer(g, place, IntImm(0) if offset is None else offset)
        return plus(place.name, "0" if offset is None else g.expr(offset))
    text = g.expr(e)
    return text if offset is None or is_const(offset, 0) else f"{text} + {g.expr(offset)}"


def _addressed(g: Generator, e: Call) -> BufferLoad:
    """The element that ``address_of`` is of. Raises ``BuildError`` for a value."""
    if not isinstance(e.args[0], BufferLoad):
        raise g.error(f"`{e!r}`: address_of takes an element of a buffer")
    return e.args[0]


def _sum(g: Generator, a: Expr, b: Expr | None) -> str:
    from tir.arith import simplify

    return g.expr(a if b is None or is_const(b, 0) else simplify(a + b))


def plus(text: str, offset: str) -> str:
    return text if offset == "0" else f"&{text}[{bare(offset)}]"


def is_scalar(var: Var, element: DType, body: Any) -> bool:
    """Whether memory of one element can be a C variable: it is only loaded and stored, as ``element``."""
    for node in walk(body):
        if isinstance(node, (BufferLoad, BufferStore)) and shares_memory(node, {var}):
            plain = node.buffer.dtype is element and node.buffer.elem_offset is None
            if not plain or any(i.dtype.lanes > 1 for i in node.indices):
                return False
        elif isinstance(node, DeclBuffer) and shares_memory(node, {var}) and node.buffer.dtype is not element:
            return False
        elif isinstance(node, Call):
            if any(a is var for a in node.args):
                return False
            if node.op == "address_of" and isinstance(node.args[0], BufferLoad) and shares_memory(node.args[0], {var}):
                return False
        elif isinstance(node, LetStmt) and node.value is var:
            return False
    return True


def element_of(g: Generator, e: Any) -> DType:
    """The element type that a pointer argument points to."""
    if isinstance(e, Call) and e.op == "address_of":
        return _addressed(g, e).buffer.dtype
    if isinstance(e, Call) and e.op == "tvm_access_ptr":
        return e.args[0].dtype if e.args[0].dtype.code != "void" else place_of(g, e.args[1]).element
    if isinstance(e, Var):
        return place_of(g, e).element
    raise g.error(f"`{e!r}` is no pointer into a buffer")


def data_of(e: Any) -> Var | None:
    """The pointer variable behind a pointer argument; None for another value."""
    if isinstance(e, Call) and e.op == "address_of":
        return e.args[0].buffer.data if isinstance(e.args[0], BufferLoad) else None
    if isinstance(e, Call) and e.op == "tvm_access_ptr":
        e = e.args[1]
    return e if isinstance(e, Var) else None
