"""The facts of this CPU that schedules size their blocks by."""

from __future__ import annotations

import functools
import os
from pathlib import Path


@functools.cache
def cache_bytes(level: int = 2) -> int:
    """Bytes of the data cache of ``level`` that one core sees; 32 KB, 1 MB, 16 MB where the system does not say.

    >>> cache_bytes(1) <= cache_bytes(2)
    True
    """
    units = {"K": 1 << 10, "M": 1 << 20}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, at, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction" and at == str(level):
            return int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)
    return {1: 32 << 10, 2: 1 << 20}.get(level, 16 << 20)


def threads() -> int:
    """Threads that parallel loops run on: ``OMP_NUM_THREADS``, else the cores this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def streams(elements: int, width: int = 4) -> bool:
    """Whether an array of ``elements`` of ``width`` bytes is too large to stay in the cache until it is read again.

    >>> streams(1000)
    False
    """
    return elements * width >= 8 * cache_bytes(2)
