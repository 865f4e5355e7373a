"""Loads and stores, of every space, vectors too."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import unknown
from .compiler import Compiler, Get, step
from .memory import GLOBAL, LOCAL, PARAM, SHARED, Space
from .multiprocessor import Machine, Step
from .proxies import synchronised
from .syntax import BYTES, Instruction, Vector
from .table import Array, Mods, bits_of

_SPACES = (
    "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry", "param::func",
)  # fmt: skip
_ORDERS = ("weak", "relaxed", "acquire", "release", "volatile", "cta", "cluster", "gpu", "sys", "mmio")
_CACHES = (
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
    "L1::evict_last", "L1::no_allocate", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B", "L2::evict_last",
    "L2::evict_normal", "L2::evict_first",
)  # fmt: skip


def take_hints(mods: Mods) -> None:
    mods.skip(*_ORDERS, *_CACHES)


class Target:
    """Words of memory that a step accesses: the space, their indices, and the part of the step's threads (None: all)."""

    def __init__(self, space: Space, place: Array, chosen: Array | None):
        self.space, self.place, self.chosen = space, place, chosen


def find(m: Machine, space: str, address: Array, bytes_: int, count: int = 1, at: int | None = None) -> list[Target]:
    """Where ``count`` words of ``bytes_`` at each address are. Generic addresses may lead to several spaces. ``at``: the
    place of the instruction that requests them, to be counted."""
    found = _find(m, space, address, bytes_, count)
    if at is not None and m.traffic is not None:
        for t in found:
            offset = t.place * bytes_ if t.space is m.memory else t.place * bytes_ % t.space.size
            lanes = m.threads()
            m.traffic.count(at, t.space, lanes if t.chosen is None else lanes[t.chosen], offset, bytes_ * count)
    return found


def _find(m: Machine, space: str, address: Array, bytes_: int, count: int) -> list[Target]:
    if space in ("global", "const"):
        return [Target(m.memory, m.memory.place(0, address - GLOBAL, bytes_, count), None)]
    if space == "shared":
        return [Target(m.shared, m.shared.place(m.block_of[m.idx], address, bytes_, count), None)]
    if space == "shared::cluster":
        return [Target(m.shared, m.shared.place(*m.rows(m.threads(), address), bytes_, count), None)]
    if space == "param":
        return [Target(m.parameters, m.parameters.place(0, address, bytes_, count), None)]
    if space == "local":
        return [Target(m.local, m.local.place(m.threads(), address, bytes_, count), None)]
    found: list[Target] = []
    lanes = m.threads()
    for low, high, make in (
        (0, SHARED, lambda a, k: (m.memory, m.memory.place(0, a - GLOBAL, bytes_, count))),
        (SHARED, LOCAL, lambda a, k: (m.shared, m.shared.place(*m.rows(k, a - SHARED), bytes_, count))),
        (LOCAL, PARAM, lambda a, k: (m.local, m.local.place(k, a - LOCAL, bytes_, count))),
        (PARAM, PARAM << 1, lambda a, k: (m.parameters, m.parameters.place(0, a - PARAM, bytes_, count))),
    ):
        chosen = (address >= low) & (address < high)
        if chosen.any():
            found.append(Target(*make(address[chosen], lanes[chosen]), chosen))
    return found


def access(c: Compiler, inst: Instruction, run: Step) -> Step:
    """``run``, whose faults name the instruction. What acquires synchronises."""
    from .syntax import PTXFault

    where = c.program.where(c.at)
    acquires = "acquire" in inst.mods or "acq_rel" in inst.mods

    def located(m: Machine) -> Any:
        try:
            found = run(m)
        except PTXFault as fault:
            raise PTXFault(f"{fault} ({where})") from fault
        if acquires:
            synchronised(m, m.threads())
        return found

    return located


def _space_of(mods: Mods, named: str) -> str:
    space = mods.take(*_SPACES)
    return (space if space == "shared::cluster" else space.partition("::")[0]) or named


