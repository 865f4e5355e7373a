"""Images with channels last: what follows a convolution, what does not, and that results are the same."""

import numpy as np
import pytest

from tir.graph import Builder, compile_graph
from tir.graph.image_layout import channels_last


def after_convolution(follow, spatial: int = 2, size: int = 4):
    """A graph of two convolutions with the nodes of ``follow(builder, image)`` between them; all sizes are equal, so that a
    permutation shows in values alone."""
    rng = np.random.default_rng(0)
    b = Builder()
    x = b.input("x", (1, 3, *[6] * spatial))
    w, v = (
        b.constant(rng.standard_normal((size, n, *[3] * spatial)).astype("float32"), k)
        for n, k in ((3, "w"), (size, "v"))
    )
    y = follow(b, b.call(f"nn.conv{spatial}d", x, w))
    is_image = len(y.shape) == 2 + spatial and y.shape[1] == size
    return b.graph({"y": b.call(f"nn.conv{spatial}d", y, v, padding=1) if is_image else y})


def constant(b: Builder, *shape: int):
    return b.constant(np.random.default_rng(len(shape)).uniform(0.5, 1, shape).astype("float32"), "c")


def pixels(y) -> tuple[int, ...]:
    return tuple(range(2 - len(y.shape), 0))


def normalized(b: Builder, y):
    return b.call("nn.batch_norm", b.call("nn.relu", y), *(constant(b, 4) for _ in range(4)))[0]


FOLLOWING = {
    "nothing": lambda b, y: y,
    "relu": lambda b, y: b.call("nn.relu", y),
    "bias": lambda b, y: b.call("add", y, constant(b, 4, 1, 1)),
    "bias of width": lambda b, y: b.call("add", y, constant(b, 4)),
    "image on the left": lambda b, y: b.call("subtract", constant(b, 1, 4, 4, 4), y),
    "residual": lambda b, y: b.call("add", b.call("exp", y), y),
    "scale of channels": lambda b, y: b.call("multiply", y, b.call("mean", y, (2, 3), True)),
    "mean of channels": lambda b, y: b.call("multiply", y, b.call("mean", y, 1, True)),
    "batch norm": normalized,
    "norm of groups": lambda b, y: b.call("nn.group_norm", y, constant(b, 4), constant(b, 4), 2, 1, pixels(y)),
    "norm of instances": lambda b, y: b.call("nn.instance_norm", y, constant(b, 4), constant(b, 4), 1, pixels(y)),
    "slopes of channels": lambda b, y: b.call("nn.prelu", y, constant(b, 4), 1),
    "largest in windows": lambda b, y: b.call("nn.pool2d", y, 3, 1, 1, 1, "max"),
    "resized": lambda b, y: b.call("image.resize2d", y, None, (8, 8)),
    "concatenated channels": lambda b, y: b.call("strided_slice", b.call("concatenate", (y, y), 1), (2,), (6,), (1,), (1,)),
    "concatenated rows": lambda b, y: b.call("concatenate", (y, b.call("exp", y)), 2),
    "slice of columns": lambda b, y: b.call("strided_slice", y, (1,), (3,), (1,), (-1,)),
    "mean of images": lambda b, y: b.call("mean", y, (2, 3)),
    "sum of a negative axis": lambda b, y: b.call("sum", y, (-1, -2)),
}  # fmt: skip
STAYING = {
    "sum of rows": lambda b, y: b.call("sum", y, 2),
    "softmax": lambda b, y: b.call("nn.softmax", y, 1),
    "transposition": lambda b, y: b.call("transpose", y, (0, 1, 3, 2)),
    "reshape": lambda b, y: b.call("reshape", y, (1, 64)),
    "running sum": lambda b, y: b.call("cumsum", y, 1),
    "triangle of pixels": lambda b, y: b.call("trilu", y, 0, True),
    "another image": lambda b, y: b.call("add", y, b.call("cumsum", b.call("nn.relu", y), 1)),
}


