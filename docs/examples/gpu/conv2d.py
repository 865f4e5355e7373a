"""Convolution on tensor cores: a matrix multiplication whose left matrix is gathered from the image as it is copied.

Row m of that matrix is the window of one output pixel, of kernel x kernel x channels elements. It exists in the program
as a buffer; inlined into the copy to shared memory, it never exists in memory.
"""

from __future__ import annotations

import numpy as np
from tensor_core_gemm import schedule_tiles

import tir
from tir.script import tir as T


def conv2d(batch: int, side: int, channels: int, out: int, kernel: int) -> tir.PrimFunc:
    """Image (batch, side, side, channels) and weights (kernel * kernel * channels, out), float16, to float32 pixels
    (batch * rows * columns, out), without padding; rows = columns = side - kernel + 1."""
    size = side - kernel + 1
    m, k = batch * size * size, kernel * kernel * channels

    @T.prim_func
    def main(
        image: T.Buffer((batch, side, side, channels), "float16"),
        weights: T.Buffer((k, out), "float16"),
        C: T.Buffer((m, out), "float32"),
    ):
        windows = T.alloc_buffer((m, k), "float16")
        for i, p in T.grid(m, k):
            with T.block("windows"):
                vi, vp = T.axis.remap("SS", [i, p])
                windows[vi, vp] = image[
                    vi // (size * size),
                    vi // size % size + vp // (kernel * channels),
                    vi % size + vp // channels % kernel,
                    vp % channels,
                ]
        for i, j, p in T.grid(m, out, k):
            with T.block("C"):
                vi, vj, vp = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += T.cast(windows[vi, vp], "float32") * T.cast(weights[vp, vj], "float32")

    return main


def scheduled(
    batch: int, side: int, channels: int, out: int, kernel: int, tile: int = 128, depth: int = 64, target: str = "cuda"
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule, for numbers of pixels and of ``out`` that are multiples of ``tile``, and of elements
    of a window that are multiples of ``depth``."""
    func = conv2d(batch, side, channels, out, kernel)
    sch = tir.Schedule(func, target=target)
    schedule_tiles(sch, tile, depth, pipelined=True)
    return func, sch


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(1, 9, 64, 64, 2, tile=64)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(16, 66, 128, 256, 3)


def reference(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    kernel = round((weights.shape[0] / image.shape[3]) ** 0.5)
    windows = np.lib.stride_tricks.sliding_window_view(image, (kernel, kernel), axis=(1, 2))
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, weights.shape[0]) @ weights


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
