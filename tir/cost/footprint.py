"""How much memory each loop touches, its reuse, the cache that holds it, and what limits the run time.

A loop's *footprint* is the set of smallest boxes of the buffers that contain all accesses of its iterations. The
traffic between two memory levels follows from it: if one iteration fits a cache, each element is loaded once; if not,
every iteration loads what its inner loops load. Conditions count as true, so tails count in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import Any, NamedTuple

from ..analysis.effects import effects
from ..arith import Analyzer
from ..arith.linear import Linear, is_index, key, linear
from ..arith.regions import Box, relax
from ..buffer import Buffer, Range
from ..expr import Add, Call, Div, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, Var, const
from ..function import IRModule, PrimFunc
from ..node import cached_property, once
from ..op import effect_of
from ..stmt import PARALLEL, SERIAL, BlockRealize, For, IfThenElse, Stmt
from ..visit import has_load, substitute, uses_var, walk
from .footprint_table import LEVELS, Footprint, Level, Machine

LINE = 64  # bytes of a cache line
Part = tuple[Var, ...]  # of a program: what is in these serial loops


@dataclass(frozen=True)
class _Span:
    """Elements ``first`` to ``first + width - 1`` of an axis; loops outside of it are in ``first``."""

    first: Linear
    width: int

    @staticmethod
    def of(axis: Range) -> _Span | None:
        """The span that a range is; None, for all of the axis, if its extent is not constant."""
        known = isinstance(axis.extent, IntImm) and is_index(axis.min.dtype)
        return _Span(linear(axis.min), axis.extent.value) if known else None

    def over(self, loops: Mapping[Var, Range], ends: Mapping[Var, tuple[int, int] | None]) -> _Span | None:
        """The elements in all iterations of loops that have these ``ends``."""
        moving, rest = self.first.split(ends)
        if moving.is_const:
            return self
        reach = moving.interval(ends)
        if reach is None and (digits := _digits(moving, ends)) is not None:
            return _Span(rest.add(digits.first), self.width + digits.width - 1)
        if reach is None:
            dtype = next(iter(loops)).dtype
            box = relax([Range(self.first.build(dtype), const(self.width, dtype))], loops)
            return None if box is None else _Span.of(box[0])
        rest.const += reach[0]
        return _Span(rest, self.width + reach[1] - reach[0])

    def data(self, loops: Mapping[Var, Range]) -> set[Var]:
        """The loops that what it loads depends on, if its place is loaded from memory."""
        return {var for var in loops if any(uses_var(f, var) for f in self.loaded)} if self.loaded else set()

    @cached_property
    def loaded(self) -> list[Expr]:
        """The factors in its place that are loaded from memory."""
        return [f for factors, _ in self.first.items() for f in factors if has_load(f)]

    def hull(self, other: _Span) -> _Span | None:
        """The elements of both and between them; None if they are far apart, or it is not known how far."""
        gap = other.first.minus(self.first)
        if not gap.is_const:
            return None
        begin, end = min(0, gap.const), max(self.width, gap.const + other.width)
        near = end - begin <= 2 * (self.width + other.width)
        return _Span(other.first if begin else self.first, end - begin) if near else None


def _digits(moving: Linear, ends: Mapping[Var, tuple[int, int] | None]) -> _Span | None:
    """Where a sum of loops and of their digits, ``v // n`` and ``v % n``, lies in all iterations, at most; None for any other."""
    first, width = Linear(), 1
    for factors, scale in moving.items():
        digit = factors[0]
        if len(factors) > 1 or scale < 0 or not isinstance(digit, (Var, FloorDiv, FloorMod)):
            return None
        size = 1 if isinstance(digit, Var) else getattr(digit.b, "value", 0)
        inner, rest = linear(digit if isinstance(digit, Var) else digit.a).split(ends)
        reach = inner.interval(ends)
        if reach is None or size < 1:
            return None
        if isinstance(digit, FloorMod):
            width += scale * (size - 1)
            continue
        rest.const += reach[0]
        begin = rest.const % size if rest.is_const else size - 1
        first.add(linear(rest.build(digit.dtype) // size), scale)
        width += scale * ((begin + reach[1] - reach[0]) // size)
    return _Span(first, width)


_Box = tuple["_Span | None", ...]  # None: all of an axis

Lines = Mapping[
    tuple[Part, float], int
]  # bytes of cache lines, by the part that touches them first and how much longer they take


class Cache(NamedTuple):
    """``size`` bytes, in which lines that are a multiple of ``way`` bytes apart have the same places, for ``ways`` of them (0: for any number)."""

    size: int
    ways: int = 0
    way: int = 0


@dataclass(eq=False)
class _Access:
    """A box of a buffer in a part of the program, the first that touches it. ``slower``: times as long as its lines take from
    far caches if they are at few places of the near one, which keeps as many under way."""

    buffer: Buffer
    box: _Box
    part: Part = ()
    slower: float = 1.0

    def of(self, box: _Box) -> _Access:
        """Another box of it."""
        return _Access(self.buffer, box, self.part, self.slower)

    @cached_property
    def rows(self) -> tuple[int, list[tuple[int, int]]]:
        """See :func:`_rows`."""
        return _rows_of([n for n, _ in self.extents], self.buffer)

    @cached_property
    def extents(self) -> list[tuple[int, int]]:
        return _extents(self.box, self.buffer)

    @cached_property
    def lines(self) -> int:
        """Cache lines that hold it."""
        row, apart = self.rows
        return row * prod(count for count, _ in apart)

    def crowd(self, way: int) -> int:
        """The lines at each place that it is at, of a cache of which ``way`` bytes have one at each."""
        row, apart = self.rows
        return -(-self.lines // max(1, _places(row, apart, way))) if apart else 1


@once
def _whole(buffer: Buffer) -> _Access:
    return _Access(buffer, (None,) * len(buffer.shape))


def _union(a: _Box, b: _Box) -> _Box | None:
    """The smallest box that contains both; None if they are apart (``E[i, j]`` and ``E[j, i]``) and are better counted apart."""
    hulls = [(x is None or y is None, x and y and x.hull(y)) for x, y in zip(a, b)]
    return tuple(h for _, h in hulls) if all(whole or h is not None for whole, h in hulls) else None


def footprint(program: Any, machine: Machine | None = None, target: Any = None) -> Footprint:
    """The footprint of a Schedule, PrimFunc or IRModule (of one function, or its ``main``), and its bottleneck.

    ``machine``: sizes and rates (default: :meth:`Machine.of` ``target``). Sizes must be constant: raises ``ValueError``
    with the loop whose extent is not. Operations are floating-point additions, multiplications, divisions, minima and
    maxima, and calls such as ``exp``, one each; what a value has twice, as ``(a - b) * (a - b)``, is counted once. The work of
    tensorized blocks is not counted: compute the footprint before.

    >>> from tir.library import gemm
    >>> print(footprint(gemm.gemm(64, 64, 64)).bottleneck in ("compute", "L1", "L2", "L3", "memory"))
    True
    """
    func = _function(program)
    using = machine or Machine.of(target or func.attrs.get("target"))
    root = _root(func)
    rows = tuple(_rows(root, using))
    sizes = [(level, using.sizes[level]) for level in LEVELS if level in using.sizes]
    below = [*(level for level, _ in sizes[1:]), "memory"]
    traffic = {level: sum(_moved(root, Cache(size)).values()) for (_, size), level in zip(sizes, below)}
    name = func.attrs.get("global_symbol", "main")
    return Footprint(str(getattr(name, "value", name)), rows, root.flops(), traffic, using)


def traffic(program: Any, sizes: Sequence[int]) -> list[int]:
    """The bytes that a Schedule, PrimFunc or IRModule (as for :func:`footprint`) loads into a cache of each of ``sizes``.

    >>> from tir.library import rows
    >>> traffic(rows.row_sum(64, 100), [1 << 20])
    [25856]
    """
    root = _root(_function(program))
    return [sum(_moved(root, Cache(size)).values()) for size in sizes]


def traffic_of_parts(func: PrimFunc, caches: Sequence[Cache], machine: Machine) -> list[Lines]:
    """As :func:`traffic`, by part and, where its lines crowd a few places of the near cache, by how much longer they take from a far one."""
    root = _root(func, machine)
    return [_moved(root, cache) for cache in caches]


def operations(program: Any) -> int:
    """The floating-point operations of a Schedule, PrimFunc or IRModule, counted as by :func:`footprint`; computed once for
    each function object.

    >>> from tir.library import rows
    >>> operations(rows.row_sum(64, 100))
    6400
    """
    return _flops_of(_function(program))


@once
def _flops_of(func: PrimFunc) -> int:
    return _root(func).flops()


def _root(func: PrimFunc, machine: Machine | None = None) -> _Node:
    """The loops and accesses of a function, and how much longer their lines take on a ``machine``."""
    root = _Node("", ())
    _add_loops(func.body, root, {})
    _add_accesses(func.body, root, machine)
    return root


def _function(program: Any) -> PrimFunc:
    if isinstance(program, PrimFunc):
        return program
    if isinstance(program, IRModule):
        return program["main"] if "main" in program or len(program) != 1 else next(iter(program.functions.values()))
    return program.func


@dataclass
class _Node:
    """A loop, or the program: the accesses and the loops in it."""

    name: str
    around: tuple[For, ...]  # loops outside of it and itself, outermost first
    children: list[_Node] = field(default_factory=list)
    accesses: list[_Access] = field(default_factory=list)  # directly in it
    work: int = 0  # operations directly in it, of one iteration

    @property
    def extent(self) -> int:
        return _length(self.around[-1]) if self.around else 1

    def flops(self) -> int:
        """Operations of all iterations."""
        return self.extent * (self.work + sum(child.flops() for child in self.children))

    def accessed(self) -> int:
        """Bytes loaded and stored by all iterations."""
        own = sum(a.buffer.dtype.bytes * _volume(a) for a in self.accesses)
        return self.extent * (own + sum(child.accessed() for child in self.children))

    @cached_property
    def boxes(self) -> list[_Access]:
        """The boxes of each buffer, over all iterations."""
        return _united(self._over_loops(max(len(self.around) - 1, 0)))

    @cached_property
    def boxes_of_one_iteration(self) -> list[_Access]:
        """The boxes of each buffer in any one iteration."""
        return _united([*self.accesses, *(access for child in self.children for access in child.boxes)])

    @cached_property
    def own_lines(self) -> Lines:
        """The cache lines that what is directly in it touches, in any one iteration."""
        return _lines(_united(self.accesses))

    @cached_property
    def lines(self) -> Lines:
        """The cache lines that all iterations touch."""
        return _lines(self.boxes)

    @cached_property
    def bytes_of_one_iteration(self) -> int:
        """Bytes of the cache lines that any one iteration touches."""
        return sum(_lines(self.boxes_of_one_iteration).values())

    def fits(self, cache: Cache) -> bool:
        """Whether a cache holds what any one iteration touches."""
        if self.bytes_of_one_iteration > cache.size:
            return False
        return cache.ways == 0 or all(a.crowd(cache.way) <= cache.ways for a in self.boxes_of_one_iteration)

    def _over_loops(self, depth: int) -> Iterator[_Access]:
        """The accesses in it, over all iterations of the loops inside of the outermost ``depth``."""
        if self.accesses:
            loops = {f.loop_var: f.domain for f in self.around[depth:]}
            ends = {var: domain.ends() for var, domain in loops.items()}
            for a in self.accesses:
                gathered = _gathered(a.buffer, a.box, loops, ends)
                yield a.of(gathered or tuple(span and span.over(loops, ends) for span in a.box))
        for child in self.children:
            yield from child._over_loops(depth)


def _gathered(
    buffer: Buffer, box: _Box, loops: Mapping[Var, Range], ends: Mapping[Var, tuple[int, int] | None]
) -> _Box | None:
    """The box of an access whose place is loaded from memory: as many elements as ``loops`` have iterations, anywhere. None if it
    is not."""
    depends = [set[Var]() if span is None else span.data(loops) for span in box]
    moving = set[Var]().union(*depends)
    if not moving:
        return None
    left = prod(getattr(loops[var].extent, "value", 1) for var in moving)
    made: list[_Span | None] = []
    for span, own, size in zip(box, depends, buffer.shape):
        if span is None or not own:
            made.append(span and span.over(loops, ends))
            continue
        count = max(1, min(left, getattr(size, "value", left)))  # 1 where no iteration or no element is
        made.append(_Span(span.first, span.width * count))
        left = -(-left // count)
    return tuple(made)


def _united(accesses: Iterable[_Access]) -> list[_Access]:
    """Boxes that contain all of ``accesses``: one for those of a buffer that are near each other."""
    found: dict[Buffer, list[_Access]] = {}
    for access in accesses:
        several = found.setdefault(access.buffer, [])
        for n, other in enumerate(several):
            both = _union(other.box, access.box)
            if both is not None:
                several[n] = other.of(both)
                break
        else:
            several.append(access)
    return [access for several in found.values() for access in several]


def _length(loop: For) -> int:
    if not isinstance(loop.extent, IntImm):
        raise ValueError(f"loop {loop.loop_var.name} has the length {loop.extent!r}: footprints need constant lengths")
    return loop.extent.value


def _add_loops(item: Any, node: _Node, values: Mapping[Var, Expr]) -> None:
    """Add the loops and the arithmetic under ``item`` to ``node``; ``values`` are the bindings of the blocks around."""
    if isinstance(item, For):
        loop = item.replace(min=substitute(item.min, values), extent=substitute(item.extent, values))
        child = _Node(item.loop_var.name, (*node.around, loop))
        _length(loop)
        node.children.append(child)
        _add_loops(item.body, child, values)
    elif isinstance(item, BlockRealize):
        block = item.block
        own = {i.var: substitute(v, values) for i, v in zip(block.iter_vars, item.iter_values)}
        _add_loops(block.body, node, {**values, **own})
    elif isinstance(item, IfThenElse):
        for part in (item.then_case, item.else_case):
            if part is not None:
                _add_loops(part, node, values)
    elif isinstance(item, Expr):
        node.work += sum({key(n): work for n in walk(item) if (work := _operations(n))}.values())
    elif isinstance(item, Stmt):
        for child in item.children():
            if isinstance(child, (Stmt, Expr)):
                _add_loops(child, node, values)


def _add_accesses(body: Stmt, root: _Node, machine: Machine | None) -> None:
    """Add every access under ``body`` to the loop that it is directly in. An init does not count, a block with opaque
    effects accesses what it declares."""
    nodes = _by_loops(root)
    rows = {var for path in nodes for var in path}
    for effect in effects(body).located():
        if effect.first is None:
            node = nodes[tuple(v for v, _, _ in effect.loops if v in rows)]
            box = effect.box() or effect.buffer.full_region().region
            spans = tuple(map(_Span.of, _simplified(box, node.around)))
            part = tuple(loop.loop_var for loop in node.around if loop.kind in (SERIAL, PARALLEL))
            slower = _slower(effect.buffer, spans, node.around, machine) if machine else 1.0
            node.accesses.append(_Access(effect.buffer, spans, part, slower))


def _simplified(box: Box, loops: Sequence[For]) -> Box:
    """A box whose indices are sums of loops where they can be: those of packed panels divide what loops make of whole panels."""
    if all(type(n) in (Add, Mul, Sub, IntImm, Var) for axis in box for n in walk(axis.min)):
        return box
    known = Analyzer({loop.loop_var: loop.domain for loop in loops})
    return tuple(Range(known.simplify(axis.min), axis.extent) for axis in box)


def _by_loops(node: _Node) -> dict[tuple[Var, ...], _Node]:
    found = {tuple(f.loop_var for f in node.around): node}
    for child in node.children:
        found.update(_by_loops(child))
    return found


def _operations(e: Any) -> int:
    if not isinstance(e, Expr) or not e.dtype.element.is_float:
        return 0
    if isinstance(e, (Add, Sub, Mul, Div, Min, Max)):
        return e.dtype.lanes
    counted = isinstance(e, Call) and e.op not in ("if_then_else", "likely", "reinterpret") and effect_of(e) == "pure"
    return e.dtype.lanes if counted else 0


def _extents(box: _Box, buffer: Buffer) -> list[tuple[int, int]]:
    """(extent, size) of each axis; the entire axis if the extent is unknown."""
    made = []
    for have, size in zip(box, buffer.shape):
        if not isinstance(size, IntImm):
            raise ValueError(f"buffer {buffer.name} has the size {size!r}: footprints need constant sizes")
        made.append((min(have.width, size.value) if have else size.value, size.value))
    return made


def _volume(access: _Access) -> int:
    return prod(extent for extent, _ in access.extents)


def _rows_of(extents: Sequence[int], buffer: Buffer) -> tuple[int, list[tuple[int, int]]]:
    """The lines of what is contiguous in a box, or has less than a line between neighbours; and how many such rows there are along each axis,
    with the bytes between them."""
    together, apart, pitch, whole, each = 1, [], 1, True, buffer.dtype.bytes
    for extent, n in zip(reversed(extents), reversed(buffer.shape)):
        size = n.value  # type: ignore[attr-defined]  (a constant, as for _extents)
        if whole or pitch * each < LINE:
            together += (extent - 1) * pitch
        elif extent > 1:
            apart.append((extent, pitch * each))
        whole = whole and extent == size
        pitch *= size
    return -(-together * each // LINE), apart


def _places(row: int, apart: Sequence[tuple[int, int]], way: int) -> int:
    """At how many places of a cache, of which ``way`` bytes have a line at each, rows of lines are: few where they are multiples of a page apart."""
    return min(way // LINE, row * prod(min(count, way // gcd(between, way)) for count, between in apart))


def _slower(buffer: Buffer, box: _Box, around: Sequence[For], machine: Machine) -> float:
    """Of an access in loops, see :class:`_Access`: by the innermost loops that load as many lines as a core does at a time."""
    most, ways = machine.under_way, machine.ways
    way = max(LINE, machine.sizes["L1"] // ways)
    extents = [extent for extent, _ in _extents(box, buffer)]
    pitch, crowds = buffer.dtype.bytes, False
    for n in reversed(buffer.shape):
        crowds = crowds or (pitch > LINE and pitch % (way * ways // most) == 0)
        pitch *= getattr(n, "value", 1)
    for loop in reversed(around) if crowds else ():
        moved = [span.first.coefficient(loop.loop_var) if span else 0 for span in box]
        extents = [n + abs(step) * (_length(loop) - 1) for n, step in zip(extents, moved)]
        row, apart = _rows_of(extents, buffer)
        if row * prod(count for count, _ in apart) >= most:
            return max(1.0, most / (ways * _places(row, apart, way)))
    return 1.0


def _lines(boxes: Iterable[_Access]) -> Lines:
    """Bytes of the cache lines that hold the boxes, of each buffer together at most those of all of it."""
    found, left = dict[tuple[Part, float], int](), dict[Buffer, int]()
    for a in boxes:
        rest = left[a.buffer] if a.buffer in left else _whole(a.buffer).lines
        size = min(rest, a.lines)
        left[a.buffer] = rest - size
        found[a.part, a.slower] = found.get((a.part, a.slower), 0) + size * LINE
    return found


def _moved(node: _Node, cache: Cache) -> Lines:
    """What is loaded into a cache in one execution of ``node``."""
    found = dict[tuple[Part, float], int]()
    _add_moved(node, cache, 1, found)
    return found


def _add_moved(node: _Node, cache: Cache, runs: int, found: dict[tuple[Part, float], int]) -> None:
    fits = not node.children or node.fits(cache)
    runs *= 1 if fits else node.extent
    for source, count in (node.lines if fits else node.own_lines).items():
        found[source] = found.get(source, 0) + runs * count
    for child in () if fits else node.children:
        _add_moved(child, cache, runs, found)


def _rows(node: _Node, machine: Machine, runs: int = 1) -> Iterator[Level]:
    if node.around:
        volumes, touched = Counter[Buffer](), Counter[str]()
        for a in node.boxes:
            volumes[a.buffer] = min(volumes[a.buffer] + _volume(a), _volume(_whole(a.buffer)))
        for buffer, volume in volumes.items():
            touched[buffer.name] += volume * buffer.dtype.bytes
        lines = sum(node.lines.values())
        holds = next((level for level in LEVELS if lines <= machine.sizes.get(level, -1)), "memory")
        yield Level(
            node.name,
            len(node.around) - 1,
            node.extent,
            runs,
            touched,
            node.accessed(),
            node.flops(),
            holds,
            node.around[-1].loop_var,
        )
    for child in node.children:
        yield from _rows(child, machine, runs * node.extent)
