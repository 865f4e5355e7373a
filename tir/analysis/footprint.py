"""How much memory each loop touches, its reuse, the cache that holds it, and what limits the run time.

A loop's *footprint* is the set of smallest boxes of the buffers that contain all accesses of its iterations. The
traffic between two memory levels follows from it: if one iteration fits a cache, each element is loaded once; if not,
every iteration loads what its inner loops load. Conditions count as true, so tails count in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..arith.regions import relax, union
from ..buffer import Buffer, Range
from ..expr import Add, BufferLoad, Call, Div, Expr, IntImm, Max, Min, Mul, Ramp, Sub, Var, const
from ..function import IRModule, PrimFunc
from ..op import effect_of
from ..stmt import Block, BlockRealize, BufferStore, For, IfThenElse, Stmt
from ..target import Target
from ..visit import substitute

LINE = 64  # bytes of a cache line
LEVELS = ("registers", "L1", "L2", "L3")  # what holds data, nearest first; then memory
Box = tuple[Range, ...]


@dataclass(frozen=True)
class Machine:
    """The limits of one core: ``sizes`` in bytes of :data:`LEVELS`, ``peak`` in operations and ``bandwidth`` in bytes a
    second.

    ``bandwidth`` has the rates of L1, L2, L3 and memory.
    """

    sizes: Mapping[str, int]
    peak: float
    bandwidth: Mapping[str, float]

    @staticmethod
    def of(target: Any = None) -> Machine:
        """Sizes of ``target`` (attributes ``l1_bytes``, ``l2_bytes``, ``l3_bytes``, default: this machine's); rates of
        a core at 3 GHz with two vector units: measure yours if it matters (``codegen.machine_peak``)."""
        where = Target.of(target)
        bits = where.limit("vector_width") or 512
        sizes = {"registers": 32 * bits // 8}
        for level in (1, 2, 3):
            sizes[f"L{level}"] = where.cache_bytes(level)
        clock, vector = 3e9, bits // 8
        bandwidth = {"L1": 2 * vector * clock, "L2": 48 * clock, "L3": 10 * clock, "memory": 4 * clock}
        return Machine(sizes, 2 * 2 * (bits // 32) * clock, bandwidth)


@dataclass(frozen=True)
class Level:
    """All iterations of one loop (``depth`` loops are around it, it is executed ``runs`` times).

    ``touched`` has the bytes by buffer name, ``moved`` the traffic from the level below into the caches in all
    executions, ``flops`` the arithmetic of one execution.
    """

    name: str
    depth: int
    extent: int
    runs: int
    touched: Mapping[str, int]
    accessed: int
    flops: int
    holds: str

    @property
    def bytes(self) -> int:
        return sum(self.touched.values())

    @property
    def reuse(self) -> float:
        """Number of accesses per touched byte."""
        return self.accessed / self.bytes if self.bytes else 0.0

    @property
    def intensity(self) -> float:
        """Arithmetic intensity: operations per touched byte."""
        return self.flops / self.bytes if self.bytes else 0.0


@dataclass(frozen=True)
class Footprint:
    """The result of :func:`footprint`: ``rows`` from the outermost loop inwards, and the minimum total time.

    ``traffic`` has the bytes that come from each level (L1, L2, L3, memory); ``seconds`` the minimum time of these and
    of the arithmetic (``compute``). Shows as a table; ``svg()`` is the figure.
    """

    name: str
    rows: tuple[Level, ...]
    flops: int
    traffic: Mapping[str, int]
    machine: Machine

    @property
    def seconds(self) -> dict[str, float]:
        times = {"compute": self.flops / self.machine.peak}
        times.update({level: size / self.machine.bandwidth[level] for level, size in self.traffic.items()})
        return times

    @property
    def bottleneck(self) -> str:
        """``compute``, or the level whose data takes longest: ``L1``, ``L2``, ``L3``, ``memory``."""
        times = self.seconds
        return max(times, key=times.__getitem__)

    @property
    def bound(self) -> float:
        """Upper bound of the operations per second that the bottleneck allows."""
        longest = max(self.seconds.values())
        return self.flops / longest if longest else 0.0

    def __getitem__(self, loop: str) -> Level:
        """The row of the loop called ``loop``; raises ``KeyError`` that lists the existing loops."""
        found = [row for row in self.rows if row.name == loop]
        if not found:
            raise KeyError(f"no loop {loop!r}; there are {', '.join(row.name for row in self.rows)}")
        return found[0]

    def __repr__(self) -> str:
        from .footprint_view import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from .footprint_view import as_html

        return as_html(self)

    def svg(self) -> str:
        """The loops' footprints against the caches, and the minimum time of each level, as an SVG figure."""
        from .footprint_view import as_svg

        return as_svg(self)


def footprint(program: Any, machine: Machine | None = None, target: Any = None) -> Footprint:
    """The footprint of a Schedule, PrimFunc or IRModule (of one function, or its ``main``), and its bottleneck.

    ``machine``: sizes and rates (default: :meth:`Machine.of` ``target``). Sizes must be constant: raises ``ValueError``
    with the loop whose extent is not. Operations are floating-point additions, multiplications, divisions, minima and
    maxima, and calls such as ``exp``, one each; the work of tensorized blocks is not counted: compute the footprint
    before.

    >>> from tir.library import gemm
    >>> print(footprint(gemm.gemm(64, 64, 64)).bottleneck in ("compute", "L1", "L2", "L3", "memory"))
    True
    """
    func = _function(program)
    using = machine or Machine.of(target or func.attrs.get("target"))
    root = _Node("", (), [])
    _collect(func.body, root, {})
    rows = tuple(_rows(root, using))
    sizes = [(level, using.sizes[level]) for level in LEVELS if level in using.sizes]
    below = [*(level for level, _ in sizes[1:]), "memory"]
    traffic = {level: _moved(root, size) for (_, size), level in zip(sizes, below)}
    name = func.attrs.get("global_symbol", "main")
    return Footprint(str(getattr(name, "value", name)), rows, root.flops(), traffic, using)


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
    children: list[_Node]
    accesses: list[tuple[Buffer, Box, bool]] = field(default_factory=list)  # directly in it; written or not
    work: int = 0  # operations directly in it, of one iteration
    memo: dict[int, dict[Buffer, Box]] = field(default_factory=dict)

    @property
    def extent(self) -> int:
        return _length(self.around[-1]) if self.around else 1

    def below(self) -> Iterator[tuple[_Node, tuple[Buffer, Box, bool]]]:
        for access in self.accesses:
            yield self, access
        for child in self.children:
            yield from child.below()

    def flops(self) -> int:
        """Operations of all iterations."""
        return self.extent * (self.work + sum(child.flops() for child in self.children))

    def accessed(self) -> int:
        """Bytes loaded and stored by all iterations."""
        own = sum(buffer.dtype.bytes * _volume(box, buffer) for buffer, box, _ in self.accesses)
        return self.extent * (own + sum(child.accessed() for child in self.children))

    def boxes(self, one: bool = False) -> dict[Buffer, Box]:
        """The smallest box of each buffer, over all iterations or (``one``) in any one of them."""
        depth = len(self.around) if one else len(self.around) - 1
        depth = max(depth, 0)
        if depth not in self.memo:
            found: dict[Buffer, list[Box]] = {}
            for node, (buffer, box, _) in self.below():
                loops = {f.loop_var: f.domain for f in node.around[depth:]}
                found.setdefault(buffer, []).append(relax(box, loops) or buffer.full_region().region)
            self.memo[depth] = {b: boxes[0] if len(boxes) == 1 else union(boxes) for b, boxes in found.items()}
        return self.memo[depth]


def _length(loop: For) -> int:
    if not isinstance(loop.extent, IntImm):
        raise ValueError(f"loop {loop.loop_var.name} has the length {loop.extent!r}: footprints need constant lengths")
    return loop.extent.value


def _collect(item: Any, node: _Node, values: dict[Var, Expr]) -> None:
    """Add the loops and accesses under ``item`` to ``node``; ``values`` are the bindings of the blocks around."""
    if isinstance(item, For):
        loop = item.replace(min=substitute(item.min, values), extent=substitute(item.extent, values))
        child = _Node(item.loop_var.name, (*node.around, loop), [])
        _length(loop)
        node.children.append(child)
        _collect(item.body, child, values)
    elif isinstance(item, BlockRealize):
        block: Block = item.block
        own = {i.var: substitute(v, values) for i, v in zip(block.iter_vars, item.iter_values)}
        inner = {**values, **own}
        if block.match_buffers:  # what happens inside is said in terms of views: the regions say what is touched
            for regions, written in ((block.reads, False), (block.writes, True)):
                for region in regions:
                    node.accesses.append((region.buffer, _box(region.region, inner), written))
            return
        _collect(block.body, node, inner)
    elif isinstance(item, (BufferStore, BufferLoad)):
        box = tuple(_index(i, values) for i in item.indices)
        node.accesses.append((item.buffer, box, isinstance(item, BufferStore)))
        for child in item.children():
            _collect(child, node, values)
    elif isinstance(item, IfThenElse):
        for part in (item.then_case, item.else_case):
            if part is not None:
                _collect(part, node, values)
    elif isinstance(item, (Stmt, Expr)) and not isinstance(item, Var):
        node.work += _operations(item)
        for child in item.children():
            if isinstance(child, (Stmt, Expr)):
                _collect(child, node, values)


def _operations(e: Any) -> int:
    if not isinstance(e, Expr) or not e.dtype.element.is_float:
        return 0
    if isinstance(e, (Add, Sub, Mul, Div, Min, Max)):
        return e.dtype.lanes
    counted = isinstance(e, Call) and e.op not in ("if_then_else", "likely", "reinterpret") and effect_of(e) == "pure"
    return e.dtype.lanes if counted else 0


def _index(index: Expr, values: Mapping[Var, Expr]) -> Range:
    index = substitute(index, values)
    if isinstance(index, Ramp) and isinstance(index.stride, IntImm):
        return Range(index.base, const((index.lanes - 1) * index.stride.value + 1, index.base.dtype))
    return Range(index, const(1, index.dtype))


def _box(region: Box, values: Mapping[Var, Expr]) -> Box:
    return tuple(Range(substitute(r.min, values), substitute(r.extent, values)) for r in region)


def _extents(box: Box, buffer: Buffer) -> list[tuple[int, int]]:
    """(extent, size) of each axis; the entire axis if the extent is unknown."""
    made = []
    for have, size in zip(box, buffer.shape):
        if not isinstance(size, IntImm):
            raise ValueError(f"buffer {buffer.name} has the size {size!r}: footprints need constant sizes")
        extent = have.extent.value if isinstance(have.extent, IntImm) else size.value
        made.append((min(extent, size.value), size.value))
    return made


def _volume(box: Box, buffer: Buffer) -> int:
    count = 1
    for extent, _ in _extents(box, buffer):
        count *= extent
    return count


def _in_lines(box: Box, buffer: Buffer) -> int:
    """Bytes of the cache lines that hold the box: contiguous axes are rounded up to lines."""
    together, apart, whole = 1, 1, True
    for extent, size in reversed(_extents(box, buffer)):
        if whole:
            together *= extent
        else:
            apart *= extent
        whole = whole and extent == size
    return apart * -(-together * buffer.dtype.bytes // LINE) * LINE


def _lines(boxes: Mapping[Buffer, Box]) -> int:
    return sum(_in_lines(box, buffer) for buffer, box in boxes.items())


def _moved(node: _Node, size: int) -> int:
    """Bytes loaded into a cache of ``size`` in one execution of ``node``."""
    if _lines(node.boxes(one=True)) <= size or not node.children:
        return _lines(node.boxes())
    own = {buffer: box for buffer, box, _ in node.accesses}
    return node.extent * (_lines(own) + sum(_moved(child, size) for child in node.children))


def _rows(node: _Node, machine: Machine, runs: int = 1) -> Iterator[Level]:
    if node.around:
        boxes = node.boxes()
        touched: dict[str, int] = {}
        for buffer, box in boxes.items():
            size = _volume(box, buffer) * buffer.dtype.bytes
            touched[buffer.name] = touched.get(buffer.name, 0) + size
        lines = _lines(boxes)
        holds = next((level for level in LEVELS if lines <= machine.sizes.get(level, -1)), "memory")
        yield Level(
            node.name, len(node.around) - 1, node.extent, runs, touched, node.accessed(), node.flops(), holds
        )  # fmt: skip
    for child in node.children:
        yield from _rows(child, machine, runs * node.extent)
