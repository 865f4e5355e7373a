"""Elementwise producers are computed where they are used, if that repeats no work."""

from __future__ import annotations

from ...expr import BufferLoad, Cast, Expr
from ...schedule import Schedule
from ...stmt import BufferStore
from ..nest import Nest, cost
from ..space import Env, rule

REPEATED = 1.5  # times a producer may be computed


@rule(targets=("llvm", "cuda", "cuda-sim"), order=10)
def inline(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Inline a producer that is a view of its operand, or that its consumers read about once."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduce or not isinstance(nest.block.body, BufferStore):
        return []
    if not (is_view(nest.block.body.value) or _reads(sch, nest) <= REPEATED * nest.runs):
        return []
    if not sch.can.compute_inline(block):
        return []
    made = sch.copy()
    made.compute_inline(block)
    return [made]


def is_view(value: Expr) -> bool:
    """Whether a value is no work of its own: one element of another buffer, or a constant."""
    if isinstance(value, Cast):
        return is_view(value.value) and value.value.dtype == value.dtype
    return isinstance(value, BufferLoad) or cost(value) == 0


def _reads(sch: Schedule, producer: Nest) -> float:
    """How many elements of its result the consumers read, counted each time."""
    total = 0.0
    for consumer in sch.get_consumers(producer.name):
        nest = Nest.of(sch, consumer.name)
        if nest is None:
            return float("inf")
        total += nest.runs * sum(a.buffer is producer.stores[0].buffer for a in nest.loads)
    return total
