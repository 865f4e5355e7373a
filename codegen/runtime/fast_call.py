"""A fast path into compiled code for NumPy arrays of shapes seen before.

Checking a call's arrays in Python costs microseconds, more than a small kernel takes. So the facts that a full check
has established (type, shape, strides, data type, alignment, what is written) are stored in a table, and a few compiled
instructions compare the next call's arrays with it, reading the array objects by the layout of NumPy's C interface. If
anything differs, the call takes the Python path.
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
_HEAD, _EACH = 3, 9  # words of the table before the first argument, and for each
_TYPE, _DATA, _NDIM, _SHAPE, _STRIDES, _DTYPE, _FLAGS = 8, 16, 24, 32, 40, 56, 64  # bytes into an array object
_WRITEABLE = 0x400


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
    words = [entry, id(np.ndarray), len(sizes) // 8]
    keep: list[Any] = []
    for array, writes, align, (below, above) in zip(arrays, written, alignments, spans):
        shape, strides = ((ctypes.c_int64 * max(1, array.ndim))(*what) for what in (array.shape, array.strides))
        keep += [shape, strides, array.dtype]
        words += [id(array.dtype), array.ndim, ctypes.addressof(shape), ctypes.addressof(strides)]
        words += [_WRITEABLE if writes else 0, align - 1, below, above, int(writes and disjoint)]
    packed = struct.pack(f"<{len(words)}q", *words) + sizes
    table = ctypes.create_string_buffer(packed, len(packed))
    run = _compiled(count)
    call = functools.partial(run, ctypes.c_void_p(ctypes.addressof(table)))
    call.keep = (keep, table)  # type: ignore[attr-defined]  (what the table points to lives as long as the call)
    return call


@functools.cache
def _compiled(count: int) -> Callable[..., int]:
    """Runs without the interpreter lock, as any compiled function: the caller keeps the arrays alive."""
    from ..llvm.compile import Loaded, machine, object_code
    from ..llvm.text import ModuleText

    on = machine()
    text = ModuleText(on.cpu, on.features, on.triple, on.width)
    _emit(text, count)
    code = Loaded(object_code(text.render(), on))
    run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *[ctypes.py_object] * count)(
        code.function(f"tir_fast_{count}")
    )
    run.code = code  # type: ignore[attr-defined]  (two threads may each make one at first: the cache keeps only the last)
    return run


def _emit(text: Any, count: int) -> None:
    from ..llvm.text import FunctionText

    out = FunctionText(text, f"tir_fast_{count}", "i32", ["ptr %table", *(f"ptr %a{k}" for k in range(count))])
    compare = text.declare("memcmp", "i32", ["ptr", "ptr", "i64"])

    def word(index: int, type_: str = "i64") -> str:
        place = out.value(f"getelementptr inbounds i64, ptr %table, i64 {index}")
        return out.value(f"load {type_}, ptr {place}, align 8")

    def member(k: int, at: int, type_: str) -> str:
        place = out.value(f"getelementptr inbounds i8, ptr %a{k}, i64 {at}")
        return out.value(f"load {type_}, ptr {place}, align 4")

    def require(condition: str) -> None:
        good = out.label("ok")
        out.branch(condition, good, "differs")
        out.start(good)

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
    source = out.value(f"getelementptr inbounds i64, ptr %table, i64 {_HEAD + _EACH * count}")
    move = text.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
    out.emit(f"call void {move}(ptr {target}, ptr {source}, i64 {out.value(f'shl i64 {sizes}, 3')}, i1 false)")
    entry = word(0, "ptr")
    out.ret(f"i32 {out.value(f'call i32 {entry}(ptr {slots})')}")
    out.start("differs")
    out.ret(f"i32 {MISMATCH}")
    out.finish()
