"""Lowers divisions and remainders to cheaper instructions."""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer
from ..expr import Call, Div, Expr, FloorDiv, FloorMod, IntImm, Mod, Var, const
from ..function import PrimFunc
from ..stmt import For, LetStmt, Stmt
from ..visit import walk
from .passes import func_pass


class _Lowerer:
    def __init__(self) -> None:
        self.analyzer = Analyzer()

    def visit(self, item: Any) -> Any:
        if isinstance(item, For):
            low, extent = self.visit(item.min), self.visit(item.extent)
            with self.analyzer.scope():
                self.analyzer.bind(item.loop_var, item.domain, item.body)
                body = self.visit(item.body)
            return item.updated(min=low, extent=extent, body=body)
        if isinstance(item, LetStmt) and item.var.dtype.is_int:
            value = self.visit(item.value)
            with self.analyzer.scope():
                self.analyzer.bind(item.var, item.value, item.body)
                body = self.visit(item.body)
            return item.updated(value=value, body=body)
        if isinstance(item, (FloorDiv, FloorMod)) and item.dtype.is_int:
            return self.division(item)
        if isinstance(item, (Expr, Stmt)) and not isinstance(item, Var):
            return item.map_children(self.visit)
        return item

    def division(self, e: Any) -> Expr:
        a, b = self.visit(e.a), self.visit(e.b)
        least = self.analyzer.bound(e.a)[0]
        positive = (self.analyzer.bound(e.b)[0] or 0) > 0
        if positive and least is not None and least >= 0:
            return Div(a, b) if isinstance(e, FloorDiv) else Mod(a, b)
        power = b.value.bit_length() - 1 if isinstance(b, IntImm) and b.value > 0 else 0
        if power and b.value == 1 << power:  # type: ignore[attr-defined]
            # an arithmetic shift rounds down, as // does
            if isinstance(e, FloorDiv):
                return Call("shift_right", (a, const(power, e.dtype)), e.dtype)
            return Call("bitwise_and", (a, const(b.value - 1, e.dtype)), e.dtype)  # type: ignore[attr-defined]
        return e if a is e.a and b is e.b else type(e)(a, b)


@func_pass
def lower_intrin(func: PrimFunc) -> PrimFunc:
    """Floor division and remainder of values that are never negative become the truncating ones of machines; of others, by
    a power of two, an arithmetic shift or a mask.

    In no pipeline: it is given by ``insert=``, or by a pass context.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "int32"), n: T.int32):
    ...     for i in range(8):
    ...         A[i] = i // 3 + n // 4 + n % 4
    ... ''')
    >>> tir.transform.lower_intrin(f).body
    for i in range(8):
        A[i] = T.truncdiv(i, 3) + (n >> 2) + (n & 3)
    """
    if not any(isinstance(n, (FloorDiv, FloorMod)) for n in walk(func.body)):
        return func
    return func.with_body(_Lowerer().visit(func.body))
