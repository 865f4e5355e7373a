"""Delinearization of products of symbolic sizes: ``f // m``, ``f % m`` and ``i * m + j``, which exact sets cannot represent.

The digits of a number determine it, and are ordered lexicographically as it is: they can be coordinates in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import permutations
from typing import Any

from ...arith import Analyzer, simplify_stmt
from ...arith.divide import exact_quotient
from ...arith.linear import is_index, key, linear
from ...buffer import Buffer, BufferRegion, IterVar, Range
from ...expr import (
    BufferLoad,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Mul,
    Var,
    const,
    digits_of,
    floordiv,
    floormod,
    is_const,
)
from ...function import PrimFunc
from ...stmt import BlockRealize, BufferStore, For, LetStmt
from ...visit import free_vars, has_load, nodes_of, rewrite, substitute, uses_var
from ..users import uses_pointer


def undivided(indices: Sequence[Expr], loops: Collection[Var], sizes: Iterable[Buffer] = ()) -> list[Expr] | None:
    """What ``indices`` determine in all iterations of ``loops``: a number in place of its digits; None if there are none.

    What all iterations share is left out. ``sizes`` are buffers, whose shapes are not negative.

    >>> f, m = Var("f"), Var("m")
    >>> undivided([f // m, m - f % m], [f])
    [f]
    """
    known = Analyzer()
    known.assume_sizes(sizes)
    left = [_moving(i, loops) for i in indices]
    found: list[Expr] | None = None
    while True:
        pairs = ((a, b, _joined(a, b, loops, known)) for a, b in permutations(left, 2))
        low, high, whole = next((pair for pair in pairs if pair[2] is not None), (None, None, None))
        if whole is None:
            return found
        found = left = [whole, *(i for i in left if i is not low and i is not high)]


def _moving(index: Expr, loops: Collection[Var]) -> Expr:
    """The only term of an index that changes, which then determines it; the index if there are several."""
    terms = [factors for factors, _ in linear(index).items()] if is_index(index.dtype) else []
    moving = [factors for factors in terms if has_load(*factors) or any(uses_var(f, loops) for f in factors)]
    return moving[0][0] if len(moving) == 1 == len(moving[0]) else index


def _joined(a: Expr, b: Expr, loops: Collection[Var], known: Analyzer) -> Expr | None:
    """The number of which ``a`` is a digit and ``b`` the one above it, or all that is above it; None if they are not."""
    low, high = _digit(a), _digit(b)
    if low is None or high is None:
        return None
    (value, by, radix), (other, start, rest) = low, high
    if radix is None or (key(value), key(by * radix)) != (key(other), key(start)):
        return None
    radices = [radix] if rest is None else [radix, rest]
    if any(uses_var(e, loops) or has_load(e) for e in (by, *radices)):
        return None
    whole = value if is_const(by, 1) else floordiv(value, by)
    if whole is value and rest is None:
        return value
    if not all(known.can_prove(e >= 0) for e in radices):
        return None
    return whole if rest is None else floormod(whole, radix * rest)


def _digit(e: Any) -> tuple[Expr, Expr, Expr | None] | None:
    """(value, by, radix) of ``value // by % radix``; no ``radix``: unbounded."""
    if not isinstance(e, (FloorDiv, FloorMod)) or _is_negative(e.b):
        return None
    if isinstance(e, FloorDiv):
        return e.a, e.b, None
    if isinstance(e.a, FloorDiv):
        return None if _is_negative(e.a.b) else (e.a.a, e.a.b, e.b)
    return e.a, const(1, e.dtype), e.b


def _is_negative(e: Expr) -> bool:
    """Whether ``e`` is a negative size, as ``-m``: its digits are not from 0 on."""
    if isinstance(e, IntImm) or not is_index(e.dtype):
        return isinstance(e, IntImm) and e.value < 0
    return all(coefficient < 0 for _, coefficient in linear(e).items())


def split_sizes(*programs: PrimFunc) -> tuple[PrimFunc, ...] | None:
    """``programs`` with whatever is as long as a product of sizes as its digits: a loop as one loop for each, an iterator as
    several, an axis of a buffer as several axes. The same instances in the same order access the same elements, under
    names that exact sets can represent. None where nothing is to be split.

    The sizes are those that the programs divide by, or multiply iterators by; variables in them are assumed not to be
    negative.

    >>> from tir.script import parse
    >>> f = parse('''
    ... @T.prim_func
    ... def f(a: T.handle, m: T.int32, n: T.int32):
    ...     A = T.match_buffer(a, (m * n,), "float32")
    ...     for i, j in T.grid(m, n):
    ...         A[i * n + j] = 1.0
    ...     for i in range(m * n):
    ...         A[i] = A[i] + 1.0
    ... ''')
    >>> (split,) = split_sizes(f)
    >>> split.body.stmts[1]
    for i_1, i_0 in T.grid(m, n):
        A[i_1, i_0] = A[i_1, i_0] + 1.0
    """
    split = _SplitSizes(programs)
    made = tuple(split.program(f) for f in programs)
    return None if all(new is old for new, old in zip(made, programs)) else made


class _SplitSizes:
    def __init__(self, programs: Sequence[PrimFunc]):
        found = {key(e): e for f in programs for e in _strides(f.body)}
        self.strides = sorted(found.values(), key=_degree)
        self.sizes = Analyzer()
        for var in {v for stride in self.strides for v in free_vars(stride)}:
            self.sizes.assume(var >= 0)
        self.known: dict[Any, tuple[Expr, ...]] = {}
        self.digits: dict[Var, tuple[Var, ...]] = {}
        self.buffers: dict[Buffer, Buffer] = {}
        self.axes: dict[Buffer, list[tuple[Expr, ...]]] = {}  # of a buffer that is split: the radices of each old axis

    def program(self, func: PrimFunc) -> PrimFunc:
        if not self.strides:
            return func
        used = {n.buffer for n in nodes_of(func.body) if isinstance(n, (BufferLoad, BufferStore))}
        self.sizes.assume_sizes(used)
        for buffer in used - self.buffers.keys():
            if not buffer.strides and not uses_pointer(func.body, buffer):
                self.buffers[buffer] = self.buffer(buffer)
        body = rewrite(func.body, self.visit)
        return func if body is func.body else func.with_body(simplify_stmt(body))

    def radices(self, extent: Expr) -> tuple[Expr, ...]:
        """``extent`` as a product, the highest digit first: each stride that divides it is that of a digit."""
        if isinstance(extent, IntImm):
            return (extent,)
        found = self.known.get(key(extent))
        if found is None:
            radices, least, rest = list[Expr](), const(1, extent.dtype), extent
            for stride in self.strides:
                radix, above = exact_quotient(stride, least), exact_quotient(extent, stride)
                if radix is not None and above is not None and not (is_const(radix, 1) or is_const(above, 1)):
                    radices.insert(0, radix)
                    least, rest = stride, above
            may_be_negative = [r for r in (rest, *radices) if not self.sizes.can_prove(r >= 0)]
            # a product of two that are negative has iterations, and loops over them have none
            found = (rest, *radices) if len(may_be_negative) < 2 else (extent,)
            self.known[key(extent)] = found
        return found

    def variables(self, var: Var, radices: Sequence[Expr]) -> tuple[Var, ...]:
        if var not in self.digits:
            places = reversed(range(len(radices)))
            self.digits[var] = tuple(Var(f"{var.name}_{place}", var.dtype) for place in places)
        return self.digits[var]

    def buffer(self, old: Buffer) -> Buffer:
        axes = [self.radices(size) for size in old.shape]
        if all(len(radices) == 1 for radices in axes):
            return old
        new = old.replace(shape=tuple(r for radices in axes for r in radices), axis_separators=())
        self.axes[new] = axes
        return new

    def visit(self, item: Any) -> Any:
        if isinstance(item, Buffer):
            return self.buffers.get(item)
        if isinstance(item, (BufferLoad, BufferStore)) and item.buffer in self.axes:
            axes = zip(item.indices, self.axes[item.buffer])
            return item.replace(indices=tuple(d for index, radices in axes for d in digits_of(index, radices)))
        if isinstance(item, BufferRegion) and item.buffer in self.axes:
            return BufferRegion(item.buffer, tuple(self.ranges(item)))
        if isinstance(item, For) and is_const(item.min, 0):
            return self.loop(item)
        return self.realize(item) if isinstance(item, BlockRealize) else None

    def ranges(self, item: BufferRegion) -> Iterator[Range]:
        """A box around a region: of an axis that is split, everything."""
        for axis, radices in zip(item.region, self.axes[item.buffer]):
            yield from (axis,) if len(radices) == 1 else (Range(const(0, r.dtype), r) for r in radices)

    def loop(self, loop: For) -> For | None:
        radices = self.radices(loop.extent)
        if len(radices) == 1:
            return None
        variables = self.variables(loop.loop_var, radices)
        body: Any = substitute(loop.body, {loop.loop_var: _value_of(variables, radices)})
        for var, extent in reversed(list(zip(variables, radices))):
            body = loop.replace(loop_var=var, extent=extent, body=body)
        return body

    def realize(self, item: BlockRealize) -> BlockRealize | None:
        iterators, values = list[IterVar](), list[Expr]()
        sums: dict[Var, Expr] = {}
        for iterator, value in zip(item.block.iter_vars, item.iter_values):
            dom = iterator.dom
            radices = self.radices(dom.extent) if dom is not None and is_const(dom.min, 0) else (const(1),)
            if len(radices) == 1:
                iterators.append(iterator)
                values.append(value)
                continue
            variables = self.variables(iterator.var, radices)
            domains = (Range(const(0, radix.dtype), radix) for radix in radices)
            iterators += [iterator.replace(var=v, dom=domain) for v, domain in zip(variables, domains)]
            values += digits_of(value, radices)
            sums[iterator.var] = _value_of(variables, radices)
        if not sums:
            return None
        block = substitute(item.block.replace(iter_vars=()), sums).replace(iter_vars=tuple(iterators))
        return item.replace(iter_values=tuple(values), block=block)


def _value_of(digits: Sequence[Expr], radices: Sequence[Expr]) -> Expr:
    value = digits[0]
    for digit, radix in zip(digits[1:], radices[1:]):
        value = value * radix + digit
    return value


def _strides(body: Any) -> Iterator[Expr]:
    """The sizes by which ``body`` divides, or multiplies what runs in it."""
    inner = {v for n in nodes_of(body) for v in _bound_by(n)}
    for item in nodes_of(body):
        digit = _digit(item)
        if digit is not None and not all(linear(e).is_const for e in digit[1:] if e is not None):
            value, by, radix = digit
            yield from (e for e in (by, by if radix is None else by * radix) if _is_size(e, inner))
            yield from _factors(value, inner)
        elif isinstance(item, (BufferLoad, BufferStore, BlockRealize)):
            for e in item.iter_values if isinstance(item, BlockRealize) else item.indices:
                yield from _factors(e, inner)


def _bound_by(item: Any) -> tuple[Var, ...]:
    if isinstance(item, For):
        return (item.loop_var,)
    return (item.var,) if isinstance(item, (IterVar, LetStmt)) else ()


def _factors(e: Expr, inner: set[Var]) -> Iterator[Expr]:
    """What multiplies an ``inner`` variable in a term of ``e``."""
    for factors, coefficient in linear(e).items() if is_index(e.dtype) else ():
        outer = [f for f in factors if not uses_var(f, inner)]
        if len(outer) < len(factors):
            size = reduce(Mul, outer, const(abs(coefficient), e.dtype))
            if _is_size(size, inner):
                yield size


def _is_size(e: Expr, inner: set[Var]) -> bool:
    return not (linear(e).is_const or uses_var(e, inner) or has_load(e))


def _degree(e: Expr) -> int:
    return max(len(factors) for factors, _ in linear(e).items())
