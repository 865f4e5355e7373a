"""How a loop runs: parallel, vectorize, unroll, bind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.dependence import selects
from ...errors import require
from ...expr import Expr, IntImm, Var
from ...node import EMPTY
from ...stmt import (
    PARALLEL,
    SERIAL,
    THREAD_BINDING,
    UNROLLED,
    VECTORIZED,
    Block,
    BlockRealize,
    BufferStore,
    For,
    SeqStmt,
)
from ...visit import substitute, walk
from ..primitive import primitive
from ..state import LoopRef, Place, State
from ._structure import is_standard, separates
from ._substitute import constant, vars_in
from .loops import refuse

THREAD_AXIS = re.compile(r"(blockIdx|threadIdx)\.[xyz]$|vthread(\.[xyz])?$")


@dataclass(frozen=True)
class KindPlan:
    loop: LoopRef
    kind: str
    thread: str = ""
    annotations: Any = None


def _require_unmarked(loop: LoopRef, kind: str) -> None:
    f = loop.node
    require(
        f.kind in (SERIAL, kind),
        "loop {0} is already {1}",
        f,
        f"bound to {f.thread}" if f.thread else f.kind,
        nodes=[f],
    )


def _require_independent(state: State, loop: LoopRef, kind: str) -> None:
    """Refuse unless no iteration of ``loop`` needs another's result, nor writes the same element."""
    f = loop.node
    if constant(f.extent) in (0, 1):
        return
    below = list(state.index.below(loop))
    blocks = state.index.blocks_below(loop)
    plain = all(
        isinstance(p.node, (For, BlockRealize)) or p.scope is not loop.scope or isinstance(p.node, SeqStmt)
        for p in below
    )
    if plain and blocks:
        for ref in blocks:
            _require_no_reduction(state, loop, ref.node, kind)
        inside = {b: [p.node for p in b.loops() if loop in p.ancestors()] for b in blocks}
        if all(separates(b.node, f, inside[b]) for b in blocks) and _apart([b.block for b in blocks]):
            return
    from .. import legality

    violation = legality.check_parallel(state.func, f, kind)
    if violation is not None:
        refuse(state, violation)


def _apart(blocks: Sequence[Block]) -> bool:
    """Whether no block touches what another writes."""
    touched = [({r.buffer.data for r in b.reads} | {r.buffer.data for r in b.writes}) for b in blocks]
    return all(
        a == b or touched[a].isdisjoint(r.buffer.data for r in blocks[b].writes)
        for a in range(len(blocks))
        for b in range(len(blocks))
    )


def _require_no_reduction(state: State, loop: LoopRef, realize: BlockRealize, kind: str) -> None:
    """Refuse where ``loop`` moves only reduction iterators of an update: all iterations write one element."""
    block = realize.block
    if not is_standard(block):
        return
    moved = [i for i, v in zip(block.iter_vars, realize.iter_values) if loop.var in vars_in(v)]
    if not moved or any(i.iter_type != "reduce" for i in moved):
        return
    lines = _same_element(loop.node, realize)
    verb = {VECTORIZED: "vectorized", PARALLEL: "parallel"}.get(kind, kind)
    require(
        False,
        "loop {0} cannot be {1}: its iterations update the same element, and each needs the one before",
        loop.node,
        verb,
        witness=lines,
        func=state.func,
        nodes=[loop.node],
        legal="reorder and mark a spatial loop" + _spatial_loops(loop, realize) + ", or rfactor this one",
    )


def _spatial_loops(loop: LoopRef, realize: BlockRealize) -> str:
    used: set[Var] = set()
    for iterator, value in zip(realize.block.iter_vars, realize.iter_values):
        if iterator.iter_type == "spatial":
            used |= vars_in(value)
    names = sorted(v.name for v in used)
    return f" ({', '.join(names)})" if names else ""


def _same_element(loop: For, realize: BlockRealize) -> list[str]:
    """Two iterations and the element that both write."""
    from ...arith import simplify

    values = {i.var: v for i, v in zip(realize.block.iter_vars, realize.iter_values)}
    store = next(s for s in walk(realize.block.body) if isinstance(s, BufferStore))
    found = []
    for step in (0, 1):
        at = simplify(loop.min + step)
        zero: dict[Var, Expr] = {}
        texts = []
        for index in store.indices:
            e = substitute(substitute(index, values), {loop.loop_var: at})
            zero.update({v: IntImm(0, v.dtype) for v in vars_in(e)})
            texts.append(repr(simplify(substitute(e, zero))))
        found.append((repr(at), f"{store.buffer.name}[{', '.join(texts)}]"))
    (a, element), (b, _) = found
    name = loop.loop_var.name
    return [f"{name}={a} and {name}={b} both write {element}"]


def _check_parallel(state: State, loop: LoopRef, *, unsafe: bool = False) -> KindPlan:
    """Run the iterations of a loop on several cores at once.

    Raises ``ScheduleError`` when one iteration writes what another reads or writes (with the two). ``unsafe=True``
    skips that check.

    Before, and after ``sch.parallel("i")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in T.parallel(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
    """
    _require_unmarked(loop, PARALLEL)
    if not unsafe:
        _require_independent(state, loop, PARALLEL)
    return KindPlan(loop, PARALLEL)


def _check_vectorize(state: State, loop: LoopRef, *, unsafe: bool = False) -> KindPlan:
    """Run the iterations of a loop as the lanes of vector instructions.

    Raises ``ScheduleError`` when one iteration writes what another reads or writes (with the two). ``unsafe=True``
    skips that check.

    Before, and after ``sch.vectorize("i")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in T.vectorized(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
    """
    _require_unmarked(loop, VECTORIZED)
    require(
        constant(loop.node.extent) is not None,
        "vectorize needs a constant number of lanes, but loop {0} runs {1} times",
        loop.node,
        loop.node.extent,
        nodes=[loop.node],
        legal="split it by a constant and vectorize the inner loop",
    )
    if not unsafe:
        _require_independent(state, loop, VECTORIZED)
    return KindPlan(loop, VECTORIZED)


