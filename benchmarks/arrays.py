"""The arrays of each kind of work, the same for us and for peers. Needs only NumPy, as peers' Pythons run it too."""

from __future__ import annotations

import numpy as np


def aligned(shape, dtype="float32", begin=0):
    """An array of ``shape`` that starts ``begin`` bytes into a cache line, filled so that its pages are mapped."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + begin
    made = memory[start : start + size].view(dtype).reshape(shape)
    made.fill(0)
    return made


def placed(array, begin=0):
    """A copy of ``array`` that starts ``begin`` bytes into a cache line: chance would decide which vectors lie in two."""
    made = aligned(array.shape, array.dtype, begin)
    made[...] = array
    return made


def inputs(kind, sizes):
    """Random inputs and, last, the output of work ``kind`` of ``sizes``. bfloat16 is stored as bits (uint16)."""
    rng = np.random.default_rng(0)

    def random(*shape):
        made = aligned(shape)
        rng.standard_normal(dtype=np.float32, out=made)
        return made

    def integers(low, high, dtype, *shape):
        made = aligned(shape, dtype)
        made[...] = rng.integers(low, high, shape, dtype)
        return made

    kind = kind.removesuffix("_dot")
    if kind == "int8_gemm":
        m, n, k = sizes
        return [integers(0, 255, "uint8", m, k), integers(-128, 127, "int8", k, n), aligned((m, n), "int32")]
    if kind == "bf16_gemm":
        m, n, k = sizes
        halves = []
        for shape in ((m, k), (k, n)):
            half = aligned(shape, "uint16")
            half[...] = random(*shape).view(np.uint32) >> 16
            halves.append(half)
        return [*halves, aligned((m, n))]
    if kind == "gemm":
        m, n, k = sizes
        return [random(m, k), random(k, n), aligned((m, n))]
    if kind == "batched_gemm":
        count, m, n, k = sizes
        return [random(count, m, k), random(count, k, n), aligned((count, m, n))]
    if kind == "gemv":
        m, k = sizes
        return [random(m, k), random(k), aligned((m,))]
    if kind == "attention":
        queries, keys, depth = sizes
        return [random(queries, depth), random(keys, depth), random(keys, depth), aligned((queries, depth))]
    if kind in ("conv2d_nhwc", "conv2d_nchw", "depthwise_nhwc"):
        n, size, ins, outs, kernel, stride = sizes
        out = (size + 2 * (kernel // 2) - kernel) // stride + 1
        if kind == "conv2d_nchw":
            return [random(n, ins, size, size), random(outs, ins, kernel, kernel), aligned((n, outs, out, out))]
        weights = (kernel, kernel, ins) if kind == "depthwise_nhwc" else (kernel, kernel, ins, outs)
        return [random(n, size, size, ins), random(*weights), aligned((n, out, out, outs))]
    if kind in ("scale_add", "gelu_chain"):
        return [*(random(*sizes) for _ in range(3 if kind == "gelu_chain" else 1)), aligned(sizes)]
    m, n = sizes
    if kind == "blur":
        return [random(m + 2, n + 2), aligned((m, n))]
    first = random(m, n)
    more = [random(n), random(n)] if kind == "layer_norm" else []
    out = {"row_sum": (m,), "column_sum": (n,), "transpose": (n, m)}.get(kind, (m, n))
    return [first, *more, aligned(out)]
