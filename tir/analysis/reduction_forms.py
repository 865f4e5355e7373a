"""The representation of reductions: what a block combines its results with, by which combiner, from which initial
value.

``Reduction.of`` is the only recogniser; reordering, rfactor, reductions across threads, init decomposition, padding and
epilogues all use it. A ``Reduction`` may take its terms in any order and grouping, except for rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..arith.linear import key
from ..arith.selections import associativity_counterexample, choice_parts, is_independent_of_order
from ..buffer import Buffer
from ..dtype import DType
from ..errors import describe
from ..expr import (
    Add,
    And,
    BufferLoad,
    Call,
    Cast,
    CommReducer,
    Expr,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
    all_of,
    const,
)
from ..node import once
from ..op import call
from ..render import short_text
from ..stmt import Block, BufferStore, For, IfThenElse, LetStmt, SeqStmt, Stmt
from ..visit import nodes_of, rewrite, substitute, uses_var

# ---------------------------------------------------------------- operations


@dataclass(frozen=True)
class Combiner:
    """An associative and commutative operation. ``neutral`` is its identity: a number, or the "lowest" or "highest" of a
    type, or "all bits". ``is_idempotent``: ``x op x`` is ``x``."""

    name: str
    apply: Callable[[Any, Any], Expr]
    neutral: int | str
    is_idempotent: bool = False

    def identity(self, dtype: DType) -> Expr:
        if not isinstance(self.neutral, str):
            return const(self.neutral, dtype)
        if self.neutral == "all bits":
            return const(-1 if dtype.code == "int" else dtype.max_value, dtype)
        return const(dtype.ends[self.neutral == "highest"], dtype)

    def __repr__(self) -> str:
        return self.name


def _bitwise(op: str) -> Callable[[Any, Any], Expr]:
    return lambda a, b: call(op, a, b, dtype=a.dtype)


SUM = Combiner("+", Add, 0)
PRODUCT = Combiner("*", Mul, 1)
MAXIMUM = Combiner("max", Max, "lowest", is_idempotent=True)
MINIMUM = Combiner("min", Min, "highest", is_idempotent=True)

_BY_NODE: dict[Any, Combiner] = {
    Add: SUM,
    Sub: SUM,
    Mul: PRODUCT,
    Max: MAXIMUM,
    Min: MINIMUM,
    And: Combiner("and", And, 1, is_idempotent=True),
    Or: Combiner("or", Or, 0, is_idempotent=True),
}

_BY_CALL = {
    "bitwise_and": Combiner("&", _bitwise("bitwise_and"), "all bits", is_idempotent=True),
    "bitwise_or": Combiner("|", _bitwise("bitwise_or"), 0, is_idempotent=True),
    "bitwise_xor": Combiner("^", _bitwise("bitwise_xor"), 0),
}


def _combiner(e: Any) -> Combiner | None:
    return _BY_CALL.get(e.op) if isinstance(e, Call) else _BY_NODE.get(type(e))


@dataclass(frozen=True)
class Term:
    """An operand that is combined into a result; a ``negated`` one is subtracted."""

    value: Expr
    negated: bool = False


def _flattened(e: Any, combiner: Combiner) -> Iterator[Term]:
    if _combiner(e) is not combiner:
        yield Term(e)
        return
    a, b = e.args if isinstance(e, Call) else (e.a, e.b)
    yield from _flattened(a, combiner)
    for term in _flattened(b, combiner):
        yield Term(term.value, not term.negated) if isinstance(e, Sub) else term


@dataclass(frozen=True)
class Combination:
    """One value combined with ``terms``: of ``(x + a) - 1`` they are ``a`` and ``1``, the latter negated."""

    combiner: Combiner
    terms: tuple[Term, ...]

    def applied_to(self, start: Expr | None) -> Expr:
        """``start`` combined with all terms; None stands for the identity."""
        terms = sorted(self.terms, key=lambda t: t.negated) if start is None else self.terms
        made = start
        for t in terms:
            if made is None and not t.negated:
                made = t.value
                continue
            before = self.combiner.identity(t.value.dtype) if made is None else made
            made = Sub(before, t.value) if t.negated else self.combiner.apply(before, t.value)
        assert made is not None
        return made


def combination(value: Expr, is_own: Callable[[Expr], bool]) -> Combination | None:
    """``value`` as one value, selected by ``is_own``, combined with terms; None if it is of another form."""
    combiner = _combiner(value)
    if combiner is None:
        return None
    terms = list(_flattened(value, combiner))
    own = [t for t in terms if is_own(t.value)]
    if len(own) != 1 or own[0].negated:
        return None
    return Combination(combiner, tuple(t for t in terms if t is not own[0]))


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class _Found:
    """A store of a body, with lets inlined, and its guards."""

    store: BufferStore
    guards: tuple[Expr, ...]
    loops: tuple[For, ...]


def _stores(s: Any, lets: dict[Var, Expr], guards: tuple[Expr, ...], loops: tuple[For, ...]) -> list[_Found] | None:
    """The stores of a statement in order; None if it contains anything else, or reads a result that it has changed."""
    if isinstance(s, LetStmt):
        return _stores(s.body, {**lets, s.var: substitute(s.value, lets)}, guards, loops)
    if isinstance(s, For):
        return _stores(s.body, lets, guards, (*loops, s))
    if isinstance(s, IfThenElse) and s.else_case is None:
        return _stores(s.then_case, lets, (*guards, substitute(s.condition, lets)), loops)
    if isinstance(s, SeqStmt):
        made: list[_Found] = []
        for part in s.stmts:
            changed = {f.store.buffer for f in made}
            if changed and any(isinstance(n, BufferLoad) and n.buffer in changed for n in nodes_of(part)):
                return None  # it would read a result that the store before it has changed
            found = _stores(part, lets, guards, loops)
            if found is None:
                return None
            made += found
        return made
    if isinstance(s, BufferStore):
        return [_Found(substitute(s, lets) if lets else s, guards, loops)]
    return None


# ---------------------------------------------------------------- the reduction


@dataclass(frozen=True)
class NotAReduction:
    """Why a block is not a reduction: ``rule`` with ``parts``, as ``ScheduleError`` takes them."""

    rule: str
    parts: tuple[Any, ...]

    @property
    def reason(self) -> str:
        return self.rule.format(*map(describe, self.parts))


class OrderMatters(NotAReduction):
    """The block selects among values in a way that depends on their order."""


class _Refused(Exception):
    def __init__(self, why: NotAReduction):
        self.why = why


def _refused(rule: str, *parts: Any) -> _Refused:
    return _Refused(NotAReduction(rule, parts))


@dataclass(frozen=True)
class Update:
    """One result of a reduction: ``store.value`` combines it with new values, under all of ``guards``.

    ``combination`` is None for a selection (arg-max and the like), which selects the result or ``candidate``.
    """

    store: BufferStore
    guards: tuple[Expr, ...]
    combination: Combination | None
    candidate: Expr | None = None

    @property
    def target(self) -> BufferLoad:
        return BufferLoad(self.store.buffer, self.store.indices)


class Reduction:
    """A block (or a statement) that combines each of its results with new values, in any order.

    ``updates`` has one entry for each result; ``loops`` are those inside the block around them; ``init`` has the
    initial values (None without a ``T.init``); ``comm`` combines partial results. For ``C[vi] = (C[vi] + A[vi, vk]) +
    1.0`` there is one update, by ``SUM``, whose terms are ``A[vi, vk]`` and ``1.0``.
    """

    def __init__(self, updates: list[Update], init: list[Expr] | None, loops: tuple[For, ...]):
        self.updates = updates
        self.init = init
        self.loops = loops
        self.stores = [u.store for u in updates]
        self.targets = [s.buffer for s in self.stores]

    @classmethod
    def of(cls, node: Block | Stmt) -> Reduction | NotAReduction:
        """The reduction that ``node`` is, or why it is none."""
        return _reduction(node)

    @property
    def selects(self) -> bool:
        """Whether some result is an arg-reduction; which of equal candidates it selects is unspecified."""
        return any(u.combination is None for u in self.updates)

    @functools.cached_property
    def is_independent_of_order(self) -> bool:
        """Whether results are the same in any order but for rounding: a selection is, if it decides among equals and NaN."""
        return not self.selects or is_independent_of_order(self.comm)

    @property
    def is_idempotent(self) -> bool:
        """Whether combining a value with itself gives it back."""
        return all(u.combination is None or u.combination.combiner.is_idempotent for u in self.updates)

    @functools.cached_property
    def comm(self) -> CommReducer:
        """The combiner of partial results, as an IR node."""
        return _comm(self)

    @property
    def identity(self) -> tuple[Expr, ...]:
        """The identity of the combiner; for a selection, the initial value."""
        return self.comm.identity

    def starts_at_identity(self) -> bool:
        """Whether the block's init is the identity."""
        return self.init is not None and all(key(a) == key(b) for a, b in zip(self.init, self.identity))

    def combine(self, a: Sequence[Any], b: Sequence[Any]) -> list[Expr]:
        """The results of combining partial results ``a`` and ``b``."""
        return combine(self.comm, a, b)

    def updated(self, results: Sequence[Expr]) -> list[Expr]:
        """The stored values, if the old results were ``results``."""

        def visit(item: Any) -> Any:
            return next((r for r, u in zip(results, self.updates) if _is_load_of(item, u.store)), None)

        return [rewrite(u.store.value, visit) for u in self.updates]

    def of_one_value(self) -> Update | None:
        """The one update of a block whose body is that store alone; None for any other."""
        one = self.updates[0]
        plain = len(self.updates) == 1 and not one.guards and not self.loops and one.combination is not None
        return one if plain else None


