"""Allocations whose lifetimes do not overlap share memory."""

from __future__ import annotations

from typing import Any

from ..expr import BufferLoad, IntImm, Var, is_const
from ..function import PrimFunc
from ..stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, SeqStmt, Stmt
from ..visit import rewrite, substitute, walk
from .passes import func_pass

SMALLEST = 1024  # bytes: smaller buffers are better kept apart, where they can live in registers


def _bytes(a: Allocate) -> int | None:
    total = a.dtype.bytes
    for extent in a.extents:
        if not isinstance(extent, IntImm):
            return None
        total *= extent.value
    return total


def _used(stmt: Stmt, pointers: set[Var]) -> set[Var]:
    """Which of ``pointers`` occur under ``stmt``, in accesses, views or as values."""
    found: set[Var] = set()
    for n in walk(stmt):
        if isinstance(n, (BufferLoad, BufferStore, DeclBuffer)):
            if n.buffer.data in pointers:
                found.add(n.buffer.data)
        elif isinstance(n, Var) and n in pointers:
            found.add(n)
    return found


def _share(item: Any) -> Any:
    """At the outermost of directly nested allocations around a sequence: merge those that live one after another."""
    if not isinstance(item, Allocate):
        return None
    chain: list[Allocate | DeclBuffer | AttrStmt] = []
    inner: Any = item
    while isinstance(inner, (Allocate, DeclBuffer, AttrStmt)):
        chain.append(inner)
        inner = inner.body
    if not isinstance(inner, SeqStmt):
        return None
    allocs = {
        a.buffer_var: a
        for a in chain
        if isinstance(a, Allocate) and (_bytes(a) or 0) >= SMALLEST and is_const(a.condition, 1) and not a.annotations
    }
    if len(allocs) < 2:
        return None
    life: dict[Var, list[int]] = {}
    for k, part in enumerate(inner.stmts):
        for pointer in _used(part, set(allocs)):
            life.setdefault(pointer, [k, k])[1] = k
    owner: dict[Var, Var] = {}
    free_from: dict[Var, int] = {}  # an allocation that is kept -> the statement after which it is free
    for pointer in sorted(life, key=lambda p: life[p][0]):
        mine = allocs[pointer]
        for other, end in free_from.items():
            theirs = allocs[other]
            same = theirs.dtype is mine.dtype and other.scope == pointer.scope
            if same and end < life[pointer][0] and (_bytes(theirs) or 0) >= (_bytes(mine) or 0):
                owner[pointer] = other
                free_from[other] = life[pointer][1]
                break
        else:
            free_from[pointer] = life[pointer][1]
    if not owner:
        return None
    body: Stmt = inner
    kept_views = [c for c in chain if not (isinstance(c, Allocate) and c.buffer_var in owner)]
    # a view of shared memory may stand outside the allocation it moves to: allocations first
    kept_views.sort(key=lambda c: not isinstance(c, Allocate))
    for wrapper in reversed(kept_views):
        body = wrapper.replace(body=body)
    return substitute(body, owner)


@func_pass
def storage_rewrite(func: PrimFunc) -> PrimFunc:
    """A later buffer takes the memory of an earlier one of the same type and scope that is used no more.

    Only buffers of constant size allocated side by side take part, from 1 KiB up. Two buffers used by one statement
    never share.
    """
    return func.with_body(rewrite(func.body, _share))
