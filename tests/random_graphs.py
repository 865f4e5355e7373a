"""Random ONNX models of operators of each class, and what they compute by ``onnx.reference``.

``python -m tests.random_graphs FIRST LAST`` compares what is compiled with that, for the seeds of a range.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tir.errors import ModelError, RunError
from tir.graph import PASSES, Graph, optimized
from tir.graph.graph_passes import evaluate
from tir.graph.model import CompiledModel, compile_optimized

FLOATS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("Neg", {}), ("Abs", {}), ("Cos", {}), ("Sin", {}), ("Erf", {}), ("Exp", {}),
    ("Softplus", {}), ("Softsign", {}), ("Elu", {"alpha": 0.7}), ("LeakyRelu", {"alpha": 0.1}), ("Selu", {}), ("Mish", {}), ("Gelu", {}),
    ("HardSigmoid", {}), ("HardSwish", {}), ("Celu", {}), ("ThresholdedRelu", {"alpha": 0.2}), ("Identity", {}), ("Dropout", {}),
    ("Floor", {}), ("Ceil", {}), ("Round", {}), ("Sign", {}), ("Reciprocal", {}), ("Sqrt", {}), ("Log", {}), ("Atan", {}),
)  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Max", "Min", "Div", "Sum", "Mean", "PRelu", "Pow")
REDUCTIONS = ("Mean", "Max", "Min", "Sum", "Prod", "L1", "L2", "SumSquare", "LogSumExp")
OPEN = "known|are not all of size 1|steps of .* along an axis of|elements, and|do not broadcast"  # in the error of a graph that does not hold for all sizes
ROUNDED = 1e-6  # of the largest element: what each result is altered by, to see how far that goes
MOST_ALTERED, MOST_ELEMENTS, LARGEST = 1e-4, 1 << 13, 100.0


class Unfit(Exception):
    """What was drawn cannot be judged: its result is empty, too large, not finite, or hangs on rounding."""


@dataclass
class Drawn:
    """A model in the making. Of each tensor there are its elements, and those that it has when all results are rounded otherwise."""

    rng: np.random.Generator
    tensors: dict[str, list[np.ndarray]] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    values: list[str] = field(default_factory=list)  # of floats, that may be read

    def number(self, *ends: int) -> int:
        return int(self.rng.integers(*ends))

    def one(self, several: Any) -> Any:
        return several[self.number(len(several))]

    def array(self, name: str) -> np.ndarray:
        return self.tensors[name][0]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.array(name).shape

    def axis(self, name: str) -> int:
        """An axis, from the front or the back."""
        rank = len(self.shape(name))
        return self.number(-rank, rank)

    def pick(self, *ranks: int, of: Callable[[tuple[int, ...]], bool] = bool) -> str:
        """A tensor that fits, one of the last ones more often."""
        found = [v for v in self.values if (not ranks or len(self.shape(v)) in ranks) and of(self.shape(v))]
        if not found:
            raise Unfit
        return found[-1 - min(int(self.rng.geometric(0.4)) - 1, len(found) - 1)]

    def constant(self, array: Any) -> str:
        name = f"c{len(self.tensors)}"
        self.constants[name] = np.asarray(array)
        self.tensors[name] = [self.constants[name]] * 3
        return name

    def ints(self, *several: int) -> str:
        return self.constant(np.array(several, "int64"))

    def weights(self, *shape: int, low: float = -1.0) -> str:
        return self.constant(self.rng.uniform(low, 1, shape).astype("float32"))

    def input(self, name: str, *shape: int) -> None:
        given = self.rng.uniform(-1, 1, shape).astype("float32")
        self.tensors[name] = [given, *(self._rounded(given) for _ in range(2))]
        self.values.append(name)

    def _rounded(self, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f":
            return array
        by = ROUNDED * max(np.abs(array).max(initial=0), 1e-3)
        return array + (by * self.rng.choice([-1, 1], array.shape)).astype(array.dtype)

    def op(self, kind: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """The name of the result of a node, or of several."""
        from onnx import helper

        names = [f"t{len(self.tensors)}_{n}" for n in range(count)]
        node = helper.make_node(kind, inputs, names, name=f"{kind}_{len(self.nodes)}", **attributes)
        self.run(node)
        self.nodes.append(node)
        return names[0] if count == 1 else names

    def run(self, node: Any) -> None:
        """The results of a node by ``onnx.reference``. Raises :class:`Unfit`."""
        from onnx import helper, numpy_helper
        from onnx.reference import ReferenceEvaluator

        names = list(node.output)
        given = [
            helper.make_tensor_value_info(n, numpy_helper.from_array(self.array(n)).data_type, self.shape(n))
            for n in dict.fromkeys(node.input)
            if n
        ]
        graph = helper.make_graph([node], "one", given, [helper.make_value_info(n, helper.TypeProto()) for n in names])
        run = ReferenceEvaluator(_model(graph)).run
        with np.errstate(all="ignore"):
            made = zip(*(run(None, {v.name: self.tensors[v.name][n] for v in given}) for n in range(3)))
        for name, (exact, *others) in zip(names, made):
            exact = np.asarray(exact)
            self.tensors[name] = [exact, *(self._rounded(np.asarray(other)) for other in others)]
            _require_fit(*self.tensors[name])

    # one function a class of nodes: names of results

    def unary(self) -> Any:
        kind, attributes = self.one(FLOATS)
        return self.op(kind, self.pick(), **attributes)

    def binary(self) -> Any:
        x, kind = self.pick(), self.one(BINARY)
        same = [v for v in self.values if self.shape(v) == self.shape(x)]
        size = [s if self.number(2) else 1 for s in self.shape(x)][self.number(len(self.shape(x)) + 1) :]
        y = (
            self.one(same)
            if self.number(2) and kind != "Pow"
            else self.weights(*size, low=0.5 if kind == "Div" else -1)
        )
        if kind == "Pow":
            return self.op("Pow", self.op("Abs", x), self.weights(low=0.5))
        return self.op(kind, *([y, x] if kind not in ("PRelu", "Div", "Mean") and self.number(2) else [x, y]))

    def chosen(self) -> Any:
        x = self.pick()
        y = self.one([v for v in self.values if self.shape(v) == self.shape(x)])
        at = self.op(self.one(["Greater", "LessOrEqual", "Less", "GreaterOrEqual"]), x, self.weights(self.shape(x)[-1]))
        if self.number(2):
            at = self.op(self.one(["And", "Or", "Xor"]), at, self.op("Not", self.op("Less", y, self.weights())))
        return self.op("Where", at, x, y)

    def clipped(self) -> Any:
        x = self.pick()
        return self.op("Clip", x, *self.one([[self.weights()], ["", self.weights(low=0.1)]]))

    def residual(self) -> Any:
        """Something of the shape of a tensor, added to it: once, or twice."""
        x = self.pick(2, 3, 4, of=lambda s: s[-1] <= 64)
        for _ in range(self.number(1, 3)):
            y, size = x, self.number(1, 9)
            if self.number(3) == 0:
                y = self.op("LayerNormalization", y, self.weights(self.shape(x)[-1]), axis=-1)
            y = self.op("Relu", self.op("MatMul", y, self.weights(self.shape(x)[-1], size)))
            y = self.op("MatMul", y, self.weights(size, self.shape(x)[-1]))
            x = self.op("Add", *([x, y] if self.number(2) else [y, x]))
        return x

    def moved(self) -> Any:
        x = self.pick()
        rank, size = len(self.shape(x)), self.shape(x)
        kinds: list[Callable[[], Any]] = [
            lambda: self.op("Transpose", x, perm=self.rng.permutation(rank).tolist()),
            lambda: self.op("Flatten", x, axis=self.number(-rank, rank + 1)),
            lambda: self.op("Unsqueeze", x, self.ints(self.axis(x))),
            lambda: self.op("Squeeze", *self.one([[x], [x, self.ints(*(a for a in range(rank) if size[a] == 1))]])),
            lambda: self.op("Reshape", x, self.ints(-1, size[-1])),
            lambda: self.op("Reshape", x, self.ints(*([0] * (rank - 1)), -1)),
            lambda: self.op("Reshape", x, self.ints(*size[::-1])),
            lambda: self.op("Tile", x, self.ints(*self.rng.integers(1, 3, rank))),
            lambda: self.op("Slice", x, self.ints(-1), self.ints(-99), self.ints(self.axis(x)), self.ints(-1)),
            lambda: self.op("Expand", x, self.ints(2, *size)),
            lambda: self.op("Trilu", x, upper=self.number(2)) if rank > 1 else x,
            lambda: self.op("ReverseSequence", x, self.ints(*self.rng.integers(1, size[0] + 1, size[1])), batch_axis=1, time_axis=0) if rank > 1 else x,
        ]  # fmt: skip
        return self.one(kinds)()

    def depth(self) -> Any:
        even = self.pick(4, of=lambda s: s[1] % 4 == 0 or (s[2] % 2 == 0 and s[3] % 2 == 0))
        if self.shape(even)[1] % 4 == 0:
            return self.op("DepthToSpace", even, blocksize=2, mode=self.one(["DCR", "CRD"]))
        return self.op("SpaceToDepth", even, blocksize=2)

    def viewed(self) -> Any:
        """Rows of a tensor by another shape, which may need no kernel."""
        x = self.pick()
        begin = self.number(self.shape(x)[0])
        x = self.op("Slice", x, self.ints(begin), self.ints(self.shape(x)[0]), self.ints(0))
        return self.op("Reshape", x, self.ints(*self.one([(-1,), (1, -1), (0, -1), (-1, 1)])))

    def shaped(self) -> Any:
        """What is made of the shape of a tensor, at import."""
        x = self.pick()
        size = self.op("Shape", x)
        last = self.op("Gather", size, self.ints(-1))
        kinds: list[Callable[[], Any]] = [
            lambda: self.op("Add", x, self.op("ConstantOfShape", size, value=_tensor(0.5))),
            lambda: self.op("Expand", self.weights(self.shape(x)[-1]), size),
            lambda: self.op("Reshape", x, self.op("Concat", self.ints(-1), last, axis=0)),
            lambda: self.op("Concat", x, self.op("ConstantOfShape", size, value=_tensor(-1.0)), axis=self.axis(x)),
            lambda: self.op("Add", x, self.op("Cast", self.op("Range", self.constant(np.int64(0)), self.op("Squeeze", last), self.constant(np.int64(1))), to=1)),
            lambda: self.op("Mul", x, self.op("Cast", self.op("Size", x), to=1)),
            lambda: self.op("Slice", x, self.ints(0), self.op("Div", self.op("Add", last, self.ints(1)), self.ints(2)), self.ints(-1)),
        ]  # fmt: skip
        return self.one(kinds)()

    def sliced(self) -> Any:
        x = self.pick()
        axis = self.axis(x)
        size = self.shape(x)[axis]
        begin, step = self.number(size), self.number(1, 3)
        return self.op("Slice", x, self.ints(begin), self.ints(size), self.ints(axis), self.ints(step))

    def joined(self) -> Any:
        """Parts of a tensor, some changed, put together in any order, or kept as they are."""
        x = self.pick(of=lambda s: max(s) > 1)
        axis = int(np.argmax(self.shape(x))) if self.number(3) else 0
        if self.shape(x)[axis] < 2:
            raise Unfit
        first = self.number(1, self.shape(x)[axis])
        parts = self.op("Split", x, self.ints(first, self.shape(x)[axis] - first), axis=axis, count=2)
        parts = [self.op(self.one(["Tanh", "Neg"]), p) if self.number(2) else p for p in parts]
        if self.number(4) == 0:
            return parts
        return self.op("Concat", *(parts[int(n)] for n in self.rng.permutation(2)), axis=axis)

    def rotated(self) -> Any:
        """Halves of rows, turned as for rotary positions."""
        x = self.pick(of=lambda s: s[-1] % 2 == 0)
        half = self.shape(x)[-1] // 2
        a, b = self.op("Split", x, self.ints(half, half), axis=-1, count=2)
        turned = self.op("Concat", self.op("Neg", b), a, axis=-1)
        return self.op("Add", self.op("Mul", x, self.weights(2 * half)), self.op("Mul", turned, self.weights(2 * half)))

    def padded(self) -> Any:
        x, mode = self.pick(of=lambda s: min(s) > 1), self.one(["constant", "edge", "reflect"])
        return self.op("Pad", x, self.ints(*self.rng.integers(0, 2, 2 * len(self.shape(x)))), mode=mode)

    def gathered(self) -> Any:
        x = self.pick()
        axis = self.axis(x)
        size, kind = self.shape(x)[axis], self.number(3)
        if kind == 0:
            at = self.rng.integers(-size, size, self.one([(), (3,), (2, 2)]))
            return self.op("Gather", x, self.constant(at), axis=axis)
        if kind == 1 and size < 60:  # of onnx.reference
            return self.op("GatherElements", x, self.constant(self.rng.integers(-size, size, self.shape(x))), axis=axis)
        return self.op("GatherND", x, self.constant(self.rng.integers(0, self.shape(x)[0], (3, 1))))

    def scattered(self) -> Any:
        x = self.pick()
        size, reduction = self.shape(x)[0], self.one(["none", "add", "max"])
        rows = self.constant(self.rng.permutation(size)[: self.number(1, size + 1), None])
        updates = self.weights(len(self.array(rows)), *self.shape(x)[1:])
        if self.number(2):
            return self.op("ScatterND", x, rows, updates, reduction=reduction)
        at = np.broadcast_to(self.array(rows).reshape(-1, *[1] * (len(self.shape(x)) - 1)), self.shape(updates))
        return self.op("ScatterElements", x, self.constant(at.copy()), updates, axis=0, reduction=reduction)

    def reduced(self) -> Any:
        x, kind = self.pick(), self.one(REDUCTIONS)
        axes = sorted({a % len(self.shape(x)) for a in (self.axis(x), self.axis(x))})
        return self.op(f"Reduce{kind}", x, self.ints(*axes), keepdims=self.number(2))

    def ordered(self) -> Any:
        x = self.pick()
        axis = self.axis(x)
        if self.number(2):
            made = self.op("CumSum", x, self.constant(np.int64(axis)), exclusive=self.number(2), reverse=self.number(2))
            return self.op("Tanh", made)
        if self.number(2):
            return self.op("TopK", x, self.ints(self.number(1, self.shape(x)[axis] + 1)), axis=axis, count=2)[0]
        return self.op("Cast", self.op(self.one(["ArgMax", "ArgMin"]), x, axis=axis, keepdims=self.number(2)), to=1)

    def normalized(self) -> Any:
        x, kind = self.pick(), self.number(5)
        if kind == 0:
            return self.op(self.one(["LogSoftmax", "Hardmax"]), x, axis=self.axis(x))
        if kind == 1:
            return self.op("LpNormalization", x, axis=self.axis(x), p=2)
        if kind < 4 or len(self.shape(x)) < 3:
            return self.op("Softmax", x, axis=self.axis(x))
        channels = self.shape(x)[1]
        scale = [self.weights(channels), self.weights(channels)]
        if self.number(2):
            return self.op("InstanceNormalization", x, *scale)
        return self.op("BatchNormalization", x, *scale, self.weights(channels), self.weights(channels, low=0.5))

    def product(self) -> Any:
        x, kind = self.pick(2, 3, of=lambda s: s[-1] <= 64), self.number(4)
        size = self.shape(x)
        if kind == 0:
            y = self.op(
                "MatMul", x, self.op("Transpose", x, perm=[*range(len(size) - 2), len(size) - 1, len(size) - 2])
            )
        elif kind == 1 and len(size) == 2:
            n, across = self.number(1, 20), self.number(2)
            w = self.weights(*((n, size[1]) if across else (size[1], n)))
            bias = [self.weights(n)] if self.number(2) else []
            y = self.op("Gemm", x, w, *bias, transB=across, alpha=0.5, beta=2.0)
        elif kind == 2:
            letters = "abc"[: len(size)]
            y = self.op("Einsum", x, self.weights(3, size[-1]), equation=f"{letters},z{letters[-1]}->{letters[:-1]}z")
        else:
            y = self.op("MatMul", x, self.weights(size[-1], self.number(1, 20)))
        return self.op("Tanh", y) if self.number(2) else y

    def products(self) -> Any:
        """Two or three products of one tensor, with or without biases."""
        x, bias, size = self.pick(2, 3, of=lambda s: s[-1] <= 64), self.number(2), self.number(1, 8)
        made = [self.op("MatMul", x, self.weights(self.shape(x)[-1], size)) for _ in range(self.number(2, 4))]
        made = [self.op("Add", y, self.weights(size)) for y in made] if bias else made
        return [self.op("Tanh", y) if self.number(3) == 0 else y for y in made]

    def attention(self) -> Any:
        """Heads of attention, with a mask or without."""
        x = self.pick(2, of=lambda s: s[0] <= 16 and s[1] <= 64)
        rows, width = self.shape(x)
        heads, size = self.number(1, 4), self.number(2, 5)
        q, k, v = (self.op("MatMul", x, self.weights(width, heads * size)) for _ in range(3))
        q, k, v = (self.op("Reshape", t, self.ints(rows, heads, size)) for t in (q, k, v))
        q, v = (self.op("Transpose", t, perm=[1, 0, 2]) for t in (q, v))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[1, 2, 0]))
        if self.number(2):
            mask = np.where(np.tri(rows) > 0, 0, -1e4).astype("float32")
            scores = self.op(
                "Add",
                self.op("Clip", scores, self.constant(np.float32(-50)), self.constant(np.float32(50))),
                self.constant(mask / 100),
            )
        made = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.op("Reshape", self.op("Transpose", made, perm=[1, 0, 2]), self.ints(rows, heads * size))

    def convolved(self) -> Any:
        x = self.pick(4, of=lambda s: min(s[2:]) >= 3)
        channels, size, stride = self.shape(x)[1], self.number(1, 6), self.number(1, 3)
        kind = self.number(4)
        if kind == 0:
            y = self.op("ConvTranspose", x, self.weights(channels, size, 2, 2), strides=[stride] * 2)
        elif kind == 1:
            y = self.op(
                "Conv", x, self.weights(channels, 1, 3, 3), self.weights(channels), group=channels, pads=[1, 0, 1, 0]
            )
            size = channels
        else:
            pads = {"auto_pad": "SAME_UPPER"} if kind == 2 else {"pads": [1, 1, 0, 1]}
            y = self.op("Conv", x, self.weights(size, channels, 3, 3), strides=[stride] * 2, **pads)
        if self.number(2):
            y = self.op("BatchNormalization", y, *(self.weights(size, low=0.5) for _ in range(4)))
        return self.op(self.one(["Tanh", "Relu", "Sigmoid"]), y)

    def widened(self) -> Any:
        """A convolution of so many channels that fewer products pay."""
        x = self.pick(4, of=lambda s: min(s[2:]) >= 6)
        y = self.op("Conv", x, self.weights(16, self.shape(x)[1], 1, 1))
        y = self.op("Conv", y, self.weights(32, 16, 3, 3), self.weights(32), pads=self.one([[1] * 4, [1, 2, 1, 0]]))
        return self.op("Conv", self.op(self.one(["Tanh", "Sigmoid"]), y), self.weights(3, 32, 1, 1))

    def pooled(self) -> Any:
        x = self.pick(4, of=lambda s: min(s[2:]) >= 2)
        kind = self.one(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
        if kind.startswith("Global"):
            return self.op(kind, x)
        pads = [self.number(2)] * 4  # onnx.reference takes others for the largest elements otherwise than onnxruntime
        return self.op(kind, x, kernel_shape=[2, 2], strides=[self.number(1, 3)] * 2, pads=pads)

    def resized(self) -> Any:
        x = self.pick(4, of=lambda s: max(s[2:]) <= 8)
        how = self.one(
            [
                {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
                {"mode": "linear"},
            ]
        )
        return self.op("Resize", x, "", self.constant(np.float32([1, 1, 2, 2])), **how)

    def quantized(self) -> Any:
        """A product of integers that stand for floats, by blocks or by columns; or a tensor rounded to such."""
        x = self.pick(2, 3, of=lambda s: s[-1] <= 64)
        columns = self.number(1, 9)
        if self.number(3):
            w = self.constant(self.rng.integers(-127, 128, (self.shape(x)[-1], columns)).astype("int8"))
            w = self.op(
                "DequantizeLinear", w, self.constant(self.rng.uniform(0.001, 0.01, columns).astype("float32")), axis=1
            )
            return self.op("MatMul", x, w)
        scale = self.constant(np.float32(0.05)), self.constant(np.uint8(128))
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, *scale), *scale)

    def typed(self) -> Any:
        x, kind = self.pick(), self.one([11, 6, 7])  # double, int32, int64
        y = self.op("Cast", x, to=kind)
        return self.op("Cast", self.op("Mul" if self.number(2) else "Add", y, y), to=1)


_CLASSES = ["unary", "unary", "binary", "binary", "chosen", "clipped", "residual", "residual", "moved", "moved", "depth", "viewed", "viewed", "shaped", "sliced", "joined", "joined", "rotated", "padded", "gathered", "scattered", "reduced", "ordered", "normalized", "product", "products", "attention", "convolved", "widened", "pooled", "resized", "quantized", "typed"]  # fmt: skip


def _tensor(number: float) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.float32([number]))


def _model(graph: Any) -> Any:
    from onnx import helper

    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _require_fit(exact: np.ndarray, *others: np.ndarray) -> None:
    if exact.dtype.kind in "fiu":
        largest = np.abs(exact.astype("float64")).max(initial=0)
        if not 0 < exact.size <= MOST_ELEMENTS or not largest < LARGEST:
            raise Unfit
    for other in others:
        if other.shape != exact.shape or not np.allclose(
            other, exact, rtol=0, atol=MOST_ALTERED if exact.dtype.kind == "f" else 0
        ):
            raise Unfit


@dataclass(frozen=True)
class Model:
    """An ONNX model whose inputs have rows of open number, ``shapes`` with numbers for these, arrays for the inputs, and the results that it
    should make."""

    proto: Any
    shapes: dict[str, list[int]]
    given: list[np.ndarray]
    wanted: dict[str, np.ndarray]

    @property
    def graph(self) -> Graph:
        return self.graph_with(())

    def graph_with(self, left_open: Sequence[str]) -> Graph:
        """The graph with symbols for the rows of some inputs. Raises ``ModelError`` where it does not hold for all numbers of them."""
        from tir.importers.onnx import from_onnx

        return from_onnx(self.proto, {name: sizes for name, sizes in self.shapes.items() if name not in left_open})

    def with_rows(self, rows: Mapping[str, int], seed: int) -> Model:
        """The same model on inputs of other numbers of rows. Raises :class:`Unfit` where ``onnx.reference`` cannot run or judge it."""
        from onnx import numpy_helper

        drawn = Drawn(np.random.default_rng(seed))
        shapes = {name: [rows.get(name, sizes[0]), *sizes[1:]] for name, sizes in self.shapes.items()}
        for name, sizes in shapes.items():
            drawn.input(name, *sizes)
        drawn.tensors.update({t.name: [numpy_helper.to_array(t)] * 3 for t in self.proto.graph.initializer})
        if any(rows[n] < self.shapes[n][0] for n in rows) and any(
            n.op_type == "GatherElements" for n in self.proto.graph.node
        ):
            raise Unfit  # the reference reads elsewhere where constant places are beyond fewer rows
        for node in self.proto.graph.node:
            try:
                drawn.run(node)
            except Exception as error:  # of whatever class: the reference has no errors of its own
                raise Unfit from error
        return replace(
            self,
            shapes=shapes,
            given=[drawn.array(n) for n in shapes],
            wanted={n: drawn.array(n) for n in self.wanted},
        )


def random_model(seed: int, most: int = 40) -> Model:
    """A model of some 5 to ``most`` nodes, the same for a seed."""
    from onnx import TensorProto, helper, numpy_helper

    drawn = Drawn(np.random.default_rng(seed))
    shapes = {"x": [1, 3, 6, 6], "y": [5, 12], "z": [2, 4, 8], "open": [drawn.number(1, 6), 8]}
    for name, size in shapes.items():
        drawn.input(name, *size)
    inputs, count = list(drawn.values), drawn.number(5, most + 1)
    while len(drawn.nodes) < count:
        before = len(drawn.nodes)
        try:
            made = getattr(drawn, drawn.one(_CLASSES))()
        except Unfit:
            del drawn.nodes[before:]
            continue
        drawn.values += [n for n in ([made] if isinstance(made, str) else made) if drawn.shape(n)]
    last = [drawn.values[-1], *(drawn.one(drawn.values[len(inputs) :]) for _ in range(2))]
    results = {n: drawn.array(n) for n in sorted(set(last) - set(inputs))}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [f"rows_{n}", *shapes[n][1:]]) for n in inputs]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in results]
    tensors = [numpy_helper.from_array(a, n) for n, a in drawn.constants.items()]
    proto = _model(helper.make_graph(drawn.nodes, f"seed{seed}", infos, outputs, tensors))
    return Model(proto, shapes, [drawn.array(n) for n in inputs], results)


def random_graph(seed: int, most: int = 40) -> Graph:
    """The graph of a random model."""
    return random_model(seed, most).graph


def expected(graph: Graph, given: list[np.ndarray]) -> Mapping[str, np.ndarray]:
    """The results by the references of the operators, node by node."""
    values = {**dict(zip(graph.inputs, given)), **graph.constants}
    for node in graph.nodes:
        values.update(zip(node.outputs, evaluate(node, values)))
    return {name: values[v] for name, v in graph.outputs.items()}


def check(model: Model, seed: int, target: str = "llvm") -> CompiledModel:
    """Compare the results of a model, compiled with all passes but one, with those of ``onnx.reference``: twice, as calls use
    memory again; and with a result that an input has room for in its place, where that is legal."""
    compiled, names = _compiled(model.graph, seed, target)
    _compare(compiled, names, model, seed)
    return compiled


def check_sizes(model: Model, seed: int, target: str = "llvm") -> int:
    """Compare the results of a model with symbols for the rows of one or two inputs at three values of these: how many values could be
    judged. None can where the graph does not hold for all."""
    rng = np.random.default_rng(seed)
    names = [*model.shapes]
    left_open = sorted({names[int(k)] for k in rng.integers(len(names), size=2)})
    try:
        graph = model.graph_with(left_open)
    except ModelError as error:
        if not re.search(OPEN, str(error)):
            raise
        return 0
    compiled, states = _compiled(graph, seed, target)
    judged = 0
    for rows in (model.shapes, *({n: int(rng.integers(1, 10)) for n in left_open} for _ in range(2))):
        try:
            one = model if rows is model.shapes else model.with_rows(rows, seed)
        except Unfit:
            continue
        try:
            _compare(compiled, states, one, seed)
        except RunError as error:
            if rows is model.shapes or " needs " not in str(error):
                raise
        judged += 1
    return judged


def _compiled(graph: Graph, seed: int, target: str) -> tuple[CompiledModel, dict[str, str]]:
    """The model of a graph without the pass that the seed leaves out, and the results that it writes over inputs, by the input."""
    final = optimized(graph, [p for p in PASSES if p is not _left_out(seed)], target)
    state = _state(final) if seed % 2 else {}
    try:
        renamed = replace(final, outputs={state.get(n, n): v for n, v in final.outputs.items()})
        return compile_optimized(renamed, target, tuple(state.values())), {new: old for old, new in state.items()}
    except ModelError as error:
        if "cannot be updated in place" not in str(error):
            raise
        return compile_optimized(final, target), {}


def _left_out(seed: int) -> Any:
    return [None, *PASSES][seed % (1 + len(PASSES))]


def _compare(compiled: CompiledModel, names: Mapping[str, str], model: Model, seed: int) -> None:
    given = dict(zip(model.shapes, model.given))
    for _ in range(2):
        kept = {name: given[name].copy() for name in names}
        made = compiled(**{n: a for n, a in given.items() if n not in names}, state=kept)
        made = dict(zip((p.name for p in compiled.outputs), made if isinstance(made, tuple) else (made,)))
        for name, array in {**made, **{names[n]: a for n, a in kept.items()}}.items():
            without = getattr(_left_out(seed), "__name__", None)
            message = f"seed {seed}, without {without}, inputs {model.shapes}: {name} of\n{compiled.graph}"
            np.testing.assert_allclose(array, model.wanted[name], rtol=1e-3, atol=5e-4, err_msg=message)


def _state(graph: Graph) -> dict[str, str]:
    """A result and an input of its shape and type, if there are such."""
    pairs = [
        (n, i.name) for n, v in graph.outputs.items() for i in graph.inputs if (v.shape, v.dtype) == (i.shape, i.dtype)
    ]
    return dict(pairs[:1])


if __name__ == "__main__":
    wrong, seen = 0, Counter[str]()
    for number in range(*map(int, sys.argv[1:3])):
        try:
            made = random_model(number)
            seen.update(node.op_type for node in made.proto.graph.node)
            done = check(made, number)
            seen["symbolic"] += check_sizes(made, number)
            seen.update({"results over inputs": len(done.plan.replaced), "states": len(done.state)})
            seen["views"] += len(done.plan.views) - len(done.plan.replaced)
        except Exception as error:  # shown, and counted
            wrong += 1
            print(f"seed {number}: {type(error).__name__} {error}", flush=True)
        if (number + 1) % 100 == 0:
            print(f"{number + 1 - int(sys.argv[1])} graphs, {wrong} wrong", flush=True)
    print(", ".join(f"{kind} {count}" for kind, count in seen.most_common()))
    sys.exit(f"{wrong} are wrong" if wrong else 0)
