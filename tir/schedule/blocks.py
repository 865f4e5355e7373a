"""What several primitives do with blocks and loops: fresh copies, nests, where buffers are read and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..analysis.dependence.domains import runs_whole_domain
from ..analysis.index import BlockRef, Place
from ..analysis.structure import _like
from ..buffer import Buffer, BufferRegion, IterVar, Range
from ..errors import require
from ..expr import GE, GT, LE, LT, TRUE, BufferLoad, Expr, Var, cast, conjuncts, const
from ..stmt import (
    SERIAL,
    Block,
    BlockRealize,
    BufferStore,
    For,
    Stmt,
    seq,
)
from ..visit import rewrite, substitute, uses_var, walk
from .state import State


def nest(loops: Sequence[tuple[Var, Expr]], body: Stmt) -> Stmt:
    """Serial loops from zero, outermost first, around ``body``."""
    for var, extent in reversed(loops):
        body = For(var, const(0, var.dtype), extent, SERIAL, body)
    return body


def replace_buffer(
    stmt: Any, old: Buffer, new: Buffer, index: Callable[[tuple[Expr, ...]], tuple[Expr, ...]] | None = None
) -> Any:
    """``stmt`` with every access to ``old`` going to ``new``; ``index`` maps its indices."""
    remap = index or (lambda indices: indices)

    def region(item: BufferRegion) -> BufferRegion:
        if index is None:
            return BufferRegion(new, item.region)
        mins = remap(tuple(r.min for r in item.region))
        return BufferRegion(new, tuple(Range(m, r.extent) for m, r in zip(mins, item.region)))

    def visit(item: Any) -> Any:
        if isinstance(item, BufferLoad) and item.buffer is old:
            return BufferLoad(new, remap(item.indices))
        if isinstance(item, BufferStore) and item.buffer is old:
            return item.replace(buffer=new, indices=remap(item.indices))
        if isinstance(item, BufferRegion) and item.buffer is old:
            return region(item)
        if isinstance(item, Var) and item is old.data:
            return new.data
        return None

    return rewrite(stmt, visit)


def scope_of(state: State, place: Place) -> BlockRef:
    """The block that encloses ``place``. Raises ``ScheduleError`` where there is none (a program without blocks)."""
    require(place.scope is not None, "`{0}` is the root block: there is nothing around it", getattr(place, "name", "?"))
    assert place.scope is not None
    return place.scope


def copy_block(
    name: str,
    source: Buffer,
    target: Buffer,
    region: Sequence[Range],
    *,
    source_index: Callable[[tuple[Expr, ...]], tuple[Expr, ...]] | None = None,
    target_index: Callable[[tuple[Expr, ...]], tuple[Expr, ...]] | None = None,
    taken: Callable[[str], str] = lambda name: name,
) -> Stmt:
    """Loops ``ax0``, ``ax1`` … over ``region`` around a block that copies ``source`` to ``target``."""
    loops: list[tuple[Var, Expr]] = []
    iters: list[IterVar] = []
    values: list[Expr] = []
    names: set[str] = set()
    for axis, bounds in enumerate(region):
        size = source.shape[axis]
        dtype = bounds.extent.dtype if bounds.extent.dtype.bits > size.dtype.bits else size.dtype
        label = taken(f"ax{axis}")
        names.add(label)
        loop = Var(label, dtype)
        loops.append((loop, cast(dtype, bounds.extent)))
        iters.append(IterVar(Range(const(0, dtype), cast(dtype, size)), Var(f"v{axis}", dtype)))
        values.append(cast(dtype, bounds.min) + loop)
    point = tuple(i.var for i in iters)
    from_ = source_index(point) if source_index else point
    to = target_index(point) if target_index else point
    body = BufferStore(target, BufferLoad(source, from_), to)
    block = Block(tuple(iters), (unit_region(source, from_),), (unit_region(target, to),), name, body)
    return nest(loops, BlockRealize(tuple(values), TRUE, block))


def unit_region(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    """The one element at ``indices``."""
    return BufferRegion(buffer, tuple(Range(i, const(1, i.dtype)) for i in indices))


def insert_before(state: State, place: Place, stmt: Stmt, *, after: bool = False) -> State:
    """The snapshot with ``stmt`` just before (or after) the statement at ``place``."""
    pair = [place.node, stmt] if after else [stmt, place.node]
    return state.replace(place.node, seq(pair))


def add_alloc(block: Block, *buffers: Buffer) -> Block:
    return block.replace(alloc_buffers=(*block.alloc_buffers, *buffers))


def about_iterators(block: BlockRef, values: Sequence[Expr]) -> list[Expr] | None:
    """The condition of ``block`` said of other ``values`` of its iterators: it speaks of loops that go away.

    Nothing when the loops run every iterator value anyway. None when some part of it is about a loop that is not the
    value of an iterator.
    """
    from ..arith import Analyzer
    from ..equal import structural_equal

    parts = conjuncts(block.node.predicate)
    if not parts or runs_whole_domain(block):
        return []
    kept = []
    own = {p.var for p in block.loops()}
    for condition in parts:
        if not uses_var(condition, own):
            kept.append(condition)
            continue
        matched = None
        if isinstance(condition, (LT, LE, GT, GE)) and not uses_var(condition.b, own):
            matched = next(
                (
                    n
                    for n, v in enumerate(block.node.iter_values)
                    if structural_equal(v, condition.a, map_free_vars=False)
                ),
                None,
            )
        if matched is None:  # about several: said again where each of its loops is the value of an iterator
            said = {v: values[n] for n, v in enumerate(block.node.iter_values) if isinstance(v, Var) and v in own}
            if any(v in own and v not in said for v in walk(condition)):
                return None
            kept.append(substitute(condition, said))
            continue
        assert isinstance(condition, (LT, LE, GT, GE))
        iterator = block.block.iter_vars[matched]
        analyzer = Analyzer()
        analyzer.bind(iterator.var, iterator.dom)
        if not analyzer.can_prove(_like(condition)(iterator.var, condition.b)):
            kept.append(_like(condition)(values[matched], condition.b))
    return kept


def pick_buffer(block: BlockRef, side: str, which: int | str) -> Buffer:
    """The buffer of a region that ``block`` reads or writes (``side``), by number, name or object."""
    regions = getattr(block.block, side)
    buffers = list(dict.fromkeys(r.buffer for r in regions))
    verb = "reads" if side == "reads" else "writes"
    if isinstance(which, str):
        named = [b for b in buffers if b.name == which]
        require(
            named, "block {0} does not {1} a buffer `{2}`", block, verb[:-1], which, legal=[b.name for b in buffers]
        )
        return named[0]
    if isinstance(which, Buffer):
        require(which in buffers, "block {0} does not {1} buffer `{2}`", block, verb[:-1], which.name)
        return which
    require(
        0 <= which < len(regions),
        "block {0} {1} {2} regions, so there is no number {3}",
        block, verb, len(regions), which, legal=[f"{n} ({r.buffer.name})" for n, r in enumerate(regions)],
    )  # fmt: skip
    return regions[which].buffer