def _check_unroll(state: State, loop: LoopRef) -> KindPlan:
    """Write the iterations of a loop out one after another when it is lowered. Always legal.

    Before, and after ``sch.unroll("i")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in T.unroll(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
    """
    _require_unmarked(loop, UNROLLED)
    return KindPlan(loop, UNROLLED)


def _check_bind(state: State, loop: LoopRef, thread_axis: str, *, unsafe: bool = False) -> KindPlan:
    """Run the iterations of a loop as threads (``threadIdx.x`` …), blocks (``blockIdx.x`` …) or ``vthread``.

    Raises ``ScheduleError`` when iterations depend on each other (a reduction across ``threadIdx`` may), when the
    axis has another extent in the same kernel, when it is bound twice on one path, or past the target's limits.
    ``unsafe=True`` skips the check of dependences.

    Before, and after ``sch.bind("i", "threadIdx.x")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
    """
    require(
        isinstance(thread_axis, str) and THREAD_AXIS.match(thread_axis),
        "{0!r} is not a thread axis",
        thread_axis,
        legal="blockIdx.x/y/z, threadIdx.x/y/z, vthread, vthread.x/y/z",
    )
    f = loop.node
    require(f.kind == SERIAL, "loop {0} is already {1}", f, f"bound to {f.thread}" if f.thread else f.kind, nodes=[f])
    _require_axis_fits(state, loop, thread_axis)
    if not unsafe and not (thread_axis.startswith("threadIdx") and _crosses_threads(state, loop)):
        _require_independent(state, loop, THREAD_BINDING)
    return KindPlan(loop, THREAD_BINDING, thread_axis)


def _kernel(loop: LoopRef) -> Place:
    """The outermost statement of the kernel ``loop`` is in: a child of the root block, or under a root sequence."""
    place: Place = loop
    for above in loop.ancestors():
        if isinstance(above, LoopRef):
            place = above
    return place


def _require_axis_fits(state: State, loop: LoopRef, axis: str) -> None:
    f = loop.node
    mine = constant(f.extent)
    bound = [p for p in state.index.below(_kernel(loop)) if isinstance(p, LoopRef) and p.node.thread]
    if not axis.startswith("vthread"):
        above = set(loop.ancestors())
        for other in bound:
            if other.node.thread != axis:
                continue
            require(
                other not in above and loop not in other.ancestors(),
                "{0} is already bound to loop {1} on the same path",
                axis,
                other.node,
                nodes=[other.node, f],
            )
            theirs = constant(other.node.extent)
            require(
                theirs == mine,
                "{0} already has extent {1} (loop {2}) in this kernel; loop {3} has {4}",
                axis,
                other.node.extent,
                other.node,
                f,
                f.extent,
                nodes=[other.node, f],
                legal="split to match, or bind another axis",
            )
    if axis.startswith("threadIdx") and mine is not None:
        _require_threads(state, loop, axis, bound, mine)


def _require_threads(state: State, loop: LoopRef, axis: str, bound: Sequence[LoopRef], mine: int) -> None:
    limit = state.target.limit("max_threads_per_block") if state.target else None
    limit = limit or 1024  # no GPU that we know of takes more
    sizes: dict[str, int] = {axis: mine}
    for other in bound:
        size = constant(other.node.extent)
        if other.node.thread.startswith("threadIdx") and size is not None:
            sizes[other.node.thread] = size
    total = 1
    for size in sizes.values():
        total *= size
    text = " x ".join(f"{size} ({name})" for name, size in sorted(sizes.items()))
    require(
        total <= limit,
        "{0} threads in a block, {1}, exceed the limit of {2}",
        total,
        text,
        limit,
        nodes=[loop.node],
        legal=f"split loop {loop.name} by at most {max(limit // (total // mine), 1)} and bind the inner loop",
    )
    if axis.endswith(".z"):
        require(mine <= 64, "threadIdx.z is at most 64, loop {0} has {1}", loop.node, mine, nodes=[loop.node])


def _crosses_threads(state: State, loop: LoopRef) -> bool:
    """Whether the blocks below that ``loop`` reduces are reductions that threads can share (with init, one update)."""
    blocks = state.index.blocks_below(loop)
    if not blocks:
        return False
    reduces = False
    for ref in blocks:
        block = ref.block
        moved = [i for i, v in zip(block.iter_vars, ref.node.iter_values) if loop.var in vars_in(v)]
        if any(i.iter_type == "reduce" for i in moved):
            shared = is_standard(block) or selects(block.body)
            if not shared or block.init is None or any(i.iter_type != "reduce" for i in moved):
                return False
            reduces = True
        elif not separates(ref.node, loop.node, [p.node for p in ref.loops() if loop in p.ancestors()]):
            return False
    return reduces and _apart([b.block for b in blocks])


def _mark(state: State, plan: KindPlan) -> State:
    f = plan.loop.node
    if f.kind == plan.kind and f.thread == plan.thread:
        return state
    return state.replace(
        f, For(f.loop_var, f.min, f.extent, plan.kind, f.body, plan.thread, f.annotations or EMPTY, span=f.span)
    )


for _name, _check in (
    ("parallel", _check_parallel),
    ("vectorize", _check_vectorize),
    ("unroll", _check_unroll),
    ("bind", _check_bind),
):
    primitive(check=_check, name=_name)(_mark)
