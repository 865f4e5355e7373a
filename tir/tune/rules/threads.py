"""A GPU: results are spread over blocks and threads, or the terms of a few long reductions over the threads of a block."""

from __future__ import annotations

from ...schedule import LoopRV, Schedule
from ...target import GPUS
from ..nest import Nest, extent_of, volume
from ..space import Env, rule
from ..staging import vector_width
from .reductions import walks

THREADS = 256
FEW = 4096  # results for which one thread each leaves most of the GPU idle
MANY = 1 << 18  # results for which each thread makes a vector of them
LOADS = 8  # that a thread has under way at a time
LONG = 128  # terms for which a reduction across threads pays off


@rule(targets=GPUS, order=80)
def threads(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Bind the spatial loops of a block to blocks and threads; of few long reductions, the terms to threads."""
    nest = Nest.of(sch, block)
    if nest is None or not nest.axes:
        return []
    made = sch.copy()
    rows, terms = nest.by_stride(nest.spatial), nest.reduce
    others = [a.loop for a in nest.axes if a not in nest.spatial]
    loops = [a.loop for a in rows]
    if loops and others and not made.can.reorder(*loops, *others):
        return []
    if len(nest.axes) > 1:
        made.reorder(*loops, *others) if made.can.reorder(*loops, *others) else None
    limit = min(THREADS, env.target.limit("max_threads_per_block") or THREADS)
    if nest.reduction is not None and volume(terms) >= LONG and (volume(rows) <= FEW or walks(nest, nest.reduce[-1])):
        across = _across(made, nest, loops, [a.loop for a in terms], limit)
        if across is not None:
            return [across]
    if not loops:
        return []
    width = vector_width(nest, rows[-1]) if nest.contiguous() is rows[-1] else 1
    return [_one_each(made, loops, volume(rows), limit, width)]


def _one_each(sch: Schedule, loops: list[LoopRV], results: int, limit: int, width: int) -> Schedule:
    """One thread for each result, or for ``width`` neighbours, if there are many."""
    if width > 1 and results >= MANY:
        last, lanes = sch.split(loops[-1], [None, width])
        sch.vectorize(lanes)
        loops, results = [*loops[:-1], last], results // width
    fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    count = limit
    while count > 32 and results < 32 * count:  # enough blocks for every multiprocessor
        count //= 2
    outer, inner = sch.split(fused, [None, min(count, results)])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    return sch


def _across(sch: Schedule, nest: Nest, loops: list[LoopRV], terms: list[LoopRV], limit: int) -> Schedule | None:
    """A block of threads for each result; None if the terms cannot be distributed."""
    made = sch.copy()
    where = made.fuse(*loops) if len(loops) > 1 else loops[0] if loops else made.add_unit_loop(terms[0])
    last = terms[-1]
    size = extent_of(made, last)
    count = next((c for c in (limit, 128, 64, 32) if c <= max(size, 32)), 32)
    count = min(count, size)
    rounds = -(-size // count)
    ahead = min(range(1, LOADS + 1), key=lambda n: (-(-rounds // n) * n, -n))
    _, loads, inner = made.split(last, [None, ahead, count])
    made.bind(where, "blockIdx.x")
    if not made.can.bind(inner, "threadIdx.x"):
        return None
    made.bind(inner, "threadIdx.x")
    made.unroll(loads)
    return made
