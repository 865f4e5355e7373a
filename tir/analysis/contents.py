"""What statements contain. A long sequence, of which a step changes little, is made of short ones, of which it is found
once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable
from itertools import accumulate, chain, compress, count, filterfalse
from operator import is_not
from typing import Any, NamedTuple

from ..aliases import memory_of
from ..buffer import Buffer
from ..expr import Var
from ..node import Memo, once, version_before
from ..stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    While,
    in_short_parts,
    is_long,
)
from ..visit import BINDERS, LEAVES, vars_in


def sub_statements(node: Any) -> tuple[Any, ...]:
    """The statements (or the block) directly inside a statement, in program order."""
    kind = type(node)
    if kind is For:
        return (node.body,)
    if kind is SeqStmt:
        return node.stmts
    if kind is BlockRealize:
        return (node.block,)
    if kind is Block:
        return (node.body,) if node.init is None else (node.init, node.body)
    below = _CHILDREN.get(kind)
    return () if below is None else below(node)


_CHILDREN: dict[type, Any] = {
    IfThenElse: lambda s: (s.then_case,) if s.else_case is None else (s.then_case, s.else_case),
    **dict.fromkeys(
        (While, LetStmt, AttrStmt, Allocate, AllocateConst, DeclBuffer, BufferRealize), lambda s: (s.body,)
    ),
}


def parts(seq: SeqStmt) -> tuple[SeqStmt, ...]:
    """The members of a long sequence in short ones that follow each other. Most are those of a version before: what is known
    of these is not found again."""
    known = _PARTS.get(seq)
    if known is None:
        known = _PARTS[seq] = _regrouped(seq)
    return known


_PARTS: Memo[tuple[SeqStmt, ...]] = Memo()


def _regrouped(seq: SeqStmt) -> tuple[SeqStmt, ...]:
    last = old = version_before(seq)
    while old is not None and _PARTS.get(old) is None:
        old = version_before(old)
    old = last if old is None else old
    if old is None:
        return in_short_parts(seq.stmts)
    # other programs may be made from that version too
    was = _PARTS.setdefault(old, in_short_parts(old.stmts)) if _PARTS.get(old) is None else parts(old)
    start, gone, _ = trimmed(old.stmts, seq.stmts)
    ends = [0, *accumulate(len(part.stmts) for part in was)]
    first, last = max(bisect_left(ends, start) - 1, 0), bisect_left(ends, start + len(gone))
    end = len(seq.stmts) - (ends[-1] - ends[last])
    return (*was[:first], *in_short_parts(seq.stmts[ends[first] : end]), *was[last:])


def trimmed(was: tuple[Any, ...], now: tuple[Any, ...]) -> tuple[int, tuple[Any, ...], tuple[Any, ...]]:
    """How many members two sequences begin with in common, and what of them is neither there nor common at their
    ends."""
    least = min(len(was), len(now))
    start = next(compress(count(), map(is_not, was, now)), least)
    end = min(next(compress(count(), map(is_not, reversed(was), reversed(now))), least), least - start)
    return start, was[start : len(was) - end], now[start : len(now) - end]


# ---------------------------------------------------------------- what is inside


def _shape(s: Any, found: list[Any]) -> list[Any]:
    """What :func:`shape` answers, appended to ``found``."""
    while True:
        kind = type(s)
        if kind is For:
            found.append(s)
            s = s.body
        elif kind is BlockRealize:
            found.append(s)
            if s.block.init is not None:
                _shape(s.block.init, found)
            s = s.block.body
        elif kind is BufferStore:
            return found
        elif kind is SeqStmt:
            found += (s,) if is_long(s.stmts) else chain.from_iterable(map(shape, s.stmts))
            return found
        else:
            below = sub_statements(s)
            if not below:
                return found
            for member in below[:-1]:
                _shape(member, found)
            s = below[-1]


def shape(stmt: Any) -> list[Any]:
    """The loops and the realizes of blocks in a statement, itself included, parents first, in program order; a long
    sequence instead of what it contains. Computed once for each; not to be changed."""
    is_listed, others = _listed(stmt)
    return [stmt, *others] if is_listed else others


@once
def _listed(stmt: Any) -> tuple[bool, list[Any]]:
    """Whether :func:`shape` begins with the statement itself, which does not hold itself, and what else it has."""
    found = _shape(stmt, [])
    is_listed = bool(found) and found[0] is stmt
    return is_listed, found[is_listed:]


class Inside:
    """Those of the loops and realizes of blocks in a statement, itself included, that are ``kept`` of a list of them:
    parents first, in program order."""

    def __init__(self, kept: Callable[[list[Any]], list[Any]]):
        self._kept = kept
        self._of_sequence = once(self._of_members)

    def __call__(self, stmt: Any) -> tuple[Any, ...]:
        found = shape(stmt)
        if SeqStmt not in map(type, found):
            return tuple(self._kept(found))
        kept = (self._of_sequence(s) if type(s) is SeqStmt else self._kept([s]) for s in found)
        return tuple(chain.from_iterable(kept))

    def _of_members(self, seq: SeqStmt) -> tuple[Any, ...]:
        """Those in a long sequence, or in a part of one."""
        found = map(self._of_sequence, parts(seq)) if is_long(seq.stmts) else map(self, seq.stmts)
        return tuple(chain.from_iterable(found))


contents = Inside(lambda found: found)
with_memory = Inside(
    lambda found: [s for s in found if type(s) is BlockRealize and (s.block.alloc_buffers or s.block.match_buffers)]
)


@once
def has_blocks(stmt: Any) -> bool:
    """Whether a statement is, or contains, the realize of a block; computed once for each."""
    return type(stmt) is BlockRealize or any(map(has_blocks, sub_statements(stmt)))


def members_of(stmt: Any) -> tuple[Any, ...]:
    """The members of a sequence; of any other statement, itself alone."""
    return stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,)


class MembersBy:
    """The members of a sequence by the ``keys`` of each, which depend on it alone."""

    def __init__(self, keys: Callable[[Any], Collection[Hashable]]):
        self._keys = keys
        self._tables = once(self._by_part)
        self._table = once(self._by_key)

    def of(self, stmt: Any, key: Hashable) -> list[Any]:
        """The members of a sequence that have ``key``, in order; any other statement is a sequence of itself."""
        return self.of_any(stmt, (key,))

    def of_any(self, stmt: Any, keys: Collection[Hashable]) -> list[Any]:
        """The members that have one of ``keys``, in order."""
        members = members_of(stmt)
        if not is_long(members):
            wanted = frozenset(keys)
            return [s for s in dict.fromkeys(members) if not wanted.isdisjoint(self._keys(s))]
        found: list[Any] = []
        for part, table in self._tables(stmt):
            having = [table[key] for key in keys if key in table]
            if len(having) == 1:
                found += having[0]
            elif having:
                wanted = set().union(*having)
                found += [s for s in part.stmts if s in wanted]
        return list(dict.fromkeys(found))

    def _by_part(self, seq: SeqStmt) -> list[tuple[SeqStmt, dict[Any, list[Any]]]]:
        return [(part, self._table(part)) for part in parts(seq)]

    def _by_key(self, part: SeqStmt) -> dict[Any, list[Any]]:
        found: dict[Any, list[Any]] = {}
        for s in part.stmts:
            for key in self._keys(s):
                found.setdefault(key, []).append(s)
        return found


def path_to(root: Any, node: Any) -> list[Any]:
    """The statements from ``root`` down to ``node``, both included; empty if it is not there."""
    anchor = node if type(node) is For or type(node) is BlockRealize else next(iter(contents(node)), None)
    trail: list[Any] = []
    return trail if _descend(root, node, anchor, trail) else []


def _descend(s: Any, node: Any, anchor: Any, trail: list[Any]) -> bool:
    """Append the path from ``s`` to ``node``, which contains ``anchor``, or is it."""
    start = len(trail)
    while True:
        trail.append(s)
        if s is node:
            return True
        kind = type(s)
        if kind is For:
            s = s.body
        elif kind is BlockRealize:
            s = s.block
        elif kind is Block and s.init is None:
            s = s.body
        else:
            below = s.stmts if kind is SeqStmt else sub_statements(s)
            if len(below) != 1:
                break
            s = below[0]
    if anchor is not None:
        if is_long(below):
            below = [members[anchor] for members in _holders(s) if anchor in members][:1]
    looks = anchor is not None and kind is SeqStmt
    for member in below:  # the last has it where no other has
        if (not looks or member is below[-1] or _may_hold(member, anchor)) and _descend(member, node, anchor, trail):
            return True
    del trail[start:]
    return False


def _may_hold(stmt: Any, inner: Any) -> bool:
    """Whether a loop or a realize may be in a statement, or is it: one in a long sequence inside may be."""
    others = _listed(stmt)[1]
    return inner is stmt or inner in others or SeqStmt in map(type, others)


@once
def _holders(seq: SeqStmt) -> list[dict[Any, Any]]:
    """Of each part of a long sequence, the member that contains each loop or realize in it or is it."""
    return [_by_member(part) for part in parts(seq)]


@once
def _by_member(part: SeqStmt) -> dict[Any, Any]:
    return {inner: s for s in part.stmts for inner in contents(s)}


def added(old: Any, new: Any) -> list[Any]:
    """The loops and the realizes of blocks in the statement ``new`` that are not in ``old``, in program order; one that was
    changed, or contains a change, is among them."""
    was, now = shape(old), shape(new)
    if SeqStmt in map(type, was) or SeqStmt in map(type, now):
        was, now = _opened(was, parts), _opened(now, parts)
        was, now = _opened(_without(was, now), contents), _opened(_without(now, was), contents)
    return _without(now, was)


def _opened(nodes: Iterable[Any], members: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """``nodes`` with the ``members`` of long sequences in the place of these."""
    return [s for x in nodes for s in (members(x) if type(x) is SeqStmt else (x,))]


def _without(some: list[Any], others: list[Any]) -> list[Any]:
    """What one sequence has and another has not, in order."""
    return [*filterfalse(frozenset(others).__contains__, dict.fromkeys(some))]


def kept_members(old: SeqStmt, new: SeqStmt) -> frozenset[Any]:
    """The members of two sequences that stand in both; none if not in one order."""
    kept = frozenset(old.stmts).intersection(new.stmts)
    same = [s for s in old.stmts if s in kept] == [s for s in new.stmts if s in kept]
    return kept if same else frozenset()


class Occurring(NamedTuple):
    """What occurs in a statement: variables and buffers (not what is in these), the variables that it binds, and the
    pointers of the memory that it views."""

    variables: set[Var]
    buffers: set[Buffer]
    bound: set[Var]
    viewed: set[Var]


@once
def occurring(stmt: Any) -> Occurring:
    """What occurs in a statement; found once for each, and for each block in it, which stays where others change."""
    found = variables, buffers, bound, viewed = Occurring(set(), set(), set(), set())
    nodes = [stmt]
    for item in nodes:  # which grows
        kind = type(item)
        if kind in LEAVES:
            if kind is Var:
                variables.add(item)
            elif kind is Buffer:
                buffers.add(item)
        elif kind is Block and item is not stmt:
            for names, inner in zip(found, occurring(item)):
                names |= inner
        else:
            if kind in BINDERS:
                bound.update(BINDERS[kind](item))
            nodes += item.children()
    if type(stmt) is Block:
        viewed |= memory_of(m.source for m in stmt.match_buffers)
    return found


@once
def free_in(stmt: Any) -> frozenset[Var]:
    """The free variables of a statement, as :func:`tir.visit.free_vars` has them; found once for each."""
    names = occurring(stmt)
    return frozenset(names.variables.union(*map(_vars_of, names.buffers)) - names.bound)


@once
def _vars_of(buffer: Buffer) -> set[Var]:
    return vars_in(*buffer.children())


@once
def named(stmt: Any) -> frozenset[Any]:
    """The variables and buffers, with their pointers, that occur in a statement; found once for each."""
    names = occurring(stmt)
    return memory_of(names.buffers).union(names.variables, names.buffers)


NAMING = MembersBy(named)
"""The members of a sequence by the variables, the buffers and the pointers that occur in them."""


@once
def is_nest_of_blocks(stmt: Any) -> bool:
    """Whether a statement consists of blocks (whatever is in them), loops and sequences; computed once for each."""
    inner: Any = stmt
    while type(inner) is For:
        inner = inner.body
    return type(inner) is BlockRealize or (type(inner) is SeqStmt and all(map(is_nest_of_blocks, inner.stmts)))
