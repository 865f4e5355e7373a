"""Loops that start at zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arith.linear import is_index
from ..expr import Var, cast, const, is_const
from ..function import PrimFunc
from ..stmt import PARALLEL, SERIAL, THREAD_BINDING, UNROLLED, VECTORIZED, For
from ..visit import rewrite_statements, substitute
from .passes import func_pass

KINDS = (SERIAL, PARALLEL, VECTORIZED, UNROLLED, THREAD_BINDING)


def starting_at_zero(loop: For) -> For:
    """``for i in range(a, b): S(i)`` as ``for i in range(b - a): S(i + a)``; the same object if it starts at zero.

    ``i + a`` is left to the simplifier, which runs later.
    """
    if is_const(loop.min, 0):
        return loop
    var = Var(loop.loop_var.name, loop.loop_var.dtype)
    body = substitute(loop.body, {loop.loop_var: cast(var.dtype, var + loop.min)})
    return loop.replace(loop_var=var, min=const(0, var.dtype), body=body)


@func_pass
def canonicalize_loop(func: PrimFunc, kinds: Sequence[str] = KINDS) -> PrimFunc:
    """Every loop of one of ``kinds`` starts at zero; its body adds the start. So does one over narrow or unsigned integers, whose
    end may be too large for them.

    The index of a thread, a virtual thread or a thread block starts at zero, so loops bound to them are normalized
    before the other passes of :func:`gpu_pipeline`.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for i in range(2, 6):
    ...         A[i] = 1.0
    ... ''')
    >>> tir.transform.canonicalize_loop(f).body
    for i in range(4):
        A[i + 2] = T.float32(1)
    """

    def change(item: Any) -> Any:
        concerned = isinstance(item, For) and (item.kind in kinds or not is_index(item.loop_var.dtype))
        return starting_at_zero(item) if concerned else None

    return func.with_body(rewrite_statements(func.body, change))
