"""The works to measure: each with its sizes, our schedule, its arrays and the expected result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tir
from tir.amx import tiles_available
from tir.interp.numbers import storage_dtype
from tir.library import attention, conv, conv_nchw, dot_gemm, elementwise, gemm, gemv, rows
from tir.library.conv import RESNET50, Layer

from .arrays import aligned, inputs

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Work:
    """``schedule(threads)`` is ours; ``kind`` and ``sizes`` identify the work to peers.

    ``unit``: "flops" (``amount`` operations, compared with the peak of ``dtype``) or "bytes" (``amount`` read and
    written, compared with copying).
    """

    kind: str
    sizes: tuple[int, ...]
    schedule: Callable[[int], tir.Schedule]
    amount: float
    unit: str = "flops"
    dtype: str = "float32"
    tolerance: float = 1e-3

    @property
    def name(self) -> str:
        return f"{self.kind} {'x'.join(map(str, self.sizes))}"

    def arrays(self) -> Arrays:
        """Random inputs and, last, the output; 64-byte aligned, as those of peers."""
        return inputs(self.kind, self.sizes)


def works(quick: bool = False) -> Iterator[Work]:
    """All works, or (``quick``) one or two sizes of each kind."""
    yield from _products(quick)
    yield from _convolutions(quick)
    yield from _bandwidth(quick)


def _products(quick: bool) -> Iterator[Work]:
    square = [(n, n, n) for n in ((1024,) if quick else (1024, 2048, 1000, 1023))]
    odd = [(37, 4096, 511)] if quick else [(37, 4096, 511), (4096, 37, 511), (37, 511, 4096)]
    small = [(n, n, n) for n in ((64,) if quick else (16, 32, 64, 128))]
    skinny = [] if quick else [(2048, 16, 2048), (16, 2048, 2048), (2048, 2048, 16)]
    for m, n, k in (*square, *odd, *small, *skinny):
        yield Work("gemm", (m, n, k), lambda t, s=(m, n, k): gemm.scheduled_gemm(*s, t), 2.0 * m * n * k)
    for n in (1024,) if quick else (1024, 2048):
        for kind, dtype in (("int8_gemm", "int8"), ("bf16_gemm", "bfloat16")):
            ways = [("", " tiles", True)] if tiles_available(dtype) else []
            for suffix, instructions, tiles in (*ways, ("_dot", "", False)):
                yield Work(
                    kind + suffix,
                    (n, n, n),
                    lambda t, n=n, d=dtype, x=tiles: dot_gemm.scheduled_dot_gemm(n, n, n, d, t, x),
                    2.0 * n**3,
                    dtype=dtype + instructions,
                    tolerance=2e-2,
                )
    m, k = 4096, 4096
    yield Work("gemv", (m, k), lambda t: gemv.scheduled_gemv(m, k, t), 4.0 * m * k, "bytes")
    size = (32, 128, 128, 64)
    yield Work("batched_gemm", size, lambda t: gemm.scheduled_batched_gemm(*size, t), 2.0 * 32 * 128 * 128 * 64)
    tokens, depth = 1024, 64
    yield Work(
        "attention",
        (tokens, tokens, depth),
        lambda t: attention.schedule_attention(tir.Schedule(attention.attention(tokens, tokens, depth)), t > 1),
        4.0 * tokens * tokens * depth,
    )


def _sizes(layer: Layer) -> tuple[int, ...]:
    return layer.n, layer.size, layer.inputs, layer.outputs, layer.kernel, layer.stride


def _convolutions(quick: bool) -> Iterator[Work]:
    layers = (RESNET50[1], RESNET50[8]) if quick else RESNET50
    for layer in layers:
        yield Work(
            "conv2d_nhwc", _sizes(layer), lambda t, x=layer: conv.scheduled_conv2d_nhwc(x, t), float(layer.flops)
        )
    for layer in layers[:1] if quick else layers:
        yield Work(
            "conv2d_nchw", _sizes(layer), lambda t, x=layer: conv_nchw.scheduled_conv2d_nchw(x, t), float(layer.flops)
        )
    for layer in (Layer(1, 56, 128, 128, 3), Layer(1, 14, 512, 512, 3)):
        yield Work(
            "depthwise_nhwc",
            _sizes(layer),
            lambda t, x=layer: conv_nchw.schedule_depthwise_nhwc(tir.Schedule(conv_nchw.depthwise_nhwc(x)), t > 1),
            4.0 * layer.n * layer.inputs * (layer.size**2 + layer.out**2),
            "bytes",
        )


def _rowwise(kind: str, func: Any, schedule: Any, sizes: tuple[int, ...], moved: float) -> Work:
    """Memory-bound works; parallel from a megabyte on, below which threads cost more than they gain."""
    large = moved >= 1 << 20
    return Work(kind, sizes, lambda t: schedule(tir.Schedule(func(*sizes)), parallel=t > 1 and large), moved, "bytes")


def _bandwidth(quick: bool) -> Iterator[Work]:
    matrices = ((64, 1000), (4096, 4096)) if quick else ((64, 1000), (1023, 511), (8192, 4096))
    for m, n in matrices:
        both, read = 8.0 * m * n, 4.0 * m * n
        yield _rowwise("softmax", rows.softmax, rows.schedule_softmax, (m, n), both)
        yield _rowwise("layer_norm", rows.layer_norm, rows.schedule_layer_norm, (m, n), both)
        yield _rowwise("row_sum", rows.row_sum, rows.schedule_row_sum, (m, n), read)
        yield _rowwise("column_sum", rows.column_sum, rows.schedule_column_sum, (m, n), read)
        yield _rowwise("transpose", elementwise.transpose, elementwise.schedule_transpose, (m, n), both)
        yield _rowwise("blur", elementwise.blur, elementwise.schedule_blur, (m, n), both)
    for size in (50_000, 1 << 25):
        yield _rowwise("scale_add", elementwise.scale_add, elementwise.schedule_scale_add, (size,), 8.0 * size)
        yield _rowwise("gelu_chain", elementwise.gelu_chain, elementwise.schedule_gelu_chain, (size,), 16.0 * size)


def expected(work: Work, arrays: Arrays) -> np.ndarray | None:
    """The result in float64, if NumPy can compute it in about a second; else None."""
    if work.kind in ("gemm", "batched_gemm") and work.amount < 2e10:
        return arrays[0].astype(np.float64) @ arrays[1].astype(np.float64)
    if work.kind in ("row_sum", "column_sum"):
        return arrays[0].sum(0 if work.kind == "column_sum" else 1, dtype=np.float64)
    if work.kind == "transpose":
        return arrays[0].T
    return None


def storage(dtype: str) -> Any:
    return storage_dtype(tir.DType(dtype.removesuffix(" tiles")))


__all__ = ["Work", "aligned", "expected", "storage", "works"]
