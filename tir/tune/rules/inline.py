"""Elementwise producers are computed where they are used, if that repeats no work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...analysis.dependence.domains import chosen_value
from ...analysis.index import index_of
from ...analysis.users import readers
from ...arith.linear import key
from ...expr import Expr, IntImm, Var
from ...schedule import Schedule
from ...stmt import BufferStore, is_long
from ...target import GPUS
from ...visit import nodes_of, substitute
from ..contracted import Contraction
from ..nest import Nest, is_padding, is_view
from ..space import Env, accepted, block_names, rule

REPEATED = 1.5  # times a producer may be computed
AGAIN = 256  # nodes that copies of it may add to programs: they compile in some 50 ms, and copies of copies double with each stage


@rule(targets=("llvm", *GPUS), order=10)
def inline(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Inline a producer that is a view of its operand, or that its consumers read about once; of many blocks, in one step with those before it that are, too."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduce or not isinstance(nest.block.body, BufferStore):
        return []
    uses = _Uses.of(nest, [Nest.of(sch, c.name) for c in sch.get_consumers(block)], {})
    if uses is None or not uses.are_few(nest, partial(_lays_out, sch, nest)):
        return []
    made = sch.copy()
    if not is_long(block_names(sch)):
        return [made] if accepted(made.compute_inline, block) else []
    if not sch.can.compute_inline(block):
        return []
    made.auto_inline(block, *_with_it(sch, nest, uses))
    return [made]


@dataclass(frozen=True)
class _Uses:
    """What is read of a block: its elements, each once, by who reads it, with how often that runs and the indices there; and the loads, of ``consumers``
    that stay, in the text."""

    elements: Mapping[tuple[Any, ...], tuple[int, Sequence[Expr]]]
    loads: int

    @staticmethod
    def of(nest: Nest, consumers: Sequence[Nest | None], inlined: Mapping[str, _Uses]) -> _Uses | None:
        """The uses of a block once others are ``inlined``, which store at their iterators; None where that is not known."""
        elements, loads = dict[Any, Any](), 0
        buffer = nest.stores[0].buffer
        for consumer in consumers:
            if consumer is None:
                return None
            places, count = consumer.loads_of(buffer), consumer.counts[buffer]
            through = inlined.get(consumer.name)
            if through is None:
                elements.update({(consumer.name, *map(key, at)): (consumer.runs, at) for at in places})
                loads += count
                continue
            loads += count * through.loads
            for (reader, *_), (runs, values) in through.elements.items():
                known = {var: value for var, value in zip(consumer.stores[0].indices, values) if isinstance(var, Var)}
                there = [[substitute(i, known) for i in at] for at in places]
                elements.update({(reader, *map(key, at)): (runs, at) for at in there})
        return _Uses(elements, loads)

    @property
    def consumers(self) -> set[str]:
        return {reader for reader, *_ in self.elements}

    def are_few(self, nest: Nest, is_laid_out: Callable[[], bool]) -> bool:
        """Whether it is computed about once at these, or is a copy that is not laid out for them, and its text is not repeated too often."""
        value = chosen_value(nest.block)
        once = sum(runs for runs, _ in self.elements.values()) <= REPEATED * nest.runs
        text = (self.loads - len(self.consumers)) * len(nodes_of(value))
        return (once or (is_view(value) and not is_laid_out())) and text <= AGAIN


def _with_it(sch: Schedule, last: Nest, uses: _Uses) -> list[str]:
    """The blocks before that of ``last`` that this rule inlines too, once it is inlined: in one step, as a step for each rewrites what it is inlined into
    each time."""
    scope = index_of(sch.func).blocks[last.name].scope
    assert scope is not None
    names = [ref.name for ref in scope.children]
    nests = {name: Nest.of(sch, name) for name in names}
    inlined = {last.name: uses}
    for name in reversed(names[: names.index(last.name)]) if _is_plain(last) else ():
        nest = nests[name]
        if nest is None or nest.reduce or not isinstance(nest.block.body, BufferStore) or not _is_plain(nest):
            continue
        found = _Uses.of(nest, [nests[ref.name] for ref in readers(scope, nest.stores[0].buffer)], inlined)
        if found is None or not found.elements:
            continue
        roots = [root for name in found.consumers if (root := nests[name]) is not None]
        is_laid_out = partial(_is_composed, nest) if all(root.reduce for root in roots) else bool
        if found.are_few(nest, is_laid_out):
            inlined[name] = found
    return [name for name in inlined if name != last.name]


def _is_plain(nest: Nest) -> bool:
    return all(isinstance(i, Var) for i in nest.stores[0].indices)


def padded_in_place(sch: Schedule, block: str) -> Nest | None:
    """The nest of a block, after steps that let it read what is padded for it alone where that is."""
    for producer in sch.get_producers(block):
        padded = Nest.of(sch, producer.name)
        is_alone = len(sch.get_consumers(producer)) == 1
        if padded is not None and is_padding(padded) and is_alone:
            accepted(sch.compute_inline, producer)
    return Nest.of(sch, block)


def _lays_out(sch: Schedule, producer: Nest) -> bool:
    """Whether a copy lays its operand out for products: where the result has an index for each digit of the operand's."""
    consumers = [Nest.of(sch, c.name) for c in sch.get_consumers(producer.name)]
    return _is_composed(producer) and all(nest is not None and Contraction.of(nest) for nest in consumers)


def _is_composed(nest: Nest) -> bool:
    """Whether it loads at indices that are not its iterators."""
    return any(len(a.places) < sum(not isinstance(i, IntImm) for i in a.indices) for a in nest.loads)
