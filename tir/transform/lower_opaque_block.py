"""Removes blocks: loops, conditions, allocations and attributes remain."""

from __future__ import annotations

from typing import Any

from ..annotations import PARTITION_HINT
from ..buffer import Buffer, IterVar
from ..errors import BuildError
from ..expr import Expr, StringImm, Var, as_expr, const, is_const
from ..function import PrimFunc
from ..node import EMPTY
from ..stmt import (
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    allocated,
    seq,
)
from ..visit import substitute
from .canonicalize_loop import starting_at_zero
from .passes import func_pass


def _allocated(buffer: Buffer, body: Stmt) -> Stmt:
    strided = buffer.strides and buffer.shape
    return allocated(buffer, body, (buffer.strides[0] * buffer.shape[0],) if strided else None)


def _pragmas(annotations: Any, body: Stmt) -> Stmt:
    """Pragmas become attributes around the body; other annotations were for earlier passes."""
    for name, value in reversed(list(annotations.items())):
        if name.startswith("pragma_") and isinstance(value, (Expr, int, str)):
            text = StringImm(value) if isinstance(value, str) else as_expr(value)
            body = AttrStmt(const(0), name, text, body)
    return body


def _block(realize: BlockRealize) -> Stmt:
    block: Block = realize.block
    if block.iter_vars:
        raise BuildError(f"block `{block.name}` has iterators: run convert_blocks_to_opaque before lower_opaque_block")
    body = _visit(block.body)
    for buffer in reversed(block.alloc_buffers):
        body = _allocated(buffer, body)
    body = _pragmas(block.annotations, body)
    return body if is_const(realize.predicate, 1) else IfThenElse(realize.predicate, body)


def _is_single(loop: For) -> bool:
    """Whether a loop has one iteration, and nothing else to say."""
    return loop.kind != "thread_binding" and is_const(loop.extent, 1) and not loop.annotations


def _loop(loop: For) -> Stmt:
    if loop.kind == "thread_binding":
        loop = starting_at_zero(loop)
        axis = IterVar(loop.domain, loop.loop_var, "thread", loop.thread)
        return AttrStmt(axis, "thread_extent", loop.extent, _visit(loop.body))
    known: dict[Var, Expr] = {}
    inside: Any = loop
    while isinstance(inside, For) and _is_single(inside):
        known[inside.loop_var] = substitute(inside.min, known)
        inside = inside.body
    if known:
        return _visit(substitute(inside, known))
    body = _visit(loop.body)
    kept = {k: v for k, v in loop.annotations.items() if not k.startswith("pragma_") or k == PARTITION_HINT}
    made = loop.replace(body=body, annotations=type(EMPTY)(kept)) if len(kept) != len(loop.annotations) else None
    made = made or (loop if body is loop.body else loop.replace(body=body))
    return _pragmas({k: v for k, v in loop.annotations.items() if k not in kept}, made)


def _visit(item: Any) -> Any:
    if isinstance(item, BlockRealize):
        return _block(item)
    if isinstance(item, For):
        return _loop(item)
    if isinstance(item, BufferRealize):
        body = _allocated(item.buffer, _visit(item.body))
        return body if is_const(item.condition, 1) else IfThenElse(item.condition, body)
    if isinstance(item, SeqStmt):
        made = [_visit(s) for s in item.stmts]
        return item if all(a is b for a, b in zip(made, item.stmts)) else seq(made)
    if isinstance(item, Stmt):
        return item.map_statements(_visit)
    return item


@func_pass
def lower_opaque_block(func: PrimFunc) -> PrimFunc:
    """Blocks without iterators become their bodies; a predicate becomes an ``if``, an allocation ``allocate``.

    Loops bound to a thread axis become ``thread_extent`` attributes, loops of one iteration disappear, pragmas become
    attributes. Raises ``BuildError`` for a block that still has iterators.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(10):
    ...         with T.block(""):
    ...             T.where(i < 8)
    ...             H = T.alloc_buffer((1,), "float32")
    ...             H[0] = A[i] * 2.0
    ...             B[i] = H[0]
    ... ''')
    >>> tir.transform.lower_opaque_block(f).body
    for i in range(10):
        if i < 8:
            H = T.allocate([1], "float32", "global")
            H_1 = T.decl_buffer((1,), "float32", data=H)
            H_1[0] = A[i] * 2.0
            B[i] = H_1[0]
    """
    return func.with_body(_visit(func.body))
