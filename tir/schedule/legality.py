"""May the program change so? The questions of the steps, answered as ``ScheduleError`` with a witness."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..analysis.private_clause import Independence, independence, with_clauses
from ..buffer import Buffer
from ..errors import ScheduleError
from ..expr import Var
from ..stmt import PARALLEL, THREAD_BINDING, VECTORIZED, BlockRealize, For
from ..visit import uses_var, walk
from .state import State

if TYPE_CHECKING:
    from ..analysis.dependence.verdict import Violation
    from ..function import PrimFunc
    from .invariants.delta import Delta


def clash(func: PrimFunc, loop: For) -> Violation | None:
    """Why iterations of ``loop``, if it runs them at once, are not independent. Of threads, only what they do to global
    memory is asked: local buffers are per thread, and shared memory is synchronised by lowering."""
    return concurrency(func, loop).violation


def concurrency(func: PrimFunc, loop: For) -> Independence:
    """``clash``, with the buffers that iterations must have for themselves: those belong into the loop's clause."""
    known = _CLASHES.setdefault(func, {})
    if loop not in known:
        known[loop] = _concurrency(func, loop)
    return known[loop]


_CLASHES: WeakKeyDictionary[PrimFunc, dict[For, Independence]] = WeakKeyDictionary()


def _concurrency(func: PrimFunc, loop: For) -> Independence:
    if loop.kind == THREAD_BINDING:
        summed = _reduced_across(loop) if loop.thread.startswith("threadIdx") else frozenset()
        found = independence(func, loop, loop.kind, lambda b: b.scope == "global" and b.data not in summed).violation
        return Independence(found and replace(found, legal=_own_memory(func, loop, found.memory)))
    return independence(func, loop, loop.kind) if loop.kind in (PARALLEL, VECTORIZED) else Independence(None)


def with_needed_clauses(delta: Delta) -> PrimFunc:
    """The program after a step, with the clauses of the parallel and vectorized loops that the step made need them: what
    made them independent is written down, and not proved again."""
    after = delta.after
    clauses: dict[Var, tuple[Buffer, ...]] = {}
    for ref in delta.changed_loops((PARALLEL, VECTORIZED)):
        found = _CLASHES.get(after, {}).get(ref.node)
        if found is not None and found.private:
            clauses[ref.var] = (*ref.node.private, *found.private)
    return with_clauses(after, clauses)


def _own_memory(func: PrimFunc, loop: For, buffer: Buffer | None) -> str:
    """How threads that meet in memory of the function's own can each have theirs."""
    from ..analysis.index import index_of

    if buffer is None or not any(buffer in ref.block.alloc_buffers for ref in index_of(func).blocks.values()):
        return ""
    scope = "shared" if loop.thread.startswith("blockIdx") else "local"
    return (
        f'`{buffer.name}` in scope "{scope}", where each has memory of its own (set_scope first, or ask for that scope)'
    )


def _reduced_across(loop: For) -> frozenset[Var]:
    """Memory of the results of reductions that the threads of ``loop`` share, with their init or apart from it."""
    from ..analysis.reductions import Reduction

    found: set[Var] = set()
    for item in walk(loop):
        if isinstance(item, BlockRealize) and (
            item.block.init is not None or isinstance(Reduction.of(item.block), Reduction)
        ):
            kinds = {i.iter_type for i, v in zip(item.block.iter_vars, item.iter_values) if uses_var(v, loop.loop_var)}
            if kinds == {"reduce"}:
                found.update(r.buffer.data for r in item.block.writes)
    return frozenset(found)


def require_same_meaning(before: State, after: State, unsafe: bool = False) -> None:
    """Raise ``ScheduleError``, with a witness, unless every dependence of ``before`` holds in ``after``
    and the iterations of its parallel and vectorized loops still are independent.
    """
    from ..analysis.dependence.programs import check

    if unsafe or after.func is before.func:
        return
    found = check(before.func, after.func)
    if found is not None:
        # A reduction that is made anew, from its init on, gives the same result again.
        from ..analysis.dependence.reduction_summary import with_reductions_collapsed

        whole = with_reductions_collapsed(before.func, after.func)
        if whole is not None and check(*whole) is None:
            found = None
    if found is not None:
        raise ScheduleError(
            found.rule, witness=found.witness, nodes=found.nodes, func=before.func, legal=found.legal
        )  # fmt: skip
    require_independent(before, after)


def require_independent(before: State, after: State) -> None:
    """Raise ``ScheduleError``, with a witness, unless the iterations of those of its loops that run at once, and that
    ``after`` has changed, are independent."""
    from .invariants.delta import Delta

    delta = Delta(before.func, after.func)
    for ref in delta.changed_loops((PARALLEL, VECTORIZED, THREAD_BINDING)):
        if delta.may_clash(ref):
            found = clash(after.func, ref.node)
            if found is not None:
                raise ScheduleError(
                    found.rule, witness=found.witness, nodes=found.nodes, func=after.func, legal=found.legal
                )
