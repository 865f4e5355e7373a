"""Reductions over axes: one, several, or all of them.

The result has the type that the Array API standard gives: sums of integers are 64 bits wide. ``acc_dtype`` is the type of
the accumulator, by default that of the result, and ``float32`` for narrower floats.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import FALSE, NE, TRUE, DType, Expr, IntImm, cast, compare, const, is_const, logical_and, logical_or, te
from ..te import Reducer, Tensor, data_type, equate, error
from .cases import Case, arg, case
from .contract import BY_AXES
from .element_places import sized
from .promotion import wide
from .registry import operator
from .shapes import Shape, axes_of

SECTION = "reduction"
Axes = int | Sequence[int] | None

_NUMBERS = ("integer", "float")
_all = te.comm_reducer(logical_and, lambda _: TRUE, name="all")
_any = te.comm_reducer(logical_or, lambda _: FALSE, name="any")


def lowest(dtype: DType) -> Expr:
    """The least value of a type, infinite where it has infinities: what a maximum starts from."""
    return const(dtype.ends[0], dtype)


def highest(dtype: DType) -> Expr:
    """The greatest value of a type, infinite where it has infinities: what a minimum starts from."""
    return const(dtype.ends[1], dtype)


maximum_reducer = te.comm_reducer(lambda x, y: te.max(x, y), lowest, name="max")
minimum_reducer = te.comm_reducer(lambda x, y: te.min(x, y), highest, name="min")


@dataclass(frozen=True)
class Reduction:
    """``axes`` of ``x``, ascending, to be reduced; ``keepdims`` keeps them with extent 1."""

    x: Tensor
    axes: tuple[int, ...]
    keepdims: bool

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        one = const(1)
        kept = [(one if axis in self.axes else extent) for axis, extent in enumerate(self.x.shape)]
        return tuple(e for axis, e in enumerate(kept) if self.keepdims or axis not in self.axes)

    @property
    def count(self) -> Expr:
        """How many elements make one of the result."""
        made: Expr = const(1)
        for axis in self.axes:
            made = made * self.x.shape[axis]
        return made

    @property
    def is_empty(self) -> bool:
        """Whether it is known that no elements make one."""
        return is_const(self.count, 0)

    def counting_type(self, kind: DType) -> DType:
        """The type in which these elements are counted for a number of type ``kind``: no wider than their count needs, and
        signed, so that there is a number below all of theirs."""
        narrow, count = DType("int32"), self.count
        if isinstance(count, IntImm) and count.value <= narrow.max_value:
            return kind if kind.code == "int" and kind.bits <= 32 and count.value <= kind.max_value else narrow
        if len(self.axes) == 1 and count.dtype.bits <= narrow.bits:  # no more than the type of a symbolic size has
            return narrow
        return kind if kind.code == "int" and kind.bits >= 32 else DType("int64")

    def iterators(self) -> dict[int, Any]:
        """New axes to reduce over, by the axes of ``x``."""
        return {axis: te.reduce_axis((0, self.x.shape[axis]), f"k{axis}") for axis in self.axes}

    def source(self, indices: Sequence[Any], ks: dict[int, Any]) -> tuple[Any, ...]:
        """The index of ``x`` that belongs to an index of the result and to indices along the reduced axes."""
        rest = [i for axis, i in enumerate(indices) if not self.keepdims or axis not in self.axes]
        return tuple(ks[axis] if axis in ks else rest.pop(0) for axis in range(self.x.ndim))

    def of(self, reducer: Reducer, value: Callable[..., Any], indices: Sequence[Any], empty: Any) -> Any:
        """What ``reducer`` makes of ``value(index of x)``; ``empty`` where there is none."""
        ks = self.iterators()
        if not ks:
            return value(self.source(indices, ks))
        return empty if self.is_empty else reducer(value(self.source(indices, ks)), axis=list(ks.values()))

    def require_elements(self) -> None:
        """Raise ``TensorExpressionError`` if there is nothing to reduce, for a reduction without identity."""
        if self.is_empty:
            raise error(
                f"the reduced axes of {self.x.shape} have no elements, and the reduction has no value for none",
                "a tensor with elements along these axes",
            )


def reduction(x: Tensor, axis: Axes, keepdims: bool) -> Reduction:
    """The reduction of ``x`` over ``axis``. Raises ``TensorExpressionError`` for an axis that is none."""
    return Reduction(x, axes_of(axis, x.ndim), bool(keepdims))


# ---------------------------------------------------------------- types


def sum_type(x: Tensor, dtype: Any) -> DType:
    """The type of a sum: that of floats, of integers their widest."""
    if dtype is not None:
        return data_type(dtype)
    return x.dtype if x.dtype.is_float else DType("uint64" if x.dtype.code == "uint" else "int64")


def accumulator(result: DType, acc_dtype: Any) -> DType:
    """The type in which a result is accumulated."""
    return wide(result) if acc_dtype is None else data_type(acc_dtype)


# ---------------------------------------------------------------- cases


def reduction_cases(kinds: Sequence[str] = _NUMBERS, empty: bool = True, **more: Any) -> list[Case]:
    """Cases of a reduction: axes, empty, 0-d and symbolic shapes, types."""
    made: list[Case] = []
    if "float" in kinds:
        made += [
            case(arg((3, 5), "float32"), axis=-1, **more),
            case(arg((2, 3, 4), "float64"), axis=(0, -1), keepdims=True, **more),
            case(arg((4, 7), "float16"), **more),
            case(arg(("n", 3), "float32"), axis=0, **more),
            case(arg((9,), "bfloat16"), axis=0, keepdims=True, **more),
            case(arg((), "float32"), **more),
            case(arg((2, 3), "float32"), axis=(), **more),
            case(arg((16, 2), "float32", "special"), axis=0, **more),
            case(arg((0, 3), "float32"), axis=1, **more),
        ]
        made += [case(arg((3, 0), "float32"), axis=1, **more)] * empty
    if "integer" in kinds:
        made += [
            case(arg((3, 5), "int8"), axis=0, **more),
            case(arg((2, 1, 3), "uint8"), axis=(1, 2), **more),
            case(arg((7,), "int64"), **more),
        ]
    if "bool" in kinds:
        made += [case(arg((3, 5), "bool"), axis=1, **more), case(arg((4,), "bool", True), keepdims=True, **more)]
    return made


# ---------------------------------------------------------------- sums and products


def _accumulated(
    name: str, reducer: Reducer, identity: int, x: Tensor, axis: Any, keepdims: Any, dtype: Any, acc: Any
) -> Tensor:
    over = reduction(x, axis, keepdims)
    result = sum_type(x, dtype)
    kind = accumulator(result, acc)
    empty = const(identity, kind)

    def element(*indices: Any) -> Any:
        return cast(result, over.of(reducer, lambda at: cast(kind, x[at]), indices, empty))

    return te.compute(over.shape, element, name=name)


def _wide(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The reference of an accumulation: NumPy does not know all types, and sums of integers wrap at 64 bits."""

    def run(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None, acc_dtype: Any = None) -> Any:
        kind = np.float64 if x.dtype.kind == "f" else np.uint64 if x.dtype.kind == "u" else np.int64
        return reference(x, axis=axis, keepdims=keepdims, dtype=kind)

    return run


