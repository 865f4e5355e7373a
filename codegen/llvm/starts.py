"""Reductions that begin with the first of a known number of terms, instead of combining it with the identity.

``C[i] = -inf; for k in range(4): C[i] = max(C[i], x[k])`` becomes ``C[i] = x[0]`` and a loop over the others. LLVM does not: of a number
that may be nan it compares, and zero and -0.0 are 0.0. So a sum of floats begins with its first term only if that is a sum itself.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import copysign

from tir.aliases import may_alias, shares_memory, sharing
from tir.analysis.reduction_forms import MAXIMUM, MINIMUM, SUM, Combiner
from tir.arith import simplify
from tir.arith.linear import key
from tir.expr import TRUE, Add, Broadcast, BufferLoad, Call, Expr, FloatImm, IntImm, Max, Min, Var
from tir.function import PrimFunc
from tir.stmt import BufferStore, For, IfThenElse, SeqStmt, Stmt, seq
from tir.visit import accesses, has_load, kinds, nodes_of, rewrite_statements, statements, substitute

COMBINERS: dict[type, Combiner] = {Max: MAXIMUM, Min: MINIMUM, Add: SUM}


def begin_with_terms(func: PrimFunc) -> PrimFunc:
    """``func`` with the first update in place of the start of a reduction, where the two follow one another."""
    if COMBINERS.keys().isdisjoint(kinds(func.body)) or may_alias(func):
        return func
    sums = _sums(func)
    return func.with_body(
        rewrite_statements(func.body, lambda item: _joined(item, sums) if isinstance(item, SeqStmt) else None)
    )


def _sums(func: PrimFunc) -> set[Var]:
    """The buffers of the function's own that have nothing but sums that began with 0.0: none of them is -0.0."""
    own = {s.buffer.data for s in statements(func.body) if isinstance(s, BufferStore)}
    own -= {buffer.data for buffer in func.buffer_map.values()} | set(func.params)
    for call in (n for n in nodes_of(func.body) if isinstance(n, Call)) if Call in kinds(func.body) else ():
        own -= {a for a in call.args if isinstance(a, Var)}
        own -= {a.buffer.data for a in call.args if call.op == "address_of" and isinstance(a, BufferLoad)}
    for store in statements(func.body):
        if isinstance(store, BufferStore) and not (_is_zero(store.value) or _adds_to(store)):
            own.discard(store.buffer.data)
    return own


def _is_zero(value: Expr) -> bool:
    value = value.value if isinstance(value, Broadcast) else value
    return isinstance(value, FloatImm) and value.value == 0 and copysign(1, value.value) > 0


def _adds_to(store: BufferStore) -> bool:
    value = store.value
    return isinstance(value, Add) and isinstance(value.a, BufferLoad) and shares_memory(value.a, store.buffer)


def _joined(stmt: SeqStmt, sums: set[Var]) -> Stmt | None:
    made: list[Stmt] = []
    for each in stmt.stmts:
        found = _first_update(made[-1], each, sums) if made else None
        made[-1:] = [*made[-1:], each] if found is None else found
    is_same = len(made) == len(stmt.stmts) and all(a is b for a, b in zip(made, stmt.stmts))
    return None if is_same else seq(made)


def _first_update(start: Stmt, update: Stmt, sums: set[Var]) -> list[Stmt] | None:
    """What becomes of ``start`` and of ``update``, a loop of updates or a single one, which is done wherever the start is or, if it is no loop, for some
    of its elements; None where these are anything else."""
    loop = update if isinstance(update, For) and update.kind == "serial" else None
    begun, done = _store(start), _store(loop.body if loop else update)
    if begun is None or done is None or not _starts(begun[1], done[1], sums):
        return None
    first = done[1].replace(value=done[1].value.b)
    if begun[0] != done[0]:
        some = begun[0] == key(TRUE) and isinstance(update, IfThenElse)
        return [start, update.replace(then_case=first)] if some else None
    made = start.replace(then_case=first) if isinstance(start, IfThenElse) else first
    if loop is None:
        return [made]
    if not isinstance(loop.extent, IntImm) or loop.extent.value < 1:
        return None
    made = substitute(made, {loop.loop_var: loop.min})
    one = IntImm(1, loop.loop_var.dtype)
    others = loop.replace(min=simplify(loop.min + one), extent=simplify(loop.extent - one))
    return [made, others] if loop.extent.value > 1 else [made]


def _store(stmt: Stmt) -> tuple[Hashable, BufferStore] | None:
    """The store that a statement is, and the key of the condition under which it is done."""
    condition: Expr = TRUE
    if isinstance(stmt, IfThenElse) and stmt.else_case is None:
        condition, stmt = simplify(stmt.condition), stmt.then_case
    return (key(condition), stmt) if isinstance(stmt, BufferStore) and not has_load(condition) else None


def _starts(store: BufferStore, update: BufferStore, sums: set[Var]) -> bool:
    """Whether ``store`` is the identity of what ``update`` does at the same place, with a term that does not read the buffer and that the
    identity leaves as it is."""
    value, start = update.value, store.value
    if type(value) not in COMBINERS or not isinstance(value.a, BufferLoad) or any(map(has_load, store.indices)):
        return False
    term: Expr = value.b
    start = start.value if isinstance(start, Broadcast) else start
    identity = COMBINERS[type(value)].identity(value.dtype.with_lanes(1))
    if type(start) is not type(identity) or key(start) != key(identity):
        return False
    places = [(s.buffer, tuple(map(key, s.indices))) for s in (store, update, value.a)]
    if not places[0] == places[1] == places[2]:
        return False
    may_be_negative_zero = not (isinstance(term, BufferLoad) and shares_memory(term, sums))
    if isinstance(value, Add) and value.dtype.is_float and may_be_negative_zero:
        return False
    return not sharing(accesses(term), store.buffer)
