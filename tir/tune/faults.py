"""What rules, spaces and models raised while schedules were made: told and kept, never the end of a search."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType


@dataclass
class Fault:
    """``where`` it was ("rule bands"), the ``error`` in a line, its traceback, and how often it was raised there."""

    where: str
    error: str
    traceback: str
    count: int = 1


class Faults:
    """The faults of a search, each place and kind of error once; the first of each gives a ``RuntimeWarning``."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], Fault] = {}

    def add(self, where: str, error: Exception) -> None:
        """Note that ``where`` raised ``error``."""
        kind = (where, type(error).__name__, _place(error.__traceback__))
        if kind in self._found:
            self._found[kind].count += 1
            return
        line = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        self._found[kind] = Fault(where, line, "".join(traceback.format_exception(error)))
        warnings.warn(f"{where} raised {line}; the search goes on without what it would have made", RuntimeWarning, 3)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)


def _place(at: TracebackType | None) -> str:
    """The file and the line that raised."""
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "" if at is None else f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"
