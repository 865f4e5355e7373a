"""Whose turn it is: blocks in batches, their threads in one chunk or warp by warp, in any order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...dtype import DType
from ...expr import Var
from ...levels import is_shared
from ...progress import track
from . import clusters, engine, wgmma
from .barriers import Barriers
from .clocks import Clocks
from .lanes import Group, Lanes, Launch
from .memory import LocalView, Memory, View
from .report import Access

_BATCH = 4096  # threads run at once
_MEMORY = 1 << 20  # limit of their shared memory in all, in bytes

# What a chunk of threads yields: it can go on; it waits at a barrier of the block; for the phase of a barrier, or the like.
GOES, MEETS, BLOCKED = 0, 1, 2


class Chunk(Lanes):
    """Threads run together, with the run-time interface of the compiled kernel."""

    def __init__(self, launch: Launch, group: Group, block: np.ndarray, thread: np.ndarray):
        super().__init__(launch, group, block, thread)
        self.products = wgmma.Products()

    def view(self, memory: Any, dtype: DType, shape: Any, offset: int, name: str) -> Any:
        """A view of ``shape`` (None: all of it) over memory."""
        if isinstance(memory, LocalView):
            return memory if shape is None else memory.of_shape(shape)
        if shape is None:
            copy = memory.size if memory.space() != "global" else memory.data.nbytes
            shape = (copy // max(1, dtype.bytes // dtype.lanes),)
        return View(self, memory, dtype, shape, offset, name)

    def local(self, count: int, dtype: DType, name: str) -> LocalView:
        return LocalView(self, count, dtype, name)

    def allocate(self, key: Any, name: str, scope: str, size: int, granule: int) -> Memory:
        """Memory of the block or the warp, allocated when its first thread gets here; or of the thread."""
        launch = self.launch
        if scope == "local":
            return Memory.fresh(name, scope, size, self.count, granule, False, launch)
        found = self.group.memories.get(key)
        if found is None:
            blocks = len(self.group.blocks)
            shared = is_shared(scope)
            copies = blocks if shared else blocks * -(-launch.threads // 32)
            found = Memory.fresh(name, scope, size, copies, granule, shared, launch)
            self.group.memories[key] = found
            if shared:
                launch.shared_bytes[key] = size
        return found

    def constant(self, name: str, data: np.ndarray, granule: int) -> Memory:
        return Memory(name, "global", np.ascontiguousarray(data).reshape(-1), granule, data.nbytes)


def diverge(launch: Launch, *branches: Iterator[int]) -> Iterator[int]:
    """Run the branches of a condition that threads of a chunk decide differently, each until it waits, in turn."""
    alive, meeting = list(branches), set()
    while alive:
        before, ended = launch.progress, len(alive)
        for branch in [b for b in alive if b not in meeting]:
            state = next(branch, None)
            while state == GOES:
                yield GOES
                state = next(branch, None)
            if state is None:
                alive.remove(branch)
            elif state == MEETS:
                meeting.add(branch)
        if alive and len(meeting) == len(alive):
            yield MEETS
            meeting = set()
        elif launch.progress == before and len(alive) == ended:
            yield BLOCKED


def run_blocks(
    run: Any,
    launch: Launch,
    memories: dict[Var, Memory],
    scalars: dict[Var, Any],
    order: str,
    chance: random.Random,
    shared: int,
) -> None:
    """Run all blocks of a launch, as many at a time as fit."""
    if launch.asynchronous:
        _run_clusters(run, launch, memories, scalars, order, chance)
        return
    blocks = np.array(_ordered(range(launch.grid[0] * launch.grid[1] * launch.grid[2]), order, chance))
    batch = max(1, min(_BATCH // launch.threads, _MEMORY // max(1, shared)))
    batches = range(0, len(blocks), batch)
    for first in track(batches, f"simulator: {min(batch, len(blocks))} thread blocks at a time", len(batches)):
        group = Group(blocks[first : first + batch])
        if order == "forward":
            count = len(group.blocks)
            place = np.repeat(np.arange(count), launch.threads)
            chunk = Chunk(launch, group, place, np.tile(np.arange(launch.threads), count))
            for _ in track(run(chunk, memories, scalars), "simulator: barriers"):
                pass
            continue
        chunks = _chunks(launch, group, np.arange(len(group.blocks)), order)
        _run_warps(launch, [(chunk, run(chunk, memories, scalars)) for chunk in chunks], order, chance)


def _ordered(numbers: Sequence[int], order: str, chance: random.Random) -> list[int]:
    made = list(numbers)
    if order == "reverse":
        made.reverse()
    elif order == "random":
        chance.shuffle(made)
    return made


def _run_clusters(
    run: Any, launch: Launch, memories: dict[Var, Memory], scalars: dict[Var, Any], order: str, chance: random.Random
) -> None:
    """Run clusters (of one block, mostly) one after another, the warps of each block by themselves: blocks that wait for
    nothing of each other would wait in lockstep."""
    teams = clusters.teams(launch.grid, launch.cluster)
    for number in track(_ordered(range(len(teams)), order, chance), "simulator: clusters", len(teams)):
        group = Group(teams[number])
        group.clocks = Clocks(launch, group.blocks)
        group.barriers = Barriers(launch, group.clocks, group.blocks)
        places = _ordered(range(len(group.blocks)), order, chance)
        chunks = [c for place in places for c in _chunks(launch, group, np.array([place]), order)]
        if not _run_warps(launch, [(chunk, run(chunk, memories, scalars)) for chunk in chunks], order, chance):
            return
        group.barriers.finish()
        clusters.finish(group, launch)
        for chunk in chunks:
            engine.finish(chunk)
            wgmma.finish(chunk)


def _chunks(launch: Launch, group: Group, places: np.ndarray, order: str) -> list[Chunk]:
    """A chunk for each warp, the same of all blocks at ``places``."""
    chunks = []
    for start in range(0, launch.threads, 32):
        threads = np.arange(start, min(start + 32, launch.threads))
        if order == "reverse":
            threads = threads[::-1].copy()
        chunks.append(Chunk(launch, group, np.repeat(places, len(threads)), np.tile(threads, len(places))))
    return chunks[::-1] if order == "reverse" else chunks


def _run_warps(launch: Launch, chunks: list[Any], order: str, chance: random.Random) -> bool:
    """Run the warps of blocks, each until it waits, until all end. Returns false if some wait for ever."""
    running, waiting, blocked, ended = list(chunks), [], [], []
    while running:
        at = chance.randrange(len(running)) if order == "random" else 0
        chunk, steps = running.pop(at)
        turns = chance.randrange(1, 16) if order == "random" else 1 if order == "warp_interleaved" else None
        state = _advance(steps, turns)
        if state is None:
            ended.append(chunk)
        elif state == MEETS:
            waiting.append((chunk, steps))
        elif state == BLOCKED:
            blocked.append((launch.progress, chunk, steps))
        else:
            running.append((chunk, steps))
        if running:
            continue
        running = [(chunk, steps) for seen, chunk, steps in blocked if seen != launch.progress]
        blocked = [entry for entry in blocked if entry[0] == launch.progress]
        for place in {int(chunk.place[0]) for chunk, _ in waiting} - {int(entry[1].place[0]) for entry in blocked}:
            met = [pair for pair in waiting if pair[0].place[0] == place]
            if not any(chunk.place[0] == place for chunk, _ in running):
                _check_meeting(launch, met, [chunk for chunk in ended if chunk.place[0] == place])
                ended = [chunk for chunk in ended if chunk.place[0] != place]
                waiting = [pair for pair in waiting if pair[0].place[0] != place]
                running += sorted(met, key=lambda pair: chunks.index(pair))
    for _, chunk, _ in blocked:
        for wait in chunk.waits:
            wait.report()
    return not blocked


def _advance(steps: Any, turns: int | None) -> int | None:
    """Run a warp for some statements (None: until it waits or ends). Returns what it yielded last, None at its end."""
    while turns is None or turns > 0:
        state = next(steps, None)
        if state is None or state != GOES:
            return state
        if turns is not None:
            turns -= 1
    return GOES


def _check_meeting(launch: Launch, waiting: list[Any], ended: list[Chunk]) -> None:
    """Check that all warps of a block reach the same barrier, and none ends while others wait."""
    if not waiting:
        return
    first = waiting[0][0]
    others = [c for c, _ in waiting if c.waits_at is not first.waits_at]
    here = Access(first.waits_at, *launch.who(first.stamp[0]), note="waits")
    for other in others[:1]:
        there = Access(other.waits_at, *launch.who(other.stamp[0]), note="waits here instead")
        launch.findings.add("barrier", "threads of a block wait at different barriers", (here, there))
    for other in ended[:1]:
        missing = Access(first.waits_at, *launch.who(other.stamp[0]), note="has ended")
        launch.findings.add("barrier", "a barrier that not all threads of the block reach", (here, missing))
