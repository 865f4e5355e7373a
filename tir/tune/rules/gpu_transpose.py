"""A GPU: elements that change places, such as a transpose: a tile goes through shared memory, so that both sides access
neighbours."""

from __future__ import annotations

from ...schedule import Schedule
from ...target import GPUS
from ..nest import Access, Axis, Nest, volume
from ..space import Env, rule

TILE = 32  # rows and columns, the threads of a warp
ROWS = 8  # of a tile that the threads of a block copy at a time


@rule(targets=GPUS, order=60)
def shared_tiles(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Read an operand that lies across the result by tiles in shared memory."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduce or len(nest.spatial) < 2 or len(nest.spatial) != len(nest.axes):
        return []
    column = nest.contiguous()
    found = column and _across(nest, column)
    if not found or column is None:
        return []
    operand, row = found
    if min(row.size, column.size) < TILE:
        return []
    made = sch.copy()
    others = [a.loop for a in nest.by_stride(nest.spatial) if a not in (row, column)]
    by, step, ty = made.split(row.loop, [None, TILE // ROWS, ROWS])
    bx, tx = made.split(column.loop, [None, TILE])
    made.reorder(*others, by, bx, ty, tx, step)
    made.bind(made.fuse(*others, by), "blockIdx.y") if others else made.bind(by, "blockIdx.y")
    for loop, axis in ((bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        made.bind(loop, axis)
    number = next(n for n, r in enumerate(nest.block.reads) if r.buffer is operand.buffer)
    tile = made.cache_read(block, number, "shared", consumer_blocks=[block])
    made.compute_at(tile, tx)
    rows, columns = made.get_loops(tile)[-2:]
    more, y = made.split(rows, [None, ROWS])
    made.bind(y, "threadIdx.y")
    made.bind(columns, "threadIdx.x")
    made.unroll(more)
    made.unroll(step)
    made.storage_align(tile, 0, axis=operand.places[column.var], factor=TILE, offset=1)
    return [made]


def _across(nest: Nest, column: Axis) -> tuple[Access, Axis] | None:
    """An operand whose neighbours are along another axis than the result's, and this axis; None if there is no such."""
    for load in nest.loads:
        row = next((a for a in nest.spatial if load.stride(a.var) == 1), None)
        whole = len(load.places) == len(load.indices) and volume(nest.spatial) > 0
        if row is not None and row is not column and whole and load.stride(column.var) not in (0, 1):
            return load, row
    return None
