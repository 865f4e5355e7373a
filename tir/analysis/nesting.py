"""Where statements stand: in which statement of a block or a loop, inside of which loops and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..expr import Expr, conjuncts, is_const
from ..stmt import Block, BlockRealize, DeclBuffer, For, SeqStmt, Stmt, edited_seq, seq
from ..visit import has_load, uses_var
from .index import BlockRef, LoopRef, Place


def statements(host: BlockRef | LoopRef) -> list[Stmt]:
    """The statements of the body of a block or a loop, in order, inside of the buffers that it declares first."""
    body = _declaring(_owner(host)).body
    return list(body.stmts) if isinstance(body, SeqStmt) else [body]


def with_statements(body: Stmt, members: Sequence[Stmt]) -> Stmt:
    """The body of a block or a loop with other ``statements``, inside of the same declarations."""
    if isinstance(body, DeclBuffer):
        return body.replace(body=with_statements(body.body, members))
    return edited_seq(body, seq(members))


def order(scope: BlockRef | LoopRef, block: Place) -> int:
    """The number of the statement of ``scope`` that holds ``block``, or another statement; -1 for its init, which comes first."""
    top = top_statement(block, scope).node
    members = statements(scope)
    return members.index(top) if top in members else -1


def top_statement(place: Place, host: BlockRef | LoopRef) -> Place:
    """The ancestor of ``place`` (or itself) that is one of the ``statements`` of ``host``."""
    owner = _declaring(_owner(host))
    current = place
    for above in place.ancestors():
        if above.node is owner:
            return current
        if isinstance(above.node, SeqStmt) and above.parent is not None and above.parent.node is owner:
            return current
        current = above
    return current


def common_host(refs: Sequence[Place], scope: BlockRef) -> BlockRef | LoopRef:
    """The innermost loop of ``scope`` whose sequence of statements contains all of ``refs``, otherwise ``scope``
    itself."""
    host: BlockRef | LoopRef = scope
    for level in zip(*(ref.loops() for ref in refs)):
        if any(loop is not level[0] for loop in level):
            break
        if isinstance(level[0].node.body, SeqStmt):
            host = level[0]
    return host


def loops_below(ref: BlockRef, host: BlockRef | LoopRef) -> list[LoopRef]:
    """The loops of ``ref`` inside ``host``, outermost first."""
    loops = ref.loops()
    return loops if isinstance(host, BlockRef) else loops[loops.index(host) + 1 :]


def met_around(block: BlockRef, host: BlockRef | LoopRef) -> list[Expr]:
    """The conjuncts of the predicate of ``block`` that nothing inside of ``host`` changes, neither a loop nor a store."""
    inside = {p.var for p in loops_below(block, host)}
    parts = [c for c in conjuncts(block.node.predicate) if not is_const(c, 1) and not uses_var(c, inside)]
    return [c for c in parts if not (has_load(c) and block.may_change(c, _owner(host)))]


def wrapped_in(ref: BlockRef, host: BlockRef | LoopRef) -> Stmt | None:
    """A statement around ``ref``, in one of the ``statements`` of ``host``, that is not a loop (an ``if`` or a let); None
    if there is none."""
    owner = _declaring(_owner(host))
    for place in ref.ancestors():
        if place.node is owner or isinstance(place.node, Block):
            return None
        if not isinstance(place.node, (For, SeqStmt, BlockRealize)):
            return place.node
    return None


def _declaring(owner: Any) -> Any:
    """The innermost of the buffer declarations with which the body of ``owner`` begins; ``owner`` if there is none."""
    while isinstance(owner.body, DeclBuffer):
        owner = owner.body
    return owner


def _owner(host: BlockRef | LoopRef) -> Block | For:
    return host.block if isinstance(host, BlockRef) else host.node
