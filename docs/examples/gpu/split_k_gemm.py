"""Half-precision matrix multiplication of few rows and columns and a long sum, which is split among thread blocks.

A product of 512 x 512 has 16 tiles of 128 x 128, too few for the chip. ``rfactor`` makes ``splits`` partial products of a
part of the sum each, ``splits`` times as many tiles, scheduled as in mma_gemm.py; a second kernel adds them up, always in
the same order.
"""

from __future__ import annotations

import numpy as np
from mma_gemm import schedule_product
from tensor_core_gemm import gemm

import tir


def scheduled(
    m: int,
    n: int,
    k: int,
    splits: int,
    tile: tuple[int, int] = (128, 128),
    warps: tuple[int, int] = (2, 2),
    depth: int = 32,
    stages: int = 4,
    target: str = "cuda -arch=sm_80",
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule; ``tile`` divides m and n, ``splits * depth`` divides k."""
    func = gemm(m, n, k)
    sch = tir.Schedule(func, target=target)
    i, j, p = sch.get_loops("C")
    part, p = sch.split(p, [splits, None])
    partial = sch.rfactor(part, 0)
    i, j, part, p = sch.get_loops(partial)
    sch.reorder(part, i, j, p)
    sch.bind(part, "blockIdx.y")
    schedule_product(sch, partial, tile, warps, depth, stages, 1)

    i, j, part = sch.get_loops("C")
    tiles, tx, lanes = sch.split(sch.fuse(i, j), [None, 256, 4])
    sch.bind(tiles, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    sums = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(sums, tx)
    sch.vectorize(sch.get_loops(sums)[-1])
    sch.reorder(part, lanes)
    sch.vectorize(sch.get_loops(sch.decompose_reduction("C", part))[-1])
    sch.vectorize(lanes)
    return func, sch


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(32, 32, 192, splits=3, tile=(32, 32), stages=2)


def full(**options) -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(512, 512, 16384, splits=16, **options)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
