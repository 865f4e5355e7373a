"""Taking reductions apart: decompose_reduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...arith import Analyzer
from ...buffer import Range
from ...errors import require
from ...expr import EQ, LE, LT, Expr, all_of, is_const
from ...stmt import Block, BlockRealize, Stmt
from ...visit import accesses, substitute, uses_var
from ..blocks import affine_in_one, conjuncts, insert_before, refresh
from ..handles import BlockRV
from ..primitive import primitive
from ..state import BlockRef, LoopRef, State, require_above


@dataclass(frozen=True)
class DecomposePlan:
    block: BlockRef
    loop: LoopRef
    init: Stmt
    init_name: str
    update: Block


def _check_decompose_reduction(state: State, block: BlockRef, loop: LoopRef, *, unsafe: bool = False) -> DecomposePlan:
    """Split the initialisation off a reduction: a block ``C_init`` just before ``loop``, and ``C_update`` in its place.

    Returns the handle of the init block; the old handle then means the update.

    Before → after, for ``sch.decompose_reduction("C", "k")``::

        for i, k in T.grid(8, 8):                for i in range(8):
            with T.block("C"):                       with T.block("C_init"):
                vi, vk = ...                             C[vi] = 0.0
                with T.init():                       for k in range(8):
                    C[vi] = 0.0                          with T.block("C_update"):
                C[vi] = C[vi] + A[vi, vk]                    C[vi] = C[vi] + A[vi, vk]

    Raises ``ScheduleError`` when the block has no init, when a reduction loop is outside ``loop`` (the init would run
    again in the middle of the sum), or when something else under ``loop`` uses the result.
    """
    body = block.block
    require(
        body.init is not None, "block {0} has no T.init(), so there is nothing to decompose", block, nodes=[block.node]
    )
    require_above(state, loop, block)
    loops = block.loops()
    outside = loops[: loops.index(loop)]
    reduce_values = [v for i, v in zip(body.iter_vars, block.node.iter_values) if i.iter_type == "reduce"]
    for ref in outside:
        require(
            unsafe or is_const(ref.node.extent, 1) or not any(uses_var(v, ref.var) for v in reduce_values),
            "loop {0} reduces and is outside {1}: the initialisation would run again for each of its iterations",
            ref.node, loop.node,
            witness=[f"{ref.name} = 1 would reset what {ref.name} = 0 has accumulated"],
            nodes=[loop.node], legal=_legal_loops(block, reduce_values),
        )  # fmt: skip
    written = {r.buffer for r in body.writes}
    others = [
        ref
        for ref in state.index.blocks_below(loop)
        if ref is not block and any(a.buffer in written for a in accesses(ref.node))
    ]
    require(
        unsafe or not others,
        "block {0} under loop {1} uses the result of {2} while it is being made",
        others[0] if others else "", loop.node, block, nodes=[o.node for o in others],
    )  # fmt: skip
    _require_distinct(block, unsafe)
    _require_one_start(block, loop, unsafe)
    init_name = state.fresh_block_name(body.name + "_init")
    init = _init_nest(block, loop, init_name)
    update = body.replace(name=state.fresh_block_name(body.name + "_update"), init=None, reads=_update_reads(body))
    return DecomposePlan(block, loop, init, init_name, update)


def _legal_loops(block: BlockRef, reduce_values: list[Expr]) -> list[str]:
    legal = []
    for ref in block.loops():
        legal.append(ref.name)
        if not is_const(ref.node.extent, 1) and any(uses_var(v, ref.var) for v in reduce_values):
            break
    return legal


def _require_distinct(block: BlockRef, unsafe: bool) -> None:
    """Each spatial instance owns its elements: else one's init would wipe out what another has accumulated."""
    from ...arith.itermap import detect_iter_map

    spatial = {i.var: i.dom for i in block.block.iter_vars if i.iter_type != "reduce" and i.dom is not None}
    for region in block.block.writes:
        mins = [r.min for r in region.region]
        direct = {axis[0] for m in mins if (axis := affine_in_one(m, spatial)) is not None}
        missing = [v for v, dom in spatial.items() if v not in direct and not _is_one(dom)]
        if not missing:
            continue
        require(
            unsafe or detect_iter_map(mins, spatial, check="bijective"),
            "two instances of block {0} differing in {1} write the same element of {2}, or may",
            block, ", ".join(v.name for v in missing), region.buffer.name, nodes=[block.node],
        )  # fmt: skip


