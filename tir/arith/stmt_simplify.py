"""Simplifies the expressions of a statement under the loops and conditions around them."""

from __future__ import annotations

from typing import Any

from ..aliases import other_names
from ..buffer import Buffer, Range
from ..dtype import BOOL
from ..expr import Broadcast, Expr, IntImm, Not, Var, as_bool
from ..node import Node
from ..stmt import NOP, AssertStmt, AttrStmt, Block, BlockRealize, For, IfThenElse, LetStmt, SeqStmt, Stmt, is_nop, seq
from ..visit import is_pure
from .analyzer import Analyzer


def simplify_stmt(stmt: Any, analyzer: Analyzer | None = None) -> Any:
    """``stmt`` with every expression simplified under the loops, lets and conditions around it.

    Branches that cannot be taken and loops that never run are removed; blocks stay. The same object if nothing
    changed. Pass an ``analyzer`` to add outer assumptions.

    >>> import tir
    >>> from tir.arith import simplify_stmt
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         if i < 8:
    ...             A[i * 4 // 4] = 1.0
    ... ''')
    >>> simplify_stmt(f.body)
    for i in range(8):
        A[i] = T.float32(1)
    """
    return _StmtSimplifier(analyzer or Analyzer()).visit(stmt)


class _StmtSimplifier:
    def __init__(self, ctx: Analyzer):
        self.ctx = ctx

    def visit(self, item: Any) -> Any:
        if isinstance(item, Stmt):
            method = getattr(self, "visit_" + type(item).__name__, None)
            return method(item) if method is not None else item.map_children(self.visit)
        return self.expr(item) if isinstance(item, Node) and not isinstance(item, Buffer) else item

    def expr(self, e: Any) -> Any:
        """``e`` simplified. No buffer is given to it: that is the same everywhere, whatever is known of its shape here."""
        return (
            e
            if isinstance(e, Var) and e.dtype.is_handle
            else self.ctx.simplify(e)
            if isinstance(e, Expr)
            else (e.map_children(self.leaf))
        )

    def leaf(self, e: Any) -> Any:
        """Children of ranges, regions and iterators."""
        return e if isinstance(e, (Buffer, Var)) else self.expr(e)

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.expr(loop.min), self.expr(loop.extent)
        if isinstance(extent, IntImm) and extent.value <= 0:
            return NOP
        with self.ctx.scope():
            self.ctx.bind(loop.loop_var, Range(low, extent), loop.body)
            body = self.visit(loop.body)
        return loop.updated(min=low, extent=extent, body=body)

    def visit_IfThenElse(self, s: IfThenElse) -> Stmt:
        condition = self.expr(s.condition)
        if isinstance(condition, Broadcast):  # the same in all lanes
            condition = condition.value
        known = as_bool(condition) if condition.dtype.lanes == 1 else condition
        if isinstance(known, IntImm):
            taken = s.then_case if known.value else s.else_case
            return NOP if taken is None else self.visit(taken)
        with self.ctx.constraint(known, s.then_case):
            then_case = self.visit(s.then_case)
        else_case = s.else_case
        if else_case is not None:
            with self.ctx.constraint(Not(known), else_case):
                else_case = self.visit(else_case)
            if is_nop(else_case):
                else_case = None
        if is_nop(then_case) and else_case is None and is_pure(condition):
            return NOP
        return s.updated(condition=condition, then_case=then_case, else_case=else_case)

    def visit_SeqStmt(self, s: SeqStmt) -> Stmt:
        with self.ctx.scope():
            new: list[Stmt] = []
            for k, child in enumerate(s.stmts):
                made = self.visit(child)
                new.append(made)
                if isinstance(made, AssertStmt):  # what follows runs only where it held
                    self.ctx.assume(made.condition, SeqStmt(s.stmts[k + 1 :]))
        if all(a is b for a, b in zip(new, s.stmts)):
            return s
        return seq(x for x in new if not (is_nop(x) and x is NOP))

    def visit_LetStmt(self, s: LetStmt) -> Stmt:
        value = self.expr(s.value)
        with self.ctx.scope():
            self.ctx.note_aliases(other_names(s))
            if s.var.dtype.is_int or s.var.dtype is BOOL:
                self.ctx.bind(s.var, value, s.body)
            body = self.visit(s.body)
        return s.updated(value=value, body=body)

    def visit_AttrStmt(self, s: AttrStmt) -> Stmt:
        value = self.expr(s.value)
        with self.ctx.scope():
            var = getattr(s.node, "var", None)
            if s.attr_key in ("thread_extent", "virtual_thread") and isinstance(var, Var):
                self.ctx.bind(var, Range(IntImm(0, value.dtype), value), s.body)
            body = self.visit(s.body)
        return s.updated(value=value, body=body)

    def visit_BlockRealize(self, s: BlockRealize) -> Stmt:
        values = tuple(self.expr(v) for v in s.iter_values)
        predicate = self.expr(s.predicate)
        with self.ctx.scope():
            self.ctx.assume(predicate, s.block)
            block = self.visit_Block(s.block)
        return s.updated(iter_values=values, predicate=predicate, block=block)

    def visit_Block(self, block: Block) -> Block:
        iters = tuple(
            v.replace(dom=self.expr(v.dom)) if v.dom is not None and self.expr(v.dom) is not v.dom else v
            for v in block.iter_vars
        )
        with self.ctx.scope():
            self.ctx.note_aliases(other_names(block))
            for v in iters:
                if v.dom is not None:
                    self.ctx.bind(v.var, v.dom, block)
            parts = {name: tuple(map(self.expr, getattr(block, name))) for name in ("reads", "writes", "match_buffers")}
            init = None if block.init is None else self.visit(block.init)
            if init is not None and init is not block.init and is_nop(init):
                init = None
            body = self.visit(block.body)
        return block.updated(iter_vars=iters, init=init, body=body, **parts)
