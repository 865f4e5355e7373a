"""Reductions over planes whose rows are short, such as means of 7 by 7 pixels: the axes that memory has as one become one."""

from __future__ import annotations

from ...analysis.index import index_of
from ...schedule import Schedule
from ..contracted import Contraction
from ..nest import Nest, continued, volume
from ..space import Env, rule
from .flatten import joined
from .reductions import lies_along, walks


@rule(targets=("llvm",), order=28)
def planes(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Make one axis of those that a reduction walks through as through one, where vectors along the last would be partly empty."""
    ref = index_of(sch.func).blocks.get(block)
    if ref is None or sum(i.iter_type == "reduce" for i in ref.block.iter_vars) < 2:
        return []
    nest = Nest.of(sch, block)
    product = nest and Contraction.of(nest)
    if nest is None or not nest.reduce or (product and product.rows):
        return []
    last, lanes = nest.reduce[-1], env.lanes(nest.width)
    together = continued(last, nest.reduce, nest.loads) if walks(nest, last) else []
    if (
        len(together) < 2
        or volume(together) < 2 * lanes
        or last.size % lanes == 0
        or sum(a.extent is None for a in together) > 1
    ):
        return []
    if lies_along(nest, nest.contiguous(), lanes):
        return []
    made = sch.copy()
    places = {i.var: n for n, i in enumerate(nest.block.iter_vars)}
    made.transform_block_layout(
        block, joined([places[a.var] for a in together], [a.length for a in together], len(places))
    )
    return [made]
