"""Peel the first iteration of loops whose body tests for it (``if k == 0: C[i, j] = 0``, a reduction's init).

Without the test the loop's accumulators stay in registers; LLVM finds this by itself only for the simplest tests.
"""

from __future__ import annotations

from typing import Any

from tir.buffer import Buffer
from tir.expr import EQ, LE, LT, Add, And, Call, Expr, IntImm, Mul, Select, Var
from tir.function import PrimFunc
from tir.stmt import For, IfThenElse, Stmt, is_nop, seq
from tir.visit import rewrite, substitute, uses_var, walk

LARGEST = 4000  # nodes of the largest body to duplicate


def peel_first_iterations(func: PrimFunc) -> PrimFunc:
    """``func`` with loops peeled where a condition inside can hold only in their first iteration."""
    found: dict[For, list[Expr]] = {}
    _collect(func.body, [], found)
    if not found:
        return func

    def visit(item: Any) -> Any:
        if isinstance(item, For) and item in found:
            inner = item.map_children(visit)
            return _peeled(item, inner, found[item])
        return item.map_children(visit) if isinstance(item, Stmt) else item

    return func.with_body(visit(func.body))


def _collect(stmt: Any, loops: list[For], found: dict[For, list[Expr]]) -> int:
    """Find, for each condition, the innermost loop in whose first iteration alone it can hold; returns the size of
    ``stmt`` in nodes."""
    if isinstance(stmt, For):
        size = _collect(stmt.body, [*loops, stmt], found)
        if size > LARGEST:
            found.pop(stmt, None)
        return size + 1
    _note(stmt, loops, found)
    size = 1
    for child in stmt.children():
        if isinstance(child, Stmt):
            size += _collect(child, loops, found)
        elif not isinstance(child, (Var, Buffer)):
            for node in walk(child):
                size += 1
                if isinstance(node, (Select, Call)):
                    _note(node, loops, found)
    return size


def _note(node: Any, loops: list[For], found: dict[For, list[Expr]]) -> None:
    condition = _condition(node)
    if condition is None:
        return
    for loop in reversed(loops):
        if uses_var(condition, loop.loop_var):
            if loop.kind in ("serial", "unrolled") and _only_first(condition, loop, loops):
                found.setdefault(loop, []).append(condition)
            return


def _condition(node: Any) -> Expr | None:
    if isinstance(node, (IfThenElse, Select)):
        return node.condition
    if isinstance(node, Call) and node.op == "if_then_else":
        return node.args[0]
    return None


def _only_first(condition: Expr, loop: For, loops: list[For]) -> bool:
    """Whether ``condition`` is false in every iteration of ``loop`` after the first (at 0)."""
    if isinstance(condition, And):
        return _only_first(condition.a, loop, loops) or _only_first(condition.b, loop, loops)
    if not (isinstance(loop.min, IntImm) and loop.min.value == 0):
        return False
    if isinstance(condition, EQ):
        a, b = (condition.b, condition.a) if isinstance(condition.a, IntImm) else (condition.a, condition.b)
        limit = 0
    elif isinstance(condition, (LE, LT)):
        a, b, limit = condition.a, condition.b, int(isinstance(condition, LT))
    else:
        return False
    if not (isinstance(b, IntImm) and b.value == limit):
        return False
    starts_at = {x.loop_var: isinstance(x.min, IntImm) and x.min.value >= 0 for x in loops}
    terms = _terms(a)
    if terms is None or all(v is not loop.loop_var for v, _ in terms):
        return False  # independent of this loop
    return all(starts_at.get(v, False) and factor > 0 for v, factor in terms)


def _terms(e: Expr) -> list[tuple[Var, int]] | None:
    """``e`` as a sum of variables times constants; None if it is not one."""
    if isinstance(e, Var):
        return [(e, 1)]
    if isinstance(e, Add):
        a, b = _terms(e.a), _terms(e.b)
        return None if a is None or b is None else a + b
    if isinstance(e, Mul) and isinstance(e.b, IntImm):
        a = _terms(e.a)
        return None if a is None else [(v, f * e.b.value) for v, f in a]
    return None


def _peeled(original: For, loop: For, conditions: list[Expr]) -> Stmt:
    """The first iteration, then a loop over the others without the conditions."""
    gone = set(conditions)

    def drop(node: Any) -> Any:
        condition = _condition(node)
        if condition is None or condition not in gone:
            return None
        if isinstance(node, IfThenElse):
            return node.else_case if node.else_case is not None else seq([])
        return node.false_value if isinstance(node, Select) else node.args[2]

    first = substitute(original.body, {original.loop_var: original.min})
    rest = rewrite(loop.body, drop)
    one = IntImm(1, loop.loop_var.dtype)
    if isinstance(loop.extent, IntImm):
        count: Expr = IntImm(max(0, loop.extent.value - 1), loop.extent.dtype)
        whole = [first] if loop.extent.value > 0 else []
    else:
        count = loop.extent - one
        whole = [IfThenElse(loop.extent > IntImm(0, loop.extent.dtype), first)]
    others = loop.replace(min=one, extent=count, body=_tidy(rest))
    return seq([*whole, others])


def _tidy(stmt: Stmt) -> Stmt:
    """``stmt`` without the no-ops that removed conditions left."""
    from tir.stmt import SeqStmt

    def clean(node: Any) -> Any:
        if isinstance(node, SeqStmt) and any(is_nop(s) for s in node.stmts):
            return seq([s for s in node.stmts if not is_nop(s)])
        return None

    return rewrite(stmt, clean)
