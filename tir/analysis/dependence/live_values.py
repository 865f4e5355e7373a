"""When elements of a buffer are read and written, as exact sets over moments: for steps that keep values in copies.

A moment is a vector; moments of a program are ordered lexicographically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...buffer import Buffer
from ...errors import ScheduleError
from ...function import PrimFunc
from ...poly.sets import Names, NotAffine, sample
from .access_relations import access_map, schedule_map
from .relations import Context
from .statements import Access, Statement, statements_of
from .verdict import cannot_prove


@dataclass(frozen=True)
class AccessRelation:
    """One access: ``elements`` relates moments to the elements touched then, ``runs`` instances to moments."""

    unit: Statement
    access: Access
    elements: Any
    runs: Any

    def show(self, moment: list[int], element: list[int]) -> str:
        """The instance that runs at ``moment``, and what it does to ``element``."""
        isl = _isl()
        relation = self.runs
        for axis, value in enumerate(moment):
            relation = relation.fix_val(isl.dim_type.out, axis, value)
        point = sample(relation.domain()) or []
        pairs = ", ".join(f"{v.name}={x}" for v, x in zip(self.unit.coords, point))
        verb = "writes" if self.access.write else "reads"
        inside = ", ".join(map(str, element))
        return f"{self.unit.name} at ({pairs}) {verb} {self.access.buffer.name}[{inside}]"


class Timestamps:
    """The accesses of ``buffers`` in ``func``. Raises ``ScheduleError`` where they are not quasi-affine."""

    def __init__(self, func: PrimFunc, buffers: Iterable[Buffer]):
        self.names = Names()
        wanted = {b.data: b for b in buffers}
        units = statements_of(func.body)
        self.length = max((len(u.time) for u in units), default=0)
        self.touches: list[AccessRelation] = []
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
                    self.touches.append(AccessRelation(unit, access, runs.reverse().apply_range(elements), runs))
        except NotAffine as error:
            found_problem = cannot_prove(error)
            raise ScheduleError(found_problem.rule) from None

    def of(
        self, buffer: Buffer, *, write: bool, where: Callable[[Statement], bool] = lambda unit: True
    ) -> list[AccessRelation]:
        return [t for t in self.touches if t.access.buffer is buffer and t.access.write == write and where(t.unit)]

    def earlier(self) -> Any:
        """Pairs of moments, the first before the second."""
        isl = _isl()
        return isl.Map.lex_lt(isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, self.length))

    def alike(self, count: int) -> Any:
        """Pairs of moments that agree in their first ``count`` places."""
        a = [f"a{n}" for n in range(self.length)]
        b = [f"b{n}" for n in range(self.length)]
        same = " and ".join(f"{x} = {y}" for x, y in zip(a[:count], b)) or "true"
        return _isl().Map(f"{{ [{', '.join(a)}] -> [{', '.join(b)}] : {same} }}")

    def real(self, found: Any) -> Any:
        """``found`` where the sizes of the program allow it."""
        return self.context.restrict(found)


def clobbered_between(
    moments: Timestamps, read: AccessRelation, since: Any, writes: Iterable[tuple[AccessRelation, Any]]
) -> list[str] | None:
    """Two lines of witness where an element changes after ``since`` and before ``read`` reads it; None where none does.

    ``since`` relates (moment of the read, element) to a moment. ``writes`` are writers, each with the relation from an
    element to the elements whose writing changes it.
    """
    whole = read.elements
    element = whole.range_map()
    earlier = moments.earlier()
    before_read = whole.domain_map().apply_range(earlier.reverse())
    after_since = since.apply_range(earlier)
    for write, changes in writes:
        hits = element.apply_range(changes).apply_range(write.elements.reverse())
        bad = moments.real(hits.intersect(before_read).intersect(after_since))
        if not bad.is_empty():
            point = sample(bad.wrap().flatten()) or []
            size = moments.length
            rank = len(point) - 2 * size
            at, which, then = point[:size], point[size : size + rank], point[size + rank :]
            isl = _isl()
            changed = write.elements
            for axis, value in enumerate(then):
                changed = changed.fix_val(isl.dim_type.in_, axis, value)
            reached = changed.range().intersect(isl.Map.from_range(_point(which)).range().apply(changes))
            return [read.show(at, which), write.show(then, sample(reached) or which) + " in between"]
    return None


def _point(values: list[int]) -> Any:
    return _isl().Set(f"{{ [{', '.join(map(str, values))}] }}")


def _isl() -> Any:
    import islpy

    return islpy