def threads_can_share(block: Block) -> bool:
    """Whether threads can each make a partial result of the iterations over which ``block`` reduces: it is a reduction, and
    these choose no place of a result, nor the value at which it starts."""
    found = Reduction.of(block)
    if isinstance(found, NotAReduction) or found.loops or block.match_buffers:
        return False
    steps = [i.var for i in block.iter_vars if i.iter_type == "reduce"]
    if block.init is not None and uses_var(block.init, steps):
        return False
    return not any(uses_var(index, steps) for store in found.stores for index in store.indices)


def shared_results(block: Block) -> list[Buffer]:
    """The results that ``block`` stores, of which threads can each make a part; none if they cannot."""
    found = Reduction.of(block)
    return found.targets if isinstance(found, Reduction) and threads_can_share(block) else []


@once
def _reduction(node: Block | Stmt) -> Reduction | NotAReduction:
    try:
        return _recognized(node)
    except _Refused as refused:
        return refused.why


def _recognized(node: Any) -> Reduction:
    body, init = (node.body, node.init) if isinstance(node, Block) else (node, None)
    found = _stores(body, {}, (), ())
    if not found:
        raise _refused("block {0} is not made of stores alone, or reads a result that it has changed", _name(node))
    memory = _memory(node)
    made = {memory(f.store.buffer) for f in found}
    if len(made) < len(found):
        raise _refused(
            "block {0} updates {1} twice, by statements of their own", _name(node), found[0].store.buffer.name
        )
    updates = [_update(node, f, made, memory) for f in found]
    start = _start(node, init, [u.store.buffer for u in updates])
    made_one = Reduction(updates, start, tuple(dict.fromkeys(f for one in found for f in one.loops)))
    if made_one.selects:
        _require_selection(node, made_one)
    return made_one


