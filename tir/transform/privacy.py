"""Whether a loop's iterations pass data on to later iterations through a buffer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..arith import Analyzer
from ..arith.linear import key
from ..arith.regions import relax
from ..buffer import Buffer, Range
from ..expr import BufferLoad, Expr, IntImm, Var, const, logical_and
from ..stmt import Block, BlockRealize, BufferStore, For, IfThenElse, SeqStmt, Stmt
from ..visit import substitute, walk

Box = tuple[Range, ...]


def is_private(buffer: Buffer, loop: For) -> bool:
    """Whether each iteration of ``loop`` surely writes an element of ``buffer`` before it reads it.

    Decided from the shape of the program: the loop's body is a sequence, and what a later part reads lies in the box
    that an earlier part fills completely. False means "not shown".
    """
    body: Stmt = loop.body
    parts = body.stmts if isinstance(body, SeqStmt) else (body,)
    filled: list[Box] = []
    analyzer = Analyzer()
    for part in parts:
        writes: list[Box] = []
        for access in _accesses(part, buffer):
            if access.is_write:
                box = access.filled_box(analyzer)
                if box is not None:
                    writes.append(box)
            elif access.box(analyzer) is None or not (
                access.own or any(_inside(analyzer, access.box(analyzer), box) for box in filled)
            ):
                return False
        filled.extend(writes)
    return True


def _inside(analyzer: Analyzer, inner: Any, outer: Box) -> bool:
    return all(
        analyzer.can_prove(b.min <= a.min) and analyzer.can_prove(a.min + a.extent <= b.min + b.extent)
        for a, b in zip(inner, outer)
    )


class _Access:
    """One load or store, the loops around it (inside the loop asked about), and the condition it is under."""

    def __init__(self, indices: Any, loops: dict[Var, Range], condition: Expr, is_write: bool, own: bool):
        self.indices: tuple[Expr, ...] = indices
        self.loops = loops
        self.condition = condition
        self.is_write = is_write
        self.own = own  # a read of the element that the same block's init has written

    def box(self, analyzer: Analyzer) -> Box | None:
        ranges = [Range(i, const(1, i.dtype)) for i in self.indices]
        return relax(ranges, self.loops, self.condition, analyzer)

    def filled_box(self, analyzer: Analyzer) -> Box | None:
        """The box written, where every element of it is."""
        box = self.box(analyzer)
        if box is None:
            return None
        used: set[Var] = set()
        for index, axis in zip(self.indices, box):
            inner = {v: self.loops[v] for v in _vars(index) if v in self.loops}
            if used & set(inner):
                return None  # two axes move together: a diagonal
            used |= set(inner)
            if inner and not _fills(analyzer, index, inner, axis):
                return None
        if not (isinstance(self.condition, IntImm) and self.condition.value):
            # a guard that only keeps the accesses inside the buffer's own box is what `relax` clipped them to
            if any(v in self.loops for v in _vars(self.condition)) and not self._guard_is_clip(used):
                return None
            if not any(v in self.loops for v in _vars(self.condition)):
                return None
        return box

    def _guard_is_clip(self, used: set[Var]) -> bool:
        return False


def _fills(analyzer: Analyzer, index: Expr, loops: dict[Var, Range], axis: Range) -> bool:
    """Whether ``index`` takes every value of ``axis`` as the loops run."""
    from ..arith.itermap import detect_iter_map

    found: Any = detect_iter_map([index], loops)
    return bool(found) and analyzer.can_prove_equal(found.extents[0], axis.extent)


def _vars(e: Any) -> set[Var]:
    return {n for n in walk(e) if isinstance(n, Var)}


def _accesses(root: Any, buffer: Buffer) -> Iterator[_Access]:
    """Accesses of ``buffer`` under ``root`` in program order; anything opaque is a read of all of it."""

    def visit(item: Any, loops: dict[Var, Range], condition: Expr, bound: dict[Var, Any], init: Any) -> Iterator[_Access]:
        def expr(e: Any) -> Any:
            return substitute(e, bound) if bound else e

        if isinstance(item, (Buffer, Var)):
            if item is buffer.data:
                yield _Access(tuple(const(0, s.dtype) for s in buffer.shape), {}, condition, False, False)
            return
        if isinstance(item, For):
            yield from visit(item.extent, loops, condition, bound, init)
            inner = {**loops, item.loop_var: Range(expr(item.min), expr(item.extent))}
            yield from visit(item.body, inner, condition, bound, init)
        elif isinstance(item, IfThenElse):
            yield from visit(item.condition, loops, condition, bound, init)
            yield from visit(item.then_case, loops, logical_and(condition, expr(item.condition)), bound, init)
            if item.else_case is not None:
                yield from visit(item.else_case, loops, logical_and(condition, IntImm(0, item.condition.dtype)), bound, init)
        elif isinstance(item, BlockRealize):
            values = {v.var: expr(e) for v, e in zip(item.block.iter_vars, item.iter_values)}
            inner_bound = {**bound, **values}
            guard = logical_and(condition, expr(item.predicate))
            block: Block = item.block
            stored = None
            if block.init is not None:
                yield from visit(block.init, loops, guard, inner_bound, None)
                stored = {_index_key(s.indices) for s in walk(block.init) if isinstance(s, BufferStore) and s.buffer is buffer}
            yield from visit(block.body, loops, guard, inner_bound, stored)
        elif isinstance(item, BufferStore):
            for child in (item.value, *item.indices):
                yield from visit(child, loops, condition, bound, init)
            if item.buffer is buffer:
                yield _Access(tuple(expr(i) for i in item.indices), loops, condition, True, False)
        elif isinstance(item, BufferLoad):
            for child in item.indices:
                yield from visit(child, loops, condition, bound, init)
            if item.buffer is buffer:
                own = init is not None and _index_key(item.indices) in init
                yield _Access(tuple(expr(i) for i in item.indices), loops, condition, False, own)
        else:
            for child in item.children():
                yield from visit(child, loops, condition, bound, init)

    from ..expr import TRUE

    yield from visit(root, {}, TRUE, {}, None)


def _index_key(indices: Any) -> tuple[Any, ...]:
    return tuple(key(i) for i in indices)
