"""Reordering the loops of a nest: reorder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...analysis.dependence.equivalence import check_recomputing
from ...analysis.dependence.initialization import is_privatizable
from ...analysis.dependence.loop_questions import check_reorder
from ...analysis.dependence.tiers import require_legal
from ...analysis.index import LoopRef
from ...errors import ScheduleError, require, require_none
from ...stmt import SERIAL, UNROLLED, Block, For, SeqStmt
from ...visit import vars_in
from ..invariants import Keeps, Kept
from ..nests import renest
from ..primitive import primitive
from ..state import State, owners
from .loops import depends_witness, members, name_of, require_fixed_bounds


@dataclass(frozen=True)
class ReorderPlan:
    chain: list[For]
    order: list[For]
    keeps: Kept = Keeps.NOTHING


def _chain(state: State, loops: list[LoopRef]) -> list[LoopRef]:
    """The loops of a nest from the outermost of ``loops`` down to the innermost; refuses loops that are not one
    nest."""
    ordered = sorted(loops, key=lambda loop: len(loop.ancestors()))
    top, bottom = ordered[0], ordered[-1]
    if top is not bottom and top not in bottom.ancestors():
        raise ScheduleError(
            f"loops {{0}} and {{1}} are not in one nest: {top.name} is above {owners(state, top)}, "
            f"{bottom.name} above {owners(state, bottom)}",
            top.node,
            bottom.node,
        )
    chain: list[LoopRef] = [bottom]
    place: Any = bottom
    while place is not top:
        place = place.parent
        if not isinstance(place, LoopRef) and not isinstance(place.node, SeqStmt):
            _refuse_chain(top, bottom, place)
        if isinstance(place.node, SeqStmt):
            others = [s for s in place.node.stmts if s is not chain[-1].node]
            require(False,
                    "reorder needs perfectly nested loops, but {0} shares its parent with {1}",
                    chain[-1].node, " and ".join(name_of(s) for s in others[:4]), nodes=[chain[-1].node, *others[:1]],
                    legal="only loops with nothing beside them can move past each other; separate them first")  # fmt: skip
        chain.append(place)
    chain.reverse()
    missing = [loop for loop in loops if loop not in chain]
    require_none(missing, "loop {0} is not in one nest with {1}", bottom)
    return chain


def _refuse_chain(top: LoopRef, bottom: LoopRef, place: Any) -> None:
    what = f"block `{place.node.name}`" if isinstance(place.node, Block) else name_of(place.node)
    raise ScheduleError(
        "reorder needs perfectly nested loops, but {0} stands between {1} and {2}", what, top.node, bottom.node
    )


def plan_reorder(state: State, *loops: LoopRef, unsafe: bool = False) -> ReorderPlan:
    """Reorder loops of one nest, outermost first; loops of the nest that are not named keep their positions.

    Raises ``ScheduleError`` when the loops are not perfectly nested, when the range of one depends on another that
    would move inside it, or when a dependence would be reversed (with the two instances). ``unsafe=True`` skips the
    dependence check.

    Before, and after ``sch.reorder("j", "i")``::

        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

        for j, i in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
    """
    wanted = members(loops)
    require(wanted, "reorder needs at least one loop")
    chain = _chain(state, wanted)
    named = {loop.node for loop in wanted}
    turn = iter(wanted)
    before = [loop.node for loop in chain]
    after = [next(turn).node if f in named else f for f in before]
    for loop in chain if before != after and not unsafe else ():
        require_fixed_bounds(loop, "reorder")
    for n, f in enumerate(after):
        used = vars_in(f.extent, f.min)
        for inside in (g for g in after[n + 1 :] if g.loop_var in used):
            raise ScheduleError("the range of {0} depends on {1}, so {0} cannot be outside {1}",
                                f, inside, witness=depends_witness(f, [inside]), nodes=[f])  # fmt: skip
    moved = [n for n, (a, b) in enumerate(zip(before, after)) if a is not b]
    if unsafe or not moved:
        return ReorderPlan(before, after)
    _require_own_values(state, before, after)
    commute = _require_commute(state, before, after)
    in_order = all(f.kind in (SERIAL, UNROLLED) for f in before[moved[0] : moved[-1] + 1])
    keeps = Keeps.ACCESSES | Keeps.THREADS | Keeps.LOOPS
    return ReorderPlan(before, after, keeps if commute and in_order else Keeps.NOTHING)


def _require_own_values(state: State, before: list[For], after: list[For]) -> None:
    """Raise ``ScheduleError`` if iterations of a loop with a ``private`` clause, which a loop that ran inside of each now
    repeats, read of their copies what earlier ones wrote."""
    above = [p.node for p in state.index.place(before[0]).loops()]
    for n, f in enumerate(after):
        inside = before[before.index(f) + 1 :] if f.private else []
        repeating = next((g for g in after[:n] if g in inside), None)
        if repeating is None:
            continue
        nest = f.with_body(renest(after[n + 1 :], before[-1].body))
        lost = next((b for b in f.private if not is_privatizable(b, [*above, *after[:n], nest])), None)
        require(
            lost is None,
            "each iteration of {0} has a copy of `{1}`, in which it is not shown that nothing goes from one iteration of {2} "
            "to the next; inside of {2} it would begin anew",
            f,
            lost and lost.name,
            repeating,
            nodes=[f],
            legal='unannotate the loop\'s "private" first, where its iterations may share the buffer',
        )


def _require_commute(state: State, before: list[For], after: list[For]) -> bool:
    """Whether the loops may be exchanged because no dependence is reversed; refuses those that may not be."""
    verdict = check_reorder(state.func, before, after)
    if verdict.is_proved:
        return True
    # iterations that recompute the same elements, as those of tiles with a halo do, may be exchanged
    made = state.replace(before[0], renest(after, before[-1].body))
    if not check_recomputing(state.func, made.func).is_proved:
        require_legal(verdict, state.func)
    return False


@primitive(
    check=plan_reorder, prepared_by=("fission", "unswitch", "hoist", "skew", "decompose_reduction"), group="order"
)
def reorder(state: State, plan: ReorderPlan) -> State:
    if all(a is b for a, b in zip(plan.chain, plan.order)):
        return state
    return state.replace(plan.chain[0], renest(plan.order, plan.chain[-1].body))
