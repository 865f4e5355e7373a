"""A shared library of one object: what ``cc -shared`` makes of it, made here, for this machine and for others.

All symbols that the object defines and does not hide are exported, and its own references are bound to them. What it
does not define is found when the library is loaded; what is written only then is read-only after it. No page can be
both written and executed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

from tir.errors import BuildError

from . import objects as elf
from .objects import Object, Relocation, Section, Symbol
from .relocations import ARCHITECTURES, Architecture

_SEGMENT = struct.Struct("<IIQQQQQQ")
_HASH, _DYNAMIC, _STRTAB, _DYNSYM = 5, 6, 3, 11  # types of sections that the loader reads
_LOAD, _DYNAMIC_SEGMENT, _EH_FRAME, _STACK, _RELRO = 1, 2, 0x6474E550, 0x6474E551, 0x6474E552
_LIBRARIES = {  # besides those of C: what compilers call for what a processor lacks, and OpenMP, by the names in them
    "libgcc_s.so.1": re.compile(r"__\w+"),
    "libgomp.so.1": re.compile(r"(GOMP|omp)_\w+"),
}


def shared_library(code: bytes) -> bytes:
    """The shared library of an object. It needs the libraries of C and mathematics, and those of ``_LIBRARIES`` to which
    the object refers strongly. Raises ``BuildError`` for an object that it cannot link."""
    return _Link(elf.read(code)).library()


class _Link:
    """The parts of a library on their way to their addresses."""

    def __init__(self, made: Object):
        self.object = made
        architecture = ARCHITECTURES.get(made.machine)
        if architecture is None:
            raise BuildError(f"objects of the machine {made.machine} of ELF are not linked")
        self.on: Architecture = architecture
        uses = [(section, r) for section in made.sections for r in section.relocations]
        self.stubs = _distinct(r.symbol for _, r in uses if r.type in self.on.calls and r.symbol.section is None)
        entries = (r.symbol for _, r in uses if r.type in self.on.table)
        self.entries = _distinct([*self.stubs, *entries])
        self.absolute = [(section, r) for section, r in uses if r.type == self.on.absolute]
        named = [s for s in made.symbols if s.binding != elf.LOCAL and not s.hidden]
        self.dynamic = sorted(named, key=lambda s: s.section is not None)

    def library(self) -> bytes:
        strings = _Strings()
        needed = [strings.add(name) for name in self._needed()]
        symbols = [(strings.add(s.name), s) for s in self.dynamic]
        word = 8
        self.symtab = _made(".dynsym", _DYNSYM, elf.ALLOC, 8, elf.SYMBOL.size * (1 + len(symbols)))
        self.strtab = _made(".dynstr", _STRTAB, elf.ALLOC, 1, len(strings.data))
        self.hash = _made(".hash", _HASH, elf.ALLOC, 8, 4 * (3 + 2 * len(symbols)))
        self.rela = _made(".rela.dyn", 4, elf.ALLOC, 8, elf.RELOCATION.size * (len(self.entries) + len(self.absolute)))
        self.unwind = _made(".eh_frame_hdr", elf.PROGBITS, elf.ALLOC, 4, 8)
        size = len(self.on.stub(0, 0))
        self.plt = _made(".plt", elf.PROGBITS, elf.ALLOC | elf.EXECUTE, 16, size * len(self.stubs))
        self.tags = _made(".dynamic", _DYNAMIC, elf.ALLOC | elf.WRITE, 8, 16 * (len(needed) + 13))
        self.got = _made(".got", elf.PROGBITS, elf.ALLOC | elf.WRITE, 8, word * len(self.entries))
        self.place = {symbol: word * k for k, symbol in enumerate(self.entries)}
        self.stub = {symbol: size * k for k, symbol in enumerate(self.stubs)}
        segments = self._lay_out()
        self.strtab.data = strings.data
        self.symtab.data = bytes(elf.SYMBOL.size) + b"".join(_symbol(at, s) for at, s in symbols)
        self.hash.data = _hash_table([s.name for _, s in symbols])
        self._relocate()
        self.tags.data = self._tags(needed)
        return self._written(segments)

    def _needed(self) -> list[str]:
        strong = [s.name for s in self.dynamic if s.section is None and s.binding == elf.GLOBAL]
        others = [name for name, names in _LIBRARIES.items() if any(map(names.fullmatch, strong))]
        return ["libc.so.6", "libm.so.6", *others]

    # -- addresses -------------------------------------------------------------------------------------------------

    def _lay_out(self) -> list[tuple[int, list[Section]]]:
        """Give every section its place; the segments that are loaded, each with its flags (4 read, 2 write, 1 execute)."""
        own = self.object.sections
        frames = [s for s in own if s.name == ".eh_frame"]
        for section in frames:  # ends in a length of 0, which a C compiler's start files add
            section.data, section.size = section.data + bytes(4), section.size + 4
        constant = [s for s in own if not s.flags & (elf.WRITE | elf.EXECUTE)]
        filled = [s for s in own if s.flags & elf.WRITE and s.name.startswith(".data.rel.ro")]
        written = [s for s in own if s.flags & elf.WRITE and s not in filled]
        tables = [self.hash, self.symtab, self.strtab, *([self.rela] if self.rela.size else [])]
        segments = [
            (4, [*tables, *constant, *([self.unwind] if frames else [])]),
            (5, [*(s for s in own if s.flags & elf.EXECUTE), *([self.plt] if self.plt.size else [])]),
            (6, [*filled, self.tags, *([self.got] if self.got.size else [])]),
            (6, sorted(written, key=lambda s: s.type == elf.NOBITS)),
        ]
        segments = [(flags, sections) for flags, sections in segments if any(s.size for s in sections)]
        self.sections = [s for _, sections in segments for s in sections]
        self.heads = len(segments) + 3 + bool(frames)
        offset = elf.HEADER.size + _SEGMENT.size * self.heads
        address = offset
        for number, (_, sections) in enumerate(segments):
            if number:  # a page of its own in memory, the next byte in the file
                page = max(self.on.page, *(s.align for s in sections))
                address = -(-address // page) * page
                offset += -offset % sections[0].align
                address += offset % page
            for section in sections:
                gap = -address % section.align
                address, offset = address + gap, offset + gap
                section.address, section.offset = address, offset
                address += section.size
                offset += 0 if section.type == elf.NOBITS else section.size
        for index, section in enumerate(self.sections, 1):
            section.index = index
        self.end = offset
        return segments

    # -- contents --------------------------------------------------------------------------------------------------

    def _relocate(self) -> None:
        on, got, plt = self.on, self.got, self.plt
        for section in self.object.sections:
            data = bytearray(section.data)
            for r in section.relocations:
                if r.type != on.absolute:
                    on.write(r.type, data, r.offset, self._target(r) + r.addend, section.address + r.offset)
            section.data = data
        for symbol, at in self.stub.items():
            plt.data += on.stub(plt.address + at, got.address + self.place[symbol])
        got.data = bytes(got.size)
        loaded = [self._by_loader(got.address + at, symbol, 0, on.data) for symbol, at in self.place.items()]
        for section, r in self.absolute:
            loaded.append(self._by_loader(section.address + r.offset, r.symbol, r.addend, on.absolute))
        loaded.sort(key=lambda entry: entry[1] != on.relative)
        self.relative = sum(entry[1] == on.relative for entry in loaded)
        self.rela.data = b"".join(elf.RELOCATION.pack(*entry) for entry in loaded)
        frames = next((s for s in self.sections if s.name == ".eh_frame"), None)
        if frames is not None:  # version 1, the frames by a distance, no table of them
            self.unwind.data = struct.pack("<4Bi", 1, 0x1B, 0xFF, 0xFF, frames.address - self.unwind.address - 4)

    def _target(self, r: Relocation) -> int:
        if r.type in self.on.table:
            return self.got.address + self.place[r.symbol]
        if r.symbol.section is not None:
            return r.symbol.address
        if r.type in self.on.calls:
            return self.plt.address + self.stub[r.symbol]
        raise BuildError(f"{r.symbol.name!r} is of another file, and the code has its address as a distance")

    def _by_loader(self, at: int, symbol: Symbol, addend: int, type_: int) -> tuple[int, int, int]:
        if symbol.section is not None:
            return at, self.on.relative, symbol.address + addend
        return at, (1 + self.dynamic.index(symbol)) << 32 | type_, addend

    def _tags(self, needed: list[int]) -> bytes:
        tags = [(1, name) for name in needed]
        tags += [(4, self.hash.address), (5, self.strtab.address), (6, self.symtab.address)]
        tags += [(10, self.strtab.size), (11, elf.SYMBOL.size)]
        if self.rela.size:
            tags += [(7, self.rela.address), (8, self.rela.size), (9, elf.RELOCATION.size), (0x6FFFFFF9, self.relative)]
        tags += [(30, 8), (0x6FFFFFFB, 1)]  # all is bound when it is loaded
        return b"".join(struct.pack("<qQ", *tag) for tag in tags).ljust(self.tags.size, b"\0")

    def _written(self, segments: list[tuple[int, list[Section]]]) -> bytes:
        """The file: headers, sections, and the table of sections, which tools read and the loader does not."""
        names = _Strings()
        called = [names.add(s.name) for s in self.sections]
        last = names.add(".shstrtab")
        table = self.end + len(names.data)
        table += -table % 8
        ident = elf.MAGIC.ljust(16, b"\0")
        sizes = (
            elf.HEADER.size,
            _SEGMENT.size,
            self.heads,
            elf.SECTION.size,
            len(self.sections) + 2,
            len(self.sections) + 1,
        )
        made = bytearray(table)
        made[: elf.HEADER.size] = elf.HEADER.pack(
            ident, 3, self.object.machine, 1, 0, elf.HEADER.size, table, self.object.flags, *sizes
        )
        heads = self._segments(segments)
        made[elf.HEADER.size : elf.HEADER.size + len(heads)] = heads
        for section in self.sections:
            if section.type != elf.NOBITS:
                made[section.offset : section.offset + section.size] = section.data
        made[self.end : self.end + len(names.data)] = names.data
        made += bytes(elf.SECTION.size)
        for name, s in zip(called, self.sections):
            link, info, entry = self._links(s)
            made += elf.SECTION.pack(name, s.type, s.flags, s.address, s.offset, s.size, link, info, s.align, entry)
        made += elf.SECTION.pack(last, _STRTAB, 0, 0, self.end, len(names.data), 0, 0, 1, 0)
        return bytes(made)

    def _links(self, section: Section) -> tuple[int, int, int]:
        """What a section refers to, and the size of its entries."""
        return {
            ".hash": (self.symtab.index, 0, 4),
            ".dynsym": (self.strtab.index, 1, elf.SYMBOL.size),
            ".rela.dyn": (self.symtab.index, 0, elf.RELOCATION.size),
            ".dynamic": (self.strtab.index, 0, 16),
        }.get(section.name, (0, 0, 0))

    def _segments(self, segments: list[tuple[int, list[Section]]]) -> bytes:
        heads = []
        protected = b""
        for number, (flags, sections) in enumerate(segments):
            first, end = sections[0], sections[-1].address + sections[-1].size
            start, offset = (first.address, first.offset) if number else (0, 0)
            inside = max((s.offset + s.size for s in sections if s.type != elf.NOBITS), default=offset) - offset
            if self.tags in sections:  # whole pages, so that they can be protected
                end += -end % self.on.page
                protected = _SEGMENT.pack(_RELRO, 4, offset, start, start, inside, end - start, 1)
            heads.append(_SEGMENT.pack(_LOAD, flags, offset, start, start, inside, end - start, self.on.page))
        heads.append(_of(_DYNAMIC_SEGMENT, 6, self.tags))
        if self.unwind in self.sections:
            heads.append(_of(_EH_FRAME, 4, self.unwind))
        return b"".join([*heads, _SEGMENT.pack(_STACK, 6, 0, 0, 0, 0, 0, 16), protected])


class _Strings:
    """A table of strings, each once."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self._at: dict[str, int] = {}

    def add(self, text: str) -> int:
        if text not in self._at:
            self._at[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._at[text]


def _distinct(symbols: Iterable[Symbol]) -> list[Symbol]:
    return list(dict.fromkeys(symbols))


def _made(name: str, type_: int, flags: int, align: int, size: int) -> Section:
    return Section(name, type_, flags, align, b"", size)


def _symbol(name: int, symbol: Symbol) -> bytes:
    index = 0 if symbol.section is None else symbol.section.index
    return elf.SYMBOL.pack(name, symbol.info, 0, index, symbol.address, symbol.size)


def _of(type_: int, flags: int, s: Section) -> bytes:
    return _SEGMENT.pack(type_, flags, s.offset, s.address, s.address, s.size, s.size, s.align)


def _hash_table(names: list[str]) -> bytes:
    """The loader's table of symbols 1, 2, …: the first of each bucket, and the next of each symbol (0: none)."""
    count = len(names)
    first, after = [0] * count, [0] * (count + 1)
    for k, name in enumerate(names, 1):
        value = 0
        for byte in name.encode():
            value = (value << 4) + byte
            high = value & 0xF0000000
            value = (value ^ high >> 24) & ~high
        bucket = value % count
        after[k], first[bucket] = first[bucket], k
    return struct.pack(f"<{3 + 2 * count}I", count, count + 1, *first, *after)
