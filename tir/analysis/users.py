"""Who uses which memory: the statements and blocks that access it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ..aliases import memory_of, shares_memory, sharing
from ..buffer import Buffer, BufferRegion
from ..expr import BufferLoad, Call, Var
from ..node import once
from ..stmt import Block, BlockRealize, BufferStore, Evaluate, For, SeqStmt, Stmt, While
from ..visit import contains, walk
from .contents import NAMING, MembersBy, occurring, sub_statements
from .effects import Effect, effects
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


def by_address(stmt: Any, buffer: Buffer) -> list[Effect]:
    """The accesses in ``stmt`` to the memory of ``buffer`` by what has its pointer or the address of an element; a prefetch
    accesses none."""
    return [e for e in effects(stmt).of(buffer) if isinstance(e.node, (Var, Call))]
