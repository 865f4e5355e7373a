"""Whether updates of one element commute."""

from __future__ import annotations

from typing import Any

from ..buffer import Buffer
from ..expr import (
    Add,
    And,
    BufferLoad,
    Call,
    Cast,
    Max,
    Min,
    Mul,
    Or,
    Sub,
)
from ..stmt import (
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
)
from ..visit import walk

_COMMUTING = (Add, Mul, Min, Max, And, Or)


def commutes(s: Any) -> bool:
    """Whether runs of ``s`` on one element may run in any order: ``C[i] = C[i] op v`` with one associative op."""
    while isinstance(s, (For, IfThenElse, LetStmt)):
        if isinstance(s, IfThenElse):
            if s.else_case is not None or not _reads_other(s.condition, s.then_case):
                return False
            s = s.then_case
        else:
            s = s.body
    if not isinstance(s, BufferStore):
        return False
    value = s.value
    if isinstance(value, Cast):
        return False
    if isinstance(value, Call) and value.op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        sides = value.args
    elif isinstance(value, _COMMUTING):
        sides = (value.a, value.b)
    elif isinstance(value, Sub):
        return _is_load_of(value.a, s) and not _mentions(value.b, s.buffer)
    else:
        return False
    kind = type(value)
    terms = _terms(kind, value) if not isinstance(value, Call) else list(sides)
    own = [t for t in terms if _is_load_of(t, s)]
    return len(own) == 1 and not any(_mentions(t, s.buffer) for t in terms if t is not own[0])


def _terms(kind: Any, e: Any) -> list[Any]:
    return [*_terms(kind, e.a), *_terms(kind, e.b)] if isinstance(e, kind) else [e]


def _reads_other(condition: Any, body: Any) -> bool:
    written = {n.buffer for n in walk(body) if isinstance(n, BufferStore)}
    return not any(_mentions(condition, b) for b in written)


def _mentions(e: Any, buffer: Buffer) -> bool:
    return any(isinstance(n, BufferLoad) and n.buffer.data is buffer.data for n in walk(e))


def _is_load_of(e: Any, store: BufferStore) -> bool:
    from ..arith.linear import key

    return (
        isinstance(e, BufferLoad)
        and e.buffer is store.buffer
        and [key(i) for i in e.indices] == [key(i) for i in store.indices]
    )
