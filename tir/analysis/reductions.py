"""What a reduction block combines by, as a function of two values, from the block's own statements."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from ..arith.linear import key
from ..buffer import Buffer
from ..errors import TirError
from ..expr import (
    Add,
    And,
    BinaryOp,
    BufferLoad,
    Call,
    CommReducer,
    Expr,
    FloatImm,
    Max,
    Min,
    Mul,
    Or,
    Select,
    Sub,
    Var,
    const,
)
from ..render import short_text
from ..stmt import Block, BufferStore, IfThenElse, LetStmt, SeqStmt
from ..visit import substitute, walk
from .selections import associativity_counterexample, choice_parts

_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")


def stores_of(body: Any) -> list[BufferStore]:
    """The stores of a block's body, with lets put in their places. Empty where it holds anything else."""
    lets: dict[Var, Expr] = {}
    while isinstance(body, LetStmt):
        lets[body.var] = substitute(body.value, lets)
        body = body.body
    parts = body.stmts if isinstance(body, SeqStmt) else (body,)
    made: list[BufferStore] = []
    for part in parts:
        if any(isinstance(n, BufferLoad) and any(n.buffer is m.buffer for m in made) for n in walk(part)):
            return []  # it would read a result that the store before it has changed
        taken = None
        if isinstance(part, IfThenElse) and part.else_case is None and isinstance(part.then_case, BufferStore):
            taken, part = substitute(part.condition, lets), part.then_case
        if not isinstance(part, BufferStore):
            return []
        value = substitute(part.value, lets)
        if taken is not None:
            value = Select(taken, value, BufferLoad(part.buffer, part.indices))
        made.append(part.replace(value=value))
    return made


class NotAReducer(TirError):
    """A block that does not combine old results with new values."""


class OrderMatters(NotAReducer):
    """A block that selects among values in a way that depends on their order."""


def is_selection(value: Any) -> bool:
    """Whether ``value`` is one of two candidates, as in an arg-max."""
    return choice_parts(value) is not None


class BlockReducer:
    """The reducer of a block: its targets, the terms that it adds to them, ``comm`` as the IR's reducer, and whether
    ``init`` is its identity."""

    def __init__(self, block: Block):
        self.block = block
        self.stores = stores_of(block.body)
        if not self.stores:
            raise NotAReducer(
                f"block `{block.name}` is not made of stores alone, or reads a result that it has changed"
            )
        self.targets = [s.buffer for s in self.stores]
        self.init = self._init_values()
        self.terms = terms = [self._term(k, s) for k, s in enumerate(self.stores)]
        kinds = [type(s.value) for s in self.stores]
        lhs = tuple(Var(f"x{k}", s.buffer.dtype) for k, s in enumerate(self.stores))
        rhs = tuple(Var(f"y{k}", s.buffer.dtype) for k, s in enumerate(self.stores))
        named = {key(t): rhs[k] for k, t in enumerate(terms)}
        named.update((key(BufferLoad(s.buffer, s.indices)), lhs[k]) for k, s in enumerate(self.stores))
        results = []
        own = {*lhs, *rhs}
        for k, s in enumerate(self.stores):
            value = Add(s.value.a, s.value.b) if isinstance(s.value, Sub) else s.value
            # several results may be made of one new value; partial results of them differ
            results.append(_abstracted(value, {**named, key(terms[k]): rhs[k]}))
        for result, s in zip(results, self.stores):
            if any(isinstance(n, BufferLoad) or (isinstance(n, Var) and n not in own) for n in walk(result)):
                raise self._unclear(s)
        identity = tuple(
            _identity(kinds[k], s) if self._plain(s) else self._start(k) for k, s in enumerate(self.stores)
        )
        self.comm = CommReducer(lhs, rhs, tuple(results), identity)
        fault = associativity_counterexample(self.comm)
        if fault is not None:
            raise OrderMatters(self._chosen(fault))

    @staticmethod
    def _plain(s: BufferStore) -> bool:
        return not is_selection(s.value)

    def _init_values(self) -> list[Expr] | None:
        if self.block.init is None:
            return None
        starts = stores_of(self.block.init)
        by_buffer = {s.buffer: s.value for s in starts}
        if set(by_buffer) != set(self.targets):
            raise NotAReducer(f"the init of block `{self.block.name}` does not start every result of its reduction")
        return [by_buffer[b] for b in self.targets]

    def _start(self, k: int) -> Expr:
        if self.init is None:
            raise NotAReducer(f"block `{self.block.name}` selects a candidate, and has no init to start from")
        return self.init[k]

    def _unclear(self, s: BufferStore) -> NotAReducer:
        return NotAReducer(
            f"block `{self.block.name}`: `{short_text(s)}` is not a combination of the old result and one new value"
        )

    def _chosen(self, fault: str) -> str:
        """The fault with the condition that chooses each result; where they differ, that is most often the mistake."""
        by = [(s.buffer.name, parts[0]) for s in self.stores if (parts := choice_parts(s.value))]
        said = ", ".join(f"`{name}` by `{short_text(c)}`" for name, c in by)
        differ = " (the conditions differ)" if len({key(c) for _, c in by}) > 1 else ""
        return f"block `{self.block.name}` chooses {said}{differ}, which is no reduction: {fault}"

    def _is_target(self, e: Any, s: BufferStore) -> bool:
        return (
            isinstance(e, BufferLoad)
            and e.buffer is s.buffer
            and [key(i) for i in e.indices] == [key(i) for i in s.indices]
        )

    def _term(self, k: int, s: BufferStore) -> Expr:
        """The new value that the store combines with the old one."""
        sides = _sides(s.value)
        own = [n for n, side in enumerate(sides) if self._is_target(side, s)]
        if len(own) != 1 or (isinstance(s.value, Sub) and own[0] == 1):
            raise self._unclear(s)
        term = sides[1 - own[0]]
        targets = {b.data for b in self.targets}
        if any(isinstance(n, BufferLoad) and n.buffer.data in targets for n in walk(term)):
            raise self._unclear(s)  # what it adds is itself a result, half made
        return term

    def starts_at_identity(self) -> bool:
        """Whether what the threads start from is what the block's init starts from."""
        if self.init is None:
            return False
        return all(key(a) == key(b) for a, b in zip(self.init, self.comm.identity))

    def selects(self) -> bool:
        """Whether combining a value with itself gives it back."""
        return all(not self._plain(s) or isinstance(s.value, (Min, Max, And, Or)) for s in self.stores)

    def combine(self, a: list[Any], b: list[Any]) -> list[Expr]:
        return combine(self.comm, a, b)