_TYPED = [
    case(arg((3, 4), "float32"), axis=0, dtype="float64"),
    case(arg((5,), "int8"), dtype="int32"),
    case(arg((2, 3), "float16"), axis=1, acc_dtype="float16"),
    case(arg((2, 3), "int32"), axis=1, dtype="float32"),
]


@operator(
    shapes="(…) -> (…r)", section=SECTION, reference=_wide(np.sum),
    cases=[*reduction_cases(("bool", "integer", "float")), *_TYPED], tolerance=32,
)  # fmt: skip
def sum(x: te.Tensor, axis: Axes = None, keepdims: bool = False, dtype: Any = None, acc_dtype: Any = None) -> te.Tensor:
    """The sum over ``axis`` (one, several, all for None); of no elements 0.

    The result is of ``dtype``: by default that of floats, and int64 or uint64 of bools and integers.

    >>> from tir import ops, te
    >>> x = te.placeholder((4, 3), "float16")
    >>> ops.sum(x, axis=-1, acc_dtype="float32")
    Tensor(sum, (4,), float16)
    """
    return _accumulated("sum", te.sum, 0, x, axis, keepdims, dtype, acc_dtype)


def _numpy_collapse_sum(data: Any, target_shape: Any) -> Any:
    wide = data.astype(np.float64 if data.dtype.kind == "f" else np.int64)
    lead = data.ndim - len(target_shape)
    ones = tuple(n for n in range(lead, data.ndim) if target_shape[n - lead] == 1)
    return wide.sum(ones, keepdims=True).sum(tuple(range(lead))).astype(data.dtype)


@operator(
    gives=(3, 1), unstated="`target_shape` is the shape of the result", section=SECTION, reference=_numpy_collapse_sum,
    cases=[
        case(arg((2, 3, 4)), (3, 1)), case(arg((2, 3), "int8"), (2, 3)), case(arg((2, 3)), (1, 3)),
        case(arg((4, 2, 3)), (2, 3)), case(arg((2, 3), "float16"), ()),
    ],
    tolerance=32,
)  # fmt: skip
def collapse_sum(data: te.Tensor, target_shape: Any) -> te.Tensor:
    """The sum of ``data`` over all axes along which a tensor of ``target_shape`` would be broadcast to its shape.

    Raises ``TensorExpressionError`` where it would not.
    """
    shape = sized(target_shape, "the target shape")
    lead = data.ndim - len(shape)
    of_one = [n for n, e in enumerate(shape, lead) if is_const(e, 1) and n >= 0]
    pairs = [] if lead < 0 else zip(data.shape[lead:], shape)
    if lead < 0 or not builtins.all(is_const(e, 1) or equate(d, e) for d, e in pairs):
        raise error(f"{tuple(shape)} does not broadcast to the shape {data.shape}")
    total = sum(data, (*range(lead), *of_one), dtype=data.dtype)
    if not of_one:
        return total
    kept = [n - lead for n in range(lead, data.ndim) if n not in of_one]
    return te.compute(shape, lambda *i: total(*(i[n] for n in kept)), name="collapse_sum")


