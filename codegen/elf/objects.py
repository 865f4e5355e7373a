"""Relocatable ELF objects of 64 bits, little-endian: their sections, symbols and relocations.

Field names and numbers are those of the System V ABI (generic part) and its x86-64 and AArch64 supplements.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tir.errors import BuildError

MAGIC = b"\x7fELF\x02\x01\x01"
WRITE, ALLOC, EXECUTE = 1, 2, 4  # flags of a section
PROGBITS, SYMTAB, RELA, NOBITS = 1, 2, 4, 8  # types of a section
TLS = 0x400  # a flag
LOCAL, GLOBAL = 0, 1  # bindings of a symbol
_OBJECT = 1  # the type of a symbol that is data
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1  # in place of a symbol's section
HEADER, SECTION, SYMBOL = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")


@dataclass(eq=False)
class Section:
    """A section that is in memory at run time; ``address`` and ``index`` are its place in the file that is made."""

    name: str
    type: int
    flags: int
    align: int
    data: bytes | bytearray
    size: int
    relocations: list[Relocation] = field(default_factory=list)
    address: int = 0
    offset: int = 0
    index: int = 0


@dataclass(eq=False)
class Symbol:
    """A symbol at ``value`` in ``section``; without a section it is of another file."""

    name: str
    info: int
    hidden: bool
    section: Section | None
    value: int
    size: int

    @property
    def binding(self) -> int:
        return self.info >> 4

    @property
    def address(self) -> int:
        return self.value if self.section is None else self.section.address + self.value


@dataclass(frozen=True)
class Relocation:
    """At ``offset`` of a section: a value of the kind ``type`` made of the address of ``symbol`` and ``addend``."""

    offset: int
    type: int
    symbol: Symbol
    addend: int


@dataclass(frozen=True)
class Object:
    """``machine`` is its e_machine, ``flags`` its e_flags."""

    machine: int
    flags: int
    sections: list[Section]
    symbols: list[Symbol]


def read(data: bytes) -> Object:
    """The object ``data``. Raises ``BuildError`` for what LLVM does not write for Linux on x86-64 and aarch64."""
    head = HEADER.unpack_from(data)
    machine, start, flags, count, names = head[2], head[6], head[7], head[12], head[13]
    if not data.startswith(MAGIC) or head[1] != 1 or not count:
        raise BuildError("not a relocatable object of ELF with 64 bits, little-endian")
    heads = [SECTION.unpack_from(data, start + k * SECTION.size) for k in range(count)]
    sections: dict[int, Section] = {}
    for k, (name, type_, kept, _, offset, size, _, _, align, _) in enumerate(heads):
        if kept & TLS:
            raise BuildError("thread-local variables are not linked here; save to a .o and link it with a C compiler")
        if kept & ALLOC:
            content = b"" if type_ == NOBITS else data[offset : offset + size]
            called = _text(data, heads[names][4] + name)
            sections[k] = Section(called, type_, kept & (WRITE | ALLOC | EXECUTE), max(1, align), content, size)
    table = next(k for k, entry in enumerate(heads) if entry[1] == SYMTAB)
    symbols = _symbols(data, heads[table], heads[heads[table][6]][4], sections)
    for _, type_, _, _, offset, size, _, of, _, _ in heads:
        if type_ == RELA and of in sections:
            for at, info, addend in RELOCATION.iter_unpack(data[offset : offset + size]):
                found = Relocation(at, info & 0xFFFFFFFF, symbols[info >> 32], addend)
                sections[of].relocations.append(found)
    return Object(machine, flags, list(sections.values()), symbols)


def filled(data: bytes, contents: Mapping[str, Any]) -> bytes:
    """The object ``data`` in which each undefined symbol of ``contents`` is the content of the section ``.rodata.<symbol>``,
    which is in it, and has that content in the place of its own. Raises ``BuildError`` for what is no object of ELF."""
    read(data)
    made = bytearray(data)
    start, count, names = (HEADER.unpack_from(data)[k] for k in (6, 12, 13))
    heads = [SECTION.unpack_from(data, start + k * SECTION.size) for k in range(count)]
    called = {_text(data, heads[names][4] + head[0]): k for k, head in enumerate(heads)}
    table = next(head for head in heads if head[1] == SYMTAB)
    strings = heads[table[6]][4]
    for symbol, content in contents.items():
        number = called[f".rodata.{symbol}"]
        made += bytes(-len(made) % 64)
        offset = len(made)
        made += content
        head = heads[number]
        SECTION.pack_into(made, start + number * SECTION.size, *head[:4], offset, len(made) - offset, *head[6:])
        for at in range(table[4], table[4] + table[5], SYMBOL.size):
            name, info, other, _, _, _ = SYMBOL.unpack_from(data, at)
            if _text(data, strings + name) == symbol:
                SYMBOL.pack_into(made, at, name, info & ~0xF | _OBJECT, other, number, 0, len(made) - offset)
    return bytes(made)


def _symbols(data: bytes, table: tuple[int, ...], strings: int, sections: dict[int, Section]) -> list[Symbol]:
    found = []
    for name, info, other, at, value, size in SYMBOL.iter_unpack(data[table[4] : table[4] + table[5]]):
        if at not in (_UNDEFINED, _ABSOLUTE) and at not in sections and info >> 4 != LOCAL:
            raise BuildError(f"the symbol {_text(data, strings + name)!r} is in no section of its object")
        found.append(Symbol(_text(data, strings + name), info, other & 3 in (1, 2), sections.get(at), value, size))
    return found


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
