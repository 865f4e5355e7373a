"""Convolutions by kernels of 3 x 3 in fewer products: which do, and that models compute the same."""

import numpy as np
import pytest

import tir
from tir.graph import Builder, compile_graph, groups, optimized
from tir.graph.graph_passes import evaluate
from tir.graph.winograd_pass import winograd

RNG = np.random.default_rng(0)


def convolution(shape, outputs, *attributes, layout="NHWC", taps=(3, 3), dtype="float32", **named):
    b = Builder()
    x, channels = b.input("x", shape, dtype), shape[layout.index("C")]
    channels = channels // named.get("groups", 1)
    form = (*taps, channels, outputs) if layout == "NHWC" else (outputs, channels, *taps)
    w = b.constant((RNG.standard_normal(form) / np.sqrt(9 * channels)).astype(dtype), "w")
    return b.graph(b.call("nn.conv2d", x, w, *attributes, data_layout=layout, **named))


def operators(graph):
    return [node.operator for node in graph.nodes]


@pytest.mark.parametrize(
    ("size", "channels"), [(56, 64), (28, 128), (14, 256), (7, 512), (224, 64), (56, 16)], ids=lambda n: f"{n}"
)
def test_convolutions_of_many_tiles_and_channels_have_fewer_products(size, channels):
    graph = convolution((1, size, size, channels), channels, 1, 1)
    assert operators(winograd(graph)) == ["nn.conv2d_winograd_nhwc"]


@pytest.mark.parametrize(
    ("shape", "outputs", "attributes", "named"),
    [
        ((1, 4, 4, 512), 512, (1, 1), {}),  # of four tiles, a kernel of 16 matrices
        ((1, 1, 56, 64), 64, (1, 1), {}),  # half of each tile is of no use
        ((1, 56, 56, 3), 64, (1, 1), {}),  # vectors with tails
        ((1, 56, 56, 64), 24, (1, 1), {}),
        ((1, 56, 56, 64), 64, (2, 1), {}),
        ((1, 56, 56, 64), 64, (1, 2, 2), {}),
        ((1, 56, 56, 64), 64, (1, 1), {"groups": 2}),
        ((1, 56, 56, 64), 64, (1, 1), {"taps": (3, 1)}),
        ((1, 56, 56, 64), 64, (1, 1), {"taps": (5, 5)}),
        ((1, 56, 56, 64), 64, (1, 1), {"dtype": "float16"}),
        ((1, 56, 56, 64), 64, (1, 1), {"dtype": "int32"}),  # halves of it are no integers
        ((1, 64, 56, 56), 64, (1, 1), {"layout": "NCHW"}),
        ((1, "h", 56, 64), 64, (1, 1), {}),
    ],
)
def test_other_convolutions_are_left(shape, outputs, attributes, named):
    assert operators(winograd(convolution(shape, outputs, *attributes, **named))) == ["nn.conv2d"]


def test_kernels_that_are_no_constants_are_left():
    b = Builder()
    x, w = b.input("x", (1, 56, 56, 64)), b.input("w", (3, 3, 64, 64))
    assert operators(winograd(b.graph(b.call("nn.conv2d", x, w, 1, 1, data_layout="NHWC")))) == ["nn.conv2d"]


def test_it_is_for_cpus():
    graph = convolution((1, 14, 14, 64), 64, 1, 1)
    assert "nn.conv2d_winograd_nhwc" in operators(optimized(graph))
    assert "nn.conv2d_winograd_nhwc" not in operators(optimized(graph, target="cuda"))


def block(size, batch, padding, channels=16):
    """A convolution, one with a residual, and means."""
    b = Builder()
    x = b.input("x", (batch, *size, channels))

    def convolved(data, inputs, pads):
        w, bias = (b.constant((RNG.standard_normal(s) / 12).astype("float32")) for s in ((3, 3, inputs, 32), (32,)))
        return b.call("add", b.call("nn.conv2d", data, w, 1, pads, data_layout="NHWC"), bias)

    y = b.call("nn.relu", convolved(x, channels, padding))
    z = b.call("nn.relu", b.call("add", convolved(y, 32, 1), y))
    return b.graph({"z": z, "m": b.call("mean", z, (1, 2))})


