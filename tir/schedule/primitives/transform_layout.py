"""Layouts of buffers and iteration domains: transform_layout, transform_block_layout, reorder_block_iter_var."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.block_regions import block_access_region
from ...analysis.dependence.domains import require_injective, runs_whole_domain
from ...analysis.index import BlockRef, LoopRef, index_of, statements, with_statements
from ...analysis.reduction_forms import threads_can_share
from ...analysis.users import by_address, regions_of, uses_pointer
from ...arith import Analyzer
from ...arith.divide import exact_quotient
from ...arith.index_map import IndexMap, typed_by_operands
from ...arith.itermap import detect_iter_map
from ...buffer import Buffer, BufferRegion, IterVar, Range, index_expr
from ...dtype import DType
from ...errors import ScheduleError, require, require_none
from ...expr import EQ, BufferLoad, Expr, IntImm, Ramp, Var, as_expr, cast, const, is_const
from ...function import PrimFunc
from ...node import frozendict
from ...op import call
from ...stmt import Block, BlockRealize, BufferStore, Evaluate, Stmt, nest
from ...visit import nodes_of, rewrite, substitute, uses_var
from ..invariants import Keeps, Kept
from ..primitive import BadArgument, primitive, require_same_meaning
from ..staged_copies import elementwise_block
from ..state import State
from .loops import require_perfect, require_plain
from .storage import pick_any, require_follows, require_no_view


def index_map_of(value: Any, ndim: int, index_dtype: str) -> IndexMap:
    """``value`` (an IndexMap or a function of indices) as an IndexMap; refuses one that does not fit."""
    if not (isinstance(value, IndexMap) or callable(value)):
        raise BadArgument(f"index_map is a function of the indices, or a tir.IndexMap, not {value!r}")
    try:
        made = IndexMap.of(value, ndim, index_dtype)
        for index in made.final_indices:
            index_expr(index)
        return _retyped(made, index_dtype)
    except ValueError as error:
        raise ScheduleError("{0}", error) from None
    except Exception as error:
        raise BadArgument(f"index_map does not compute indices: {type(error).__name__}: {error}") from error


def _retyped(index_map: IndexMap, dtype: str) -> IndexMap:
    """The map over indices of ``dtype``: one made with int32 indices serves a buffer indexed by int64."""
    old = {v: Var(v.name, DType(dtype)) for v in index_map.initial_indices if v.dtype != dtype}
    if not old:
        return index_map

    def visit(e: Any) -> Any:
        if isinstance(e, Var):
            return old.get(e)
        return const(e.value, dtype) if isinstance(e, IntImm) and e.dtype.is_int else typed_by_operands(e)

    variables = tuple(old.get(v, v) for v in index_map.initial_indices)
    finals = tuple(rewrite(e, visit) for e in index_map.final_indices)
    return index_map.replace(initial_indices=variables, final_indices=finals)


# ---------------------------------------------------------------- transform_layout


@dataclass(frozen=True)
class LayoutPlan:
    """The function after the step."""

    func: PrimFunc
    recorded: dict[str, Any]
    keeps: Kept


def _check_transform_layout(
    state: State,
    block: BlockRef,
    buffer: Any,
    index_map: IndexMap | Callable[..., Any],
    pad_value: Any = None,
    *,
    assume_injective_transform: bool = False,
) -> LayoutPlan:
    """Move every element ``[i, j, …]`` of a buffer to ``index_map(i, j, …)``, and rewrite every access in the function.

    ``buffer`` is a name, or ``("read" | "write", number)`` of the regions of ``block``. A parameter changes the
    function's interface: the caller passes the new layout. ``IndexMap.AXIS_SEPARATOR`` in the result of the map starts
    a new group of axes.

    Positions that no element maps to are undefined, and nothing reads them. With ``pad_value`` (a number, or a function
    of the new indices) a block after the last writer stores it there; for a buffer that nothing writes, the caller must
    have stored it, and an assumption is added that says so.

    Before, and after ``sch.transform_layout("H", ("write", 0), lambda i, j: (i // 4, j, i % 4))``::

        H = T.alloc_buffer((8, 8), "float32")
        for i, j in T.grid(8, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi, vj] + 1.0

        H = T.alloc_buffer((2, 8, 4), "float32")
        for i, j in T.grid(8, 8):
            with T.block("H"):
                vi, vj = T.axis.remap("SS", [i, j])
                H[vi // 4, vj, vi % 4] = A[vi, vj] * 2.0
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = H[vi // 4, vj, vi % 4] + 1.0

    Raises ``ScheduleError`` when the map is not injective (``assume_injective_transform`` skips this check), when an
    index can be negative, and when the buffer is also accessed through its pointer.
    """
    old = pick_any(block, buffer)
    dtype = old.shape[0].dtype if old.shape else DType("int32")
    made = index_map_of(index_map, old.ndim, dtype)
    require_no_view(state, old)
    require_follows(state, old)
    require(not old.strides, "buffer {0} has strides of its own; an index map needs a compact one", old.name)
    require(not uses_pointer(state.func.body, old),
            "buffer {0} is also used by its pointer or through another view, which would not follow", old.name)  # fmt: skip
    beyond = next((e for e in by_address(state.func.body, old) if not e.is_in_one_element), None)
    require(beyond is None,
            "`{0}` may access elements of {1} around the one whose address it has, which would be elsewhere",
            beyond.caller if beyond else "", old.name, nodes=[beyond.node] if beyond else [])  # fmt: skip
    domains = {v: Range(const(0, s.dtype), s) for v, s in zip(made.initial_indices, old.shape)}
    divides = bool(made.symbolic_divisors())
    if divides and old not in state.func.buffer_map.values():  # the caller passes the new layout of a parameter
        require_positive_divisors(state, old, made, old.shape)
    if not assume_injective_transform and not (divides and pad_value is not None):  # then a bijection, below
        rule = "two elements of buffer {0} would go to one place"
        require_injective(made.final_indices, domains, rule, old.name)
    try:
        shape = made.map_shape(old.shape) if pad_value is None else made.padded_shape(old.shape)
    except ValueError as error:
        raise ScheduleError("{0}", error) from None
    require(shape, "the index map gives no indices; a buffer needs at least one axis")
    new = old.replace(shape=shape, axis_separators=made.axis_separators)
    recorded: dict[str, Any] = {"index_map": made}
    func = _with_layout(state.func, old, new, made)
    if pad_value is not None:
        pad = _pad_map(pad_value, new)
        if callable(pad_value):
            recorded["pad_value"] = pad
        func = _padded(state, func, old, new, made, pad)
    # each element has a place of its own, and no other is used
    renamed = not assume_injective_transform and pad_value is None and _same_reductions(state.func, func, old)
    keeps = Keeps.ACCESSES | Keeps.KERNELS | Keeps.LOOPS
    return LayoutPlan(func, recorded, keeps if renamed else Keeps.NOTHING)


def require_positive_divisors(state: State, buffer: Buffer, index_map: IndexMap, extents: Sequence[Expr]) -> None:
    """Require that a map of indices below ``extents`` divides by positive sizes, or by factors of the extents, which the shape
    of ``buffer`` in the new layout does not divide by."""
    analyzer, extent_of = Analyzer(), dict(zip(index_map.initial_indices, extents))
    analyzer.assume_sizes(state.func.buffer_map.values())
    unknown = [
        d
        for v, d in index_map.symbolic_divisors()
        if exact_quotient(as_expr(extent_of[v], v.dtype), d) is None and not analyzer.can_prove(d > 0)
    ]
    rule = (
        "the index map divides by `{0}`, which is not known to be positive: the new shape of buffer {1} divides by it"
    )
    require_none(unknown, rule, buffer.name)


def _same_reductions(before: PrimFunc, after: PrimFunc, buffer: Buffer) -> bool:
    """Whether threads can share the reductions into ``buffer`` as before: one of several results has all of them at one place."""
    makers = [name for name, ref in index_of(before).blocks.items() if regions_of(ref.block.writes, buffer)]
    blocks = index_of(after).blocks
    shared = (name for name in makers if threads_can_share(index_of(before).blocks[name].block))
    return all(name in blocks and threads_can_share(blocks[name].block) for name in shared)


def _with_layout(func: PrimFunc, old: Buffer, new: Buffer, index_map: IndexMap) -> PrimFunc:
    """``func`` with each access to ``old`` going to its mapped place in ``new``."""
    analyzer = Analyzer()
    analyzer.bind_under(func.body)

    def move(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        require(not any(isinstance(i, Ramp) or i.dtype.lanes > 1 for i in indices),
                "buffer {0} is accessed by vectors; transform its layout before vectorizing", old.name)  # fmt: skip
        return index_map.map_indices(indices, analyzer)

    def visit(item: Any) -> Any:
        if item is old:
            return new
        if isinstance(item, BufferLoad) and item.buffer is new:
            return BufferLoad(new, move(item.indices))
        if isinstance(item, BufferStore) and item.buffer is new:
            return item.replace(indices=move(item.indices))
        if isinstance(item, Block) and any(r.buffer is new for r in (*item.reads, *item.writes)):
            return _with_moved_regions(item, new, index_map, analyzer)
        return None

    body = rewrite(func.body, visit)
    buffer_map = frozendict({p: new if b is old else b for p, b in func.buffer_map.items()})
    return func.replace(body=body, buffer_map=buffer_map)


def _with_moved_regions(block: Block, new: Buffer, index_map: IndexMap, analyzer: Analyzer) -> Block:
    """``block``, whose body is rewritten already, with its regions of ``new`` (still in old indices) recomputed."""
    inferred = dict(zip(("reads", "writes"), block_access_region(block)))
    changed = {}
    for side, found in inferred.items():
        regions: list[BufferRegion] = []
        fresh = [r for r in found if r.buffer is new]
        for region in getattr(block, side):
            if region.buffer is not new:
                regions.append(region)
            elif not fresh:
                regions.append(BufferRegion(new, index_map.map_ranges(region.region, analyzer)))
            elif fresh[0] not in regions:
                regions.extend(fresh)
        changed[side] = tuple(regions)
    return block.replace(**changed)


def _pad_map(pad_value: Any, new: Buffer) -> IndexMap:
    """The padding as a function of the indices of ``new``."""
    if isinstance(pad_value, IndexMap):
        return pad_value
    variables = tuple(Var(f"i{n}", s.dtype) for n, s in enumerate(new.shape))
    value: Any = pad_value
    if callable(pad_value):
        try:
            value = pad_value(*variables)
        except Exception as error:  # whatever the user's function raises
            raise BadArgument(f"pad_value takes the {new.ndim} indices of the new layout: {error}") from error
    values: list[Any] = list(value) if isinstance(value, (tuple, list)) else [value]
    try:
        (given,) = values
        made = cast(new.dtype, given) if isinstance(given, Expr) else as_expr(given, new.dtype)
    except (TypeError, ValueError) as error:
        raise BadArgument(
            f"`pad_value` is a number that {new.dtype} holds, or a function that gives one: {error}"
        ) from error
    return IndexMap(variables, (made,))


def _padded(state: State, func: PrimFunc, old: Buffer, new: Buffer, index_map: IndexMap, pad: IndexMap) -> PrimFunc:
    """``func`` with the padding stored after the last writer, or assumed at the start if there is none."""
    try:
        inverse, padding = index_map.non_surjective_inverse(old.shape)
    except ValueError as error:
        raise ScheduleError("cannot tell which places are padding: {0}", error) from None
    if is_const(padding, 0):
        return func
    before = State(state.mod, state.func_name)
    after = before.with_func(func)
    scope = _allocating(after, new)
    tops = statements(scope)
    last = max((n for n, stmt in enumerate(tops) if _stores(stmt, new)), default=-1)
    name = after.fresh_block_name(f"{new.name}_padding")
    stmt = _padding_block(name, new, pad, inverse.initial_indices, padding, assume=last < 0)
    tops.insert(last + 1, stmt)
    return after.replace(scope.block, scope.block.replace(body=with_statements(scope.block.body, tops))).func


def _allocating(state: State, buffer: Buffer) -> BlockRef:
    """The block that allocates ``buffer``; the root for a parameter."""
    refs = list(state.index.blocks.values())
    return next((r for r in refs if buffer in r.block.alloc_buffers), refs[0])


def _stores(stmt: Stmt, buffer: Buffer) -> bool:
    return any(isinstance(n, BufferStore) and n.buffer is buffer for n in nodes_of(stmt))


def _padding_block(name: str, new: Buffer, pad: IndexMap, places: Sequence[Var], padding: Expr, assume: bool) -> Stmt:
    box = new.full_region().region

    def body(point: tuple[Var, ...]) -> Stmt:
        (value,) = pad.map_indices(point)
        if assume:
            return Evaluate(call("assume", EQ(BufferLoad(new, point), value), dtype="bool"))
        return BufferStore(new, value, point)

    def where(values: tuple[Expr, ...]) -> Expr:
        return IndexMap(tuple(places), (padding,)).map_indices(values)[0]

    return elementwise_block(name, box, box, body, where)


@primitive(check=_check_transform_layout, group="memory")
def transform_layout(state: State, plan: LayoutPlan) -> State:
    return state.with_func(plan.func)


# ---------------------------------------------------------------- transform_block_layout


@dataclass(frozen=True)
class BlockLayoutPlan:
    old: Stmt
    new: Stmt
    recorded: dict[str, Any]


def _check_transform_block_layout(
    state: State, block: BlockRef, index_map: IndexMap | Callable[..., Any], *, unsafe: bool = False
) -> BlockLayoutPlan:
    """Give a block the iterators ``index_map(*iterators)``, with one loop for each.

    The map must be a bijection onto a box; an index of spatial iterators is spatial, of reduction iterators a
    reduction.

    Before, and after ``sch.transform_block_layout("B", lambda i, j: (i * 4 + j,))``::

        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

        for ax0 in range(32):
            with T.block("B"):
                v0 = T.axis.spatial(32, ax0)
                B[v0 // 4, v0 % 4] = A[v0 // 4, v0 % 4] * 2.0

    Raises ``ScheduleError`` when the map is not a bijection onto a box or mixes spatial and reduction iterators, when
    the loops around contain other statements or do not run the block once for each value of its iterators, or when the
    new order of iterations would violate a dependence.
    """
    require(block.scope is not None, "the root block has no iterators to transform")
    iters = block.block.iter_vars
    require(iters, "block {0} has no iterators", block, nodes=())
    made = index_map_of(index_map, len(iters), iters[0].var.dtype)
    loops = block.loops()
    for loop in loops:
        require_plain(loop, "transform_block_layout")
    require_perfect(loops, block, "loop {0} holds more than block {1}, whose loops are replaced")
    domains = {r.var: r.range for r in loops}
    require(runs_whole_domain(block) and detect_iter_map(block.node.iter_values, domains, block.node.predicate),
            "the loops around block {0} do not run it exactly once for each value of its iterators", block)  # fmt: skip
    extents = _extents_from_zero(block, loops)
    try:
        inverse = made.inverse(extents)
        shape = made.map_shape(extents)
    except ValueError as error:
        raise ScheduleError("{0}", error) from None
    kinds = [_kind_of(e, made, iters) for e in made.final_indices]
    new_loops = [(Var(f"ax{n}", s.dtype), s) for n, s in enumerate(shape)]
    new_iters = tuple(
        IterVar(Range(const(0, s.dtype), s), Var(f"v{n}", s.dtype), kind)
        for n, (s, kind) in enumerate(zip(shape, kinds))
    )
    target = loops[0].node if loops else block.node
    back = inverse.map_indices([v for v, _ in new_loops])
    same_block = BlockRealize(back, const(1, "bool"), block.block)
    require_same_meaning(state, state.replace(target, nest(new_loops, same_block)), unsafe)
    analyzer = Analyzer({i.var: i.dom for i in new_iters if i.dom is not None})
    found = inverse.map_indices([i.var for i in new_iters], analyzer)
    inside = {i.var: cast(str(i.var.dtype), e) for i, e in zip(iters, found)}
    body = _simplified(substitute(block.block.replace(iter_vars=()), inside), analyzer).replace(iter_vars=new_iters)
    realize = BlockRealize(tuple(v for v, _ in new_loops), const(1, "bool"), body)
    return BlockLayoutPlan(target, nest(new_loops, realize), {"index_map": made})


def _extents_from_zero(block: BlockRef, loops: Sequence[LoopRef]) -> list[Expr]:
    """How many values each iterator has, from 0 on; refuses other domains, and those that depend on ``loops``."""
    domains = [(i.var.name, i.dom) for i in block.block.iter_vars]
    late = [name for name, dom in domains if dom is None or not is_const(dom.min, 0)]
    require_none(late, "iterator {0} of block {1} does not start at 0", block)
    extents = [dom.extent for _, dom in domains]
    outer = [r for r in loops if any(uses_var(e, r.var) for e in extents)]
    rule = "the domain of an iterator of block {1} depends on loop {0}, which is replaced"
    require_none(outer, rule, block, nodes=[block.node])
    return extents


def _kind_of(index: Expr, index_map: IndexMap, iters: Sequence[IterVar]) -> str:
    kinds = {i.iter_type for v, i in zip(index_map.initial_indices, iters) if uses_var(index, v)}
    require(
        len(kinds) <= 1,
        "the index `{0}` mixes {1} iterators; an iterator is one kind",
        repr(index),
        " and ".join(sorted(kinds)),
        legal="an index of "
        + " or of ".join(
            f"{kind} iterators ({', '.join(names)})"
            for kind in ("spatial", "reduce", "opaque")
            if (names := [i.var.name for i in iters if i.iter_type == kind])
        )
        + "; rfactor makes a reduction loop spatial",
    )
    return kinds.pop() if kinds else "spatial"


def _simplified(block: Block, analyzer: Analyzer) -> Block:
    """``block`` with its indices and regions simplified."""
    analyzer.bind_under(block.body)

    def visit(item: Any) -> Any:
        if isinstance(item, BufferLoad):
            return item.replace(indices=tuple(map(analyzer.simplify_index, item.indices)))
        if isinstance(item, BufferStore):
            return item.replace(indices=tuple(map(analyzer.simplify_index, item.indices)))
        if isinstance(item, Range):
            return Range(analyzer.simplify_index(item.min), analyzer.simplify(item.extent))
        return None

    return rewrite(block, visit)


@primitive(check=_check_transform_block_layout)
def transform_block_layout(state: State, plan: BlockLayoutPlan) -> State:
    return state.replace(plan.old, plan.new)


# ---------------------------------------------------------------- reorder_block_iter_var


@primitive(keeps=Keeps.ACCESSES | Keeps.KERNELS | Keeps.LOOPS)
def reorder_block_iter_var(state: State, block: BlockRef, new_order: Sequence[int]) -> State:
    """Permute the iterators of a block; ``new_order[n]`` is the old position of the new ``n``-th iterator.

    The program computes the same; what changes is the meaning of positions (in ``tensorize`` or an index map).

    Before, and after ``sch.reorder_block_iter_var("B", [1, 0])``::

        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

        for i, j in T.grid(8, 4):
            with T.block("B"):
                vj, vi = T.axis.remap("SS", [j, i])
                B[vi, vj] = A[vi, vj] * 2.0

    Raises ``ScheduleError`` when ``new_order`` is not a permutation of the iterators.
    """
    count = len(block.block.iter_vars)
    order = tuple(int(n) for n in new_order)
    require(sorted(order) == list(range(count)),
            "{0} is not an order of the {1} iterators of block {2}",
            list(order), count, block, legal=f"a permutation of {list(range(count))}", nodes=())  # fmt: skip
    old = block.node
    made = old.block.replace(iter_vars=tuple(old.block.iter_vars[n] for n in order))
    return state.replace(old, old.replace(iter_values=tuple(old.iter_values[n] for n in order), block=made))
