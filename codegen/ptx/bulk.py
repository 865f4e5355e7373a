"""Bulk copies (cp.async.bulk), of plain bytes and of boxes of tensors: engines that run beside the threads.

A copy into shared memory lands as late as possible: when a thread tests or awaits the phase of its barrier. A store
reads shared memory, and then writes global memory, when its group is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .atomics import operation
from .compiler import Compiler, Get
from .loads import access, take_hints
from .memory import GLOBAL, LOCAL, PARAM, SHARED, GlobalMemory
from .multiprocessor import Machine, Step
from .proxies import CHUNK, Running, running, shared_of
from .syntax import BYTES, Instruction
from .table import Array, Mods, numpy_type
from .tensor_maps import BYTES as MAP_BYTES
from .tensor_maps import TensorMap, swizzled
from .transactions import Transactions, places, shared_address, signalled

Land = Callable[[Machine], None]


@dataclass(frozen=True)
class Part:
    """Elements of global memory, of type ``kind``: which of a box are ``inside`` of the tensor, and the places of these."""

    kind: str
    inside: Array
    places: Array

    @property
    def item(self) -> int:
        return BYTES[self.kind]

    @property
    def bytes(self) -> int:
        return len(self.inside) * self.item

    def load(self, memory: GlobalMemory) -> tuple[Array, Array]:
        """Bytes and their marks; zeros outside."""
        data = np.zeros(len(self.inside), f"uint{8 * self.item}")
        known = np.ones(len(self.inside), np.uint8)
        data[self.inside], known[self.inside] = memory.load(self.places, self.item)
        return data.view(np.uint8), np.repeat(known, self.item)

    def store(self, m: Machine, lane: int, data: Array, reduction: str) -> None:
        value = data.ravel().view(f"uint{8 * self.item}")[self.inside]
        if reduction:
            value = combined(reduction, self.kind, m.memory.load(self.places, self.item)[0], value)
        m.memory.store(self.places, value, self.item)
        m.memory.wrote(np.array([lane]), self.places, self.item)


@dataclass(eq=False)
class Store:
    """A copy from shared to global memory by one thread. ``data``: what it has read."""

    lane: int
    group: int
    run: Running
    chunks: Array
    part: Part
    reduction: str
    data: Array | None = None

    def read(self, m: Machine) -> Array:
        if self.data is None:
            shared = shared_of(m)
            self.data, known = shared.take(self.chunks)
            missing = ~known.ravel().astype(bool)[: self.part.bytes] & np.repeat(self.part.inside, self.part.item)
            if missing.any():
                place = shared.at(int(self.chunks[np.nonzero(missing)[0][0] // CHUNK]))
                raise m.fault(
                    f"{self.run.what} begun {self.run.where} takes {place}, which nothing has written", self.lane
                )
            shared.end(self.run)
        return self.data

    def write(self, m: Machine) -> None:
        self.part.store(m, self.lane, self.read(m), self.reduction)


class Stores:
    """The stores under way, in groups of each thread."""

    def __init__(self, m: Machine):
        self.pending: list[Store] = []
        self.committed = np.zeros(m.lanes, np.int64)
        m.ends.append(self.end)

    @staticmethod
    def of(m: Machine) -> Stores:
        if m.stores is None:
            m.stores = Stores(m)
        return m.stores

    def wait(self, m: Machine, count: int, act: Callable[[Store, Machine], Any]) -> list[Store]:
        """``act`` on the stores of this step's threads, except their last ``count`` groups."""
        most = np.full(m.lanes, -1, np.int64)
        most[m.idx] = self.committed[m.idx] - count
        over = [s for s in self.pending if s.group < most[s.lane]]
        for store in over:
            act(store, m)
        return over

    def end(self, m: Machine) -> None:
        for store in self.pending:
            if store.data is None:
                raise m.fault(
                    f"a block ends before {store.run.what} begun {store.run.where} has read its shared memory, as "
                    "cp.async.bulk.wait_group.read would show",
                    store.lane,
                )
            store.write(m)


