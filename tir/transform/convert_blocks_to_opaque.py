"""Block iterators are replaced by the values they are bound to."""

from __future__ import annotations

from typing import Any

from ..expr import cast
from ..function import PrimFunc
from ..stmt import BlockRealize
from ..visit import rewrite, substitute
from .passes import func_pass


def _bind(item: Any) -> Any:
    if not isinstance(item, BlockRealize) or not item.iter_values:
        return None
    values = {v.var: cast(v.var.dtype, e) for v, e in zip(item.block.iter_vars, item.iter_values)}
    block = substitute(item.block.replace(iter_vars=()), values)
    return item.replace(iter_values=(), block=block)


@func_pass
def convert_blocks_to_opaque(func: PrimFunc) -> PrimFunc:
    """Block iterators are replaced by the values they are bound to."""
    return func.with_body(rewrite(func.body, _bind))
