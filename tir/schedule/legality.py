"""From verdicts to errors: a step is accepted if its questions are proved, and refused, with the witness, otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..aliases import memory_of, shares_memory
from ..analysis.dependence.domains import Injective
from ..analysis.dependence.loops import check_parallel
from ..analysis.dependence.oracle import PROVED, Refuted, Unknown, Verdict
from ..analysis.dependence.programs import SameMeaning
from ..analysis.evaluation import steering_loads
from ..analysis.index import index_of
from ..analysis.reductions import shared_results
from ..analysis.users import bare_stores
from ..buffer import Buffer, Range
from ..errors import require
from ..expr import Expr, Var
from ..function import PrimFunc
from ..levels import ends_with_launch, is_block_axis, is_thread_axis
from ..stmt import PARALLEL, THREAD_BINDING, VECTORIZED, BlockRealize, For, Stmt, first_line
from ..visit import nodes_of, uses_var
from .state import State


def require_legal(
    verdict: Verdict, func: PrimFunc, *, nodes: Sequence[Any] | None = None, legal: str = "", why: str = ""
) -> None:
    """Raise ``ScheduleError`` unless ``verdict`` is a proof; unknown is refused as well.

    ``func`` is the program that contains the nodes; ``nodes`` and ``legal`` go before the verdict's own, ``why`` before
    its rule.
    """
    if isinstance(verdict, (Refuted, Unknown)):
        raise verdict.refusal(
            f"{why}: {verdict.rule}" if why else verdict.rule,
            witness=list(verdict.witness),
            nodes=list(verdict.nodes if nodes is None else nodes),
            func=func,
            legal=legal or verdict.legal,
        )


def require_same_meaning(
    before: State, after: State, unsafe: bool = False, move: Callable[[], bool] | None = None
) -> None:
    """Raise ``ScheduleError``, with a witness, unless every dependence of ``before`` is preserved in ``after``.
    That loops that run at once carry none is an invariant, checked after the step.

    Instances are matched by the iterators of their blocks; those of a statement outside of blocks by the values of its
    loops, so that it is refused where a step renumbers them. ``move``: whether a syntactic
    test proves the first part.
    """
    if unsafe or after.func is before.func:
        return
    require_legal(SameMeaning(before.func, after.func, move).answer(), before.func)


def require_injective(indices: Sequence[Expr], domains: Mapping[Var, Range], rule: str, *parts: Any) -> None:
    """Refuse by ``rule``, with two points that have the same indices, ``indices`` that are not injective on
    ``domains``."""
    verdict = Injective(tuple(indices), domains).answer()
    if isinstance(verdict, Unknown):
        raise verdict.refusal(verdict.rule)
    witness = verdict.witness if isinstance(verdict, Refuted) else ()
    require(verdict.is_proved, rule, *parts, witness=witness, nodes=())


def concurrent_iterations(func: PrimFunc, loop: For, ignored: frozenset[Var] = frozenset()) -> Verdict:
    """Whether ``loop``, if concurrent, carries no dependence through memory other than ``ignored``. For thread loops only
    global memory is checked: local buffers are per thread, and shared memory is synchronised by lowering."""
    if loop.kind == THREAD_BINDING:
        own = {b.data for b in nodes_of(loop) if type(b) is Buffer and ends_with_launch(b.scope)}
        verdict = check_parallel(func, loop, loop.kind, ignored | own | _reduced_across(loop))
        if isinstance(verdict, (Refuted, Unknown)):
            return replace(verdict, legal=_own_memory(func, loop, verdict.memory))
        return verdict
    return check_parallel(func, loop, loop.kind, ignored) if loop.kind in (PARALLEL, VECTORIZED) else PROVED


def _own_memory(func: PrimFunc, loop: For, buffer: Buffer | None) -> str:
    """Advice how threads that conflict in a buffer of the function can each have a private one."""
    if buffer is None or not any(buffer in ref.block.alloc_buffers for ref in index_of(func).blocks.values()):
        return ""
    scope = "shared" if is_block_axis(loop.thread) else "local"
    return (
        f'`{buffer.name}` in scope "{scope}", where each has memory of its own (set_scope first, or ask for that scope)'
    )


def _reduced_across(loop: For) -> frozenset[Var]:
    """Memory of the results of reductions shared by the threads of ``loop``, with or without their init."""
    found: set[Var] = set()
    if not is_thread_axis(loop.thread):
        return frozenset()
    for item in nodes_of(loop):
        results = shared_results(item.block) if type(item) is BlockRealize else ()
        if results:
            kinds = {i.iter_type for i, v in zip(item.block.iter_vars, item.iter_values) if uses_var(v, loop.loop_var)}
            if kinds == {"reduce"}:
                found |= memory_of(results)
    return frozenset(found)


def require_not_steering(buffer: Buffer, stmts: Iterable[Stmt]) -> None:
    """Refuse to redirect writes of ``buffer`` to a copy if a control expression in ``stmts`` reads it (a condition, a
    predicate, a binding, a loop bound or a let), since that would still read the buffer."""
    rule = "`{0}` reads buffer {1} outside of the body of a block, before the copy back has written it"
    loads = (found for stmt in stmts for found in steering_loads(stmt))
    _require_without(buffer, ((place, memory_of([load])) for place, load in loads), rule)


def require_stored_in_blocks(buffer: Buffer, stmts: Iterable[Stmt]) -> None:
    """Refuse if something in ``stmts`` writes ``buffer`` outside of blocks: a copy would miss that, and the copy back undo
    it."""
    rule = "`{0}` writes buffer {1} outside of a block, which a copy would miss or undo"
    _require_without(buffer, ((place, {memory}) for stmt in stmts for place, memory in bare_stores(stmt)), rule)


def _require_without(buffer: Buffer, uses: Iterable[tuple[Stmt, Any]], rule: str) -> None:
    for place, memory in uses:
        shown = place if isinstance(place, BlockRealize) else first_line(place)
        require(not shares_memory(buffer, memory), rule, shown, buffer.name, nodes=[place])
