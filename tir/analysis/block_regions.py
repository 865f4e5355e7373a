"""The regions of buffers that a block reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any, NamedTuple

from ..arith.linear import Linear, is_index, linear
from ..buffer import Buffer, BufferRegion, Range
from ..expr import (
    BufferLoad,
    Call,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Select,
    Var,
    const,
    max_,
    min_,
)
from ..op import is_pure
from ..stmt import Block, BufferStore
from ..visit import uses_var, walk
from .effects import READ, WRITE, Effect, Effects, as_range, outline
from .structure import has_load


class Hull(NamedTuple):
    """``base + lo`` to ``base + hi`` inclusive: a symbolic base, and offsets that are mostly constants."""

    base: Linear
    lo: Any
    hi: Any

    def low(self, dtype: Any) -> Expr:
        return _plus(self.base, self.lo, dtype)

    def high(self, dtype: Any) -> Expr:
        return _plus(self.base, self.hi, dtype)


Hulls = list[Hull | None]  # one for each axis; None is all of it


def _plus(base: Linear, offset: Any, dtype: Any) -> Expr:
    if isinstance(offset, int):
        if offset:
            base = base.copy()
            base.const += offset
        return base.build(dtype)
    return linear(base.build(dtype) + offset).build(dtype)


class Relaxer:
    """Computes the bounding box of an index while loop variables run over their ranges.

    ``domains`` maps variables to (min, extent); an outer loop comes before the inner loops that depend on it.
    """

    def __init__(self, domains: Mapping[Var, tuple[Expr, Expr]]):
        self.domains = domains
        self.memo: dict[Var, Hull | None] = {}

    def depends(self, e: Any) -> bool:
        """Whether ``e`` may have several values while the block runs: it uses a loop, memory, or an impure call."""
        if type(e) is Var:
            return e in self.domains
        return uses_var(e, self.domains) or has_load(e) or not is_pure(e)

    def hull(self, e: Expr) -> Hull | None:
        """The hull of ``e``; None if it depends on data or cannot be analysed."""
        if not is_index(e.dtype):
            return self._atom(e)
        if type(e) is IntImm:
            return Hull(Linear(), e.value, e.value)
        if type(e) is Var:
            return self._atom(e)
        form = linear(e)
        base, lo, hi = Linear(), form.const, form.const
        for term_key, (factors, coefficient) in form.terms.items():
            if not any(map(self.depends, factors)):
                base.add_term(factors, coefficient, term_key)
                continue
            if len(factors) != 1:
                return None
            inner = self._atom(factors[0])
            if inner is None:
                return None
            base.add(inner.base, coefficient)
            first, last = inner.lo * coefficient, inner.hi * coefficient
            if coefficient < 0:
                first, last = last, first
            lo, hi = lo + first, hi + last
        lo, hi = lo + base.const, hi + base.const
        base.const = 0
        return Hull(base, _number(lo), _number(hi))

    def _var(self, v: Var) -> Hull | None:
        if v not in self.memo:
            first, extent = self.domains[v]
            low = self.hull(first)
            size = self.hull(extent)
            if low is None or size is None:
                self.memo[v] = None
            else:
                span = size.high(v.dtype) - 1
                top = span.value if isinstance(span, IntImm) else span
                self.memo[v] = Hull(low.base, low.lo, _number(low.hi + top))
        return self.memo[v]

    def _atom(self, e: Expr) -> Hull | None:
        if isinstance(e, Var) and e in self.domains:
            return self._var(e)
        if isinstance(e, Cast) and e.value.dtype.is_int and e.dtype.is_int:
            return self.hull(e.value)
        if isinstance(e, (FloorDiv, FloorMod)) and isinstance(e.b, IntImm) and e.b.value > 0:
            inner = self.hull(e.a)
            if inner is not None:
                return (_floor_div if isinstance(e, FloorDiv) else _floor_mod)(inner, e.b.value, e.dtype)
            return Hull(Linear(), 0, e.b.value - 1) if isinstance(e, FloorMod) and not has_load(e.a) else None
        if isinstance(e, (Min, Max)):
            return self._extreme(e)
        if isinstance(e, Select) or (isinstance(e, Call) and e.op == "if_then_else"):
            yes, no = (e.true_value, e.false_value) if isinstance(e, Select) else e.args[1:]
            a, b = self.hull(yes), self.hull(no)
            return None if a is None or b is None else join(a, b, e.dtype)
        if isinstance(e, Call) and e.op == "likely":
            return self.hull(e.args[0])
        if self.depends(e):
            return None
        return Hull(linear(e), 0, 0) if is_index(e.dtype) else None

    def _extreme(self, e: Any) -> Hull | None:
        a, b = self.hull(e.a), self.hull(e.b)
        if a is None or b is None:
            return None
        pick, build = (min, min_) if isinstance(e, Min) else (max, max_)
        if a.base.key() == b.base.key() and _all_int(a, b):
            return Hull(a.base, pick(a.lo, b.lo), pick(a.hi, b.hi))
        return Hull(
            Linear(),
            _number(build(a.low(e.dtype), b.low(e.dtype))),
            _number(build(a.high(e.dtype), b.high(e.dtype))),
        )


def _number(value: Any) -> Any:
    if type(value) is int:
        return value
    if isinstance(value, IntImm):
        return value.value
    if isinstance(value, Expr):
        form = linear(value)
        return form.const if form.is_const else form.build(value.dtype)
    return value


def _all_int(*hulls: Hull) -> bool:
    return all(isinstance(h.lo, int) and isinstance(h.hi, int) for h in hulls)


def _divisible(base: Linear, by: int) -> bool:
    return all(coefficient % by == 0 for _, coefficient in base.items())


def _floor_div(inner: Hull, by: int, dtype: Any) -> Hull:
    whole = _whole_steps(inner, by)
    if whole is not None:
        return Hull(linear(whole.build(dtype) // (by // _step(inner.base, by))), 0, 0)
    if not _divisible(inner.base, by):
        return Hull(Linear(), _number(inner.low(dtype) // by), _number(inner.high(dtype) // by))
    base = Linear()
    for factors, coefficient in inner.base.items():
        base.add_term(factors, coefficient // by)
    return Hull(base, _number(inner.lo // by), _number(inner.hi // by))


def _floor_mod(inner: Hull, by: int, dtype: Any) -> Hull:
    whole = _whole_steps(inner, by)
    if whole is None:
        return Hull(Linear(), 0, by - 1)
    step = _step(inner.base, by)
    base = Linear().add(linear(whole.build(dtype) % (by // step)), step)
    return Hull(base, inner.lo % step, inner.hi % step)


def _step(base: Linear, by: int) -> int:
    """What all multiples of the base, and ``by``, are multiples of."""
    return gcd(by, *(coefficient for _, coefficient in base.items()))


def _whole_steps(inner: Hull, by: int) -> Linear | None:
    """How many whole steps every value of a hull has, so that division by ``by`` is division of these; None if their
    number varies."""
    step = _step(inner.base, by)
    if not _all_int(inner) or inner.lo // step != inner.hi // step:
        return None
    whole = Linear(inner.lo // step)
    for factors, coefficient in inner.base.items():
        whole.add_term(factors, coefficient // step)
    return whole


def join(a: Hull, b: Hull, dtype: Any) -> Hull:
    """The least hull holding both."""
    if a.base.key() == b.base.key():
        return Hull(a.base, _pick(min, min_, a.lo, b.lo, dtype), _pick(max, max_, a.hi, b.hi, dtype))
    return Hull(
        Linear(),
        _number(min_(a.low(dtype), b.low(dtype))),
        _number(max_(a.high(dtype), b.high(dtype))),
    )


def _pick(pick: Any, build: Any, x: Any, y: Any, dtype: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        return pick(x, y)
    ex, ey = (const(v, dtype) if isinstance(v, int) else v for v in (x, y))
    difference = _number(ex - ey)
    if isinstance(difference, int):
        return pick(0, difference) + y if difference else x
    return build(ex, ey)


def block_access_region(
    block: Block, pointers: Mapping[Var, Buffer] | None = None
) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """The regions ``block`` reads and writes, one box per buffer, in terms of the block's own iterators.

    Loops inside the block are relaxed over their ranges; blocks inside it contribute their declared regions; buffers
    allocated inside it are omitted; a data-dependent index counts as the entire dimension. If the block has an
    ``init``, reads of a buffer that it also writes (the reduction target) are omitted. ``pointers`` maps data pointers
    to buffers, for calls that take a pointer; those of buffers that the block mentions are known.
    """
    touched = hulls_of(outline(block), _mentioned(block) | dict(pointers or {}))
    reads, writes = touched[READ], touched[WRITE]
    if block.init is not None:
        reads = {buffer: hulls for buffer, hulls in reads.items() if buffer not in writes}
    return boxes(reads), boxes(writes)


def hulls_of(found: Effects, named: Mapping[Var, Buffer]) -> dict[str, dict[Buffer, Hulls]]:
    """What is read and what is written: the hull of all effects on each buffer. ``named`` has buffers by pointer."""
    touched: dict[str, dict[Buffer, Hulls]] = {READ: {}, WRITE: {}}
    for effect in found:
        buffer = effect.buffer if effect.indices is not None else named.get(effect.buffer.data)
        if effect.kind in touched and buffer is not None and buffer.data not in found.allocated:
            into = touched[effect.kind]
            hulls = _hulls(effect, buffer)
            into[buffer] = _joined(into[buffer], hulls, buffer) if buffer in into else hulls
    return touched


def _mentioned(block: Block) -> dict[Var, Buffer]:
    """The buffers that the block accesses or declares, by pointer; views are known by themselves."""
    accessed = (n.buffer for n in walk(block.body) if isinstance(n, (BufferLoad, BufferStore)))
    declared = (region.buffer for region in (*block.reads, *block.writes))
    found: dict[Var, Buffer] = {}
    for buffer in (*accessed, *declared):
        found.setdefault(buffer.data, buffer)
    return found


def _hulls(effect: Effect, buffer: Buffer) -> Hulls:
    """The hull of each index of an effect, over the loops around it inside the block."""
    relaxer = Relaxer({var: (low, extent) for var, low, extent in effect.loops})
    if effect.indices is None:
        return [_spanned(relaxer, Range(const(0, size.dtype), size)) for size in buffer.shape]
    return [_of_index(relaxer, index) for index in effect.indices]


def _of_index(relaxer: Relaxer, index: Any) -> Hull | None:
    if isinstance(index, Expr) and index.dtype.lanes == 1:
        return relaxer.hull(index)
    box = as_range(index)
    return None if box is None else _spanned(relaxer, box)


def _spanned(relaxer: Relaxer, box: Range) -> Hull | None:
    start = relaxer.hull(box.min)
    if isinstance(box.extent, IntImm):
        return start and Hull(start.base, start.lo, _number(start.hi + (box.extent.value - 1)))
    size = relaxer.hull(box.extent)
    if start is None or size is None:
        return None
    top = size.high(box.extent.dtype) - 1
    return Hull(start.base, start.lo, _number(start.hi + (top.value if isinstance(top, IntImm) else top)))


def _joined(old: Hulls, new: Hulls, buffer: Buffer) -> Hulls:
    pairs = zip(old, new, buffer.shape)
    return [None if a is None or b is None else join(a, b, _dtype_of(b, size.dtype)) for a, b, size in pairs]


def boxes(touched: Mapping[Buffer, Hulls]) -> tuple[BufferRegion, ...]:
    """The hulls as regions."""
    return tuple(BufferRegion(buffer, tuple(map(_range, hulls, buffer.shape))) for buffer, hulls in touched.items())


def _range(hull: Hull | None, size: Expr) -> Range:
    """A hull as the range of an axis of this size; all of it if there is no hull."""
    if hull is None:
        return Range(const(0, size.dtype), size)
    dtype = _dtype_of(hull, size.dtype)
    return Range(hull.low(dtype), _extent(hull, dtype))


def _extent(hull: Hull, dtype: Any) -> Expr:
    if isinstance(hull.lo, int) and isinstance(hull.hi, int):
        return const(hull.hi - hull.lo + 1, dtype)
    difference = _number(hull.hi - hull.lo + 1)
    return const(difference, dtype) if isinstance(difference, int) else difference


def _dtype_of(hull: Hull, default: Any) -> Any:
    for factors, _ in hull.base.items():
        return factors[0].dtype
    for offset in (hull.lo, hull.hi):
        if isinstance(offset, Expr):
            return offset.dtype
    return default
