"""Rows of ONNX operators on elements."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ..dtype import DType
from ..graph import Value
from .making import Unsupported, axis_of
from .onnx_table import Call, dtype_of, of_floats, rounded_once, row

# ONNX's name -> ours: one tensor, no attributes
_UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "BitwiseNot": "bitwise_invert", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp",
    "Floor": "floor", "HardSwish": "nn.hard_swish", "IsNaN": "isnan", "Log": "log", "Mish": "nn.mish", "Neg": "negative",
    "Not": "logical_not", "Reciprocal": "reciprocal", "Relu": "nn.relu", "Round": "round", "Sigmoid": "sigmoid",
    "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Softplus": "nn.softplus", "Softsign": "nn.softsign", "Sqrt": "sqrt",
    "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
# two tensors that broadcast
_BINARY = {
    "Add": "add", "And": "logical_and", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
    "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less", "LessOrEqual": "less_equal",
    "Mul": "multiply", "Or": "logical_or", "Sub": "subtract", "Xor": "logical_xor",
}  # fmt: skip
# some tensors, and attributes: ours, since when, how many tensors, and (ONNX's attribute, our parameter, default)
_PARAMETRIC: dict[str, tuple[str, int, int, tuple[tuple[str, str, Any], ...]]] = {
    "Celu": ("nn.celu", 6, 1, (("alpha", "alpha", 1.0),)),
    "Elu": ("nn.elu", 6, 1, (("alpha", "alpha", 1.0),)),
    "Gelu": ("nn.gelu", 20, 1, (("approximate", "approximate", "none"),)),
    "HardSigmoid": ("nn.hard_sigmoid", 6, 1, (("alpha", "alpha", 0.2), ("beta", "beta", 0.5))),
    "LeakyRelu": ("nn.leaky_relu", 6, 1, (("alpha", "alpha", 0.01),)),
    "MatMul": ("matmul", 1, 2, ()),
    "ReverseSequence": ("reverse_sequence", 10, 2, (("time_axis", "seq_axis", 0), ("batch_axis", "batch_axis", 1))),
    "Selu": (
        "nn.selu", 6, 1, (("alpha", "alpha", 1.67326319217681884765625), ("gamma", "gamma", 1.05070102214813232421875)),
    ),
    "ThresholdedRelu": ("nn.thresholded_relu", 6, 1, (("alpha", "threshold", 1.0),)),
    "Where": ("where", 9, 3, ()),
}  # fmt: skip


def _rows_of_tables() -> None:
    for name, ours in _UNARY.items():
        row(name, 6 if name in ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Relu", "Sqrt") else 1)(
            lambda c, ours=ours: c.op(ours, c[0])
        )
    for name, ours in _BINARY.items():
        row(name)(lambda c, ours=ours: c.op(ours, c[0], _second(c)))
    for name, (ours, since, count, attributes) in _PARAMETRIC.items():
        row(name, since)(
            lambda c, ours=ours, count=count, attributes=attributes: c.op(
                ours, *(c[n] for n in range(count)), **{p: c.attribute(theirs, d) for theirs, p, d in attributes}
            )
        )


_rows_of_tables()


def _second(c: Call) -> Value:
    """The second tensor. Before version 7 its axes are, from ``axis`` on, those of the first; since then they are the last ones."""
    value, axis = c[1], c.attribute("axis")
    if c.version >= 7 or axis is None:
        return value
    behind = len(c[0].shape) - axis_of(axis, len(c[0].shape)) - len(value.shape)
    return c.op("reshape", value, (*value.shape, *[1] * max(behind, 0)))


@row("Identity")
@row("Dropout")
def _identity(c: Call) -> Any:
    if c.operator == "Dropout" and c.version >= 12 and (training := c.constant(2, "training mode")) is not None:
        ratio = c.constant(1, "ratio")
        if training.any() and (ratio is None or ratio.any()):
            raise Unsupported("it is in training mode, which draws random numbers")
    if len(c.outputs) == 1:
        return c[0]
    return c[0], c.op("ones_like", c[0], dtype="bool" if c.version >= 10 else c[0].dtype)


@row("Shrink", 9)
@of_floats
def _shrink(c: Call) -> Any:
    return c.op("nn.shrink", c[0], float(c.attribute("lambd", 0.5)), float(c.attribute("bias", 0.0)))


@row("Div")
def _div(c: Call) -> Any:
    if c[0].dtype.is_float:
        return c.op("divide", c[0], _second(c))
    by = c.known(c[1])
    is_rounded_down = c[0] in c.builder.known and by is not None and all(n > 0 for n in by.flat)  # of sizes
    return c.op("floor_divide" if is_rounded_down else "trunc_divide", c[0], _second(c))


@row("Mod", 10)
def _mod(c: Call) -> Any:
    return c.op("fmod" if c.attribute("fmod", 0) else "remainder", c[0], c[1])


@row("Pow")
def _pow(c: Call) -> Any:
    base, exponent = c[0], _second(c)
    known = c.known(exponent)
    if known is not None and known.size == 1 and len(exponent.shape) <= len(base.shape) and float(known.item()) == 2:
        return c.op("multiply", base, base)
    if base.dtype != exponent.dtype:
        wide = exponent if exponent.dtype.is_float else base
        return c.op(
            "astype", c.op("pow", c.op("astype", base, wide.dtype), c.op("astype", exponent, wide.dtype)), base.dtype
        )
    return c.op("pow", base, exponent)


@row("BitShift", 11)
def _bit_shift(c: Call) -> Any:
    left, by = c.attribute("direction") == "LEFT", c[1]
    if by.dtype.code == "int":  # by a negative number: all bits
        by = c.op("where", c.op("less", by, 0), by.dtype.bits, by)
    return c.op("bitwise_left_shift" if left else "bitwise_right_shift", c[0], by)


@row("PRelu", 6)
def _prelu(c: Call) -> Any:
    slope = c[1]
    if c.version < 7 and len(slope.shape) == 1:  # one each channel
        slope = c.op("reshape", slope, (slope.elements, *[1] * (len(c[0].shape) - 2)))
    return c.op("where", c.op("less", c[0], _zero(c[0])), c.op("multiply", c[0], slope), c[0])


def _zero(value: Value) -> float | int:
    return 0.0 if value.dtype.is_float else 0


@row("Min", 6)
@row("Max", 6)
@row("Sum", 6)
@row("Mean", 6)
@rounded_once
def _several(c: Call) -> Any:
    ours = {"Min": "minimum", "Max": "maximum"}.get(c.operator, "add")
    total = reduce(lambda a, b: c.op(ours, a, b), [c[n] for n in range(len(c.inputs))])
    return c.op("divide", total, float(len(c.inputs))) if c.operator == "Mean" else total


@row("Clip", 6)
def _clip_by_attributes(c: Call) -> Any:
    bounds = {k: c.attribute(k) for k in ("min", "max") if c.attribute(k) is not None}
    return c.op("clip", c[0], **bounds) if bounds else c[0]


@row("Clip", 11)
def _clip(c: Call) -> Any:
    low, high = c.get(1), c.get(2)
    made = c[0] if low is None else c.op("maximum", c[0], _scalar(c, low))
    return made if high is None else c.op("minimum", made, _scalar(c, high))


def _scalar(c: Call, value: Value) -> Value:
    return c.op("reshape", value, ()) if value.shape else value


@row("IsInf", 10)
def _isinf(c: Call) -> Any:
    found = c.op("isinf", c[0])
    for name, sign in (("detect_negative", "less"), ("detect_positive", "greater")):
        if not c.attribute(name, 1):
            found = c.op("logical_and", found, c.op("logical_not", c.op(sign, c[0], 0.0)))
    return found


@row("Cast", 6)
def _cast(c: Call) -> Any:
    return _converted(c, c[0], dtype_of(c.attribute("to")))


def _converted(c: Call, x: Value, kind: DType) -> Value:
    """``x`` as ``kind``; to floats of 8 bits, what is too large becomes the largest number, unless the node says otherwise."""
    if kind.code == "float8_e8m0fnu":
        return _power_of_two(c, x, kind)
    if kind.code.startswith("float8") and x.dtype.is_float and c.attribute("saturate", 1):
        most = float(kind.max_value)
        x = c.op("where", c.op("greater", x, most), most, x)
        x = c.op("where", c.op("less", x, -most), -most, x)
    return c.op("astype", x, kind)


def _power_of_two(c: Call, x: Value, kind: DType) -> Value:
    """Positive numbers as powers of two, of which only the exponent is kept: rounded up, unless the node says otherwise."""
    mode = c.attribute("round_mode", "up")
    if mode not in ("up", "down", "nearest"):
        raise Unsupported(f"rounding {mode!r}")
    bits = c.op("reinterpret", c.op("astype", x, "float32"), "int32")
    behind = {"up": (1 << 23) - 1, "down": 0, "nearest": 1 << 22}[mode]  # added to the part after the point, it carries
    exponent = c.op("bitwise_right_shift", c.op("add", c.op("bitwise_and", bits, 0x7FFFFFFF), behind), 23)
    exponent = c.op("minimum", exponent, 254) if c.attribute("saturate", 1) else exponent
    exponent = c.op("where", c.op("isnan", c.op("astype", x, "float32")), 255, exponent)
    return c.op("reinterpret", c.op("astype", exponent, "uint8"), kind)


@row("CastLike", 15)
def _cast_like(c: Call) -> Any:
    return _converted(c, c[0], c[1].dtype)


@row("Swish", 24)
def _swish(c: Call) -> Any:
    return c.op("multiply", c[0], c.op("sigmoid", c.op("multiply", c[0], float(c.attribute("alpha", 1.0)))))


@row("QuantizeLinear", 10)
@row("DequantizeLinear", 10)
@row("QuantizeLinear", domain="com.microsoft")
@row("DequantizeLinear", domain="com.microsoft")
def _quantize(c: Call) -> Any:
    x, scale, zero = c[0], c[1], c.get(2)
    block = c.attribute("block_size", 0)
    axis = c.attribute("axis", 1)
    kind = zero.dtype if zero is not None else dtype_of(c.attribute("output_dtype", 0) or 2)
    if (x if c.operator == "DequantizeLinear" else Value("", (), kind)).dtype.is_float:
        return _quantize_floats(c, x, _spread(c, scale, x, axis, block), kind)
    rest: dict[str, Any] = {"axis": axis if x.shape and scale.shape else -1, "block_size": block}
    if c.operator == "DequantizeLinear":
        return c.op("nn.dequantize", x, scale, *([] if zero is None else [zero]), out_dtype=scale.dtype, **rest)
    return c.op("nn.quantize", x, scale, *([] if zero is None else [zero]), out_dtype=kind, **rest)


def _quantize_floats(c: Call, x: Value, scale: Value, kind: DType) -> Value:
    """To and from small floats, whose zero is 0."""
    if c.operator == "DequantizeLinear":
        return c.op("multiply", c.op("astype", x, scale.dtype), scale)
    return _converted(c, c.op("divide", x, scale), kind)


def _spread(c: Call, scale: Value, x: Value, axis: int, block: int) -> Value:
    """The scale of each element: of all, of its place along an axis, or of its block there."""
    if scale.elements == 1 and len(scale.shape) <= 1:
        return c.op("reshape", scale, ())
    axis = axis_of(axis, len(x.shape))
    if not block:
        return c.op("reshape", scale, (scale.elements, *[1] * (len(x.shape) - axis - 1)))
    return c.sliced(c.op("repeat", scale, block, axis), [(axis, slice(0, x.shape[axis]))])


@row("Constant")
def _constant(c: Call) -> Any:
    for name in ("value", "sparse_value"):
        if (tensor := c.attribute(name)) is not None:
            return c.array(tensor)
    for name, kind in (
        ("value_float", "float32"),
        ("value_floats", "float32"),
        ("value_int", "int64"),
        ("value_ints", "int64"),
    ):
        if c.attribute(name) is not None:
            return c.array(np.asarray(c.attribute(name), kind))
    raise Unsupported(f"a constant that is {', '.join(c.attributes) or 'nothing'}")


@row("BitCast", 26)
def _bit_cast(c: Call) -> Any:
    kind = dtype_of(c.attribute("to"))
    if c[0].dtype.is_bool or kind.is_bool:  # which take a byte here, 0 or 1
        return (
            c.op("reinterpret", c.op("astype", c[0], "uint8"), kind) if not kind.is_bool else c.op("astype", c[0], kind)
        )
    return c.op("reinterpret", c[0], kind)
