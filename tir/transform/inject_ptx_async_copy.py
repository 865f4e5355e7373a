"""Asynchronous copies from global to shared memory, which bypass registers."""

from __future__ import annotations

from typing import Any

from ..expr import Broadcast, BufferLoad, Expr, Ramp, choice_parts, const, is_const
from ..function import PrimFunc
from ..levels import ends_with_launch, is_shared
from ..op import call
from ..stmt import AttrStmt, BufferStore, Evaluate, Stmt
from ..visit import rewrite
from .passes import func_pass
from .thread_axes import flat

SIZES = (4, 8, 16)  # bytes that one cp.async moves


def _first(load: Any) -> Expr | None:
    """The first element of a scalar or contiguous access, offset included; None for any other."""
    if len(load.indices) != 1:
        return None
    index = load.indices[0]
    if isinstance(index, Ramp):
        if not is_const(index.stride, 1):
            return None
        index = index.base
    if index.dtype.lanes != 1:
        return None
    offset = load.buffer.elem_offset
    return index if offset is None else index + offset


def _is_zero(e: Any) -> bool:
    while isinstance(e, Broadcast):
        e = e.value
    return is_const(e, 0)


def _copy(s: BufferStore) -> Stmt | None:
    """The store as an asynchronous copy, if possible: of 4, 8 or 16 bytes, zero-filled where a condition is false."""
    value: Any = s.value
    condition: Expr | None = None
    if (parts := choice_parts(value)) is not None and _is_zero(parts[2]):
        condition, value, _ = parts
    if isinstance(condition, Broadcast):
        condition = condition.value
    if condition is not None and condition.dtype.lanes != 1:
        return None
    if not isinstance(value, BufferLoad) or ends_with_launch(value.buffer.scope) or not is_shared(s.buffer.scope):
        return None
    if value.buffer.dtype is not s.buffer.dtype or value.dtype.bytes not in SIZES:
        return None
    to, origin = _first(s), _first(value)
    if to is None or origin is None:
        return None
    more = () if condition is None else (condition,)
    size = const(value.dtype.bytes)
    made = call("ptx_cp_async", s.buffer.data, to, value.buffer.data, origin, size, *more, dtype=s.buffer.dtype.element)
    return Evaluate(made, span=s.span)


@func_pass
def inject_ptx_async_copy(func: PrimFunc) -> PrimFunc:
    """Under ``async_scope`` a store of a global load of 4, 8 or 16 bytes to shared memory becomes ``ptx_cp_async``.

    ``T.if_then_else(c, A[…], 0)`` becomes a predicated copy, which fills with zeros. Other statements of the stage are
    unchanged; the scope is removed.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((64,), "float32")):
    ...     with T.launch_thread("threadIdx.x", 32) as tx:
    ...         S = T.allocate([128], "float32", "shared")
    ...         with T.attr(0, "async_scope", 1):
    ...             S[tx] = A[tx]
    ... ''')
    >>> tir.transform.inject_ptx_async_copy(f).body
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.allocate([128], "float32", "shared")
    T.ptx_cp_async(S, tx, A, tx, 4, dtype="float32")
    """

    def inside(item: Any) -> Any:
        return _copy(item) if isinstance(item, BufferStore) else None

    def visit(item: Any) -> Any:
        if isinstance(item, AttrStmt) and item.attr_key == "async_scope":
            return rewrite(item.body, inside)
        return None

    return func.with_body(flat(rewrite(func.body, visit)))