def results(graph, monkeypatch):
    monkeypatch.setattr("tir.graph.graph_passes.PASSES", [])
    x = np.random.default_rng(1).standard_normal(graph.inputs[0].shape).astype("float32")
    return compile_graph(graph, "interpreter")(x)


@pytest.mark.parametrize("name", [*FOLLOWING, *STAYING])
def test_results_are_the_same_with_channels_last(name, monkeypatch):
    monkeypatch.setattr("tir.graph.image_layout.MOVED", 100.0)
    graph = after_convolution({**FOLLOWING, **STAYING}[name])
    made = channels_last(graph)
    made.verify()
    assert {n.arguments["data_layout"] for n in made.nodes if n.operator == "nn.conv2d"} == {"NHWC"}
    moved = [n for n in made.nodes if n.operator == "transpose" and n.name == ""]
    of_image = len(graph.outputs["y"].shape) == 4
    assert (len(moved) <= 1 + of_image) == (name in FOLLOWING), (
        "transpositions at the borders alone, where nodes follow"
    )
    np.testing.assert_allclose(results(made, monkeypatch), results(graph, monkeypatch), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spatial", [1, 3])
def test_images_of_other_dimensions_have_channels_last(spatial, monkeypatch):
    monkeypatch.setattr("tir.graph.image_layout.MOVED", 100.0)
    graph = after_convolution(lambda b, y: b.call("nn.relu", y), spatial)
    made = channels_last(graph)
    assert [n.operator for n in made.nodes].count("transpose") == 2
    np.testing.assert_allclose(results(made, monkeypatch), results(graph, monkeypatch), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_transposed_convolutions_follow_where_transpositions_would_be_too_many(spatial, monkeypatch):
    b, rng = Builder(), np.random.default_rng(1)
    x = b.input("x", (1, 16, *[2] * spatial))
    v, w = (b.constant(rng.standard_normal((16, 16, *[n] * spatial)).astype("float32")) for n in (2, 3))
    up = b.call(f"nn.conv{spatial}d_transpose", b.call(f"nn.conv{spatial}d", x, w, 1, 1), v, 2)
    graph = b.graph({"y": b.call("mean", b.call(f"nn.conv{spatial}d", up, w), tuple(range(2, spatial + 2)))})
    made = channels_last(graph)
    operators = [node.operator.removeprefix("nn.") for node in made.nodes]
    convolution = f"conv{spatial}d"
    assert operators == ["transpose", convolution, f"{convolution}_transpose", convolution, "mean"]
    np.testing.assert_allclose(results(made, monkeypatch), results(graph, monkeypatch), rtol=1e-4, atol=1e-4)


def test_a_model_of_more_transpositions_than_convolutions_stays_as_it_is():
    graph = after_convolution(lambda b, y: b.call("cumsum", b.call("nn.relu", b.call("cumsum", y, 1)), 1))
    assert channels_last(graph) is graph


@pytest.mark.parametrize("layout", ["NHWC", "computed kernel"])
def test_what_has_a_layout_or_no_constant_kernel_stays(layout):
    b = Builder()
    x, w = b.input("x", (1, 8, 8, 8)), b.input("w", (3, 3, 8, 4)) if layout == "NHWC" else b.input("w", (4, 8, 3, 3))
    graph = b.graph(b.call("nn.conv2d", x, w, **({"data_layout": "NHWC"} if layout == "NHWC" else {})))
    assert [n.operator for n in channels_last(graph).nodes] == ["nn.conv2d"]


def test_the_compiled_model_is_right_by_both_engines():
    graph = after_convolution(lambda b, y: b.call("nn.relu", b.call("add", y, constant(b, 4, 1, 1))))
    x = np.random.default_rng(1).standard_normal((1, 3, 6, 6)).astype("float32")
    made = [compile_graph(graph, target)(x) for target in ("llvm", "interpreter")]
    np.testing.assert_allclose(*made, rtol=1e-4, atol=1e-5)
