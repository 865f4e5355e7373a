"""Which memory a step left alone: the same blocks use it, in the same loops, in the same order.

What was found of it before the step holds after it, whatever the step did to the rest.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from ...analysis.index import BlockRef, LoopRef, Place, index_of, sub_statements
from ...buffer import Buffer
from ...expr import BufferLoad, IntImm, Var
from ...function import PrimFunc
from ...stmt import THREAD_BINDING, Block, BlockRealize, BufferStore, For, SeqStmt, Stmt
from ...visit import walk

BufferSet = frozenset[Var]  # pointers of buffers

_TOUCHED: WeakKeyDictionary[Any, tuple[BufferSet, BufferSet, dict[Var, str]]] = WeakKeyDictionary()


class Uses:
    """The uses of each memory in a function; none known where it is more than blocks in loops."""

    def __init__(self, func: PrimFunc):
        self.index = index_of(func)
        self.around: dict[Any, Any] = {}  # a place and what is around it, comparable
        self.seen: dict[Var, int] = {}
        self.of: dict[Var, list[Any]] = {}
        self.written: dict[LoopRef, set[Var]] = {}  # what blocks under a loop may write
        self.scopes: dict[Var, str] = {}
        self.plain = self._collect(self.index.root)

    def _collect(self, place: Place) -> bool:
        """Add what is under ``place``; false where it is not plain."""
        node: Any = place.node
        outer = None if place.parent is None else self.around[place.parent]
        mine: Any = None
        below = sub_statements(node)
        if isinstance(node, For):
            # of loops with one variable, each is another
            self.seen[node.loop_var] = self.seen.get(node.loop_var, 0) + 1
            count = self.seen[node.loop_var]
            mine = (id(node.loop_var), count, id(node.min), id(node.extent), node.kind, node.thread)
            if _loads(node.min) or _loads(node.extent):
                return False
        elif isinstance(node, BlockRealize):
            assert isinstance(place, BlockRef)
            if not place.children and not any(isinstance(n, BlockRealize) for n in walk(node.block.body)):
                self._add(node, place, outer)
                return True
            if any(_loads(e) for e in (node.predicate, *node.iter_values)):
                return False
            mine = (node.block.name, id(node.predicate), id(node.block.iter_vars), *map(id, node.iter_values))
        elif isinstance(node, Block):
            if node.match_buffers:
                return False
            if node.init is not None and not any(isinstance(n, BlockRealize) for n in walk(node.init)):
                self._add(node.init, place, outer)
                below = (node.body,)
            for buffer in node.alloc_buffers:
                self.of.setdefault(buffer.data, []).append((id(buffer), outer))
        elif not isinstance(node, SeqStmt):
            return False
        self.around[place] = outer if mine is None else (outer, mine)
        return all(self._collect(self.index.places[child]) for child in below)

    def _add(self, stmt: Stmt, place: Place, outer: Any) -> None:
        """Add what ``stmt``, at or in ``place``, touches in one run."""
        touched, written, scopes = _touched(stmt)
        for memory in touched:
            self.of.setdefault(memory, []).append((id(stmt), outer))
        for loop in place.all_loops():
            self.written.setdefault(loop, set()).update(written)
        self.scopes.update(scopes)


def _loads(e: Any) -> bool:
    return not isinstance(e, (IntImm, Var)) and any(isinstance(n, BufferLoad) for n in walk(e))


def _touched(stmt: Stmt) -> tuple[BufferSet, BufferSet, dict[Var, str]]:
    """Pointers of all memory that a statement may touch, of that which it may write, and scopes."""
    found = _TOUCHED.get(stmt)
    if found is None:
        used, written, scopes = set(), set(), {}
        for item in walk(stmt):
            if isinstance(item, Buffer):
                used.add(item.data)
                scopes[item.data] = item.scope
            elif isinstance(item, Var) and item.dtype.is_handle:
                used.add(item)
                written.add(item)
            elif isinstance(item, BufferStore):
                written.add(item.buffer.data)
            elif isinstance(item, Block):
                written.update(r.buffer.data for r in item.writes)
                written.update(m.source.buffer.data for m in item.match_buffers)
        found = _TOUCHED[stmt] = (frozenset(used | written), frozenset(written), scopes)
    return found


_USES: WeakKeyDictionary[PrimFunc, Uses] = WeakKeyDictionary()


def uses_of(func: PrimFunc) -> Uses:
    """The uses of memory in ``func``, found once for each function object."""
    found = _USES.get(func)
    if found is None:
        found = _USES[func] = Uses(func)
    return found


def unchanged_buffers(before: PrimFunc | None, after: PrimFunc) -> BufferSet:
    """Pointers of the memory whose uses are in ``after`` what they were in ``before``; none where that is not plain."""
    if before is None:
        return frozenset()
    old, new = uses_of(before), uses_of(after)
    if not (old.plain and new.plain):
        return frozenset()
    return frozenset(memory for memory, uses in new.of.items() if old.of.get(memory) == uses)


def may_clash(func: PrimFunc, loop: LoopRef, known: BufferSet) -> bool:
    """Whether iterations of ``loop`` write memory in which they could meet: not what is ``known`` to be used as before
    (:func:`unchanged_buffers`), nor, of threads, what is not global memory. True where that is not plain."""
    uses = uses_of(func)
    if not uses.plain:
        return True
    found = uses.written.get(loop, set()) - known
    threads = loop.node.kind == THREAD_BINDING
    return any(not threads or uses.scopes.get(memory, "global") == "global" for memory in found)
