"""Records of which threads accessed which granule of memory, and the races they prove."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np

from .lanes import EPOCHS, Lanes
from .report import Site

UNDER_WAY = EPOCHS - 1  # the epoch of what has not been waited for
_NOTES = {"read": "reads", "write": "writes", "atomic": "updates atomically"}


class Races:
    """The last writer and two readers of every granule, as stamps (block, barrier interval, thread).

    Two accesses of different threads race when one writes and no barrier lies between them: they are in one barrier
    interval of one block, or in different blocks. Threads of a block that write the same bytes by one statement do not
    race (cooperative copies overlap). Two readers suffice: any later writer conflicts with one of them or
    is ordered after both.
    """

    def __init__(self, size: int, shared: bool, launch: Any):
        self.shared = shared
        self.threads, self.slots = launch.threads, launch.slots  # of a block
        self.writer = np.full(size, -1, np.int64)
        self.writer_site = np.zeros(size, np.int16)
        self.atomic: np.ndarray | None = None
        self.readers = (np.full(size, -1, np.int64), np.full(size, -1, np.int64))
        self.reader_site = (np.zeros(size, np.int16), np.zeros(size, np.int16))
        self.warp_epoch = np.zeros(size, np.int64) if launch.warp_barriers else None
        self.any_reader = False
        self.redundant = 0

    def part(self, start: int, size: int) -> Races:
        """The records of ``size`` granules from ``start`` on: of memory that has another name, too."""
        made, inside = copy(self), slice(start, start + size)
        made.writer, made.writer_site = self.writer[inside], self.writer_site[inside]
        made.atomic = None if self.atomic is None else self.atomic[inside]
        made.readers = (self.readers[0][inside], self.readers[1][inside])
        made.reader_site = (self.reader_site[0][inside], self.reader_site[1][inside])
        made.warp_epoch = None if self.warp_epoch is None else self.warp_epoch[inside]
        return made

    def _unordered(self, old: np.ndarray, who: Who) -> np.ndarray:
        if self.shared:
            return (old >= who.low) & (old != who.stamp)
        return (old != who.stamp) & (old != -1) & ((old < who.block_low) | (old >= who.low))

    def write(self, at: np.ndarray, who: Who, site: Site, atomic: bool = False, same: Any = None) -> Any:
        """Record a write; returns the first conflict as (position, other stamp, other site number, other kind, count).

        ``same``: for each granule, whether it held these bytes before, and whether it does now. Threads that write the
        same bytes by the same statement do not race; ``redundant`` counts these.
        """
        self.redundant = 0
        old = self.writer[at]
        bad = self._unordered(old, who)
        if atomic or self.atomic is not None:
            if self.atomic is None:
                self.atomic = np.zeros(len(self.writer), bool)
            bad &= ~(self.atomic[at] & atomic)
            self.atomic[at] = atomic
        bad = self._drop_ordered_by_warp(bad, old, at, who)
        if same is not None and bad.any():
            bad = self._drop_redundant(bad, same[0] & (self.writer_site[at] == site.number))
        found = _first(bad, old, self.writer_site[at], "atomic" if atomic else "write")
        if self.any_reader and found is None:
            found = self._conflicting_reader(at, who)
        self.writer[at] = who.stamp
        self.writer_site[at] = site.number
        if self.warp_epoch is not None:
            self.warp_epoch[at] = who.warp_epoch
        if not atomic and found is None:
            old = self.writer[at]
            bad = old != who.stamp
            if same is not None and bad.any():
                bad = self._drop_redundant(bad, same[1])
            found = _first(bad, old, self.writer_site[at], "write")
        return found

    def _drop_redundant(self, bad: np.ndarray, same: np.ndarray) -> np.ndarray:
        """Remove conflicts of threads that write the same bytes by the same statement, and count them."""
        self.redundant += int((bad & same).sum())
        return bad & ~same

    def read(self, at: np.ndarray, who: Who, site: Site) -> Any:
        """Record a read; returns the first conflict as :meth:`write` does."""
        found = self.conflicting_writer(at, who)
        self.any_reader = True
        self._record_readers(at, who, site)
        return found

    def conflicting_writer(self, at: np.ndarray, who: Who) -> Any:
        """A writer that a read is not ordered with, as :meth:`write` returns it."""
        return self._conflict(self.writer, self.writer_site, "write", at, who)

    def _conflicting_reader(self, at: np.ndarray, who: Who) -> Any:
        """A reader that a write is not ordered with, as :meth:`write` returns it."""
        kept = (self._conflict(*record, "read", at, who) for record in self._readers())
        return next((found for found in kept if found is not None), None)

    def _readers(self) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """The stamps of readers of every granule, and the numbers of the sites."""
        return zip(self.readers, self.reader_site)

    def _conflict(self, stamps: np.ndarray, sites: np.ndarray, kind: str, at: np.ndarray, who: Who) -> Any:
        """The first of recorded accesses that one is not ordered with, as :meth:`write` returns it."""
        old = stamps[at]
        return _first(self._drop_ordered_by_warp(self._unordered(old, who), old, at, who), old, sites[at], kind)

    def _record_readers(self, at: np.ndarray, who: Who, site: Site) -> None:
        first = self.readers[0]
        current = first[at]
        keep = self._unordered(current, who)
        if keep.any():
            self._second(at[keep], who.stamp[keep], current[keep], site)
            new = ~keep
            at, stamp = at[new], who.stamp[new]
        else:
            stamp = who.stamp
        first[at] = stamp
        self.reader_site[0][at] = site.number
        now = first[at]
        other = now != stamp
        if other.any():
            self._second(at[other], stamp[other], now[other], site)

    def _second(self, at: np.ndarray, stamp: np.ndarray, first: np.ndarray, site: Site) -> None:
        """Record a second reader; in global memory one in another block is never replaced by one in the same block."""
        second = self.readers[1]
        if not self.shared:
            span = EPOCHS * self.slots
            old, block = second[at], first // span
            take = (stamp // span != block) | (old == -1) | (old // span == block)
            at, stamp = at[take], stamp[take]
        second[at] = stamp
        self.reader_site[1][at] = site.number

    def _drop_ordered_by_warp(self, bad: np.ndarray, old: np.ndarray, at: np.ndarray, who: Who) -> np.ndarray:
        """Remove conflicts between accesses that a barrier of the warp orders."""
        if self.warp_epoch is None or not bad.any():
            return bad
        span = EPOCHS * self.slots
        same_warp = self._warp(old) == self._warp(who.stamp)
        same_block = old // span == who.stamp // span
        return bad & ~(same_warp & same_block & (self.warp_epoch[at] < who.warp_epoch))

    def _warp(self, stamp: np.ndarray) -> np.ndarray:
        number = stamp % self.slots
        return np.where(number < self.threads, number // 32, number - self.threads)


class Who:
    """Stamps of the threads that make an access, one per granule; of their warps, if each warp acts as a whole (which
    lane accesses what is then undefined). ``row`` and ``clocks``: what the threads know of others, if that is kept."""

    __slots__ = ("stamp", "low", "block_low", "warp_epoch", "row", "clocks")

    def __init__(self, lanes: Lanes, act: Any, repeat: int, whole: bool = False):
        stamp = lanes.low + lanes.launch.threads + lanes.thread // 32 if whole else lanes.stamp
        parts = (stamp, lanes.low, lanes.block_low, lanes.warp_epoch, lanes.row)
        if act is not None:
            parts = tuple(p[act] for p in parts)
        if repeat > 1:
            parts = tuple(np.repeat(p, repeat) for p in parts)
        self.stamp, self.low, self.block_low, self.warp_epoch, self.row = parts
        self.clocks = lanes.clocks


def _first(bad: np.ndarray, stamps: np.ndarray, sites: np.ndarray, kind: str) -> Any:
    """The first ``bad`` access: its position, stamp, site's number and kind, and how many there are; None without one."""
    if not bad.any():
        return None
    k = int(np.argmax(bad))
    return k, stamps[k], sites[k], kind, int(bad.sum())


