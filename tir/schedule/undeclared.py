"""Accesses that a block does not declare: found, and declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..aliases import memory_of, sharing
from ..analysis.block_regions import block_access_region
from ..analysis.effects import READ, WRITE, effects
from ..buffer import Buffer
from ..expr import Var
from ..function import IRModule, PrimFunc
from ..stmt import Block
from ..visit import rewrite, statements, with_recursion_limit


@with_recursion_limit
def with_all_accesses_declared(mod: IRModule) -> IRModule:
    """``mod`` with blocks that declare a region of every buffer that they read or write; which blocks use a buffer is asked
    of the declarations.

    Regions that are declared stay as they are, whatever the block accesses: what it does with a pointer to a buffer of which
    it declares a region, too. A pointer that is passed on without a declaration reads and writes the entire buffer. The
    target of an update need not be among the reads.
    """
    for name, func in mod.functions.items():
        body = _all_declared(func)
        if body is not func.body:
            mod = mod.with_function(name, func.with_body(body))
    return mod


def _all_declared(func: PrimFunc) -> Any:
    buffers = _buffers(func)
    return rewrite(func.body, lambda n: _declared(n, buffers) if isinstance(n, Block) else None)


def _buffers(func: PrimFunc) -> Mapping[Var, Buffer]:
    """The buffers that are parameters or allocated, by their pointers."""
    allocated = (b for n in statements(func.body) if isinstance(n, Block) for b in n.alloc_buffers)
    return {b.data: b for b in (*func.buffer_map.values(), *allocated)}


def _declared(block: Block, buffers: Mapping[Var, Buffer]) -> Block | None:
    """``block`` with the regions that it lacks, None if it lacks none."""
    if block.name == "root":
        return None
    missing = _missing(block, buffers)
    if not any(missing.values()):
        return None
    reads, writes = block_access_region(block, buffers)
    return block.replace(
        reads=(*block.reads, *sharing(reads, missing[READ])), writes=(*block.writes, *sharing(writes, missing[WRITE]))
    )


def _missing(block: Block, buffers: Mapping[Var, Buffer]) -> dict[str, set[Var]]:
    """The pointers of the memory that ``block`` reads and writes, and of which it declares no region on that side."""
    found = effects(block)
    declared = {READ: memory_of(block.reads), WRITE: memory_of(block.writes)}
    direct: dict[str, set[Var]] = {READ: set(), WRITE: set()}
    pointed: set[Var] = set()
    for effect in found:
        data = effect.buffer.data
        if effect.kind in direct and data in buffers and data not in found.allocated:
            (pointed if effect.indices is None else direct[effect.kind]).add(data)
    pointed -= declared[READ] | declared[WRITE]
    return {
        READ: direct[READ] - declared[READ] - found.writes | pointed,
        WRITE: direct[WRITE] - declared[WRITE] | pointed,
    }
