"""Asynchronous copies, which land when they are waited for, and barriers that count arrivals and bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .compiler import Compiler, step
from .loads import access, find, take_hints
from .machine import SLEEP, STOP, Machine, Step
from .memory import GLOBAL
from .syntax import Imm, Instruction, PTXFault
from .table import Array, Mods


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
def _cp(c: Compiler, inst: Instruction) -> Step:
    """``cp.async.ca.shared.global [to], [from], size, real;`` and its groups."""
    mods = Mods(inst)
    if not mods.has("async"):
        raise mods.unknown()
    if mods.left[:1] == ["bulk"]:
        return _bulk(c, inst, mods)
    if mods.left[:1] == ["mbarrier"]:
        return _arrive_after_copies(c, inst, mods)
    what = mods.take("commit_group", "wait_group", "wait_all")
    if what:
        mods.done()
        return _groups(c, inst, what)
    take_hints(mods)
    mods.take("shared", "shared::cta")
    mods.take("global")
    mods.done()
    to, _ = c.address(inst.operands[0])
    source, _ = c.address(inst.operands[1])
    size = inst.operands[2].value
    real = c.get(inst.operands[3] if len(inst.operands) > 3 else Imm(size), "u32")

    def copy(m: Machine) -> None:
        copies = Copies.of(m)
        lanes = m.threads().copy()
        at, origin, count = to(m), source(m), np.minimum(real(m), size).astype(np.int64)
        find(m, "shared", at, 1 if size == 1 else 4, size // 4)
        if (at % size).any() or (origin[count > 0] % size).any():
            raise PTXFault(f"an asynchronous copy of {size} bytes is not aligned")
        if (count > 0).any():
            m.memory.place(0, origin[count > 0] - GLOBAL, 1)
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


# ------------------------------------------------------------ barriers of transactions


@dataclass
class Transactions:
    """``expected`` arrivals a phase, ``left`` of this one, ``bytes`` that it waits for. ``after``: what happens before a
    wait can succeed: copies land, then threads arrive or bytes are counted."""

    expected: int
    left: int
    phase: int = 0
    bytes: int = 0
    after: list[Any] = field(default_factory=list)

    def arrive(self, m: Machine, count: int = 1) -> None:
        self.left -= count
        self.turn(m)

    def turn(self, m: Machine) -> None:
        """The next phase, if this one is complete."""
        if self.left < 0:
            raise m.fault("more threads arrive at a barrier than it was initialised for")
        if self.left == 0 and self.bytes == 0:
            self.phase, self.left = self.phase + 1, self.expected
        m.changes += 1


def _barrier_at(m: Machine, lane: int, address: int) -> Transactions:
    found = m.barriers.get((int(m.block_of[lane]), address))
    if found is None:
        raise m.fault(f"no barrier was initialised at {address:#x} of shared memory", int(lane))
    return found


@step("mbarrier")
def _mbarrier(c: Compiler, inst: Instruction) -> Step:
    mods = Mods(inst)
    mods.type("b64")
    what = mods.take("init", "inval", "arrive", "test_wait", "try_wait", "expect_tx", "complete_tx")
    expects, parity = mods.has("expect_tx"), mods.has("parity")
    for name in ("release", "acquire", "cta", "shared", "shared::cta", "noComplete"):
        mods.take(name)
    mods.done()
    if what in ("test_wait", "try_wait"):
        return _wait(c, inst, parity)
    operands = list(inst.operands)
    state = c.put(operands.pop(0), "b64") if what == "arrive" else None
    read, _ = c.address(operands.pop(0))
    count = c.get(operands[0] if operands else Imm(1), "u32")

    def act(m: Machine) -> None:
        lanes, at, numbers = m.threads(), read(m), count(m)
        phases = np.zeros(m.n, np.uint64)
        for k, lane in enumerate(lanes):
            key = int(m.block_of[lane]), int(at[k])
            if what == "init":
                m.shared.place(m.block_of[lanes[k : k + 1]], at[k : k + 1], 8)
                m.barriers[key] = Transactions(int(numbers[k]), int(numbers[k]))
                continue
            barrier = _barrier_at(m, int(lane), int(at[k]))
            phases[k] = barrier.phase
            if what == "inval":
                del m.barriers[key]
            elif what == "arrive":
                barrier.bytes += int(numbers[k]) if expects else 0
                barrier.arrive(m, 1 if expects else int(numbers[k]))
            else:
                barrier.bytes += int(numbers[k]) * (1 if what == "expect_tx" else -1)
                barrier.turn(m)
        if state is not None:
            state(m, phases)

    return access(c, inst, act)


def _wait(c: Compiler, inst: Instruction, parity: bool) -> Step:
    """A thread for which the phase is not over sleeps until something changes, then tries again."""
    at, behind = c.at, c.at + 1
    put = c.put(inst.operands[0], "pred")
    read, _ = c.address(inst.operands[1])
    wanted = c.get(inst.operands[2], "u32" if parity else "u64")

    def test(m: Machine) -> Any:
        lanes, address, numbers = m.threads(), read(m), wanted(m)
        over = np.zeros(m.n, bool)
        for k, lane in enumerate(lanes):
            barrier = _barrier_at(m, int(lane), int(address[k]))
            while barrier.after:
                barrier.after.pop(0)(m)
            number = int(numbers[k])
            over[k] = (barrier.phase & 1) != (number & 1) if parity else barrier.phase > number
        if over.all() or m.polling:
            m.polling = False
            put(m, over)
            return None
        m.status[lanes[~over]] = SLEEP
        m.pc[lanes[~over]] = at
        if over.any():
            m.among(over, lambda m: put(m, np.ones(m.n, bool)))
            m.pc[lanes[over]] = behind
        return STOP

    return test


def _arrive_after_copies(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """``cp.async.mbarrier.arrive``: an arrival when this thread's copies so far are there."""
    for name in ("mbarrier", "arrive", "shared", "shared::cta", "b64"):
        mods.take(name)
    no_increment = mods.has("noinc")
    mods.done()
    read, _ = c.address(inst.operands[0])

    def act(m: Machine) -> None:
        copies, at = Copies.of(m), read(m)
        for k, lane in enumerate(m.threads()):
            barrier = _barrier_at(m, int(lane), int(at[k]))
            if not no_increment:
                barrier.left += 1
            barrier.after.append(_landing(copies, int(lane), barrier))
        m.changes += 1

    return access(c, inst, act)


