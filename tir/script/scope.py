"""Names in scope while a function is parsed, and its statements so far."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..buffer import Buffer
from ..stmt import Stmt, seq

# A statement, or what wraps everything after it in the scope (let, allocate, attr …).
Item = Stmt | Callable[[Stmt], Stmt]


class _Poison:
    """The placeholder for a name whose defining statement was invalid: using it is not another error."""


POISON = _Poison()
FLAG = "\0"  # begins the names of flags that the parser makes: no program has such names


@dataclass(eq=False)
class Variable:
    """A name whose value changes, in a buffer of one element. ``concurrent``: how many loops whose iterations run at once
    were open at its ``definition``; ``is_literal``: that gave it a number of Python, which has no type of its own."""

    buffer: Buffer
    definition: Any
    is_literal: bool
    concurrent: int

    described = "number that changes"


class Scope:
    """Names of one nesting level. ``made`` has the statement that gave a name a value of the program or a number;
    ``stale`` the names assigned again in an inner scope, with the line where that was; ``read`` those of outer scopes
    that were used here."""

    __slots__ = ("names", "made", "stale", "read")

    def __init__(self, names: dict[str, Any] | None = None):
        self.names: dict[str, Any] = names or {}
        self.made: dict[str, ast.AST] = {}
        self.stale: dict[str, int] = {}
        self.read: set[str] = set()


def close(items: Iterable[Item]) -> Stmt:
    """The items in order as one statement; a wrapper takes all that follow it."""
    after: list[Stmt] = []
    for item in reversed(list(items)):
        if isinstance(item, Stmt):
            after.append(item)
        else:
            after = [item(seq(reversed(after)))]
    return seq(reversed(after))
