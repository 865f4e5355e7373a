"""Which instances of a block run that moves: those that access what the blocks under a loop access in one of its iterations,
under the conditions that go with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...analysis.block_regions import region_in
from ...analysis.dependence.domains import runs_whole_domain
from ...analysis.evaluation import may_fail
from ...analysis.index import BlockRef, LoopRef, loops_below
from ...arith import Analyzer
from ...arith.linear import in_terms_of, linear, uncast
from ...arith.regions import union
from ...buffer import Buffer, BufferRegion, Range
from ...dtype import DType
from ...expr import Expr, FloorDiv, IntImm, Var, all_of, conjuncts, const, floordiv, is_const
from ...stmt import For, IfThenElse, Stmt
from ...visit import free_vars, substitute, uses_var
from ..state import State


def accessed_box(
    loop: LoopRef,
    blocks: Sequence[BlockRef],
    buffer: Buffer,
    side: str,
    shared_by: tuple[str, ...] = (),
    idle: bool = False,
) -> tuple[Range, ...] | None:
    """The box of ``buffer`` that ``blocks`` access in one iteration of ``loop``; None if they do not. Loops around that
    are bound to axes of ``shared_by`` count with all their iterations. ``idle``: include threads under ``loop`` that
    conditions leave idle."""
    boxes = []
    for ref in blocks:
        parts = conjuncts(ref.node.predicate)
        left_out = idle_conditions(ref, loop) if idle else []
        condition = all_of([c for c in parts if not any(c is d for d in left_out)])
        loops, below = ref.loops(), loops_below(ref, loop)
        inner = {p.var: p.range for p in loops if p in below or p.node.thread in shared_by}
        box = region_in(inner, ref, buffer, side, predicate=condition)
        boxes += [] if box is None else [box]
    return union(boxes) if boxes else None


def idle_conditions(producer: BlockRef, loop: LoopRef) -> list[Expr]:
    """The conjuncts of the predicate of ``producer`` that leave threads under ``loop`` idle."""
    inner = loops_below(producer, loop)
    threads = {p.var for p in inner if p.node.thread}
    written = {v for region in producer.block.writes for axis in region.region for v in free_vars(axis)}
    where = [e for i, e in zip(producer.block.iter_vars, producer.node.iter_values) if i.var in written]
    others = {p.var for p in inner if not p.node.thread and any(uses_var(e, p.var) for e in where)}
    parts = conjuncts(producer.node.predicate)
    return [c for c in parts if uses_var(c, threads) and not uses_var(c, others)]


def solve_domains(
    block: BlockRef,
    regions: Sequence[BufferRegion],
    wanted: Mapping[Buffer, tuple[Range, ...] | None],
    steps: Collection[Var] = (),
    end: int = 0,
) -> dict[Var, Range]:
    """For each iterator of ``block``, the values for which its access overlaps the wanted boxes; absent: its domain.

    If a box moves with ``steps``, only the access's last element (``end`` 1) or first one (0) has to be in it.
    """
    found: dict[Var, list[Range]] = {}
    iters = {i.var for i in block.block.iter_vars}
    for region in regions:
        box = wanted.get(region.buffer)
        if box is None:
            continue
        for axis, want in zip(region.region, box):
            if steps and uses_var(want.min, steps):
                one = const(1, axis.min.dtype)
                axis = Range(axis.min + (axis.extent - 1) * end, one)
            solved = _solve_axis(axis, want, iters)
            if solved is not None:
                found.setdefault(solved[0], []).append(solved[1])
    return {var: _of_type(union([(r,) for r in ranges])[0], var.dtype) for var, ranges in found.items()}


def _of_type(values: Range, dtype: DType) -> Range:
    low, extent = (e if e.dtype is dtype else linear(e, uncast).build(dtype) for e in (values.min, values.extent))
    return Range(low, extent)


def _solve_axis(axis: Range, want: Range, iters: set[Var]) -> tuple[Var, Range] | None:
    """The values of v for which [a*v + b, a*v + b + w) overlaps ``want``; None if the access is not of that form."""
    parts = linear(axis.min, uncast).in_one(iters)
    if parts is None and isinstance(axis.min, FloorDiv) and isinstance(axis.min.b, IntImm) and is_const(axis.extent, 1):
        size = axis.min.b  # e // size is in a box where e is in one size times as large
        return _solve_axis(Range(axis.min.a, axis.extent), Range(want.min * size, want.extent * size), iters)
    if parts is None or not isinstance(axis.extent, IntImm):
        return None
    var, scale, offset = parts[0], parts[1], parts[2].build(axis.min.dtype)
    width, low = axis.extent.value, want.min - offset
    if scale == 1 and width == 1:
        return var, Range(low, want.extent)
    high = want.min + want.extent - 1 - offset
    if scale < 0:
        # [a*v, a*v + w) overlaps [low, high] where [-a*v - w + 1, -a*v] overlaps [-high, -low]
        zero = const(0, low.dtype)
        low, high, scale = zero - high + (width - 1), zero - low + (width - 1), -scale
    analyzer = Analyzer()
    first = analyzer.simplify(floordiv(low - (width - 1) + (scale - 1), const(scale, low.dtype)))
    last = analyzer.simplify(floordiv(high, const(scale, high.dtype)))
    return var, Range(first, analyzer.simplify(last - first + 1))


def with_own_conditions(state: State, block: BlockRef) -> tuple[State, BlockRef, Stmt]:
    """The program with every ``if`` around ``block`` alone as a part of its predicate, which moves with it; the block there;
    and the statement of ``state`` that was replaced (that of the block, if there is no such ``if``).

    An ``if`` stays where the block may change what it reads, and where it guards a bound or a binding that may fail.
    """
    shells = list[For | IfThenElse]()  # the statements that contain nothing but the block, nearest first
    for place in block.ancestors():
        if not isinstance(place.node, For) and not (
            isinstance(place.node, IfThenElse) and place.node.else_case is None
        ):
            break
        shells.append(place.node)
    while shells and isinstance(shells[-1], For):
        shells.pop()
    if not shells:
        return state, block, block.node
    conditions = [s.condition for s in reversed(shells) if isinstance(s, IfThenElse)]
    loops = [s for s in shells if isinstance(s, For)]
    guarded = [*block.node.iter_values, *(e for f in loops for e in (f.min, f.extent))]
    if any(map(may_fail, guarded)) or any(block.may_change(c, block.block) for c in conditions):
        return state, block, block.node
    inner: Stmt = block.node.replace(predicate=all_of([*conditions, block.node.predicate]))
    for f in loops:
        inner = f.replace(body=inner)
    moved = state.replace(shells[-1], inner)
    return moved, moved.find_block(block.name), shells[-1]


def about_iterators(block: BlockRef, values: Sequence[Expr]) -> list[Expr] | None:
    """The predicate of ``block`` in terms of other ``values`` of its iterators, since its loops are removed.

    Empty when the loops cover the iterator domains exactly. None when some part uses a loop that no iterator is bound
    to.
    """
    parts = conjuncts(block.node.predicate)
    if not parts or runs_whole_domain(block):
        return []
    own, domains = {p.var for p in block.loops()}, known(block)
    kept = [in_terms_of(c, block.bindings) if uses_var(c, own) else c for c in parts]
    if any(uses_var(c, own) for c in kept):
        return None
    now = dict(zip(block.bindings, values))
    return [substitute(c, now) for c in kept if not domains.can_prove(c)]


def known(block: BlockRef) -> Analyzer:
    analyzer = Analyzer()
    for iterator in block.block.iter_vars:
        analyzer.bind(iterator.var, iterator.dom)
    return analyzer
