"""Questions about domains: does a block run for all values of its iterators, are indices injective?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

from ...arith import Analyzer
from ...arith.itermap import covered_box, detect_iter_map
from ...arith.linear import in_terms_of
from ...arith.pointwise import Unsupported, compile_numpy
from ...arith.regions import encloses, intersect, relax
from ...arith.selections import without_decided
from ...arith.swizzle import without_all
from ...buffer import Buffer, Range
from ...errors import require
from ...expr import EQ, NE, Expr, IntImm, Var, all_of, conjuncts, const, is_const, logical_or
from ...node import cached_property, once, record
from ...poly import Formula, Names
from ...stmt import Block, BlockRealize, BufferStore
from ...visit import has_load, substitute, uses_var, vars_in
from ..effects import Loop
from ..evaluation import entered
from ..index import BlockRef, LoopRef, wrapped_in
from .delinearize import undivided
from .tiers import NOT_SHOWN, PROVED, Question, Refuted, Tier, Unknown, Verdict, tier


def runs_whole_domain(ref: BlockRef) -> bool:
    """Whether the loops above provably run ``ref`` for every value of its iterators."""
    return RunsWholeDomain(ref).holds()


def about_iterators(block: BlockRef, values: Sequence[Expr]) -> list[Expr] | None:
    """The predicate of ``block`` in terms of other ``values`` of its iterators, since its loops are removed.

    Empty when the loops cover the iterator domains exactly. None when some part uses a loop that no iterator is bound
    to.
    """
    parts = conjuncts(block.node.predicate)
    if not parts or runs_whole_domain(block):
        return []
    own, domains = {p.var for p in block.loops()}, known(block)
    kept = [in_terms_of(c, block.bindings) if uses_var(c, own) else c for c in parts]
    if any(uses_var(c, own) for c in kept):
        return None
    now = dict(zip(block.bindings, values))
    return [substitute(c, now) for c in kept if not domains.can_prove(c)]


def known(block: BlockRef) -> Analyzer:
    """What is known in a block: the domains of its iterators."""
    analyzer = Analyzer()
    for iterator in block.block.iter_vars:
        analyzer.bind(iterator.var, iterator.dom)
    return analyzer


@once
def chosen_value(block: Block) -> Expr:
    """The value that a block of one store has for it, without selections that the domains of its iterators decide: padding by nothing."""
    assert isinstance(block.body, BufferStore)
    return without_decided(block.body.value, Analyzer({i.var: i.dom for i in block.iter_vars if i.dom is not None}))


def values_taken(ref: BlockRef, variables: Collection[Var], host: BlockRef | LoopRef) -> tuple[dict[Var, Range], bool]:
    """A box around the values that these iterators of ``ref`` take each time that ``host`` runs, and whether they provably
    take all in it."""
    domains = {i.var: i.dom for i in ref.block.iter_vars if i.var in variables and i.dom is not None}
    loops, values = ref.loop_ranges(host), [ref.bindings[v] for v in domains]
    around = {loop.var: loop.range for loop in ref.all_loops()}
    pairs = [(i, v) for i, v in zip(ref.block.iter_vars, ref.node.iter_values) if i.var in domains]
    rest = _beyond_domains(pairs, ref.node.predicate, around)
    hull = relax([Range(v, const(1, v.dtype)) for v in values], loops, predicate=rest)
    if hull is None or has_load(*(e for r in hull for e in (r.min, r.extent))):
        return domains, False
    box = dict(zip(domains, intersect([hull, tuple(domains.values())], host.analyzer())))
    used = vars_in(*values)
    repeating = [r.extent for var, r in loops.items() if var not in used]
    found = covered_box(values, loops, rest)
    runs = wrapped_in(ref, host) is None and not entered(repeating, Analyzer())
    return box, found is not None and runs and is_same_box(found, hull)


def _beyond_domains(pairs: Iterable[tuple[Any, Expr]], predicate: Expr, around: Mapping[Var, Range]) -> Expr:
    """``predicate`` without what says that iterators, in ``pairs`` with their values, are in their domains."""
    if is_const(predicate, 1):
        return predicate
    analyzer = Analyzer(around)
    for iterator, value in pairs:
        analyzer.assume(value >= iterator.dom.min)
        analyzer.assume(value < iterator.dom.min + iterator.dom.extent)
    return all_of([c for c in conjuncts(predicate) if has_load(c) or not analyzer.can_prove(c)])


def fills_domain(
    pairs: Sequence[tuple[Any, Expr]],
    predicate: Expr,
    loops: Mapping[Var, Range],
    around: Mapping[Var, Range],
    check: str = "surjective",
) -> bool:
    """Whether the values of iterators over ``loops``, where ``predicate`` holds, are an iterator map, with the property
    ``check``, onto their domains. ``around`` has the ranges of all loops. False means "not shown"."""
    return _taken(pairs, predicate, loops, around, check)[1]


def _taken(
    pairs: Sequence[tuple[Any, Expr]],
    predicate: Expr,
    loops: Mapping[Var, Range],
    around: Mapping[Var, Range],
    check: str,
) -> tuple[Sequence[Range] | None, bool]:
    """The box that the iterators take as far as ``predicate`` holds, None if it is not shown, and whether they take all of their
    domains and no others."""
    domains = [i.dom for i, _ in pairs]
    found = covered_box([v for _, v in pairs], loops, _beyond_domains(pairs, predicate, around), check)
    if found is None or is_same_box(found, domains):
        return found, found is not None
    if not encloses(found, domains, Analyzer()):
        return found, False
    analyzer = Analyzer(around)  # does the predicate leave out all values beyond the domains?
    analyzer.assume(predicate)
    return found, not any(analyzer.unproved(v, i.dom) for i, v in pairs)


def values_taken_once(
    realize: BlockRealize, loops: Mapping[Var, Range], around: Mapping[Var, Range]
) -> Sequence[Range] | None:
    """The box of the values that the iterators of a block take over ``loops``, each once; None if that is not shown. ``around`` has the
    ranges of all loops."""
    pairs: list[tuple[Any, Expr]] = list(zip(realize.block.iter_vars, realize.iter_values))
    found, fills = _taken(pairs, realize.predicate, loops, around, "bijective")
    return [i.dom for i, _ in pairs] if fills else found if is_const(realize.predicate, 1) else None


def are_distinct(values: Sequence[Expr], loops: Sequence[Loop]) -> bool:
    """Whether ``values`` differ in any two iterations of ``loops``. False means "not shown"."""
    moving = {v for v, _, extent in loops if not is_const(extent, 1)}
    return moving <= {*values} or moving <= (determined_by(values, loops) or frozenset())


def determined_by(
    indices: Sequence[Expr], around: Sequence[Loop], sizes: Sequence[Buffer] = ()
) -> frozenset[Var] | None:
    """The variables that these indices use, if they are injective in those of the loops ``around``; None if this is not proved.
    ``sizes`` are buffers, whose shapes are not negative."""
    used = vars_in(*indices)
    loops = [loop for loop in around if loop[0] in used]
    own = {v for v, _, _ in around}
    if not own.isdisjoint(vars_in(*[e for _, low, size in loops for e in (low, size)])):
        return None
    domains = {v: Range(low, extent) for v, low, extent in loops}
    found = detect_iter_map(indices, domains, check="bijective")
    if not found:
        numbers = undivided(indices, own, sizes)
        found = numbers is not None and detect_iter_map(numbers, domains, check="bijective")
    return frozenset(used) if found else None


def is_same_box(first: Sequence[Range], second: Sequence[Range]) -> bool:
    """Whether two boxes provably have the same points."""
    analyzer = Analyzer()
    return all(
        analyzer.can_prove_equal(a.min, b.min) and analyzer.can_prove_equal(a.extent, b.extent)
        for a, b in zip(first, second)
    )


@record
class RunsWholeDomain(Question):
    """The loops above a block run it for every value of its iterators."""

    ref: BlockRef

    def __str__(self) -> str:
        return f"block `{self.ref.name}` runs for all values of its iterators"

    @property
    def _pairs(self) -> list[tuple[Any, Expr]]:
        return list(zip(self.ref.block.iter_vars, self.ref.node.iter_values))

    @cached_property
    def _loops(self) -> dict[Var, Range]:
        return self.ref.loop_ranges()

    def _is_conditional(self) -> bool:
        """Whether the block is under an ``if``, or in a loop that no iterator uses and that may have no iterations."""
        if self.ref.scope is not None and wrapped_in(self.ref, self.ref.scope) is not None:
            return True
        used = vars_in(*self.ref.node.iter_values)
        return not all(Analyzer().can_prove(r.extent > 0) for var, r in self._loops.items() if var not in used)

    @tier(Tier.ITERATOR_MAP)
    def by_iterator_map(self) -> Verdict:
        if self._is_conditional():
            return NOT_SHOWN
        around = {loop.var: loop.range for loop in self.ref.all_loops()}
        filled = fills_domain(self._pairs, self.ref.node.predicate, self._loops, around)
        return PROVED if filled else NOT_SHOWN

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        ref, names = self.ref, Names()
        if ref.scope is not None and wrapped_in(ref, ref.scope) is not None:
            return Unknown(f"cannot prove that {self}: it is under a condition")
        dims = [names.of(i.var) for i in ref.block.iter_vars]
        ran, domain = Formula(names), Formula(names)
        for var, loop in self._loops.items():
            ran.within(var, loop.min, loop.extent)
        ran.require(ref.node.predicate)
        for iterator, value in self._pairs:
            ran.equal(names.of(iterator.var), value)
            domain.within(iterator.var, iterator.dom.min, iterator.dom.extent)
        moments = [ran.var(var) for var in self._loops]
        missing = domain.set(dims).subtract(ran.map(dims, moments, moments).domain()).sample()
        if missing is None:
            return PROVED
        at = ", ".join(f"{i.var.name}={x}" for (i, _), x in zip(self._pairs, missing))
        return Refuted(f"block `{ref.name}` does not run for every value of its iterators", [f"({at}) does not run"])


MOST_COUNTED = 1 << 18  # points, in some hundredths of a second


@dataclass(frozen=True, eq=False)
class Injective(Question):
    """``indices`` are injective on ``domains``."""

    indices: tuple[Expr, ...]
    domains: Mapping[Var, Range]

    def __str__(self) -> str:
        return "no two elements go to one place"

    @tier(Tier.ITERATOR_MAP)
    def by_iterator_map(self) -> Verdict:
        """Of what the indices are before swizzles, which are bijections."""
        plain = without_all(self.indices, Analyzer(self.domains))
        points = [(v, dom.min, dom.extent) for v, dom in self.domains.items()]
        return PROVED if plain is not None and are_distinct(plain[0], points) else NOT_SHOWN

    @tier(Tier.ENUMERATION)
    def by_enumeration(self) -> Verdict:
        pair = enumerated(self.indices, self.domains)
        return NOT_SHOWN if pair is None else self._refuted(pair) if pair else PROVED

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        other = {v: v.replace() for v in self.domains}
        formula = Formula(Names())
        for twin in (dict(zip(self.domains, self.domains)), other):
            for var, dom in self.domains.items():
                formula.within(twin[var], substitute(dom.min, twin), substitute(dom.extent, twin))
        for index in self.indices:
            formula.require(EQ(index, substitute(index, other)))
        formula.require(reduce(logical_or, [NE(v, t) for v, t in other.items()]))
        point = formula.set([formula.var(v) for v in (*self.domains, *other.values())]).sample()
        half = len(self.domains)
        return PROVED if point is None else self._refuted([point[:half], point[half:]])

    def _refuted(self, pair: Sequence[Sequence[int]]) -> Refuted:
        return Refuted("two elements go to one place", [self._goes_to(point) for point in pair])

    def _goes_to(self, point: Sequence[int]) -> str:
        at = {v: const(x, v.dtype) for v, x in zip(self.domains, point)}
        named = ", ".join(f"{v.name}={x}" for v, x in zip(self.domains, point))
        target = ", ".join(repr(Analyzer().simplify(substitute(e, at))) for e in self.indices)
        return f"({named}) goes to [{target}]"


def require_injective(indices: Sequence[Expr], domains: Mapping[Var, Range], rule: str, *parts: Any) -> None:
    """Refuse by ``rule``, with two points that have the same indices, ``indices`` that are not injective on
    ``domains``."""
    verdict = Injective(tuple(indices), domains).answer()
    if isinstance(verdict, Unknown):
        raise verdict.refusal(verdict.rule)
    witness = verdict.witness if isinstance(verdict, Refuted) else ()
    require(verdict.is_proved, rule, *parts, witness=witness, nodes=())


def enumerated(indices: Sequence[Expr], domains: Mapping[Var, Range]) -> list[tuple[int, ...]] | None:
    """Two points with the same indices, none if all differ; None for a domain too large to enumerate, or symbolic."""
    ends = [(dom.min, dom.extent) for dom in domains.values()]
    if not all(isinstance(low, IntImm) and isinstance(size, IntImm) for low, size in ends):
        return None
    sizes = [max(size.value, 0) for _, size in ends]  # pyright: ignore[reportAttributeAccessIssue]
    if prod(sizes) > MOST_COUNTED:
        return None
    import numpy as np

    points = [grid.reshape(-1) for grid in np.indices(sizes)]
    points = [grid + low.value for grid, (low, _) in zip(points, ends)]  # pyright: ignore[reportAttributeAccessIssue]
    try:
        images = [np.broadcast_to(compile_numpy(e, list(domains))(*points), points[0].shape) for e in indices]
    except Unsupported:
        return None
    order = np.lexsort(images) if images else np.arange(len(points[0]))
    equal = np.ones(max(len(order) - 1, 0), bool)
    for image in images:
        equal &= image[order[1:]] == image[order[:-1]]
    if not equal.any():
        return []
    first = order[np.flatnonzero(equal)[0] :][:2]
    return [tuple(int(grid[n]) for grid in points) for n in first]
