"""Boxes of buffers: the hull of a region over loops, unions and intersections.

A box is a tuple of Ranges. ``relax`` eliminates loop variables from one; the result is the smallest box found that
contains the region.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..buffer import Range
from ..dtype import DType
from ..expr import (
    TRUE,
    Add,
    BufferLoad,
    Call,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Ramp,
    Sub,
    Var,
    cast,
    choice_parts,
    const,
    floordiv,
    is_const,
)
from ..visit import nodes_of, uses_var, walk
from .analyzer import Analyzer
from .bounds import is_nonnegative
from .divide import div_form, mod_form, positive
from .linear import Linear, is_index, key, linear, uncast
from .pointwise import Unsupported, compile_values

Box = tuple[Range, ...]
_MAX_POINTS = 1 << 12  # points enumerated to make a correlated index exact


def relax(
    region: Sequence[Range], loop_ranges: Mapping[Var, Range], predicate: Expr = TRUE, analyzer: Analyzer | None = None
) -> Box | None:
    """The box hull of ``region`` as the loop variables take all values in their ranges (where ``predicate`` holds).

    Variables not in ``loop_ranges`` stay symbolic. Extents are constants where they can be. None when some axis has
    no bound that can be written without the loop variables (data-dependent indices): take the whole buffer then.

    >>> from tir.expr import Var
    >>> i, j = Var("i"), Var("j")
    >>> (box,) = relax([Range(i * 32 + j, const(1))], {j: Range(const(0), const(32))})
    >>> int(box.extent)
    32
    """
    found = relax_axes(region, loop_ranges, predicate, analyzer)
    known = tuple(axis for axis in found if axis is not None)
    return known if len(known) == len(found) else None


def relax_axes(
    region: Sequence[Range], loop_ranges: Mapping[Var, Range], predicate: Expr = TRUE, analyzer: Analyzer | None = None
) -> list[Range | None]:
    """The hull of each axis of ``region``, as :func:`relax` has it; None for those without a bound."""
    if not loop_ranges:
        return list(region)
    found: list[Range | None] = [None] * len(region)
    ctx = analyzer or Analyzer()
    if is_const(predicate, 1) and not ctx.has_assumptions:
        ends = {v: dom.ends() for v, dom in loop_ranges.items()}
        found = [_hull_of_a_sum(axis, ends) for axis in region]
    if all(axis is not None for axis in found):
        return found
    with ctx.scope():
        for var, dom in loop_ranges.items():
            ctx.bind(var, dom)
        ctx.assume(ctx.simplify(predicate))
        relaxer = _Relaxer(ctx, loop_ranges)
        return [relaxer.range(axis) if known is None else known for axis, known in zip(region, found)]


def _hull_of_a_sum(axis: Range, ends: Mapping[Var, tuple[int, int] | None]) -> Range | None:
    """The hull of a sum of loops, between these ``ends``, and a term without them; None if it is none, or they are
    unknown."""
    first = axis.min
    if type(axis.extent) is not IntImm or not is_index(first.dtype):
        return None
    moving, low = linear(first).split(ends)
    if moving.is_const:
        return axis
    reach = moving.interval(ends)
    if reach is None:
        return None
    low.const += reach[0]
    start = low.build(first.dtype)
    size = reach[1] - reach[0] + axis.extent.value
    if size > first.dtype.max_value:
        return None
    return Range(start if low.coefficients() is not None else Analyzer().simplify(start), const(size, first.dtype))


class _Relaxer:
    def __init__(self, ctx: Analyzer, loops: Mapping[Var, Range]):
        self.ctx = ctx
        self.loops = loops
        self._hulls: dict[Var, tuple[Linear, Linear] | None] = {}  # of loops; None also while one is being found

    def range(self, axis: Range) -> Range | None:
        if not uses_var(axis, self.loops):
            return axis
        first = axis.min
        dtype = first.dtype.element
        base = linear(self.ctx.simplify(first)) if is_index(dtype) and first.dtype.lanes == 1 else None
        if base is None:
            return self._vector_range(axis)
        hull = self.hull(base, dtype)
        if hull is None:
            return None
        low, high = hull
        if isinstance(axis.extent, IntImm):
            high.const += axis.extent.value - 1
        else:
            last = linear(self.ctx.simplify(first + axis.extent - 1))
            ends = self.hull(last, dtype)
            if ends is None:
                return None
            high = ends[1]
        return self._made(low, high, dtype)

    def _vector_range(self, axis: Range) -> Range | None:
        """A ramp index covers base .. base + stride * (lanes - 1)."""
        first = axis.min
        if not (isinstance(first, Ramp) and isinstance(first.stride, IntImm) and is_index(first.base.dtype)):
            return None
        reach = first.stride.value * (first.lanes - 1)
        hull = self.hull(linear(self.ctx.simplify(first.base)), first.base.dtype)
        if hull is None:
            return None
        low, high = hull
        low.const += min(reach, 0)
        high.const += max(reach, 0)
        return self._made(low, high, first.base.dtype)

    def _made(self, low: Linear, high: Linear, dtype: DType) -> Range | None:
        size = high.minus(low)
        size.const += 1
        if not size.fits(dtype):
            return None
        return Range(self.ctx.simplify(low.build(dtype)), self.ctx.simplify(size.build(dtype)))

    # A hull is (low, high): inclusive bounds as linear forms free of the loop variables.

    def hull(self, form: Linear, dtype: DType) -> tuple[Linear, Linear] | None:
        moving, kept = form.split(self.loops)
        if moving.is_const:
            return kept, kept.copy()
        exact = self._enumerated(moving)
        if exact is not None:
            return _shifted(kept, exact[0]), _shifted(kept, exact[1])
        low, high = kept.copy(), kept.copy()
        part = self._sum(moving, dtype)
        lo, hi = self.ctx.bound_linear(moving)
        if part is None:
            if lo is None or hi is None:
                return None
            return _shifted(low, lo), _shifted(high, hi)
        least, most = part
        # a predicate may bound the sum better than its terms do
        if lo is not None and (not least.is_const or lo > least.const) and most.is_const:
            least = Linear(lo)
        if hi is not None and (not most.is_const or hi < most.const) and least.is_const:
            most = Linear(hi)
        return low.add(least), high.add(most)

    def _sum(self, moving: Linear, dtype: DType) -> tuple[Linear, Linear] | None:
        low, high = Linear(), Linear()
        for factors, c in moving.items():
            part = self._product(factors, dtype)
            if part is None:
                return None
            least, most = part if c > 0 else (part[1], part[0])
            low.add(least, c)
            high.add(most, c)
        return low, high

    def _product(self, factors: tuple[Expr, ...], dtype: DType) -> tuple[Linear, Linear] | None:
        moving = [f for f in factors if uses_var(f, self.loops)]
        if len(moving) != 1:
            return None
        part = self._atom(moving[0], dtype)
        if part is None:
            return None
        low, high = part
        for other in factors:
            if other is not moving[0]:
                if not is_nonnegative(self.ctx, other):
                    return None
                low, high = low.times(linear(other)), high.times(linear(other))
        return low, high

    def _atom(self, e: Expr, dtype: DType) -> tuple[Linear, Linear] | None:
        lo, hi = self.ctx.bound(e)
        if lo is not None and hi is not None and not self._mixed(e):
            return Linear(lo), Linear(hi)
        symbolic = None
        if isinstance(e, Var):
            if e not in self._hulls:
                self._hulls[e] = None  # a range that names its own variable, through others, has no hull
                self._hulls[e] = self._loop(self.loops[e], dtype)
            symbolic = self._hulls[e]
        elif isinstance(e, (FloorDiv, FloorMod)) and positive(e.b) is not None:
            symbolic = self._divided(e, dtype)
        elif isinstance(e, (Min, Max)):
            symbolic = self._extreme(e, dtype)
        elif (parts := choice_parts(e)) is not None:
            symbolic = self._either(*parts[1:], dtype)
        elif isinstance(e, Call) and e.op == "likely":
            symbolic = self.hull(linear(e.args[0]), dtype)
        elif isinstance(e, Cast) and is_index(e.value.dtype) and is_index(e.dtype):
            inner = self.hull(linear(e.value), e.value.dtype)
            if inner is not None:
                gap = inner[1].minus(inner[0])
                low = linear(Cast(e.dtype, inner[0].build(e.value.dtype)))
                if gap.is_const:
                    return low, _shifted(low, gap.const)
                return low, linear(Cast(e.dtype, inner[1].build(e.value.dtype)))
        if symbolic is None and lo is not None and hi is not None:
            return Linear(lo), Linear(hi)
        return symbolic

    def _loop(self, dom: Range, dtype: DType) -> tuple[Linear, Linear] | None:
        first, last = linear(dom.min), linear(dom.min).add(linear(dom.extent))
        last.const -= 1
        ends = self.hull(first, dtype), self.hull(last, dtype)
        return None if ends[0] is None or ends[1] is None else (ends[0][0], ends[1][1])

    def _mixed(self, e: Expr) -> bool:
        """Whether ``e`` also uses variables that are not eliminated."""
        return any(isinstance(n, Var) and n not in self.loops for n in nodes_of(e)) or any(
            isinstance(n, BufferLoad) for n in walk(e)
        )

    def _divided(self, e: Any, dtype: DType) -> tuple[Linear, Linear] | None:
        inner = self.hull(linear(e.a), dtype)
        if inner is None:
            return None
        c = e.b.value
        low, high = inner
        gap = high.minus(low)
        offset = self.ctx.bound_linear(mod_form(self.ctx, low, c, dtype))
        if isinstance(e, FloorDiv):
            first = div_form(self.ctx, low, c, dtype)
            if gap.is_const and offset[1] is not None:
                # (low + gap) // c - low // c <= (low % c + gap) // c
                return first, _shifted(first, (offset[1] + gap.const) // c)
            return first, div_form(self.ctx, high, c, dtype)
        if gap.is_const and offset[1] is not None and offset[1] + gap.const < c:
            first = mod_form(self.ctx, low, c, dtype)
            return first, _shifted(first, gap.const)
        return Linear(), Linear(c - 1)

    def _extreme(self, e: Any, dtype: DType) -> tuple[Linear, Linear] | None:
        a, b = self.hull(linear(e.a), dtype), self.hull(linear(e.b), dtype)
        if a is None or b is None:
            return None
        low = self._end(type(e), a[0], b[0], dtype)
        gaps = [p[1].minus(p[0]) for p in (a, b)]
        if all(g.is_const for g in gaps) and not low.is_const:
            # min and max move by no more than the operand that moves most
            return low, _shifted(low, max(g.const for g in gaps))
        return low, self._end(type(e), a[1], b[1], dtype)

    def _either(self, yes: Expr, no: Expr, dtype: DType) -> tuple[Linear, Linear] | None:
        """The hull of one of two values, whichever a condition chooses."""
        a, b = self.hull(linear(yes), dtype), self.hull(linear(no), dtype)
        if a is None or b is None:
            return None
        return self._end(Min, a[0], b[0], dtype), self._end(Max, a[1], b[1], dtype)

    def _end(self, kind: Any, a: Linear, b: Linear, dtype: DType) -> Linear:
        return linear(self.ctx.simplify(kind(a.build(dtype), b.build(dtype))))

    def _enumerated(self, moving: Linear) -> tuple[int, int] | None:
        """Exact bounds by enumeration, if a variable occurs in several terms or atoms hide correlation."""
        if moving.coefficients() is not None:
            return None
        apart = self._of_independent_terms(moving)
        if apart is not None:
            return apart
        used: dict[Var, None] = {}
        for factors, _ in moving.items():
            for factor in factors:
                for n in walk(factor):
                    if isinstance(n, Var):
                        used.setdefault(n)
        points, ranges = 1, []
        for var in used:
            values = self._values(var)
            if values is None or points * len(values) > _MAX_POINTS:
                return None
            ranges.append(values)
            points *= len(values)
        try:
            found = compile_values(moving.build(DType("int64")), list(used))(*ranges)
        except (Unsupported, ZeroDivisionError):  # with no value at some point, which may be skipped
            return None
        return min(found), max(found)

    def _values(self, var: Any) -> range | None:
        """The values of a loop of constant range; None of anything else."""
        dom = self.loops.get(var) if isinstance(var, Var) else None
        if dom is None or not (isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm)):
            return None
        low, high = self.ctx.var_bound(var)
        return None if low is None or high is None or high < low else range(low, high + 1)

    def _of_independent_terms(self, moving: Linear) -> tuple[int, int] | None:
        """Exact bounds of a sum of loops, ``e // c`` and ``e % c``, where each ``e`` is a sum of loops and no two terms
        have a loop in common; all ranges are constant."""
        low = high = moving.const
        seen: set[Expr] = set()
        for factors, times in moving.items():
            form = linear(_numerator(factors[0])) if len(factors) == 1 else None
            ends = None if form is None else self._ends(form)
            if form is None or ends is None:
                return None
            loops = {f[0] for f, _ in form.items()}
            digit = _digit(factors[0], *ends)
            if digit is None or not loops.isdisjoint(seen):
                return None
            seen |= loops
            low += min(times * digit[0], times * digit[1])
            high += max(times * digit[0], times * digit[1])
        return low, high

    def _ends(self, form: Linear) -> tuple[int, int, bool] | None:
        """The least and the greatest value of a sum of loops, and whether it takes every value between them."""
        low = high = form.const
        steps: list[tuple[int, int]] = []
        for factors, times in form.items():
            values = self._values(factors[0]) if len(factors) == 1 else None
            if values is None:
                return None
            low += min(times * values[0], times * values[-1])
            high += max(times * values[0], times * values[-1])
            steps.append((abs(times), len(values) - 1))
        reach, every = 0, True
        for step, count in sorted(steps):
            every = every and (step <= reach + 1 or not count)
            reach += step * count
        return low, high, every


def _numerator(e: Any) -> Expr:
    return e.a if isinstance(e, (FloorDiv, FloorMod)) and positive(e.b) is not None else e


def _digit(e: Any, low: int, high: int, every: bool) -> tuple[int, int] | None:
    """Exact bounds of ``e``, a value between ``low`` and ``high`` or a digit of it; ``every``: it takes all of them."""
    divisor = positive(e.b) if isinstance(e, (FloorDiv, FloorMod)) else None
    if divisor is None:
        return low, high
    if isinstance(e, FloorDiv):
        return low // divisor, high // divisor
    if low // divisor == high // divisor:
        return low % divisor, high % divisor
    return (0, divisor - 1) if every else None


def _shifted(form: Linear, by: int) -> Linear:
    out = form.copy()
    out.const += by
    return out


def union(regions: Iterable[Sequence[Range]], analyzer: Analyzer | None = None) -> Box:
    """The smallest box containing all the ``regions`` (one or more, of equal rank)."""
    boxes = [tuple(r) for r in regions]
    if len(boxes) == 1:
        return boxes[0]
    ctx = analyzer or Analyzer()
    out = list(boxes[0])
    for box in boxes[1:]:
        out = [_hull2(ctx, a, b, Min, Max) for a, b in zip(out, box)]
    return tuple(out)


def encloses(outer: Sequence[Range], inner: Sequence[Range], known: Analyzer) -> bool:
    """Whether all of one box is provably in another, whatever the variables are; false if it is not shown.

    >>> from tir.expr import Var
    >>> i = Var("i")
    >>> encloses([Range(i, const(4))], [Range(i + 1, const(3))], Analyzer())
    True
    """
    return all(
        known.can_prove(a.min <= b.min) and known.can_prove(b.min + b.extent <= a.min + a.extent)
        for a, b in zip(outer, inner)
    )


def intersect(regions: Iterable[Sequence[Range]], analyzer: Analyzer | None = None) -> Box:
    """The box common to all the ``regions``; extents are clipped at 0."""
    ctx = analyzer or Analyzer()
    boxes = [tuple(r) for r in regions]
    out = list(boxes[0])
    for box in boxes[1:]:
        out = [_hull2(ctx, a, b, Max, Min) for a, b in zip(out, box)]
    return tuple(
        r
        if isinstance(r.extent, IntImm) and r.extent.value >= 0
        else Range(r.min, ctx.simplify(Max(r.extent, const(0, r.extent.dtype))))
        for r in out
    )


def _hull2(ctx: Analyzer, a: Range, b: Range, low_of: Any, high_of: Any) -> Range:
    if a is b:
        return a
    if a.min.dtype is not b.min.dtype:  # regions may be declared in a narrower type than the indices have
        wide = max(a.min.dtype, b.min.dtype, key=lambda dtype: dtype.bits)
        a, b = (Range(cast(wide, r.min), cast(wide, r.extent)) for r in (a, b))
    both = _sizes_and_distance(a, b)
    if both is not None:
        (size, other, apart), later = both, low_of is Max
        first = (max if later else min)(0, apart)
        extent = (min if later else max)(size, apart + other) - first
        if not first and extent == size:
            return a
        low = ctx.simplify(b.min if first else a.min)
        most = int(low.dtype.max_value)  # no buffer has elements beyond
        return Range(low, const(min(extent, most), low.dtype))
    low = ctx.simplify(low_of(a.min, b.min))
    high = ctx.simplify(high_of(ctx.simplify(Add(a.min, a.extent)), ctx.simplify(Add(b.min, b.extent))))
    extent = ctx.simplify(Sub(high, low))
    if low is a.min and ctx.can_prove_equal(extent, a.extent):
        return a
    return Range(low, extent)


def _sizes_and_distance(a: Range, b: Range) -> tuple[int, int, int] | None:
    """The extents of two ranges and how far the second begins after the first, if these are constant."""
    if not (type(a.extent) is IntImm and type(b.extent) is IntImm and is_index(a.min.dtype)):
        return None
    if a.min is b.min:
        return a.extent.value, b.extent.value, 0
    gap = linear(b.min).add(linear(a.min), -1)
    return (a.extent.value, b.extent.value, gap.const) if gap.is_const else None


def joined_digits(region: Sequence[Range], box: Box) -> Iterable[tuple[Range, Range]]:
    """The axes of an access, and what each is to reach; ``e // size`` that is to have one value, and ``e % size``, are an axis ``e``.

    Of a box that is wider than its digits, more may be reached.
    """
    axes = dict(enumerate(zip(region, box)))
    quotients = {
        key(axis.min): n
        for n, (axis, want) in axes.items()
        if isinstance(axis.min, FloorDiv) and is_const(axis.extent, 1) and is_const(want.extent, 1)
    }
    for n, (axis, want) in enumerate(zip(region, box)):
        e = axis.min
        if isinstance(e, FloorMod) and isinstance(e.b, IntImm) and is_const(axis.extent, 1):
            above = quotients.pop(key(FloorDiv(e.a, e.b)), None)
            if above is not None:
                first = axes[above][1].min * e.b + want.min
                axes[above] = Range(e.a, axis.extent), Range(first, want.extent)
                del axes[n]
    return axes.values()


def values_reaching(axis: Range, want: Range, iters: set[Var]) -> tuple[Var, Range] | None:
    """The values of v for which [a*v + b, a*v + b + w) overlaps ``want``; None if the access is not of that form."""
    parts = linear(axis.min, uncast).in_one(iters)
    if parts is None and isinstance(axis.min, FloorDiv) and isinstance(axis.min.b, IntImm) and is_const(axis.extent, 1):
        size = axis.min.b  # e // size is in a box where e is in one size times as large
        return values_reaching(Range(axis.min.a, axis.extent), Range(want.min * size, want.extent * size), iters)
    if parts is None or not isinstance(axis.extent, IntImm):
        return None
    var, scale, offset = parts[0], parts[1], parts[2].build(axis.min.dtype)
    width, low = axis.extent.value, want.min - offset
    if scale == 1 and width == 1:
        return var, Range(low, want.extent)
    high = want.min + want.extent - 1 - offset
    if scale < 0:
        # [a*v, a*v + w) overlaps [low, high] where [-a*v - w + 1, -a*v] overlaps [-high, -low]
        zero = const(0, low.dtype)
        low, high, scale = zero - high + (width - 1), zero - low + (width - 1), -scale
    analyzer = Analyzer()
    first = analyzer.simplify(floordiv(low - (width - 1) + (scale - 1), const(scale, low.dtype)))
    last = analyzer.simplify(floordiv(high, const(scale, high.dtype)))
    return var, Range(first, analyzer.simplify(last - first + 1))