def computed(graph, x):
    values = {graph.inputs[0]: x, **graph.constants}
    for node in graph.nodes:
        values.update(zip(node.outputs, evaluate(node, {v: values[v].astype("float64") for v in node.inputs})))
    return [values[v] for v in graph.outputs.values()]


@pytest.mark.parametrize(
    ("target", "size", "batch", "padding"),
    [
        ("llvm -num-cores=1", (8, 8), 1, 1),
        ("llvm -num-cores=1", (9, 7), 2, (1, 0, 2, 1)),
        ("llvm -num-cores=2", (11, 10), 1, 0),
        ("interpreter", (8, 8), 1, 1),
    ],
)
def test_a_residual_block_computes_the_same(target, size, batch, padding):
    graph = block(size, batch, padding)
    model = compile_graph(graph, target)
    assert [n.operator for n in model.graph.nodes].count("nn.conv2d_winograd_nhwc") == 2
    x = RNG.standard_normal((batch, *size, 16)).astype("float32")
    for expected, actual in zip(computed(graph, x), model(x)):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_a_batch_of_any_size_computes_the_same():
    graph = block((8, 10), "n", 1)
    model = compile_graph(graph, "llvm")
    assert "nn.conv2d_winograd_nhwc" in operators(model.graph)
    for n in (1, 3):
        x = RNG.standard_normal((n, 8, 10, 16)).astype("float32")
        for expected, actual in zip(computed(graph.at({"n": n}), x), model(x)):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "taps", "strides", "padding"),
    [
        ((1, 4, 8, 8, 16), 3, 1, 1),
        ((2, 5, 8, 9, 16), 3, (2, 1, 1), (0, 1, 2, 2, 0, 1)),
        (("n", 3, 8, 8, 16), 1, 1, (0, 1, 1)),
        ((1, "frames", 8, 8, 32), 2, 1, 1),
    ],
)
def test_volumes_are_frames_beside_frames(shape, taps, strides, padding):
    b = Builder()
    w = RNG.standard_normal((taps, 3, 3, shape[-1], 32)).astype("float32") / 20
    x = b.input("x", shape)
    y = b.call("nn.conv3d", x, b.constant(w, "w"), strides, padding, data_layout="NDHWC")
    graph = b.graph(b.call("nn.relu", y))
    model = compile_graph(graph, "llvm")
    assert "nn.conv2d_winograd_nhwc" in operators(model.graph) and len(model.kernels) == 1
    sizes = {"n": 2, "frames": 5}
    x = RNG.standard_normal([sizes.get(s, s) for s in shape]).astype("float32")
    (expected,) = computed(graph.at(sizes), x)
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "named", [{"strides": (1, 2, 1)}, {"dilation": (2, 1, 1), "padding": 2}, {"groups": 2, "padding": 1}]
)
def test_other_volumes_are_left(named):
    b = Builder()
    x, groups_of = b.input("x", (1, 6, 16, 16, 32)), named.get("groups", 1)
    w = b.constant(np.ones((3, 3, 3, 32 // groups_of, 32), "float32"), "w")
    assert operators(winograd(b.graph(b.call("nn.conv3d", x, w, data_layout="NDHWC", **named)))) == ["nn.conv3d"]


def test_what_follows_is_in_the_kernel():
    (first, second, *_) = [g.name for g in groups(optimized(block((8, 8), 1, 1))) if "conv2d" in g.name]
    assert [first, second] == ["conv2d_winograd_nhwc_add_relu", "conv2d_winograd_nhwc_add_add_relu"]


def test_deep_layers_err_no_more_than_plain_sums():
    shape, channels = (1, 6, 6, 256), 256
    graph = convolution(shape, channels, 1, 1)
    x = RNG.standard_normal(shape).astype("float32")
    (exact,) = computed(graph, x)
    errors = []
    for each in (graph, winograd(graph)):
        errors.append(np.abs(tir.graph.model.compile_optimized(each, "llvm")(x) - exact).max() / np.abs(exact).max())
    assert max(errors) < 1e-5
