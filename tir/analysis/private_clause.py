"""The ``private`` clause of a loop: the buffers of which each iteration has a copy of its own.

``for i in T.parallel(8, private=[C])``: an iteration starts with an uninitialised ``C``, and what is in ``C`` after the
loop is not defined. The clause is written where a loop is made parallel or vectorized because ``C`` is privatizable,
and whoever reads the program later (the executor, lowering, the next step) goes by the clause alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..aliases import shares_memory, sharing
from ..annotations import PRIVATE
from ..buffer import Buffer
from ..expr import Var
from ..function import PrimFunc
from ..node import frozendict
from ..stmt import PARALLEL, VECTORIZED, Block, For
from ..visit import rewrite
from .index import LoopRef, Place, index_of
from .users import used_memory


def with_needed_private(func: PrimFunc, loops: Iterable[LoopRef]) -> PrimFunc:
    """``func``, in which the clauses of ``loops`` have all buffers of which iterations must have copies to be independent; a
    loop whose iterations are not independent even so stays."""
    from .dependence.loop_questions import check_parallel
    from .dependence.tiers import Proved

    clauses: dict[Var, tuple[Buffer, ...]] = {}
    for ref in loops:
        verdict = check_parallel(func, ref.node, ref.node.kind)
        if isinstance(verdict, Proved) and verdict.private:
            clauses[ref.var] = (*ref.node.private, *verdict.private)
    return with_clauses(func, clauses)


def with_private(loop: For, buffers: Iterable[Buffer]) -> For:
    """``loop`` with just ``buffers`` in its clause."""
    kept = {k: v for k, v in loop.annotations.items() if k != PRIVATE}
    clause = tuple(buffers)
    return loop.replace(annotations=frozendict({**kept, PRIVATE: clause} if clause else kept))


def infer_private(func: PrimFunc) -> PrimFunc:
    """``func`` with the clauses that its parallel and vectorized loops need.

    For programs written without clauses, in the manner of TVM, before they are scheduled or lowered.
    """
    index = index_of(func)
    loops = (index.place(n) for n in index.marked if n.kind in (PARALLEL, VECTORIZED))
    return with_needed_private(func, (ref for ref in loops if any(_allocated_around(ref))))


def with_clauses(func: PrimFunc, clauses: dict[Var, tuple[Buffer, ...]]) -> PrimFunc:
    """``func`` with these clauses of the loops with these variables."""
    if not clauses:
        return func
    loops = index_of(func).loops
    above = {p.node for v in clauses for p in (loops[v], *loops[v].ancestors())}

    def visit(item: Any) -> Any:
        return (
            with_private(item, clauses[item.loop_var]) if isinstance(item, For) and item.loop_var in clauses else None
        )

    return func.with_body(rewrite(func.body, visit, enter=lambda n: n in above))


def without_stale_clauses(func: PrimFunc) -> PrimFunc:
    """``func`` with only those buffers in clauses that are used under their loop, and allocated around it, and nowhere
    else: a step may have moved a use, or have replaced a buffer."""
    clauses: dict[Var, tuple[Buffer, ...]] = {}
    for ref in index_of(func).with_clause:
        kept = tuple(b for b in ref.node.private if why_not_private(func, ref, b) is None)
        if len(kept) < len(ref.node.private):
            clauses[ref.var] = kept
    return with_clauses(func, clauses)


def clause_problems(func: PrimFunc, ref: LoopRef) -> Iterator[str]:
    """What is wrong with the clause of a loop of ``func``."""
    for buffer in ref.node.private:
        why = why_not_private(func, ref, buffer)
        if why is not None:
            yield f"`{buffer.name}` is private to loop `{ref.name}`, but {why}"


def _allocated_around(place: Place) -> Iterator[Buffer]:
    for above in place.ancestors():
        if isinstance(above.node, Block):
            yield from above.node.alloc_buffers


def why_not_private(func: PrimFunc, ref: LoopRef, buffer: Buffer) -> str | None:
    """Why ``buffer`` cannot be in the clause of ``ref``; None where it can."""
    if not sharing(_allocated_around(ref), buffer):
        return "no block around the loop allocates it"
    around = {p.node for p in ref.ancestors()}
    if shares_memory(buffer, used_memory(func.body, {ref.node}, around)):
        return "it is used outside of the loop"
    return None
