"""Barriers of transactions (mbarrier), which count arrivals and bytes, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .compiler import Compiler, Get, step
from .loads import access
from .memory import SHARED
from .multiprocessor import RANK_AT, Machine, Step
from .proxies import WatchedSpace, synchronised
from .syntax import Imm, Instruction
from .table import Array, Mods

_MOST_ARRIVALS = _MOST_BYTES = (1 << 20) - 1
_PHASE_AT = 20  # in a state: the phase above, the pending count below


@dataclass(eq=False)
class Transactions:
    """``expected`` arrivals a phase, ``left`` of this one, ``bytes`` that it waits for. ``after``: what happens before a
    wait can succeed: copies land, then threads arrive or bytes are counted. ``made``: by which thread, and when."""

    name: str
    expected: int
    left: int
    phase: int = 0
    bytes: int = 0
    after: list[Callable[[Machine], None]] = field(default_factory=list)
    made: tuple[int, int] = (0, 0)

    def arrive(self, m: Machine, count: int = 1) -> None:
        self.left -= count
        self.turn(m)

    def count(self, m: Machine, bytes_: int) -> None:
        """Expect ``bytes_`` more, or fewer."""
        self.bytes += bytes_
        self.turn(m)

    def turn(self, m: Machine) -> None:
        """The next phase, if this one is complete."""
        if abs(self.bytes) > _MOST_BYTES:
            raise m.fault(f"the bytes that {self.name} waits for are beyond {_MOST_BYTES}: {self.bytes}")
        if self.left < 0:
            raise m.fault(f"more threads arrive at {self.name} in its phase {self.phase} than it was initialised for")
        if self.left == 0 and self.bytes == 0:
            self.phase, self.left = self.phase + 1, self.expected
        m.changes += 1

    def state(self) -> int:
        return self.phase << _PHASE_AT | self.left

    def pending(self) -> str:
        return f"{self.name} is in phase {self.phase}, with {self.left} of {self.expected} arrivals and {self.bytes} bytes to come"


def barrier_at(m: Machine, row: int, address: int) -> Transactions:
    found = m.barriers.get((row, address))
    if found is None:
        raise m.fault(f"no barrier was initialised at {address:#x} of shared memory")
    return found


def shared_address(c: Compiler, operand: Any) -> Get:
    """What reads an address of shared memory, generic ones too."""
    read, _ = c.address(operand)

    def address(m: Machine) -> Array:
        found = read(m)
        return np.where(found >= SHARED, found - SHARED, found)

    return address


def places(m: Machine, address: Array) -> list[tuple[int, int]]:
    """The block and the address there of each thread's barrier."""
    rows, at = m.rows(m.threads(), address)
    return list(zip(rows.tolist(), at.tolist()))


def signalled(m: Machine, row: int, address: int) -> Transactions:
    """A barrier to which a copy beside the threads will count its bytes. Raises ``PTXFault`` if that cannot see it."""
    barrier = barrier_at(m, row, address)
    if isinstance(m.shared, WatchedSpace):
        lane, time = barrier.made
        seen = m.shared.inits.visible(np.array([lane]), np.array([time]), int(m.shared.cluster_of[lane]))
        if not seen.all():
            raise m.fault(
                f"a copy counts its bytes at {barrier.name}, which was initialised without fence.mbarrier_init or "
                "fence.proxy.async behind it"
            )
    return barrier


_SCOPES = ("release", "acquire", "relaxed", "cta", "cluster", "shared", "shared::cta", "shared::cluster")
_DEEDS = (
    "init", "inval", "arrive", "arrive_drop", "test_wait", "try_wait", "expect_tx", "complete_tx", "pending_count",
)  # fmt: skip


