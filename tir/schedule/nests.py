"""Building programs: nests, copies, redirected accesses, fresh variables, and substitution of loop variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..aliases import memory_of, shares_memory, sharing
from ..analysis.contents import NAMING, free_in
from ..analysis.evaluation import may_fail
from ..analysis.index import BlockRef, Place
from ..analysis.users import uses_pointer
from ..arith import simplify
from ..buffer import Buffer, BufferRegion, MatchBufferRegion, Range
from ..dtype import DType
from ..expr import BufferLoad, Expr, IntImm, Var, is_const, logical_and, one
from ..stmt import Block, BlockRealize, BufferStore, DeclBuffer, For, IfThenElse, SeqStmt, Stmt, seq
from ..visit import has_load, nodes_of, refresh, rewrite, substitute, walk
from .state import State


def unit_region(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    """The one element at ``indices``."""
    return BufferRegion(buffer, tuple([Range(i, one(i.dtype)) for i in indices]))


def insert_before(state: State, place: Place, stmt: Stmt, *, after: bool = False) -> State:
    """The snapshot with ``stmt`` just before (or after) the statement at ``place``."""
    pair = [place.node, stmt] if after else [stmt, place.node]
    return state.replace(place.node, seq(pair))


def in_loops_of(block: BlockRef, body: Stmt) -> Stmt:
    """``body`` in copies of the loops around ``block``."""
    for ref in reversed(block.loops()):
        f = ref.node
        body = For(f.loop_var, f.min, f.extent, f.kind, body, f.thread)
    return refresh(body)


def add_alloc(block: Block, *buffers: Buffer) -> Block:
    return block.replace(alloc_buffers=(*block.alloc_buffers, *buffers))


def domains(loops: Iterable[For], units: bool = False) -> dict[Var, Range]:
    """Ranges of loop variables; loops of one iteration are omitted, so that bindings keep naming them."""
    return {f.loop_var: f.domain for f in loops if units or not is_const(f.extent, 1)}


def substitute_loop_vars(
    body: Stmt,
    values: Mapping[Var, Expr],
    bounds: Mapping[Var, Range],
    guard: Expr | None = None,
    units: bool = False,
    *,
    past_empty: bool = False,
) -> Stmt:
    """``body`` with loop variables replaced by ``values``, run only where ``guard``.

    The guard becomes part of the predicates of the blocks below; if anything but blocks would run under it, it becomes
    an ``if`` around everything. So it does where a range or a condition in ``body`` might have no value without the guard:
    because of a loop variable, or of any variable where ``past_empty``, which says that the new loops may run though those
    before had no iterations.
    """
    if guard is not None and not _takes_predicate(body, values, None if past_empty else values):
        return IfThenElse(guard, _Rebinder(values, None, units).stmt(body, dict(bounds)))
    return _Rebinder(values, guard, units).stmt(body, dict(bounds))


def _takes_predicate(stmt: Stmt, variables: Collection[Var], unsure: Collection[Var] | None) -> bool:
    """Whether a guard of ``variables`` may move into the predicates below: no binding depends on it, and no range or
    condition might fail for some value of ``unsure`` (None: of any variable)."""
    if isinstance(stmt, BlockRealize):
        return not any(may_fail(v, variables) for v in stmt.iter_values)
    if isinstance(stmt, For):
        controls, parts = (stmt.extent, stmt.min), (stmt.body,)
    elif isinstance(stmt, SeqStmt):
        controls, parts = (), stmt.stmts
    elif isinstance(stmt, IfThenElse):
        controls, parts = (
            (stmt.condition,),
            (stmt.then_case,) if stmt.else_case is None else (stmt.then_case, stmt.else_case),
        )
    else:
        return False
    return (
        not has_load(*controls)
        and not any(may_fail(e, unsure) for e in controls)
        and all(_takes_predicate(part, variables, unsure) for part in parts)
    )


class _Rebinder:
    def __init__(self, values: Mapping[Var, Expr], guard: Expr | None, units: bool):
        self.values = values
        self.guard = guard
        self.units = units

    def expr(self, e: Expr, bounds: Mapping[Var, Range]) -> Expr:
        if isinstance(e, Var):
            return self.values.get(e, e)
        if isinstance(e, IntImm):
            return e
        new = substitute(e, self.values)
        return e if new is e else simplify(new, bounds)

    def stmt(self, s: Any, bounds: dict[Var, Range]) -> Any:
        if isinstance(s, For):
            low, extent = self.expr(s.min, bounds), self.expr(s.extent, bounds)
            inner = bounds if is_const(extent, 1) and not self.units else {**bounds, s.loop_var: Range(low, extent)}
            body = self.stmt(s.body, inner)
            return s.updated(min=low, extent=extent, body=body)
        if isinstance(s, BlockRealize):
            iter_values = tuple(self.expr(v, bounds) for v in s.iter_values)
            predicate = self.expr(s.predicate, bounds)
            if self.guard is not None:
                predicate = logical_and(self.guard, predicate)
            block = s.block
            if not free_in(block).isdisjoint(self.values):
                block = substitute(block, self.values)
            return BlockRealize(iter_values, predicate, block, span=s.span)
        if isinstance(s, SeqStmt):
            return SeqStmt(tuple(self.stmt(c, bounds) for c in s.stmts), span=s.span)
        if isinstance(s, IfThenElse):
            other = None if s.else_case is None else self.stmt(s.else_case, bounds)
            return IfThenElse(self.expr(s.condition, bounds), self.stmt(s.then_case, bounds), other, span=s.span)
        return substitute(s, self.values)


def renest(loops: Iterable[For], body: Stmt) -> Stmt:
    """``loops``, outermost first, around another ``body``."""
    for loop in reversed(list(loops)):
        body = loop.with_body(body)
    return body


def product(factors: Iterable[Expr], dtype: DType) -> Expr:
    result = one(dtype)
    for factor in factors:
        result = result * factor
    return result


def copy_renamed(stmt: Any, names: Any, loop_names: Mapping[str, str] | None = None) -> Any:
    """A copy of ``stmt`` for the same function: fresh variables of loops, iterators and lets, new block names.

    ``names(old)`` gives the new name of a block.
    """
    loops = (item.loop_var for item in walk(stmt) if isinstance(item, For))
    renamed = {v: Var((loop_names or {}).get(v.name, v.name), v.dtype) for v in loops}

    def rename(item: Any) -> Any:
        return item.replace(name=names(item.name)) if isinstance(item, Block) else None

    return rewrite(refresh(stmt, renamed), rename)


def without_names(stmt: Stmt, buffer: Buffer) -> Stmt:
    """``stmt`` without the declarations of other buffers over the pointer of ``buffer``, which nothing uses."""

    def visit(item: Any) -> Any:
        return item.body if type(item) is DeclBuffer and shares_memory(item, buffer) else None

    return rewrite(stmt, visit) if NAMING.of(stmt, buffer.data) and uses_pointer(stmt, buffer) else stmt


def without_unused(block: Block) -> Block:
    """``block`` without the allocations and views that neither its init nor its body uses."""
    parts = [part for part in (block.init, block.body) if part is not None]
    used = {n for part in parts for n in nodes_of(part) if isinstance(n, Var) and n.dtype.is_handle}
    used |= memory_of(n for part in parts for n in walk(part) if isinstance(n, (BufferLoad, BufferStore, BufferRegion)))
    views: list[MatchBufferRegion] = []
    for view in reversed(block.match_buffers):
        if shares_memory(view, used):
            views.insert(0, view)
            used |= memory_of(n for n in walk(view.source) if isinstance(n, (BufferLoad, BufferRegion)))
    allocated = tuple(sharing(block.alloc_buffers, used))
    return block.replace(alloc_buffers=allocated, match_buffers=tuple(views))
