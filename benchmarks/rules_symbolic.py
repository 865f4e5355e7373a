"""Kernels with symbolic sizes, beside the kernels for each of these sizes: short, odd and full ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tir
from tir import ops, te

from .arrays import aligned
from .rules_cases import Call, Case, scheduled

P = te.placeholder


def _sum(value: Callable[..., Any], *extents: Any) -> Any:
    axes = [te.reduce_axis((0, extent), f"k{n}") for n, extent in enumerate(extents)]
    return te.sum(value(*axes), axis=axes)


def matmul_rows(n: Any) -> list[te.Tensor]:
    a, b = P((n, 512), name="a"), P((512, 512), name="b")
    return [a, b, ops.matmul(a, b)]


def matmul(n: Any, m: Any, k: Any) -> list[te.Tensor]:
    a, b = P((n, k), name="a"), P((k, m), name="b")
    return [a, b, ops.matmul(a, b)]


def dense_gelu(n: Any) -> list[te.Tensor]:
    x, w, b = P((n, 768), name="x"), P((3072, 768), name="w"), P((3072,), name="b")
    return [x, w, b, ops.nn.gelu(ops.nn.dense(x, w, b))]


def conv_batch(n: Any) -> list[te.Tensor]:
    x, w = P((n, 64, 28, 28), name="x"), P((64, 64, 3, 3), name="w")
    return [x, w, ops.nn.conv2d(x, w, padding=1)]


def conv_height(h: Any) -> list[te.Tensor]:
    x, w = P((1, 64, h, 56), name="x"), P((64, 64, 3, 3), name="w")
    return [x, w, ops.nn.conv2d(x, w, padding=1)]


def attention(n: Any) -> list[te.Tensor]:
    q, k, v = (P((12, n, 64), name=name) for name in "qkv")
    scores = ops.nn.softmax(ops.multiply(ops.matmul(q, k, transp_b=True), 0.125))
    return [q, k, v, ops.matmul(scores, v)]


def softmax(n: Any, m: Any) -> list[te.Tensor]:
    x = P((n, m), name="x")
    return [x, ops.nn.softmax(x)]


def layer_norm(n: Any, m: Any) -> list[te.Tensor]:
    x, gamma, beta = P((n, m), name="x"), P((m,), name="gamma"), P((m,), name="beta")
    return [x, gamma, beta, ops.nn.layer_norm(x, gamma, beta, axis=1)]


def row_sum(n: Any, m: Any) -> list[te.Tensor]:
    x = P((n, m), name="x")
    return [x, ops.sum(x, axis=1)]


def column_sum(n: Any, m: Any) -> list[te.Tensor]:
    x = P((n, m), name="x")
    return [x, ops.sum(x, axis=0)]


def transpose(n: Any, m: Any) -> list[te.Tensor]:
    x = P((n, m), name="x")
    return [x, ops.permute_dims(x, (1, 0))]


def chain(n: Any, m: Any) -> list[te.Tensor]:
    x, y = P((n, m), name="x"), P((n, m), name="y")
    return [x, y, ops.add(ops.exp(ops.multiply(x, 0.5)), ops.nn.relu(y))]


def row_max(n: Any, m: Any) -> list[te.Tensor]:
    x = P((n, m), name="x")
    return [x, ops.subtract(x, ops.max(x, axis=1, keepdims=True))]


KERNELS: dict[Callable[..., list[te.Tensor]], Sequence[tuple[int, ...]]] = {
    matmul_rows: ((5,), (127,), (512,)),
    matmul: ((7, 9, 5), (127, 131, 129), (512, 512, 512)),
    dense_gelu: ((3,), (61,), (128,)),
    conv_batch: ((1,), (3,), (8,)),
    conv_height: ((6,), (29,), (56,)),
    attention: ((9,), (67,), (128,)),
    softmax: ((100, 7), (501, 131), (1024, 1024)),
    layer_norm: ((100, 7), (501, 131), (1024, 1024)),
    row_sum: ((100, 7), (501, 131), (1024, 1024)),
    column_sum: ((100, 7), (501, 131), (1024, 1024)),
    transpose: ((100, 7), (501, 131), (1024, 1024)),
    chain: ((100, 7), (501, 131), (1024, 1024)),
    row_max: ((100, 7), (501, 65), (1024, 1024)),
}


def symbolic() -> Iterator[Case]:
    """Each kernel with symbolic sizes at short, odd and full sizes, beside the kernel for that size."""
    for kernel, sizes in KERNELS.items():
        for size in sizes:
            at = " x ".join(map(str, size))
            yield Case(
                f"{kernel.__name__.replace('_', ' ')}, {at}",
                0.87,
                te.create_prim_func(kernel(*(te.var(f"n{n}") for n in range(len(size))))),
                lambda kernel=kernel, size=size: _arrays(kernel(*size)),
                f"fixed at {at}",
                lambda arrays, kernel=kernel, size=size: _fixed(te.create_prim_func(kernel(*size)), arrays),
                lambda *_, kernel=kernel, size=size: _expected(te.create_prim_func(kernel(*size)), kernel(*size)),
            )


def _arrays(tensors: list[te.Tensor]) -> list[np.ndarray]:
    rng, made = np.random.default_rng(0), []
    for tensor in tensors:
        made.append(aligned(tuple(int(s) for s in tensor.shape)))
        rng.standard_normal(dtype=np.float32, out=made[-1])
    return made


def _fixed(func: tir.PrimFunc, arrays: list[np.ndarray]) -> Call:
    """On the same arrays: another result would lie otherwise beside the operands in a page, which alone makes 1.4."""
    run = scheduled(func)
    return lambda: run(*arrays)


def _expected(func: tir.PrimFunc, tensors: list[te.Tensor]) -> np.ndarray:
    """The result of the program as it was written."""
    arrays = _arrays(tensors)
    tir.build(func)(*arrays)
    return arrays[-1].astype("float64")
