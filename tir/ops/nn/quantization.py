"""Quantization: integers that stand for floats, ``(q - zero_point) * scale``.

Rounding is to the nearest, ties to even, and integers that are too large or too small saturate, as in ONNX. NaN has no
integer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import DType, Expr, const, is_const, te
from ...te import Tensor, data_type, error
from ..element_places import constant
from ..promotion import wide
from ..shapes import axis_of
from ._operator import arg, case, nn_operator
from .checks import require_extent, require_float, require_tensor


class _Parameter:
    """A scale or a zero point: a number, a tensor of one element, one element for each index of ``axis``; or one for each
    block of ``block_size`` elements along it, where the tensor has as many dimensions as the data.
    """

    def __init__(self, value: Any, data: Tensor, axis: int, block_size: int, what: str):
        self.value, self.axis, self.block_size = value, axis_of(axis, data.ndim) if data.ndim else 0, block_size
        if not isinstance(value, Tensor):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise error(f"the {what} is {value!r}", "a number or a tensor")
        elif block_size:
            self._check_blocks(value, data, what)
        elif value.ndim > min(1, data.ndim) and not (value.ndim == 1 and constant(value.shape[0]) == 1):
            each = f", or ({data.shape[self.axis]!r},) for axis {axis}" if data.ndim else ""
            raise error(
                f"the {what} `{value.name}` has shape {value.shape}",
                f"(), (1,){each}; more dimensions with block_size alone",
            )
        elif value.ndim == 1 and constant(value.shape[0]) != 1:
            require_extent(value.shape[0], data.shape[self.axis], f"the {what} `{value.name}` for axis {axis}")

    def _check_blocks(self, value: Tensor, data: Tensor, what: str) -> None:
        require_tensor(value, f"the {what} of blocks", data.ndim)
        for a, (own, whole) in enumerate(zip(value.shape, data.shape)):
            expected = (whole + self.block_size - 1) // self.block_size if a == self.axis else whole
            require_extent(own, expected, f"axis {a} of the {what} `{value.name}` of shape {value.shape}")

    def at(self, indices: Sequence[Any], dtype: DType) -> Expr:
        """The element for that of the data at ``indices``."""
        if not isinstance(self.value, Tensor):
            return const(self.value, dtype)
        if self.block_size:
            place = [i // self.block_size if a == self.axis else i for a, i in enumerate(indices)]
            return self.value(*place).astype(dtype)
        own = [] if self.value.ndim == 0 else [0 if constant(self.value.shape[0]) == 1 else indices[self.axis]]
        return self.value(*own).astype(dtype)


def _integer_type(dtype: Any, what: str) -> DType:
    made = data_type(dtype)
    if not made.is_int or made.bits > 32:
        raise error(f"{what} is {made}", "an integer type of up to 32 bits: int8, uint8, int16 …")
    return made


def _computed_in(data: DType, integer: DType) -> DType:
    """The type that integers are rounded in: it has all of them."""
    return DType("float64") if integer.bits > 16 else wide(data)


def _rounded(value: Expr, zero_point: Expr, dtype: DType) -> Expr:
    """``value`` as an integer of ``dtype``, still in the type of ``value``."""
    low, high = const(dtype.min_value, value.dtype), const(dtype.max_value, value.dtype)
    rounded = te.nearbyint(value)
    return te.min(te.max(rounded if is_const(zero_point, 0) else rounded + zero_point, low), high)


def _axis_case(dtype: str = "int8") -> Any:
    return case(arg((2, 3, 4)), arg((3,), "float32", "positive"), arg((3,), dtype), 1, dtype)


def _parameter_reference(value: Any, x: np.ndarray, axis: int, block_size: int = 0) -> Any:
    if isinstance(value, (int, float)) or value.size == 1:
        return np.float64(value if isinstance(value, (int, float)) else value.reshape(()))
    if block_size:
        return np.repeat(value.astype(float), block_size, axis)[tuple(map(slice, x.shape))]
    return value.astype(float).reshape([n if a == axis % x.ndim else 1 for a, n in enumerate(x.shape)])


def _quantize_reference(
    x: Any, scale: Any, zero_point: Any = 0, axis: int = -1, out_dtype: str = "int8", block_size: int = 0
) -> np.ndarray:
    scales, zeros = (_parameter_reference(p, x, axis, block_size) for p in (scale, zero_point))
    kind = np.iinfo(out_dtype)
    return np.clip(np.rint(x / scales) + zeros, kind.min, kind.max).astype(out_dtype)


@nn_operator(
    shapes="(…) -> (…)", reference=_quantize_reference,
    cases=(
        case(arg((9,), values=[0.5, 1.5, 2.5, -0.5, -1.5, 300.0, -300.0, math.inf, -math.inf]), 1.0, 0),
        case(arg((2, 5)), 0.25, 3, out_dtype="uint8"), _axis_case(), _axis_case("uint8"),
        case(arg((2, 3)), arg((), "float32", "positive"), arg((), "int8")),
        case(arg((2, 3), "float16"), 0.5, 1, out_dtype="int16"),
        case(arg((3,), values=[1e12, -1e12, 5.0]), 1.0, out_dtype="int32"),
        case(arg((2, 5)), arg((2, 3), "float32", "positive"), arg((2, 3), "int8"), 1, block_size=2),
    ),
)  # fmt: skip
def quantize(
    data: Tensor, scale: Any, zero_point: Any = 0, axis: int = -1, out_dtype: Any = "int8", block_size: int = 0
) -> Tensor:
    """``round(data / scale) + zero_point``, saturated to ``out_dtype``; ties are rounded to even.

    ``scale`` and ``zero_point`` are numbers, tensors of one element, of one for each index of ``axis``, or, with
    ``block_size``, of one for each block of so many elements along ``axis``. Raises ``TensorExpressionError`` for other
    shapes, for data that is not floating, and for a type that is no integer's.
    """
    x, out = require_float(data, "the data of quantize"), _integer_type(out_dtype, "out_dtype of quantize")
    scales = _Parameter(scale, x, axis, block_size, "scale of quantize")
    zeros = _Parameter(zero_point, x, axis, block_size, "zero_point of quantize")
    inner = _computed_in(x.dtype, out)

    def element(*i: Any) -> Expr:
        return _rounded(x(*i).astype(inner) / scales.at(i, inner), zeros.at(i, inner), out).astype(out)

    return te.compute(x.shape, element, name="quantize")


def _dequantize_reference(
    x: Any, scale: Any, zero_point: Any = 0, axis: int = -1, out_dtype: str = "float32", block_size: int = 0
) -> np.ndarray:
    scales, zeros = (_parameter_reference(p, x, axis, block_size) for p in (scale, zero_point))
    return (x.astype(float) - zeros) * scales


@nn_operator(
    shapes="(…) -> (…)", reference=_dequantize_reference,
    cases=(
        case(arg((2, 5), "int8"), 0.25, 3), case(arg((2, 3, 4), "uint8"), arg((3,), "float32"), arg((3,), "uint8"), 1),
        case(arg((2, 3), "int8", "special"), arg((1,), "float32"), arg((1,), "int8"), out_dtype="float16"),
        case(arg((3,), "int32"), arg((), "float32")),
        case(arg((2, 5), "int8"), arg((2, 3)), arg((2, 3), "int8"), 1, block_size=2),
    ),
    tolerance=64,
)  # fmt: skip
def dequantize(
    data: Tensor, scale: Any, zero_point: Any = 0, axis: int = -1, out_dtype: Any = "float32", block_size: int = 0
) -> Tensor:
    """``(data - zero_point) * scale`` as ``out_dtype``; the parameters are those of :func:`quantize`.

    The difference is of 32-bit integers, so it is exact for narrower data. Raises ``TensorExpressionError`` for other
    shapes, for data that is no integer, and for a type that is not floating.

    >>> from tir import te, topi
    >>> topi.nn.dequantize(te.placeholder((2, 3), "uint8", name="q"), 0.1, 128)
    Tensor(dequantize, (2, 3), float32)
    """
    x, out = require_tensor(data, "the data of dequantize"), data_type(out_dtype)
    if not x.dtype.is_int or not out.is_float:
        raise error(f"dequantize makes {out} of {x.dtype}", "a floating type of an integer type")
    scales = _Parameter(scale, x, axis, block_size, "scale of dequantize")
    zeros = _Parameter(zero_point, x, axis, block_size, "zero_point of dequantize")
    inner, integer = wide(out), x.dtype if x.dtype.bits > 32 else DType("int32")

    def element(*i: Any) -> Expr:
        difference = x(*i).astype(integer) - zeros.at(i, integer)
        return (difference.astype(inner) * scales.at(i, inner)).astype(out)

    return te.compute(x.shape, element, name="dequantize")


@nn_operator(
    shapes="(…) -> (…)",
    reference=lambda x, in_scale, in_zero, out_scale, out_zero, axis=-1, out_dtype="int8": _quantize_reference(
        _dequantize_reference(x, in_scale, in_zero, axis), out_scale, out_zero, axis, out_dtype
    ),
    cases=(
        case(arg((2, 5), "int32"), 0.25, 1, 0.5, 3),
        case(arg((2, 3, 4), "int32"), arg((3,), "float32", "positive"), 0, 0.75, 10, 1, "uint8"),
        case(arg((4,), "int32", [1 << 20, -(1 << 20), 7, 9]), 0.5, 0, 1.0, 0),
    ),
)
def requantize(
    data: Tensor,
    input_scale: Any,
    input_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    axis: int = -1,
    out_dtype: Any = "int8",
) -> Tensor:
    """Integers of one scale and zero point as those of another: ``quantize(dequantize(data))``, in float32.

    >>> from tir import te, topi
    >>> topi.nn.requantize(te.placeholder((2, 3), "int32", name="q"), 0.01, 0, 0.1, 0)
    Tensor(quantize, (2, 3), int8)
    """
    return quantize(
        dequantize(data, input_scale, input_zero_point, axis), output_scale, output_zero_point, axis, out_dtype
    )


def _simulated_type(dtype: Any, what: str) -> DType | None:
    return None if dtype == "disable" else _integer_type(dtype, what)


def _simulated_reference(x: Any, out_dtype: str, scale: Any = None, zero_point: Any = None, axis: int = -1) -> Any:
    if out_dtype == "disable":
        return x
    scale, zero_point = (default if p is None else p for p, default in ((scale, 1), (zero_point, 0)))
    return _quantize_reference(x, scale, zero_point, axis, out_dtype).astype(float)


_SIMULATED = (
    case(arg((2, 5)), "int8", 0.25, 3),
    case(arg((2, 3, 4)), "uint8", arg((3,), "float32", "positive"), arg((3,), "int32"), 1),
    case(arg((2, 5)), "disable"),
)


@nn_operator(gives=(2, 5), shapes="(…) -> (…)", reference=_simulated_reference, cases=_SIMULATED)
def simulated_quantize(
    data: Tensor, out_dtype: Any, output_scale: Any = None, output_zero_point: Any = None, axis: int = -1
) -> Tensor:
    """The integers that :func:`quantize` gives, in the type of ``data``; ``data`` for ``out_dtype="disable"``."""
    x, out = require_float(data, "the data"), _simulated_type(out_dtype, "out_dtype of simulated_quantize")
    scales = _Parameter(1.0 if output_scale is None else output_scale, x, axis, 0, "output_scale")
    zeros = _Parameter(0 if output_zero_point is None else output_zero_point, x, axis, 0, "output_zero_point")
    inner = wide(x.dtype) if out is None else _computed_in(x.dtype, out)

    def element(*i: Any) -> Expr:
        if out is None:
            return x(*i)
        return _rounded(x(*i).astype(inner) / scales.at(i, inner), zeros.at(i, inner), out).astype(x.dtype)

    return te.compute(x.shape, element, name="simulated_quantize")


@nn_operator(
    gives=(2, 5),
    shapes="(…) -> (…)",
    reference=lambda x, in_dtype, scale=1, zero_point=0, axis=-1: (
        x if in_dtype == "disable" else _dequantize_reference(x, scale, zero_point, axis)
    ),
    cases=_SIMULATED,
)
def simulated_dequantize(
    data: Tensor, in_dtype: Any, input_scale: Any = None, input_zero_point: Any = None, axis: int = -1
) -> Tensor:
    """``(data - zero_point) * scale`` of integers in a floating type; ``data`` for ``in_dtype="disable"``."""
    x, kind = require_float(data, "the data"), _simulated_type(in_dtype, "in_dtype of simulated_dequantize")
    scales = _Parameter(1.0 if input_scale is None else input_scale, x, axis, 0, "input_scale")
    zeros = _Parameter(0 if input_zero_point is None else input_zero_point, x, axis, 0, "input_zero_point")
    inner = wide(x.dtype)

    def element(*i: Any) -> Expr:
        if kind is None:
            return x(*i)
        return ((x(*i).astype(inner) - zeros.at(i, inner)) * scales.at(i, inner)).astype(x.dtype)

    return te.compute(x.shape, element, name="simulated_dequantize")


@nn_operator(
    shapes="(…) -> (…)",
    reference=lambda x, scale, zero_point=0, axis=-1, dtype="int8": _dequantize_reference(
        _quantize_reference(x, scale, zero_point, axis, dtype), scale, zero_point, axis
    ),
    cases=(
        case(arg((2, 5)), 0.25, 3),
        case(arg((2, 3, 4)), arg((3,), "float32", "positive"), arg((3,), "int8"), 1),
        case(arg((5,), values=[100.0, -100.0, 0.25, 0.75, 0.1]), 0.5, 0),
    ),
)
def fake_quantize(data: Tensor, scale: Any, zero_point: Any = 0, axis: int = -1, dtype: Any = "int8") -> Tensor:
    """``data`` as it is after :func:`quantize` and :func:`dequantize`: what training for integers computes with."""
    return simulated_dequantize(
        simulated_quantize(data, dtype, scale, zero_point, axis), dtype, scale, zero_point, axis
    )
