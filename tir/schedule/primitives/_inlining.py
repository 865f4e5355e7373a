"""Shared by the inlining primitives: matching iterators, and substituting blocks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from math import lcm

from ...analysis.dependence.domains import about_iterators, known
from ...analysis.index import BlockRef
from ...analysis.users import blocks_naming
from ...arith import Analyzer
from ...arith.inverse import inverse_iter_map
from ...arith.itermap import IterMap, detect_iter_map
from ...arith.linear import linear
from ...buffer import Buffer, Range
from ...equal import structural_equal
from ...errors import require
from ...expr import (
    EQ,
    GE,
    LT,
    BufferLoad,
    Call,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Var,
    cast,
    const,
    floordiv,
    floormod,
    is_const,
)
from ...node import once
from ...script.printer import short_text
from ...stmt import Stmt
from ...visit import free_vars, nodes_of, substitute, uses_var, walk
from ..nests import without_names
from ..state import State


@dataclass(frozen=True)
class InlinePlan:
    """Statements to replace (None removes one), and the buffers to remove."""

    scope: BlockRef
    changes: tuple[tuple[Stmt, Stmt | None], ...]
    buffers: tuple[Buffer, ...]


def require_no_views(block: BlockRef) -> None:
    """Require that ``block`` has no view, which a store that moves into another block would leave behind."""
    require(not block.block.match_buffers,
            "block {0} has views of buffers, and what it computes cannot be told without them", block)  # fmt: skip


def require_spatial(block: BlockRef) -> None:
    reduce = [i.var.name for i in block.block.iter_vars if i.iter_type == "reduce" and not is_const(i.dom.extent, 1)]
    require(not reduce,
            "block {0} is a reduction over {1}",
            block, ", ".join(reduce), legal="decompose_reduction or rfactor first, or keep it")  # fmt: skip
    require(
        block.block.init is None,
        "block {0} has an init: it is a reduction",
        block,
        legal="decompose_reduction or rfactor first, or keep it",
    )


def _solve_twins(block: BlockRef, solved: dict[Var, Expr]) -> None:
    """Add to ``solved`` the iterators that run together with one of them: what determines one determines the other."""
    runs = list(zip(block.block.iter_vars, block.node.iter_values))
    for iterator, value in runs:
        if iterator.var not in solved:
            twins = (i.var for i, v in runs if i.var in solved and structural_equal(v, value))
            twin = next(twins, None)
            if twin is not None:
                solved[iterator.var] = solved[twin]


def solve_iters(
    block: BlockRef, indices: Sequence[Expr], given: Sequence[Expr], analyzer: Analyzer
) -> tuple[dict[Var, Expr], list[Expr]]:
    """Solve ``indices`` = ``given`` for the iterators of ``block``; also the conditions under which a solution exists.

    The conditions omit that the iterators are in their domains. ``analyzer`` knows the variables of ``given``.
    """
    iters = {i.var: i for i in block.block.iter_vars}
    wide = next((e for e in (*indices, *given) if e.dtype.lanes > 1), None)
    require(wide is None,
            "cannot invert the vector index `{0}`: block {1} is matched by scalar indices",
            wide, block, legal="a step before its accesses are vectors")  # fmt: skip
    given = [cast(str(e.dtype), g) for e, g in zip(indices, given)]
    solved: dict[Var, Expr] = {v: i.dom.min for v, i in iters.items() if is_const(i.dom.extent, 1)}
    conditions = [EQ(e, g) for e, g in zip(indices, given) if not uses_var(e, iters)]
    moving = [(e, g) for e, g in zip(indices, given) if uses_var(e, iters)]
    solution = _solved_one_by_one(moving, iters) or _solved_together(block, indices, given)
    solved.update(solution[0])
    conditions += solution[1]
    _solve_twins(block, solved)
    missing = [v.name for v in iters if v not in solved]
    require(not missing, "the indices of block {0} do not determine its iterator {1}", block, ", ".join(missing))
    typed = {v: cast(str(v.dtype), e) for v, e in solved.items()}
    simple = {v: e if isinstance(e, Var) else analyzer.simplify(e) for v, e in typed.items()}
    return simple, [c for c in conditions if not analyzer.can_prove(c)]


Solved = tuple[dict[Var, Expr], list[Expr]]  # the values of iterators, and the conditions under which they are these


def _solved_one_by_one(moving: Sequence[tuple[Expr, Expr]], iters: Collection[Var]) -> Solved | None:
    """The iterators of which one index each is a multiple and something; None where indices are of another form."""
    solved: dict[Var, Expr] = {}
    conditions: list[Expr] = []
    for index, value in moving:
        axis = linear(index).in_one(iters)
        if axis is None or axis[0] in solved:
            return None
        var, scale, offset = axis
        rest = value if offset.is_const and not offset.const else value - offset.build(value.dtype)
        step, zero = const(scale, rest.dtype), const(0, rest.dtype)
        solved[var] = rest if scale == 1 else zero - rest if scale == -1 else floordiv(rest, step)
        if abs(scale) != 1:
            conditions.append(EQ(floormod(rest, const(abs(scale), rest.dtype)), zero))
    return solved, conditions


def _solved_together(block: BlockRef, indices: Sequence[Expr], given: Sequence[Expr]) -> Solved:
    """All iterators, by the inverse of the indices."""
    domains = {i.var: i.dom for i in block.block.iter_vars if i.dom is not None}
    found = detect_iter_map(list(indices), domains) or detect_iter_map(list(indices), _padded(indices, domains))
    require(found,
            "cannot prove that block {0} touches each element once: its indices are ({1})",
            block, ", ".join(short_text(e) for e in indices))  # fmt: skip
    assert isinstance(found, IterMap)
    # outside of the box that the indices fill there is no instance
    pairs = zip(found.indices, given)
    outside = [c for index, v in pairs for c in (GE(v, index.base), LT(v, index.base + index.extent))]
    return inverse_iter_map(found, list(given)), outside


def _padded(indices: Sequence[Expr], domains: dict[Var, Range]) -> dict[Var, Range]:
    """``domains``, each extent rounded up to a multiple of what ``indices`` divide its variable by.

    Indices that are injective on the larger domain are injective on the smaller: (v // 4, v % 4) is for every extent.
    """
    divisors = dict.fromkeys(domains, 1)
    for item in (n for index in indices for n in walk(index)):
        if isinstance(item, (FloorDiv, FloorMod)) and isinstance(item.b, IntImm) and item.b.value > 0:
            for var in divisors.keys() & free_vars(item.a):
                divisors[var] = lcm(divisors[var], item.b.value)
    analyzer = Analyzer()
    made = dict(domains)
    for var, step in divisors.items():
        if step > 1:
            extent = domains[var].extent
            made[var] = Range(domains[var].min, analyzer.simplify((extent + (step - 1)) // step * step))
    return made


def reads_element(load: BufferLoad, solved: dict[Var, Expr], element: Sequence[Expr], analyzer: Analyzer) -> bool:
    """Whether ``load``, in the instance given by ``solved``, reads ``element``."""
    return all(
        analyzer.can_prove_equal(substitute(i, solved), cast(str(i.dtype), e)) for i, e in zip(load.indices, element)
    )


def domain_guards(
    producer: BlockRef, consumer: BlockRef, solved: dict[Var, Expr], conditions: Sequence[Expr]
) -> list[Expr]:
    """The condition that the consumer has an instance for the producer's, over the producer's loops."""
    analyzer = known(producer)
    own = about_iterators(consumer, [solved[i.var] for i in consumer.block.iter_vars])
    require(own is not None,
            "the predicate of block {0} uses a loop that no iterator is bound to, so it cannot move with the block",
            consumer)  # fmt: skip
    values = producer.bindings
    inside = [
        guard
        for iterator in consumer.block.iter_vars
        for guard in (
            solved[iterator.var] >= iterator.dom.min,
            solved[iterator.var] < iterator.dom.min + iterator.dom.extent,
        )
        if not analyzer.can_prove(guard)
    ]
    # the condition of the consumer may fail where it has no instance
    return [substitute(c, values) for c in (*conditions, *inside, *(own or ()))]


def apply_inline(state: State, plan: InlinePlan) -> State:
    for old, new in plan.changes:
        state = state.replace(old, new)
    scope = state.find_block(plan.scope.name)
    kept = tuple(b for b in scope.block.alloc_buffers if b not in plan.buffers)
    body = reduce(without_names, plan.buffers, scope.block.body)
    return state.replace(scope.block, scope.block.replace(alloc_buffers=kept, body=body))


def require_no_address(scope: BlockRef, buffer: Buffer) -> None:
    """Require that nothing, as a prefetch does, takes the address of an element of a buffer that there will not be."""
    for place in blocks_naming(scope, buffer):
        call = _addresses(place.node).get(buffer)
        require(call is None, "`{0}` takes the address of an element of {1}", call, buffer.name, nodes=[place.node])


@once
def _addresses(stmt: Stmt) -> dict[Buffer, Call]:
    """The calls in a statement that take the address of an element, by buffer; computed once for each."""
    calls = [n for n in nodes_of(stmt) if type(n) is Call and n.op == "address_of"]
    return {a.buffer: call for call in reversed(calls) for a in call.args if isinstance(a, BufferLoad)}
