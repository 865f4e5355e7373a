"""Quasi-affine iterator maps: index expressions as sums of splits of loop variables.

A *split* is ``(source // lower) % extent``; its source is a loop variable, or a fused sum of splits. An *index* is a
sum of scaled splits plus a base. Split, fuse, reorder and layout changes produce this form, and it can be inverted
(:mod:`tir.arith.inverse`) and divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

from ..buffer import Range
from ..expr import (
    GE,
    GT,
    LE,
    LT,
    TRUE,
    Add,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Sub,
    Var,
    all_of,
    conjuncts,
    const,
    is_const,
    max_,
    min_,
    one,
)
from ..node import record
from ..visit import nodes_of, uses_var
from .analyzer import Analyzer
from .divide import exact_quotient
from .linear import Linear, is_index, linear


@dataclass(eq=False)
class Fused:
    """A sum of scaled splits that fill [0, extent) without gaps; ``extent`` less than full after a predicate."""

    parts: tuple[Split, ...]  # most significant first
    extent: Expr
    full: Expr


@record
class Split:
    """scale * ((source // lower) % extent)"""

    source: Var | Fused
    lower: Expr
    extent: Expr
    scale: Expr


@record
class IterSum:
    """One index: splits, most significant first, plus a base free of the loop variables."""

    splits: tuple[Split, ...]
    base: Expr
    extent: Expr


@record
class IterMap:
    """The map found: ``indices`` in terms of ``domains``. ``padded`` when a predicate cuts the domain."""

    indices: tuple[IterSum, ...]
    domains: Mapping[Var, Range]
    fused: tuple[Fused, ...] = ()

    @property
    def extents(self) -> tuple[Expr, ...]:
        """The extent of each index over the whole domain."""
        return tuple(i.extent for i in self.indices)


@dataclass
class Failure:
    """Why no map was found; false, so that ``if not detect_iter_map(...)`` reads well."""

    reason: Callable[[], str]

    @property
    def error(self) -> str:
        """The reason as a sentence (rendered on demand)."""
        return self.reason()

    def __bool__(self) -> bool:
        return False


class _NotAffine(Exception):
    def __init__(self, reason: Callable[[], str]):
        super().__init__()
        self.reason = reason


@dataclass
class _Parser:
    ctx: Analyzer
    domains: Mapping[Var, Range]
    limits: dict[Any, Expr]  # sum (by key, without its constant) -> least upper bound, from the predicate
    fused: dict[Any, Fused] = field(default_factory=dict)
    used_limits: set[Any] = field(default_factory=set)

    def one(self, e: Expr) -> Expr:
        return const(1, e.dtype)

    def mul(self, a: Expr, b: Expr) -> Expr:
        return self.ctx.simplify(a * b)

    def equal(self, a: Expr, b: Expr) -> bool:
        return self.ctx.can_prove_equal(a, b)

    def index(self, e: Expr) -> IterSum:
        """``e`` as a sum, its splits ordered by significance and checked to be without gaps from scale 1 up."""
        form = linear(e)
        splits, base = self.terms(form, e)
        ordered, extent = self.chain(splits, e)
        limit = self.limit(form, base)
        if limit is not None:
            source = self.fuse(form, ordered, extent, limit)
            one = self.one(e)
            return IterSum((Split(source, one, source.extent, one),), base, source.extent)
        return IterSum(ordered, base, extent)

    def limit(self, form: Linear, base: Expr) -> Expr | None:
        found = self.limits.get(form.terms_key())
        if found is None:
            return None
        self.used_limits.add(form.terms_key())
        return self.ctx.simplify(found + form.const - base)

    def terms(self, form: Linear, e: Expr) -> tuple[list[Split], Expr]:
        splits: list[Split] = []
        base = Linear(form.const)
        for term_key, (factors, c) in form.terms.items():
            moving = [f for f in factors if uses_var(f, self.domains)]
            if not moving:
                base.add_term(factors, c, term_key)
                continue
            if len(moving) > 1:
                raise _NotAffine(lambda: f"`{e!r}` multiplies two loop variables")
            scale = const(c, e.dtype)
            for other in factors:
                if other is not moving[0]:
                    scale = self.mul(scale, other)
            split, offset = self.atom(moving[0])
            splits.append(Split(split.source, split.lower, split.extent, self.mul(split.scale, scale)))
            base.add(linear(self.mul(offset, scale)))
        return splits, base.build(e.dtype)

    def atom(self, e: Expr) -> tuple[Split, Expr]:
        """(split, base) with e = split + base."""
        if isinstance(e, Var):
            dom = self.domains[e]
            one = IntImm(1, e.dtype)
            return Split(e, one, dom.extent, one), dom.min
        if isinstance(e, (FloorDiv, FloorMod)) and not uses_var(e.b, self.domains):
            whole = self.source(e.a)
            factor = e.b
            zero = const(0, e.dtype)
            if isinstance(e, FloorMod):
                self.quotient(e, whole, factor)
                return Split(whole.source, whole.lower, factor, whole.scale), zero
            rest = self.quotient(e, whole, factor)
            return Split(whole.source, self.mul(whole.lower, factor), rest, whole.scale), zero
        raise _NotAffine(lambda: f"`{e!r}` is not a sum of quotients and remainders of loop variables")

    def quotient(self, e: Expr, whole: Split, factor: Expr) -> Expr:
        rest = exact_quotient(whole.extent, factor)
        if rest is None:
            raise _NotAffine(lambda: f"`{e!r}`: the extent {_text(whole.extent)} is no multiple of {_text(factor)}")
        return rest

    def source(self, e: Expr) -> Split:
        """``e`` as one split of scale 1 and base 0, fusing a sum."""
        form = linear(e)
        splits, base = self.terms(form, e)
        if not (isinstance(base, IntImm) and base.value == 0):
            raise _NotAffine(lambda: f"`{e!r}` divides a sum with the offset {_text(base)}")
        limit = self.limit(form, base)
        if len(splits) == 1 and limit is None:
            (split,) = splits
            if not self.equal(split.scale, self.one(e)):
                raise _NotAffine(lambda: f"`{e!r}` divides a strided iterator")
            return split
        ordered, extent = self.chain(splits, e)
        source = self.fuse(form, ordered, extent, limit)
        return Split(source, self.one(e), source.extent, self.one(e))

    def fuse(self, form: Linear, parts: tuple[Split, ...], extent: Expr, limit: Expr | None) -> Fused:
        found = self.fused.get(form.terms_key())
        if found is None:
            cut = extent if limit is None else self.ctx.simplify(min_(limit, extent))
            found = self.fused[form.terms_key()] = Fused(parts, cut, extent)
        return found

    def chain(self, splits: list[Split], e: Expr) -> tuple[tuple[Split, ...], Expr]:
        """Splits from most to least significant; each scale is the extent of all below it."""
        left = [s for s in splits if not (isinstance(s.extent, IntImm) and s.extent.value == 1)]
        size: Expr = self.one(e)
        ordered: list[Split] = []
        while left:
            found = next((s for s in left if self.equal(s.scale, size)), None)
            if found is None:
                raise _NotAffine(lambda: f"`{e!r}` leaves gaps or overlaps: no iterator has the scale {_text(size)}")
            left.remove(found)
            ordered.insert(0, found)
            size = self.mul(size, found.extent)
        return tuple(ordered), size


def _text(e: Any) -> str:
    return str(e.value) if isinstance(e, IntImm) else repr(e)


def detect_iter_map(
    indices: Sequence[Expr], domains: Mapping[Var, Range], predicate: Expr = TRUE, check: str = "bijective"
) -> IterMap | Failure:
    """The iterator map of ``indices`` over the loop variables ``domains`` where ``predicate`` holds.

    ``check`` is the required property: "bijective" (the map from iterations to index tuples is injective, and the
    indices fill their box), "surjective" (the indices fill their box) or "none" (each index alone fills its range).
    Variables not in ``domains`` are constants. Otherwise returns a :class:`Failure` (false, with ``.error``).

    >>> from tir.expr import Var
    >>> i, j = Var("i"), Var("j")
    >>> found = detect_iter_map([i * 4 + j], {i: Range(const(0), const(8)), j: Range(const(0), const(4))})
    >>> int(found.extents[0])
    32
    """
    if check not in ("bijective", "surjective", "none"):
        raise ValueError(f"check must be 'bijective', 'surjective' or 'none', not {check!r}")
    plain = _mixed_radix(indices, domains, check) if is_const(predicate, 1) else None
    if plain is not None:
        return plain
    ctx = Analyzer(domains)
    try:
        limits, narrowed = _read_predicate(ctx, predicate, dict(domains))
    except _NotAffine as failure:
        return Failure(failure.reason)
    # As written first: sums that one fuse made stay recognisable. Simplified, if that fails.
    found = _detect(ctx, indices, narrowed, limits, predicate, check)
    if found:
        return found
    simple = [ctx.simplify(e) for e in indices]
    changed = any(a is not b for a, b in zip(simple, indices))
    return _detect(ctx, simple, narrowed, limits, predicate, check) if changed else found


def covered_box(
    values: Sequence[Expr], domains: Mapping[Var, Range], predicate: Expr = TRUE, check: str = "surjective"
) -> tuple[Range, ...] | None:
    """The box of which ``values`` take every point over ``domains`` where ``predicate`` holds, and no other (once, where
    ``check`` is "bijective"); None if there is none, or it is not shown.

    >>> from tir.expr import Var, const
    >>> i, j = Var("i"), Var("j")
    >>> (box,) = covered_box([i * 4 + j + 1], {i: Range(const(0), const(8)), j: Range(const(0), const(4))})
    >>> box.min, box.extent
    (1, 32)
    """
    found = detect_iter_map(values, domains, predicate, check)
    if not isinstance(found, IterMap) or not all(map(partial(_is_empty_with, found), _perhaps_empty(values, domains))):
        return None
    return tuple(Range(i.base, i.extent) for i in found.indices)


def _perhaps_empty(values: Sequence[Expr], domains: Mapping[Var, Range]) -> list[Var]:
    """The variables in ``values`` whose domains are not known to have elements."""
    sizes = {v: r.extent for v, r in domains.items() if not isinstance(r.extent, IntImm)}
    known = Analyzer() if sizes else None
    unsure = [v for v, size in sizes.items() if known is not None and not known.can_prove(size > 0)]
    return [v for v in unsure if any(uses_var(e, (v,)) for e in values)]


def _is_empty_with(found: IterMap, var: Var) -> bool:
    """Whether a box has the extent of ``var`` as a factor: an extent of 1 at most was taken for 1, as where iterations run."""
    known = Analyzer()
    return any(var in _sources(i.splits) and not known.can_prove(i.extent > 0) for i in found.indices)


def _sources(splits: Iterable[Split]) -> set[Var]:
    """The loop variables of which splits are made."""
    return {v for s in splits for v in (_sources(s.source.parts) if isinstance(s.source, Fused) else {s.source})}


def _mixed_radix(indices: Sequence[Expr], domains: Mapping[Var, Range], check: str) -> IterMap | None:
    """The map if each variable is a digit of one index, the common case: all constants, so nothing has to be proved.
    None if this form is not evident."""
    used: set[Var] = set()
    sums: list[IterSum] = []
    for e in indices:
        if not is_index(e.dtype):
            return None
        form = linear(e)
        base = Linear(form.const)
        digits: list[tuple[int, Var, IntImm]] = []
        for term_key, (factors, c) in form.terms.items():
            var = factors[0]
            domain = domains.get(var) if len(factors) == 1 and isinstance(var, Var) else None
            if domain is not None and isinstance(var, Var):
                extent = domain.extent
                if var in used or not is_const(domain.min, 0) or not isinstance(extent, IntImm) or extent.value < 1:
                    return None
                used.add(var)
                if extent.value != 1:
                    digits.append((c, var, extent))
            elif any(uses_var(f, domains) for f in factors):
                return None
            else:
                base.terms[term_key] = (factors, c)
        digits.sort(key=itemgetter(0))
        size = 1
        for c, _, extent in digits:
            if c != size:
                return None
            size *= extent.value
        unit = one(e.dtype)
        splits = [Split(v, unit, extent, unit if c == 1 else const(c, e.dtype)) for c, v, extent in reversed(digits)]
        sums.append(IterSum(tuple(splits), base.build(e.dtype), const(size, e.dtype)))
    if check == "bijective" and any(v not in used and not is_const(r.extent, 1) for v, r in domains.items()):
        return None
    return IterMap(tuple(sums), dict(domains))


def _detect(
    ctx: Analyzer, indices: Sequence[Expr], domains: dict[Var, Range], limits: dict, predicate: Expr, check: str
) -> IterMap | Failure:
    parser = _Parser(ctx, domains, limits)
    try:
        sums = tuple(parser.index(e) for e in indices)
        if check != "none":
            if any(k not in parser.used_limits for k in limits):
                raise _NotAffine(lambda: f"the predicate `{predicate!r}` bounds a sum that no index uses")
            _check_cover(parser, sums, every=check == "bijective")
    except _NotAffine as failure:
        return Failure(failure.reason)
    return IterMap(sums, domains, tuple(parser.fused.values()))


def _read_predicate(ctx: Analyzer, predicate: Expr, domains: dict[Var, Range]) -> tuple[dict, dict[Var, Range]]:
    """Upper bounds of sums from the predicate; a bound of one variable narrows its domain."""
    limits: dict[Any, Expr] = {}
    for part in conjuncts(ctx.simplify(predicate)):
        if isinstance(part, IntImm):
            if not part.value:
                raise _NotAffine(lambda: "the predicate is never true")
            continue
        if not isinstance(part, (LT, LE, GT, GE)) or not is_index(part.a.dtype):
            raise _NotAffine(lambda: f"the predicate `{part!r}` is not an upper or lower bound of a sum")
        a, b, strict = part.a, part.b, isinstance(part, (LT, GT))
        if isinstance(part, (GT, GE)):
            a, b = b, a
        diff = linear(b).minus(linear(a))  # diff > 0, or >= 0
        moving, rest = Linear(), Linear(diff.const + (0 if strict else 1))
        for term_key, (factors, c) in diff.terms.items():
            moves = any(uses_var(f, domains) for f in factors)
            (moving if moves else rest).add_term(factors, -c if moves else c, term_key)
        # moving < rest
        var = moving.single()
        if isinstance(var, Var):
            dom = domains[var]
            extent = ctx.simplify(min_(dom.extent, Sub(rest.build(var.dtype), dom.min)))
            _narrow(ctx, domains, var, Range(dom.min, extent))
            continue
        low = moving.scaled(-1).single()
        if isinstance(low, Var):
            # -v < r: v >= 1 - r
            dom = domains[low]
            first = rest.scaled(-1)
            first.const += 1
            begin = ctx.simplify(max_(dom.min, first.build(low.dtype)))
            end = dom.min + dom.extent
            _narrow(ctx, domains, low, Range(begin, ctx.simplify(end - begin)))
            continue
        limits[moving.terms_key()] = rest.build(part.a.dtype)
    return limits, domains


def _narrow(ctx: Analyzer, domains: dict[Var, Range], var: Var, values: Range) -> None:
    """Let ``var`` take these values only. A variable that has a value says that its range is not empty: so it is bound to
    them only where there surely is one."""
    domains[var] = values
    if ctx.can_prove(values.extent > 0):
        ctx.bind(var, values)


def _check_cover(parser: _Parser, sums: Sequence[IterSum], every: bool) -> None:
    """Splits of one source must not overlap; for ``every``, they must cover all of every variable."""
    splits = [split for s in sums for split in s.splits]
    pending: dict[Any, list[Split]] = {}
    for split in splits:
        pending.setdefault(split.source, []).append(split)
    done: set[Any] = set()
    cut_vars: set[Var] = set()
    while pending:
        source = next(
            (s for s in pending if isinstance(s, Fused) and not any(_inside(s, o) for o in pending if o is not s)), None
        )
        if source is None:
            source = next(iter(pending))
        parts = pending.pop(source)
        if source in done:
            raise _NotAffine(lambda: "an iterator is used both inside a fused sum and outside it")
        done.add(source)
        full = source.extent if isinstance(source, Fused) else parser.domains[source].extent
        cut = isinstance(source, Fused) and not parser.equal(source.extent, source.full)
        _check_splits(parser, source, parts, full, every or cut)
        if isinstance(source, Fused):
            if cut:
                vars_here = _variables(source)
                if cut_vars & vars_here:
                    raise _NotAffine(lambda: "two bounds of the predicate share a loop variable")
                cut_vars |= vars_here
            for part in source.parts:
                pending.setdefault(part.source, []).append(part)
    if every:
        for var, dom in parser.domains.items():
            if var not in done and not parser.equal(dom.extent, const(1, var.dtype)):
                raise _NotAffine(lambda: f"the loop variable {var.name} does not reach the indices")


def _variables(source: Any) -> set[Var]:
    if isinstance(source, Var):
        return {source}
    return set().union(*(_variables(p.source) for p in source.parts)) if source.parts else set()


def _inside(inner: Any, outer: Any) -> bool:
    return isinstance(outer, Fused) and any(p.source is inner or _inside(inner, p.source) for p in outer.parts)


def _check_splits(parser: _Parser, source: Any, parts: list[Split], full: Expr, whole: bool) -> None:
    """The splits of one source must be disjoint digits of it; all of its digits when ``whole``."""
    name = source.name if isinstance(source, Var) else "a fused iterator"
    size: Expr = const(1, full.dtype)
    left = list(parts)
    while left:
        found = next((p for p in left if parser.equal(p.lower, size)), None)
        if found is None:
            if whole:
                raise _NotAffine(lambda: f"the digits of {name} overlap, or one is missing")
            found = _next_digit(left, size, name)
        left.remove(found)
        size = parser.mul(found.lower, found.extent)
    if whole and not parser.equal(size, full):
        raise _NotAffine(lambda: f"the indices use {name} up to {_text(size)} of its extent {_text(full)}")


def _next_digit(left: list[Split], size: Expr, name: str) -> Split:
    constants = [p for p in left if isinstance(p.lower, IntImm)]
    if isinstance(size, IntImm) and size.value > 0 and len(constants) == len(left):
        found = min(left, key=lambda p: p.lower.value)  # type: ignore[attr-defined]
        if found.lower.value % size.value == 0:  # type: ignore[attr-defined]
            return found
    raise _NotAffine(lambda: f"two indices use the same digits of {name}")


@dataclass(frozen=True, eq=False)
class Division:
    """Bindings divided in two: ``binding = outer * inner_extent + inner``. Pairs are (expression, extent).

    ``outer_predicate`` and ``inner_predicate`` are the parts of the predicate over either side.
    """

    outer: tuple[tuple[Expr, Expr], ...]
    inner: tuple[tuple[Expr, Expr], ...]
    outer_predicate: Expr
    inner_predicate: Expr


def subspace_divide(
    bindings: Sequence[Expr], domains: Mapping[Var, Range], sub_vars: Sequence[Var], predicate: Expr = TRUE
) -> Division | Failure:
    """Divide each binding into an outer part and an inner part that uses only ``sub_vars``.

    ``binding = outer * inner_extent + inner`` with ``0 <= inner < inner_extent``. A binding of one side only has the
    other side 0 with extent 1 (an outer-only one keeps its base). Returns a :class:`Failure` when a part mixes both.

    >>> from tir.expr import Var
    >>> i, j = Var("i"), Var("j")
    >>> d = subspace_divide([i * 4 + j], {i: Range(const(0), const(8)), j: Range(const(0), const(4))}, [j])
    >>> d.outer[0][0] is i, d.inner[0][0] is j, int(d.inner[0][1])
    (True, True, 4)
    """
    inside = set(sub_vars)
    outside = {v for v in domains if v not in inside}
    ctx = Analyzer(domains)
    parser = _Parser(ctx, dict(domains), {})
    outer: list[tuple[Expr, Expr]] = []
    inner: list[tuple[Expr, Expr]] = []
    try:
        for e in bindings:
            one, two = _divide_one(parser, e, inside, outside)
            outer.append(one)
            inner.append(two)
        outer_parts: list[Expr] = []
        inner_parts: list[Expr] = []
        for part in conjuncts(predicate):
            if not inside or not uses_var(part, inside):
                outer_parts.append(part)
            elif not outside or not uses_var(part, outside):
                inner_parts.append(part)
            else:
                mixed = ctx.simplify(part)
                if isinstance(mixed, IntImm) and mixed.value:
                    continue
                if not uses_var(mixed, inside):
                    outer_parts.append(mixed)
                elif not outside or not uses_var(mixed, outside):
                    inner_parts.append(mixed)
                else:
                    raise _NotAffine(lambda: f"the predicate `{part!r}` ties inner and outer loops together")
    except _NotAffine as failure:
        return Failure(failure.reason)
    return Division(tuple(outer), tuple(inner), all_of(outer_parts), all_of(inner_parts))


def _divide_one(
    parser: _Parser, e: Expr, inside: set[Var], outside: set[Var]
) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    ctx = parser.ctx
    zero, one = const(0, e.dtype), const(1, e.dtype)
    form = linear(ctx.simplify(e))
    low, high = Linear(), Linear(form.const)
    for term_key, (factors, c) in form.terms.items():
        names = {n for f in factors for n in nodes_of(f) if isinstance(n, Var)}
        if names & inside and names & outside:
            raise _NotAffine(lambda: f"`{e!r}`: a term uses inner and outer loops together")
        (low if names & inside else high).add_term(factors, c, term_key)
    if low.is_const:
        e = ctx.simplify(e) if uses_var(e, inside) else e
        return (e, _extent(ctx, e, parser.domains)), (zero, one)
    if high.is_const and not high.const:
        e = ctx.simplify(e) if uses_var(e, outside) else e
        return (zero, one), (e, _extent(ctx, e, parser.domains))
    splits, base = parser.terms(low, e)
    ordered, extent = parser.chain(splits, e)
    # a base of the inner part (a loop that does not start at 0) belongs to the outer offset
    moved = linear(base)
    inner_form = low.minus(moved)
    outer_form = high.add(moved)
    quotient = exact_quotient(outer_form.build(e.dtype), extent)
    if quotient is None:
        raise _NotAffine(lambda: f"`{e!r}`: the outer part is no multiple of the inner extent {_text(extent)}")
    outer = ctx.simplify(quotient)
    return (outer, _extent(ctx, outer, parser.domains)), (ctx.simplify(inner_form.build(e.dtype)), extent)


def _extent(ctx: Analyzer, e: Expr, domains: Mapping[Var, Range]) -> Expr:
    """The extent of the values of ``e`` counted from 0 (its greatest value plus 1)."""
    from .regions import relax

    box = relax([Range(e, const(1, e.dtype))], domains, analyzer=ctx)
    if box is None:
        raise _NotAffine(lambda: f"`{e!r}` has no known bounds")
    return ctx.simplify(Add(box[0].min, box[0].extent))


__all__ = ["Division", "Failure", "Fused", "IterMap", "IterSum", "Split", "detect_iter_map", "subspace_divide"]
