"""Lowers the init of a block to a condition at the start of its body."""

from __future__ import annotations

from typing import Any

from ..expr import EQ, all_of, is_const
from ..function import PrimFunc
from ..stmt import Block, IfThenElse, seq
from ..visit import rewrite_statements
from .passes import func_pass


def _lower(item: Any) -> Any:
    if not isinstance(item, Block) or item.init is None:
        return None
    reductions = [v for v in item.iter_vars if v.iter_type == "reduce" and not is_const(v.dom.extent, 1)]
    first = all_of(EQ(v.var, v.dom.min) for v in reductions)
    init = IfThenElse(first, item.init) if reductions else item.init
    return item.replace(init=None, body=seq([init, item.body]))


@func_pass
def lower_init_block(func: PrimFunc) -> PrimFunc:
    """``with T.init(): S`` becomes ``if <every reduction iterator is at its first value>: S`` before the body.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    ...     for k in range(8):
    ...         with T.block("B"):
    ...             vk = T.axis.reduce(8, k)
    ...             with T.init():
    ...                 B[0] = 0.0
    ...             B[0] = B[0] + A[vk]
    ... ''')
    >>> tir.transform.lower_init_block(f).body
    with T.block("root"):
        T.reads()
        T.writes()
        for k in range(8):
            with T.block("B"):
                vk = T.axis.reduce(8, k)
                T.reads(A[vk])
                T.writes(B[0])
                if vk == 0:
                    B[0] = T.float32(0)
                B[0] = B[0] + A[vk]
    """
    return func.with_body(rewrite_statements(func.body, _lower))
