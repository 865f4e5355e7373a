"""A GPU: an elementwise block of rows, such as softmax or a norm, with the reductions before it, a row by a thread block."""

from __future__ import annotations

from math import inf, prod

from ...analysis.index import index_of
from ...buffer import Buffer
from ...expr import constant
from ...schedule import BlockRV, LoopRV, Schedule
from ...target import GPUS
from ..nest import Nest, extent_of
from ..space import Env, choose, rule
from ..staged_operands import WARP, share, vector_width
from ..turning import inside
from .row_fuse import are_of_rows, stages_of

THREADS = (256, 128, 512, 64)  # of a row, likeliest first
SHARED = 0.75  # of the shared memory of a block, for rows


@rule(targets=GPUS, order=30)
def row_blocks(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Compute a row and the reductions that it needs by the threads of one block; what they share is in shared memory."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduce or len(nest.spatial) < 2 or nest.contiguous() is not nest.axes[-1]:
        return []
    stages = stages_of(sch, nest)
    sums = [s for s in stages if s.reduce]
    if not sums or any(len(s.reduce) != 1 for s in sums) or not are_of_rows(stages, nest):
        return []
    rows = [a.extent for a in nest.axes[:-1]]
    kept = [b for b in _read_again(stages, nest) if _bytes_of_row(b, len(rows)) < inf]
    size = sum(_bytes_of_row(b, len(rows)) for b in (*kept, *(s.stores[0].buffer for s in stages)))
    if size > SHARED * (env.target.limit("max_shared_memory_per_block") or 0):
        return []
    made = sch.copy()
    columns = nest.axes[-1].size
    counts = [t for t in THREADS if t <= max(WARP, columns)] or [WARP]
    threads = choose(made, counts, [1 + 0.1 * n for n in range(len(counts))])
    row = made.fuse(*(a.loop for a in nest.axes[:-1])) if len(rows) > 1 else nest.axes[0].loop
    made.bind(row, "blockIdx.x")
    blocks: list[BlockRV | str] = [s.name for s in stages]
    copies = [_copy_of(made, buffer, [*blocks, nest.name]) for buffer in kept]
    for each in (*reversed(blocks), *copies):
        made.compute_at(each, row, preserve_unit_loops=True)
    for stage in stages:
        made.set_scope(stage.name, 0, "shared")
        own = inside(made, stage.name, row)
        if stage.reduce:
            _, across = made.split(own[-1], [None, threads])
            made.bind(across, "threadIdx.x")
        else:
            _spread(made, own, threads, vector_width(stage, stage.axes[-1]))
    for each in copies:
        _spread(made, inside(made, each, row), threads, vector_width(nest, nest.axes[-1]))
    _spread(made, inside(made, nest.name, row), threads, vector_width(nest, nest.axes[-1]))
    return [made]


def _bytes_of_row(buffer: Buffer, rows: int) -> float:
    """The memory that a row takes; infinite where its size is symbolic, as that of memory in a kernel cannot be."""
    extents = [constant(e) for e in buffer.shape[rows:]]
    return inf if None in extents else buffer.dtype.bytes * prod(e or 0 for e in extents)


def _read_again(stages: list[Nest], nest: Nest) -> list[Buffer]:
    """The parameters of which several blocks read whole rows."""
    own = {s.stores[0].buffer for s in stages}
    rows = len(nest.axes) - 1
    readers = [
        a.buffer for s in (*stages, nest) for a in s.loads
        if a.buffer not in own and len(a.buffer.shape) == rows + 1
        and [a.places.get(axis.var) for axis in s.axes[:rows]] == list(range(rows))
    ]  # fmt: skip
    return [b for b in dict.fromkeys(readers) if readers.count(b) > 1]


def _copy_of(sch: Schedule, buffer: Buffer, blocks: list[BlockRV | str]) -> BlockRV:
    """Read a buffer through shared memory in those of ``blocks`` that read it."""
    found = index_of(sch.func).blocks
    readers = [b for b in blocks if any(r.buffer is buffer for r in found[str(b)].block.reads)]
    number = next(n for n, r in enumerate(found[str(readers[0])].block.reads) if r.buffer is buffer)
    return sch.cache_read(readers[0], number, "shared", consumer_blocks=readers)


def _spread(sch: Schedule, loops: list[LoopRV], threads: int, width: int) -> None:
    """Distribute the columns of a row over the threads."""
    share(sch, loops, {"threadIdx.x": threads}, width if extent_of(sch, loops[-1]) % width == 0 else 1)
