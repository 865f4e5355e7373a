"""Rows of ONNX operators of networks: products, convolutions, pools, normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Value
from ..graph.weight_quantization import dequantized
from ..ops.promotion import wide
from .determinants import determinant
from .making import Unsupported, axis_of
from .onnx_table import Call, rounded_once, row


@row("MatMulNBits", domain="com.microsoft")
def _matmul_of_bits(c: Call) -> Any:
    rows, columns, bits, group = (c.attribute(n, d) for n, d in (("K", 0), ("N", 0), ("bits", 4), ("block_size", 32)))
    if bits not in (2, 4, 8) or group < 2:
        raise Unsupported(f"weights of {bits} bits in blocks of {group}")
    if c.get(4) is not None:
        raise Unsupported("its rows are in another order (g_idx)")
    groups = -(-rows // group)  # of which the last may have rows that are not used

    def of_groups(array: np.ndarray) -> np.ndarray:
        return array.reshape(columns, -1)[:, :groups].T[:, None].astype("float32")

    stored, scales, zeros = (c.constant(n, what) for n, what in ((1, "weights"), (2, "scales"), (3, "zero points")))
    if stored is None or scales is None:
        raise Unsupported("its weights or scales are left out")
    integers = np.ascontiguousarray(_integers(stored, bits).reshape(columns, groups * group).T)
    if zeros is None:
        zero: Any = float(1 << (bits - 1))
    else:
        zero = of_groups(_integers(zeros, bits) if zeros.dtype == "uint8" else zeros)
    weights = dequantized(c.builder, integers, of_groups(scales), zero, max(bits, 4), c.label)
    used = c.sliced(weights, [(0, slice(0, rows))]) if rows % group else weights
    return c.summed(c.added(c.get(5)), "matmul", c[0], used)


def _integers(stored: np.ndarray, bits: int) -> np.ndarray:
    """Integers of bytes, two in each if they have 4 bits, four if they have 2, the first in the lowest bits."""
    return np.stack([(stored >> low) & ((1 << bits) - 1) for low in range(0, 8, bits)], -1).reshape(-1)


@row("Gemm", 6)
def _gemm(c: Call) -> Any:
    a, b = (turned(c, c[n], c.attribute(name, 0)) for n, name in enumerate(("transA", "transB")))
    alpha, beta, bias = c.attribute("alpha", 1.0), c.attribute("beta", 1.0), c.get(2)

    def completed(made: Value) -> Value:
        made = c.times(made, alpha)
        return made if bias is None else c.op("add", made, c.times(c.of_type(bias, made.dtype), beta))

    return c.summed(None if alpha == 1 and bias is None else completed, "matmul", a, b)


def turned(c: Call, value: Value, is_turned: int) -> Value:
    return c.op("transpose", value, (1, 0)) if is_turned else value


@row("MatMulInteger", 10)
def _matmul_integer(c: Call) -> Any:
    a, b = (less_zero(c, c[n], c.get(n + 2), n) for n in (0, 1))
    return c.op("matmul", a, b)


def less_zero(c: Call, value: Value, zero: Value | None, side: int) -> Value:
    wide = c.op("astype", value, "int32")
    if zero is None:
        return wide
    zero = c.op("astype", zero, "int32")
    if side == 0 and len(zero.shape) == 1 and zero.shape[0] > 1:
        zero = c.op("expand_dims", zero, 1)
    return c.op("subtract", wide, zero)


@row("QLinearMatMul", 10)
def _quantized_matmul(c: Call) -> Any:
    """``a``, its scale and zero, ``b``, its scale and zero, the scale and the zero of the result."""
    a, b = (less_zero(c, c[n], c[n + 2], n // 3) for n in (0, 3))
    product = c.op("astype", c.op("matmul", a, b), c[1].dtype)
    scales = c.op(
        "multiply", c[1] if len(c[1].shape) != 1 or c[1].elements == 1 else c.op("expand_dims", c[1], 1), c[4]
    )
    return quantized(c, c.op("multiply", product, scales), c[6], c[7])


def quantized(c: Call, value: Value, scale: Value, zero: Value) -> Value:
    return c.op("nn.quantize", value, scale, zero, out_dtype=zero.dtype)


@row("ConvInteger", 10)
@row("QLinearConv", 10)
def _quantized_conv(c: Call) -> Any:
    is_integer = c.operator == "ConvInteger"
    rank = spatial(c)
    data, kernel, zeros = (c[0], c[1], (c.get(2), c.get(3))) if is_integer else (c[0], c[3], (c[2], c[5]))
    data, kernel = (_less_channel_zero(c, value, zero) for value, zero in zip((data, kernel), zeros))
    made = _convolved(c, data, kernel, c.get(8), rank)
    if is_integer:
        return made
    made = c.op("astype", made, c[1].dtype)
    weight_scale = c[4] if c[4].elements == 1 else c.op("reshape", c[4], (c[4].elements, *[1] * rank))
    return quantized(c, c.op("multiply", c.op("multiply", made, c[1]), weight_scale), c[6], c[7])


def _less_channel_zero(c: Call, value: Value, zero: Value | None) -> Value:
    """Integers less their zero, of which there is one, or one for each kernel."""
    if zero is not None and zero.elements > 1:
        zero = c.op("reshape", zero, (zero.elements, *[1] * (len(value.shape) - 1)))
    return less_zero(c, value, zero, 1)


@row("Einsum", 12)
def _einsum(c: Call) -> Any:
    equation = c.attribute("equation").replace(" ", "")
    return c.op("einsum", equation, *(c[n] for n in range(len(c.inputs))))


@row("Det", 11)
def _det(c: Call) -> Any:
    return determinant(c, c[0])


# ---------------------------------------------------------------- windows


def spatial(c: Call) -> int:
    rank = len(c[0].shape) - 2
    if rank not in (1, 2, 3):
        raise Unsupported(f"a tensor of {len(c[0].shape)} dimensions; it has 1 to 3 besides batch and channels")
    return rank


def padding(c: Call, rank: int) -> Any:
    mode = c.attribute("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return list(c.attribute("pads", (0,) * 2 * rank))
    return mode


def per_axis(c: Call, name: str, rank: int) -> list[int]:
    return list(c.attribute(name, (1,) * rank))


@row("Conv")
def _conv(c: Call) -> Any:
    return _convolved(c, c[0], c[1], c.get(2), spatial(c))


def _convolved(c: Call, x: Value, kernel: Value, bias: Value | None, rank: int) -> Value:
    return c.summed(
        c.added(bias, rank),
        f"nn.conv{rank}d",
        x,
        kernel,
        strides=per_axis(c, "strides", rank),
        padding=padding(c, rank),
        dilation=per_axis(c, "dilations", rank),
        groups=c.attribute("group", 1),
    )


@row("ConvTranspose")
def _conv_transpose(c: Call) -> Any:
    rank = spatial(c)
    strides, dilation = per_axis(c, "strides", rank), per_axis(c, "dilations", rank)
    extra = list(c.attribute("output_padding", (0,) * rank))
    kernel = c[1].shape[2:]
    free = [
        s * (n - 1) + e + (k - 1) * d + 1 for n, s, e, k, d in zip(c[0].shape[2:], strides, extra, kernel, dilation)
    ]
    mode, shape = c.attribute("auto_pad", "NOTSET"), c.attribute("output_shape")
    pads = list(c.attribute("pads", (0,) * 2 * rank))
    if shape is None and mode.startswith("SAME"):
        shape = [n * s for n, s in zip(c[0].shape[2:], strides)]
    more = [0] * rank  # zeros behind, fewer than a stride, where the shape that is asked for has them
    if shape is not None:
        total = [f - n for f, n in zip(free, list(shape)[-rank:])]
        if any(-t >= max(s, d) for t, s, d in zip(total, strides, dilation)):
            raise Unsupported(f"output_shape {list(shape)} is larger than the convolution without padding, {free}")
        more, total = [max(-t, 0) for t in total], [max(t, 0) for t in total]
        small, large = [t // 2 for t in total], [t - t // 2 for t in total]
        pads = [*small, *large] if mode == "SAME_UPPER" else [*large, *small]
    add = c.added(c.get(2), rank)

    def completed(made: Value) -> Value:
        made = c.padded(made, [(0, 0), (0, 0), *((0, n) for n in more)], "constant", 0)
        return made if add is None else add(made)

    return c.summed(
        completed if add or any(more) else None,
        f"nn.conv{rank}d_transpose",
        c[0],
        c[1],
        strides=strides,
        padding=pads,
        output_padding=extra,
        groups=c.attribute("group", 1),
        dilation=dilation,
    )


@row("DeformConv", 19)
def _deformable_conv(c: Call) -> Any:
    pads = list(c.attribute("pads", (0, 0, 0, 0)))
    return c.summed(
        c.added(c.get(3), 2),
        "nn.deformable_conv2d_nchw",
        c[0],
        c[2],
        c[1],
        per_axis(c, "strides", 2),
        pads,
        per_axis(c, "dilations", 2),
        c.attribute("offset_group", 1),
        c.attribute("group", 1),
        mask=c.get(4),
    )


@row("GridSample", 16)
@row("GridSample", domain="com.microsoft")
def _grid_sample(c: Call) -> Any:
    if len(c[0].shape) not in (4, 5):
        raise Unsupported(f"a tensor of {len(c[0].shape)} dimensions")
    given = c.attribute("mode", "linear")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(given) or given
    return c.grid_sampled(c[0], c[1], mode, c.attribute("padding_mode", "zeros"), c.attribute("align_corners", 0))


# ---------------------------------------------------------------- normalizations


@row("BatchNormalization", 6)
def _batch_norm(c: Call) -> Any:
    """In training mode by the mean and the variance of the batch; these go into the running ones, which are results too."""
    training = bool(c.attribute("training_mode", 0)) if c.version >= 14 else len(c.outputs) > 1
    if training and c.version < 14:
        raise Unsupported("it is in training mode, of which versions before 14 do not say what it makes")
    rest = {"training": True, "momentum": 1 - float(c.attribute("momentum", 0.9))} if training else {}
    made = c.op("nn.batch_norm", *(c[n] for n in range(5)), epsilon=float(c.attribute("epsilon", 1e-5)), **rest)
    return made[: len(c.outputs)]


@row("InstanceNormalization", 6)
def _instance_norm(c: Call) -> Any:
    axes = tuple(range(2, len(c[0].shape)))
    return c.op("nn.instance_norm", c[0], c[1], c[2], 1, axes, float(c.attribute("epsilon", 1e-5)))


@row("LayerNormalization", 17)
@rounded_once
def _layer_norm(c: Call) -> Any:
    x, epsilon = c[0], float(c.attribute("epsilon", 1e-5))
    axes = tuple(range(axis_of(c.attribute("axis", -1), len(x.shape)), len(x.shape)))
    shape = tuple(x.shape[a] for a in axes)
    if len(c.outputs) == 1 and c[1].shape == shape and x.dtype == c[1].dtype:
        bias = c.get(2) or c.array(np.zeros(c.room(*shape), str(x.dtype)))
        return c.op("nn.layer_norm", x, c[1], bias, axes, epsilon)
    mean = c.op("mean", x, axes, True)
    centered = c.op("subtract", x, mean)
    variance = c.op("mean", c.op("multiply", centered, centered), axes, True)
    inverse = c.op("reciprocal", c.op("sqrt", c.op("add", variance, epsilon)))
    made = c.op("multiply", c.op("multiply", centered, inverse), c[1])
    made = made if c.get(2) is None else c.op("add", made, c[2])
    return (made, mean, inverse)[: len(c.outputs)]


@row("RMSNormalization", 23)
def _rms_norm(c: Call) -> Any:
    return over_root(c, c[0], c[1], axis_of(c.attribute("axis", -1), len(c[0].shape)))


def over_root(c: Call, x: Value, scale: Value, axis: int) -> Value:
    """``x`` over the root of the mean of its squares along the axes from ``axis`` on, times ``scale``: computed in float32, and rounded once."""
    x = c.of_type(x, wide(x.dtype))
    square = c.op("mean", c.op("multiply", x, x), tuple(range(axis, len(x.shape))), True)
    root = c.op("sqrt", c.op("add", square, float(c.attribute("epsilon", 1e-5))))
    return c.of_type(c.op("multiply", c.op("divide", x, root), c.of_type(scale, x.dtype)), scale.dtype)


@row("GroupNormalization", 21)
def _group_norm(c: Call) -> Any:
    axes = tuple(range(2, len(c[0].shape)))
    epsilon = float(c.attribute("epsilon", 1e-5))
    return c.op("nn.group_norm", c[0], c[1], c[2], c.attribute("num_groups"), 1, axes, epsilon)


@row("GroupNormalization", 18)
def _group_norm_of_groups(c: Call) -> Any:
    """Its scales and biases are those of groups."""
    groups = c.attribute("num_groups")
    each = [c.op("repeat", c[n], c[0].shape[1] // groups, 0) for n in (1, 2)]
    return _group_norm(Call(c.builder, c.operator, c.version, [c[0], *each], c.attributes, c.outputs))


@row("LRN")
def _lrn(c: Call) -> Any:
    alpha, beta, bias = (float(c.attribute(n, d)) for n, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    return c.op("nn.lrn", c[0], c.attribute("size"), 1, alpha, beta, bias)


@row("LpNormalization")
@rounded_once
def _lp_normalization(c: Call) -> Any:
    axis, p = axis_of(c.attribute("axis", -1), len(c[0].shape)), c.attribute("p", 2)
    size = c.op("abs", c[0]) if p == 1 else c.op("multiply", c[0], c[0])
    norm = c.op("sum", size, (axis,), True)
    norm = norm if p == 1 else c.op("sqrt", norm)
    return c.op("where", c.op("equal", norm, 0.0), 0.0, c.op("divide", c[0], norm))


@row("MeanVarianceNormalization", 9)
@rounded_once
def _mean_variance(c: Call) -> Any:
    axes = tuple(c.attribute("axes", (0, 2, 3)))
    centered = c.op("subtract", c[0], c.op("mean", c[0], axes, True))
    variance = c.op("mean", c.op("multiply", centered, centered), axes, True)
    return c.op("divide", centered, c.op("add", c.op("sqrt", variance), 1e-9))
