"""Whether elements of a buffer keep their values until they are read, for steps that keep copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from ...aliases import shares_memory
from ...buffer import Buffer
from ...function import PrimFunc
from ...poly import IntegerSet, Names, NotAffine, Relation, decide
from .relations import Context, Touch, at_times, is_exact, same_element, timed, unkilled
from .statements import statements_of
from .tiers import PROVED, Question, Refuted, Tier, Verdict, tier


class _Accesses:
    """The accesses of ``buffers`` in ``func``, by the relations of their statements. Raises ``NotAffine`` if one is by another view."""

    def __init__(self, func: PrimFunc, buffers: Iterable[Buffer]):
        wanted = {b.data: b for b in buffers}
        self.context = Context(func, func.body, Names())
        self.sides = timed(statements_of(func.body), wanted, self.context.names)
        for unit, a in ((side.unit, a) for side in self.sides for a in side.unit.accesses):
            if shares_memory(a, wanted) and a.buffer is not wanted[a.buffer.data]:
                raise NotAffine(unit.node, f"{a.buffer.name} is used through another view")

    def reads(self, buffer: Buffer) -> Iterator[Touch]:
        return ((side, a) for side in self.sides for a in side.reads if a.access.buffer is buffer)

    def writes(self, buffer: Buffer) -> Iterator[Touch]:
        return ((side, a) for side in self.sides for a in side.writes if a.access.buffer is buffer)


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
        found = _Accesses(self.func, [self.held, self.memory])
        again = [at_times((k, c)) for k, c in found.writes(self.held) if is_exact(k.unit, c.access)]
        others = [touch for touch in found.writes(self.memory) if touch[0].unit.name != self.own]
        for write, read in product(others, [*found.reads(self.held)]):
            missed = unkilled(at_times(write).then(self.changes.reverse()), at_times(read), again)
            witness = found.context.restrict(missed).sample()
            if witness is not None:
                return self._against(write, read, *witness)
        return PROVED

    def _against(self, write: Touch, read: Touch, found: list[int], then: list[int]) -> Refuted:
        (s, _), (t, _) = write, read
        length = len(then)
        moment, element = found[:length], found[length:]
        reached = at_times(write).at(then).intersect(IntegerSet.point(element).image(self.changes)).sample() or element
        at, before = (side.before.reverse().at(time).sample() or [] for side, time in ((t, moment), (s, then)))
        lines = [
            f"{t.show(at)} reads {self._shown(element)}",
            f"{s.show(before)} writes {self._shown(reached)} in between",
        ]
        return Refuted(self.rule, lines, (t.unit.node,))

    def _shown(self, element: list[int]) -> str:
        return f"{self.memory.name}[{', '.join(map(str, element))}]"


def reads_only_before(func: PrimFunc, buffer: Buffer, name: str) -> bool:
    """Whether statement ``name`` reads of ``buffer`` only elements that it has not written yet. False means "not
    shown"."""
    return decide(_reads_only_before, func, buffer, name) is True


def _reads_only_before(func: PrimFunc, buffer: Buffer, name: str) -> bool:
    found = _Accesses(func, [buffer])
    pairs: Any = product(found.writes(buffer), [*found.reads(buffer)])
    return all(
        found.context.restrict(same_element(w, r).intersect(s.before.before(t.before))).is_empty()
        for (s, w), (t, r) in pairs
        if s.unit.name == name == t.unit.name
    )
