"""Shared memory of kernels in which copies and products run beside the threads: the asynchronous proxy.

Such a copy or product reads and writes chunks of 16 bytes. Until it is waited for, no thread may touch what it writes, nor
write what it reads. What a thread has written is visible to it once ``fence.proxy.async`` was executed: by the thread that
wrote, or by one that has synchronised since (at a barrier, by a warp operation, an acquire).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .memory import Space
from .syntax import Instruction, PTXFault

if TYPE_CHECKING:
    from .multiprocessor import Machine

Array = np.ndarray
CHUNK = 16  # bytes


@dataclass(eq=False)
class Running:
    """What runs beside the threads: ``what`` it is, and ``where`` it was begun. It ``reads`` and ``writes`` chunks."""

    what: str
    where: str
    reads: Array
    writes: Array


_NONE = np.zeros(0, np.int64)


class Fences:
    """Up to which time what each thread did, and what all of a cluster did, is visible to the asynchronous proxy."""

    def __init__(self, lanes: int, clusters: int):
        self.own, self.all = np.zeros(lanes, np.int64), np.zeros(clusters, np.int64)

    def visible(self, lanes: Array, times: Array, cluster: int) -> Array:
        return (times <= self.own[lanes]) | (times <= self.all[cluster])


class WatchedSpace(Space):
    """``lanes``: the threads of the machine, ``rows`` the blocks, ``each`` those of a cluster."""

    def __init__(self, rows: int, layout: tuple[Sequence[tuple[str, int, int]], int], junk: int, lanes: int, each: int):
        super().__init__("shared", rows, layout, junk)
        chunks = len(self.data) // CHUNK
        self.readers, self.writers = np.zeros(chunks, np.uint16), np.zeros(chunks, np.uint16)
        self.running: list[Running] = []
        self.time = 1
        self.stored_at, self.stored_by = np.zeros(chunks, np.int64), np.zeros(chunks, np.int32)
        self.clusters = max(1, rows // each)
        self.stores, self.inits = Fences(lanes, self.clusters), Fences(lanes, self.clusters)
        self.synced = np.zeros(lanes, np.int64)  # when each thread has last met others
        self.cluster_of = np.arange(lanes) * self.clusters // lanes

    # ------------------------------------------------------------ what threads do

    def load(self, place: Array, bytes_: int, used: int = -1) -> tuple[Array, Array]:
        if self.running:
            self._refuse(self.writers, place * bytes_ // CHUNK, "is read while", "writes")
        return super().load(place, bytes_, used)

    def store(self, place: Array, value: Array, bytes_: int) -> None:
        if self.running:
            self._refuse(self.writers, place * bytes_ // CHUNK, "is written while", "writes")
            self._refuse(self.readers, place * bytes_ // CHUNK, "is written while", "reads")
        super().store(place, value, bytes_)

    def wrote(self, lanes: Array, place: Array, bytes_: int) -> None:
        chunks = (place * bytes_ // CHUNK).ravel()
        self.time += 1
        self.stored_at[chunks] = self.time
        self.stored_by[chunks] = np.repeat(lanes, len(chunks) // len(lanes))

    def now(self) -> int:
        """A time of its own for what a thread does."""
        self.time += 1
        return self.time

    def meet(self, lanes: Array) -> None:
        """Threads have synchronised with others."""
        self.time += 1
        self.synced[lanes] = self.time

    def fence(self, lanes: Array, *fences: Fences) -> None:
        """What the threads did, and what others did before they met, is visible."""
        for one in fences:
            one.own[lanes] = self.time
            np.maximum.at(one.all, self.cluster_of[lanes], self.synced[lanes])

    def _refuse(self, marks: Array, chunks: Array, happens: str, does: str) -> None:
        found = marks[chunks] > 0
        if found.any():
            chunk = int(chunks[found].flat[0])
            raise PTXFault(f"{self.at(chunk)} {happens} {self._who(chunk, does)}")

    def _who(self, chunk: int, does: str) -> str:
        one = next(r for r in self.running if chunk in (r.writes if does == "writes" else r.reads))
        return f"{one.what} begun {one.where}, which nothing has waited for, {does} it"

    def at(self, chunk: int) -> str:
        """The name of a chunk."""
        where = chunk * CHUNK % self.size
        k = int(np.searchsorted(self.begins, where, "right")) - 1
        name, begin, _ = self.pieces[k] if k >= 0 and self.pieces else ("", 0, 0)
        return f"shared memory at {where:#x} ({name} + {where - begin})"

    # ------------------------------------------------------------ what runs beside them

    def begin(self, one: Running) -> None:
        """Raises ``PTXFault`` if it meets another, or stores that no proxy fence has made visible."""
        used = np.concatenate([one.reads, one.writes])
        for chunks, marks, happens, does in (
            (used, self.writers, "is used while", "writes"),
            (one.writes, self.readers, "is written while", "reads"),
        ):
            if self.running:
                self._refuse(marks, chunks, f"{happens} {one.what} begins:", does)
        seen = self.stores.visible(self.stored_by[used], self.stored_at[used], self._cluster(used))
        if not seen.all():
            raise PTXFault(
                f"{one.what} uses {self.at(int(used[~seen][0]))}, which a thread has written, without fence.proxy.async "
                "between"
            )
        self.running.append(one)
        self.readers[one.reads] += 1
        self.writers[one.writes] += 1

    def _cluster(self, chunks: Array) -> int:
        rows = len(self.data) // self.size
        row = int(chunks[0]) * CHUNK // self.size if len(chunks) else 0
        return row * self.clusters // rows

    def end(self, one: Running) -> None:
        if one in self.running:
            self.running.remove(one)
            self.readers[one.reads] -= 1
            self.writers[one.writes] -= 1

    def take(self, chunks: Array) -> tuple[Array, Array]:
        """Bytes and their marks of chunks, unchecked: rows of 16."""
        return self.data.reshape(-1, CHUNK)[chunks], self.known.reshape(-1, CHUNK)[chunks]

    def fill(self, chunks: Array, data: Array, known: Array) -> None:
        self.data.reshape(-1, CHUNK)[chunks] = data.reshape(-1, CHUNK)
        self.known.reshape(-1, CHUNK)[chunks] = known.reshape(-1, CHUNK)


def running(what: str, where: str, reads: Array = _NONE, writes: Array = _NONE) -> Running:
    return Running(what, where, np.unique(reads), np.unique(writes))


def shared_of(m: Machine) -> WatchedSpace:
    assert isinstance(m.shared, WatchedSpace)
    return m.shared


def synchronised(m: Machine, lanes: Array) -> None:
    """Threads have met: what others have stored before is in order with what they do now."""
    if isinstance(m.shared, WatchedSpace):
        m.shared.meet(lanes)


def runs_beside(instructions: Sequence[Instruction]) -> bool:
    """Whether a program has instructions of the asynchronous proxy."""
    return any(i.op == "wgmma" or "bulk" in i.mods for i in instructions)
