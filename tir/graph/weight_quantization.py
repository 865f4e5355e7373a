"""Weights as small integers: a pass that users apply before a graph is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checked import checked
from ..errors import ModelError
from ..names import did_you_mean
from ..te import Pattern
from .fusion import pattern_of
from .graph import Builder, Graph, Node, Value, values_in
from .graph_passes import evaluate


@dataclass(frozen=True)
class _Integers:
    """How many ``bits`` a weight has, and the largest integer that is one."""

    bits: int
    largest: int


PANELS = (64, 32, 16)  # columns that are read together, the first that divide those of a matrix
_TYPES = {"int8": _Integers(8, 127), "int4": _Integers(4, 7)}


@checked
def quantize(graph: Graph, dtype: str, group: int = 32) -> Graph:
    """The graph with integers of 8 or 4 bits (``"int8"``, ``"int4"``) for the constant matrices of its products, and a scale
    for each ``group`` of rows of a column; sums are of floats, as before.

    The second operand of ``matmul`` is taken if it is a constant float32 matrix whose rows are whole groups, transposed or not, or one that is moved or converted
    first. Kernels that read each weight a few times (products of one to four rows) make floats of integers themselves; for products of more rows, and of
    a symbolic number of them, that is done once, when the graph is compiled: ``compile_graph(graph, cases=[{"n": 1}])`` has kernels of both kinds. Raises ``ModelError`` for another type, and for a group that is no even number.

    >>> import numpy as np
    >>> from tir.graph import Builder, compile_graph, quantize
    >>> b = Builder()
    >>> w = np.random.default_rng(0).standard_normal((64, 2048)).astype("float32")
    >>> graph = b.graph(b.call("matmul", b.input("x", (1, 64)), b.constant(w, "w")))
    >>> made = [compile_graph(g) for g in (graph, quantize(graph, "int8"), quantize(graph, "int4"))]
    >>> [m.weights_bytes for m in made], [len(m.kernels) for m in made]
    ([524288, 147456, 81920], [1, 1, 1])
    >>> x = np.ones((1, 64), "float32")
    >>> [f"{abs(m(x) - made[0](x)).max():.1f}" for m in made[1:]]
    ['0.1', '2.7']
    """
    if dtype not in _TYPES:
        raise ModelError(
            f"weights are quantized to {' or '.join(_TYPES)}, not to {dtype!r}{did_you_mean(str(dtype), _TYPES)}"
        )
    if group < 2 or group % 2:
        raise ModelError(f"a group is an even number of rows, not {group!r}")
    held: dict[tuple[Value, bool], Value] = {}  # the floats of each weight, made once

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        weights = arguments.get("b")
        if node.operator != "matmul":
            return _moved(made, node, arguments)
        if not isinstance(weights, Value) or weights not in made.constants:
            return None
        is_turned = bool(arguments.get("transp_b"))
        if weights.dtype != "float32" or len(weights.shape) != 2 or weights.shape[is_turned] % group:
            return None
        if (weights, is_turned) not in held:
            matrix = made.constants[weights].T if is_turned else made.constants[weights]
            held[weights, is_turned] = _floats(made, matrix, weights.name, _TYPES[dtype], group)
        replayed = {**arguments, "b": held[weights, is_turned], "transp_b": False}
        return made.add(node.operator, replayed, [v.name for v in node.outputs], node.name)

    return graph.rewritten(visit)


def _moved(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
    """The result of a node that moves or converts the floats of a constant, as a constant; None of others, also of those that make floats of integers."""
    (value, *others), inputs = node.outputs, tuple(values_in(arguments.values()))
    if others or len(inputs) != 1 or inputs[0] not in made.constants or pattern_of(node) > Pattern.INJECTIVE:
        return None
    if value.elements != inputs[0].elements or not (value.dtype.is_float and inputs[0].dtype.is_float):
        return None
    (array,) = evaluate(Node(node.operator, arguments, node.outputs), made.constants)
    return [made.constant(array, value.name)]


def _floats(made: Builder, weights: np.ndarray, name: str, kind: _Integers, group: int) -> Value:
    """Nodes that compute a matrix of integers and scales, which are constants."""
    grouped = weights.reshape(-1, group, weights.shape[1])
    scales = np.abs(grouped).max(1, keepdims=True) / kind.largest
    integers = np.rint(grouped / np.where(scales == 0, 1, scales)).astype("int8").reshape(weights.shape)
    if kind.bits == 4:
        return dequantized(made, (integers + 8).astype("uint8"), scales, 8.0, 4, name)
    return dequantized(made, integers, scales, None, 8, name)


def dequantized(made: Builder, integers: np.ndarray, scales: np.ndarray, zeros: Any, bits: int, name: str) -> Value:
    """Nodes that compute ``(integers - zeros) * scales``, float32 ``(K, N)``: of ``scales`` ``(K / group, 1, N)`` there is one for a group of rows
    of a column, as of ``zeros`` if these are no number or None. Integers of 4 ``bits``, of 0 to 15, are kept two in a byte.

    All are kept in panels of neighbouring columns, each with its rows one after another, as a product of few rows reads them.
    """
    (rows, columns), groups = integers.shape, len(scales)
    width = next((w for w in PANELS if columns % w == 0), columns)

    def panels(array: np.ndarray, kind: str, *unit: int) -> Value:
        """A matrix of as many columns, as ``(N / width, rows, *unit, width)``."""
        cut = array.reshape(-1, *unit, columns // width, width)
        return made.constant(np.require(np.moveaxis(cut, -2, 0), requirements="C"), f"{name}_{kind}")

    if bits == 8:
        whole = panels(integers, "int8")
    else:
        whole = made.call("unpack_bits", panels(integers[::2] | (integers[1::2] << 4), "int4"), 4, 1)
    floats = made.call("reshape", made.call("astype", whole, "float32"), (-1, groups, rows // groups, width))
    if zeros is not None:
        zero = panels(zeros.astype("float32"), "zero", 1) if isinstance(zeros, np.ndarray) else zeros
        floats = made.call("subtract", floats, zero)
    scaled = made.call("multiply", floats, panels(scales.astype("float32"), "scale", 1))
    order = made.call("transpose", made.call("reshape", scaled, (-1, rows, width)), (1, 0, 2))
    return made.call("reshape", order, (rows, columns))
