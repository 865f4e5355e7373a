"""Whole models: graphs after the passes, their groups, the memory plan, and the module that they become."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from tests.graph.test_image_layout import FOLLOWING, after_convolution
from tir.graph import PASSES, Builder, Graph, compile_graph, groups, optimized, plan, profile
from tir.graph.image_layout import channels_last
from tir.graph.memory_plan import aligned

from .stages import Texts, attempt


class Network:
    """A graph in the making, with constants of known values."""

    def __init__(self) -> None:
        self.b, self.rng = Builder(), np.random.default_rng(0)

    def weights(self, name: str, *shape: int) -> Any:
        return self.b.constant(self.rng.integers(1, 4, shape).astype("float32"), name)

    def conv(self, x: Any, name: str, to: int, by: int, size: int = 3) -> Any:
        return self.b.call("nn.conv2d", x, self.weights(name, to, by, size, size), padding=size // 2)

    def norm(self, x: Any, channels: int) -> Any:
        names = ("gamma", "beta", "mean", "var")
        return self.b.call("nn.batch_norm", x, *(self.weights(n, channels) for n in names))[0]


def convolutional(net: Network) -> Graph:
    b = net.b
    y = b.call("nn.relu", net.norm(net.conv(b.input("x", (1, 3, 8, 8)), "w", 4, 3), 4))
    y = b.call("nn.pool2d", y, 2, 2, 1, 0, "max")
    y = b.call("matmul", b.call("reshape", y, (1, 64)), b.call("transpose", net.weights("w2", 10, 64)))
    return b.graph({"y": b.call("nn.softmax", b.call("multiply", y, b.constant(np.float32(0.01), "scale")))})


def residual(net: Network) -> Graph:
    b = net.b
    x = b.call("nn.relu", net.conv(b.input("x", (1, 4, 8, 8)), "w0", 8, 4))
    for n in range(2):
        y = b.call("nn.relu", net.norm(net.conv(x, f"a{n}", 8, 8), 8))
        x = b.call("nn.relu", b.call("add", net.norm(net.conv(y, f"b{n}", 8, 8, 1), 8), x))
    return b.graph({"features": x, "mean": b.call("mean", x, axis=(2, 3))})


def elementwise(net: Network) -> Graph:
    b = net.b
    x, y = b.input("x", (4, 16)), b.input("y", (4, 16))
    a = b.call("add", b.call("exp", x), b.call("multiply", y, b.constant(np.float32(2), "two")))
    return b.graph({"a": a, "b": b.call("transpose", a), "c": b.call("sum", b.call("negative", a), axis=1), "x": x})


def attention(net: Network) -> Graph:
    b = net.b
    x = b.input("x", (8, 16))
    q, k, v = (b.call("matmul", x, net.weights(name, 16, 16)) for name in "qkv")
    scores = b.call("nn.softmax", b.call("matmul", q, b.call("transpose", k)))
    y = b.call("add", b.call("matmul", scores, v), x)
    return b.graph({"y": b.call("nn.relu", b.call("matmul", y, net.weights("o", 16, 4)))})


def views(net: Network) -> Graph:
    b = net.b
    x = b.call("reshape", b.input("x", (2, 3, 4)), (6, 4))
    y = b.call("expand_dims", x, 0)
    folded = b.call("add", b.constant(np.ones((2, 2), "float32"), "p"), b.constant(np.ones((2, 2), "float32"), "q"))
    return b.graph({"y": b.call("squeeze", y), "z": b.call("reshape", b.call("exp", x), (24,)), "folded": folded})


def compiled(make: Callable[[Network], Graph]) -> Texts:
    given = make(Network())
    yield "graph", str(given)
    made = given
    for number, one in enumerate(PASSES):
        made = optimized(made, [one])
        yield f"pass{number}", str(made)
    final = optimized(given)
    order = groups(final)
    yield "final", str(final)
    yield "groups", "\n".join(f"{g.name} {[*map(str, g.nodes)]} view={g.view}" for g in order)
    found = plan(order, final.outputs.values())
    lines = [f"{v.name} at {offset} lives {found.lives[v]}" for v, offset in found.offsets.items()]
    roots = [
        f"{v.name} is in {place.root.name}{f' at byte {place.begin}' if place.begin else ''}"
        for v, place in found.views.items()
    ]
    yield "plan", "\n".join([*lines, *roots, f"{found.nbytes} bytes, {aligned(found.nbytes)}"])


def in_layout(spatial: int) -> Texts:
    """Two convolutions and what may stand between them, with channels last: which nodes follow."""
    for name, follow in FOLLOWING.items():
        yield name.replace(" ", "-"), attempt(lambda: str(channels_last(after_convolution(follow, spatial))))  # noqa: B023


def joined(make: Callable[[Network], Graph]) -> Texts:
    """Why each node of a model is or is not in one kernel with each that reads it."""
    graph = optimized(make(Network()))
    lines = []
    for node in graph.nodes:
        readers = [other for other in graph.nodes if any(v in node.outputs for v in other.inputs)]
        lines += [
            f"{node.outputs[0].name}, {other.outputs[0].name}: {graph.why_not_fused(node.outputs[0].name, other.outputs[0].name)}"
            for other in readers
        ]
    yield "joined", "\n".join(lines)


def profiled() -> Texts:
    """The table of a model whose kernels take as long as a clock says, on a machine that is told."""
    b = Builder()
    x, w = b.input("x", (4, 8)), b.constant(np.ones((8, 8), "float32"), "w")
    y = b.call("cumsum", b.call("matmul", b.call("matmul", x, w), w), 1)
    model = compile_graph(b.graph({"y": b.call("reshape", y, (32,)), "z": b.call("exp", x)}), "interpreter")
    sizes = ({"L1": 1 << 15}, {"L1": 1, "L2": 1 << 20}, {"L3": 1 << 30}, {})
    rates = {"L1": 4e9, "L2": 3e9, "L3": 2e9, "memory": 1e9}
    for number, held in enumerate(sizes):
        clock = itertools.accumulate(itertools.cycle((1e-6, 3e-6, 2e-6, 7e-6, 5e-6)))
        machine = SimpleNamespace(sizes=held, peak=1e9 * (number + 1), bandwidth=rates)
        with (
            mock.patch.object(profile, "_machine", lambda model: machine),
            mock.patch("time.perf_counter", lambda: next(clock)),
        ):  # noqa: B023
            found = model.profile(np.ones((4, 8), "float32"), repeat=3)
        yield str(number), f"{found}\n{found._repr_html_()}\n{found.as_json()}"
    yield "none", f"{profile.Profile(())!r}\n{profile.Profile(()).as_json()}"


MODELS = (convolutional, residual, elementwise, attention, views)
CASES = {
    **{make.__name__: partial(compiled, make) for make in MODELS},
    **{f"why_not_fused-{make.__name__}": partial(joined, make) for make in MODELS},
    **{f"channels_last-{spatial}": partial(in_layout, spatial) for spatial in (1, 2, 3)},
    "profile": profiled,
}
