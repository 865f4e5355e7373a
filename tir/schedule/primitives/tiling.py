"""Transforming a loop nest in one step: tile, skew, fission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.dependence.tiers import require_legal
from ...analysis.evaluation import entered
from ...analysis.index import BlockRef, LoopRef
from ...errors import refusal, require, require_none
from ...expr import Expr, Var, const, logical_and
from ...names import derived_name
from ...stmt import SERIAL, THREAD_BINDING, For, SeqStmt, Stmt, seq
from ...visit import substitute, vars_in
from ..handles import LoopRV
from ..nests import domains, substitute_loop_vars
from ..primitive import primitive, require_same_meaning
from ..state import State
from .loops import part_names, plan_split, require_fixed_bounds, require_plain, split, visible_names
from .reorder import plan_reorder, reorder

# ---------------------------------------------------------------- tile


@primitive(prepared_by=("fission", "unswitch", "skew"), group="tile")
def tile(
    state: State,
    where: list[LoopRef] | BlockRef,
    factors: Sequence[int | Expr | None | Sequence[int | Expr | None]],
    *,
    tail: str = "guard",
    unsafe: bool = False,
) -> tuple[State, list[LoopRV]]:
    """Split several loops and move their outer parts outside all inner ones: ``split`` and ``reorder`` in one step.

    ``where`` is a list of loops of one nest, or a block: then its innermost loops, as many as there are factors.
    A factor is a tile size, or a list of sizes for several levels. ``tail`` is as for ``split``. Returns the loops,
    outermost first. Raises ``ScheduleError`` as ``split`` and ``reorder`` do; ``unsafe=True`` is passed to ``reorder``.

    Before, and after ``sch.tile(["i", "j"], [4, 8])``::

        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

        for i_0, j_0, i_1, j_1 in T.grid(4, 2, 4, 8):
            with T.block("B"):
                vi = T.axis.spatial(16, i_0 * 4 + i_1)
                vj = T.axis.spatial(16, j_0 * 8 + j_1)
                B[vi, vj] = A[vi, vj] * 2.0
    """
    require(factors, "tile needs at least one factor", legal="a factor for each loop")
    levels: list[list[Any]] = [list(f) if isinstance(f, (list, tuple)) else [f] for f in factors]
    depth = max(len(sizes) for sizes in levels)
    require(all(len(sizes) == depth for sizes in levels) and depth > 0,
            "every loop needs the same number of tile sizes; they have {0}", ", ".join(str(len(s)) for s in levels))  # fmt: skip
    require(tail != "cut", 'tile makes one nest, so tail="cut" does not fit', legal='"guard" or "exact"')
    loops = _loops_to_tile(where, len(levels))
    rows = []
    for loop, sizes in zip(loops, levels):
        # The loop is looked up again: the program has changed since the first split.
        plan = plan_split(state, state.index.loops[loop.var], [None, *sizes], tail=tail)
        state, parts = split(state, plan)
        rows.append([part.var for part in parts])
    order = [row[level] for level in range(depth + 1) for row in rows]
    state = reorder(state, plan_reorder(state, *(state.index.loops[v] for v in order), unsafe=unsafe))
    return state, [state.loop_rv(v) for v in order]


def _loops_to_tile(where: Any, count: int) -> list[LoopRef]:
    if isinstance(where, BlockRef):
        loops = where.loops()
        require(count <= len(loops),
                "block {0} has {1} loops, but there are {2} factors",
                where, len(loops), count, legal=f"at most {len(loops)} factors")  # fmt: skip
        return loops[len(loops) - count :]
    loops = where if isinstance(where, list) else [where]
    require(len(loops) == count, "{0} loops but {1} factors", len(loops), count, legal=f"{len(loops)} factors")
    blocks = [ref for ref in loops if isinstance(ref, BlockRef)]
    require_none(blocks, "{0} is a block; give a list of loops, or one block alone")
    return loops


# ---------------------------------------------------------------- skew


@dataclass(frozen=True)
class SkewPlan:
    outer: LoopRef
    inner: LoopRef
    factor: int
    name: str


def _check_skew(state: State, outer: LoopRef, inner: LoopRef, factor: int = 1) -> SkewPlan:
    """Skew ``inner`` by ``factor`` for each iteration of ``outer``: its new variable is ``inner + factor * outer``.

    The loop runs over the union of the shifted ranges, with a predicate, so that the two can be reordered afterwards:
    a stencil over time then runs in wavefronts. The order of iterations does not change, so skew is always legal.
    Returns the new loop.

    Before, and after ``sch.skew("t", "i", 1)``::

        for t, i in T.grid(4, 16):
            with T.block("A"):
                vt, vi = T.axis.remap("SS", [t, i])
                A[vt + 1, vi] = A[vt, vi] * 2.0

        for t, i_s in T.grid(4, 19):
            with T.block("A"):
                vt = T.axis.spatial(4, t)
                vi = T.axis.spatial(16, i_s - t)
                T.where(t <= i_s and i_s < t + 16)
                A[vt + 1, vi] = A[vt, vi] * 2.0
    """
    require(factor != 0, "a factor of 0 does not skew", legal="any other integer")
    require_plain(inner, "skew")
    require_fixed_bounds(outer, "skew")
    require(outer in inner.ancestors(),
            "loop {0} is not outside loop {1}", outer.node, inner.node, legal=[ref.name for ref in inner.loops()])  # fmt: skip
    require(outer.var not in vars_in(inner.node.extent) | vars_in(inner.node.min),
            "the range of {0} depends on {1} already", inner.node, outer.node, nodes=[inner.node])  # fmt: skip
    nested = [r for r in state.index.below(inner) if isinstance(r, LoopRef) and r.node.thread == outer.node.thread]
    rule = "loop {0} under {1} is bound to {2}, as {3} is: in its threads the iterations of {1} would differ"
    places = [outer.node, *(r.node for r in nested)]
    require_none(nested if outer.node.thread else [], rule, inner, outer.node.thread, outer, nodes=places)
    crossing = vars_in(outer.node.extent) & {p.var for p in inner.all_loops()[len(outer.all_loops()) :]}
    require(not crossing, "the range of {0} is not known outside {1}", outer.node, inner.node, nodes=[outer.node])
    return SkewPlan(outer, inner, int(factor), derived_name(inner.name, "_s", visible_names(state, [inner])))


@primitive(check=_check_skew, group="order")
def skew(state: State, plan: SkewPlan) -> tuple[State, LoopRV]:
    outer, inner = plan.outer.node, plan.inner.node
    dtype = inner.loop_var.dtype
    var = Var(plan.name, dtype)
    step = const(abs(plan.factor), dtype)
    steps = (outer.loop_var - outer.min).astype(dtype)
    reach = (outer.extent - 1).astype(dtype) * step
    shift = steps * step if plan.factor > 0 else reach - steps * step
    known = domains(p.node for p in plan.inner.all_loops())
    from ...arith import Analyzer

    analyzer = Analyzer()
    for v, r in known.items():
        analyzer.bind(v, r)
    past = bool(entered([inner.extent], analyzer))
    loop = For(var, const(0, dtype), analyzer.simplify(inner.extent + reach), SERIAL, inner.body)
    bounds = {**domains(p.node for p in (*plan.inner.all_loops(),)), var: loop.domain}
    analyzer.bind(var, bounds[var])
    at = analyzer.simplify(var - shift)
    guard = logical_and(analyzer.simplify(at >= 0), analyzer.simplify(at < inner.extent))
    body = substitute_loop_vars(inner.body, {inner.loop_var: inner.min + at}, bounds, guard, past_empty=past)
    return state.replace(inner, loop.with_body(body), moved={inner.loop_var: [var]}), state.loop_rv(var)


# ---------------------------------------------------------------- fission


@dataclass(frozen=True)
class FissionPlan:
    loop: LoopRef
    parts: tuple[tuple[Stmt, ...], ...]
    names: tuple[str, ...]


def _check_fission(
    state: State, loop: LoopRef, at: int | Sequence[int] | None = None, *, unsafe: bool = False
) -> FissionPlan:
    """Distribute a loop over the parts of its body: all iterations of the first part, then all of the next.

    ``at`` gives the statements of the body (counted from 0) before which to cut: a number or a list of them; by default
    every statement gets its own loop. Each loop keeps the range, kind and annotations. Returns the loops, in order.

    Raises ``ScheduleError`` when the body is a single statement, or when an earlier part in a later iteration writes
    what a later part accesses (with the two instances). ``unsafe=True`` skips the last check.

    Before, and after ``sch.fission("i")``::

        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] * 2.0
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi] + 1.0

        for i_0 in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i_0)
                B[vi] = A[vi] * 2.0
        for i_1 in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i_1)
                C[vi] = B[vi] + 1.0
    """
    node = loop.node
    body = node.body
    require(isinstance(body, SeqStmt),
            "the body of loop {0} is one statement: there are no parts to distribute it over",
            node, legal=_loops_with_parts(state))  # fmt: skip
    assert isinstance(body, SeqStmt)
    require(node.kind != THREAD_BINDING,
            "loop {0} is bound to {1}: its parts would lose the barrier between them",
            node, node.thread, legal="fission first, and bind the loops it gives")  # fmt: skip
    cuts = _cuts(at, len(body.stmts), node)
    if not unsafe:
        require_fixed_bounds(loop, "fission")
    edges = [0, *cuts, len(body.stmts)]
    parts = tuple(body.stmts[a:b] for a, b in zip(edges, edges[1:]))
    plan = FissionPlan(loop, parts, tuple(part_names(state, loop, len(parts))))
    if not unsafe:
        from ...analysis.dependence.loop_questions import check_fission

        verdict = check_fission(state.func, node, cuts)
        if not verdict.is_proved and not _same_meaning(state, _distributed(state, plan)[0]):
            require_legal(verdict, state.func)
    return plan


def _same_meaning(state: State, after: State) -> bool:
    """Whether the step is legal except for idempotent blocks that the loop repeats."""
    return refusal(lambda: require_same_meaning(state, after)) is None


def _cuts(at: int | Sequence[int] | None, size: int, node: For) -> list[int]:
    if at is None:
        return list(range(1, size))
    given: list[Any] = [at] if not isinstance(at, Sequence) else list(at)
    bad = [n for n in given if not 0 < n < size]
    require(given and not bad,
            "a cut before statement {0} leaves nothing on one side: the body of loop {1} has {2} statements",
            bad[0] if bad else "", node, size, legal=f"1 to {size - 1}")  # fmt: skip
    return sorted({int(n) for n in given})


def _loops_with_parts(state: State) -> str:
    names = [ref.name for ref in state.index.loops.values() if isinstance(ref.node.body, SeqStmt)]
    return ", ".join(names) or "none: no loop of the program has more than one statement"


@primitive(check=_check_fission, prepared_by=("compute_root",), group="order")
def fission(state: State, plan: FissionPlan) -> tuple[State, list[LoopRV]]:
    after, variables = _distributed(state, plan)
    return after, [state.loop_rv(v) for v in variables]


def _distributed(state: State, plan: FissionPlan) -> tuple[State, list[Var]]:
    node = plan.loop.node
    variables = [Var(name, node.loop_var.dtype) for name in plan.names]
    made = [
        node.replace(loop_var=v, body=substitute(seq(part), {node.loop_var: v}))
        for v, part in zip(variables, plan.parts)
    ]
    return state.replace(node, seq(made), moved={node.loop_var: variables}), variables
