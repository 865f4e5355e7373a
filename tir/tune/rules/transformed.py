"""Products between transforms of tiles, as in Winograd's convolution: an operand is computed of tiles that overlap, and results are
combined for the elements of a tile. All stages are computed for strips of rows of tiles, while these are in the cache."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...arith.divide import divisors
from ...buffer import Buffer
from ...expr import FloorDiv, IntImm, const
from ...schedule import LoopRV, Schedule
from ..contracted import Contraction
from ..nest import Axis, Nest, extent_of, is_padding, volume
from ..space import Env, Fork, rule
from ..tile_costs import uneven
from .contraction import Tiling
from .inline import padded_in_place
from .spatial import share_out

SHOWN = 0.1  # of the time of reading panels, the share that products do not hide
PASSES = 4  # of what is between stages through a cache: written and read, before the product and after it
UNEQUAL = 1.2  # times the average work that a thread may have, where strips are shared out


@rule(targets=("llvm",), order=29)
def transformed(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Compute a product for strips of rows of tiles, after its operand and before what its results are combined to; a fork for each
    width of the panels, the cheapest first."""
    found = _Transformed.of(sch, block, env)
    if found is None:
        return []
    tilings = [Tiling.of(found.product, n, found.lanes, env) for n in (1, 2, 3, 4)]
    fitting = [t for t in tilings if t is not None and found.product.lane.fills(t.width)]
    return [lambda t=t: found.apply(sch.copy(), t.vectors) for t in sorted(fitting, key=lambda t: t.cost)]


@dataclass(frozen=True)
class _Side:
    """An axis of the result that is in tiles of ``size``, and that of the product along which these are."""

    axis: Axis
    size: int
    tiles: Axis


@dataclass(frozen=True)
class _Transformed:
    """A ``nest`` that combines results of a ``product``, of which the blocks ``stages`` compute the operand that is no panel, the last one first. ``sides``
    are the axes of the nest that are in tiles."""

    nest: Nest
    product: Contraction
    stages: Sequence[Nest]
    sides: Sequence[_Side]
    env: Env

    @staticmethod
    def of(sch: Schedule, block: str, env: Env) -> _Transformed | None:
        """What a block and the two before it are; None for anything else, and where vectors would have tails."""
        nest = Nest.of(sch, block)
        if nest is None or not nest.axes or nest.reduce or len(nest.stores) != 1:
            return None
        if not any(isinstance(index, FloorDiv) for load in nest.loads for index in load.indices):
            return None
        products = [Contraction.of(p) for p in _alone_before(sch, nest) if p.reduce]
        product = products[0] if len(products) == 1 else None
        if product is None or not product.rows or not product.batch:
            return None
        stages, sides = _stages(sch, product), list(_sides(nest, product.nest))
        if not stages or not sides:
            return None
        found = _Transformed(nest, product, stages, sides, env)
        return found if found._is_whole else None

    @property
    def lanes(self) -> int:
        return self.env.lanes(self.product.nest.stores[0].buffer.dtype.bits)

    @property
    def _is_whole(self) -> bool:
        """Whether vectors have no tails, and a strip is of constant size."""
        ends = (self.nest.axes[-1], self.product.lane, *(s.axes[-1] for s in self.stages))
        inside = [a for a in self.product.nest.spatial if a not in self._around]
        is_along = self.nest.contiguous() is self.nest.axes[-1]
        return (
            is_along
            and all(a.fills(self.lanes) for a in ends)
            and all(a.extent for a in (*inside, *self.product.terms))
        )

    @property
    def _around(self) -> list[Axis]:
        """The axes of the product for which those of the result are outside of strips."""
        outer = {a.var for a in self.nest.axes[: self.nest.axes.index(self.sides[0].axis)]}
        indices = [a.indices for a in self.nest.loads if a.buffer is self._between]
        places = self.product.nest.stores[0].places
        return [a for a in self.product.nest.spatial if all(i[places[a.var]] in outer for i in indices)]

    @property
    def _between(self) -> Buffer:
        return self.product.nest.stores[0].buffer

    def strip(self, vectors: int) -> tuple[int, ...]:
        """The tiles in a strip along each of the sides, part of a row or whole rows, in the least time: of the products by register tiles of so many
        ``vectors``, of panels that come from beyond the L2 cache for each strip, where products do not hide that, and of what is between the stages, where
        that does not stay there."""
        product, machine = self.product, self.env.machine
        half, rate = machine.sizes["L2"] // 2, machine.bandwidth["L3"]
        tiles = volume(s.tiles for s in self.sides)
        each = volume(product.batch) * volume(product.terms)
        panels = product.element * each * product.lane.size
        between = product.element * volume(product.batch) * (volume(product.terms) + product.lane.size)

        def seconds(strip: tuple[int, ...]) -> float:
            sizes = {
                **dict.fromkeys((a.var for a in self._around), 1),
                **{s.tiles.var: n for s, n in zip(self.sides, strip)},
            }
            axes = [replace(a, size=sizes.get(a.var, a.size)) for a in product.nest.axes]
            tiling = Tiling.of(_with_axes(product, axes), vectors, self.lanes, self.env)
            products = 2 * each * min(tiling.costs) / machine.peak if tiling else float("inf")
            reading = panels / rate if panels > half else 0.0
            moving = PASSES * between * prod(strip) / rate if between * prod(strip) > half else 0.0
            return tiles // prod(strip) * (max(products, reading) + SHOWN * reading + moving)

        *whole, (size, parts) = [(s.tiles.size, divisors(s.tiles.size)) for s in self.sides]
        of_rows = [(*rows, size) for rows in itertools.product(*(heights for _, heights in whole))]
        of_parts = [(*(1 for _ in whole), part) for part in parts]
        return min(dict.fromkeys([*of_parts, *of_rows]), key=seconds)

    def _is_shared(self, strip: tuple[int, ...]) -> bool:
        """Whether threads have strips of their own; else they share what is in a strip."""
        strips = volume([*self._around, *(s.tiles for s in self.sides)]) // prod(strip)
        return uneven(strips, self.env.threads) <= UNEQUAL

    def apply(self, sch: Schedule, vectors: int) -> Schedule:
        """The schedule with panels of ``vectors`` vectors."""
        padded_in_place(sch, self.stages[-1].name)
        strip = self.strip(vectors)
        strips, around, tile = self._in_tiles(sch, strip)
        for each in (self.product.nest, *self.stages):
            sch.compute_at(each.name, strips[-1], preserve_unit_loops=True)
        tiles = [self._transform(sch, stage) for stage in self.stages]
        within = replace(self.env, threads=1) if self._is_shared(strip) else self.env
        tiling = Tiling.of(_with_axes(self.product, _inside(sch, self.product.nest)), vectors, self.lanes, within)
        assert tiling is not None
        tiling.apply(sch)
        for loop in tile[:-1]:
            sch.unroll(loop)
        sch.vectorize(tile[-1])
        if self._is_shared(strip):
            share_out(sch, strips, self.product.operations, self.env)
        else:
            for loops in (around, *tiles):
                share_out(sch, loops, self.product.operations, self.env)
        return sch

    def _in_tiles(self, sch: Schedule, strip: tuple[int, ...]) -> tuple[list[LoopRV], list[LoopRV], list[LoopRV]]:
        """Split the loops of the result into strips, tiles, vectors, and what is in a tile, and order them so. Returns the loops of strips, of tiles,
        and of a vector in a tile."""
        sides = {side.axis.var: (side.size, tiles) for side, tiles in zip(self.sides, strip)}
        strips, around, inside = list[LoopRV](), list[LoopRV](), list[LoopRV]()
        for axis in self.nest.axes[:-1]:
            if axis.var in sides:
                size, tiles = sides[axis.var]
                outer, middle, inner = sch.split(axis.loop, [None, tiles, size])
                strips, around, inside = [*strips, outer], [*around, middle], [*inside, inner]
            elif around:
                around.append(axis.loop)
            else:
                strips.append(axis.loop)
        vector, lane = sch.split(self.nest.axes[-1].loop, [None, self.lanes])
        sch.reorder(*strips, *around, vector, *inside, lane)
        return strips, around, [*inside, lane]

    def _transform(self, sch: Schedule, stage: Nest) -> list[LoopRV]:
        """Compute vectors of a stage, all transformed elements of a tile one after another. Returns the loops of tiles."""
        axes = _inside(sch, stage)
        around = [a.loop for a in axes[:-1] if a.var not in stage.computed]
        unrolled = [a.loop for a in axes[:-1] if a.var in stage.computed]
        vector, lane = sch.split(axes[-1].loop, [None, self.lanes])
        sch.reorder(*around, vector, *unrolled, lane)
        sch.vectorize(lane)
        for loop in unrolled:
            sch.unroll(loop)
        return around


