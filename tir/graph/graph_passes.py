"""What is done to a graph before it is compiled: functions from graph to graph, in the list ``PASSES``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..checked import checked
from ..errors import ModelError, TirError
from ..interp.numbers import array_dtype
from ..ops import registry
from ..target import Target
from ..te import Pattern
from .fusion import READS, pattern_of, reads, view_of
from .graph import Builder, Graph, Node, Value, mapped, results, values_in
from .image_layout import channels_last
from .joined_products import join_products, transposed_operands
from .taps import CONVOLUTIONS, leave_out_taps, pixels_apart, taps_apart
from .winograd_pass import winograd

LARGEST_FOLDED = (
    1 << 16
)  # elements of a result that NumPy computes with loops; a moved or converted array may be larger


def evaluate(node: Node, constants: Mapping[Value, np.ndarray]) -> list[np.ndarray]:
    """The results of a node of constants, by the NumPy reference of its operator.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> graph = b.graph(b.call("exp", b.constant(np.zeros(2, "float32"))))
    >>> evaluate(graph.nodes[0], graph.constants)
    [array([1., 1.], dtype=float32)]
    """

    def wide(value: Value) -> np.ndarray:
        return constants[value].astype(np.float64) if value.dtype.is_float else constants[value]

    operator = registry.find(node.operator)
    bound = operator.signature.bind_partial()
    bound.arguments.update({k: mapped(a, wide) for k, a in node.arguments.items()})
    with np.errstate(all="ignore"):
        made = operator.reference(*bound.args, **bound.kwargs)
    several = made if isinstance(made, (list, tuple)) else [made]
    arrays = [np.asarray(a).astype(array_dtype(v.dtype)) for a, v in zip(several, node.outputs)]
    for array, value in zip(arrays, node.outputs):
        if array.shape != value.shape:
            raise ModelError(f"the reference of `{node}` makes an array {list(array.shape)}")
    return [np.require(a, requirements="C") for a in arrays]


def fold_constants(graph: Graph) -> Graph:
    """Nodes whose inputs are constants become constants: weights that are transposed, reshaped or converted, and small ones.

    What takes more than twice the bytes of its inputs stays, if no node reads each element of it more than a few times:
    integers are read faster than the floats that they stand for.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x, w = b.input("x", (2, 4)), b.constant(np.zeros((3, 4), "float32"), "w")
    >>> print(fold_constants(b.graph({"y": b.call("matmul", x, b.call("transpose", w))})))
    graph(%x: float32[2, 4])
      %transpose: float32[4, 3] = constant
      %matmul: float32[2, 3] = matmul(a=%x, b=%transpose)
      return y=%matmul
    """

    growing = _growing(graph)

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        inputs = tuple(values_in(arguments.values()))
        if not all(v in made.constants for v in inputs) or node in growing or node.sizes:
            return None
        is_small = sum(v.elements for v in node.outputs) <= LARGEST_FOLDED
        if not is_small and (not inputs or pattern_of(node) > Pattern.INJECTIVE):
            return None
        arrays = evaluate(Node(node.operator, arguments, node.outputs, node.name), made.constants)
        return [made.constant(array, v.name) for array, v in zip(arrays, node.outputs)]

    return graph.rewritten(visit)


def _growing(graph: Graph) -> set[Node]:
    """Nodes of constants alone that lead to a large tensor of more than twice their bytes, whose readers read each element a few
    times and are of no constants alone."""
    made_of = {v: v.nbytes for v in graph.constants}  # the bytes of constants that a value is made of
    for node in graph.nodes:
        if node.inputs and all(v in made_of for v in node.inputs):
            made_of.update(dict.fromkeys(node.outputs, sum(made_of[v] for v in set(node.inputs))))
    readers = graph.readers()
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        (value, *others) = node.outputs
        if (
            others
            or value not in made_of
            or not value.is_fixed
            or value not in readers
            or pattern_of(node) > Pattern.INJECTIVE
        ):
            continue
        grows = value.nbytes > 2 * made_of[value] and value.elements > LARGEST_FOLDED
        last = [n for n in readers[value] if n.outputs[0] not in made_of]
        if all(n in found or (grows and n in last and reads(n, value) <= READS) for n in readers[value]):
            found.add(node)
    return found


def remove_copies(graph: Graph) -> Graph:
    """Nodes whose result is their input are left out: a transposition that moves nothing, a conversion to the same type."""

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        source = next(values_in(arguments.values()), None)
        if source is None or len(node.outputs) != 1 or source.shape != node.outputs[0].shape:
            return None
        return None if view_of(node) is None else [source]

    return graph.rewritten(visit)


def inline_scalars(graph: Graph) -> Graph:
    """Constants of one element become numbers in the formulas of their readers, where the operator takes numbers."""

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        changed = dict(arguments)
        for name, argument in arguments.items():
            if isinstance(argument, Value) and argument in made.constants and argument.elements == 1:
                number = made.constants[argument].reshape(()).astype(np.float64 if argument.dtype.is_float else object)
                attempt = {**changed, name: number.item()}
                if math.isfinite(attempt[name]) and _makes(node, attempt):
                    changed = attempt
        if changed == arguments:
            return None
        return made.add(node.operator, changed, [v.name for v in node.outputs], node.name)

    return graph.rewritten(visit)


def _makes(node: Node, arguments: Mapping[str, Any]) -> bool:
    """Whether a node makes the same tensors of other arguments, some of which are still tensors."""
    if next(values_in(arguments.values()), None) is None:
        return False
    try:
        return results(node.operator, arguments) == tuple((v.shape, v.dtype) for v in node.outputs)
    except TirError:
        return False


def fold_batch_norm(graph: Graph) -> Graph:
    """A batch normalization after a convolution of constant weights, or after that and the addition of a constant bias, goes
    into weights and bias, if nothing else reads what is between them."""
    chains = _Convolutions(graph)
    data_of: dict[Value, Value] = {}  # what each convolution reads, in the new graph

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        if node.operator in CONVOLUTIONS:
            data_of[node.outputs[0]] = arguments["data"]
        found = chains.normalized_by(node)
        if found is None:
            return None
        conv, bias = found
        scale, shift = _scale_and_shift(node, graph.constants)
        weights = graph.constants[conv.arguments["kernel"]]
        per_channel = (-1, *[1] * (weights.ndim - 2))
        scaled = (weights * scale.reshape(*per_channel, 1)).astype(weights.dtype)
        kernel = made.constant(scaled, conv.arguments["kernel"].name)
        replayed = {**conv.arguments, "data": data_of[conv.outputs[0]], "kernel": kernel}
        (convolved,) = made.add(conv.operator, replayed, [conv.outputs[0].name], conv.name)
        total = (bias.reshape(-1) * scale + shift).astype(weights.dtype).reshape(per_channel)
        moved = made.constant(total, f"{node.outputs[0].name}_shift")
        results = made.add("add", {"x": convolved, "y": moved}, [node.outputs[0].name], node.name)
        return [*results, arguments["moving_mean"], arguments["moving_var"]]

    return graph.rewritten(visit)


_MOMENTS = ("gamma", "beta", "moving_mean", "moving_var")


class _Convolutions:
    """Which normalizations of a graph may go into the convolution before them."""

    def __init__(self, graph: Graph):
        self._constants = graph.constants
        self._makers = {v: node for node in graph.nodes for v in node.outputs}
        self._readers = graph.readers()
        self._results = set(graph.outputs.values())

    def normalized_by(self, node: Node) -> tuple[Node, np.ndarray] | None:
        """The convolution before a normalization, and the bias between them (zeros, where there is none)."""
        if node.operator != "nn.batch_norm" or node.arguments.get("training") or node.arguments.get("axis", 1) != 1:
            return None
        is_used = any(v in self._readers or v in self._results for v in node.outputs[1:])
        if is_used or not all(node.arguments[p] in self._constants for p in _MOMENTS):
            return None
        channels = node.arguments["gamma"].elements
        bias, before = np.zeros(channels), self._only_maker(node.arguments["data"], node)
        if before is not None and before.operator == "add":
            data, added = before.arguments["x"], before.arguments["y"]
            shape = (channels, *[1] * (len(before.outputs[0].shape) - 2))
            if not isinstance(data, Value) or added not in self._constants or added.shape != shape:
                return None
            bias, before = self._constants[added].astype(np.float64), self._only_maker(data, before)
        return (before, bias) if before is not None and self._is_plain(before) else None

    def _only_maker(self, value: Value, reader: Node) -> Node | None:
        """The node that makes a value, if ``reader`` alone reads it."""
        return self._makers.get(value) if self._readers[value] == [reader] and value not in self._results else None

    def _is_plain(self, node: Node) -> bool:
        is_usual = not any(node.arguments.get(p) for p in ("data_layout", "kernel_layout", "out_dtype"))
        return node.operator in CONVOLUTIONS and is_usual and node.arguments["kernel"] in self._constants


def _scale_and_shift(node: Node, constants: Mapping[Value, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    gamma, beta, mean, var = (constants[node.arguments[p]].astype(np.float64) for p in _MOMENTS)
    scale = 1 / np.sqrt(var + node.arguments.get("epsilon", 1e-5))
    if node.arguments.get("scale", True):
        scale = scale * gamma
    shift = -mean * scale
    return scale, shift + beta if node.arguments.get("center", True) else shift


PASSES: list[Callable[[Graph], Graph]] = [
    fold_constants, remove_copies, fold_batch_norm, inline_scalars, leave_out_taps, pixels_apart, channels_last, taps_apart, winograd, join_products, transposed_operands,
]  # fmt: skip


@checked
def optimized(graph: Graph, passes: Sequence[Callable[[Graph], Graph]] | None = None, target: Any = "llvm") -> Graph:
    """The graph after ``passes`` (``PASSES``, as it is now) that are for ``target``, each of which is checked after it ran.

    Raises ``ModelError`` for a graph that is none, and for a pass that makes one, changes an input, or changes the names,
    shapes or types of the results.

    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x = b.input("x", (2, 3))
    >>> print(optimized(b.graph({"y": b.call("exp", b.call("reshape", x, (2, 3)))})))
    graph(%x: float32[2, 3])
      %exp: float32[2, 3] = exp(x=%x)
      return y=%exp
    """
    graph.verify()
    kind = Target.of(target).kind
    for each in PASSES if passes is None else passes:
        if kind not in getattr(each, "targets", (kind,)):
            continue
        made = each(graph)
        if made is graph:
            continue
        try:
            made.verify()
        except ModelError as error:
            raise ModelError(f"pass {each.__name__} made a graph that is none: {error}") from error
        if _interface(made) != _interface(graph):
            raise ModelError(
                f"pass {each.__name__} changed the inputs or outputs: {_interface(graph)} to {_interface(made)}"
            )
        graph = made
    return graph


def _interface(graph: Graph) -> tuple[Any, ...]:
    return graph.inputs, tuple((name, v.shape, v.dtype) for name, v in graph.outputs.items())
