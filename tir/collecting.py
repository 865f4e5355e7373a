"""Python's search for reference cycles, made seldom around work that makes many nodes which live on."""

from __future__ import annotations

import gc
import threading
from contextlib import ContextDecorator

SELDOM = 20_000  # objects made between two searches; Python's own number is 700
ALL = 10  # times as many of these as usual between two searches among all objects, of other packages too


class Seldom(ContextDecorator):
    """Python looks for reference cycles seldom meanwhile: programs have none, and their nodes, which live on, would be visited again
    and again, for a tenth to a third of the time. Uses nest, and threads may be in it at once: after the last one, it is as before the first.

    >>> before = gc.get_threshold()
    >>> with seldom_collected:
    ...     gc.get_threshold()[0], gc.get_threshold()[2] // before[2]
    (20000, 10)
    >>> gc.get_threshold() == before
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < SELDOM:  # 0: never
                    gc.set_threshold(SELDOM, self._before[1], ALL * self._before[2])

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                gc.set_threshold(*self._before)


seldom_collected = Seldom()