@operator(
    shapes="(…) -> (…r)", section=SECTION, reference=_wide(np.prod), cases=[*reduction_cases(), *_TYPED], tolerance=32
)
def prod(
    x: te.Tensor, axis: Axes = None, keepdims: bool = False, dtype: Any = None, acc_dtype: Any = None
) -> te.Tensor:
    """The product over ``axis`` (one, several, all for None); of no elements 1. For types see ``sum``.

    >>> from tir import ops, te
    >>> ops.prod(te.placeholder((4, 3), "int8"), axis=0, keepdims=True)
    Tensor(prod, (1, 3), int64)
    """
    return _accumulated("prod", te.prod, 1, x, axis, keepdims, dtype, acc_dtype)


# ---------------------------------------------------------------- extremes, logic


def plain_reference(reference: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy by the parameters of a reduction."""
    return lambda x, axis=None, keepdims=False: reference(x, axis=axis, keepdims=keepdims)


def _selected(name: str, reducer: Reducer, x: Tensor, axis: Any, keepdims: Any) -> Tensor:
    over = reduction(x, axis, keepdims)
    if not builtins.any(is_const(extent, 0) for extent in over.shape):
        over.require_elements()
    return te.compute(over.shape, lambda *i: over.of(reducer, lambda at: x[at], i, const(0, x.dtype)), name=name)


@operator(
    shapes="(…) integer|float -> (…r)", section=SECTION, reference=plain_reference(np.max),
    cases=reduction_cases(empty=False),
)  # fmt: skip
def max(x: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """The largest element over ``axis`` (one, several, all for None); nan if one is nan. Of no elements an error.

    >>> from tir import ops, te
    >>> ops.max(te.placeholder((4, 3), "int8"))
    Tensor(max, (), int8)
    """
    return _selected("max", maximum_reducer, x, axis, keepdims)


@operator(
    shapes="(…) integer|float -> (…r)", section=SECTION, reference=plain_reference(np.min),
    cases=reduction_cases(empty=False),
)  # fmt: skip
def min(x: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """The least element over ``axis`` (one, several, all for None); nan if one is nan. Of no elements an error.

    >>> from tir import ops, te
    >>> ops.min(te.placeholder((4, 3), "int8"), axis=1)
    Tensor(min, (4,), int8)
    """
    return _selected("min", minimum_reducer, x, axis, keepdims)


def _tested(name: str, reducer: Reducer, empty: Expr, x: Tensor, axis: Any, keepdims: Any) -> Tensor:
    over = reduction(x, axis, keepdims)
    return te.compute(over.shape, lambda *i: over.of(reducer, lambda at: _is_true(x[at]), i, empty), name=name)


def _is_true(element: Any) -> Expr:
    return element if element.dtype.is_bool else compare(NE, element, const(0, element.dtype))


@operator(
    unstated=BY_AXES, section=SECTION, reference=plain_reference(np.all),
    cases=reduction_cases(("bool", "integer", "float")),
)  # fmt: skip
def all(x: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Whether all elements over ``axis`` are true, or not 0; of no elements true.

    >>> from tir import ops, te
    >>> ops.all(te.placeholder((4, 3), "bool"), axis=0)
    Tensor(all, (3,), bool)
    """
    return _tested("all", _all, TRUE, x, axis, keepdims)


@operator(
    unstated=BY_AXES, section=SECTION, reference=plain_reference(np.any),
    cases=reduction_cases(("bool", "integer", "float")),
)  # fmt: skip
def any(x: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Whether some element over ``axis`` is true, or not 0; of no elements false.

    >>> from tir import ops, te
    >>> ops.any(te.placeholder((4, 3), "float32"))
    Tensor(any, (), bool)
    """
    return _tested("any", _any, FALSE, x, axis, keepdims)


@operator(
    unstated=BY_AXES, section=SECTION, reference=plain_reference(np.count_nonzero),
    cases=[*reduction_cases(("bool", "integer", "float")), case(arg((9, 3), "float32", "nonfinite"), axis=0)],
)  # fmt: skip
def count_nonzero(x: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """How many elements over ``axis`` (one, several, all for None) are true, or not 0; nan is not 0. The type is int64.

    >>> from tir import ops, te
    >>> ops.count_nonzero(te.placeholder((4, 3), "float32"), axis=-1)
    Tensor(count_nonzero, (4,), int64)
    """
    over = reduction(x, axis, keepdims)
    result = DType("int64")
    counted = over.counting_type(result)

    def element(*indices: Any) -> Any:
        number = over.of(te.sum, lambda at: cast(counted, _is_true(x[at])), indices, const(0, counted))
        return cast(result, number)

    return te.compute(over.shape, element, name="count_nonzero")
