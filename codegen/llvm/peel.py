"""Peel the first iteration of loops whose body tests for it (``if k == 0: C[i, j] = 0``, a reduction's init).

Without the test the loop's accumulators stay in registers; LLVM finds this by itself only for the simplest tests.
"""

from __future__ import annotations

from typing import Any

from tir.arith.linear import Linear, is_index, linear
from tir.buffer import Buffer
from tir.expr import EQ, LE, LT, And, Call, Expr, IntImm, Select, Var, choice_parts
from tir.function import PrimFunc
from tir.stmt import For, IfThenElse, Stmt, is_nop, seq
from tir.visit import kinds, nodes_of, rewrite, rewrite_statements, substitute, uses_var, walk

LARGEST = 4000  # nodes of the largest body to duplicate


_CHOICES = {Select, Call}
_CONDITIONS = {*_CHOICES, IfThenElse}


def peel_first_iterations(func: PrimFunc) -> PrimFunc:
    """``func`` with loops peeled where a condition inside can hold only in their first iteration."""
    if _CONDITIONS.isdisjoint(kinds(func.body)):
        return func
    found: dict[For, list[Expr]] = {}
    _collect(func.body, [], found)
    found = {loop: conditions for loop, conditions in found.items() if _size(loop.body) <= LARGEST}
    return func.with_body(_all_peeled(func.body, found)) if found else func


def _all_peeled(item: Any, found: dict[For, list[Expr]]) -> Any:
    made: Any = item.map_children(lambda child: _all_peeled(child, found)) if isinstance(item, Stmt) else item
    return _peeled(item, made, found[item]) if isinstance(item, For) and item in found else made


def _collect(stmt: Any, loops: list[For], found: dict[For, list[Expr]]) -> None:
    """Find, for each condition, the innermost loop in whose first iteration alone it can hold."""
    if _CONDITIONS.isdisjoint(kinds(stmt)):
        return
    if isinstance(stmt, For):
        _collect(stmt.body, [*loops, stmt], found)
        return
    _note(stmt, loops, found)
    for child in stmt.children():
        if isinstance(child, Stmt):
            _collect(child, loops, found)
        elif not isinstance(child, (Var, Buffer)):
            for node in walk(child):
                _note(node, loops, found)


def _size(stmt: Any) -> int:
    """The number of nodes in a statement, without the bounds of its loops."""
    if isinstance(stmt, For):
        return 1 + _size(stmt.body)
    children = (c for c in stmt.children() if not isinstance(c, (Var, Buffer)))
    return 1 + sum(_size(c) if isinstance(c, Stmt) else len(nodes_of(c)) for c in children)


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
    if isinstance(node, IfThenElse):
        return node.condition
    parts = choice_parts(node)
    return parts and parts[0]


def _only_first(condition: Expr, loop: For, loops: list[For]) -> bool:
    """Whether ``condition`` is false in every iteration of ``loop`` after the first (at 0)."""
    if isinstance(condition, And):
        return _only_first(condition.a, loop, loops) or _only_first(condition.b, loop, loops)
    if not (isinstance(loop.min, IntImm) and loop.min.value == 0):
        return False
    if not isinstance(condition, (EQ, LE, LT)) or not is_index(condition.a.dtype):  # others wrap around
        return False
    form = linear(condition.a).minus(linear(condition.b))  # at most 0, or 0, where the condition holds
    form.const += isinstance(condition, LT)
    turned = form.scaled(-1)
    return any(
        _is_zero_at_start_only(f, loop, loops) for f in ((form, turned) if isinstance(condition, EQ) else (form,))
    )


def _is_zero_at_start_only(form: Linear, loop: For, loops: list[For]) -> bool:
    """Whether ``form`` is a sum of loop variables, ``loop``'s among them, none of which is ever negative."""
    starts_at_least_0 = {f.loop_var for f in loops if isinstance(f.min, IntImm) and f.min.value >= 0}
    factors = form.coefficients()
    if factors is None or form.const or loop.loop_var not in factors:
        return False
    return all(v in starts_at_least_0 and factor > 0 for v, factor in factors.items())


def _peeled(original: For, loop: For, conditions: list[Expr]) -> Stmt:
    """The first iteration, then a loop over the others without the conditions."""
    gone = set(conditions)

    def drop(node: Any) -> Any:
        condition = _condition(node)
        if condition is None or condition not in gone:
            return None
        if isinstance(node, IfThenElse):
            return node.else_case if node.else_case is not None else seq([])
        parts = choice_parts(node)
        return parts and parts[2]

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

    return rewrite_statements(stmt, clean)
