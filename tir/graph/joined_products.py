"""Products of one tensor with several constant matrices as one product; products by transposed matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .fusion import groups, keeps_rows
from .graph import Builder, Graph, Node, Value


def transposed_operands(graph: Graph) -> Graph:
    """Products by a matrix whose last two axes a transposition exchanges that is copied become products of what it transposes, with
    ``transp_b``: it is read where it is.

    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> q, k = b.input("q", (2, 9, 8)), b.input("k", (2, 5, 8))
    >>> print(transposed_operands(b.graph({"y": b.call("matmul", q, b.call("transpose", k, (0, 2, 1)))})))
    graph(%q: float32[2, 9, 8], %k: float32[2, 5, 8])
      %matmul: float32[2, 9, 5] = matmul(a=%q, b=%k, transp_b=True)
      return y=%matmul
    """
    multiplied = {n.arguments["b"] for n in graph.nodes if n.operator == "matmul"}
    if multiplied.isdisjoint(v for n in graph.nodes for v in n.outputs):
        return graph
    copies = {v: g.nodes[-1] for g in groups(graph) if all(map(keeps_rows, g.nodes[:-1])) for v in g.outputs}
    sources: dict[Node, Value] = {}  # what each transposition reads, in the new graph

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        if node.operator == "transpose":
            sources[node] = arguments["x"]
        copy = copies.get(node.arguments["b"]) if node.operator == "matmul" else None
        if copy is None or copy not in sources:
            return None
        last = len(copy.outputs[0].shape) - 1
        axes = [axis % (last + 1) for axis in copy.arguments.get("axes") or range(last, -1, -1)]
        if axes[-1] == last:
            return None
        order, source = [*axes[:-2], axes[-1], axes[-2]], sources[copy]
        if order != sorted(order):
            (source,) = made.add("transpose", {"x": source, "axes": order})
        turned = {**arguments, "b": source, "transp_b": not arguments.get("transp_b", False)}
        return made.add("matmul", turned, [node.outputs[0].name], node.name)

    return graph.rewritten(visit)


def join_products(graph: Graph) -> Graph:
    """Products of one tensor with constant matrices, such as those that make q, k and v, become one product with the columns of
    all; biases that are added to each become one too. Each result is a slice of columns.

    Whatever else is computed of one result in the kernel of its product becomes a kernel of its own: products are joined if there are no more
    kernels then than before.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x, w = b.input("x", (5, 8)), np.zeros((8, 4), "float32")
    >>> one, other = (b.call("matmul", x, b.constant(w, name)) for name in ("w1", "w2"))
    >>> print(join_products(b.graph({"y": b.call("multiply", b.call("tanh", one), other)})))
    graph(%x: float32[5, 8])
      %w1_w2: float32[8, 8] = constant
      %matmul_matmul_1: float32[5, 8] = matmul(a=%x, b=%w1_w2)
      %matmul: float32[5, 4] = strided_slice(x=%matmul_matmul_1, begin=[0], end=[4], axes=[1])
      %matmul_1: float32[5, 4] = strided_slice(x=%matmul_matmul_1, begin=[4], end=[8], axes=[1])
      %tanh: float32[5, 4] = tanh(x=%matmul)
      %multiply: float32[5, 4] = multiply(x=%tanh, y=%matmul_1)
      return y=%multiply
    """
    sites = _sites(graph)
    of = {product.node: site for site in sites for product in site}
    slices: dict[Node, Value] = {}  # what stands for the result of a product, or of the addition after it

    def visit(made: Builder, node: Node, arguments: Mapping[str, Any]) -> Sequence[Value] | None:
        if node in of and node not in slices:
            slices.update(_joined(made, of[node], arguments))
        return [slices[node]] if node in slices else None

    return graph.rewritten(visit) if sites else graph


@dataclass(frozen=True)
class _Product:
    """A product, and the addition of a constant bias to it if there is one."""

    node: Node
    weights: np.ndarray
    addition: Node | None
    bias: np.ndarray | None


def _sites(graph: Graph) -> list[list[_Product]]:
    """Products that become one, by what they read."""
    found: dict[tuple[Any, ...], list[_Product]] = {}
    readers = graph.readers()
    for node in graph.nodes:
        if (product := _product(graph, readers, node)) is not None:
            rest = sorted((k, v) for k, v in node.arguments.items() if k not in ("a", "b"))
            key = (node.arguments["a"], str(product.weights.dtype), product.addition is None, repr(rest))
            found.setdefault(key, []).append(product)
    several = [site for site in found.values() if len(site) > 1]
    if not several:
        return []
    kernels = _Kernels(graph, readers)
    return [site for site in several if 1 + sum(map(kernels.is_more, site)) <= len(site)]


def _product(graph: Graph, readers: Mapping[Value, list[Node]], node: Node) -> _Product | None:
    a, b = (node.arguments.get(p) for p in ("a", "b"))
    if node.operator != "matmul" or any(node.arguments.get(p) for p in ("transp_a", "transp_b")):
        return None
    if not isinstance(a, Value) or not isinstance(b, Value) or b not in graph.constants or len(b.shape) != 2:
        return None
    (result,) = node.outputs
    weights = graph.constants[b]
    reading = readers.get(result, [])
    if len(reading) == 1 and result not in graph.outputs.values() and reading[0].operator == "add":
        bias = _bias(graph, result, reading[0])
        return _Product(node, weights, None if bias is None else reading[0], bias)
    return _Product(node, weights, None, None)


def _bias(graph: Graph, result: Value, addition: Node) -> np.ndarray | None:
    """The numbers that are added to the columns of a product, if that is what an addition does."""
    other = next((v for v in addition.arguments.values() if v is not result), None)
    if not isinstance(other, Value) or other not in graph.constants or addition.outputs[0].shape != result.shape:
        return None
    is_row = other.shape[-1:] == result.shape[-1:] and other.elements == result.shape[-1]
    return graph.constants[other].reshape(-1) if is_row else None


class _Kernels:
    """What is computed in the kernels of products."""

    def __init__(self, graph: Graph, readers: Mapping[Value, list[Node]]):
        self._group = {node: group for group in groups(graph) for node in group.nodes}
        self._readers = readers
        self._results = set(graph.outputs.values())

    def is_more(self, product: _Product) -> bool:
        """Whether a kernel is needed for what is made of a slice of the columns: for all but moves that one other kernel makes."""
        group = self._group[product.node]
        rest = [n for n in group.nodes if n not in (product.node, product.addition)]
        reading = {self._group[n] for v in group.outputs for n in self._readers.get(v, ())}
        return not (all(map(keeps_rows, rest)) and self._results.isdisjoint(group.outputs) and len(reading) == 1)


def _joined(made: Builder, site: Sequence[_Product], arguments: Mapping[str, Any]) -> dict[Node, Value]:
    """Nodes for all products of a site, of which the first has ``arguments``; the slices that stand for their results."""
    names = [p.node.arguments["b"].name for p in site]
    weights = made.constant(np.concatenate([p.weights for p in site], 1), "_".join(names))
    (whole,) = made.add("matmul", {**arguments, "b": weights}, ["_".join(p.node.outputs[0].name for p in site)])
    if site[0].bias is not None:
        bias = made.constant(np.concatenate([p.bias for p in site if p.bias is not None]), f"{weights.name}_bias")
        (whole,) = made.add("add", {"x": whole, "y": bias}, [f"{whole.name}_bias"])
    found: dict[Node, Value] = {}
    begin = 0
    for product in site:
        last = product.addition or product.node
        end = begin + product.weights.shape[1]
        columns = {"x": whole, "begin": (begin,), "end": (end,), "axes": (len(whole.shape) - 1,)}
        (found[last],) = made.add("strided_slice", columns, [last.outputs[0].name], last.name)
        found.setdefault(product.node, found[last])
        begin = end
    return found
