"""Block iterators are replaced by the values they are bound to."""

from __future__ import annotations

from typing import Any

from ..errors import BuildError
from ..expr import cast
from ..function import PrimFunc
from ..stmt import BlockRealize
from ..visit import rewrite_statements, substitute, uses_var
from .passes import func_pass


def _bind(item: Any) -> Any:
    if not isinstance(item, BlockRealize) or not item.iter_values:
        return None
    own = next((v.var for v in item.block.iter_vars if uses_var(item.predicate, v.var)), None)
    if own is not None:
        raise BuildError(
            f"the predicate of block `{item.block.name}` names its iterator `{own.name}`, not the loops around"
        )
    values = {v.var: cast(v.var.dtype, e) for v, e in zip(item.block.iter_vars, item.iter_values)}
    block = substitute(item.block.replace(iter_vars=()), values)
    return item.replace(iter_values=(), block=block)


@func_pass
def convert_blocks_to_opaque(func: PrimFunc) -> PrimFunc:
    """Block iterators are replaced by the values they are bound to. Raises ``BuildError`` for a predicate that names one.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, 7 - i)
    ...             B[vi] = A[vi] * 2.0
    ... ''')
    >>> tir.transform.convert_blocks_to_opaque(f).body
    with T.block("root"):
        T.reads()
        T.writes()
        for i in range(8):
            with T.block("B"):
                T.reads(A[7 - i])
                T.writes(B[7 - i])
                B[7 - i] = A[7 - i] * 2.0
    """
    return func.with_body(rewrite_statements(func.body, _bind))
