"""Whole models: graphs after the passes, their groups, the memory plan, and the module that they become."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tir.graph import PASSES, Builder, Graph, groups, optimized, plan
from tir.graph.memory import aligned

from .stages import Texts


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
    roots = [f"{v.name} is in {root.name}" for v, root in found.roots.items()]
    yield "plan", "\n".join([*lines, *roots, f"{found.nbytes} bytes, {aligned(found.nbytes)}"])


MODELS = (convolutional, residual, elementwise, attention, views)
CASES = {make.__name__: partial(compiled, make) for make in MODELS}
