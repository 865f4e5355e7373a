"""The copy engine: bulk copies between global and shared memory, beside the threads that begin them.

Copies to shared memory are counted by a transaction barrier, and land when a thread waits for it. Copies to global memory
are in groups of the thread that begins them, which waits until they have read shared memory, or have been written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .access_records import Who, report
from .barriers import Barrier, fence_initialised, named, ready
from .clocks import under_way
from .lanes import Lanes, Launch
from .memory import View
from .report import Access, Site, Traffic

BULK = 16  # bytes: addresses and sizes of bulk copies are multiples


@dataclass
class Load:
    """A copy in flight to elements ``at`` of ``view``; ``bytes`` are what its barrier counts."""

    view: View
    at: np.ndarray
    values: np.ndarray
    bytes: int
    number: int
    access: Access


class Start:
    """The beginning of one copy by a thread, which a barrier of block ``place`` counts."""

    def __init__(self, lanes: Lanes, site: Site, thread: int, place: int, number: int):
        self.lanes = lanes
        self.site = site
        self.barriers = lanes.group.barriers
        self.barrier: Barrier = self.barriers.table[place][number]
        self.access = lanes.launch.access(site, lanes.stamp[thread], "starts the copy")
        self.ready = ready(lanes, self.barrier, number, np.array([thread]), site)
        self.barrier.started += 1
        self.stamp = self.barriers.agent(place, number, self.barrier.started)
        lanes.launch.issuers[self.stamp] = int(lanes.stamp[thread])
        self.thread = np.array([thread])
        if self.ready and not self.barrier.fenced:
            assert self.barrier.made_at is not None
            message = f"a copy is counted by barrier {number}, and no ptx_fence_barrier_init follows its initialisation"
            lanes.launch.findings.add("async", message, (self.access, self.barrier.made_at))

    def read(self, of: View, where: np.ndarray, site: Site) -> np.ndarray:
        """The elements of global memory, which the copy reads until it is waited for."""
        self._touch(of, where, site, False)
        count_run(self.lanes.launch, of, where, site)
        return np.ascontiguousarray(of.flat[where])

    def write(self, to: View, at: np.ndarray, values: np.ndarray, size: int) -> None:
        """The elements of shared memory, which have their values when the copy lands."""
        self._touch(to, at, self.site, True)
        if to.memory.written is not None:
            to.memory.written[to.granules(at)] = True
        self.barrier.copies.append(Load(to, at, values, size, self.barrier.started, self.access))
        self.lanes.launch.progress += 1

    def _touch(self, view: View, at: np.ndarray, site: Site, write: bool) -> None:
        """Check for races with what others did, as far as the thread that begins the copy knows."""
        races = view.memory.races
        if races is None:
            return
        granules = view.granules(at)
        who = Who(self.lanes, self.thread, len(granules))
        who.stamp = np.full(len(granules), self.stamp)
        found = races.write(granules, who, site) if write else races.read(granules, who, site)
        report(self.lanes, view, granules, found, self.stamp, site, "write" if write else "read")


def count_run(launch: Launch, view: View, at: np.ndarray, site: Site) -> None:
    """Count a request of the copy engine for elements of global memory."""
    if not len(at):
        return
    traffic = launch.traffic.get(site.number)
    if traffic is None:
        traffic = launch.traffic[site.number] = Traffic(view.space, len(at) * view.item, site=site)
    traffic.requests += 1
    traffic.sectors += len(np.unique(at * view.item // 32))
    traffic.useful += len(at) * view.item


def bulk(
    lanes: Lanes,
    act: Any,
    site: Site,
    source: Site,
    dst: tuple[Any, Any],
    src: tuple[Any, Any],
    size: Any,
    number: Any,
) -> None:
    """Begin a copy of ``size`` contiguous bytes from global to shared memory by each active thread."""
    to, of = dst[0], src[0]
    sizes = lanes.spread(size)
    begin, origin = lanes.whole(dst[1]), lanes.whole(src[1])
    for place, b, threads in named(lanes, act, site, number):
        for thread in (int(t) for t in threads):
            count = int(sizes[thread])
            if not _aligned(lanes, site, thread, count, int(begin[thread]) * to.item, int(origin[thread]) * of.item):
                continue
            at = to.of_one(begin[thread] + np.arange(count // to.item), thread, site)
            where = of.of_one(origin[thread] + np.arange(count // of.item), thread, source)
            if not len(at) or not len(where):
                continue
            copy = Start(lanes, site, thread, place, b)
            if copy.ready:
                copy.write(to, at, copy.read(of, where, source).view(np.uint8).view(to.storage), count)


def _aligned(lanes: Lanes, site: Site, thread: int, size: int, to: int, of: int) -> bool:
    bad = [
        f"{what} {number}"
        for what, number in (("size", size), ("shared byte offset", to), ("global byte offset", of))
        if number % BULK
    ]
    if bad or size <= 0:
        text = f"a bulk copy of {size} bytes has {' and '.join(bad) or 'no bytes'}, not a multiple of {BULK}"
        lanes.fail("alignment", text, site, thread)
    return not bad and size > 0


# ---------------------------------------------------------------- reads of shared memory beside the threads


def read_shared(lanes: Lanes, view: View, at: np.ndarray, thread: int, site: Site, what: str) -> None:
    """A thread (or its warp) begins to read elements ``at`` of shared memory by another way than loads: the elements are
    written, by copies that were waited for, or by stores with a proxy fence behind them."""
    memory, granules = view.memory, view.granules(at)
    view.require_written(granules, f"{what} reads", site, np.array([thread]))
    races: Any = memory.races
    if races is None:
        return
    found = races.begin_read(granules, lanes, thread, site)
    report(lanes, view, granules, found, lanes.stamp[thread], site, "read")
    if found is None:
        _check_fences(lanes, view, granules, thread, site, what)


def end_read(lanes: Lanes, view: View, at: np.ndarray, thread: int, site: Site) -> None:
    """A thread has waited for what it began to read: what was written meanwhile is a conflict."""
    races: Any = view.memory.races
    if races is not None:
        granules = view.granules(at)
        found = races.end_read(granules, lanes, thread, site)
        report(lanes, view, granules, found, lanes.stamp[thread], site, "read")


def keep_reading(lanes: Lanes, view: View, at: np.ndarray, thread: int, site: Site) -> None:
    """A thread still reads, after it has waited for something else that reads the same."""
    races: Any = view.memory.races
    if races is not None:
        races.keep_reading(view.granules(at), lanes, thread, site)


def _check_fences(lanes: Lanes, view: View, granules: np.ndarray, thread: int, site: Site, what: str) -> None:
    """Stores by threads are visible to others' asynchronous reads after a proxy fence only."""
    races: Any = view.memory.races
    writer = races.writer[granules]
    slot = writer % lanes.launch.slots
    stored = np.flatnonzero((writer != -1) & (slot < lanes.launch.threads + lanes.launch.warps))
    if not len(stored):
        return
    rows = np.full(len(stored), lanes.row[thread])
    unseen = stored[~lanes.clocks.knows(rows, writer[stored], fenced=True)]
    if len(unseen):
        launch, k = lanes.launch, unseen[0]
        launch.findings.add(
            "async",
            f"{what} reads {view.element_at(granules[k])}, which a thread stored, and no "
            "ptx_fence_proxy_async lies between",
            (
                launch.access(site, lanes.stamp[thread], "reads"),
                launch.access(launch.sites[int(races.writer_site[granules[k]])], writer[k], "stores"),
            ),
            len(unseen),
        )


