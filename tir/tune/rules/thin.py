"""Products of few rows with a large matrix: bound by reading the matrix once, from end to end."""

from __future__ import annotations

from collections.abc import Sequence

from ...schedule import BlockRV, LoopRV, Schedule
from ...target import LINE
from ..contracted import THIN, Contraction
from ..nest import Nest, volume
from ..space import Env, Fork, choose, rule
from .contraction import Tiling
from .spatial import share_out

DEPTHS = (32, 64, 16, 128)  # rows of the matrix that are read at a time, best first
PACKED_DEPTHS = (128, 64, 256)
PACKED = 2  # vectors of a packed panel


@rule(targets=("llvm",), order=39)
def thin(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Read some rows of a large matrix at a time, and add their products to results that stay in the cache. Of a symbolic number of
    rows the last, which are summed under conditions, would not be in registers even while some rows of the matrix are read: none is offered."""
    nest = Nest.of(sch, block)
    found = nest and Contraction.of(nest)
    if (
        not found
        or found.batch
        or found.columns
        or found.is_of_few_rows
        or found.is_constant
        or volume(found.rows) > THIN
        or any(a.extent is None for a in found.rows)
        or found.panel.stride(found.lane.var) != 1
    ):
        return []
    if found.lane.size <= THIN or volume(found.terms) * found.lane.size * found.element <= env.machine.sizes["L2"]:
        return []
    lanes = env.lanes(found.nest.stores[0].buffer.dtype.bits)
    tilings = [t for t in (Tiling.of(found, vectors, lanes, env) for vectors in (1, 2, 3, 4)) if t is not None]
    if not tilings:
        return []
    plain = min(tilings, key=lambda t: min(t.costs))
    forks: list[Fork] = [lambda: _streamed(sch.copy(), plain, None, DEPTHS)]
    if found.rows and found.is_packable and len(found.terms) == 1:
        made = Tiling.of(found, PACKED, lanes, env) or plain
        forks.append(lambda: _packed(sch.copy(), made))
    unaligned = found.lane.size * found.element % LINE and volume(found.terms) > 4 * found.lane.size
    # with few registers a tile has few of the rows, and each element of the matrix is loaded often
    often = volume(found.rows) >= env.vectors.count == 16
    return forks[::-1] if unaligned or often else forks


def _packed(sch: Schedule, tiling: Tiling) -> Schedule:
    """The rows that are read at a time are copied to aligned panels first."""
    name, panel = tiling.found.nest.name, tiling.found.panel
    pack = sch.cache_read(name, panel.buffer.name, "global", consumer_blocks=[name])
    return _streamed(sch, tiling, pack, PACKED_DEPTHS)


def _streamed(sch: Schedule, tiling: Tiling, pack: BlockRV | None, depths: Sequence[int]) -> Schedule:
    found, env, name = tiling.found, tiling.env, tiling.found.nest.name
    tile = choose(sch, [t % 64 for t in tiling.tiles], tiling.costs)
    *outer_terms, term = found.terms
    fitting = [d for d in depths if d <= term.size] or [term.size]
    depth = choose(sch, fitting, [1 + 0.1 * n for n in range(len(fitting))])
    cores = env.threads if found.operations >= env.parallel_from else 1
    group = max(1, -(-tiling.panels // cores))
    jc, jr, jv, lane = sch.split(found.lane.loop, [None, group, tiling.vectors, tiling.lanes])
    po, pi = sch.split(term.loop, [None, depth])
    rows, inner = _row_loops(sch, tiling, tile)
    around = [*(a.loop for a in outer_terms), po]
    sch.reorder(jc, *around, jr, *rows, pi, *inner, jv, lane)
    if pack is not None:
        tiling.pack(sch, tiling.laid_out(sch, pack), po)
    init = sch.decompose_reduction(name, around[0])
    sch.vectorize(lane)
    sch.vectorize(sch.get_loops(init)[-1])
    for loop in (*inner, jv):
        sch.unroll(loop)
    share_out(sch, [jc], found.operations, env)
    return sch


def _row_loops(sch: Schedule, tiling: Tiling, tile: int) -> tuple[list[LoopRV], list[LoopRV]]:
    """The loops over strips of rows, and over the rows of a strip; a product with a vector has none."""
    if not tiling.found.rows:
        return [], []
    *outer, row = tiling.found.rows
    io, ii = sch.split(row.loop, [None, tile])
    return [*(a.loop for a in outer), io], [ii]
