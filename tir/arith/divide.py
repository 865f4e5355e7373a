"""Division of linear forms: quotient and remainder under what is known of the terms."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from ..dtype import DType
from ..expr import Expr, FloorDiv, FloorMod, IntImm, Max, Min, Var
from .bounds import bound_of, bound_of_linear
from .linear import Linear, key, linear
from .modular import modular_of_linear

if TYPE_CHECKING:
    from .analyzer import Analyzer


def divisors(value: int) -> list[int]:
    """The positive divisors; of 0, which all divide, the least."""
    if value == 0:
        return [1]
    small = [d for d in range(1, int(value**0.5) + 1) if value % d == 0]
    return sorted({*small, *(value // d for d in small)})


def fits(form: Linear, dtype: DType) -> bool:
    """Whether ``dtype`` has all constants of ``form``, those in its quotients, remainders, minima and maxima included."""
    return form.fits(dtype) and all(_operands_fit(f) for factors, _ in form.items() for f in factors)


def _operands_fit(e: Any) -> bool:
    if not isinstance(e, (FloorDiv, FloorMod, Min, Max)):
        return True
    return all(type(x) is Var or (linear(x).fits(e.dtype) and _operands_fit(x)) for x in (e.a, e.b))


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
    return quotient.add(atom_form(FloorDiv(rest.build(dtype), IntImm(c, dtype))))


def mod_form(ctx: Analyzer, form: Linear, c: int, dtype: DType) -> Linear:
    """``form % c`` for a constant c > 0."""
    # (c*q + r) % c = r % c
    _, rest = take_multiples(_without_remainders(form, IntImm(c, dtype)), c)
    if c == 2:  # x and -x are equally odd
        rest = _magnitudes(rest)
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
    if isinstance(atom, FloorDiv):
        inner = positive(atom.b)
        if inner is not None and inner * c <= dtype.max_value:
            # (x // a + s) % b = (x + s*a) % (a*b) // a
            deeper = linear(atom.a)
            deeper.const += rest.const * inner
            return div_form(ctx, mod_form(ctx, deeper, inner * c, dtype), inner, dtype)
    return atom_form(FloorMod(rest.build(dtype), IntImm(c, dtype)))


def quotient_form(ctx: Analyzer, form: Linear, b: Expr, dtype: DType) -> Linear:
    """``form // b``; a divisor that is not a constant is assumed not to be zero."""
    c = positive(b)
    if c is not None:
        return div_form(ctx, form, c, dtype)
    # (b*q + r) // b = q + r // b
    quotient, rest = take(form, b)
    if _surely_zero(b):
        return atom_form(FloorDiv(form.build(dtype), b))
    if rest.is_zero or _below(ctx, rest, b):
        return quotient
    atom = FloorDiv(rest.build(dtype), b)
    lo, hi = bound_of(ctx, atom)
    if lo is not None and lo == hi:
        quotient.const += lo
        return quotient
    split = _split_symbolic(ctx, rest, b)
    if split is not None:
        # (g*t + u) // (g*h) = t // h when 0 <= u < g and h > 0
        _, h, t, _ = split
        return quotient.add(quotient_form(ctx, t, h, dtype))
    return quotient.add(atom_form(atom))


def remainder_form(ctx: Analyzer, form: Linear, b: Expr, dtype: DType) -> Linear:
    """``form % b``; a divisor that is not a constant is assumed not to be zero."""
    c = positive(b)
    if c is not None:
        return mod_form(ctx, form, c, dtype)
    # (b*q + r) % b = r % b
    _, rest = take(_without_remainders(form, b), b)
    if _surely_zero(b):
        return atom_form(FloorMod(form.build(dtype), b))
    if rest.is_zero or _below(ctx, rest, b):
        return rest
    split = _split_symbolic(ctx, rest, b)
    if split is not None:
        # (g*t + u) % (g*h) = g * (t % h) + u when 0 <= u < g and h > 0
        g, h, t, u = split
        return remainder_form(ctx, t, h, dtype).times(linear(g)).add(u)
    return atom_form(FloorMod(rest.build(dtype), b))


def _surely_zero(b: Expr) -> bool:
    return isinstance(b, IntImm) and b.value == 0


def _below(ctx: Analyzer, form: Linear, b: Expr) -> bool:
    """Whether 0 <= form < b is proved."""
    lo, _ = bound_of_linear(ctx, form)
    if lo is None or lo < 0:
        return False
    gap = linear(b).minus(form)
    gap.const -= 1
    return ctx.prove_linear(gap)


def _split_symbolic(ctx: Analyzer, rest: Linear, b: Expr) -> tuple[Expr, Expr, Linear, Linear] | None:
    """b = g*h and rest = g*t + u with 0 <= u < g and h > 0, and t not zero: (g, h, t, u). Products of most factors first."""
    by = linear(b)
    if by.const or len(by.terms) != 1:
        return None
    ((whole, k),) = by.items()
    shared = [
        ([f for f in factors if any(f is w or key(f) == key(w) for w in whole)], gcd(c, k))
        for factors, c in rest.items()
    ]
    for factors, c in sorted(shared, key=lambda found: len(found[0]), reverse=True):
        others = _without(whole, tuple(factors))
        if others is None or not factors:
            continue
        g, h = (_monomial(*part).build(b.dtype) for part in ((tuple(factors), c), (others, k // c)))
        t, u = take(rest, g)
        if not t.is_zero and (bound_of(ctx, h)[0] or 0) > 0 and _below(ctx, u, g):
            return g, h, t, u
    return None


def _without_remainders(form: Linear, b: Expr) -> Linear:
    """``form`` up to multiples of ``b``, without remainders that make no difference: k * (x % u // l) is k * (x // l)
    where k * u // l is a multiple of ``b``."""
    for term_key, (factors, c) in form.terms.items():
        for position, atom in enumerate(factors):
            inner: Any = atom.a if isinstance(atom, FloorDiv) else atom
            if not isinstance(inner, FloorMod):
                continue
            others = _monomial(factors[:position] + factors[position + 1 :], c)
            size = linear(inner.b) if inner is atom else exact_form(linear(inner.b), atom.b)
            if size is not None and exact_form(others.times(size), b) is not None:
                whole = linear(inner.a if inner is atom else FloorDiv(inner.a, atom.b))
                return _without_remainders(form.replaced((term_key,), others.times(whole)), b)
    return form


def _magnitudes(form: Linear) -> Linear:
    out = Linear(form.const)
    for term_key, (factors, k) in form.terms.items():
        out.terms[term_key] = (factors, abs(k))
    return out


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


def take(form: Linear, divisor: Expr) -> tuple[Linear, Linear]:
    """form = divisor * quotient + rest, taking out the terms that are multiples of ``divisor``, which may be a sum."""
    c = positive(divisor)
    if c is not None:
        return take_multiples(form, c)
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
    quotient = exact_form(linear(a), b)
    return None if quotient is None else quotient.build(a.dtype)


def exact_form(form: Linear, divisor: Expr) -> Linear | None:
    """``form / divisor`` where it is exact, for a positive constant or a symbolic divisor."""
    quotient, rest = take(form, divisor)
    return quotient if rest.is_zero else None
