"""When elements of a buffer are read and written, as exact relations over timestamps: for steps that keep copies.

A timestamp is a vector; timestamps of a program are ordered lexicographically.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from ...aliases import sharing
from ...buffer import Buffer
from ...function import PrimFunc
from ...poly import IntegerSet, Names, NotAffine, Relation, decide
from .oracle import PROVED, Question, Refuted, Tier, Verdict, tier
from .relations import Context, access_map, schedule_map
from .statements import Access, Statement, statements_of


@dataclass(frozen=True)
class TimedAccess:
    """One access: ``elements`` relates timestamps to the elements accessed then, ``runs`` instances to timestamps."""

    unit: Statement
    access: Access
    elements: Relation
    runs: Relation

    def show(self, moment: list[int], element: list[int], buffer: Buffer | None = None) -> str:
        """The instance that runs at timestamp ``moment``, and its access to ``element`` (of ``buffer``, of which the
        accessed one is a copy)."""
        point = self.runs.sources_of(moment).sample() or []
        verb = "writes" if self.access.write else "reads"
        inside = ", ".join(map(str, element))
        return (
            f"{self.unit.name} at ({self.unit.shown_at(point)}) {verb} {(buffer or self.access.buffer).name}[{inside}]"
        )


class Timestamps:
    """The accesses of ``buffers`` in ``func``. Raises ``NotAffine`` if they are not quasi-affine."""

    def __init__(self, func: PrimFunc, buffers: Iterable[Buffer]):
        self.names = Names()
        wanted = {b.data: b for b in buffers}
        units = statements_of(func.body)
        self.length = max((len(u.time) for u in units), default=0)
        self.touches: list[TimedAccess] = []
        self.context = Context(func, func.body, self.names)
        for unit in units:
            found = sharing(unit.accesses, wanted)
            if not found:
                continue
            runs = schedule_map(unit, self.names, self.length, [self.names.fresh(v.name) for v in unit.coords])
            own = [self.names.of(v) for v in unit.coords]
            for access in found:
                if access.buffer is not wanted[access.buffer.data]:
                    raise NotAffine(unit.node, f"{access.buffer.name} is used through another view")
                elements = access_map(unit, access, self.names, own)
                self.touches.append(TimedAccess(unit, access, runs.reverse().then(elements), runs))

    def reads(self, buffer: Buffer) -> list[TimedAccess]:
        return [t for t in self.touches if t.access.buffer is buffer and not t.access.write]

    def writes(self, buffer: Buffer) -> list[TimedAccess]:
        return [t for t in self.touches if t.access.buffer is buffer and t.access.write]

    def real(self, found: Relation) -> Relation:
        """``found`` restricted to the possible sizes of the program."""
        return self.context.restrict(found)


@dataclass(frozen=True, eq=False)
class UpToDate(Question):
    """Every read of ``copy`` gets what ``buffer`` holds then: after each write of an element, and before a read of it, the
    element is copied again.

    For reads R, writes W and copies C of one element: ``{(r, w) : w < r} - {(r, w) : w < c < r for some c}`` is empty.
    """

    func: PrimFunc
    buffer: Buffer
    copy: Buffer

    def __str__(self) -> str:
        return f"no element of `{self.buffer.name}` is written between the copy and a read of it"

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        moments = Timestamps(self.func, [self.buffer, self.copy])
        return next(filter(None, (self._outdated(moments, r) for r in moments.reads(self.copy))), PROVED)

    def _outdated(self, moments: Timestamps, read: TimedAccess) -> Refuted | None:
        earlier = Relation.lex_before(moments.length)
        element = read.elements.pairs_to_target()
        before_read = read.elements.pairs_to_source().then(earlier.reverse())
        copies = moments.writes(self.copy)
        made = [element.then(c.elements.reverse()).intersect(before_read).then(earlier.reverse()) for c in copies]
        for write in moments.writes(self.buffer):
            missed = element.then(write.elements.reverse()).intersect(before_read)
            for renewed in made:
                missed = missed.subtract(renewed)
            found = moments.real(missed).sample()
            if found is not None:
                (read_at, then), size = found, moments.length
                at, which = read_at[:size], read_at[size:]
                witness = [read.show(at, which, self.buffer), write.show(then, which) + " in between"]
                rule = f"an element of `{self.buffer.name}` is written between the copy and a read of it"
                return Refuted(rule, witness, (read.unit.node,))
        return None


@dataclass(frozen=True, eq=False)
class Undisturbed(Question):
    """Between the write of an element of ``held`` and a read of it, no statement but ``own`` writes an element of
    ``memory`` from which ``changes`` leads to it. ``rule`` is that of the refusal."""

    func: PrimFunc
    held: Buffer
    memory: Buffer
    changes: Relation
    rule: str
    own: str = ""

    def __str__(self) -> str:
        return f"elements of `{self.held.name}` keep their values until they are read"

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        moments = Timestamps(self.func, [self.held, self.memory])
        writes = [w for w in moments.writes(self.memory) if w.unit.name != self.own]
        pairs = itertools.product(moments.reads(self.held), moments.writes(self.held))
        return next(filter(None, (self._clobbered(moments, r, made, writes) for r, made in pairs)), PROVED)

    def _clobbered(
        self, moments: Timestamps, read: TimedAccess, made: TimedAccess, writes: Iterable[TimedAccess]
    ) -> Refuted | None:
        earlier = Relation.lex_before(moments.length)
        element = read.elements.pairs_to_target()
        before_read = read.elements.pairs_to_source().then(earlier.reverse())
        after_made = element.then(made.elements.reverse()).then(earlier)
        for write in writes:
            hits = element.then(self.changes).then(write.elements.reverse())
            found = moments.real(hits.intersect(before_read).intersect(after_made)).sample()
            if found is not None:
                (read_at, then), size = found, moments.length
                at, which = read_at[:size], read_at[size:]
                reached = write.elements.at(then).intersect(IntegerSet.point(which).image(self.changes))
                witness = [read.show(at, which), write.show(then, reached.sample() or which) + " in between"]
                return Refuted(self.rule, witness, (read.unit.node,))
        return None


def reads_only_before(func: PrimFunc, buffer: Buffer, name: str) -> bool:
    """Whether statement ``name`` reads of ``buffer`` only elements that it has not written yet. False means "not
    shown"."""
    return decide(_reads_only_before, func, buffer, name) is True


def _reads_only_before(func: PrimFunc, buffer: Buffer, name: str) -> bool:
    moments = Timestamps(func, [buffer])
    earlier = Relation.lex_before(moments.length)
    mine = [[t for t in found if t.unit.name == name] for found in (moments.writes(buffer), moments.reads(buffer))]
    return all(
        moments.real(w.elements.then(r.elements.reverse()).intersect(earlier)).is_empty()
        for w, r in itertools.product(*mine)
    )
