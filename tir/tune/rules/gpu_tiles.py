"""A GPU: a contraction by tiles, which thread blocks stage in shared memory and threads sum in registers.

A thread block makes a tile of the result, in steps of ``depth`` terms. Its threads copy what the step uses of both operands
to shared memory, by asynchronous copies where the chip has them, so that the next step's arrives while this one's is used.
A thread sums a patch of rows and vectors of columns in registers over all steps, and stores it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from ...schedule import LoopRV, Schedule
from ...target import GPUS
from ..contracted import Contraction
from ..nest import Nest, extent_of, volume
from ..space import Env, Fork, choose, rule
from ..staged_operands import MULTIPROCESSORS, VECTOR, Copy, Staged, in_vectors, pipeline, share
from ..turning import inside

PATCHES = (8, 4, 2, 1)  # rows of the result that a thread sums
THREADS = (32, 16, 8, 4, 2, 1)  # of a block, along its rows
DEPTHS = (16, 8, 32, 4)  # terms of a step
MOST_THREADS, LEAST_THREADS = 512, 64
LEAST = 4  # columns and terms of a product
SUMS = 96  # most registers of a thread that hold sums
BANKS = 32  # of shared memory, of 4 bytes


@rule(targets=GPUS, order=40)
def block_tiles(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Tile a contraction for thread blocks and threads; one fork for each number of columns of a thread."""
    nest = Nest.of(sch, block)
    found = nest and Contraction.of(nest)
    if not nest or not found or not volume(nest.axes):  # a product without elements needs no tiles
        return []
    if found.lane.size < LEAST or volume(found.rows) < 2 or volume(found.terms) < LEAST:
        return []
    made = [_Tiles.of(found, vectors, env) for vectors in (1, 2)]
    ordered = sorted((t for t in made if t is not None), key=lambda t: min(t.costs))
    return [lambda t=t: t.apply(sch.copy()) for t in ordered]


@dataclass(frozen=True)
class _Tiles:
    """How a contraction is tiled: a thread has ``vectors`` vectors of ``lanes`` columns; ``shapes`` (threads along rows,
    threads along columns, rows of a thread, as digits of base 64) are those to choose from."""

    found: Contraction
    env: Env
    vectors: int
    lanes: int
    shapes: tuple[int, ...]
    costs: tuple[float, ...]

    @staticmethod
    def of(found: Contraction, vectors: int, env: Env) -> _Tiles | None:
        """The tilings with so many vectors; None if there are none."""
        lanes = max(1, min(VECTOR // found.nest.stores[0].buffer.dtype.bytes, 4))
        shapes = [
            (ty, tx, patch)
            for ty in THREADS
            for tx in THREADS
            for patch in PATCHES
            if LEAST_THREADS <= ty * tx <= MOST_THREADS and patch * vectors * lanes <= SUMS and ty * patch >= 4
        ]
        costs = [_cost(found, ty * patch, tx * vectors * lanes, ty * tx) for ty, tx, patch in shapes]
        if not shapes:
            return None
        numbers = tuple((ty * 64 + tx) * 64 + patch for ty, tx, patch in shapes)
        return _Tiles(found, env, vectors, lanes, numbers, tuple(costs))

    def apply(self, sch: Schedule) -> Schedule:
        """The schedule, with its choices at their best values."""
        name = self.found.nest.name
        shape = choose(sch, self.shapes, self.costs)
        ty, tx, patch = shape // 4096, shape // 64 % 64, shape % 64
        depths = [d for d in DEPTHS if d <= max(4, volume(self.found.terms))]
        depth = choose(sch, depths, [1 + 0.1 * n for n in range(len(depths))])
        staged = Staged.of(sch, self.found, (ty * patch, self.vectors * tx * self.lanes, depth), "shared", "local")
        rows, lanes, terms = (a.loop for a in staged.axes[-3:])
        block_row, thread_row, own_row = sch.split(rows, [None, ty, patch])
        block_lane, vector, thread_lane, lane = sch.split(lanes, [None, self.vectors, tx, self.lanes])
        step, inner = sch.split(terms, [None, depth])
        batch = [a.loop for a in staged.axes[:-3]]
        sch.reorder(*batch, block_row, block_lane, vector, thread_row, thread_lane, step, inner, own_row, lane)
        for loop, axis in zip((block_lane, block_row, *batch), "xyz"):
            sch.bind(loop, f"blockIdx.{axis}")
        sch.bind(vector, "vthread.x")
        sch.bind(thread_row, "threadIdx.y")
        sch.bind(thread_lane, "threadIdx.x")
        sch.reverse_compute_at(staged.store, thread_lane, preserve_unit_loops=True)
        in_vectors(sch, staged.store)
        reads = [r.buffer for r in sch.get(name).reads]
        numbers = sorted(reads.index(sch.get(copy.block).writes[0].buffer) for copy in staged.copies)
        near = [sch.cache_read(name, n, "local") for n in numbers]
        for copy in near:
            sch.compute_at(copy, inner, preserve_unit_loops=True)
            in_vectors(sch, copy)
        for copy in staged.copies:
            self._share(sch, copy, step, {"threadIdx.y": ty, "threadIdx.x": tx})
        sch.decompose_reduction(name, step)
        for loop in (inner, own_row, lane):
            sch.unroll(loop)
        pipeline(sch, step, len(staged.copies), self.env)
        return sch

    def _share(self, sch: Schedule, copy: Copy, step: LoopRV, threads: Mapping[str, int]) -> None:
        """Let all threads copy what a step uses. Where threads use neighbours that are none in global memory, eight
        neighbours of four rows are copied at once, into rows of which eight begin four banks apart: no two threads of a
        warp meet in a bank."""
        if copy.has_terms_last:
            copy.turn(sch)
            last = len(sch.get(copy.block).writes[0].buffer.shape) - 1
            sch.storage_align(copy.block, 0, axis=last - 1, factor=BANKS, offset=VECTOR // 4)
        sch.compute_at(copy.block, step, preserve_unit_loops=True)
        own = inside(sch, copy.block, step)
        if copy.has_terms_last:
            outer, inner = sch.split(own[-1], [None, min(BANKS // 4, extent_of(sch, own[-1]))])
            sch.reorder(outer, own[-2], inner)
            own = [*own[:-2], outer, own[-2], inner]
        share(sch, own, threads, 1 if copy.has_terms_last else copy.width)


def _cost(found: Contraction, high: int, wide: int, threads: int) -> float:
    """The cost of tiles of ``high`` rows and ``wide`` columns: multiply-adds with padding, by what is loaded for each, and by
    how many multiprocessors and lanes have work."""
    rows, columns = volume(found.rows), volume([found.lane])
    tall = min(high, rows)
    tiles = ceil(rows / high) * ceil(columns / wide) * volume(found.batch) * volume(found.columns)
    padded = ceil(rows / high) * high * ceil(columns / wide) * wide
    waves = ceil(tiles / MULTIPROCESSORS) * MULTIPROCESSORS / tiles
    loads = 24 * (1 / tall + 1 / wide)  # of elements from the L2 cache, for each multiply-add
    shared = threads * 8 / (high * wide)  # accesses to shared memory, for each multiply-add
    return padded * waves * (1 + loads + shared)
