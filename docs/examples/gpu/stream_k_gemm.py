"""Half-precision matrix multiplication in which every thread block does the same work, however many tiles there are.

With a block for each tile of C, 133 tiles on a chip of 132 multiprocessors take as long as 264. Here the steps of all
tiles are counted through, one tile after the other, and each of ``blocks`` thread blocks takes an equal run of them
(stream-K). A block that makes all steps of a tile stores it; the tiles at the ends of its run, which it shares with other
blocks, go to a workspace. A second kernel adds those up, always in the same order: no result depends on timing.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from mma_gemm import in_lanes

import tir
from tir.intrin.cuda import get_mma_intrin_group
from tir.script import tir as T


def gemm(m: int, n: int, k: int, tile: int, depth: int, blocks: int) -> tir.PrimFunc:
    """C = A @ B for float16 matrices of shapes (m, k) and (k, n), in float32; ``tile`` divides m and n, ``depth`` k.

    A step is ``depth`` elements of k of one tile; step x is of tile x // steps. Block g makes the steps from
    ``start(g)`` up to ``start(g + 1)``, of at most ``most`` tiles; at most ``sharing`` blocks share a tile.
    """
    steps, across = k // depth, n // tile
    tiles = m // tile * across
    total = tiles * steps
    runs = list(pairwise(g * total // blocks for g in range(blocks + 1)))
    most = max((last - 1) // steps - begin // steps + 1 for begin, last in runs)
    sharing = max(2, *(sum(begin < x + steps and x < last for begin, last in runs) for x in range(0, total, steps)))

    def start(g):
        return g * total // blocks

    def owner(x):
        """The block that makes step x."""
        return ((x + 1) * blocks - 1) // total

    def tile_of(g, s):
        """The tile that is the s-th of those which block g works on."""
        return start(g) // steps + s

    def first(g, s):
        """The first step of block g in that tile; 0 where it begins the tile."""
        return T.max(start(g) - tile_of(g, s) * steps, 0)

    def count(g, s):
        """How many steps the block makes there; 0 or less where it has no s-th tile."""
        return T.min(start(g + 1) - tile_of(g, s) * steps, steps) - first(g, s)

    @T.prim_func
    def main(A: T.Buffer((m, k), "float16"), B: T.Buffer((k, n), "float16"), C: T.Buffer((m, n), "float32")):
        rows = T.alloc_buffer((blocks, most, steps, tile, depth), "float16")
        columns = T.alloc_buffer((blocks, most, steps, depth, tile), "float16")
        sums = T.alloc_buffer((blocks, most, tile, tile), "float32")
        parts = T.alloc_buffer((blocks, 2, tile, tile), "float32")  # of a tile begun elsewhere; of one begun here
        joined = T.alloc_buffer((tiles, tile, tile), "float32")
        for g, s, o, i, p in T.grid(blocks, most, steps, tile, depth):
            with T.block("rows"):
                vg, vs, vo, vi, vp = T.axis.remap("SSSSS", [g, s, o, i, p])
                rows[vg, vs, vo, vi, vp] = A[
                    T.min(tile_of(vg, vs), tiles - 1) // across * tile + vi,
                    T.min(first(vg, vs) + vo, steps - 1) * depth + vp,
                ]
        for g, s, o, p, j in T.grid(blocks, most, steps, depth, tile):
            with T.block("columns"):
                vg, vs, vo, vp, vj = T.axis.remap("SSSSS", [g, s, o, p, j])
                columns[vg, vs, vo, vp, vj] = B[
                    T.min(first(vg, vs) + vo, steps - 1) * depth + vp,
                    T.min(tile_of(vg, vs), tiles - 1) % across * tile + vj,
                ]
        for g, s in T.grid(blocks, most):
            for o, i, j, p in T.grid(count(g, s), tile, tile, depth):
                with T.block("sums"):
                    vg, vs, vi, vj = T.axis.remap("SSSS", [g, s, i, j])
                    vo = T.axis.reduce(steps, o)
                    vp = T.axis.reduce(depth, p)
                    with T.init():
                        sums[vg, vs, vi, vj] = T.float32(0)
                    sums[vg, vs, vi, vj] += T.cast(rows[vg, vs, vo, vi, vp], "float32") * T.cast(
                        columns[vg, vs, vo, vp, vj], "float32"
                    )
            for i, j in T.grid(tile, tile):
                with T.block("whole"):
                    vg, vs, vi, vj = T.axis.remap("SSSS", [g, s, i, j])
                    T.where(count(g, s) == steps)
                    C[tile_of(vg, vs) // across * tile + vi, tile_of(vg, vs) % across * tile + vj] = sums[
                        vg, vs, vi, vj
                    ]
            for i, j in T.grid(tile, tile):
                with T.block("begun_elsewhere"):
                    vg, vs, vi, vj = T.axis.remap("SSSS", [g, s, i, j])
                    T.where(first(g, s) > 0 and count(g, s) > 0)
                    parts[vg, 0, vi, vj] = sums[vg, vs, vi, vj]
            for i, j in T.grid(tile, tile):
                with T.block("begun_here"):
                    vg, vs, vi, vj = T.axis.remap("SSSS", [g, s, i, j])
                    T.where(first(g, s) == 0 and count(g, s) > 0 and count(g, s) < steps)
                    parts[vg, 1, vi, vj] = sums[vg, vs, vi, vj]
        for t, i, j, c in T.grid(tiles, tile, tile, sharing):
            with T.block("joined"):
                vt, vi, vj, vc = T.axis.remap("SSSR", [t, i, j, c])
                T.where(start(owner(t * steps) + T.max(c, 1)) < (t + 1) * steps)
                with T.init():
                    joined[vt, vi, vj] = T.float32(0)
                joined[vt, vi, vj] += parts[owner(vt * steps) + vc, T.if_then_else(vc > 0, 0, 1), vi, vj]
        for t, i, j in T.grid(tiles, tile, tile):
            with T.block("shared"):
                vt, vi, vj = T.axis.remap("SSS", [t, i, j])
                T.where(start(owner(t * steps) + 1) < (t + 1) * steps)
                C[vt // across * tile + vi, vt % across * tile + vj] = joined[vt, vi, vj]

    return main


def scheduled(
    m: int,
    n: int,
    k: int,
    tile: int = 128,
    depth: int = 32,
    stages: int = 4,
    blocks: int = 132,
    target: str = "cuda -arch=sm_80",
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule; ``blocks`` is best the number of multiprocessors, or twice that."""
    func = gemm(m, n, k, tile, depth, blocks)
    sch = tir.Schedule(func, target=target)
    names = get_mma_intrin_group("shared.dyn", "global", "float16", "float32")
    block = sch.get_block("sums")
    g, s, o, i, j, p = sch.get_loops(block)
    ty, yi, ii = sch.split(i, [2, None, 16])
    tz, xi, jj = sch.split(j, [2, None, 16])
    pi, pp = sch.split(p, [None, 16])
    sch.reorder(ty, tz, o, pi, yi, xi, ii, jj, pp)
    for loop, axis in ((g, "blockIdx.x"), (ty, "threadIdx.y"), (tz, "threadIdx.z")):
        sch.bind(loop, axis)
    stores = [sch.get_block(name) for name in ("whole", "begun_elsewhere", "begun_here")]
    sch.set_scope(block, 0, "warp")
    for store in stores:
        sch.reverse_compute_at(store, tz)
    held = []
    for number in range(2):
        shared = sch.get_block(("rows", "columns")[number])
        sch.set_scope(shared, 0, "shared.dyn")
        registers = sch.cache_read(block, number, "warp")
        sch.compute_at(registers, pi)
        sch.compute_at(shared, o)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        _, fy, fz, fx, lanes = sch.split(fused, [None, 2, 2, 32, 8])
        for loop, axis in ((fy, "threadIdx.y"), (fz, "threadIdx.z"), (fx, "threadIdx.x")):
            sch.bind(loop, axis)
        sch.vectorize(lanes)
        sch.storage_swizzle(shared, 0)
        held.append(registers)

    for copy, matrix in ((held[0], "a"), (held[1], "b"), (block, "c")):
        sch.transform_layout(copy, ("write", 0), in_lanes(names[f"layout_{matrix}"]))
    init = sch.decompose_reduction(block, o)
    for copy, name in ((init, "init"), (held[0], "load_a"), (held[1], "load_b"), *((s, "store") for s in stores)):
        if copy is not init:
            rows, columns = sch.get_loops(copy)[-2:]
            r, rows = sch.split(rows, [None, 16])
            c, columns = sch.split(columns, [None, 16])
            sch.reorder(r, c, rows, columns)
        sch.tensorize(sch.get_loops(copy)[-2], names[name])
    sch.tensorize(ii, names["compute"])
    sch.annotate(o, "software_pipeline_stage", [0, 0, stages - 1])
    sch.annotate(o, "software_pipeline_order", [0, 1, 2])
    sch.annotate(o, "software_pipeline_async_stages", [0])

    t, i, j = sch.get_loops("shared")
    _, ty, tx, lanes = sch.split(sch.fuse(i, j), [None, 8, 32, 4])
    for loop, axis in ((t, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        sch.bind(loop, axis)
    sch.vectorize(lanes)
    sch.set_scope("joined", 0, "local")
    sch.compute_at("joined", tx)
    *_, lanes, c = sch.get_loops("joined")
    sch.reorder(c, lanes)
    sch.vectorize(lanes)
    return func, sch


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(64, 64, 128, tile=32, depth=32, stages=3, blocks=3)


def full(**options) -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(4096, 4096, 4096, **options)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
