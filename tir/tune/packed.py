"""What rules share that multiply by dot products: panels of columns whose groups of terms lie side by side.

A group is as many neighbours along the reduction as one instruction multiplies and adds (:class:`DotProduct`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..intrin.dot_products import LANES, DotProduct
from ..node import cached_property
from ..schedule import BlockRV, LoopRV, Schedule
from .contracted import Contraction
from .nest import Nest, volume
from .rules.spatial import share_out
from .space import Env
from .staged_operands import Copy, Staged


@dataclass(frozen=True)
class Operands:
    """A product of whole tiles whose operands are copied, ``left`` and ``right``; a block ``fill`` that first gathers or
    pads the right one, where it does."""

    staged: Staged
    left: Copy
    right: Copy
    fill: BlockRV | None


@dataclass(frozen=True)
class Panels:
    """A contraction by dot products: ``high`` rows at a time, with panels of ``width`` columns, by ``depth`` terms."""

    found: Contraction
    kind: DotProduct
    env: Env
    high: int
    width: int
    depth: int

    @staticmethod
    def kind_of(nest: Nest | None) -> tuple[Contraction, DotProduct] | None:
        """The contraction that a nest is, and the dot product of its types; None if it is none, or there is none."""
        found = nest and Contraction.of(nest)
        if not found or not found.rows:
            return None
        kind = DotProduct.of(*(a.buffer.dtype for a in (found.other, found.panel, found.nest.stores[0])))
        return (found, kind) if kind else None

    @staticmethod
    def pays(found: Contraction, kind: DotProduct) -> bool:
        """Whether a contraction fills half of the lanes, and several groups of terms."""
        return 2 * volume([*found.columns, found.lane]) >= LANES and volume(found.terms) >= 2 * kind.group

    @cached_property
    def count(self) -> int:
        return -(-volume([*self.found.columns, self.found.lane]) // self.width)

    @cached_property
    def strips(self) -> int:
        return -(-volume(self.found.rows) // self.high)

    @cached_property
    def steps(self) -> int:
        return -(-volume(self.found.terms) // self.depth)

    @cached_property
    def shared(self) -> str:
        """The loops that run in parallel: "batch", "panels", "rows" or "" (one core)."""
        cores = self.env.threads
        if cores < 2 or self.found.operations < self.env.parallel_from:
            return ""
        counts = {"batch": volume(self.found.batch), "panels": self.count, "rows": self.strips}
        return next((name for name, count in counts.items() if count >= cores), "")

    def together(self) -> list[int]:
        """How many panels may be used at a time, best first: groups of equal size that fit in half of the L2 cache."""
        one = self.steps * self.depth * self.width * self.found.element
        fitting = max(1, self.env.machine.sizes["L2"] // 2 // one)
        groups = max(-(-self.count // fitting), self.env.threads if self.shared == "panels" else 1)
        best = -(-self.count // groups)
        return list(dict.fromkeys(n for n in (best, best // 2, 2 * best) if 0 < n <= self.count))

    def stage(self, sch: Schedule, tile: Sequence[int], sums: str) -> Operands:
        """Copy both operands, padded to whole tiles (rows, columns, terms); the result is stored from memory ``sums``."""
        staged = Staged.of(sch, self.found, tile, "global", sums)
        right, left = staged.copies
        fill = None if right.has_terms_last or right.is_plain(sch) else right.block
        if fill is not None:
            copy = sch.cache_read(self.found.nest.name, sch.get(fill).writes[0].buffer.name, "global")
            right = replace(right, block=copy)
        return Operands(staged, left, right, fill)

    def interleave(self, sch: Schedule, made: Operands, terms: Sequence[LoopRV], columns: Sequence[LoopRV]) -> LoopRV:
        """Pack the right operand, given the loops of its block over groups of terms and over vectors of columns: groups side
        by side, in vectors where terms are rows. Returns the outermost of its loops."""
        lane, place = sch.get_loops(made.right.block)[-2:]
        if made.right.has_terms_last:
            sch.reorder(*terms[:-1], *columns, lane, terms[-1], place)
            sch.vectorize(place)
            return sch.get_loops(made.right.block)[0]
        sch.reorder(*terms, *columns, lane, place)
        outermost = sch.get_loops(made.right.block)[0]
        if made.fill is not None:
            sch.compute_at(made.fill, terms[-1])
            _, inner = sch.split(sch.get_loops(made.fill)[-1], [None, 2 * LANES])
            sch.vectorize(inner)
        sch.tensorize(lane, self.kind.interleave)
        return outermost

    def share(self, sch: Schedule, batch: Sequence[LoopRV], outermost: LoopRV, packing: LoopRV) -> None:
        """Run batches, groups of panels or strips of rows in parallel; panels that all rows use are packed in parallel, too."""
        operations = self.found.operations
        if self.shared == "rows":
            share_out(sch, [packing], operations, self.env)
        share_out(sch, list(batch) if self.shared == "batch" else [outermost], operations, self.env)
