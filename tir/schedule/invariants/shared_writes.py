"""What threads do with shared memory, checked after every step: what they write at once, and in which order they use it.

Barriers order different statements. Nothing orders the threads that run one statement: where it writes one element of
shared memory in several threads, they have to write the same value, and no other thread may read it there.

A program runs the iterations of a thread loop one after the other. A kernel runs each statement for all threads, then a
barrier, then the next statement. So a read may get another value than in the program: of an element that another thread
writes in a later statement, or not yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

from ...aliases import memory_of, shares_memory, sharing
from ...analysis.dependence.affine import AffineForms, distinguishes
from ...analysis.dependence.order_question import shared_order
from ...analysis.dependence.relations import (
    AccessRelation,
    Context,
    StatementRelations,
    Touch,
    is_exact,
    loop_times,
    same_element,
    without_swizzles,
    witness,
)
from ...analysis.dependence.statements import Access, Statement, bare_statements_of, deciding
from ...analysis.dependence.written import fills
from ...analysis.effects import READ, Effect
from ...analysis.index import LoopRef, index_of, reduction_iterators
from ...analysis.reduction_forms import threads_can_share
from ...analysis.simple_blocks import constant
from ...buffer import Buffer, decl_buffer
from ...expr import BufferLoad, Expr, Var, is_const
from ...function import PrimFunc
from ...levels import is_private, is_shared, is_thread_axis
from ...node import MemoAmong, cached_property, once
from ...poly import Names, Relation, Undecided, decide, everything
from ...render import short_text
from ...stmt import THREAD_BINDING, BufferStore, LetStmt
from ...visit import has_load, is_pure, nodes_of, uses_var
from . import Delta, Keeps, Problem, invariant
from .changed_accesses import BufferSet


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
    for unit in (u for u in stores.units if isinstance(u.node, BufferStore)):
        for write in sharing(unit.writes(), shared):
            reads = [a for a in unit.accesses_of(write.buffer) if not a.write]
            problems = (_race(stores, unit, write, other) for other in (write, *reads))
            problem = next(filter(None, problems), None)
            if problem is not None:
                yield problem


def _race(stores: Stores, unit: Statement, write: Access, other: Access) -> Problem | None:
    """The problem, if threads get to ``unit`` at the same element with different values, or one reads there by ``other`` what
    another writes. Undecided is accepted, unless no thread has an element of its own to write."""
    if other is not write and not (is_exact(unit, write) and is_exact(unit, other)):
        return None
    determined = _determined(stores, unit, write, other)
    threads = [ref for ref in stores.threads_of(unit) if ref.var not in determined]
    if other is write:
        threads = [ref for ref in threads if stores.varies(unit, ref.node.thread)]
        if any(write.uses(moving(unit, ref.var)) for ref in threads) and not is_element(unit, write):
            return None  # it depends on data whether they do
    for thread in threads:
        lines = _at_once(stores, unit, write, other, thread.var)
        if lines:
            return (_write_problem if other is write else _read_problem)(write.buffer, thread, lines, unit)
    return None


def _determined(stores: Stores, unit: Statement, access: Access, other: Access) -> set[Var]:
    """Those of the loops of threads whose different iterations have different elements at once, shown without exact sets:
    then the loops around all threads by which the elements differ are in the same iteration."""
    moved = {ref.var: moving(unit, ref.var) for ref in stores.threads_of(unit)}
    apart = {v for v, those in moved.items() if access.uses(those) or other.uses(those)}
    first = next((n for n, loop in enumerate(unit.loops) if loop[0] in apart), 0)
    forms = AffineForms(replace(unit, loops=unit.loops[first:]), stores.written)
    return {v for v in apart if access.uses(moved[v]) and distinguishes(forms, access, forms, other, v)}


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


def _write_problem(buffer: Buffer, thread: LoopRef, lines: list[str], unit: Statement) -> Problem:
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


# ---------------------------------------------------------------- the order of statements


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
        if not all(distinguishes(forms[n], a, forms[m], b, v) for a, b in pairs for v in threads):
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
    determined = [
        x
        for u in (writer, reader)
        for access in u.accesses
        for x in (None, *deciding(u, access), None, *u.guards, *access.guards)
    ]
    write = writer.accesses[0]
    return _FILLED.found(
        writer.node,
        (*determined,),
        lambda: all(fills(_placed(writer, write), _placed(reader, access)) for access in reader.accesses),
    )


_FILLED: MemoAmong[bool] = MemoAmong()


def _placed(unit: Statement, access: Access) -> Effect:
    """An access in terms of the loops around its statement, as an effect of all of them."""
    loops, guards = (*unit.loops, *access.loops), (*unit.guards, *access.guards)
    return replace(access, loops=loops, guards=guards).substituted(dict(unit.inner))


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
                    return _order_problem(buffer, witness(found, s, a, t, b, when, ""), [s.unit.node, t.unit.node])
        return None

    def _alike(self, s: StatementRelations, last: Relation) -> Relation:
        """The pairs of ``last``, and those with another instance of ``s`` that writes the same value: one that runs at
        once, or any if nothing writes what it reads."""
        unit = self.stores.unit_of(s.unit)
        touch = s.writes[0]
        alike = same_element(touch, touch).intersect(self.stores.same_value(unit, self.names))
        changes = self.stores.reads_what_changes(unit)
        return (self.stores.at_once(alike, unit) if changes else alike).then(last)


def _order_problem(buffer: Buffer, lines: Sequence[str], nodes: Sequence[Any]) -> Problem:
    return Problem(
        (buffer.name, "order"),
        f"`{buffer.name}` ({buffer.scope} memory) would be read with another value than in the program: threads run "
        "each statement at once, not one after the other",
        lines,
        nodes,
        f"give `{buffer.name}` an axis for each thread, or the scope local, or put the statements in loops of their own",
    )


# ---------------------------------------------------------------- instances that write the same value


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
        operands = [*reads, *(Access(_VALUE, (part,), READ, node=part) for part in parts)]
        determined = [a for a in operands if is_element(unit, a)]
        differ = {v for a in operands if a not in determined for v in unit.coords if a.uses(moving(unit, v))}
        differ |= {ref.var for ref in self.threads_of(unit) if self._varies_by_own(unit, ref)}
        if not isinstance(unit.node, BufferStore) or self._is_unknown(unit.node.value, reads):
            differ = set(unit.coords)
        side = StatementRelations(replace(unit, accesses=[*unit.writes()[:1], *determined]), names)
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
