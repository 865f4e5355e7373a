"""Single nodes with attributes in every combination that their rows distinguish, judged by the reference of ``onnx``."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tir.graph import ModelError, compile_graph
from tir.importers.onnx import from_onnx

onnx = pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

KINDS = {"float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "int32": TensorProto.INT32, "int64": TensorProto.INT64}  # fmt: skip


def numbers(*shape, kind="float32", seed=0):
    rng = np.random.default_rng([seed, *shape])
    drawn = rng.integers(0, 9, shape) if kind == "uint8" else rng.integers(-9, 9, shape)
    return drawn.astype(kind) if kind != "float32" else (drawn / 4).astype(kind)


def model(operator, inputs, outputs=1, opset=21, **attributes):
    """A model of one node: arrays are its inputs, the first one that of the model, the others constants; None is left out."""
    names = ["" if array is None else f"x{n}" for n, array in enumerate(inputs)]
    node = helper.make_node(operator, names, [f"y{n}" for n in range(outputs)], **attributes)
    first = helper.make_tensor_value_info("x0", KINDS[str(inputs[0].dtype)], inputs[0].shape)
    made = [helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, None) for n in range(outputs)]
    for output in made:
        output.type.tensor_type.ClearField("elem_type")
    held = [numpy_helper.from_array(np.asarray(a), name) for a, name in zip(inputs[1:], names[1:]) if a is not None]
    graph = helper.make_graph([node], "g", [first], made, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def judge(operator, inputs, outputs=1, opset=21, **attributes):
    made = model(operator, inputs, outputs, opset, **attributes)
    expected = ReferenceEvaluator(made).run(None, {"x0": inputs[0]})
    got = compile_graph(from_onnx(made), "interpreter")(inputs[0])
    for one, other in zip(got if outputs > 1 else (got,), expected):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def zero(value, kind="uint8"):
    return np.array(value, kind)


def scale(value):
    return np.array(value, "float32")


@pytest.mark.parametrize("kinds", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
@pytest.mark.parametrize(
    ("left", "right"), [(None, None), (3, None), (None, 2), (3, 2), ([1, 2, 3], 2), (3, [1, 2, 3, 4]), ([1, 2, 3], [1, 2, 3, 4])]
)  # fmt: skip
def test_products_of_integers_less_their_zeros(kinds, left, right):
    a, b = numbers(3, 5, kind=kinds[0]), numbers(5, 4, kind=kinds[1])
    zeros = [None if z is None else zero(z, kind) for z, kind in zip((left, right), kinds)]
    want = (a.astype("int32") - (0 if left is None else np.array(left).reshape(-1, 1))) @ (
        b.astype("int32") - (0 if right is None else np.array(right))
    )
    made = compile_graph(from_onnx(model("MatMulInteger", [a, b, *zeros])), "interpreter")(a)
    np.testing.assert_array_equal(made, want)


@pytest.mark.parametrize(
    ("a_scale", "a_zero", "b_scale"), [(0.5, 3, 0.25), ([0.5], [3], 0.25), ([0.5, 0.25, 1.0], [1, 2, 3], 0.5)]
)
def test_products_of_quantized_matrices(a_scale, a_zero, b_scale):
    a, b = numbers(3, 5, kind="uint8"), numbers(5, 4, kind="uint8")
    inputs = [a, scale(a_scale), zero(a_zero), b, scale(b_scale), zero(2), scale(0.75), zero(100)]
    wide = (a.astype(float) - np.array(a_zero).reshape(-1, 1)) * np.array(a_scale).reshape(-1, 1)
    exact = wide @ ((b.astype(float) - 2) * b_scale)
    want = np.clip(np.rint(exact / 0.75) + 100, 0, 255).astype("uint8")
    made = compile_graph(from_onnx(model("QLinearMatMul", inputs)), "interpreter")(a)
    np.testing.assert_array_equal(made, want)


def convolved(x, w, strides, pads, dilations, groups):
    """A convolution in float64 of any number of axes."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    sizes = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilations)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    per, made = w.shape[1], w.shape[0] // groups
    for place in np.ndindex(*sizes):
        window = tuple(
            slice(p * s, p * s + (k - 1) * d + 1, d) for p, s, k, d in zip(place, strides, w.shape[2:], dilations)
        )
        for o in range(w.shape[0]):
            part = x[(slice(None), slice(o // made * per, (o // made + 1) * per), *window)]
            out[(slice(None), o, *place)] = (part * w[o]).reshape(x.shape[0], -1).sum(1)
    return out


CONVOLUTIONS = [
    {"strides": [1], "pads": [0, 0], "dilations": [1], "group": 1},
    {"strides": [2], "pads": [1, 2], "dilations": [2], "group": 2},
    {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2], "group": 1},
    {"strides": [1, 2], "pads": [0, 1, 0, 0], "dilations": [1, 1], "group": 2},
    {"strides": [1, 2, 1], "pads": [0, 1, 0, 1, 0, 1], "dilations": [1, 1, 1], "group": 1},
]


@pytest.mark.parametrize("attributes", CONVOLUTIONS)
@pytest.mark.parametrize("zeros", [(None, None), (3, None), (3, 2), (3, [1, 2, 3, 4])])
def test_convolutions_of_integers(attributes, zeros):
    rank, groups = len(attributes["strides"]), attributes["group"]
    x, w = numbers(1, 4, *(6, 5, 4)[:rank], kind="uint8"), numbers(4, 4 // groups, *(2, 3, 2)[:rank], kind="int8")
    given = [None if z is None else zero(z, kind) for z, kind in zip(zeros, ("uint8", "int8"))]
    made = compile_graph(from_onnx(model("ConvInteger", [x, w, *given], **attributes)), "interpreter")(x)
    less = np.array(0 if zeros[1] is None else zeros[1]).reshape(-1, *[1] * (rank + 1))
    values = attributes.values()
    strides, pads, dilations, _ = values
    want = convolved(x.astype(float) - (zeros[0] or 0), w.astype(float) - less, strides, pads, dilations, groups)
    np.testing.assert_array_equal(made, want)


@pytest.mark.parametrize("attributes", CONVOLUTIONS[1:4])
@pytest.mark.parametrize("w_scale", [0.5, [0.5], [0.5, 0.25, 1.0, 2.0]])
@pytest.mark.parametrize("has_bias", [False, True])
def test_convolutions_of_quantized_images(attributes, w_scale, has_bias):
    rank, groups = len(attributes["strides"]), attributes["group"]
    x, w = numbers(1, 4, *(6, 5)[:rank], kind="uint8"), numbers(4, 4 // groups, *(2, 3)[:rank], kind="int8")
    bias = np.array([3, -5, 0, 9], "int32") if has_bias else None
    w_zero = zero(1 if np.ndim(w_scale) == 0 else [1, 2, 3, 0][: len(w_scale)], "int8")
    inputs = [x, scale(0.5), zero(3), w, scale(w_scale), w_zero, scale(2.0), zero(110)] + ([bias] if has_bias else [])
    made = compile_graph(from_onnx(model("QLinearConv", inputs, **attributes)), "interpreter")(x)
    strides, pads, dilations, _ = attributes.values()
    each = (slice(None), *[None] * (rank + 1))
    less = w.astype(float) - (w_zero if w_zero.ndim == 0 else np.broadcast_to(w_zero, 4)[each])
    total = convolved(x.astype(float) - 3, less, strides, pads, dilations, groups)
    total += np.zeros(4)[each[:-1]] if bias is None else bias[each[:-1]]
    total *= 0.5 * np.broadcast_to(np.array(w_scale), 4)[each[:-1]]
    np.testing.assert_array_equal(made, np.clip(np.rint(total / 2.0) + 110, 0, 255).astype("uint8"))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"auto_pad": "SAME_UPPER"},
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "VALID"},
        {"pads": [1, 2]},
        {"strides": [2], "dilations": [2], "pads": [2, 1]},
    ],
)
def test_convolutions_are_padded(rank, attributes):
    x, w = numbers(1, 2, *(7, 6, 5)[:rank]), numbers(3, 2, *(3, 2, 2)[:rank])
    given = {k: v if isinstance(v, str) else [n for n in v for _ in range(rank)] for k, v in attributes.items()}
    judge("Conv", [x, w, numbers(3)], **given)