_COMBINED: WeakKeyDictionary[Block, bool] = WeakKeyDictionary()


def combines(block: Block) -> bool:
    """Whether ``block`` selects (arg-max and the like) or makes several results side by side (a sum and a sum of
    squares), so that its updates may run in any order."""
    known = _COMBINED.get(block)
    if known is None:
        try:
            stores = BlockReducer(block).stores
        except NotAReducer:
            known = False
        else:
            same_place = len({tuple(map(key, s.indices)) for s in stores}) == 1
            known = same_place and (len(stores) > 1 or is_selection(stores[0].value))
        _COMBINED[block] = known
    return known


def combine(comm: CommReducer, a: Any, b: Any) -> list[Expr]:
    """The results of reducing values ``a`` and ``b``."""
    values = {**dict(zip(comm.lhs, a)), **dict(zip(comm.rhs, b))}
    return [substitute(r, values) for r in comm.result]


def _sides(value: Any) -> list[Any]:
    if (parts := choice_parts(value)) is not None:
        return list(parts[1:])
    if isinstance(value, Call) and value.op in _BITWISE:
        return list(value.args)
    if isinstance(value, BinaryOp):
        return [value.a, value.b]
    return []


def _identity(kind: Any, s: BufferStore) -> Expr:
    """What leaves anything unchanged."""
    dtype = s.buffer.dtype
    value: Any = s.value
    if kind in (Add, Sub, Or) or (kind is Call and value.op in ("bitwise_or", "bitwise_xor")):
        return const(0, dtype)
    if kind in (Mul, And):
        return const(1, dtype)
    if kind is Call and value.op == "bitwise_and":
        return const(-1 if dtype.code == "int" else dtype.max_value, dtype)
    if kind in (Max, Min):
        if dtype.is_float:
            return FloatImm(float("-inf" if kind is Max else "inf"), dtype)
        return const(dtype.min_value if kind is Max else dtype.max_value, dtype)
    raise NotAReducer(f"`{short_text(s)}` combines by an operation whose identity is not known")


def _abstracted(value: Any, named: dict[Any, Var]) -> Any:
    """``value`` with targets and new values replaced by the reducer's parameters."""
    if isinstance(value, Expr) and key(value) in named:
        return named[key(value)]
    if isinstance(value, (Buffer, Var)):
        return value
    return value.map_children(lambda c: _abstracted(c, named))
