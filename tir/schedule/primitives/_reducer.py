"""The reducer of a block that updates one element by one commutative operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...analysis.index import BlockRef
from ...dtype import DType
from ...equal import structural_equal
from ...errors import require
from ...expr import Add, And, BufferLoad, Expr, FloatImm, Max, Min, Mul, Or, Sub, const
from ...stmt import BufferStore
from ...visit import accesses

COMMUTATIVE = (Add, Mul, Min, Max, And, Or)


@dataclass(frozen=True)
class Reducer:
    """``store.value`` is ``op(target, term)``, in either order unless ``op`` is Sub.

    ``identity`` starts a partial result; ``combine`` adds partial results up.
    """

    op: Any
    identity: Expr
    term: Expr
    store: BufferStore

    def update(self, target: Expr) -> Expr:
        return self.op(target, self.term)

    def combine(self, a: Expr, b: Expr) -> Expr:
        return Add(a, b) if self.op is Sub else self.op(a, b)


def reducer_of(block: BlockRef) -> Reducer:
    """The commutative reducer of a block of one update store, whatever it starts from.

    Raises ``ScheduleError`` when the block is not of that form.
    """
    body, init = block.block.body, block.block.init
    require(
        isinstance(body, BufferStore) and (init is None or isinstance(init, BufferStore)),
        "block {0} is not a reduction of one store", block, nodes=[block.node],
    )  # fmt: skip
    assert isinstance(body, BufferStore)
    value = body.value
    require(
        type(value) in (*COMMUTATIVE, Sub),
        "block {0} does not update by a commutative operation (+, -, *, min, max, and, or)", block, nodes=[block.node],
    )  # fmt: skip
    sides = [value.a, value.b]  # type: ignore[attr-defined]
    own = [n for n, side in enumerate(sides) if _is_target(side, body)]
    require(
        len(own) == 1 and not (type(value) is Sub and own[0] == 1),
        "the update of block {0} is not `x = x op term`", block, nodes=[block.node],
    )  # fmt: skip
    term = sides[1 - own[0]]
    require(
        not any(a.buffer is body.buffer for a in accesses(term)),
        "the term that block {0} adds reads the result itself", block, nodes=[block.node],
    )  # fmt: skip
    return Reducer(type(value), _identity(type(value), body.buffer.dtype), term, body)


def _identity(op: Any, dtype: DType) -> Expr:
    """What ``op`` leaves anything unchanged with."""
    if op in (Add, Sub, Or):
        return const(0, dtype)
    if op in (Mul, And):
        return const(1, dtype)
    if dtype.is_float:
        return FloatImm(float("-inf" if op is Max else "inf"), dtype)
    return const(dtype.min_value if op is Max else dtype.max_value, dtype)


def _is_target(e: Expr, store: BufferStore) -> bool:
    return (
        isinstance(e, BufferLoad)
        and e.buffer is store.buffer
        and all(structural_equal(a, b, map_free_vars=False) for a, b in zip(e.indices, store.indices))
    )
