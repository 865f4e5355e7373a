"""Removes statements without effect."""

from __future__ import annotations

from typing import Any

from ..annotations import IMPORTS
from ..arith.linear import key
from ..buffer import Buffer
from ..expr import BufferLoad, Call, IntImm, Var, logical_not
from ..function import PrimFunc
from ..stmt import (
    NOP,
    Allocate,
    AllocateConst,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    is_nop,
    seq,
)
from ..visit import LEAVES, has_load, is_pure, kinds, rewrite_statements, statements
from .passes import func_pass

_KEPT_ATTRS = (*IMPORTS, "device_id", "device_type")


def _drop(item: Any) -> Any:
    if isinstance(item, Evaluate):
        return NOP if item is not NOP and (is_pure(item.value) or _is_about_memory(item.value)) else None
    if isinstance(item, (DeclBuffer, Allocate, AllocateConst)):
        return NOP if is_nop(item.body) else None
    if isinstance(item, For):
        never = isinstance(item.extent, IntImm) and item.extent.value <= 0
        return NOP if never or is_nop(item.body) else None
    if isinstance(item, BufferStore):
        return NOP if _stores_back(item) else None
    if isinstance(item, AttrStmt):
        return NOP if is_nop(item.body) and item.attr_key not in _KEPT_ATTRS else None
    if isinstance(item, LetStmt):
        if is_nop(item.body) and is_pure(item.value):
            return NOP
        return None
    if isinstance(item, IfThenElse):
        other = None if item.else_case is None or is_nop(item.else_case) else item.else_case
        if is_nop(item.then_case) and other is None and is_pure(item.condition):
            return NOP
        if is_nop(item.then_case) and other is not None and item.condition.dtype.lanes == 1:
            return IfThenElse(logical_not(item.condition), other, span=item.span)
        return item.replace(else_case=None) if other is None and item.else_case is not None else None
    if isinstance(item, SeqStmt) and any(is_nop(s) for s in item.stmts):
        return seq(s for s in item.stmts if not is_nop(s))
    return None


def _is_about_memory(e: Any) -> bool:
    """Whether ``e`` assumes something about elements of memory, which no generator of code uses."""
    return isinstance(e, Call) and e.op == "assume" and has_load(e)


def _stores_back(s: BufferStore) -> bool:
    """Whether ``s`` stores an element that it loads from the same indices."""
    load = s.value
    return (
        isinstance(load, BufferLoad)
        and load.buffer is s.buffer
        and len(load.indices) == len(s.indices)
        and all(key(a) == key(b) and is_pure(a) for a, b in zip(load.indices, s.indices))
    )


def _unused_memory(body: Stmt) -> set[Any]:
    """Buffers and pointers that ``body`` declares, and does not use otherwise."""
    unused: set[Any] = set()
    for s in statements(body):
        if isinstance(s, (DeclBuffer, Allocate)):
            unused.add(s.buffer if isinstance(s, DeclBuffer) else s.buffer_var)
    used: set[Any] = set()
    stack: list[Any] = [body]
    while stack and unused:
        item = stack.pop()
        kind = item.__class__
        if kind is Var or kind is Buffer:
            if item in used:
                continue
            used.add(item)
            unused.discard(item)
        if kind is DeclBuffer:
            stack.append(item.body)
        elif kind is Allocate:
            stack += [*item.extents, item.condition, item.body]
        elif kind is Buffer or kind not in LEAVES:
            stack += item.children()
    return unused


_MEMORY = {DeclBuffer, Allocate}


def _without_unused_memory(body: Stmt) -> Stmt:
    if _MEMORY.isdisjoint(kinds(body)):
        return body
    unused = _unused_memory(body)

    def drop(item: Any) -> Any:
        is_unused = isinstance(item, DeclBuffer) and item.buffer in unused
        return item.body if is_unused or isinstance(item, Allocate) and item.buffer_var in unused else None

    return rewrite_statements(body, drop) if unused else body


@func_pass
def remove_no_op(func: PrimFunc) -> PrimFunc:
    """Removes empty loops, branches and sequences, unused values, stores of a value that is already there, unused memory, and
    assumptions about elements of memory. A condition whose true branch is empty is negated.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         A[i] = 1.0
    ...         for j in range(4):
    ...             T.evaluate(0)
    ... ''')
    >>> tir.transform.remove_no_op(f).body
    for i in range(8):
        A[i] = T.float32(1)
    """
    return func.with_body(_without_unused_memory(rewrite_statements(func.body, _drop)))
