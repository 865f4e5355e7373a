"""Random graphs of operators of each class, and what they compute by the NumPy references of their operators.

``python -m tests.random_graphs FIRST LAST`` compares what is compiled with that, for the seeds of a range.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from tir.graph import PASSES, Builder, Graph, Value, optimized
from tir.graph.model import compile_optimized
from tir.graph.passes import evaluate

UNARY = ("nn.relu", "tanh", "sigmoid", "negative", "abs", "cos")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


class _Drawn:
    """A graph in the making: ``values`` may be read, those of floats."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.b = Builder()
        self.values: list[Value] = []

    def pick(self, rank: int | None = None) -> Value | None:
        """A value, one of the last ones more often; of ``rank`` dimensions."""
        found = [v for v in self.values if rank is None or len(v.shape) == rank]
        return found[-1 - min(int(self.rng.geometric(0.4)) - 1, len(found) - 1)] if found else None

    def weights(self, *shape: int, low: float = -1.0) -> Value:
        return self.b.constant(self.rng.uniform(low, 1, shape).astype("float32"), "w")

    def axis(self, of: Value) -> int:
        return int(self.rng.integers(len(of.shape)))

    # one function a class of operators; None where nothing fits

    def unary(self) -> Any:
        return self.b.call(str(self.rng.choice(UNARY)), self.pick())

    def binary(self) -> Any:
        x = self.pick()
        fitting = [v for v in self.values if v.shape == x.shape]
        kind = self.rng.integers(4)
        if kind == 0:
            y: Any = fitting[int(self.rng.integers(len(fitting)))]
        elif kind == 1:
            y = float(self.rng.uniform(-1, 1))
        else:
            y = self.weights(*(size if self.rng.integers(2) else 1 for size in x.shape))
        return self.b.call(str(self.rng.choice(BINARY)), x, y)

    def moved(self) -> Any:
        x, kind = self.pick(), self.rng.integers(4)
        axis = self.axis(x)
        if kind == 0:
            return self.b.call("transpose", x, tuple(map(int, self.rng.permutation(len(x.shape)))))
        if kind == 1:
            return self.b.call("flip", x, axis)
        if kind == 2:
            shape = [x.elements] if self.rng.integers(2) else [*x.shape[:-2], int(np.prod(x.shape[-2:]))]
            return self.b.call("reshape", x, shape)
        return self.b.call("take", x, self.b.constant(self.rng.integers(0, x.shape[axis], 3), "at"), axis)

    def sliced(self) -> Any:
        x = self.pick()
        axis = self.axis(x)
        begin = int(self.rng.integers(x.shape[axis]))
        return self.b.call("strided_slice", x, (begin,), (x.shape[axis],), axes=(axis,))

    def joined(self) -> Any:
        x = self.pick()
        axis = self.axis(x)
        if x.elements > 2048:
            return None
        return self.b.call("concatenate", (x, self.b.call("tanh", x)), axis)

    def reduced(self) -> Any:
        x = self.pick()
        return self.b.call(str(self.rng.choice(["mean", "max", "min"])), x, self.axis(x), bool(self.rng.integers(2)))

    def normalized(self) -> Any:
        x = self.pick()
        if self.rng.integers(2) or len(x.shape) < 2:
            return self.b.call("nn.softmax", x, self.axis(x))
        return self.b.call("nn.layer_norm", x, self.weights(x.shape[-1]), self.weights(x.shape[-1]), axis=-1)

    def product(self) -> Any:
        x = self.pick(2) or self.pick(3)
        if x is None or x.shape[-1] > 64:
            return None
        if self.rng.integers(3) == 0:
            return self.b.call("tanh", self.b.call("matmul", x, x, transp_b=True))
        return self.b.call("tanh", self.b.call("matmul", x, self.weights(x.shape[-1], int(self.rng.integers(1, 20)))))

    def products(self) -> Any:
        """Two or three products of one tensor, with or without biases."""
        x, bias = self.pick(2) or self.pick(3), self.rng.integers(2)
        if x is None or x.shape[-1] > 64:
            return None
        size = int(self.rng.integers(1, 8))
        made = [self.b.call("matmul", x, self.weights(x.shape[-1], size)) for _ in range(int(self.rng.integers(2, 4)))]
        made = [self.b.call("add", y, self.weights(size)) for y in made] if bias else made
        self.values.extend(self.b.call("tanh", y) if self.rng.integers(3) == 0 else y for y in made)
        return self.b.call("matmul", made[0], made[1], transp_b=True)

    def convolved(self) -> Any:
        x = self.pick(4)
        if x is None or min(x.shape[2:]) < 3 or x.elements > 4096:
            return None
        size = int(self.rng.integers(1, 6))
        y = self.b.call("nn.conv2d", x, self.weights(size, x.shape[1], 3, 3), padding=int(self.rng.integers(2)))
        if self.rng.integers(2):
            y = self.b.call("nn.batch_norm", y, *(self.weights(size, low=0.5) for _ in range(4)))[0]
        return self.b.call("tanh", y)

    def pooled(self) -> Any:
        x = self.pick(4)
        if x is None or min(x.shape[2:]) < 2:
            return None
        return self.b.call("nn.pool2d", x, 2, int(self.rng.integers(1, 3)), 1, 0, str(self.rng.choice(["max", "avg"])))

    def ordered(self) -> Any:
        x = self.pick()
        return self.b.call("tanh", self.b.call("cumsum", x, self.axis(x)))


