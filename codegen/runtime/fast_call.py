"""A fast path into compiled code for NumPy arrays of shapes seen before.

Checking a call's arrays in Python costs microseconds, more than a small kernel takes. So the facts that a full check
has established (type, shape, strides, data type, alignment, what is written) are stored in a table, and a few compiled
instructions compare the next call's arrays with it, reading the array objects by the layout of NumPy's C interface. If
anything differs, the call takes the Python path. They are a built-in function, which gets a pointer to its arguments:
``ctypes``, which converts each, takes half a microsecond.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MOST = 8  # arguments
MISMATCH = -1
_HEAD, _EACH = 6, 9  # words of the table before the first argument, and for each
_CALLED = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromLong")  # what compiled instructions call of Python
_TYPE, _DATA, _NDIM, _SHAPE, _STRIDES, _DTYPE, _FLAGS = 8, 16, 24, 32, 40, 56, 64  # bytes into an array object
_WRITEABLE = 0x400
_BYTES = 32  # before the contents of a bytes object
_FASTCALL = 0x80  # a built-in function that gets a pointer to its arguments, and their number


class _Table(bytes):
    """What an array must be like, and ``keep``, what it points to: both live as long as the function that has it."""

    keep: Any


class _Method(ctypes.Structure):
    """``PyMethodDef`` of Python's C interface."""

    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


@functools.cache
def supported() -> bool:
    """Whether array objects have the memory layout that this module assumes."""
    if (
        sys.implementation.name != "cpython"
        or "t" in getattr(sys, "abiflags", "")  # built without the lock of the interpreter
        or hasattr(sys, "getobjects")
    ):
        return False
    probe = np.zeros((3, 5), np.float32)[:, ::2]
    table = _Table(b"contents")
    if ctypes.string_at(id(table) + _BYTES, len(table)) != table:
        return False
    words = {at: ctypes.c_uint64.from_address(id(probe) + at).value for at in (_TYPE, _DATA, _SHAPE, _STRIDES, _DTYPE)}
    if words[_TYPE] != id(np.ndarray) or words[_DATA] != probe.ctypes.data or words[_DTYPE] != id(probe.dtype):
        return False
    if ctypes.c_int32.from_address(id(probe) + _NDIM).value != 2:
        return False
    shape, strides = ((ctypes.c_int64 * 2).from_address(words[at]) for at in (_SHAPE, _STRIDES))
    flags = ctypes.c_int32.from_address(id(probe) + _FLAGS).value
    return tuple(shape) == probe.shape and tuple(strides) == probe.strides and flags == probe.flags.num


