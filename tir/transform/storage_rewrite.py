"""Allocations whose lifetimes do not overlap share memory."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..expr import BufferLoad, IntImm, Var, is_const
from ..function import PrimFunc
from ..stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, SeqStmt, Stmt
from ..visit import substitute, walk
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
    """Which of ``pointers`` are used under ``stmt``, in accesses, views or as values."""
    found: set[Var] = set()
    for n in walk(stmt):
        if isinstance(n, (BufferLoad, BufferStore, DeclBuffer)):
            if n.buffer.data in pointers:
                found.add(n.buffer.data)
        elif isinstance(n, Var) and n in pointers:
            found.add(n)
    return found


Wrapper: TypeAlias = "Allocate | DeclBuffer | AttrStmt"


def _visit(item: Any) -> Any:
    """``item`` with the allocations of each run of them around a sequence shared, outermost first."""
    if not isinstance(item, Stmt):
        return item
    chain: list[Wrapper] = []
    inner: Any = item
    while isinstance(inner, (Allocate, DeclBuffer, AttrStmt)):
        chain.append(inner)
        inner = inner.body
    if not chain:
        return item.map_children(_visit)
    body = _visit(inner)
    owner = _owners(chain, body) if isinstance(body, SeqStmt) else {}
    if owner:
        return substitute(_wrapped(_kept(chain, owner), body), owner)
    return item if body is inner else _wrapped(chain, body)


def _kept(chain: list[Wrapper], owner: dict[Var, Var]) -> list[Wrapper]:
    """The allocations of ``chain`` that remain. A view of shared memory may stand outside its new allocation:
    allocations come first."""
    kept = [c for c in chain if not (isinstance(c, Allocate) and c.buffer_var in owner)]
    return sorted(kept, key=lambda c: not isinstance(c, Allocate))


def _wrapped(chain: list[Wrapper], body: Stmt) -> Stmt:
    for wrapper in reversed(chain):
        body = wrapper.replace(body=body)
    return body


def _lives(pointers: set[Var], body: SeqStmt) -> dict[Var, tuple[int, int]]:
    """The first and the last statement of ``body`` that uses each of ``pointers``, by the first."""
    life: dict[Var, tuple[int, int]] = {}
    for k, part in enumerate(body.stmts):
        for pointer in _used(part, pointers):
            life[pointer] = (life.get(pointer, (k, k))[0], k)
    return dict(sorted(life.items(), key=lambda found: found[1]))


def _owners(chain: list[Wrapper], body: SeqStmt) -> dict[Var, Var]:
    """The allocation that replaces another, for those of ``chain`` that may share memory."""
    sizes = {
        a.buffer_var: (a, size)
        for a in chain
        if isinstance(a, Allocate) and is_const(a.condition, 1) and not a.annotations
        if (size := _bytes(a)) is not None and size >= SMALLEST
    }
    owner: dict[Var, Var] = {}
    free_from: dict[Var, int] = {}  # an allocation that is kept -> the statement after which it is free
    for pointer, (begin, end) in _lives(set(sizes), body).items() if len(sizes) > 1 else ():
        mine, size = sizes[pointer]
        for other, busy in free_from.items():
            theirs, room = sizes[other]
            if busy < begin and size <= room and theirs.dtype is mine.dtype and other.scope == pointer.scope:
                owner[pointer] = other
                free_from[other] = end
                break
        else:
            free_from[pointer] = end
    return owner


@func_pass
def storage_rewrite(func: PrimFunc) -> PrimFunc:
    """A buffer reuses the memory of a dead buffer of the same type and scope.

    Only adjacent allocations of constant size take part, from 1 KiB up. Two buffers used by one statement never share
    memory.
    """
    return func.with_body(_visit(func.body))
