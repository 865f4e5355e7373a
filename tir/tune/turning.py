"""Copies of operands and results of a block, and of square tiles that are turned in registers."""

from __future__ import annotations

from collections.abc import Sequence

from ..annotations import PARTITION_HINT
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


def turn_panels(sch: Schedule, pack: BlockRV, name: str, at: LoopRV | None, is_whole: bool) -> list[LoopRV]:
    """Let ``pack``, which copies panels for the block ``name`` (the last axes of the copy are terms and columns) of what lies along the terms, turn
    square tiles in registers, under the loop ``at`` or of all panels. Unless the terms are whole tiles, what is beyond the last one is neither
    loaded nor stored. Returns the outer loops.
    """
    before = [b for b in block_names(sch) if b != sch.get(pack).name]
    packed = sch.get(pack).writes[0].buffer
    side, intrinsic = x86.TRANSPOSE[packed.dtype]
    tile = sch.cache_read(name, packed.name, "local", consumer_blocks=[name])
    if is_whole:
        store = sch.cache_read(name, sch.get(tile).writes[0].buffer.name, "global", consumer_blocks=[name])
    else:
        sch.pad_einsum(tile, [*(1 for _ in packed.shape[:-2]), side, 1])
        store = next(b for b in sch.get_consumers(tile) if b.name not in before)
        sch.set_scope(tile, 0, "local")
        sch.set_scope(store, 0, "global")
    load = copied(sch, tile.name, 0, "local", before)
    sch.transform_layout(load, ("write", 0), lambda *point: (*point[:-2], point[-1], point[-2]))
    if at is not None:
        sch.compute_at(store, at, preserve_unit_loops=True)
    *outer, term, lane = sch.get_loops(store)[-len(packed.shape) :]
    lo, li = sch.split(lane, [None, side])
    po, pi = sch.split(term, [None, side])
    sch.reorder(*outer, lo, po, pi, li)
    for block in (tile, load):
        sch.compute_at(block, po, preserve_unit_loops=True)
    across, along = (
        inside(sch, load, po)[-2:] if is_whole else inside(sch, load, po)[:-3:-1]
    )  # as the operand is indexed, or the copy
    sch.reorder(across, along)
    for straight, vector in ((across, along), (pi, li)):
        sch.vectorize(vector)
        sch.unroll(straight)
    sch.tensorize(inside(sch, tile, po)[-2], intrinsic)
    sch.annotate(po, PARTITION_HINT, 1)
    return [*outer, lo, po]
