"""The OpenMP run-time that parallel loops run on, found in the process or on the system.

``OMP_NUM_THREADS`` sets the size of the team; the default is every core this process may use. Loops run serially
without an OpenMP library, and in a process forked after a team had run: threads do not survive a fork, and GNU's
library would wait for them for ever.
"""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tir.target import threads


@dataclass(frozen=True)
class OpenMP:
    """Addresses of the three functions parallel loops use, and the library they are from."""

    library: str
    parallel: int
    thread_num: int
    num_threads: int


def _openmp_names() -> Iterator[str]:
    """The usual names of its library, then those that compilers find, which are started for that."""
    yield from ("libgomp.so.1", "libomp.so", "libomp.so.5", "libiomp5.so", "libomp.dylib")
    from ctypes.util import find_library

    yield from filter(None, map(find_library, ("gomp", "omp", "iomp5")))


@functools.cache
def openmp() -> OpenMP | None:
    """The OpenMP library, loaded; None where the system has none."""
    for name in _openmp_names():
        try:
            library = ctypes.CDLL(name)
            functions = [library.GOMP_parallel, library.omp_get_thread_num, library.omp_get_num_threads]
        except (OSError, AttributeError):
            continue
        return OpenMP(name, *(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions))
    return None


VARIABLES = ("team", "parallel", "thread", "threads")  # of a module with parallel loops, after __tir_


class Team:
    """The connection of one loaded module to the OpenMP run-time: its function pointers, and the size of its team."""

    def __init__(self, code: Any, cores: int | None):
        self._code, self._cores = code, cores
        self._size = ctypes.c_int32.from_address(code.variable("__tir_team"))
        library = openmp()
        if library is None or _process.lost:
            self.serial()
        else:
            self._link(library.parallel, library.thread_num, library.num_threads)
        _process.teams.add(self)

    def _link(self, parallel: int, thread: int, threads: int) -> None:
        for name, address in zip(VARIABLES[1:], (parallel, thread, threads)):
            ctypes.c_void_p.from_address(self._code.variable(f"__tir_{name}")).value = address

    def serial(self) -> None:
        """Run parallel loops on the calling thread."""
        self._link(*(self._code.function(f"__tir_{name}") for name in ("serial", "no_thread", "one_thread")))

    def before_call(self) -> None:
        """Set the size of the team: the environment may have changed since the last call."""
        self._size.value = threads(self._cores)
        if self._size.value > 1:
            _process.ran = True
        if _process.lost and not _process.warned:
            _process.warned = True
            warnings.warn(
                "parallel loops run serially in this process: it was forked from one whose OpenMP threads were running, "
                "and they do not survive a fork; start it with multiprocessing's 'spawn' or 'forkserver' instead",
                RuntimeWarning,
                stacklevel=3,
            )


class _Process:
    """Whether teams have run in this process, or in the one it was forked from."""

    def __init__(self) -> None:
        self.teams: weakref.WeakSet[Team] = weakref.WeakSet()
        self.ran = False  # whether a team of more than one thread has run
        self.lost = False
        self.warned = False

    def after_fork(self) -> None:
        """In the child, run serially: the run-time would wait for the parent's threads. LLVM's library handles forks."""
        library = openmp() if self.ran else None
        if library is None or "gomp" not in library.library:
            return
        self.run_serially()
        self.warned = False

    def run_serially(self) -> None:
        """Run all loops on the threads that call, without a warning."""
        self.lost = self.warned = True
        for team in list(self.teams):
            team.serial()


_process = _Process()
run_serially = _process.run_serially
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.after_fork)