def _landing(copies: Copies, lane: int, barrier: Transactions) -> Any:
    def land(m: Machine) -> None:
        most = np.full(m.lanes, -1, np.int64)
        most[lane] = copies.committed[lane] + 1
        copies.land(m, most)
        barrier.arrive(m)

    return land


def _bulk(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """``cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [from], size, [barrier];``"""
    legal = ("bulk", "shared::cluster", "shared::cta", "global", "mbarrier::complete_tx::bytes")
    for name in legal:
        mods.take(name)
    mods.done()
    to, source, barrier_at = (c.address(inst.operands[k])[0] for k in (0, 1, 3))
    size = c.get(inst.operands[2], "u32")

    def act(m: Machine) -> None:
        targets, origins, sizes, at = to(m), source(m), size(m), barrier_at(m)
        for k, lane in enumerate(m.threads()):
            count = int(sizes[k])
            if count % 16 or targets[k] % 16 or origins[k] % 16:
                raise m.fault("a bulk copy has a size or an address that is no multiple of 16 bytes", int(lane))
            barrier = _barrier_at(m, int(lane), int(at[k]))
            one = np.array([lane]), targets[k : k + 1].copy(), origins[k : k + 1].copy()
            copy = Copy(*one, count, np.array([count]), np.zeros(1, np.int64), np.zeros(1, bool))
            barrier.after.append(_bulk_landing(copy, barrier, count))
        m.changes += 1

    return access(c, inst, act)


def _bulk_landing(copy: Copy, barrier: Transactions, count: int) -> Any:
    def land(m: Machine) -> None:
        _land(m, copy, np.ones(1, bool))
        barrier.bytes -= count
        barrier.turn(m)

    return land
