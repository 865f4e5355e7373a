"""Proving conditions: differences of linear forms proved nonnegative, by intervals, symbolic bounds and facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    Max,
    Min,
    Not,
    Or,
    Var,
)
from .bounds import bound_of, bound_of_linear, is_exact, is_nonnegative, value_form
from .comparisons import OPPOSITE
from .linear import Linear, is_index, key, linear
from .modular import modular_of_linear

if TYPE_CHECKING:
    from .analyzer import Analyzer

_BUDGET = 80  # forms tried before giving up


class Prover:
    def __init__(self, ctx: Analyzer):
        self.ctx = ctx
        self.left = _BUDGET

    def holds(self, e: Expr) -> bool:
        if isinstance(e, IntImm):
            return bool(e.value)
        known = self.ctx.truths.get(key(e)) if self.ctx.truths else None
        if known is not None:
            return known
        if isinstance(e, And):
            return self.holds(e.a) and self.holds(e.b)
        if isinstance(e, Or):
            return self.holds(e.a) or self.holds(e.b) or self._simplified(e)
        if isinstance(e, Call) and e.op == "likely":
            return self.holds(e.args[0])
        if isinstance(e, Not):
            inner = e.a
            negated = OPPOSITE.get(type(inner))
            if negated is not None and is_index(inner.a.dtype):  # type: ignore[attr-defined]
                return self.holds(negated(inner.a, inner.b))  # type: ignore[attr-defined]
            return self._simplified(e)
        if isinstance(e, Comparison) and is_index(e.a.dtype):
            return self._comparison(e)
        return self._simplified(e)

    def _simplified(self, e: Expr) -> bool:
        simple = self.ctx.simplify(e)
        return isinstance(simple, IntImm) and bool(simple.value)

    def _comparison(self, e: Comparison) -> bool:
        if isinstance(e, EQ):
            return self.equal(e.a, e.b)
        diff = value_form(self.ctx, e.a).add(value_form(self.ctx, e.b), -1)
        if self._compare(e, diff):
            return True
        a, b = self.ctx.simplify(e.a), self.ctx.simplify(e.b)
        if a is e.a and b is e.b:
            return False
        return self._compare(e, value_form(self.ctx, a).add(value_form(self.ctx, b), -1))

    def _form(self, e: Expr) -> Linear:
        return value_form(self.ctx, e)

    def _compare(self, e: Comparison, diff: Linear) -> bool:
        """Whether ``e`` holds, whose operands differ by ``diff``, a form that may be changed."""
        if isinstance(e, (LT, LE)):
            diff = diff.scaled(-1)
        if isinstance(e, (GT, LT)):
            diff.const -= 1
        if isinstance(e, (GE, GT, LE, LT)):
            return self.nonneg(diff)
        if isinstance(e, NE):
            above, below = diff.copy(), diff.scaled(-1)
            above.const -= 1
            below.const -= 1
            if self.nonneg(above) or self.nonneg(below):
                return True
            coeff, base = modular_of_linear(self.ctx, diff)
            return base != 0 if coeff == 0 else base % coeff != 0
        return False

    def equal(self, a: Expr, b: Expr) -> bool:
        diff = linear(a).add(linear(b), -1)
        if diff.is_const:
            return diff.const == 0
        x, y = self.ctx.simplify(a), self.ctx.simplify(b)
        diff = linear(x).add(linear(y), -1)
        if diff.is_const:
            return diff.const == 0
        rest = linear(self.ctx.simplify(diff.build(a.dtype))) if diff.fits(a.dtype) else diff
        if rest.is_const:
            return rest.const == 0
        return self.nonneg(rest) and self.nonneg(rest.scaled(-1))

    def nonneg(self, form: Linear, depth: int = 6) -> bool:
        """Whether ``form >= 0`` is proved."""
        lo, hi = bound_of_linear(self.ctx, form)
        if lo is not None and lo >= 0:
            return True
        if (hi is not None and hi < 0) or depth == 0 or self.left <= 0:
            return False
        self.left -= 1
        cases = self._cases(form)
        if cases is not None and all(self.nonneg(case, depth - 1) for case in cases):
            return True
        return any(self.nonneg(lower, depth - 1) for lower in self._lower_forms(form))

    def _cases(self, form: Linear) -> list[Linear] | None:
        """The forms for each operand of a least (or, subtracted, greatest) that all have to be >= 0 for ``form`` to be."""
        for term_key, (factors, c) in form.terms.items():
            atom: Any = factors[0]
            if len(factors) == 1 and isinstance(atom, Min if c > 0 else Max):
                return [form.replaced((term_key,), self._form(e).scaled(c)) for e in (atom.a, atom.b)]
        return None

    def _lower_forms(self, form: Linear):
        """Forms that are <= ``form``, each with one atom replaced by its bound or one fact subtracted."""
        for term_key, (factors, c) in list(form.terms.items()):
            for position, atom in enumerate(factors):
                others = factors[:position] + factors[position + 1 :]
                if others and not all(is_nonnegative(self.ctx, f) for f in others):
                    continue
                for replacement in self._atom_bounds(atom, c > 0, abs(c) if not others else 1):
                    lower = form.copy()
                    del lower.terms[term_key]
                    product = replacement
                    for other in others:
                        product = product.times(self._form(other))
                    # a bound given for |c| * atom has the coefficient inside
                    lower.add(product, c if others else (1 if c > 0 else -1))
                    yield lower
        for fact in self.ctx.facts:
            for term_key, (_, a) in fact.terms.items():
                have = form.terms.get(term_key)
                if have is not None and have[1] % a == 0 and have[1] // a > 0:
                    yield form.copy().add(fact, -(have[1] // a))

    def _atom_bounds(self, atom: Expr, lower: bool, times: int):
        """Linear forms bounding ``times * atom`` from below (``lower``) or above."""
        if isinstance(atom, Var):
            low, high = self.ctx.symbolic_bound(atom)
            bound = low if lower else high
            if bound is not None:
                yield bound.scaled(times)
        elif isinstance(atom, FloorDiv) and isinstance(atom.b, IntImm) and atom.b.value > 0:
            yield from self._quotient_bounds(atom, atom.b.value, lower, times)
        elif isinstance(atom, FloorMod) and not isinstance(atom.b, IntImm):
            lo, _ = bound_of(self.ctx, atom.b)
            if lo is not None and lo > 0 and not lower:
                form = self._form(atom.b)
                form.const -= 1
                yield form.scaled(times)
        elif isinstance(atom, Max if lower else Min):
            yield self._form(atom.a).scaled(times)
            yield self._form(atom.b).scaled(times)

    def _quotient_bounds(self, atom: Any, d: int, lower: bool, times: int):
        """:meth:`_atom_bounds` of a quotient by ``d``."""
        form = self._form(atom.a)
        if times % d == 0:
            # x - (d-1) <= d * (x // d) <= x
            if lower:
                form.const -= d - 1
            yield form.scaled(times // d)
            return
        for inner in self._form_bounds(form, lower):
            if inner.is_const:
                yield Linear(inner.const // d * times)
            elif is_exact(self.ctx, inner.build(atom.dtype)):
                yield linear(FloorDiv(inner.build(atom.dtype), atom.b)).scaled(times)

    def _form_bounds(self, form: Linear, lower: bool):
        for term_key, (factors, c) in list(form.terms.items()):
            if len(factors) == 1:
                for bound in self._atom_bounds(factors[0], (c > 0) == lower, abs(c)):
                    out = form.copy()
                    del out.terms[term_key]
                    yield out.add(bound, 1 if c > 0 else -1)
