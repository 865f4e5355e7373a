"""How far something is that takes longer than two seconds: a bar of tqdm where that is installed, else lines."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from . import config

PATIENCE = 2.0  # seconds before anything is shown, and between lines
_Item = TypeVar("_Item")


def bar(what: str, total: int | None, done: int = 0) -> Any:
    """A bar of tqdm, or None where that is not installed."""
    if importlib.util.find_spec("tqdm") is None:
        return None
    return importlib.import_module("tqdm.auto").tqdm(total=total, desc=what, initial=done, leave=False)


def track(items: Iterable[_Item], what: str, total: int | None = None) -> Iterator[_Item]:
    """``items`` as they are, and on standard error how many of ``total`` are done, once they take longer than two seconds and
    somebody looks: on a terminal, in a notebook, or with ``TIR_PROGRESS=1``.

    >>> list(track(range(3), "counting", 3))
    [0, 1, 2]
    """
    shown: _Shown | None = None
    begin = time.monotonic()
    try:
        for done, item in enumerate(items):
            if shown is not None:
                shown.update(done)
            elif time.monotonic() - begin > PATIENCE:
                shown = _Shown(what, total, done)
            yield item
    finally:
        if shown is not None:
            shown.close()


def is_watched() -> bool:
    """Whether somebody sees what is written to standard error, by ``TIR_PROGRESS``, else by what it is."""
    wanted = config.current().progress
    return wanted == "1" or wanted != "0" and (sys.stderr.isatty() or "ipykernel" in sys.modules)


class _Shown:
    def __init__(self, what: str, total: int | None, done: int):
        self.what, self.total = what, total
        self.watched = is_watched()
        self.bar = bar(what, total, done) if self.watched else None
        self.done, self.last = done, 0.0
        self.update(done)

    def update(self, done: int) -> None:
        if self.bar is not None:
            self.bar.update(done - self.done)
        elif self.watched and time.monotonic() - self.last > PATIENCE:
            self.last = time.monotonic()
            print(f"{self.what}: {done}" + (f" of {self.total}" if self.total else ""), file=sys.stderr)
        self.done = done

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
