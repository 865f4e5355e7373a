"""Where two programs differ. What is one object in both is not visited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, ref

from ..function import PrimFunc
from ..node import Memo
from ..recursion import with_recursion_limit
from ..stmt import BlockRealize, For, SeqStmt
from .contents import contents, sub_statements, trimmed


@dataclass(frozen=True, eq=False)
class Difference:
    """``removed``: loops and realizes of blocks in the program before that are not in the one after; ``added``: the
    other way round. In program order; a statement that was changed, or contains a change, is in both."""

    removed: tuple[Any, ...]
    added: tuple[Any, ...]


def difference(before: PrimFunc, after: PrimFunc) -> Difference:
    """The difference of two programs, computed once for each pair in a row."""
    known = _DIFFERENCES.get(after)
    if known is None or known[0]() is not before:
        known = _DIFFERENCES[after] = ref(before), _difference(before.body, after.body)
    return known[1]


_DIFFERENCES: Memo[tuple[ReferenceType[PrimFunc], Difference]] = Memo()


@with_recursion_limit
def _difference(old: Any, new: Any) -> Difference:
    removed: dict[Any, None] = {}
    added: dict[Any, None] = {}
    _compare(old, new, removed, added)
    return Difference(tuple([s for s in removed if s not in added]), tuple([s for s in added if s not in removed]))


def _compare(old: Any, new: Any, removed: dict[Any, None], added: dict[Any, None]) -> None:
    """Collect the loops and realizes of ``old`` and of ``new``, but for those in parts that are one object."""
    while True:
        if old is new:
            return
        if type(old) in _COLLECTED:
            removed[old] = None
        if type(new) in _COLLECTED:
            added[new] = None
        was, now = sub_statements(old), sub_statements(new)
        if len(was) != 1 or len(now) != 1:
            break
        (old,), (new,) = was, now
    _, gone, new = trimmed(was, now)
    pending: dict[Any, list[Any]] = {}
    for s in gone:
        if s not in now:
            pending.setdefault(_key(s), []).append(s)
    for s in new:
        if s not in was:
            partners = pending.get(_key(s))
            if partners:
                _compare(partners.pop(0), s, removed, added)
            else:
                added.update(dict.fromkeys(contents(s)))
    for s in (s for left in pending.values() for s in left):
        removed.update(dict.fromkeys(contents(s)))


_COLLECTED = (For, BlockRealize)


def _key(stmt: Any) -> Any:
    """Statements that are likely to be a version of each other have the same."""
    if isinstance(stmt, For):
        return stmt.loop_var
    return stmt.block.name if isinstance(stmt, BlockRealize) else type(stmt)


def kept_members(old: SeqStmt, new: SeqStmt) -> frozenset[Any]:
    """The members of two sequences that stand in both; none if not in one order."""
    kept = frozenset(old.stmts).intersection(new.stmts)
    same = [s for s in old.stmts if s in kept] == [s for s in new.stmts if s in kept]
    return kept if same else frozenset()
