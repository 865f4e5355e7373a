"""The machine: threads of several blocks as vectors, each with its place in the program, and who runs next.

The threads at the least place run together until they meet others, part, or wait. ``order`` chooses among them: all
"together", the warps "forward" or in "reverse", each until it waits, or single "threads", one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .memory import GlobalMemory, Space
from .proxies import WatchedSpace, runs_beside, synchronised
from .syntax import PTXFault

Array = np.ndarray
Size3 = tuple[int, int, int]
Step = Callable[["Machine"], Any]
ORDERS = ("together", "forward", "reverse", "threads")
STOP = object()  # what a step returns that has set the places of its threads itself
RUN, BARRIER, SYNC, SLEEP, DONE = range(5)
RANK_AT = 24  # where the rank of another block begins in an address of its shared memory
_FAR = 1 << 60
_MOST_JUMPS = 2_000_000
_MOST_TOLD = 3  # of other barriers that threads wait at
_IDLE = 64  # times that threads may poll in vain when nobody else can go on
JUNK = {"together": 0xFF, "forward": 0x7B, "reverse": 0x5D, "threads": 0x7B}  # what undefined registers and memory hold


class Machine:
    """``blocks``: the indices of the blocks that it runs, those of a ``cluster`` one after the other. ``idx``: the threads of the step under way (an index array, or all
    of them), ``n`` how many they are."""

    def __init__(
        self,
        program: Any,
        memory: GlobalMemory,
        grid: Size3,
        block: Size3,
        blocks: Sequence[int],
        dynamic: int,
        params: bytes,
        order: str,
        executed: list[int],
        cluster: Size3 = (1, 1, 1),
    ):
        self.program, self.memory, self.params, self.order, self.executed = program, memory, params, order, executed
        threads = block[0] * block[1] * block[2]
        self.count, self.warps = len(blocks), -(-threads // 32)
        self.lanes = self.count * self.warps * 32
        every = np.arange(self.lanes)
        self.warp_of, self.lane_of = every // 32, every % 32
        self.block_of = every // (self.warps * 32)
        self.cluster_size = cluster[0] * cluster[1] * cluster[2]
        self.cluster_of = self.block_of // self.cluster_size
        self.inside = inside = every % (self.warps * 32)
        self.exists = inside < threads
        self.status = np.where(self.exists, RUN, DONE).astype(np.int8)
        self.pc = np.zeros(self.lanes, np.int64)
        self.urgent = np.zeros(self.lanes, bool)  # threads that others have woken, and that go first
        self.dozing = np.zeros(self.lanes, bool)  # threads that have not tried again
        self.barrier = np.zeros(self.lanes, np.int64)
        self.barrier_count = np.zeros(self.lanes, np.int64)
        self.arrived: dict[tuple[int, int], int] = {}  # threads that do not wait, by block and barrier
        self.carry = np.zeros(self.lanes, bool)  # of arithmetic in several words
        self.special = _special_registers(grid, block, np.asarray(blocks)[self.block_of], inside, self.lane_of)
        self.special |= cluster_registers(grid, cluster, self.special)
        junk = JUNK[order]
        self.regs = [np.frombuffer(bytes([junk]) * (self.lanes * t.itemsize), t).copy() for t in program.register_types]
        layout = program.shared_layout(dynamic)
        self.shared = (
            WatchedSpace(self.count, layout, junk, self.lanes, self.cluster_size)
            if runs_beside(program.function.body)
            else Space("shared", self.count, layout, junk)
        )
        self.local = Space("local", self.lanes, program.local_layout, junk)
        self.parameters = parameter_space(program, params)
        self.idx: Any = slice(None)
        self.n = self.lanes
        self.first, self.limit = 0, _FAR
        self.jumps = 0  # since a thread has ended
        self.changes = self.seen_changes = self.polls = 0
        self.polling = False  # whether threads that poll are the only ones left
        self.unknown: dict[int, Array] = {}  # by register, the threads in which nothing has written it: see unknown.py
        self.origin = ""  # the last load of such memory
        self.traffic: Any = None  # costs of requests of memory, where they are counted
        self.copies: Any = None  # asynchronous copies, made by the first
        self.stores: Any = None  # and bulk stores
        self.products: Any = None  # and products of warpgroups
        self.barriers: dict[tuple[int, int], Any] = {}  # of transactions, by block and address
        self.asleep: dict[int, str] = {}  # what threads wait for at them, for messages
        self.ends: list[Callable[[Machine], None]] = []  # what is done when all threads have ended
        self.cluster_arrived = np.zeros(
            self.lanes, np.int64
        )  # how often each thread has arrived at its cluster's barrier
        self.cluster_waited = np.zeros(self.lanes, np.int64)

    # ------------------------------------------------------------ threads

    def threads(self) -> Array:
        """The indices of the threads of this step."""
        return np.arange(self.lanes) if isinstance(self.idx, slice) else self.idx

    def among(self, chosen: Array, step: Step) -> Any:
        """Run ``step`` for those of this step's threads that are ``chosen``."""
        before = self.idx, self.n
        self.idx = self.threads()[chosen]
        self.n = len(self.idx)
        found = step(self)
        self.idx, self.n = before
        return found

    def describe(self, lane: int) -> str:
        at = [int(self.special[f"{kind}.{axis}"][lane]) for kind in ("ctaid", "tid") for axis in "xyz"]
        return f"thread {tuple(at[3:])} of block {tuple(at[:3])}"

    def fault(self, message: str, lane: int | None = None) -> PTXFault:
        return PTXFault(message if lane is None else f"{message}, by {self.describe(lane)}")

    def rows(self, lanes: Array, address: Array) -> tuple[Array, Array]:
        """The block whose shared memory each address is of, and the address there. Raises ``PTXFault`` for one of another
        block of the cluster that may not have begun, or has ended."""
        rank, own = address >> RANK_AT, self.block_of[lanes]
        if not rank.any():
            return own, address
        far = rank > 0
        rows = np.where(far, own - own % self.cluster_size + rank - 1, own)
        if (rank[far] > self.cluster_size).any():
            raise self.fault(f"an address of shared memory is of no block of its cluster: {int(address[far][0]):#x}")
        if (self.cluster_met()[self.cluster_of[lanes[far]]] == 0).any():
            raise self.fault(
                "shared memory of another block is accessed before a barrier of the cluster: it may not have begun"
            )
        self.alive(rows)
        return rows, address & ((1 << RANK_AT) - 1)

    def alive(self, rows: Array) -> None:
        """Raises ``PTXFault`` if a block has ended."""
        for row in np.unique(rows):
            if (self.status[self.block_of == row] == DONE).all():
                first = int(np.nonzero(self.block_of == row)[0][0])
                at = tuple(int(self.special[f"ctaid.{axis}"][first]) for axis in "xyz")
                raise self.fault(f"shared memory of block {at} is accessed, which has ended")

    def cluster_met(self) -> Array:
        """How often all threads of each cluster that have not ended have arrived at its barrier."""
        arrived = np.where(self.status == DONE, np.iinfo(np.int64).max, self.cluster_arrived)
        return arrived.reshape(-1, self.cluster_size * self.warps * 32).min(1)

    # ------------------------------------------------------------ running

    def run(self) -> None:
        code, slow, unknown = self.program.code, self.program.following, self.unknown
        executed = self.executed
        while self.pick():
            at, limit, n = self.first, self.limit, self.n
            while True:
                executed[at] += n
                found = slow[at](self) if unknown else code[at](self)
                if found is None:
                    at += 1
                    if at < limit:
                        continue
                    self.pc[self.idx] = at
                    break
                self.jumps += 1
                if found is STOP:
                    break
                at = found
                if at >= limit:
                    self.pc[self.idx] = at
                    break
                if self.jumps > _MOST_JUMPS:
                    raise self.fault("a loop does not end")
            if self.jumps > _MOST_JUMPS:
                raise self.fault("a loop does not end")
        for end in self.ends:
            end(self)
        if isinstance(self.shared, WatchedSpace) and self.shared.running:
            one = self.shared.running[0]
            raise self.fault(f"a block ends while {one.what} begun {one.where} is under way")

    def pick(self) -> bool:
        """Choose who runs next; false when all have ended. Raises ``PTXFault`` if those who wait wait for ever."""
        while True:
            ready = self.status == RUN
            if ready.any():
                break
            if (self.status == DONE).all():
                return False
            self.release()
        self.urgent &= ready
        if self.urgent.any():
            ready = self.urgent.copy()
        if self.order != "together":
            size = 1 if self.order == "threads" else 32
            some = ready.reshape(self.count // self.cluster_size, -1, size).any(2)
            last = some.shape[1] - 1
            chosen = last - some[:, ::-1].argmax(1) if self.order == "reverse" else some.argmax(1)
            inside = np.arange(self.lanes) % (size * (last + 1))
            ready = ready & (inside // size == chosen[self.cluster_of])
        places = self.pc[ready]
        self.first = int(places.min())
        now = ready & (self.pc == self.first)
        later = places[places != self.first]
        self.limit = int(later.min()) if len(later) else _FAR
        self.idx = np.nonzero(now)[0]
        self.n = len(self.idx)
        self.dozing[self.idx] = False
        if self.order == "reverse":
            self.idx = self.idx[::-1]
        elif self.n == self.lanes:
            self.idx = slice(None)
        return True

    def wait(self, status: int, at: int) -> Any:
        """This step's threads wait at ``at``."""
        self.status[self.idx] = status
        self.pc[self.idx] = at
        return STOP

    def sleep(self, lanes: Array, at: int) -> Any:
        """Threads wait at ``at`` until something changes, and then try again."""
        self.status[lanes], self.pc[lanes], self.dozing[lanes] = SLEEP, at, True
        return STOP

    def wake(self, at: int) -> Any:
        """After a step at ``at`` by which others may go on: in the orders of warps they go first, until they wait again."""
        if self.order not in ("forward", "reverse") or not self.dozing.any():
            return None
        self.status[self.dozing] = RUN
        self.urgent |= self.dozing
        self.pc[self.idx] = at + 1
        return STOP

    def release(self) -> None:
        """Let go on who may: blocks of which all threads have met at a barrier, threads that poll after a change."""
        waiting = self.status == BARRIER
        freed = False
        for number in np.unique(self.block_of[waiting]):
            freed |= self._release_block(np.nonzero((self.block_of == number) & self.exists)[0])
        asleep = self.status == SLEEP
        if freed:
            return
        if asleep.any() and self.polls < _IDLE:
            self.polling = self.changes == self.seen_changes
            self.polls = self.polls + 1 if self.polling else 0
            self.seen_changes = self.changes
            self.status[asleep] = RUN
            return
        raise self.stuck()

    def _release_block(self, lanes: Array) -> bool:
        status, freed = self.status[lanes], False
        for barrier in np.unique(self.barrier[lanes[status == BARRIER]]):
            here = lanes[(status == BARRIER) & (self.barrier[lanes] == barrier)]
            key, counted = (int(self.block_of[here[0]]), int(barrier)), int(self.barrier_count[here[0]])
            wanted, arrived = counted or len(lanes), self.arrived.get(key, 0)
            if len(here) + arrived < wanted:
                continue
            if len(here) + arrived > wanted or (self.barrier_count[here] != counted).any():
                raise self.fault(
                    f"{len(here) + arrived} threads are at barrier {int(barrier)}, which {wanted} meet at "
                    f"{self.program.where(int(self.pc[here[0]]))}", int(here[0])
                )  # fmt: skip
            self.arrived.pop(key, None)
            if not counted and (self.pc[here] != self.pc[here[0]]).any():
                raise self.fault(
                    f"threads of a block meet at different barriers: {self.program.where(int(self.pc[here[0]]))} and "
                    f"{self.program.where(int(self.pc[here][self.pc[here] != self.pc[here[0]]][0]))}"
                )
            self.program.meet(self, here)
            synchronised(self, here)
            self.status[here] = RUN
            self.pc[here] += 1
            freed = True
        return freed

    def stuck(self) -> PTXFault:
        """The fault of threads that wait for ever."""
        lanes = np.nonzero((self.status != DONE) & self.exists)[0]
        lane = next((k for k in map(int, lanes) if k in self.asleep), int(lanes[0]))
        place = self.program.where(int(self.pc[lane]))
        if lane in self.asleep:
            others = sorted({self.asleep[k] for k in map(int, lanes) if k in self.asleep} - {self.asleep[lane]})
            also = "".join(f"; others wait too: {text}" for text in others[:_MOST_TOLD])
            return self.fault(f"{self.describe(lane)} waits for ever {place}: {self.asleep[lane]}{also}")
        others = np.nonzero((self.block_of == self.block_of[lane]) & self.exists)[0]
        ended = others[self.status[others] == DONE]
        elsewhere = others[(self.status[others] != DONE) & (self.pc[others] != self.pc[lane])]
        why = ""
        if len(elsewhere):
            other = int(elsewhere[0])
            why = f"; {self.describe(other)} waits {self.program.where(int(self.pc[other]))}"
        elif len(ended):
            why = f"; {self.describe(int(ended[0]))} has ended"
        return self.fault(f"{self.describe(lane)} waits for ever {place}{why}")


def parameter_space(program: Any, params: bytes) -> Space:
    """The parameters of a kernel as memory, for those that are read by address."""
    made = Space(
        "parameter", 1, ([(v.name, program.param_at[v.name], v.size) for v in program.function.params], len(params))
    )
    made.data[: len(params)] = np.frombuffer(params, np.uint8)
    made.known[:] = 1
    return made


def cluster_registers(grid: Size3, cluster: Size3, special: dict[str, Array]) -> dict[str, Array]:
    """The special registers of blocks in clusters."""
    made: dict[str, Array] = {}
    rank = np.zeros_like(special["tid.x"])
    for k, axis in enumerate("xyz"):
        block, size = special[f"ctaid.{axis}"], cluster[k]
        made[f"cluster_ctaid.{axis}"] = inside = block % size
        made[f"clusterid.{axis}"] = block // size
        made[f"cluster_nctaid.{axis}"] = np.full_like(block, size)
        made[f"nclusterid.{axis}"] = np.full_like(block, grid[k] // size)
        rank = rank + inside * np.uint32(np.prod(cluster[:k], dtype=np.int64))
    made["cluster_ctarank"] = rank
    made["cluster_nctarank"] = np.full_like(rank, np.prod(cluster))
    made["is_explicit_cluster"] = np.full(len(rank), np.prod(cluster) > 1)
    return made


def _special_registers(grid: Size3, block: Size3, number: Array, inside: Array, lane: Array) -> dict[str, Array]:
    made: dict[str, Array] = {}
    for k, axis in enumerate("xyz"):
        before, outer = int(np.prod(block[:k])), int(np.prod(grid[:k]))
        made[f"tid.{axis}"] = inside // before % block[k]
        made[f"ctaid.{axis}"] = number // outer % grid[k]
        made[f"ntid.{axis}"] = np.full_like(inside, block[k])
        made[f"nctaid.{axis}"] = np.full_like(inside, grid[k])
    made["laneid"] = lane
    made["warpid"] = inside // 32
    made["nwarpid"] = np.full_like(inside, -(-(block[0] * block[1] * block[2]) // 32))
    one = np.int64(1) << lane
    made["lanemask_eq"], made["lanemask_lt"], made["lanemask_le"] = one, one - 1, 2 * one - 1
    made["lanemask_gt"], made["lanemask_ge"] = (1 << 32) - 2 * one, (1 << 32) - one
    made["clock"] = made["clock64"] = np.zeros_like(inside)
    return {name: value.astype(np.uint64 if name == "clock64" else np.uint32) for name, value in made.items()}
