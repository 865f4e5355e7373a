"""Sums and products of everything up to an element, along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import (
    TRUE,
    Block,
    BlockRealize,
    BufferLoad,
    BufferStore,
    DType,
    Expr,
    For,
    IterVar,
    Max,
    Min,
    Range,
    Stmt,
    Var,
    cast,
    const,
    digits_of,
    is_const,
    te,
)
from ..analysis import block_access_region
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor
from ..te.hybrid import statements
from .cases import Case, arg, case
from .reduction import accumulator, sum_type
from .registry import operator
from .shapes import axis_of

SECTION = "cumulative"


def _reference(whole: Callable[..., Any], identity: int) -> Callable[..., Any]:
    def run(x: Any, axis: Any = None, dtype: Any = None, exclusive: bool = False, acc_dtype: Any = None) -> Any:
        if axis is None:
            x, axis = x.ravel(), 0
        kind = np.float64 if x.dtype.kind == "f" else np.uint64 if x.dtype.kind == "u" else np.int64
        made = whole(x, axis=axis, dtype=kind)
        if exclusive:
            first = np.full_like(np.take(made, [0] if made.shape[axis] else [], axis=axis), identity)
            made = np.concatenate([first, np.delete(made, -1, axis=axis) if first.size else made], axis=axis)
        return made

    return run


_CASES: list[Case] = [
    case(arg((3, 5), "float32"), axis=-1),
    case(arg((2, 4, 3), "float64"), axis=1, exclusive=True),
    case(arg((2, 5), "float16")),
    case(arg(("n", 3), "float32"), axis=0),
    case(arg((4, "n"), "int8"), axis=1, exclusive=True),
    case(arg((9,), "bfloat16")),
    case(arg((16, 2), "float32", "special"), axis=0),
    case(arg((3, 0), "float32"), axis=1),
    case(arg((), "float32")),
    case(arg((1, 4), "bool"), axis=1),
    case(arg((5,), "uint8"), axis=-1, dtype="uint8"),
]


@operator(
    unstated="the result has the shape of the tensor, or one dimension where `axis` is None", section=SECTION,
    reference=_reference(np.cumsum, 0), aliases=("cumulative_sum",), cases=_CASES, tolerance=64,
)  # fmt: skip
def cumsum(
    x: te.Tensor, axis: int | None = None, dtype: Any = None, exclusive: bool = False, acc_dtype: Any = None
) -> te.Tensor:
    """The sums of the elements up to each along ``axis``; of None those of the flattened tensor.

    ``exclusive`` leaves the element itself out: the first sum is 0. For types see ``sum``.

    >>> from tir import ops, te
    >>> ops.cumsum(te.placeholder((4, 3)), axis=1)
    Tensor(cumsum, (4, 3), float32)
    """
    return _cumulative("cumsum", lambda a, b: a + b, 0, x, axis, exclusive, dtype, acc_dtype)


@operator(
    unstated="the result has the shape of the tensor, or one dimension where `axis` is None", section=SECTION,
    reference=_reference(np.cumprod, 1), aliases=("cumulative_prod",), cases=_CASES, tolerance=64,
)  # fmt: skip
def cumprod(
    x: te.Tensor, axis: int | None = None, dtype: Any = None, exclusive: bool = False, acc_dtype: Any = None
) -> te.Tensor:
    """The products of the elements up to each along ``axis``, as ``cumsum`` gives the sums.

    >>> from tir import ops, te
    >>> ops.cumprod(te.placeholder((4, 3), "int32"))
    Tensor(cumprod, (12,), int64)
    """
    return _cumulative("cumprod", lambda a, b: a * b, 1, x, axis, exclusive, dtype, acc_dtype)


def _along(whole: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis=-1: whole(x, axis=axis) if x.ndim and x.size else x


_ORDERED = [
    case(arg((3, 5)), axis=0),
    case(arg((4, "n"), "int8"), axis=1),
    case(arg((16, 2), "float32", "special"), axis=0),
    case(arg((3, 0))),
    case(arg(())),
]


@operator(shapes="(…) T -> (…) T", section=SECTION, reference=_along(np.maximum.accumulate), cases=_ORDERED)
def cummax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """The largest of the elements up to each along ``axis``; nan from the first nan on."""
    return _own("cummax", Max, x, axis)


@operator(shapes="(…) T -> (…) T", section=SECTION, reference=_along(np.minimum.accumulate), cases=_ORDERED)
def cummin(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """The smallest of the elements up to each along ``axis``, as ``cummax`` gives the largest."""
    return _own("cummin", Min, x, axis)


@operator(
    shapes="(…) float -> (…)", section=SECTION, reference=_along(np.logaddexp.accumulate),
    cases=[
        case(arg((3, 5)), axis=0), case(arg((4, "n"), "float64"), axis=1),
        case(arg((5,), values=np.array([-np.inf, -np.inf, 90.0, -90.0, 100.0]))), case(arg((3, 0))),
    ],
)  # fmt: skip
def logcumsumexp(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """The logarithm of the sum of the exponentials of the elements up to each along ``axis``; no exponential overflows."""

    def combine(a: Any, b: Any) -> Expr:
        larger = Max(a, b)
        return te.if_then_else(a == b, a + math.log(2), larger + te.log1p(te.exp(Min(a, b) - larger)))

    return _own("logcumsumexp", combine, x, axis)


def _own(name: str, combine: Callable[[Any, Any], Expr], x: Tensor, axis: int) -> Tensor:
    """A recurrence in the type of the elements, which starts at the first of them."""
    if not x.ndim:
        return te.compute((), lambda: x[()], name=name)
    return _recurrence(name, x, axis_of(axis, x.ndim), x.dtype, combine, const(0, x.dtype), exclusive=False)


def _cumulative(
    name: str,
    combine: Callable[[Any, Any], Expr],
    identity: int,
    x: Tensor,
    axis: Any,
    exclusive: Any,
    dtype: Any,
    acc: Any,
) -> Tensor:
    result = sum_type(x, dtype)
    kind = accumulator(result, acc)
    if axis is None:
        x, axis = _flattened(x, name), 0
    made = _recurrence(name, x, axis_of(axis, x.ndim), kind, combine, const(identity, kind), bool(exclusive))
    return made if kind is result else te.compute(made.shape, lambda *i: cast(result, made[i]), name=name)


def _flattened(x: Tensor, name: str) -> Tensor:
    if x.ndim == 1:
        return x
    size: Any = const(1)
    for extent in x.shape:
        size = size * extent
    return te.compute((size,), lambda place: x[tuple(digits_of(place, x.shape))], name=f"{name}_flat")


def _recurrence(
    name: str, x: Tensor, axis: int, dtype: DType, combine: Callable[[Any, Any], Expr], start: Expr, exclusive: bool
) -> Tensor:
    """``out[t] = combine(out[t - 1], x[t])`` along ``axis``; an exclusive one combines with ``x[t - 1]``.

    The loops are in the order of the axes, so that memory is walked through once.
    """
    loops = [Var(f"i{n}", extent.dtype) for n, extent in enumerate(x.shape)]
    iterators = [
        IterVar(Range(const(0, i.dtype), extent), Var(f"v_{i.name}", i.dtype), "opaque" if n == axis else "spatial")
        for n, (i, extent) in enumerate(zip(loops, x.shape))
    ]
    here = tuple(v.var for v in iterators)
    before = (*here[:axis], here[axis] - 1, *here[axis + 1 :])

    def emit(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        source, out = ins[0].buffer, outs[0].buffer
        taken = cast(dtype, BufferLoad(source, before if exclusive else here))
        combined = combine(BufferLoad(out, before), taken)
        first = start if exclusive else cast(dtype, BufferLoad(source, here))
        value = first if is_const(x.shape[axis], 1) else te.if_then_else(here[axis] == 0, first, combined)
        block = Block(tuple(iterators), (), (), name, BufferStore(out, value, here))
        reads, writes = block_access_region(block)
        body: Stmt = BlockRealize(tuple(loops), TRUE, block.replace(reads=tuple(reads), writes=tuple(writes)))
        for loop, extent in reversed(list(zip(loops, x.shape))):
            body = For(loop, const(0, loop.dtype), extent, "serial", body)
        ib.emit(body)

    return statements(name, [x], [(x.shape, dtype)], emit)[0]
