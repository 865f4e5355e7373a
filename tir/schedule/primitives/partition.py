"""Partitioning a loop into consecutive pieces, and fusing adjacent loops of equal range: loop_partition, merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.dependence.tiers import require_legal
from ...analysis.index import BlockRef, LoopRef, Place
from ...errors import ScheduleError, require
from ...expr import Expr, Var, cast, const, constant
from ...names import derived_name
from ...stmt import SERIAL, For, SeqStmt, seq
from ...visit import substitute, vars_in
from ..handles import LoopRV
from ..nests import copy_renamed, renest
from ..primitive import primitive
from ..state import State
from .loops import factor_exprs, members, name_of, part_names, require_fixed_bounds, require_plain, visible_names

# ---------------------------------------------------------------- loop_partition


@dataclass(frozen=True)
class PartitionPlan:
    loop: LoopRef
    lengths: list[Expr]
    names: list[str]
    block_names: list[dict[str, str]]


def _lengths(f: For, given: Sequence[Expr | None]) -> list[Expr]:
    """The lengths of the pieces of loop ``f``: those ``given``, and what is left of it."""
    unknown = [n for n, e in enumerate(given) if e is None]
    require(
        given, "loop_partition needs at least one length", legal="lengths, one of which may be None, as in [3, None]"
    )
    require(len(unknown) <= 1, "only one length can be None; {0} are", len(unknown), legal="one None, and numbers")
    size = constant(f.extent)
    sizes = [None if e is None else constant(e) for e in given]
    require(size is not None and all(s is not None for e, s in zip(given, sizes) if e is not None),
            "loop_partition needs constant lengths, and loop {0} has extent {1}",
            f, f.extent, legal='split with tail="guard" works with symbolic sizes')  # fmt: skip
    assert size is not None
    used = sum(s for s in sizes if s is not None)
    require(used <= size,
            "the lengths {0} sum to {1}, but loop {2} has {3} iterations", [s for s in sizes if s], used, f, size,
            legal=f"lengths that sum to at most {size}; None for one takes the rest")  # fmt: skip
    dtype = f.loop_var.dtype
    lengths = [const(size - used if s is None else s, dtype) for s in sizes]
    if not unknown and used < size:
        lengths.append(const(size - used, dtype))
    return lengths


def _check_loop_partition(
    state: State, loop: LoopRef, factors: Sequence[int | Expr | None], preserve_unit_iters: bool = True
) -> PartitionPlan:
    """Partition a loop into consecutive loops of the lengths ``factors``; one may be None and takes the remainder.

    Without a None, the remainder becomes one more loop. The first piece keeps the names of its blocks, the others get
    ``_1``, ``_2`` …. Returns the loops, in order. Raises ``ScheduleError`` when the lengths exceed the loop's extent.

    Before, and after ``sch.loop_partition("i", [2, 64])``::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * 2.0

        for i_0 in range(2):
            with T.block("B"):
                vi = T.axis.spatial(128, i_0)
                B[vi] = A[vi] * 2.0
        for i_1 in range(2, 66):
            with T.block("B_1"):
                vi = T.axis.spatial(128, i_1)
                B[vi] = A[vi] * 2.0
        for i_2 in range(66, 128):
            with T.block("B_2"):
                vi = T.axis.spatial(128, i_2)
                B[vi] = A[vi] * 2.0
    """
    require_plain(loop, "loop_partition")
    lengths = _lengths(loop.node, factor_exprs(state, loop, factors))
    blocks = [p.name for p in state.index.below(loop) if isinstance(p, BlockRef)]
    renames: list[dict[str, str]] = [{b: b for b in blocks}]
    made: set[str] = set()
    for n in range(1, len(lengths)):
        row = {}
        for b in blocks:
            made.add(new := state.fresh_block_name(f"{b}_{n}", made))
            row[b] = new
        renames.append(row)
    return PartitionPlan(loop, lengths, part_names(state, loop, len(lengths)), renames)


@primitive(check=_check_loop_partition, past="partitioned", group="tile")
def loop_partition(state: State, plan: PartitionPlan) -> tuple[State, list[LoopRV]]:
    f = plan.loop.node
    start: Expr = f.min
    pieces: list[Any] = []
    variables: list[Var] = []
    for length, name, renames in zip(plan.lengths, plan.names, plan.block_names):
        whole = f if not pieces else copy_renamed(f, lambda old, renames=renames: renames[old])
        var = Var(name, f.loop_var.dtype)
        body = substitute(whole.body, {whole.loop_var: var})
        pieces.append(For(var, start, length, SERIAL, body))
        variables.append(var)
        start = start + length
    return state.replace(f, seq(pieces), moved={f.loop_var: variables}), [state.loop_rv(v) for v in variables]


# ---------------------------------------------------------------- merge


@dataclass(frozen=True)
class MergePlan:
    parent: SeqStmt
    tops: list[For]
    chains: list[list[For]]
    names: list[str]


def _check_merge(state: State, *loops: LoopRef, unsafe: bool = False) -> MergePlan:
    """Fuse adjacent loop nests of equal ranges (loop fusion): each iteration runs the first's body, then the next's.

    ``loops`` are the innermost loops to merge, one of each nest, in program order. Returns the merged loop.
    Raises ``ScheduleError`` when the nests are not adjacent, are of different depth or range, or when an iteration
    of a later nest depends on a later iteration of an earlier one. ``unsafe=True`` skips the last check.

    Before, and after ``sch.merge("i", "j")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
        for j in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, j)
                C[vi] = B[vi] + 1.0

        for i_j_m in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i_j_m)
                B[vi] = A[vi] * 2.0
            with T.block("C"):
                vi = T.axis.spatial(4, i_j_m)
                C[vi] = B[vi] + 1.0
    """
    given = members(loops)
    require(
        len(given) >= 2, "merge needs at least two loops", legal="two or more loops in adjacent nests of equal ranges"
    )
    parent = _common_parent(given)
    chains: list[list[For]] = []
    for loop in given:
        chain = [loop]
        while chain[-1].parent is not parent:
            above = chain[-1].parent
            if not isinstance(above, LoopRef):
                raise ScheduleError("loop {0} is not alone on the way up to where the nests meet", loop.node)
            chain.append(above)
        for link in chain:
            require_plain(link, "merge")
        chains.append([link.node for link in reversed(chain)])
    first = chains[0]
    for loop, chain in zip(given, chains):
        require(
            len(chain) == len(first),
            "loop {0} is {1} deep, {2} is {3}",
            loop.node,
            len(chain),
            given[0].node,
            len(first),
            nodes=[loop.node],
        )
        for a, b in zip(first, chain):
            same = all(_equal(x, y) for x, y in ((a.extent, b.extent), (a.min, b.min)))
            require(same,
                    "loop {0} runs over {1} iterations from {2}, loop {3} over {4} from {5}", a, a.extent, a.min, b,
                    b.extent, b.min, legal="loops of equal ranges: loop_partition the longer one first")  # fmt: skip
    tops = [chain[0] for chain in chains]
    stmts = list(parent.node.stmts)
    at = [next(n for n, s in enumerate(stmts) if s is top) for top in tops]
    stand = ", ".join(f"`{ref.name}`" for _, ref in sorted(zip(at, given), key=lambda pair: pair[0]))
    require(at == sorted(at), "the loops stand in another order in the program: {0}", stand, nodes=tops)
    between = [name_of(s) for n, s in enumerate(stmts) if at[0] < n < at[-1] and n not in at]
    require(not between, "the nests are not next to each other: between them is {0}", " and ".join(between), nodes=tops)
    taken = visible_names(state, [given[0]])
    names = [
        derived_name("_".join(dict.fromkeys(c[d].loop_var.name for c in chains)), "_m", taken)
        for d in range(len(first))
    ]
    plan = MergePlan(parent.node, tops, chains, names)
    if not unsafe:
        _require_order(state, plan)
    return plan


def _equal(a: Expr, b: Expr) -> bool:
    x, y = constant(a), constant(b)
    if x is not None and y is not None:
        return x == y
    from ...arith import Analyzer

    return a is b or (not vars_in(a) ^ vars_in(b) and Analyzer().can_prove_equal(a, b))


def _common_parent(loops: list[LoopRef]) -> Place:
    above = [list(loop.ancestors()) for loop in loops]
    for place in above[0]:
        if all(place in others for others in above[1:]):
            if isinstance(place.node, SeqStmt):
                return place
            break
    raise ScheduleError("the loops are not in neighbouring nests of one scope", nodes=[loop.node for loop in loops])


def _require_order(state: State, plan: MergePlan) -> None:
    from ...analysis.dependence.loop_questions import check_merge

    for loop in (loop for chain in plan.chains for loop in chain):
        require_fixed_bounds(state.index.loops[loop.loop_var], "merge", *plan.tops)
    require_legal(check_merge(state.func, plan.chains), state.func)


@primitive(check=_check_merge, past="merged", instead=("fuse", "compute_at", "reverse_compute_at"), group="order")
def merge(state: State, plan: MergePlan) -> tuple[State, LoopRV]:
    first = plan.chains[0]
    variables = [Var(name, f.loop_var.dtype) for name, f in zip(plan.names, first)]
    bodies = []
    moved: dict[Any, Any] = {}
    for chain in plan.chains:
        mapping = {f.loop_var: cast(f.loop_var.dtype, v) for f, v in zip(chain, variables)}
        bodies.append(substitute(chain[-1].body, mapping))
        moved.update({f.loop_var: [v] for f, v in zip(chain, variables)})
    headers = [For(v, f.min, f.extent, SERIAL, f.body) for v, f in zip(variables, first)]
    headers = [substitute_range(h, dict(zip((f.loop_var for f in first), variables))) for h in headers]
    merged = renest(headers, seq(bodies))
    kept: list[Any] = []
    for s in plan.parent.stmts:
        if s is plan.tops[0]:
            kept.append(merged)
        elif not any(s is top for top in plan.tops):
            kept.append(s)
    return state.replace(plan.parent, seq(kept), moved=moved), state.loop_rv(variables[-1])


def substitute_range(loop: For, mapping: dict[Var, Var]) -> For:
    """``loop`` with its range (not its body) in terms of other variables."""
    low, extent = substitute(loop.min, mapping), substitute(loop.extent, mapping)
    return loop.replace(min=low, extent=extent)
