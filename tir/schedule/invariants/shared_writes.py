"""Shared memory that threads would write at once, checked after every step.

Barriers order different statements. Nothing orders the threads that run one statement: where it writes one element of
shared memory in several threads, they have to write the same value, and no other thread may read it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...aliases import memory_of, shares_memory, sharing
from ...analysis.dependence.affine import AffineForms, tells_apart
from ...analysis.dependence.relations import StatementRelations, is_exact, same_element, witness
from ...analysis.dependence.statements import Access, Statement
from ...analysis.index import LoopRef, index_of
from ...buffer import Buffer
from ...expr import Var, is_const
from ...function import PrimFunc
from ...levels import is_shared
from ...poly import Names, Undecided, decide
from ...render import short_text
from ...stmt import THREAD_BINDING, BufferStore
from ...visit import uses_var
from . import Keeps, Problem, invariant
from .delta import BufferSet, Delta
from .thread_values import Stores, is_element, moving, stores_of


@invariant(kept_by=Keeps.THREADS, loops=(THREAD_BINDING,))
def shared_writes(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """Threads that write the same element of shared memory in one statement write the same value, which no other thread
    reads in that statement."""
    return _problems(after, delta.unchanged_buffers)


def problems_when_complete(func: PrimFunc) -> Iterator[Problem]:
    """As ``shared_writes``, for a program that is to be lowered."""
    return _problems(func, frozenset())


def _problems(func: PrimFunc, same: BufferSet) -> Iterator[Problem]:
    """The violations in buffers other than ``same``."""
    shared = memory_of(b for _, b in index_of(func).allocations(is_shared) if not shares_memory(b, same))
    if not shared:
        return
    stores = stores_of(func)
    for unit in stores.units:
        for access in sharing(unit.writes(), shared):
            if isinstance(unit.node, BufferStore):
                found = _written_twice(stores, unit, access) or _read_meanwhile(stores, unit, access)
                if found is not None:
                    yield found


def _written_twice(stores: Stores, unit: Statement, access: Access) -> Problem | None:
    """The problem, if threads get to ``unit`` at the same element with different values; undecided is accepted, unless no
    thread has an element of its own."""
    threads = stores.threads_of(unit)
    told = _told(stores, unit, access, access, threads)
    suspects = [ref for ref in threads if ref.var not in told and stores.varies(unit, ref.node.thread)]
    if any(access.uses(moving(unit, ref.var)) for ref in suspects) and not is_element(unit, access):
        return None  # it depends on data whether they do
    for thread in suspects:
        lines = _at_once(stores, unit, access, access, thread.var)
        if lines:
            return _problem(access.buffer, thread, lines, unit)
    return None


def _read_meanwhile(stores: Stores, unit: Statement, access: Access) -> Problem | None:
    """The problem, if a thread reads in ``unit`` what another writes there; undecided is accepted."""
    reads = [a for a in unit.accesses_of(access.buffer) if not a.write]
    threads = stores.threads_of(unit) if reads and is_exact(unit, access) else []
    for read in reads:
        told = _told(stores, unit, access, read, threads)
        for thread in (ref for ref in threads if ref.var not in told):
            lines = _at_once(stores, unit, access, read, thread.var) if is_exact(unit, read) else []
            if lines:
                return _read_problem(access.buffer, thread, lines, unit)
    return None


def _told(stores: Stores, unit: Statement, access: Access, other: Access, threads: Sequence[LoopRef]) -> set[Var]:
    """Those of the loops of ``threads`` whose different iterations have different elements at once, shown without exact sets:
    then the loops around all threads by which the elements differ are in the same iteration."""
    moved = {ref.var: moving(unit, ref.var) for ref in threads}
    apart = {v for v, those in moved.items() if access.uses(those) or other.uses(those)}
    first = next((n for n, loop in enumerate(unit.loops) if loop[0] in apart), 0)
    forms = AffineForms(replace(unit, loops=unit.loops[first:]), stores.written)
    return {v for v in apart if access.uses(moved[v]) and tells_apart(forms, access, forms, other, v)}


def _at_once(stores: Stores, unit: Statement, write: Access, other: Access, thread: Var) -> list[str]:
    """As :func:`_met`; if sets do not decide, only what all threads do alike is known."""
    found = decide(_met, stores, unit, write, other, thread)
    if isinstance(found, Undecided):
        return _alike(unit, write, thread) if other is write else []
    return found


def _alike(unit: Statement, write: Access, thread: Var) -> list[str]:
    """That every thread of a loop writes the same element, if nothing that says which, or whether it is written, differs
    between them; none otherwise."""
    moved = moving(unit, thread)
    if any(v is thread and is_const(extent, 1) for v, _, extent in unit.loops):
        return []
    around = (*unit.guards, *(e for _, low, extent in unit.loops for e in (low, extent)))
    if write.indices is None or write.uses(moved) or any(uses_var(e, moved) for e in around):
        return []
    element = ", ".join(short_text(e) for e in write.index_parts())
    return [f"each of them writes {write.buffer.name}[{element}] in the same iteration of the loops inside"]


def _met(stores: Stores, unit: Statement, write: Access, other: Access, thread: Var) -> list[str]:
    """Two instances of ``unit`` in different threads of a loop that use one element at once, the first by ``write``, the
    second by ``other``; none if there are none, or if both write the same value."""
    names = Names()
    side = StatementRelations(replace(unit, accesses=list(dict.fromkeys((write, other)))), names)
    side.touch()
    first, second = side.writes[0], (side.reads or side.writes)[0]
    found = stores.at_once(same_element(first, second), unit)
    place = next(n for n, v in enumerate(unit.coords) if v is thread)
    found = found.increasing(place).union(found.reverse().increasing(place).reverse())
    if other is write and not found.is_empty():
        found = found.subtract(stores.same_value(unit, names))
    return [] if found.is_empty() else witness(found, side, first, side, second, "", "")


def _problem(buffer: Buffer, thread: LoopRef, lines: list[str], unit: Statement) -> Problem:
    return Problem(
        (buffer.name, "writers"),
        f"threads of loop {thread.name} would write different values to one element of `{buffer.name}` "
        f"({buffer.scope} memory) at once",
        lines,
        [thread.node, unit.node],
        f"give `{buffer.name}` an axis for loop {thread.name} (outside of the blocks in it), or the scope local",
    )


def _read_problem(buffer: Buffer, thread: LoopRef, lines: list[str], unit: Statement) -> Problem:
    return Problem(
        (buffer.name, "readers"),
        f"threads of loop {thread.name} would read in one statement what others write in it, to `{buffer.name}` "
        f"({buffer.scope} memory)",
        lines,
        [thread.node, unit.node],
        "copy what is read to memory of the scope local before, in a statement of its own",
    )
