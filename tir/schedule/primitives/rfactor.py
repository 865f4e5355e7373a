"""rfactor: partial reductions along one loop, then a reduction of the partial results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...analysis.access import block_access_region
from ...arith import Analyzer
from ...buffer import Buffer, IterVar, Range, decl_buffer
from ...dtype import DType
from ...equal import structural_equal
from ...errors import require
from ...expr import Add, And, BufferLoad, Expr, FloatImm, Max, Min, Mul, Or, Sub, Var, all_of, const
from ...script.printer import short_text
from ...stmt import SERIAL, Block, BlockRealize, BufferStore, For, Stmt, seq
from ...visit import accesses, substitute, uses_var, walk
from ..blocks import add_alloc, conjuncts, refresh, scope_of
from ..handles import BlockRV
from ..primitive import primitive
from ..state import BlockRef, LoopRef, State

COMMUTATIVE = (Add, Mul, Min, Max, And, Or)


@dataclass(frozen=True)
class Reducer:
    """``store.value`` is ``op(target, term)``, in either order unless ``op`` is Sub.

    ``identity`` starts a partial result; ``combine`` adds partial results up.
    """

    op: Any
    identity: Expr
    term: Expr
    store: BufferStore

    def update(self, target: Expr) -> Expr:
        return self.op(target, self.term)

    def combine(self, a: Expr, b: Expr) -> Expr:
        return Add(a, b) if self.op is Sub else self.op(a, b)


def reducer_of(block: BlockRef) -> Reducer:
    """The commutative reducer of a block of one update store, whatever it starts from.

    Raises ``ScheduleError`` when the block is not of that form.
    """
    body, init = block.block.body, block.block.init
    require(
        isinstance(body, BufferStore) and (init is None or isinstance(init, BufferStore)),
        "block {0} is not a reduction of one store", block, nodes=[block.node],
    )  # fmt: skip
    assert isinstance(body, BufferStore)
    value = body.value
    require(
        type(value) in (*COMMUTATIVE, Sub),
        "block {0} does not update by a commutative operation (+, -, *, min, max, and, or)", block, nodes=[block.node],
    )  # fmt: skip
    sides = [value.a, value.b]  # type: ignore[attr-defined]
    own = [n for n, side in enumerate(sides) if _is_target(side, body)]
    require(
        len(own) == 1 and not (type(value) is Sub and own[0] == 1),
        "the update of block {0} is not `x = x op term`", block, nodes=[block.node],
    )  # fmt: skip
    term = sides[1 - own[0]]
    require(
        not any(a.buffer is body.buffer for a in accesses(term)),
        "the term that block {0} adds reads the result itself", block, nodes=[block.node],
    )  # fmt: skip
    return Reducer(type(value), _identity(type(value), body.buffer.dtype), term, body)


def _identity(op: Any, dtype: DType) -> Expr:
    """What ``op`` leaves anything unchanged with."""
    if op in (Add, Sub, Or):
        return const(0, dtype)
    if op in (Mul, And):
        return const(1, dtype)
    if dtype.is_float:
        return FloatImm(float("-inf" if op is Max else "inf"), dtype)
    return const(dtype.min_value if op is Max else dtype.max_value, dtype)


def _is_target(e: Expr, store: BufferStore) -> bool:
    return (
        isinstance(e, BufferLoad)
        and e.buffer is store.buffer
        and all(structural_equal(a, b, map_free_vars=False) for a, b in zip(e.indices, store.indices))
    )


@dataclass(frozen=True)
class RfactorPlan:
    block: BlockRef
    loop: LoopRef
    reducer: Reducer
    axis: int
    started: tuple[Expr, ...]


def _check_rfactor(state: State, loop: LoopRef, factor_axis: int) -> RfactorPlan:
    """Make the reduction along ``loop`` a dimension of partial results, reduced by a second block.

    The partial results are in a new buffer with the loop's extent as axis ``factor_axis`` (negative counts from the
    end). Returns the block that makes them, named ``…_rf``; the old handle means the block that adds them up.

    Before → after, for ``sch.rfactor("ki", 0)``::

        for ko, ki in T.grid(4, 8):              for ko, ki in T.grid(4, 8):
            C[()] += A[ko * 8 + ki]                  C_rf[ki] += A[ko * 8 + ki]
                                                 for ki in range(8):
                                                     C[()] += C_rf[ki]

    Raises ``ScheduleError`` when the loop is not a reduction loop of one block, or the operation does not commute.
    """
    blocks = state.index.blocks_below(loop)
    require(len(blocks) == 1, "loop {0} holds {1} blocks; rfactor takes a loop around one", loop.node, len(blocks))
    block = blocks[0]
    scope_of(state, block)
    pairs = list(zip(block.block.iter_vars, block.node.iter_values))
    spatial_use = [i.var.name for i, v in pairs if i.iter_type != "reduce" and uses_var(v, loop.var)]
    require(
        not spatial_use and any(uses_var(v, loop.var) for _, v in pairs),
        "loop {0} does not only reduce: block {1} uses it for {2}",
        loop.node, block, ", ".join(spatial_use) or "no iterator", nodes=[loop.node],
        legal=[r.name for r in block.loops()
               if any(i.iter_type == "reduce" and uses_var(v, r.var) for i, v in pairs)],
    )  # fmt: skip
    _require_rectangular(block, pairs)
    reducer = reducer_of(block)
    rank = len(reducer.store.indices) + 1
    axis = factor_axis + rank if factor_axis < 0 else factor_axis
    require(0 <= axis < rank, "factor_axis {0} is not one of the {1} axes of the partial results", factor_axis, rank)
    allowed = {v for b in state.func.buffer_map.values() for v in b.shape if isinstance(v, Var)}
    extent = loop.node.extent
    require(
        all(v in allowed or v in state.func.params for v in walk(extent) if isinstance(v, Var)),
        "the extent `{0}` of loop {1} changes while the function runs, so partial results have no fixed size",
        short_text(extent), loop.node, nodes=[loop.node],
    )  # fmt: skip
    started = _started(block, loop, pairs)
    top = block.loops()[0]
    sharing = [
        b for b in state.index.blocks_below(top)
        if b is not block and any(a.buffer is reducer.store.buffer for a in accesses(b.node))
    ]  # fmt: skip
    require(not sharing, "block {0}, in the same loops, uses the result of {1}", sharing[0] if sharing else "", block)
    return RfactorPlan(block, loop, reducer, axis, tuple(started))


def _require_rectangular(block: BlockRef, pairs: list[Any]) -> None:
    """The reduction's loops and bindings are the same for every spatial instance."""
    spatial = {r.var for r in block.loops() if any(i.iter_type != "reduce" and uses_var(v, r.var) for i, v in pairs)}
    for iterator, value in pairs:
        if iterator.iter_type != "reduce":
            continue
        bounds = [x for r in block.loops() if uses_var(value, r.var) for x in (r.node.min, r.node.extent)]
        require(
            not any(uses_var(e, spatial) for e in (value, *bounds)),
            "the reduction `{0}` of block {1} runs differently for different results: partial results need a rectangle",
            iterator.var.name, block, nodes=[block.node],
        )  # fmt: skip


