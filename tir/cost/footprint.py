"""How much memory each loop touches, its reuse, the cache that holds it, and what limits the run time.

A loop's *footprint* is the set of smallest boxes of the buffers that contain all accesses of its iterations. The
traffic between two memory levels follows from it: if one iteration fits a cache, each element is loaded once; if not,
every iteration loads what its inner loops load. Conditions count as true, so tails count in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import Any

from ..analysis.effects import effects
from ..arith import Analyzer
from ..arith.linear import Linear, is_index, key, linear
from ..arith.regions import Box, relax
from ..buffer import Buffer, Range
from ..expr import Add, Call, Div, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, Var, const
from ..function import IRModule, PrimFunc
from ..node import cached_property, once
from ..op import effect_of
from ..stmt import PARALLEL, SERIAL, VECTORIZED, BlockRealize, For, IfThenElse, Stmt
from ..target import LINE, PAGE
from ..visit import has_load, substitute, uses_var, walk
from .footprint_table import LEVELS, Footprint, Level, Machine

SETS, SETS_L1 = 2048, 64  # of lines in a cache; in L1, which is found by virtual addresses, the lines of a page
LARGEST_L1 = 128 << 10  # bytes
CROWDED = 2  # times the lines that a set holds from which on they push each other out: few pages are placed alike
SEEN = 2  # neighbouring lines, at most, after which prefetching does not see the next one come
Part = tuple[Var, ...]  # of a program: what is in these serial and parallel loops
# bytes, by part, whether prefetching does not see them come, and the share of lines stored in parts
Moved = Counter[tuple[Part, bool, float]]


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
        if (moved := _reach(moving, ends)) is not None:
            return _Span(rest.add(moved.first), self.width + moved.width - 1)
        dtype = next(iter(loops)).dtype
        box = relax([Range(self.first.build(dtype), const(self.width, dtype))], loops)
        return None if box is None else _Span.of(box[0])

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


def _reach(moving: Linear, ends: Mapping[Var, tuple[int, int] | None]) -> _Span | None:
    """Where a sum of loops and of their digits, such as ``v // n``, ``v % n`` and digits of sums of these, lies in all iterations, at most; None
    for any other. Digits that begin anew count as if they went on: these are as many elements."""
    first, width = Linear(), 1
    if (known := moving.interval(ends)) is not None:
        return _Span(Linear(known[0]), known[1] - known[0] + 1)
    for (digit, *others), scale in moving.items():
        if others or scale < 0:
            return None
        if isinstance(digit, Var) and (known := ends[digit]) is not None:
            first.const += scale * known[0]
            width += scale * (known[1] - known[0])
            continue
        size = getattr(digit.b, "value", 0) if isinstance(digit, (FloorDiv, FloorMod)) else 0
        if not isinstance(digit, (FloorDiv, FloorMod)) or size < 1:
            return None
        inner, begin = linear(digit.a).split(ends)
        of = _reach(inner, ends)
        if of is None:
            return None
        begin, steps = begin.add(of.first), of.width - 1
        if isinstance(digit, FloorDiv):
            steps = ((begin.const % size if begin.is_const else size - 1) + steps) // size
            first.add(linear(begin.build(digit.dtype) // size), scale)
        elif steps < size - 1:
            first.add(linear(begin.build(digit.dtype) % size), scale)
        width += scale * min(steps, size - 1 if isinstance(digit, FloorMod) else steps)
    return _Span(first, width)


_Box = tuple["_Span | None", ...]  # None: all of an axis
_Access = tuple[Buffer, _Box, Part, float]  # the last: see _in_parts


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
    traffic = {level: _moved(root, size).total() for (_, size), level in zip(sizes, below)}
    name = func.attrs.get("global_symbol", "main")
    return Footprint(str(getattr(name, "value", name)), rows, root.flops(), traffic, using)


def traffic(program: Any, sizes: Sequence[int]) -> list[int]:
    """The bytes that a Schedule, PrimFunc or IRModule (as for :func:`footprint`) loads into a cache of each of ``sizes``, without what
    registers hold (scope ``local``).

    >>> from tir.library import rows
    >>> traffic(rows.row_sum(64, 100), [1 << 20])
    [25856]
    """
    return [found.total() for found in traffic_of_parts(_function(program), sizes)]


def traffic_of_parts(func: PrimFunc, sizes: Sequence[int], warm: bool = False) -> list[Moved]:
    """As :func:`traffic`, by the part that loads it: of several that share it, the first. Nothing if caches are ``warm``, and hold all from the call
    before."""
    root = _root(func, without="local")
    return [_moved(root, size) if not warm or not root.fits(size) else Counter() for size in sizes]


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


def _root(func: PrimFunc, without: str = "") -> _Node:
    """The loops and accesses of a function, except accesses to buffers in the scope ``without``."""
    root = _Node("", ())
    _add_loops(func.body, root, {})
    _add_accesses(func.body, root, without)
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
    own: dict[Buffer, int] = field(
        default_factory=dict
    )  # the loops around what allocates a buffer, by number: all share its memory
    work: int = 0  # operations directly in it, of one iteration

    @property
    def extent(self) -> int:
        return _length(self.around[-1]) if self.around else 1

    def flops(self) -> int:
        """Operations of all iterations."""
        return self.extent * (self.work + sum(child.flops() for child in self.children))

    def accessed(self) -> int:
        """Bytes loaded and stored by all iterations."""
        own = sum(buffer.dtype.bytes * _volume(box, buffer) for buffer, box, *_ in self.accesses)
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
    def own_lines(self) -> Moved:
        """Bytes of the cache lines that what is directly in it touches, in any one iteration."""
        return _lines(_united(self.accesses))

    @cached_property
    def lines(self) -> Moved:
        """Bytes of the cache lines that all iterations touch."""
        return _lines(self.boxes)

    @cached_property
    def lines_of_one_iteration(self) -> int:
        """Bytes of the cache lines that any one iteration touches."""
        return _lines(self.boxes_of_one_iteration).total()

    @cached_property
    def crowded(self) -> tuple[int, int]:
        """Bytes that L1, and other caches, have where what any one iteration touches gets all lines that its sets hold."""
        boxes = [(buffer, box) for buffer, box, *_ in self.boxes_of_one_iteration]
        l1, others = (max((_crowded(box, buffer, n) for buffer, box in boxes), default=0) for n in (SETS_L1, SETS))
        return l1, others

    def fits(self, size: int) -> bool:
        """Whether a cache of ``size`` holds what any one iteration touches."""
        if self.lines_of_one_iteration > size or size < SETS_L1 * LINE:  # registers have no sets
            return self.lines_of_one_iteration <= size
        return self.crowded[size > LARGEST_L1] <= CROWDED * size

    def _over_loops(self, depth: int) -> Iterator[_Access]:
        """The accesses in it, over all iterations of the loops inside of the outermost ``depth``."""
        domains = {f.loop_var: f.domain for f in self.around[depth:]} if self.accesses else {}
        bounds = {var: domain.ends() for var, domain in domains.items()}
        for buffer, box, part, parted in self.accesses:
            loops, ends, first = domains, bounds, self.own.get(buffer, 0)
            if first > depth:
                loops = {f.loop_var: f.domain for f in self.around[first:]}
                ends = {v: bounds[v] for v in loops}
            yield buffer, _gathered(buffer, box, loops, ends) or _over(box, loops, ends), part, parted
        for child in self.children:
            yield from child._over_loops(depth)


def _over(box: _Box, loops: Mapping[Var, Range], ends: Mapping[Var, tuple[int, int] | None]) -> _Box:
    """The elements of a box in all iterations of ``loops``, which have these ``ends``."""
    return tuple(span and span.over(loops, ends) for span in box)


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
        several = found.setdefault(access[0], [])
        for n, (buffer, box, part, parted) in enumerate(several):
            both = _union(box, access[1])
            if both is not None:
                several[n] = (buffer, both, part, parted)
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
        child = _Node(item.loop_var.name, (*node.around, loop), own=node.own)
        _length(loop)
        node.children.append(child)
        _add_loops(item.body, child, values)
    elif isinstance(item, BlockRealize):
        block = item.block
        node.own.update(dict.fromkeys(block.alloc_buffers, len(node.around)))
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


def _add_accesses(body: Stmt, root: _Node, without: str) -> None:
    """Add every access under ``body`` to the loop that it is directly in. An init does not count, a block with opaque
    effects accesses what it declares."""
    nodes = _by_loops(root)
    rows = {var for path in nodes for var in path}
    for effect in effects(body).located():
        if effect.first is None and effect.buffer.scope != without:
            node = nodes[tuple(v for v, _, _ in effect.loops if v in rows)]
            box = effect.box() or effect.buffer.full_region().region
            part = tuple(loop.loop_var for loop in node.around if loop.kind in (SERIAL, PARALLEL))
            spans = tuple(map(_Span.of, _simplified(box, node.around)))
            parted = _in_parts(spans, effect.buffer, node.around) if effect.write else 0.0
            node.accesses.append((effect.buffer, spans, part, parted))


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


def _volume(box: _Box, buffer: Buffer) -> int:
    count = 1
    for extent, _ in _extents(box, buffer):
        count *= extent
    return count


def _rows_of(box: _Box, buffer: Buffer) -> tuple[int, list[tuple[int, int]]]:
    """The cache lines of each row of a box, and the rows, as by :func:`_runs_of`."""
    run, apart = _runs_of(box, buffer)
    return -(-run // LINE), apart


def _runs_of(box: _Box, buffer: Buffer) -> tuple[int, list[tuple[int, int]]]:
    """The bytes of each row of a box, and how many rows there are, how many bytes apart, along each axis, the innermost first. A row is
    what is contiguous, or has less than a line between neighbours."""
    together, apart, pitch, whole = 1, list[tuple[int, int]](), 1, True
    each = buffer.dtype.bytes
    for extent, size in reversed(_extents(box, buffer)):
        if whole or pitch * each < LINE:
            together += (extent - 1) * pitch
        else:
            apart.append((extent, pitch * each))
        whole = whole and extent == size
        pitch *= size
    return together * each, apart


def _in_lines(box: _Box, buffer: Buffer) -> int:
    """Bytes of the cache lines that hold the box."""
    lines, apart = _rows_of(box, buffer)
    return lines * prod(extent for extent, _ in apart) * LINE


def _crowded(box: _Box, buffer: Buffer, sets: int) -> int:
    """Bytes of a cache that would hold the box if each of its ``sets`` had as many lines as those that the box is in: rows whose distance is a
    power of two are in a few."""
    lines, apart = _rows_of(box, buffer)
    distinct = lines * prod(min(extent, sets * LINE // gcd(pitch, sets * LINE)) for extent, pitch in apart)
    return _in_lines(box, buffer) * sets // max(1, min(sets, distinct))


def _is_far(box: _Box, buffer: Buffer) -> bool:
    """Whether neighbouring rows of a box are a line or two in pages of their own: prefetching does not see them come."""
    lines, apart = _rows_of(box, buffer)
    rows = [pitch for extent, pitch in apart if extent > 1]
    return bool(rows) and lines <= SEEN and rows[0] >= PAGE


def _in_parts(box: _Box, buffer: Buffer, around: Sequence[For]) -> float:
    """The share of lines that vectors of straight code store in two parts, as rows do not begin with a line, and with those of other rows between: these
    are loaded first, as they are not stored at once. On a Sapphire Rapids, rows of 6000 bytes two at a time, by runs of 64, 128, 256 and 512 bytes: 1.6, 1.2, 1.1
    and 1.0 times as long as one after the other, in L2 and beyond."""
    straight = {f.loop_var: f.domain for f in around if f.kind not in (SERIAL, PARALLEL)}
    lanes = {f.loop_var: f.domain for f in around if f.kind == VECTORIZED}
    if len(lanes) == len(straight):
        return 0.0  # no rows
    (run, rows), (vector, _) = (
        _runs_of(_over(box, v, {x: d.ends() for x, d in v.items()}), buffer) for v in (straight, lanes)
    )
    pitches = [pitch for extent, pitch in rows if extent > 1]
    return (min(LINE, vector) - gcd(LINE, vector, *pitches)) / run if pitches and run > 0 else 0.0


def _lines(boxes: Iterable[_Access]) -> Moved:
    """Bytes of the cache lines that hold the boxes, by part."""
    found: Moved = Counter()
    for (_, part, far, parted), size in _sizes(boxes, _in_lines).items():
        found[part, far, parted] += size
    return found


def _sizes(boxes: Iterable[_Access], size: Callable[[_Box, Buffer], int]) -> Counter[tuple[Buffer, Part, bool, float]]:
    """The sizes of the boxes of each buffer, together at most that of all of it, by what :data:`Moved` has."""
    found, left = Counter[tuple[Buffer, Part, bool, float]](), dict[Buffer, int]()
    for buffer, box, part, parted in boxes:
        if buffer not in left:
            left[buffer] = size((None,) * len(buffer.shape), buffer)
        more = min(left[buffer], size(box, buffer))
        found[buffer, part, _is_far(box, buffer), parted] += more
        left[buffer] -= more
    return found


def _moved(node: _Node, size: int) -> Moved:
    """Bytes loaded into a cache of ``size`` in one execution of ``node``, by part."""
    if not node.children or node.fits(size):
        return node.lines
    found = sum((_moved(child, size) for child in node.children), node.own_lines)
    return Counter({key: node.extent * count for key, count in found.items()})


def _rows(node: _Node, machine: Machine, runs: int = 1) -> Iterator[Level]:
    if node.around:
        touched: dict[str, int] = {}
        for (buffer, *_), volume in _sizes(node.boxes, _volume).items():
            touched[buffer.name] = touched.get(buffer.name, 0) + volume * buffer.dtype.bytes
        lines = node.lines.total()
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
