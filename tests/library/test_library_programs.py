"""Every program of the library, by its default schedule, against NumPy in float64, at sizes that are multiples of nothing too."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tir
from tir.library import attention, conv, elementwise, gemm, rows
from tir.library.conv import Layer

Reference = Callable[..., np.ndarray]


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    power = np.exp(q @ k.T / np.sqrt(q.shape[1]))
    return power / power.sum(1, keepdims=True) @ v


def softmaxed(a: np.ndarray) -> np.ndarray:
    power = np.exp(a - a.max(1, keepdims=True))
    return power / power.sum(1, keepdims=True)


def normalized(a: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
    return (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * g + h


def blurred(a: np.ndarray) -> np.ndarray:
    m, n = a.shape[0] - 2, a.shape[1] - 2
    return sum(a[y : y + m, x : x + n] for y in range(3) for x in range(3)) / 9


def gelu(a: np.ndarray, s: np.ndarray, h: np.ndarray) -> np.ndarray:
    x = a * s + h
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def convolved(layer: Layer, each: str) -> Reference:
    """Of an image and weights whose channels come last, ``each`` the sum at one place of the window."""

    def run(a: np.ndarray, w: np.ndarray) -> np.ndarray:
        around, last = (layer.pad, layer.pad), (layer.out - 1) * layer.stride + 1
        p = np.pad(a, ((0, 0), around, around, (0, 0)))
        places = ((y, x) for y in range(layer.kernel) for x in range(layer.kernel))
        step = layer.stride
        return sum(np.einsum(each, p[:, y : y + last : step, x : x + last : step], w[y, x]) for y, x in places)

    return run


def channels_first(layer: Layer) -> Reference:
    last = convolved(layer, "nyxc,co->nyxo")
    return lambda a, w: last(a.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)).transpose(0, 3, 1, 2)


LAYERS = [Layer(2, 7, 5, 20, 3), Layer(1, 10, 3, 33, 3, 2), Layer(1, 5, 8, 16), Layer(1, 9, 7, 3, 1, 2)]
DEEP = [Layer(2, 7, 20, 20, 3), Layer(1, 10, 33, 33, 3, 2), Layer(1, 8, 16, 16, 5)]
PROGRAMS: dict[str, tuple[Callable[..., tir.PrimFunc], list[tuple], Callable[..., Reference] | Reference]] = {
    "gemm": (gemm.gemm, [(64, 64, 64), (37, 45, 51), (100, 99, 3), (1, 1, 1), (5, 200, 16)], np.matmul),
    "batched_gemm": (gemm.batched_gemm, [(3, 37, 45, 21), (4, 64, 64, 64), (5, 4, 3, 2)], np.matmul),
    "gemv": (gemm.gemv, [(64, 64), (37, 51), (12, 1000), (1, 1)], np.matmul),
    "attention": (attention.attention, [(12, 70, 16), (7, 33, 20), (1, 1, 3)], attended),
    "softmax": (rows.softmax, [(5, 64), (3, 1), (7, 53)], softmaxed),
    "layer_norm": (rows.layer_norm, [(5, 64), (7, 53), (4, 131)], normalized),
    "row_sum": (rows.row_sum, [(5, 64), (3, 1), (7, 53)], lambda a: a.sum(1)),
    "column_sum": (rows.column_sum, [(5, 64), (3, 1), (7, 53)], lambda a: a.sum(0)),
    "gelu_chain": (elementwise.gelu_chain, [(1,), (64,), (1001,)], gelu),
    "scale_add": (elementwise.scale_add, [(1,), (64,), (1001,)], lambda a: a * 3 + 1),
    "transpose": (elementwise.transpose, [(32, 48), (37, 53), (5, 40), (64, 131)], np.transpose),
    "blur": (elementwise.blur, [(8, 64), (37, 53), (1, 1)], blurred),
    **{f"conv2d_nhwc-{n}": (conv.conv2d_nhwc, [(x,)], convolved(x, "nyxc,co->nyxo")) for n, x in enumerate(LAYERS)},
    **{f"conv2d_nchw-{n}": (conv.conv2d_nchw, [(x,)], channels_first(x)) for n, x in enumerate(LAYERS)},
    **{f"depthwise-{n}": (conv.depthwise_nhwc, [(x,)], convolved(x, "nyxc,c->nyxc")) for n, x in enumerate(DEEP)},
}


@pytest.mark.parametrize(
    "name, sizes, cores",
    [(n, s, cores) for n, (_, found, _) in PROGRAMS.items() for k, s in enumerate(found) for cores in ([1, 2] if k == 0 else [1 + k % 2])],
)  # fmt: skip
def test_a_program_by_default(name: str, sizes: tuple, cores: int):
    """The first sizes of each on one core and on two, the others on two and on one in turns."""
    make, _, reference = PROGRAMS[name]
    func = make(*sizes)
    generator = np.random.default_rng(0)
    *inputs, out = [generator.standard_normal([int(s) for s in b.shape], dtype=np.float32) for b in func.buffers()]
    out.fill(np.nan)
    target = f"llvm -num-cores={cores}"
    tir.build(tir.tune.default(func, target), target)(*inputs, out)
    np.testing.assert_allclose(out, reference(*(x.astype(np.float64) for x in inputs)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_schedule_keeps_the_meaning(name: str):
    from tir.testing import assert_same_result

    make, sizes, _ = PROGRAMS[name]
    func = make(*min(sizes, key=str))
    assert_same_result(func, tir.tune.default(func).mod, engines=["interpreter"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", gemm.KINDS)
def test_products_of_narrow_types(kind: str):
    from tir.testing import assert_same_result

    func = gemm.dot_gemm(37, 45, 51, kind)
    assert_same_result(func, tir.tune.default(func).mod, engines=["llvm"], rtol=1e-3, atol=1e-3)
