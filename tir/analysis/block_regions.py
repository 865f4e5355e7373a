"""The regions of buffers that a block reads and writes: what its body says, and what is declared where that does not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from operator import is_
from typing import Any

from ..aliases import reads_memory, shares_memory
from ..annotations import EXPLICIT
from ..arith import Analyzer
from ..arith.regions import Box, relax, relax_axes, union
from ..buffer import Buffer, BufferRegion, Range
from ..expr import BufferLoad, Call, Expr, IntImm, Var, all_of, conjuncts, is_const
from ..node import frozendict, once
from ..op import effect_of
from ..stmt import Block, LetStmt
from ..visit import LEAVES, accesses, substitute, walk
from .effects import READ, WRITE, Effect, Effects, Loop, as_range, memory_effects, outline
from .evaluation import as_total, entered, is_lazy, may_fail
from .index import BlockRef, LoopRef, wrapped_in
from .users import uses_pointer

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


def with_regions(block: Block) -> Block:
    """``block`` with the regions that its body touches."""
    reads, writes = block_access_region(block)
    return block.replace(reads=reads, writes=writes)


def hulls_of(found: Effects, named: Mapping[Var, Buffer]) -> dict[str, dict[Buffer, Hulls]]:
    """What is read and what is written: the hull of all effects on each buffer. ``named`` has buffers by pointer."""
    touched: dict[str, dict[Buffer, Hulls]] = {READ: {}, WRITE: {}}
    for effect in {(e.kind, e.buffer, e.indices, e.loops): e for e in found.stored}.values():  # of alike ones, one
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
    found: list[Any] = [*parts]
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


def accessed_box(
    blocks: Sequence[BlockRef],
    buffer: Buffer,
    host: BlockRef | LoopRef,
    *sides: str,
    shared_by: Collection[str] = (),
    without: Callable[[BlockRef], Sequence[Expr]] = lambda _: (),
) -> Box | None:
    """The box of ``buffer`` that ``blocks`` access each time that ``host``, around all of them, runs; None if they do not.

    ``sides`` selects the regions, "reads", "writes" or both. Loops around that are bound to axes of ``shared_by`` count with
    all their iterations. ``without``: the conjuncts of the predicate of a block that do not count. Where a block might not run, or
    skip the access, the box has a value all the same: it does not divide by 0, nor shift by more bits than there are.
    """
    found: list[Box] = []
    for ref in blocks:
        loops = ref.loop_ranges(host)
        if shared_by:
            loops = {p.var: p.range for p in ref.loops() if p.var in loops or p.node.thread in shared_by}
        left_out = without(ref)
        condition = all_of([c for c in conjuncts(ref.node.predicate) if not any(c is d for d in left_out)])
        values, lets = ref.bindings, _lets_around(ref)
        for let in lets:
            condition = substitute(condition, let)
        for region in (r for side in sides for r in accessed_regions(ref.block)[side] if r.buffer is buffer):
            box = tuple(substitute(r, values) for r in region.region)
            for let in lets:
                box = tuple(substitute(r, let) for r in box)
            box = relax(box, loops, predicate=condition) or buffer.full_region().region
            found.append(_with_value(box, ref, loops, condition))
    return union(found) if found else None


def _lets_around(ref: BlockRef) -> list[dict[Var, Expr]]:
    """The variables of lets between ``ref`` and the block around it, innermost first, if their values may be substituted:
    pure and total."""
    found: list[dict[Var, Expr]] = []
    place = ref.parent
    while place is not None and not isinstance(place.node, Block):
        let = place.node
        if (
            isinstance(let, LetStmt)
            and let.var.dtype.is_int
            and not may_fail(let.value)
            and not reads_memory(let.value)
        ):
            found.append({let.var: let.value})
        place = place.parent
    return found


def _with_value(box: Box, ref: BlockRef, loops: Mapping[Var, Range], condition: Expr) -> Box:
    """``box``, which ``ref`` accesses if it runs under ``condition`` inside of ``loops``, as an expression that never faults."""
    if not any(may_fail(e) for axis in box for e in (axis.min, axis.extent)):
        return box
    sure = not entered([r.extent for r in loops.values()], Analyzer()) and is_const(condition, 1)
    if sure and wrapped_in(ref, ref.scope or ref) is None and not _has_lazy_part(ref.block):
        return box
    known = Analyzer({p.var: p.range for p in ref.all_loops() if p.var not in loops})
    known.assume_sizes(r.buffer for r in (*ref.block.reads, *ref.block.writes))
    return tuple(Range(*(as_total(e, known) for e in (axis.min, axis.extent))) for axis in box)


def _has_lazy_part(block: Block) -> bool:
    """Whether something in ``block``, besides its init, may not be evaluated where the block runs."""
    return any(is_lazy(n) for n in walk(block) if not isinstance(n, Block))


def explicit_regions(block: Block, side: str) -> list[BufferRegion]:
    """The regions among its "reads" or "writes" that the user has stated (annotate_buffer_access)."""
    numbers = explicit_numbers(block, side)
    return [region for n, region in enumerate(getattr(block, side)) if n in numbers] if numbers else []


def explicit_numbers(block: Block, side: str) -> tuple[int, ...]:
    """The numbers of these regions, as the block's annotation has them."""
    marked = block.annotations.get(EXPLICIT[side], ())
    return tuple(int(n) for n in marked if isinstance(n, (int, IntImm))) if isinstance(marked, (tuple, list)) else ()


@once
def accessed_regions(block: Block) -> Mapping[str, tuple[BufferRegion, ...]]:
    """The "reads" and "writes" of ``block`` as its body has them, which may be more or less than what is declared.

    What is declared counts where the body does not say: for what calls do with pointers and views, on axes where data
    chooses the index, and where the user has stated the region.
    """
    found = memory_effects(block)
    if found.opaque or all(_is_element(r, kind, found) for side, kind in _SIDES for r in getattr(block, side)):
        return frozendict({side: getattr(block, side) for side in EXPLICIT})
    touched = hulls_of(found, {})
    return frozendict({side: tuple(_accessed(block, side, touched[kind])) for side, kind in _SIDES})


_SIDES = (("reads", READ), ("writes", WRITE))


def _is_element(region: BufferRegion, kind: str, found: Effects) -> bool:
    """Whether what is ``found`` of effects of this kind on the buffer of ``region`` is on its only element."""
    places = [axis.min for axis in region.region]
    return all(is_const(axis.extent, 1) for axis in region.region) and all(
        len(e.indices) == len(places) and all(map(is_, e.indices, places))
        for e in found.stored
        if e.buffer is region.buffer and e.kind == kind and e.indices is not None
    )


def _accessed(block: Block, side: str, touched: Mapping[Buffer, Hulls]) -> Iterator[BufferRegion]:
    stated = explicit_regions(block, side)
    for region in getattr(block, side):
        hulls = touched.get(region.buffer)
        if hulls is None or region in stated or uses_pointer(block, region.buffer):
            yield region
        else:
            (inside,) = boxes({region.buffer: hulls})
            known = zip(hulls, inside.region, region.region)
            yield BufferRegion(
                region.buffer, tuple(declared_range if hull is None else r for hull, r, declared_range in known)
            )
