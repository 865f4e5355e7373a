"""Where a reduction starts: its init runs there and nowhere else."""

from __future__ import annotations

from ...analysis.index import BlockRef
from ...arith import Analyzer
from ...errors import require
from ...script.printer import short_text
from ...visit import substitute


def require_start(block: BlockRef, legal: str = "") -> None:
    """Raise ``ScheduleError`` unless the block is where its reduction starts: not a later part of one (of a partitioned
    loop), in which init does not run."""
    if block.block.init is None:
        return
    first = {ref.var: ref.node.min for ref in block.loops()}
    for iterator, value in zip(block.block.iter_vars, block.node.iter_values):
        if iterator.iter_type == "reduce" and iterator.dom is not None:
            require(
                Analyzer().can_prove_equal(substitute(value, first), iterator.dom.min),
                "block {0} goes on with a reduction that another part of the program starts: its {1} does not begin at `{2}`",
                block, iterator.var.name, short_text(iterator.dom.min), nodes=[block.node], legal=legal,
            )  # fmt: skip
