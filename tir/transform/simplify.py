"""Simplifies expressions with what loops and conditions imply; removes hints."""

from __future__ import annotations

from typing import Any

from ..aliases import overlapping
from ..arith import Analyzer, simplify_stmt
from ..expr import Call
from ..function import PrimFunc
from ..visit import Somewhere, rewrite
from .passes import func_pass


def _unlikely(item: Any) -> Any:
    return item.args[0] if isinstance(item, Call) and item.op == "likely" else None


@func_pass
def simplify(func: PrimFunc) -> PrimFunc:
    """Every expression simplified under the loops, lets and conditions around it; decided branches removed.

    Assumes that no size of a parameter is negative.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         if i // 4 < 2:
    ...             A[(i * 4 + 3) // 4] = 1.0
    ... ''')
    >>> tir.transform.simplify(f).body
    for i in range(8):
        A[i] = T.float32(1)
    """
    known = Analyzer()
    known.assume_sizes(func.buffers())
    known.note_aliases(overlapping(func))
    return func.with_body(simplify_stmt(func.body, known))


@func_pass
def remove_likely(func: PrimFunc) -> PrimFunc:
    """``T.likely(c)`` becomes ``c``.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), n: T.int32):
    ...     for i in range(8):
    ...         if T.likely(i < n):
    ...             A[i] = 1.0
    ... ''')
    >>> tir.transform.remove_likely(f).body
    for i in range(8):
        if i < n:
            A[i] = T.float32(1)
    """
    return func.with_body(rewrite(func.body, _unlikely)) if _has_hints(func.body) else func


_has_hints = Somewhere(lambda call: call.op == "likely", Call)
