"""Memory of the executor: global with its allocations, shared of each block, local of each thread.

Every byte has a mark: whether it was ever written, and of global memory, whether the running kernel wrote it. An access
outside of its allocation, or that is not aligned to its size, is a fault.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .syntax import PTXFault

Array = np.ndarray
GLOBAL = 1 << 40  # where addresses of global memory begin
SHARED, LOCAL, PARAM = 1 << 56, 1 << 57, 1 << 58  # where generic addresses of shared, local and parameter memory begin
GAP = 512  # bytes between allocations, so that an access past the end meets nothing
JUNK = 0xA5  # what memory has in it before anything is written
_ALIGN = 256


class Space:
    """Memory of ``rows`` alike parts (one for each block or thread; global memory has one), in which ``pieces`` are
    allocated: (name, begin, bytes). ``layout``: the pieces, and the bytes of a part."""

    def __init__(self, what: str, rows: int, layout: tuple[Sequence[tuple[str, int, int]], int], junk: int = JUNK):
        pieces, size = layout
        self.what = what
        self.size = -(-max(size, 16) // 16) * 16
        self.data = np.full(rows * self.size, junk, np.uint8)
        self.known = np.zeros(rows * self.size, np.uint8)
        self.arrange(pieces)
        self.views: dict[int, tuple[Array, Array]] = {}

    def arrange(self, pieces: Sequence[tuple[str, int, int]]) -> None:
        self.pieces = sorted(pieces, key=lambda p: p[1])
        self.begins = np.array([p[1] for p in self.pieces] or [0], np.int64)
        self.ends = np.array([p[1] + p[2] for p in self.pieces] or [0], np.int64)

    def _typed(self, bytes_: int) -> tuple[Array, Array]:
        """Data and marks as words of ``bytes_`` bytes."""
        found = self.views.get(bytes_)
        if found is None:
            kind = f"uint{8 * bytes_}"
            found = self.views[bytes_] = self.data.view(kind), self.known.view(kind)
        return found

    def place(self, rows: Array | int, address: Array, bytes_: int, count: int = 1) -> Array:
        """The index of a word of ``bytes_`` bytes at each address, of ``count`` there. Raises ``PTXFault``."""
        at = address.astype(np.int64)
        whole = bytes_ * count
        if (at & (whole - 1 if whole & (whole - 1) == 0 else bytes_ - 1)).any():
            bad = at[(at % whole) != 0][0]
            raise PTXFault(f"an access of {whole} bytes of {self.what} memory at {bad:#x} is not aligned")
        piece = np.searchsorted(self.begins, at, "right") - 1
        inside = (piece >= 0) & (at + whole <= self.ends[piece])
        if not inside.all():
            raise PTXFault(self.outside(int(at[~inside][0]), whole))
        return (at + rows * self.size if isinstance(rows, np.ndarray) or rows else at) // bytes_

    def piece_of(self, at: int) -> int:
        """Where the allocation begins in which an address is."""
        return int(self.begins[np.searchsorted(self.begins, at, "right") - 1])

    def outside(self, at: int, whole: int) -> str:
        """What is wrong with an address."""
        k = int(np.searchsorted(self.begins, at, "right")) - 1
        near = (
            f"; the nearest below is {self.pieces[k][0]}, of {self.pieces[k][2]} bytes, "
            if k >= 0 and self.pieces
            else ""
        )
        if near:
            near += f"which begins {at - self.pieces[k][1]} bytes before"
        return f"an access of {whole} bytes at {at:#x} is outside of every allocation of {self.what} memory{near}"

    def load(self, place: Array, bytes_: int, used: int = -1) -> tuple[Array, Array]:
        """The words, and for which of them every byte (that has its bit in ``used``) was written before."""
        data, known = self._typed(bytes_)
        full = known.dtype.type(sum(1 << 8 * k for k in range(bytes_) if used >> k & 1))
        return data[place], known[place] & full == full

    def store(self, place: Array, value: Array, bytes_: int) -> None:
        data, known = self._typed(bytes_)
        data[place] = value
        known[place] = known.dtype.type(int("01" * bytes_, 16))

    def wrote(self, lanes: Array, place: Array, bytes_: int) -> None:
        """Threads have stored words, one after the other of each."""

    def forget(self, place: Array, bytes_: int) -> None:
        """What is there counts as not written."""
        self._typed(bytes_)[1][place] = 0


class GlobalMemory(Space):
    """Global memory: an arena that grows. Addresses are offsets from :data:`GLOBAL`."""

    def __init__(self) -> None:
        super().__init__("global", 1, ([], 1 << 16))
        self.used = GAP
        self.held: dict[int, tuple[str, int, int]] = {}
        self.written = np.zeros(self.size, np.uint8)
        self.constant: set[int] = set()

    def allocate(self, size: int, name: str = "") -> int:
        begin = -(-self.used // _ALIGN) * _ALIGN
        self.used = begin + size + GAP
        if self.used > self.size:
            grown = max(2 * self.size, -(-self.used // 4096) * 4096)
            for attribute, value in (("data", JUNK), ("known", 0), ("written", 0)):
                old = getattr(self, attribute)
                made = np.full(grown, value, np.uint8)
                made[: len(old)] = old
                setattr(self, attribute, made)
            self.size = grown
            self.views.clear()
        self.held[begin] = (name or f"allocation {len(self.held) + 1}", begin, size)
        self.data[begin : begin + size] = JUNK
        self.known[begin : begin + size] = 0
        self.arrange(list(self.held.values()))
        return GLOBAL + begin

    def free(self, address: int) -> None:
        self.held.pop(address - GLOBAL, None)
        if not self.held:
            self.used = GAP
        self.arrange(list(self.held.values()))

    def split(self, address: int, parts: Sequence[tuple[int, int]]) -> None:
        """Allow accesses to ``parts`` (offset, bytes) of an allocation only, and forget what is in it."""
        begin = address - GLOBAL
        name, _, size = self.held[begin]
        self.known[begin : begin + size] = 0
        others = [p for b, p in self.held.items() if b != begin]
        self.arrange([*others, *((f"buffer {k + 1} of {name}", begin + at, n) for k, (at, n) in enumerate(parts))])

    def bytes_at(self, address: int, size: int) -> Array:
        begin = address - GLOBAL
        return self.data[begin : begin + size]

    def wrote(self, lanes: Array, place: Array, bytes_: int) -> None:
        self.written.view(f"uint{8 * bytes_}")[place] = 1

    def was_written(self, place: Array, bytes_: int) -> Array:
        return self.written.view(f"uint{8 * bytes_}")[place] != 0

    def begin_launch(self) -> None:
        self.written[: self.used] = 0


def laid_out(variables: Sequence[tuple[str, int, int]]) -> tuple[dict[str, int], list[tuple[str, int, int]], int]:
    """Addresses of variables (name, alignment, bytes), the pieces of their space and its size. The addresses begin
    above 0, with gaps."""
    at, found, pieces = _ALIGN, {}, []
    for name, align, size in variables:
        align = max(align, 16)
        at = -(-at // align) * align
        found[name] = at
        # the compiler owns the layout: it loads to the end of the last 16 bytes, and then takes what it needs
        pieces.append((name, at, -(-size // 16) * 16))
        at += size + GAP
    return found, pieces, at