def fast_call(
    entry: int,
    arrays: Sequence[np.ndarray],
    written: Sequence[bool],
    alignments: Sequence[int],
    spans: Sequence[tuple[int, int]],
    sizes: bytes,
    disjoint: bool,
) -> Callable[..., int] | None:
    """A function of ``len(arrays)`` arrays that runs ``entry`` if they are like ``arrays``, else returns ``MISMATCH``.

    ``arrays`` have passed all checks. ``spans``: bytes before and after each pointer that belong to the array; with
    ``disjoint`` a written array must overlap no other. ``sizes``: the argument slots after the arrays'. None if there
    is no fast path.
    """
    count = len(arrays)
    if not 1 <= count <= MOST or not supported() or any(type(a) is not np.ndarray for a in arrays):
        return None
    called = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _CALLED]
    words = [entry, id(np.ndarray), len(sizes) // 8, *called]
    keep: list[Any] = []
    for array, writes, align, (below, above) in zip(arrays, written, alignments, spans):
        shape, strides = ((ctypes.c_int64 * max(1, array.ndim))(*what) for what in (array.shape, array.strides))
        keep += [shape, strides, array.dtype]
        words += [id(array.dtype), array.ndim, ctypes.addressof(shape), ctypes.addressof(strides)]
        words += [_WRITEABLE if writes else 0, align - 1, below, above, int(writes and disjoint)]
    table = _Table(struct.pack(f"<{len(words)}q", *words) + sizes)
    method, _ = code = _compiled(count)
    table.keep = keep, code  # two threads may each compile it at first: the cache keeps only the last
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return new(("PyCFunction_NewEx", ctypes.pythonapi))(ctypes.addressof(method), table, None)


@functools.cache
def _compiled(count: int) -> tuple[_Method, Any]:
    """The built-in function of ``count`` arrays, and its code. It compares with the interpreter lock and runs without, as any
    compiled function: the caller keeps the arrays alive."""
    from ..llvm.compile import Loaded, machine, object_code
    from ..llvm.text import ModuleText

    on = machine()
    text = ModuleText(on.cpu, on.features, on.triple, on.width)
    _emit(text, count)
    code, name = Loaded(object_code(text.render(), on)), f"tir_fast_{count}"
    return _Method(name.encode(), code.function(name), _FASTCALL, None), code


def _emit(text: Any, count: int) -> None:
    from ..llvm.text import FunctionText

    out = FunctionText(text, f"tir_fast_{count}", "ptr", ["ptr %self", "ptr %args", "i64 %count"])
    table = out.value(f"getelementptr inbounds i8, ptr %self, i64 {_BYTES}")
    compare = text.declare("memcmp", "i32", ["ptr", "ptr", "i64"])

    def word(index: int, type_: str = "i64") -> str:
        place = out.value(f"getelementptr inbounds i64, ptr {table}, i64 {index}")
        return out.value(f"load {type_}, ptr {place}, align 8")

    def member(k: int, at: int, type_: str) -> str:
        place = out.value(f"getelementptr inbounds i8, ptr {arrays[k]}, i64 {at}")
        return out.value(f"load {type_}, ptr {place}, align 4")

    def require(condition: str) -> None:
        good = out.label("ok")
        out.branch(condition, good, "differs")
        out.start(good)

    save, restore, number = (word(3 + n, "ptr") for n in range(len(_CALLED)))
    require(out.value(f"icmp eq i64 %count, {count}"))
    places = [out.value(f"getelementptr inbounds ptr, ptr %args, i64 {k}") for k in range(count)]
    arrays = [out.value(f"load ptr, ptr {place}, align 8") for place in places]
    data: list[str] = []
    for k in range(count):
        base = _HEAD + _EACH * k
        require(out.value(f"icmp eq i64 {member(k, _TYPE, 'i64')}, {word(1)}"))
        require(out.value(f"icmp eq i64 {member(k, _DTYPE, 'i64')}, {word(base)}"))
        rank = out.value(f"sext i32 {member(k, _NDIM, 'i32')} to i64")
        require(out.value(f"icmp eq i64 {rank}, {word(base + 1)}"))
        bytes_ = out.value(f"shl i64 {rank}, 3")
        for at, index in ((_SHAPE, base + 2), (_STRIDES, base + 3)):
            same = out.value(f"call i32 {compare}(ptr {member(k, at, 'ptr')}, ptr {word(index, 'ptr')}, i64 {bytes_})")
            require(out.value(f"icmp eq i32 {same}, 0"))
        flags = out.value(f"sext i32 {member(k, _FLAGS, 'i32')} to i64")
        needed = word(base + 4)
        require(out.value(f"icmp eq i64 {out.value(f'and i64 {flags}, {needed}')}, {needed}"))
        data.append(member(k, _DATA, "i64"))
        require(out.value(f"icmp eq i64 {out.value(f'and i64 {data[k]}, {word(base + 5)}')}, 0"))
    ends = [[out.value(f"add i64 {data[k]}, {word(_HEAD + _EACH * k + at)}") for at in (6, 7)] for k in range(count)]
    for k in range(count):
        for j in range(k):
            either = out.value(f"or i64 {word(_HEAD + _EACH * k + 8)}, {word(_HEAD + _EACH * j + 8)}")
            apart = [out.value(f"icmp uge i64 {ends[x][0]}, {ends[y][1]}") for x, y in ((k, j), (j, k))]
            fine = out.value(
                f"or i1 {out.value(f'or i1 {apart[0]}, {apart[1]}')}, {out.value(f'icmp eq i64 {either}, 0')}"
            )
            require(fine)
    sizes = word(2)
    slots = out.value(f"alloca i64, i64 {out.value(f'add i64 {sizes}, {count + 1}')}, align 16")
    for k in range(count):
        out.emit(f"store i64 {data[k]}, ptr {out.value(f'getelementptr inbounds i64, ptr {slots}, i64 {k}')}, align 8")
    target = out.value(f"getelementptr inbounds i64, ptr {slots}, i64 {count}")
    source = out.value(f"getelementptr inbounds i64, ptr {table}, i64 {_HEAD + _EACH * count}")
    move = text.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
    out.emit(f"call void {move}(ptr {target}, ptr {source}, i64 {out.value(f'shl i64 {sizes}, 3')}, i1 false)")
    entry = word(0, "ptr")
    thread = out.value(f"call ptr {save}()")
    code = out.value(f"sext i32 {out.value(f'call i32 {entry}(ptr {slots})')} to i64")
    out.emit(f"call void {restore}(ptr {thread})")
    out.ret(f"ptr {out.value(f'call ptr {number}(i64 {code})')}")
    out.start("differs")
    out.ret(f"ptr {out.value(f'call ptr {number}(i64 {MISMATCH})')}")
    out.finish()
