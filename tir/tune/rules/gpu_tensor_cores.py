"""A GPU: products of half precision, of bytes, and of 8-bit floats by the tensor cores.

Tiles of both operands go to shared memory, some of them ahead of use; a warp loads fragments of them by ``ldmatrix``
and multiplies these by ``mma.sync``. The sums stay in the registers of the warp until they are stored, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from ...intrin.cuda import get_mma_intrin_group
from ...schedule import BlockRV, LoopRV, Schedule
from ...target import GPUS
from ..contracted import Contraction
from ..nest import Nest, extent_of, volume
from ..space import Env, Fork, choose, rule
from ..staged_operands import ASYNC, MULTIPROCESSORS, WARP, Staged, architecture, pipeline, share
from ..turning import inside

FLOAT8 = 89  # the first architecture that multiplies 8-bit floats
# rows and columns of the tile of a thread block, and warps along them
TILES = (
    (128, 256, 2, 4), (256, 128, 4, 2), (128, 128, 2, 2), (128, 64, 2, 2), (64, 128, 2, 2), (64, 64, 2, 2), (32, 64, 1, 2),
    (32, 32, 1, 1), (16, 64, 1, 2), (16, 16, 1, 1),
)  # fmt: skip
DEPTH = 64  # bytes of the terms of a step, or twice as many
STAGES = (3, 4, 2)  # tiles that are under way at a time
GROUP = 8  # columns of tiles that are made before the next ones, so that what they read stays in the L2 cache
SCOPE = "shared.dyn"


@rule(targets=GPUS, order=38)
def tensor_cores(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Multiply matrices by the tensor cores, where they multiply these types."""
    nest = Nest.of(sch, block)
    found = nest and Contraction.of(nest)
    if not found or not _multiplies(found, env):
        return []
    return [lambda: _Tensors(found, env).apply(sch.copy())]


def _multiplies(found: Contraction, env: Env) -> bool:
    """Whether tensor cores of the target multiply the operands of a contraction, and it fills some of a tile."""
    types = {str(o.buffer.dtype) for o in (found.panel, found.other)}
    if len(types) > 1 or min(volume(found.rows), found.lane.size, volume(found.terms)) < 8:
        return False
    needed = FLOAT8 if "float8" in str(found.panel.buffer.dtype) else ASYNC
    return architecture(env.target) >= needed and _intrinsics(found, "global", (False, True)) is not None


def _intrinsics(found: Contraction, store: str, across: tuple[bool, bool]) -> dict[str, Any] | None:
    """The intrinsics for operands that lie ``across`` (their columns are rows); None if there are none. float32 is left
    alone: tensor cores would round it."""
    operand, result = str(found.panel.buffer.dtype), str(found.nest.stores[0].buffer.dtype)
    if operand == "float32":
        return None
    try:
        return get_mma_intrin_group(SCOPE, store, operand, result, *across)
    except ValueError:
        return None


