"""Statements with their exact relations: access maps, and schedule maps before and after a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ...expr import Var, const
from ...function import PrimFunc
from ...poly import Formula, IntegerSet, Names, NotAffine, Relation
from ...stmt import BlockRealize, For
from ..structure import path_to
from .access_relations import access_map
from .statements import Access, Statement

Points = TypeVar("Points", IntegerSet, Relation)


class AccessRelation:
    """An access and, computed on demand, its access map from instances to elements."""

    __slots__ = ("access", "_make", "_made")

    def __init__(self, access: Access, make: Callable[[], Relation]):
        self.access = access
        self._make = make
        self._made: Relation | None = None

    @property
    def map(self) -> Relation:
        """Raises ``NotAffine``."""
        if self._made is None:
            self._made = self._make()
        return self._made


class StatementRelations:
    """A statement with its relations: its accesses, and its timestamps before and after."""

    def __init__(self, unit: Statement, names: Names):
        self.unit = unit
        self.names = names
        self.dims = [names.of(v) for v in unit.coords]
        self.before: Any = None
        self.after: Any = None
        self.moments: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]] = ([], [])  # the times behind the two
        self.kept = False  # the step leaves the loops around the unit, and so the order among its runs
        self.pure = False  # a further run of an instance makes the same values again
        self.ignored: frozenset[Var] = frozenset()  # pointers of memory in which no two runs can conflict
        self.places: tuple[Any, ...] = ()
        self.reads: list[AccessRelation] = []
        self.writes: list[AccessRelation] = []

    @classmethod
    def renamed(cls, unit: Statement, names: Names) -> StatementRelations:
        """With new names for the coordinates in schedule maps: loops that are coordinates must not be captured by the
        order."""
        made = cls(unit, names)
        made.dims = [names.fresh(v.name) for v in unit.coords]
        return made

    def touch(self, rough: bool = False) -> None:
        dims = [self.names.of(v) for v in self.unit.coords]
        seen = set()
        for access in self.unit.accesses:
            key = (access.buffer, access.write, id(access.node))
            if key in seen:
                continue
            seen.add(key)
            make = partial(access_map, self.unit, access, self.names, dims, rough)
            (self.writes if access.write else self.reads).append(AccessRelation(access, make))

    def show(self, point: Sequence[int]) -> str:
        unit = self.unit
        pairs = ", ".join(f"{v.name}={x}" for v, x in zip(unit.coords, point))
        name = unit.name.split("#")[0] or "a statement"
        part = " (init)" if unit.part == "init" else ""
        return f"{name}{part} at ({pairs})"


class Context:
    """Constraints on the variables defined outside the part that is compared."""

    def __init__(self, func: PrimFunc, stmt: Any, names: Names):
        self.func, self.stmt, self.names = func, stmt, names
        self.known: IntegerSet | None = None

    def restrict(self, found: Points) -> Points:
        if found.is_empty():
            return found
        if self.known is None:
            self.known = self._collect()
        return found.where(self.known)

    def _collect(self) -> IntegerSet:
        formula = Formula(self.names)
        for node in path_to(self.func.body, self.stmt):
            if isinstance(node, For):
                _try(formula.within, node.loop_var, node.min, node.extent)
            elif isinstance(node, BlockRealize):
                for iv, value in zip(node.block.iter_vars, node.iter_values):
                    if iv.dom is not None:
                        _try(formula.within, iv.var, iv.dom.min, iv.dom.extent)
                    _try(formula.equal, formula.var(iv.var), value)
                _try(formula.require, node.predicate)
        for buffer in self.func.buffer_map.values():
            for size in buffer.shape:
                if isinstance(size, Var):
                    _try(formula.require, size >= const(0, size.dtype))
        return formula.set([]).parameters()


def _try(fn: Any, *args: Any) -> None:
    try:
        fn(*args)
    except NotAffine:
        return


def by_loops(unit: Statement) -> Statement:
    """``unit`` with its instances identified by the loops around it."""
    loops = tuple(v for v, _, _ in unit.loops)
    inner = tuple((v, e) for v, e in zip(unit.coords, unit.values) if v not in set(loops))
    return replace(unit, coords=loops, values=loops, inner=inner)


def loop_times(unit: Statement, time: tuple[Any, ...], names: Names, length: int) -> Relation:
    formula = Formula(names)
    moments = [formula.var(t) if isinstance(t, Var) else str(t) for t in time]
    moments += ["0"] * (length - len(moments))
    return formula.map([names.of(v) for v in unit.coords], moments)


def conflicting_pairs(
    source: StatementRelations, sink: StatementRelations
) -> list[tuple[AccessRelation, AccessRelation]]:
    """Pairs of accesses of the same memory, at least one a write; not of memory that the source ignores."""
    return [
        (a, b)
        for a in (*source.writes, *source.reads)
        for b in (*sink.writes, *sink.reads)
        if a.access.buffer.data is b.access.buffer.data
        and (a.access.write or b.access.write)
        and a.access.buffer.data not in source.ignored
    ]


def same_element(s: StatementRelations, a: AccessRelation, t: StatementRelations, b: AccessRelation) -> Relation:
    """Pairs of instances that access the same element; for two views of one memory, all pairs."""
    first, second = a.map, b.map
    if a.access.buffer is not b.access.buffer:
        first, second = first.prefix(0), second.prefix(0)
    return first.then(second.reverse())
