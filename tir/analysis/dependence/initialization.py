"""Definite initialization: whether everything that is read of a buffer was written before.

Two questions have the same tiers: for an entire function (:class:`Initialized`), and for each iteration of a loop
(:class:`InitializedInIteration`), which makes a buffer privatizable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ...aliases import shares_memory, sharing
from ...arith import Analyzer
from ...arith.itermap import covered_box
from ...buffer import Buffer, Range
from ...expr import EQ, TRUE, Expr, IntImm, Ramp, Var, is_const, logical_and
from ...function import PrimFunc
from ...poly import Formula, IntegerSet, Names, NotAffine, Relation
from ...stmt import BufferStore, For, While
from ...visit import contains, nodes_of, substitute, uses_var
from .oracle import PROVED, Question, Refuted, Tier, Unknown, Verdict, tier
from .order import shared_order
from .relations import (
    Context,
    StatementRelations,
    access_map,
    by_loops,
    has_bits,
    is_exact,
    loop_times,
    schedule_map,
    without_swizzles,
)
from .statements import Access, Statement, bare_statements_of, statements_of
from .witness import show_element


def check_initialized(func: PrimFunc, buffer: Buffer) -> Verdict:
    """Whether every read of ``buffer`` is of an element that an earlier instance wrote, since it was allocated."""
    return Initialized(func, buffer).answer()


def initialized_before_read(buffer: Buffer, loops: Sequence[For]) -> bool:
    """Whether every read of ``buffer`` in an iteration of the innermost of nested ``loops`` is of an element that this
    iteration wrote before. False means "not shown"."""
    return InitializedInIteration(tuple(loops), buffer).holds()


class _Initialization(Question):
    """For all reads R(i, e) of instances i and elements e: some write W(j, e) has j before i in the schedule."""

    buffer: Buffer

    def __str__(self) -> str:
        return f"`{self.buffer.name}` is written before it is read"

    def _unknown(self, reason: str, nodes: Sequence[Any] = ()) -> Unknown:
        return Unknown(f"cannot prove that {self}: {reason}", nodes=nodes)

    def _is_other_name(self, access: Access) -> bool:
        return access.buffer is not self.buffer and shares_memory(access, self.buffer)

    def _users(self, units: Sequence[Statement]) -> list[Statement]:
        """Those of ``units`` that access the buffer. Raises ``NotAffine`` if its elements are swizzled differently."""
        found = without_swizzles([u for u in units if u.accesses_of(self.buffer)])
        if any(has_bits(a) for u in found for a in u.accesses_of(self.buffer)):
            raise NotAffine(
                f"`{self.buffer.name}`",
                "bitwise operations, not alike in all accesses, choose its elements; copy a buffer before a swizzled layout",
            )
        return found

    def _by_boxes(self, units: Sequence[Statement], names: Names, restrict: Callable[[Relation], Relation]) -> Verdict:
        """Subtracts from the reads of each iteration the boxes filled by earlier writes in the same iteration of their
        common loops."""
        for unit in units:
            reader = unit if unit.inner else by_loops(unit)
            dims = [names.of(v) for v in reader.coords]
            for access in unit.reads():
                if access.buffer is not self.buffer:
                    continue
                bare = access_map(reader, access, names, dims)
                for writer in units:
                    for store in _exact_writes(writer, self.buffer):
                        made = _Filled(writer, store, reader, names).relation()
                        bare = bare if made is None else bare.subtract(made)
                if not restrict(bare).is_empty():
                    return self._unknown(f"`{unit.name.split('#')[0]}` may read what boxes do not hold")
        return PROVED


@dataclass(frozen=True, eq=False)
class Initialized(_Initialization):
    """Every read of ``buffer`` in ``func`` is of an element that an earlier instance wrote."""

    func: PrimFunc
    buffer: Buffer

    def anchor(self) -> tuple[Any, Any]:
        return self.func, self.buffer

    def unknown(self, error: Any) -> Unknown:
        return Unknown(f"cannot prove that the step keeps the program's meaning: {error}")

    @tier(Tier.ITERATOR_MAP)
    def by_boxes(self) -> Verdict:
        names = Names()
        context = Context(self.func, self.func.body, names)
        return self._by_boxes(self._users(statements_of(self.func.body)), names, context.restrict)

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        names = Names()
        buffer, sides = self.buffer, []
        units = self._users(statements_of(self.func.body))
        length = max((len(u.time) for u in units), default=0)
        for unit in units:
            side = StatementRelations.renamed(unit, names)
            side.before = schedule_map(unit, names, length, side.dims)
            if not side.before.is_single_valued():
                # each instance has to be initialised: they are distinguished by the loops
                side = StatementRelations.renamed(by_loops(unit), names)
                side.before = schedule_map(side.unit, names, length, side.dims)
            side.touch()
            sides.append(side)
        context = Context(self.func, self.func.body, names)
        for reader in sides:
            for read in reader.reads:
                if read.access.buffer is not buffer:
                    continue
                bare = context.restrict(_not_written(reader, read, sides, buffer))
                found = bare.sample()
                if found is not None:
                    unsure = next((s.unit for s in sides for w in s.writes if not _surely_writes(s, w, buffer)), None)
                    if unsure is not None:
                        return self._unknown(f"data decides where `{unsure.name}` writes", (unsure.node,))
                    other = next((u for u in units for a in u.writes() if self._is_other_name(a)), None)
                    if other is not None:
                        return self._unknown(f"`{other.name}` writes through another view", (other.node,))
                    at, element = found
                    return Refuted(
                        f"an element of `{buffer.name}` would be read without having been written",
                        [f"{reader.show(at)} reads {show_element(read.access, element)}, which nothing wrote before"],
                        (reader.unit.node,),
                    )
        return PROVED


def _not_written(
    reader: StatementRelations, read: Any, sides: Sequence[StatementRelations], buffer: Buffer
) -> Relation:
    """The instances of ``reader`` and the elements that they read and no earlier instance wrote."""
    lifetime = _same_lifetime(reader, buffer)
    bare = read.map.domain_in(reader.before.domain())
    for writer in sides:
        for write in writer.writes:
            if write.access.buffer is buffer and _surely_writes(writer, write, buffer):
                earlier = reader.before.after(writer.before).range_in(writer.before.domain())
                if lifetime:
                    earlier = earlier.intersect(reader.before.then(lifetime).then(writer.before.reverse()))
                bare = bare.subtract(earlier.then(write.map))
                if writer is reader and _stores_first(writer.unit, write.access, read.access):
                    bare = bare.subtract(write.map)
    return bare


def _same_lifetime(user: StatementRelations, buffer: Buffer) -> Relation | None:
    """The pairs of timestamps that see the same ``buffer``, allocated once; None if all do."""
    length, rank = user.unit.lifetimes.get(buffer.data, 0), user.before.target_rank
    several = any(isinstance(t, Var) for t in user.unit.time[:length])
    return Relation.same_prefix(length, rank) if several else None


def _surely_writes(side: StatementRelations, write: Any, buffer: Buffer) -> bool:
    """Whether ``write`` is known to store where its relation says, unless it is of another buffer."""
    return write.access.buffer is not buffer or is_exact(side.unit, write.access)


def _stores_first(unit: Statement, store: Access, load: Access) -> bool:
    """Whether an instance of ``unit`` has completed ``store`` before ``load``."""
    together = bool(store.loops and load.loops) and store.loops[0][0] is load.loops[0][0]
    order = {id(access): n for n, access in enumerate(unit.accesses)}
    return isinstance(store.node, BufferStore) and not together and order[id(store)] < order[id(load)]


@dataclass(frozen=True, eq=False)
class InitializedInIteration(_Initialization):
    """Every read of ``buffer`` in an iteration of the innermost of ``loops`` is of an element that it wrote before."""

    loops: tuple[For, ...]
    buffer: Buffer

    def __str__(self) -> str:
        return f"each iteration of loop `{self.loops[-1].loop_var.name}` writes `{self.buffer.name}` before it reads it"

    def _known(self, names: Names) -> IntegerSet:
        around = Formula(names)
        for loop in self.loops:
            around.within(loop.loop_var, loop.min, loop.extent)
        return around.set([]).parameters()

    def _body(self) -> list[Statement] | None:
        """The statements of an iteration; None if a trip count is unknown."""
        body = self.loops[-1].body
        return None if contains(body, While) else self._users(bare_statements_of(body))

    @tier(Tier.ITERATOR_MAP)
    def by_boxes(self) -> Verdict:
        units = self._body()
        if units is None:
            return self._unknown("a `while` decides how often it is written")
        names = Names()
        if any(self._is_other_name(a) for u in units for a in u.reads()):
            return self._unknown("it is read through another view")
        known = self._known(names)
        return self._by_boxes(units, names, lambda bare: bare.where(known))

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        units = self._body()
        if units is None:
            return self._unknown("a `while` decides how often it is written")
        length = max((len(u.time) for u in units), default=0)
        names = Names()
        known = self._known(names)
        dims = {id(u): [names.of(v) for v in u.coords] for u in units}
        times = {id(u): loop_times(u, u.time, names, length) for u in units}
        writes = [(u, access_map(u, a, names, dims[id(u)])) for u in units for a in _exact_writes(u, self.buffer)]
        for unit in units:
            for access in sharing(unit.reads(), self.buffer):
                if access.buffer is not self.buffer:
                    return self._unknown("it is read through another view")
                bare = access_map(unit, access, names, dims[id(unit)]).where(known)
                for writer, elements in writes:
                    bare = bare.subtract(times[id(unit)].after(times[id(writer)]).then(elements))
                if not bare.is_empty():
                    return self._unknown("an iteration may read what it did not write")
        return PROVED


def _exact_writes(unit: Statement, buffer: Buffer) -> list[Access]:
    """The stores to ``buffer`` whose instances and elements are known exactly."""
    return [
        a
        for a in unit.writes()
        if a.buffer is buffer and is_exact(unit, a) and not any(isinstance(i, tuple) for i in a.indices or ())
    ]


class _Filled:
    """The elements that ``writer`` has definitely stored by ``store`` before an iteration of ``reader``: in the same
    iteration of their common loops, if it comes first in program order.

    A loop that the writer's condition fixes to its start (``k == 0``, of an init) is taken there: no iteration is
    earlier.
    The iterators of the writer form a box if its other loops cover their domain (an iterator map).
    """

    def __init__(self, writer: Statement, store: Access, reader: Statement, names: Names):
        self.writer, self.store, self.reader, self.names = writer, store, reader, names
        order = shared_order(writer.time, reader.time)
        self.shared = order[0] if order is not None and order[1] else None
        tied = {v for g in writer.guards if isinstance(g, EQ) and isinstance(g.b, IntImm) for v in nodes_of(g.a)}
        self.start: dict[Var, Expr] = {v: low for v, low, _ in writer.loops if v in tied}
        self.around = {v for v in self.shared or () if v not in self.start}
        self.free = {v: Range(low, n) for v, low, n in writer.loops if v not in self.around and v not in self.start}

    def relation(self) -> Relation | None:
        """From iterations of the reader to elements; None if the writer fills no box before it."""
        if self.shared is None or isinstance(next(iter(self.store.indices or ()), None), Ramp):
            return None
        box = self._box()
        if box is None:
            return None
        formula = Formula(self.names)
        hidden = []
        for var, value in box:
            hidden.append(formula.var(var))
            formula.within(var, value.min, value.extent)
        guards = [substitute(g, self.start) for g in self.writer.guards]
        for guard in (g for g in guards if not uses_var(g, set(self.free))):
            formula.require(guard)
        for var, low, extent in self.writer.loops:
            if var in self.around:
                formula.within(var, substitute(low, self.start), substitute(extent, self.start))
        for var, low, extent in self.store.loops:
            hidden.append(formula.var(var))
            formula.within(var, substitute(low, self.start), substitute(extent, self.start))
        for guard in self.store.guards:
            formula.require(substitute(guard, self.start))
        element = [self.names.fresh("e") for _ in self.store.indices or ()]
        for name, index in zip(element, self.store.indices or ()):
            formula.equal(name, substitute(index, self.start))
        return formula.map([self.names.of(v) for v in self.reader.coords], element, [*hidden, *element])

    def _coordinates(self) -> list[tuple[Var, Expr]]:
        """What moves in one iteration of the loops around: the writer's coordinates, and loops that index the store."""
        pairs = self.writer.inner or zip(self.writer.coords, self.writer.values)
        told = {v: substitute(value, self.start) for v, value in pairs if v not in self.start and v not in self.around}
        more = (v for v in self.free if any(uses_var(i, v) for i in self.store.indices or ()))
        return [*told.items(), *((v, v) for v in more if v not in told)]

    def _is_run(self, unused: Mapping[Var, Range]) -> bool:
        """Whether it is sure to run, also where loops are at their start and in loops ``unused``, over a box."""
        tied = {v: Range(low, n) for v, low, n in self.writer.loops if v in self.start}
        shared = set(self.shared or ())  # the reader is in an iteration of these
        starts = [r for v, r in tied.items() if v not in shared]
        moved = {*self.free, *self.start}
        return all(Analyzer().can_prove(r.extent > 0) for r in (*starts, *unused.values())) and not any(
            uses_var(e, moved) for r in (*self.free.values(), *tied.values()) for e in (r.min, r.extent)
        )

    def _box(self) -> list[tuple[Var, Range]] | None:
        """The box of the writer's coordinates in one iteration of the loops around."""
        pairs, own = self._coordinates(), set(self.free)
        unused = {v: r for v, r in self.free.items() if not any(uses_var(value, v) for _, value in pairs)}
        if not self._is_run(unused):
            return None
        analyzer = Analyzer()
        moving = [(v, value) for v, value in pairs if uses_var(value, own)]
        guards = [analyzer.simplify(substitute(g, self.start)) for g in self.writer.guards]
        predicate = reduce(logical_and, (g for g in guards if uses_var(g, own)), TRUE)
        boxes: Mapping[Var, Range] = {}
        if moving:
            domains = {v: r for v, r in self.free.items() if v not in unused}
            found = covered_box([value for _, value in moving], domains, predicate)
            if found is None:
                return None
            boxes = {v: r for (v, _), r in zip(moving, found)}
            if any(uses_var(e, own) for r in boxes.values() for e in (r.min, r.extent)):
                return None
        elif not is_const(predicate, 1):
            return None
        return [(v, boxes[v] if v in boxes else Range(value, IntImm(1, value.dtype))) for v, value in pairs]