def fence(lanes: Lanes, act: Any) -> None:
    """A proxy fence: what the threads stored, and know that others did, is visible to the copy engine."""
    fence_initialised(lanes, act)
    lanes.clocks.fence(lanes, lanes.all if act is None else act)


# ---------------------------------------------------------------- copies to global memory


@dataclass
class Store:
    """A copy under way from shared memory (``at`` of ``source``) to global memory (``where`` of ``to``)."""

    source: View
    at: np.ndarray
    to: View
    where: np.ndarray
    values: np.ndarray
    site: Site
    read: bool = False  # whether shared memory may change again


@dataclass
class Stores:
    """The bulk stores of one thread: those not yet in a group, and its groups, oldest first."""

    open: list[Store] = field(default_factory=list)
    groups: list[list[Store]] = field(default_factory=list)

    def all(self) -> list[Store]:
        return [s for group in (*self.groups, self.open) for s in group]


def begin_store(lanes: Lanes, thread: int, store: Store) -> None:
    """Begin a copy to global memory: read now, written when it is waited for."""
    read_shared(lanes, store.source, store.at, thread, store.site, "a bulk store")
    races: Any = store.to.memory.races
    if races is not None:
        granules = store.to.granules(store.where)
        who = Who(lanes, np.array([thread]), len(granules))
        found = races.write(granules, who, store.site)
        report(lanes, store.to, granules, found, lanes.stamp[thread], store.site, "write")
        races.writer[granules] = under_way(lanes, thread)
    count_run(lanes.launch, store.to, store.where, store.site)
    lanes.stores.setdefault(thread, Stores()).open.append(store)


def commit(lanes: Lanes, act: Any) -> None:
    """Make the bulk stores of each active thread since the last call a group."""
    for thread in (int(t) for t in (lanes.all if act is None else act)):
        mine = lanes.stores.get(thread)
        if mine is not None:
            mine.groups.append(mine.open)
            mine.open = []


def wait(lanes: Lanes, act: Any, newest: int, written: bool) -> None:
    """Each active thread waits until all but its last ``newest`` groups have read shared memory, and are ``written``."""
    for thread in (int(t) for t in (lanes.all if act is None else act)):
        mine = lanes.stores.get(thread)
        if mine is None:
            continue
        done = mine.groups[: max(0, len(mine.groups) - newest)]
        for store in (s for group in done for s in group):
            _end(lanes, thread, store, written)
        if written:
            mine.groups = mine.groups[len(done) :]
        for store in mine.all():
            if not store.read:
                keep_reading(lanes, store.source, store.at, thread, store.site)


def _end(lanes: Lanes, thread: int, store: Store, written: bool) -> None:
    if not store.read:
        store.read = True
        end_read(lanes, store.source, store.at, thread, store.site)
    if not written:
        return
    store.to.flat[store.where] = store.values
    races: Any = store.to.memory.races
    if races is not None:
        granules = store.to.granules(store.where)
        still = granules[races.writer[granules] == under_way(lanes, thread)]
        races.writer[still] = lanes.stamp[thread]


def finish(lanes: Lanes) -> None:
    """At the end of a block its stores must have read shared memory; they are written before the next kernel."""
    for thread, mine in lanes.stores.items():
        for store in mine.all():
            if not store.read:
                here = lanes.launch.access(store.site, lanes.stamp[thread], "begins it")
                message = "the block ends before a bulk store is known to have read shared memory"
                lanes.launch.findings.add("async", message, (here,))
            store.to.flat[store.where] = store.values
