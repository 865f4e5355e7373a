"""Splitting and fusing loops: split, fuse, add_unit_loop."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...analysis.contents import contents
from ...analysis.evaluation import entered
from ...analysis.index import BlockRef, LoopRef
from ...analysis.private_clause import with_private
from ...annotations import PRIVATE
from ...arith import Analyzer, simplify
from ...arith.divide import divisors
from ...errors import ScheduleError, require, require_none
from ...expr import Expr, IntImm, Var, as_expr, cast, const, constant, floordiv, floormod, is_const
from ...names import derived_name, unique_name
from ...node import frozendict
from ...stmt import PARALLEL, SERIAL, BlockRealize, For, SeqStmt, Stmt
from ...visit import has_load, substitute, vars_in
from ..handles import LoopRV
from ..invariants import Keeps
from ..nests import copy_renamed, domains, product, renest, substitute_loop_vars
from ..primitive import BadArgument, primitive
from ..state import State

TAILS = ("guard", "cut", "exact")  # what becomes of iterations that fill no tile


def require_plain(loop: LoopRef, what: str, inherited: Collection[str] = ()) -> None:
    """Refuse a loop that is bound, annotated or not serial, because it is not clear which new loop would inherit
    that; but for ``inherited`` annotations."""
    f = loop.node
    dropped = [key for key in f.annotations if key not in inherited]
    kind = f"bound to {f.thread}" if f.thread else f.kind
    require(f.kind == SERIAL,
            "loop {0} is {1}; {2} takes serial loops",
            f, kind, what, legal=f"{what} first, and mark the loops it gives")  # fmt: skip
    require(not dropped,
            "loop {0} has annotations ({1}) that {2} would drop",
            f, ", ".join(dropped), what, legal=f"unannotate it, {what}, and annotate the loops it gives")  # fmt: skip
    require_fixed_bounds(loop, what)


def require_fixed_bounds(loop: LoopRef, what: str, *within: For) -> None:
    """Refuse a loop whose iterations, or which the loops ``within``, write the memory that its bounds are read from: they
    are read once, before the first iteration, and other loops in its place would read them again, or earlier."""
    bounds = [e for e in (loop.node.min, loop.node.extent) if has_load(e)]
    if not bounds:
        return
    writers = within or (loop.node,)
    changing = next(((e, f) for e in bounds for f in writers if loop.may_change(e, f.body)), None)
    if changing is not None:
        raise ScheduleError(
            "the iterations of loop {0} may change `{1}`, which {2} are read from: {3} would read it at another time",
            changing[1],
            changing[0],
            "its bounds" if changing[1] is loop.node else f"the bounds of loop `{loop.name}`",
            what,
            nodes=[loop.node],
        )


def visible_names(state: State, loops: Sequence[LoopRef]) -> set[str]:
    """Names of loops above and below, which a new loop here must avoid; those of ``loops`` are free."""
    gone = {loop.node for loop in loops}
    around = {p.name for p in loops[0].all_loops()}
    below = {f.loop_var.name for f in contents(loops[-1].node) if type(f) is For and f not in gone}
    params = {p.name for p in state.func.params}
    return (around | below | params) - {n.loop_var.name for n in gone}


def part_names(state: State, loop: LoopRef, count: int) -> list[str]:
    """Names of ``count`` loops that ``loop`` becomes: ``i_0``, ``i_1`` …"""
    taken = visible_names(state, [loop])
    made: list[str] = []
    for n in range(count):
        made.append(derived_name(loop.name, f"_{n}", taken.union(made)))
    return made


def require_perfect(loops: Sequence[LoopRef], block: BlockRef, rule: str) -> None:
    """Refuse by ``rule``, about loop ``{0}`` and block ``{1}``, loops that are around more than each other and the block."""
    wide = [p for p, inner in zip(loops, [*loops[1:], block]) if p.node.body is not inner.node]
    require_none(wide[-1:], rule, block)


# ---------------------------------------------------------------- split


@dataclass(frozen=True)
class SplitPlan:
    loop: LoopRef
    extents: tuple[Expr, ...]
    names: tuple[str, ...]
    guarded: bool
    past_empty: bool
    """Whether the new loops may run though the loop has no iterations."""
    keep_units: bool
    cut: int | None = None
    recorded: Mapping[str, Any] = field(default_factory=frozendict)


def _variables_at(state: State, loop: LoopRef) -> set[Var]:
    """The variables in scope just outside of ``loop``."""
    buffers = state.func.buffer_map.values()
    found = {*state.func.params, *(v for b in buffers for e in (*b.shape, *b.strides) for v in vars_in(e))}
    for place in loop.ancestors():
        node = place.node
        found.update(i.var for i in getattr(node, "iter_vars", ()))
        found.update(v for v in (getattr(node, "loop_var", None), getattr(node, "var", None)) if v is not None)
        found.update(v for v in [getattr(getattr(node, "node", None), "var", None)] if v is not None)
    return found


def factor_exprs(state: State, loop: LoopRef, factors: Sequence[Any]) -> list[Expr | None]:
    made: list[Expr | None] = []
    dtype = loop.var.dtype
    for f in factors:
        if f is None:
            made.append(None)
            continue
        unknown = next(iter(vars_in(f) - _variables_at(state, loop)), None) if isinstance(f, Expr) else None
        require(unknown is None,
                "the factor `{0}` uses `{1}`, which has no value at loop {2}", f, unknown, loop.node, nodes=())  # fmt: skip
        try:
            e = cast(dtype, f) if isinstance(f, Expr) else const(int(f), dtype)
        except ValueError as error:
            raise ScheduleError("a factor is an extent: {0}", str(error)) from None
        value = constant(e)
        require(
            value is None or value > 0,
            "a factor must be positive, not {0}",
            value,
            legal="1 or more, or None for the factor that is inferred",
        )
        made.append(e)
    return made


def _given_factors(
    factors: Sequence[int | Expr | None] | None, factor: int | Expr | None, nparts: int | Expr | None
) -> Sequence[int | Expr | None]:
    """The factors of a split, by the one argument that gives them."""
    if sum(g is not None for g in (factors, factor, nparts)) != 1:
        raise BadArgument("split takes one of factors=[…], factor= or nparts=")
    if factors is not None:
        return factors
    return [None, factor] if factor is not None else [nparts, None]


def _known(factors: Sequence[Expr | None]) -> list[Expr]:
    """Those of ``factors`` that are given."""
    return [f for f in factors if f is not None]


def plan_split(
    state: State,
    loop: LoopRef,
    factors: Sequence[int | Expr | None] | None = None,
    preserve_unit_iters: bool = True,
    disable_predication: bool = False,
    *,
    factor: int | Expr | None = None,
    nparts: int | Expr | None = None,
    names: Sequence[str] | None = None,
    tail: str = "guard",
) -> SplitPlan:
    """Split a loop into a nest of loops whose extents are ``factors``, outermost first.

    One factor may be None and is inferred; ``factor=32`` stands for ``[None, 32]``, ``nparts=4`` for ``[4, None]``.
    If the factors do not divide the extent, ``tail`` selects what happens: ``"guard"`` masks the extra iterations with
    a predicate on the blocks below, ``"cut"`` runs the remainder in a separate loop afterwards, ``"exact"`` refuses.
    ``disable_predication`` omits the guard; the caller asserts that the factors divide. ``names`` are the names of the
    new loops (default ``i_0``, ``i_1`` …). With ``preserve_unit_iters=False`` loops of one iteration vanish from
    bindings. The innermost new loop inherits a ``private`` clause.

    Returns the new loops, outermost first (with ``"cut"``: those of the main part). Raises ``ScheduleError`` for a loop
    that is bound, annotated or not serial, and for factors that lose iterations.

    Before, and after ``sch.split("i", [None, 32])``::

        for i in range(100):
            with T.block("B"):
                vi = T.axis.spatial(100, i)
                B[vi] = A[vi] * 2.0

        for i_0, i_1 in T.grid(4, 32):
            with T.block("B"):
                vi = T.axis.spatial(100, i_0 * 32 + i_1)
                T.where(i_0 * 32 + i_1 < 100)
                B[vi] = A[vi] * 2.0
    """
    factors = _given_factors(factors, factor, nparts)
    if tail not in TAILS:
        raise BadArgument(f"tail is 'guard', 'cut' or 'exact', not {tail!r}")
    require_plain(loop, "split", () if tail == "cut" else (PRIVATE,))
    node = loop.node
    exprs = factor_exprs(state, loop, factors)
    require(exprs, "split needs at least one factor", legal="factors, one of which may be None, as in [None, 4]")
    unknown = [n for n, f in enumerate(exprs) if f is None]
    require(len(unknown) <= 1, "only one factor can be None; {0} are", len(unknown), legal="one None, and numbers")
    known = Analyzer({p.var: p.range for p in loop.all_loops()})  # not that the loop is entered: it may be empty
    inner = product(_known(exprs), node.loop_var.dtype)
    divides = _divides(node.extent, inner, known) if unknown else _covers_exactly(node.extent, inner, known)
    if unknown:
        exprs[unknown[0]] = known.simplify(_parts(node, inner, divides or tail == "cut"))
    elif not divides and not disable_predication:
        require(_proved(known, node.extent <= inner),
                "the factors {0} give {1} iterations, but loop {2} has {3}: some would be lost",
                "[" + ", ".join(map(str, exprs)) + "]", inner, node, node.extent, nodes=[node],
                legal="make one factor None to have it inferred")  # fmt: skip
    extents = tuple(_known(exprs))
    guarded = not divides and not disable_predication
    cut = None
    if guarded and tail != "guard":
        require(tail == "cut",
                "the factors do not divide the extent {0} of loop {1}",
                node.extent, node, legal=_divisors(constant(node.extent)))  # fmt: skip
        whole, step = _whole_tiles(node, inner if unknown else None)
        cut, guarded = whole * step, False
        extents = tuple(const(whole, node.loop_var.dtype) if n in unknown else e for n, e in enumerate(extents))
    past_empty = guarded and not unknown and bool(entered([node.extent], known))
    made = _split_names(state, loop, names, len(extents))
    return SplitPlan(loop, extents, made, guarded, past_empty, preserve_unit_iters, cut)


def _parts(node: For, inner: Expr, divides: bool) -> Expr:
    """How many times ``inner`` iterations have those of loop ``node``, the last time perhaps in part."""
    size, step = constant(node.extent), constant(inner)
    if divides or size is None or not step:
        return floordiv(node.extent if divides else node.extent + (inner - 1), inner)
    count, dtype = -(-size // step), node.loop_var.dtype
    require(count * step <= dtype.max_value,
            "the new loops have {0} iterations, which do not fit {1}", count * step, dtype, nodes=[node],
            legal="factors that divide, or the same loop with an extent of a wider type")  # fmt: skip
    return const(count, dtype)


def _whole_tiles(node: For, inner: Expr | None) -> tuple[int, int]:
    """How many tiles of ``inner`` iterations loop ``node`` has whole, and that number as a constant."""
    size, step = constant(node.extent), None if inner is None else constant(inner)
    require(size is not None and step is not None and size >= step,
            'tail="cut" needs constant sizes, one factor None, and at least one whole tile',
            nodes=[node], legal='tail="guard"')  # fmt: skip
    assert size is not None and step is not None
    return size // step, step


def _split_names(state: State, loop: LoopRef, names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is not None:
        require(len(names) == count, "{0} names for {1} loops", len(names), count, legal=f"{count} names")
        bad = [n for n in names if not n.isidentifier()]
        require_none(bad, "{0!r} is not a name for a loop", legal="identifiers, as in ['outer', 'inner']")
        return tuple(names)
    return tuple(part_names(state, loop, count))


def _divisors(size: int | None) -> str:
    if not size:
        return ""
    return f"products that divide {size}: " + ", ".join(map(str, divisors(size)[:16]))


def _proved(known: Analyzer, condition: Any) -> bool:
    return bool(condition.value) if isinstance(condition, IntImm) else known.can_prove(condition)


def _divides(extent: Expr, by: Expr, known: Analyzer) -> bool:
    a, b = constant(extent), constant(by)
    if a is not None and b is not None:
        return a % b == 0
    return _proved(known, floormod(extent, by) == 0)


def _covers_exactly(extent: Expr, total: Expr, known: Analyzer) -> bool:
    a, b = constant(extent), constant(total)
    if a is not None and b is not None:
        return a == b
    return _proved(known, extent == total)


@primitive(check=plan_split, keeps=Keeps.ACCESSES | Keeps.KERNELS, past="split", group="tile")
def split(state: State, plan: SplitPlan) -> tuple[State, list[LoopRV]]:
    node = plan.loop.node
    dtype = node.loop_var.dtype
    variables = [Var(name, dtype) for name in plan.names]
    fused: Expr = const(0, dtype)
    for n, v in enumerate(variables):
        if plan.keep_units or not is_const(plan.extents[n], 1):
            fused = fused + v * product(plan.extents[n + 1 :], dtype)
    zero = const(0, dtype)
    loops = [For(v, zero, e, SERIAL, node.body) for v, e in zip(variables, plan.extents)]
    loops[-1] = with_private(loops[-1], node.private)
    bounds = domains([*(p.node for p in plan.loop.all_loops()), *loops], units=not plan.keep_units)
    guard = fused < node.extent if plan.guarded else None
    values = {node.loop_var: node.min + fused}
    units = not plan.keep_units
    body = substitute_loop_vars(node.body, values, bounds, guard, units, past_empty=plan.past_empty)
    new: Stmt = renest(loops, body)
    if plan.cut is not None:
        taken: set[str] = set()

        def rename(old: str) -> str:
            taken.add(name := state.fresh_block_name(f"{old}_tail", taken))
            return name

        start = const(plan.cut, dtype)
        rest = For(node.loop_var, node.min + start, node.extent - start, SERIAL, node.body)
        new = SeqStmt((new, copy_renamed(rest, rename, {plan.loop.name: f"{plan.loop.name}_tail"})))
    return state.replace(node, new, moved={node.loop_var: variables}), [state.loop_rv(v) for v in variables]


# ---------------------------------------------------------------- fuse


@dataclass(frozen=True)
class FusePlan:
    loops: list[LoopRef]
    name: str
    keep_units: bool


def between(outer: LoopRef, inner: LoopRef) -> Any:
    """The statements of ``outer`` besides ``inner``; None when ``inner`` is its only child."""
    return None if outer.node.body is inner.node else outer.node.body


def name_of(stmt: Any) -> str:
    """A short description of a statement, for an error."""
    if isinstance(stmt, For):
        return f"loop `{stmt.loop_var.name}`"
    if isinstance(stmt, BlockRealize):
        return f"block `{stmt.block.name}`"
    if isinstance(stmt, SeqStmt):
        return " and ".join(name_of(s) for s in stmt.stmts[:4])
    return {"IfThenElse": "an `if`"}.get(type(stmt).__name__, f"a {type(stmt).__name__} statement")


def _require_nested(outer: LoopRef, inner: LoopRef, what: str) -> None:
    other = between(outer, inner)
    if other is None:
        return
    if inner not in outer.ancestors() and outer in inner.ancestors():
        require(False,
                "{0} needs perfectly nested loops, but between {1} and {2} there is {3}",
                what, outer.node, inner.node, name_of(other), nodes=[outer.node, inner.node])  # fmt: skip
    swapped = inner in outer.ancestors()
    require(False,
            "loop {0} is not the loop directly inside {1}", inner.node, outer.node, nodes=[outer.node, inner.node],
            legal=f"{what} them outermost first: {inner.name}, {outer.name}" if swapped else "")  # fmt: skip


def depends_witness(loop: For, outer: Sequence[For]) -> list[str]:
    """How the range of ``loop`` depends on a loop of ``outer``, at its first two iterations."""
    used = vars_in(loop.extent) | vars_in(loop.min)
    for other in outer:
        if other.loop_var in used:
            lines = []
            for step in (0, 1):
                at = simplify(other.min + step)
                low, extent = (simplify(substitute(e, {other.loop_var: at})) for e in (loop.min, loop.extent))
                end = simplify(low + extent)
                lines.append(f"at {other.loop_var.name}={at!r}, {loop.loop_var.name} runs over [{low!r}, {end!r})")
            return lines
    return []


def _check_fuse(state: State, *loops: LoopRef, preserve_unit_iters: bool = True, name: str | None = None) -> FusePlan:
    """Fuse perfectly nested loops, outermost first, into one loop over their product.

    The loop is called ``i_j_fused``, or ``name``. Returns it. Parallel loops give a parallel one; a single loop keeps
    its kind and annotations; a ``private`` clause of the innermost loop stays. Raises ``ScheduleError`` when there are statements between the loops, when the range of
    one depends on another, or when one of several is bound, annotated, or of another kind than the others.

    Before, and after ``sch.fuse("i", "j")``::

        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

        for i_j_fused in range(32):
            with T.block("B"):
                vi = T.axis.spatial(4, i_j_fused // 8)
                vj = T.axis.spatial(8, i_j_fused % 8)
                B[vi, vj] = A[vi, vj] * 2.0
    """
    chain = members(loops)
    require(chain, "fuse needs at least one loop")
    bare = [loop.node if loop is not chain[-1] else with_private(loop.node, ()) for loop in chain]
    alike = all(node.kind == PARALLEL and not node.annotations for node in bare)
    if len(chain) > 1 and not alike:
        for loop in chain:
            require_plain(loop, "fuse", (PRIVATE,) if loop is chain[-1] else ())
    for outer, inner in zip(chain, chain[1:]):
        _require_nested(outer, inner, "fuse")
    for n, loop in enumerate(chain):
        used = vars_in(loop.node.extent) | vars_in(loop.node.min)
        for above in (o.node for o in chain[:n] if o.var in used):
            raise ScheduleError("the range of {0} depends on {1}, so the two have no product",
                                loop.node, above, witness=depends_witness(loop.node, [above]), nodes=[loop.node])  # fmt: skip
    _require_fits(chain)
    if name is None:
        name = derived_name("_".join(loop.name for loop in chain), "_fused", visible_names(state, chain))
    return FusePlan(chain, name, preserve_unit_iters)


def _require_fits(chain: list[LoopRef]) -> None:
    """Require that the product of the extents fits the type of the new loop variable."""
    known = [constant(loop.node.extent) for loop in chain]
    dtype = max((loop.node.loop_var.dtype for loop in chain), key=lambda d: d.bits)
    total = math.prod(n for n in known if n is not None)
    require(0 in known or total <= dtype.max_value,
            "the product of the extents, {0} = {1}, does not fit {2}",
            " * ".join(str(n) for n in known if n is not None), total, dtype, nodes=[chain[0].node],
            legal="the same loops with extents of int64")  # fmt: skip


def members(loops: Sequence[Any]) -> list[LoopRef]:
    if len(loops) == 1 and isinstance(loops[0], (list, tuple)):
        loops = loops[0]
    seen: set[Any] = set()
    for loop in loops:
        require(loop.node not in seen, "loop {0} is given twice", loop.node)
        seen.add(loop.node)
    return list(loops)


@primitive(
    check=_check_fuse,
    keeps=Keeps.ACCESSES | Keeps.KERNELS,
    past="fused",
    instead=("merge",),
    prepared_by=("fission", "unswitch", "hoist"),
    group="tile",
)
def fuse(state: State, plan: FusePlan) -> tuple[State, LoopRV]:
    nodes = [loop.node for loop in plan.loops]
    dtype = max((n.loop_var.dtype for n in nodes), key=lambda d: d.bits)
    var = Var(plan.name, dtype)
    extents = [cast(dtype, n.extent) for n in nodes]
    total = simplify(product(extents, dtype))
    empty = any(constant(e) == 0 for e in extents)
    values: dict[Var, Expr] = {}
    for n, node in enumerate(nodes):
        value: Expr = const(0, dtype)
        if not empty and not is_const(extents[n], 1):
            value = floordiv(var, product(extents[n + 1 :], dtype))
            if any(not is_const(e, 1) for e in extents[:n]):
                value = floormod(value, extents[n])
        values[node.loop_var] = cast(node.loop_var.dtype, cast(dtype, node.min) + value)
    loop = nodes[0].replace(loop_var=var, min=const(0, dtype), extent=total, body=nodes[-1].body)
    loop = with_private(loop, nodes[-1].private)  # an iteration is one of the innermost loop
    bounds = domains([*(p.node for p in plan.loops[0].all_loops()), loop])
    new = renest([loop], substitute_loop_vars(nodes[-1].body, values, bounds))
    return state.replace(nodes[0], new, moved={n.loop_var: [var] for n in nodes}), state.loop_rv(var)


# ---------------------------------------------------------------- add_unit_loop


@primitive(keeps=Keeps.ACCESSES | Keeps.KERNELS)
def add_unit_loop(state: State, block_or_loop: BlockRef | LoopRef) -> tuple[State, LoopRV]:
    """Put a loop of one iteration, called ``u``, around a loop or block. Returns it.

    Before, and after ``sch.add_unit_loop("B")``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in range(4):
            for u in range(1):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * 2.0
    """
    require(block_or_loop.parent is not None, "the root block of a function takes no loop around it")
    taken = {loop.name for loop in block_or_loop.all_loops()}
    taken |= {p.name for p in state.index.below(block_or_loop) if isinstance(p, LoopRef)}
    node = block_or_loop.node
    dtype = node.loop_var.dtype if isinstance(node, For) else "int32"
    var = Var(unique_name("u", taken), as_expr(0, dtype).dtype)
    loop = For(var, const(0, var.dtype), const(1, var.dtype), SERIAL, node)
    return state.replace(node, loop), state.loop_rv(var)
