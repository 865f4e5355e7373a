"""Addresses between spaces, and the blocks of a cluster: their barrier, and the shared memory of each other.

An address of shared memory of another block has in its bits from :data:`RANK_AT` that block's rank in the cluster, and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiler import Compiler, step
from .memory import LOCAL, PARAM, SHARED
from .multiprocessor import DONE, RANK_AT, Machine, Step
from .proxies import synchronised
from .syntax import Instruction, Reg
from .table import Mods, bits_of

_BASES = {"shared": SHARED, "shared::cta": SHARED, "shared::cluster": SHARED, "local": LOCAL, "param": PARAM,
          "param::entry": PARAM, "global": 0, "const": 0}  # fmt: skip
_OFFSET = (1 << RANK_AT) - 1


@step("isspacep")
def _isspacep(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    space = mods.take(*_BASES)
    low = np.int64(_BASES[space])
    high = SHARED if space == "global" else SHARED + _OFFSET + 1 if space == "shared::cta" else 2 * low
    read, put = c.get(inst.operands[1], "u64"), c.put(inst.operands[0], "pred")

    def test(m: Machine) -> None:
        a = read(m).astype(np.int64)
        put(m, (a >= low) & (a < high))

    return test


@step("cvta")
def _cvta(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """Between addresses of a space and generic ones: shared and local memory begin far above global memory."""
    kind, to = mods.type("u64", "u32"), mods.has("to")
    space = mods.take(*_BASES)
    base = np.uint64(_BASES.get(space, 0))
    read, put = c.get(inst.operands[1], kind), c.put(inst.operands[0], kind)
    if kind == "u32":
        raise mods.unknown()
    return lambda m: put(m, read(m) - base if to else read(m) + base)


@step("mapa")
def _mapa(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """``mapa.shared::cluster.u32 d, a, rank``: the address of ``a`` in another block."""
    kind, shared = mods.type("u32", "u64"), mods.has("shared::cluster")
    put, rank = c.put(inst.operands[0], kind), c.get(inst.operands[2], "u32")
    operand = inst.operands[1]
    read = c.get(operand, kind if isinstance(operand, Reg) and bits_of(operand.type) >= bits_of(kind) else "u32")
    base = 0 if shared else SHARED
    where = c.program.where(c.at)

    def map_(m: Machine) -> None:
        address, ranks = read(m).astype(np.int64) - base, rank(m).astype(np.int64)
        if (ranks >= m.cluster_size).any():
            bad = int(ranks[ranks >= m.cluster_size][0])
            raise m.fault(f"there is no block {bad} in a cluster of {m.cluster_size} {where}", int(m.threads()[0]))
        own = ranks == m.special["cluster_ctarank"][m.idx]
        put(m, ((address & _OFFSET) | np.where(own, 0, ranks + 1) << RANK_AT) + base)

    return map_


@step("getctarank")
def _getctarank(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind, shared = mods.type("u32", "u64"), mods.has("shared::cluster")
    put, read = c.put(inst.operands[0], "u32"), c.get(inst.operands[1], kind)
    base = 0 if shared else SHARED

    def rank(m: Machine) -> None:
        found = (read(m).astype(np.int64) - base) >> RANK_AT
        put(m, np.where(found > 0, found - 1, m.special["cluster_ctarank"][m.idx]).astype(np.uint32))

    return rank


# ------------------------------------------------------------ the barrier of a cluster


def cluster_barrier(c: Compiler, mods: Mods) -> Step:
    """``barrier.cluster.arrive`` and ``barrier.cluster.wait``: a thread waits until each of its cluster that has not ended
    has arrived as often as it."""
    what, at = mods.take("arrive", "wait"), c.at
    mods.skip("release", "acquire", "relaxed", "aligned")
    where = c.program.where(at)

    def arrive(m: Machine) -> Any:
        lanes = m.threads()
        twice = m.cluster_arrived[lanes] != m.cluster_waited[lanes]
        if twice.any():
            raise m.fault(f"a second arrival at the barrier of a cluster without a wait {where}", int(lanes[twice][0]))
        m.cluster_arrived[lanes] += 1
        m.changes += 1
        return m.wake(at) if m.cluster_met()[m.cluster_of[lanes]].min() == m.cluster_arrived[lanes].max() else None

    def wait(m: Machine) -> Any:
        lanes = m.threads()
        none = m.cluster_arrived[lanes] == m.cluster_waited[lanes]
        if none.any():
            raise m.fault(f"a wait at the barrier of a cluster without an arrival {where}", int(lanes[none][0]))
        over = m.cluster_arrived[lanes] <= m.cluster_met()[m.cluster_of[lanes]]
        m.cluster_waited[lanes[over]] += 1
        synchronised(m, lanes[over])
        for lane in lanes[over]:
            m.asleep.pop(int(lane), None)
        if over.all():
            return None
        for lane in lanes[~over]:
            m.asleep[int(lane)] = _missing(m, int(lane))
        m.pc[lanes[over]] = at + 1
        return m.sleep(lanes[~over], at)

    if what == "arrive":
        return arrive
    if what == "wait":
        return wait
    raise mods.unknown()


def _missing(m: Machine, lane: int) -> str:
    others = (m.cluster_of == m.cluster_of[lane]) & m.exists & (m.status != DONE)
    late = np.nonzero(others & (m.cluster_arrived < m.cluster_arrived[lane]))[0]
    return f"{len(late)} threads of its cluster have not arrived, the first of them {m.describe(int(late[0]))}"


# ------------------------------------------------------------ registers of a warpgroup


@step("setmaxnreg")
def _setmaxnreg(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """``setmaxnreg.inc.sync.aligned.u32 240``: by all warps of a warpgroup."""
    from .warps import warpgroup

    mods.type("u32")
    what = mods.take("inc", "dec")
    legal = mods.has("sync") and mods.has("aligned")
    count = inst.operands[0].value
    if not what or not legal or count % 8 or not 24 <= count <= 256:
        raise mods.unknown()
    return warpgroup(c, lambda m: None)
