"""Digits of a value, in mixed radix, put together again.

All that is done here follows from one identity, ``x == x // m * m + x % m``, read in three directions: the quotient goes
where the remainder or the value is there as well, the remainder where the value is, and terms that are whole multiples
go into a quotient where they complete a value there. Divisions and remainders of sums are distributed before
(:mod:`.divide`), in the same way here, so that pieces of one value cancel term by term.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any

from ..dtype import DType
from ..expr import Expr, FloorDiv, FloorMod
from ..node import once
from ..visit import LEAVES
from .bounds import bound_of_linear
from .divide import atom_form, exact_form, positive, quotient_form, remainder_form, take_multiples
from .linear import Linear, key, linear

if TYPE_CHECKING:
    from .analyzer import Analyzer


class _Piece:
    """A quotient or a remainder in a sum: the node, what it is multiplied by, and the terms where it stands."""

    __slots__ = ("node", "times", "terms")

    def __init__(self, node: Any):
        self.node = node
        self.times = Linear()
        self.terms: list[Hashable] = []


def recombine(ctx: Analyzer, form: Linear, dtype: DType) -> Linear:
    """``form`` with fewer divisions, where pieces of one value stand side by side.

    >>> from tir.arith import Analyzer
    >>> from tir.expr import Var
    >>> x = Var("x")
    >>> recombine(Analyzer(), linear(x // 12 * 24 + x % 12 // 4 * 8 + x % 4 * 2 + 1), x.dtype).build(x.dtype)
    x * 2 + 1
    """
    while len(form.terms) > 1:
        made = next(_smaller(ctx, form, dtype), None)
        if made is None:
            break
        form = made
    return form


def _smaller(ctx: Analyzer, form: Linear, dtype: DType) -> Iterator[Linear]:
    pieces = _pieces(form)
    for piece in pieces:
        rules = _QUOTIENT if isinstance(piece.node, FloorDiv) else _REMAINDER
        for rule in rules:
            for gone, new in rule(ctx, form, piece, pieces, dtype):
                made = form.replaced(gone, new)
                if size_of(made) < size_of(form):
                    yield made


def _pieces(form: Linear) -> list[_Piece]:
    found: dict[Hashable, _Piece] = {}
    for term_key, (factors, c) in form.terms.items():
        for position, factor in enumerate(factors):
            if not isinstance(factor, (FloorDiv, FloorMod)):
                continue
            piece = found.setdefault(key(factor), _Piece(factor))
            if term_key not in piece.terms:  # once for a square
                others = factors[:position] + factors[position + 1 :]
                if others:
                    piece.times.add_term(others, c)
                else:
                    piece.times.const += c
                piece.terms.append(term_key)
    return list(found.values())


_Change = tuple[list[Hashable], Linear]


def _whole_and_rest(
    ctx: Analyzer, form: Linear, piece: _Piece, pieces: list[_Piece], dtype: DType
) -> Iterator[_Change]:
    """q*m * (x // m) = q * x - q * (x % m), where the sum has q * (x % m) or -q * x already."""
    scale = exact_form(piece.times, piece.node.b)
    if scale is None:
        return
    whole = linear(piece.node.a).times(scale)
    minus = whole.scaled(-1)
    cancels = form.contains(minus)
    if not cancels and len(pieces) < 2:
        return
    rest = remainder_form(ctx, linear(piece.node.a), piece.node.b, dtype).times(scale)
    if cancels:
        yield [*piece.terms, *minus.terms], Linear(whole.const).add(rest, -1)
    if form.contains(rest):
        yield [*piece.terms, *rest.terms], whole.add(Linear(-rest.const))


def _rest_of_whole(ctx: Analyzer, form: Linear, piece: _Piece, pieces: list[_Piece], dtype: DType) -> Iterator[_Change]:
    """k * (x % m) = k * x - k*m * (x // m), where the sum has -k * x already."""
    minus = linear(piece.node.a).times(piece.times).scaled(-1)
    if form.contains(minus):
        by = linear(piece.node.b).times(piece.times).scaled(-1)
        quotient = quotient_form(ctx, linear(piece.node.a), piece.node.b, dtype).times(by)
        yield [*piece.terms, *minus.terms], quotient.add(Linear(-minus.const))


def _absorbed(ctx: Analyzer, form: Linear, piece: _Piece, pieces: list[_Piece], dtype: DType) -> Iterator[_Change]:
    """c * (x // m) + c*k * y = c * ((x + k*m*y) // m), where x + k*m*y has fewer divisions than x and y have."""
    for other in pieces:
        if other is piece or not isinstance(other.node, FloorDiv):
            continue
        ratio = _ratio(other.times, piece.times, dtype)
        more = None if ratio is None else linear(piece.node.b).times(ratio)
        if more is None or exact_form(more, other.node.b) is None:
            continue
        inner = linear(piece.node.a).add(more.times(atom_form(other.node)))
        made = recombine(ctx, inner, dtype)
        if size_of(made)[0] < size_of(inner)[0] and _no_larger(ctx, made, piece, other):
            yield [*piece.terms, *other.terms], quotient_form(ctx, made, piece.node.b, dtype).times(piece.times)


def _no_larger(ctx: Analyzer, made: Linear, piece: _Piece, other: _Piece) -> bool:
    """Whether ``made`` fits where the sum did: it stood there, it is the sum up to a factor, or its bounds are in the type."""
    if made.terms_key() == linear(other.node.a).terms_key() or exact_form(piece.times, piece.node.b) is not None:
        return True
    low, high = bound_of_linear(ctx, made)
    dtype = piece.node.dtype
    return low is not None and high is not None and dtype.min_value <= low and high <= dtype.max_value


def _ratio(a: Linear, b: Linear, dtype: DType) -> Linear | None:
    """a / b where it is exact."""
    if b.is_const:
        quotient, rest = take_multiples(a if b.const > 0 else a.scaled(-1), abs(b.const))
        return quotient if rest.is_zero else None
    return exact_form(a, b.build(dtype)) if b.fits(dtype) else None


def _opposite(ctx: Analyzer, form: Linear, piece: _Piece, pieces: list[_Piece], dtype: DType) -> Iterator[_Change]:
    """k * (x % m) = k * (m - 1) - k * ((-1 - x) % m), where the sum has k * ((-1 - x) % m) already."""
    m = positive(piece.node.b)
    if m is None or len(pieces) < 2:
        return
    mirrored = linear(piece.node.a).scaled(-1)
    mirrored.const -= 1
    rest = remainder_form(ctx, mirrored, piece.node.b, dtype).times(piece.times)
    if form.contains(rest) and not rest.is_const:
        yield [*piece.terms, *rest.terms], piece.times.scaled(m - 1).add(Linear(-rest.const))


_Rule = Callable[..., Iterator[_Change]]
_QUOTIENT: tuple[_Rule, ...] = (_whole_and_rest, _absorbed)
_REMAINDER: tuple[_Rule, ...] = (_rest_of_whole, _opposite)


def size_of(form: Linear) -> tuple[int, int]:
    """How many divisions a form has, and how many terms."""
    return sum(_divisions(f) for factors, _ in form.items() for f in factors if type(f) not in LEAVES), len(form.terms)


@once
def _divisions(e: Any) -> int:
    inner = sum(_divisions(c) for c in e.children() if isinstance(c, Expr) and type(c) not in LEAVES)
    return isinstance(e, (FloorDiv, FloorMod)) + inner