def _started(block: BlockRef, loop: LoopRef, pairs: list[Any]) -> list[Expr]:
    """What must hold of ``loop`` and the spatial loops for a partial result to exist: the block's condition where the
    other reduction loops start.

    Raises ``ScheduleError`` when a partial result may have terms but not that first one, which initialises it.
    """
    spatial = {r.var for r in block.loops() if any(i.iter_type != "reduce" and uses_var(v, r.var) for i, v in pairs)}
    start = {ref.var: ref.node.min for ref in block.loops() if ref is not loop and ref.var not in spatial}
    analyzer = Analyzer()
    for ref in block.all_loops():
        analyzer.bind(ref.var, Range(ref.node.min, ref.node.extent))
    kept = []
    for condition in conjuncts(block.node.predicate):
        first = analyzer.simplify(substitute(condition, start))
        if analyzer.can_prove(first):
            continue
        with analyzer.scope():
            analyzer.assume(condition)
            require(
                analyzer.can_prove(first),
                "some partial results would have no first term: `{0}` of block {1} can be false at their start",
                short_text(first), block, nodes=[block.node],
                legal="split the reduction so that it divides, or pad it",
            )  # fmt: skip
        kept.append(first)
    return kept


def _partial_buffer(state: State, plan: RfactorPlan) -> Buffer:
    old = plan.reducer.store.buffer
    shape = list(old.shape)
    shape.insert(plan.axis, plan.loop.node.extent)
    return decl_buffer(shape, old.dtype, f"{old.name}_rf", scope=old.scope)


