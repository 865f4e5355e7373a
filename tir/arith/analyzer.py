"""What is known about variables and conditions at a program point, and what follows from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import gcd
from typing import Any

from ..aliases import may_change
from ..buffer import IterVar, Range
from ..dtype import BOOL
from ..expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    Call,
    Comparison,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Mod,
    Not,
    Or,
    Var,
    as_expr,
    is_const,
)
from ..stmt import AttrStmt, For
from ..visit import free_vars, is_pure, walk
from .bounds import UNBOUNDED, Interval, bound_of, bound_of_linear, dtype_bound, meet, value_form, within_type
from .comparisons import OPPOSITE
from .linear import Linear, is_data, is_index, key, linear
from .modular import NOTHING, Fact, both, modular_of
from .prove import Prover
from .simplifier import Simplifier


class Analyzer:
    """Integer reasoning under assumptions: ranges of variables (:meth:`bind`) and conditions (:meth:`constraint`).

    Index arithmetic (int32 and int64, of variables and constants) is assumed not to overflow; what is computed from data
    wraps around, and no algebra of unbounded integers is done with it unless it is known to fit. Answers are sound, not complete: ``can_prove`` false
    means "not proved", a bound of None means "none found".

    >>> from tir.expr import Var
    >>> i, n, a = Var("i"), Var("n"), Analyzer()
    >>> a.bind(i, Range(as_expr(0), n))
    >>> a.can_prove(i < n), a.bound(i % 4)
    (True, (0, 3))
    """

    def __init__(self, bounds: Mapping[Var, Any] | None = None):
        self._ranges: dict[Var, tuple[Interval, Linear | None, Linear | None]] = {}
        self.facts: list[Linear] = []  # each is known to be >= 0
        self._fact_bounds: dict[Hashable, Interval] = {}
        self.atom_bounds: dict[Hashable, Interval] = {}
        self.remainders: dict[Hashable, Fact] = {}
        self.truths: dict[Hashable, bool] = {}
        self._names: dict[Var, Expr] = {}  # conditions that variables stand for
        self._aliased: set[Var] = set()
        self.data: set[Var] = set()  # variables that stand for what was computed from data
        self._keep: list[Any] = []  # expressions whose ids are in keys above
        self.sums: dict[Hashable, Expr] = {}  # sums of variables by their terms: equal ones are one object
        self._forget()
        for var, value in (bounds or {}).items():
            self.bind(var, value)

    def _forget(self) -> None:
        """Invalidate cached conclusions: the assumptions changed."""
        self.bound_memo: dict[Expr, Interval] = {}
        self.simplify_memo: dict[Any, Any] = {}

    # ------------------------------------------------------------ assumptions

    def bind(self, var: Var | IterVar, value: Any, within: Any = None) -> None:
        """Know that ``var`` lies in a Range, or equals an expression. Binding again replaces what was known.

        Binding to an expression is knowledge for bounds and proofs; ``simplify`` does not put the expression in
        the variable's place unless it is a constant. A variable of type bool stands for its condition. ``within`` is
        the statement in which this is to be known: an end of the range, or a value, that is read from memory which it
        writes is not.
        """
        if isinstance(var, IterVar):
            var = var.var
        self._forget()
        if not isinstance(value, Range) and is_data(as_expr(value), self.data):
            self.data.add(var)
        if type(value) is Range and type(value.extent) is IntImm and type(value.min) is IntImm:
            low = value.min.value
            self._ranges[var] = ((low, low + value.extent.value - 1), None, None)
            return
        if within is not None and self.may_change(value, within):
            if isinstance(value, Range) and not self.may_change(value.min, within):
                self.assume(var >= value.min)
            return
        if isinstance(value, Range):
            # the variable does not overflow, nor does its end
            least, end = value_form(self, value.min), linear(value.min).add(linear(value.extent)).build(var.dtype)
            most = value_form(self, end)
            most.const -= 1
            self._ranges[var] = ((bound_of_linear(self, least)[0], bound_of_linear(self, most)[1]), least, most)
            if not isinstance(value.extent, IntImm):
                size = value_form(self, value.extent)
                size.const -= 1
                self._add_fact(size)  # the variable exists, so its range is not empty
        else:
            e = as_expr(value)
            if var.dtype is BOOL:
                self._names[var] = e
            elif is_index(e.dtype):
                form = value_form(self, e)
                self._ranges[var] = (within_type(bound_of(self, e), e.dtype), form, form)
                coeff, rest = modular_of(self, e)
                if coeff > 1 or coeff == 0 and e.dtype.min_value <= rest <= e.dtype.max_value:
                    self.remainders[id(var)] = coeff, rest
        self._keep.append((var, value))

    def bind_under(self, root: Any) -> None:
        """Know the ranges of all loops, threads and block iterators in a statement."""
        for node in walk(root):
            if isinstance(node, For):
                self.bind(node.loop_var, node.domain, node)
            elif isinstance(node, IterVar) and node.dom is not None:
                self.bind(node.var, node.dom)
            elif isinstance(node, AttrStmt) and node.attr_key == "thread_extent":
                self.bind(node.node.var, Range(IntImm(0, node.node.var.dtype), node.value))

    @property
    def has_assumptions(self) -> bool:
        """Whether more is known than the ranges of variables."""
        return bool(self.facts or self.atom_bounds or self.remainders or self.truths or self._names)

    def knows(self, var: Var) -> bool:
        return var in self._ranges

    def var_bound(self, var: Var) -> Interval:
        known = self._ranges.get(var)
        result = dtype_bound(var) if known is None else known[0]
        if self.atom_bounds:
            more = self.atom_bounds.get(id(var))
            if more is not None:
                return meet(result, more)
        return result

    def symbolic_bound(self, var: Var) -> tuple[Linear | None, Linear | None]:
        """The inclusive bounds of ``var`` as linear forms, if it was bound to something not constant."""
        known = self._ranges.get(var)
        return (None, None) if known is None else known[1:]

    @contextmanager
    def scope(self) -> Iterator[Analyzer]:
        """Assumptions made inside the ``with`` are dropped after it."""
        saved = dict(vars(self))
        for name, value in saved.items():
            if name not in ("bound_memo", "simplify_memo", "sums"):
                setattr(self, name, value.copy())
        try:
            yield self
        finally:
            vars(self).update(saved)

    @contextmanager
    def constraint(self, condition: Expr, within: Any = None) -> Iterator[Analyzer]:
        """Know ``condition`` inside the ``with``; for ``within`` see :meth:`assume`."""
        with self.scope():
            self.assume(condition, within)
            yield self

    def assume(self, condition: Any, within: Any = None) -> None:
        """Know ``condition`` from here on (to the end of the enclosing scope).

        ``within`` is the statement in which it is to be known: the parts of the condition that read memory which it
        writes are not.
        """
        condition = as_expr(condition)
        self._forget()
        self._keep.append(condition)
        self._assume(condition, True, within)

    def note_aliases(self, pointers: Iterable[Var]) -> None:
        """Know that the memory behind ``pointers`` goes by several names here, so that a store to one of them may change
        what another reads."""
        self._aliased.update(pointers)

    def may_change(self, value: Any, within: Any) -> bool:
        """Whether ``value`` may change while ``within`` runs, as :func:`tir.aliases.may_change`, with the names noted here."""
        return may_change(value, within, self._aliased)

    def assume_sizes(self, buffers: Iterable[Any]) -> None:
        """Assume that no dimension of ``buffers`` is negative: an argument has its size, memory can be allocated."""
        for buffer in buffers:
            for size in buffer.shape:
                if not isinstance(size, IntImm):
                    self.assume(size >= 0)

    def _assume(self, e: Expr, truth: bool, within: Any = None) -> None:
        if isinstance(e, IntImm):
            return
        if isinstance(e, Call) and e.op == "likely":
            self._assume(e.args[0], truth, within)
        elif isinstance(e, Not):
            self._assume(e.a, not truth, within)
        elif (isinstance(e, And) and truth) or (isinstance(e, Or) and not truth):
            self._assume(e.a, truth, within)
            self._assume(e.b, truth, within)
        elif within is None or not self.may_change(e, within):
            self._assume_atom(e, truth)
            named = self._names.get(e) if isinstance(e, Var) else None
            if named is not None:
                self._assume(named, truth, within)

    def _assume_atom(self, e: Expr, truth: bool) -> None:
        self.truths[key(e)] = truth
        if isinstance(e, Comparison) and type(e) in OPPOSITE and is_index(e.a.dtype):
            kind: Any = type(e) if truth else OPPOSITE[type(e)]
            self.truths[key(OPPOSITE[type(e)](e.a, e.b))] = not truth
            self._assume_comparison(kind, e.a, e.b)

    def _assume_comparison(self, kind: type, a: Expr, b: Expr) -> None:
        form = value_form(self, a).minus(value_form(self, b))
        if kind is NE:  # an end of what it is known to be within
            low, high = self.fact_bound(form) or UNBOUNDED
            kind = GT if low == -form.const else LT if high == -form.const else NE
        if kind in (GT, GE, EQ):
            fact = form.copy()
            fact.const -= kind is GT
            self._add_fact(fact)
        if kind in (LT, LE, EQ):
            fact = form.scaled(-1)
            fact.const -= kind is LT
            self._add_fact(fact)
        if kind is EQ:
            atom = form.single()
            if isinstance(atom, (FloorMod, Mod)) and isinstance(atom.b, IntImm) and atom.b.value > 0:
                # x % m == r says x = m*k + r
                divisor, base = atom.b.value, -form.const
                if isinstance(atom, FloorMod) or base == 0:
                    whole = linear(atom.a)
                    base, whole.const = base - whole.const, 0
                    known = self.remainders.get(whole.key(), NOTHING)
                    self.remainders[whole.key()] = both(known, (divisor, base % divisor))

    def _add_fact(self, fact: Linear) -> None:
        """Assume ``fact >= 0``."""
        if fact.is_const:
            return
        divisor = gcd(*(c for _, c in fact.items()))
        if divisor > 1:
            reduced = Linear(fact.const // divisor)
            for factors, c in fact.items():
                reduced.add_term(factors, c // divisor)
            fact = reduced
        terms = fact.terms_key()
        known, _ = self._fact_bounds.get(terms, UNBOUNDED)
        if known is not None:
            if known >= -fact.const:
                return
            self.facts = [other for other in self.facts if other.terms_key() != terms]  # that one follows from this
        self._keep.append(fact)
        self.facts.append(fact)
        sign = next(iter(fact.terms.values()))[1]
        bound: Interval = (-fact.const, None)
        if len(fact.terms) == 1 and sign in (1, -1):
            (factors, _) = next(iter(fact.terms.values()))
            if len(factors) == 1:
                atom = key(factors[0])
                limit: Interval = bound if sign == 1 else (None, fact.const)
                self.atom_bounds[atom] = meet(self.atom_bounds.get(atom, UNBOUNDED), limit)
                self._add_quotient(factors[0], limit)
        for form_key, limit in ((terms, bound), (fact.scaled(-1).terms_key(), (None, fact.const))):
            self._fact_bounds[form_key] = meet(self._fact_bounds.get(form_key, UNBOUNDED), limit)

    def _add_quotient(self, atom: Any, limit: Interval) -> None:
        """The bounds of ``a`` implied by bounds of a quotient ``a // d``: ``q * d <= a < (q + 1) * d``."""
        if not isinstance(atom, FloorDiv) or not isinstance(atom.b, IntImm) or atom.b.value <= 0:
            return
        (low, high), divisor, form = limit, atom.b.value, value_form(self, atom.a)
        if low is not None:
            fact = form.copy()
            fact.const -= low * divisor
            self._add_fact(fact)
        if high is not None:
            fact = form.scaled(-1)
            fact.const += high * divisor + divisor - 1
            self._add_fact(fact)

    def fact_bound(self, form: Linear) -> Interval | None:
        """Bounds of ``form`` without its constant, from the assumed conditions."""
        if not self._fact_bounds or not form.terms:
            return None
        divisor = gcd(*(c for _, c in form.items()))
        found = self._fact_bounds.get(frozenset((k, c // divisor) for k, (_, c) in form.terms.items()))
        if found is None:
            return None
        lo, hi = found
        return (None if lo is None else lo * divisor), (None if hi is None else hi * divisor)

    @property
    def has_symbols(self) -> bool:
        """Whether any assumption cannot be represented by intervals."""
        return bool(self.facts) or any(k[1] is not None for k in self._ranges.values())

    # ------------------------------------------------------------ questions

    def bound(self, e: Any) -> Interval:
        """Inclusive integer bounds ``(lo, hi)`` of an integer expression; None on a side where none was found."""
        return bound_of(self, as_expr(e))

    def bound_linear(self, form: Linear) -> Interval:
        return bound_of_linear(self, form)

    def modular(self, e: Any) -> Fact:
        """``(coeff, base)`` with ``e = coeff * k + base`` for some integer k; ``(0, v)`` says e is the constant v."""
        return modular_of(self, as_expr(e))

    def simplify(self, e: Any) -> Expr:
        """An equal expression in canonical form; the same object when it already is."""
        asked = as_expr(e)
        return asked if type(asked) is IntImm else Simplifier(self).visit(asked)

    def simplify_index(self, e: Any) -> Expr:
        """``e`` simplified, but as it is where it is constant only because of variables of one value: an iterator of
        extent 1 stays the index of its axis.

        >>> from tir.expr import Var
        >>> i, r = Var("i"), Var("r")
        >>> analyzer = Analyzer({i: Range(as_expr(0), as_expr(1)), r: Range(as_expr(0), as_expr(4))})
        >>> analyzer.simplify_index(i), analyzer.simplify_index(i * 2 + r), analyzer.simplify_index(r // 4)
        (i, r, 0)
        """
        asked = as_expr(e)
        made = self.simplify(asked)
        return asked if is_const(made) and any(is_const(self.simplify(v)) for v in free_vars(asked)) else made

    def can_prove(self, condition: Any) -> bool:
        """Whether ``condition`` is proved under the assumptions; not if it has effects, which may change what it gives."""
        asked = as_expr(condition)
        return is_pure(asked) and Prover(self).holds(asked)

    def unproved(self, e: Expr, values: Range) -> list[Expr]:
        """What is not proved of ``e`` being one of ``values``: none, one or both of the conditions on their ends.

        >>> from tir.expr import Var
        >>> i, analyzer = Var("i"), Analyzer()
        >>> analyzer.bind(i, Range(as_expr(0), as_expr(4)))
        >>> [analyzer.unproved(e, Range(as_expr(0), as_expr(8))) for e in (i * 2, i * 3)]
        [[], [i * 3 < 8]]
        """
        if type(values.min) is IntImm and type(values.extent) is IntImm and is_pure(e):
            (low, high), first = self.bound(e), values.min.value
            if low is not None and high is not None and first <= low and high < first + values.extent.value:
                return []
        ends = (e >= values.min, e < values.min + values.extent)
        return [end for end in ends if not self.can_prove(end)]

    def can_prove_equal(self, a: Any, b: Any) -> bool:
        """Whether ``a`` and ``b`` are proved to be equal; not if one has effects: two calls may give two values."""
        x, y = as_expr(a), as_expr(b)
        if type(x) is IntImm and type(y) is IntImm and x.dtype is y.dtype:
            return x.value == y.value
        if not (is_pure(x) and is_pure(y)):
            return False
        if key(x) == key(y):
            return True
        if is_index(x.dtype) and is_index(y.dtype):
            return Prover(self).equal(x, y)
        return key(self.simplify(x)) == key(self.simplify(y))

    def prove_linear(self, form: Linear) -> bool:
        """Whether ``form >= 0`` is proved."""
        return Prover(self).nonneg(form)
