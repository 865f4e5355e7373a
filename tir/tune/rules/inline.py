"""Elementwise producers are computed where they are used, if that repeats no work."""

from __future__ import annotations

from ...expr import IntImm
from ...schedule import Schedule
from ...stmt import BufferStore
from ...target import GPUS
from ..nest import Nest, is_padding, is_view
from ..space import Env, rule
from .contraction import Contraction

REPEATED = 1.5  # times a producer may be computed


@rule(targets=("llvm", *GPUS), order=10)
def inline(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Inline a producer that is a view of its operand, or that its consumers read about once."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduce or not isinstance(nest.block.body, BufferStore):
        return []
    reads = _reads(sch, nest)
    if reads > REPEATED * nest.runs and not (is_view(nest.block.body.value) and not _lays_out(sch, nest)):
        return []
    if not sch.can.compute_inline(block):
        return []
    made = sch.copy()
    made.compute_inline(block)
    return [made]


def padded_in_place(sch: Schedule, block: str) -> Nest | None:
    """The nest of a block, after steps that let it read what is padded for it alone where that is."""
    for producer in sch.get_producers(block):
        padded = Nest.of(sch, producer.name)
        is_alone = len(sch.get_consumers(producer)) == 1
        if padded is not None and is_padding(padded) and is_alone and sch.can.compute_inline(producer):
            sch.compute_inline(producer)
    return Nest.of(sch, block)


def _lays_out(sch: Schedule, producer: Nest) -> bool:
    """Whether a copy lays its operand out for products: where the result has an index for each digit of the operand's."""
    consumers = [Nest.of(sch, c.name) for c in sch.get_consumers(producer.name)]
    composed = any(len(a.places) < sum(not isinstance(i, IntImm) for i in a.indices) for a in producer.loads)
    return composed and all(nest is not None and Contraction.of(nest) for nest in consumers)


def _reads(sch: Schedule, producer: Nest) -> float:
    """How many elements of its result the consumers read, counted each time."""
    total = 0.0
    for consumer in sch.get_consumers(producer.name):
        nest = Nest.of(sch, consumer.name)
        if nest is None:
            return float("inf")
        total += nest.runs * sum(a.buffer is producer.stores[0].buffer for a in nest.loads)
    return total