def _insert(items: tuple[Expr, ...], axis: int, item: Expr) -> tuple[Expr, ...]:
    return (*items[:axis], item, *items[axis:])


def _partial_block(state: State, plan: RfactorPlan, partial: Buffer, name: str) -> BlockRealize:
    """The block that makes the partial results: ``loop`` is spatial in it, the other reduction loops stay."""
    block, loop, reducer = plan.block, plan.loop, plan.reducer
    factor = Var(f"v{loop.name}", loop.var.dtype)
    iters: list[IterVar] = []
    values: list[Expr] = []
    split: dict[Var, Var] = {loop.var: factor}
    inside: dict[Var, Expr] = {}
    for iterator, value in zip(block.block.iter_vars, block.node.iter_values):
        if iterator.iter_type != "reduce" or not uses_var(value, loop.var):
            iters.append(iterator)
            values.append(value)
            continue
        for ref in block.loops():
            if ref.var not in split and uses_var(value, ref.var):
                split[ref.var] = Var(f"v{ref.name}", ref.var.dtype)
                iters.append(IterVar(Range(ref.node.min, ref.node.extent), split[ref.var], "reduce"))
                values.append(ref.var)
        inside[iterator.var] = substitute(value, split)
    last_spatial = sum(1 for i in iters if i.iter_type != "reduce")
    iters.insert(last_spatial, IterVar(Range(loop.node.min, loop.node.extent), factor))
    values.insert(last_spatial, loop.var)
    index = _insert(reducer.store.indices, plan.axis, factor - loop.node.min)
    update = BufferStore(partial, substitute(reducer.update(BufferLoad(partial, index)), inside), index)
    init = BufferStore(partial, reducer.identity, index)
    made = Block(tuple(iters), (), (), name, update, init, annotations=block.block.annotations)
    reads, writes = block_access_region(made)
    return BlockRealize(tuple(values), block.node.predicate, refresh(made.replace(reads=reads, writes=writes)))


def _final_nest(plan: RfactorPlan, partial: Buffer) -> Stmt:
    """The loops and block that reduce the partial results into the old buffer."""
    block, loop, reducer = plan.block, plan.loop, plan.reducer
    pairs = [(i, v) for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type != "reduce"]
    kept = [r for r in block.loops() if any(uses_var(v, r.var) for _, v in pairs)]
    factor = IterVar(Range(loop.node.min, loop.node.extent), Var(f"v{loop.name}", loop.var.dtype), "reduce")
    store = reducer.store
    index = _insert(store.indices, plan.axis, factor.var - loop.node.min)
    update = BufferStore(
        store.buffer,
        reducer.combine(BufferLoad(store.buffer, store.indices), BufferLoad(partial, index)),
        store.indices,
    )
    made = Block((*(i for i, _ in pairs), factor), (), (), block.name, update, block.block.init)
    reads, writes = block_access_region(made)
    values = (*(v for _, v in pairs), loop.var)
    realize = BlockRealize(values, all_of(plan.started), made.replace(reads=reads, writes=writes))
    body: Stmt = realize
    for ref in reversed((*kept, loop)):
        body = For(ref.var, ref.node.min, ref.node.extent, SERIAL, body)
    return refresh(body)


@primitive(check=_check_rfactor)
def rfactor(state: State, plan: RfactorPlan) -> tuple[State, BlockRV]:
    partial = _partial_buffer(state, plan)
    name = state.fresh_block_name(f"{plan.block.name}_rf")
    scope = plan.block.scope
    assert scope is not None
    top = plan.block.loops()[0]
    # The two blocks trade names inside one rewrite: the old name means the block with the final results.
    made = state.replace(plan.block.node, _partial_block(state, plan, partial, name))
    place = made.index.loops[top.var]
    made = made.replace(place.node, seq([place.node, _final_nest(plan, partial)]))
    outer = made.find_block(scope.name)
    after = made.replace(outer.block, add_alloc(outer.block, partial))
    return after, after.block_rv(name)
