"""How each architecture writes addresses into code and data, and what its system's loader writes at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tir.errors import BuildError

_LOW_12 = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # of an addition, and of loads and stores of 1 to 16 bytes


@dataclass(frozen=True)
class Architecture:
    """``page``: the largest page of memory. Types of relocations: ``absolute`` of a whole address; those that ``calls``
    a function, and those through a ``table`` of addresses; ``data`` and ``relative`` are for the loader. ``write`` puts a
    value into the bytes at a place; ``stub`` is the code at an address that jumps to what a place in the table holds.
    """

    page: int
    absolute: int
    calls: frozenset[int]
    table: frozenset[int]
    data: int
    relative: int
    write: Callable[[int, bytearray, int, int, int], None]
    stub: Callable[[int, int], bytes]


def _fits(value: int, bits: int) -> int:
    """``value`` as an unsigned number of ``bits``, which sign-extended is ``value``."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise BuildError(
            f"a shared library of this size is not linked: a distance of {value} bytes exceeds {bits} bits"
        )
    return value & (1 << bits) - 1


def _unknown(type_: int) -> BuildError:
    return BuildError(f"relocations of type {type_} are not linked here; save to a .o and link it with a C compiler")


def _write_x86(type_: int, data: bytearray, at: int, value: int, place: int) -> None:
    if type_ not in (2, 4, 9, 41, 42):  # PC32, PLT32, GOTPCREL, GOTPCRELX, REX_GOTPCRELX
        raise _unknown(type_)
    data[at : at + 4] = _fits(value - place, 32).to_bytes(4, "little")


def _stub_x86(place: int, entry: int) -> bytes:
    return b"\xff\x25" + _fits(entry - place - 6, 32).to_bytes(4, "little") + b"\x66\x90"  # jmp *entry(%rip); nop


def _page(value: int, place: int) -> int:
    """The distance from the page of ``place`` to that of ``value``, in the bits of an ADRP instruction."""
    pages = _fits((value >> 12) - (place >> 12), 21)
    return (pages & 3) << 29 | (pages >> 2) << 5


def _write_arm(type_: int, data: bytearray, at: int, value: int, place: int) -> None:
    if type_ == 261:  # PREL32
        bits = _fits(value - place, 32)
    elif type_ in (275, 311):  # ADR_PREL_PG_HI21, ADR_GOT_PAGE
        bits = _page(value, place)
    elif type_ in (282, 283):  # JUMP26, CALL26
        bits = _fits(value - place, 28) >> 2
    elif type_ == 312:  # LD64_GOT_LO12_NC
        bits = (value & 0xFFF) >> 3 << 10
    elif type_ in _LOW_12:
        bits = (value & 0xFFF) >> _LOW_12[type_] << 10
    else:
        raise _unknown(type_)
    word = int.from_bytes(data[at : at + 4], "little")  # the field is 0: the addend is in the relocation
    data[at : at + 4] = (word | bits).to_bytes(4, "little")


def _stub_arm(place: int, entry: int) -> bytes:
    words = [
        0x90000010 | _page(entry, place),  # adrp x16, entry
        0xF9400211 | (entry & 0xFFF) >> 3 << 10,  # ldr x17, [x16, :lo12:entry]
        0xD61F0220,  # br x17
        0xD503201F,  # nop
    ]
    return b"".join(word.to_bytes(4, "little") for word in words)


ARCHITECTURES = {  # by e_machine
    62: Architecture(0x1000, 1, frozenset({4}), frozenset({9, 41, 42}), 6, 8, _write_x86, _stub_x86),
    183: Architecture(0x10000, 257, frozenset({282, 283}), frozenset({311, 312}), 1025, 1027, _write_arm, _stub_arm),
}
