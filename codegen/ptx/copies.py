"""Asynchronous copies of threads (cp.async), which land when they are waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .compiler import Compiler, step
from .loads import access, find, take_hints
from .memory import GLOBAL
from .multiprocessor import Machine, Step
from .syntax import Imm, Instruction, PTXFault
from .table import Array, Mods
from .transactions import Transactions, barrier_at


@dataclass
class Copy:
    """A copy of each thread of ``lanes``: ``size`` bytes, the first ``real`` of them from memory, the others zeros.
    ``group``: the number of the group of each thread that it is in."""

    lanes: Array
    target: Array
    source: Array
    size: int
    real: Array
    group: Array
    landed: Array


class Copies:
    """The copies under way. ``committed``: how many groups each thread has ended."""

    def __init__(self, lanes: int):
        self.pending: list[Copy] = []
        self.committed = np.zeros(lanes, np.int64)

    @staticmethod
    def of(m: Machine) -> Copies:
        if m.copies is None:
            m.copies = Copies(m.lanes)
        return m.copies

    def land(self, m: Machine, most: Array) -> None:
        """The copies of which the group is below ``most`` (for each thread of the machine) land."""
        for copy in self.pending:
            now = ~copy.landed & (copy.group < most[copy.lanes])
            if now.any():
                _land(m, copy, now)
                copy.landed |= now
        self.pending = [copy for copy in self.pending if not copy.landed.all()]


def _land(m: Machine, copy: Copy, now: Array) -> None:
    before = m.idx, m.n
    m.idx, m.n = copy.lanes[now], int(now.sum())
    source, target, real = copy.source[now], copy.target[now], copy.real[now]
    for k in range(copy.size):
        some = real > k
        value, known = np.zeros(m.n, np.uint8), np.ones(0, bool)
        if some.any():
            place = m.memory.place(0, source[some] + k - GLOBAL, 1)
            value[some], known = m.memory.load(place, 1)
        (t,) = find(m, "shared", target + k, 1)
        t.space.store(t.place, value, 1)
        if not known.all():
            t.space.forget(t.place[some][~known], 1)
    m.idx, m.n = before


@step("cp")
def _cp(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """``cp.async.ca.shared.global [to], [from], size, real;`` and its groups."""
    if not mods.has("async"):
        raise mods.unknown()
    if mods.has("bulk"):
        from .bulk import bulk

        return bulk(c, inst, mods)
    if mods.left[:1] == ["mbarrier"]:
        return _arrive_after_copies(c, inst, mods)
    what = mods.take("commit_group", "wait_group", "wait_all")
    if what:
        return _groups(c, inst, what)
    take_hints(mods)
    mods.skip("shared", "shared::cta", "global")
    to, _ = c.address(inst.operands[0])
    source, _ = c.address(inst.operands[1])
    size = inst.operands[2].value
    real = c.get(inst.operands[3] if len(inst.operands) > 3 else Imm(size), "u32")

    place = c.at

    def copy(m: Machine) -> None:
        copies = Copies.of(m)
        lanes = m.threads().copy()
        at, origin, count = to(m), source(m), np.minimum(real(m), size).astype(np.int64)
        find(m, "shared", at, 4, size // 4, place)
        if (at % size).any() or (origin[count > 0] % size).any():
            raise PTXFault(f"an asynchronous copy of {size} bytes is not aligned")
        some = count > 0
        if some.any():
            m.memory.place(0, origin[some] - GLOBAL, 1)
            if m.traffic is not None:
                m.traffic.count(place, m.memory, lanes[some], origin[some] - GLOBAL, size)
        group = copies.committed[lanes].copy()
        copies.pending.append(Copy(lanes, at, origin, size, count, group, np.zeros(len(lanes), bool)))

    return access(c, inst, copy)


def _groups(c: Compiler, inst: Instruction, what: str) -> Step:
    count = inst.operands[0].value if inst.operands else 0

    def act(m: Machine) -> None:
        copies = Copies.of(m)
        if what == "commit_group":
            copies.committed[m.idx] += 1
            return
        most = np.full(m.lanes, -1, np.int64)
        most[m.idx] = copies.committed[m.idx] - count if what == "wait_group" else copies.committed[m.idx] + 1
        copies.land(m, most)

    return access(c, inst, act)


def _arrive_after_copies(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """``cp.async.mbarrier.arrive``: an arrival when this thread's copies so far are there."""
    mods.skip("mbarrier", "arrive", "shared", "shared::cta", "b64")
    no_increment = mods.has("noinc")
    read, _ = c.address(inst.operands[0])

    def act(m: Machine) -> None:
        copies, at = Copies.of(m), read(m)
        for k, lane in enumerate(m.threads()):
            barrier = barrier_at(m, int(m.block_of[lane]), int(at[k]))
            if not no_increment:
                barrier.left += 1
            barrier.after.append(_landing(copies, int(lane), barrier))
        m.changes += 1

    return access(c, inst, act)


def _landing(copies: Copies, lane: int, barrier: Transactions) -> Callable[[Machine], None]:
    def land(m: Machine) -> None:
        most = np.full(m.lanes, -1, np.int64)
        most[lane] = copies.committed[lane] + 1
        copies.land(m, most)
        barrier.arrive(m)

    return land
