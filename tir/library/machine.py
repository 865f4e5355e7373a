"""The properties of this CPU from which schedules choose their tile sizes."""

from __future__ import annotations

import os

from ..target import cache_bytes

__all__ = ["cache_bytes", "streams", "threads"]


def threads() -> int:
    """The number of threads of parallel loops: ``OMP_NUM_THREADS``, else the cores this process may use."""
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
