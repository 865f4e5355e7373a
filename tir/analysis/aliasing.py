"""Whether different pointers of a function may lead to the same memory."""

from __future__ import annotations

from collections.abc import Mapping

from ..buffer import Buffer, MatchBufferRegion
from ..expr import Expr, Var
from ..function import PrimFunc
from ..stmt import Block, LetStmt
from ..visit import walk
from .effects import effects
from .index import BlockRef, Place


def may_alias(func: PrimFunc) -> bool:
    """Whether two names may be of one memory: ``tir.noalias`` is false, buffers share a pointer, or a let names one.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     B[0] = A[0]
    ... ''')
    >>> may_alias(f), may_alias(f.with_attr("tir.noalias", False))
    (False, True)
    """
    data = [b.data for b in func.buffers()]
    if len(set(data)) != len(data) or not func.attrs.get("tir.noalias", True):
        return True
    statements = walk(func.body, lambda n: not isinstance(n, Expr))
    return any(isinstance(n, LetStmt) and n.var.dtype.is_handle for n in statements)


def second_names(place: Place) -> dict[Var, MatchBufferRegion]:
    """The views of the blocks around ``place`` and of itself, by pointer, if one of these blocks has two names for some
    memory: then pointers do not tell memory apart."""
    blocks = [p.block for p in (place, *place.ancestors()) if isinstance(p, BlockRef)]
    if not any(is_named_twice(b) for b in blocks if b.match_buffers):
        return {}
    return {m.buffer.data: m for b in blocks for m in b.match_buffers}


def is_named_twice(block: Block) -> bool:
    """Whether the body of ``block`` uses some memory by two names, because of its views."""
    if not block.match_buffers:
        return False
    views = {m.buffer.data: m for m in block.match_buffers}
    used = {b.data for b in _used(block)}
    return len({_behind(views, p) for p in used}) < len(used)


def other_name(scope: BlockRef, buffer: Buffer) -> Buffer | None:
    """Another buffer by which the body of ``scope`` uses the memory of ``buffer``, because of views; None if none does."""
    views = second_names(scope)
    source = _behind(views, buffer.data)
    others = (b for b in _used(scope.block) if b.data is not buffer.data) if views else ()
    return next((b for b in others if _behind(views, b.data) is source), None)


def _used(block: Block) -> list[Buffer]:
    return [e.buffer for part in (block.init, block.body) if part is not None for e in effects(part)]


def _behind(views: Mapping[Var, MatchBufferRegion], pointer: Var) -> Var:
    """The pointer of the memory that ``pointer`` leads to."""
    while pointer in views:
        pointer = views[pointer].source.buffer.data
    return pointer
