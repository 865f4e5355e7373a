"""Rows of onnxruntime's operators on integers with scales: what its quantizer writes (``com.microsoft``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Value
from .making import Unsupported
from .onnx_contrib import CONTRIB
from .onnx_networks import less_zero, quantized, turned
from .onnx_table import Call, Items, imported, row


def _as_is(c: Call, parameter: Value) -> Value:
    """A scale or a zero of all elements, of one of each row or column as it is."""
    return c.op("reshape", parameter, ()) if parameter.elements == 1 else parameter


def _result(c: Call, made: Value, at: int, kind: Any) -> Value:
    """Floats as integers of the scale and the zero that are inputs."""
    zero = c.get(at + 1)
    zero = c.array(np.zeros((), str(kind))) if zero is None else zero
    return quantized(c, made, _as_is(c, c[at]), _as_is(c, zero))


@row("QLinearAdd", domain=CONTRIB)
@row("QLinearMul", domain=CONTRIB)
@row("QLinearConcat", domain=CONTRIB)
@row("QLinearSigmoid", domain=CONTRIB)
@row("QLinearLeakyRelu", domain=CONTRIB)
@row("QLinearSoftmax", domain=CONTRIB)
@row("QLinearAveragePool", domain=CONTRIB)
@row("QLinearGlobalAveragePool", domain=CONTRIB)
def _between_integers(c: Call) -> Any:
    """An operator on floats, of integers and to integers: each operand has a scale and a zero after it, and the result has them."""
    name = c.operator.removeprefix("QLinear")
    if c.attribute("channels_last", 0):
        raise Unsupported("its channels come last")
    first = 2 if name == "Concat" else 0
    end = len(c.inputs) if name == "Concat" else 6 if name in ("Add", "Mul") else 3
    floats = []
    for n in range(first, end, 3):
        rest = [_as_is(c, p) for p in (c[n + 1], c.get(n + 2)) if p is not None]
        floats.append(c.op("nn.dequantize", c[n], *rest, out_dtype=c[n + 1].dtype))
    inner = Call(c.builder, name, c.attribute("opset", 13), floats, c.attributes, c.outputs)
    (made,) = imported(inner)
    assert isinstance(made, Value) and not isinstance(made, Items)
    return _result(c, made, 0 if name == "Concat" else end, c[first].dtype)


@row("QGemm", domain=CONTRIB)
def _quantized_gemm(c: Call) -> Any:
    """``alpha (a - zero) (b - zero) + bias`` by the scales of both, of integers; floats, where the result has no scale."""
    a, b = (
        turned(c, less_zero(c, c[3 * n], c.get(3 * n + 2), 1), c.attribute(name, 0))
        for n, name in enumerate(("transA", "transB"))
    )
    product = c.op("matmul", a, b)
    product = product if c.get(6) is None else c.op("add", product, c[6])
    scale = c.op("multiply", c.op("multiply", _as_is(c, c[1]), _as_is(c, c[4])), float(c.attribute("alpha", 1.0)))
    made = c.op("multiply", c.op("astype", product, scale.dtype), scale)
    return made if c.get(7) is None else _result(c, made, 7, c[0].dtype)


@row("MatMulIntegerToFloat", domain=CONTRIB)
def _floats_of_integers(c: Call) -> Any:
    """``a``, ``b``, their scales, their zeros, a bias."""
    return scaled_product(c, c[0], c.get(4), c[2], 5, 3, 6)


@row("DynamicQuantizeMatMul", domain=CONTRIB)
def _product_of_rounded(c: Call) -> Any:
    """Floats that become bytes, of a scale and a zero that their limits give; ``b``, its scale, its zero, a bias."""
    rounded, scale, zero = imported(Call(c.builder, "DynamicQuantizeLinear", 11, [c[0]], {}, c.outputs))
    assert isinstance(rounded, Value) and isinstance(scale, Value) and isinstance(zero, Value)
    return scaled_product(c, rounded, zero, scale, 3, 2, 4)


def scaled_product(
    c: Call, a: Value, zero: Value | None, scale: Value, own_zero: int, own_scale: int, bias: int
) -> Value:
    product = c.op("matmul", less_zero(c, a, zero, 0), less_zero(c, c[1], c.get(own_zero), 1))
    both = c.op("multiply", _as_is(c, scale), _as_is(c, c[own_scale]))
    made = c.op("multiply", c.op("astype", product, both.dtype), both)
    return made if c.get(bias) is None else c.op("add", made, c[bias])


@row("DynamicQuantizeLinear", 11)
def _rounded(c: Call) -> Any:
    """Bytes, the scale and the zero: the limits of the elements, and 0, are 255 steps apart; a step is 1 where all are 0."""
    low, high = (c.op(f"{how}imum", c.op(how, c[0]), 0.0) for how in ("min", "max"))
    length = c.op("subtract", high, low)
    scale = c.op("where", c.op("equal", length, 0.0), 1.0, c.op("divide", length, 255.0))
    zero = c.op("astype", c.op("round", c.op("divide", c.op("negative", low), scale)), "uint8")
    return quantized(c, c[0], scale, zero), scale, zero