@step("ld", "ldu")
def _ld(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind, lanes = mods.type(), mods.take("v2", "v4", "v8")
    take_hints(mods)
    constant = mods.has("nc")
    target, source = inst.operands[:2]
    read, named = c.address(source)
    space = _space_of(mods, named)
    targets = target.parts if isinstance(target, Vector) and lanes else (target,)
    puts = [c.put(t, kind) for t in targets]
    if space == "param" and named == "param":
        return _kernel_parameter(read, kind, puts)
    if space == "param" and named:
        space = "local"
    bytes_, made = BYTES[kind], f"uint{bits_of(kind)}"
    at, where = c.at, c.program.where(c.at)
    slots, base, used = unknown.registers(c, *targets), unknown.registers(c, source), inst.used

    def load(m: Machine) -> None:
        if m.unknown:
            unknown.require(m, base, "the address is", where)
        found = find(m, space, read(m), bytes_, len(puts), at)
        for k, put in enumerate(puts):
            parts = [(t, *t.space.load(t.place + k, bytes_, used >> k * bytes_)) for t in found]
            _follow(m, parts, slots[k : k + 1], where)
            if constant and m.memory.was_written(found[0].place + k, bytes_).any():
                late = m.memory.was_written(found[0].place + k, bytes_)
                raise m.fault(
                    "memory that this kernel writes is read by ld.global.nc, which bypasses the stores",
                    int(m.threads()[late][0]),
                )
            if len(parts) == 1 and parts[0][0].chosen is None:
                put(m, parts[0][1].view(_signed(kind, made)))
                continue
            whole = np.zeros(m.n, made)
            for t, value, _ in parts:
                whole[t.chosen] = value
            put(m, whole.view(_signed(kind, made)))

    return access(c, inst, load)


def _follow(m: Machine, parts: list[tuple[Target, Array, Array]], slots: list[int], where: str) -> None:
    """Mark a register as unknown in threads whose load reads what nothing has written."""
    marks: Array | None = None
    for t, _, known in parts:
        if not known.all():
            marks = np.zeros(m.n, bool) if marks is None else marks
            marks[slice(None) if t.chosen is None else t.chosen] = ~known
            m.origin = f"{t.space.what} memory, read {where}, which nothing has written"
    if marks is not None or m.unknown:
        unknown.mark(m, slots, marks)


def _signed(kind: str, made: str) -> Any:
    from .table import numpy_type

    return numpy_type(kind) if kind[0] in "sf" and kind not in ("f16", "f16x2") else np.dtype(made)


def _kernel_parameter(read: Get, kind: str, puts: list[Any]) -> Step:
    bytes_, made = BYTES[kind], _signed(kind, f"uint{bits_of(kind)}")

    def load(m: Machine) -> None:
        at = int(read(m)[0])
        for k, put in enumerate(puts):
            value = np.frombuffer(m.params, f"uint{bits_of(kind)}", 1, at + k * bytes_)
            put(m, np.broadcast_to(value, (m.n,)).view(made))

    return load


@step("st")
def _st(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind, lanes = mods.type(), mods.take("v2", "v4", "v8")
    take_hints(mods)
    target, source = inst.operands[:2]
    read, named = c.address(target)
    space = _space_of(mods, named)
    if space == "param":
        space = "local"
    sources = source.parts if isinstance(source, Vector) and lanes else (source,)
    values = [c.get(s, kind) for s in sources]
    bytes_, made = BYTES[kind], f"uint{bits_of(kind)}"
    at, where, base = c.at, c.program.where(c.at), unknown.registers(c, target)
    slots = [unknown.registers(c, s) for s in sources]

    def store(m: Machine) -> None:
        if m.unknown:
            unknown.require(m, base, "the address is", where)
        found = find(m, space, read(m), bytes_, len(values), at)
        for k, value in enumerate(values):
            x = value(m).view(made)
            marks = unknown.of(m, slots[k]) if m.unknown else None
            for t in found:
                if marks is not None and t.space is m.memory:
                    unknown.require(m, slots[k], "to global memory goes", where)
                write(m, t, k, x if t.chosen is None else x[t.chosen], bytes_)
                if marks is not None:
                    own = marks if t.chosen is None else marks[t.chosen]
                    t.space.forget(t.place[own] + k, bytes_)

    return access(c, inst, store)


def write(m: Machine, t: Target, k: int, value: Array, bytes_: int) -> None:
    t.space.store(t.place + k, value, bytes_)
    t.space.wrote(m.threads() if t.chosen is None else m.threads()[t.chosen], t.place + k, bytes_)
