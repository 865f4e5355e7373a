"""Which nodes become one kernel: decided by how elements of their results depend on their inputs, never by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

from ..analysis.pattern import Pattern
from ..arith import Analyzer
from ..expr import BufferLoad, Expr, is_const
from ..function import PrimFunc
from ..ops import classes
from ..stmt import Block, BufferStore
from ..te import Tensor, compute, create_prim_func, placeholder
from ..te.tensor import PlaceholderOp
from ..visit import walk
from .graph import Graph, Node, Value


def node_function(node: Node) -> PrimFunc:
    """The function of a node by itself: its inputs that are used, and its results."""
    return group_function((node,), tuple(dict.fromkeys(node.inputs)), node.outputs)


def group_function(nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> PrimFunc:
    """The function of several nodes: its parameters are ``inputs`` and ``outputs``, in order."""
    tensors: dict[Value, Tensor] = {v: placeholder(v.shape, v.dtype, f"p{n}") for n, v in enumerate(inputs)}
    for node in nodes:
        tensors.update(zip(node.outputs, map(_computed, node.tensors(tensors.__getitem__))))
    return create_prim_func([tensors[v] for v in (*inputs, *outputs)])


def _computed(tensor: Tensor) -> Tensor:
    """A result that is an input, given back as it is, as a copy of it."""
    if isinstance(tensor.op, PlaceholderOp):
        return compute(tensor.shape, lambda *i: tensor[i], name="copy")
    return tensor


def pattern_of(node: Node) -> Pattern:
    """The class of a node: see :func:`tir.ops.pattern`."""
    return _about(node)[0]


def view_of(node: Node) -> Value | None:
    """The input whose bytes are those of the only result, in the same order: of a reshape, and of what is one. Else None.

    >>> from tir.graph import Builder, view_of
    >>> b = Builder()
    >>> x = b.input("x", (2, 1, 3))
    >>> flat, turned = b.call("reshape", x, (6,)), b.call("transpose", x, (1, 0, 2))
    >>> [view_of(node).name for node in b.graph({"a": flat, "b": turned}).nodes]
    ['x', 'x']
    """
    return _about(node)[1]


@lru_cache(maxsize=4096)
def _about(node: Node) -> tuple[Pattern, Value | None]:
    func = node_function(node)
    inputs = tuple(dict.fromkeys(node.inputs))
    is_view = len(inputs) == len(node.outputs) == 1 and _keeps_order(func)
    return classes.pattern(func), inputs[0] if is_view else None


def _keeps_order(func: PrimFunc) -> bool:
    """Whether a function of one input and one result stores the bytes of its input at the places where they were."""
    source, result = func.buffers()
    blocks = [n for n in walk(func.body) if isinstance(n, Block) and n.iter_vars]
    stores = [n for n in walk(func.body) if isinstance(n, BufferStore)]
    if len(stores) != 1 or stores[0].buffer is not result or not isinstance(stores[0].value, BufferLoad):
        return False
    store, load = stores[0], stores[0].value
    if load.buffer is not source or source.dtype != result.dtype or _count(source.shape) != _count(result.shape):
        return False
    analyzer = Analyzer()
    for iterator in (i for block in blocks for i in block.iter_vars):
        analyzer.bind(iterator.var, iterator.dom)
    difference = analyzer.simplify(_flat(load.indices, source.shape) - _flat(store.indices, result.shape))
    return is_const(difference, 0)


def _count(shape: Sequence[Any]) -> int:
    return reduce(lambda n, size: n * int(size), shape, 1)


def _flat(indices: Sequence[Expr], shape: Sequence[Any]) -> Any:
    return reduce(lambda at, axis: at * axis[1] + axis[0], zip(indices, shape), 0)


@dataclass(frozen=True)
class Group:
    """Nodes that run as one kernel, in order. ``inputs`` come from outside; ``outputs`` are read outside, or results.

    ``view`` is the input that the only output shares its memory with: then there is no kernel.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    view: Value | None = None

    @property
    def name(self) -> str:
        """The operators, one after another."""
        return "_".join(node.operator.rpartition(".")[2] for node in self.nodes)


def groups(graph: Graph) -> tuple[Group, ...]:
    """The kernels of a graph, in the order in which they run.

    A node joins the group of a producer that it alone reads: if each of its elements needs one of the producer's at an
    index computed from its own (elementwise, broadcast, injective); or if it is a reduction that reads each element once,
    and all before it are of these three classes. An opaque node stays alone. A group so has one exit, and runs where its
    last node stands.

    >>> from tir.graph import Builder, groups
    >>> b = Builder()
    >>> x, w = b.input("x", (4, 8)), b.input("w", (8, 2))
    >>> [g.name for g in groups(b.graph(b.call("nn.relu", b.call("matmul", x, w))))]
    ['matmul_relu']
    """
    readers = graph.readers()
    results = set(graph.outputs.values())
    made_by: dict[Value, list[Node]] = {}  # the group that ends with a value
    ends: dict[int, list[Node]] = {}  # by the identity of the list
    for node in graph.nodes:
        found = [
            made_by[v]
            for v in dict.fromkeys(node.inputs)
            if v in made_by and v not in results and all(r is node for r in readers[v]) and _joins(node, made_by[v])
        ]
        group = max(found, key=lambda nodes: max(map(pattern_of, nodes)), default=[])
        group.append(node)
        ends[id(group)] = group
        used = [v for v in node.outputs if v in readers or v in results]
        if len(used) == 1:
            made_by[used[0]] = group
    order = {id(node): n for n, node in enumerate(graph.nodes)}
    made = sorted(ends.values(), key=lambda nodes: order[id(nodes[-1])])
    return tuple(_group(nodes, readers, results) for nodes in made)


def _joins(node: Node, group: Sequence[Node]) -> bool:
    own, heaviest = pattern_of(node), max(map(pattern_of, group))
    if own is Pattern.REDUCTION:
        return heaviest <= Pattern.INJECTIVE
    return own <= Pattern.INJECTIVE and heaviest is not Pattern.OPAQUE


def _group(nodes: Sequence[Node], readers: dict[Value, list[Node]], results: set[Value]) -> Group:
    inside = set(map(id, nodes))
    made = {v: None for node in nodes for v in node.outputs}
    inputs = {v: None for node in nodes for v in node.inputs if v not in made}
    outputs = [v for v in made if v in results or any(id(r) not in inside for r in readers.get(v, ()))]
    is_alone = len(nodes) == 1 and len(outputs) == 1 and outputs[0] not in results
    return Group(tuple(nodes), tuple(inputs), tuple(outputs), view_of(nodes[0]) if is_alone else None)
