"""The works to measure: each with its sizes, our schedule, its arrays and the expected result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tir
from tests.hand_schedules.dot_gemm import scheduled_dot_gemm
from tir import ops, te
from tir.amx_permission import tiles_available
from tir.interp.numbers import storage_dtype
from tir.library import attention, conv, elementwise, gemm, rows
from tir.library.conv import RESNET50, Layer

from .arrays import aligned, inputs

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Work:
    """``schedule(threads)`` is ours, that of :func:`tir.tune.default`; ``kind`` and ``sizes`` identify the work to peers.

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


def einsum(
    spec: str, left: Sequence[int], right: Sequence[int], dtypes: Sequence[str] = ("float32",) * 3
) -> tir.PrimFunc:
    """A product summed over the axes that are not in the result, such as "ik,kj->ij"; types of operands and result."""
    (a, b), out = spec.partition("->")[0].split(","), spec.partition("->")[2]
    sizes = {**dict(zip(a, left)), **dict(zip(b, right))}
    A, B = te.placeholder(left, dtypes[0], name="A"), te.placeholder(right, dtypes[1], name="B")
    terms = {x: te.reduce_axis((0, sizes[x]), x) for x in sizes if x not in out}

    def value(*point: tir.Var) -> tir.Expr:
        at = {**dict(zip(out, point)), **{x: t.var for x, t in terms.items()}}
        one, other = A[tuple(at[x] for x in a)], B[tuple(at[x] for x in b)]
        return te.sum(one.astype(dtypes[2]) * other.astype(dtypes[2]), axis=list(terms.values()))

    return te.create_prim_func([A, B, te.compute(tuple(sizes[x] for x in out), value, name="C")])


