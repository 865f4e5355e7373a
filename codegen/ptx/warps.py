"""Instructions of a warp together: each waits until the threads of its mask that have not ended are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import unknown
from .compiler import Compiler, Get, step
from .multiprocessor import DONE, RUN, STOP, SYNC, Machine, Step
from .proxies import synchronised
from .syntax import Both, Instruction
from .table import Array, Mods

ALL = np.uint32(0xFFFFFFFF)


def ballots(m: Machine, chosen: Array) -> Array:
    """For each thread of this step the bits of those of its warp that are ``chosen``."""
    lanes = m.threads()
    bits = np.zeros(m.lanes // 32, np.uint64)
    np.bitwise_or.at(bits, m.warp_of[lanes[chosen]], np.uint64(1) << m.lane_of[lanes[chosen]].astype(np.uint64))
    return bits[m.warp_of[lanes]].astype(np.uint32)


def together(c: Compiler, mask: Get | None, run: Callable[[Machine], None], whole: bool = False) -> Step:
    """``run`` for the threads whose ``mask`` (all by default) is complete; the others wait. ``whole``: ended threads are
    no excuse, and warps have 32 threads."""
    at, behind = c.at, c.at + 1
    where = c.program.where(at)

    def meet(m: Machine) -> Any:
        arrived = m.threads()
        waiting = np.nonzero((m.status == SYNC) & (m.pc == at))[0]
        if len(waiting):
            here = np.isin(m.warp_of[waiting], m.warp_of[arrived])
            waiting = waiting[here]
            m.idx = np.concatenate([arrived, waiting])
            m.n = len(m.idx)
        lanes = m.threads()
        wanted = np.full(m.n, ALL, np.uint32) if mask is None else mask(m).astype(np.uint32)
        own = np.uint32(1) << m.lane_of[lanes].astype(np.uint32)
        if (wanted & own == 0).any():
            raise m.fault(f"a thread is not in its own mask {where}", int(lanes[wanted & own == 0][0]))
        present = ballots(m, np.ones(m.n, bool))
        alive = np.ones(m.lanes, bool) if whole else m.status != DONE
        ready = (wanted & ~present & _bits(alive)[m.warp_of[lanes]]) == 0
        synchronised(m, lanes[ready])
        if ready.all():
            m.status[lanes] = RUN
            run(m)
            if not len(waiting):
                return None
            m.pc[lanes] = behind
            return STOP
        m.status[lanes[~ready]] = SYNC
        m.pc[lanes[~ready]] = at
        if ready.any():
            m.status[lanes[ready]] = RUN
            m.among(ready, run)
            m.pc[lanes[ready]] = behind
        return STOP

    return meet


GROUP = 128  # threads of a warpgroup


def warpgroup(c: Compiler, run: Callable[[Machine], None]) -> Step:
    """``run`` for warpgroups all threads of which are here, in their order; the others wait."""
    at, behind = c.at, c.at + 1

    def meet(m: Machine) -> Any:
        lanes = m.threads()
        m.status[lanes], m.pc[lanes] = SYNC, at
        here = np.all(((m.status == SYNC) & (m.pc == at)).reshape(-1, 32), axis=1)
        groups = -(-m.warps // 4)
        four = np.zeros((m.count, 4 * groups), bool)
        four[:, : m.warps] = here.reshape(m.count, m.warps)
        whole: Array = np.all(four.reshape(-1, 4), axis=1)
        group_of = m.block_of * groups + m.inside // GROUP
        ready = np.nonzero(whole[group_of])[0]
        if len(ready):
            before = m.idx, m.n
            m.status[ready], m.pc[ready] = RUN, behind
            m.idx, m.n = ready, len(ready)
            run(m)
            m.idx, m.n = before
        return STOP

    return meet


def _bits(chosen: Array) -> Array:
    """The bits of the chosen threads of each warp."""
    rows = chosen.reshape(-1, 32).astype(np.uint64)
    return (rows << np.arange(32, dtype=np.uint64)).sum(1).astype(np.uint32)


def everywhere(m: Machine, value: Array, junk: int = 0x7B) -> Array:
    """``value`` of this step's threads as an array of all; the others hold junk."""
    made = np.frombuffer(bytes([junk]) * (m.lanes * value.dtype.itemsize), value.dtype).copy()
    made[m.idx] = value
    return made


def _present(m: Machine) -> Array:
    made = np.zeros(m.lanes, bool)
    made[m.idx] = True
    return made