def report(lanes: Lanes, view: Any, granules: np.ndarray, found: Any, stamp: Any, site: Site, what: str) -> None:
    """Report the conflict that the records of races returned for granules of a view, if there is one; ``stamp``, or that of
    each granule, made the access."""
    if found is not None:
        k = found[0]
        mine = stamp[k] if np.ndim(stamp) else stamp
        _report_race(lanes, (*found, mine), site, what, view.element_at(granules[k]))


def _report_race(lanes: Lanes, found: Any, site: Site, what: str, element: str) -> None:
    """Report a race with both accesses; a copy whose bytes have not been waited for is a finding of its own kind."""
    _, stamp, number, kind, count, mine = found
    launch = lanes.launch
    other = launch.sites[int(number)]
    if launch.issuer(stamp) is not None or stamp // launch.slots % EPOCHS == UNDER_WAY:
        done = {"read": "reads", "write": "writes"}.get(what, "updates")
        began = "what" if launch.issuer(stamp) is None else "the bulk copy that"
        launch.findings.add(
            "async",
            f"{what} of {element} before {began} {_NOTES[kind]} it asynchronously has been waited for",
            (launch.access(site, mine, done), launch.access(other, int(stamp), "began it")),
            count,
        )
        return
    a, b = launch.who(mine), launch.who(stamp)
    order = "of different blocks" if a[0] != b[0] else "and no barrier lies between"
    launch.findings.add(
        "race",
        f"{element}: a {what} and a {kind} by different threads, {order}",
        (launch.access(site, mine, _NOTES[what]), launch.access(other, int(stamp), _NOTES[kind])),
        count,
    )
