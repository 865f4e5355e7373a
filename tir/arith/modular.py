"""Remainder facts: for an expression e, the pair (coeff, base) with e = coeff * k + base for some integer k.

``(0, v)`` means that e is the constant v, ``(1, 0)`` that nothing is known.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from ..expr import Cast, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Select, Var
from .linear import Linear, is_index, key, linear

if TYPE_CHECKING:
    from .analyzer import Analyzer

Fact = tuple[int, int]
NOTHING: Fact = (1, 0)


def _made(coeff: int, base: int) -> Fact:
    coeff = abs(coeff)
    return (coeff, base % coeff) if coeff else (0, base)


def _join(a: Fact, b: Fact) -> Fact:
    """The fact that holds for both of two alternatives."""
    return _made(gcd(a[0], b[0], a[1] - b[1]), a[1])


def modular_of_linear(ctx: Analyzer, form: Linear) -> Fact:
    coeff, base = 0, form.const
    for factors, times in form.items():
        c, b = 0, times
        for factor in factors:
            fc, fb = modular_of(ctx, factor)
            # (c*k + b)(fc*m + fb) = c*fc*km + c*fb*k + b*fc*m + b*fb
            c, b = gcd(c * fc, c * fb, b * fc), b * fb
        coeff, base = gcd(coeff, c), base + b
    return _made(coeff, base)


def modular_of(ctx: Analyzer, e: Expr) -> Fact:
    """The remainder fact of an integer expression."""
    if isinstance(e, IntImm):
        return 0, e.value
    known = ctx.remainders.get(key(e)) if ctx.remainders else None
    if known is not None:
        return known
    if isinstance(e, Var):
        lo, hi = ctx.var_bound(e)
        return (0, lo) if lo is not None and lo == hi else NOTHING
    if not is_index(e.dtype):
        return NOTHING
    if isinstance(e, (Min, Max)):
        return _join(modular_of(ctx, e.a), modular_of(ctx, e.b))
    if isinstance(e, Select):
        return _join(modular_of(ctx, e.true_value), modular_of(ctx, e.false_value))
    if isinstance(e, Cast):
        return modular_of(ctx, e.value) if e.value.dtype.is_int and is_index(e.value.dtype) else NOTHING
    if isinstance(e, FloorDiv) and isinstance(e.b, IntImm) and e.b.value > 0:
        coeff, base = modular_of(ctx, e.a)
        # (d*m*k + base) // d = m*k + base // d
        return _made(coeff // e.b.value, base // e.b.value) if coeff % e.b.value == 0 else NOTHING
    if isinstance(e, FloorMod) and isinstance(e.b, IntImm) and e.b.value > 0:
        coeff, base = modular_of(ctx, e.a)
        # x % d differs from x by a multiple of d
        if coeff % e.b.value == 0:
            return 0, base % e.b.value
        return _made(gcd(coeff, e.b.value), base)
    form = linear(e)
    if form.single() is e:
        return NOTHING
    return modular_of_linear(ctx, form)
