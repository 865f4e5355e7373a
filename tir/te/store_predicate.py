"""``set_store_predicate``: whether the stores that a condition leaves out are made by other threads as well."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..analysis.index import BlockRef, LoopRef, index_of
from ..errors import ScheduleError
from ..expr import Expr, Var, conjuncts
from ..levels import is_private
from ..poly import Formula, IntegerSet, Names, Undecided, decide
from ..script.printer import short_text
from ..stmt import For
from ..visit import free_vars, substitute, uses_var, walk

if TYPE_CHECKING:
    from ..schedule import Schedule as BlockSchedule

LEGAL = "a condition in the expression of the tensor: te.if_then_else, or where= of a reduction"


@dataclass(frozen=True, eq=False)
class StorePredicate:
    """A condition on thread axes and on axes of a stage."""

    condition: Expr

    @functools.cached_property
    def variables(self) -> tuple[Var, ...]:
        """What it is a condition on."""
        return tuple(free_vars(self.condition))


def require_duplicates(sch: BlockSchedule, block: str, predicate: StorePredicate, *places: Any) -> None:
    """Raise ``ScheduleError`` unless every element that ``block`` stores is stored where ``predicate`` holds, too.

    ``places`` say what its variables are: a loop around the block, the name of a thread axis, the number of an iterator
    of the block, or None for a size. Threads along an axis that the results do not depend on store the
    same values; a predicate may disable all but one. The program is not changed.
    """
    ref = index_of(sch.mod["main"]).blocks[block]
    threads = {p.node.thread: p for p in ref.loops() if p.node.thread}
    others = _threads_of_kernel(ref)
    values: dict[Var, Expr] = {}
    repeating = {p for p in ref.loops() if p.node.thread and _reduces_over(ref, p)}
    for var, place in zip(predicate.variables, places):
        if isinstance(place, int):
            values[var] = ref.node.iter_values[place]
        elif isinstance(place, str):
            loop = threads.get(place) or others.get(place)
            if loop is None:
                raise ScheduleError(f"no loop around `{block}` is bound to {place}", nodes=[ref.node])
            values[var] = loop.var
            if place not in threads:
                repeating.add(loop)
        elif place is not None:
            values[var] = sch.get(place).loop_var
    condition = substitute(predicate.condition, values)
    if any(is_private(r.buffer.scope) for r in ref.block.writes):
        repeating = set()  # what one thread stores, the others do not have
    own = [p for p in ref.loops() if p not in repeating]
    missing = decide(_left_out, ref, own, [*ref.loops(), *(repeating - set(ref.loops()))], condition)
    if isinstance(missing, Undecided):
        rule = f"it is not decided where `{short_text(condition)}` holds: {missing}"
        raise ScheduleError(rule, nodes=[ref.node], legal=LEGAL)
    if missing is not None:
        raise _refusal(ref, own, missing, condition)


def _reduces_over(ref: BlockRef, loop: LoopRef) -> bool:
    """Whether ``loop`` moves only iterators that ``ref`` reduces over."""
    kinds = [iv.iter_type for iv, e in zip(ref.block.iter_vars, ref.node.iter_values) if uses_var(e, loop.var)]
    return bool(kinds) and all(kind == "reduce" for kind in kinds)


def _threads_of_kernel(ref: BlockRef) -> dict[str, LoopRef]:
    """The loops bound to threads in the same kernel, by their thread axes."""
    loops = ref.loops()
    if not loops:
        return {}
    index = loops[0].index
    nodes = (n for n in walk(loops[0].node) if isinstance(n, For) and n.thread)
    return {n.thread: index.place(n) for n in nodes}


def _left_out(ref: BlockRef, own: Sequence[LoopRef], every: Sequence[LoopRef], condition: Expr) -> list[int] | None:
    """Iterations of ``own`` in which ``ref`` runs, but ``condition`` holds for none of the threads in ``every``."""
    names = Names()
    dims = [names.of(p.var) for p in own]

    def where(condition: Expr) -> IntegerSet:
        formula = Formula(names)
        for p in every:
            formula.within(p.var, p.range.min, p.range.extent)
        for part in conjuncts(condition):
            formula.require(part)
        hidden = [names.of(p.var) for p in every if p not in own]
        return formula.map(dims, ["0"], hidden).domain()

    return where(ref.node.predicate).subtract(where(condition)).sample()


def _refusal(ref: BlockRef, own: Sequence[LoopRef], at: Sequence[int], condition: Expr) -> ScheduleError:
    where = ", ".join(f"{p.name} = {value}" for p, value in zip(own, at))
    return ScheduleError(
        f"`{ref.name}` would not be stored everywhere: `{short_text(condition)}` leaves out more than repetitions",
        witness=[f"at {where or 'its only instance'} no thread stores"],
        nodes=[ref.node],
        legal=LEGAL,
    )
