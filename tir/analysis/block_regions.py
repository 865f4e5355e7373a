"""The regions of buffers that a block reads and writes."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from ..aliases import shares_memory
from ..arith.regions import relax_axes, union
from ..buffer import Buffer, BufferRegion, Range
from ..expr import BufferLoad, Call, Expr, Var
from ..op import effect_of
from ..stmt import Block
from ..visit import LEAVES, accesses
from .effects import READ, WRITE, Effect, Effects, Loop, as_range, outline

Hulls = list[Range | None]  # one for each axis; None is all of it


def block_access_region(
    block: Block, pointers: Mapping[Var, Buffer] | None = None
) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """The regions ``block`` reads and writes, one box per buffer, in terms of the block's own iterators.

    Loops inside the block are relaxed over their ranges; blocks inside it contribute their declared regions; buffers
    allocated inside it are omitted; a data-dependent index counts as the entire dimension. If the block has an
    ``init``, reads of a buffer that it also writes (the reduction target) are omitted. ``pointers`` maps data pointers
    to buffers, for calls that take a pointer; those of buffers that the block mentions are known.
    """
    touched = hulls_of(outline(block), _mentioned(block) | dict(pointers or {}))
    reads, writes = touched[READ], touched[WRITE]
    if block.init is not None:
        reads = {buffer: hulls for buffer, hulls in reads.items() if buffer not in writes}
    return boxes(reads), boxes(writes)


def hulls_of(found: Effects, named: Mapping[Var, Buffer]) -> dict[str, dict[Buffer, Hulls]]:
    """What is read and what is written: the hull of all effects on each buffer. ``named`` has buffers by pointer."""
    touched: dict[str, dict[Buffer, Hulls]] = {READ: {}, WRITE: {}}
    for effect in found:
        buffer = effect.buffer if effect.indices is not None else named.get(effect.buffer.data)
        if effect.kind in touched and buffer is not None and not shares_memory(buffer, found.allocated):
            into = touched[effect.kind]
            hulls = _hulls(effect, buffer)
            into[buffer] = _joined(into[buffer], hulls) if buffer in into else hulls
    return touched


def _mentioned(block: Block) -> dict[Var, Buffer]:
    """The buffers that the block accesses or declares, by pointer; views are known by themselves."""
    accessed = (n.buffer for n in accesses(block.body))
    declared = (region.buffer for region in (*block.reads, *block.writes))
    found: dict[Var, Buffer] = {}
    for buffer in (*accessed, *declared):
        found.setdefault(buffer.data, buffer)
    return found


def _hulls(effect: Effect, buffer: Buffer) -> Hulls:
    """The hull of each index of an effect, over the loops around it inside the block."""
    indices = buffer.full_region().region if effect.indices is None else map(as_range, effect.indices)
    return hulls_without_data(list(indices), effect.loops)


def hulls_without_data(indices: Sequence[Range | None], loops: Sequence[Loop]) -> Hulls:
    """The hull of each index over ``loops``, outermost first; None where memory, or a call with effects, decides it."""
    if not loops:
        return [None if axis is None or _varies((axis.min, axis.extent), ()) else axis for axis in indices]
    deciding: set[Any] = set()
    for var, low, extent in loops:
        if _varies((low, extent), deciding):
            deciding.add(var)
    known = [axis for axis in indices if axis is not None and not _varies((axis.min, axis.extent), deciding)]
    found: dict[Any, Range | None] = dict(
        zip(known, relax_axes(known, {var: Range(low, extent) for var, low, extent in loops}))
    )
    return [found.get(axis) for axis in indices]


def _varies(parts: Sequence[Expr], deciding: Container[Any]) -> bool:
    """Whether one of ``parts`` may have several values while the block runs: it uses memory, an impure call, or a variable
    that depends on one."""
    found = list[Any](parts)
    for e in found:  # which grows
        kind = e.__class__
        if kind is BufferLoad or e in deciding or (kind is Call and effect_of(e) not in ("pure", "read")):
            return True
        if kind not in LEAVES:
            found += e.children()
    return False


def _joined(old: Hulls, new: Hulls) -> Hulls:
    return [None if a is None or b is None else union([(a,), (b,)])[0] for a, b in zip(old, new)]


def boxes(touched: Mapping[Buffer, Hulls]) -> tuple[BufferRegion, ...]:
    """The hulls as regions."""
    found: list[BufferRegion] = []
    for buffer, hulls in touched.items():
        whole = buffer.full_region().region if None in hulls else ()
        found.append(BufferRegion(buffer, tuple([whole[n] if h is None else h for n, h in enumerate(hulls)])))
    return tuple(found)