def _require_one_start(block: BlockRef, loop: LoopRef, unsafe: bool) -> None:
    """The reduction begins at the same iteration for every result, so that the init can leave the reduction loops out.

    It does not after ``skew``, where the loop runs over k + i.
    """
    inner = block.loops()[block.loops().index(loop) :]
    pairs = list(zip(block.block.iter_vars, block.node.iter_values))
    spatial = [v for i, v in pairs if i.iter_type != "reduce"]
    dropped = [ref for ref in inner if not any(uses_var(v, ref.var) for v in spatial)]
    rest = [ref for ref in block.all_loops() if ref not in dropped]
    for part in (*(v for i, v in pairs if i.iter_type == "reduce"), *conjuncts(block.node.predicate)):
        gone = next((ref for ref in dropped if uses_var(part, ref.var)), None)
        if gone is not None and _holds_at_the_start(part, block, dropped):
            continue
        tied = next((ref for ref in rest if uses_var(part, ref.var) and not is_const(ref.node.extent, 1)), None)
        require(
            unsafe or gone is None or tied is None or not any(uses_var(v, tied.var) for v in spatial),
            "the reduction of block {0} begins at another iteration of {1} for each {2}: `{3}` ties the two",
            block, gone.node if gone else "", tied.name if tied else "", repr(part), nodes=[block.node],
        )  # fmt: skip


def _holds_at_the_start(condition: Expr, block: BlockRef, dropped: Sequence[LoopRef]) -> bool:
    """Whether a bound from above that holds at some iteration of the loops ``dropped`` holds at their first one."""
    if not isinstance(condition, (LT, LE)) or any(uses_var(condition.b, ref.var) for ref in dropped):
        return False
    analyzer = Analyzer()
    for ref in block.all_loops():
        analyzer.bind(ref.var, Range(ref.node.min, ref.node.extent))
    first = substitute(condition.a, {ref.var: ref.node.min for ref in dropped})
    return analyzer.can_prove(first <= condition.a)


def _is_one(dom: Range | None) -> bool:
    return dom is not None and getattr(dom.extent, "value", None) == 1


def _init_nest(block: BlockRef, loop: LoopRef, name: str) -> Stmt:
    """The init in copies of the loops at and under ``loop`` that its spatial iterators need."""
    inner = block.loops()[block.loops().index(loop) :]
    pairs = list(zip(block.block.iter_vars, block.node.iter_values))
    spatial = [(i, v) for i, v in pairs if i.iter_type != "reduce"]
    reduce = [(i, v) for i, v in pairs if i.iter_type == "reduce"]
    kept = [ref for ref in inner if any(uses_var(v, ref.var) for _, v in spatial)]
    start = {ref.var: ref.node.min for ref in inner if ref not in kept}
    analyzer = Analyzer()
    for ref in block.all_loops():
        analyzer.bind(ref.var, Range(ref.node.min, ref.node.extent))
    at_start = [EQ(substitute(v, start), i.dom.min) for i, v in reduce]
    guards = [substitute(c, start) for c in conjuncts(block.node.predicate)] + at_start
    guards = [g for g in (analyzer.simplify(g) for g in guards) if not analyzer.can_prove(g)]
    assert block.block.init is not None
    body = Block(
        tuple(i for i, _ in spatial),
        (),
        block.block.writes,
        name,
        block.block.init,
        annotations=block.block.annotations,
    )
    realize = BlockRealize(tuple(v for _, v in spatial), all_of(guards), body)
    stmt: Stmt = realize
    for ref in reversed(kept):
        stmt = ref.node.replace(body=stmt)
    names = {ref.var: ref.var.replace(name=f"{ref.var.name}_init") for ref in kept}
    return refresh(stmt, names)


def _update_reads(block: Block):
    """The update reads what it writes, which the reduction block left unsaid."""
    own = [w for w in block.writes if not any(r.buffer is w.buffer for r in block.reads)]
    return (*own, *block.reads)


@primitive(check=_check_decompose_reduction)
def decompose_reduction(state: State, plan: DecomposePlan) -> tuple[State, BlockRV]:
    old = plan.block
    changed = state.replace(old.block, plan.update, moved={old.name: plan.update.name})
    place = changed.index.loops[plan.loop.var]
    after = insert_before(changed, place, plan.init)
    return after, after.block_rv(plan.init_name)
