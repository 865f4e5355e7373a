"""Tiles of any nest in registers: what a search may draw in place of what the rules for special nests make of it.

The likeliest offer is to leave the block alone, so that the rules after this one see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...schedule import LoopRV, Schedule
from ..nest import Axis, Nest, volume
from ..space import Env, Fork, accepted, choose, rule
from .spatial import share_out

VECTORS = (4, 2, 1, 8)  # of a tile, best first
ROWS = (1, 2, 4, 3, 7)
STEPS = (1, 2, 4, 8)  # iterations of a loop in straight code


@rule(targets=("llvm",), order=58)
def generic(sch: Schedule, block: str, env: Env) -> Sequence[Fork]:
    """Leave a block to other rules; or a tile of its results at a time, its sums in registers; or straight code of some iterations."""
    nest = Nest.in_steps(sch, block)
    if nest is None or not nest.axes or len(nest.spatial) + len(nest.reduce) < len(nest.axes):
        return []
    along = nest.contiguous()
    tiles = along is not None and not nest.in_time and along.extent is not None and along.size >= env.lanes(nest.width)
    sums = nest.reduce and (nest.reduction is None or nest.block.init is None)
    ways: list[Fork] = [sch]
    if tiles and not sums and along is not None:
        ways += [partial(_tiled, sch, nest, along, inside, env) for inside in (True, False)[: 1 + bool(nest.reduce)]]
    return [*ways, partial(_straight, sch, nest, env)]


def _choice(sch: Schedule, values: Sequence[int], most: int) -> int:
    """One of ``values``, those first the likelier, of at most ``most``."""
    fitting = [v for v in values if v <= max(1, most)]
    return choose(sch, fitting, [1 + 0.05 * n for n in range(len(fitting))])


def _tiled(sch: Schedule, nest: Nest, along: Axis, inside: bool, env: Env) -> Schedule:
    """Rows by vectors of results at a time; the terms of a sum ``inside`` of a tile, or around all tiles of a row."""
    made, full = sch.copy(), env.lanes(nest.width)
    row = next((a for a in reversed(nest.spatial) if a is not along and a.extent is not None and a.size > 1), None)
    outer = [a.loop for a in nest.by_stride(nest.spatial) if a is not along and a is not row]
    terms = [a.loop for a in nest.reduce]
    copies = (
        [made.cache_write(nest.name, n, "local") for n in range(len(nest.block.writes))] if terms and inside else []
    )
    lanes = _choice(made, (full, full // 2), full)
    vectors = _choice(made, VECTORS, along.size // full)
    strip, middle, lane = made.split(along.loop, [None, vectors, lanes])
    around, tile = [*outer, strip], [middle, lane]
    if row is not None:
        rows, each = made.split(row.loop, [None, _choice(made, ROWS, row.size)])
        around, tile = [*outer, rows, strip], [each, *tile]
    made.reorder(*around, *terms, *tile) if inside else made.reorder(*around[:-1], *terms, strip, *tile)
    for copy in copies:
        made.reverse_compute_at(copy, strip, preserve_unit_loops=True)
        loops = made.get_loops(copy)
        *others, last = loops[loops.index(strip) + 1 :]
        made.vectorize(made.split(last, [None, lanes])[1])
        for loop in others:
            made.unroll(loop)
    update = made.get_block(nest.name)
    blocks = [update, made.decompose_reduction(update, terms[0])] if terms else [update]
    for each_block in blocks:
        *straight, last = made.get_loops(each_block)[-len(tile) :]
        made.vectorize(last)
        for loop in straight:
            made.unroll(loop)
    share_out(made, around if inside else around[:-1], nest.runs * nest.work, env)
    return made


def _straight(sch: Schedule, nest: Nest, env: Env) -> Schedule:
    """Loops in another order, where that is legal: those of the result outside, the contiguous one last; some iterations of the
    innermost loop in straight code."""
    made = sch.copy()
    loops: list[LoopRV] = [a.loop for a in (*nest.by_stride(nest.spatial), *nest.reduce)]
    if len(loops) > 1:
        accepted(made.reorder, *loops)
    last = made.get_loops(nest.name)[-1]
    around, each = made.split(last, [None, _choice(made, STEPS, nest.axes[-1].size)])
    made.unroll(each)
    if not nest.in_time:
        share_out(
            made,
            [*(a.loop for a in nest.by_stride(nest.spatial))][:1] if volume(nest.spatial) > 1 else [],
            nest.runs * nest.work,
            env,
        )
    return made
