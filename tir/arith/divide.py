"""Division of linear forms: quotient and remainder under what is known of the terms, and recombination of splits."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from ..dtype import DType
from ..expr import Expr, FloorDiv, FloorMod, IntImm, Var
from .bounds import bound_of_linear
from .linear import Linear, key, linear
from .modular import modular_of_linear

if TYPE_CHECKING:
    from .analyzer import Analyzer


def atom_form(e: Expr) -> Linear:
    out = Linear()
    out.add_term((e,), 1)
    return out


def positive(e: Expr) -> int | None:
    return e.value if type(e) is IntImm and e.value > 0 else None


def _whole(lo: int | None, hi: int | None, c: int) -> int | None:
    """The k with every value of [lo, hi] in [k*c, (k+1)*c), if there is one."""
    if lo is None or hi is None or lo > hi or lo // c != hi // c:
        return None
    return lo // c


def take_multiples(form: Linear, c: int) -> tuple[Linear, Linear]:
    """form = c * quotient + rest, by coefficients; the rest's constant is in [0, c)."""
    quotient, rest = Linear(form.const // c), Linear(form.const % c)
    for term_key, (factors, k) in form.terms.items():
        if k % c == 0:
            quotient.add_term(factors, k // c, term_key)
        else:
            rest.add_term(factors, k, term_key)
    return quotient, rest


def _split_small(ctx: Analyzer, rest: Linear, c: int) -> tuple[int, Linear, Linear] | None:
    """rest = g*t + u with 1 < g < c, g | c and 0 <= u < g: (g, t, u). Largest g first."""
    divisors = sorted({gcd(k, c) for _, k in rest.items()} - {1}, reverse=True)
    for g in divisors:
        t, u = take_multiples(rest, g)
        k = _whole(*bound_of_linear(ctx, u), g)
        if k is not None:
            t.const += k
            u.const -= k * g
            return g, t, u
    return None


def div_form(ctx: Analyzer, form: Linear, c: int, dtype: DType) -> Linear:
    """``form // c`` for a constant c > 0."""
    if c == 1:
        return form.copy()
    # (c*q + r) // c = q + r // c
    quotient, rest = take_multiples(form, c)
    if rest.is_const:
        return quotient
    whole = _whole(*bound_of_linear(ctx, rest), c)
    if whole is not None:
        # k*c <= r < (k+1)*c: r // c = k
        quotient.const += whole
        return quotient
    small = _split_small(ctx, rest, c)
    if small is not None:
        # (g*t + u) // c = t // (c/g) when 0 <= u < g
        g, t, _ = small
        return quotient.add(div_form(ctx, t, c // g, dtype))
    atom = rest.single()
    if isinstance(atom, FloorDiv):
        inner = positive(atom.b)
        if inner is not None:
            if rest.const == 0 and isinstance(atom.a, FloorMod):
                modulus = positive(atom.a.b)
                if modulus is not None and modulus % (inner * c) == 0:
                    # (x % u // a) // b = x % u // (a*b)
                    return quotient.add(atom_form(FloorDiv(atom.a, IntImm(inner * c, dtype))))
            # (x // a + s) // b = (x + s*a) // (a*b)
            deeper = linear(atom.a)
            deeper.const += rest.const * inner
            return quotient.add(div_form(ctx, deeper, inner * c, dtype))
    if isinstance(atom, FloorMod) and rest.const == 0 and positive(atom.b) is not None and c % atom.b.value == 0:  # type: ignore
        return quotient
    if not (rest.fits(dtype) and c <= dtype.max_value):
        return quotient.add(atom_form(FloorDiv(form.minus(quotient.scaled(c)).build(dtype), IntImm(c, dtype))))
    return quotient.add(atom_form(FloorDiv(rest.build(dtype), IntImm(c, dtype))))


def mod_form(ctx: Analyzer, form: Linear, c: int, dtype: DType) -> Linear:
    """``form % c`` for a constant c > 0."""
    # (c*q + r) % c = r % c
    _, rest = take_multiples(form, c)
    if rest.is_const:
        return rest
    whole = _whole(*bound_of_linear(ctx, rest), c)
    if whole is not None:
        rest.const -= whole * c
        return rest
    coeff, base = modular_of_linear(ctx, rest)
    if coeff % c == 0:
        return Linear(base % c)
    small = _split_small(ctx, rest, c)
    if small is not None:
        # (g*t + u) % c = g * (t % (c/g)) + u when 0 <= u < g
        g, t, u = small
        return mod_form(ctx, t, c // g, dtype).scaled(g).add(u)
    atom = rest.single()
    if isinstance(atom, FloorMod):
        inner = positive(atom.b)
        if inner is not None and inner % c == 0:
            # (x % (m*c) + s) % c = (x + s) % c
            deeper = linear(atom.a)
            deeper.const += rest.const
            return mod_form(ctx, deeper, c, dtype)
    if isinstance(atom, FloorDiv):
        inner = positive(atom.b)
        if inner is not None and inner * c <= dtype.max_value:
            # (x // a + s) % b = (x + s*a) % (a*b) // a
            deeper = linear(atom.a)
            deeper.const += rest.const * inner
            return div_form(ctx, mod_form(ctx, deeper, inner * c, dtype), inner, dtype)
    return atom_form(FloorMod(rest.build(dtype), IntImm(c, dtype)))


def xor_parts(ctx: Analyzer, a: Linear, b: Linear) -> tuple[int, tuple[Linear, Linear], tuple[Linear, Linear]] | None:
    """a = g*t + u and b = g*v + w with 0 <= u, w < g for a power of two g > 1: (g, (t, v), (u, w)); None where no g
    makes one of the four zero."""
    powers = {k & -k for form in (a, b) for _, k in form.items()} - {1}
    most = bound_of_linear(ctx, a)[1], bound_of_linear(ctx, b)[1]
    powers |= {1 << hi.bit_length() for hi in most if hi is not None and hi > 0}
    for g in sorted(powers, reverse=True):
        (t, u), (v, w) = take_multiples(a, g), take_multiples(b, g)
        some = [not (x.is_const and x.const == 0) for x in (t, v, u, w)]
        if any(some[:2]) and not all(some) and all(_whole(*bound_of_linear(ctx, x), g) == 0 for x in (u, w)):
            return g, (t, v), (u, w)
    return None


def divide_symbolic(form: Linear, divisor: Expr) -> tuple[Linear, Linear]:
    """form = divisor * quotient + rest, taking out the terms that are multiples of ``divisor``, which may be a sum."""
    by = linear(divisor)
    if by.is_const:
        return Linear(), form
    lead = max(by.items(), key=lambda term: len(term[0]))
    quotient, rest = Linear(), form
    for factors, k in form.items():
        others = _without(factors, lead[0]) if k % lead[1] == 0 else None
        if others is not None:
            share = _monomial(others, k // lead[1])
            quotient.add(share)
            rest = rest.minus(share.times(by))
    return (quotient, rest) if _is_part(rest, form) else (Linear(), form)


def _without(factors: tuple[Expr, ...], divisor: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    """The product ``factors`` divided by another; None where it is no multiple of that."""
    left = list(factors)
    for wanted in map(key, divisor):
        position = next((n for n, f in enumerate(left) if key(f) == wanted), None)
        if position is None:
            return None
        del left[position]
    return tuple(left)


def _monomial(factors: tuple[Expr, ...], coefficient: int) -> Linear:
    made = Linear(0 if factors else coefficient)
    if factors:
        made.add_term(factors, coefficient)
    return made


def _is_part(rest: Linear, form: Linear) -> bool:
    """Whether ``rest`` is made of terms of ``form``."""
    return rest.const in (0, form.const) and rest.terms_key() <= form.terms_key()


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """a / b where it is exact.

    >>> m, n = Var("m"), Var("n")
    >>> exact_quotient(m * n + m, n + 1), exact_quotient(m * n, m + 1)
    (m, None)
    """
    form, by = linear(a), linear(b)
    if not by.is_const:
        quotient, rest = divide_symbolic(form, b)
    elif by.const > 0:
        quotient, rest = take_multiples(form, by.const)
    else:
        return None
    return quotient.build(a.dtype) if rest.is_const and rest.const == 0 else None


def _as_split(e: Expr) -> tuple[Expr, int, int | None] | None:
    """(x, lower, upper) when ``e`` is x % upper // lower; upper None for no modulus."""
    lower = 1
    if isinstance(e, FloorDiv):
        divisor = positive(e.b)
        if divisor is None:
            return None
        e, lower = e.a, divisor
        if not isinstance(e, FloorMod) or positive(e.b) is None or positive(e.b) % lower:  # type: ignore[operator]
            return e, lower, None
    if isinstance(e, FloorMod):
        upper = positive(e.b)
        return None if upper is None else (e.a, lower, upper)
    return None


def _split_expr(x: Expr, lower: int, upper: int | None, dtype: DType) -> Linear:
    if upper is not None:
        x = FloorMod(x, IntImm(upper, dtype))
    if lower != 1:
        x = FloorDiv(x, IntImm(lower, dtype))
    return linear(x) if upper is None and lower == 1 else atom_form(x)


def recombine(form: Linear, dtype: DType) -> Linear:
    """Recombine the pieces of a split: x//4*4 + x%4 = x, x%8//4*4 + x%4 = x%8, x - x//4*4 = x%4."""
    while True:
        pieces = []
        for term_key, (factors, c) in form.terms.items():
            if len(factors) == 1 and isinstance(factors[0], (FloorDiv, FloorMod)):
                split = _as_split(factors[0])
                if split is not None:
                    pieces.append((term_key, key(split[0]), split, c))
        if not pieces:
            return _recombine_symbolic(form)
        merged = _merge_two(form, pieces, dtype) or _merge_base(form, pieces, dtype)
        if merged is None:
            return _recombine_symbolic(form)
        form = merged


def _merge_two(form: Linear, pieces: list, dtype: DType) -> Linear | None:
    for high_key, x_key, (x, l1, u1), c1 in pieces:
        for low_key, y_key, (_, l2, u2), c2 in pieces:
            # (x % u1 // l1) * c1 + (x % l1 // l2) * c2 = (x % u1 // l2) * c2 when c1/c2 = l1/l2
            if high_key is not low_key and x_key == y_key and u2 == l1 and c1 * l2 == c2 * l1:
                return _put(form, (high_key, low_key), _split_expr(x, l2, u1, dtype), c2)
    return None


def _merge_base(form: Linear, pieces: list, dtype: DType) -> Linear | None:
    for piece_key, x_key, (x, lower, upper), c in pieces:
        base = form.terms.get(x_key)
        # x*b - (x // l)*(b*l) = (x % l)*b
        if upper is None and isinstance(x, Var) and base is not None and c == -base[1] * lower:
            return _put(form, (piece_key, x_key), _split_expr(x, 1, lower, dtype), base[1])
    return None


def _put(form: Linear, old: tuple, new: Linear, scale: int) -> Linear:
    """``form`` with the terms ``old`` replaced by ``scale * new`` where the first of them stood."""
    out, done = Linear(form.const), False
    for term_key, (factors, c) in form.terms.items():
        if term_key not in old:
            out.add_term(factors, c, term_key)
        elif not done:
            out.add(new, scale)
            done = True
    return out


def _recombine_symbolic(form: Linear) -> Linear:
    for term_key, (factors, c) in form.terms.items():
        if len(factors) < 2:
            continue
        for position, factor in enumerate(factors):
            if not isinstance(factor, FloorDiv):
                continue
            others = factors[:position] + factors[position + 1 :]
            if len(others) != 1 or key(others[0]) != key(factor.b):
                continue
            # (x // n) * n + x % n = x
            rest_key = key(FloorMod(factor.a, factor.b))
            rest = form.terms.get(rest_key)
            if rest is not None and rest[1] == c:
                return _recombine_symbolic(_put(form, (term_key, rest_key), linear(factor.a), c))
    return form