def _name(node: Any) -> str:
    return f"`{getattr(node, 'name', 'a statement')}`"


def _memory(node: Any) -> Callable[[Buffer], Var]:
    """The memory of a buffer, or of its source for a view of the block itself."""
    views = {m.buffer.data: m.source.buffer.data for m in getattr(node, "match_buffers", ())}
    return lambda buffer: views.get(buffer.data, buffer.data)


def _update(node: Any, found: _Found, made: set[Var], memory: Callable[[Buffer], Var]) -> Update:
    store, value = found.store, found.store.value

    def reads_results(*items: Any) -> bool:
        return any(isinstance(n, BufferLoad) and memory(n.buffer) in made for item in items for n in nodes_of(item))

    guards, inner = list(found.guards), value
    while (parts := choice_parts(inner)) is not None and any(_is_load_of(p, store) for p in parts[1:]):
        condition, yes, no = parts
        kept = _is_load_of(yes, store)
        guards, inner = [*guards, Not(condition) if kept else condition], no if kept else yes
    how = combination(inner, lambda e: _is_load_of(e, store))
    if how is not None and not reads_results(*guards):
        if reads_results(*(t.value for t in how.terms)):
            raise _refused("block {0}: a term of `{1}` reads a result itself", _name(node), _Text(store))
        return Update(store, found.guards, how)
    if how is None and guards and not reads_results(inner) and not found.loops:
        if found.guards:  # an old result that a condition keeps is one of two candidates
            value = Select(all_of(found.guards), value, BufferLoad(store.buffer, store.indices))
        return Update(store.replace(value=value), (), None, inner)
    raise _not_combined(node, store)


def _not_combined(node: Any, store: BufferStore) -> _Refused:
    """Why the value of ``store`` is not an old result combined with new values."""
    value = store.value
    if isinstance(value, Cast) and any(_is_load_of(n, store) for n in nodes_of(value)):
        return _refused(
            "block {0}: `{1}` converts the result to {2} after each update, so terms grouped in another way may give "
            "another value",
            _name(node),
            _Text(store),
            value.dtype,
        )
    return _refused("block {0}: `{1}` is not a combination of the old result and new values", _name(node), _Text(store))


