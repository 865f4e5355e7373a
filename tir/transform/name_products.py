"""Products of symbolic sizes that are rounded up, as variables."""

from __future__ import annotations

from ..arith.linear import with_products_named
from ..expr import FloorDiv, IntImm
from ..function import PrimFunc
from ..stmt import LetStmt
from ..visit import nodes_of, uses_var
from .passes import func_pass


@func_pass
def name_products(func: PrimFunc) -> PrimFunc:
    """Of a function that divides a product of sizes by a constant, as in ``(n * m + 15) // 16`` whole vectors, each such product is a variable:
    later passes cut loops at what is linear in variables.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(a: T.handle, n: T.int32, m: T.int32):
    ...     A = T.match_buffer(a, (n * m,), "float32")
    ...     for i, j in T.grid((n * m + 15) // 16, 16):
    ...         if i * 16 + j < n * m:
    ...             A[i * 16 + j] = 1.0
    ... ''')
    >>> tir.transform.name_products(f).body
    product: T.int32 = n * m
    for i, j in T.grid((product + 15) // 16, 16):
        if i * 16 + j < product:
            A[i * 16 + j] = T.float32(1)
    """
    (body,), products = with_products_named(func.body)
    divisions = (e for e in nodes_of(body) if isinstance(e, FloorDiv) and isinstance(e.b, IntImm))
    if not products or not any(uses_var(e.a, products) for e in divisions):
        return func
    for var, value in reversed(products.items()):
        body = LetStmt(var, value, body)
    return func.with_body(body)
