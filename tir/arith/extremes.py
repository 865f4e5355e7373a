"""Least and greatest of index expressions, as operands of a lattice: what another one bounds is dropped, what all have in
common stands outside, and a sum goes inside where that cancels something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtype import DType
from ..expr import Expr, FloorDiv, FloorMod, Max, Min, Mod
from .bounds import bound_of_linear
from .linear import Linear, key, linear

if TYPE_CHECKING:
    from .analyzer import Analyzer

_DUAL: dict[Any, Any] = {Min: Max, Max: Min}
_ORDERED = (Min, Max, FloorDiv, FloorMod, Mod)  # atoms whose order to others follows from what they are made of


def operands(e: Expr, kind: Any) -> list[Expr]:
    """The operands of nested ``kind`` nodes, in order."""
    return operands(e.a, kind) + operands(e.b, kind) if isinstance(e, kind) else [e]  # type: ignore[attr-defined]


def extreme_form(ctx: Analyzer, kind: Any, forms: list[Linear], dtype: DType) -> Linear:
    """The ``kind`` (Min or Max) of ``forms``.

    >>> from tir.arith import Analyzer
    >>> from tir.expr import Var
    >>> x, y = Var("x"), Var("y")
    >>> extreme_form(Analyzer(), Min, [linear(Max(x, y)), linear(x), linear(x + 3)], x.dtype).build(x.dtype)
    x
    """
    kept: list[Linear] = []
    for form in forms:
        if not any(_stands_for_both(ctx, kind, k, form) for k in kept):
            kept = [k for k in kept if not _stands_for_both(ctx, kind, form, k)]
            kept.append(form)
    kept = _factored(ctx, kind, kept, dtype)
    common = _common(kept)
    inner = [form.minus(common) for form in kept]
    if len(kept) == 1 or sum(map(_length, inner)) + _length(common) >= sum(map(_length, kept)):
        common, inner = Linear(), kept
    # constants last
    inner.sort(key=lambda form: form.is_const)
    if len(inner) == 1:
        return inner[0]
    total = inner[0].build(dtype)
    for form in inner[1:]:
        total = kind(total, form.build(dtype))
    common.add_term((total,), 1)
    return common


def _stands_for_both(ctx: Analyzer, kind: Any, a: Linear, b: Linear) -> bool:
    """Whether kind(a, b) is ``a``."""
    gap = b.minus(a) if kind is Min else a.minus(b)
    lo, hi = bound_of_linear(ctx, gap)
    if lo is not None and lo >= 0:
        return True
    if hi is not None and hi < 0:
        return False
    ordered = bool(ctx.facts) or any(isinstance(f, _ORDERED) for factors, _ in gap.items() for f in factors)
    return ordered and ctx.prove_linear(gap)


def _factored(ctx: Analyzer, kind: Any, kept: list[Linear], dtype: DType) -> list[Linear]:
    """min(max(x, y), max(x, z)) = max(x, min(y, z)), and so for max of min."""
    dual = _DUAL[kind]
    for n, first in enumerate(kept):
        for other in kept[:n]:
            atoms: list[Any] = [form.single() for form in (other, first) if not form.const]
            pair = [operands(atom, dual) for atom in atoms if isinstance(atom, dual)]
            if len(pair) < 2:
                continue
            shared = {key(e) for e in pair[0]} & {key(e) for e in pair[1]}
            if shared:
                rest = [
                    extreme_form(ctx, dual, [linear(e) for e in side if key(e) not in shared], dtype) for side in pair
                ]
                both = [linear(e) for e in pair[0] if key(e) in shared]
                made = extreme_form(ctx, dual, [*both, extreme_form(ctx, kind, rest, dtype)], dtype)
                return _factored(ctx, kind, [made if k is other else k for k in kept if k is not first], dtype)
    return kept


def _common(forms: list[Linear]) -> Linear:
    """The terms that all of ``forms`` have."""
    shared = Linear(forms[0].const if all(f.const == forms[0].const and not f.is_const for f in forms) else 0)
    for term_key, (factors, c) in forms[0].terms.items():
        if all(f.terms.get(term_key, ((), 0))[1] == c for f in forms[1:]):
            shared.add_term(factors, c, term_key)
    return shared


def _length(form: Linear) -> int:
    return len(form.terms) + bool(form.const or form.is_const)


def gathered(ctx: Analyzer, form: Linear, dtype: DType) -> Linear:
    """``form`` with terms moved into a least or greatest where they cancel: max(x - 11, y) + 11 is max(x, y + 11), and
    min(x, y) + max(x, y) is x + y."""
    while len(form.terms) + bool(form.const) > 1:
        made = _moved_in(ctx, form, dtype)
        if made is None:
            break
        form = made
    return form


def _moved_in(ctx: Analyzer, form: Linear, dtype: DType) -> Linear | None:
    for term_key, (factors, c) in form.terms.items():
        atom: Any = factors[0]
        kind = type(atom)
        if kind not in _DUAL or len(factors) > 1:
            continue
        other = form.terms.get(key(_DUAL[kind](atom.a, atom.b)))
        if other is not None and other[1] == c:
            both = linear(atom.a).add(linear(atom.b)).scaled(c)
            return form.replaced((term_key, key(other[0][0])), both)
        parts = [linear(e) for e in operands(atom, kind)]
        for part in parts:
            moving = _cancelled(form, part, c)
            inner = [p.minus(moving) for p in parts]
            if not moving.is_zero and sum(map(_length, inner)) < sum(map(_length, parts)) + _length(moving):
                made = extreme_form(ctx, kind, inner, dtype).scaled(c)
                made.const += c * moving.const
                return form.replaced([term_key, *moving.terms], made)
    return None


def _cancelled(form: Linear, part: Linear, c: int) -> Linear:
    """The terms of ``part`` that, times ``c``, are in ``form`` with the other sign."""
    found = Linear(part.const if form.const == -c * part.const else 0)
    for term_key, (factors, k) in part.terms.items():
        if form.terms.get(term_key, ((), 0))[1] == -c * k:
            found.add_term(factors, k, term_key)
    return found
