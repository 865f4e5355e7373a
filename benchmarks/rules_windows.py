"""Windows, scans and stencils beside their bound: a copy of what they read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tir
from tir import ops, te

from .arrays import aligned
from .rules_cases import Case, copy_of

MUST = 0.7
LONG = 1 << 20


def windows() -> Iterator[Case]:
    """The six of the table, and neighbours."""
    x = te.placeholder((1, 64, 112, 112), name="x")
    pool = ops.nn.pool2d(x, 3, 2, 1, (1, 1, 1, 1), "max")
    yield _case("max-pool 3×3 by 2, (1, 64, 112, 112)", [x], pool, _max_pool)
    pool = ops.nn.pool2d(x, 3, 1, 1, (1, 1, 1, 1), "avg")
    yield _case("mean-pool 3×3, (1, 64, 112, 112)", [x], pool, None)
    line, k = te.placeholder((LONG,), name="x"), te.reduce_axis((0, 31), "k")
    sums = te.compute((LONG - 30,), lambda i: te.sum(line[i + k], axis=k), name="sums")
    mean = te.compute(sums.shape, lambda i: sums[i] * (1 / 31), name="mean")
    yield _case(
        "moving average of 31, 2^20",
        [line],
        mean,
        lambda x: np.convolve(x.astype("float64"), np.full(31, 1 / 31), "valid"),
    )
    yield _case("prefix sum, 2^20", [line], ops.cumsum(line), lambda x: np.cumsum(x.astype("float64")))
    rows = te.placeholder((1024, 1024), name="x")
    yield _case(
        "prefix sums of rows, (1024, 1024)", [rows], ops.cumsum(rows, 1), lambda x: np.cumsum(x.astype("float64"), 1)
    )
    image = te.placeholder((1, 3, 224, 224), name="x")
    resized = ops.image.resize2d(image, (0.0, 0.0, 0.0, 0.0), (448, 448))
    yield _case("bilinear (1, 3, 224, 224) to 448", [image], resized, None)
    yield _case("jacobi, 4 steps of (1024, 1024)", [rows], _jacobi(rows), None)
    yield _case("blur 3×3, (1024, 1024)", [rows], _blur(rows), _numpy_blur)


def _case(name: str, inputs: list[te.Tensor], made: te.Tensor, expected: Callable[..., Any] | None) -> Case:
    sizes = [tuple(int(n) for n in t.shape) for t in (*inputs, made)]
    moved = 4 * sum(int(np.prod(s)) for s in sizes)
    return Case(
        name, MUST, te.create_prim_func([*inputs, made]), lambda: _arrays(sizes), "copy", copy_of(moved), expected
    )


def _arrays(sizes: list[tuple[int, ...]]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    made = [aligned(s) for s in sizes]
    for array in made[:-1]:
        rng.random(dtype=np.float32, out=array)
    return made


def _max_pool(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    return np.max([padded[:, :, i : i + 111 : 2, j : j + 111 : 2] for i in range(3) for j in range(3)], 0)


def _jacobi(x: te.Tensor) -> te.Tensor:
    high, wide = (int(n) for n in x.shape)
    for step in range(4):
        x = te.compute((high, wide), lambda i, j, x=x: tir.if_then_else(
            tir.all(i > 0, i < high - 1, j > 0, j < wide - 1),
            (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) * 0.25, x[i, j],
        ), name=f"step{step}")  # fmt: skip
    return x


def _blur(x: te.Tensor) -> te.Tensor:
    high, wide = (int(n) for n in x.shape)
    across = te.compute((high, wide - 2), lambda i, j: (x[i, j] + x[i, j + 1] + x[i, j + 2]) * (1 / 3), name="across")
    return te.compute(
        (high - 2, wide - 2), lambda i, j: (across[i, j] + across[i + 1, j] + across[i + 2, j]) * (1 / 3), name="down"
    )


def _numpy_blur(x: np.ndarray) -> np.ndarray:
    x = x.astype("float64")
    across = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return (across[:-2] + across[1:-1] + across[2:]) / 3
