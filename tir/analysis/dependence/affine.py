"""Proves, from two affine indices and without exact sets, that a loop carries no dependence.

True is a proof; False means "not shown".
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from itertools import repeat
from typing import Any, NamedTuple

from ...aliases import sharing
from ...arith.linear import Linear, is_index, linear, same
from ...buffer import ends_of
from ...expr import BufferLoad, Call, Expr, FloorDiv, FloorMod, IntImm, Ramp, Var, const, is_const
from ...node import MemoAmong
from ...visit import has_load, nodes_of
from .domains import are_distinct, determined_by
from .statements import Access, Statement, deciding


class Strided(NamedTuple):
    """``stride`` times a variable, plus something between ``ends``, plus terms that all instances ``share``."""

    stride: int
    ends: tuple[int, int]
    shared: Linear


class AffineForms:
    """Indices of a statement's accesses as linear forms over its loops; block iterators are substituted.

    What is not linear but bounded (a remainder, the rest of a quotient, a lane of a vector) is a variable of its own.
    ``ends`` has the least and greatest value of all variables of the statement, None if they are not known. ``changing``
    has the pointers of memory that may hold one thing in one instance and another in the next.
    """

    def __init__(self, unit: Statement, changing: Container[Var]):
        self.unit = unit
        self.changing = changing
        self.values: Mapping[Any, Expr] = dict(unit.inner)
        self.ends: dict[Var, tuple[int, int] | None] = {v: ends_of(low, n) for v, low, n in unit.loops}
        self.known: dict[int, tuple[Expr, Linear | None]] = {}
        self.strided: dict[tuple[int, Var], tuple[Any, Strided | None]] = {}
        self.placed: dict[Access, Access] = {}

    def on_loops(self, access: Access) -> Access:
        """The access with block iterators substituted."""
        if access not in self.placed:
            self.placed[access] = access.substituted(self.values)
        return self.placed[access]

    def along(self, index: Any, var: Var) -> Strided | None:
        """How one index of an access, or a range of them, depends on ``var``; None if it does not, or is not linear."""
        found = self.strided.get((id(index), var))
        if found is None:
            form, made = self.of(index), None
            stride = 0 if form is None else form.coefficient(var)
            if form is not None and stride:
                own, shared = form.replaced((id(var),), Linear()).split(self.ends)
                ends = own.interval(self.ends)
                made = None if ends is None else Strided(stride, ends, shared)
            found = self.strided[id(index), var] = (index, made)
        return found[1]

    def beside(self, index: Any, loops: Collection[Var]) -> tuple[Linear, tuple[int, int]] | None:
        """What is left of an index without its terms of other loops than ``loops`` and without its constant, and the ends of
        these together; None if they are not known."""
        if not isinstance(index, Expr) or not is_index(index.dtype) or has_load(index):
            return None
        own, left = linear(index).split([v for v in self.ends if v not in loops])
        own.const, left.const = left.const, 0
        ends = own.interval(self.ends)
        if ends is None and (form := self.of(own.build(index.dtype))) is not None:
            ends = form.interval(self.ends)
        return None if ends is None else (left, ends)

    def of(self, index: Any) -> Linear | None:
        """The form of one index of an access, or of a range of them."""
        if isinstance(index, tuple):
            return self._lanes(index[0], index[1], 1)
        if isinstance(index, Ramp):
            return self._lanes(index.base, IntImm(index.lanes), index.stride)
        value = self.values.get(index)
        if value is not None:
            return self.of(value)
        found = self.known.get(id(index))
        if found is None:
            found = self.known[id(index)] = (index, self._form(index))
        return found[1]

    def _lanes(self, first: Expr, count: Expr, stride: Any) -> Linear | None:
        """``first`` plus ``stride`` times one of ``count`` numbers."""
        form, step = self.of(first), getattr(stride, "value", stride)
        if form is None or not isinstance(count, IntImm) or not isinstance(step, int):
            return None
        return form.copy().add(self._between(0, max(count.value - 1, 0)), step)

    def _between(self, low: int, high: int) -> Linear:
        """Some number from ``low`` to ``high``."""
        if low == high:
            return Linear(low)
        some = Var("some")
        self.ends[some] = (low, high)
        return linear(some)

    def _form(self, e: Expr) -> Linear | None:
        sum_ = linear(e)
        made = Linear(sum_.const)
        for factors, coefficient in sum_.terms.values():
            e = factors[0]
            if len(factors) == 1 and type(e) is Var and e not in self.values and e.dtype.is_int:
                made.add_term(factors, coefficient, id(e))
                continue
            part = self._atom(e) if len(factors) == 1 else None
            if part is None:
                return None
            made.add(part, coefficient)
        return made

    def _atom(self, e: Expr) -> Linear | None:
        if e in self.values:
            return self.of(self.values[e])
        if isinstance(e, (FloorDiv, FloorMod)) and isinstance(e.b, IntImm) and e.b.value > 0:
            return self._quotient(e.a, e.b.value) if isinstance(e, FloorDiv) else self._between(0, e.b.value - 1)
        if isinstance(e, Call) and e.op == "likely":
            return self.of(e.args[0])
        return None

    def _quotient(self, a: Expr, by: int) -> Linear | None:
        """``a // by``: terms divisible by ``by`` stay exact, the rest is bounded."""
        form = self.of(a)
        if form is None:
            return None
        whole, rest = Linear(), Linear(form.const)
        for factors, c in form.items():
            (rest if c % by else whole).add_term(factors, c if c % by else c // by)
        ends = rest.interval(self.ends)
        return None if ends is None else whole.add(self._between(ends[0] // by, ends[1] // by))


def indices_differ(s: AffineForms, a: Access, t: AffineForms, b: Access, var: Var) -> bool:
    """Banerjee test: no element is accessed by ``a`` in one iteration of the loop of ``var`` and by ``b`` in a
    different one, because the indices on some axis then differ."""
    if a.buffer is not b.buffer or a.indices is None or b.indices is None or a.loops or b.loops:
        return False
    return any(map(_differs, map(s.along, a.indices, repeat(var)), map(t.along, b.indices, repeat(var))))


def _differs(a: Strided | None, b: Strided | None) -> bool:
    """Banerjee test: |stride of the variable| exceeds the range of everything else, so different iterations give
    different indices."""
    if a is None or b is None or a.stride != b.stride:
        return False
    gap = a.shared.minus(b.shared)
    if not gap.is_const:
        return False  # a variable that both share is in them with different coefficients
    low, high = gap.const + a.ends[0] - b.ends[1], gap.const + a.ends[1] - b.ends[0]
    return max(-low, high) < abs(a.stride)


def index_determines_iteration(s: AffineForms, a: Access, t: AffineForms, b: Access, var: Var) -> bool:
    """Whether two accesses have the same injective indices: an element determines, for both, the iteration of every loop
    that the indices use."""
    if a.buffer is not b.buffer or a.indices is None or b.indices is None:
        return False
    determined = _determined_loops(s, a)
    return var in determined and (a is b or _same_indices(s, a, t, b, determined))


def distinguishes(s: AffineForms, a: Access, t: AffineForms, b: Access, var: Var) -> bool:
    """Whether different iterations of the loop of ``var`` never have one element by ``a`` and by ``b``."""
    return indices_differ(s, a, t, b, var) or index_determines_iteration(s, a, t, b, var)


def in_one_iteration(s: AffineForms, a: Access, t: AffineForms, b: Access, loops: Collection[Var]) -> bool:
    """Whether an element is accessed by ``a`` and by ``b`` in one iteration only of ``loops``, which are around both: an index is
    what these make of it, alike for both, and a bounded rest, and such sums determine the iteration. False means "not shown"."""
    if a.buffer is not b.buffer or a.loops or b.loops:
        return False
    around = [loop for loop in s.unit.loops if loop[0] in loops and not is_const(loop[2], 1)]
    moving, sums = {v for v, _, _ in around}, []
    for i, j in zip(s.on_loops(a).indices or (), t.on_loops(b).indices or ()):
        mine, theirs = s.beside(i, moving), t.beside(j, moving)
        if mine is not None and theirs is not None and mine[0].terms_key() == theirs[0].terms_key():
            low, high = min(mine[1][0], theirs[1][0]), max(mine[1][1], theirs[1][1])
            rest = Var("rest", i.dtype)
            around.append((rest, const(low, i.dtype), const(high - low + 1, i.dtype)))
            sums.append(mine[0].build(i.dtype) + rest)
    return are_distinct(sums, around)


def _determined_loops(s: AffineForms, access: Access) -> frozenset[Var]:
    """The loops that the indices of an access use, if these determine all of their iterations; none otherwise. Found once
    for each access in the same loops: steps keep most of them."""
    parts = access.index_parts()
    if sharing((n for e in parts for n in nodes_of(e) if type(n) is BufferLoad), s.changing):
        return frozenset()

    def find() -> frozenset[Var]:
        indices, around = s.on_loops(access).elements()
        found = None if indices is None else determined_by(indices, (*s.unit.loops, *around), [access.buffer])
        return found or frozenset()

    return _DETERMINED.found(access.buffer, deciding(s.unit, access), find)


_DETERMINED: MemoAmong[frozenset[Var]] = MemoAmong()


def _same_indices(s: AffineForms, a: Access, t: AffineForms, b: Access, determined: frozenset[Var]) -> bool:
    """Whether two accesses have the same indices, over the same iterations of the loops ``determined`` that these use."""
    mine, theirs = ({v: (low, n) for v, low, n in (*forms.unit.loops, *x.loops)} for forms, x in ((s, a), (t, b)))
    if any((v in mine) != (v in theirs) or not all(map(same, mine.get(v, ()), theirs.get(v, ()))) for v in determined):
        return False
    pairs = zip(s.on_loops(a).indices or (), t.on_loops(b).indices or ())
    return all(type(i) is type(j) and (all(map(same, i, j)) if isinstance(i, tuple) else same(i, j)) for i, j in pairs)
