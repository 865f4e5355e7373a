"""This machine: its key in records, and its rates, measured once: multiply-adds, and reading from each level of memory."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..analysis.footprint_table import Machine
from ..target import Target
from .record import digest

SHARE = {"L1": 0.5, "L2": 0.5, "L3": 0.25}  # of a level that is read to measure it: the rest is others'
MOST = 64 << 20  # bytes that are read to measure a level
VERSION = 1  # of the measurements kept on disk


@functools.cache
def measured(target: Target) -> Machine:
    """The machine of ``target`` with rates measured on one core, at most 2 seconds; kept on disk beside built programs.

    A target that says what it is itself (``l2_bytes``, ``vector_width``), and a GPU, are not this machine: they keep the
    rates of :meth:`Machine.of`.
    """
    usual = Machine.of(target)
    if target.kind != "llvm" or any(
        target.limit(name) for name in ("l1_bytes", "l2_bytes", "l3_bytes", "vector_width")
    ):
        return usual
    from codegen import disk
    from codegen.llvm.compile import machine

    on = machine()
    about = json.dumps([VERSION, on.cpu, on.features, on.width, dict(usual.sizes)])
    file = disk.place(hashlib.sha256(about.encode()).hexdigest(), ".machine")
    kept = None if file is None else disk.read(file)
    if kept is not None:
        rates = json.loads(kept)
        return replace(usual, peak=rates["peak"], bandwidth=rates["bandwidth"])
    made = _measured(usual)
    if file is not None:
        disk.write(file, json.dumps({"peak": made.peak, "bandwidth": dict(made.bandwidth)}).encode())
    return made


def _measured(usual: Machine) -> Machine:
    from codegen.machine_peak import measure_fma_peak

    rates = {level: _reading(int(min(usual.sizes[level] * share, MOST))) for level, share in SHARE.items()}
    rates["memory"] = min(rates["L3"], _reading(4 * MOST, repeat=2))
    return replace(usual, peak=measure_fma_peak("float32", 0.1) * 1e9, bandwidth=rates)


def _reading(size: int, repeat: int = 5) -> float:
    """Bytes a second of summing an array of ``size`` bytes again and again."""
    import numpy as np

    rounds = max(1, (16 << 20) // size)
    vectors = max(1, size // 256)
    run = _summing(vectors, rounds)
    data, sums = np.ones(vectors * 64, np.float32), np.zeros(64, np.float32)
    run(data, sums)
    best = float("inf")
    for _ in range(repeat):
        start = time.thread_time()
        run(data, sums)
        best = min(best, time.thread_time() - start)
    return 256.0 * vectors * rounds / max(best, 1e-9)


def _summing(vectors: int, rounds: int) -> Callable[..., Any]:
    """A function that adds up ``vectors`` times 64 numbers, ``rounds`` times, in four vectors of sums."""
    from codegen.build import build

    from .. import te
    from ..schedule import Schedule

    data = te.placeholder((vectors * 64,), name="data")
    r, v = te.reduce_axis((0, rounds), "r"), te.reduce_axis((0, vectors), "v")
    sums = te.compute((64,), lambda lane: te.sum(data[v.var * 64 + lane], axis=[r, v]), name="sums")
    sch = Schedule(te.create_prim_func([data, sums]))
    copy = sch.cache_write("sums", 0, "local")
    lane, r_loop, v_loop = sch.get_loops("sums")
    middle, lane = sch.split(lane, [None, 16])
    sch.reorder(r_loop, v_loop, middle, lane)
    init = sch.decompose_reduction("sums", r_loop)
    for block in (sch.get_block("sums"), init, copy):
        loops = sch.get_loops(block)
        if block is copy:
            loops = [*loops[:-1], *sch.split(loops[-1], [None, 16])]
        sch.vectorize(loops[-1])
        sch.unroll(loops[-2])
    return build(sch.mod, "llvm")


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
