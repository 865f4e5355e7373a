"""Rows of ATen operators on elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtype import DType
from ..graph import Value
from ..graph.sizes import Size
from ..interp.numbers import constant
from ..ops.promotion import wide
from .making import Unsupported
from .torch_table import Call, Number, Operand, promoted, rounded_once, row

# one operand, in the type of the result
_UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh", "cos": "cos",
    "cosh": "cosh", "erf": "erf", "erfc": "erfc", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "hardswish": "nn.hard_swish",
    "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2", "log_sigmoid": "nn.log_sigmoid", "mish": "nn.mish",
    "neg": "negative", "relu": "nn.relu", "relu6": "nn.relu6", "square": "square", "reciprocal": "reciprocal", "rsqrt": "rsqrt", "sigmoid": "sigmoid", "silu": "nn.silu", "sin": "sin", "sinh": "sinh",
    "special_erf": "erf", "special_expm1": "expm1", "special_log1p": "log1p", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
_ROUNDING = {"ceil": "ceil", "floor": "floor", "trunc": "trunc", "fix": "trunc"}
_TESTS = {"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"}
_COMPARISONS = {
    "eq": "equal", "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less", "ne": "not_equal",
}  # fmt: skip
# two operands, in the type of the result
_BINARY = {
    "atan2": "atan2", "bitwise_and": "bitwise_and", "bitwise_left_shift": "bitwise_left_shift", "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "bitwise_right_shift", "bitwise_xor": "bitwise_xor", "copysign": "copysign", "fmod": "fmod",
    "floor_divide": "floor_divide", "hypot": "hypot", "logaddexp": "logaddexp", "maximum": "maximum", "minimum": "minimum",
    "nextafter": "nextafter", "remainder": "remainder", "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
}  # fmt: skip
_OF_BOOLS = {"add": "logical_or", "bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor",
             "maximum": "logical_or", "minimum": "logical_and", "multiply": "logical_and"}  # fmt: skip
_LOGICAL = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}


def _rows_of_tables() -> None:
    for name, ours in _UNARY.items():
        row(name)(lambda c, x, ours=ours: c.op(ours, c.tensor(x, c.dtype)))
    for name, ours in _ROUNDING.items():
        row(name)(lambda c, x, ours=ours: c.op(ours, x) if x.dtype.is_float else x)
    for name, ours in _TESTS.items():
        row(name)(lambda c, x, ours=ours: c.op(ours, c.tensor(x, x.dtype if x.dtype.is_float else DType("float32"))))
    for name, ours in _COMPARISONS.items():
        row(name)(lambda c, x, other, ours=ours: paired(c, ours, x, other, promoted(x, other)))
    for name, ours in _BINARY.items():
        row(name)(lambda c, x, other, ours=ours: paired(c, ours, x, other, c.dtype))
    for name, ours in _LOGICAL.items():
        row(name)(lambda c, x, other, ours=ours: c.op(ours, truth(c, x), truth(c, other)))


def paired(c: Call, ours: str, x: Operand, other: Operand, dtype: DType) -> Value:
    """An operator of two operands in a type; at least one of them is a tensor."""
    if dtype.is_bool:
        ours = _OF_BOOLS.get(ours, ours)
        if c.operator in _COMPARISONS:
            dtype = DType("int8")
    if not isinstance(x, Value) and not isinstance(other, Value):
        x = c.tensor(x, dtype)
    return c.op(ours, c.operand(x, dtype), c.operand(other, dtype))


def truth(c: Call, x: Operand) -> Value:
    if not isinstance(x, Value):
        return c.tensor(bool(x))
    return x if x.dtype.is_bool else c.op("not_equal", x, 0.0 if x.dtype.is_float else 0)


_rows_of_tables()


@row("logical_not")
def _logical_not(c: Call, x: Value) -> Any:
    return c.op("logical_not", truth(c, x))


@row("sign", "sgn")
def sign(c: Call, x: Value) -> Any:
    """-1, 0 or 1; 0 of nan."""
    if not x.dtype.is_float:
        return x if x.dtype.is_bool else c.op("sign", x)
    above, below = (c.op("astype", c.op(how, x, 0.0), x.dtype) for how in ("greater", "less"))
    return c.op("subtract", above, below)


@row("bitwise_not")
def _bitwise_not(c: Call, x: Value) -> Any:
    return c.op("logical_not" if x.dtype.is_bool else "bitwise_invert", x)


@row("round")
def _round(c: Call, x: Value, decimals: int = 0) -> Any:
    if not x.dtype.is_float:
        return x
    return _round_decimal(c, x, decimals) if decimals else c.op("round", x)


@rounded_once
def _round_decimal(c: Call, x: Value, decimals: int) -> Value:
    before, after = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    scale = 10.0 ** abs(decimals)
    return c.op(after, c.op("round", c.op(before, x, scale)), scale)


# ---------------------------------------------------------------- arithmetic


@row("add", "sub", "rsub")
def _add(c: Call, x: Operand, other: Operand, alpha: Number = 1) -> Any:
    ours = "add" if c.operator == "add" else "subtract"
    first, second = (other, x) if c.operator == "rsub" else (x, other)
    return paired(c, ours, first, second, c.dtype) if alpha == 1 else _with_multiple(c, ours, first, second, alpha)


@rounded_once
def _with_multiple(c: Call, ours: str, x: Operand, other: Operand, alpha: Number) -> Any:
    return paired(c, ours, x, _scaled(c, other, alpha), c.dtype)


def _scaled(c: Call, x: Operand, by: Number) -> Operand:
    if by == 1:
        return x
    if isinstance(x, Value):
        return c.op("multiply", c.operand(x, c.dtype), c.operand(by, c.dtype))
    return x * by


@row("mul")
def _mul(c: Call, x: Operand, other: Operand) -> Any:
    made = rounded_once(_product) if _is_rounded(c, x, other) else _product
    return made(c, x, other)


def _product(c: Call, x: Operand, other: Operand) -> Value:
    return paired(c, "multiply", x, other, c.dtype)


def _is_rounded(c: Call, *operands: Operand) -> bool:
    """Whether a number among factors is another in the type of the result. Torch multiplies and divides by it as it is."""
    numbers = [x for x in operands if not isinstance(x, (Value, Size))]
    return c.dtype.is_float and any(constant(x, c.dtype) != constant(x, wide(c.dtype)) for x in numbers)


@row("div", "true_divide")
def _div(c: Call, x: Operand, other: Operand, rounding_mode: str | None = None) -> Any:
    made = rounded_once(_quotient) if _is_rounded(c, x, other) else _quotient
    return made(c, x, other, rounding_mode)


def _quotient(c: Call, x: Operand, other: Operand, rounding_mode: str | None) -> Value:
    if rounding_mode is None:
        return paired(c, "divide", x, other, c.dtype)
    if rounding_mode == "floor":
        return paired(c, "floor_divide", x, other, c.dtype)
    if c.dtype.is_float:
        return c.op("trunc", paired(c, "divide", x, other, c.dtype))
    return paired(c, "trunc_divide", x, other, c.dtype)


@row("gcd", "lcm")
def _common(c: Call, x: Value, other: Value) -> Any:
    """A multiple is computed in 32 bits at least, and wraps."""
    divisor = paired(c, "gcd", x, other, c.dtype)
    if c.operator == "gcd":
        return divisor
    kind = c.dtype if c.dtype.bits >= 32 else DType("int32")
    first, second, least = (c.operand(each, kind) for each in (x, other, c.op("maximum", divisor, 1)))
    made = c.op("abs", c.op("multiply", c.op("trunc_divide", first, least), second))
    return c.operand(made, c.dtype)


@row("addcmul", "addcdiv")
@rounded_once
def _add_of_two(c: Call, x: Value, tensor1: Value, tensor2: Value, value: Number = 1) -> Any:
    first, second = c.operand(tensor1, c.dtype), c.operand(tensor2, c.dtype)
    made = _scaled(c, c.op("multiply" if c.operator == "addcmul" else "divide", first, second), value)
    return c.op("add", c.operand(x, c.dtype), made)


@row("lerp")
@rounded_once
def _lerp(c: Call, x: Value, end: Value, weight: Operand) -> Any:
    """From the nearer end: ``x`` itself at 0, ``end`` at 1."""
    length = c.op("subtract", end, x)
    rest = c.op("subtract", 1.0, weight) if isinstance(weight, Value) else 1.0 - weight
    from_x = c.op("add", x, c.op("multiply", length, c.operand(weight, c.dtype)))
    from_end = c.op("subtract", end, c.op("multiply", length, c.operand(rest, c.dtype)))
    if isinstance(weight, Value):
        return c.op("where", c.op("less", c.op("abs", weight), 0.5), from_x, from_end)
    return from_x if abs(weight) < 0.5 else from_end


@row("ldexp")
def _ldexp(c: Call, x: Operand, other: Operand) -> Any:
    return c.op("multiply", c.operand(x, c.dtype), c.op("pow", 2.0, c.tensor(other, c.dtype)))


@row("pow")
def _pow(c: Call, x: Operand, exponent: Operand) -> Any:
    base = c.tensor(x, c.dtype)
    made = (
        {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal", 1: None} if not isinstance(exponent, Value) else {}
    )
    if exponent in made and (c.dtype.is_float or exponent in (1, 2)):
        ours = made[exponent]
        return base if ours is None else c.op(ours, base)
    if not isinstance(exponent, Value) and exponent == 3:
        return c.op("multiply", c.op("square", base), base)
    power = c.operand(exponent, c.dtype)
    if c.dtype.is_float:
        return c.op("pow", base, power)
    if not isinstance(power, Value):  # torch: not a negative one
        return c.op("pow", base, power)
    made = c.op("pow", base, c.op("abs", power))
    is_none = c.op("logical_and", c.op("less", power, 0), c.op("not_equal", c.op("abs", base), 1))
    return c.op("where", is_none, c.tensor(0, c.dtype), made)


@row("fmax", "fmin")
def _extreme_of_numbers(c: Call, x: Value, other: Value) -> Any:
    """That of two values that is no nan."""
    first, second = (c.tensor(v, c.dtype) for v in (x, other))
    made = paired(c, {"fmax": "maximum", "fmin": "minimum"}[c.operator], first, second, c.dtype)
    if not c.dtype.is_float:
        return made
    return c.op("where", c.op("isnan", first), second, c.op("where", c.op("isnan", second), first, made))


@row("angle")
def _angle(c: Call, x: Value) -> Any:
    """Of a number less than 0 pi, of another 0, of nan nan."""
    x = c.of_type(x, c.dtype)
    turned = c.op("where", c.op("less", x, 0.0), c.filled(x.shape, math.pi, x.dtype), c.op("zeros_like", x))
    return c.op("where", c.op("isnan", x), x, turned)


@row("signbit")
def _signbit(c: Call, x: Value) -> Any:
    if x.dtype.is_float:
        return c.op("signbit", x)
    return c.op("less", c.op("astype", x, "int8") if x.dtype.is_bool else x, 0)


@row("where")
def _where(c: Call, condition: Value, x: Operand, other: Operand) -> Any:
    return c.op("where", truth(c, condition), c.tensor(x, c.dtype), c.tensor(other, c.dtype))


@row("masked_fill")
def _masked_fill(c: Call, x: Value, mask: Value, value: Operand) -> Any:
    return c.op("where", mask, c.tensor(value, x.dtype), x)


@row("clamp", "clip", "clamp_min", "clamp_max", "hardtanh")
def _clamp(
    c: Call, x: Value, min: Operand | None = None, max: Operand | None = None, min_val: Number = -1, max_val: Number = 1
) -> Any:
    if c.operator == "hardtanh":
        min, max = min_val, max_val
    made = c.operand(x, c.dtype)
    for ours, bound in (("maximum", min), ("minimum", max)):
        made = made if bound is None else paired(c, ours, made, bound, c.dtype)
    return made


@row("alias", "clone", "detach", "lift_fresh_copy", "lift_fresh", "contiguous", "to", "_to_copy", "type_as", "dropout",
     "alpha_dropout", "feature_dropout", "view_as_real_copy", "positive", "native_dropout")  # fmt: skip
def _same(c: Call, x: Value, dtype: DType | None = None, p: float = 0, train: bool = False, other: Any = None) -> Any:
    if train and p:
        raise Unsupported("it is in training mode, which draws random numbers; call model.eval() first")
    made = c.operand(x, c.dtype)
    return (made, c.op("ones_like", x, "bool")) if c.operator == "native_dropout" else made


@row("prims.convert_element_type")
def _converted(c: Call, a: Operand, dtype: DType) -> Any:
    return c.tensor(a, c.dtype)


_FAKE = tuple(f"fake_quantize_per_{what}_affine{more}" for what in ("tensor", "channel") for more in ("", "_cachemask"))


@row(*_FAKE, "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def _fake_quantized(
    c: Call, x: Value, scale: Operand, zero_point: Operand, quant_min: int, quant_max: int, axis: int | None = None, fake_quant_enabled: Any = None,
) -> Any:  # fmt: skip
    """The nearest multiple of the scale, of those from ``quant_min`` to ``quant_max`` after the zero point is added."""
    if fake_quant_enabled is not None and not np.all(c.known(fake_quant_enabled) or 0):
        raise Unsupported("a switch that is off, or known only when it runs")
    kind, shape = DType("float32"), [1] * len(x.shape)
    if axis is not None:
        shape[axis] = -1

    def each(parameter: Operand) -> Value:
        return c.shaped(c.tensor(parameter, kind), shape if axis is not None else ())

    step, zero = each(scale), each(zero_point)
    inverse = c.op("divide", 1.0, step)
    number = c.op("add", c.op("round", c.op("multiply", c.of_type(x, kind), inverse)), zero)
    inside = c.op(
        "logical_and", c.op("greater_equal", number, float(quant_min)), c.op("less_equal", number, float(quant_max))
    )
    clipped = c.op("minimum", c.op("maximum", number, float(quant_min)), float(quant_max))
    made = c.of_type(c.op("multiply", c.op("subtract", clipped, zero), step), c.dtype)
    return (made, inside) if c.results[1:] else made


@row("copy")
def _copy(c: Call, x: Value, src: Value) -> Any:
    made = c.operand(src, x.dtype)
    return made if made.shape == x.shape else c.op("broadcast_to", made, x.shape)


# ---------------------------------------------------------------- activations


@row("gelu")
def _gelu(c: Call, x: Value, approximate: str = "none") -> Any:
    return c.op("nn.gelu", x, approximate=approximate)


@row("leaky_relu")
def _leaky_relu(c: Call, x: Value, negative_slope: float = 0.01) -> Any:
    return c.op("nn.leaky_relu", x, float(negative_slope))


@row("elu", "celu", "selu")
def _elu(c: Call, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    if c.operator != "elu":
        return c.op(f"nn.{c.operator}", x, **({"alpha": float(alpha)} if c.operator == "celu" else {}))
    if scale == input_scale == 1:
        return c.op("nn.elu", x, float(alpha))
    below = c.op("multiply", c.op("expm1", c.op("multiply", x, float(input_scale))), float(alpha * scale))
    return c.op("where", c.op("greater", x, 0.0), c.op("multiply", x, float(scale)), below)


@row("hardsigmoid")
def _hardsigmoid(c: Call, x: Value) -> Any:
    return c.op("nn.hard_sigmoid", x, 1 / 6, 0.5)


@row("softplus")
def _softplus(c: Call, x: Value, beta: float = 1, threshold: float = 20) -> Any:
    return c.op("nn.softplus", x, float(beta), float(threshold))


@row("hardshrink", "softshrink")
def _shrink(c: Call, x: Value, lambd: float = 0.5) -> Any:
    return c.op("nn.shrink", x, float(lambd), float(lambd) if c.operator == "softshrink" else 0.0)


@row("threshold")
def _threshold(c: Call, x: Value, threshold: float, value: float) -> Any:
    return c.op("where", c.op("less_equal", x, c.operand(threshold, x.dtype)), c.tensor(value, x.dtype), x)


@row("prelu", "_prelu_kernel")
def _prelu(c: Call, x: Value, weight: Value) -> Any:
    if c.operator == "prelu" and len(x.shape) > 1:
        weight = c.op("reshape", weight, (weight.elements, *[1] * (len(x.shape) - 2)))
    return c.op("where", c.op("less", x, 0.0), c.op("multiply", x, weight), x)
