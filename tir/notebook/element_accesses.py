"""The elements that an access touches, one by one: its indices evaluated at every iteration of its loops.

Exact where indices, guards and loops are integer arithmetic on loops; a box that a block declares counts in full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..analysis.effects import Effect
from ..arith.pointwise import Unsupported, compile_numpy
from ..expr import IntImm, Ramp, Var, as_expr
from ..render import short_text
from ..visit import has_load

if TYPE_CHECKING:
    import numpy as np

MOST = 1 << 20  # iterations that are looked at one by one


@dataclass(frozen=True)
class Points:
    """An access at each of ``count`` points: ``values`` of the loops that matter, and the index in each axis."""

    count: int
    values: Mapping[Var, np.ndarray]
    indices: tuple[np.ndarray, ...]


def points_of(effect: Effect, fixed: Mapping[Var, int], always: Collection[Var] = ()) -> Points:
    """Where ``effect`` accesses its buffer in all iterations of its loops, those of ``fixed`` held at their values.

    Loops that change neither indices nor guards are left out, but for those of ``always``. Raises ``ValueError`` where
    the elements are not known before the program runs, or are too many to be looked at one by one.

    >>> from tir.library import rows
    >>> from tir.analysis.effects import effects
    >>> store = [e for e in effects(rows.row_sum(4, 8).body) if e.write][0]
    >>> points_of(store, {}).indices
    (array([0, 1, 2, 3]),)
    """
    if effect.indices is None:
        raise ValueError(f"which elements of `{effect.buffer.name}` are accessed through a pointer is not known")
    found = _Enumeration(effect)
    try:
        return found.points(fixed, frozenset(always))
    except Unsupported as error:
        what = short_text(effect.node) if effect.node is not None else effect.buffer.name
        raise ValueError(
            f"`{what}` depends on more than loops of constant extent ({error}): which elements it touches shows when it runs"
        ) from None


class _Enumeration:
    """Points are added loop by loop, outermost first, so that the extent of a loop may depend on those around it."""

    def __init__(self, effect: Effect):
        import numpy as np

        self.np = np
        self.effect = effect
        self.count = 1
        self.values: dict[Var, Any] = {}
        self.origin: Any = None  # of each point, the one it was before the last repetition

    def points(self, fixed: Mapping[Var, int], always: frozenset[Var]) -> Points:
        for var, low, extent in self.effect.loops:
            if var in fixed:
                self.values[var] = self.np.full(self.count, fixed[var], self.np.int64)
            elif var in always or not isinstance(extent, IntImm) or extent.value < 1 or self.effect.uses((var,)):
                self._repeat(var, self.at(low), self.at(extent))
        for guard in self.effect.guards:
            if not has_load(guard):
                self._keep(self.at(guard).astype(bool))
        indices: list[Any] = []
        for index in self.effect.indices or ():
            base, offsets = self._axis(index)
            if offsets is not None:
                lane = Var("lane")
                self._repeat(lane, self.np.zeros(self.count, self.np.int64), offsets[0])
                indices = [i[self.origin] for i in indices]
                base = base[self.origin] + self.values.pop(lane) * offsets[1]
            indices.append(base)
        return Points(self.count, self.values, tuple(indices))

    def at(self, e: Any) -> Any:
        """The value of an expression at each point so far."""
        run: Callable[..., Any] = compile_numpy(as_expr(e), list(self.values))
        return self.np.broadcast_to(run(*self.values.values()), (self.count,)).astype(self.np.int64)

    def _axis(self, index: Any) -> tuple[Any, tuple[Any, int] | None]:
        """The first index in an axis at each point; of a range or a vector, how many, and how far apart."""
        if isinstance(index, tuple):
            return self.at(index[0]), (self.at(index[1]), 1)
        if isinstance(index, Ramp) and isinstance(index.stride, IntImm):
            return self.at(index.base), (self.np.full(self.count, index.lanes), index.stride.value)
        return self.at(index), None

    def _repeat(self, var: Var, low: Any, extent: Any) -> None:
        """Each point once for every value of ``var``; ``origin`` tells which."""
        np = self.np
        extent = np.maximum(extent, 0)
        total = int(extent.sum())
        if total > MOST:
            raise ValueError(
                f"`{self.effect.buffer.name}` is accessed in {total} iterations, more than the {MOST} that are looked at "
                "one by one: choose a loop further inside"
            )
        self.origin = np.repeat(np.arange(self.count), extent)
        within = np.arange(total) - np.repeat(np.cumsum(extent) - extent, extent)
        self.values = {v: known[self.origin] for v, known in self.values.items()}
        self.values[var] = low[self.origin] + within
        self.count = total

    def _keep(self, mask: Any) -> None:
        self.values = {v: known[mask] for v, known in self.values.items()}
        self.count = int(mask.sum())
