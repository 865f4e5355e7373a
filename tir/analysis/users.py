"""Who uses which memory: the statements and blocks that access it, and the other names that it has around them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ..aliases import memory_of, shares_memory, sharing, source_of, views_in
from ..buffer import Buffer, BufferRegion
from ..errors import require
from ..expr import BufferLoad, Var
from ..function import PrimFunc
from ..node import once
from ..stmt import Block, BlockRealize, BufferStore, Evaluate, For, SeqStmt, Stmt, While
from ..visit import contains, walk
from .contents import NAMING, MembersBy, contents, has_blocks, occurring, sub_statements, with_memory
from .effects import effects
from .index import BlockRef, Place

SIDES = ("reads", "writes")


def blocks_using(scope: BlockRef, memory: Buffer | Collection[Var], *sides: str) -> list[BlockRef]:
    """Blocks directly inside ``scope`` that have ``memory`` in the regions of their ``sides`` ("reads", "writes"; by default
    either), in program order."""
    pointers = memory_of([memory]) if isinstance(memory, Buffer) else memory
    found = [s for part in sub_statements(scope.block) for s in _WITH_REGIONS.of_any(part, pointers)]
    blocks = (child for s in found for child in scope.index.blocks_below(scope.index.place(s)))
    return [c for c in blocks if any(sharing(getattr(c.block, side), pointers) for side in sides or SIDES)]


def readers(scope: BlockRef, buffer: Buffer) -> list[BlockRef]:
    """Blocks directly inside ``scope`` that read the memory of ``buffer``, in program order."""
    return blocks_using(scope, buffer, "reads")


def writers(scope: BlockRef, buffer: Buffer) -> list[BlockRef]:
    """Blocks directly inside ``scope`` that write the memory of ``buffer``, in program order."""
    return blocks_using(scope, buffer, "writes")


def blocks_naming(scope: BlockRef, buffer: Buffer) -> list[BlockRef]:
    """Blocks directly inside ``scope``, in statements in which ``buffer`` or its pointer occurs, in program order."""
    found = (s for part in sub_statements(scope.block) for s in NAMING.of_any(part, memory_of([buffer])))
    return [child for s in found for child in scope.index.blocks_below(scope.index.place(s))]


@once
def _in_regions(stmt: Any) -> frozenset[Var]:
    """The pointers of the memory in the regions of the outermost blocks in a statement."""
    inner: Any = stmt
    while type(inner) is For:
        inner = inner.body
    if type(inner) is BlockRealize:
        return memory_of((*inner.block.reads, *inner.block.writes))
    return frozenset().union(*map(_in_regions, sub_statements(inner)))


_WITH_REGIONS = MembersBy(_in_regions)


def uses_pointer(stmt: Any, buffer: Buffer) -> bool:
    """Whether the memory of ``buffer`` is accessed through its pointer or another view, besides loads and stores."""
    names = occurring(stmt)
    if shares_memory(buffer, names.variables) or shares_memory(buffer, names.viewed):
        return True
    return any(b is not buffer for b in sharing(names.buffers, buffer))


def used_memory(root: Any, without: Collection[Any], around: Collection[Any]) -> set[Var]:
    """The pointers of the memory that is used under ``root``, but for the parts ``without``, and other variables there;
    alignments, allocations and clauses are no uses. ``around`` are the statements from ``root`` to these parts."""
    found: set[Var] = set()
    apart = {root, *around, *without}
    for item in walk(root, enter=lambda n: n not in without and (type(n) not in _KEEPING or n in apart)):
        if isinstance(item, Var):
            found.add(item)
        elif isinstance(item, (BufferLoad, BufferStore, BufferRegion)) and item not in without:
            found |= memory_of([item])
        elif type(item) in _KEEPING and item not in apart:
            found |= _all_used_memory(item)
    return found


_KEEPING = (For, BlockRealize)  # statements of which steps leave most as they are


@once
def _all_used_memory(stmt: Any) -> frozenset[Var]:
    return frozenset(used_memory(stmt, (), ()))


# ---------------------------------------------------------------- outside of blocks


@once
def bare_stores(stmt: Stmt) -> Sequence[tuple[Stmt, Var]]:
    """The statements in ``stmt``, outside of blocks, that store or pass a pointer on, with the memory that they may write."""
    if isinstance(stmt, BlockRealize):
        return ()
    if isinstance(stmt, (BufferStore, Evaluate)):
        return tuple((stmt, memory) for memory in effects(stmt).writes)
    parts = _STORING.of(stmt, True) if isinstance(stmt, SeqStmt) else sub_statements(stmt)
    return tuple(item for part in parts for item in bare_stores(part))


_STORING = MembersBy(lambda s: (True,) if bare_stores(s) else ())


def bare_writers(scope: BlockRef, buffer: Buffer) -> list[Place]:
    """The statements of ``scope``, outside of the blocks in it, that may write the memory of ``buffer``, in program order."""
    found = (item for part in sub_statements(scope.block) for item in bare_stores(part))
    return [scope.index.place(stmt) for stmt, memory in found if shares_memory(buffer, {memory})]


# ---------------------------------------------------------------- other places and names


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
        used, names = [] if part is None else list(effects(part)), dict[Var, Buffer]()
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


def regions_of(refs: Iterable[BufferRegion], buffer: Buffer) -> list[BufferRegion]:
    return [r for r in refs if r.buffer is buffer]


def reads_own_writes(block: Block, buffer: Buffer) -> bool:
    """Whether an execution of ``block`` may read an element of ``buffer`` after it has stored to it: a copy made before
    would be stale. A call that stores through a pointer, such as ``T.atomic_add``, has no read apart from its store."""
    found, again = effects(block.body).of(buffer), contains(While, block.body)
    return any(
        a.write
        and not b.write
        and (n < m or again or a.through is not None or any(f[0] is g[0] for f, g in zip(a.loops, b.loops)))
        for n, a in enumerate(found)
        for m, b in enumerate(found)
    )
