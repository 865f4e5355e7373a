"""What each thread knows of the others: vector clocks, for kernels in which more than barriers of the block order threads.

A thread has an epoch, which it ends when it releases what it did (it arrives at a barrier). ``known[thread, slot]`` is the
last epoch of another slot that happens before what the thread does now. Slots are the threads of each block of a cluster;
the warps, when one acts as a whole; and the transaction barriers, for the copies whose bytes they count, whose epochs are
the copies' numbers. An access of another slot is ordered before one of a thread if the thread knows its epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .access_records import UNDER_WAY, Races, Who
from .lanes import EPOCHS, Lanes, Launch
from .report import Site


class Clocks:
    """The clocks of the threads of a group of blocks (a cluster), row ``place * threads + thread`` for each."""

    def __init__(self, launch: Launch, blocks: np.ndarray):
        self.launch = launch
        self.slots = launch.slots
        rows, width = len(blocks) * launch.threads, len(blocks) * launch.slots
        self.rank = {int(block): k for k, block in enumerate(blocks)}
        self.blocks = np.sort(blocks)
        self.rank_of = np.argsort(blocks)
        self.known = np.full((rows, width), -1, np.int32)
        own = np.arange(rows) // launch.threads * launch.slots + np.arange(rows) % launch.threads
        self.known[np.arange(rows), own] = 0
        self.own = own
        # As ``known``, of ordinary stores of which a proxy fence has told the asynchronous proxy.
        self.fenced = np.full_like(self.known, -1)
        self.met: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

    def clock(self) -> tuple[np.ndarray, np.ndarray]:
        """An empty clock that threads can release to."""
        width = self.known.shape[1]
        return np.full(width, -1, np.int32), np.full(width, -1, np.int32)

    def release(self, clock: tuple[np.ndarray, np.ndarray], rows: np.ndarray) -> None:
        """Add what the threads of ``rows`` know to a clock."""
        for total, each in zip(clock, (self.known, self.fenced)):
            np.maximum(total, each[rows].max(axis=0), out=total)

    def acquire(self, clock: tuple[np.ndarray, np.ndarray], rows: np.ndarray) -> None:
        """Let the threads of ``rows`` know what a clock has."""
        for total, each in zip(clock, (self.known, self.fenced)):
            each[rows] = np.maximum(each[rows], total)

    def fence(self, lanes: Lanes, here: np.ndarray) -> None:
        """A proxy fence: what the threads know so far, the asynchronous proxy sees."""
        rows = lanes.row[here]
        self.fenced[rows] = np.maximum(self.fenced[rows], self.known[rows])
        self.advance(lanes, here)

    def advance(self, lanes: Lanes, here: np.ndarray) -> None:
        """Begin the next epoch of threads, after they released what they did."""
        lanes.epoch[here] += 1
        rows = lanes.row[here]
        self.known[rows, self.own[rows]] = lanes.epoch[here]
        lanes.restamp()

    def join_warps(self, lanes: Lanes, here: np.ndarray) -> None:
        """A barrier of each warp: its threads know what each of them knows."""
        for warp in np.unique(lanes.warp[here]):
            rows = lanes.row[here[lanes.warp[here] == warp]]
            clock = self.clock()
            self.release(clock, rows)
            self.acquire(clock, rows)
        self.advance(lanes, here)

    def level(self, lanes: Lanes, here: np.ndarray) -> None:
        """Give the threads of each warp one epoch, as their warp is about to act as a whole."""
        highest = np.zeros(lanes.warps, np.int64)
        np.maximum.at(highest, lanes.warp[here], lanes.epoch[here])
        lanes.epoch[here] = highest[lanes.warp[here]] - 1
        self.advance(lanes, here)

    def meet(self, lanes: Lanes, here: np.ndarray) -> None:
        """Arrive at a barrier of the block."""
        lanes.meetings += 1
        for place in np.unique(lanes.place[here]):
            self.release(self._meeting(lanes, place), lanes.row[here[lanes.place[here] == place]])
        self.advance(lanes, here)

    def met_all(self, lanes: Lanes, here: np.ndarray) -> None:
        """Leave the barrier of the block at which all have arrived."""
        for place in np.unique(lanes.place[here]):
            self.acquire(self._meeting(lanes, place), lanes.row[here[lanes.place[here] == place]])

    def _meeting(self, lanes: Lanes, place: int) -> tuple[np.ndarray, np.ndarray]:
        """The clock of the last barrier of a block. Clocks only grow, so that two of them in turn suffice."""
        return self.met.setdefault((int(place), lanes.meetings % 2), self.clock())

    def knows(self, rows: np.ndarray, old: np.ndarray, fenced: bool = False) -> np.ndarray:
        """Whether the access of stamp ``old`` is ordered before what the thread of each row does (``fenced``: and a proxy
        fence lies between)."""
        if len(old) > 64 and (old == old[0]).all() and (rows == rows[0]).all():  # a copy of what one thread wrote
            return np.repeat(self.knows(rows[:1], old[:1], fenced), len(old))
        slots, threads = self.slots, self.launch.threads
        block, rest = np.divmod(old, EPOCHS * slots)
        epoch, slot = np.divmod(rest, slots)
        place = np.searchsorted(self.blocks, block)
        here = np.take(self.blocks, place, mode="clip") == block
        first = np.take(self.rank_of, place, mode="clip") * slots
        table = self.fenced if fenced else self.known
        found = here & (table[rows, first + slot] >= epoch)
        whole = np.flatnonzero(here & (slot >= threads) & (slot < threads + self.launch.warps))
        if len(whole):  # each thread of the warp may have made the access
            lane = np.minimum((slot[whole, None] - threads) * 32 + np.arange(32), threads - 1)
            each = table[rows[whole, None], first[whole, None] + lane]
            found[whole] = (each >= epoch[whole, None]).all(axis=1)
        return found | (old == -1)


class OrderedRaces(Races):
    """Records of accesses, of which clocks tell the order. In shared memory the last reader of each warp is kept, and what
    each warp reads asynchronously until it has waited for that, as if in the last of all epochs."""

    def __init__(self, size: int, shared: bool, launch: Launch):
        super().__init__(size, shared, launch)
        self.launch = launch
        self.size = size
        self.warp_epoch = None
        self.columns: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def _unordered(self, old: np.ndarray, who: Who) -> np.ndarray:
        bad = (old != -1) & (old != who.stamp)
        some = np.flatnonzero(bad)
        if len(some):
            clocks: Clocks = who.clocks
            older, rows = old[some], who.row[some]
            bad[some] = ~clocks.knows(rows, older) & ~self._same_warp(older, who.stamp[some])
        return bad

    def _same_warp(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Whether both are accesses of one warp as a whole."""
        span, low, high = EPOCHS * self.slots, self.threads, self.threads + self.launch.warps
        a, b = old % self.slots, new % self.slots
        return (a == b) & (a >= low) & (a < high) & (old // span == new // span)

    def _readers(self) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        return self.columns.values() if self.shared else super()._readers()

    def _record_readers(self, at: np.ndarray, who: Who, site: Site) -> None:
        if not self.shared:
            super()._record_readers(at, who, site)
            return
        slot = who.stamp % self.slots
        warp = np.where(slot < self.threads, slot // 32, slot - self.threads)
        for number in np.unique(warp):
            mine = warp == number
            self._record(int(number), at[mine], who.stamp[mine], site)

    def _record(self, column: int, at: np.ndarray, stamp: Any, site: Site) -> None:
        if column not in self.columns:
            self.columns[column] = np.full(self.size, -1, np.int64), np.zeros(self.size, np.int16)
        stamps, sites = self.columns[column]
        stamps[at] = stamp
        sites[at] = site.number

    def begin_read(self, at: np.ndarray, lanes: Lanes, thread: int, site: Site) -> Any:
        """A thread begins to read asynchronously; returns a conflict as :meth:`read` does."""
        self.any_reader = True
        self.keep_reading(at, lanes, thread, site)
        return self.conflicting_writer(at, Who(lanes, np.array([thread]), len(at)))

    def keep_reading(self, at: np.ndarray, lanes: Lanes, thread: int, site: Site) -> None:
        column = self.launch.warps + int(lanes.thread[thread]) // 32
        self._record(column, at, under_way(lanes, thread), site)

    def end_read(self, at: np.ndarray, lanes: Lanes, thread: int, site: Site) -> Any:
        """A thread has waited for what it reads: it read it until now. Returns a conflict as :meth:`read` does."""
        column = self.launch.warps + int(lanes.thread[thread]) // 32
        self.columns[column][0][at] = -1
        return self.read(at, Who(lanes, np.array([thread]), len(at)), site)


def under_way(lanes: Lanes, thread: int) -> int:
    """The stamp of what a thread does asynchronously and has not waited for: no other thread knows it."""
    stamp = int(lanes.stamp[thread] - lanes.epoch[thread] * lanes.launch.slots)
    return stamp + UNDER_WAY * lanes.launch.slots


def races(size: int, shared: bool, launch: Launch) -> Races:
    """Records of accesses to ``size`` granules."""
    return (OrderedRaces if launch.asynchronous else Races)(size, shared, launch)
