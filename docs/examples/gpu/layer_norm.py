"""Layer normalisation of each row: one thread block a row; mean and variance are reductions across its threads.

The schedule is that of softmax: a row is read once, into shared memory.
"""

from __future__ import annotations

import numpy as np
from softmax import schedule_rows

import tir
from tir.script import tir as T

EPSILON = 1e-5


def layer_norm(m: int, n: int) -> tir.PrimFunc:
    """B[i, j] = (A[i, j] - mean of row i) / sqrt(variance of row i + epsilon) * gain[j] + bias[j], float32."""

    @T.prim_func
    def main(
        A: T.Buffer((m, n), "float32"),
        gain: T.Buffer((n,), "float32"),
        bias: T.Buffer((n,), "float32"),
        B: T.Buffer((m, n), "float32"),
    ):
        mean = T.alloc_buffer((m,), "float32", scope="shared")
        spread = T.alloc_buffer((m,), "float32", scope="shared")
        for i, k in T.grid(m, n):
            with T.block("mean"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    mean[vi] = T.float32(0)
                mean[vi] += A[vi, vk] * T.float32(1 / n)
        for i, k in T.grid(m, n):
            with T.block("spread"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    spread[vi] = T.float32(0)
                spread[vi] += (A[vi, vk] - mean[vi]) * (A[vi, vk] - mean[vi]) * T.float32(1 / n)
        for i, j in T.grid(m, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = (A[vi, vj] - mean[vi]) * T.rsqrt(spread[vi] + T.float32(EPSILON)) * gain[vj] + bias[vj]

    return main


def scheduled(m: int, n: int, threads: int = 256, target: str = "cuda") -> tuple[tir.PrimFunc, tir.Schedule]:
    func = layer_norm(m, n)
    sch = tir.Schedule(func, target=target)
    schedule_rows(sch, ("mean", "spread"), threads, 4 if n % 4 == 0 else 1)
    return func, sch


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(3, 90, threads=32)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(16384, 4096)


def reference(a: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = a - a.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON) * gain + bias


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
