"""When allocated memory is in use: the first and the last statement that use each allocation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..buffer import Buffer
from ..expr import Var
from ..stmt import Allocate, DeclBuffer, For, SeqStmt, Stmt, While
from ..visit import nodes_of

Spans = dict[Var, tuple[int, int]]  # pointer -> the numbers of the first and the last statement


def pointers_in(root: Any) -> Iterator[Var]:
    """The pointers that occur under ``root``, as values or behind buffers."""
    for n in nodes_of(root):
        kind = type(n)
        pointer = n if kind is Var else n.data if kind is Buffer else None
        if pointer is not None and pointer.dtype.is_handle:
            yield pointer


class Lifetimes:
    """First and last statement under ``root`` that use each allocation for which ``taken`` is true.

    In ``exact`` a loop is one statement for memory allocated outside it, in ``wide`` for memory allocated inside, too.
    What the head of a statement uses (a condition, an extent, the value of a let) is in use until the statement ends:
    the name of a let may be a pointer into it.
    """

    def __init__(self, root: Stmt, taken: Callable[[Allocate], bool]):
        self.root, self.taken = root, taken
        self.allocs: dict[Var, Allocate] = {}
        self.depth: dict[Var, int] = {}
        self.exact: Spans = {}
        self.wide: Spans = {}
        self.views: dict[Var, list[Buffer]] = {}
        self.clock = 0
        self._visit(root, 0)

    def _visit(self, s: Any, depth: int) -> set[Var]:
        """Pointers used under ``s``; ``depth`` counts the loops around it."""
        if isinstance(s, Allocate):
            if self.taken(s):
                self.allocs[s.buffer_var] = s
                self.depth[s.buffer_var] = depth
            return self._visit(s.body, depth)
        if isinstance(s, DeclBuffer):
            self.views.setdefault(s.buffer.data, []).append(s.buffer)
            return self._visit(s.body, depth)
        if isinstance(s, SeqStmt):
            return set().union(*(self._visit(c, depth) for c in s.stmts))
        start, loops = self.clock, isinstance(s, (For, While))
        used = set().union(*(self._visit(c, depth + loops) for c in s.children() if isinstance(c, Stmt)))
        head = self._named(s)
        self.clock += not loops
        self._live(self.exact, head, start)
        self._live(self.wide, head, start)
        if loops:
            self._live(self.exact, (p for p in used if self.depth[p] <= depth), start)
            self._live(self.wide, used, start)
        return used | head

    def _named(self, s: Stmt) -> set[Var]:
        """Pointers that ``s`` uses outside of the statements in it."""
        return {p for c in s.children() if not isinstance(c, Stmt) for p in pointers_in(c) if p in self.allocs}

    def _live(self, spans: Spans, pointers: Iterable[Var], start: int) -> None:
        """``pointers`` are in use from ``start`` to now."""
        for pointer in pointers:
            first, last = spans.get(pointer, (start, 0))
            spans[pointer] = (min(first, start), max(last, self.clock - 1))


def disjoint(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two spans have no statement in common."""
    return a[1] < b[0] or b[1] < a[0]
