"""Which loads under a condition may run whatever the condition gives: their addresses are in bounds anyway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tir.aliases import shares_memory
from tir.analysis.evaluation import LAZY, evaluated_parts, is_lazy
from tir.arith import Analyzer
from tir.arith.strided_lanes import lane_offsets
from tir.buffer import Buffer, Range
from tir.expr import BufferLoad, Call, Expr, IntImm, Var
from tir.function import PrimFunc
from tir.stmt import Allocate, For, IfThenElse, LetStmt, Stmt
from tir.transform.layout import product
from tir.visit import kinds, nodes_of, walk

_MAY_ASK = LAZY | {IfThenElse}
Sizes = dict[Var, tuple[Any, Expr]]  # of memory, by its pointer: the data type of an element, and their number


def speculatable_loads(func: PrimFunc) -> frozenset[BufferLoad]:
    """Of the loads of a lowered function that an ``and``, an ``or`` or a lazy choice makes conditional, and of the scalar ones for
    some lanes of a vector, those that may run without: in every iteration of the loops around them, the address is inside of an argument or an allocation.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "bool"), B: T.Buffer((8,), "bool")):
    ...     for i in range(8):
    ...         B[i] = A[i] and (A[7 - i] or A[i + 1])
    ... ''')
    >>> speculatable_loads(f)
    frozenset({A[7 - i]})
    """
    nodes = [] if _MAY_ASK.isdisjoint(kinds(func.body)) else nodes_of(func.body)
    if not any(type(n) in LAZY and is_lazy(n) or _is_of_lanes(n) for n in nodes):
        return frozenset()
    sizes: Sizes = {}
    may_be_null = {a for n in nodes if type(n) is Call and n.op == "isnullptr" for a in n.args}
    for buffer in func.buffer_map.values():
        count = _count(buffer)
        if count is not None and not shares_memory(buffer, may_be_null):
            sizes[buffer.data] = buffer.dtype, count
    known = Analyzer()
    known.assume_sizes(func.buffer_map.values())
    visitor = _Visitor(sizes, known)
    visitor.statement(func.body)
    return frozenset(visitor.inside - visitor.outside)


def _is_of_lanes(s: Any) -> bool:
    """Whether a statement runs for some lanes of a vector."""
    return isinstance(s, IfThenElse) and s.condition.dtype.lanes > 1


def _count(buffer: Buffer) -> Expr | None:
    """The number of elements of an argument without gaps; None for another."""
    if buffer.strides or buffer.elem_offset is not None:
        return None
    return product(buffer.shape)


class _Visitor:
    def __init__(self, sizes: Sizes, known: Analyzer):
        self.sizes, self.known = sizes, known
        self.inside: set[BufferLoad] = set()
        self.outside: set[BufferLoad] = set()  # one may stand in several loops

    def statement(self, s: Any, for_lanes: bool = False) -> None:
        if not for_lanes and _MAY_ASK.isdisjoint(kinds(s)):
            return
        if isinstance(s, Allocate):
            self.sizes[s.buffer_var] = s.dtype, product(s.extents)
        for child in s.children():
            if isinstance(child, Stmt):
                if not for_lanes and not _is_of_lanes(s) and _MAY_ASK.isdisjoint(kinds(child)):
                    continue
                with self.known.scope():
                    self._enter(s, child)
                    self.statement(child, for_lanes or _is_of_lanes(s))
            elif isinstance(child, Expr):
                scalar = (
                    (n for n in walk(child) if isinstance(n, BufferLoad) and n.dtype.lanes == 1) if for_lanes else ()
                )
                for load in (*_conditional_loads(child), *scalar):
                    (self.inside if self._is_inside(load) else self.outside).add(load)

    def _enter(self, s: Stmt, child: Stmt) -> None:
        """Know what holds in the part ``child`` of ``s``."""
        if isinstance(s, For):
            self.known.bind(s.loop_var, Range(s.min, s.extent), within=child)
        elif isinstance(s, LetStmt) and s.var.dtype.is_int:
            self.known.bind(s.var, s.value, within=child)
        elif isinstance(s, IfThenElse) and child is not s.else_case and s.condition.dtype.lanes == 1:
            self.known.assume(s.condition, within=child)

    def _is_inside(self, load: BufferLoad) -> bool:
        dtype, count = self.sizes.get(load.buffer.data, (None, None))
        if count is None or load.buffer.dtype is not dtype or len(load.indices) != 1:
            return False
        if load.buffer.strides or load.buffer.elem_offset is not None:
            return False
        first, last = _ends(load.indices[0])
        if isinstance(count, IntImm) and first.dtype.lanes == 1:
            low, high = self.known.bound(first)[0], self.known.bound(last)[1]
            if low is not None and high is not None and low >= 0 and high < count.value:
                return True
        return self.known.can_prove(first >= 0) and self.known.can_prove(last < count)


def _conditional_loads(e: Expr) -> Iterator[BufferLoad]:
    """The loads in ``e`` that evaluating it runs under a condition only."""
    for part, condition in evaluated_parts(e):
        if isinstance(part, Expr):
            lazy = condition is not None
            yield from (n for n in walk(part) if isinstance(n, BufferLoad)) if lazy else _conditional_loads(part)


def _ends(index: Expr) -> tuple[Expr, Expr]:
    """Two lanes of ``index`` that are the least and the greatest, or, of another vector, that itself."""
    lanes = lane_offsets(index) if index.dtype.lanes > 1 else None
    if lanes is None:
        return index, index
    first, offsets = lanes
    return first + min(offsets), first + max(offsets)
