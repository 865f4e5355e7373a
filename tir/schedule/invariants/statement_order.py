"""The order in which threads use shared memory, checked after every step.

A program runs the iterations of a thread loop one after the other. A kernel runs each statement for all threads, then a
barrier, then the next statement. So a read may get another value than in the program: of an element that another thread
writes in a later statement, or not yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

from ...aliases import shares_memory
from ...analysis.dependence.affine import AffineForms, tells_apart
from ...analysis.dependence.order import shared_order
from ...analysis.dependence.relations import (
    AccessRelation,
    Context,
    StatementRelations,
    loop_times,
    same_element,
    without_swizzles,
    witness,
)
from ...analysis.dependence.statements import Access, Statement, deciding
from ...analysis.dependence.written import fills
from ...analysis.effects import Effect
from ...analysis.index import LoopRef, index_of
from ...buffer import Buffer
from ...expr import Var, is_const
from ...function import PrimFunc
from ...levels import is_shared
from ...node import MemoAmong
from ...poly import Names, Relation, Undecided, decide, everything
from ...stmt import THREAD_BINDING
from . import Keeps, Problem, invariant
from .delta import Delta
from .thread_values import Stores, is_element, stores_of


@invariant(kept_by=Keeps.KERNELS, loops=(THREAD_BINDING,))
def statement_order(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """A read of shared memory gets the value that it gets when the threads run one after the other."""
    index = index_of(after)
    stores = stores_of(after)
    for realize, buffer in index.allocations(is_shared):
        if not shares_memory(buffer, delta.unchanged_buffers):
            found = _changed_value(stores, buffer, index.place(realize).loops())
            if found is not None:
                yield found


def _changed_value(stores: Stores, buffer: Buffer, around: Sequence[LoopRef]) -> Problem | None:
    """The problem, if a read of ``buffer``, allocated inside the loops ``around``, may get another value; undecided is
    accepted."""
    parts = [(u, u.accesses_of(buffer)) for u in without_swizzles(stores.units)]
    users = [replace(u, accesses=accesses) for u, accesses in parts if accesses]
    known = all(is_element(u, a) for u in users for a in u.writes()) and _are_reductions_apart(stores, users)
    if not known or _is_filled_first(stores, users) or not _threads_meet(stores, users):
        return None
    found = decide(lambda: _Orders(stores, users, {ref.var for ref in around}).problem(buffer))
    return None if isinstance(found, Undecided) else found


def _are_reductions_apart(stores: Stores, users: Sequence[Statement]) -> bool:
    """Whether the loops across which a block reduces contain no other user."""
    return not any(
        stores.combined(u) & {v for v, _, _ in w.loops} for u in users for w in users if _block(u) != _block(w)
    )


def _block(unit: Statement) -> str:
    return unit.name.partition("#")[0]


def _threads_meet(stores: Stores, users: Sequence[Statement]) -> bool:
    """Whether threads of one loop may use one element that one of them writes: not shown otherwise without exact
    sets."""
    forms = [AffineForms(u, stores.written) for u in users]
    for (n, s), (m, t) in combinations_with_replacement(enumerate(users), 2):
        threads = {v for v, _, _ in s.loops if v in stores.threads} & {v for v, _, _ in t.loops}
        pairs = [(a, b) for a in s.accesses for b in t.accesses if a.write or b.write]
        if not all(tells_apart(forms[n], a, forms[m], b, v) for a, b in pairs for v in threads):
            return True
    return False


def _is_filled_first(stores: Stores, users: Sequence[Statement]) -> bool:
    """Whether one statement writes all elements that the others read, before them in the same iteration of the loops that
    they share, with values that are the same for each thread of these loops: then every order gives these values."""
    writers = [u for u in users if u.writes()]
    if len(writers) != 1 or len(writers[0].accesses) != 1 or not all(is_const(g, 1) for g in writers[0].guards):
        return False
    writer = writers[0]
    readers = [(u, shared_order(writer.time, u.time)) for u in users if u is not writer]
    if any(order is None or not order[1] for _, order in readers):
        return False
    threads = {v for _, order in readers if order is not None for v in order[0] if v in stores.threads}
    return stores.is_uniform(stores.unit_of(writer), threads) and all(_fills(writer, u) for u, _ in readers)


def _fills(writer: Statement, reader: Statement) -> bool:
    """Whether the writer stores all that the reader reads in the same iteration of the loops that they share. Found once for
    their accesses, in loops over the same ranges."""
    told = [
        x
        for u in (writer, reader)
        for access in u.accesses
        for x in (None, *deciding(u, access), None, *u.guards, *access.guards)
    ]
    write = writer.accesses[0]
    return _FILLED.found(
        writer.node,
        (*told,),
        lambda: all(fills(_placed(writer, write), _placed(reader, access)) for access in reader.accesses),
    )


_FILLED: MemoAmong[bool] = MemoAmong()


def _placed(unit: Statement, access: Access) -> Effect:
    """An access in terms of the loops around its statement, as an effect of all of them."""
    loops, guards = (*unit.loops, *access.loops), (*unit.guards, *access.guards)
    return replace(access, loops=loops, guards=guards).substituted(dict(unit.inner))


Touch = tuple[StatementRelations, AccessRelation]


class _Order:
    """An order of the statements that use a buffer: ``times`` gives their timestamps, ``anew`` has the loops for each of
    whose iterations the buffer is allocated."""

    def __init__(
        self, writers: Sequence[Touch], times: Callable[[StatementRelations], Relation], anew: Collection[Var]
    ):
        self.writers = writers
        self.times = times
        self.anew = anew

    def last_writes(self, write: Touch, read: Touch) -> Relation:
        """Pairs of a write and a read of an element with no write of it in between."""
        pairs = self._ordered(write, read)
        for other in self.writers:
            pairs = pairs.subtract(self._ordered(write, other).then(self._ordered(other, read)))
        return pairs

    def _ordered(self, first: Touch, second: Touch) -> Relation:
        """Pairs of instances, the first before the second, that use one element while it is allocated."""
        (s, a), (t, b) = first, second
        earlier = self.times(s).before(self.times(t))
        return same_element(a, b).intersect(earlier).intersect(self._allocated(s, t))

    def _allocated(self, s: StatementRelations, t: StatementRelations) -> Relation:
        """Pairs of instances in the same iteration of the loops around the allocation, the first coordinates of both."""
        return everything(s.before, t.before).equating([(n, n) for n, v in enumerate(s.unit.coords) if v in self.anew])


class _Orders:
    """The statements that use a buffer, with their timestamps when threads run one after the other (``before``) and
    when they run each statement at once (``after``), and the two orders. The program has the buffer anew for each
    iteration of the loops ``around``; in a kernel, threads share it."""

    def __init__(self, stores: Stores, users: Sequence[Statement], around: Collection[Var]):
        self.stores = stores
        self.names = Names()
        length = max(len(u.time) + len(u.loops) for u in users)
        self.sides = [self._side(u, length) for u in users]
        self.context = Context(stores.func, stores.func.body, self.names)
        self.writers = [(s, a) for s in self.sides for a in s.writes]
        self.program = _Order(self.writers, lambda side: side.before, around)
        self.kernel = _Order(self.writers, lambda side: side.after, {*around} - stores.threads.keys())

    def _side(self, unit: Statement, length: int) -> StatementRelations:
        side = StatementRelations(unit, self.names)
        side.touch()
        side.before = loop_times(unit, unit.time, self.names, length)
        side.after = loop_times(unit, self._at_once(unit), self.names, length)
        return side

    def _at_once(self, unit: Statement) -> tuple[Any, ...]:
        """The timestamp of an instance without its thread. Lowering combines a reduction across threads as one
        statement, here in the order of the program."""
        combined = self.stores.combined(unit)
        first = next((n for n, t in enumerate(unit.time) if isinstance(t, Var) and t in combined), len(unit.time))
        threads = {ref.var for ref in self.stores.threads_of(unit)}
        return (*(0 if isinstance(t, Var) and t in threads else t for t in unit.time[:first]), *unit.time[first:])

    def problem(self, buffer: Buffer) -> Problem | None:
        for t in self.sides:
            for b in t.reads:
                found = self._of_read(buffer, t, b)
                if found is not None:
                    return found
        return None

    def _of_read(self, buffer: Buffer, t: StatementRelations, b: AccessRelation) -> Problem | None:
        """The problem, if the read ``b`` may get another value."""
        program, kernel = (
            [order.last_writes(write, (t, b)) for write in self.writers] for order in (self.program, self.kernel)
        )
        for n, (s, a) in enumerate(self.writers):
            lost = program[n].subtract(self._alike(s, kernel[n]))
            gained = kernel[n].subtract(self._alike(s, program[n]))
            written = [
                same_element(a, c).then(last) for (w, c), last in zip(self.writers, program)
            ]  # what no thread has written may have any value
            for bad in (*(gained.intersect(pairs) for pairs in written), lost):
                found = self.context.restrict(bad)
                if not found.is_empty():
                    when = ", the value to read" if bad is lost else ", just before in the kernel"
                    return _problem(buffer, witness(found, s, a, t, b, when, ""), [s.unit.node, t.unit.node])
        return None

    def _alike(self, s: StatementRelations, last: Relation) -> Relation:
        """The pairs of ``last``, and those with another instance of ``s`` that writes the same value: one that runs at
        once, or any if nothing writes what it reads."""
        unit = self.stores.unit_of(s.unit)
        touch = s.writes[0]
        alike = same_element(touch, touch).intersect(self.stores.same_value(unit, self.names))
        changes = self.stores.reads_what_changes(unit)
        return (self.stores.at_once(alike, unit) if changes else alike).then(last)


def _problem(buffer: Buffer, lines: Sequence[str], nodes: Sequence[Any]) -> Problem:
    return Problem(
        (buffer.name, "order"),
        f"`{buffer.name}` ({buffer.scope} memory) would be read with another value than in the program: threads run "
        "each statement at once, not one after the other",
        lines,
        nodes,
        f"give `{buffer.name}` an axis for each thread, or the scope local, or put the statements in loops of their own",
    )
