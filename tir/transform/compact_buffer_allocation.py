"""Shrinks allocations to the box of elements that is accessed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..aliases import shares_memory
from ..analysis.effects import PREFETCH, Effect, effects
from ..annotations import DIM_ALIGN
from ..arith import Analyzer
from ..arith.linear import key
from ..arith.regions import Box, relax, union
from ..buffer import Buffer, BufferRegion, Range
from ..expr import BufferLoad, Expr, IntImm, Var, all_of, as_bool, const, is_const
from ..function import PrimFunc
from ..launches import is_launch
from ..levels import shared_axes
from ..node import Node
from ..stmt import Allocate, Block, BufferStore, DeclBuffer, For, Stmt
from ..visit import has_load, is_pure, rewrite, statements
from .layout import minus
from .passes import func_pass

Loops = Mapping[Var, Range]


@dataclass(frozen=True)
class _Allocation:
    """A buffer that a block or an ``allocate`` allocates, the loops around, and the threads of these that share the
    memory."""

    buffer: Buffer
    loops: Loops
    sharing: frozenset[Var]

    def box(self, accesses: Sequence[Effect]) -> Box | None:
        """The smallest box found that contains all ``accesses``; None if they may be anywhere."""
        kept = {v: r for v, r in self.loops.items() if v not in self.sharing}
        together: dict[Any, list[Effect]] = {}  # by the loops inside and the guards, of which each group asks once
        for access in accesses:
            moving = tuple(loop for loop in access.loops if loop[0] not in kept)
            together.setdefault((moving, access.guards), []).append(access)
        boxes: list[Box] = []
        for (moving, guards), group in together.items():
            regions = [access.box() if access.buffer is self.buffer else None for access in group]
            known = [region for region in regions if region is not None]
            if len(known) < len(regions):
                return None
            ranges = {v: Range(low, extent) for v, low, extent in moving}
            holds = all_of(as_bool(c) for c in guards if c.dtype.lanes == 1 and _is_fixed(c))
            hull = relax([axis for region in known for axis in region], ranges, holds, Analyzer(kept))
            if hull is None:
                return None
            rank = len(self.buffer.shape)
            boxes += [hull[n : n + rank] for n in range(0, len(hull), rank)] if rank else known
        return union(boxes, Analyzer(self.loops)) if boxes else None


def _accesses(func: PrimFunc) -> dict[Var, list[Effect]]:
    """By pointer, all accesses of memory, and the regions of views: they stay inside the buffer.

    The regions that blocks declare do not count: they add nothing to memory whose pointer is not passed on."""
    found: dict[Var, list[Effect]] = {}
    all_of_them = effects(func.body)
    for effect in (*all_of_them, *all_of_them.views):
        if effect.kind != PREFETCH and not isinstance(effect.node, Block):
            found.setdefault(effect.buffer.data, []).append(effect)
    return found


def _shrunk(buffer: Buffer, box: Box, analyzer: Analyzer) -> tuple[Buffer, list[Expr]] | None:
    """The smaller buffer and the least index kept on each axis; None if nothing would be saved."""
    shape: list[Expr] = []
    origin: list[Expr] = []
    changed = False
    for size, axis in zip(buffer.shape, box):
        fixed = _is_fixed(axis.min) and _is_fixed(axis.extent)
        extent = _constant_extent(size, axis, analyzer) if fixed else None
        shape.append(size if extent is None else extent)
        origin.append(const(0, size.dtype) if extent is None else axis.min)
        changed |= extent is not None
    return (buffer.replace(shape=tuple(shape)), origin) if changed else None


def _is_fixed(e: Expr) -> bool:
    """Whether ``e`` has the same value wherever it is evaluated: it reads no memory and calls nothing with effects."""
    return is_pure(e) and not has_load(e)


def _constant_extent(size: Expr, axis: Range, analyzer: Analyzer) -> IntImm | None:
    """The constant extent to allocate for ``axis`` instead of ``size``; None if it would not be smaller."""
    extent = axis.extent.value if isinstance(axis.extent, IntImm) else None
    if extent is None and isinstance(size, IntImm):
        extent = analyzer.bound(axis.extent)[1]
    if extent is None or extent <= 0 or (isinstance(size, IntImm) and extent >= size.value):
        return None
    return IntImm(extent, axis.extent.dtype)


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
    for block in statements(root):
        if isinstance(block, Block):
            for row in block.annotations.get(DIM_ALIGN, ()):
                which, axis, factor, offset = (int(v) for v in row)
                rules.setdefault(block.writes[which].buffer, []).append((axis, factor, offset))
    return rules


def _allocated_by(item: Any) -> tuple[Buffer, ...]:
    """The buffers that a block allocates, or the one that is declared over the whole memory of an ``allocate``."""
    if isinstance(item, Block):
        return item.alloc_buffers
    if not isinstance(item, Allocate) or not isinstance(item.body, DeclBuffer) or not is_const(item.condition, 1):
        return ()
    buffer = item.body.buffer
    whole = shares_memory(buffer, {item.buffer_var}) and buffer.elem_offset is None and buffer.dtype is item.dtype
    return (buffer,) if whole and [key(e) for e in buffer.shape] == [key(e) for e in item.extents] else ()


def _axis(item: Any) -> tuple[Var, Range, str] | None:
    """The variable, the domain and the thread axis (or ``""``) of a loop or a launch of threads."""
    if isinstance(item, For):
        return item.loop_var, item.domain, item.thread or ""
    if is_launch(item):
        return item.node.var, Range(const(0, item.node.var.dtype), item.value), item.node.thread_tag
    return None


def _allocations(root: Any) -> Iterator[_Allocation]:
    """The buffers allocated under ``root``."""
    stack: list[tuple[Any, dict[Var, tuple[Range, str]]]] = [(root, {})]
    while stack:
        item, around = stack.pop()
        for buffer in _allocated_by(item):
            loops = {v: r for v, (r, _) in around.items()}
            sharing = frozenset(v for v, (_, thread) in around.items() if thread in shared_axes(buffer.scope))
            yield _Allocation(buffer, loops, sharing)
        axis = _axis(item)
        if axis is not None:
            around = {**around, axis[0]: axis[1:]}
        if isinstance(item, Stmt):
            stack.extend((child, around) for child in item.children() if isinstance(child, Node))


@func_pass
def compact_buffer_allocation(func: PrimFunc) -> PrimFunc:
    """Each allocation shrinks to the box that its block uses; indices are shifted accordingly.

    Expects opaque blocks (:func:`convert_blocks_to_opaque`), or a program without blocks, in which each ``allocate``
    with one buffer over it shrinks. A buffer whose pointer is passed on keeps its size.
    Memory shared by threads (``shared``) contains the boxes of all of them. ``storage_align`` annotations become
    strides here.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block(""):
    ...             H = T.alloc_buffer((8,), "float32")
    ...             H[i] = A[i] * 2.0
    ...             B[i] = H[i] + 1.0
    ... ''')
    >>> tir.transform.compact_buffer_allocation(f).body
    with T.block("root"):
        T.reads()
        T.writes()
        for i in range(8):
            with T.block("block"):
                T.reads(A[i])
                T.writes(B[i])
                H = T.alloc_buffer((1,), "float32")
                H[0] = A[i] * 2.0
                B[i] = H[0] + 1.0
    """
    accesses, rules = _accesses(func), _alignment_rules(func.body)
    new: dict[Buffer, tuple[Buffer, list[Expr]]] = {}
    for allocation in _allocations(func.body):
        buffer = allocation.buffer
        made: tuple[Buffer, list[Expr]] = (buffer, [const(0, s.dtype) for s in buffer.shape])
        if not buffer.strides and not buffer.axis_separators:
            box = allocation.box(accesses.get(buffer.data, ()))
            made = made if box is None else _shrunk(buffer, box, Analyzer(allocation.loops)) or made
        if buffer in rules and not made[0].strides:
            made = (_aligned(made[0], rules[buffer]), made[1])
        if made[0] is not buffer:
            new[buffer] = made
    if not new:
        return func

    simplify = Analyzer().simplify
    extents = {old.data: made.shape for old, (made, _) in new.items()}

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
        if isinstance(item, DeclBuffer) and item.buffer in new:
            return item.replace(buffer=new[item.buffer][0])
        if isinstance(item, Allocate) and item.buffer_var in extents:
            return item.replace(extents=extents[item.buffer_var])
        return None

    return func.with_body(rewrite(func.body, redirect))
