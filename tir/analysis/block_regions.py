"""The regions of buffers that a block reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    Let,
    Max,
    Min,
    Ramp,
    Select,
    StringImm,
    Var,
    const,
    max_,
    min_,
)
from ..node import Node
from ..op import effect_of
from ..stmt import Allocate, AllocateConst, AttrStmt, Block, BlockRealize, BufferStore, DeclBuffer, For, LetStmt
from ..visit import substitute, walk


class Hull(NamedTuple):
    """``base + lo`` to ``base + hi`` inclusive: a symbolic base, and offsets that are mostly constants."""

    base: Linear
    lo: Any
    hi: Any

    def low(self, dtype: Any) -> Expr:
        return _plus(self.base, self.lo, dtype)

    def high(self, dtype: Any) -> Expr:
        return _plus(self.base, self.hi, dtype)


def _plus(base: Linear, offset: Any, dtype: Any) -> Expr:
    if isinstance(offset, int):
        made = base.copy()
        made.const += offset
        return made.build(dtype)
    return linear(base.build(dtype) + offset).build(dtype)


class Relaxer:
    """Computes the bounding box of an index while loop variables run over their ranges.

    ``domains`` maps variables to (min, extent); an outer loop comes before the inner loops that depend on it.
    """

    def __init__(self, domains: Mapping[Var, tuple[Expr, Expr]], hidden: Any = ()):
        self.domains = domains
        self.hidden = hidden  # variables bound inside to values that cannot be known
        self.memo: dict[Var, Hull | None] = {}

    def depends(self, e: Any) -> bool:
        return any(
            (isinstance(n, Var) and (n in self.domains or n in self.hidden)) or isinstance(n, BufferLoad)
            for n in walk(e)
        )

    def hull(self, e: Expr) -> Hull | None:
        """The hull of ``e``; None if it depends on data or cannot be analysed."""
        if not is_index(e.dtype):
            return self._atom(e)
        form = linear(e)
        base, lo, hi = Linear(), form.const, form.const
        for factors, coefficient in form.items():
            moving = [f for f in factors if self.depends(f)]
            if not moving:
                base.add_term(factors, coefficient)
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
            return Hull(Linear(), 0, e.b.value - 1) if isinstance(e, FloorMod) and not _reads(e.a) else None
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


def _reads(e: Any) -> bool:
    return any(isinstance(n, BufferLoad) for n in walk(e))


def _number(value: Any) -> Any:
    if isinstance(value, IntImm):
        return value.value
    if isinstance(value, Expr) and is_index(value.dtype):
        form = linear(value)
        return form.const if form.is_const else form.build(value.dtype)
    return value


def _all_int(*hulls: Hull) -> bool:
    return all(isinstance(h.lo, int) and isinstance(h.hi, int) for h in hulls)


def _divisible(base: Linear, by: int) -> bool:
    return all(coefficient % by == 0 for _, coefficient in base.items())


def _floor_div(inner: Hull, by: int, dtype: Any) -> Hull:
    if not _divisible(inner.base, by):
        low, high = inner.low(dtype) // by, inner.high(dtype) // by
        if isinstance(inner.lo, int) and isinstance(inner.hi, int) and inner.lo == inner.hi:
            return Hull(linear(low), 0, 0)
        return Hull(Linear(), _number(low), _number(high))
    base = Linear()
    for factors, coefficient in inner.base.items():
        base.add_term(factors, coefficient // by)
    return Hull(base, _number(inner.lo // by), _number(inner.hi // by))


def _floor_mod(inner: Hull, by: int, dtype: Any) -> Hull:
    if _all_int(inner):
        if _divisible(inner.base, by) and inner.lo // by == inner.hi // by:
            return Hull(Linear(), inner.lo % by, inner.hi % by)
        if inner.lo == inner.hi:
            return Hull(linear(inner.low(dtype) % by), 0, 0)
    return Hull(Linear(), 0, by - 1)


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


def prefetched(call: Call) -> tuple[Expr, ...]:
    """The expressions that a prefetch evaluates: those of its address. It does not count as an access."""
    (address, *_) = call.args
    if isinstance(address, Call) and address.op == "address_of" and isinstance(address.args[0], BufferLoad):
        return address.args[0].indices
    return ()


class Collector:
    """Walks one block and collects the union of its accesses for each buffer, in order of first access."""

    def __init__(self, pointers: Mapping[Var, Buffer]):
        self.pointers = dict(pointers)
        self.reads: dict[Buffer, list[Hull | None]] = {}
        self.writes: dict[Buffer, list[Hull | None]] = {}
        self.domains: dict[Var, tuple[Expr, Expr]] = {}
        self.lets: dict[Var, Expr] = {}
        self.hidden: set[Var] = set()
        self.private: set[Var] = set()
        self.matched: dict[Buffer, BufferRegion] = {}

    def of(self, block: Block) -> Collector:
        """This, having walked ``block``."""
        for buffer in {n.buffer: None for n in walk(block.body) if isinstance(n, (BufferLoad, BufferStore))}:
            self.pointers.setdefault(buffer.data, buffer)
        self.enter_block(block)
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        return self

    def enter_block(self, block: Block) -> None:
        for buffer in block.alloc_buffers:
            self.private.add(buffer.data)
            self.pointers[buffer.data] = buffer
        for match in block.match_buffers:
            self.matched[match.buffer] = match.source
            self.pointers[match.buffer.data] = match.buffer

    # ------------------------------------------------------------ walking

    def visit(self, item: Any) -> None:
        handler = _VISIT.get(type(item))
        if handler is not None:
            handler(self, item)
        elif isinstance(item, Var):
            if item in self.pointers:
                self.whole(self.pointers[item], reads=True, writes=True)
        elif not isinstance(item, Buffer):
            for child in item.children():
                self.visit(child)

    def _for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.domains[loop.loop_var] = (self.known(loop.min), self.known(loop.extent))
        self.visit(loop.body)

    def _let(self, item: Any) -> None:
        self.visit(item.value)
        if item.value.dtype.is_int and not _reads(item.value):
            self.lets[item.var] = self.known(item.value)
        else:
            self.hidden.add(item.var)
        self.visit(item.body)

    def _store(self, store: BufferStore) -> None:
        self.visit(store.value)
        for index in store.indices:
            self.visit(index)
        self.touch(self.writes, store.buffer, store.indices)

    def _load(self, load: BufferLoad) -> None:
        for index in load.indices:
            self.visit(index)
        self.touch(self.reads, load.buffer, load.indices)

    def _call(self, call: Call) -> None:
        if call.op == "prefetch":
            for index in prefetched(call):
                self.visit(index)
            return
        if call.op == "tvm_access_ptr" and len(call.args) >= 5 and isinstance(call.args[1], Var):
            mask = call.args[4].value if isinstance(call.args[4], IntImm) else 3
            buffer = self.pointers.get(call.args[1])
            if buffer is not None:
                self.whole(buffer, reads=bool(mask & 1), writes=bool(mask & 2))
            for arg in (call.args[2], call.args[3]):
                self.visit(arg)
            return
        if call.op == "address_of" and isinstance(place := call.args[0], BufferLoad):  # pyright: ignore[reportGeneralTypeIssues]
            for index in place.indices:
                self.visit(index)
            self.whole(place.buffer, reads=True, writes=True)
            return
        opaque = effect_of(call) == "opaque"
        for arg in call.args:
            if isinstance(arg, BufferRegion):
                ranges = [(r.min, r.extent) for r in arg.region]
                self.box(self.reads, arg.buffer, ranges)
                if opaque:
                    self.box(self.writes, arg.buffer, ranges)
            elif isinstance(arg, Node) and not isinstance(arg, StringImm):
                self.visit(arg)

    def _realize(self, realize: BlockRealize) -> None:
        block = realize.block
        for value in realize.iter_values:
            self.visit(value)
        self.visit(realize.predicate)
        private = {b.data for b in block.alloc_buffers}
        bindings = {iv.var: value for iv, value in zip(block.iter_vars, realize.iter_values)}
        for side, into in (("reads", self.reads), ("writes", self.writes)):
            for region in self.regions_of(block, side):
                if region.buffer.data not in private:
                    ranges = [(substitute(r.min, bindings), substitute(r.extent, bindings)) for r in region.region]
                    self.box(into, region.buffer, ranges)

    def regions_of(self, block: Block, side: str) -> tuple[BufferRegion, ...]:
        """What a block inside contributes: the regions that it declares."""
        return getattr(block, side)

    def _attr(self, attr: AttrStmt) -> None:
        node, value = attr.node, attr.value
        if attr.attr_key in ("thread_extent", "virtual_thread") and hasattr(node, "var"):
            self.domains[node.var] = (const(0, node.var.dtype), self.known(value))
        self.visit(attr.body)

    def _allocate(self, item: Any) -> None:
        self.private.add(item.buffer_var)
        self.visit(item.body)

    def _declare(self, item: DeclBuffer) -> None:
        self.pointers.setdefault(item.buffer.data, item.buffer)
        self.visit(item.body)

    # ------------------------------------------------------------ collecting

    def known(self, e: Expr) -> Expr:
        return substitute(e, self.lets) if self.lets else e

    def touch(self, into: Any, buffer: Buffer, indices: Any) -> None:
        ranges = []
        for index in indices:
            if isinstance(index, Ramp) and isinstance(index.stride, IntImm):
                step = index.stride.value * (index.lanes - 1)
                low = index.base if step >= 0 else index.base + step
                ranges.append((low, const(abs(step) + 1, index.base.dtype)))
            elif index.dtype.lanes > 1:
                ranges.append((None, None))
            else:
                ranges.append((index, const(1, index.dtype)))
        self.box(into, buffer, ranges)

    def whole(self, buffer: Buffer, reads: bool, writes: bool) -> None:
        for wanted, into in ((reads, self.reads), (writes, self.writes)):
            if wanted:
                self.box(into, buffer, [(const(0, s.dtype), s) for s in buffer.shape])

    def box(self, into: dict[Buffer, list[Hull | None]], buffer: Buffer, ranges: list[Any]) -> None:
        if buffer in self.matched:
            source = self.matched[buffer]
            lead = len(source.region) - len(ranges)
            if lead < 0 or any(r[0] is None for r in ranges):
                ranges = [(r.min, r.extent) for r in source.region]
            else:
                inner: list[Any] = [(const(0, r.min.dtype), r.extent) for r in source.region[:lead]] + ranges
                ranges = [(r.min + low, extent) for r, (low, extent) in zip(source.region, inner)]
            self.box(into, source.buffer, ranges)
            return
        if buffer.data in self.private:
            return
        relaxer = Relaxer(self.domains, self.hidden)
        hulls: list[Hull | None] = []
        for low, extent in ranges:
            if low is None:
                hulls.append(None)
                continue
            start = relaxer.hull(self.known(low))
            size = relaxer.hull(self.known(extent))
            if start is None or size is None:
                hulls.append(None)
                continue
            top = size.high(extent.dtype) - 1
            hulls.append(
                Hull(start.base, start.lo, _number(start.hi + (top.value if isinstance(top, IntImm) else top)))
            )
        old = into.get(buffer)
        if old is None:
            into[buffer] = hulls
        else:
            into[buffer] = [
                None if a is None or b is None else join(a, b, low.dtype if low is not None else buffer.shape[0].dtype)
                for a, b, (low, _) in zip(old, hulls, ranges)
            ]


def boxes(touched: Mapping[Buffer, list[Hull | None]], skip: Any = ()) -> tuple[BufferRegion, ...]:
    made = []
    for buffer, hulls in touched.items():
        if buffer in skip:
            continue
        ranges = []
        for hull, size in zip(hulls, buffer.shape):
            if hull is None:
                ranges.append(Range(const(0, size.dtype), size))
                continue
            dtype = _dtype_of(hull, size.dtype)
            ranges.append(Range(hull.low(dtype), _extent(hull, dtype)))
        made.append(BufferRegion(buffer, tuple(ranges)))
    return tuple(made)


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


_VISIT: dict[type, Any] = {
    For: Collector._for,
    LetStmt: Collector._let,
    Let: Collector._let,
    BufferStore: Collector._store,
    BufferLoad: Collector._load,
    Call: Collector._call,
    BlockRealize: Collector._realize,
    AttrStmt: Collector._attr,
    Allocate: Collector._allocate,
    AllocateConst: Collector._allocate,
    DeclBuffer: Collector._declare,
}


def block_access_region(
    block: Block, pointers: Mapping[Var, Buffer] | None = None
) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """The regions ``block`` reads and writes, one box per buffer, in terms of the block's own iterators.

    Loops inside the block are relaxed over their ranges; blocks inside it contribute their declared regions; buffers
    allocated inside it are omitted; a data-dependent index counts as the entire dimension. If the block has an
    ``init``, reads of a buffer that it also writes (the reduction target) are omitted. ``pointers`` maps data pointers
    to buffers, for calls that take a pointer.
    """
    collector = Collector(pointers or {}).of(block)
    skip = set(collector.writes) if block.init is not None else ()
    return boxes(collector.reads, skip), boxes(collector.writes)


def accesses_of(block: Block) -> Iterator[BufferLoad | BufferStore]:
    """Loads and stores of ``block`` itself, including its init, but not those of nested blocks."""
    for part in (block.init, block.body):
        if part is not None:
            for item in walk(part, enter=lambda n: not isinstance(n, BlockRealize)):
                if isinstance(item, (BufferLoad, BufferStore)):
                    yield item
