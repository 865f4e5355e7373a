"""Common subexpression elimination, within statements and between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..aliases import may_alias
from ..analysis.evaluation import evaluated_parts
from ..arith.linear import key
from ..expr import BufferLoad, Call, Expr, FloorDiv, FloorMod, Let, Mod, Var
from ..function import PrimFunc
from ..op import OPS, effect_of
from ..stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    in_lets,
)
from ..visit import kinds, nodes_of, substitute, uses_var, walk
from .passes import func_pass

N = TypeVar("N")
_DIVISIONS = (FloorDiv, FloorMod, Mod)
_MAY_BE_EXPENSIVE = frozenset((*_DIVISIONS, Call))
_LEAVES = (AssertStmt, BufferStore, Evaluate)
_COMPOUND = (Allocate, AllocateConst, AttrStmt, DeclBuffer, For, IfThenElse, LetStmt, SeqStmt, While)


def _is_expensive(e: Any) -> bool:
    """Worth eliminating: divisions, and named functions of scalars. Sums and products stay: in indices they say what
    the strides are."""
    if type(e) not in _MAY_BE_EXPENSIVE or e.dtype.lanes > 1 or e.dtype.is_bool or e.dtype.is_handle:
        return False
    if isinstance(e, _DIVISIONS):
        return e.dtype.is_int
    return isinstance(e, Call) and e.op != "if_then_else" and e.op in OPS and OPS[e.op].numpy is not None


@dataclass(frozen=True)
class _Found:
    """An expensive expression, how often it occurs in a statement, and whether the statement is sure to compute it."""

    expr: Expr
    count: int
    sure: bool


@dataclass
class _Summary:
    """The expressions that have the same value at the start of a statement as where they occur in it, those of its
    parts, and what else it does: the memory that it writes, whether it has unknown effects, and whether it may stop."""

    found: dict[Hashable, _Found] = field(default_factory=dict[Hashable, _Found])
    parts: list[dict[Hashable, _Found]] = field(default_factory=list[dict[Hashable, _Found]])
    writes: set[Var] = field(default_factory=set[Var])
    opaque: bool = False
    stops: bool = False

    def repeated(self) -> list[Hashable]:
        """The expressions to name here: some part computes them for sure, and several parts do, or one head twice."""
        again = (k for k, f in self.found.items() if f.count > 1 and f.sure)
        return [k for k in again if not any(p[k].count == self.found[k].count for p in self.parts if k in p)]


def _in_expression(e: Any, sure: bool, found: dict[Hashable, _Found]) -> bool:
    """Add the expensive expressions of ``e`` to ``found``; whether ``e`` has no name bound inside of it."""
    if isinstance(e, Var):
        return True
    if not isinstance(e, Expr) or isinstance(e, Let):
        return False
    children = [(child, condition) for child, condition in evaluated_parts(e) if isinstance(child, Expr)]
    parts = [_in_expression(child, sure and condition is None, found) for child, condition in children]
    free = all(parts)
    if free and _is_expensive(e):
        _add(found, key(e), _Found(e, 1, sure))
    return free


def _add(found: dict[Hashable, _Found], at: Hashable, more: _Found) -> None:
    old = found.get(at)
    found[at] = more if old is None else _Found(old.expr, old.count + more.count, old.sure or more.sure)


def _loaded(e: Expr) -> set[Var]:
    return {n.buffer.data for n in walk(e) if isinstance(n, BufferLoad)}


class _Summaries:
    """The summaries of statements. Without ``loads`` no expression that reads memory is valid beyond its statement."""

    def __init__(self, loads: bool):
        self.loads = loads
        self.known: dict[Stmt, _Summary] = {}

    def of(self, s: Stmt) -> _Summary:
        made = self.known.get(s)
        if made is None:
            made = self.known[s] = self._leaf(s) if isinstance(s, _LEAVES) else self._compound(s)
        return made

    def _leaf(self, s: Stmt) -> _Summary:
        made = _Summary()
        self._head(s, made)
        if made.opaque:
            made.found = {k: f for k, f in made.found.items() if not _loaded(f.expr)}
        made.stops = made.opaque or isinstance(s, AssertStmt)
        if isinstance(s, BufferStore):
            made.writes.add(s.buffer.data)
        return made

    @staticmethod
    def _head(s: Stmt, made: _Summary) -> None:
        """What ``s`` computes outside of the statements in it."""
        for part in () if _MAY_BE_EXPENSIVE.isdisjoint(kinds(s)) else s.children():
            if isinstance(part, Expr):
                found = set(map(type, nodes := nodes_of(part)))
                if not found.isdisjoint(_MAY_BE_EXPENSIVE):
                    _in_expression(part, True, made.found)
                if Call in found:
                    calls = (n for n in nodes if isinstance(n, Call))
                    made.opaque |= any(effect_of(c) not in ("pure", "read") for c in calls)

    def _compound(self, s: Stmt) -> _Summary:
        made = _Summary()
        self._head(s, made)
        made.parts.append({})  # the head is none of the parts: what it computes twice is named here
        inner = [(self.of(c), condition) for c, condition in evaluated_parts(s) if isinstance(c, Stmt)]
        for part, condition in inner:
            runs = condition is None and not made.stops
            made.parts.append(part.found)
            for k, f in part.found.items():
                _add(made.found, k, _Found(f.expr, f.count, f.sure and runs))
            made.writes |= part.writes
            made.opaque |= part.opaque
            made.stops |= part.stops
        if isinstance(s, IfThenElse) and s.else_case is not None:
            self._in_both_branches(made)
        if not isinstance(s, _COMPOUND):
            return _Summary(writes=made.writes, opaque=True, stops=made.stops)
        made.found = {k: f for k, f in made.found.items() if self._is_valid(f.expr, s, made)}
        return made

    @staticmethod
    def _in_both_branches(made: _Summary) -> None:
        *_, yes, no = made.parts
        for k in yes.keys() & no.keys():
            if yes[k].sure and no[k].sure:
                _add(made.found, k, _Found(yes[k].expr, 0, True))

    def _is_valid(self, e: Expr, s: Stmt, made: _Summary) -> bool:
        """Whether ``e`` means the same before ``s``: its names are not bound in ``s``, its memory is not written."""
        bound = _bound(s)
        if uses_var(e, bound):
            return False
        loaded = _loaded(e)
        if not loaded:
            return True
        declared = isinstance(s, DeclBuffer) and any(
            isinstance(n, BufferLoad) and n.buffer is s.buffer for n in walk(e)
        )
        return self.loads and not made.opaque and not declared and not loaded & (made.writes | bound)


def _bound(s: Stmt) -> set[Var]:
    """The variable that ``s`` binds for its body."""
    if isinstance(s, For):
        return {s.loop_var}
    if isinstance(s, LetStmt):
        return {s.var}
    if isinstance(s, (Allocate, AllocateConst)):
        return {s.buffer_var}
    return {s.node.var} if isinstance(s, AttrStmt) and s.attr_key == "thread_extent" else set()


class _Namer:
    """Names what a statement computes repeatedly, at the innermost statement around all the places."""

    def __init__(self, summaries: _Summaries):
        self.summaries = summaries
        self.count = 0

    def visit(self, s: Stmt) -> Stmt:
        summary = self.summaries.of(s)
        lets, made = self._named(s, [summary.found[k].expr for k in summary.repeated()])
        return in_lets(lets, made.map_statements(self.visit))

    def _named(self, s: Stmt, exprs: Sequence[Expr]) -> tuple[list[tuple[Var, Expr]], Stmt]:
        """Names for ``exprs`` with their values, the smaller first since larger ones use them, and ``s`` with the names."""
        if not exprs:
            return [], s
        names: dict[Hashable, Var] = {}
        values: dict[Var, Expr] = {}
        for e in sorted(exprs, key=_size):
            self.count += 1
            var = Var(f"cse_v{self.count}", e.dtype)
            values[var] = _named_inside(e, names)
            names[key(e)] = var
        made = _named_inside(s, names)
        uses = Counter(n for root in (made, *values.values()) for n in nodes_of(root) if type(n) is Var)
        once: dict[Var, Expr] = {}  # what occurs only inside of one larger expression needs no name
        lets: list[tuple[Var, Expr]] = []
        for var, value in values.items():
            value = substitute(value, once)
            if uses[var] > 1:
                lets.append((var, value))
            else:
                once[var] = value
        return lets, substitute(made, once) if once else made


def _named_inside(root: N, names: Mapping[Hashable, Var]) -> N:
    """``root`` with the expressions that have ``names`` replaced, the largest first."""
    memo: dict[Any, Any] = {}

    def visit(item: Any) -> Any:
        if isinstance(item, Var) or not isinstance(item, (Expr, Stmt)):
            return item
        done = memo.get(item)
        if done is None:
            name = names.get(key(item)) if _is_expensive(item) else None
            done = memo[item] = item.map_children(visit) if name is None else name
        return done

    return visit(root)


def _size(e: Any) -> int:
    return 1 + sum(_size(c) for c in e.children() if isinstance(c, Expr))


@func_pass
def common_subexpr_elim(func: PrimFunc) -> PrimFunc:
    """``B[f(i)] = A[f(i)]`` becomes ``cse_v1 = f(i); B[cse_v1] = A[cse_v1]``.

    Names divisions, remainders and pure functions of scalars that occur repeatedly, in one statement or in several, in
    front of the innermost statement around them: where their variables are bound, and where some of them are sure to be
    computed (not under a condition only, in a loop that may be empty, or after an assertion). Of two that load, nothing
    between may write that memory, or have effects that are not known.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
    ...     for i in range(8):
    ...         B[i // n] = A[i // n] + A[i % n]
    ... ''')
    >>> tir.transform.common_subexpr_elim(f).body
    for i in range(8):
        cse_v1: T.int32 = i // n
        B[cse_v1] = A[cse_v1] + A[i % n]
    """
    if _MAY_BE_EXPENSIVE.isdisjoint(kinds(func.body)):
        return func
    return func.with_body(_Namer(_Summaries(not may_alias(func))).visit(func.body))
