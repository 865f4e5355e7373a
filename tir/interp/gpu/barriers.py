"""Transaction barriers (mbarrier) with phases, and the bulk copies whose bytes they count.

A phase of a barrier is over when all its arrivals have come and all bytes that were announced have landed. Copies land as
late as they may: when a thread waits for them. What a wait learns of the threads that arrived, and of the copies that
landed, is in the barrier's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .clocks import Clocks
from .copies import detach
from .lanes import EPOCHS, Lanes, Launch
from .memory import View
from .records import Who, report_race
from .report import Access, Site, Traffic

_BULK = 16  # bytes: addresses and sizes of bulk copies are multiples


@dataclass
class Copy:
    """A bulk copy in flight to elements ``at`` of ``view``; ``bytes`` are what its barrier counts."""

    view: View
    at: np.ndarray
    values: np.ndarray
    bytes: int
    number: int
    access: Access


@dataclass
class Barrier:
    """One barrier of a block: how many threads a phase waits for (0 before it is initialised), and what is missing."""

    expected: int = 0
    left: int = 0
    bytes: int = 0
    phase: int = 0
    made: int = 0  # the stamp of its initialisation
    made_at: Access | None = None
    fenced: bool = False
    copies: list[Copy] = field(default_factory=list)
    threads_copies: list[Any] = field(default_factory=list)  # cp.async, of threads that arrive once they are done
    started: int = 0  # copies, in all
    current: Any = None  # the clock of this phase, and of the last one
    completed: Any = None

    def turn(self) -> bool:
        """Go to the next phase, if this one is over."""
        if self.left or self.bytes or self.threads_copies:
            return False
        self.completed = tuple(part.copy() for part in self.current)
        self.phase += 1
        self.left = self.expected
        return True

    def missing(self) -> str:
        parts = []
        if self.left:
            parts.append(f"{self.left} of {self.expected} arrivals are missing")
        if self.bytes > 0:
            parts.append(f"{self.bytes} bytes were announced that no copy brings")
        if self.bytes < 0:
            parts.append(f"copies bring {-self.bytes} bytes more than were announced")
        return " and ".join(parts) or "it is over, and the next one is not"


class Barriers:
    """The transaction barriers of a group of blocks."""

    def __init__(self, launch: Launch, clocks: Clocks, blocks: np.ndarray):
        self.launch = launch
        self.clocks = clocks
        self.count = launch.transactions
        self.blocks = blocks
        self.table = [[Barrier() for _ in range(self.count)] for _ in blocks]

    def agent(self, place: int, number: int, copy: int) -> int:
        """The stamp of what copy ``copy`` of a barrier does."""
        launch = self.launch
        return int((self.blocks[place] * EPOCHS + copy) * launch.slots + launch.threads + launch.warps + number)

    def land(self, place: int, number: int) -> None:
        """Let copies land until the phase is over."""
        barrier = self.table[place][number]
        if barrier.threads_copies:
            for copy in barrier.threads_copies:
                copy.arrive()
            barrier.threads_copies = []
            if barrier.turn():
                self.launch.progress += 1
                return
        while barrier.copies:
            copy = barrier.copies.pop(0)
            copy.view.flat[copy.at] = copy.values
            barrier.bytes -= copy.bytes
            launch = self.launch
            column = place * launch.slots + launch.threads + launch.warps + number
            for clock in barrier.current:
                clock[column] = copy.number
            launch.progress += 1
            if barrier.turn():
                return

    def finish(self) -> None:
        """At the end of the blocks: a copy that nobody waited for is a finding."""
        for row in self.table:
            for copy in (copy for barrier in row for copy in barrier.copies):
                self.launch.findings.add(
                    "async", "the block ends before a bulk copy has been waited for", (copy.access,)
                )


def _numbers(lanes: Lanes, act: Any, site: Site, number: Any) -> list[tuple[int, int, np.ndarray]]:
    """The barriers that the active threads name: their block's place, number, and the threads; without those that do
    not exist."""
    here = lanes.all if act is None else act
    count = lanes.group.barriers.count
    named = lanes.spread(number)[here].astype(np.int64)
    bad = (named < 0) | (named >= count)
    if bad.any():
        k = int(np.argmax(bad))
        lanes.fail("bounds", f"barrier {named[k]} does not exist: there are {count}", site, here[k], "", int(bad.sum()))
        here, named = here[~bad], named[~bad]
    places = lanes.place[here]
    pairs = sorted(set(zip(places.tolist(), named.tolist())))
    return [(place, b, here[(places == place) & (named == b)]) for place, b in pairs]


def _ready(lanes: Lanes, barrier: Barrier, number: int, threads: np.ndarray, site: Site) -> bool:
    """Whether the barrier was initialised, and the threads know it; else a finding."""
    launch = lanes.launch
    here = launch.access(site, lanes.stamp[threads[0]], "uses it")
    if not barrier.expected:
        launch.findings.add("barrier", f"barrier {number} is used, and nothing has initialised it", (here,))
        return False
    made = np.full(len(threads), barrier.made)
    unknown = ~lanes.clocks.knows(lanes.row[threads], made)
    if unknown.any():
        assert barrier.made_at is not None
        here = launch.access(site, lanes.stamp[threads[int(np.argmax(unknown))]], "uses it")
        message = f"barrier {number} is used, and no barrier orders this after its initialisation"
        launch.findings.add("barrier", message, (here, barrier.made_at), int(unknown.sum()))
    return True


def initialise(lanes: Lanes, act: Any, site: Site, number: Any, count: Any) -> None:
    """Begin phase 0 of a barrier, of which each phase waits for ``count`` arrivals."""
    counts = lanes.spread(count)
    for place, b, threads in _numbers(lanes, act, site, number):
        expected = int(counts[threads[0]])
        if not 0 < expected < 1 << 20:
            lanes.fail("barrier", f"barrier {b} cannot wait for {expected} arrivals", site, threads[0])
            continue
        clocks = lanes.clocks
        barrier = lanes.group.barriers.table[place][b] = Barrier(expected, expected)
        barrier.current, barrier.completed = clocks.clock(), clocks.clock()
        barrier.made = int(lanes.stamp[threads[0]])
        barrier.made_at = lanes.launch.access(site, barrier.made, "initialises it")
    lanes.launch.progress += 1


def fence_initialised(lanes: Lanes, act: Any) -> None:
    """Make the initial state of barriers, as far as the threads know it, visible to copies."""
    first = (lanes.all if act is None else act)[:1]
    for row in lanes.group.barriers.table:
        for barrier in row:
            if barrier.expected and lanes.clocks.knows(lanes.row[first], np.array([barrier.made]))[0]:
                barrier.fenced = True


def arrive(lanes: Lanes, act: Any, site: Site, number: Any, expect: Any = 0) -> None:
    """The threads arrive at a barrier; each also announces ``expect`` bytes of copies to it."""
    here = lanes.all if act is None else act
    announced = lanes.spread(expect)
    for place, b, threads in _numbers(lanes, act, site, number):
        barrier = lanes.group.barriers.table[place][b]
        if not _ready(lanes, barrier, b, threads, site):
            continue
        lanes.clocks.release(barrier.current, lanes.row[threads])
        for thread in threads:
            if barrier.left == 0:
                lanes.group.barriers.land(place, b)
            if barrier.left == 0:
                message = f"a thread arrives at barrier {b}, at whose phase all {barrier.expected} have arrived already"
                lanes.fail("barrier", f"{message} ({barrier.missing()})", site, thread)
                break
            barrier.bytes += int(announced[thread])
            barrier.left -= 1
            barrier.turn()
    lanes.clocks.advance(lanes, here)
    lanes.launch.progress += 1


class Wait:
    """Threads that wait for the phase of a parity: ``blocked`` until it is over for all of them."""

    def __init__(self, lanes: Lanes, act: Any, site: Site, number: Any, parity: Any):
        self.lanes = lanes
        self.site = site
        self.parity = lanes.spread(parity)
        self.left = [
            (place, b, threads)
            for place, b, threads in _numbers(lanes, act, site, number)
            if _ready(lanes, lanes.group.barriers.table[place][b], b, threads, site)
        ]
        lanes.waits.append(self)

    def blocked(self) -> bool:
        lanes, barriers = self.lanes, self.lanes.group.barriers
        still = []
        for place, b, threads in self.left:
            barrier = barriers.table[place][b]
            waiting = self._before(barrier, threads)
            if len(waiting):
                barriers.land(place, b)
                waiting = self._before(barrier, threads)
            over = np.setdiff1d(threads, waiting)
            if len(over):
                lanes.clocks.acquire(barrier.completed, lanes.row[over])
            if len(waiting):
                still.append((place, b, waiting))
        self.left = still
        if not still:
            lanes.waits.remove(self)
        return bool(still)

    def _before(self, barrier: Barrier, threads: np.ndarray) -> np.ndarray:
        """The threads for which the phase that they wait for is not over."""
        return threads[self.parity[threads] % 2 == barrier.phase % 2]

    def report(self) -> None:
        """The phase never ends: a finding with what is missing."""
        launch = self.lanes.launch
        for place, b, threads in self.left:
            barrier = self.lanes.group.barriers.table[place][b]
            parity = int(self.parity[threads[0]]) % 2
            launch.findings.add(
                "barrier",
                f"a thread waits for ever for the phase of parity {parity} of barrier {b}: in phase {barrier.phase} "
                f"{barrier.missing()}",
                (launch.access(self.site, self.lanes.stamp[threads[0]], "waits"),),
                len(threads),
            )


# ---------------------------------------------------------------- bulk copies


def bulk(
    lanes: Lanes,
    act: Any,
    site: Site,
    source: Site,
    dst: tuple[Any, Any],
    dst_at: Any,
    src: tuple[Any, Any],
    src_at: Any,
    size: Any,
    number: Any,
) -> None:
    """Begin a copy of ``size`` contiguous bytes from global to shared memory by each active thread."""
    to, of = dst[0], src[0]
    sizes = lanes.spread(size)
    begin = lanes.spread(dst[1] + dst_at).astype(np.int64)
    origin = lanes.spread(src[1] + src_at).astype(np.int64)
    for place, b, threads in _numbers(lanes, act, site, number):
        for thread in threads:
            one, count = np.array([thread]), int(sizes[thread])
            if not _aligned(lanes, site, thread, count, int(begin[thread]) * to.item, int(origin[thread]) * of.item):
                continue
            at, live = to._positions(begin[:, None] + np.arange(count // to.item), one, site)
            where, read = of._positions(origin[:, None] + np.arange(count // of.item), one, source)
            if not len(live) or not len(read):
                continue
            copy = Start(lanes, site, int(thread), place, b)
            if not copy.ready:
                continue
            values = copy.read(of, where[0], source)
            copy.write(to, at[0], values.view(np.uint8).view(to.storage), count)


def _aligned(lanes: Lanes, site: Site, thread: int, size: int, to: int, of: int) -> bool:
    bad = [
        f"{what} {number}"
        for what, number in (("size", size), ("shared byte offset", to), ("global byte offset", of))
        if number % _BULK
    ]
    if bad or size <= 0:
        text = f"a bulk copy of {size} bytes has {' and '.join(bad) or 'no bytes'}, not a multiple of {_BULK}"
        lanes.fail("alignment", text, site, thread)
    return not bad and size > 0


class Start:
    """The beginning of one copy by a thread, which a barrier of block ``place`` counts."""

    def __init__(self, lanes: Lanes, site: Site, thread: int, place: int, number: int):
        self.lanes = lanes
        self.site = site
        self.barriers = lanes.group.barriers
        self.barrier = self.barriers.table[place][number]
        self.access = lanes.launch.access(site, lanes.stamp[thread], "starts the copy")
        self.ready = _ready(lanes, self.barrier, number, np.array([thread]), site)
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
        self.touch(of, where, site, False)
        count_run(self.lanes.launch, of, where, site)
        return np.ascontiguousarray(of.flat[where])

    def write(self, to: View, at: np.ndarray, values: np.ndarray, size: int) -> None:
        """The elements of shared memory, which have their values when the copy lands."""
        self.touch(to, at, self.site, True)
        if to.memory.written is not None:
            to.memory.written[to.granules(at)] = True
        self.barrier.copies.append(Copy(to, at, values, size, self.barrier.started, self.access))

    def touch(self, view: View, at: np.ndarray, site: Site, write: bool) -> None:
        """Check for races with what others did, as far as the thread that begins the copy knows."""
        races = view.memory.races
        if races is None:
            return
        granules = view.granules(at)
        who = Who(self.lanes, self.thread, len(granules))
        who.stamp = np.full(len(granules), self.stamp)
        found = races.write(granules, who, site) if write else races.read(granules, who, site)
        if found is not None:
            element = view.element(granules[found[0]] // view.per_granule)
            what = "write" if write else "read"
            report_race(self.lanes, (*found, self.stamp), site, what, element)


def count_run(launch: Launch, view: View, at: np.ndarray, site: Site) -> None:
    """Count a copy of contiguous runs of global memory."""
    if not len(at):
        return
    traffic = launch.traffic.get(site.number)
    if traffic is None:
        traffic = launch.traffic[site.number] = Traffic(site, view.space, len(at) * view.item)
    traffic.requests += 1
    traffic.sectors += len(np.unique(at * view.item // 32))
    traffic.useful += len(at) * view.item


def arrive_after_copies(lanes: Lanes, act: Any, site: Site, number: Any) -> None:
    """The phase is not over before the ``cp.async`` copies of the threads are done; this is none of its arrivals."""
    for place, b, threads in _numbers(lanes, act, site, number):
        barrier = lanes.group.barriers.table[place][b]
        if _ready(lanes, barrier, b, threads, site):
            barrier.threads_copies += detach(lanes, threads)
            lanes.clocks.release(barrier.current, lanes.row[threads])
            lanes.clocks.advance(lanes, threads)
            lanes.launch.progress += 1
