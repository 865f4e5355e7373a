"""Half-precision matrix multiplication by mma.sync and ldmatrix, with a pipeline of several stages of cp.async.

As tensor_core_gemm.py, one level lower: fragments are registers whose lanes we know (scope ``warp``), read from shared
memory by ``ldmatrix``, and ``stages`` tiles of A and B are on their way at once. Rows of shared memory lie 16 bytes
further apart than they are long, and are 128 bytes or more: neither the copies nor ``ldmatrix`` meet a bank twice.
"""

from __future__ import annotations

import numpy as np
from tensor_core_gemm import gemm

import tir
from tir.intrin.cuda import get_mma_intrin_group


def scheduled(
    m: int, n: int, k: int, tile: int = 128, depth: int = 64, stages: int = 3, target: str = "cuda -arch=sm_80"
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule, for sizes that are multiples of ``tile`` (64 or more) and ``depth`` (64 or more);
    ``stages`` tiles of A and B are in shared memory."""
    func = gemm(m, n, k)
    sch = tir.Schedule(func, target=target)
    names = get_mma_intrin_group("shared.dyn", "global", "float16", "float32")
    block = sch.get_block("C")
    i, j, p = sch.get_loops(block)
    by, ty, yi, ii = sch.split(i, [None, 2, tile // 32, 16])
    bx, tz, xi, jj = sch.split(j, [None, 2, tile // 32, 16])
    po, pi, pp = sch.split(p, [None, depth // 16, 16])
    sch.reorder(by, bx, ty, tz, po, pi, yi, xi, ii, jj, pp)
    for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tz, "threadIdx.z")):
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
        _, fy, fz, fx, lanes = sch.split(fused, [None, 2, 2, 32, 8])
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
    return func, sch


def in_lanes(layout):
    """Element (…, i, j) as (…, tile, tile, lane, element of the lane)."""
    return lambda *at: (*at[:-2], at[-2] // 16, at[-1] // 16, *layout(at[-2] % 16, at[-1] % 16))


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(64, 64, 256, tile=64, stages=3)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(4096, 4096, 4096)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b
