"""Taps of convolutions that meet padding alone."""

import numpy as np
import pytest

from tir.graph import Builder, compile_graph, optimized
from tir.graph.graph_passes import evaluate
from tir.graph.taps import leave_out_taps

RNG = np.random.default_rng(0)


def convolution(size, kernel, strides, padding, dilation, groups=1):
    b = Builder()
    x = b.input("x", (2, 2 * groups, *size))
    w = b.constant(RNG.standard_normal((4, 2, *kernel)).astype("float32"), "w")
    return b.graph(b.call(f"nn.conv{len(size)}d", x, w, strides, padding, dilation, groups=groups))


def computed(graph, x):
    values = {graph.inputs[0]: x, **graph.constants}
    (node,) = graph.nodes
    return evaluate(node, values)[0]


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