@step("mbarrier")
def _mbarrier(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    mods.type("b64")
    what = mods.take(*_DEEDS)
    expects, parity, incomplete = mods.has("expect_tx"), mods.has("parity"), mods.has("noComplete")
    mods.skip(*_SCOPES)
    if what == "pending_count":
        put, state = c.put(inst.operands[0], "u32"), c.get(inst.operands[1], "b64")
        return lambda m: put(m, (state(m) & np.uint64((1 << _PHASE_AT) - 1)).astype(np.uint32))
    if what in ("test_wait", "try_wait"):
        return access(c, inst, _wait(c, inst, parity))
    if what in ("arrive", "arrive_drop"):
        return access(c, inst, _arrive(c, inst, expects, what == "arrive_drop", incomplete))
    read = shared_address(c, inst.operands[0])
    count = c.get(inst.operands[1] if len(inst.operands) > 1 else Imm(0), "u32")
    return access(c, inst, {"init": _init, "inval": _invalidate}.get(what, _bytes(what))(read, count))


def _init(read: Get, count: Get) -> Step:
    def init(m: Machine) -> None:
        address, numbers = read(m), count(m)
        m.shared.place(m.block_of[m.idx], address, 8)
        for lane, (row, at), number in zip(m.threads().tolist(), places(m, address), numbers.tolist()):
            if not 1 <= number <= _MOST_ARRIVALS:
                raise m.fault(f"a barrier is initialised for {number} arrivals; legal are 1 to {_MOST_ARRIVALS}", lane)
            if (row, at) in m.barriers:
                raise m.fault(f"{m.barriers[row, at].name} is initialised again without mbarrier.inval", lane)
            made = (lane, m.shared.now()) if isinstance(m.shared, WatchedSpace) else (0, 0)
            m.barriers[row, at] = Transactions(_name(m, at), number, number, made=made)
        m.changes += 1

    return init


def _name(m: Machine, at: int) -> str:
    name, begin, _ = next((p for p in reversed(m.shared.pieces) if p[1] <= at), ("", 0, 0))
    return f"the barrier at {at:#x} ({name} + {at - begin})"


def _invalidate(read: Get, count: Get) -> Step:
    def invalidate(m: Machine) -> None:
        for row, at in places(m, read(m)):
            if barrier_at(m, row, at).after:
                raise m.fault(f"{m.barriers[row, at].name} ends while copies under way count their bytes there")
            del m.barriers[row, at]

    return invalidate


def _bytes(what: str) -> Callable[[Get, Get], Step]:
    sign = {"expect_tx": 1, "complete_tx": -1}[what] if what in ("expect_tx", "complete_tx") else 0

    def build(read: Get, count: Get) -> Step:
        def act(m: Machine) -> None:
            for (row, at), number in zip(places(m, read(m)), count(m).tolist()):
                barrier_at(m, row, at).count(m, sign * number)

        return act

    return build


def _arrive(c: Compiler, inst: Instruction, expects: bool, drops: bool, incomplete: bool) -> Step:
    """``mbarrier.arrive state, [barrier], count``: the state may be left out of one in another block."""
    operands = list(inst.operands)
    state = c.put(None if hasattr(operands[0], "base") else operands.pop(0), "b64")
    read = shared_address(c, operands.pop(0))
    count, here = c.get(operands[0] if operands else Imm(1), "u32"), c.at

    def act(m: Machine) -> Any:
        found, turned = [], False
        for (row, at), number in zip(places(m, read(m)), count(m).tolist()):
            barrier = barrier_at(m, row, at)
            found.append(barrier.state())
            arrivals, phase = 1 if expects else number, barrier.phase
            if not 1 <= arrivals <= _MOST_ARRIVALS:
                raise m.fault(f"{arrivals} arrivals at once at {barrier.name}; legal are 1 to {_MOST_ARRIVALS}")
            barrier.expected -= arrivals if drops else 0
            barrier.bytes += number if expects else 0
            barrier.arrive(m, arrivals)
            turned |= barrier.phase != phase
            if incomplete and turned:
                raise m.fault(f"an arrival with .noComplete completes phase {phase} of {barrier.name}")
        state(m, np.array(found, np.uint64))
        return m.wake(here) if turned else None

    return act


def _wait(c: Compiler, inst: Instruction, parity: bool) -> Step:
    """A thread for which the phase is not over sleeps until something changes, then tries again."""
    at, behind = c.at, c.at + 1
    put = c.put(inst.operands[0], "pred")
    read = shared_address(c, inst.operands[1])
    wanted = c.get(inst.operands[2], "u32" if parity else "u64")
    over_in = _over_by_parity if parity else _over_by_state

    def test(m: Machine) -> Any:
        lanes = m.threads()
        over = np.zeros(m.n, bool)
        for (row, address, number), members in _alike(m, read(m), wanted(m)):
            barrier = barrier_at(m, row, address)
            while barrier.after and not over_in(m, barrier, number):
                barrier.after.pop(0)(m)
            over[members] = done = over_in(m, barrier, number)
            for lane in lanes[members].tolist():
                m.asleep[lane] = barrier.pending()
                if done:
                    del m.asleep[lane]
        synchronised(m, lanes[over])
        if over.all() or m.polling:
            m.polling = False
            put(m, over)
            return None
        if over.any():
            m.among(over, lambda m: put(m, np.ones(m.n, bool)))
            m.pc[lanes[over]] = behind
        return m.sleep(lanes[~over], at)

    return test


def _alike(m: Machine, address: Array, wanted: Array) -> Iterator[tuple[tuple[int, int, int], Array]]:
    """Threads by what they wait for: (block, address, number)."""
    if (address >> RANK_AT).any():
        raise m.fault("a wait at a barrier of another block; a thread waits at those of its own")
    keys = np.stack([m.block_of[m.idx], address, wanted.astype(np.int64)], 1)
    found, of = np.unique(keys, axis=0, return_inverse=True)
    for k, key in enumerate(found.tolist()):
        yield (key[0], key[1], key[2]), of.ravel() == k


def _over_by_parity(m: Machine, barrier: Transactions, parity: int) -> bool:
    if parity not in (0, 1):
        raise m.fault(f"a wait for the parity {parity} of {barrier.name}; a parity is 0 or 1")
    return (barrier.phase & 1) != parity


def _over_by_state(m: Machine, barrier: Transactions, state: int) -> bool:
    phase = state >> _PHASE_AT
    if not 0 <= barrier.phase - phase <= 1:
        raise m.fault(
            f"a wait for phase {phase} of {barrier.name}, which is in phase {barrier.phase}: a state is of the current phase "
            "or of the one before"
        )
    return barrier.phase > phase
