"""Arg-reductions in the order of their positions: of equal values the first or the last is known without comparing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..aliases import may_alias
from ..analysis.reduction_forms import Reduction, Update
from ..analysis.reduction_init import InitRuns
from ..arith import Analyzer
from ..arith.linear import is_index
from ..arith.selections import knowing_less, starts_of_ascending
from ..errors import refusal
from ..expr import Expr, FloatImm, IntImm, Select, Var
from ..function import PrimFunc
from ..poly import Formula, IntegerSet, Names, Relation, decide
from ..stmt import SERIAL, UNROLLED, Block, BlockRealize, BufferStore, For, SeqStmt, Stmt, at_once, in_loops, seq
from ..visit import contains, rewrite, substitute, uses_var, walk
from .passes import func_pass

Loops = tuple[For, ...]


@dataclass(frozen=True)
class _Nest:
    """A block alone in its loops; ``around`` are loops further out."""

    around: Loops
    loops: Loops
    realize: BlockRealize

    @staticmethod
    def of(stmt: Any, around: Loops = ()) -> _Nest | None:
        loops: list[For] = []
        while isinstance(stmt, For):
            loops.append(stmt)
            stmt = stmt.body
        return _Nest(around, tuple(loops), stmt) if isinstance(stmt, BlockRealize) else None

    def with_body(self, block: Block) -> Stmt:
        return in_loops(self.loops, self.realize.replace(block=block))

    @property
    def block(self) -> Block:
        return self.realize.block

    @property
    def reducing(self) -> list[For]:
        """The loops that the reduction is over."""
        values = [v for i, v in zip(self.block.iter_vars, self.realize.iter_values) if i.iter_type == "reduce"]
        return [f for f in self.loops if any(uses_var(v, f.loop_var) for v in values)]

    def below_first_reducing(self) -> _Nest:
        """Without the loops around all that the reduction is over."""
        first = next((n for n, f in enumerate(self.loops) if f in self.reducing), len(self.loops))
        return _Nest((*self.around, *self.loops[:first]), self.loops[first:], self.realize)

    def at(self, e: Expr) -> Expr:
        return substitute(e, self.realize.bindings)

    def relation(self, indices: Sequence[Expr], names: Names, start: Mapping[Var, Expr] | None = None) -> Relation:
        """From iterations of the loops to values of ``indices`` (of the block); only those with values ``start``, if
        given."""
        made = Formula(names)
        for f in (*self.around, *self.loops):
            made.within(f.loop_var, f.min, f.extent)
        made.require(self.realize.predicate)
        for var, value in (start or {}).items():
            made.equal(made.var(var), value)
        values = [names.fresh("e") for _ in indices]
        for name, index in zip(values, indices):
            made.equal(name, self.at(index))
        dims = [made.var(f.loop_var) for f in self.loops]
        return made.map(dims, values, [*dims, *values])

    def elements(self, indices: Sequence[Expr], names: Names, start: Mapping[Var, Expr] | None = None) -> IntegerSet:
        return self.relation(indices, names, start).range()


@dataclass(frozen=True)
class _Ordered:
    """An arg-reduction whose update ``position`` stores larger and larger candidates to each element."""

    reduction: Reduction
    position: Update
    starts_at_first: bool

    def body(self) -> Stmt:
        """The updates, without comparisons of positions."""
        old, new = self.position.target, self.position.candidate
        assert new is not None
        stores = [u.store.replace(value=knowing_less(u.store.value, old, new)) for u in self.reduction.updates]
        return at_once(stores, [f"v_{b.name}" for b in self.reduction.targets])


def _ordered(nest: _Nest, block: Block) -> _Ordered | None:
    """What ``block`` (that of ``nest``, with its init) is, if candidates for positions ascend."""
    found = Reduction.of(block)
    if not isinstance(found, Reduction) or not found.selects or found.loops or block.match_buffers:
        return None
    if any(f.kind not in (SERIAL, UNROLLED) for f in nest.reducing):
        return None
    for k, update in enumerate(found.updates):
        if update.candidate is None or not is_index(update.candidate.dtype):
            continue
        start = starts_of_ascending(found.comm, k)
        if start is not None and _ascends(nest, update):
            return _Ordered(found, update, start == "first")
    return None


def _ascends(nest: _Nest, update: Update) -> bool:
    """Whether the candidates for each element are larger and larger."""
    assert update.candidate is not None
    values = *update.store.indices, update.candidate

    def ascends() -> bool:
        made = nest.relation(values, Names())
        same = Relation.same_prefix(len(values) - 1, len(values))
        not_larger = same.subtract(same.increasing(len(values) - 1))
        later = Relation.lex_before(len(nest.loops))
        return made.then(not_larger).then(made.reverse()).intersect(later).is_empty()

    return decide(ascends) is True


# ---------------------------------------------------------------- inits


def _with_own_init(nest: _Nest) -> Stmt | None:
    """The nest of a block with an init in it; None if it stays."""
    block = nest.block
    inner = nest.below_first_reducing()
    found = _ordered(inner, block) if inner.loops else None
    if found is None or refusal(InitRuns(nest.realize, (*nest.around, *nest.loops), inner.loops).require_first):
        return None
    init = block.init
    if found.starts_at_first:
        firsts = {i.var: i.dom.min for i in block.iter_vars if i.iter_type == "reduce" and i.dom is not None}
        assert found.position.candidate is not None
        init = _started(init, found.position, substitute(found.position.candidate, firsts))
    return nest.with_body(block.replace(init=init, body=found.body()))


def _started(init: Any, position: Update, first: Expr) -> Any:
    def visit(item: Any) -> Any:
        return (
            item.replace(value=first)
            if isinstance(item, BufferStore) and item.buffer is position.store.buffer
            else None
        )

    return rewrite(init, visit)


def _with_init_before(init: _Nest, nest: _Nest) -> tuple[Stmt, Stmt] | None:
    """A nest that stores constants, and the nest of the updates that start from them; None if they stay."""
    constants = _constants(init.block)
    stores = {s.buffer: s for s in walk(nest.block.body) if isinstance(s, BufferStore)}
    if init.block.init is not None or nest.block.init is not None or not stores.keys() <= constants.keys():
        return None
    started = seq([s.replace(value=constants[b].value) for b, s in stores.items()])
    found = _ordered(nest, nest.block.replace(init=started))
    if found is None:
        return None
    at = {f.loop_var: f.min for f in nest.reducing}
    if not all(_starts_same(init, constants[u.store.buffer], nest, u, at) for u in found.reduction.updates):
        return None
    if not found.starts_at_first:
        return init.with_body(init.block), nest.with_body(nest.block.replace(body=found.body()))
    position = found.position.store
    first = _first(nest, found.position, constants[position.buffer].indices, at)
    if first is None:
        return None
    block = init.block.replace(body=_started(init.block.body, found.position, first))
    return init.with_body(block), nest.with_body(nest.block.replace(body=found.body()))


def _constants(block: Block) -> dict[Any, BufferStore]:
    """The stores of a block that stores constants and does nothing else."""
    parts = block.body.stmts if isinstance(block.body, SeqStmt) else (block.body,)
    plain = all(isinstance(s, BufferStore) and isinstance(s.value, (IntImm, FloatImm)) for s in parts)
    made = {s.buffer: s for s in parts if isinstance(s, BufferStore)}
    return made if plain and len(made) == len(parts) and not block.match_buffers else {}


def _starts_same(init: _Nest, start: BufferStore, nest: _Nest, update: Update, at: Mapping[Var, Expr]) -> bool:
    """Whether the elements that are started are those that are updated, and each of them in the first iterations ``at`` of
    the reduction."""

    def are_equal() -> bool:
        names = Names()
        started = init.elements(start.indices, names)
        return all(nest.elements(update.store.indices, names, first).is_equal(started) for first in (at, None))

    return decide(are_equal) is True


def _first(nest: _Nest, update: Update, indices: Sequence[Expr], at: Mapping[Var, Expr]) -> Expr | None:
    """The first candidate for the element at ``indices``; None if it is not known there."""
    values: dict[Var, Expr] = {}
    for iterator, value in zip(nest.block.iter_vars, nest.realize.iter_values):
        if iterator.iter_type == "reduce":
            values[iterator.var] = Analyzer().simplify(substitute(value, at))
    for own, index in zip(update.store.indices, indices):
        if isinstance(own, Var):
            values[own] = index
    assert update.candidate is not None
    first = substitute(update.candidate, values)
    inside = {f.loop_var for f in nest.loops} | {i.var for i in nest.block.iter_vars}
    return None if uses_var(first, inside) else first


# ---------------------------------------------------------------- the pass


def _rewritten(stmt: Any, around: Loops, is_outermost: bool = True) -> Any:
    if isinstance(stmt, SeqStmt):
        return _in_sequence(stmt, around)
    if is_outermost and contains(Select, stmt):
        nest = _Nest.of(stmt, around)
        made = _with_own_init(nest) if nest is not None and nest.block.init is not None else None
        if made is not None:
            return made
    inside = (*around, stmt) if isinstance(stmt, For) else around

    def visit(child: Any) -> Any:
        if not isinstance(child, Stmt):
            return child
        return _rewritten(child, inside, not isinstance(stmt, For))

    return stmt.map_children(visit)


def _in_sequence(stmt: SeqStmt, around: Loops) -> Stmt:
    parts = [_rewritten(s, around) for s in stmt.stmts]
    for n, (before, after) in enumerate(zip(stmt.stmts, stmt.stmts[1:])):
        init, nest = _Nest.of(before, around), _Nest.of(after, around)
        if init is not None and nest is not None and contains(Select, after):
            parts[n : n + 2] = _with_init_before(init, nest) or parts[n : n + 2]
    same = all(new is old for new, old in zip(parts, stmt.stmts))
    return stmt if same else stmt.replace(stmts=tuple(parts))


@func_pass
def order_arg_reductions(func: PrimFunc) -> PrimFunc:
    """An arg-reduction that meets positions in ascending order does not compare them: it starts from the first one.

    So it is for each result alone, in the serial loops of the reduction. Positions that it meets in another order, or
    combines from partial results, are compared as before.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "int32"), at: T.Buffer((1,), "int32"), best: T.Buffer((1,), "int32")):
    ...     for k in range(8):
    ...         with T.block("best"):
    ...             vk = T.axis.reduce(8, k)
    ...             with T.init():
    ...                 at[0] = 2147483647
    ...                 best[0] = -2147483648
    ...             v_at: T.int32 = T.Select(best[0] > A[vk] or (best[0] == A[vk] and at[0] < vk), at[0], vk)
    ...             v_best: T.int32 = T.Select(best[0] > A[vk] or (best[0] == A[vk] and at[0] < vk), best[0], A[vk])
    ...             at[0] = v_at
    ...             best[0] = v_best
    ... ''')
    >>> tir.transform.simplify(tir.transform.order_arg_reductions(f)).body
    with T.block("root"):
        T.reads()
        T.writes()
        for k in range(8):
            with T.block("best"):
                vk = T.axis.reduce(8, k)
                T.reads(A[vk])
                T.writes(at[0], best[0])
                with T.init():
                    at[0] = 0
                    best[0] = -2147483648
                v_at: T.int32 = T.Select(best[0] > A[vk] or best[0] == A[vk], at[0], vk)
                v_best: T.int32 = T.Select(best[0] > A[vk] or best[0] == A[vk], best[0], A[vk])
                at[0] = v_at
                best[0] = v_best
    """
    if may_alias(func) or not contains(Select, func.body):
        return func
    return func.with_body(_rewritten(func.body, ()))