def convolved(
    n: int, *sizes: int, layout: str = "NCHW", depthwise: bool = False, transposed: bool = False, **more: Any
) -> tir.PrimFunc:
    """A convolution of ``tir.ops``; sizes as those of :class:`Layer`, with zeros around the image."""
    size, inputs, outputs, kernel, stride = sizes
    rank, groups = len(layout) - 2, inputs if depthwise else more.pop("groups", 1)
    extents = {"N": n, "C": inputs, **dict.fromkeys(layout.strip("NC"), size)}
    lengths = {"I": inputs // groups, "O": outputs, **dict.fromkeys(layout.strip("NC"), kernel)}
    if transposed:
        lengths |= {"I": inputs, "O": outputs // groups}
    order = ("IO" if transposed else "OI") + layout[2:] if layout[1] == "C" else layout[1:-1] + "IO"
    A = te.placeholder([extents[x] for x in layout], name="A")
    W = te.placeholder([lengths[x] for x in order], name="W")
    function = getattr(ops.nn, f"conv{rank}d" + "_transpose" * transposed)
    made = function(
        A,
        W,
        stride,
        (kernel - 1) // 2 * more.get("dilation", 1),
        groups=groups,
        data_layout=layout,
        kernel_layout=order,
        **more,
    )
    return te.create_prim_func([A, W, made])


def pooled(n: int, size: int, channels: int, kernel: int, stride: int, kind: str, layout: str = "NCHW") -> tir.PrimFunc:
    """A pool of an image, with half of the window around it."""
    A = te.placeholder((n, channels, size, size) if layout == "NCHW" else (n, size, size, channels), name="A")
    around = ((kernel - 1) // 2,) * 4
    return te.create_prim_func([A, ops.nn.pool2d(A, kernel, stride, 1, around, kind, layout=layout)])


PLAIN: dict[str, Callable[..., tir.PrimFunc]] = {
    "gemm": gemm.gemm,
    "gemm transposed A": lambda m, n, k: einsum("ki,kj->ij", (k, m), (k, n)),
    "gemm transposed B": lambda m, n, k: einsum("ik,jk->ij", (m, k), (n, k)),
    "gemm of five axes": lambda m, n, k: einsum("abe,ecd->abcd", (m // 20, 20, k), (k, 50, n // 50)),
    "int8_gemm": lambda m, n, k: gemm.dot_gemm(m, n, k, "int8"),
    "bf16_gemm": lambda m, n, k: gemm.dot_gemm(m, n, k, "bfloat16"),
    "gemv": gemm.gemv,
    "batched_gemm": gemm.batched_gemm,
    "attention": attention.attention,
    "conv2d_nhwc": lambda *layer: conv.conv2d_nhwc(Layer(*layer)),
    "conv2d_nchw": lambda *layer: conv.conv2d_nchw(Layer(*layer)),
    "depthwise_nhwc": lambda *layer: conv.depthwise_nhwc(Layer(*layer)),
    "depthwise_nchw": partial(convolved, depthwise=True),
    "conv1d": partial(convolved, layout="NCW"),
    "conv3d": partial(convolved, layout="NCDHW"),
    "grouped": partial(convolved, layout="NHWC", groups=4),
    "dilated": partial(convolved, layout="NHWC", dilation=2),
    "transposed": partial(convolved, transposed=True),
    "max_pool": partial(pooled, kind="max"),
    "mean_pool_nhwc": partial(pooled, kind="avg", layout="NHWC"),
    "softmax": rows.softmax,
    "layer_norm": rows.layer_norm,
    "row_sum": rows.row_sum,
    "column_sum": rows.column_sum,
    "transpose": elementwise.transpose,
    "blur": elementwise.blur,
    "scale_add": elementwise.scale_add,
    "gelu_chain": elementwise.gelu_chain,
}


def by_default(kind: str, sizes: tuple[int, ...], amount: float, unit: str = "flops", **more: Any) -> Work:
    """The work of a program of :data:`PLAIN`."""
    return Work(
        kind,
        sizes,
        lambda threads: tir.tune.default(PLAIN[kind](*sizes), f"llvm -num-cores={threads}"),
        amount,
        unit,
        **more,
    )


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
        yield by_default("gemm", (m, n, k), 2.0 * m * n * k)
    for n in (1024,) if quick else (1024, 2048):
        for kind, dtype in (("int8_gemm", "int8"), ("bf16_gemm", "bfloat16")):
            flops = 2.0 * n**3
            if tiles_available(dtype):
                yield by_default(kind, (n, n, n), flops, dtype=f"{dtype} tiles", tolerance=2e-2)
            on_vectors = partial(scheduled_dot_gemm, n, n, n, dtype, tiles=False)  # of the number of threads
            yield Work(f"{kind}_dot", (n, n, n), on_vectors, flops, dtype=dtype, tolerance=2e-2)
    m, k = 4096, 4096
    yield by_default("gemv", (m, k), 4.0 * m * k, "bytes")
    yield by_default("batched_gemm", (32, 128, 128, 64), 2.0 * 32 * 128 * 128 * 64)
    tokens, depth = 1024, 64
    yield by_default("attention", (tokens, tokens, depth), 4.0 * tokens * tokens * depth)


def _sizes(layer: Layer) -> tuple[int, ...]:
    return layer.n, layer.size, layer.inputs, layer.outputs, layer.kernel, layer.stride


def _convolutions(quick: bool) -> Iterator[Work]:
    layers = (RESNET50[1], RESNET50[8]) if quick else RESNET50
    for layer in layers:
        yield by_default("conv2d_nhwc", _sizes(layer), float(layer.flops))
    for layer in layers[:1] if quick else layers:
        yield by_default("conv2d_nchw", _sizes(layer), float(layer.flops))
    for layer in (Layer(1, 56, 128, 128, 3), Layer(1, 14, 512, 512, 3)):
        moved = 4.0 * layer.n * layer.inputs * (layer.size**2 + layer.out**2)
        yield by_default("depthwise_nhwc", _sizes(layer), moved, "bytes")


def _bandwidth(quick: bool) -> Iterator[Work]:
    matrices = ((64, 1000), (4096, 4096)) if quick else ((64, 1000), (1023, 511), (8192, 4096))
    for m, n in matrices:
        both, read = 8.0 * m * n, 4.0 * m * n
        for kind in ("softmax", "layer_norm", "row_sum", "column_sum", "transpose", "blur"):
            yield by_default(kind, (m, n), read if kind.endswith("_sum") else both, "bytes")
    for size in (50_000, 1 << 25):
        yield by_default("scale_add", (size,), 8.0 * size, "bytes")
        yield by_default("gelu_chain", (size,), 16.0 * size, "bytes")


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
