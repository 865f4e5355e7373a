"""Sums over windows of what is padded, such as depthwise convolutions and pools: strips of rows, and in these, tiles of columns
and vectors in registers, which share the weights of the window and read each element of the image once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...schedule import LoopRV, Schedule
from ..model import tile_cost
from ..nest import Axis, Nest
from ..space import Env, rule
from .contraction import Contraction, epilogue
from .reductions import walks
from .spatial import vectorize
from .strips import in_strips, split_rows, stages_before

WIDEST = 8  # columns of a tile
STRAIGHT = 256  # vector operations of a window in straight code


@rule(targets=("llvm",), order=34)
def windows(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Sum windows for a tile of the result at a time, with what follows; what is padded is made for a strip of rows."""
    nest = Nest.of(sch, block)
    stages = [] if nest is None or not nest.reduce else stages_before(sch, nest)
    if nest is None or not stages or nest.reduction is None or nest.block.init is None or Contraction.of(nest):
        return []
    *outer, along = nest.spatial
    row = next((a for a, b in zip(outer, stages[-1].axes) if a.extent is not None and a.size < b.size), None)
    lanes = env.lanes(nest.width)
    if row is None or along.size < lanes or not walks(nest, along):
        return []
    made = sch.copy()
    results = _results(made, nest)
    strip, within = split_rows(made, row)
    before, after = outer[: outer.index(row)], outer[outer.index(row) + 1 :]
    around = [*(a.loop for a in before), strip]
    *rows, column = [within, *(a.loop for a in after)]
    wide, vectors = _tile(after[-1] if after else row, along, lanes, env)
    columns, tile = made.split(column, [None, wide])
    place, middle, lane = made.split(along.loop, [None, vectors, lanes])
    window = [a.loop for a in nest.reduce]
    made.reorder(*around, *rows, columns, place, *window, tile, middle, lane)
    for result in results:
        made.reverse_compute_at(result, place, preserve_unit_loops=True)
        *others, last = _inside(made, result, place)
        for loop in others:
            made.unroll(loop)
        vectorize(made, last, vectors * lanes, lanes, vectors)
    init = made.decompose_reduction(nest.name, window[0])
    made.vectorize(lane)
    made.vectorize(_inside(made, init.name, place)[-1])
    for loop in (tile, middle, *_inside(made, init.name, place)[:-1]):
        made.unroll(loop)
    for n, loop in enumerate(window):
        if prod(a.size for a in nest.reduce[n:]) * wide * vectors <= STRAIGHT:
            made.unroll(loop)
    in_strips(made, nest, stages, around, env)
    return [made]


def _results(sch: Schedule, nest: Nest) -> Sequence[str]:
    """The blocks that store the sums, which are in registers: an elementwise one that follows, or copies."""
    after = epilogue(sch, nest) if len(nest.stores) == 1 else None
    if after is None:
        return [sch.cache_write(nest.name, n, "local").name for n in range(len(nest.block.writes))]
    sch.set_scope(nest.name, 0, "local")
    return [after]


def _inside(sch: Schedule, block: str, loop: LoopRV) -> list[LoopRV]:
    loops = sch.get_loops(block)
    return loops[loops.index(loop) + 1 :]


def _tile(column: Axis, along: Axis, lanes: int, env: Env) -> tuple[int, int]:
    """The columns and vectors that are summed at a time, with weights for each vector."""
    shapes = [(wide, vectors) for wide in range(1, min(WIDEST, column.size) + 1) for vectors in (1, 2, 3, 4)]
    fitting = [
        (wide, vectors)
        for wide, vectors in shapes
        if wide * vectors + vectors + 1 < env.vectors.count and (vectors - 1) * lanes < along.size
    ]
    return min(fitting, key=lambda s: tile_cost([(column.size, s[0])], along.size, s[1], lanes))
