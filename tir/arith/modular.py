"""Remainder facts: for an expression e, the pair (coeff, base) with e = coeff * k + base for some integer k.

``(0, v)`` means that e is the constant v, ``(1, 0)`` that nothing is known.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from ..expr import Call, Cast, Div, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mod, Select, Var
from ..visit import is_pure
from .bounds import is_exact, value_form
from .linear import Linear, is_index, key

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


def both(a: Fact, b: Fact) -> Fact:
    """What two facts about one value say together (the Chinese remainder theorem).

    >>> both((3, 2), (5, 3))
    (15, 8)
    """
    if a[0] == 0 or b[0] == 0:
        return a if a[0] == 0 else b
    common = gcd(a[0], b[0])
    steps, off = divmod(b[1] - a[1], common)
    if off:
        return a  # no value has both: the code that this is about never runs
    period = b[0] // common
    return _made(a[0] * period, a[1] + a[0] * (steps * pow(a[0] // common, -1, period) % period))


def modular_of_linear(ctx: Analyzer, form: Linear) -> Fact:
    coeff, base = 0, form.const
    for factors, times in form.items():
        c, b = 0, times
        for factor in factors:
            fc, fb = modular_of(ctx, factor)
            # (c*k + b)(fc*m + fb) = c*fc*km + c*fb*k + b*fc*m + b*fb
            c, b = gcd(c * fc, c * fb, b * fc), b * fb
        coeff, base = gcd(coeff, c), base + b
    found = _made(coeff, base)
    if len(form.terms) > 1 and ctx.remainders:
        known = ctx.remainders.get(form.minus(Linear(form.const)).key(), NOTHING)
        found = both(found, _made(known[0], known[1] + form.const))
    return found


def modular_of(ctx: Analyzer, e: Expr) -> Fact:
    """The remainder fact of an integer expression."""
    if isinstance(e, IntImm):
        return 0, e.value
    found = _fact(ctx, e)
    return both(found, ctx.remainders.get(key(e), NOTHING)) if ctx.remainders else found


def _fact(ctx: Analyzer, e: Any) -> Fact:
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
        return modular_of(ctx, e.value) if is_index(e.value.dtype) and is_exact(ctx, e) else NOTHING
    if isinstance(e, (FloorDiv, Div, FloorMod, Mod)):
        return _of_division(ctx, type(e), e.a, e.b.value) if isinstance(e.b, IntImm) and e.b.value > 0 else NOTHING
    if isinstance(e, Call):
        return _of_bits(ctx, e)
    if not is_pure(e):
        return NOTHING
    form = value_form(ctx, e)
    return NOTHING if form.single() is e else modular_of_linear(ctx, form)


def _of_division(ctx: Analyzer, kind: Any, a: Expr, d: int) -> Fact:
    coeff, base = modular_of(ctx, a)
    if kind is FloorDiv or (kind is Div and base % d == 0):
        # (d*m*k + base) // d = m*k + base // d
        return _made(coeff // d, base // d) if coeff % d == 0 else NOTHING
    if kind is FloorMod and coeff % d == 0:
        return 0, base % d
    # a remainder differs from x by a multiple of d
    return NOTHING if kind is Div else _made(gcd(coeff, d), base)


def _of_bits(ctx: Analyzer, e: Call) -> Fact:
    """Shifts by a constant, and the bits that a constant mask keeps; a shift to the left may wrap around."""
    value = e.args[1].value if len(e.args) == 2 and isinstance(e.args[1], IntImm) else None
    if value is None:
        return NOTHING
    if e.op == "bitwise_and" and value:
        if value > 0 and value & (value + 1) == 0:
            return _of_division(ctx, FloorMod, e.args[0], value + 1)
        return value & -value, 0
    if e.op == "shift_right" and 0 <= value < e.dtype.bits:
        return _of_division(ctx, FloorDiv, e.args[0], 1 << value)
    if e.op == "shift_left" and 0 <= value < e.dtype.bits:
        coeff, base = modular_of(ctx, e.args[0])
        return _made(gcd(coeff << value, 1 << e.dtype.bits), base << value)
    return NOTHING
