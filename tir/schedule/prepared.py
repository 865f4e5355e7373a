"""What a program is to be before it is scheduled: each part at one place, its memory by one name, all accesses declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..aliases import memory_of, shares_memory, sharing, source_of, views_in
from ..analysis.block_regions import block_access_region
from ..analysis.contents import contents, has_blocks, with_memory
from ..analysis.effects import READ, WRITE, effects
from ..buffer import Buffer
from ..errors import require
from ..expr import Var
from ..function import IRModule, PrimFunc
from ..stmt import Block, BlockRealize, For
from ..visit import rewrite_statements, statements, with_recursion_limit


def with_own_places(func: PrimFunc) -> PrimFunc:
    """``func``. Raises ``ScheduleError`` if a loop, block, iterator or buffer of a block is defined at two places, as in a
    program made by hand from one statement used twice."""
    seen: set[Any] = set()
    for n in contents(func.body):
        if type(n) is For:
            defined: tuple[Any, ...] = (n.loop_var,)
        else:
            views = (m.buffer for m in n.block.match_buffers)
            defined = (n.block, *(i.var for i in n.block.iter_vars), *n.block.alloc_buffers, *views)
        for one in defined:
            require(
                one not in seen,
                "`{0}` is defined at two places, of which a step could not change one alone",
                one.name,
                func=func,
                nodes=[n],
                legal="the program after tir.transform.convert_ssa, in which each place has definitions of its own",
            )
        seen.update(defined)
    return func


def with_one_name(func: PrimFunc) -> PrimFunc:
    """``func``, in whose blocks of blocks all memory has one name: pointers distinguish memory there. Raises
    ``ScheduleError`` with a block that writes memory of which it uses a view, and another view or the source."""
    for realize in with_memory(func.body):
        require_one_name(realize)
    return func


def require_one_name(realize: BlockRealize) -> None:
    """As :func:`with_one_name`, for one block. One without blocks inside is a unit, of which the names do not matter, and an init
    comes before the body, whatever is done to either."""
    block = realize.block
    if not block.match_buffers or not has_blocks(block):
        return
    views = views_in([block])
    for part in (block.init, block.body):
        used, names = [] if part is None else list(effects(part)), {}
        written = memory_of(source_of(e.buffer, views) for e in used if e.write)
        for effect in used:
            source = source_of(effect.buffer, views)
            other = names.setdefault(source.data, effect.buffer)
            require(
                not shares_memory(source, written) or shares_memory(other, effect.buffer),
                "block {0} writes the memory of {1}, and uses it by two names, {2} and {3}",
                realize,
                source.name,
                other.name,
                effect.buffer.name,
                nodes=[realize],
                legal=f"{source.name} itself at all places",
            )


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
    return rewrite_statements(func.body, lambda n: _declared(n, buffers) if isinstance(n, Block) else None)


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
