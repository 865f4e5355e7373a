"""A block alone in its loops, which run it once for all values of its iterators: what may be computed in parts before them."""

from __future__ import annotations

from collections.abc import Sequence

from ...aliases import sharing
from ...analysis.dependence.domains import RunsWholeDomain
from ...analysis.dependence.tiers import require_legal
from ...analysis.index import BlockRef, LoopRef, wrapped_in
from ...analysis.users import bare_stores
from ...arith.itermap import detect_iter_map
from ...buffer import Buffer
from ...errors import require, require_none
from ...expr import Expr
from ...script.printer import short_text
from ...stmt import SERIAL, UNROLLED, first_line
from ...visit import accesses, is_pure
from ..state import State, scope_of


def the_block(state: State, loop: LoopRef) -> BlockRef:
    """The only block under ``loop``."""
    blocks = state.index.blocks_below(loop)
    rule = "loop {0} holds {1} blocks, and not one"
    legal = "fission the loop first" if blocks else ""
    require(len(blocks) == 1, rule, loop.node, len(blocks), legal=legal)
    return blocks[0]


def require_whole_nest(state: State, block: BlockRef, steps: Sequence[LoopRef]) -> None:
    """Raise ``ScheduleError`` unless the loops around ``block`` run it once for all values of its iterators and do nothing else,
    and ``steps`` of them one iteration after the other: then parts of its results may be computed before these loops."""
    scope, loops = scope_of(block), block.loops()
    top = loops[0].node
    others = [b for b in state.index.blocks_below(loops[0]) if b is not block]
    require_none(others, "block {0} is in the loops of {1}, too", block, legal="fission the loops first")
    bare = [stmt for stmt, _ in bare_stores(top)]
    require_none(bare[:1], "`{1}` is in the loops of block {2}, too", first_line, block, nodes=bare[:1])
    around = wrapped_in(block, scope)
    rule = "block {0} is inside of `{1}`, which partial results, computed before its loops, would not be"
    require(around is None, rule, block, first_line(around) if around else "")
    late = [p for p in loops if p.node.thread or (p in steps and p.node.kind not in (SERIAL, UNROLLED))]
    rule = "loop {0} is {1}: partial results are computed before it, one after the other"
    how = "this step before loops are bound, vectorized or run in parallel"
    require_none(late, rule, lambda p: f"bound to {p.node.thread}" if p.node.thread else p.node.kind, legal=how)
    require_legal(RunsWholeDomain(block).answer(), state.func, nodes=[block.node])
    once = detect_iter_map(block.node.iter_values, block.loop_ranges(), block.node.predicate)
    require(once, "the loops run block {0} more than once with the same iterators", block)


def require_own_values(block: BlockRef, result: Buffer, values: Sequence[Expr]) -> None:
    """Raise ``ScheduleError`` if ``values`` of ``block`` have effects, or read the memory of its ``result``."""
    for value in values:
        require(is_pure(value), "`{0}` of block {1} has effects", lambda v=value: short_text(v), block)
    own = sharing((a for v in values for a in accesses(v)), result)
    require(not own, "block {0} reads its result {1} by another name", block, result.name)
