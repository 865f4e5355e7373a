"""Names in scope while a function is parsed, and its statements so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..stmt import Stmt, seq

# A statement, or what wraps everything after it in the scope (let, allocate, attr …).
Item = Stmt | Callable[[Stmt], Stmt]


class _Poison:
    """The placeholder for a name whose defining statement was invalid: using it is not another error."""


POISON = _Poison()


class Scope:
    """Names of one nesting level. ``lets`` are the names that hold a value of the program; ``stale`` those assigned
    again in an inner scope, with the line where that was."""

    __slots__ = ("names", "lets", "stale")

    def __init__(self, names: dict[str, Any] | None = None):
        self.names: dict[str, Any] = names or {}
        self.lets: set[str] = set()
        self.stale: dict[str, int] = {}


def close(items: Iterable[Item]) -> Stmt:
    """The items in order as one statement; a wrapper takes all that follow it."""
    after: list[Stmt] = []
    for item in reversed(list(items)):
        if isinstance(item, Stmt):
            after.append(item)
        else:
            after = [item(seq(reversed(after)))]
    return seq(reversed(after))
