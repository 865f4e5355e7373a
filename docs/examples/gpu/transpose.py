"""Transpose through shared memory: rows are read and columns written in whole lines, with no bank conflicts.

A tile of 32 x 32 goes into shared memory by rows and comes out by columns. A thread block of 32 x 8 threads moves it in
four steps. With rows 33 elements apart, the 32 elements of a column are in 32 banks; so they are with the places of row i
exchanged by an exclusive or with i (swizzled), which takes no memory more.
"""

from __future__ import annotations

import numpy as np

import tir
from tir.script import tir as T


def transpose(m: int, n: int) -> tir.PrimFunc:
    """B[j, i] = A[i, j] for a float32 matrix A of ``m`` rows and ``n`` columns."""

    @T.prim_func
    def main(A: T.Buffer((m, n), "float32"), B: T.Buffer((n, m), "float32")):
        for j, i in T.grid(n, m):
            with T.block("B"):
                vj, vi = T.axis.remap("SS", [j, i])
                B[vj, vi] = A[vi, vj]

    return main


def scheduled(
    m: int, n: int, padded: bool = True, swizzled: bool = False, target: str = "cuda"
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule, with rows of the tile 33 apart (``padded``), with their elements exchanged (``swizzled``), or, for a look at
    the conflicts, neither."""
    func = transpose(m, n)
    sch = tir.Schedule(func, target=target)
    block = sch.get_block("B")
    j, i = sch.get_loops(block)
    by, step, ty = sch.split(j, [None, 4, 8])
    bx, tx = sch.split(i, [None, 32])
    sch.reorder(by, bx, ty, tx, step)
    sch.bind(by, "blockIdx.y")
    sch.bind(bx, "blockIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    tile = sch.cache_read(block, 0, "shared")
    sch.compute_at(tile, tx)
    rows, columns = sch.get_loops(tile)[-2:]
    row_step, row = sch.split(rows, [4, 8])
    sch.bind(row, "threadIdx.y")
    sch.bind(columns, "threadIdx.x")
    sch.unroll(row_step)
    sch.unroll(step)
    if swizzled:
        sch.transform_layout(tile, ("write", 0), lambda i, j: (i, j // 32, (j % 32) ^ (i % 32)))
    elif padded:
        sch.storage_align(tile, 0, axis=0, factor=32, offset=1)
    return func, sch


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(64, 96)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(8192, 8192)


def reference(a: np.ndarray) -> np.ndarray:
    return a.T


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
