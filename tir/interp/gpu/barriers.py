"""Transaction barriers (mbarrier) with phases.

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
from .report import Access, Site


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
    copies: list[Any] = field(default_factory=list)  # bulk copies in flight
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


def named(
    lanes: Lanes, act: Any, site: Site, number: Any, places: np.ndarray | None = None
) -> list[tuple[int, int, np.ndarray]]:
    """The barriers that the active threads name, each with its block's place (``places``, or the threads' own), its number
    and the threads; without those that do not exist."""
    here = lanes.all if act is None else act
    places = lanes.place[here] if places is None else places
    count = lanes.group.barriers.count
    numbers = lanes.spread(number)[here].astype(np.int64)
    bad = (numbers < 0) | (numbers >= count)
    if bad.any():
        k = int(np.argmax(bad))
        lanes.fail("bounds", f"barrier {numbers[k]} does not exist: there are {count}", site, here[bad])
        here, numbers, places = here[~bad], numbers[~bad], places[~bad]
    pairs = sorted(set(zip(places.tolist(), numbers.tolist())))
    return [(place, b, here[(places == place) & (numbers == b)]) for place, b in pairs]


def ready(lanes: Lanes, barrier: Barrier, number: int, threads: np.ndarray, site: Site) -> bool:
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
    for place, b, threads in named(lanes, act, site, number):
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
    arrive_at(lanes, here, site, number, lanes.place[here], expect)


def arrive_at(lanes: Lanes, here: np.ndarray, site: Site, number: Any, places: np.ndarray, expect: Any = 0) -> None:
    """Threads arrive at a barrier of the blocks ``places``."""
    announced = lanes.spread(expect)
    for place, b, threads in named(lanes, here, site, number, places):
        barrier = lanes.group.barriers.table[place][b]
        if not ready(lanes, barrier, b, threads, site):
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

    def __init__(self, lanes: Lanes, act: Any, site: Site, number: Any, parity: Any = 0):
        self.lanes = lanes
        self.site = site
        self.parity = lanes.spread(parity)
        self.left = [
            (place, b, threads)
            for place, b, threads in named(lanes, act, site, number)
            if ready(lanes, lanes.group.barriers.table[place][b], b, threads, site)
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


def arrive_after_copies(lanes: Lanes, act: Any, site: Site, number: Any) -> None:
    """The phase is not over before the ``cp.async`` copies of the threads are done; this is none of its arrivals."""
    for place, b, threads in named(lanes, act, site, number):
        barrier = lanes.group.barriers.table[place][b]
        if ready(lanes, barrier, b, threads, site):
            barrier.threads_copies += detach(lanes, threads)
            lanes.clocks.release(barrier.current, lanes.row[threads])
            lanes.clocks.advance(lanes, threads)
            lanes.launch.progress += 1
