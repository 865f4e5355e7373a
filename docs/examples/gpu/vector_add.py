"""Vector addition: four elements a thread, by one 128-bit load of each input and one store."""

from __future__ import annotations

import numpy as np

import tir
from tir.script import tir as T


def vector_add(n: int) -> tir.PrimFunc:
    """C = A + B for float32 vectors of ``n`` elements."""

    @T.prim_func
    def main(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32"), C: T.Buffer((n,), "float32")):
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi] + B[vi]

    return main


def scheduled(n: int, threads: int = 256, target: str = "cuda") -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule; ``n`` need not be a multiple of anything."""
    func = vector_add(n)
    sch = tir.Schedule(func, target=target)
    block, thread, lane = sch.split("i", [None, threads, 4])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(lane)
    return func, sch


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(1000, threads=64)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(1 << 26)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + b


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
