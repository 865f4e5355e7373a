"""Statements with their exact relations: access maps, and schedule maps before and after a step; and the proof that a
refusal shows: two instances, and the element on which they conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Any, TypeVar

from ...aliases import Memory, shares_memory, sharing
from ...arith import Analyzer
from ...arith.linear import linear
from ...arith.swizzle import without_all
from ...buffer import Range
from ...expr import BufferLoad, Call, Expr, IntImm, Ramp, Var, const
from ...function import PrimFunc
from ...node import MemoAmong, cached_property, changed, once
from ...poly import Formula, IntegerSet, Names, NotAffine, Relation, decide
from ...stmt import BlockRealize, For
from ...visit import LEAVES, contains, nodes_of
from ..contents import path_to
from .statements import Access, Loop, Statement, deciding


def add_loops(formula: Formula, loops: Sequence[Loop]) -> None:
    """Add that the variables are in the ranges of their loops. Raises ``NotAffine``."""
    for var, low, extent in loops:
        formula.within(var, low, extent)


def schedule_map(unit: Statement, names: Names, length: int, coord_names: Sequence[str]) -> Relation:
    """The schedule map: from instances (``coord_names``) to timestamps. Raises ``NotAffine``."""
    formula = Formula(names)
    add_loops(formula, unit.loops)
    for guard in unit.guards:
        Formula.takes(
            formula.require, guard
        )  # data-dependent: both programs are assumed to evaluate the same condition
    mine = {v for v, _, _ in unit.loops}
    for name, value in zip(coord_names, unit.values):
        formula.equal(name, value)
    moments = [formula.var(t) if isinstance(t, Var) else str(t) for t in unit.time]
    moments += ["0"] * (length - len(moments))
    return formula.map(coord_names, moments, [names.of(v) for v in mine])


AccessMap = Callable[[Statement, Access, Names, Sequence[str]], Relation]


def access_map(unit: Statement, access: Access, names: Names, coord_names: Sequence[str]) -> Relation:
    """The access map: from instances to the elements of ``access`` (all elements if an index is not affine).

    Where the coordinates are the statement's loops, their bounds and guards are added. Raises ``NotAffine``.
    """
    if unit.is_on_loops:
        formula = Formula(names)
        add_loops(formula, unit.loops)
        for var, value in unit.inner:
            formula.equal(formula.var(var), value)
    return wider_access_map(unit, access, names, coord_names)


def wider_access_map(unit: Statement, access: Access, names: Names, coord_names: Sequence[str]) -> Relation:
    """An over-approximation of :func:`access_map`: of loop bounds and iterators only the affine ones are added."""
    formula = Formula(names)
    hidden: list[str] = []
    ends = chain.from_iterable(loop[1:] for loop in (*unit.loops, *access.loops))
    if any(
        _has_bits(e) for e in chain(access.index_parts(), unit.guards, access.guards, ends) if type(e) not in LEAVES
    ):
        _know_iterators(formula, unit)
    if unit.is_on_loops:
        for var, low, extent in unit.loops:
            formula.var(var)
            Formula.takes(formula.within, var, low, extent)
        for var, value in unit.inner:
            hidden.append(formula.var(var))
            Formula.takes(formula.equal, hidden[-1], value)
        for guard in unit.guards:
            Formula.takes(formula.require, guard)
    for var, low, extent in access.loops:
        formula.var(var)
        if names.of(var) not in coord_names:
            hidden.append(names.of(var))
        Formula.takes(formula.within, var, low, extent)
    for guard in access.guards:
        Formula.takes(formula.require, guard)
    element = []
    for axis in range(access.buffer.ndim):
        name = names.fresh("e")
        element.append(name)
        if access.indices is None:
            continue
        index = access.indices[axis]
        if isinstance(index, tuple):
            Formula.takes(formula.between, name, *index)
        elif not isinstance(index, Ramp):
            Formula.takes(formula.equal, name, index)
        elif isinstance(index.stride, IntImm):
            Formula.takes(formula.lane_of, name, index.base, index.stride.value, index.lanes)
    return formula.map(coord_names, element, [*hidden, *element])


def without_swizzles(units: Sequence[Statement]) -> list[Statement]:
    """``units`` with swizzles removed: a swizzle is a bijection on elements, so if every access of a buffer uses the
    same one, removing it preserves the dependences. Buffers with differently swizzled accesses are unchanged."""
    accesses = dict.fromkeys([a for u in units for a in u.accesses])
    swizzled = {a.buffer.data for a in accesses if has_bits(a)}
    if not swizzled:
        return list(units)
    plain: dict[int, Access] = {}
    rules: dict[Var, set[Any]] = {}
    for unit in units:
        for access in unit.accesses:
            if not shares_memory(access, swizzled):
                continue
            found = _without_swizzle(unit, access)
            rules.setdefault(access.buffer.data, set()).add(None if found is None else (access.buffer, found[1]))
            if found is not None:
                plain[id(access)] = replace(access, indices=found[0])
    alike = {data for data, seen in rules.items() if len(seen) == 1 and None not in seen}
    return [replace(u, accesses=[plain[id(a)] if shares_memory(a, alike) else a for a in u.accesses]) for u in units]


def _without_swizzle(unit: Statement, access: Access) -> tuple[Any, Any] | None:
    """The indices of ``access`` without a swizzle, and the swizzle; None if there is none."""
    indices = access.indices
    if indices is None or not all(isinstance(i, Expr) and not isinstance(i, Ramp) for i in indices):
        return None
    ctx = Analyzer({v: Range(low, extent) for v, low, extent in (*unit.loops, *access.loops)})
    loops = {v for v, _, _ in unit.loops}
    for var, value in (*zip(unit.coords, unit.values), *unit.inner):
        least, most = (None, None) if var in loops else ctx.bound(value)
        if least is not None and most is not None:
            ctx.bind(var, Range(const(least, var.dtype), const(most - least + 1, var.dtype)))
    return without_all(indices, ctx)


def has_bits(access: Access) -> bool:
    """Whether an index has bitwise operations: exact sets can represent them, but slowly."""
    return any(_has_bits(e) for e in access.index_parts() if type(e) not in LEAVES)


@once
def _has_bits(e: Expr) -> bool:
    """Whether there are bitwise operations or shifts in an expression; found once for each."""
    return any(isinstance(n, Call) and n.op.startswith(("bitwise", "shift")) for n in nodes_of(e))


def _know_iterators(formula: Formula, unit: Statement) -> None:
    """Bounds of the iterators and of what is around, from the loops."""
    outer = formula.names.outer()
    ctx = Analyzer({**outer, **{var: Range(low, extent) for var, low, extent in unit.loops}})
    for var, value in (*((v, v) for v in outer), *zip(unit.coords, unit.values), *unit.inner):
        least, most = ctx.bound(value)
        if least is not None and most is not None:
            formula.know(var, least, most)


def is_exact(unit: Statement, access: Access) -> bool:
    """Whether the elements of ``access`` are exact: no index, bound or guard is data-dependent. Cached per access
    and loop nest; most steps reuse accesses."""
    if access.indices is None:
        return False
    deciders = (*deciding(unit, access), None, *unit.coords, *unit.values, None, *unit.guards, None, *access.guards)
    return _EXACT.found(access.node, deciders, lambda: why_inexact(unit, access) is None)


_EXACT: MemoAmong[bool] = MemoAmong()


def why_inexact(unit: Statement, access: Access) -> NotAffine | None:
    """The expression because of which the elements of ``access`` are not exact."""
    found = decide(_require_exact, unit, access)
    return found if isinstance(found, NotAffine) else None


def _require_exact(unit: Statement, access: Access) -> None:
    """Raises ``NotAffine`` unless the elements of ``access`` are exact."""
    formula = Formula(Names())
    add_loops(formula, (*unit.loops, *access.loops))
    for guard in (*unit.guards, *access.guards):
        formula.require(guard)
    _know_iterators(formula, unit)
    for part in (*access.index_parts(), *(value for v, value in unit.inner if access.uses((v,)))):
        formula.sum(part.base if isinstance(part, Ramp) else part)


Points = TypeVar("Points", IntegerSet, Relation)


class AccessRelation:
    """An access and, computed on demand, its access map from instances to elements."""

    def __init__(self, access: Access, make: Callable[[], Relation]):
        self.access = access
        self._make = make

    @cached_property
    def map(self) -> Relation:
        """Raises ``NotAffine``."""
        return self._make()


Touch = tuple["StatementRelations", AccessRelation]


class StatementRelations:
    """A statement with its relations: its accesses, and its timestamps before and after."""

    def __init__(self, unit: Statement, names: Names):
        self.unit = unit
        self.names = names
        self.there: Sequence[Statement] = ()  # what runs its instances after the step
        self.length = 0  # of timestamps
        self.moments: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]] = ([], [])  # the times behind the two
        self.run: Statement | None = None  # as it is after the step, if known to run all of its instances at one place
        self.kept = False  # the step leaves the loops around the unit, and so the order among its runs
        self.pure = False  # a further run of an instance makes the same values again
        self.ignored: frozenset[Var] = frozenset()  # pointers of memory in which no two runs can conflict
        self.places: tuple[Any, ...] = ()
        self.reads: list[AccessRelation] = []
        self.writes: list[AccessRelation] = []

    @cached_property
    def dims(self) -> list[str]:
        """The names of the coordinates."""
        return [self.names.of(v) for v in self.unit.coords]

    @cached_property
    def before(self) -> Relation:
        """Its schedule map before the step. Raises ``NotAffine``."""
        return schedule_map(self.unit, self.names, self.length, self.dims)

    @cached_property
    def after(self) -> Relation:
        """After the step. Raises ``NotAffine``."""
        made, count = None, len(self.unit.coords)
        for run in self.there:
            if len(run.coords) < count:
                place = self.unit.name.split("#")[0] or "the function"
                raise NotAffine(place, "a statement is repeated by a loop that none of its coordinates names")
            if len(run.coords) > count:  # loops that only repeat it
                run = replace(run, coords=run.coords[:count], values=run.values[:count])
            times = schedule_map(run, self.names, self.length, self.dims)
            made = times if made is None else made.union(times)
        return self.before.subtract(self.before) if made is None else made

    @classmethod
    def renamed(cls, unit: Statement, names: Names) -> StatementRelations:
        """With new names for the coordinates in schedule maps: loops that are coordinates must not be captured by the
        order."""
        made = cls(unit, names)
        made.dims = [names.fresh(v.name) for v in unit.coords]
        return made

    def touch(self, access_map: AccessMap = access_map) -> None:
        """Find its accesses, with their maps when they are asked for."""
        self._access_map = access_map
        seen = set()
        for access in self.unit.accesses:
            key = (access.buffer, access.write, id(access.node))
            if key in seen:
                continue
            seen.add(key)
            (self.writes if access.write else self.reads).append(self._relation(access))

    def _relation(self, access: Access) -> AccessRelation:
        return AccessRelation(access, partial(_map_of, self.unit, access, self.names, self._access_map))

    @cached_property
    def boxes(self) -> dict[AccessRelation, AccessRelation]:
        """For each access the box around those that are apart by numbers alone, such as the reads of a window; itself if there are no others."""
        groups: dict[Any, list[AccessRelation]] = {}
        for alike in filter(None, chain(*self.by_memory.values())):
            for one in alike:
                groups.setdefault(_apart_by_numbers(one.access) if len(alike) > 1 else one, []).append(one)
        around = {group[0]: self._relation(_box(group)) if len(group) > 1 else group[0] for group in groups.values()}
        return {one: around[group[0]] for group in groups.values() for one in group}

    @cached_property
    def by_memory(self) -> dict[Var, tuple[list[AccessRelation], list[AccessRelation]]]:
        """Its writes and its reads of each memory."""
        found: dict[Var, tuple[list[AccessRelation], list[AccessRelation]]] = {}
        for kind, relations in enumerate((self.writes, self.reads)):
            for relation in relations:
                found.setdefault(relation.access.buffer.data, ([], []))[kind].append(relation)
        return found

    def show(self, point: Sequence[int]) -> str:
        unit = self.unit
        name = unit.name.split("#")[0] or "a statement"
        part = " (init)" if unit.part == "init" else ""
        return f"{name}{part} at ({unit.shown_at(point)})"


def _apart_by_numbers(access: Access) -> Any:
    """A key that is the same for accesses whose indices differ by numbers."""
    indices = access.indices
    if indices is None or access.through or not all(isinstance(i, Expr) and i.dtype.lanes == 1 for i in indices):
        return access
    forms = tuple(linear(i).terms_key() for i in indices)
    return access.buffer, access.kind, access.loops, access.guards, access.block, access.first, forms


def _box(relations: Sequence[AccessRelation]) -> Access:
    """The box around the elements of accesses that differ by numbers."""
    accesses = [one.access for one in relations]
    box = []
    for parts in zip(*(a.indices or () for a in accesses)):
        apart = [linear(part).const for part in parts]
        low, dtype = parts[apart.index(min(apart))], parts[0].dtype
        box.append((low, const(max(apart) - min(apart) + 1, dtype)))
    return replace(accesses[0], indices=tuple(box))


def _map_of(unit: Statement, access: Access, names: Names, access_map: AccessMap) -> Relation:
    return access_map(unit, access, names, [names.of(v) for v in unit.coords])


def _ranges_around(func: PrimFunc, stmt: Any) -> dict[Var, Range]:
    """The ranges of the loops and the iterators that are defined around ``stmt``."""
    found: dict[Var, Range] = {}
    for node in path_to(func.body, stmt)[:-1]:
        if isinstance(node, For):
            found[node.loop_var] = node.domain
        elif isinstance(node, BlockRealize):
            found.update((iv.var, iv.dom) for iv in node.block.iter_vars if iv.dom is not None)
    return found


class Context:
    """Constraints on the variables defined outside the part that is compared."""

    def __init__(self, func: PrimFunc, stmt: Any, names: Names):
        self.func, self.stmt, self.names = func, stmt, names
        names.outer = partial(_ranges_around, func, stmt)
        self.known: IntegerSet | None = None
        self.local: dict[
            Any, bool
        ] = {}  # of two accesses in two statements, whether in one iteration of the loops around both

    def restrict(self, found: Points) -> Points:
        if found.is_empty():
            return found
        if self.known is None:
            self.known = self._collect()
        return found.where(self.known)

    def _collect(self) -> IntegerSet:
        formula = Formula(self.names)
        for node in path_to(self.func.body, self.stmt)[:-1]:
            if isinstance(node, For):
                Formula.takes(formula.within, node.loop_var, node.min, node.extent)
            elif isinstance(node, BlockRealize):
                for iv, value in zip(node.block.iter_vars, node.iter_values):
                    if iv.dom is not None:
                        Formula.takes(formula.within, iv.var, iv.dom.min, iv.dom.extent)
                    Formula.takes(formula.equal, formula.var(iv.var), value)
                Formula.takes(formula.require, node.predicate)
        for buffer in self.func.buffer_map.values():
            for size in buffer.shape:
                if isinstance(size, Var):
                    Formula.takes(formula.require, size >= const(0, size.dtype))
        return formula.set([]).parameters()


def by_loops(unit: Statement) -> Statement:
    """``unit`` with its instances identified by the loops around it."""
    loops = tuple([v for v, _, _ in unit.loops])
    around = {*loops}
    inner = tuple([(v, e) for v, e in zip(unit.coords, unit.values) if v not in around])
    return changed(unit, coords=loops, values=loops, inner=inner)


def loop_times(unit: Statement, time: tuple[Any, ...], names: Names, length: int) -> Relation:
    formula = Formula(names)
    moments = [formula.var(t) if isinstance(t, Var) else str(t) for t in time]
    moments += ["0"] * (length - len(moments))
    return formula.map([names.of(v) for v in unit.coords], moments)


def conflicting_pairs(
    source: StatementRelations, sink: StatementRelations
) -> list[tuple[AccessRelation, AccessRelation]]:
    """Pairs of accesses of the same memory, at least one a write; not of memory that the source ignores, nor of updates that
    commute."""
    found: list[tuple[AccessRelation, AccessRelation]] = []
    for relations, kinds in ((source.writes, 2), (source.reads, 1)):
        for a in relations:
            theirs = sink.by_memory.get(a.access.buffer.data)
            if theirs is not None and not shares_memory(a.access, source.ignored):
                found += product((a,), chain(*theirs[:kinds]))  # of a read, the writes alone
    return [(a, b) for a, b in found if not (a.access.commutes and _commute(a.access, b.access))]


def _commute(a: Access, b: Access) -> bool:
    """Whether two updates, of which the first commutes with its like, are by one operator and of elements of one type."""
    if not (b.commutes and a.through and b.through):
        return False
    return a.through[0].op == b.through[0].op and a.buffer.dtype == b.buffer.dtype


def same_element(a: AccessRelation, b: AccessRelation) -> Relation:
    """Pairs of instances that access the same element; for two views of one memory, all pairs."""
    first, second = a.map, b.map
    if a.access.buffer is not b.access.buffer:
        first, second = first.prefix(0), second.prefix(0)
    return first.then(second.reverse())


def timed(units: Sequence[Statement], memory: Memory, names: Names) -> list[StatementRelations]:
    """The relations of the statements that use ``memory``."""
    users = [u for u in units if sharing(u.accesses, memory)]
    length = max((len(u.time) for u in users), default=0)
    return [_timed(u, names, length) for u in users]


def _timed(unit: Statement, names: Names, length: int) -> StatementRelations:
    side = StatementRelations.renamed(unit, names)
    side.length = length
    side.touch()
    return side


def once_each(side: StatementRelations) -> StatementRelations:
    """A statement whose instances run once each: the statement itself, or by its loops where a block instance runs several times."""
    return side if side.before.is_single_valued() else _timed(by_loops(side.unit), side.names, side.length)


def at_times(touch: Touch) -> Relation:
    """From timestamps to the elements that are accessed then."""
    return touch[0].before.reverse().then(touch[1].map)


def unkilled(written: Relation, read: Relation, made: Iterable[Relation], pairs: Relation | None = None) -> Relation:
    """From the times at which an element is read, with the element, to earlier ones at which it is ``written``, if none of ``made``
    has it in between: all of these from times to elements. ``pairs``: of times of a read and of a write, those in question."""
    earlier = Relation.lex_before(read.source_rank).reverse()
    element, moment = read.pairs_to_target(), read.pairs_to_source()
    left = element.then(written.reverse()).intersect(moment.then(earlier if pairs is None else pairs))
    for elements in made:
        if left.is_empty():
            break
        again = element.then(elements.reverse()).intersect(moment.then(earlier))
        left = left.subtract(again.then(earlier))
    return left


def witness(pairs: Relation, s: Any, a: Any, t: Any, b: Any, late: str, early: str) -> list[str]:
    """Lines on one of ``pairs`` of instances of ``s`` and ``t``, which conflict by their accesses ``a`` and ``b``:
    the second's first."""
    found = pairs.sample()
    if found is None:
        return []
    x, y = found
    element = _shared_element(a, b, x, y)
    names = dict.fromkeys(f"`{c.access.buffer.name}`" for c in (b, a))
    same = [] if a.access.buffer is b.access.buffer else [f"{' and '.join(names)} may be the same memory"]
    return [
        f"{t.show(y)} {_verb(t.unit, b.access)} {show_element(b.access, element)}{early}",
        f"{s.show(x)} {_verb(s.unit, a.access)} {show_element(a.access, element)}{late}",
        *same,
    ]


def why_unknown(sides: Sequence[tuple[Statement, Access]]) -> str | None:
    """Why it is not known which elements the accesses touch; None if it is."""
    for unit, access in sides:
        if access.indices is None:
            return f"what is done behind a pointer to `{access.buffer.name}` is not known"
        reason = why_inexact(unit, access)
        if reason is not None:
            of_data = contains(BufferLoad, reason.expr)
            return f"`{reason.expr!r}` depends on data" if of_data else str(reason)
    return None


def show_element(access: Access, element: Sequence[int]) -> str:
    inside = ", ".join(str(v) for v in element) if element else "…"
    return f"{access.buffer.name}[{inside}]"


def _verb(unit: Statement, access: Access) -> str:
    """What an access does to an element, as far as is known."""
    if access.indices is None or why_inexact(unit, access) is not None:
        return "may write" if access.write else "may read"
    return "writes" if access.write else "reads"


def _shared_element(a: Any, b: Any, x: Sequence[int], y: Sequence[int]) -> list[int]:
    if a.access.buffer is not b.access.buffer:
        return []
    return a.map.at(x).intersect(b.map.at(y)).sample() or []