_CLASSES = ("unary", "binary", "binary", "moved", "sliced", "joined", "reduced", "normalized", "product", "products", "convolved", "pooled", "ordered")  # fmt: skip


def random_graph(seed: int, most: int = 40) -> Graph:
    """A graph of some 5 to ``most`` nodes, the same for a seed."""
    drawn = _Drawn(seed)
    drawn.values = [drawn.b.input("x", (1, 3, 6, 6)), drawn.b.input("y", (5, 12)), drawn.b.input("z", (2, 4, 8))]
    for _ in range(int(drawn.rng.integers(5, most + 1))):
        made = getattr(drawn, str(drawn.rng.choice(_CLASSES)))()
        if made is not None and made.shape and made.elements <= 1 << 14:
            drawn.values.append(made)
    several = {
        drawn.values[-1],
        *(drawn.values[int(n)] for n in drawn.rng.integers(3, max(len(drawn.values), 4), 2) if n < len(drawn.values)),
    }
    return drawn.b.graph({f"out{n}": v for n, v in enumerate(sorted(several, key=lambda v: v.name))})


def inputs(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    """Random inputs."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, v.shape).astype("float32") for v in graph.inputs]


def expected(graph: Graph, given: list[np.ndarray]) -> Mapping[str, np.ndarray]:
    """The results by the references of the operators, node by node."""
    values = {**dict(zip(graph.inputs, given)), **graph.constants}
    for node in graph.nodes:
        values.update(zip(node.outputs, evaluate(node, values)))
    return {name: values[v] for name, v in graph.outputs.items()}


def check(graph: Graph, seed: int, target: str = "llvm") -> None:
    """Compare results of the graph, compiled with all passes but one, with those of the references."""
    given = inputs(graph, seed)
    wanted = expected(graph, given)
    left_out = [None, *PASSES][seed % (1 + len(PASSES))]
    final = optimized(graph, [p for p in PASSES if p is not left_out])
    made = compile_optimized(final, target)(*given)
    for array, (name, want) in zip(made if isinstance(made, tuple) else [made], wanted.items()):
        message = f"seed {seed}, without {getattr(left_out, '__name__', None)}: {name} of\n{graph}"
        np.testing.assert_allclose(array, want, rtol=1e-3, atol=1e-4, err_msg=message)


if __name__ == "__main__":
    wrong = 0
    for number in range(*map(int, sys.argv[1:3])):
        try:
            check(random_graph(number), number)
        except Exception as error:  # shown, and counted
            wrong += 1
            print(f"seed {number}: {error}", flush=True)
        if (number + 1) % 100 == 0:
            print(f"{number + 1 - int(sys.argv[1])} graphs, {wrong} wrong", flush=True)
    sys.exit(f"{wrong} are wrong" if wrong else 0)
