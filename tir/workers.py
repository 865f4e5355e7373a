"""The same work for several things, by as many processes as this one may use cores, where it may be copied."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any, TypeVar

from .errors import BuildError
from .outcome import Outcome, log_level, without_handlers

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
_PLACE = struct.Struct("<I")
_DIE_WITH_PARENT = 1  # Linux: prctl(PR_SET_PDEATHSIG, signal)
_WAITS = {("threading", "wait"), ("selectors", "select")}
_LOCKING = {"tir", "codegen", "llvmlite", "importlib"}  # packages with locks that a copy takes
_processes = 1


class ProcessEnded(BuildError):
    """A process ended before it had done an item."""


def cores() -> int:
    """How many cores this process may use, where it can be copied as on Linux; else 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def is_single() -> bool:
    """Whether this process can be copied at any time: as on Linux, where other threads of Python wait and hold no lock that a copy needs. (Threads of
    libraries wait for that.)"""
    own = threading.get_ident()
    return hasattr(os, "memfd_create") and all(_waits(f) for n, f in sys._current_frames().items() if n != own)


def _waits(frame: FrameType | None) -> bool:
    """Whether the thread of a frame waits in the standard library, as monitors and servers do, and not on behalf of this package."""
    if frame is None or (frame.f_globals.get("__name__"), frame.f_code.co_name) not in _WAITS:
        return False
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] not in _LOCKING:
        frame = frame.f_back
    return frame is None


def in_a_copy(work: Callable[[], _Made]) -> Callable[[], _Made]:
    """What returns what ``work`` made, pickled, in a copy of this process, or raises what it raised; ``ProcessEnded`` if that ended. ``OSError`` where it
    cannot be copied. It is for a process that :func:`is_single`."""
    ((_, take),) = _by_processes(lambda _: work(), [None], 1)
    return take


@contextlib.contextmanager
def copied() -> Iterator[None]:
    """Meanwhile :func:`each` copies this process for each core. It is for a process in which one thread works, and others wait at most."""
    global _processes
    before, _processes = _processes, cores()
    try:
        yield
    finally:
        _processes = before


def each(work: Callable[[_Item], _Made], items: Sequence[_Item]) -> Iterator[tuple[int, Callable[[], _Made]]]:
    """The places of ``items`` as ``work`` is done for them, each with a function that returns what it made, or raises what it raised.

    The last, which should take least, is done first and here, as copies of this process have what it has loaded. Then this one and each copy take the
    next one, so the longest should be first; after an error none is begun, and errors come last, in order. What ``work`` makes in a copy is pickled, and
    what else it changes there is lost. Where a copy ends, that is ``ProcessEnded`` of its item.

    >>> [(place, made()) for place, made in each(abs, [5, -4, 3])]
    [(2, 3), (0, 5), (1, 4)]
    """
    if items:
        yield len(items) - 1, lambda: work(items[-1])
    others = items[:-1]
    count = min(_processes, len(others))
    if count > 1:
        yield from _by_processes(work, others, count - 1, here=True)
        return
    for place, item in enumerate(others):
        yield place, lambda item=item: work(item)


def _by_processes(
    work: Callable[[_Item], _Made], items: Sequence[_Item], count: int, here: bool = False
) -> Iterator[tuple[int, Any]]:
    """As :func:`each`, by ``count`` copies, and by this process if ``here``."""
    from multiprocessing.connection import Pipe, wait

    places = os.memfd_create("places")  # of items to do; all processes read on from where the last one stopped
    begun: dict[Any, tuple[int, int]] = {}  # of each pipe: the process, and the place of what it does
    failed: dict[int, Callable[[], _Made]] = {}
    try:
        os.write(places, b"".join(map(_PLACE.pack, range(len(items)))))
        os.lseek(places, 0, os.SEEK_SET)
        for _ in range(count):
            results, into = Pipe(duplex=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python 3.12 warns of the threads
                pid = os.fork()
            if pid == 0:
                _serve(work, items, places, into)
            into.close()
            begun[results] = pid, -1
        while begun or here:
            limit = None
            # each copy begins one before, since what is done here may take long
            if here and all(place >= 0 for _, place in begun.values()):
                read = os.read(places, _PLACE.size)
                here, limit = bool(read), 0 if read else None
                if here:
                    (place,) = _PLACE.unpack(read)
                    try:
                        made = work(items[place])
                    except Exception as error:  # of any kind: that of the first item is raised
                        failed[place] = Outcome(errors=[error]).take
                    else:
                        yield place, lambda made=made: made
            for results in wait(list(begun), limit) if begun else ():
                pid, before = begun[results]
                place, outcome = _received(results)
                if place is None:
                    del begun[results]
                    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    if code:
                        failed[before] = Outcome(
                            errors=[ProcessEnded(f"the process that compiled it ended: {ending(code)}")]
                        ).take
                elif outcome is None:
                    begun[results] = pid, place
                elif outcome.errors:
                    failed[place] = outcome.take
                else:
                    yield place, outcome.take
            if failed:
                os.lseek(places, 0, os.SEEK_END)
        yield from sorted(failed.items())
    finally:
        os.close(places)
        for pid, _ in begun.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _serve(work: Callable[[_Item], Any], items: Sequence[_Item], places: int, into: Any) -> None:
    """Do what is left to do, in a copy of the process that :func:`each` was called in, and end it."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        level = log_level()
        without_handlers()
        while read := os.read(places, _PLACE.size):
            (place,) = _PLACE.unpack(read)
            into.send_bytes(read)
            into.send_bytes(read + Outcome.of(partial(work, items[place]), level).pickled())
        status = 0
    finally:
        os._exit(status)


def _received(results: Any) -> tuple[int | None, Outcome | None]:
    """The place of an item and its outcome, which is None when it is begun; no place when there will be no more."""
    try:
        data = results.recv_bytes()
    except EOFError:
        results.close()
        return None, None
    (place,) = _PLACE.unpack_from(data)
    return place, Outcome.unpickled(data[_PLACE.size :]) if len(data) > _PLACE.size else None


def ending(code: int) -> str:
    """How a process ended, by its exit code or, below 0, its signal.

    >>> ending(-11), ending(1)
    ('SIGSEGV', 'exit status 1')
    """
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