@step("shfl")
def _shfl(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind = mods.type("b32")
    sync, mode = mods.has("sync"), mods.take("up", "down", "bfly", "idx")
    if not sync:
        raise mods.unknown()
    result, a, b, clamp, members = inst.operands
    target, flag = (result.first, result.second) if isinstance(result, Both) else (result, None)
    read, by, limits, mask = c.get(a, kind), c.get(b, "u32"), c.get(clamp, "u32"), c.get(members, "u32")
    put, put_flag = c.put(target, kind), c.put(flag, "pred")
    own, goal = unknown.registers(c, a), unknown.registers(c, target)

    def run(m: Machine) -> None:
        lanes = m.threads()
        lane, n, limit = m.lane_of[lanes], by(m).astype(np.int64), limits(m).astype(np.int64)
        segment, most = limit >> 8 & 31, limit & 31
        n = n & 31
        if mode == "up":
            low = (lane & segment) | (most & ~segment)
            source, inside = lane - n, lane - n >= low
        else:
            high = (lane & segment) | (most & ~segment)
            source = {"down": lane + n, "bfly": lane ^ n, "idx": (lane & segment) | (n & ~segment)}[mode]
            inside = source <= high
        source = np.where(inside, source, lane)
        value = everywhere(m, read(m))
        put(m, value[m.warp_of[lanes] * 32 + source])
        put_flag(m, inside)
        if m.unknown:
            marks = unknown.of(m, own)
            there = None if marks is None else everywhere(m, marks, 0)[m.warp_of[lanes] * 32 + source]
            unknown.mark(m, goal, there)

    return together(c, mask, run)


@step("vote")
def _vote(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind = mods.type("pred", "b32")
    sync, mode = mods.has("sync"), mods.take("all", "any", "uni", "ballot")
    if not sync:
        raise mods.unknown()
    result, flag, members = inst.operands
    put, read, mask = c.put(result, kind), c.get(flag, "pred"), c.get(members, "u32")

    def run(m: Machine) -> None:
        p, members_ = read(m), mask(m)
        yes, no = ballots(m, p) & members_, ballots(m, ~p) & members_
        put(m, {"all": no == 0, "any": yes != 0, "uni": (yes == 0) | (no == 0), "ballot": yes}[mode])

    return together(c, mask, run)


@step("match")
def _match(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind = mods.type("b32", "b64")
    mode, _ = mods.take("any", "all"), mods.take("sync")
    result, a, members = inst.operands
    target, flag = (result.first, result.second) if isinstance(result, Both) else (result, None)
    put, put_flag, read, mask = c.put(target, "b32"), c.put(flag, "pred"), c.get(a, kind), c.get(members, "u32")

    def run(m: Machine) -> None:
        lanes, members_ = m.threads(), mask(m)
        warp = m.warp_of[lanes] * 32
        value, there = everywhere(m, read(m)), _present(m)
        same = np.zeros(m.n, np.uint64)
        for k in range(32):
            other = warp + k
            in_mask = (members_ >> np.uint32(k) & np.uint32(1)) != 0
            equal = in_mask & there[other] & (value[other] == value[lanes])
            same |= np.where(equal, np.uint64(1 << k), np.uint64(0))
        made = same.astype(np.uint32)
        if mode == "all":
            every = made == (members_ & ballots(m, np.ones(m.n, bool)))
            put(m, np.where(every, made, np.uint32(0)))
            put_flag(m, every)
        else:
            put(m, made)

    return together(c, mask, run)


_REDUCTIONS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@step("redux")
def _redux(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind = mods.type("u32", "s32", "b32")
    _, op = mods.take("sync"), mods.take(*_REDUCTIONS)
    result, a, members = inst.operands
    put, read, mask = c.put(result, kind), c.get(a, kind), c.get(members, "u32")
    combine = _REDUCTIONS[op]

    def run(m: Machine) -> None:
        lanes, value = m.threads(), read(m)
        key = m.warp_of[lanes].astype(np.int64) << 32 | mask(m).astype(np.int64)
        made = np.empty_like(value)
        for k in np.unique(key):
            made[key == k] = combine.reduce(value[key == k])
        put(m, made)

    return together(c, mask, run)


@step("elect")
def _elect(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    mods.take("sync")
    result, members = inst.operands
    target, flag = (result.first, result.second) if isinstance(result, Both) else (result, None)
    put, put_flag, mask = c.put(target, "b32"), c.put(flag, "pred"), c.get(members, "u32")

    def run(m: Machine) -> None:
        chosen = mask(m).astype(np.int64)
        leader = np.log2((chosen & -chosen).astype(np.float64)).astype(np.uint32)
        put(m, leader)
        put_flag(m, m.lane_of[m.threads()] == leader)

    return together(c, mask, run)


def full_warps(m: Machine, where: str) -> Array:
    """The threads of this step as rows of 32. Raises ``PTXFault`` for a warp that is not whole."""
    lanes = np.sort(m.threads())
    if len(lanes) % 32 or (lanes.reshape(-1, 32)[:, 0] % 32 != 0).any() or not m.exists[lanes].all():
        raise m.fault(f"an instruction of a whole warp is reached by a part of it {where}", int(lanes[0]))
    return lanes.reshape(-1, 32)