def bulk(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """All of ``cp.async.bulk`` and ``cp.reduce.async.bulk``."""
    what = mods.take("commit_group", "wait_group", "prefetch")
    if what == "prefetch":
        mods.rest()
        return lambda m: None
    if what:
        reads = mods.has("read")
        return _commit if what == "commit_group" else _wait(inst.operands[0].value, reads)
    take_hints(mods)
    tensor = mods.has("tensor")
    reduction, kind = _reduction(mods, tensor) if mods.has("reduce") else ("", "u64")
    if tensor:
        mods.take("1d", "2d", "3d", "4d", "5d")
        mods.take("tile")
    spaces = [x for x in mods.left if x in ("global", "shared::cta", "shared::cluster")]
    mods.left = [x for x in mods.left if x not in spaces]
    grouped, counted = mods.has("bulk_group"), mods.has("mbarrier::complete_tx::bytes")
    multicast = mods.has("multicast::cluster")
    if len(spaces) != 2 or grouped != (spaces[0] == "global") or grouped == counted:
        raise mods.unknown()
    operands = list(inst.operands)
    to, source = operands[:2]
    size = None if tensor else c.get(operands.pop(2), "u32")
    if grouped:
        part = _part(c, to, size, kind)
        return access(c, inst, _store(c, source, part, size, reduction))
    barrier = shared_address(c, operands[2])
    mask = c.get(operands[3], "u16") if multicast else None
    if spaces[1] == "global":
        return access(c, inst, _load(c, inst, to, _part(c, source, size, kind), barrier, mask))
    return access(c, inst, _between(c, to, source, size, barrier, reduction, kind))


def _commit(m: Machine) -> None:
    Stores.of(m).committed[m.idx] += 1


def _wait(count: int, reads: bool) -> Step:
    def wait(m: Machine) -> None:
        stores = Stores.of(m)
        over = stores.wait(m, count, Store.read if reads else Store.write)
        if not reads:
            stores.pending = [s for s in stores.pending if s not in over]

    return wait


def _reduction(mods: Mods, tensor: bool) -> tuple[str, str]:
    """The operation and the type of its operands; a tensor map has the type in itself."""
    kind = "" if tensor else mods.type("u32", "s32", "u64", "s64", "b32", "b64", "f16", "bf16", "f32", "f64")
    op = mods.take("add", "min", "max", "and", "or", "xor", "inc", "dec")
    mods.take("noftz")
    if not op:
        raise mods.unknown()
    return op, kind


def combined(op: str, kind: str, old: Array, new: Array) -> Array:
    """``old`` and ``new``, arrays of bits, combined as numbers of type ``kind``."""
    made = numpy_type(kind)
    return operation(op, kind)(old.view(made), new.view(made)).astype(made).view(old.dtype)


# ------------------------------------------------------------ where the bytes are

FindPart = Callable[[Machine], list[tuple[Part, int]]]


def _part(c: Compiler, operand: Any, size: Get | None, kind: str) -> FindPart:
    """The global side of each thread's copy, and the swizzle of its shared side."""
    read, named = c.address(operand)
    if size is None:
        return _box(read, named, [c.get(x, "s32") for x in operand.coordinates.parts])
    item = BYTES[kind]

    def find(m: Machine) -> list[tuple[Part, int]]:
        found = []
        for at, count, lane in zip(read(m).tolist(), size(m).tolist(), m.threads().tolist()):
            if count % 16 or at % 16:
                raise m.fault(f"a bulk copy of {count} bytes at {at:#x}: both are multiples of 16", lane)
            elements = np.arange(count // item, dtype=np.int64) * item + at - GLOBAL
            found.append((Part(kind, np.ones(len(elements), bool), m.memory.place(0, elements, item)), 0))
        return found

    return find


def _box(read: Get, named: str, coordinates: Sequence[Get]) -> FindPart:
    def find(m: Machine) -> list[tuple[Part, int]]:
        at = np.stack([x(m) for x in coordinates], 1).tolist()
        found = []
        for address, where in zip(read(m).tolist(), at):
            tensor = TensorMap.unpack(_map_bytes(m, address, named))
            if len(tensor.shape) != len(where):
                raise m.fault(
                    f"{len(where)} coordinates of a tensor map of {len(tensor.shape)} axes", int(m.threads()[0])
                )
            found.append((Part(tensor.kind, *tensor.elements(m.memory, where)), tensor.swizzle))
        return found

    return find


def _map_bytes(m: Machine, address: int, named: str) -> bytes:
    """The 128 bytes at a generic address, or at that of a parameter which is named."""
    if address % 64:
        raise m.fault(f"a tensor map is at {address:#x}, no multiple of 64", int(m.threads()[0]))
    if SHARED <= address < PARAM:
        raise m.fault(f"a tensor map is in {'shared' if address < LOCAL else 'local'} memory", int(m.threads()[0]))
    parameter = named == "param" or address >= PARAM
    space, at = (m.parameters, address % PARAM) if parameter else (m.memory, address - GLOBAL)
    return space.load(space.place(0, at + 8 * np.arange(MAP_BYTES // 8), 8), 8)[0].tobytes()


def _chunks(m: Machine, row: int, address: int, count: int, swizzle: int) -> Array:
    """The chunks of shared memory that ``count`` bytes from ``address`` are in, in their order."""
    at = swizzled(address + CHUNK * np.arange(-(-count // CHUNK), dtype=np.int64), swizzle)
    return m.shared.place(np.full(len(at), row), at, 8, 2) // 2


def _aligned(m: Machine, address: int, need: int, lane: int) -> None:
    if address % need:
        raise m.fault(f"a bulk copy's shared memory at {address:#x} is no multiple of {need} bytes", lane)


# ------------------------------------------------------------ copies


def _load(c: Compiler, inst: Instruction, to: Any, find: FindPart, barrier: Get, mask: Get | None) -> Step:
    read, where, need = shared_address(c, to), c.program.where(c.at), 128 if inst.operands[1].coordinates else 16

    def load(m: Machine) -> None:
        parts, targets, signals = find(m), places(m, read(m)), places(m, barrier(m))
        masks = [0] * m.n if mask is None else mask(m).tolist()
        for k, lane in enumerate(m.threads().tolist()):
            (part, swizzle), (row, at), (signal_row, signal) = parts[k], targets[k], signals[k]
            _aligned(m, at, need, lane)
            rows = [row] if mask is None else _rows_of(m, row, masks[k], lane)
            if mask is None and signal_row != row:
                raise m.fault("a copy and the barrier that counts its bytes are in different blocks", lane)
            for target in rows:
                chunks = _chunks(m, target, at, part.bytes, swizzle)
                one = running("a copy", where, writes=chunks)
                shared_of(m).begin(one)
                signalled(m, target, signal).after.append(_landing(one, chunks, part, target, (target, signal)))
        m.changes += 1

    return load


def _rows_of(m: Machine, row: int, mask: int, lane: int) -> list[int]:
    """The blocks of a cluster that have a bit in ``mask``."""
    ranks = [k for k in range(16) if mask >> k & 1]
    if not ranks or ranks[-1] >= m.cluster_size:
        raise m.fault(f"a multicast by {mask:#x} in a cluster of {m.cluster_size}", lane)
    if m.cluster_size > 1 and not m.cluster_met()[m.cluster_of[lane]]:
        raise m.fault("a multicast before a barrier of the cluster: its blocks may not have begun", lane)
    return [row - row % m.cluster_size + k for k in ranks]


def _landing(one: Running, chunks: Array, part: Part, row: int, barrier: tuple[int, int]) -> Land:
    def land(m: Machine) -> None:
        m.alive(np.array([row]))
        shared = shared_of(m)
        shared.fill(chunks, *part.load(m.memory))
        shared.end(one)
        m.barriers[barrier].count(m, -part.bytes)

    return land


def _store(c: Compiler, source: Any, find: FindPart, size: Get | None, reduction: str) -> Step:
    read, where = shared_address(c, source), c.program.where(c.at)

    def store(m: Machine) -> None:
        stores = Stores.of(m)
        for lane, (part, swizzle), (row, at) in zip(m.threads().tolist(), find(m), places(m, read(m))):
            _aligned(m, at, 128 if size is None else 16, lane)
            chunks = _chunks(m, row, at, part.bytes, swizzle)
            one = running("a bulk store", where, reads=chunks)
            shared_of(m).begin(one)
            stores.pending.append(Store(lane, int(stores.committed[lane]), one, chunks, part, reduction))

    return store


def _between(c: Compiler, to: Any, source: Any, size: Get | None, barrier: Get, reduction: str, kind: str) -> Step:
    """From shared memory of a block to that of another."""
    if size is None:
        raise ValueError("a tensor between shared memories")
    reads, writes, where = shared_address(c, source), shared_address(c, to), c.program.where(c.at)

    def copy(m: Machine) -> None:
        sizes, signals = size(m).tolist(), places(m, barrier(m))
        origins, targets = places(m, reads(m)), places(m, writes(m))
        for k, lane in enumerate(m.threads().tolist()):
            for _, at in (origins[k], targets[k]):
                _aligned(m, at | sizes[k], 16, lane)
            begin, end = (_chunks(m, *at, sizes[k], 0) for at in (origins[k], targets[k]))
            one = running("a copy", where, reads=begin, writes=end)
            shared_of(m).begin(one)
            signalled(m, *signals[k]).after.append(_moving(one, begin, end, (reduction, kind), m.barriers[signals[k]]))
        m.changes += 1

    return copy


def _moving(one: Running, source: Array, target: Array, reduction: tuple[str, str], barrier: Transactions) -> Land:
    def land(m: Machine) -> None:
        shared = shared_of(m)
        data, known = shared.take(source)
        if reduction[0]:
            old, marks = shared.take(target)
            data = combined(*reduction, *(np.ascontiguousarray(x) for x in (old, data)))
            known = known & marks
        shared.fill(target, data, known)
        shared.end(one)
        barrier.count(m, -CHUNK * len(source))

    return land