def _alone_before(sch: Schedule, nest: Nest) -> list[Nest]:
    """The nests that compute what a nest reads, and nothing else does: one element in each iteration, in loops in the order of the iterators."""
    alone = [p.name for p in sch.get_producers(nest.name) if len(sch.get_consumers(p)) == 1]
    found = [n for name in alone if (n := Nest.of(sch, name)) is not None and n.axes and len(n.stores) == 1]
    return [
        n
        for n in found
        if [a.var for a in n.axes] == [i.var for i in n.block.iter_vars]
        and all(a.var in n.stores[0].places for a in n.spatial)
    ]


def _stages(sch: Schedule, product: Contraction) -> list[Nest]:
    """The blocks that compute the operand of a product that is no panel, the last one first; what is padded for them is none."""
    found, buffer = list[Nest](), product.other.buffer
    before = _alone_before(sch, product.nest)
    while one := next((n for n in before if n.stores[0].buffer is buffer), None):
        if one.reduce or is_padding(one) or one.contiguous() is not one.axes[-1]:
            break
        found.append(one)
        before = _alone_before(sch, one)
        buffer = before[0].stores[0].buffer if len(before) == 1 else None
    return found


def _sides(nest: Nest, product: Nest) -> Iterator[_Side]:
    """The axes of a nest by whose quotients it reads what ``product`` makes."""
    store, axes = product.stores[0], {a.var: a for a in nest.axes}
    at = {store.places[a.var]: a for a in product.spatial}
    loads = [a.indices for a in nest.loads if a.buffer is store.buffer]
    for place, index in enumerate(loads[0]):
        if isinstance(index, FloorDiv) and index.a in axes and isinstance(index.b, IntImm):
            yield _Side(axes[index.a], index.b.value, at[place])


def _inside(sch: Schedule, nest: Nest) -> list[Axis]:
    """The axes of a nest that was computed at a loop: what of them is inside of that."""
    loops = sch.get_loops(nest.name)[-len(nest.axes) :]
    sizes = [extent_of(sch, loop) for loop in loops]
    return [replace(a, loop=loop, length=const(size), size=size) for a, loop, size in zip(nest.axes, loops, sizes)]


def _with_axes(product: Contraction, axes: Sequence[Axis]) -> Contraction:
    """A product whose axes are these, of the same iterators."""
    lane = next(a for a in axes if a.var is product.lane.var)
    return replace(product, nest=replace(product.nest, axes=tuple(axes)), lane=lane)
