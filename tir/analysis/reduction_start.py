"""When the result of a reduction may be stored once, after all of its updates, by the thread that combines the parts.

``T.init()`` runs at every update in which all reduction iterators have their first values. Threads that share a
reduction start their parts from the reducer's identity and store one result: this is equivalent only if the init runs
at the first update of each result, and at no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arith import Analyzer
from ..arith.itermap import detect_iter_map
from ..buffer import Range
from ..errors import TirError
from ..expr import LE, LT, Expr, Var, conjuncts, is_const
from ..render import short_text
from ..stmt import BlockRealize, BufferStore, For
from ..visit import substitute, uses_var, walk


class NoSingleStart(TirError):
    """A reduction whose result is not computed by one init and all updates, or by all updates alone."""


def result_guards(realize: BlockRealize, loops: Sequence[For]) -> list[Expr]:
    """The conditions, free of its reduction loops, under which the reduction of ``realize`` stores a result.

    ``loops`` are those around the block, outermost first. Raises ``NoSingleStart`` if no such condition exists: the
    init runs late, more than once, or not at all for a result that is updated.
    """
    return _Start(realize, loops).guards()


class _Start:
    def __init__(self, realize: BlockRealize, loops: Sequence[For]):
        self.realize, self.block = realize, realize.block
        pairs = list(zip(self.block.iter_vars, realize.iter_values))
        self.reduce = [(i, v) for i, v in pairs if i.iter_type == "reduce"]
        moving = [f for f in loops if not is_const(f.extent, 1)]
        self.reducing = [f for f in moving if any(uses_var(v, f.loop_var) for _, v in self.reduce)]
        first = moving.index(self.reducing[0]) if self.reducing else len(moving)
        self.inner = moving[first:]
        self.start: dict[Var, Any] = {f.loop_var: f.min for f in loops if is_const(f.extent, 1)}
        for f in self.reducing:
            self.start[f.loop_var] = substitute(f.min, self.start)
        self.analyzer, self.outside = Analyzer(), Analyzer()
        for f in loops:
            self.analyzer.bind(f.loop_var, Range(f.min, f.extent))
            if f not in self.reducing:  # that a loop is entered says something of its extent
                self.outside.bind(f.loop_var, Range(f.min, f.extent))

    def guards(self) -> list[Expr]:
        if self.block.init is not None:
            self._require_init_first()
        parts = [p for part in conjuncts(self.realize.predicate) if (p := self._at_start(part)) is not None]
        with self.outside.scope():
            found = []
            for guard in (*parts, *(substitute(f.extent, self.start) > 0 for f in self.reducing)):
                if not self.outside.can_prove(guard):
                    found.append(self.outside.simplify(guard))
                    self.outside.assume(guard)
        return found

    def _at_start(self, part: Expr) -> Expr | None:
        """``part`` of the predicate at the first update; None if the result may be stored without testing it."""
        if not uses_var(part, {f.loop_var for f in self.reducing}):
            return part
        at = substitute(part, self.start)
        if self._implies(part, at):
            return at
        if self.block.init is None and self._in_bounds():
            return None  # a result that is not updated is stored as it was
        raise NoSingleStart(
            f"the predicate `{short_text(part)}` may leave out the first update of a result of block "
            f"`{self.block.name}` and not the others: {self._loops()} would store what the first update decides"
        )

    def _implies(self, part: Expr, at: Expr) -> bool:
        if self.analyzer.can_prove(at):
            return True
        if (
            isinstance(part, (LT, LE))
            and isinstance(at, (LT, LE))
            and self.analyzer.can_prove(at.a - part.a <= at.b - part.b)
        ):
            return True
        with self.analyzer.constraint(part):
            return self.analyzer.can_prove(at)

    def _in_bounds(self) -> bool:
        """Whether the elements that the block stores to are in bounds for any value of the predicate's reduction
        part."""
        values = {i.var: v for i, v in zip(self.block.iter_vars, self.realize.iter_values)}
        with self.analyzer.scope():
            for part in conjuncts(self.realize.predicate):
                if not uses_var(part, {f.loop_var for f in self.reducing}):
                    self.analyzer.assume(part)
            return all(
                self.analyzer.can_prove(substitute(index, values) >= 0)
                and self.analyzer.can_prove(substitute(index, values) < size)
                for store in walk(self.block.body)
                if isinstance(store, BufferStore)
                for index, size in zip(store.indices, store.buffer.shape)
            )

    def _require_init_first(self) -> None:
        for iterator, value in self.reduce:
            at = self.analyzer.simplify(substitute(value, self.start))
            if iterator.dom is not None and not self.analyzer.can_prove_equal(at, iterator.dom.min):
                raise NoSingleStart(
                    f"the init of block `{self.block.name}` runs where {iterator.var.name} = "
                    f"{short_text(iterator.dom.min)}, and {self._loops()} begins at {iterator.var.name} = "
                    f"{short_text(at)}: updates before the init are lost, and threads would keep them"
                )
        if not self._runs_once():
            raise NoSingleStart(
                f"the init of block `{self.block.name}` may run several times for one result: iterations of "
                f"{', '.join(f'`{f.loop_var.name}`' for f in self.inner)} repeat values of its iterators, each init "
                "discards the updates before it, and threads would keep them"
            )

    def _runs_once(self) -> bool:
        """Whether the init runs exactly in the iterations of ``inner`` in which all of ``reducing`` start, and the
        other loops distinguish the results."""
        values = self.realize.iter_values
        if all(any(v is f.loop_var for v in values) for f in self.inner):
            return True
        domains = {f.loop_var: Range(f.min, f.extent) for f in self.inner}
        fixed = {v: e for v, e in self.start.items() if v not in domains}
        if detect_iter_map([substitute(v, fixed) for v in values], domains, check="bijective"):
            return True
        return self._others_tell() and all(self._leaves_start(f) for f in self.reducing)

    def _others_tell(self) -> bool:
        """Whether iterations of the non-reduction loops of ``inner`` update distinct results."""
        others = {f.loop_var: Range(f.min, f.extent) for f in self.inner if f not in self.reducing}
        spatial = [v for i, v in zip(self.block.iter_vars, self.realize.iter_values) if i.iter_type != "reduce"]
        return not others or bool(
            detect_iter_map([v for v in spatial if uses_var(v, others)], others, check="bijective")
        )

    def _leaves_start(self, loop: For) -> bool:
        """Whether some reduction iterator is past its first value in all iterations of ``loop`` but the first."""
        later = Analyzer()
        for f in self.inner:
            domain = Range(f.min + 1, f.extent - 1) if f is loop else Range(f.min, f.extent)
            later.bind(f.loop_var, domain)
        return any(later.can_prove(i.dom.min < v) for i, v in self.reduce if i.dom is not None)

    def _loops(self) -> str:
        names = ", ".join(f"`{f.loop_var.name}`" for f in self.reducing)
        return f"loop {names}" if len(self.reducing) == 1 else f"the nest of {names}"
