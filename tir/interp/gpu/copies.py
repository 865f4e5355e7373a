"""cp.async: copies whose data arrives only when their thread waits for the group in which they were committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .access_records import Who, report
from .lanes import Lanes
from .memory import View
from .report import Site


@dataclass
class Copy:
    """A copy in flight, by the threads ``threads``, to elements ``at`` ([n, v]) of ``view``."""

    view: View
    threads: np.ndarray
    at: np.ndarray
    values: np.ndarray
    site: Site

    def arrive(self) -> None:
        """Write the bytes."""
        self.view.flat[self.at] = self.values
        assert self.view.memory.pending is not None
        self.view.memory.pending[self.view.granules(self.at)] = 0

    def take(self, keep: np.ndarray) -> Copy | None:
        if keep.all():
            return self
        if not keep.any():
            return None
        return Copy(self.view, self.threads[keep], self.at[keep], self.values[keep], self.site)


def start(
    lanes: Lanes,
    act: Any,
    site: Site,
    source: Site,
    dst: tuple[Any, Any],
    src: tuple[Any, Any],
    size: int,
    predicate: Any = None,
) -> None:
    """Begin a copy of ``size`` bytes per thread; if ``predicate`` is false zeros are written."""
    to, of = dst[0], src[0]
    here = lanes.all if act is None else act
    each = np.arange(size // to.item)
    begin = lanes.whole(dst[1])
    at, live = to._positions(begin[:, None] + each, here, site)
    values = np.zeros((lanes.count, size), np.uint8)
    reading = live if predicate is None else live[lanes.spread(predicate)[live].astype(bool)]
    if len(reading):
        begin = lanes.whole(src[1])
        where, read = of._positions(begin[:, None] + np.arange(size // of.item), reading, source)
        of.touch(where, read, source, False)
        values[read] = np.ascontiguousarray(of.flat[where]).view(np.uint8).reshape(len(read), size)
    if not len(live):
        return
    memory, granules = to.memory, to.granules(at)
    if memory.pending is None:
        memory.pending = np.zeros(len(memory.data) * memory.data.itemsize // memory.granule, np.int32)
        memory.pending_by = np.zeros(len(memory.pending), np.int64)
        memory.in_flight = np.zeros_like(memory.data)
    assert memory.pending_by is not None and memory.in_flight is not None
    bytes_ = values[live].view(to.storage)
    flight = memory.in_flight.view(to.storage)
    # As with plain stores, threads that copy equal bytes to the same place by one statement do not race.
    again = to.same(flight[at], bytes_)
    flight[at] = bytes_
    to.touch(at, live, site, True, same=(again, to.same(flight[at], bytes_)))
    memory.pending[granules] = site.number + 1
    memory.pending_by[granules] = np.repeat(lanes.stamp[live], len(granules) // len(live))
    lanes.copies.append(Copy(to, live, at, bytes_, site))


def _split(copies: list[Copy], mine: np.ndarray) -> tuple[list[Copy], list[Copy]]:
    """The copies of the threads that ``mine`` flags, and those of the others."""
    parts = [(copy.take(mine[copy.threads]), copy.take(~mine[copy.threads])) for copy in copies]
    return [one for one, _ in parts if one is not None], [other for _, other in parts if other is not None]


def commit(lanes: Lanes, act: Any) -> None:
    """Make the copies that the active threads have begun their newest group."""
    active = np.zeros(lanes.count, bool)
    active[lanes.all if act is None else act] = True
    group, lanes.copies = _split(lanes.copies, active)
    lanes.groups.append((active, group))


def detach(lanes: Lanes, threads: np.ndarray) -> list[Copy]:
    """Take the copies of threads out of their groups: a transaction barrier waits for them instead."""
    mine = np.zeros(lanes.count, bool)
    mine[threads] = True
    taken, lanes.copies = _split(lanes.copies, mine)
    for k, (active, group) in enumerate(lanes.groups):
        some, rest = _split(group, mine)
        taken += some
        lanes.groups[k] = active, rest
    return taken


def wait(lanes: Lanes, act: Any, newest: int) -> None:
    """The active threads wait for all but the last ``newest`` groups that they committed."""
    here = lanes.all if act is None else act
    waiting = np.zeros(lanes.count, bool)
    waiting[here] = True
    seen = np.zeros(lanes.count, np.int64)
    kept = []
    for active, group in reversed(lanes.groups):
        land = waiting & active & (seen >= newest)
        rest = []
        for copy in group:
            done = copy.take(land[copy.threads])
            if done is not None:
                _land(lanes, done)
            left = copy.take(~land[copy.threads])
            if left is not None:
                rest.append(left)
        seen += active
        active = active & ~land
        if active.any():
            kept.append((active, rest))
    lanes.groups = kept[::-1]


def _land(lanes: Lanes, copy: Copy) -> None:
    """Write the bytes: they are visible to their thread now, to others after a barrier."""
    view, memory = copy.view, copy.view.memory
    copy.arrive()
    granules = view.granules(copy.at)
    if memory.races is not None:
        who = Who(lanes, copy.threads, len(granules) // len(copy.threads))
        told = np.ones(len(granules), bool)  # copies by one statement were compared when they began
        found = memory.races.write(granules, who, copy.site, same=(told, told))
        report(lanes, view, granules, found, who.stamp, copy.site, "write")
