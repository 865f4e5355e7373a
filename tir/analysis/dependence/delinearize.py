"""Delinearization of a fused loop over symbolic sizes: ``f // m`` and ``f % m``, which exact sets cannot represent.

The digits of a number determine it, and are ordered lexicographically as it is. With these constraints on pairs of
iterations, the digits become coordinates, and the product of sizes that bounds the loop becomes a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...arith import Analyzer
from ...arith.linear import key
from ...expr import Expr, FloorDiv, FloorMod, IntImm, Mul, Var, const, is_const
from ...function import PrimFunc
from ...poly import Formula, Names, NotAffine, Relation
from ...stmt import For
from ...visit import free_vars, rewrite, uses_var, walk

Digit = tuple[Expr, Expr | None, list[Any]]  # by, radix and uses of ``value // by % radix``; no radix: unbounded


@dataclass(frozen=True)
class MixedRadix:
    """``value`` in a mixed radix: its digits, the highest first."""

    value: Expr
    variables: tuple[Var, ...]


def delinearized(loop: For) -> tuple[For, list[MixedRadix]] | None:
    """``loop`` with the digits of its fused variables as loops directly inside it; None if it has none.

    The result over-approximates the iterations of the loop: it is for questions about all iterations. Bounds that are
    not quasi-affine become parameters.

    >>> from tir.script import parse
    >>> f = parse('''
    ... @T.prim_func
    ... def f(a: T.handle, n: T.int32, m: T.int32):
    ...     A = T.match_buffer(a, (n, m), "float32")
    ...     for i in range(n * m):
    ...         A[i // m, i % m] = 1.0
    ... ''')
    >>> loop, (digits,) = delinearized(f.body)
    >>> [v.name for v in digits.variables], loop.body.body.body.indices[1].name
    (['i_1', 'i_0'], 'i_0')
    """
    swaps: dict[int, Var] = {}
    made: list[MixedRadix] = []
    wrappers: list[tuple[Var, Expr]] = []
    for value, digits in _digits(loop.body):
        order = _in_order(digits)
        if order is None:
            continue
        name = next((v.name for v in free_vars(value)), "f")
        variables = []
        for place, (_, radix, items) in enumerate(order):
            var = Var(f"{name}_{place}", items[0].dtype)
            variables.insert(0, var)
            wrappers.insert(0, (var, Var("unknown", var.dtype) if radix is None else radix))
            swaps.update((id(item), var) for item in items)
        made.append(MixedRadix(value, tuple(variables)))
    if not made:
        return None
    body = rewrite(loop.body, lambda n: swaps.get(id(n)))
    for var, extent in reversed(wrappers):
        body = For(var, const(0, var.dtype), extent, "serial", body)
    return rewrite(loop.replace(body=body), _bounded), made


def _digits(body: Any) -> Iterator[tuple[Expr, list[Digit]]]:
    """Each value of which ``body`` uses digits, with these."""
    groups: dict[Any, tuple[Expr, dict[Any, Digit]]] = {}
    inside: set[int] = set()
    for item in walk(body):
        found = None if id(item) in inside else _digit(item)
        if found is not None:
            value, by, radix = found
            _, digits = groups.setdefault(key(value), (value, {}))
            place = (key(by), None if radix is None else key(radix))
            digits.setdefault(place, (by, radix, []))[2].append(item)
            inside.update(id(n) for n in walk(item))
    return ((value, list(digits.values())) for value, digits in groups.values())


def _digit(e: Any) -> tuple[Expr, Expr, Expr | None] | None:
    """(value, by, radix) of ``value // by % radix``, with ``by`` or ``radix`` symbolic; no ``radix``: unbounded."""
    if not isinstance(e, (FloorDiv, FloorMod)) or (isinstance(e.b, IntImm) and not isinstance(e.a, FloorDiv)):
        return None
    if isinstance(e, FloorDiv):
        return None if isinstance(e.b, IntImm) else (e.a, e.b, None)
    if isinstance(e.a, FloorDiv):
        constant = isinstance(e.b, IntImm) and isinstance(e.a.b, IntImm)
        return None if constant else (e.a.a, e.a.b, e.b)
    return e.a, const(1, e.dtype), e.b


