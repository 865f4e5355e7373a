"""The regions that blocks access: what their bodies say, and what is declared where these do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..arith import Analyzer
from ..arith.regions import Box, relax, union
from ..buffer import Buffer, BufferRegion, Range
from ..expr import Call, Expr, IntImm, Var, is_const
from ..node import frozendict, once
from ..op import effect_of
from ..stmt import Block, LetStmt
from ..visit import has_load, substitute, walk
from .annotations import EXPLICIT
from .block_regions import Hulls, boxes, hulls_of
from .effects import READ, WRITE, effects
from .evaluation import as_total, entered, is_lazy, may_fail
from .index import BlockRef, Place
from .nesting import wrapped_in
from .users import uses_pointer


def region_in(
    host: Place | Mapping[Var, Range], ref: BlockRef, buffer: Buffer, *sides: str, predicate: Expr | None = None
) -> Box | None:
    """The box of ``buffer`` that the block ``ref`` accesses over all iterations of the loops inside ``host``.

    ``host`` is a place around the block, or the ranges of those loops. ``sides`` selects the regions, "reads",
    "writes" or both; ``predicate`` is the condition under which the block runs, by default its own. None if no
    region is of ``buffer``. Where the block might not run, or skip the access, the box has a value all the same: it does not
    divide by 0, nor shift by more bits than there are.
    """
    loops = host if isinstance(host, Mapping) else ref.loop_ranges(host)
    condition = ref.node.predicate if predicate is None else predicate
    values, lets = ref.bindings, _lets_around(ref)
    for let in lets:
        condition = substitute(condition, let)
    found: list[Box] = []
    for side in sides:
        for region in accessed_regions(ref.block)[side]:
            if region.buffer is buffer:
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
        if isinstance(let, LetStmt) and let.var.dtype.is_int and not may_fail(let.value) and not _asks_more(let.value):
            found.append({let.var: let.value})
        place = place.parent
    return found


def _asks_more(value: Expr) -> bool:
    """Whether a value depends on more than variables: on memory, or on what a call does."""
    return has_load(value) or any(effect_of(n) != "pure" for n in walk(value) if isinstance(n, Call))


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
    if effects(block).opaque:
        return frozendict({side: getattr(block, side) for side in EXPLICIT})
    touched = hulls_of(effects(block), {})
    sides = (("reads", touched[READ]), ("writes", touched[WRITE]))
    return frozendict({side: tuple(_accessed(block, side, t)) for side, t in sides})


def _accessed(block: Block, side: str, touched: Mapping[Buffer, Hulls]) -> Iterator[BufferRegion]:
    stated = explicit_regions(block, side)
    for region in getattr(block, side):
        hulls = touched.get(region.buffer)
        if hulls is None or region in stated or uses_pointer(block, region.buffer):
            yield region
        else:
            (inside,) = boxes({region.buffer: hulls})
            known = zip(hulls, inside.region, region.region)
            yield BufferRegion(region.buffer, tuple(said if hull is None else r for hull, r, said in known))
