"""When elements of a buffer are read and written, as exact relations over timestamps: for steps that keep copies.

A timestamp is a vector; timestamps of a program are ordered lexicographically.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from ...aliases import sharing
from ...buffer import Buffer
from ...function import PrimFunc
from ...poly import IntegerSet, Names, NotAffine, Relation, decide
from .oracle import PROVED, Question, Refuted, Tier, Verdict, tier
from .relations import Context, access_map, is_exact, schedule_map
from .statements import Access, Statement, statements_of


@dataclass(frozen=True)
class TimedAccess:
    """One access: ``elements`` relates timestamps to the elements accessed then, ``runs`` instances to timestamps."""

    unit: Statement
    access: Access
    elements: Relation
    runs: Relation

    def show(self, moment: list[int], element: list[int], buffer: Buffer) -> str:
        """The instance that runs at timestamp ``moment``, and its access to ``element`` of ``buffer``, or of a copy of that."""
        point = self.runs.sources_of(moment).sample() or []
        verb = "writes" if self.access.write else "reads"
        inside = ", ".join(map(str, element))
        return f"{self.unit.name} at ({self.unit.shown_at(point)}) {verb} {buffer.name}[{inside}]"


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
class Undisturbed(Question):
    """Every read of ``held`` gets what was put there: after a statement but ``own`` has written an element of ``memory`` to
    which ``changes`` leads from one of ``held``, that one is written again before it is read. ``rule`` is that of the
    refusal: that an element is so.

    For reads R and writes M of ``held``, and writes W of ``memory``: ``{(r, w) : w < r} - {(r, w) : w < m < r for some m}``
    is empty.
    """

    func: PrimFunc
    held: Buffer
    memory: Buffer
    changes: Relation
    rule: str
    own: str = ""

    def __str__(self) -> str:
        return f"no {self.rule.removeprefix('an ')}"

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        moments = Timestamps(self.func, [self.held, self.memory])
        return next(filter(None, (self._clobbered(moments, r) for r in moments.reads(self.held))), PROVED)

    def _clobbered(self, moments: Timestamps, read: TimedAccess) -> Refuted | None:
        earlier = Relation.lex_before(moments.length)
        element = read.elements.pairs_to_target()
        before_read = read.elements.pairs_to_source().then(earlier.reverse())
        sure = (m for m in moments.writes(self.held) if is_exact(m.unit, m.access))
        made = [element.then(m.elements.reverse()).intersect(before_read) for m in sure]
        for write in moments.writes(self.memory):
            if write.unit.name == self.own:
                continue
            missed = element.then(self.changes).then(write.elements.reverse()).intersect(before_read)
            for again in made:
                missed = missed.subtract(again.then(earlier.reverse()))
            found = moments.real(missed).sample()
            if found is not None:
                (read_at, then), size = found, moments.length
                at, which = read_at[:size], read_at[size:]
                reached = write.elements.at(then).intersect(IntegerSet.point(which).image(self.changes))
                lines = [
                    read.show(at, which, self.memory),
                    write.show(then, reached.sample() or which, self.memory) + " in between",
                ]
                return Refuted(self.rule, lines, (read.unit.node,))
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
        moments.real(w.elements.then(r.elements.reverse()).intersect(earlier)).is_empty() for w, r in product(*mine)
    )
