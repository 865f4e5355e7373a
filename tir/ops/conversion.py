"""Conversions of elements, selections, constants of a tensor's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import Select, cast, const, te
from ..te import Tensor, data_type, error
from .cases import arg, case
from .element_places import integer
from .operands import Operand, as_type, common_type, elementwise, require_kind, values_of
from .registry import operator
from .shapes import axis_of

SECTION = "elementwise"


@operator(
    shapes="(…) -> (…)", section=SECTION,
    reference=lambda x, dtype: x.astype(dtype) if dtype in np.sctypeDict or dtype == "bool" else x, aliases=("cast",),
    cases=[
        case(arg((2, 3), "float32"), "int8"), case(arg((14,), "float64", "special"), "float32"),
        case(arg((14,), "float32", "special"), "float16"), case(arg((14,), "float32", "special"), "bfloat16"),
        case(arg((), "bfloat16"), "float64"), case(arg(("n", 2), "int64", "special"), "uint8"),
        case(arg((0, 2), "uint8"), "int32"), case(arg((14,), "float32", "special"), "bool"),
        case(arg((5,), "int8"), "bool"), case(arg((5,), "bool"), "float16"), case(arg((5,), "int32"), "float32"),
        case(arg((5,), "int32"), "int32"),
    ],
)  # fmt: skip
def astype(x: te.Tensor, dtype: Any) -> te.Tensor:
    """``x`` converted to ``dtype``.

    Floats become integers toward 0, and integers wrap around; a float that is out of the integer's range has no defined
    value. What is not 0 is true, nan included.
    """
    want = data_type(dtype)
    return elementwise("astype", lambda e: cast(want, e), values_of(x))


def _numpy_unpack_bits(x: Any, bits: int, axis: int = -1) -> Any:
    shifts = np.arange(0, 8 * x.itemsize, bits).astype(x.dtype)
    parts = np.moveaxis(x, axis, -1)[..., None] >> shifts & x.dtype.type((1 << bits) - 1)
    flat = (*parts.shape[:-2], parts.shape[-2] * len(shifts))
    return np.moveaxis(parts.reshape(flat), -1, axis)


@operator(
    gives=(2, 6), shapes="(…, _@axis, …) integer -> (…, _@axis, …)", section=SECTION, reference=_numpy_unpack_bits,
    cases=[
        case(arg((2, 3), "uint8"), 4), case(arg((3, 2, 2), "uint8"), 4, 1), case(arg(("n", 3), "uint8"), 2, -1),
        case(arg((2,), "uint8"), 1, 0), case(arg((2, 2), "uint32"), 8, 0), case(arg((2, 2), "uint16"), 16),
        case(arg((0, 2), "uint8"), 4),
    ],
)  # fmt: skip
def unpack_bits(x: te.Tensor, bits: int, axis: int = -1) -> te.Tensor:
    """The parts of ``bits`` bits of unsigned integers, one after another along ``axis``, the lowest part first."""
    size = integer(bits, "a number of bits")
    if x.dtype.code != "uint" or size < 1 or x.dtype.bits % size:
        raise error(f"{x.dtype} has no whole parts of {size} bits", "unsigned integers, and bits that divide theirs")
    at, count = axis_of(axis, x.ndim), x.dtype.bits // size

    def part(*i: Any) -> Any:
        whole = x(*i[:at], i[at] // count, *i[at + 1 :])
        return (whole >> cast(x.dtype, i[at] % count * size)) & const((1 << size) - 1, x.dtype)

    return te.compute((*x.shape[:at], x.shape[at] * count, *x.shape[at + 1 :]), part, name="unpack_bits")


@operator(
    shapes="(…) -> (…)", section=SECTION,
    reference=lambda x, dtype: x.astype(np.float32).view(dtype) if x.dtype == np.float64 else x.view(dtype),
    aliases=("view",),
    cases=[
        case(arg((2, 3), "float32"), "int32"), case(arg((3,), "uint32"), "int32"),
        case(arg(("n",), "int64", [0, 1, 2**62, -(2**62), 5]), "float64"),
        case(arg((3,), "uint8", [0, 1, 128]), "int8"),
    ],
)  # fmt: skip
def reinterpret(x: te.Tensor, dtype: Any) -> te.Tensor:
    """The bits of ``x`` as numbers of ``dtype``, which is as wide."""
    want = data_type(dtype)
    if want.bits != x.dtype.bits or want.is_bool is not x.dtype.is_bool:
        raise error(f"{x.dtype} has {x.dtype.bits} bits, and {want} {want.bits}", "a type of the same size")
    if want is x.dtype:
        return elementwise("reinterpret", lambda e: e, values_of(x))
    return elementwise("reinterpret", lambda e: te.reinterpret(want, e), values_of(x))


# ---------------------------------------------------------------- selections


@operator(
    shapes="(…*), (…*), (…*) -> (…*)", section=SECTION,
    reference=lambda x, min=None, max=None: x if min is None and max is None else np.clip(x, min, max),
    cases=[
        case(arg((17,), "float32", "special"), -1, 2.5), case(arg((2, 3), "int8"), -2, 3),
        case(arg(("n", 3), "float64"), arg((3,), "float64", "small"), None), case(arg((4,), "float16"), max=0),
        case(arg((2, 0), "uint8"), min=1), case(arg((), "bfloat16"), -1, 1), case(arg((2, 3), "float32")),
    ],
)  # fmt: skip
def clip(x: te.Tensor, min: Operand | None = None, max: Operand | None = None) -> te.Tensor:
    """``x`` with values below ``min`` and above ``max`` replaced by them; nan stays.

    The limits are numbers, or tensors that broadcast with ``x``; None is no limit. Where ``min`` is above ``max``, it is
    ``max``.
    """
    limits = [values_of(v) for v in (min, max) if v is not None]
    operands = [values_of(x), *limits]
    dtype = common_type(operands)
    require_kind(dtype, ("integer", "float"))

    def formula(e: Any, *bounds: Any) -> Any:
        rest = list(bounds)
        low = e if min is None else te.max(e, rest.pop(0))
        return low if max is None else te.min(low, rest.pop(0))

    return elementwise("clip", formula, *operands, dtype=dtype)


@operator(
    shapes="(…*), (…*), (…*) -> (…*)", section=SECTION, reference=np.where,
    cases=[
        case(arg((3, 1), "bool"), arg((4,), "float32"), arg((3, 4), "float32", "special")),
        case(arg((), "bool"), arg(("n",), "int8"), 3), case(arg((2, 0), "bool"), 1.5, arg((), "float64")),
        case(arg((5,), "bool"), arg((1,), "bfloat16"), arg((5,), "bfloat16")),
        case(arg((2, 5), "bool"), arg((5,), "bool"), False),
        case(arg((3,), "bool"), arg((3,), "int8"), arg((3,), "uint8")),
    ],
)  # fmt: skip
def where(condition: te.Tensor, x: Operand, y: Operand) -> te.Tensor:
    """``x`` where ``condition``, a tensor of bools, is true, and ``y`` where it is not. All three broadcast.

    >>> from tir import ops, te
    >>> ops.where(te.placeholder((4, 1), "bool"), te.placeholder((3,)), 0)
    Tensor(where, (4, 3), float32)
    """
    require_kind(condition.dtype, ("bool",), "condition")
    choices = values_of(x), values_of(y)
    dtype = common_type(choices)

    def formula(c: Any, yes: Any, no: Any) -> Any:
        return Select(c, as_type(yes, dtype), as_type(no, dtype))

    return elementwise("where", formula, values_of(condition), *choices)


# ---------------------------------------------------------------- constants, sums of several


def _dtype_cases(*values: Any) -> Any:
    return [
        case(arg((2, 3), "float32"), *values),
        case(arg(("n", 2), "int8"), *values),
        case(arg((), "bfloat16"), *values),
        case(arg((0, 3), "bool"), *values, dtype="int64"),
    ]


def _like(x: Tensor, value: Any, dtype: Any, name: str) -> Tensor:
    want = x.dtype if dtype is None else data_type(dtype)
    filled = values_of(value)
    if filled.shape:
        raise error(f"the value is a number or a tensor of 0 dimensions, and has shape {filled.shape}")
    return te.compute(x.shape, lambda *_: as_type(filled.read(()), want), name=name)


@operator(
    shapes="(…), () -> (…)", section=SECTION, reference=lambda x, value, dtype=None: np.full_like(x, value, dtype),
    cases=_dtype_cases(3),
)  # fmt: skip
def full_like(x: te.Tensor, value: Operand, dtype: Any = None) -> te.Tensor:
    """A tensor of the shape of ``x``, and of its type or ``dtype``, with ``value`` everywhere."""
    return _like(x, value, dtype, "full_like")


@operator(
    shapes="(…) -> (…)", section=SECTION, reference=lambda x, dtype=None: np.zeros_like(x, dtype), cases=_dtype_cases()
)
def zeros_like(x: te.Tensor, dtype: Any = None) -> te.Tensor:
    """A tensor of the shape of ``x``, and of its type or ``dtype``, with 0 everywhere."""
    return _like(x, 0, dtype, "zeros_like")


@operator(
    shapes="(…) -> (…)", section=SECTION, reference=lambda x, dtype=None: np.ones_like(x, dtype), cases=_dtype_cases()
)
def ones_like(x: te.Tensor, dtype: Any = None) -> te.Tensor:
    """A tensor of the shape of ``x``, and of its type or ``dtype``, with 1 everywhere."""
    return _like(x, 1, dtype, "ones_like")


@operator(
    shapes="[(…*)] -> (…*)", section=SECTION, reference=sum, aliases=("elemwise_sum",),
    cases=[
        case([arg((3, 1), "float32"), arg((4,), "float64"), arg((), "float32")]), case([arg(("n",), "int8")]),
        case([arg((2,), "int8"), arg((2,), "int16")]),
    ],
)  # fmt: skip
def add_n(tensors: Sequence[te.Tensor]) -> te.Tensor:
    """The sum of tensors that broadcast, in their common type."""
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise error(f"add_n takes a list of tensors, not {tensors!r}", "add_n([x, y])")
    operands = [values_of(t) for t in tensors]
    dtype = common_type(operands)
    require_kind(dtype, ("integer", "float"))
    return elementwise("add_n", lambda first, *rest: sum(rest, first), *operands, dtype=dtype)


def _fixed_point_product(x: Any, multiplier: int, shift: int) -> Any:
    products = [(int(v) * multiplier * 2 ** (shift + 33) + (1 << 63)) >> 64 for v in x.ravel()]
    return np.array(products, np.int64).astype("int32").reshape(x.shape)


@operator(
    shapes="(…) -> (…)", section=SECTION, reference=_fixed_point_product,
    cases=[
        case(arg((3, 4), "int32"), 1395864371, 2),
        case(arg((5,), "int32", np.array([-100000, 7, 123456, -2, 2**30])), 1395864371, -3),
        case(arg(("n",), "int32"), 1 << 30, 1),
    ],
)  # fmt: skip
def fixed_point_multiply(x: te.Tensor, multiplier: int, shift: int) -> te.Tensor:
    """``x * multiplier * 2 ** (shift - 31)`` of int32, rounded, halves up: a product with a number in fixed point."""
    if x.dtype != "int32":
        raise error(f"a product in fixed point is of int32, but `{x.name}` is {x.dtype}", "cast it first")
    factors = [const(n, "int32") for n in (multiplier, 31, shift)]
    return te.compute(x.shape, lambda *i: te.q_multiply_shift(x[i], *factors), name="fixed_point_multiply")
