"""Softmax of each row: one thread block a row; its threads find the maximum and the sum together.

The row is read once, by vectors, into shared memory; maximum, sum and result are computed from there.
"""

from __future__ import annotations

import numpy as np

import tir
from tir.script import tir as T


def softmax(m: int, n: int) -> tir.PrimFunc:
    """B[i, :] = softmax of A[i, :], float32 of ``m`` rows and ``n`` columns; the maximum is taken off first."""

    @T.prim_func
    def main(A: T.Buffer((m, n), "float32"), B: T.Buffer((m, n), "float32")):
        top = T.alloc_buffer((m,), "float32", scope="shared")
        total = T.alloc_buffer((m,), "float32", scope="shared")
        for i, k in T.grid(m, n):
            with T.block("top"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    top[vi] = T.min_value("float32")
                top[vi] = T.max(top[vi], A[vi, vk])
        for i, k in T.grid(m, n):
            with T.block("total"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] += T.exp(A[vi, vk] - top[vi])
        for i, j in T.grid(m, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(A[vi, vj] - top[vi]) / total[vi]

    return main


def scheduled(m: int, n: int, threads: int = 256, target: str = "cuda") -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule: the two reductions move into the loop over rows, and cross threads."""
    func = softmax(m, n)
    sch = tir.Schedule(func, target=target)
    schedule_rows(sch, ("top", "total"), threads, 4 if n % 4 == 0 else 1)
    return func, sch


def schedule_rows(sch: tir.Schedule, reductions: tuple[str, ...], threads: int, lanes: int) -> None:
    """Schedule block B, which makes rows of its output of whole rows of its first input, and the ``reductions`` of rows
    that come before it: a row by the threads of one block, ``lanes`` elements of memory at a time."""
    i, _ = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    row = sch.cache_read(reductions[0], 0, "shared", consumer_blocks=[*reductions, "B"])
    for block in (*reversed(reductions), row):
        sch.compute_at(block, i)
    for block in reductions:
        steps, tx = sch.split(sch.get_loops(block)[-1], [None, threads])
        sch.bind(tx, "threadIdx.x")
        sch.unroll(steps)
    for block in (row, sch.get_block("B")):
        steps, tx, lane = sch.split(sch.get_loops(block)[-1], [None, threads, lanes])
        sch.bind(tx, "threadIdx.x")
        sch.unroll(steps)
        sch.vectorize(lane)


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(3, 100, threads=64)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(16384, 4096)


def reference(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
