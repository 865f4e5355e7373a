"""A GPU: results are spread over blocks and threads, or the terms of a few long reductions over the threads of a block."""

from __future__ import annotations

from ...schedule import LoopRV, Schedule
from ...target import GPUS
from ..nest import Nest, extent_of, volume
from ..space import Env, accepted, block_names, rule
from ..staged_operands import vector_width
from .reductions import walks

THREADS = 256
FEW = 4096  # results for which one thread each leaves most of the GPU idle
MANY = 1 << 18  # results for which each thread makes a vector of them
LOADS = 8  # that a thread has under way at a time
LONG = 128  # terms for which threads of a block share a reduction, wherever these terms lie
SHORT = 16  # likewise, of terms that are neighbours


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
    is_ordered = len(nest.axes) < 2 or accepted(made.reorder, *loops, *others)
    if loops and others and not is_ordered:
        return []
    if _is_long(nest, volume(rows), volume(terms)):
        shared = across(made, loops, [a.loop for a in terms], env)
        if shared is not None:
            return [shared]
    if not loops:
        return []
    width = vector_width(nest, rows[-1]) if nest.contiguous() is rows[-1] else 1
    return [_one_each(made, nest, loops, volume(rows), width, env)]


def _is_long(nest: Nest, results: int, terms: int) -> bool:
    """Whether each result is the sum of so many terms that a block of threads shares them."""
    if nest.reduction is None:
        return False
    near = walks(nest, nest.reduce[-1])
    return terms >= (SHORT if near else LONG) and (near or results <= FEW)


def _is_sum(sch: Schedule, nest: Nest) -> bool:
    """Whether a block makes the whole of one result: no other block stores a part of it."""
    if nest.reduction is None or nest.block.init is None or len(nest.block.writes) != 1:
        return False
    result = nest.block.writes[0].buffer
    return [w.buffer for name in block_names(sch) for w in sch.get(name).writes].count(result) == 1


def _limit(env: Env) -> int:
    return min(THREADS, env.target.limit("max_threads_per_block") or THREADS)


def _one_each(sch: Schedule, nest: Nest, loops: list[LoopRV], results: int, width: int, env: Env) -> Schedule:
    """One thread for each result, or for ``width`` neighbours, if there are many; a sum is in a register."""
    sums = [sch.cache_write(nest.name, 0, "local")] if _is_sum(sch, nest) else []
    if width > 1 and results >= MANY:
        last, lanes = sch.split(loops[-1], [None, width])
        sch.vectorize(lanes)
        loops, results = [*loops[:-1], last], results // width
    fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    count = _limit(env)
    while count > 32 and results < 32 * count:  # enough blocks for every multiprocessor
        count //= 2
    outer, inner = sch.split(fused, [None, min(count, results)])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    for copy in sums:
        sch.reverse_compute_at(copy, inner)
        last = nest.reduce[-1]
        ahead = max(n for n in range(1, LOADS + 1) if last.size % n == 0)
        if last.extent is not None and ahead > 1:
            sch.unroll(sch.split(last.loop, [None, ahead])[1])
    return sch


def across(sch: Schedule, loops: list[LoopRV], terms: list[LoopRV], env: Env) -> Schedule | None:
    """A copy of ``sch`` with a block of threads for each iteration of ``loops``, which are outside of ``terms``; None if the terms
    cannot be distributed."""
    made = sch.copy()
    where = made.fuse(*loops) if len(loops) > 1 else loops[0] if loops else made.add_unit_loop(terms[0])
    last = terms[-1]
    size = extent_of(made, last)
    count = next((c for c in (_limit(env), 128, 64, 32) if c <= max(size, 32)), 32)
    count = min(count, size)
    rounds = -(-size // count)
    ahead = min(range(1, LOADS + 1), key=lambda n: (-(-rounds // n) * n, -n))
    _, loads, inner = made.split(last, [None, ahead, count])
    made.bind(where, "blockIdx.x")
    if not accepted(made.bind, inner, "threadIdx.x"):
        return None
    made.unroll(loads)
    return made
