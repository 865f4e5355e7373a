"""Queries that return handles. None changes anything."""

from __future__ import annotations

from ..aliases import memory_of, shares_memory, sharing, source_of, views_in
from ..analysis.index import BlockRef, LoopRef
from ..errors import require
from ..names import near_names
from ..stmt import Block
from ..visit import walk
from .handles import BlockRV, LoopRV
from .primitive import query
from .state import State


@query
def get_block(state: State, name: str, func_name: str | None = None) -> BlockRV:
    """The block called ``name``, in ``func_name`` (default: the function worked on).

    Raises ``ScheduleError`` that lists the existing blocks, or the functions of which several have that name.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
    >>> sch.get_block("out")
    BlockRV(out)
    >>> sch.get_block("none")
    Traceback (most recent call last):
        ...
    tir.errors.ScheduleError: get_block("none"): block `none` is not in function `main`
    legal: root, most, power, total, scale, out
    """
    if func_name is not None:
        require(func_name in state.mod,
                "no function `{0}` in the module", func_name, legal=lambda: near_names(func_name, state.mod))  # fmt: skip
        state = state.replaced(func_name=func_name, is_chosen=True)
    state.require_one_function(name)
    return state.block_rv(state.find_block(name))


@query
def get_loops(state: State, block: BlockRef) -> list[LoopRV]:
    """The loops above ``block``, outermost first, up to the block that encloses it.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
    >>> sch.get_loops("out")
    [LoopRV(i), LoopRV(j)]
    """
    return [state.loop_rv(loop) for loop in block.loops()]


@query
def get_child_blocks(state: State, block_or_loop: BlockRef | LoopRef) -> list[BlockRV]:
    """The blocks directly inside a block, or under a loop (not those inside them).

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
    >>> sch.get_child_blocks("root")
    [BlockRV(most), BlockRV(power), BlockRV(total), BlockRV(scale), BlockRV(out)]
    """
    if isinstance(block_or_loop, BlockRef):
        return [state.block_rv(child) for child in block_or_loop.children]
    return [state.block_rv(child) for child in state.index.blocks_below(block_or_loop)]


def producers_of(block: BlockRef) -> list[BlockRef]:
    """Blocks of the same scope, earlier in it, that write a buffer that ``block`` reads."""
    if block.scope is None:
        return []
    earlier = block.scope.children[: block.scope.children.index(block)]
    return [s for s in earlier if sharing(s.block.writes, memory_of(block.block.reads))]


def consumers_of(block: BlockRef) -> list[BlockRef]:
    """Blocks of the same scope, later in it, that read a buffer that ``block`` writes."""
    if block.scope is None:
        return []
    later = block.scope.children[block.scope.children.index(block) + 1 :]
    return [s for s in later if sharing(s.block.reads, memory_of(block.block.writes))]


@query
def get_producers(state: State, block: BlockRef) -> list[BlockRV]:
    """The blocks of the same scope that write what ``block`` reads, in the order of its reads.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
    >>> sch.get_producers("out")
    [BlockRV(power), BlockRV(scale)]
    """
    turn = {region.buffer.data: n for n, region in reversed(list(enumerate(block.block.reads)))}

    def first_read(producer: BlockRef) -> int:
        return min(turn[w.buffer.data] for w in sharing(producer.block.writes, turn))

    return [state.block_rv(b) for b in sorted(producers_of(block), key=first_read)]


@query
def get_consumers(state: State, block: BlockRef) -> list[BlockRV]:
    """The blocks of the same scope that read what ``block`` writes.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
    >>> sch.get_consumers("power")
    [BlockRV(total), BlockRV(out)]
    """
    return [state.block_rv(b) for b in consumers_of(block)]


@query
def get_output_blocks(state: State, scope_block: BlockRef) -> list[BlockRV]:
    """The blocks inside ``scope_block``, blocks inside blocks as well, that write a buffer which outlives it: neither one
    allocated there nor a view of such a one.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
    >>> sch.get_output_blocks("root")
    [BlockRV(out)]
    """
    blocks = [n for n in walk(scope_block.block) if isinstance(n, Block)]
    views, own = views_in(blocks), memory_of(b for n in blocks for b in n.alloc_buffers)
    return [
        state.block_rv(b)
        for b in _inner_blocks(scope_block)
        if not all(shares_memory(source_of(w.buffer, views), own) for w in b.block.writes)
    ]


def _inner_blocks(scope_block: BlockRef) -> list[BlockRef]:
    """The blocks inside ``scope_block``, outer ones first, in program order."""
    return [b for child in scope_block.children for b in (child, *_inner_blocks(child))]
