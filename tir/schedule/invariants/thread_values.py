"""Which instances of a store in a kernel write the same value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...analysis.dependence.relations import StatementRelations, is_exact, same_element
from ...analysis.dependence.statements import Access, Statement, bare_statements_of
from ...analysis.effects import READ
from ...analysis.index import LoopRef, index_of, reduction_iterators
from ...analysis.reductions import threads_can_share
from ...analysis.simple_blocks import constant
from ...buffer import Buffer, decl_buffer
from ...expr import BufferLoad, Expr, Var
from ...function import PrimFunc
from ...levels import is_private, is_thread_axis
from ...node import once
from ...op import is_pure
from ...poly import Names, Relation, everything
from ...records import cached_property
from ...stmt import BufferStore, LetStmt
from ...visit import has_load, nodes_of, uses_var

_VALUE = decl_buffer((1,), "int32", "value")  # stands for the memory of a variable's value


@dataclass(frozen=True)
class Stores:
    """The stores of a program, and the loops that are threads of a block."""

    func: PrimFunc

    @cached_property
    def units(self) -> list[Statement]:
        """The bare statements; the instances of each are identified by its loops."""
        return bare_statements_of(self.func.body)

    @cached_property
    def threads(self) -> dict[Var, LoopRef]:
        """The loops of several threads, by variable."""
        index = index_of(self.func)
        return {
            n.loop_var: index.place(n)
            for n in index.marked
            if is_thread_axis(n.thread) and constant(n.extent) not in (0, 1)
        }

    @cached_property
    def _reductions(self) -> set[Var]:
        return reduction_iterators(index_of(self.func), threads_can_share)

    @cached_property
    def _named(self) -> set[Var]:
        """Variables that have a value by a ``let``."""
        return {n.var for n in nodes_of(self.func.body) if type(n) is LetStmt}

    def threads_of(self, unit: Statement) -> list[LoopRef]:
        """The loops of threads around a statement, except those across which it reduces."""
        combined = self.combined(unit)
        return [self.threads[v] for v, _, _ in unit.loops if v in self.threads and v not in combined]

    def combined(self, unit: Statement) -> set[Var]:
        """The loops of threads across which a statement reduces: lowering combines their values."""
        reduced = [value for v, value in unit.inner if v in self._reductions]
        return {v for v, _, _ in unit.loops if v in self.threads and any(uses_var(e, {v}) for e in reduced)}

    def at_once(self, pairs: Relation, unit: Statement) -> Relation:
        """Those of ``pairs`` of instances of a statement that no barrier orders: they differ in their threads only."""
        threads = {ref.var for ref in self.threads_of(unit)}
        return pairs.equating([(n, n) for n, v in enumerate(unit.coords) if v not in threads])

    def unit_of(self, unit: Statement) -> Statement:
        """The statement with all of its accesses, of which ``unit`` has a part."""
        return next(u for u in self.units if u.node is unit.node and u.time == unit.time)

    def reads_what_changes(self, unit: Statement) -> bool:
        """Whether a statement reads memory that is written in a loop around it: what other nests write does not change
        while it runs."""
        own = {v for v, _, _ in unit.loops}
        return any(own & around for a in unit.reads() for around in self.written.get(a.buffer.data, ()))

    @cached_property
    def written(self) -> dict[Var, list[set[Var]]]:
        """By pointer of the memory that the program writes: the loops around each write."""
        found: dict[Var, list[set[Var]]] = {}
        for u in self.units:
            for a in u.writes():
                found.setdefault(a.buffer.data, []).append({v for v, _, _ in u.loops})
        return found

    def is_uniform(self, unit: Statement, loops: Collection[Var]) -> bool:
        """Whether all iterations of ``loops`` store the same value, known from memory that does not change, to the same
        element."""
        if not isinstance(unit.node, BufferStore) or self._is_unknown(unit.node.value, unit.reads()):
            return False
        moved = {v for loop in loops for v in moving(unit, loop)}
        if any(a.uses(moved) for a in unit.accesses) or any(uses_var(e, moved) for e in _parts(unit.node.value)):
            return False
        return not self.reads_what_changes(unit)

    def varies(self, unit: Statement, axis: str, seen: frozenset[Buffer] = frozenset()) -> bool:
        """Whether what ``unit`` stores depends on its thread along ``axis``: by its own index, by which elements it
        reads, or by what it reads from memory of the thread's own."""
        thread = next((v for v, _, _ in unit.loops if v in self.threads and self.threads[v].node.thread == axis), None)
        if thread is None:
            return False
        moved = moving(unit, thread)
        if any(a.uses(moved) for a in unit.reads()):
            return True
        if isinstance(unit.node, BufferStore) and any(uses_var(e, moved) for e in _parts(unit.node.value)):
            return True
        own = {a.buffer for a in unit.reads() if _is_own(a)} - seen
        writers = (w for b in own for w in self.units if w.writes_to(b))
        return any(self.varies(w, axis, seen | own) for w in writers)

    def same_value(self, unit: Statement, names: Names) -> Relation:
        """Pairs of instances of a store, run while the memory has the same contents, that write the same value: they read
        the same elements, and the variables in it are equal. Raises ``NotAffine``."""
        reads = [a for a in unit.reads() if not _is_own(a)]
        parts = _parts(unit.node.value) if isinstance(unit.node, BufferStore) else []
        asked = [*reads, *(Access(_VALUE, (part,), READ, node=part) for part in parts)]
        told = [a for a in asked if is_element(unit, a)]
        differ = {v for a in asked if a not in told for v in unit.coords if a.uses(moving(unit, v))}
        differ |= {ref.var for ref in self.threads_of(unit) if self._varies_by_own(unit, ref)}
        if not isinstance(unit.node, BufferStore) or self._is_unknown(unit.node.value, reads):
            differ = set(unit.coords)
        side = StatementRelations(replace(unit, accesses=[*unit.writes()[:1], *told]), names)
        side.touch()
        return _agreeing(side).equating([(n, n) for n, v in enumerate(unit.coords) if v in differ])

    def _is_unknown(self, value: Expr, reads: Sequence[Access]) -> bool:
        """Whether a value depends on more than the elements and variables in it."""
        return not is_pure(value) or any(a.indices is None for a in reads) or uses_var(value, self._named)

    def _varies_by_own(self, unit: Statement, thread: LoopRef) -> bool:
        """Whether memory of the threads' own makes a difference between them."""
        own = [a for a in unit.reads() if _is_own(a)]
        return bool(own) and self.varies(replace(unit, node=None, accesses=own), thread.node.thread)


