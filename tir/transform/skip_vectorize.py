"""Vectorized loops as plain ones."""

from __future__ import annotations

from typing import Any

from ..function import PrimFunc
from ..stmt import SERIAL, For
from ..visit import rewrite_statements
from .passes import func_pass


def _serial(item: Any) -> Any:
    return item.replace(kind=SERIAL) if isinstance(item, For) and item.kind == "vectorized" else None


@func_pass
def skip_vectorize(func: PrimFunc) -> PrimFunc:
    """Vectorized loops become serial: it takes the place of ``vectorize_loop`` under ``tir.disable_vectorize``.

    In no pipeline: it is given by ``insert=``, or by a pass context.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for i in T.vectorized(8):
    ...         A[i] = 1.0
    ... ''')
    >>> tir.transform.skip_vectorize(f).body
    for i in range(8):
        A[i] = T.float32(1)
    """
    return func.with_body(rewrite_statements(func.body, _serial))
