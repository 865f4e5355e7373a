"""Rows of operators that onnxruntime adds to ONNX (``com.microsoft``): what its optimizer and its exporters write."""

from __future__ import annotations

from typing import Any

from ..graph import Value
from .making import Unsupported, axis_of
from .onnx_table import Call, row

CONTRIB = "com.microsoft"


@row("Gelu", domain=CONTRIB)
@row("BiasGelu", domain=CONTRIB)
@row("FastGelu", domain=CONTRIB)
def _gelu(c: Call) -> Any:
    x = c[0] if c.get(1) is None else c.op("add", c[0], c[1])
    return c.op("nn.gelu", x, approximate="tanh" if c.operator == "FastGelu" else "none")


@row("QuickGelu", domain=CONTRIB)
def _quick_gelu(c: Call) -> Any:
    return c.op("multiply", c[0], c.op("sigmoid", c.op("multiply", c[0], float(c.attribute("alpha", 1.702)))))


@row("FusedMatMul", domain=CONTRIB)
def _fused_matmul(c: Call) -> Any:
    if c.attribute("transBatchA", 0) or c.attribute("transBatchB", 0):
        raise Unsupported("its batches are transposed")
    a, b = (
        c.op("matrix_transpose", c[n]) if c.attribute(name, 0) else c[n] for n, name in enumerate(("transA", "transB"))
    )
    made, alpha = c.op("matmul", a, b), float(c.attribute("alpha", 1.0))
    return made if alpha == 1 else c.op("multiply", made, alpha)


@row("SimplifiedLayerNormalization")
def _rms_norm(c: Call) -> Any:
    if len(c.outputs) > 1:
        raise Unsupported("its second result")
    return _by_root(c, c[0], c[1], axis_of(c.attribute("axis", -1), len(c[0].shape)))


@row("SkipSimplifiedLayerNormalization", domain=CONTRIB)
def _skip_rms_norm(c: Call) -> Any:
    total = _sum(c, c[0], c[1], c.get(3))
    return _results(c, _by_root(c, total, c[2], len(total.shape) - 1), total)


@row("SkipLayerNormalization", domain=CONTRIB)
def _skip_layer_norm(c: Call) -> Any:
    total, beta = _sum(c, c[0], c[1], c.get(4)), c.get(3)
    beta = c.op("zeros_like", c[2]) if beta is None else beta
    made = c.op("nn.layer_norm", total, c[2], beta, (len(total.shape) - 1,), float(c.attribute("epsilon", 1e-12)))
    return _results(c, made, total)


def _by_root(c: Call, x: Value, scale: Value, axis: int) -> Value:
    """``x`` over the root of the mean of its squares along the axes from ``axis`` on."""
    square = c.op("mean", c.op("multiply", x, x), tuple(range(axis, len(x.shape))), True)
    root = c.op("sqrt", c.op("add", square, float(c.attribute("epsilon", 1e-5))))
    return c.op("multiply", c.op("divide", x, root), scale)


def _sum(c: Call, x: Value, skip: Value, bias: Value | None) -> Value:
    total = c.op("add", x, skip)
    return total if bias is None else c.op("add", total, bias)


def _results(c: Call, made: Value, total: Value) -> list[Value]:
    """The normalized sum; the sum is the fourth result, after the mean and the deviation of training."""
    if any(c.outputs[1:3]):
        raise Unsupported("its mean, or its deviation")
    return [made, made, made, total][: len(c.outputs)]
