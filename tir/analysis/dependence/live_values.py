"""When elements of a buffer are read and written, as exact relations over timestamps: for steps that keep copies.

A timestamp is a vector; timestamps of a program are ordered lexicographically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from ...buffer import Buffer
from ...errors import Unproved
from ...function import PrimFunc
from ...poly import IntegerSet, Names, NotAffine, Relation, Undecided, bounded
from .oracle import undecided
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
    """The accesses of ``buffers`` in ``func``. Raises ``Unproved`` if they are not quasi-affine."""

    def __init__(self, func: PrimFunc, buffers: Iterable[Buffer]):
        self.names = Names()
        wanted = {b.data: b for b in buffers}
        units = statements_of(func.body)
        self.length = max((len(u.time) for u in units), default=0)
        self.touches: list[TimedAccess] = []
        self.context = Context(func, func.body, self.names)
        try:
            for unit in units:
                found = [a for a in unit.accesses if a.buffer.data in wanted]
                if not found:
                    continue
                runs = schedule_map(unit, self.names, self.length, [self.names.fresh(v.name) for v in unit.coords])
                own = [self.names.of(v) for v in unit.coords]
                for access in found:
                    if access.buffer is not wanted[access.buffer.data]:
                        raise NotAffine(unit.node, f"{access.buffer.name} is used through another view")
                    elements = access_map(unit, access, self.names, own)
                    self.touches.append(TimedAccess(unit, access, runs.reverse().then(elements), runs))
        except Undecided as error:
            raise Unproved(undecided(error).rule) from None

    def reads(self, buffer: Buffer) -> list[TimedAccess]:
        return [t for t in self.touches if t.access.buffer is buffer and not t.access.write]

    def writes(self, buffer: Buffer) -> list[TimedAccess]:
        return [t for t in self.touches if t.access.buffer is buffer and t.access.write]

    def real(self, found: Relation) -> Relation:
        """``found`` restricted to the possible sizes of the program."""
        return self.context.restrict(found)


Witness = Callable[..., "list[str] | None"]


def _in_bounded_time(find: Witness) -> Witness:
    """``find`` as one question to exact sets. Raises ``Unproved`` where they do not answer it in bounded time."""

    @wraps(find)
    def found(*args: Any, **named: Any) -> list[str] | None:
        try:
            with bounded():
                return find(*args, **named)
        except Undecided as error:
            raise Unproved(undecided(error).rule) from None

    return found


@_in_bounded_time
def clobbered_between(
    moments: Timestamps,
    read: TimedAccess,
    since: Relation,
    writes: Iterable[tuple[TimedAccess, Relation]],
    buffer: Buffer | None = None,
) -> list[str] | None:
    """Two lines of witness if an element changes after ``since`` and before ``read`` reads it; None otherwise.

    ``since`` relates (timestamp of the read, element) to a timestamp. ``writes`` are writers, each with the relation
    from an element to the elements whose writes clobber it. ``buffer``: the name of the memory in the witness.
    """
    whole = read.elements
    element = whole.pairs_to_target()
    earlier = Relation.lex_before(moments.length)
    before_read = whole.pairs_to_source().then(earlier.reverse())
    after_since = since.then(earlier)
    for write, changes in writes:
        hits = element.then(changes).then(write.elements.reverse())
        bad = moments.real(hits.intersect(before_read).intersect(after_since))
        found = bad.sample()
        if found is not None:
            (read_at, then), size = found, moments.length
            at, which = read_at[:size], read_at[size:]
            reached = write.elements.at(then).intersect(IntegerSet.point(which).image(changes))
            return [read.show(at, which, buffer), write.show(then, reached.sample() or which) + " in between"]
    return None


@_in_bounded_time
def outdated(
    moments: Timestamps, read: TimedAccess, copies: Iterable[TimedAccess], writes: Iterable[TimedAccess]
) -> list[str] | None:
    """Two lines of witness where ``read`` of a copy misses a write: one of the element that no copying comes after, before
    the read. None where every read finds the value that was written last.

    For reads R, writes W and copies C of one element: bad = {(r, w) : w < r} - {(r, w) : w < c < r for some c}.
    """
    earlier = Relation.lex_before(moments.length)
    element = read.elements.pairs_to_target()
    before_read = read.elements.pairs_to_source().then(earlier.reverse())
    made = [element.then(c.elements.reverse()).intersect(before_read).then(earlier.reverse()) for c in copies]
    for write in writes:
        missed = element.then(write.elements.reverse()).intersect(before_read)
        for renewed in made:
            missed = missed.subtract(renewed)
        found = moments.real(missed).sample()
        if found is not None:
            (read_at, then), size = found, moments.length
            at, which = read_at[:size], read_at[size:]
            return [read.show(at, which), write.show(then, which) + " in between"]
    return None
