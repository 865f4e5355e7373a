"""Rows of operators that onnxruntime adds to ONNX (``com.microsoft``): what its optimizer and its exporters write."""

from __future__ import annotations

from typing import Any

from ..graph import Value
from .determinants import inverse
from .making import Unsupported, axis_of
from .onnx_networks import over_root
from .onnx_table import Call, imported, rounded_once, row

CONTRIB = "com.microsoft"


@row("Gelu", domain=CONTRIB)
@row("BiasGelu", domain=CONTRIB)
@row("FastGelu", domain=CONTRIB)
@rounded_once
def _gelu(c: Call) -> Any:
    x = c[0] if c.get(1) is None else c.op("add", c[0], c[1])
    return c.op("nn.gelu", x, approximate="tanh" if c.operator == "FastGelu" else "none")


@row("Inverse", domain=CONTRIB)
def _inverse(c: Call) -> Any:
    return inverse(c, c[0])


@row("QuickGelu", domain=CONTRIB)
@rounded_once
def _quick_gelu(c: Call) -> Any:
    return c.op("multiply", c[0], c.op("sigmoid", c.op("multiply", c[0], float(c.attribute("alpha", 1.702)))))


@row("FusedMatMul", domain=CONTRIB)
@row("TransposeMatMul", domain=CONTRIB)
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


@row("EmbedLayerNormalization", domain=CONTRIB)
def _embedded(c: Call) -> Any:
    """Rows of words, of places and of segments, added and normalized; the number of words of each text that its mask leaves; the sum."""
    ids, segments, mask, places = c[0], c.get(1), c.get(7), c.get(8)
    batch, rows = ids.shape
    places = c.op("arange", 0, rows, 1, "int32") if places is None else places
    total = c.op("add", c.op("take", c[2], ids, 0), c.op("take", c[3], places, 0))
    total = total if segments is None else c.op("add", total, c.op("take", c[4], segments, 0))
    made = c.op("nn.layer_norm", total, c[5], c[6], (2,), float(c.attribute("epsilon", 1e-12)))
    counts = c.op("full", (batch,), 0, "int32") if mask is None else c.of_type(c.op("sum", mask, (1,)), "int32")
    return (made, counts, total)[: len(c.outputs)]


@row("FusedConv", domain=CONTRIB)
@row("FusedGemm", domain=CONTRIB)
def _with_activation(c: Call) -> Any:
    """A product, to which the fourth input is added, and its activation."""
    name = c.operator.removeprefix("Fused")
    (made,) = imported(Call(c.builder, name, 11, c.inputs[:3], c.attributes, c.outputs))
    assert isinstance(made, Value)
    made = made if c.get(3) is None else c.op("add", made, c[3])
    kind = c.attribute("activation", "")
    names = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Clip": ("min", "max")}.get(kind, ())
    given = zip(names, c.attribute("activation_params", ()))
    rest = dict(given) if name == "Conv" else {n: v for n in names if (v := c.attribute(f"activation_{n}")) is not None}
    return imported(Call(c.builder, kind, 6, [made], rest, c.outputs)) if kind else made


@row("GatherBlockQuantized", domain=CONTRIB)
def _rows_of_integers(c: Call) -> Any:
    """Rows of integers in blocks with scales (and zeros), as floats; bytes have two integers of 4 bits each."""
    data, scales, zeros = c[0], c[2], c.get(3)
    rank, bits, block = len(data.shape), int(c.attribute("bits", 4)), int(c.attribute("block_size", 128))
    along, axis = axis_of(c.attribute("quantize_axis", 1), rank), axis_of(c.attribute("gather_axis", 0), rank)
    if axis == along or (data.dtype == "uint8" and bits not in (4, 8)):
        raise Unsupported(f"integers of {bits} bits, in blocks along axis {along}, gathered along axis {axis}")

    def rows(x: Value, is_packed: bool) -> Value:
        made = c.op("take", x, c[1], axis)
        if not is_packed:
            return made
        halves = c.op("stack", (c.op("bitwise_and", made, 15), c.op("right_shift", made, 4)), len(made.shape))
        return c.op("reshape", halves, (*made.shape[:-1], 2 * made.shape[-1]))

    is_packed = data.dtype == "uint8" and bits == 4
    if is_packed and along != rank - 1:
        raise Unsupported("bytes of two integers that are not blocks of the last axis")
    made, scale = rows(data, is_packed), rows(scales, False)
    at = along + (len(c[1].shape) - 1 if axis < along else 0)
    if zeros is not None:
        zero: Any = c.sliced(rows(zeros, is_packed), [(at, slice(0, scale.shape[at]))])
    else:
        zero = c.op("full", scale.shape, float(1 << (bits - 1)) if data.dtype == "uint8" else 0.0, "float32")
    each = [
        c.sliced(c.op("repeat", c.of_type(x, "float32"), block, at), [(at, slice(0, made.shape[at]))])
        for x in (scale, zero)
    ]
    floats = c.op("multiply", c.op("subtract", c.op("astype", made, "float32"), each[1]), each[0])
    return c.of_type(floats, scales.dtype)