@once
def stores_of(func: PrimFunc) -> Stores:
    """The stores of ``func``, found once for each function object."""
    return Stores(func)


def _agreeing(side: StatementRelations) -> Relation:
    """Pairs of instances of a store that read the same elements; a read under a condition is made by both, or by none."""
    written = side.writes[0].map
    domain, pairs = written.domain(), everything(written, written)
    made = pairs
    for read in side.reads:
        without = domain.subtract(read.map.domain())
        none_reads = pairs.domain_in(without).range_in(without)
        made = made.intersect(same_element(read, read).union(none_reads))
    return made


def moving(unit: Statement, loop: Var) -> set[Var]:
    """``loop``, and the block iterators that it moves."""
    return {loop, *(v for v, value in unit.inner if uses_var(value, {loop}))}


def _is_own(access: Access) -> bool:
    """Whether each thread (or warp) has its own copy of the memory."""
    return is_private(access.buffer.scope)


def is_element(unit: Statement, access: Access) -> bool:
    """Whether each instance accesses exactly one, known, element."""
    single = not access.loops and not any(isinstance(i, tuple) for i in access.indices or ())
    return single and is_exact(unit, access)


def _parts(e: Any) -> list[Expr]:
    """The largest integers without loads in a value, and its other variables: what it depends on besides memory."""
    if isinstance(e, BufferLoad) or not isinstance(e, Expr):
        return []
    whole = isinstance(e, Var) or (e.dtype.is_int and not has_load(e))
    return [e] if whole else [part for child in e.children() for part in _parts(child)]
