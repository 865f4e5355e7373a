"""Taps of convolutions that meet padding alone."""

import numpy as np
import pytest

from tir.graph import Builder, compile_graph, optimized
from tir.graph.graph_passes import evaluate
from tir.graph.taps import leave_out_taps, pixels_apart, taps_apart

RNG = np.random.default_rng(0)


def convolution(size, kernel, strides, padding, dilation, groups=1):
    b = Builder()
    x = b.input("x", (2, 2 * groups, *size))
    w = b.constant(RNG.standard_normal((4, 2, *kernel)).astype("float32"), "w")
    return b.graph(b.call(f"nn.conv{len(size)}d", x, w, strides, padding, dilation, groups=groups))


def computed(graph, x):
    values = {graph.inputs[0]: x, **graph.constants}
    for node in graph.nodes:
        values.update(zip(node.outputs, evaluate(node, values)))
    (y,) = graph.outputs.values()
    return values[y]


@pytest.mark.parametrize(
    ("size", "kernel", "strides", "padding", "dilation", "left", "pads"),
    [
        ((8, 8), (3, 3), 1, 12, 12, (1, 1), [0, 0, 0, 0]),
        ((8, 13), (3, 3), 1, 12, 12, (1, 3), [0, 12, 0, 12]),  # along one axis alone
        ((9, 9), (5, 5), 1, (8, 8), (4, 4), (5, 5), None),  # each tap meets an element
        ((8, 8), (5, 5), 1, (8, 8), (4, 4), (3, 3), [4, 4, 4, 4]),
        ((7,), (3,), 2, (9, 5), 7, (2,), [2, 5]),  # one at the beginning; the last result needs the last tap
        ((7,), (3,), 1, (0, 20), 8, (1,), [0, 4]),
        ((3,), (2,), 1, (6, 0), 6, (1,), [0, 0]),
        ((3,), (2,), 1, (1, 5), 6, (2,), None),  # the first tap is dead for no result but the first
        ((3,), (3,), 2, (20, 20), 20, (1,), [0, 0]),  # all results but one are zero
        ((3, 3, 3), (3, 1, 3), 1, (4, 0, 1), (4, 1, 1), (1, 1, 3), [0, 0, 1, 0, 0, 1]),
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_taps_that_meet_padding_alone_are_left_out(size, kernel, strides, padding, dilation, left, pads, groups):
    graph = convolution(size, kernel, strides, padding, dilation, groups)
    made = leave_out_taps(graph)
    (node,) = made.nodes
    x = RNG.standard_normal(graph.inputs[0].shape).astype("float32")
    np.testing.assert_allclose(computed(made, x), computed(graph, x), rtol=1e-6, atol=1e-6)
    assert node.arguments["kernel"].shape[2:] == left
    assert pads is None or list(node.arguments["padding"]) == pads


def test_random_windows_compute_the_same():
    rng = np.random.default_rng(1)
    changed = 0
    for _ in range(60):
        size, kernel, gap, step, before, after = (int(rng.integers(1, n)) for n in (9, 6, 8, 4, 20, 20))
        if size + before + after < gap * (kernel - 1) + 1:
            continue
        graph = convolution((size,), (kernel,), step, (before, after), gap)
        made = leave_out_taps(graph)
        x = rng.standard_normal(graph.inputs[0].shape).astype("float32")
        np.testing.assert_allclose(computed(made, x), computed(graph, x), rtol=1e-6, atol=1e-6)
        changed += made.nodes[0].arguments["kernel"].shape != graph.nodes[0].arguments["kernel"].shape
    assert changed > 5


def last(size, kernel, strides, padding, dilation, channels=(32, 32), dtype="float32"):
    """A convolution of an image with channels last."""
    b = Builder()
    x = b.input("x", (2, *size, channels[0]), dtype)
    w = b.constant(RNG.standard_normal((*kernel, *channels)).astype(dtype), "w")
    layout = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[len(size)]
    return b.graph({"y": b.call(f"nn.conv{len(size)}d", x, w, strides, padding, dilation, data_layout=layout)})


@pytest.mark.parametrize(
    ("size", "kernel", "strides", "padding", "dilation", "taps"),
    [
        ((14, 14), (3, 3), 1, 12, 12, 9),
        ((14, 14), (3, 3), 1, (12, 1), (12, 1), 9),
        ((14, 29), (3, 3), 1, 14, 14, 3),  # along the rows no tap but one reads the image
        ((17, 18), (3, 3), 2, 12, 12, 9),
        ((18, 17), (3, 3), (2, 3), 12, 12, 9),
        ((20, 20), (2, 2), 1, (0, 0, 16, 16), 16, 4),
        ((5, 6, 7), (3, 3, 3), 1, 4, 4, 27),
        ((28,), (5,), 1, 26, 13, 5),
    ],
)
def test_taps_that_meet_much_padding_are_summed_apart(size, kernel, strides, padding, dilation, taps):
    graph = last(size, kernel, strides, padding, dilation)
    made = taps_apart(graph)
    parts = [n for n in made.nodes if n.operator.startswith("nn.conv")]
    assert len(parts) == taps and all(set(n.arguments["kernel"].shape[:-2]) == {1} for n in parts)
    x = RNG.standard_normal(graph.inputs[0].shape).astype("float32")
    expected = computed(graph, x)
    np.testing.assert_allclose(computed(made, x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "graph",
    [last((14, 29), (3, 3), 1, 14, 14), last((20, 20), (2, 2), 2, (0, 0, 16, 16), 16), last((28,), (5,), 1, 26, 13)],
)
def test_kernels_of_taps_apart_compute_the_same(graph):
    """Each part is one product whatever the window, so a few of the graphs above are enough."""
    assert len(taps_apart(graph).nodes) > len(graph.nodes)
    x = RNG.standard_normal(graph.inputs[0].shape).astype("float32")
    np.testing.assert_allclose(compile_graph(graph)(x), computed(graph, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "graph",
    [
        last((14, 14), (3, 3), 1, 1, 1),
        last((14, 14), (3, 3), 1, 12, 12, (32, 8)),  # too few results for products
        last((2, 2), (3, 3), 1, 1, 1, (64, 64)),  # it waits for the weights
        last((14, 14), (3, 3), 1, 12, 12, dtype="float16"),
        last((14, 14), (2, 2), 1, (7, 7), 14),  # no tap reads the image for every result
    ],
)
def test_taps_stay_together_where_that_is_faster_or_more_exact(graph):
    assert taps_apart(graph) is graph


def test_random_windows_of_taps_apart_compute_the_same(monkeypatch):
    monkeypatch.setattr("tir.graph.taps.SHARE", 10.0)
    rng = np.random.default_rng(2)
    changed = 0
    for _ in range(60):
        size, kernel, gap, step, before, after = (int(rng.integers(1, n)) for n in (12, 5, 8, 4, 9, 9))
        if size + before + after < gap * (kernel - 1) + 1:
            continue
        graph = last((size,), (kernel,), step, (before, after), gap)
        made, x = taps_apart(graph), rng.standard_normal(graph.inputs[0].shape).astype("float32")
        np.testing.assert_allclose(computed(made, x), computed(graph, x), rtol=1e-4, atol=1e-4)
        changed += made is not graph
    assert changed > 5


def test_images_of_symbolic_size_and_kernels_of_inputs_stay():
    b = Builder()
    x, y = b.input("x", (1, 2, "h", 8)), b.input("y", (1, 2, 8, 8))
    w, v = b.constant(np.ones((4, 2, 3, 3), "float32"), "w"), b.input("v", (4, 2, 3, 3))
    graph = b.graph({"a": b.call("nn.conv2d", x, w, 1, 12, 12), "b": b.call("nn.conv2d", y, v, 1, 12, 12)})
    assert str(leave_out_taps(graph)) == str(graph)


def test_a_compiled_atrous_convolution_is_a_product():
    graph = convolution((8, 8), (3, 3), 1, 24, 24)
    assert [v.shape for v in optimized(graph).constants] == [(4, 2, 1, 1)]
    x = RNG.standard_normal((2, 2, 8, 8)).astype("float32")
    np.testing.assert_allclose(compile_graph(graph)(x), computed(graph, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize(
    ("more", "is_product"),
    [
        ({}, True),
        ({"strides": 2}, True),
        ({"dilation": 2}, False),
        ({"padding": 1}, False),
        ({"strides": 2, "output_padding": 1}, False),
        ({"groups": 2}, False),
    ],
    ids=str,
)
def test_a_transposed_convolution_of_one_pixel_is_a_product(spatial, more, is_product):
    b = Builder()
    x = b.input("x", (2, 4, *[1] * spatial))
    w = b.constant(RNG.standard_normal((4, 6, *[3] * spatial)).astype("float32"), "w")
    graph = b.graph(b.call(f"nn.conv{spatial}d_transpose", x, w, **more))
    made = pixels_apart(graph)
    assert ("matmul" in [n.operator for n in made.nodes]) == is_product
    data = RNG.standard_normal(x.shape).astype("float32")
    np.testing.assert_allclose(computed(made, data), computed(graph, data), rtol=1e-6, atol=1e-6)
