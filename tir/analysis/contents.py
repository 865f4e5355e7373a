"""What statements contain. Programs share what a step did not change, so this is computed once for each statement
object; for a sequence, from the version that it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, compress, count
from operator import is_not
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

from ..node import Memo, Node
from ..stmt import (
    SERIAL,
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    While,
)

FEW = 16  # members, of a sequence of which everything is found faster than what changed

N = TypeVar("N", bound=Node)
T = TypeVar("T")


def sub_statements(node: Any) -> tuple[Any, ...]:
    """The statements (or the block) directly inside a statement, in program order."""
    kind = _CHILDREN.get(type(node))
    return kind(node) if kind is not None else ()


_CHILDREN: dict[type, Any] = {
    BlockRealize: lambda s: (s.block,),
    Block: lambda s: (s.body,) if s.init is None else (s.init, s.body),
    SeqStmt: lambda s: s.stmts,
    IfThenElse: lambda s: (s.then_case,) if s.else_case is None else (s.then_case, s.else_case),
    **dict.fromkeys(
        (For, While, LetStmt, AttrStmt, Allocate, AllocateConst, DeclBuffer, BufferRealize), lambda s: (s.body,)
    ),
}


# ---------------------------------------------------------------- versions


@dataclass(frozen=True)
class Edit:
    """How a sequence was made from ``old``: the adjacent members ``removed`` were replaced by ``added``."""

    old: SeqStmt
    removed: tuple[Any, ...]
    added: tuple[Any, ...]


def made_from(old: Any, new: N) -> N:
    """``new``, of which it is noted that it is a version of ``old``: what is known of a sequence, or of a function, is
    made from what is known of its version before."""
    if type(new) is type(old) and new is not old:
        _ORIGINS[new] = ref(old)
    return new


def version_before(new: Any) -> Any:
    """What ``new`` was made from, as :func:`made_from` said, if it still exists; None otherwise."""
    origin = _ORIGINS.get(new)
    return None if origin is None else origin()


def edit_of(new: Any) -> Edit | None:
    """How a sequence was made from its version before; None if there is none, or it is too short for that to matter."""
    old = version_before(new) if len(new.stmts) > FEW else None
    return None if old is None else Edit(old, *trimmed(old.stmts, new.stmts)[1:])


def trimmed(was: tuple[Any, ...], now: tuple[Any, ...]) -> tuple[int, tuple[Any, ...], tuple[Any, ...]]:
    """How many members two sequences begin with in common, and what of them is neither there nor common at their
    ends."""
    least = min(len(was), len(now))
    start = next(compress(count(), map(is_not, was, now)), least)
    end = min(next(compress(count(), map(is_not, reversed(was), reversed(now))), least), least - start)
    return start, was[start : len(was) - end], now[start : len(now) - end]


_ORIGINS: Memo[ReferenceType[Any]] = Memo()


# ---------------------------------------------------------------- what is inside


class Inside(Generic[T]):
    """What the loops and realizes of blocks inside of a statement have, parents first, in program order; ``own`` says
    what one of them has."""

    def __init__(self, own: Callable[[Any], tuple[T, ...]]):
        self._own = own
        self._known: Memo[tuple[T, ...]] = Memo()

    def __call__(self, stmt: Any) -> tuple[T, ...]:
        known = self._known.get(stmt)
        if known is None:
            below = sub_statements(stmt)
            if not below:
                return ()
            known = self._known[stmt] = self.of(below[0]) if len(below) == 1 else self._of_several(stmt, below)
        return known

    def of(self, stmt: Any) -> tuple[T, ...]:
        """As the call, with what ``stmt`` itself has."""
        inner = self(stmt)
        return self._own(stmt) + inner if type(stmt) is For or type(stmt) is BlockRealize else inner

    def of_all(self, stmts: Iterable[Any]) -> tuple[T, ...]:
        """What statements that follow each other have."""
        return tuple(chain.from_iterable(map(self.of, stmts)))

    def _of_several(self, stmt: Any, below: tuple[Any, ...]) -> tuple[T, ...]:
        change = edit_of(stmt) if type(stmt) is SeqStmt else None
        if change is None:
            return self.of_all(below)
        known, gone, new = self(change.old), self.of_all(change.removed), self.of_all(change.added)
        if gone == new:
            return known
        if not gone or known.count(gone[0]) != 1:  # nothing tells where the change is
            return self.of_all(below)
        at = known.index(gone[0])
        return known[:at] + new + known[at + len(gone) :]


contents: Inside[Any] = Inside(lambda s: (s,))
marked: Inside[For] = Inside(lambda s: (s,) if type(s) is For and (s.kind != SERIAL or s.annotations) else ())
with_memory: Inside[BlockRealize] = Inside(
    lambda s: (s,) if type(s) is BlockRealize and (s.block.alloc_buffers or s.block.match_buffers) else ()
)


def has_blocks(stmt: Any) -> bool:
    """Whether a statement is, or contains, the realize of a block; computed once for each."""
    if type(stmt) is BlockRealize:
        return True
    found = _WITH_BLOCKS.get(stmt)
    if found is None:
        found = _WITH_BLOCKS[stmt] = any(map(has_blocks, sub_statements(stmt)))
    return found


_WITH_BLOCKS: Memo[bool] = Memo()


def holders(stmt: Any) -> dict[Any, Any]:
    """The sub-statement of ``stmt``, of several, that contains each loop or realize inside of it or is it."""
    known = _HOLDERS.get(stmt)
    if known is None:
        change = edit_of(stmt) if type(stmt) is SeqStmt else None
        if change is not None:
            known = dict(holders(change.old))
            for inner in contents.of_all(change.removed):
                known.pop(inner, None)
            known.update(_holders_of(change.added))
        if known is None or len(known) != len(contents(stmt)):  # a statement object may stand in several places
            known = _holders_of(sub_statements(stmt))
        _HOLDERS[stmt] = known
    return known


def _holders_of(members: Iterable[Any]) -> dict[Any, Any]:
    return {inner: s for s in members for inner in contents.of(s)}


_HOLDERS: Memo[dict[Any, Any]] = Memo()