@dataclass(frozen=True)
class _Tensors:
    found: Contraction
    env: Env

    def apply(self, sch: Schedule) -> Schedule:
        """The schedule, with its choices at their best values."""
        name, found = self.found.nest.name, self.found
        tile = choose(sch, [_number(t) for t in TILES], [_cost(found, *t) for t in TILES])
        high, wide, down, over = tile // 2**24, tile // 2**12 % 2**12, tile // 2**6 % 2**6, tile % 2**6
        least = DEPTH // found.panel.buffer.dtype.bytes
        depth = choose(sch, [least, 2 * least], [1.0, 1.05])
        stages = choose(sch, STAGES, [1 + 0.05 * n for n in range(len(STAGES))])

        staged = Staged.of(sch, found, (high, wide, depth), SCOPE, "warp")
        right, left = staged.copies
        across = (not left.has_terms_last, right.has_terms_last)
        if _intrinsics(found, SCOPE, across) is None:
            for copy in [c for c in (left, right) if not c.has_terms_last]:
                copy.turn(sch)
            across = (False, True)
        is_plain = _is_plain_copy(sch, staged.store)
        tiles = staged.store
        if not is_plain:
            tiles = sch.cache_write(name, 0, "warp")
            sch.set_scope(tiles, 0, SCOPE)
        names = _intrinsics(found, "global" if is_plain else SCOPE, across)
        assert names is not None
        micro = names["micro_kernel"][2]

        *batch, rows, lanes, terms = (a.loop for a in staged.axes)
        by, ty, yi, ii = sch.split(rows, [None, down, high // down // 16, 16])
        bx, tz, xi, jj = sch.split(lanes, [None, over, wide // over // 16, 16])
        bx, beside = sch.split(bx, [None, next(g for g in (GROUP, 4, 2, 1) if extent_of(sch, bx) % g == 0)])
        po, pi, pp = sch.split(terms, [None, depth // micro, micro])
        sch.reorder(*batch, bx, by, beside, ty, tz, po, pi, yi, xi, ii, jj, pp)
        sch.bind(sch.fuse(bx, by, beside), "blockIdx.x")
        for loop in batch:
            sch.bind(loop, "blockIdx.y")
        sch.bind(ty, "threadIdx.y")
        sch.bind(tz, "threadIdx.z")
        threads = {"threadIdx.y": down, "threadIdx.z": over, "threadIdx.x": WARP}

        sch.reverse_compute_at(tiles, tz, preserve_unit_loops=True)
        if not is_plain:
            sch.reverse_compute_at(staged.store, tz, preserve_unit_loops=True)
            share(sch, inside(sch, staged.store, tz), {"threadIdx.x": WARP}, 1)
        regions = [r.buffer for r in sch.get(name).reads]
        fragments: list[BlockRV] = []
        for copy in (left, right):
            made = sch.cache_read(name, regions.index(sch.get(copy.block).writes[0].buffer), "warp")
            sch.compute_at(made, pi, preserve_unit_loops=True)
            fragments.append(made)
            sch.compute_at(copy.block, po, preserve_unit_loops=True)
            share(sch, inside(sch, copy.block, po), threads, copy.width)
            sch.storage_swizzle(copy.block, 0)
        shapes = [(micro, 16) if across[0] else (16, micro), (16, micro) if across[1] else (micro, 16), (16, 16)]
        moves = list(zip((*fragments, tiles), ("load_a", "load_b", "store"), "abc", shapes))
        for block, kind, operand, shape in moves:
            side = "read" if kind == "store" else "write"
            sch.transform_layout(block, (side, 0), _in_lanes(names[f"layout_{operand}"], shape))
        init = sch.decompose_reduction(name, po)
        sch.tensorize(sch.get_loops(init)[-2], names["init"])
        for block, kind, _, shape in moves:
            sch.tensorize(_tile(sch, block, shape), names[kind])
        sch.tensorize(ii, names["compute"])
        pipeline(sch, po, len(staged.copies), self.env, stages)
        return sch


def _number(tile: Sequence[int]) -> int:
    high, wide, down, over = tile
    return ((high * 2**12 + wide) * 2**6 + down) * 2**6 + over


def _cost(found: Contraction, high: int, wide: int, down: int, over: int) -> float:
    """The cost of tiles: multiply-adds with padding, by what is loaded for each, and by the multiprocessors that have work."""
    rows, columns = volume(found.rows), volume([*found.columns, found.lane])
    tiles = ceil(rows / high) * ceil(columns / wide) * volume(found.batch)
    padded = ceil(rows / high) * high * ceil(columns / wide) * wide
    waves = ceil(tiles / MULTIPROCESSORS) * MULTIPROCESSORS / tiles
    own = 1 / (high / down) + 1 / (wide / over)  # fragments that a warp loads for each multiply-add
    return padded * waves * (1 + 32 * (1 / high + 1 / wide) + 16 * own)


def _is_plain_copy(sch: Schedule, store: BlockRV) -> bool:
    """Whether a block only copies whole tiles, element for element, in the type that they have."""
    nest = Nest.of(sch, store.name)
    if nest is None or len(nest.stores) != 1 or len(nest.loads) != 1:
        return False
    whole = all(a.extent is not None and a.extent % 16 == 0 for a in nest.axes[-2:])
    source, result = nest.loads[0], nest.stores[0]
    same = source.places == result.places and len(source.places) == len(source.indices) == len(result.indices)
    return whole and same and source.buffer.dtype == result.buffer.dtype and nest.work <= 2


def _in_lanes(layout: Callable[[Any, Any], tuple[Any, Any]], shape: tuple[int, int]) -> Callable[..., tuple[Any, ...]]:
    """Element (…, i, j) as (…, tile, tile, lane, element of the lane)."""
    rows, columns = shape
    return lambda *at: (*at[:-2], at[-2] // rows, at[-1] // columns, *layout(at[-2] % rows, at[-1] % columns))


def _tile(sch: Schedule, block: BlockRV, shape: tuple[int, int]) -> LoopRV:
    """The outer one of the two loops over a tile of ``shape``."""
    row, column = sch.get_loops(block)[-2:]
    row_tile, row = sch.split(row, [None, shape[0]])
    column_tile, column = sch.split(column, [None, shape[1]])
    sch.reorder(row_tile, column_tile, row, column)
    return row
