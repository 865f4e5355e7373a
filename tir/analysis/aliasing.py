"""Whether different pointers of a function may lead to the same memory."""

from __future__ import annotations

from ..expr import Expr
from ..function import PrimFunc
from ..stmt import LetStmt
from ..visit import walk


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
