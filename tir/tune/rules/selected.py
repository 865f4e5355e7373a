"""Sums of what an equality selects (scatters, histograms, lookups by masks): the one iteration that counts, instead of the loop."""

from __future__ import annotations

from itertools import islice

from ...expr import EQ, Cast
from ...schedule import Schedule
from ...visit import walk
from ..nest import Axis, Nest
from ..space import Env, accepted, rule
from .reductions import walks
from .spatial import UNROLL, share_out, vectorize

FEW = 2  # vectors of results, for all of which a step takes no longer than for one result, which waits for the step before


@rule(targets=("llvm",), order=33)
def selected(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Run the iteration of an axis that a condition selects, with vectors along the result inside."""
    nest = Nest.of(sch, block)
    if nest is None or not nest.reduce or nest.reduction is None or nest.block.init is None:
        return []
    made = (_in_one_iteration(sch.copy(), nest, axis, env) for axis in _compared(nest))
    return list(islice(filter(None, made), 1))


def _compared(nest: Nest) -> list[Axis]:
    """The axes whose place is compared with something else, those of terms first."""
    sides = [side for n in walk(nest.block.body) if isinstance(n, EQ) for side in (n.a, n.b)]
    alone = [side.value if isinstance(side, Cast) else side for side in sides]
    return [a for a in (*nest.reduce, *nest.spatial) if any(side is a.var for side in alone)]


def _in_one_iteration(sch: Schedule, nest: Nest, axis: Axis, env: Env) -> Schedule | None:
    """The schedule, if a condition selects an iteration of ``axis``."""
    along, lanes = nest.contiguous(), env.lanes(nest.width)
    if axis is along and axis.size <= FEW * lanes:
        return None
    outer = [a.loop for a in nest.by_stride(nest.spatial) if a is not axis and a is not along]
    terms = [a.loop for a in nest.reduce if a is not axis]
    inner = [along.loop] if along is not None and along is not axis else []
    order = [*outer, *terms, axis.loop, *inner]
    if not accepted(sch.reorder, *order):
        return None
    init = sch.decompose_reduction(nest.name, order[len(outer)])
    if not accepted(sch.select_iteration, axis.loop):
        return None
    if along is not None:
        vectorize(sch, sch.get_loops(init)[-1], along.size, lanes, UNROLL)
        if inner and walks(nest, along):
            vectorize(sch, sch.get_loops(nest.name)[-1], along.size, lanes, UNROLL)
    share_out(sch, outer, nest.runs * nest.work // axis.size, env)
    return sch