TRANSPOSED = [
    {}, {"strides": 2}, {"dilations": 2}, {"strides": 3, "output_padding": 1}, {"strides": 2, "pads": 1},
    {"strides": 2, "auto_pad": "SAME_UPPER"}, {"strides": 2, "auto_pad": "SAME_LOWER"}, {"strides": 2, "output_shape": 7},
    {"strides": 2, "output_shape": 7, "auto_pad": "SAME_UPPER"},
]  # fmt: skip


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("attributes", TRANSPOSED)
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolutions(rank, attributes, groups):
    """Judged by sums over what each input element reaches, in float64."""
    sizes, kernel = (4, 3)[:rank], (3, 4)[:rank]
    x, w = numbers(1, 2, *sizes), numbers(2, 3, *kernel, seed=1)
    each = {k: v if isinstance(v, str) else [v] * rank * (1 + (k == "pads")) for k, v in attributes.items()}
    made = compile_graph(
        from_onnx(model("ConvTranspose", [x, w, numbers(3 * groups)], group=groups, **each)), "interpreter"
    )(x)
    s, d, e = (attributes.get(k, v) for k, v in (("strides", 1), ("dilations", 1), ("output_padding", 0)))
    full = [s * (n - 1) + e + (k - 1) * d + 1 for n, k in zip(sizes, kernel)]
    out = np.zeros((1, 3 * groups, *full))
    for place in np.ndindex(*sizes):
        for tap in np.ndindex(*kernel):
            at = tuple(p * s + t * d for p, t in zip(place, tap))
            for i, o in itertools.product(range(2), range(3)):
                group = i * groups // 2
                out[(0, group * 3 + o, *at)] += float(x[(0, i, *place)]) * float(w[(i, o, *tap)])
    wanted = [attributes["output_shape"]] * rank if "output_shape" in attributes else None
    if wanted is None and "auto_pad" in attributes:
        wanted = [n * s for n in sizes]
    lows = [attributes.get("pads", 0)] * rank
    ends = [f - low for f, low in zip(full, lows)]
    if wanted is not None:
        totals = [f - n for f, n in zip(full, wanted)]
        upper = attributes.get("auto_pad") == "SAME_UPPER"
        lows = [t // 2 if upper else t - t // 2 for t in totals]
        ends = [low + n for low, n in zip(lows, wanted)]
    out = out[(slice(None), slice(None), *(slice(a, b) for a, b in zip(lows, ends)))]
    out += numbers(3 * groups)[(slice(None), *[None] * rank)]
    np.testing.assert_allclose(made, out, rtol=1e-4, atol=1e-5)


def test_an_output_shape_that_is_too_large_is_refused():
    inputs = [numbers(1, 1, 4), numbers(1, 1, 3)]
    with pytest.raises(ModelError) as caught:
        from_onnx(model("ConvTranspose", inputs, output_shape=[9]))
    assert caught.value.faults[0][4] == "output_shape [9] is larger than the convolution without padding, [6]"
    for dims in (2, 6):
        with pytest.raises(ModelError) as caught:
            from_onnx(model("Conv", [numbers(*[2] * dims), numbers(*[2] * dims)]))
        assert f"a tensor of {dims} dimensions; it has 1 to 3 besides batch and channels" == caught.value.faults[0][4]


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "attributes",
    [{}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, {"auto_pad": "VALID"}, {"pads": 1}, {"ceil_mode": 1}, {"dilations": 2}],
)  # fmt: skip
def test_windows_of_any_rank(operator, rank, attributes):
    if (operator, attributes.get("auto_pad")) == ("MaxPool", "SAME_LOWER"):
        attributes = {"auto_pad": "SAME_UPPER"}  # of this the reference makes fewer windows than the definition
    x = numbers(1, 2, *(7, 6, 5)[:rank])
    given = {
        k: v if k == "ceil_mode" or isinstance(v, str) else [v] * rank * (1 + (k == "pads"))
        for k, v in attributes.items()
    }
    judge(operator, [x], kernel_shape=[2] * rank, strides=[2] * rank, **given)
    if operator == "AveragePool" and "pads" in attributes:
        judge(operator, [x], kernel_shape=[2] * rank, strides=[2] * rank, count_include_pad=1, **given)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize(("operator", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_networks_of_either_layout_from_given_states(operator, gates, layout, direction):
    if layout and direction == "bidirectional":
        pytest.skip("the reference joins the directions of batches in another order")
    count = 1 + (direction == "bidirectional")
    x = numbers(2, 3, 4) if layout else numbers(3, 2, 4)
    state = (2, count, 5) if layout else (count, 2, 5)
    inputs = [
        x,
        numbers(count, gates * 5, 4) / 4,
        numbers(count, gates * 5, 5) / 4,
        numbers(count, gates * 10) / 4,
        None,
    ]
    inputs += [numbers(*state)] + ([numbers(*state, seed=1)] if operator == "LSTM" else [])
    judge(operator, inputs, outputs=2, hidden_size=5, layout=layout, direction=direction)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("operator", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("layout", [0, 1])
def test_shorter_sequences_are_computed_as_if_each_were_alone(operator, gates, direction, layout):
    count, lengths, outputs = 1 + (direction == "bidirectional"), np.array([2, 4, 1], "int32"), 2 + (operator == "LSTM")
    weights = [numbers(count, gates * 5, n) / 4 for n in (4, 5)] + [numbers(count, gates * 10) / 4]
    options = {"hidden_size": 5, "direction": direction, "layout": layout}
    x = numbers(4, 3, 4).swapaxes(0, layout)
    proto = model(operator, [x, *weights, lengths], outputs, **options)
    every, *last = compile_graph(from_onnx(proto), "interpreter")(x)
    for n, length in enumerate(lengths):
        one = x.swapaxes(0, layout)[:length, n : n + 1].swapaxes(0, layout)
        alone = compile_graph(from_onnx(model(operator, [one, *weights], outputs, **options)), "interpreter")(one)
        own = every[n] if layout else every[:, :, n]
        np.testing.assert_allclose(own[:length], alone[0][0] if layout else alone[0][:, :, 0], rtol=1e-5)
        assert not own[length:].any()
        for got, want in zip(last, alone[1:]):
            np.testing.assert_allclose(got[n] if layout else got[:, n], want[0] if layout else want[:, 0], rtol=1e-5)


def test_lengths_of_sequences_may_be_an_input():
    x, weights = numbers(4, 3, 4), [numbers(2, 20, 4) / 4, numbers(2, 20, 5) / 4, numbers(2, 40) / 4]
    lengths = np.array([2, 4, 0], "int32")
    proto = model("LSTM", [x, *weights, lengths], 3, hidden_size=5, direction="bidirectional")
    want = compile_graph(from_onnx(proto), "interpreter")(x)
    assert not want[0][:, :, 2].any() and not want[1][:, 2].any()
    proto.graph.initializer.pop()
    proto.graph.input.append(helper.make_tensor_value_info("x4", TensorProto.INT32, [3]))
    for got, other in zip(compile_graph(from_onnx(proto), "interpreter")(x, lengths), want):
        np.testing.assert_array_equal(got, other)


@pytest.mark.parametrize("before", [0, 1])
def test_a_gated_network_resets_before_or_after_its_product(before):
    inputs = [numbers(3, 2, 4), numbers(1, 15, 4) / 4, numbers(1, 15, 5) / 4, numbers(1, 30) / 4]
    judge("GRU", inputs, outputs=2, hidden_size=5, linear_before_reset=before)


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize(
    "rest", [{}, {"strides": [2, 2], "pads": [1, 0, 0, 1]}, {"dilations": [2, 1]}, {"strides": [3, 2], "ceil_mode": 1}]
)
def test_places_of_the_largest_are_numbers_in_the_whole_tensor(rest, storage_order):
    x = np.random.default_rng(0).permutation(2 * 3 * 6 * 7).reshape(2, 3, 6, 7).astype("float32")
    attributes = {"kernel_shape": [2, 3], "storage_order": storage_order, **rest}
    values, places = compile_graph(from_onnx(model("MaxPool", [x], 2, **attributes)), "interpreter")(x)
    order = x.transpose(0, 1, 3, 2) if storage_order else x
    np.testing.assert_array_equal(order.reshape(-1)[places], values)
    again = compile_graph(from_onnx(model("MaxPool", [x], **attributes)), "interpreter")(x)
    np.testing.assert_array_equal(values, again)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_determinants_of_small_matrices(size):
    x = numbers(2, size, size)
    made = compile_graph(from_onnx(model("Det", [x])), "interpreter")(x)
    np.testing.assert_allclose(made, np.linalg.det(x.astype(float)), rtol=1e-4, atol=1e-4)


def test_a_determinant_of_many_rows_is_refused():
    with pytest.raises(ModelError, match="known are those of up to 4 rows"):
        from_onnx(model("Det", [numbers(5, 5)]))


@pytest.mark.parametrize("kind", ["int8", "int32", "uint8"])
def test_the_mean_of_integers_is_an_integer(kind):
    x = numbers(2, 3, kind=kind) * (1 if kind == "uint8" else -1)
    judge("ReduceMean", [x, np.array([1])], keepdims=0)


@pytest.mark.parametrize("length", [None, 5, 9])
@pytest.mark.parametrize(("inverse", "onesided"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("parts", [1, 2])
def test_transforms_of_any_length(parts, inverse, onesided, length):
    if onesided and not inverse and parts == 2:
        pytest.skip("only a real signal has one half of its frequencies")
    x = numbers(2, 6, parts)
    inputs = [x, None if length is None else np.array(length), np.array(1)]
    judge("DFT", inputs, inverse=inverse, onesided=onesided)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("how", ["half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"])
@pytest.mark.parametrize("scales", [(1, 1, 0.7, 1.3), (1, 1.6, 1, 2.0)])
def test_resizing_by_parts_of_elements(mode, how, scales):
    """Scales that make no whole sizes, and channels."""
    x = np.random.default_rng(0).standard_normal((1, 3, 5, 6)).astype("float32")
    judge("Resize", [x, None, np.array(scales, "float32")], mode=mode, coordinate_transformation_mode=how)


@pytest.mark.parametrize(
    ("operator", "of"),
    [
        ("ReduceLogSum", lambda x: np.log(x.sum(1))),
        ("ReduceLogSumExp", lambda x: np.log(np.exp(x).sum(1))),
        ("ReduceL2", lambda x: np.sqrt((x * x).sum(1))),
    ],
)
def test_functions_of_floats_make_integers_of_integers(operator, of):
    x = numbers(3, 4, kind="uint8").astype("int32") + 1
    made = compile_graph(from_onnx(model(operator, [x, np.array([1])], keepdims=0)), "interpreter")(x)
    assert (made.dtype, made.tolist()) == ("int32", of(x.astype("float64")).astype("int32").tolist())


def test_shrinking_makes_integers_of_integers():
    made = compile_graph(from_onnx(model("Shrink", [np.int32([-3, -1, 0, 2, 3])], lambd=1.5, bias=1.5)), "interpreter")
    assert made(np.int32([-3, -1, 0, 2, 3])).tolist() == [-1, 0, 0, 0, 1]


def test_the_largest_none_and_the_largest_by_an_attribute():
    x = numbers(2, 5)
    judge("TopK", [x, np.array([0])], 2)
    made = compile_graph(from_onnx(model("TopK", [x], 2, opset=9, k=2, axis=0)), "interpreter")(x)
    np.testing.assert_array_equal(made[0], -np.sort(-x, 0))
    np.testing.assert_array_equal(np.take_along_axis(x, made[1], 0), made[0])


def test_scales_of_groups_are_those_of_their_channels():
    x, scales, biases = numbers(2, 6, 3, 3), np.float32([1, 2, -1]), np.float32([0, 1, 2])
    made = [model("GroupNormalization", [x, scales, biases], opset=18, num_groups=3),
            model("GroupNormalization", [x, scales.repeat(2), biases.repeat(2)], opset=21, num_groups=3)]  # fmt: skip
    each = [compile_graph(from_onnx(m), "interpreter")(x) for m in made]
    np.testing.assert_array_equal(*each)


def test_as_many_samples_of_a_region_as_it_has_pixels():
    """How many there are depends on elements: who reads the image once is not known."""
    x, regions = numbers(2, 3, 8, 8), np.float32([[0, 0, 7, 7], [2, 3, 9, 12]])
    made = model("RoiAlign", [x, regions, np.array([0, 1])], opset=16, output_height=2, output_width=3)
    given = made.graph.input.add()
    given.CopyFrom(helper.make_tensor_value_info("x1", TensorProto.FLOAT, (2, 4)))
    del made.graph.initializer[0]
    expected = ReferenceEvaluator(made).run(None, {"x0": x, "x1": regions})[0]
    for target in "interpreter", "llvm":
        got = compile_graph(from_onnx(made), target)(x, regions)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def _erf(x):
    from math import erf

    return np.vectorize(erf)(x)


def _root(x, g, e):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + e) * g


def _norm(x, g, b, e):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + e) * g + b


X, SKIP, G, B, BIAS = (
    numbers(*s, seed=n).astype("float64") for n, s in enumerate([(2, 3, 4), (2, 3, 4), (4,), (4,), (4,)])
)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "expected"),
    [
        ("Gelu", [X], {}, [X * (1 + _erf(X / 2**0.5)) / 2]),
        ("BiasGelu", [X, B], {}, [(X + B) * (1 + _erf((X + B) / 2**0.5)) / 2]),
        ("FastGelu", [X, B], {}, [(X + B) / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * ((X + B) + 0.044715 * (X + B) ** 3)))]),
        ("Inverse", [X[:, :, :3]], {}, [np.linalg.inv(X[:, :, :3])]),
        ("QuickGelu", [X], {"alpha": 1.5}, [X / (1 + np.exp(-1.5 * X))]),
        ("FusedMatMul", [X, SKIP], {"transB": 1, "alpha": 0.5}, [X @ SKIP.transpose(0, 2, 1) / 2]),
        ("SimplifiedLayerNormalization", [X, G], {"epsilon": 0.1}, [_root(X, G, 0.1)]),
        ("SkipSimplifiedLayerNormalization", [X, SKIP, G, BIAS], {"epsilon": 0.1}, [_root(X + SKIP + BIAS, G, 0.1), None, None, X + SKIP + BIAS]),
        ("SkipLayerNormalization", [X, SKIP, G, B, BIAS], {"epsilon": 0.1}, [_norm(X + SKIP + BIAS, G, B, 0.1), None, None, X + SKIP + BIAS]),
        ("SkipLayerNormalization", [X, SKIP, G], {"epsilon": 0.1}, [_norm(X + SKIP, G, 0, 0.1)]),
    ],
)  # fmt: skip
def test_operators_of_onnxruntime(operator, inputs, attributes, expected):
    made = model(operator, [a.astype("float32") for a in inputs], len(expected), **attributes)
    if not operator.startswith("Simplified"):
        made.graph.node[0].domain = "com.microsoft"
        made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    made.graph.node[0].output[:] = ["" if e is None else f"y{n}" for n, e in enumerate(expected)]
    for n in reversed([n for n, e in enumerate(expected) if e is None]):
        del made.graph.output[n]
    got = compile_graph(from_onnx(made), "interpreter")(inputs[0].astype("float32"))
    wanted = [e for e in expected if e is not None]
    for one, other in zip(got if len(wanted) > 1 else (got,), wanted):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
