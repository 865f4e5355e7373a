"""Stores outside of blocks, which are in no declared region: found for steps that keep a copy of the memory."""

from __future__ import annotations

from collections.abc import Sequence

from ..buffer import Buffer
from ..expr import Var
from ..node import Memo
from ..stmt import BlockRealize, BufferStore, Evaluate, SeqStmt, Stmt
from .contents import MembersBy, sub_statements
from .effects import effects
from .index import BlockRef, Place

_FOUND: Memo[tuple[tuple[Stmt, Var], ...]] = Memo()


def bare_stores(stmt: Stmt) -> Sequence[tuple[Stmt, Var]]:
    """The statements in ``stmt``, outside of blocks, that store or pass a pointer on, with the memory that they may write."""
    if isinstance(stmt, BlockRealize):
        return ()
    found = _FOUND.get(stmt)
    if found is None:
        if isinstance(stmt, (BufferStore, Evaluate)):
            found = tuple((stmt, memory) for memory in effects(stmt).writes)
        else:
            parts = _STORING.of(stmt, True) if isinstance(stmt, SeqStmt) else sub_statements(stmt)
            found = tuple(item for part in parts for item in bare_stores(part))
        _FOUND[stmt] = found
    return found


_STORING = MembersBy(lambda s: (True,) if bare_stores(s) else ())


def bare_writers(scope: BlockRef, buffer: Buffer) -> list[Place]:
    """The statements of ``scope``, outside of the blocks in it, that may write the memory of ``buffer``, in program order."""
    found = (item for part in sub_statements(scope.block) for item in bare_stores(part))
    return [scope.index.place(stmt) for stmt, memory in found if memory is buffer.data]
