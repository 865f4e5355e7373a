"""Single-precision matrix multiplication: tiles in shared memory loaded by all threads, sums in registers.

A thread block makes a tile of C of ``tile`` x ``tile``, in steps of ``depth`` over k. All its threads load the tiles of A
(stored by columns, so that a thread reads its rows by one vector) and B into shared memory, each in two halves: while one
is used, asynchronous copies fill the other. A thread sums ``2 * patch`` x ``2 * patch`` elements in registers, in four patches that lie
half a tile apart (virtual threads), so that the threads of a warp read neighbouring addresses; a warp is 4 x 8 threads of
the tile, near a square, which reads least of A and B together.
"""

from __future__ import annotations

import numpy as np

import tir
from tir.script import tir as T


def gemm(m: int, n: int, k: int) -> tir.PrimFunc:
    """C = A @ B for float32 matrices of shapes (m, k) and (k, n)."""

    @T.prim_func
    def main(A: T.Buffer((m, k), "float32"), B: T.Buffer((k, n), "float32"), C: T.Buffer((m, n), "float32")):
        for i, j, p in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vp = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vp] * B[vp, vj]

    return main


def scheduled(
    m: int, n: int, k: int, tile: int = 128, depth: int = 16, patch: int = 4, target: str = "cuda"
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule, for sizes that are multiples of the tile."""
    func = gemm(m, n, k)
    sch = tir.Schedule(func, target=target)
    side = tile // (2 * patch)  # threads along a side of the tile
    high, wide = min(4, side), min(8, side)  # of which a warp has so many
    block = sch.get_block("C")
    i, j, p = sch.get_loops(block)
    by, vy, wy, ly, yi = sch.split(i, [None, 2, side // high, high, patch])
    bx, vx, wx, lx, xi = sch.split(j, [None, 2, side // wide, wide, patch])
    po, pi = sch.split(p, [None, depth])
    sch.reorder(by, bx, vy, vx, wy, wx, ly, lx, po, pi, yi, xi)
    ty, tx = sch.fuse(wy, wx), sch.fuse(ly, lx)
    for loop, axis in (
        (by, "blockIdx.y"),
        (bx, "blockIdx.x"),
        (vy, "vthread.y"),
        (vx, "vthread.x"),
        (ty, "threadIdx.y"),
        (tx, "threadIdx.x"),
    ):
        sch.bind(loop, axis)

    sums = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(sums, tx)
    sch.vectorize(sch.get_loops(sums)[-1])

    for number, matrix in enumerate("AB"):
        shared = sch.cache_read(block, number, "shared")
        sch.compute_at(shared, po)
        if matrix == "A":
            sch.transform_layout(shared, ("write", 0), lambda row, column: (column, row))
            # 8 columns of 4 rows are written at once: 4 banks apart, they meet nowhere
            sch.storage_align(shared, 0, axis=0, factor=32, offset=4)
            row, column = sch.get_loops(shared)[-2:]
            outer, inner = sch.split(column, [None, min(8, depth)])
            sch.reorder(outer, row, inner)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        more, fy, fx, lanes = sch.split(
            fused, [None, side * side // (high * wide), high * wide, 1 if matrix == "A" else 4]
        )
        sch.unroll(more)
        sch.bind(fy, "threadIdx.y")
        sch.bind(fx, "threadIdx.x")
        sch.vectorize(lanes)
    for number in (1, 2):
        near = sch.cache_read(block, number - 1, "local")
        sch.compute_at(near, pi)
        sch.vectorize(sch.get_loops(near)[-1])
    sch.decompose_reduction(block, po)
    for loop in (pi, yi, xi):
        sch.unroll(loop)
    sch.annotate(po, "software_pipeline_stage", [0, 0, 1])
    sch.annotate(po, "software_pipeline_order", [0, 1, 2])
    sch.annotate(po, "software_pipeline_async_stages", [0])
    return func, sch


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(32, 32, 16, tile=16, depth=4, patch=2)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(4096, 4096, 4096)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
