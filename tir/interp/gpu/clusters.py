"""Clusters of blocks, and what warpgroups agree on: barriers of the cluster, arrivals at another block's, registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from .barriers import arrive_at
from .lanes import Lanes
from .report import Access, Site
from .wgmma import whole

_REGISTERS = 1 << 16  # of a block


def teams(grid: tuple[int, int, int], cluster: Sequence[int]) -> np.ndarray:
    """The blocks of each cluster, a row each, by their rank. Raises ``RunError`` if clusters do not divide the grid."""
    sizes = tuple(int(n) for n in cluster)
    if len(sizes) != 3 or any(n < 1 or g % n for n, g in zip(sizes, grid)) or np.prod(sizes) > 16:
        raise RunError(f"clusters of {sizes} blocks do not divide a grid of {grid}, or have more than 16 blocks")
    x, y, z = (np.arange(g) for g in grid)
    number = x + grid[0] * (y[:, None] + grid[1] * z[:, None, None])
    a, b, c = sizes
    parts = number.reshape(grid[2] // c, c, grid[1] // b, b, grid[0] // a, a)
    return parts.transpose(0, 2, 4, 1, 3, 5).reshape(-1, a * b * c)


class Meeting:
    """The barrier of the cluster: threads arrive, and later wait until all have."""

    def __init__(self, lanes: Lanes):
        self.total = len(lanes.group.blocks) * lanes.launch.threads
        self.arrived = 0
        self.clocks = (lanes.clocks.clock(), lanes.clocks.clock())  # of two barriers in turn

    @staticmethod
    def of(lanes: Lanes) -> Meeting:
        if lanes.group.meeting is None:
            lanes.group.meeting = Meeting(lanes)
        return lanes.group.meeting


def arrive(lanes: Lanes, act: Any, site: Site) -> None:
    """The threads arrive at the barrier of the cluster."""
    if not lanes.whole_warps(act, site, "an arrival at the barrier of the cluster"):
        return
    here = lanes.all if act is None else act
    meeting = Meeting.of(lanes)
    turn = lanes.cluster_turns[here]
    if (turn != turn[0]).any() or turn[0] % 2:
        lanes.fail("barrier", "a thread arrives at the barrier of the cluster twice, and has not waited", site, here[0])
        return
    lanes.clocks.release(meeting.clocks[turn[0] // 2 % 2], lanes.row[here])
    lanes.clocks.advance(lanes, here)
    lanes.cluster_turns[here] += 1
    meeting.arrived += len(here)
    lanes.launch.progress += 1


class Wait:
    """Threads that wait for the cluster: ``blocked`` until all of its threads have arrived."""

    def __init__(self, lanes: Lanes, act: Any, site: Site):
        self.lanes = lanes
        self.site = site
        self.here = lanes.all if act is None else act
        self.turn = int(lanes.cluster_turns[self.here[0]])
        if self.turn % 2 == 0:
            lanes.fail("barrier", "a thread waits for the cluster, and has not arrived", site, self.here[0])
        lanes.waits.append(self)

    def blocked(self) -> bool:
        lanes, meeting = self.lanes, Meeting.of(self.lanes)
        if self.turn % 2 and meeting.arrived < meeting.total * (self.turn // 2 + 1):
            return True
        if self.turn % 2:
            lanes.clocks.acquire(meeting.clocks[self.turn // 2 % 2], lanes.row[self.here])
            lanes.cluster_turns[self.here] = self.turn + 1
        lanes.waits.remove(self)
        return False

    def report(self) -> None:
        """Some never arrive: a finding."""
        lanes, meeting = self.lanes, Meeting.of(self.lanes)
        missing = meeting.total * (self.turn // 2 + 1) - meeting.arrived
        here = lanes.launch.access(self.site, lanes.stamp[self.here[0]], "waits")
        text = f"{missing} of the {meeting.total} threads of the cluster never arrive at its barrier"
        lanes.launch.findings.add("barrier", text, (here,), len(self.here))


def arrive_remote(lanes: Lanes, act: Any, site: Site, number: Any, rank: Any) -> None:
    """Arrive at a barrier of another block of the cluster."""
    here = lanes.all if act is None else act
    ranks = lanes.spread(rank)[here].astype(np.int64)
    blocks = len(lanes.group.blocks)
    bad = (ranks < 0) | (ranks >= blocks)
    if bad.any():
        text = f"rank {ranks[np.argmax(bad)]} is not one of the {blocks} blocks of the cluster"
        lanes.fail("bounds", text, site, here[bad])
        here, ranks = here[~bad], ranks[~bad]
    arrive_at(lanes, here, site, number, ranks)


def set_registers(lanes: Lanes, act: Any, site: Site, count: int, increase: int) -> None:
    """Each thread of the warp, and of its warpgroup, has ``count`` registers from now on."""
    if count % 8 or not 24 <= count <= 256:
        raise RunError(f"ptx_setmaxnreg takes a multiple of 8 from 24 to 256 registers, not {count}")
    if not whole(lanes, act, site, "a change of the number of registers"):
        return
    key = (int(lanes.place[0]), int(lanes.thread[0]) // 32)
    before = lanes.group.registers.get(key)
    if before is not None and (count < before[0]) == bool(increase):
        how = "increases to" if increase else "decreases to"
        lanes.fail("barrier", f"a warpgroup that has {before[0]} registers {how} {count}", site, 0)
    lanes.group.registers[key] = count, lanes.launch.access(site, lanes.stamp[0], "takes them")


def finish(group: Any, launch: Any) -> None:
    """What a block has at its end: operations of warpgroups that all their warps executed, and no more registers taken
    than there are, or a warp would wait for ever."""
    for (_, number), warpgroup in group.warpgroups.items():
        warpgroup.finish(launch, number)
    for place in range(len(group.blocks)):
        taken: dict[int, Access] = {n: access for (p, _), (n, access) in group.registers.items() if p == place}
        total = 32 * sum(n for (p, _), (n, _) in group.registers.items() if p == place)
        if total > _REGISTERS:
            text = f"the warpgroups of a block take {total} registers; it has {_REGISTERS}, so that one waits for ever"
            launch.findings.add("barrier", text, tuple(taken.values()))
