"""One piece of work: ours, the peers and the machine's limit, in turns, and their medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import tir
from codegen.machine_peak import FmaPeak
from tir.errors import BuildError
from tir.expr import IntImm
from tir.stmt import Allocate
from tir.visit import walk

from .arrays import aligned
from .peers import Peer, clock
from .work import Work, expected

Row = dict[str, Any]
# Seconds. OpenBLAS's idle threads keep a core busy for some 30 ms after a call; a virtual core that slept is slow to return.
REST, WAKE = 0.05, 0.02


def measure(work: Work, threads: int, peers: Sequence[Peer], repeat: int, peaks: dict[str, FmaPeak | None]) -> Row:
    """Medians over ``repeat`` rounds in which each takes one turn; a ratio above 1 means that we are faster.

    ``build_s`` is with an empty cache of objects, ``scratch`` the bytes of intermediate buffers.
    """
    start = time.perf_counter()
    sch = work.schedule(threads)
    scheduled = time.perf_counter()
    module = tir.build(sch.mod, target={"kind": "llvm", "num_cores": threads})
    built = time.perf_counter()
    arrays = work.arrays()
    module(*arrays)
    want = expected(work, arrays)
    if want is not None:
        np.testing.assert_allclose(arrays[-1], want, rtol=work.tolerance, atol=work.tolerance * 3)
    now = getattr(time, clock(threads))
    number = _number(module, arrays, now)
    asked = [p for p in peers if p.seconds(work.kind, work.sizes, 1) is not None]
    times: dict[str, list[float]] = {"ours": [], **{p.name: [] for p in asked}}
    limits = []
    limit = _limit(work, peaks, now, number)
    for _ in range(repeat):
        if threads > 1:
            _settle(partial(module, *arrays))
        if number > 1:  # the previous turns have filled the caches with other data
            module(*arrays)
        begin = now()
        for _ in range(number):
            module(*arrays)
        times["ours"].append((now() - begin) / number)
        for peer in asked:
            if threads > 1:
                _settle(partial(peer.seconds, work.kind, work.sizes, number))
            taken = peer.seconds(work.kind, work.sizes, number)
            assert taken is not None
            times[peer.name].append(taken)
        limits.append(next(limit, 0.0))
    median = {name: statistics.median(samples) for name, samples in times.items()}
    best = statistics.median(limits) * (threads if work.unit == "flops" else 1)
    rate = work.amount / median["ours"]
    return {
        "work": work.name,
        "kind": work.kind,
        "threads": threads,
        "unit": work.unit,
        "seconds": median,
        "rate": rate * 1e-9,
        "limit": best,
        "share": rate * 1e-9 / best if best else None,
        "ratio": {name: median[name] / median["ours"] for name in median if name != "ours"},
        "schedule_s": scheduled - start,
        "build_s": built - scheduled,
        "scratch": scratch(module),
        "steps": len(sch.history) - 1,
    }


def _settle(turn: Any) -> None:
    """Wait until the threads of other libraries sleep, and wake our own."""
    time.sleep(REST)
    begin = time.perf_counter()
    while time.perf_counter() - begin < WAKE:
        turn()


def _number(module: Any, arrays: list[np.ndarray], now: Any) -> int:
    """The number of calls that take some milliseconds together."""
    begin = now()
    module(*arrays)
    return max(1, min(2000, int(4e-3 / max(now() - begin, 1e-7))))


def _limit(work: Work, peaks: dict[str, FmaPeak | None], now: Any, number: int) -> Iterator[float]:
    """A function that measures the machine's current limit: GFLOP/s of multiply-adds, or GB/s of copying as many bytes."""
    if work.unit == "flops":
        if work.dtype not in peaks:
            try:
                peaks[work.dtype] = FmaPeak(work.dtype)
            except BuildError:  # no such instruction on this CPU
                peaks[work.dtype] = None
        peak = peaks[work.dtype]
        while peak is not None:
            yield peak.rate(0.004)
        return
    source, target = (aligned((int(work.amount) // 8,)) for _ in range(2))
    while True:
        if number > 1:
            np.copyto(target, source)
        begin = now()
        for _ in range(number):
            np.copyto(target, source)
        yield work.amount / ((now() - begin) / number) * 1e-9


def scratch(module: Any) -> int:
    """Bytes of the buffers that the lowered program allocates."""
    total = 0
    for func in module.lowered.functions.values():
        for node in walk(func.body):
            if isinstance(node, Allocate):
                count = 1
                for extent in node.extents:
                    count *= extent.value if isinstance(extent, IntImm) else 0
                total += count * node.dtype.bytes
    return total
