"""Sums: of each row by the threads of a block, and of a whole vector by many blocks in two kernels."""

from __future__ import annotations

import numpy as np

import tir
from tir.script import tir as T


def row_sum(m: int, n: int) -> tir.PrimFunc:
    """B[i] = the sum of row i of a float32 matrix of ``m`` rows and ``n`` columns."""

    @T.prim_func
    def main(A: T.Buffer((m, n), "float32"), B: T.Buffer((m,), "float32")):
        for i, k in T.grid(m, n):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vi, vk]

    return main


def rows(
    m: int, n: int, threads: int = 256, rows_a_block: int = 1, target: str = "cuda"
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """Each row by ``threads`` threads, which add their parts and then combine them: by shuffles within a warp, through
    shared memory between warps. ``rows_a_block`` rows are side by side on ``threadIdx.y``. A thread has eight loads
    under way at a time: what keeps memory busy is the bytes in flight."""
    func = row_sum(m, n)
    sch = tir.Schedule(func, target=target)
    i, k = sch.get_loops("B")
    bx, ty = sch.split(i, [None, rows_a_block])
    _, loads, tx = sch.split(k, [None, min(8, -(-n // threads)), threads])
    sch.bind(bx, "blockIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    sch.unroll(loads)
    return func, sch


def total_sum(n: int) -> tir.PrimFunc:
    """B[0] = the sum of a float32 vector of ``n`` elements."""

    @T.prim_func
    def main(A: T.Buffer((n,), "float32"), B: T.Buffer((1,), "float32")):
        for i, k in T.grid(1, n):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vk]

    return main


def total(n: int, blocks: int = 528, threads: int = 256, target: str = "cuda") -> tuple[tir.PrimFunc, tir.Schedule]:
    """Each of ``blocks`` thread blocks sums a part (``rfactor``), and a second kernel sums those."""
    func = total_sum(n)
    sch = tir.Schedule(func, target=target)
    _, k = sch.get_loops("B")
    part, _ = sch.split(k, [blocks, None])
    partial = sch.rfactor(part, factor_axis=0)
    for block, outer in ((partial, "blockIdx.x"), (sch.get_block("B"), "")):
        loops = sch.get_loops(block)
        reduce = loops[-1]
        if outer:
            sch.bind(loops[1], outer)
        else:
            sch.bind(loops[0], "blockIdx.x")
        _, tx = sch.split(reduce, [None, threads])
        sch.bind(tx, "threadIdx.x")
    return func, sch


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return rows(6, 200, threads=32, rows_a_block=2)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return rows(16384, 8192)


def reference(a: np.ndarray) -> np.ndarray:
    return a.sum(axis=-1, keepdims=a.ndim == 1)


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
