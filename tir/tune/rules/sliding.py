"""Sums over long windows that slide along the vectors of the result, such as moving averages: from sums that windows share."""

from __future__ import annotations

from ...annotations import PARTITION_HINT
from ...schedule import Schedule
from ...stmt import SERIAL, UNROLLED
from ..nest import Axis, Nest, epilogue, extent_of
from ..space import Env
from .spatial import share_out, stream, vectorize

LEAST = 8  # terms of a window: of fewer, partial sums take as many loads as they save
STRIP = 256  # results, at least, for which partial sums are kept in the L1 cache
PART = 8  # of a strip, at most, that is computed again for the next
TOGETHER = 8  # vectors at a time: neighbours share what they load


def with_shared_sums(sch: Schedule, nest: Nest, env: Env) -> Schedule | None:
    """Sum what windows have in common once, for a strip of results at a time; None where they are short, or slide along another axis."""
    if len(nest.reduce) != 1 or not nest.spatial:
        return None
    [terms], along = nest.reduce, nest.spatial[-1]
    reach = _reach(nest, terms, along)
    strip = max(STRIP, 1 << (PART * reach - 1).bit_length())
    if terms.size < LEAST or reach == 0 or along.size < strip or not sch.can.share_window(terms.loop):
        return None
    made = sch.copy()
    result = epilogue(made, nest) or nest.name
    *stages, largest = [stage.name for stage in made.share_window(terms.loop)]
    made.compute_inline(largest)
    if result != nest.name:
        made.compute_inline(nest.name)
    total = Nest.of(made, result)
    if total is None:
        return None
    *around, strips = [a.loop for a in total.axes]
    strips, _ = made.split(strips, [None, strip])
    for stage in reversed(stages):
        made.compute_at(stage, strips, preserve_unit_loops=True)
    for each in (*stages, result):
        loop = made.get_loops(each)[-1]
        vectorize(made, loop, extent_of(made, loop), env.lanes(nest.width), TOGETHER)
    share_out(made, [*around, strips], nest.runs * nest.work, env)
    for each in (*stages, result):
        for loop in made.get_loops(each):
            if made.get(loop).kind in (SERIAL, UNROLLED) and PARTITION_HINT not in made.get(loop).annotations:
                made.annotate(loop, PARTITION_HINT, 1)
    stream(made, total, env)
    return made


def _reach(nest: Nest, terms: Axis, along: Axis) -> int:
    """How many elements a window reaches over along the axis ``along`` of the result; 0 if it does not slide along that."""
    if along is not nest.contiguous() or along.extent is None or terms.extent is None:
        return 0
    steps = {abs(a.stride(terms.var) or 0) for a in nest.loads if a.stride(along.var) == 1}
    others = [a for a in nest.loads if a.stride(along.var) not in (0, 1)]
    return min(steps, default=0) * terms.size if len(steps) == 1 and not others else 0
