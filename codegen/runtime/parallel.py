"""The OpenMP run-time that parallel loops run on, found in the process or on the system.

``OMP_NUM_THREADS`` sets the size of the team, else every core this process may use. Without any OpenMP library loops
run serially.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class OpenMP:
    """Addresses of the three functions parallel loops use, and the library they are from."""

    library: str
    parallel: int
    thread_num: int
    num_threads: int


@functools.cache
def openmp() -> OpenMP | None:
    """The OpenMP library, loaded; None where the system has none."""
    names = ["libgomp.so.1", "libomp.so", "libomp.so.5", "libiomp5.so", "libomp.dylib"]
    names += [found for found in map(ctypes.util.find_library, ("gomp", "omp", "iomp5")) if found]
    for name in names:
        try:
            library = ctypes.CDLL(name)
            functions = [library.GOMP_parallel, library.omp_get_thread_num, library.omp_get_num_threads]
        except (OSError, AttributeError):
            continue
        return OpenMP(name, *(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions))
    return None


def team_size(cores: int | None = None) -> int:
    """Threads a parallel loop is run by: ``OMP_NUM_THREADS``, else ``cores``, else the cores this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if cores:
        return cores
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
