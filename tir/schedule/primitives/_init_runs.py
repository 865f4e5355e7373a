"""When the init of a reduction runs: what must hold for it to go before the reduction's loops."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.index import BlockRef, LoopRef
from ...arith import Analyzer
from ...arith.itermap import detect_iter_map
from ...buffer import Range
from ...errors import ScheduleError
from ...expr import EQ, LE, LT, Expr, conjuncts, is_const
from ...poly import Formula, Names, Relation, Undecided, bounded
from ...stmt import BlockRealize
from ...visit import substitute, uses_var


class InitRuns:
    """The runs of ``block``'s init, whose reduction is under ``inner`` (its loops from some loop on).

    ``kept`` are the loops that its spatial iterators need; an init of its own is in copies of those.
    """

    def __init__(self, block: BlockRef, inner: Sequence[LoopRef]):
        self.block, self.inner = block, inner
        pairs = list(zip(block.block.iter_vars, block.node.iter_values))
        self.spatial = [(i, v) for i, v in pairs if i.iter_type != "reduce"]
        self.reduce = [(i, v) for i, v in pairs if i.iter_type == "reduce"]
        self.kept = [ref for ref in inner if any(uses_var(v, ref.var) for _, v in self.spatial)]
        self.dropped = [ref for ref in inner if ref not in self.kept]
        self.analyzer = Analyzer()
        for ref in block.all_loops():
            self.analyzer.bind(ref.var, Range(ref.node.min, ref.node.extent))

    def guards(self, unsafe: bool = False) -> list[Expr]:
        """Conditions on the loops around and ``kept`` under which the reduction has a first run, which inits.

        Raises ``ScheduleError`` where the init runs at another time than before all else of its reduction, once.
        """
        at_start, plain = self._at_start()
        if plain or unsafe:
            return at_start
        try:
            return self._exact(at_start)
        except Undecided as error:
            raise ScheduleError(
                "cannot prove that the reduction of block {0} begins with its init: {1}", self.block, error,
                nodes=[self.block.node],
            ) from None  # fmt: skip

    def _at_start(self) -> tuple[list[Expr], bool]:
        """The conditions if the reduction begins where ``dropped`` loops do, and whether it plainly does."""
        start = {ref.var: ref.node.min for ref in self.dropped}
        parts = conjuncts(self.block.node.predicate)
        said = [(EQ(v, i.dom.min), EQ(substitute(v, start), i.dom.min)) for i, v in self.reduce]
        plain = all(self.analyzer.can_prove(at) for _, at in said) and self._runs_once()
        found = []
        for part, at in (*((p, substitute(p, start)) for p in parts), *said):
            at = self.analyzer.simplify(at)
            if self.analyzer.can_prove(at):
                continue
            found.append(at)
            plain = plain and (not uses_var(part, list(start)) or self._holds_at_the_start(part))
        return found, plain

    def _runs_once(self) -> bool:
        """Whether the iterators plainly tell runs apart."""
        values = self.block.node.iter_values
        moving = [ref for ref in self.inner if not is_const(ref.node.extent, 1)]
        if len({v for v in values if any(v is ref.var for ref in moving)}) == len(moving):
            return True
        one = {ref.var: ref.node.min for ref in self.inner if ref not in moving}
        domains = {ref.var: Range(ref.node.min, ref.node.extent) for ref in moving}
        return bool(detect_iter_map([substitute(v, one) for v in values], domains, check="bijective"))

    def _holds_at_the_start(self, condition: Expr) -> bool:
        """Whether a bound from above that holds at some iteration of ``dropped`` holds at their first one."""
        gone = [ref.var for ref in self.dropped]
        if not isinstance(condition, (LT, LE)) or uses_var(condition.b, gone):
            return False
        first = substitute(condition.a, {ref.var: ref.node.min for ref in self.dropped})
        return self.analyzer.can_prove(first <= condition.a)

    @bounded()
    def _exact(self, at_start: list[Expr]) -> list[Expr]:
        names = Names()
        loops = self.block.all_loops()
        around = [names.of(ref.var) for ref in loops if ref not in self.inner]
        inner = [names.of(ref.var) for ref in self.inner]

        def formula(conditions: Sequence[Expr]) -> Formula:
            made = Formula(names)
            for ref in loops:
                made.within(ref.var, ref.node.min, ref.node.extent)
            for above in self.block.ancestors():
                if isinstance(above, BlockRef) and isinstance(above.node, BlockRealize):
                    for iterator, value in zip(above.block.iter_vars, above.node.iter_values):
                        made.equal(made.var(iterator.var), value)
            for condition in conditions:
                made.require(condition)
            return made

        def runs_of(conditions: Sequence[Expr]) -> Relation:
            """From the loops around and the spatial iterators, which tell results apart, to the loops inside."""
            made = formula(conditions)
            for iterator, value in self.spatial:
                made.equal(names.of(iterator.var), value)
            moments = [made.var(ref.var) for ref in self.inner]
            return made.map([*around, *(names.of(i.var) for i, _ in self.spatial)], moments, inner)

        parts = conjuncts(self.block.node.predicate)
        first = [EQ(v, i.dom.min) for i, v in self.reduce]
        runs, inits = runs_of(parts), runs_of([*parts, *first])
        # a run before it: one that another init resets, or an update that is lost
        later = runs.then(Relation.lex_before(len(inner)))
        late = inits.intersect(later)
        if not late.is_empty():
            point = late.range().sample() or []
            at = ", ".join(f"{ref.name} = {x}" for ref, x in zip(self.inner, point))
            raise ScheduleError(
                "the init of block {0} runs after other runs for the same result: before the loops it would not undo them",
                self.block, witness=[f"it runs at {at}"], nodes=[self.block.node],
            )  # fmt: skip
        kept, gone = ([ref.var for ref in refs] for refs in (self.kept, self.dropped))
        dims, hidden = [*around, *(names.of(v) for v in kept)], [names.of(v) for v in gone]
        ran = formula([*parts, *first]).map(dims, [], hidden).domain()
        for guards in (at_start, [p for p in parts if not uses_var(p, gone)]):
            if ran.is_equal(formula(guards).map(dims, [], hidden).domain()):
                return guards
        parts = [*(v for _, v in self.reduce), *parts]
        tied = next((ref for ref in self.dropped if any(uses_var(p, ref.var) for p in parts)), self.inner[0])
        raise ScheduleError(
            "the reduction of block {0} does not begin with the first iteration of {1} for every result, and where it does is "
            "no condition on the loops around",
            self.block, tied.node, nodes=[self.block.node],
        )  # fmt: skip
