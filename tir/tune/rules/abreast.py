"""Chains along rows, of which each step waits for the one before, such as filters with feedback or running extremes: of several
rows at a time, as vectors where results do not lie along the row."""

from __future__ import annotations

from functools import partial

from ...analysis.index import index_of
from ...analysis.reduction_forms import Reduction
from ...annotations import PARTITION_HINT
from ...expr import BufferLoad
from ...intrin import x86
from ...schedule import Schedule
from ...stmt import Block, BufferStore
from ...target import LINE
from ...visit import walk
from ..nest import Access, Axis, Nest
from ..space import Env, Fork, block_names, choose, rule
from ..tile_costs import WAY, collide
from ..turning import copied, inside
from .spatial import share_out

ROWS = (16, 8, 12, 10, 6, 4, 5, 7, 3, 2)  # at a time, best first
SHORT = 8  # steps of a chain that the processor looks ahead of: the next row begins meanwhile


@rule(targets=("llvm",), order=68)
def abreast(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Take a step of several rows where a row is a chain of steps that nothing may reorder."""
    ref = index_of(sch.func).blocks.get(block)
    nest = Nest.of(sch, block) if ref is not None and _is_ordered(ref.block) else None
    row = nest and _row_of_chains(sch, nest)
    counts = [n for n in ROWS if row and row.extent is not None and row.extent % n == 0]
    if not nest or not row or not counts:
        return []
    across = _read_across(nest, row) if env.vectors.bits >= 256 else None
    turned = [partial(_turned, sch.copy(), nest, row, across, env)] if across else []
    return [*turned, partial(_side_by_side, sch.copy(), nest, row, counts, env)]


def _side_by_side(made: Schedule, nest: Nest, row: Axis, counts: list[int], env: Env) -> Schedule:
    """A step of some rows in straight code, whose lines the L1 cache holds."""
    counts = sorted(counts, key=lambda n: collide(_lines(nest, row, n)))
    count = choose(made, counts, [1 + 0.1 * n for n in range(len(counts))])
    at = nest.axes.index(row)
    outer, steps = ([a.loop for a in axes] for axes in (nest.axes[:at], nest.axes[at + 1 :]))
    strip, inner = made.split(row.loop, [None, count])
    made.reorder(strip, *steps, inner)
    made.unroll(inner)
    share_out(made, [*outer, strip], nest.runs * nest.work, env)
    return made


def _lines(nest: Nest, row: Axis, count: int) -> set[int]:
    """Those that a step of so many rows is in, where arrays begin in one set of the cache."""
    pitches = {(a.buffer, (a.stride(row.var) or 0) * a.buffer.dtype.bytes) for a in nest.accesses}
    return {n * pitch // LINE + array * WAY for array, (_, pitch) in enumerate(pitches) for n in range(count)}


def _read_across(nest: Nest, row: Axis) -> Access | None:
    """The one load along a chain, of an operand whose tiles of rows and steps may be turned, so that a step of some rows, whose results
    are neighbours, is one of vectors."""
    *_, step = nest.axes
    if nest.reduce != [step] or nest.block.init is None or nest.contiguous() is not row:
        return None
    along = [a for a in nest.loads if a.stride(row.var) not in (0, 1)]
    if len(along) != 1 or along[0].indices[-2:] != (row.var, step.var) or along[0].buffer.dtype not in x86.TRANSPOSE:
        return None
    is_plain = len(along[0].places) == len(along[0].indices) and step.extent is not None
    is_single = [a.buffer for a in nest.loads].count(along[0].buffer) == 1
    fits = row.size % x86.TRANSPOSE[along[0].buffer.dtype][0] == 0
    return along[0] if is_plain and is_single and fits else None


def _turned(made: Schedule, nest: Nest, row: Axis, across: Access, env: Env) -> Schedule:
    """Steps of a vector of rows; what lies along the chains is turned in registers, a square tile at a time."""
    *_, step = nest.axes
    side, intrinsic = x86.TRANSPOSE[across.buffer.dtype]
    outer = [a.loop for a in nest.axes[: nest.axes.index(row)]]
    before = block_names(made)
    tile = made.cache_read(
        nest.name, [r.buffer for r in nest.block.reads].index(across.buffer), "local", consumer_blocks=[nest.name]
    )
    if step.size % side:
        made.pad_einsum(tile, [*(1 for _ in across.indices[:-1]), side])
        made.compute_inline(next(b for b in made.get_consumers(tile) if b.name not in before))
    load = copied(made, tile.name, 0, "local", before)
    made.transform_layout(tile, ("write", 0), lambda *at: (*at[:-2], at[-1], at[-2]))
    strip, lane = made.split(row.loop, [None, side])
    around, each = made.split(step.loop, [None, side])
    made.reorder(strip, around, each, lane)
    for block in (tile, load):
        made.compute_at(block, around, preserve_unit_loops=True)
    rows, steps = inside(made, load, around)[-2:]
    made.vectorize(steps)
    made.unroll(rows)
    made.tensorize(inside(made, tile, around)[-2], intrinsic)
    for result in [made.cache_write(nest.name, n, "local") for n in range(len(nest.block.writes))]:
        made.reverse_compute_at(result, strip, preserve_unit_loops=True)
        made.vectorize(inside(made, result, strip)[-1])
    init = made.decompose_reduction(nest.name, around)
    made.vectorize(inside(made, init, strip)[-1])
    made.vectorize(lane)
    made.unroll(each)
    made.annotate(around, PARTITION_HINT, 1)
    share_out(made, [*outer, strip], nest.runs * nest.work, env)
    return made


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
