"""Checks of arguments in a saved file: of pointers and sizes, and of tensors that say what they are.

A check is a function of the argument slots that returns 0 or the code of an error. Behind the slots of a call are the address of
the result, if there is one, and three numbers: whether an error has values, what was given, and what was expected.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from tir.aliases import shares_memory
from tir.buffer import Buffer
from tir.dtype import DType
from tir.expr import IntImm, Var
from tir.function import PrimFunc
from tir.interp.dlpack import CPU, MANAGED, PINNED, type_code
from tir.visit import walk

from ..llvm.compile import Machine
from ..llvm.generator import Generator, Program
from ..llvm.memory import from_memory, to_memory
from ..llvm.signature import buffer_alignment, slots_of
from ..llvm.text import FunctionText, ModuleText, own_name
from ..llvm.types import memory_element, value_type, vector

_FIELDS = {"device": (8, "i32"), "ndim": (16, "i32"), "type": (20, "i32"), "shape": (24, "ptr"), "strides": (32, "ptr")}

TENSOR = """
/* A tensor, laid out as DLTensor of DLPack. code: 0 for int, 1 for uint, 2 for float, further ones as there; device_type: 1
 * for the CPU; strides in elements, or a null pointer for a row-major tensor without gaps. */
typedef struct {0} {{
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
}} {0};
"""


def check_name(name: str) -> str:
    """The name, in its module, of what checks the slots of the function ``name``."""
    return f"check.{own_name(name)}"


def tensors_name(name: str) -> str:
    """The name of what checks the tensors in the slots of parameters, and puts their pointers and sizes into the slots."""
    return f"tensors.{own_name(name)}"


def checks(functions: Mapping[str, Any], on: Machine, messages: list[str], held: Container[str] = ()) -> str:
    """LLVM assembly of the checks of every function; their messages are added to ``messages``. The file itself has what the
    parameters ``held`` take."""
    text = ModuleText(on.cpu, on.features, on.triple, on.width)
    program = Program(text, messages=messages)
    for name, function in functions.items():
        _Pointers(program, check_name(name), function.func).emit(function.written)
        _Tensors(program, tensors_name(name), function.func).emit(held)
    return text.render()


class _Check:
    """A function under construction that checks the slots of a call of ``func``."""

    def __init__(self, program: Program, name: str, func: PrimFunc):
        self.func, self.slots = func, slots_of(func)
        self.out = FunctionText(program.text, name, "i32", ["ptr %slots"])
        self.g = Generator(program, self.out, func.name)

    def place(self, k: int) -> str:
        return self.out.value(f"getelementptr inbounds i64, ptr %slots, i64 {k}")

    def load(self, k: int, dtype: DType) -> str:
        value = self.out.value(f"load {vector(memory_element(dtype), dtype.lanes)}, ptr {self.place(k)}, align 8")
        return from_memory(self.g, value, dtype)

    def size(self, e: Any) -> str:
        """An extent or a stride as an int64."""
        if isinstance(e, IntImm):
            return str(e.value)
        value, bits = self.g.plain(e), e.dtype.bits
        extend = "sext" if e.dtype.code == "int" else "zext"
        return value if bits == 64 else self.out.value(f"{extend} i{bits} {value} to i64")

    def require(self, condition: str, message: str, got: str = "", want: str = "") -> None:
        good, bad = self.out.label("ok"), self.out.label("fail")
        self.out.leave_unless(condition, good, bad)
        self.out.start(bad)
        for k, value in enumerate(["1", got, want] if got else []):
            self.out.emit(f"store i64 {value}, ptr {self.place(len(self.slots) + 1 + k)}, align 8")
        self.g.fail(f"{self.func.name}: {message}")
        self.out.start(good)

    def either(self, *conditions: str) -> str:
        found = conditions[0]
        for condition in conditions[1:]:
            found = self.out.value(f"or i1 {found}, {condition}")
        return found

    def finish(self) -> None:
        self.out.ret("i32 0")
        self.out.finish()

    def buffers(self) -> list[tuple[int, Buffer]]:
        return [(k, b) for k, p in enumerate(self.func.params) if (b := self.func.buffer_map.get(p)) is not None]


class _Pointers(_Check):
    """What can be said of pointers and numbers: sizes that are none, null pointers, alignment, overlap."""

    def emit(self, written: frozenset[int]) -> None:
        for k, var in enumerate(self.slots):
            if var not in self.func.buffer_map:
                self.g.env[var] = self.load(k, var.dtype)
        if self.func.ret_type.code != "void":
            result = self.out.value(f"load ptr, ptr {self.place(len(self.slots))}, align 8")
            self.require(self.out.value(f"icmp ne ptr {result}, null"), "`result` is a null pointer")
        boxes = {k: self._one(k, buffer) for k, buffer in self.buffers()}
        for k in boxes if self.func.attrs.get("tir.noalias", True) else ():
            for j in boxes:
                if k in written and k != j and not (j in written and j < k):
                    self._disjoint(k, j, boxes)
        self.finish()

    def _one(self, k: int, buffer: Buffer) -> tuple[str, str]:
        """Check an argument; where it begins and ends, as numbers, which are the same if it has no elements."""
        out = self.out
        extents = [self.size(e) for e in buffer.shape]
        for axis, (value, e) in enumerate(zip(extents, buffer.shape)):
            if not isinstance(e, IntImm):
                fine = out.value(f"icmp sge i64 {value}, 0")
                self.require(fine, f"size {axis} of `{buffer.name}` is negative", value, "0")
        empty = self.either("false", *(out.value(f"icmp eq i64 {value}, 0") for value in extents))
        pointer = out.value(f"load ptr, ptr {self.place(k)}, align 8")
        some = out.value(f"icmp ne ptr {pointer}, null")
        self.require(self.either(some, empty), f"`{buffer.name}` is a null pointer")
        begin = out.value(f"ptrtoint ptr {pointer} to i64")
        aligned = buffer_alignment(buffer)
        rest = out.value(f"and i64 {begin}, {aligned - 1}")
        fine = self.either(out.value(f"icmp eq i64 {rest}, 0"), empty)
        self.require(fine, f"`{buffer.name}` is not aligned to {aligned} bytes")
        size = out.value(f"mul i64 {self._reach(buffer, extents)}, {buffer.dtype.bytes}")
        size = out.value(f"select i1 {empty}, i64 0, i64 {size}")
        return begin, out.value(f"add i64 {begin}, {size}")

    def _reach(self, buffer: Buffer, extents: list[str]) -> str:
        """The number of elements from the first to the last."""
        out, reach = self.out, "1"
        if not buffer.strides:
            for extent in extents:
                reach = out.value(f"mul i64 {reach}, {extent}")
            return reach
        for axis, (extent, e) in enumerate(zip(extents, buffer.strides)):
            stride = self.size(e)
            if not isinstance(e, IntImm):
                fine = out.value(f"icmp sge i64 {stride}, 0")
                self.require(fine, f"stride {axis} of `{buffer.name}` is negative", stride, "0")
            steps = out.value(f"sub i64 {extent}, 1")
            reach = out.value(f"add i64 {reach}, {out.value(f'mul i64 {steps}, {stride}')}")
        return reach

    def _disjoint(self, k: int, j: int, boxes: dict[int, tuple[str, str]]) -> None:
        one, other = (self.func.buffer_map[self.func.params[at]] for at in (k, j))
        (begin, end), (start, stop) = boxes[k], boxes[j]
        if shares_memory(one, other):
            same = self.out.value(f"icmp eq i64 {begin}, {start}")
            self.require(same, f"`{one.name}` and `{other.name}` are declared with one pointer and have two")
            return
        before = self.out.value(f"icmp ule i64 {end}, {start}")
        after = self.out.value(f"icmp ule i64 {stop}, {begin}")
        self.require(
            self.either(before, after, *(self.out.value(f"icmp eq i64 {a}, {b}") for a, b in (boxes[k], boxes[j]))),
            f"`{one.name}` is written and overlaps `{other.name}` in memory",
        )


class _Tensors(_Check):
    """Tensors in place of pointers: their types, shapes and strides are checked, and give the sizes."""

    def emit(self, held: Container[str]) -> None:
        self.giver: dict[Var, str] = {}
        for k, var in enumerate(self.func.params):
            if var not in self.func.buffer_map:
                self.g.env[var] = self.load(k, var.dtype)
        shapes = {buffer: self._read(k, buffer) for k, buffer in self.buffers() if buffer.name not in held}
        for buffer, (shape, strides) in shapes.items():
            self._solve(buffer, shape, strides)
        for buffer, (shape, strides) in shapes.items():
            self._compare(buffer, shape, strides)
        for k, var in enumerate(self.slots[len(self.func.params) :], len(self.func.params)):
            stored = to_memory(self.g, self.g.env[var], var.dtype)
            self.out.emit(f"store {memory_element(var.dtype)} {stored}, ptr {self.place(k)}, align 8")
        self.finish()

    def _field(self, tensor: str, name: str) -> str:
        offset, type_ = _FIELDS[name]
        place = self.out.value(f"getelementptr inbounds i8, ptr {tensor}, i64 {offset}")
        return self.out.value(f"load {type_}, ptr {place}, align 4")

    def _read(self, k: int, buffer: Buffer) -> tuple[list[str], list[str]]:
        """Check what a tensor is, and put its pointer into its slot; its shape and its strides."""
        out, name = self.out, f"`{buffer.name}`"
        tensor = out.value(f"load ptr, ptr {self.place(k)}, align 8")
        self.require(out.value(f"icmp ne ptr {tensor}, null"), f"{name} is a null pointer")
        device, ndim = (self._field(tensor, field) for field in ("device", "ndim"))
        host = self.either(*(out.value(f"icmp eq i32 {device}, {kind}") for kind in (CPU, PINNED, MANAGED)))
        got = out.value(f"sext i32 {device} to i64")
        self.require(host, f"the device_type of {name} is not that of host memory", got, str(CPU))
        got = out.value(f"sext i32 {ndim} to i64")
        same = out.value(f"icmp eq i32 {ndim}, {buffer.ndim}")
        self.require(same, f"the ndim of {name} is another", got, str(buffer.ndim))
        code, bits = type_code(buffer.dtype.element)
        packed = code | bits << 8 | buffer.dtype.lanes << 16
        same = out.value(f"icmp eq i32 {self._field(tensor, 'type')}, {packed}")
        self.require(same, f"{name} is not of type {buffer.dtype}")
        sizes = self._field(tensor, "shape") if buffer.ndim else ""
        shape = [self._entry(sizes, axis) for axis in range(buffer.ndim)]
        data = out.value(f"load ptr, ptr {tensor}, align 8")
        place = out.value(f"getelementptr inbounds i8, ptr {tensor}, i64 40")
        offset = out.value(f"load i64, ptr {place}, align 8")
        pointer = out.value(f"getelementptr i8, ptr {data}, i64 {offset}")
        out.emit(f"store ptr {pointer}, ptr {self.place(k)}, align 8")
        given = self._field(tensor, "strides") if buffer.ndim else ""
        return shape, [self._stride(given, shape, axis) for axis in range(buffer.ndim)]

    def _entry(self, array: str, axis: int) -> str:
        place = self.out.value(f"getelementptr inbounds i64, ptr {array}, i64 {axis}")
        return self.out.value(f"load i64, ptr {place}, align 8")

    def _stride(self, given: str, shape: list[str], axis: int) -> str:
        there = self.out.value(f"icmp ne ptr {given}, null")
        return self.g.choose(there, lambda: self._entry(given, axis), lambda: self._compact(shape, axis), "i64")

    def _compact(self, shape: list[str], axis: int) -> str:
        step = "1"
        for extent in shape[axis + 1 :]:
            step = self.out.value(f"mul i64 {step}, {extent}")
        return step

    def _solve(self, buffer: Buffer, shape: list[str], strides: list[str]) -> None:
        """The sizes that a tensor is the first to give."""
        named = [(f"size {k} of", e, value) for k, (e, value) in enumerate(zip(buffer.shape, shape))]
        named += [(f"stride {k} of", e, value) for k, (e, value) in enumerate(zip(buffer.strides, strides))]
        for what, e, value in named:
            if isinstance(e, Var) and e not in self.g.env:
                narrow = value
                if e.dtype.bits < 64:
                    narrow = self.out.value(f"trunc i64 {value} to {value_type(e.dtype)}")
                    back = self.out.value(f"sext {value_type(e.dtype)} {narrow} to i64")
                    fits = self.out.value(f"icmp eq i64 {back}, {value}")
                    self.require(fits, f"{what} `{buffer.name}` does not fit {e.dtype}")
                self.g.env[e], self.giver[e] = narrow, f"{what} `{buffer.name}`"
        if isinstance(buffer.elem_offset, Var):  # an array starts at its first element
            self.g.env.setdefault(buffer.elem_offset, "0")

    def _compare(self, buffer: Buffer, shape: list[str], strides: list[str]) -> None:
        out = self.out
        for axis, (e, value) in enumerate(zip(buffer.shape, shape)):
            self._equal(f"size {axis} of `{buffer.name}`", e, value, self.size(e), "false")
        if buffer.elem_offset is not None:
            self._equal(
                f"elem_offset of `{buffer.name}`", buffer.elem_offset, "0", self.size(buffer.elem_offset), "false"
            )
        empty = self.either("false", *(out.value(f"icmp eq i64 {value}, 0") for value in shape))
        for axis, value in enumerate(strides):
            single = self.either(out.value(f"icmp eq i64 {shape[axis]}, 1"), empty)
            e = buffer.strides[axis] if buffer.strides else None
            want = self._compact(shape, axis) if e is None else self.size(e)
            self._equal(f"stride {axis} of `{buffer.name}`", e, value, want, single)

    def _equal(self, what: str, e: Any, value: str, want: str, unless: str) -> None:
        if isinstance(e, Var) and self.giver.get(e) == what:
            return
        text = "that of a row-major tensor without gaps" if e is None else f"`{e!r}`"
        by = (
            "".join(f", {self.giver[v]}" for v in walk(e) if isinstance(v, Var) and v in self.giver)
            if e is not None
            else ""
        )
        fine = self.either(self.out.value(f"icmp eq i64 {value}, {want}"), unless)
        self.require(fine, f"{what} is not {text}{by}", value, want)