@dataclass(frozen=True)
class _Text:
    """A node whose text is computed when it is first shown."""

    node: Any

    def __str__(self) -> str:
        return short_text(self.node)


def _start(node: Any, init: Any, targets: list[Buffer]) -> list[Expr] | None:
    """What ``init`` stores to each of ``targets``; if conditional, that or the old value."""
    if init is None:
        return None
    found = _stores(init, {}, (), ()) or []
    by_buffer: dict[Buffer, Expr] = {}
    for f in found:
        old = BufferLoad(f.store.buffer, f.store.indices)
        by_buffer[f.store.buffer] = Select(all_of(f.guards), f.store.value, old) if f.guards else f.store.value
    if set(by_buffer) != set(targets):
        raise _refused("the init of block {0} does not start every result of its reduction", _name(node))
    return [by_buffer[b] for b in targets]


def _require_selection(node: Block | Stmt, reduction: Reduction) -> None:
    """Raise unless the conditions of a selection choose consistently for all results, in any order."""
    if reduction.init is None:
        raise _refused("block {0} selects a candidate, and has no init to start from", _name(node))
    if len({tuple(map(key, s.indices)) for s in reduction.stores}) > 1:
        raise _refused("block {0} selects candidates, and stores them at different places", _name(node))
    comm = reduction.comm
    own = {*comm.lhs, *comm.rhs}
    for result, update in zip(comm.result, reduction.updates):
        if any(isinstance(n, BufferLoad) or (isinstance(n, Var) and n not in own) for n in nodes_of(result)):
            raise _not_combined(node, update.store)
    fault = associativity_counterexample(comm)
    if fault is not None:
        raise _Refused(
            OrderMatters("block {0} chooses {1}, which is no reduction: {2}", (_name(node), _chosen(reduction), fault))
        )


def _chosen(reduction: Reduction) -> str:
    """The condition that selects each result; if they differ, that is most often the mistake."""
    by = [(s.buffer.name, parts[0]) for s in reduction.stores if (parts := choice_parts(s.value))]
    shown = ", ".join(f"`{name}` by `{short_text(c)}`" for name, c in by)
    return shown + (" (the conditions differ)" if len({key(c) for _, c in by}) > 1 else "")


def _is_load_of(e: Any, store: BufferStore) -> bool:
    """Whether ``e`` is the element that ``store`` writes."""
    return (
        isinstance(e, BufferLoad)
        and e.buffer is store.buffer
        and [key(i) for i in e.indices] == [key(i) for i in store.indices]
    )


def _comm(reduction: Reduction) -> CommReducer:
    updates = reduction.updates
    lhs = tuple(Var(f"x{k}", b.dtype) for k, b in enumerate(reduction.targets))
    rhs = tuple(Var(f"y{k}", b.dtype) for k, b in enumerate(reduction.targets))
    named: dict[Any, Var] = {}
    for u, y in zip(updates, rhs):
        term = u.candidate if u.combination is None else u.combination.applied_to(None)
        named[key(term)] = y
    named.update((key(u.target), x) for u, x in zip(updates, lhs))
    results: list[Expr] = []
    for u, x, y in zip(updates, lhs, rhs):
        if u.combination is not None:
            results.append(u.combination.combiner.apply(x, y))
        else:  # several results may come from one new value; their partial results differ
            results.append(_abstracted(u.store.value, {**named, key(u.candidate): y}))
    identity = [
        u.combination.combiner.identity(b.dtype) if u.combination is not None else (reduction.init or ())[k]
        for k, (u, b) in enumerate(zip(updates, reduction.targets))
    ]
    return CommReducer(lhs, rhs, tuple(results), tuple(identity))


def combine(comm: CommReducer, a: Any, b: Any) -> list[Expr]:
    """The results of reducing values ``a`` and ``b``."""
    values = {**dict(zip(comm.lhs, a)), **dict(zip(comm.rhs, b))}
    return [substitute(r, values) for r in comm.result]


def _abstracted(value: Any, named: dict[Any, Var]) -> Any:
    """``value`` with results and new values replaced by the reducer's parameters."""
    if isinstance(value, Expr) and key(value) in named:
        return named[key(value)]
    if isinstance(value, (Buffer, Var)):
        return value
    return value.map_children(lambda c: _abstracted(c, named))
