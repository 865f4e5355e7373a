"""Half-precision matrix multiplication by mma.sync and ldmatrix, with a pipeline of several stages of cp.async.

As tensor_core_gemm.py, one level lower: fragments are registers whose lanes we know (scope ``warp``), read from shared
memory by ``ldmatrix``, and ``stages`` tiles of A and B are on their way at once. The 16-byte pieces of shared rows are
swizzled: neither the copies nor ``ldmatrix`` meet a bank twice, whatever the depth. Thread blocks that run at one time
make a square of tiles, not a row, so that more of what they read is in the cache.
"""

from __future__ import annotations

import numpy as np
from tensor_core_gemm import gemm

import tir
from tir.intrin.cuda import get_mma_intrin_group

# tiles worth trying on a chip, as options of ``scheduled``: the best depends on its shared memory and registers
VARIANTS = (
    {"tile": (128, 128), "warps": (2, 2), "depth": 32, "stages": 4},
    {"tile": (128, 128), "warps": (2, 2), "depth": 64, "stages": 3},
    {"tile": (128, 256), "warps": (2, 4), "depth": 32, "stages": 4},
    {"tile": (128, 256), "warps": (2, 4), "depth": 64, "stages": 3},
    {"tile": (256, 128), "warps": (4, 2), "depth": 64, "stages": 3},
)


def scheduled(
    m: int,
    n: int,
    k: int,
    tile: tuple[int, int] = (128, 128),
    warps: tuple[int, int] = (2, 2),
    depth: int = 32,
    stages: int = 4,
    group: int = 8,
    target: str = "cuda -arch=sm_80",
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule, for sizes that are multiples of ``tile`` and ``depth`` (16 or more).

    A tile is shared by ``warps`` in both directions, each with 16 x 16 sums or a multiple; ``stages`` tiles of A and B
    are in shared memory; ``group`` columns of tiles are made before the next ones.
    """
    func = gemm(m, n, k)
    sch = tir.Schedule(func, target=target)
    schedule_product(sch, sch.get_block("C"), tile, warps, depth, stages, min(group, n // tile[1]))
    return func, sch


def schedule_product(
    sch: tir.Schedule, block, tile: tuple[int, int], warps: tuple[int, int], depth: int, stages: int, group: int
) -> None:
    """Schedule the product in ``block``, whose innermost loops are its rows, columns and sum; see :func:`scheduled`."""
    names = get_mma_intrin_group("shared.dyn", "global", "float16", "float32")
    *_, i, j, p = sch.get_loops(block)
    by, ty, yi, ii = sch.split(i, [None, warps[0], tile[0] // warps[0] // 16, 16])
    bx, tz, xi, jj = sch.split(j, [None, warps[1], tile[1] // warps[1] // 16, 16])
    bx, beside = sch.split(bx, [None, group])
    po, pi, pp = sch.split(p, [None, depth // 16, 16])
    sch.reorder(bx, by, beside, ty, tz, po, pi, yi, xi, ii, jj, pp)
    for loop, axis in ((sch.fuse(bx, by, beside), "blockIdx.x"), (ty, "threadIdx.y"), (tz, "threadIdx.z")):
        sch.bind(loop, axis)

    sums = sch.cache_write(block, 0, "warp")
    sch.reverse_compute_at(sums, tz)
    held = []
    for number in range(2):
        shared = sch.cache_read(block, number, "shared.dyn")
        registers = sch.cache_read(block, number, "warp")
        sch.compute_at(registers, pi)
        sch.compute_at(shared, po)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        _, fy, fz, fx, lanes = sch.split(fused, [None, *warps, 32, 8])
        for loop, axis in ((fy, "threadIdx.y"), (fz, "threadIdx.z"), (fx, "threadIdx.x")):
            sch.bind(loop, axis)
        sch.vectorize(lanes)
        sch.storage_swizzle(shared, 0)
        held.append(registers)

    for copy, side, layout in ((held[0], "write", "a"), (held[1], "write", "b"), (sums, "read", "c")):
        sch.transform_layout(copy, (side, 0), in_lanes(names[f"layout_{layout}"]))
    init = sch.decompose_reduction(block, po)
    for copy, name in ((init, "init"), (held[0], "load_a"), (held[1], "load_b"), (sums, "store")):
        if copy is not init:
            rows, columns = sch.get_loops(copy)[-2:]
            r, rows = sch.split(rows, [None, 16])
            c, columns = sch.split(columns, [None, 16])
            sch.reorder(r, c, rows, columns)
        sch.tensorize(sch.get_loops(copy)[-2], names[name])
    sch.tensorize(ii, names["compute"])
    sch.annotate(po, "software_pipeline_stage", [0, 0, stages - 1])
    sch.annotate(po, "software_pipeline_order", [0, 1, 2])
    sch.annotate(po, "software_pipeline_async_stages", [0])


def in_lanes(layout):
    """Element (…, i, j) as (…, tile, tile, lane, element of the lane)."""
    return lambda *at: (*at[:-2], at[-2] // 16, at[-1] // 16, *layout(at[-2] % 16, at[-1] % 16))


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(64, 64, 128, tile=(64, 32), stages=3)


def full(**options) -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(4096, 4096, 4096, **options)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
