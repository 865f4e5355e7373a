"""Rows of ATen operators that make tensors of numbers, and numbers of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtype import DType
from ..graph import Value
from ..graph.sizes import is_fixed
from .making import Unsupported
from .torch_table import Call, Number, row


@row("arange")
def _arange(c: Call, end: Any, start: Any = 0, step: Number = 1, dtype: DType | None = None) -> Any:
    if not is_fixed(start, end):
        return c.op("arange", start, end, step, c.dtype)
    c.room(max(0, math.ceil((end - start) / step)))
    return c.converted(np.arange(start, end, step))


@row("linspace")
def _linspace(c: Call, start: Any, end: Any, steps: int, dtype: DType | None = None) -> Any:
    """From the nearer end, as torch; integers of the ends as integers."""
    at = np.arange(*c.room(steps))
    start, end = (_item(c, n) if isinstance(n, Value) else n for n in (start, end))
    start, end = (int(n) if c.dtype.is_int else n for n in (start, end))
    step = (end - start) / max(steps - 1, 1)
    return c.converted(np.where(at < max(steps // 2, 1), start + step * at, end - step * (steps - 1 - at)))


@row("full", "zeros", "ones", "empty", "new_zeros", "new_ones", "new_full", "new_empty", "empty_permuted", "empty_strided",
     "new_empty_strided")  # fmt: skip
def _full(
    c: Call, size: Sequence[int], x: Any = None, fill_value: Any = None, dtype: DType | None = None, stride: Any = None,
    physical_layout: Any = None,
) -> Any:  # fmt: skip
    return _filled(c, size, fill_value)


@row("full_like", "zeros_like", "ones_like", "empty_like", "fill")
def _full_like(c: Call, x: Value, fill_value: Any = None, dtype: DType | None = None, value: Any = None) -> Any:
    return _filled(c, x.shape, fill_value if value is None else value)


def _filled(c: Call, sizes: Sequence[int], value: Any) -> Value:
    if isinstance(value, Value):
        return c.op("broadcast_to", c.tensor(value, c.dtype), tuple(sizes))
    return c.filled(sizes, float("ones" in c.operator) if value is None else value, c.dtype)


@row("scalar_tensor")
def _scalar_tensor(c: Call, s: Number, dtype: DType | None = None) -> Any:
    return c.tensor(s, c.dtype)


@row("eye")
def _eye(c: Call, n: int, m: int | None = None, dtype: DType | None = None) -> Any:
    c.room(n, n if m is None else m)
    return c.converted(np.eye(n, m))


@row("tril_indices", "triu_indices")
def _triangle_indices(c: Call, row: int, col: int, offset: int = 0, dtype: DType | None = None) -> Any:
    c.room(row, col)
    places = np.tril_indices(row, offset, col) if c.operator == "tril_indices" else np.triu_indices(row, offset, col)
    return c.converted(np.stack(places))


@row("one_hot")
def _one_hot(c: Call, x: Value, num_classes: int = -1) -> Any:
    if num_classes < 0:
        raise Unsupported("the number of classes depends on values that are known only when it runs")
    return c.op("astype", c.op("equal", c.shaped(x, (*x.shape, 1)), c.array(np.arange(num_classes))), c.dtype)


@row("item", "_local_scalar_dense")
def _item(c: Call, x: Value) -> Any:
    known = c.known(x)
    if known is None:
        raise Unsupported("its number is known only when it runs")
    return known.reshape(()).item()


@row(
    "rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "bernoulli", "normal", "normal_functional",
    "multinomial", "uniform", "cauchy", "exponential", "geometric", "log_normal",
)  # fmt: skip
def _random(c: Call, **given: Any) -> Any:
    raise Unsupported("it draws random numbers")


@row("meshgrid")
def _meshgrid(c: Call, tensors: Sequence[Value], indexing: str = "ij") -> Any:
    several = [c.shaped(x, (-1,)) for x in tensors]
    return tuple(several) if len(several) == 1 else c.op("meshgrid", *several, indexing=indexing)
