"""Folding overlapping windows into a circular buffer: rolling_buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...analysis.block_regions import block_access_region
from ...analysis.dependence.equivalence import check_whole
from ...analysis.dependence.live_values import Undisturbed
from ...analysis.dependence.reduction_summary import collapse_reductions
from ...analysis.dependence.tiers import require_legal
from ...analysis.index import BlockRef, LoopRef
from ...analysis.users import readers, regions_of, uses_pointer, writers
from ...arith import Analyzer
from ...arith.linear import linear, uncast
from ...arith.regions import relax
from ...buffer import Buffer, BufferRegion, Range
from ...errors import first_legal, require, require_none
from ...expr import EQ, Expr, FloorDiv, IntImm, Var, all_of, conjuncts, const, floordiv, floormod, is_const, logical_or
from ...poly import Relation
from ...script.printer import short_text
from ...stmt import SERIAL, UNROLLED, Block
from ...visit import rewrite, substitute, uses_var
from ..nests import without_names
from ..primitive import primitive
from ..staged_copies import redirect_all
from ..state import State, pick_buffer, scope_of


@dataclass(frozen=True)
class Roll:
    """How the window, ``size`` long, moves along ``axis`` with the iterations of nested ``loops``.

    ``first`` holds in the first iteration, ``new`` for elements that the previous iteration did not compute.
    """

    axis: int
    loops: tuple[LoopRef, ...]
    size: int
    first: Expr
    new: Expr


@primitive(prepared_by=("compute_at",), group="memory")
def rolling_buffer(
    state: State, block: BlockRef, write_buffer_index: int | str | Buffer, *, unsafe: bool = False
) -> State:
    """Turn a window that is recomputed in every iteration into a circular buffer that keeps the overlap.

    ``block`` computes a window of a buffer under a loop (``compute_at`` puts it there), and the next iteration's window
    overlaps it. The buffer's axis shrinks to the size of the window, indices are taken modulo that size, and ``block``
    runs only for elements that the previous iteration did not compute. If several axes move, the one of the outermost
    loop is folded; no element is computed twice. ``write_buffer_index`` is the number of a region that ``block``
    writes, or names the buffer.

    Raises ``ScheduleError`` when no window overlaps the next, when the buffer outlives its block or has another writer,
    when the loop is not serial, or when an element would be overwritten before it is read (with the instances).
    ``unsafe=True`` skips the last check.

    Before, and after ``sch.rolling_buffer("B", 0)``::

        B = T.alloc_buffer((10, 8), "float32")
        for i in range(8):
            for ax0, ax1 in T.grid(3, 8):
                with T.block("B"):
                    vi = T.axis.spatial(10, i + ax0)
                    vj = T.axis.spatial(8, ax1)
                    B[vi, vj] = A[vi, vj] * 2.0
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] + B[vi + 2, vj]

        B = T.alloc_buffer((3, 8), "float32")
        for i in range(8):
            for ax0, ax1 in T.grid(3, 8):
                with T.block("B"):
                    vi = T.axis.opaque(10, i + ax0)
                    vj = T.axis.spatial(8, ax1)
                    T.where(i < 1 or ax0 >= 2)
                    B[vi % 3, vj] = A[vi, vj] * 2.0
            for j in range(8):
                with T.block("C"):
                    vi = T.axis.opaque(8, i)
                    vj = T.axis.spatial(8, j)
                    C[vi, vj] = B[vi % 3, vj] + B[(vi + 2) % 3, vj]
    """
    scope = scope_of(block)
    buffer = pick_buffer(block, "writes", write_buffer_index)
    require(any(b is buffer for b in scope.block.alloc_buffers),
            "buffer {0} is not allocated by block {1} around {2}: others may look at all of it",
            buffer.name, scope, block, nodes=[block.node], legal=[b.name for b in scope.block.alloc_buffers])  # fmt: skip
    makers = [w for w in writers(scope, buffer) if w is not block]
    require_none(makers, "block {0} writes {1} too", buffer.name)
    users = [r for r in readers(scope, buffer) if r is not block]
    require(users, "nothing reads buffer {0}", buffer.name, nodes=[block.node])
    by_pointer = [user for user in (block, *users) if uses_pointer(user.node, buffer)]
    require_none(by_pointer, "block {0} uses the pointer of buffer {1}", buffer.name)
    common = [p for p in block.loops() if all(p in u.ancestors() for u in users)]
    require(common, "block {0} and those that read {1} share no loop", block, buffer.name, legal="compute_at first")
    rolls = _rolls(block, buffer, common)
    late = [p for roll in rolls for p in roll.loops if p.node.kind not in (SERIAL, UNROLLED)]
    rule = "loop {0} is {1}: its iterations cannot use what the one before made"
    require_none([] if unsafe else late, rule, lambda p: p.node.kind)
    tries = [rolls, *([roll] for roll in rolls if len(rolls) > 1)]
    return first_legal(partial(_rolled, state, scope, block, users, buffer, some, unsafe) for some in tries)


def _rolls(block: BlockRef, buffer: Buffer, common: Sequence[LoopRef]) -> list[Roll]:
    """The axes whose window overlaps the next one, outermost loop first."""
    (region, *more) = regions_of(block.block.writes, buffer)
    values = block.bindings
    inner = {p.var: p.range for p in block.loops() if p not in common}
    analyzer = block.analyzer()
    found: list[Roll] = []
    reasons: list[str] = []
    for axis, written in enumerate(region.region):
        index = _without_casts_of_sums(substitute(written.min, values), analyzer)
        why = "several regions are written" if more else "a box is written at once"
        roll = None
        if not more and is_const(written.extent, 1):
            window = relax([Range(index, const(1, index.dtype))], inner)
            why = "its window is not of one size"
            if window is not None and isinstance(window[0].extent, IntImm):
                roll, why = _roll(axis, index, window[0], common, analyzer)
        if roll is not None:
            found.append(roll)
        else:
            reasons.append(f"axis {axis} of {buffer.name}, `{short_text(index)}`: {why}")
    require(found,
            "no window of {0} that block {1} makes overlaps the one of the next iteration",
            buffer.name, block, witness=reasons)  # fmt: skip
    order = {p.var: n for n, p in enumerate(common)}
    return sorted(found, key=lambda roll: order[roll.loops[0].var])


def _roll(
    axis: int, index: Expr, window: Range, common: Sequence[LoopRef], analyzer: Analyzer
) -> tuple[Roll | None, str]:
    """How ``window`` moves, or why it cannot be rolled. Contiguous steps of nested loops count as one."""
    assert isinstance(window.extent, IntImm)
    size = window.extent.value
    moving = [p for p in common if uses_var(window.min, p.var)]
    if not moving:
        return None, "no loop moves it"
    chain: list[LoopRef] = []
    step = reach = 0
    for loop in reversed(moving):
        here = substitute(window.min, {loop.var: loop.var + 1})
        stride = _without_casts_of_sums(here - window.min, analyzer)
        if not isinstance(stride, IntImm):
            break
        if not chain:
            if not 0 < stride.value < size:
                how = "backwards" if stride.value < 0 else f"by {stride.value}, and it is {size} long"
                return None, f"loop {loop.name} moves it {how}"
            step, chain = stride.value, [loop]
        elif stride.value == reach:
            chain.insert(0, loop)
        else:
            break
        extent = chain[0].node.extent
        if not isinstance(extent, IntImm):
            break
        reach = stride.value * extent.value
    if not chain:
        roll = _unevenly(axis, index, window, moving[-1], analyzer)
        return roll, f"loop {moving[-1].name} moves it by a distance that is not constant, or may be {size} or more"
    start = substitute(window.min, {p.var: p.node.min for p in chain})
    moved = analyzer.simplify(window.min - start)
    first = analyzer.simplify(floordiv(moved, const(step, moved.dtype)) < 1)
    new = analyzer.simplify(index - window.min) >= const(size - step, index.dtype)
    return Roll(axis, tuple(chain), size, first, new), ""


def _without_casts_of_sums(e: Expr, analyzer: Analyzer) -> Expr:
    """``e`` simplified, in which only the terms of a sum are cast to another type of indices."""
    return analyzer.simplify(linear(analyzer.simplify(e), uncast).build(e.dtype))


def _unevenly(axis: int, index: Expr, window: Range, loop: LoopRef, analyzer: Analyzer) -> Roll | None:
    """A window that moves forward by less than its size, but not evenly (by 2, 3, 2, 3 …)."""
    assert isinstance(window.extent, IntImm)
    least, most = _step_bounds(window.min, loop.var)
    if least < 0 or most >= window.extent.value:
        return None
    before = substitute(window.min, {loop.var: loop.var - 1})
    new = analyzer.simplify(index >= before + window.extent)
    return Roll(axis, (loop,), window.extent.value, EQ(loop.var, loop.node.min), new)


def _step_bounds(start: Expr, var: Var) -> tuple[int, int]:
    """The least and the greatest distance by which ``start`` moves as ``var`` grows by one; (-1, -1) if unknown."""
    least = most = 0
    for (term, *more), coefficient in linear(start).items():
        if not any(uses_var(factor, var) for factor in (term, *more)):
            continue
        inner, divisor = term.children() if isinstance(term, FloorDiv) else (term, const(1))
        moved = Analyzer().simplify(substitute(inner, {var: var + 1}) - inner)
        if more or not isinstance(moved, IntImm) or not isinstance(divisor, IntImm) or divisor.value <= 0:
            return -1, -1
        ends = coefficient * (moved.value // divisor.value), coefficient * -(-moved.value // divisor.value)
        least, most = least + min(ends), most + max(ends)
    return least, most


def _rolled(
    state: State,
    scope: BlockRef,
    block: BlockRef,
    users: Sequence[BlockRef],
    buffer: Buffer,
    rolls: Sequence[Roll],
    unsafe: bool,
) -> State:
    kept = [logical_or(roll.first, roll.new) for roll in rolls]
    guarded = block.node.replace(predicate=all_of([*conjuncts(block.node.predicate), *kept]))
    once = state.replace(block.node, guarded)
    axis, size = rolls[0].axis, rolls[0].size
    if not unsafe:
        # From the new program back to the old one, elements are recomputed: legal only if the values are the same.
        verdict = check_whole(collapse_reductions(once.func), collapse_reductions(state.func))
        why = f"without making elements of `{buffer.name}` again"
        require_legal(verdict, state.func, nodes=[block.node], why=why)
        _require_there(once, block, buffer, axis, size)
    return _folded(once, scope, [block.name, *(u.name for u in users)], buffer, axis, size)


def _require_there(once: State, block: BlockRef, buffer: Buffer, axis: int, size: int) -> None:
    """Raise ``ScheduleError`` if an element would be overwritten by another and read after that."""
    rule = f"an element of `{buffer.name}` would be gone before it is read: of axis {axis} only {size} are kept"
    others = Relation.shifted_by_multiples(buffer.ndim, axis, size)
    question = Undisturbed(once.func, buffer, buffer, others, rule)
    require_legal(question.answer(), once.func, nodes=[block.node])


def _folded(state: State, scope: BlockRef, names: Sequence[str], buffer: Buffer, axis: int, size: int) -> State:
    """The program with ``buffer`` ``size`` long along ``axis``, every index there modulo that."""
    shape = [const(size, s.dtype) if n == axis else s for n, s in enumerate(buffer.shape)]
    small = buffer.replace(shape=tuple(shape), data=buffer.data.replace(), strides=())

    def turned(indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(floormod(i, const(size, i.dtype)) if n == axis else i for n, i in enumerate(indices))

    def box(region: BufferRegion) -> BufferRegion:
        whole = Range(const(0, shape[axis].dtype), shape[axis])
        ranges = [r if n != axis or is_const(r.extent, 1) else whole for n, r in enumerate(region.region)]
        mins = turned([r.min for r in ranges])
        return BufferRegion(small, tuple(r if r is whole else Range(m, r.extent) for m, r in zip(mins, ranges)))

    def visit(item: Any) -> Any:
        return _with_ordered_iterators(item, small, axis) if isinstance(item, Block) and item.name in names else None

    root = state.index.blocks[scope.name].block
    allocated = tuple(small if b is buffer else b for b in root.alloc_buffers)
    body = rewrite(redirect_all(without_names(root.body, buffer), buffer, small, index=turned, region=box), visit)
    return state.replace(root, root.replace(body=body, alloc_buffers=allocated))


def _with_ordered_iterators(block: Block, small: Buffer, axis: int) -> Block:
    """``block``, whose spatial iterators that go round no longer say that any order will do."""
    round_: set[Var] = set()
    reads, writes = block_access_region(block)
    for region in (*block.reads, *block.writes, *reads, *writes):
        if region.buffer is small:
            round_ |= {i.var for i in block.iter_vars if uses_var(region.region[axis], i.var)}
    iters = tuple(
        i.replace(iter_type="opaque") if i.var in round_ and i.iter_type == "spatial" else i for i in block.iter_vars
    )
    return block.replace(iter_vars=iters)
