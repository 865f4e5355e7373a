"""Chains along rows, of which each step waits for the one before, such as filters with feedback or running extremes: of several
rows at a time."""

from __future__ import annotations

from ...analysis.index import index_of
from ...analysis.reductions import Reduction
from ...expr import BufferLoad
from ...schedule import Schedule
from ...stmt import Block, BufferStore
from ...visit import walk
from ..nest import Axis, Nest
from ..space import Env, choose, rule
from .spatial import share_out

ROWS = (16, 8, 12, 10, 6, 4, 5, 7, 3, 2)  # at a time, best first
SHORT = 8  # steps of a chain that the processor looks ahead of: the next row begins meanwhile


@rule(targets=("llvm",), order=68)
def abreast(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Take a step of several rows where a row is a chain of steps that nothing may reorder."""
    ref = index_of(sch.func).blocks.get(block)
    nest = Nest.of(sch, block) if ref is not None and _is_ordered(ref.block) else None
    row = nest and _row_of_chains(sch, nest)
    counts = [n for n in ROWS if row and row.extent is not None and row.extent % n == 0]
    if not nest or not row or not counts:
        return []
    made = sch.copy()
    count = choose(made, counts, [1 + 0.1 * n for n in range(len(counts))])
    at = nest.axes.index(row)
    outer, steps = ([a.loop for a in axes] for axes in (nest.axes[:at], nest.axes[at + 1 :]))
    strip, inner = made.split(row.loop, [None, count])
    made.reorder(strip, *steps, inner)
    made.unroll(inner)
    share_out(made, [*outer, strip], nest.runs * nest.work, env)
    return [made]


def _is_ordered(block: Block) -> bool:
    """Whether what a block reads is stored by instances of it, which are no terms in any order."""
    stored = {n.buffer for n in walk(block.body) if isinstance(n, BufferStore)}
    if not any(isinstance(n, BufferLoad) and n.buffer in stored for n in walk(block.body)):
        return False
    found = Reduction.of(block)
    return not (isinstance(found, Reduction) and found.is_independent_of_order)


def _row_of_chains(sch: Schedule, nest: Nest) -> Axis | None:
    """The last axis of rows around the steps of a chain, in an order that matters."""
    *rows, step = nest.axes
    row = next((a for a in reversed(rows) if a.kind == "spatial"), None)
    if row is None or step.size <= SHORT or sch.can.parallel(step.loop):
        return None
    return row if sch.can.reorder(*(a.loop for a in nest.axes[nest.axes.index(row) + 1 :]), row.loop) else None
