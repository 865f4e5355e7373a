"""Threads that run in lockstep: their numbers, their warps, barriers, shuffles.

A ``Lanes`` holds threads of one or more blocks; every per-thread value is an array with one entry per thread. ``act``
says which of them are active: None for all, else an array of their positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .report import Access, Findings, Site

EPOCHS = 1 << 20  # limit of barrier intervals of a block
_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass
class Engines:
    """What a kernel uses beside its threads' own accesses: how many transaction barriers, whether products of warpgroups, and
    whether any of these, the copy engine, or a cluster of several blocks."""

    transactions: int = 0
    products: bool = False
    used: bool = False


class Launch:
    """The state that all threads of a launch share."""

    def __init__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        findings: Findings,
        sites: list[Site],
        engines: Engines | None = None,
    ):
        engines = engines or Engines()
        self.grid = grid
        self.cluster: tuple[int, ...] = (1, 1, 1)
        self.block = block
        self.threads = block[0] * block[1] * block[2]
        self.warps = -(-self.threads // 32)
        # In a barrier interval stamps number each thread, then each warp that acts as a whole, then what copies of each
        # transaction barrier do.
        self.slots = self.threads + self.warps + engines.transactions
        self.transactions = engines.transactions
        self.products = engines.products
        self.asynchronous = engines.used  # whether clocks tell the order of accesses
        self.issuers: dict[int, int] = {}  # of copies: the stamp of the thread that began it, by that of the copy
        self.progress = 0  # changes that a waiting thread may wait for
        self.findings = findings
        self.sites = sites
        self.arrivals = 0  # threads that have arrived at a barrier
        self.prints: list[str] = []
        self.traffic: dict[int, Any] = {}
        self.warp_barriers = False
        self.shared_bytes: dict[Any, int] = {}
        self.hook: Any = None

    def issuer(self, stamp: Any) -> int | None:
        """The stamp of the thread that began the copy of this stamp; None for a thread's own access."""
        return self.issuers.get(int(stamp))

    def who(self, number: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Block and thread index of a stamp; of a whole warp, those of its first thread; of a copy, of who began it."""
        number = self.issuers.get(int(number), int(number))
        block, rest = divmod(number, EPOCHS * self.slots)
        thread = rest % self.slots
        if thread >= self.threads:
            thread = (thread - self.threads) * 32
        return _index(block, self.grid), _index(thread, self.block)

    def access(self, site: Site, stamp: Any, note: str = "") -> Access:
        block, thread = self.who(stamp)
        return Access(site, block, thread, note)


def _index(number: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


class Group:
    """Blocks that run at once, and their shared memory, allocated on first use."""

    def __init__(self, blocks: np.ndarray):
        self.blocks = blocks
        self.memories: dict[Any, Any] = {}
        self.clocks: Any = None  # of threads that other things than barriers of the block order
        self.barriers: Any = None  # transaction barriers
        self.meeting: Any = None  # the barrier of the cluster
        self.registers: dict[tuple[int, int], Any] = {}  # of each warp, if it asked for a number
        self.warpgroups: dict[tuple[int, int], Any] = {}  # what their warps execute together


class Lanes:
    """Threads run in lockstep. ``stamp`` numbers a thread in its barrier interval: block, interval, thread."""

    def __init__(self, launch: Launch, group: Group, block: np.ndarray, thread: np.ndarray):
        self.launch = launch
        self.group = group
        self.count = len(block)
        self.all = np.arange(self.count)
        self.block = group.blocks[block]  # linear block number
        self.place = block  # position of the block in the group
        self.thread = thread
        self.warp_of = block * launch.warps + thread // 32
        self.lane = thread % 32
        first, self.warp = np.unique(self.warp_of, return_inverse=True)
        self.warps = len(first)
        self.slot = self.warp * 32 + self.lane
        self.straight = self.count == self.warps * 32 and bool((self.slot == self.all).all())
        self.position = np.full(self.warps * 32, -1)
        self.position[self.slot] = self.all
        self.epoch = np.zeros(self.count, np.int64)
        self.warp_epoch = np.zeros(self.count, np.int64)
        self.copies: list[Any] = []  # asynchronous copies not yet in a group
        self.groups: list[Any] = []  # committed groups, oldest first
        self.waits_at: Site | None = None
        self.waits: list[Any] = []  # for phases of transaction barriers, and for the cluster
        self.products: Any = None  # of warpgroups
        self.stores: dict[int, Any] = {}  # bulk stores, by thread
        self.cluster_turns = np.zeros(self.count, np.int64)  # arrivals at the barrier of the cluster, and waits
        self.clocks = group.clocks
        self.row = block * launch.threads + thread  # of the clocks
        self.meetings = 0  # barriers of the block that were reached
        self.restamp()

    def restamp(self) -> None:
        slots = self.launch.slots
        self.block_low = self.block * (EPOCHS * slots)
        self.low = self.block_low + self.epoch * slots
        self.stamp = self.low + self.thread

    def axis(self, tag: str) -> np.ndarray:
        """The index of every thread along ``threadIdx.x``, ``blockIdx.y`` …"""
        which = _AXES[tag[-1]]
        number, extents = (
            (self.thread, self.launch.block) if tag.startswith("thread") else (self.block, self.launch.grid)
        )
        below = 1
        for extent in extents[:which]:
            below *= extent
        return (number // below % extents[which]).astype(np.int32)

    def fail(self, kind: str, message: str, site: Site, at: Any) -> None:
        """Report a finding about the thread at position ``at``, or about the first of those of an array, as so many."""
        first, count = (at[0], len(at)) if np.ndim(at) else (at, 1)
        self.launch.findings.add(kind, message, (self.launch.access(site, self.stamp[first], ""),), count)

    # ------------------------------------------------------------------ barriers

    def barrier(self, act: Any, site: Site) -> None:
        """A barrier of each block; it is a finding if only some threads of a block arrive."""
        launch, places = self.launch, self.place if act is None else self.place[act]
        blocks = len(self.group.blocks)
        arrived = np.bincount(places, minlength=blocks)
        here = np.bincount(self.place, minlength=blocks)
        partial = np.flatnonzero((arrived > 0) & (arrived < here))
        if len(partial):
            lanes = self.all if act is None else act
            waiting = lanes[self.place[lanes] == partial[0]][0]
            missing = np.setdiff1d(self.all[self.place == partial[0]], lanes)[0]
            launch.findings.add(
                "barrier",
                f"a barrier that only {arrived[partial[0]]} of {here[partial[0]]} threads of the block reach: "
                "it stands in divergent control flow",
                (
                    launch.access(site, self.stamp[waiting], "waits"),
                    launch.access(site, self.stamp[missing], "never comes"),
                ),
            )
        launch.arrivals += len(places)
        self.waits_at = site
        if self.clocks is not None:
            self.clocks.meet(self, self.all if act is None else act)
            return
        if act is None:
            self.epoch += 1
        else:
            self.epoch[act] += 1
        self.restamp()

    def barrier_over(self, act: Any) -> None:
        """Go on after a barrier: what all threads of the block did before it is now known."""
        if self.clocks is not None:
            self.clocks.met_all(self, self.all if act is None else act)

    def warp_barrier(self, act: Any, site: Site) -> None:
        """A barrier of each warp."""
        self.whole_warps(act, site, "a warp barrier")
        if self.clocks is not None:
            self.clocks.join_warps(self, self.all if act is None else act)
            return
        if act is None:
            self.warp_epoch += 1
        else:
            self.warp_epoch[act] += 1

    def whole_warps(self, act: Any, site: Site, what: str) -> bool:
        """Whether every warp with an active thread is fully active; a finding otherwise."""
        if act is None:
            return True
        counts = np.bincount(self.warp[act], minlength=self.warps)
        full = np.bincount(self.warp, minlength=self.warps)
        bad = np.flatnonzero((counts > 0) & (counts < full))
        if not len(bad):
            return True
        active = act[self.warp[act] == bad[0]][0]
        idle = np.setdiff1d(self.all[self.warp == bad[0]], act)[0]
        access = self.launch.access
        self.launch.findings.add(
            "warp",
            f"{what} that only {counts[bad[0]]} of {full[bad[0]]} threads of a warp execute; it takes the whole warp",
            (access(site, self.stamp[active], "executes it"), access(site, self.stamp[idle], "does not")),
            len(bad),
        )
        return False

    def warps_of_32(self, act: Any, site: Site, what: str) -> bool:
        """Whether every warp with an active thread has 32, and all are active; a finding otherwise."""
        here = self.all if act is None else act
        there = np.bincount(self.warp, minlength=self.warps)
        small = here[there[self.warp[here]] < 32]
        if not len(small):
            return self.whole_warps(act, site, what)
        self.launch.findings.add(
            "warp",
            f"{what} by a warp that has {there[self.warp[small[0]]]} of 32 threads; it takes all: bind loops to "
            "threadIdx.x, so that the threads of a block are a multiple of 32",
            (self.launch.access(site, self.stamp[small[0]], "executes it"),),
            len(np.unique(self.warp[small])),
        )
        return False

    # ------------------------------------------------------------------ warps

    def rows(self, values: np.ndarray, act: Any, fill: Any = 0) -> np.ndarray:
        """Values of the active threads as one row of 32 per warp."""
        if act is None and self.straight:
            return values.reshape(self.warps, 32, *values.shape[1:])
        made = np.full((self.warps * 32, *values.shape[1:]), fill, values.dtype)
        made[self.slot if act is None else self.slot[act]] = values
        return made.reshape(self.warps, 32, *values.shape[1:])

    def active_mask(self, act: Any) -> np.ndarray:
        """The bits of the active lanes of each thread's warp."""
        bits = np.zeros(self.warps, np.uint32)
        lanes = self.all if act is None else act
        np.bitwise_or.at(bits, self.warp[lanes], np.uint32(1) << self.lane[lanes].astype(np.uint32))
        return bits[self.warp]

    def shuffle(self, how: str, mask: Any, value: Any, other: Any, width: Any, act: Any, site: Site) -> np.ndarray:
        """``value`` of another lane of the warp: ``other`` is a lane, or a distance (up, down) or bits (xor)."""
        values = self.spread(value)
        lanes = self.all if act is None else act
        mask, other, width = (np.broadcast_to(np.asarray(v), (self.count,))[lanes] for v in (mask, other, width))
        other, width = other.astype(np.int64), width.astype(np.int64)
        lane, warp = self.lane[lanes], self.warp[lanes]
        start = lane // width * width
        if how == "up":
            source = np.where(lane - other >= start, lane - other, lane)
        elif how == "down":
            source = np.where(lane + other < start + width, lane + other, lane)
        elif how == "xor":
            source = np.where((lane ^ other) < start + width, lane ^ other, lane)
        else:
            source = start + other % width
        active = np.zeros(self.warps * 32, bool)
        active[self.slot[lanes]] = True
        active = active.reshape(self.warps, 32)
        exists = (self.position >= 0).reshape(self.warps, 32)
        named = ((mask.astype(np.uint32)[:, None] >> np.arange(32, dtype=np.uint32)) & 1).astype(bool)
        absent = named & exists[warp] & ~active[warp]
        access = self.launch.access
        if absent.any():
            k, j = (int(v[0]) for v in np.nonzero(absent))
            idle = self.position[warp[k] * 32 + j]
            self.launch.findings.add(
                "shuffle",
                f"a shuffle whose mask 0x{int(mask[k]) & 0xFFFFFFFF:08x} names lane {j}, which does not execute it: "
                "the warp has diverged",
                (access(site, self.stamp[lanes[k]], "executes it"), access(site, self.stamp[idle], "does not")),
                int(absent.any(axis=1).sum()),
            )
        else:
            unnamed = ~named[np.arange(len(lanes)), lane]
            if unnamed.any():
                k = int(np.flatnonzero(unnamed)[0])
                text = (
                    f"lane {lane[k]} executes a shuffle whose mask 0x{int(mask[k]) & 0xFFFFFFFF:08x} does not name it"
                )
                self.fail("shuffle", text, site, lanes[unnamed])
        gone = ~active[warp, source]
        if gone.any() and not absent.any():
            k = int(np.flatnonzero(gone)[0])
            text = f"a shuffle reads lane {source[k]}, which does not execute it: the value is undefined"
            self.fail("shuffle", text, site, lanes[gone])
        taken = self.position[warp * 32 + source]
        taken = np.where(taken < 0, lanes, taken)
        result = values.copy()
        result[lanes] = values[taken]
        return result

    # ------------------------------------------------------------------ values

    def spread(self, value: Any) -> np.ndarray:
        """A uniform value as one value per thread."""
        array = np.asarray(value)
        return array if array.ndim else np.broadcast_to(array, (self.count,))

    def whole(self, value: Any) -> np.ndarray:
        """An integer, such as the element that a pointer points to, for each thread, in 64 bits."""
        return self.spread(value).astype(np.int64)

    def each(self, value: np.ndarray) -> np.ndarray:
        """A uniform vector as one row per thread."""
        return np.broadcast_to(value, (self.count, *value.shape))

    def say(self, act: Any, parts: tuple[Any, ...]) -> None:
        """Print a line for every active thread."""
        columns = [p if isinstance(p, str) else self.spread(p) for p in parts]
        for at in self.all if act is None else act:
            block, thread = self.launch.who(self.stamp[at])
            words = [c if isinstance(c, str) else str(c[at]) for c in columns]
            self.launch.prints.append(f"block {block} thread {thread}: {' '.join(words)}")


EMPTY = np.zeros(0, np.int64)


def narrow(act: Any, condition: np.ndarray) -> Any:
    """The active threads where ``condition`` holds; None when that is all threads, ``EMPTY`` when none."""
    if act is None:
        if condition.all():
            return None
        found = np.flatnonzero(condition)
    else:
        keep = condition[act]
        if keep.all():
            return act
        found = act[keep]
    return found if len(found) else EMPTY
