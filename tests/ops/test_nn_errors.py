"""Wrong shapes and attributes of operators of neural networks: errors that name both, and what is legal."""

from __future__ import annotations

import re

import pytest

import tir
from tir import te, topi


def tensor(*shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name="x")


WRONG = {
    "dense: rows": (lambda: topi.nn.dense(tensor(2, 5), tensor(4, 6)), r"\(4, 6\).* 6 elements where there are 5"),
    "dense: bias": (
        lambda: topi.nn.dense(tensor(2, 5), tensor(4, 5), tensor(3)),
        r"bias \(3,\) is not \(n\): axis 0 is 3, and n is 4 by weight \(4, 5\)",
    ),
    "dense: types": (lambda: topi.nn.dense(tensor(2, 5), tensor(4, 5, dtype="int8")), "float32 and int8"),
    "matmul: inner": (lambda: topi.nn.matmul(tensor(2, 3), tensor(4, 5)), "adds over 3 elements of one and 4"),
    "matmul: batch": (lambda: topi.nn.matmul(tensor(2, 3, 4), tensor(3, 4, 5)), "do not broadcast"),
    "batch_matmul: rank": (lambda: topi.nn.batch_matmul(tensor(2, 3), tensor(2, 3)), r"3 dimensions, but `x` has 2"),
    "softmax: axis": (lambda: topi.nn.softmax(tensor(2, 3), axis=2), "axis 2.*\n.*\nlegal: from -2 to 1"),
    "softmax: type": (lambda: topi.nn.softmax(tensor(2, 3, dtype="int32")), "floating type, but `x` is int32"),
    "gelu": (lambda: topi.nn.gelu(tensor(2), approximate="fast"), "approximate.*'fast'"),
    "prelu": (lambda: topi.nn.prelu(tensor(2, 3), tensor(2)), "2 elements where there are 3"),
    "conv2d: channels": (
        lambda: topi.nn.conv2d(tensor(1, 3, 8, 8), tensor(4, 2, 3, 3)),
        r"3 channels, but kernel `x` \(4, 2, 3, 3\) in layout OIHW has 2 in each of 1 groups",
    ),
    "conv2d: groups": (
        lambda: topi.nn.conv2d(tensor(1, 4, 8, 8), tensor(3, 2, 3, 3), groups=2),
        "3 output channels.* are not 2 groups",
    ),
    "conv2d: large kernel": (
        lambda: topi.nn.conv2d(tensor(1, 1, 3, 9), tensor(1, 1, 5, 5), 1, (0, 2)),
        "kernel of 5 elements is larger than the 3 elements",
    ),
    "conv2d: layout": (lambda: topi.nn.conv2d(tensor(1, 3, 8, 8), tensor(4, 3, 3, 3), data_layout="NHWX"), "NHWX"),
    "conv2d: rank": (
        lambda: topi.nn.conv2d(tensor(3, 8, 8), tensor(4, 3, 3, 3)),
        "NCHW has 4 dimensions, but `x` has 3",
    ),
    "conv2d: padding": (
        lambda: topi.nn.conv2d(tensor(1, 3, 8, 8), tensor(4, 3, 3, 3), 1, (1, 2, 3)),
        r"the padding is \(1, 2, 3\)",
    ),
    "conv2d: word": (lambda: topi.nn.conv2d(tensor(1, 3, 8, 8), tensor(4, 3, 3, 3), 1, "FULL"), "'VALID', 'SAME'"),
    "conv2d: stride": (lambda: topi.nn.conv2d(tensor(1, 3, 8, 8), tensor(4, 3, 3, 3), 0), "at least 1"),
    "conv2d: packed": (
        lambda: topi.nn.conv2d(tensor(1, 1, 8, 8, 4), tensor(1, 1, 3, 3, 4, 4), data_layout="NCHW8c"),
        "in groups of 8.* has groups of 4",
    ),
    "depthwise": (lambda: topi.nn.depthwise_conv2d_nchw(tensor(1, 3, 8, 8), tensor(4, 1, 3, 3)), "4 .* are 3"),
    "deformable: mask": (
        lambda: tir.ops.nn.deformable_conv2d_nchw(
            tensor(1, 2, 4, 4), tensor(1, 18, 3, 3), tensor(2, 2, 3, 3), mask=True
        ),
        "mask is a tensor, not True",
    ),
    "lrn: alpha": (lambda: topi.nn.lrn(tensor(1, 4, 3, 3), 3, alpha=None), "alpha is a number, not None"),
    "batch_norm: momentum": (
        lambda: topi.nn.batch_norm(*[tensor(4, 3), *[tensor(3)] * 4], training=True, momentum="0.1"),
        "momentum is a number, not '0.1'",
    ),
    "dequantize: scales of a scalar": (
        lambda: topi.nn.dequantize(tensor(dtype="int8"), tensor(3)),
        r"the scale of dequantize `x` has shape \(3,\)",
    ),
    "dequantize: a scale for each": (
        lambda: topi.nn.dequantize(tensor(dtype="int8"), tensor(2, 3)),
        r"the scale of dequantize `x` has shape \(2, 3\)",
    ),
    "deformable: offsets": (
        lambda: topi.nn.deformable_conv2d_nchw(tensor(1, 2, 4, 4), tensor(1, 9, 4, 4), tensor(2, 2, 3, 3), 1, 1),
        r"the offset `x` has shape.*\n.*\nlegal: \(N, C, H, W\) of \(1, 18, 4, 4\)",
    ),
    "deformable: groups": (
        lambda: topi.nn.deformable_conv2d_nchw(tensor(1, 2, 2, 2), tensor(1, 6, 2, 2), tensor(2, 2, 1, 1), 1, 0, 1, 3),
        "deformable_groups is 3",
    ),
    "transpose": (
        lambda: topi.nn.conv2d_transpose(tensor(1, 3, 4, 4), tensor(3, 2, 3, 3), 2, 0, None, 2),
        "output_padding.*\n.*\nlegal: less than the stride",
    ),
    "pool2d: kind": (lambda: topi.nn.pool2d(tensor(1, 3, 8, 8), 2, 2, 1, 0, "min"), "'min'"),
    "pool2d: window": (lambda: topi.nn.pool2d(tensor(1, 3, 2, 8), 3, 2, 1, 0, "max"), "window of 3 elements is larger"),
    "pool2d: layout": (lambda: topi.nn.pool2d(tensor(1, 3, 2, 8, 4), 1, 1, 1, 0, "max", layout="NCHW4h"), "NCHW4h"),
    "lp_pool2d": (lambda: topi.nn.lp_pool2d(tensor(1, 3, 8, 8), 2, 2, p=0), "p above 0"),
    "adaptive": (lambda: topi.nn.adaptive_pool(tensor(1, 3, 8, 8), 0, "avg"), "at least 1"),
    "layer_norm": (lambda: topi.nn.layer_norm(tensor(2, 8), tensor(4), tensor(8), -1), r"gamma.*shape \(8,\)"),
    "group_norm": (lambda: topi.nn.group_norm(tensor(2, 8, 3), tensor(8), tensor(8), 3), "divisor of the channels"),
    "attention: lengths": (
        lambda: topi.nn.scaled_dot_product_attention(tensor(1, 2, 3, 4), tensor(1, 2, 5, 6), tensor(1, 2, 5, 4)),
        r"key \(1, 2, 5, 6\) is not \(…, g, s, e\): axis 3 is 6, and e is 4 by query \(1, 2, 3, 4\)\n.*\nlegal: query \(…, h, l, e\)",
    ),
    "attention: heads": (
        lambda: topi.nn.scaled_dot_product_attention(tensor(1, 3, 3, 4), tensor(1, 2, 5, 4), tensor(1, 2, 5, 4)),
        "3 heads of queries are no multiple of 2",
    ),
    "attention: mask": (
        lambda: topi.nn.scaled_dot_product_attention(*[tensor(1, 1, 3, 4)] * 3, tensor(2, 1, 3, 3)),
        r"mask `x` has shape \(2, 1, 3, 3\)",
    ),
    "rotary": (lambda: topi.nn.rotary_embedding(tensor(1, 1, 3, 4), tensor(2, 2), tensor(2, 2)), "fewer positions"),
    "lstm: gates": (lambda: topi.nn.lstm(tensor(5, 1, 3), tensor(10, 3), tensor(10, 4)), "10 rows for 4 gates"),
    "lstm: layout": (
        lambda: topi.nn.lstm(tensor(5, 1, 3), tensor(16, 3), tensor(16, 4), weight_layout="IFOX"),
        "'IFOX'.*\n.*\nlegal: the letters of 'IFGO'",
    ),
    "rnn: activation": (lambda: topi.nn.rnn(tensor(5, 1, 3), tensor(4, 3), tensor(4, 4), act="gelu"), "'gelu'"),
    "gru: state": (
        lambda: topi.nn.gru(tensor(5, 1, 3), tensor(12, 3), tensor(12, 4), None, None, tensor(2, 4)),
        r"h_init \(2, 4\) is not \(b, h\): axis 0 is 2, and b is 1 by Xs",
    ),
    "quantize: type": (
        lambda: topi.nn.quantize(tensor(2, 3), 1.0, out_dtype="float32"),
        "out_dtype of quantize is float32",
    ),
    "quantize: scale": (lambda: topi.nn.quantize(tensor(2, 3), tensor(2), axis=1), "2 elements where there are 3"),
    "quantize: blocks": (
        lambda: topi.nn.quantize(tensor(2, 5), tensor(2, 2), axis=1, block_size=2),
        "2 elements where there are 3",
    ),
    "dequantize": (lambda: topi.nn.dequantize(tensor(2, 3), 1.0), "makes float32 of float32"),
    "nll_loss": (
        lambda: topi.nn.nll_loss(tensor(4, 3), tensor(4, dtype="int32"), None, "median"),
        "'median'",
    ),
    "nll_loss: targets": (lambda: topi.nn.nll_loss(tensor(4, 3), tensor(4)), "targets are integers"),
    "flatten": (lambda: topi.nn.flatten(tensor()), "is a scalar"),
    "dilate": (lambda: topi.nn.dilate(tensor(2, 3), (1, 0)), "at least 1"),
    "lrn": (lambda: topi.nn.lrn(tensor(2, 8, 3), 0), "at least 1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_call_is_refused_at_its_line(what):
    call, expected = WRONG[what]
    with pytest.raises(tir.errors.TensorExpressionError) as caught:
        call()
    assert re.search(expected, str(caught.value)), str(caught.value)
    assert str(caught.value).startswith("nn.") and __file__ in str(caught.value), str(caught.value)
