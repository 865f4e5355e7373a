"""One loop, or one nest: may its iterations run at once, in another order, together with others, or apart?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...buffer import Buffer
from ...expr import Var
from ...function import PrimFunc
from ...poly import Names, Undecided, bounded
from ...stmt import For, Stmt
from .access_relations import without_swizzles
from .affine import AffineForms, no_carried_dependence
from .delinearize import MixedRadix, delinearized, pairs_of
from .order import compare
from .relations import Context, StatementRelations, by_loops, conflicting_pairs, loop_times, same_element
from .statements import Statement, statements_of
from .verdict import Violation, cannot_prove
from .witness import why_unknown, witness


def check_parallel(
    func: PrimFunc,
    loop: For,
    kind: str = "parallel",
    among: Callable[[Buffer], bool] = lambda buffer: True,
    private: Callable[[Buffer], bool] | None = None,
) -> Violation | None:
    """Whether iterations of ``loop`` are independent: no two of them touch one element, one of them writing it.

    Only buffers that ``among`` holds for are looked at.

    Buffers allocated inside the loop are each iteration's own, and so are those of its ``private`` clause; ``private``
    may hold for others (:func:`tir.analysis.private_clause.independence`).
    """
    own = private or (lambda buffer: any(buffer.data is b.data for b in loop.private))
    try:
        return _independent(func, loop, loop, (), kind, among, own)
    except Undecided as error:
        # the first reason is about the program as it is written
        split = delinearized(loop)
        for runs, digits, rough in (*([] if split is None else [(*split, False)]), (loop, (), True)):
            try:
                if _independent(func, loop, runs, digits, kind, among, own, rough) is None:
                    return None
            except Undecided:
                continue
        return cannot_prove(error, [loop])


@bounded()
def _independent(
    func: PrimFunc,
    loop: For,
    runs: For,
    digits: Sequence[MixedRadix],
    kind: str,
    among: Callable[[Buffer], bool],
    own: Callable[[Buffer], bool],
    rough: bool = False,
) -> Violation | None:
    """``check_parallel`` on ``runs``: the loop, or all that it runs and more, with ``digits`` of fused variables told
    apart; iterations have the buffers that ``own`` holds for to themselves. ``rough``: with more iterations of inner loops than there are, where data decides how many; then only the
    answer that they are independent counts. Raises ``Undecided``."""
    names = Names()
    context = Context(func, loop, names)
    sides = [StatementRelations(u, names) for u in without_swizzles(statements_of(runs, blocks=False))]
    for side in sides:
        side.touch(on_loops=True, rough=rough)
    forms = {id(side): AffineForms(side.unit) for side in sides}
    apart: dict[frozenset[int], bool] = {}
    private: dict[Any, bool] = {}
    for s in sides:
        for t in sides:
            for a, b in conflicting_pairs(s, t, local=True):
                buffer = a.access.buffer
                if not among(buffer) or private.get(buffer.data):
                    continue
                if not digits:
                    both = frozenset((id(a), id(b)))
                    if both not in apart:
                        first_form, second_form = forms[id(s)], forms[id(t)]
                        apart[both] = no_carried_dependence(first_form, a.access, second_form, b.access, loop.loop_var)
                    if apart[both]:
                        continue
                if buffer.data not in private:
                    private[buffer.data] = own(buffer)
                    if private[buffer.data]:
                        continue
                pairs = same_element(s, a, t, b)
                for number in digits:
                    ordered = pairs_of(number, s.unit.coords, t.unit.coords, names)
                    pairs = pairs if ordered is None else pairs.intersect(ordered)
                found = context.restrict(pairs.increasing())
                if not found.is_empty():
                    what = {"vectorized": "vectorized", "unrolled": "unrolled", "thread_binding": "bound to threads"}
                    name, reason = loop.loop_var.name, why_unknown([(s.unit, a.access), (t.unit, b.access)])
                    if reason is None:
                        rule = f"loop `{name}` cannot be {what.get(kind, 'parallel')}: two of its iterations touch "
                        rule += "the same element, and one writes it"
                    else:
                        rule = f"cannot prove that iterations of loop `{name}` are independent, because {reason}"
                    return Violation(rule, witness(found, s, a, t, b, "", " as well"), (loop,), buffer)
    return None


def check_reorder(func: PrimFunc, loops: Sequence[For], new_order: Sequence[For]) -> Violation | None:
    """Whether the perfect nest ``loops`` (outermost first) may run in ``new_order``."""
    variables = [f.loop_var for f in new_order]

    def reordered(unit: Statement) -> tuple[Any, ...]:
        pending = iter(variables)
        mine = {f.loop_var for f in loops}
        return tuple(next(pending) if isinstance(t, Var) and t in mine else t for t in unit.time)

    units = statements_of(loops[0])
    return _retimed(func, loops[0], units, reordered, tuple(new_order))


def check_merge(func: PrimFunc, chains: Sequence[Sequence[For]]) -> Violation | None:
    """Whether neighbouring nests may run as one: iteration by iteration, the first chain's body, then the next's."""
    units: list[Statement] = []
    place: dict[int, int] = {}
    for position, chain in enumerate(chains):
        for unit in statements_of(chain[0]):
            place[id(unit)] = position
            units.append(replace(unit, time=(position, *unit.time)))
            place[id(units[-1])] = position

    def merged(unit: Statement) -> tuple[Any, ...]:
        position = place[id(unit)]
        depth = len(chains[position])
        return (*unit.time[1 : depth + 1], position, *unit.time[depth + 1 :])

    return _retimed(func, chains[0][0], units, merged, tuple(c[0] for c in chains))


def check_fission(func: PrimFunc, loop: For, cuts: Sequence[int]) -> Violation | None:
    """Whether ``loop`` may run over its body up to each cut (a position in its sequence) before it starts on the rest."""

    def distributed(unit: Statement) -> tuple[Any, ...]:
        return (sum(cut <= unit.time[1] for cut in cuts), *unit.time)

    return _retimed(func, loop, statements_of(loop), distributed, (loop,))


@bounded()
def _retimed(
    func: PrimFunc, where: Stmt, units: list[Statement], retime: Any, nodes: tuple[Any, ...]
) -> Violation | None:
    names = Names()
    length = max((len(u.time) for u in units), default=0) + 2
    sides = []
    try:
        for unit in units:
            looped = by_loops(unit)
            side = StatementRelations(looped, names)
            side.touch(on_loops=True)
            side.moments = ([unit.time], [retime(unit)])
            side.before = loop_times(looped, unit.time, names, length)
            side.after = loop_times(looped, side.moments[1][0], names, length)
            sides.append(side)
        return compare(sides, Context(func, where, names), nodes)
    except Undecided as error:
        return cannot_prove(error, nodes)
