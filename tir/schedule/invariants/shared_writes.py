"""Shared memory that threads would write at once, checked after every step.

Barriers order different statements. Nothing orders the threads that run one statement: where it writes one element of
shared memory in several threads, they have to write the same value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...analysis.dependence.affine import AffineForms, index_tells_iteration, indices_differ
from ...analysis.dependence.relations import StatementRelations, same_element
from ...analysis.dependence.statements import Access, Statement
from ...analysis.dependence.witness import witness
from ...analysis.index import LoopRef, index_of, is_shared
from ...buffer import Buffer
from ...expr import Var
from ...function import PrimFunc
from ...poly import Names, Relation, Undecided, bounded, everything
from ...stmt import THREAD_BINDING, BufferStore
from . import Keeps, Problem, invariant
from .delta import BufferSet, Delta
from .thread_values import Stores, is_element, moving, stores_of


@invariant(kept_by=Keeps.THREADS, loops=(THREAD_BINDING,))
def shared_writes(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """Threads that write the same element of shared memory in one statement write the same value."""
    return _problems(after, delta.unchanged_buffers)


def problems_when_complete(func: PrimFunc) -> Iterator[Problem]:
    """As ``shared_writes``, for a program that is to be lowered."""
    return _problems(func, frozenset())


def _problems(func: PrimFunc, same: BufferSet) -> Iterator[Problem]:
    """The violations in buffers other than ``same``."""
    allocated = (b for _, b in index_of(func).allocations(is_shared))
    shared = {b.data for b in allocated if b.data not in same}
    if not shared:
        return
    stores = stores_of(func)
    for unit in stores.units:
        for access in unit.writes():
            if access.buffer.data in shared and isinstance(unit.node, BufferStore):
                found = _written_twice(stores, unit, access)
                if found is not None:
                    yield found


def _written_twice(stores: Stores, unit: Statement, access: Access) -> Problem | None:
    """The problem, if threads get to ``unit`` at the same element with different values; undecided is accepted."""
    suspects = [ref for ref in stores.threads_of(unit) if not _tells(stores, unit, access, ref.var)]
    suspects = [ref for ref in suspects if stores.varies(unit, ref.node.thread)]
    if any(access.uses(moving(unit, ref.var)) for ref in suspects) and not is_element(unit, access):
        return None  # it depends on data whether they do
    for thread in suspects:
        try:
            lines = _two_writers(stores, unit, access, thread.var)
        except Undecided:
            continue
        if lines:
            return _problem(access.buffer, thread, lines, unit)
    return None


def _tells(stores: Stores, unit: Statement, access: Access, thread: Var) -> bool:
    """Whether different threads of a loop have different elements, shown without exact sets."""
    if not access.uses(moving(unit, thread)):
        return False
    forms = AffineForms(unit, stores.written)
    asked = (forms, access, forms, access, thread)
    return indices_differ(*asked) or index_tells_iteration(*asked)


def _two_writers(stores: Stores, unit: Statement, access: Access, thread: Var) -> list[str]:
    """Two instances of ``unit`` in different threads of a loop that write different values to one element at once; none
    if there are none."""
    names = Names()
    side = StatementRelations(replace(unit, accesses=[access]), names)
    side.touch()
    with bounded():
        (touch,) = side.writes
        pairs = same_element(side, touch, side, touch)
        found = pairs.intersect(_at_once(stores, unit, pairs)).increasing(
            next(n for n, v in enumerate(unit.coords) if v is thread)
        )
        if not found.is_empty():
            found = found.subtract(stores.same_value(unit, names))
        return [] if found.is_empty() else witness(found, side, touch, side, touch, "", "")


def _at_once(stores: Stores, unit: Statement, pairs: Relation) -> Relation:
    """Pairs of instances that no barrier orders: they differ in their threads only."""
    threads = {ref.var for ref in stores.threads_of(unit)}
    others = [(n, n) for n, v in enumerate(unit.coords) if v not in threads]
    return everything(pairs, pairs).equating(others)


def _problem(buffer: Buffer, thread: LoopRef, lines: list[str], unit: Statement) -> Problem:
    return Problem(
        (buffer.name, "writers"),
        f"threads of loop {thread.name} would write different values to one element of `{buffer.name}` "
        f"({buffer.scope} memory) at once",
        lines,
        [thread.node, unit.node],
        f"give `{buffer.name}` an axis for loop {thread.name} (outside of the blocks in it), or the scope local",
    )
