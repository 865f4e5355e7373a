"""Jumps, ends, barriers, and what is no more than a hint."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiler import Compiler, step
from .multiprocessor import BARRIER, DONE, STOP, Machine, Step
from .proxies import WatchedSpace
from .syntax import Imm, Instruction, Name
from .table import Mods


def end(m: Machine) -> Any:
    m.status[m.idx] = DONE
    m.jumps = 0
    return STOP


@step("ret", "exit")
def _ret(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    mods.take("uni")
    return end


@step("trap", "brkpt")
def _trap(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    where = c.program.where(c.at)

    def trap(m: Machine) -> Any:
        raise m.fault(f"trap {where}", int(m.threads()[0]))

    return trap


@step("bra")
def _bra(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    mods.take("uni")
    (target,) = inst.operands
    if not isinstance(target, Name) or target.name not in c.program.function.labels:
        raise mods.unknown()
    to, behind = c.program.function.labels[target.name], c.at + 1
    if inst.guard is None:
        return lambda m: to
    read, negated = c.get(inst.guard[0], "pred"), inst.guard[1]

    def branch(m: Machine) -> Any:
        p = read(m)
        taken = ~p if negated else p
        if taken.all():
            return to
        if not taken.any():
            return None
        m.pc[m.idx] = np.where(taken, to, behind)
        return STOP

    return branch


@step("bar", "barrier")
def _bar(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """``bar.sync a, b``, ``bar.arrive a, b``, ``bar.red`` and ``bar.warp.sync mask``."""
    at = c.at
    if mods.has("cluster"):
        from .clusters import cluster_barrier

        return cluster_barrier(c, mods)
    mods.take("cta")
    if mods.has("warp"):
        mods.take("sync")
        from .warps import together

        return together(c, c.get(inst.operands[0], "u32"), lambda m: None)
    what = mods.take("sync", "red", "arrive")
    mods.take("aligned")
    if not what:
        raise mods.unknown()
    operands = list(inst.operands)
    if what == "red":
        return _reduction(c, inst, mods)
    number = c.get(operands[0], "u32")
    count = c.get(operands[1] if len(operands) > 1 else Imm(0), "u32")

    def wait(m: Machine) -> Any:
        m.barrier[m.idx], m.barrier_count[m.idx] = number(m), count(m)
        return m.wait(BARRIER, at)

    def arrive(m: Machine) -> None:
        for block, barrier in zip(m.block_of[m.idx].tolist(), number(m).tolist()):
            m.arrived[block, barrier] = m.arrived.get((block, barrier), 0) + 1

    return wait if what == "sync" else arrive


def _reduction(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """``bar.red.popc.u32 d, a, p``: a barrier that counts predicates."""
    op, kind, at = mods.take("popc", "and", "or"), mods.type("u32", "pred"), c.at
    result, number, *rest, flag = inst.operands
    put, read_number, read = c.put(result, kind), c.get(number, "u32"), c.get(flag, "pred")
    count = c.get(rest[0] if rest else Imm(0), "u32")

    def wait(m: Machine) -> Any:
        m.barrier[m.idx], m.barrier_count[m.idx] = read_number(m), count(m)
        return m.wait(BARRIER, at)

    def reduce(m: Machine, lanes: Any) -> None:
        before = m.idx, m.n
        m.idx, m.n = lanes, len(lanes)
        p = read(m)
        value = {"popc": p.sum(), "and": p.all(), "or": p.any()}[op]
        put(m, np.full(m.n, value, np.uint32 if kind == "u32" else bool))
        m.idx, m.n = before

    c.program.meeting[at] = reduce
    return wait


@step("prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "griddepcontrol")
def _hint(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """Launches follow one another here, and there are no caches: nothing is left to do."""
    mods.rest()
    return lambda m: None


_SCOPES = (
    "release", "acquire", "acq_rel", "sc", "cta", "cluster", "gpu", "gl", "sys", "shared::cta", "shared::cluster", "global",
    "sync_restrict::shared::cta", "sync_restrict::shared::cluster",
)  # fmt: skip


@step("fence", "membar")
def _fence(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """Memory is one here, and in order. A proxy fence makes stores visible to the asynchronous proxy."""
    proxy, init = mods.has("proxy"), mods.has("mbarrier_init")
    kind = mods.take("async", "async::generic", "alias", "tensormap::generic") if proxy else ""
    others = [mods.take(name) for name in _SCOPES]

    def fence(m: Machine) -> None:
        if not isinstance(m.shared, WatchedSpace):
            return
        if init:
            m.shared.fence(m.threads(), m.shared.inits)
        elif kind == "async" and "global" not in others:
            m.shared.fence(m.threads(), m.shared.inits, m.shared.stores)
        elif not proxy:
            m.shared.meet(m.threads())

    return fence


@step("call")
def _call(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """``vprintf`` prints; ``__assertfail`` is a fault."""
    from .printing import assertion, printf

    return (printf if mods.take("vprintf", "__assertfail") == "vprintf" else assertion)(c, inst)


@step("activemask")
def _activemask(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    put = c.put(inst.operands[0], mods.type("b32"))

    def active(m: Machine) -> None:
        from .warps import ballots

        put(m, ballots(m, np.ones(m.n, bool)))

    return active


@step("mov")
def _mov(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind = mods.type()
    read, put = c.get(inst.operands[1], kind), c.put(inst.operands[0], kind)
    return lambda m: put(m, read(m))
