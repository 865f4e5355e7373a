"""Products of bfloat16 or bytes on tile registers (AMX): 32 by 32 sums in four of the eight registers.

Both operands are packed into tiles: as many panels of 32 columns as half of the L2 cache holds, and 32 rows at a time. A
long reduction is summed in chunks, so that the tiles of the rows for one of them stay in L1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...expr import Expr
from ...intrin.amx import TILE, amx_intrinsics
from ...intrin.dot_products import DotProduct
from ...node import cached_property
from ...schedule import BlockRV, Schedule
from ..contracted import Contraction
from ..nest import Nest, volume
from ..packed import Operands, Panels
from ..space import Env, Fork, rule
from ..staged_operands import Copy, Staged

SIDE = 2  # tiles along each side of a block of sums
BLOCK = SIDE * TILE
CHUNK = 16  # most tiles along the reduction at a time: those of the rows stay in L1, those of the columns bypass it
CHUNKS = 8  # the place, from the end, of the loop over chunks among those of a product
SCOPE = "amx.tile"


@rule(targets=("llvm",), order=36)
def tiles(sch: Schedule, block: str, env: Env) -> Sequence[Fork]:
    """Multiply matrices on tile registers, where the CPU has them for these types; a fork for each number of panels."""
    product = Panels.kind_of(Nest.of(sch, block))
    if product is None or not Panels.pays(*product) or 2 * volume(product[0].rows) < TILE:
        return []
    return by_tiles(sch, *product, env) if env.has(product[1].tile_feature) else []


def by_tiles(sch: Schedule, found: Contraction, kind: DotProduct, env: Env) -> list[Callable[[], Schedule]]:
    """A contraction on tile registers, for each number of panels; whether the CPU has them is not asked."""
    made = _Tiles(Panels(found, kind, env, BLOCK, BLOCK, TILE * kind.group))
    return [lambda n=n: made.apply(sch.copy(), n) for n in made.panels.together()]


@dataclass(frozen=True)
class _Tiles:
    panels: Panels

    @cached_property
    def chunks(self) -> int:
        return -(-self.panels.steps // CHUNK)

    @cached_property
    def chunk(self) -> int:
        """Tiles of a chunk: as many in each, so that little is padded."""
        return -(-self.panels.steps // self.chunks)

    def apply(self, sch: Schedule, together: int) -> Schedule:
        """The schedule with ``together`` panels at a time."""
        panels, name = self.panels, self.panels.found.nest.name
        made = panels.stage(sch, (BLOCK, BLOCK * together, panels.depth * self.chunk), "global")
        sch.transform_block_layout(name, self._of_product(sch, made.staged))
        product = sch.get_block(name)
        if self.chunks > 1:
            product = sch.rfactor(sch.get_loops(name)[-CHUNKS], 0)
        self._pack(sch, made.left, is_left=True)
        self._pack(sch, made.right, is_left=False)
        sch.transform_layout(product, ("write", 0), self._of_sums)

        *batch, io, jo, pc, p, ii, ji, i, j, g, q = sch.get_loops(product)
        jc, jr = sch.split(jo, [None, together])
        around = [io, jc] if panels.shared == "rows" else [jc, io]
        sch.reorder(*batch, *around, pc, jr, p, ii, ji, i, j, g, q)
        if panels.shared != "rows":
            sch.compute_at(made.right.block, jc, preserve_unit_loops=True)
        sch.compute_at(made.left.block, pc, preserve_unit_loops=True)
        if self.chunks > 1:
            sch.reverse_compute_at(name, jr, preserve_unit_loops=True)
            sch.vectorize(sch.get_loops(name)[-1])
        sch.reverse_compute_at(made.staged.store, around[-1] if self.chunks > 1 else jr, preserve_unit_loops=True)
        sch.vectorize(sch.get_loops(made.staged.store)[-1])
        self._multiply(sch, product, made)
        if made.left.has_terms_last:
            sch.vectorize(sch.fuse(*sch.get_loops(made.left.block)[-2:]))
        pc, jr, p, ji, g = sch.get_loops(made.right.block)[-7:-2]
        packing = panels.interleave(sch, made, (pc, p, g), (jr, ji))
        panels.share(sch, batch, around[0], packing)
        return sch

    def _of_product(self, sch: Schedule, staged: Staged) -> Callable[..., tuple[Expr, ...]]:
        """The iterators of the product: batches, blocks of sums, chunks, tiles, and what is in a tile."""
        own = {i.var: n for n, i in enumerate(sch.get(self.panels.found.nest.name).iter_vars)}
        places = [own[a.var] for a in staged.axes]

        def split(*at: Expr) -> tuple[Expr, ...]:
            *batch, i, j, k = (at[n] for n in places)
            io, ii, i = _tile(i)
            jo, ji, j = _tile(j)
            pc, p, g, q = self._term(k)
            return *batch, io, jo, pc, p, ii, ji, i, j, g, q

        return split

    def _term(self, k: Expr) -> tuple[Expr, Expr, Expr, Expr]:
        """Chunk, tile, row of a tile and place in a group of a term."""
        group, depth = self.panels.kind.group, self.panels.depth
        return k // (self.chunk * depth), k // depth % self.chunk, k // group % TILE, k % group

    def _of_sums(self, *at: Expr) -> tuple[Expr, ...]:
        """Where a sum is, of a chunk if there are several."""
        chunk, (*batch, i, j) = (at[:1], at[1:]) if self.chunks > 1 else ((), at)
        io, ii, i = _tile(i)
        jo, ji, j = _tile(j)
        return *batch, io, jo, *chunk, ii, ji, i, j

    def _pack(self, sch: Schedule, copy: Copy, is_left: bool) -> None:
        """Lay a packed operand out in tiles, and order the loops that copy it likewise."""

        def layout(*at: Expr) -> tuple[Expr, ...]:
            *batch, own, k = at if copy.has_terms_last else (*at[:-2], at[-1], at[-2])
            outer, side, lane = _tile(own)
            pc, p, g, q = self._term(k)
            return (*batch, outer, pc, p, side, lane, g, q) if is_left else (*batch, pc, outer, p, side, g, lane, q)

        sch.transform_layout(copy.block, ("write", 0), layout)
        sch.transform_block_layout(copy.block, layout)

    def _multiply(self, sch: Schedule, product: BlockRV, made: Operands) -> None:
        """Keep tiles in registers, and replace the loops over what is in them by instructions."""
        names = amx_intrinsics(self.panels.kind.tiles)
        *_, p, ii, ji, i, _, _, _ = sch.get_loops(product)
        operands = [sch.get(copy.block).writes[0].buffer.name for copy in (made.left, made.right)]
        sums = sch.cache_write(product, 0, SCOPE)
        lefts, rights = (sch.cache_read(product, operand, SCOPE, consumer_blocks=[product]) for operand in operands)
        sch.compute_at(lefts, ii, preserve_unit_loops=True)
        sch.compute_at(rights, p, preserve_unit_loops=True)
        init = sch.decompose_reduction(product, p)
        for block, name, axes in ((lefts, "load_a", 3), (rights, "stream_b", 3), (init, "zero", 2), (sums, "store", 2)):
            *_, outer, inner, row = sch.get_loops(block)[: 1 - axes]
            for loop in (outer, inner):
                sch.unroll(loop)
            sch.tensorize(row, names[name])
        sch.tensorize(i, names["dot"])
        sch.unroll(ii)
        sch.unroll(ji)


def _tile(at: Expr) -> tuple[Expr, Expr, Expr]:
    """Block of sums, tile in it, and place in the tile of a row or a column."""
    return at // BLOCK, at // TILE % SIDE, at % TILE