def _in_order(found: Sequence[Digit]) -> list[Digit] | None:
    """The digits, lowest first, if each starts where the one before ends and the last is unbounded."""
    analyzer = Analyzer()
    left = list(found)
    order: list[Digit] = []
    start: Expr | None = const(1, found[0][0].dtype)
    while left:
        at = start
        following = None if at is None else next((d for d in left if analyzer.can_prove_equal(d[0], at)), None)
        if following is None:
            return None
        left = [d for d in left if d is not following]
        order.append(following)
        start = None if following[1] is None else following[0] * following[1]
    return order if start is None else None


def _bounded(item: Any) -> Any:
    if not isinstance(item, For):
        return None
    try:
        Formula(Names()).sum(item.extent)
    except NotAffine:
        return item.replace(extent=Var("unknown", item.extent.dtype))
    return None


def split_fused_loops(func: PrimFunc, known: dict[Any, Var]) -> PrimFunc | None:
    """``func`` with every fused loop of which only the digits are used as one loop for each digit: the same iterations in
    the same order. None where there is no such loop. ``known``: variables of digits, the same in several programs.

    >>> from tir.script import parse
    >>> f = parse('''
    ... @T.prim_func
    ... def f(a: T.handle, n: T.int32):
    ...     A = T.match_buffer(a, (4, n), "float32")
    ...     for i in range(4 * n):
    ...         A[i // n, i % n] = 1.0
    ... ''')
    >>> outer = split_fused_loops(f, {}).body
    >>> outer.loop_var.name, outer.extent, outer.body.loop_var.name, outer.body.extent
    ('i_1', 4, 'i_0', n)
    """
    body = rewrite(func.body, lambda item: _split(item, known) if isinstance(item, For) else None)
    return None if body is func.body else func.with_body(body)


def _split(loop: For, known: dict[Any, Var]) -> For | None:
    """``loop`` as one loop for each digit of its variable; None where something else of that is used."""
    digits = next((found for value, found in _digits(loop.body) if value is loop.loop_var), [])
    order = _in_order(digits) if digits and is_const(loop.min, 0) else None
    if order is None:
        return None
    swaps: dict[int, Var] = {}
    loops: list[tuple[Var, Expr]] = []
    for place, (by, radix, items) in enumerate(order):
        name = f"{loop.loop_var.name}_{place}"
        var = known.setdefault((loop.loop_var, key(by)), Var(name, loop.loop_var.dtype))
        loops.append((var, _highest(loop, by, known) if radix is None else radix))
        swaps.update((id(item), var) for item in items)
    body: Any = rewrite(loop.body, lambda n: swaps.get(id(n)))
    if uses_var(body, loop.loop_var):
        return None
    for var, extent in loops:
        body = loop.replace(loop_var=var, extent=extent, body=body)
    return body


def _highest(loop: For, by: Expr, known: dict[Any, Var]) -> Expr:
    """How many values the highest digit has; an unknown number where the extent is not seen to be a multiple of ``by``."""
    analyzer = Analyzer()
    for factor in (loop.extent.a, loop.extent.b) if isinstance(loop.extent, Mul) else ():
        if analyzer.can_prove_equal(factor * by, loop.extent):
            return factor
    return known.setdefault((loop.loop_var, "extent"), Var("unknown", loop.loop_var.dtype))


def pairs_of(digits: MixedRadix, first: Sequence[Var], second: Sequence[Var], names: Names) -> Relation | None:
    """The pairs of instances, over the loops ``first`` and ``second``, whose digits are ordered as their values are.

    None if the loops do not determine that. Variables of neither are the same for both instances.
    """
    around, other = set(first), set(second)
    if any((v in around) != (v in other) for v in free_vars(digits.value)):
        return None
    if not all(v in around and v in other for v in digits.variables):
        return None
    sides = []
    for loops in (first, second):
        formula = Formula(names)
        values = [formula.named(digits.value), *(formula.var(v) for v in digits.variables)]
        sides.append(formula.map([names.of(v) for v in loops], values))
    ordered = Relation.ordered_by(len(digits.variables))
    return sides[0].then(ordered).then(sides[1].reverse())
