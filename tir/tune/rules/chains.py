"""Chains of products with what is between them, such as attention: all stages for some rows, while these are in the cache."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...errors import ScheduleError
from ...schedule import BlockRV, LoopRV, Schedule
from ..contracted import Contraction
from ..nest import Nest, extent_of, loop_of, volume
from ..space import Env, Fork, choose, rule
from ..tile_costs import straight_steps
from .contraction import Tiling, gathered, padded
from .reductions import parts_of, place_parts, walks
from .row_fuse import move_together, stages_of
from .spatial import UNROLL, share_out, vectorize

VECTORS = 2  # of the columns of a tile
PADDED = 1.25  # computed columns over needed ones, at most: the last tile may be partly empty
ROWS = (12, 13, 14, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)  # of a tile, best first


@rule(targets=("llvm",), order=29)
def chains(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Compute the products before a block, and the row reductions between them, in strips of its rows, unless all that is between them
    stays in the cache."""
    nest = Nest.of(sch, block)
    if nest is None or len(nest.spatial) < 2 or nest.contiguous() is not nest.spatial[-1]:
        return []
    stages = [*stages_of(sch, nest, lambda stage: _has_rows(stage, nest) and _is_read_by_rows(sch, stage, nest)), nest]
    products = [p for p in (Contraction.of(s) for s in stages) if p is not None and p.rows]
    sums = [s for s in stages if s.reduce and all(p.nest is not s for p in products)]
    rows = nest.spatial[:-1]
    if not products or len(products) + len(sums) < 2 or not _has_rows(nest, nest):
        return []
    if not any(_overflows(stage, env) for stage in stages[:-1]):
        return []
    if not all(_fits(p, env) for p in products) or not all(walks(s, s.reduce[-1]) for s in sums):
        return []
    most = (env.vectors.count - 1) // VECTORS - 1  # that leave registers for the columns and for an element
    fitting = [h for h in ROWS if most // 2 - 1 <= h <= most]
    heights = [h for h in fitting if rows[-1].size % h == 0] or fitting
    made = _Chain(nest, stages, products, sums, env)
    return [lambda: made.apply(sch.copy(), heights)]


def _has_rows(stage: Nest, of: Nest) -> bool:
    """Whether a stage has the same rows as ``of``, and at most one more axis of results."""
    rows, own = ([a.extent for a in axes] for axes in (of.spatial[:-1], stage.spatial))
    whole = len(stage.spatial) + len(stage.reduce) == len(stage.axes)
    return whole and None not in own and own[: len(rows)] == rows and len(own) - len(rows) in (0, 1)


def _is_read_by_rows(sch: Schedule, stage: Nest, of: Nest) -> bool:
    """Whether what reads a stage reads for each of the rows of ``of`` the same row of it: no columns of a product."""
    last = len(of.spatial) - 2
    consumers = [Nest.of(sch, c.name) for c in sch.get_consumers(stage.name)]
    readers = [c for c in consumers if c is not None and last < len(c.spatial)]
    return len(readers) == len(consumers) and move_together(stage, readers, slice(last, last + 1))


def _fits(product: Contraction, env: Env) -> bool:
    """Whether all columns of a product, for all of which a strip of rows is multiplied, stay in the L2 cache, and nearly fill their panels."""
    size, columns = product.element * volume(product.terms) * product.lane.size, product.lane.size
    width = VECTORS * env.lanes(product.nest.stores[0].buffer.dtype.bits)
    fills = -(-columns // width) * width <= PADDED * columns
    return product.is_packable and fills and size <= env.machine.sizes["L2"] // 2


def _overflows(stage: Nest, env: Env) -> bool:
    """Whether the results of a stage do not stay in half of the L2 cache."""
    return stage.stores[0].buffer.dtype.bytes * volume(stage.spatial) > env.machine.sizes["L2"] // 2


@dataclass(frozen=True)
class _Chain:
    nest: Nest
    stages: list[Nest]
    products: list[Contraction]
    sums: list[Nest]
    env: Env

    def apply(self, sch: Schedule, heights: list[int]) -> Schedule:
        """The schedule, with strips of the likeliest of ``heights``."""
        products = [self._pack(sch, product) for product in self.products]
        parts = {stage.name: parts_of(sch, stage, self.env.lanes(stage.width)) for stage in self.sums}
        *outer, row = (a.loop for a in self.nest.spatial[:-1])
        height = choose(sch, heights, [1 + 0.05 * n for n in range(len(heights))])
        strip, _ = sch.split(row, [None, height])
        for stage in reversed(self.stages[:-1]):
            sch.compute_at(stage.name, strip, preserve_unit_loops=True)
            place_parts(sch, parts.get(stage.name, []), strip, self.env.lanes(stage.width))
        for product, _, _ in products:
            self._tile(sch, product, strip)
        for stage in self.stages:
            if not stage.reduce and len(stage.spatial) == len(self.nest.spatial):
                vectorize(sch, sch.get_loops(stage.name)[-1], stage.axes[-1].size, self.env.lanes(stage.width), UNROLL)
        for product, tiling, pack in products:
            if pack is not None:
                depends = {a.var.name for a in product.batch}
                inside = [loop for loop, a in zip(outer, self.nest.spatial) if a.var.name in depends]
                tiling.pack(sch, pack, inside[-1] if inside else None)
        share_out(sch, [*outer, strip], sum(s.runs * s.work for s in self.stages), self.env)
        return sch

    def _pack(self, sch: Schedule, product: Contraction) -> tuple[Contraction, Tiling, BlockRV | None]:
        """Copy columns to panels if they lie across the lanes of vectors, or are no whole vectors: these are padded. Returns the
        product, its tiling, and the block that copies."""
        name, lanes = product.nest.name, self.env.lanes(product.nest.stores[0].buffer.dtype.bits)
        pack, gather = None, gathered(sch, product)
        if product.lane.size % lanes:
            pack, store = padded(sch, product, lanes)
            sch.compute_inline(store)
        elif gather or product.panel.stride(product.lane.var) != 1:
            pack = sch.cache_read(name, product.panel.buffer.name, "global", consumer_blocks=[name])
        if gather:
            sch.compute_inline(gather)
        nest = Nest.of(sch, name)
        made = nest and Contraction.of(nest)
        made = made and replace(made, gather=gather)
        tiling = made and Tiling.of(made, VECTORS, lanes, self.env)
        if made is None or tiling is None:
            raise ScheduleError(f"{name} is no product that is tiled once its columns are whole vectors")
        if pack is not None:
            pack = tiling.laid_out(sch, pack)
        return made, tiling, pack

    def _tile(self, sch: Schedule, product: Contraction, strip: LoopRV) -> None:
        """Sum a tile of rows by ``VECTORS`` vectors of columns over all terms."""
        name, lanes = product.nest.name, self.env.lanes(product.nest.stores[0].buffer.dtype.bits)
        row, lane = (loop_of(sch, name, a.var, strip) for a in (product.rows[-1], product.lane))
        terms = [loop_of(sch, name, a.var, strip) for a in product.terms]
        columns, vector, lane = sch.split(lane, [None, VECTORS, lanes])
        sch.reorder(columns, *terms, row, vector, lane)
        sch.vectorize(lane)
        init = sch.decompose_reduction(name, terms[0])
        steps = straight_steps(product.terms[-1].size, extent_of(sch, row) * VECTORS)[0]
        sch.unroll(sch.split(terms[-1], [None, steps])[1])
        first = sch.get_loops(init)
        sch.vectorize(first[-1])
        for loop in (row, vector, *first[-3:-1]):
            sch.unroll(loop)
