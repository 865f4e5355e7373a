"""Copies of operands and results of a block, and of square tiles that are turned in registers."""

from __future__ import annotations

from collections.abc import Sequence

from ..annotations import PARTITION_HINT
from ..arith.index_map import IndexMap
from ..intrin import x86
from ..schedule import BlockRV, LoopRV, Schedule
from .space import accepted, block_names


def copied(sch: Schedule, name: str, number: int, scope: str, before: Sequence[str]) -> BlockRV:
    """The block that copies the operand read by region ``number`` to ``scope``: the one that pads or gathers it, or one of its
    own."""
    buffer = sch.get(name).reads[number].buffer
    made = [b for b in sch.get_producers(name) if b.name not in before and sch.get(b).writes[0].buffer is buffer]
    if not made:
        return sch.cache_read(name, number, scope, consumer_blocks=[name])
    for gather in sch.get_producers(made[0]):
        if gather.name not in before:
            sch.compute_inline(gather)
    sch.set_scope(made[0], 0, scope)
    return made[0]


def written(sch: Schedule, name: str, scope: str, before: Sequence[str]) -> BlockRV:
    """The block that stores the result from ``scope``, with the elementwise blocks that follow it."""
    after = [b for b in sch.get_consumers(name) if b.name not in before]
    if after:
        store = after[0]
        sch.set_scope(name, 0, scope)
    else:
        store = sch.cache_write(name, 0, scope)
    while len(following := sch.get_consumers(store)) == 1 and accepted(sch.reverse_compute_inline, following[0]):
        pass
    return store


def inside(sch: Schedule, block: BlockRV | str, loop: LoopRV) -> list[LoopRV]:
    """The loops of a block inside of ``loop``."""
    loops = sch.get_loops(block)
    return loops[loops.index(loop) + 1 :]


def in_tiles(sch: Schedule, pack: BlockRV, name: str, layout: IndexMap, is_whole: bool) -> BlockRV:
    """Let ``pack``, which copies what lies along the terms (its last axis) for the block ``name``, only load it, and blocks after it turn square tiles
    in registers and store them where ``layout`` says, whose last axes are terms and columns. Unless the terms are whole tiles, what is beyond the
    last one is neither loaded nor stored. Returns the block that stores.
    """
    before = [b for b in block_names(sch) if b != sch.get(pack).name]
    packed = sch.get(pack).writes[0].buffer
    tile = sch.cache_read(name, packed.name, "local", consumer_blocks=[name])
    if is_whole:
        store = sch.cache_read(name, sch.get(tile).writes[0].buffer.name, "global", consumer_blocks=[name])
    else:
        sch.pad_einsum(tile, [*(1 for _ in packed.shape[:-1]), x86.TRANSPOSE[packed.dtype][0]])
        store = next(b for b in sch.get_consumers(tile) if b.name not in before)
        sch.set_scope(tile, 0, "local")
        sch.set_scope(store, 0, "global")
    load = copied(sch, tile.name, 0, "local", before)
    *around, term, lane = layout.final_indices
    as_loaded = IndexMap(layout.initial_indices, (*around, lane, term))
    for block, order in ((store, layout), (tile, layout), (load, as_loaded)):
        sch.transform_layout(block, ("write", 0), order)
    return store


def turn_tiles(sch: Schedule, store: BlockRV, at: LoopRV | None, lane: int) -> list[LoopRV]:
    """Run the blocks that :func:`in_tiles` made for each tile, under the loop ``at`` or for all at once; columns are axis ``lane`` of what is packed.
    Returns the outer loops."""
    packed = sch.get(store).writes[0].buffer
    side, intrinsic = x86.TRANSPOSE[packed.dtype]
    (tile,) = sch.get_producers(store)
    (load,) = sch.get_producers(tile)
    if at is not None:
        sch.compute_at(store, at, preserve_unit_loops=True)
    loops = sch.get_loops(store)[1 - len(packed.shape) :]
    lo, li = sch.split(loops.pop(lane), [None, side])
    po, pi = sch.split(loops.pop(), [None, side])
    sch.reorder(*loops, lo, po, pi, li)
    for block in (tile, load):
        sch.compute_at(block, po, preserve_unit_loops=True)
    (across, along), (i, j) = (inside(sch, block, po)[-2:] for block in (load, tile))
    for straight, vector in ((across, along), (pi, li)):
        sch.vectorize(vector)
        sch.unroll(straight)
    sch.reorder(j, i)
    sch.tensorize(j, intrinsic)
    sch.annotate(po, PARTITION_HINT, 1)
    return [*loops, lo, po]
