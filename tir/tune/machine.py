"""This machine: its key in records, and its rates, measured once: multiply-adds, how long one takes, and reading from each level of memory."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..cost.footprint_table import Machine
from ..target import Target
from .record import digest

SHARE = {"L1": 0.5, "L2": 0.5, "L3": 0.25}  # of a level that is read to measure it: the rest is others'
TIMES = 4  # of L3, not more than so many L2 caches: a guest of a machine with 300 MB of L3 had 32 MB of it
MOST = 64 << 20  # bytes that are read to measure a level
SECONDS = 0.01  # of the processor for each rate: the best of its runs counts
VERSION = 4  # of the measurements kept on disk


@functools.cache
def measured(target: Target) -> Machine:
    """The machine of ``target`` with rates measured on one core, each when it is first read, at most 2 seconds in all; kept on disk beside built
    programs.

    A target that says what it is itself (``l2_bytes``, ``vector_width``), and a GPU, are not this machine: they keep the
    rates of :meth:`Machine.of`.
    """
    usual = Machine.of(target)
    if target.kind != "llvm" or any(
        target.limit(name) for name in ("l1_bytes", "l2_bytes", "l3_bytes", "vector_width")
    ):
        return usual
    from codegen.machine_peak import measure_fma_latency, measure_fma_peak, measure_gather

    peak = _kept("peak", usual, lambda: measure_fma_peak("float32", SECONDS) * 1e9)
    latency = _kept("latency", usual, lambda: measure_fma_latency(SECONDS))
    gather = _kept("gather", usual, lambda: measure_gather(SECONDS))
    return replace(usual, peak=peak, latency=latency, gather=gather, bandwidth=_Rates(usual))


class _Rates(Mapping[str, float]):
    """Bytes a second of reading from each level, measured when it is first asked for: memory, which is the largest, is often not."""

    def __init__(self, usual: Machine):
        self._usual = usual
        self._known: dict[str, float] = {}

    def __getitem__(self, level: str) -> float:
        if level not in self._known:
            if level not in self._usual.bandwidth:
                raise KeyError(level)
            self._known[level] = _kept(level, self._usual, lambda: self._reading(level))
        return self._known[level]

    def __iter__(self) -> Iterator[str]:
        return iter(self._usual.bandwidth)

    def __len__(self) -> int:
        return len(self._usual.bandwidth)

    def _reading(self, level: str) -> float:
        from codegen.machine_peak import measure_reading

        if level == "memory":
            return min(self["L3"], measure_reading(4 * MOST, SECONDS))
        sizes = self._usual.sizes
        most = TIMES * sizes["L2"] if level == "L3" else MOST
        return measure_reading(int(min(sizes[level] * SHARE[level], most)), SECONDS)


def _kept(name: str, usual: Machine, measure: Callable[[], float]) -> float:
    """A rate of this machine: from disk, or measured."""
    from codegen import disk
    from codegen.llvm.compile import machine

    on = machine()
    about = json.dumps([VERSION, name, on.cpu, on.features, on.width, dict(usual.sizes)])
    file = disk.place(hashlib.sha256(about.encode()).hexdigest(), ".machine")
    kept = None if file is None else disk.read(file)
    if kept is not None:
        return json.loads(kept)
    made = measure()
    if file is not None:
        disk.write(file, json.dumps(made).encode())
    return made


def about_machine(target: Target, threads: int) -> dict[str, Any]:
    """What a time depends on besides the program: the processor, what the compiler uses of it, the threads; of a GPU, the
    device and its driver."""
    found: dict[str, Any] = {"target": {"kind": target.kind, **target.attrs}}
    if target.kind == "cuda":
        return {**found, **_device()}
    if target.kind == "llvm":
        from codegen.build import machine_of

        on = machine_of(target)
        found |= {"cpu": on.cpu, "features": on.features}
    caches = [target.cache_bytes(level) for level in (1, 2, 3)]
    return {**found, "architecture": platform.machine(), "caches": caches, "threads": threads}


def _device() -> dict[str, Any]:
    from codegen.cuda.driver import driver, has_device

    if not has_device():
        return {"device": "none: not measured"}
    found = driver()
    return {"device": found.name, "arch": found.arch}


def machine_key(target: Target, threads: int, cold: bool = False) -> str:
    """The key of a machine, 32 hex digits: times measured on one, or with empty caches, are not those of another.

    >>> machine_key(Target.of("llvm"), 1) == machine_key(Target.of("llvm"), 2)
    False
    """
    return digest(about_machine(target, threads) | ({"cold": True} if cold else {}))
