"""Rows of operators that onnxruntime adds to ONNX (``com.microsoft``): what its optimizer and its exporters write."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Value
from .making import Unsupported, axis_of
from .onnx_networks import over_root
from .onnx_table import Call, rounded_once, row

CONTRIB = "com.microsoft"


@row("Gelu", domain=CONTRIB)
@row("BiasGelu", domain=CONTRIB)
@row("FastGelu", domain=CONTRIB)
@rounded_once
def _gelu(c: Call) -> Any:
    x = c[0] if c.get(1) is None else c.op("add", c[0], c[1])
    return c.op("nn.gelu", x, approximate="tanh" if c.operator == "FastGelu" else "none")


@row("QuickGelu", domain=CONTRIB)
@rounded_once
def _quick_gelu(c: Call) -> Any:
    return c.op("multiply", c[0], c.op("sigmoid", c.op("multiply", c[0], float(c.attribute("alpha", 1.702)))))


@row("FusedMatMul", domain=CONTRIB)
def _fused_matmul(c: Call) -> Any:
    if c.attribute("transBatchA", 0) or c.attribute("transBatchB", 0):
        raise Unsupported("its batches are transposed")
    a, b = (
        c.op("matrix_transpose", c[n]) if c.attribute(name, 0) else c[n] for n, name in enumerate(("transA", "transB"))
    )
    alpha = float(c.attribute("alpha", 1.0))
    return c.summed(None if alpha == 1 else lambda made: c.op("multiply", made, alpha), "matmul", a, b)


@row("SimplifiedLayerNormalization")
def _rms_norm(c: Call) -> Any:
    if len(c.outputs) > 1:
        raise Unsupported("its second result")
    return over_root(c, c[0], c[1], axis_of(c.attribute("axis", -1), len(c[0].shape)))


@row("SkipSimplifiedLayerNormalization", domain=CONTRIB)
def _skip_rms_norm(c: Call) -> Any:
    total = _sum(c, c[0], c[1], c.get(3))
    return _results(c, over_root(c, total, c[2], len(total.shape) - 1), total)


@row("SkipLayerNormalization", domain=CONTRIB)
def _skip_layer_norm(c: Call) -> Any:
    total, beta = _sum(c, c[0], c[1], c.get(4)), c.get(3)
    beta = c.op("zeros_like", c[2]) if beta is None else beta
    made = c.op("nn.layer_norm", total, c[2], beta, (len(total.shape) - 1,), float(c.attribute("epsilon", 1e-12)))
    return _results(c, made, total)


def _sum(c: Call, x: Value, skip: Value, bias: Value | None) -> Value:
    total = c.op("add", x, skip)
    return total if bias is None else c.op("add", total, bias)


def _results(c: Call, made: Value, total: Value) -> list[Value]:
    """The normalized sum; the sum is the fourth result, after the mean and the deviation of training."""
    if any(c.outputs[1:3]):
        raise Unsupported("its mean, or its deviation")
    return [made, made, made, total][: len(c.outputs)]


@row("GroupQueryAttention", domain=CONTRIB)
def _group_query_attention(c: Call) -> Any:
    """Keys and values are written where they are in the memory of the past, which is as long as it is, or as long as the known total."""
    for name, usual in (("local_window_size", -1), ("smooth_softmax", 0)):
        if c.attribute(name, usual) not in (usual, 0):
            raise Unsupported(f"its `{name}`")
    if given := next((n for n in range(9, len(c.inputs)) if c.get(n) is not None), None):
        raise Unsupported(f"its input {given}: positions, a bias, or sinks")
    heads, pairs = int(c.attribute("num_heads")), int(c.attribute("kv_num_heads"))
    batch, rows, width = c[0].shape
    size = width // (heads if c.get(1) is not None else heads + 2 * pairs)
    ends = (heads * size, (heads + pairs) * size, (heads + 2 * pairs) * size)
    parts = [c[n] for n in range(3)] if c.get(1) is not None else [
        c.sliced(c[0], [(2, slice(a, b))]) for a, b in zip((0, *ends), ends)
    ]  # fmt: skip
    q, k, v = (_heads(c, x, size) for x in parts)
    last = c.op("reshape", c.op("astype", c[5], "int32"), (batch, 1))
    first = c.op("maximum", c.op("subtract", last, rows - 1), 0)
    places = c.op("add", first, c.array(np.arange(rows, dtype="int32")[None]))
    if c.attribute("do_rotary", 0):
        cos, sin = (c.op("take", c[n], c.op("reshape", places, (batch, 1, rows)), 0) for n in (7, 8))
        q, k = (_turned(c, x, cos, sin) for x in (q, k))
    total = c.known(c[6])
    presents = [_written(c, c.get(n), x, places, 0 if total is None else int(total.max())) for n, x in ((3, k), (4, v))]
    length, times = presents[0].shape[2], heads // pairs * rows
    at = c.array(np.arange(length, dtype="int32"))
    seen = c.op("less_equal", at, c.op("reshape", places, (batch, 1, rows, 1)))

    def attended(scores: Value) -> Value:
        scores = c.op("multiply", scores, float(c.attribute("scale", 0.0) or size**-0.5))
        if cap := float(c.attribute("softcap", 0.0)):
            scores = c.op("multiply", c.op("tanh", c.op("divide", scores, cap)), cap)
        scores = c.op("where", seen, c.op("reshape", scores, (batch, heads, rows, length)), -1e9)
        weights = c.op("reshape", c.op("nn.softmax", scores), (batch, pairs, times, length))
        return c.op("matmul", weights, presents[1])

    mixed = c.summed(attended, "matmul", c.op("reshape", q, (batch, pairs, times, size)), presents[0], transp_b=True)
    mixed = c.op("reshape", mixed, (batch, heads, rows, size))
    mixed = c.op("reshape", c.op("transpose", mixed, (0, 2, 1, 3)), (batch, rows, heads * size))
    return [mixed, *presents][: len(c.outputs)]


def _heads(c: Call, x: Value, size: int) -> Value:
    batch, rows, width = x.shape
    return c.op("transpose", c.op("reshape", x, (batch, rows, width // size, size)), (0, 2, 1, 3))


def _turned(c: Call, x: Value, cos: Value, sin: Value) -> Value:
    """Pairs of elements of ``x``, turned: those half of the turned ones apart, or neighbours."""
    half = cos.shape[-1]

    def part(a: int, b: int, step: int = 1) -> Value:
        return c.sliced(x, [(3, slice(a, b, step))])

    beside = c.attribute("rotary_interleaved", 0)
    one, other = (part(0, 2 * half, 2), part(1, 2 * half, 2)) if beside else (part(0, half), part(half, 2 * half))
    first = c.op("subtract", c.op("multiply", one, cos), c.op("multiply", other, sin))
    second = c.op("add", c.op("multiply", other, cos), c.op("multiply", one, sin))
    made = (
        c.op("reshape", c.op("stack", (first, second), 4), (*x.shape[:3], 2 * half))
        if beside
        else c.joined((first, second), 3)
    )
    return made if 2 * half == x.shape[3] else c.joined((made, part(2 * half, x.shape[3])), 3)


def _written(c: Call, past: Value | None, new: Value, places: Value, total: int) -> Value:
    """The past with rows written at their places, in room for ``total`` of them."""
    batch, _, rows, _ = new.shape
    if past is None or past.shape[2] == 0:
        return new
    if total > past.shape[2]:
        past = c.padded(past, [(0, 0), (0, 0), (0, total - past.shape[2]), (0, 0)], "constant", 0)
    at = c.op("broadcast_to", c.op("reshape", places, (batch, 1, rows, 1)), new.shape)
    return c.op("scatter_elements", past, at, new, 2)
