"""Arrays beside memory that may not be touched: what is read beyond them ends the process, as it would where no memory follows."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from codegen.calls import Function
from codegen.llvm.signature import buffer_alignment

FILL = 0xA5
_PROTECT = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "mprotect", None)
if _PROTECT is not None:
    _PROTECT.argtypes = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int


def at_page_ends(function: Function, starts: int = 0) -> Callable[..., None]:
    """The function on copies of its arrays that end before a page that may not be touched, aligned to no more than their parameters
    are, or begin behind one, where the bit of their number in ``starts`` is set; those that overlap, as one.

    What they become is copied back; ``AssertionError`` if something was written beside them. Where pages cannot be protected, that
    alone is found.
    """
    buffers = map(function.func.buffer_map.get, function.func.params)
    alignments = [1 if b is None else buffer_alignment(b) for b in buffers]

    def call(*args: Any) -> None:
        given, rooms = list(args), []
        for k, (numbers, low, high) in enumerate(_overlapping(args)):
            size, align = high - low, max(alignments[number] for number in numbers)
            room = _between_pages(size)
            first = 0 if starts >> k & 1 else (len(room) - size) // align * align
            ctypes.memmove(room.ctypes.data + first, low, size)
            rooms.append((numbers, low, size, room, first))
            for number in numbers:
                a = args[number]
                given[number] = np.ndarray(a.shape, a.dtype, room, first + a.ctypes.data - low, a.strides)
        named_in_faults(f"call of {function.name}", lambda: function.on_copies(*given))
        for numbers, low, size, room, first in rooms:
            if (room[:first] != FILL).any() or (room[first + size :] != FILL).any():
                raise AssertionError(f"something was written beside the memory of argument {numbers[0]}")
            ctypes.memmove(low, room.ctypes.data + first, size)

    return call


def named_in_faults(name: str, call: Callable[[], Any]) -> None:
    """The call; where it ends the process, ``name`` is among the places that Python's ``faulthandler`` prints."""
    eval(compile("call()", name, "eval"), {"call": call})  # noqa: S307


def _overlapping(args: Sequence[Any]) -> list[tuple[list[int], int, int]]:
    """The numbers of the arrays that share memory with one another, and where it begins and ends."""
    found: list[tuple[list[int], int, int]] = []
    for number, a in enumerate(args):
        if isinstance(a, np.ndarray) and a.size:
            steps = [(n - 1) * s for n, s in zip(a.shape, a.strides)]
            low = a.ctypes.data + sum(s for s in steps if s < 0)
            one = [number], low, a.ctypes.data + sum(s for s in steps if s > 0) + a.itemsize
            for other in [f for f in found if f[1] < one[2] and one[1] < f[2]]:
                found.remove(other)
                one = other[0] + one[0], min(one[1], other[1]), max(one[2], other[2])
            found.append(one)
    return found


def _between_pages(size: int) -> np.ndarray:
    """Bytes on whole pages, room for ``size``, and beside them pages that may not be touched."""
    page = mmap.PAGESIZE
    inside = -(-size // page) * page
    whole = np.frombuffer(mmap.mmap(-1, inside + 2 * page), np.uint8)
    whole[page:-page] = FILL
    if _PROTECT is not None:
        for guard in (0, page + inside):
            if _PROTECT(whole.ctypes.data + guard, page, 0):
                raise OSError("pages cannot be protected")
    return whole[page:-page]
