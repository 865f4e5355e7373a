"""Shrinks allocations to the box of elements that is accessed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..arith import Analyzer
from ..arith.regions import relax, union
from ..buffer import Buffer, BufferRegion, Range
from ..expr import (
    TRUE,
    BufferLoad,
    Call,
    Expr,
    IntImm,
    Ramp,
    Var,
    as_bool,
    const,
    is_const,
    logical_and,
    logical_not,
)  # fmt: skip
from ..function import PrimFunc
from ..stmt import AttrStmt, Block, BlockRealize, BufferStore, For, IfThenElse, LetStmt
from ..visit import rewrite, walk
from .layout import minus
from .passes import func_pass
from .threads import is_shared

Loops = dict[Var, Range]


class _Uses:
    """Boxes accessed of each buffer allocated by a block, free of the loops inside the block."""

    def __init__(self) -> None:
        self.boxes: dict[Buffer, list[Any]] = {}
        self.depth: dict[Buffer, int] = {}
        self.whole: set[Buffer] = set()
        self.pointers: dict[Var, Buffer] = {}
        self.annotated: dict[Buffer, Any] = {}
        self.loops: list[tuple[Var, Range]] = []
        self.conditions: list[tuple[int, Expr]] = []
        self.threads: dict[Var, str] = {}

    def visit(self, item: Any) -> None:
        if isinstance(item, Buffer):
            return
        if isinstance(item, Var):
            if item in self.pointers:
                self.whole.add(self.pointers[item])
        elif isinstance(item, For):
            self.visit(item.min)
            self.visit(item.extent)
            self.loops.append((item.loop_var, item.domain))
            if item.thread:
                self.threads[item.loop_var] = item.thread
            self.visit(item.body)
            self.loops.pop()
        elif isinstance(item, IfThenElse) or (isinstance(item, Call) and item.op == "if_then_else"):
            condition, then, other = (
                (item.condition, item.then_case, item.else_case) if isinstance(item, IfThenElse) else item.args
            )
            self.visit(condition)
            self._under(condition, then)
            if other is not None:
                self._under(logical_not(condition) if condition.dtype.lanes == 1 else TRUE, other)
        elif isinstance(item, BlockRealize):
            self._under(item.predicate, item.block)
        elif isinstance(item, Block):
            for buffer in item.alloc_buffers:
                self.depth[buffer] = len(self.loops)
                self.pointers[buffer.data] = buffer
                self.boxes[buffer] = []
            for match in item.match_buffers:
                self.visit(match.source)
            self.visit(item.body)
            if item.init is not None:
                self.visit(item.init)
        else:
            if isinstance(item, (BufferLoad, BufferStore)) and item.buffer in self.depth:
                region = _accessed(item.buffer, item.indices)
                if region is None:
                    self.whole.add(item.buffer)
                else:
                    self.touch(item.buffer, region)
            elif isinstance(item, BufferRegion) and item.buffer in self.depth:
                self.touch(item.buffer, item.region)
            for child in item.children():
                self.visit(child)

    def _under(self, condition: Expr, inner: Any) -> None:
        if is_const(condition) or condition.dtype.lanes > 1:
            self.visit(inner)
            return
        self.conditions.append((len(self.loops), condition))
        self.visit(inner)
        self.conditions.pop()

    def touch(self, buffer: Buffer, region: Any) -> None:
        if buffer in self.whole:
            return
        depth = self.depth[buffer]
        # memory that threads share holds what all of them use, wherever their loop stands
        shared = [(v, r) for v, r in self.loops[:depth] if _meet(buffer.scope, self.threads.get(v, ""))]
        loops = dict([*shared, *self.loops[depth:]])
        outer = Analyzer({v: r for v, r in self.loops[:depth] if v not in loops})
        condition: Expr = TRUE
        for _, one in self.conditions:
            if not any(isinstance(n, BufferLoad) for n in walk(one)):
                condition = logical_and(condition, as_bool(one))
        box = relax(region, loops, condition, outer)
        if box is None:
            self.whole.add(buffer)
        else:
            self.boxes[buffer].append(box)


def _accessed(buffer: Buffer, indices: Any) -> list[Range] | None:
    """The box that one access touches. A vector that continues into the next rows counts as a box of complete rows;
    None if it is not of that form."""
    region = [Range(i, const(1, i.dtype.element)) for i in indices]
    last = indices[-1] if indices else None
    if not isinstance(last, Ramp) or buffer.ndim < 2:
        return region
    row = buffer.shape[-1]
    if not isinstance(row, IntImm) or not isinstance(last.stride, IntImm) or last.stride.value != 1:
        return region
    if last.lanes <= row.value:
        return region
    if last.lanes % row.value or not is_const(last.base, 0) or indices[-2].dtype.lanes > 1:
        return None
    rows = const(last.lanes // row.value, indices[-2].dtype)
    return [*region[:-2], Range(indices[-2], rows), Range(last.base, row)]


def _meet(scope: str, thread: str) -> bool:
    """Whether the threads of an axis share one allocation of ``scope``."""
    if scope == "warp":
        return thread == "threadIdx.x"
    return is_shared(scope) and thread.startswith(("threadIdx", "vthread"))


def _bound_inside(block: Block) -> set[Var]:
    """Variables that are not in scope where ``block`` allocates."""
    found: set[Var] = set()
    for n in walk(block.body):
        if isinstance(n, For):
            found.add(n.loop_var)
        elif isinstance(n, LetStmt):
            found.add(n.var)
        elif isinstance(n, AttrStmt) and hasattr(n.node, "var"):
            found.add(n.node.var)
        elif hasattr(n, "var") and isinstance(n.var, Var):
            found.add(n.var)
    return found


def _shrunk(buffer: Buffer, box: Any, hidden: set[Var], analyzer: Analyzer) -> tuple[Buffer, list[Expr]] | None:
    """The smaller buffer and the least index kept on each axis; None if nothing would be saved.

    ``hidden``: variables that are not in scope where the buffer is allocated."""
    shape: list[Expr] = []
    origin: list[Expr] = []
    changed = False
    for size, axis in zip(buffer.shape, box):
        zero = const(0, size.dtype)
        extent = axis.extent
        usable = not any(isinstance(n, BufferLoad) or (isinstance(n, Var) and n in hidden) for n in walk(axis))
        if usable and not isinstance(extent, IntImm) and isinstance(size, IntImm):
            most = analyzer.bound(extent)[1]
            extent = const(most, size.dtype) if most is not None else extent
            usable = most is not None and most < size.value
        if usable and isinstance(extent, IntImm) and isinstance(size, IntImm):
            usable = 0 < extent.value < size.value
        elif usable:
            usable = isinstance(extent, IntImm) and extent.value > 0
        shape.append(extent if usable else size)
        origin.append(axis.min if usable else zero)
        changed |= usable
    return (buffer.replace(shape=tuple(shape)), origin) if changed else None


def _aligned(buffer: Buffer, rules: Any) -> Buffer:
    """``buffer`` with the strides that storage_align asks for: rules are (axis, factor, offset)."""
    sizes: list[Any] = list(buffer.shape)
    strides: list[Expr] = []
    step: Any = const(1, sizes[-1].dtype)
    wanted = {int(axis) % len(sizes): (int(factor), int(offset)) for axis, factor, offset in rules}
    for axis in reversed(range(len(sizes))):
        if axis in wanted:
            factor, offset = wanted[axis]
            step = step + (offset - step % factor) % factor
        strides.append(step)
        step = step * sizes[axis]
    return buffer.replace(strides=tuple(reversed(strides)))


def _alignment_rules(root: Any) -> dict[Buffer, list[tuple[int, int, int]]]:
    """The ``buffer_dim_align`` annotations: rows of (index of the written buffer, axis, factor, offset)."""
    rules: dict[Buffer, list[tuple[int, int, int]]] = {}
    for block in walk(root):
        if isinstance(block, Block):
            for row in block.annotations.get("buffer_dim_align", ()):
                which, axis, factor, offset = (int(v) for v in row)
                rules.setdefault(block.writes[which].buffer, []).append((axis, factor, offset))
    return rules


def _placed(root: Any) -> Iterator[tuple[Block, Loops]]:
    """Blocks that allocate, with the loops around them."""
    stack: list[tuple[Any, Loops]] = [(root, {})]
    while stack:
        item, loops = stack.pop()
        if isinstance(item, Block) and item.alloc_buffers:
            yield item, loops
        if isinstance(item, For):
            loops = {**loops, item.loop_var: item.domain}
        if not isinstance(item, (Buffer, Var)):
            stack.extend((child, loops) for child in item.children())


@func_pass
def compact_buffer_allocation(func: PrimFunc) -> PrimFunc:
    """Each allocation shrinks to the box that its block uses; indices are shifted accordingly.

    Expects opaque blocks (:func:`convert_blocks_to_opaque`). A buffer whose pointer is passed on keeps its size.
    Memory shared by threads (``shared``) contains the boxes of all of them. ``storage_align`` annotations become
    strides here.
    """
    uses = _Uses()
    uses.visit(func.body)
    if not uses.boxes:
        return func
    rules = _alignment_rules(func.body)
    new: dict[Buffer, tuple[Buffer, list[Expr]]] = {}
    for block, loops in _placed(func.body):
        analyzer, hidden = Analyzer(loops), _bound_inside(block)
        for buffer in block.alloc_buffers:
            zeros = [const(0, s.dtype) for s in buffer.shape]
            made: tuple[Buffer, list[Expr]] = (buffer, zeros)
            if buffer not in uses.whole and uses.boxes[buffer] and not buffer.strides and not buffer.axis_separators:
                box = union(uses.boxes[buffer], analyzer)
                made = _shrunk(buffer, box, hidden, analyzer) or made
            if buffer in rules and not made[0].strides:
                made = (_aligned(made[0], rules[buffer]), made[1])
            if made[0] is not buffer:
                new[buffer] = made
    if not new:
        return func

    simplify = Analyzer().simplify

    def moved(buffer: Buffer, indices: Any) -> tuple[Expr, ...]:
        lows = new[buffer][1]
        return tuple(i if is_const(low, 0) else simplify(minus(i, low)) for i, low in zip(indices, lows))

    def redirect(item: Any) -> Any:
        if isinstance(item, (BufferLoad, BufferStore)) and item.buffer in new:
            return item.replace(buffer=new[item.buffer][0], indices=moved(item.buffer, item.indices))
        if isinstance(item, BufferRegion) and item.buffer in new:
            mins = moved(item.buffer, [r.min for r in item.region])
            return BufferRegion(new[item.buffer][0], tuple(Range(m, r.extent) for m, r in zip(mins, item.region)))
        if isinstance(item, Block) and any(b in new for b in item.alloc_buffers):
            return item.replace(alloc_buffers=tuple(new[b][0] if b in new else b for b in item.alloc_buffers))
        return None

    return func.with_body(rewrite(func.body, redirect))
