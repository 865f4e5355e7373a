"""Functions of a saved file as handlers of XLA's foreign function interface, by which JAX calls them without Python.

A handler takes one record, the call, in version 0 of the interface (``xla/ffi/api/c_api.h``). The parts that it uses are
below; offsets are in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tir.buffer import Buffer
from tir.interp.dlpack import CPU, type_code

from ..llvm.text import symbol

PROTOTYPE = """/* A handler of XLA's foreign function interface: buffers in order for what the function reads, results in order for what it
 * writes, which are zeros before. */
void *{0}(void *call);
"""

_CALL = {"extension": 8, "api": 16, "arguments": 56, "argument": 72, "results": 96, "result": 112}
_VERSION = 32  # in the interface that a call brings along: two numbers
_CREATE_ERROR = 48  # there: the function that makes an error
_BUFFER = {"type": 16, "data": 24, "rank": 32, "sizes": 40}
_METADATA = 1  # the extension that asks for the version and the traits of a handler
_INVALID_ARGUMENT = 3
_TYPES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "bfloat16": 16, "float8_e5m2": 19, "float8_e4m3fn": 20,
}  # fmt: skip


def is_passed(buffer: Buffer) -> bool:
    """Whether XLA has arrays of this type."""
    return str(buffer.dtype) in _TYPES


class Handler:
    """The assembly of the handler ``name``, which calls ``by_tensors`` with a tensor for each of ``arrays``: a buffer, and
    whether it is a result. ``error`` gives the message of a code."""

    def __init__(self, name: str, by_tensors: str, error: str, arrays: Sequence[tuple[Buffer, bool]]):
        self.name, self.by_tensors, self.error = name, by_tensors, error
        self.arrays = arrays
        self.lines: list[str] = []
        self.count = 0

    def text(self) -> str:
        made = sum(is_result for _, is_result in self.arrays)
        self._answer_about_itself()
        api = self._load("ptr", "%call", _CALL["api"])
        for kind, wanted in (("arguments", len(self.arrays) - made), ("results", made)):
            given = self._load("i64", "%call", _CALL[kind])
            self._unless(self._value(f"icmp eq i64 {given}, {wanted}"), "other")
        lists = {one: self._load("ptr", "%call", _CALL["result" if one else "argument"]) for one in (False, True)}
        at = {False: 0, True: 0}
        tensors: list[str] = []
        for buffer, is_result in self.arrays:
            given = self._load("ptr", lists[is_result], 8 * at[is_result])
            at[is_result] += 1
            tensors.append(self._tensor(buffer, given, is_result))
        given = ", ".join(f"ptr {tensor}" for tensor in tensors)
        code = self._value(f"call i32 {symbol(self.by_tensors)}({given})")
        self._unless(self._value(f"icmp eq i32 {code}, 0"), "failed")
        self.lines += ["  ret ptr null", "failed:"]
        self._fail(api, self._value(f"call ptr @{self.error}(i32 {code})"))
        self.lines.append("other:")
        message = f"{self.name} takes {len(self.arrays) - made} buffers and has {made} results"
        constant = f"@{self.name}.message"
        self._fail(api, constant)
        body = "\n".join(self.lines)
        text = f'{constant} = private constant [{len(message) + 1} x i8] c"{message}\\00"\n'
        return f"{text}define ptr {symbol(self.name)}(ptr %call) nounwind {{\n{body}\n}}\n"

    def _value(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}")
        return f"%v{self.count}"

    def _place(self, base: str, offset: int) -> str:
        return self._value(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")

    def _load(self, type_: str, base: str, offset: int) -> str:
        return self._value(f"load {type_}, ptr {self._place(base, offset)}, align 4")

    def _store(self, value: str, base: str, offset: int) -> None:
        self.lines.append(f"  store {value}, ptr {self._place(base, offset)}, align 4")

    def _unless(self, condition: str, otherwise: str) -> None:
        self.count += 1
        self.lines += [f"  br i1 {condition}, label %next{self.count}, label %{otherwise}", f"next{self.count}:"]

    def _answer_about_itself(self) -> None:
        """A call with an extension asks for the version: it is that of the caller, who has all that is used here."""
        extension = self._load("ptr", "%call", _CALL["extension"])
        self._unless(self._value(f"icmp ne ptr {extension}, null"), "run")
        self._unless(self._value(f"icmp eq i32 {self._load('i32', extension, 8)}, {_METADATA}"), "run")
        answer = self._load("ptr", extension, 24)
        version = self._load("i64", self._load("ptr", "%call", _CALL["api"]), _VERSION)
        self._store(f"i64 {version}", answer, 24)
        self._store("i32 0", answer, 32)  # no traits
        self.lines += ["  ret ptr null", "run:"]

    def _tensor(self, buffer: Buffer, given: str, is_result: bool) -> str:
        """The tensor of DLPack of a buffer; one of another type has a type that there is not."""
        dtype, rank, sizes = (
            self._load(t, given, _BUFFER[n]) for t, n in (("i32", "type"), ("i64", "rank"), ("ptr", "sizes"))
        )
        data = self._load("ptr", given, _BUFFER["data"])
        same = self._value(f"icmp eq i32 {dtype}, {_TYPES[str(buffer.dtype)]}")
        code, bits = type_code(buffer.dtype)
        packed = self._value(f"select i1 {same}, i32 {code | bits << 8 | 1 << 16}, i32 -1")
        tensor = self._value("alloca [48 x i8], align 8")
        short = self._value(f"trunc i64 {rank} to i32")
        for offset, value in enumerate(
            (f"ptr {data}", f"i64 {CPU}", f"i32 {short}", f"ptr {sizes}", "ptr null", "i64 0")
        ):
            self._store(value, tensor, 8 * offset)
        self._store(f"i32 {packed}", tensor, 20)
        if is_result:
            self._clear(
                buffer, data, sizes, self._value(f"and i1 {same}, {self._value(f'icmp eq i64 {rank}, {buffer.ndim}')}")
            )
        return tensor

    def _clear(self, buffer: Buffer, data: str, sizes: str, fits: str) -> None:
        """Zeros in a result, if it is of the type and rank of the function's."""
        self.count += 1
        clear, after = f"clear{self.count}", f"cleared{self.count}"
        self.lines += [f"  br i1 {fits}, label %{clear}, label %{after}", f"{clear}:"]
        total = str(buffer.dtype.bytes)
        for axis in range(buffer.ndim):
            total = self._value(f"mul i64 {total}, {self._load('i64', sizes, 8 * axis)}")
        self.lines.append(f"  call void @llvm.memset.p0.i64(ptr {data}, i8 0, i64 {total}, i1 false)")
        self.lines += [f"  br label %{after}", f"{after}:"]

    def _fail(self, api: str, message: str) -> None:
        error = self._value("alloca [32 x i8], align 8")
        for offset, value in enumerate(("i64 32", "ptr null", f"ptr {message}", f"i32 {_INVALID_ARGUMENT}")):
            self._store(value, error, 8 * offset)
        create = self._load("ptr", api, _CREATE_ERROR)
        self.lines.append(f"  ret ptr {self._value(f'call ptr {create}(ptr {error})')}")
