"""Proves, from two affine indices and without exact sets, that a loop carries no dependence.

True is a proof; False means "not shown".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...arith.itermap import IterMap, detect_iter_map
from ...buffer import Range
from ...expr import Add, Call, Expr, FloorDiv, FloorMod, IntImm, Mul, Ramp, Sub, Var
from ...visit import substitute, walk
from .statements import Access, Loop, Statement


@dataclass
class _Form:
    """A sum of integer multiples of variables, plus a number from ``low`` to ``high``."""

    terms: dict[Var, int]
    low: int
    high: int

    def scaled(self, by: int) -> _Form:
        ends = (self.low * by, self.high * by)
        return _Form({v: c * by for v, c in self.terms.items()}, min(ends), max(ends))

    def plus(self, other: _Form) -> _Form:
        terms = dict(self.terms)
        for v, c in other.terms.items():
            terms[v] = terms.get(v, 0) + c
        return _Form({v: c for v, c in terms.items() if c}, self.low + other.low, self.high + other.high)


class AffineForms:
    """Indices of a statement's accesses as affine forms over its loops; block iterators are substituted."""

    def __init__(self, unit: Statement):
        self.unit = unit
        self.values: Mapping[Var, Expr] = dict(unit.inner)
        self.loops: dict[Var, tuple[int, int] | None] = {v: _ends(low, n) for v, low, n in unit.loops}
        self.known: dict[int, tuple[Expr, _Form | None]] = {}

    def of(self, index: Any) -> _Form | None:
        """The form of one index of an access, or of a range of them."""
        if isinstance(index, tuple):
            first, extent = self.of(index[0]), index[1]
            if first is None or not isinstance(extent, IntImm):
                return None
            return first.plus(_Form({}, 0, max(extent.value - 1, 0)))
        if isinstance(index, Ramp):
            first = self.of(index.base)
            if first is None or not isinstance(index.stride, IntImm):
                return None
            last = index.stride.value * (index.lanes - 1)
            return first.plus(_Form({}, min(last, 0), max(last, 0)))
        found = self.known.get(id(index))
        if found is None:
            found = self.known[id(index)] = (index, self._form(index))
        return found[1]

    def _form(self, e: Expr) -> _Form | None:
        if isinstance(e, IntImm):
            return _Form({}, e.value, e.value)
        if isinstance(e, Var):
            value = self.values.get(e)
            if value is not None:
                return self.of(value)
            return _Form({e: 1}, 0, 0) if e.dtype.is_int else None
        if isinstance(e, (Add, Sub)):
            a, b = self.of(e.a), self.of(e.b)
            return None if a is None or b is None else a.plus(b if isinstance(e, Add) else b.scaled(-1))
        if isinstance(e, Mul):
            for factor, other in ((e.b, e.a), (e.a, e.b)):
                if isinstance(factor, IntImm):
                    form = self.of(other)
                    return None if form is None else form.scaled(factor.value)
            return None
        if isinstance(e, FloorDiv) and isinstance(e.b, IntImm) and e.b.value > 0:
            return self._quotient(e.a, e.b.value)
        if isinstance(e, FloorMod) and isinstance(e.b, IntImm) and e.b.value > 0:
            return _Form({}, 0, e.b.value - 1)
        if isinstance(e, Call) and e.op == "likely":
            return self.of(e.args[0])
        return None

    def _quotient(self, a: Expr, by: int) -> _Form | None:
        """``a // by``: terms divisible by ``by`` stay exact, the rest is bounded."""
        form = self.of(a)
        if form is None:
            return None
        whole = {v: c // by for v, c in form.terms.items() if c % by == 0}
        low, high = form.low, form.high
        for v, c in form.terms.items():
            if c % by:
                ends = self.loops.get(v)
                if ends is None:
                    return None
                reach = (c * ends[0], c * ends[1])
                low, high = low + min(reach), high + max(reach)
        return _Form(whole, low // by, high // by)


def _ends(low: Expr, extent: Expr) -> tuple[int, int] | None:
    if isinstance(low, IntImm) and isinstance(extent, IntImm):
        return low.value, low.value + max(extent.value, 1) - 1
    return None


def indices_differ(s: AffineForms, a: Access, t: AffineForms, b: Access, var: Var) -> bool:
    """Banerjee test: no element is accessed by ``a`` in one iteration of the loop of ``var`` and by ``b`` in a
    different one, because the indices on some axis then differ."""
    if a.buffer is not b.buffer or a.indices is None or b.indices is None or a.loops or b.loops:
        return False
    return any(_differs(s, s.of(i), t, t.of(j), var) for i, j in zip(a.indices, b.indices))


def _differs(s: AffineForms, a: _Form | None, t: AffineForms, b: _Form | None, var: Var) -> bool:
    """Banerjee test: |stride of ``var``| exceeds the range of everything else, so different iterations give different
    indices."""
    if a is None or b is None:
        return False
    stride = a.terms.get(var, 0)
    if not stride or b.terms.get(var, 0) != stride:
        return False
    low, high = a.low - b.high, a.high - b.low
    for side, form, other, sign in ((s, a, b, 1), (t, b, a, -1)):
        for v, c in form.terms.items():
            if v is var:
                continue
            if v in side.loops:
                ends = side.loops[v]
                if ends is None:
                    return False
                reach = (sign * c * ends[0], sign * c * ends[1])
                low, high = low + min(reach), high + max(reach)
            elif other.terms.get(v, 0) != c:
                return False  # the same variable in both, with different coefficients
    return max(-low, high) < abs(stride)


def index_tells_iteration(s: AffineForms, access: Access, t: AffineForms, other: Access, var: Var) -> bool:
    """Whether one access is injective: an element determines the iteration of every loop that its indices use."""
    if access is not other or s is not t or access.indices is None or access.loops:
        return False
    if any(not isinstance(i, Expr) or isinstance(i, Ramp) for i in access.indices):
        return False
    indices: Sequence[Expr] = [substitute(i, s.values) for i in access.indices]
    used = {n for i in indices for n in walk(i) if isinstance(n, Var)}
    loops: list[Loop] = [loop for loop in s.unit.loops if loop[0] in used]
    own = {v for v, _, _ in s.unit.loops}
    if var not in used or any(n in own for _, low, n_ in loops for e in (low, n_) for n in walk(e)):
        return False
    domains = {v: Range(low, extent) for v, low, extent in loops}
    return isinstance(detect_iter_map(indices, domains, check="bijective"), IterMap)
