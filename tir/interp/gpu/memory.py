"""Memory of a simulated kernel: bytes behind a pointer, views of it, and loads and stores with every check."""

from __future__ import annotations

from copy import copy
from math import gcd
from typing import Any

import numpy as np

from ...dtype import DType
from ...errors import RunError
from ..numbers import decode_table, encode, is_small_float, storage_dtype, wrap_lanes
from . import counts
from .access_records import Races, Who, report
from .clocks import races
from .lanes import Lanes
from .report import Site, Traffic


class Memory:
    """The bytes behind one pointer: one copy for the launch (global), a block (shared), a warp, or a thread (local).

    ``granule`` is the size in bytes of the pieces that records are kept for: the smallest element of any view.
    """

    def __init__(self, name: str, scope: str, data: np.ndarray, granule: int, size: int):
        self.name = name
        self.scope = scope
        self.data = data
        self.granule = granule
        self.size = size  # bytes of one copy
        self.written: np.ndarray | None = None
        self.races: Races | None = None
        # Asynchronous copies in flight to each granule: the number of the copy's site plus one, and the thread's stamp.
        self.pending: np.ndarray | None = None
        self.pending_by: np.ndarray | None = None
        self.in_flight: np.ndarray | None = None  # the bytes being copied

    @staticmethod
    def fresh(name: str, scope: str, size: int, copies: int, granule: int, tracked: bool, launch: Any) -> Memory:
        """Uninitialised memory: its bytes are 0xFF, a nan in floats."""
        size = -(-size // 16) * 16
        try:
            data = np.full(size * copies, 0xFF, np.uint8)
        except (MemoryError, ValueError):
            raise RunError(f"out of memory allocating `{name}`: {copies} times {size} bytes") from None
        made = Memory(name, scope, data, granule, size)
        made.written = np.zeros(size * copies // granule, bool)
        if tracked:
            made.track(launch, True)
        return made

    def track(self, launch: Any, shared: bool) -> None:
        self.races = races(self.data.nbytes // self.granule, shared, launch)

    def bytes(self) -> tuple[int, int]:
        """The addresses of its first byte, and of the one behind the last."""
        return self.data.ctypes.data, self.data.ctypes.data + self.data.nbytes

    @staticmethod
    def join(overlapping: list[Memory], launch: Any) -> None:
        """Keep records of races by address, for memory that has several names."""
        first, last = min(m.bytes()[0] for m in overlapping), max(m.bytes()[1] for m in overlapping)
        granule = gcd(*(n for m in overlapping for n in (m.granule, m.bytes()[0] - first)))
        together = races((last - first) // granule, False, launch)
        together.atomic, together.any_reader = np.zeros(len(together.writer), bool), True  # of any of the names
        for m in overlapping:
            m.granule = granule
            m.races = together.part((m.bytes()[0] - first) // granule, m.data.nbytes // granule)

    def space(self) -> str:
        return self.scope.partition(".")[0] or "global"


class View:
    """A buffer as threads see it: elements of ``dtype`` in ``memory``, each thread from its own ``base``."""

    def __init__(self, lanes: Lanes, memory: Memory, dtype: DType, shape: tuple[int, ...], offset: int, name: str):
        self.lanes = lanes
        self.memory = memory
        self.dtype = dtype.element
        self.name = name
        self.shape = shape
        self.storage = storage_dtype(self.dtype)
        self.item = self.storage.itemsize
        if memory.data.nbytes % self.item:
            raise RunError(
                f"buffer `{name}` of {self.dtype} does not fit: its memory has {memory.data.nbytes} bytes, no whole number of elements"
            )
        self.flat = memory.data.view(self.storage)
        self.per_granule = self.item // memory.granule
        self.offset = offset * dtype.lanes
        limit = dtype.lanes
        for extent in shape:
            limit *= extent
        self.limit = limit
        self.small = is_small_float(self.dtype)
        copy = memory.size // self.item
        self.room = copy if memory.scope else len(self.flat)
        space = memory.space()
        which = {"shared": lanes.place, "warp": lanes.warp_of, "wmma": lanes.warp_of, "local": lanes.all}.get(space)
        self.space = space if space in ("global", "shared", "local") else "warp"
        self.base = None if which is None else which * copy

    # ------------------------------------------------------------------ where

    def _positions(self, index: Any, act: Any, site: Site) -> tuple[np.ndarray, Any]:
        """Element indices into the whole memory ([n] or [n, v]) and the active threads, without those out of bounds."""
        lanes = self.lanes
        at = np.asarray(index, np.int64)
        if at.ndim:
            at = at if act is None else at[act]
        else:
            at = np.broadcast_to(at, (lanes.count if act is None else len(act), *at.shape))
        bad = at.view(np.uint64) >= self.limit if at.flags.c_contiguous else (at < 0) | (at >= self.limit)
        if bad.any():
            at, act = self._out_of_bounds(at, act, bad, site)
        if self.offset:
            at = at + self.offset
            if len(at) and int(at.max()) >= self.room:
                at, act = self._out_of_bounds(at, act, at >= self.room, site)
        if self.base is not None:
            base = self.base if act is None else self.base[act]
            at = at + (base if at.ndim == 1 else base[:, None])
        return at, act

    def _out_of_bounds(self, at: np.ndarray, act: Any, bad: np.ndarray, site: Site) -> tuple[np.ndarray, Any]:
        here = self.lanes.all if act is None else act
        return _inside(self, at, here, bad, min(self.limit, self.room), site)

    def of_one(self, index: np.ndarray, thread: int, site: Site, place: int | None = None) -> np.ndarray:
        """Positions in the whole memory of the elements that one thread accesses (in the shared memory of the block
        ``place``, or its own); none, and a finding, if one is out of bounds."""
        bad = (index < 0) | (index >= min(self.limit, self.room - self.offset))
        if bad.any():
            self._out_of_bounds(index[None], np.array([thread]), bad[None], site)
            return index[:0]
        first = self.offset
        if self.base is not None:
            first += int(self.base[thread]) if place is None else place * (self.memory.size // self.item)
        return index + first

    def element_at(self, granule: Any) -> str:
        """The element that has a granule of the memory, as text."""
        return self.element(granule // self.per_granule)

    def element(self, position: Any) -> str:
        """The element at a position of the memory, as text."""
        copy = self.memory.size // self.item
        number = int(position) - self.offset
        if self.base is not None:
            number = int(position) % copy - self.offset
        if len(self.shape) > 1:
            parts = np.unravel_index(max(0, min(number, self.limit - 1)), self.shape)
            return f"{self.name}[{', '.join(map(str, parts))}]"
        return f"{self.name}[{number}]"

    # ------------------------------------------------------------------ loads and stores

    def load(self, index: Any, act: Any, site: Site) -> np.ndarray:
        """The elements at ``index`` ([L] or [L, v], or one for all threads) of the active threads."""
        at, live = self._positions(index, act, site)
        self.touch(at, live, site, False)
        values = self.values(at)
        if live is None:
            return values
        made = np.zeros((self.lanes.count, *values.shape[1:]), values.dtype)
        made[live] = values
        return made

    def values(self, at: np.ndarray) -> np.ndarray:
        """The elements at positions in the whole memory, from their memory form."""
        raw = self.flat[at]
        return decode_table(self.dtype)[raw] if self.small else wrap_lanes(raw, self.dtype)

    def store(self, index: Any, value: Any, act: Any, site: Site) -> None:
        """Store ``value`` ([L] or [L, v], or one for all threads) to the elements at ``index``."""
        at, live = self._positions(index, act, site)
        if self.space != "shared":
            self.touch(at, live, site, True)
            self.put(at, value, live)
            return
        before = self.flat[at]
        self.put(at, value, live)
        # Compare what each thread writes with what was there before, and with what is there afterwards.
        wanted = np.empty(at.shape, self.storage)
        wanted[...] = self.held(value, live)
        same = self.same(before, wanted), self.same(self.flat[at], wanted)
        self.touch(at, live, site, True, same=same)

    def same(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Whether both have the same bytes, for each granule."""
        kind = f"u{self.item}"
        equal = a.view(kind) == b.view(kind)
        return np.repeat(equal.reshape(-1), self.per_granule)

    def held(self, value: Any, act: Any) -> Any:
        """Values of the active threads in their memory form."""
        if self.small:
            value = encode(value, self.dtype)
        if act is not None and isinstance(value, np.ndarray) and value.ndim:
            value = value[act]
        return value

    def put(self, at: np.ndarray, value: Any, act: Any) -> None:
        self.flat[at] = self.held(value, act)

    def add(self, index: Any, value: Any, act: Any, site: Site) -> np.ndarray:
        """Atomic addition; returns the old elements."""
        at, live = self._positions(index, act, site)
        self.touch(at, live, site, True, atomic=True)
        amounts = self.lanes.spread(value)
        amounts = amounts if live is None else amounts[live]
        before = np.zeros(self.lanes.count, self.storage)
        here = self.lanes.all if live is None else live
        for lane, place, amount in zip(here, at, amounts):
            before[lane] = self.flat[place]
            self.flat[place] += amount
        return before

    # ------------------------------------------------------------------ checks and counts

    def granules(self, at: np.ndarray) -> np.ndarray:
        """The granules of elements, as a flat array."""
        k = self.per_granule
        flat = at.reshape(-1)
        return flat if k == 1 else (flat[:, None] * k + np.arange(k)).reshape(-1)

    def touch(
        self,
        at: np.ndarray,
        act: Any,
        site: Site,
        write: bool,
        atomic: bool = False,
        whole: bool = False,
        same: Any = None,
    ) -> None:
        """Check and count an access of the active threads (``whole``: of their warps as a whole) to elements ``at``."""
        if not at.size:
            return
        memory, lanes = self.memory, self.lanes
        wide = at.shape[1] if at.ndim == 2 else 1
        if wide > 1 and site.run:
            self._check_alignment(at, act, site)
        if self.space in ("global", "shared"):
            self._count(at, act, site)
        if memory.written is None and memory.races is None and memory.pending is None:
            return
        granules = self.granules(at)
        each = len(granules) // len(at)
        here = lanes.all if act is None else act
        if memory.pending is not None:
            waiting = memory.pending[granules]
            if same is not None:
                waiting = np.where(same[0] & (waiting == site.number + 1), 0, waiting)
            if waiting.any():
                self._not_landed(granules, waiting, here, each, site, write)
        if memory.written is not None:
            if write and not atomic:
                memory.written[granules] = True
            else:
                self.require_written(granules, "read of", site, here)
        if memory.races is not None:
            if whole and lanes.clocks is not None:
                lanes.clocks.level(lanes, here)
            who = Who(lanes, act, each, whole)
            record = memory.races
            found = record.write(granules, who, site, atomic, same) if write else record.read(granules, who, site)
            if write and record.redundant:
                lanes.launch.traffic[site.number].redundant += record.redundant // self.per_granule
            what = "atomic" if atomic else "write" if write else "read"
            report(lanes, self, granules, found, who.stamp, site, what)

    def require_written(self, granules: np.ndarray, what: str, site: Site, threads: np.ndarray) -> None:
        """Report what the threads read, each as many granules, and nothing has written; only once."""
        written = self.memory.written
        if written is None or written[granules].all():
            return
        missing = np.flatnonzero(~written[granules])
        element, scope = self.element_at(granules[missing[0]]), self.memory.scope
        text = f"{what} {element}, which nothing has written: {scope} memory starts undefined"
        bad = threads[np.unique(missing // (len(granules) // len(threads)))]
        self.lanes.fail("uninitialised", text, site, bad)
        written[granules] = True

    def _not_landed(
        self, granules: np.ndarray, waiting: np.ndarray, here: np.ndarray, each: int, site: Site, write: bool
    ) -> None:
        memory, lanes = self.memory, self.lanes
        assert memory.pending_by is not None
        k = int(np.argmax(waiting > 0))
        launch = lanes.launch
        started = launch.access(launch.sites[int(waiting[k]) - 1], memory.pending_by[granules[k]], "started the copy")
        what, note = ("write to", "writes") if write else ("read of", "reads")
        launch.findings.add(
            "async",
            f"{what} {self.element_at(granules[k])} before the asynchronous copy to it has been waited for",
            (launch.access(site, lanes.stamp[here[k // each]], note), started),
            int((waiting > 0).sum()),
        )

    def _check_alignment(self, at: np.ndarray, act: Any, site: Site) -> None:
        """A contiguous vector of 2, 4, 8, 16 or more bytes is one access, and must lie at a multiple of its size."""
        size = at.shape[1] * self.item
        if not (at[:, 1] - at[:, 0] == 1).all() or size & (size - 1):
            return
        unit = min(size, 16) // self.item
        bad = at[:, 0] % unit != 0 if unit else np.zeros(len(at), bool)
        if bad.any():
            k = int(np.argmax(bad))
            here = self.lanes.all if act is None else act
            what = f"{site.what} of {at.shape[1]} x {self.dtype} at {self.element(at[k, 0])}"
            offset = f"byte offset {int(at[k, 0]) * self.item} is not a multiple of {unit * self.item}"
            self.lanes.fail("alignment", f"{what}: {offset}", site, here[bad])

    def _count(self, at: np.ndarray, act: Any, site: Site) -> None:
        if at.ndim == 2:
            size = at.shape[1] * self.item
            near = site.run and bool((at[0, 1:] - at[0, :-1] == 1).all())
            if (at.shape[1] > 1 and not near) or size > 16:
                step = max(1, 16 // self.item) if near else 1
                for k in range(0, at.shape[1], step):
                    self._request(at[:, k], act, site, step * self.item)
                return
            self._request(at[:, 0], act, site, size)
        else:
            self._request(at, act, site, self.item)

    def _request(self, at: np.ndarray, act: Any, site: Site, width: int) -> None:
        """Count a request of every warp."""
        launch = self.lanes.launch
        traffic = launch.traffic.get(site.number)
        if traffic is None:
            traffic = launch.traffic[site.number] = Traffic(self.space, width, site=site)
        shared = self.space == "shared"
        first = at * self.item
        if shared and self.base is not None:
            first = first - (self.base if act is None else self.base[act]) * self.item
        rows = self.lanes.rows(first, act, -1)
        if act is None and self.lanes.straight:
            # Requests shifted by a constant cost the same as the previous ones, which is the case in most loops.
            lead = rows[:, 0] % (counts.WORD if shared else counts.SECTOR)
            shape = rows - rows[:, :1]
            last = traffic.last
            if last is not None and np.array_equal(last[0], lead) and np.array_equal(last[1], shape):
                cost = last[2]
            else:
                cost = counts.bank_passes(rows, width) if shared else counts.sectors(rows, width)
                traffic.last = (lead, shape, cost)
            traffic.requests += len(rows)
        else:
            busy = (rows >= 0).any(axis=1)
            rows = rows[busy]
            cost = counts.bank_passes(rows, width) if shared else counts.sectors(rows, width)
            traffic.requests += len(rows)
        if shared:
            traffic.passes += cost[0]
            traffic.ideal += cost[1]
        else:
            traffic.sectors += cost[0]
            traffic.useful += cost[1]


def _inside(
    view: View | LocalView, at: np.ndarray, here: np.ndarray, bad: np.ndarray, size: int, site: Site
) -> tuple[np.ndarray, Any]:
    """The indices, [n] or [n, v], of the threads ``here`` that have no ``bad`` one, and these threads; the others are a finding."""
    row = bad if bad.ndim == 1 else bad.any(axis=1)
    k = int(np.argmax(row))
    value = at[k] if at.ndim == 1 else at[k][np.argmax(bad[k])]
    text = f"{site.what} of {view.name}[{value}] is out of bounds: it has {size} elements"
    view.lanes.fail("bounds", text, site, here[row])
    return at[~row], here[~row]


class LocalView:
    """A buffer in a thread's own memory, all of one type: element ``e`` of all threads is row ``e``."""

    def __init__(self, lanes: Lanes, size: int, dtype: DType, name: str):
        self.lanes = lanes
        self.name = name
        self.dtype = dtype.element
        self.small = is_small_float(self.dtype)
        self.limit = size * dtype.lanes
        self.shape: tuple[int, ...] = (self.limit,)
        self.data = np.zeros((self.limit, lanes.count), np.float32 if self.small else storage_dtype(self.dtype))
        self.data.view(np.uint8).fill(0xFF)
        if self.data.dtype == np.bool_:
            self.data.fill(False)
        self.written = np.zeros((self.limit, lanes.count), bool)
        self.complete = False
        # By register: the product under way that changes it (its site's number plus one; negative if it reads it), and how
        # many fences of products were executed when it was written.
        self.under_way = np.zeros(self.limit, np.int32) if lanes.launch.products else None
        self.changed = np.zeros(self.limit, np.int64)

    def of_shape(self, shape: tuple[int, ...]) -> LocalView:
        """The same memory as a buffer of several axes."""
        view = copy(self)
        view.shape = shape
        return view

    def _rows(self, index: Any, act: Any, site: Site) -> tuple[np.ndarray, Any]:
        """Index, [n] or [n, v], of the active threads without those out of bounds, and these threads."""
        lanes = self.lanes
        here = lanes.all if act is None else act
        at = np.asarray(index, np.int64)
        at = at[here] if at.ndim else np.broadcast_to(at, (len(here), *at.shape))
        bad = (at < 0) | (at >= self.limit)
        return _inside(self, at, here, bad, self.limit, site) if bad.any() else (at, here)

    def load(self, index: Any, act: Any, site: Site) -> np.ndarray:
        if self.under_way is not None and self.under_way.any():
            self._waited(index, act, site, "read")
        if type(index) is int and 0 <= index < self.limit:
            if not self.complete:
                written = self.written[index] if act is None else self.written[index, act]
                if not written.all():
                    here = self.lanes.all if act is None else act
                    self._unwritten(index, here[~written], site)
            return self.data[index].copy()
        at, here = self._rows(index, act, site)
        threads = here if at.ndim == 1 else here[:, None]
        written = self.written[at, threads]
        if not written.all():
            missing = ~written if at.ndim == 1 else ~written.all(axis=1)
            k = int(np.argmax(missing))
            self._unwritten(int(at[k] if at.ndim == 1 else at[k][np.argmin(written[k])]), here[missing], site)
        values = self.data[at, threads]
        if len(here) == self.lanes.count:
            return values
        made = np.zeros((self.lanes.count, *values.shape[1:]), values.dtype)
        made[here] = values
        return made

    def _waited(self, index: Any, act: Any, site: Site, what: str) -> None:
        """Check that no product under way uses the registers (it may read what is only read), and note what is written."""
        assert self.under_way is not None
        here = self.lanes.all if act is None else act
        at = np.asarray(index, np.int64)
        at = np.unique(at[here] if at.ndim else at)
        at = at[(at >= 0) & (at < self.limit)]
        if what == "write":
            self.changed[at] = self.lanes.products.fences
        used = self.under_way[at]
        bad = np.flatnonzero((used > 0) if what == "read" else (used != 0))
        if not len(bad):
            return
        number, launch, stamp = int(used[bad[0]]), self.lanes.launch, self.lanes.stamp[here[0]]
        began = launch.access(launch.sites[abs(number) - 1], stamp, "began it")
        launch.findings.add(
            "async",
            f"{what} of {self.name}[{at[bad[0]]}] before the wgmma that {'changes' if number > 0 else 'reads'} it has been "
            "waited for",
            (launch.access(site, stamp, f"{what}s"), began),
            len(bad),
        )

    def _unwritten(self, index: int, here: np.ndarray, site: Site) -> None:
        self.lanes.fail("uninitialised", f"read of {self.name}[{index}], which the thread has not written", site, here)
        self.written[:, here] = True

    def store(self, index: Any, value: Any, act: Any, site: Site) -> None:
        if self.small:
            value = decode_table(self.dtype)[encode(value, self.dtype)]
        if self.under_way is not None:
            self._waited(index, act, site, "write")
        if type(index) is int and 0 <= index < self.limit:
            if act is None:
                self.data[index] = value
                self.written[index] = True
                return
            self.data[index, act] = value[act] if isinstance(value, np.ndarray) and value.ndim else value
            self.written[index, act] = True
            return
        at, here = self._rows(index, act, site)
        threads = here if at.ndim == 1 else here[:, None]
        if isinstance(value, np.ndarray) and value.ndim:
            value = value[here]
        self.data[at, threads] = value
        self.written[at, threads] = True
