"""Contractions: products of two operands summed over axes (matrix products, einsums, convolutions), as what rules ask of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..analysis.reduction_forms import Update
from ..expr import BufferLoad, Expr, Mul
from ..node import cached_property
from ..target import LINE
from ..visit import uses_var, walk
from .core import CLOSE
from .nest import Access, Axis, Nest, unconverted, volume
from .space import Env
from .tile_costs import collide

THIN = 48  # most rows for which the streamed operand is read in place
FEW = 16  # most rows for which panels that lie along the terms are not packed
SUMMED = 8  # terms that take as long as adding up the parts of a vector, which each result takes without panels


@dataclass(frozen=True)
class Contraction:
    """A block that sums products of two operands: ``panel`` has the lane axis (contiguous in the result), ``other`` not.

    A factor may be computed of what it loads, as in ``P[i, k] / S[i] * V[k, j]``; then ``other`` is the load of all its iterators.
    ``rows`` index ``other`` alone, ``columns`` the panels alone, ``batch`` both; ``terms`` are summed over.
    """

    nest: Nest
    lane: Axis
    panel: Access
    other: Access
    gather: str = ""  # the block that gathers the panels from somewhere else, if nothing else reads what it makes
    chunks: tuple[Axis, ...] = ()  # the axis of partial sums, if it makes these; the only consumer adds them up

    @staticmethod
    def of(nest: Nest) -> Contraction | None:
        """The contraction that a nest is; None for anything else, and for one without results or terms."""
        return Contraction._of(nest, _operands)

    @staticmethod
    def of_pairs(nest: Nest) -> Contraction | None:
        """As :meth:`of`, also of terms that are another function of two operands, such as distances."""
        return Contraction.of(nest) or Contraction._of(nest, _pair)

    @staticmethod
    def _of(nest: Nest, operands_of: Callable[[Update, Nest, Axis], list[Access]]) -> Contraction | None:
        lane, update = nest.contiguous(), nest.reduction and nest.reduction.of_one_value()
        if lane is None or not update or nest.block.init is None or any(a.extent == 0 for a in nest.axes):
            return None
        operands = operands_of(update, nest, lane)
        sides = [o for o in operands if o.stride(lane.var) != 0]
        if len(operands) != 2 or len(sides) != 1:
            return None
        return Contraction(nest, lane, sides[0], operands[operands[0] is sides[0]])

    def _spatial(self, in_panel: bool, in_other: bool) -> list[Axis]:
        wanted = [
            a
            for a in self.nest.spatial
            if all(a is not b for b in (self.lane, *self.chunks))
            and (self.panel.stride(a.var) != 0, self.other.stride(a.var) != 0) == (in_panel, in_other)
        ]
        return self.nest.by_stride(wanted)

    @cached_property
    def rows(self) -> list[Axis]:
        return self._spatial(False, True)

    @cached_property
    def columns(self) -> list[Axis]:
        return self._spatial(True, False)

    @cached_property
    def batch(self) -> list[Axis]:
        return [*self._spatial(True, True), *self._spatial(False, False)]

    @cached_property
    def terms(self) -> list[Axis]:
        """The axes summed over, as ``other`` lies in memory."""
        return sorted(self.nest.reduce, key=lambda a: (a.size > 1, -abs(self.other.stride(a.var) or 0)))

    @property
    def is_of_digits(self) -> bool:
        """Whether the lanes lie in one dimension of the result with another axis, as those of one group of a convolution: no panel is longer than the lane axis."""
        along = [i for i in self.nest.stores[0].indices if uses_var(i, self.lane.var)]
        return any(uses_var(i, a.var) for i in along for a in self.nest.spatial if a is not self.lane)

    @property
    def element(self) -> int:
        """Bytes of an element of the panels."""
        return self.panel.buffer.dtype.bytes

    @property
    def is_packable(self) -> bool:
        """Whether panels are a permutation of the axes of their operand."""
        return len(self.panel.places) == len(self.panel.indices)

    @property
    def is_constant(self) -> bool:
        """Whether panels are packed once, and not at each call."""
        return self.is_packable and not self.nest.in_time and self.panel.buffer in self.nest.constants

    def reading(self, env: Env) -> tuple[float, float]:
        """How many multiply-adds take as long as reading a number of the panels, the first time and again. What is not packed at each call
        comes from beyond the L2 cache if it does not fit."""
        size, rates = self.element * volume(self.terms) * self.lane.size, env.machine.bandwidth
        far = size > env.machine.sizes["L2"] and (self.is_constant or not self.is_packable)
        return 2 * env.machine.peak / rates["L3" if far else "L2"], 2 * env.machine.peak / rates["L2"]

    def has_conflicts(self, wide: int, high: int) -> bool:
        """Whether the lines of ``wide`` rows along the last axis of rows, and ``high`` along the one before, fall into fewer
        sets of the L1 cache than can hold them: each would push out others that are still read."""
        steps = [0, 0, *(self.other.stride(a.var) or 0 for a in self.rows)]
        above, row = (step * self.other.buffer.dtype.bytes for step in steps[-2:])
        return collide({(i * row + j * above) // LINE for i in range(wide) for j in range(high)})

    @property
    def operations(self) -> int:
        return 2 * self.nest.runs

    @property
    def is_of_few_rows(self) -> bool:
        """Whether the panels are read in place as fast as memory gives them: by one row, or along the terms by few rows, where
        packing would take longer than the sums. A rule of reductions makes vectors of it."""
        rows, term = volume(self.rows), self.terms[-1]
        if self.nest.in_time or (self.is_constant and self.rows):
            return False
        if self.panel.stride(self.lane.var) == 1:
            return rows == 1 and len(self.terms) == 1 and not self.batch and not self.columns
        along = all(a.stride(term.var) == 1 for a in (self.panel, self.other))
        most = min(FEW, volume(self.terms) // SUMMED)
        return along and term.size > THIN and rows <= most and not self.columns

    @property
    def is_of_few_terms(self) -> bool:
        """Whether sums are so short that storing them takes longest, and panels are read as they are, or have pairs of terms: straight code, of
        which LLVM makes vectors. In tiles they are worth it for what follows."""
        terms, step = volume(self.terms), self.panel.stride(self.lane.var)
        return (terms <= CLOSE and step == 1) or terms == step == 2


def _operands(update: Update, nest: Nest, lane: Axis) -> list[Access]:
    """The two loads that are multiplied; none if the terms are anything else."""
    terms = update.combination.terms if update.combination else ()
    value = unconverted(terms[0].value) if len(terms) == 1 else None
    sides = [unconverted(side) for side in (value.a, value.b)] if isinstance(value, Mul) else []
    return [found for side in sides if (found := _operand(side, nest, lane)) is not None]


def _pair(_: Update, nest: Nest, lane: Axis) -> list[Access]:
    """What any terms are computed of, if some of it lies across the lanes: else a rule of reductions makes vectors of it without panels."""
    is_across = any(a.stride(lane.var) not in (0, 1) for a in nest.loads)
    return nest.loads if is_across and not nest.computed else []


def _operand(factor: Expr, nest: Nest, lane: Axis) -> Access | None:
    """The load that a factor is, or of one that is computed for all lanes at once, the load whose indices have all its iterators."""
    if isinstance(factor, BufferLoad):
        return Access(factor.buffer, factor.indices)
    if uses_var(factor, lane.var):
        return None
    used = [a.var for a in nest.axes if uses_var(factor, a.var)]
    loads = [n for n in walk(factor) if isinstance(n, BufferLoad)]
    found = next((n for n in loads if all(any(uses_var(i, v) for i in n.indices) for v in used)), None)
    return None if found is None else Access(found.buffer, found.indices)
