"""Separating padding from the copy: decompose_padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...aliases import sharing
from ...analysis.block_regions import with_regions
from ...analysis.effects import effects
from ...analysis.index import BlockRef, LoopRef
from ...analysis.users import uses_pointer, writers
from ...arith import Analyzer
from ...arith.linear import linear
from ...buffer import IterVar, Range
from ...errors import require, require_none
from ...expr import GE, GT, LE, LT, BufferLoad, Call, Expr, Select, Var, all_of, conjuncts, const, constant
from ...script.printer import short_text
from ...stmt import SERIAL, UNROLLED, BufferStore, For, Stmt, in_loops
from ...visit import accesses, free_vars, has_load, refresh, rewrite, substitute, uses_var
from ..handles import BlockRV
from ..nests import insert_before
from ..primitive import primitive
from ..state import State, require_above
from .decompose_reduction import require_distinct_results


@dataclass(frozen=True)
class DecomposePaddingPlan:
    """The fill to put before ``loop``, and the replacement of the block (or of the loops from ``top`` inwards)."""

    block: BlockRef
    loop: LoopRef
    fill: Stmt
    name: str
    inside: Stmt
    top: Any


def _check_decompose_padding(
    state: State, block: BlockRef, loop: LoopRef, *, unsafe: bool = False
) -> DecomposePaddingPlan:
    """Decompose a block that pads: fill the entire output with the padding before ``loop``, then copy only the inside.

    The block stores ``T.if_then_else(inside, value, padding)`` (or ``T.Select``). The fill is a new block
    ``…_pad_const`` in copies of the loops from ``loop`` inwards; the block itself then runs only where the condition
    holds: over a smaller box if each conjunct bounds one iterator, otherwise under a predicate. Returns the fill block;
    the handle of the block then refers to the copy.

    Raises ``ScheduleError`` when the block is not of that form, when the condition always holds, when the padding reads memory, when two instances write
    one element, or when something else under ``loop`` uses the buffer and could tell: it may where the element alone says
    whether it is padding. ``unsafe=True`` skips the last two.

    Before, and after ``sch.decompose_padding("B", "i")``::

        for i in range(20):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                B[vi] = T.if_then_else(2 <= vi and vi < 18, A[vi - 2], 0.0)

        for i in range(20):
            with T.block("B_pad_const"):
                vi = T.axis.spatial(20, i)
                B[vi] = 0.0
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi + 2] = A[vi]
    """
    body = block.block
    store = body.body
    require(body.init is None and isinstance(store, BufferStore) and not body.match_buffers and not body.alloc_buffers,
            "block {0} is more than one store of a padded value",
            block, legal="a block that stores T.if_then_else(inside, value, padding)")  # fmt: skip
    assert isinstance(store, BufferStore)
    condition, value, padding = _padded(store.value)
    require(condition is not None,
            "block {0} does not store T.if_then_else(inside, value, padding), but `{1}`",
            block, lambda: short_text(store.value), legal="a block that stores T.if_then_else(inside, value, padding)")  # fmt: skip
    assert condition is not None and value is not None and padding is not None
    analyzer = Analyzer()
    for iterator in body.iter_vars:
        analyzer.bind(iterator.var, iterator.dom)
    require(not analyzer.can_prove(condition),
            "the condition `{0}` of block {1} always holds: nothing is padded", lambda: short_text(condition), block)  # fmt: skip
    require(not any(True for _ in accesses(padding)),
            "the padding `{0}` of block {1} reads memory",
            lambda: short_text(padding), block, legal="a padding that is computed from constants and iterators")  # fmt: skip
    require(
        all(i.iter_type == "spatial" for i in body.iter_vars), "block {0} has an iterator that is not spatial", block
    )
    require_above(state, loop, block)
    if not unsafe:
        _require_fill_first(state, block, loop, store, condition, value, padding)
        require_distinct_results(block, loop)
    name = state.fresh_block_name(body.name + "_pad_const")
    fill = _fill(block, loop, store.replace(value=padding), name)
    top, inside = _shrunk(block, loop, store.replace(value=value), condition)
    return DecomposePaddingPlan(block, loop, fill, name, inside, top)


def _padded(value: Expr) -> tuple[Expr | None, Expr | None, Expr | None]:
    if isinstance(value, Call) and value.op == "if_then_else":
        condition, inside, padding = value.args
        return condition, inside, padding
    if isinstance(value, Select):
        return value.condition, value.true_value, value.false_value
    return None, None, None


def _pads_for_good(block: BlockRef, loop: LoopRef, store: BufferStore, condition: Expr, padding: Expr) -> bool:
    """Whether an element, once it is padding, stays it: the block alone writes the buffer, memory of this function, and the
    element decides whether it is padding, and which. It may then be filled before anything reads it."""
    scope = block.scope
    own = {i for i in store.indices if isinstance(i, Var)}
    inner = block.loops()[block.loops().index(loop) :]
    return (
        scope is not None
        and any(b is store.buffer for b in scope.block.alloc_buffers)
        and writers(scope, store.buffer) == [block]
        and not any(uses_pointer(child.node, store.buffer) for child in scope.children)
        and len(own) == len(store.indices)
        and all(own.issuperset(free_vars(e)) and not has_load(e) for e in (condition, padding))
        and all(p.node.kind in (SERIAL, UNROLLED) for p in inner)
    )


def _inner_loops(block: BlockRef, users: list[BlockRef]) -> list[str]:
    """Loops above ``block`` that contain none of ``users``."""
    return [ref.name for ref in block.loops() if not any(ref in u.ancestors() for u in users)]


def _fill(block: BlockRef, loop: LoopRef, store: BufferStore, name: str) -> Stmt:
    body = with_regions(block.block.replace(name=name, body=store))
    loops = block.loops()
    return refresh(in_loops((ref.node for ref in loops[loops.index(loop) :]), block.node.replace(block=body)))


def _shrunk(block: BlockRef, loop: LoopRef, store: BufferStore, condition: Expr) -> tuple[Any, Stmt]:
    """What to replace, by what: the nest from ``loop`` inwards over a smaller box, or the block under a predicate."""
    body = block.block
    box = _box(block, loop, condition)
    if box is None:
        values = block.bindings
        inner = with_regions(body.replace(body=store))
        guard = [*conjuncts(block.node.predicate), *(substitute(c, values) for c in conjuncts(condition))]
        return block.node, block.node.replace(predicate=all_of(guard), block=inner)
    analyzer = Analyzer()
    iters: list[IterVar] = []
    shift: dict[Var, Expr] = {}
    extents: dict[Any, tuple[int, int]] = {}
    for i, v in zip(body.iter_vars, block.node.iter_values):
        if i.var not in box:
            iters.append(i)
            continue
        low, size = box[i.var]
        dtype = i.var.dtype
        dom = Range(const(0, dtype), const(size, dtype))
        analyzer.bind(i.var, dom)
        iters.append(i.replace(dom=dom))
        shift[i.var] = i.var + const(low, dtype)
        extents[v] = (low, size)

    def simplified(item: Any) -> Any:
        if isinstance(item, BufferLoad):
            return BufferLoad(item.buffer, tuple(analyzer.simplify(e) for e in item.indices))
        return None

    shifted = rewrite(substitute(store, shift), simplified)
    shifted = shifted.replace(indices=tuple(analyzer.simplify(e) for e in shifted.indices))
    inner = with_regions(body.replace(iter_vars=tuple(iters), body=shifted))
    stmt: Stmt = block.node.replace(block=inner)
    loops = block.loops()
    for ref in reversed(loops[loops.index(loop) :]):
        node: For = ref.node
        if ref.var in extents:
            dtype = ref.var.dtype
            node = node.replace(min=const(0, dtype), extent=const(extents[ref.var][1], dtype))
        stmt = node.replace(body=stmt)
    return loop.node, stmt


def _require_fill_first(
    state: State, block: BlockRef, loop: LoopRef, store: BufferStore, condition: Expr, value: Expr, padding: Expr
) -> None:
    """Refuse a fill before ``loop`` where the block, or another one under the loop, would find it too early."""
    users = [p for p in state.index.blocks_below(loop) if p is not block and effects(p.node).of(store.buffer)]
    if users and not _pads_for_good(block, loop, store, condition, padding):
        rule = "block {0} under loop {1} uses {2}: the fill would come between"
        require_none(users, rule, loop, store.buffer.name, legal=_inner_loops(block, users))
    require(not sharing([*accesses(value), *accesses(condition)], store.buffer),
            "block {0} reads {1}, which the fill would overwrite first", block, store.buffer.name)  # fmt: skip


def _box(block: BlockRef, loop: LoopRef, condition: Expr) -> dict[Var, tuple[int, int]] | None:
    """First value and count of the iterators that ``condition`` bounds; None if it does not describe a box.

    Each bounded iterator must be a loop of constant range from ``loop`` inwards that binds nothing else, and the block
    must be alone in the nest, so that a shorter loop omits exactly the instances that the condition excludes.
    """
    loops = block.loops()
    inner = loops[loops.index(loop) :]
    alone = all(a.node.body is b.node for a, b in zip(inner, [*inner[1:], block]))
    if not alone or conjuncts(block.node.predicate):
        return None
    values = block.bindings
    found: dict[Var, tuple[int, int]] = {}
    for part in conjuncts(condition):
        bound = _bound(part, values)
        count = None if bound is None else _own_count(inner, values, bound[0])
        if bound is None or count is None:
            return None
        var, low, high = bound
        first, last = found.get(var, (0, count))
        last = first + last if var in found else last
        first = first if low is None else max(first, low)
        last = last if high is None else min(last, high + 1)
        found[var] = (first, last - first)
    return found if all(size > 0 for _, size in found.values()) else None


def _own_count(inner: Sequence[LoopRef], values: Mapping[Var, Expr], var: Var) -> int | None:
    """The iterations of the loop among ``inner`` that is bound to iterator ``var`` and nothing else; None if it is none of
    a constant number, from 0 on."""
    ref = next((r for r in inner if r.var is values[var]), None)
    if ref is None or constant(ref.node.min) != 0 or any(uses_var(r.node.extent, ref.var) for r in inner):
        return None
    uses = [v for v in values.values() if uses_var(v, ref.var)]
    return constant(ref.node.extent) if len(uses) == 1 else None


def _bound(part: Expr, variables: Any) -> tuple[Var, int | None, int | None] | None:
    """A comparison as a variable with its least and greatest allowed value (None: unbounded on that side)."""
    if not isinstance(part, (LT, LE, GT, GE)):
        return None
    # a - b as scale * v + offset: both sides of a comparison may hold the variable
    form = linear(part.a).minus(linear(part.b)).in_one(variables)
    if form is None or form[1] not in (1, -1):
        return None
    var, scale, rest = form
    if not rest.is_const:
        return None
    offset = rest.const
    strict = 1 if isinstance(part, (LT, GT)) else 0
    above = isinstance(part, (GT, GE))
    limit = -offset if scale == 1 else offset
    # scale * v + offset >= strict (above) or <= -strict
    if above == (scale == 1):
        return var, limit + strict, None
    return var, None, limit - strict


@primitive(check=_check_decompose_padding, group="tile")
def decompose_padding(state: State, plan: DecomposePaddingPlan) -> tuple[State, BlockRV]:
    changed = state.replace(plan.top, plan.inside)
    after = insert_before(changed, changed.index.loops[plan.loop.var], plan.fill)
    return after, after.block_rv(plan.name)
