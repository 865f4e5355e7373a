"""The memory whose accesses a step changed.

Memory that the same blocks access, in the same loops and in the same order, is unchanged: what was proved of it before
the step still holds, whatever else the step did. Parts of both programs that are one object are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from typing import Any

from ...analysis.contents import has_blocks, kept_members, named, sub_statements, with_memory
from ...analysis.effects import memory_effects
from ...expr import Var
from ...function import PrimFunc
from ...node import once
from ...stmt import SERIAL, UNROLLED, Block, BlockRealize, For, SeqStmt
from ...visit import has_load, with_recursion_limit

BufferSet = Container[Var]  # pointers of buffers
Order = dict[Var, tuple[Any, ...]]  # of each memory: the statements that access it, in the loops and blocks around them


class Uses:
    """The accesses of memory in statements, comparably: :meth:`of` one, and what of them is :meth:`changed` between two.
    ``mark`` has what matters of a loop beside its iterations.

    What is not a block in loops, or has views, counts as one statement.
    """

    def __init__(self, mark: Callable[[For], Any]):
        self._mark = mark
        self.of = with_recursion_limit(once(self._of))

    def _of(self, stmt: Any) -> Order:
        if isinstance(stmt, SeqStmt):
            return _together(map(self.of, stmt.stmts))
        if isinstance(stmt, For) and not has_load(stmt.min, stmt.extent):
            return _inside(self.of(stmt.body), self._loop_key(stmt))
        if isinstance(stmt, BlockRealize) and _is_nest(stmt.block) and not has_load(stmt.predicate, *stmt.iter_values):
            allocated: Order = {b.data: (id(b),) for b in stmt.block.alloc_buffers}
            inner = _together((self._of_init(stmt.block), self.of(stmt.block.body)))
            return _together((allocated, _inside(inner, _realize_key(stmt))))
        return dict.fromkeys(_memory_of(stmt), (id(stmt),))

    def _of_init(self, block: Block) -> Order:
        return {} if block.init is None else self.of(block.init)

    def _loop_key(self, loop: For) -> Any:
        return (id(loop.loop_var), id(loop.min), id(loop.extent), self._mark(loop))

    def unchanged(self, old: PrimFunc, new: PrimFunc) -> BufferSet:
        """The memory whose accesses are the same in two functions."""
        return _AllBut(self.changed(old.body, new.body))

    @with_recursion_limit
    def changed(self, old: Any, new: Any) -> set[Var]:
        """The memory whose accesses differ between two statements that stand in the same loops and blocks."""
        if old is new:
            return set()
        if isinstance(old, SeqStmt) and isinstance(new, SeqStmt):
            kept = kept_members(old, new)
            return _differing(self._apart(old, kept), self._apart(new, kept))
        if isinstance(old, For) and isinstance(new, For) and self._loop_key(old) == self._loop_key(new):
            return self.changed(old.body, new.body)
        if isinstance(old, BlockRealize) and isinstance(new, BlockRealize) and _same_realize(old, new):
            before, after = old.block, new.block
            found = self.changed(before.body, after.body)
            if before.alloc_buffers is not after.alloc_buffers:
                found |= {b.data for b in {*before.alloc_buffers} ^ {*after.alloc_buffers}}
            if before.init is not after.init:
                found |= _differing([(0, self._of_init(before))], [(0, self._of_init(after))])
            return found
        return _differing([(0, self.of(old))], [(0, self.of(new))])

    def _apart(self, stmt: SeqStmt, kept: Collection[Any]) -> list[tuple[int, Order]]:
        """The uses of the members of a sequence that are not ``kept``, each with the number of those before it."""
        found: list[tuple[int, Order]] = []
        passed = 0
        for s in stmt.stmts:
            if s in kept:
                passed += 1
            else:
                found.append((passed, self.of(s)))
        return found


def _memory_of(stmt: Any) -> Iterable[Var]:
    """The memory that a statement accesses; with views inside, under which name is not known, all that it names."""
    if any(n.block.match_buffers for n in with_memory(stmt)):
        return [n for n in named(stmt) if type(n) is Var and n.dtype.is_handle]
    return memory_effects(stmt).reads | memory_effects(stmt).writes


@once
def written(stmt: Any) -> frozenset[tuple[Var, str]]:
    """The memory that a statement writes, with its scopes."""
    taken_apart = _is_nest(stmt.block) if isinstance(stmt, BlockRealize) else isinstance(stmt, (For, SeqStmt, Block))
    if taken_apart and has_blocks(stmt):
        return frozenset[tuple[Var, str]]().union(*map(written, sub_statements(stmt)))
    return frozenset((e.buffer.data, e.buffer.scope) for e in memory_effects(stmt).stored if e.write)


def _together(parts: Iterable[Order]) -> Order:
    """The accesses of statements that follow each other."""
    found: Order = {}
    for part in parts:
        for memory, uses in part.items():
            found[memory] = found.get(memory, ()) + uses
    return found


def _inside(order: Order, key: Any) -> Order:
    """The same accesses in a loop or a block."""
    return {memory: ((key, uses),) for memory, uses in order.items()}


def _differing(old: list[tuple[int, Order]], new: list[tuple[int, Order]]) -> set[Var]:
    """The memory that two lists of numbered parts access in different ways."""
    was, now = _collected(old), _collected(new)
    return {memory for memory in was.keys() | now.keys() if was.get(memory) != now.get(memory)}


def _collected(parts: list[tuple[int, Order]]) -> dict[Var, list[Any]]:
    found: dict[Var, list[Any]] = {}
    for place, uses in parts:
        for memory, order in uses.items():
            found.setdefault(memory, []).append((place, order))
    return found


def _is_nest(block: Block) -> bool:
    """Whether a block is of blocks, and has no views."""
    return has_blocks(block) and not block.match_buffers


def _same_realize(old: BlockRealize, new: BlockRealize) -> bool:
    """Whether two blocks of blocks run alike."""
    return _realize_key(old) == _realize_key(new) and _is_nest(old.block) and _is_nest(new.block)


def _realize_key(realize: BlockRealize) -> Any:
    block = realize.block
    return (block.name, id(realize.predicate), id(block.iter_vars), *map(id, realize.iter_values))


# how the iterations of a loop run at once: none of it if one after the other, unrolled or not
MARKED = Uses(lambda loop: None if loop.kind in (SERIAL, UNROLLED) else (loop.kind, loop.thread))
UNMARKED = Uses(lambda loop: None)


class _AllBut:
    def __init__(self, changed: Collection[Var]):
        self.changed = changed

    def __contains__(self, memory: object) -> bool:
        return memory not in self.changed
