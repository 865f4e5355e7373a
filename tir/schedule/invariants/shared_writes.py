"""Shared memory that threads would write at once, checked after every step.

Barriers order different statements. Nothing orders the threads that run one statement: where it writes one element of
shared memory in several threads, they have to write the same value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ...analysis.dependence.relations import StatementRelations, by_loops, same_element
from ...analysis.dependence.statements import Access, Statement, bare_statements_of
from ...analysis.dependence.witness import witness
from ...analysis.index import LoopRef, index_of
from ...analysis.simple_blocks import constant
from ...buffer import Buffer
from ...expr import Var
from ...function import PrimFunc
from ...poly import Names, NotAffine, TooLong, bounded, everything
from ...stmt import THREAD_BINDING, Block, BufferStore
from ...visit import uses_var, walk
from . import Keeps, Problem, invariant
from .delta import BufferSet, Delta


@invariant(kept_by=Keeps.THREADS)
def shared_writes(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """Threads that write the same element of shared memory in one statement write the same value."""
    if delta.changed_loops((THREAD_BINDING,)):
        yield from _problems(after, delta.unchanged_buffers)


def problems_when_complete(func: PrimFunc) -> Iterator[Problem]:
    """As ``shared_writes``, for a program that is to be lowered."""
    return _problems(func, frozenset())


def _problems(func: PrimFunc, same: BufferSet) -> Iterator[Problem]:
    """The violations in buffers other than ``same``."""
    allocated = (b for _, b in index_of(func).allocations if b.scope.startswith("shared"))
    shared = {b.data for b in allocated if b.data not in same}
    if shared:
        kernels = _Kernels(func)
        for unit in kernels.units:
            for access in unit.writes():
                if access.buffer.data in shared and isinstance(unit.node, BufferStore):
                    yield from kernels.problems(unit, access)


@dataclass(frozen=True)
class _Kernels:
    """The stores of a program, and the loops that are threads of a block."""

    func: PrimFunc

    @cached_property
    def units(self) -> list[Statement]:
        return bare_statements_of(self.func.body)

    @cached_property
    def threads(self) -> dict[Var, LoopRef]:
        index = index_of(self.func)
        return {
            n.loop_var: index.place(n)
            for n in index.marked
            if n.thread.startswith("threadIdx") and constant(n.extent) not in (0, 1)
        }

    @cached_property
    def reductions(self) -> set[Var]:
        blocks = (n for n in walk(self.func.body) if isinstance(n, Block))
        return {i.var for b in blocks for i in b.iter_vars if i.iter_type == "reduce"}

    def problems(self, unit: Statement, access: Access) -> Iterator[Problem]:
        for var, _, _ in unit.loops:
            if var not in self.threads or access.uses(_moving(unit, var)) or self._is_reduced(unit, var):
                continue
            if self._varies(unit, self.threads[var].node.thread, set()):
                yield from self._written_twice(unit, access, self.threads[var])

    def _is_reduced(self, unit: Statement, thread: Var) -> bool:
        """Whether ``unit`` reduces across the threads of a loop: lowering combines their values."""
        return any(v in self.reductions and uses_var(value, {thread}) for v, value in unit.inner)

    def _varies(self, unit: Statement, axis: str, seen: set[Buffer]) -> bool:
        """Whether what ``unit`` stores depends on its thread along ``axis``: by its own index, by the elements that it
        reads, or by what it reads from memory of the thread's own."""
        thread = next((v for v, _, _ in unit.loops if v in self.threads and self.threads[v].node.thread == axis), None)
        if thread is None:
            return False
        moving = _moving(unit, thread)
        own = [a.buffer for a in unit.reads() if a.buffer.scope == "local" and a.buffer not in seen]
        if any(a.buffer.scope != "local" and a.uses(moving) for a in unit.reads()):
            return True
        if isinstance(unit.node, BufferStore) and _names(unit.node, moving):
            return True
        writers = (w for b in own for w in self.units if any(a.buffer.data is b.data for a in w.writes()))
        return any(self._varies(w, axis, {*seen, *own}) for w in writers)

    def _written_twice(self, unit: Statement, access: Access, thread: LoopRef) -> Iterator[Problem]:
        """The problem, if two threads get to ``unit`` at the same element; undecided is accepted."""
        try:
            lines = self._two_writers(unit, access, thread)
        except (NotAffine, TooLong):
            return
        if lines:
            yield _problem(access.buffer, thread, lines, unit)

    def _two_writers(self, unit: Statement, access: Access, thread: LoopRef) -> list[str]:
        """Two instances of ``unit`` in different threads that write one element; none if there are none."""
        alone = by_loops(unit)
        alone.accesses = [access]
        side = StatementRelations(alone, Names())
        side.touch()
        others = [n for n, v in enumerate(alone.coords) if v is not thread.var]
        with bounded():
            (touch,) = side.writes
            pairs = same_element(side, touch, side, touch)
            at_once = everything(pairs.domain(), pairs.domain()).equating([(n, n) for n in others])
            found = pairs.intersect(at_once).different()
            return [] if found.is_empty() else witness(found, side, touch, side, touch, "", "")


def _problem(buffer: Buffer, thread: LoopRef, lines: list[str], unit: Statement) -> Problem:
    return Problem(
        (buffer.name, "writers"),
        f"threads of loop {thread.name} would write different values to one element of `{buffer.name}` "
        f"({buffer.scope} memory) at once",
        lines,
        [thread.node, unit.node],
        f"give `{buffer.name}` an axis for loop {thread.name} (outside of the blocks in it), or the scope local",
    )


def _moving(unit: Statement, loop: Var) -> set[Var]:
    """``loop``, and the block iterators that it moves."""
    return {loop, *(v for v, value in unit.inner if uses_var(value, {loop}))}


def _names(store: BufferStore, variables: set[Var]) -> bool:
    """Whether the value of a store names one of ``variables`` outside of the indices of loads."""
    if not uses_var(store.value, variables):
        return False
    inside = {id(v) for n in walk(store.value) if hasattr(n, "indices") for i in n.indices for v in walk(i)}
    return any(v in variables and id(v) not in inside for v in walk(store.value) if isinstance(v, Var))
