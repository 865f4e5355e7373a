"""Comparisons of index expressions, given the difference of the two sides as a linear form: decided, or normalized."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from ..dtype import DType
from ..expr import EQ, FALSE, GE, GT, LE, LT, NE, TRUE, Expr
from .bounds import Interval, bound_of_linear, is_exact
from .linear import Linear
from .modular import modular_of_linear

if TYPE_CHECKING:
    from .analyzer import Analyzer

# Not (a op b) = a opposite b, for integers
OPPOSITE: dict[Any, Any] = {LT: GE, GE: LT, LE: GT, GT: LE, EQ: NE, NE: EQ}
# a op b = b mirrored a
MIRRORED: dict[Any, Any] = {LT: GT, GT: LT, LE: GE, GE: LE, EQ: EQ, NE: NE}


def leaves_one_value(ctx: Analyzer, kind: Any, diff: Linear) -> bool:
    """Whether a condition assumed leaves ``diff op 0`` one value to hold for, next to its limit.

    x >= c is assumed: x <= c is x == c, and x < c + 1 as well; likewise from above. Ranges of loops do not count:
    ``i < 1`` in a loop from zero stays an inequality, which says where the loop can be cut.
    """
    known = ctx.fact_bound(diff) if kind in (LT, LE, GT, GE) else None
    if known is None:
        return False
    low, high = (None if v is None else v + diff.const for v in known)
    return low == {LE: 0, LT: -1}.get(kind, ...) or high == {GE: 0, GT: 1}.get(kind, ...)


def by_bounds(kind: Any, a: tuple, b: tuple) -> Expr | None:
    """a op b of values in these intervals, if decided."""
    if kind in (GT, GE):
        kind, a, b = MIRRORED[kind], b, a
    below = a[1] is not None and b[0] is not None and a[1] < b[0]  # a < b everywhere
    below_eq = a[1] is not None and b[0] is not None and a[1] <= b[0]
    above = a[0] is not None and b[1] is not None and a[0] > b[1]
    above_eq = a[0] is not None and b[1] is not None and a[0] >= b[1]
    if kind is LT:
        return TRUE if below else FALSE if above_eq else None
    if kind is LE:
        return TRUE if below_eq else FALSE if above else None
    fixed = a[0] is not None and a[0] == a[1] == b[0] == b[1]
    apart = below or above
    if kind is EQ:
        return TRUE if fixed else FALSE if apart else None
    return FALSE if fixed else TRUE if apart else None


def decide(ctx: Analyzer, kind: Any, diff: Linear) -> Expr | None:
    """diff op 0, if decided."""
    decided = by_bounds(kind, bound_of_linear(ctx, diff), (0, 0))
    if decided is not None:
        return decided
    if kind in (EQ, NE):
        coeff, base = modular_of_linear(ctx, diff)
        if coeff and base % coeff:
            return FALSE if kind is EQ else TRUE
    if ctx.has_symbols:
        negative = diff.scaled(-1)
        # each claim is a form that must be >= 0
        claims: dict[Any, tuple[list[tuple[Linear, int]], list[tuple[Linear, int]]]] = {
            LT: ([(negative, -1)], [(diff, 0)]),
            LE: ([(negative, 0)], [(diff, -1)]),
            GT: ([(diff, -1)], [(negative, 0)]),
            GE: ([(diff, 0)], [(negative, -1)]),
            EQ: ([], [(diff, -1), (negative, -1)]),
            NE: ([(diff, -1), (negative, -1)], []),
        }
        for value, forms in zip((TRUE, FALSE), claims[kind]):
            for form, shift in forms:
                claim = form.copy()
                claim.const += shift
                if ctx.prove_linear(claim):
                    return value
    return None


def normal_form(ctx: Analyzer, e: Any, diff: Linear) -> Expr:
    """``e``, which compares ``diff`` with zero, as all comparisons of the same terms are written; ``e`` if that would not fit.

    Like terms cancel and common factors are divided out. What is left stands on the side where it is positive, the constant
    alone on the right: ``x + 3 < y``, ``x == y + 3``, ``x < 10``, ``x >= 10``. An inequality of terms with terms is ``<``, or
    ``<=`` if that needs no constant; one of terms with a constant is ``<`` or ``>=``, or ``> 0``.
    """
    kind, dtype = type(e), e.a.dtype
    smaller: Linear | None = diff
    while smaller is not None:
        diff, smaller = smaller, _reduce(ctx, kind, smaller)
    diff, strict = diff.copy(), {LE: LT, GT: GE}.get(kind, kind)
    diff.const -= strict is not kind  # x <= k is x < k + 1
    positive = any(c > 0 for _, c in diff.items())
    negative = any(c < 0 for _, c in diff.items())
    if strict in (EQ, NE):
        turned = diff.const > 0 or (diff.const == 0 and next(diff.items())[1] < 0) if positive == negative else negative
        diff = diff.scaled(-1) if turned else diff
    elif not positive or (negative and strict is GE):
        # d < 0 is -d - 1 >= 0, and the other way round
        diff, strict = diff.scaled(-1), OPPOSITE[strict]
        diff.const -= 1
    low, high = Linear(), Linear()
    for term_key, (factors, c) in diff.terms.items():
        (low if c > 0 else high).add_term(factors, abs(c), term_key)
    low.const, high.const = (diff.const, 0) if diff.const > 0 and high.terms else (0, -diff.const)
    if high.const == 1 and ((strict is LT and high.terms) or strict is GE):
        strict, high.const = {LT: LE, GE: GT}[strict], 0
    sides = low, high
    if not all(side.fits(dtype) and _is_in(bound_of_linear(ctx, side), dtype) for side in sides):
        return e
    made = strict(*(side.build(dtype) for side in sides))
    return made if is_exact(ctx, made.a) and is_exact(ctx, made.b) else e


def _is_in(bound: Interval, dtype: DType) -> bool:
    """Whether no end that is known is outside of the type."""
    return all(end is None or dtype.min_value <= end <= dtype.max_value for end in bound)


def _reduce(ctx: Analyzer, kind: Any, diff: Linear) -> Linear | None:
    """diff op 0 as a smaller form op 0, dividing by a g > 1; None when there is none."""
    sizes = [abs(c) for _, c in diff.items()]
    for g in sorted({*sizes, gcd(*sizes)} - {1}, reverse=True):
        t, u = Linear(), Linear()
        for term_key, (factors, c) in diff.terms.items():
            (t if c % g == 0 else u).add_term(factors, c // g if c % g == 0 else c, term_key)
        if u.is_const:
            # g*t + k < 0: t < -k/g; the nearest integer on the right side
            k = diff.const
            if kind in (EQ, NE):
                if k % g:
                    return None
                t.const = k // g
            elif kind in (LT, GE):
                t.const = -((-k + g - 1) // g)  # t < ceil(-k / g)
            else:
                t.const = -((-k) // g)  # t <= floor(-k / g)
            return t
        if kind in (LT, GE):
            # g*t + u < g*m, 0 <= u < g: t < m
            shifted = u.copy()
            shifted.const = diff.const % g
            lo, hi = bound_of_linear(ctx, shifted)
            if lo is not None and hi is not None and lo >= 0 and hi < g:
                t.const = diff.const // g
                return t
        elif kind in (LE, GT):
            # x <= k is x < k + 1
            strict = diff.copy()
            strict.const -= 1
            found = _reduce(ctx, LT, strict)
            if found is not None and any(c % g for _, c in diff.items()):
                found.const += 1
                return found
    return None
