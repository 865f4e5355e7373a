"""Which nodes become one kernel: decided by how elements of their results depend on their inputs, never by their names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

from ..arith import Analyzer, simplify
from ..checked import checked
from ..errors import ModelError
from ..expr import BufferLoad, Expr, Reduce, Var, as_expr, is_const
from ..function import PrimFunc
from ..names import did_you_mean
from ..node import cached_property
from ..stmt import AssertStmt, Block, BlockRealize, BufferStore, IterVar, Range, SeqStmt, seq
from ..te import Pattern, Tensor, compute, create_prim_func, pattern, placeholder
from ..te.computation import ComputeOp
from ..te.tensor import PlaceholderOp
from ..visit import statements, substitute, walk
from .graph import Graph, Node, Value, mapped
from .sizes import Extent, extents, is_size, sized, symbols, usual, variables


def node_function(node: Node) -> PrimFunc:
    """The function of a node by itself: its inputs that are used, and its results."""
    return _alone(node).function()


def group_function(nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> PrimFunc:
    """The function of several nodes: its parameters are ``inputs`` and ``outputs``, in order, and the symbols in their sizes."""
    if len(nodes) == 1 and tuple(dict.fromkeys(nodes[0].inputs)) == tuple(inputs):
        given, made = nodes[0].tensors_alone()
        tensors = dict(zip((*inputs, *nodes[0].outputs), (*given, *map(_computed, made, nodes[0].outputs))))
    else:
        tensors = {v: placeholder(extents(v.shape), v.dtype, f"p{n}") for n, v in enumerate(inputs)}
        for node in nodes:
            tensors.update((v, _computed(t, v)) for v, t in zip(node.outputs, node.tensors(tensors.__getitem__)))
    sizes = variables(symbols([s for node in nodes for s in node.sizes]))
    return _unchecked(create_prim_func([*(tensors[v] for v in (*inputs, *outputs)), *sizes]))


def _unchecked(func: PrimFunc) -> PrimFunc:
    """A function without the assertions about its sizes: a model checks them once, at the call."""
    root = func.body
    if not isinstance(root, BlockRealize) or not isinstance(root.block.body, SeqStmt):
        return func
    kept = [s for s in root.block.body.stmts if not isinstance(s, AssertStmt)]
    return func.with_body(root.replace(block=root.block.replace(body=seq(kept))))


def _computed(tensor: Tensor, value: Value) -> Tensor:
    """A result: an input that is given back as it is, as a copy of it; sizes as those of ``value``, which are simpler where symbols are at least 1."""
    op, shape = tensor.op, extents(value.shape)
    if isinstance(op, PlaceholderOp):
        return compute(tensor.shape, lambda *i: tensor[i], name="copy")
    body = op.body[0] if isinstance(op, ComputeOp) and len(op.body) == 1 else None
    if not isinstance(op, ComputeOp) or body is None or isinstance(body, Reduce):
        return tensor
    if all(is_const(simplify(a - b), 0) for a, b in zip(tensor.shape, shape)):
        return tensor
    return compute(shape, lambda *i: substitute(body, {a.var: at for a, at in zip(op.axis, i)}), name=op.name)


def pattern_of(node: Node) -> Pattern:
    """The class of a node: see :func:`tir.ops.pattern`."""
    return _about(node).pattern


@dataclass(frozen=True)
class View:
    """The bytes of a value from ``begin`` on, as another value."""

    source: Value
    begin: Extent


def view_of(node: Node) -> View | None:
    """The input in whose bytes those of the only result are, in the same order, and where they begin: of a reshape, of a slice of
    the first axis, and of what is one. Else None.

    >>> from tir.graph import Builder, view_of
    >>> b = Builder()
    >>> x = b.input("x", (2, 1, 3))
    >>> flat, turned = b.call("reshape", x, (6,)), b.call("transpose", x, (1, 0, 2))
    >>> last = b.call("strided_slice", x, (1,), (2,), axes=(0,))
    >>> [view_of(node).begin for node in b.graph({"a": flat, "b": turned, "c": last}).nodes]
    [0, 0, 12]
    """
    is_of_one = len(set(node.inputs)) == len(node.outputs) == 1  # else there is no need of its function
    begin = _about(node).begin if is_of_one else None
    return None if begin is None else View(node.inputs[0], begin)


def keeps_rows(node: Node) -> bool:
    """Whether a node only moves elements of one input, and neighbours at the last axis were neighbours before."""
    return _about(node).keeps_rows


def is_pointwise(node: Node) -> bool:
    """Whether elements of a node's results depend on those of its inputs at the same place, axes aligned as in NumPy, and not on the place itself: a
    permutation of all axes before it may as well stand behind it."""
    return _about(node).is_pointwise


@dataclass(frozen=True)
class _About:
    """Properties of the function of a node: its class; whether it is pointwise; the byte of its only input at which its result begins, if that is a view;
    whether it only moves elements, and those that stand beside each other at the last axis stood so before."""

    pattern: Pattern
    is_pointwise: bool
    begin: Extent | None
    keeps_rows: bool


@lru_cache(maxsize=4096)
def _about(node: Node) -> _About:
    return _told(_alone(node))


def _alone(node: Node) -> Formula:
    return Formula((node,), tuple(dict.fromkeys(node.inputs)), node.outputs)


class Formula:
    """What nodes compute of ``inputs``, as a key: those that differ in the names of values alone are equal."""

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]):
        self.nodes, self.inputs, self.outputs = nodes, inputs, outputs
        numbers = {v: n for n, v in enumerate(inputs)}
        parts: list[Any] = [[(v.shape, str(v.dtype)) for v in inputs]]
        for node in nodes:
            parts.append((node.operator, *((k, mapped(a, lambda v: numbers[v])) for k, a in node.arguments.items())))
            numbers.update((v, len(numbers)) for v in node.outputs)
        self._text = repr([*parts, [numbers[v] for v in outputs]])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @lru_cache(maxsize=1024)  # noqa: B019
    def function(self) -> PrimFunc:
        """The function: its parameters are inputs and outputs, in order."""
        return group_function(self.nodes, self.inputs, self.outputs)


@lru_cache(maxsize=4096)
def _told(formula: Formula) -> _About:
    func, inputs = formula.function(), formula.inputs
    kind = pattern(func)
    is_pointwise = kind <= Pattern.BROADCAST and all(map(_is_pointwise, _blocks(func)))
    moved = _moved(func) if len(inputs) == len(formula.outputs) == 1 else None
    if moved is None:
        return _About(kind, is_pointwise, None, False)
    begin = moved.begin()
    return _About(kind, is_pointwise, None if begin is None else begin * inputs[0].itemsize, moved.keeps_rows())


def _is_pointwise(block: Block) -> bool:
    own = {i.var for i in block.iter_vars}
    for store in (n for n in statements(block.body) if isinstance(n, BufferStore)):
        outside = list(walk(store.value, lambda n: not isinstance(n, BufferLoad)))
        if not own.isdisjoint(n for n in outside if isinstance(n, Var)):
            return False
        for load in (n for n in outside if isinstance(n, BufferLoad)):
            aligned = store.indices[len(store.indices) - len(load.indices) :] if load.indices else ()
            if any(i is not at and not is_const(i, 0) for i, at in zip(load.indices, aligned)):
                return False
    return True


@dataclass(frozen=True)
class _Moves:
    """A function of one input and one result that stores elements as they are: where from and where to, as flat indices of
    ``iterators``, of which ``last`` is the index at the last axis of the result."""

    iterators: tuple[IterVar, ...]
    source: Any
    result: Any
    last: Expr | None

    def _simplified(self, difference: Any, last: int = 0) -> Any:
        """A difference of indices, where ``last`` iterations of the last axis are left out."""
        analyzer = Analyzer()
        for i in self.iterators:
            extent = i.dom.extent - last if i.var is self.last else i.dom.extent
            analyzer.bind(i.var, Range(i.dom.min, extent))
        return analyzer.simplify(difference)

    def begin(self) -> Extent | None:
        """The element of the source at which the result begins, if it is a piece of it in the same order."""
        first = self._simplified(self.source - self.result)
        return sized(first) if is_size(first) else None

    def keeps_rows(self) -> bool:
        """Whether neighbours at the last axis of the result are neighbours in the source."""
        if not isinstance(self.last, Var):
            return False
        following = substitute(self.source, {self.last: self.last + 1})
        return is_const(self._simplified(following - self.source, last=1), 1)


def _moved(func: PrimFunc) -> _Moves | None:
    source, result = func.buffers()
    blocks = _blocks(func)
    stores = [n for n in statements(func.body) if isinstance(n, BufferStore)]
    if len(stores) != 1 or stores[0].buffer is not result or not isinstance(stores[0].value, BufferLoad):
        return None
    store, load = stores[0], stores[0].value
    if load.buffer is not source or source.dtype != result.dtype:
        return None
    iterators = tuple(i for block in blocks for i in block.iter_vars)
    last = store.indices[-1] if store.indices else None
    return _Moves(iterators, _flat(load.indices, source.shape), _flat(store.indices, result.shape), last)


def _blocks(func: PrimFunc) -> list[Block]:
    return [n for n in statements(func.body) if isinstance(n, Block) and n.iter_vars]


def _count(shape: Sequence[Any]) -> float:
    """The number of elements; infinite, where an extent is known only when it runs, as of the samples of a region."""
    if any(isinstance(n, BufferLoad) for size in shape if isinstance(size, Expr) for n in walk(size)):
        return math.inf
    return reduce(lambda n, size: n * usual(sized(size)), shape, 1)


def _flat(indices: Sequence[Expr], shape: Sequence[Any]) -> Any:
    return as_expr(reduce(lambda at, axis: at * axis[1] + axis[0], zip(indices, shape), 0))


@dataclass(frozen=True)
class Group:
    """Nodes that run as one kernel, in order. ``inputs`` come from outside; ``outputs`` are read outside, or results.

    ``view`` is the part of an input that the only output shares its memory with: then there is no kernel.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    view: View | None = None

    @property
    def name(self) -> str:
        """The operators, one after another."""
        return _shown(self.nodes)


@checked
def groups(graph: Graph) -> tuple[Group, ...]:
    """The kernels of a graph, in the order in which they run.

    A node is joined by the groups of its producers that it and what has joined it alone read. One of these may be heavy (a reduction, a
    product) before nodes that need each of its elements at an index computed from their own; where several nodes read it, at
    their own index. Before a heavy node there are only light ones (elementwise, broadcast, injective), whose elements it reads
    a few times each. An opaque node stays alone. A group so has one exit, and runs where its last node stands.
    :func:`why_not_fused` names the rule that keeps two nodes apart.

    >>> from tir.graph import Builder, groups
    >>> b = Builder()
    >>> x, w = b.input("x", (4, 8)), b.input("w", (8, 2))
    >>> [g.name for g in groups(b.graph(b.call("nn.relu", b.call("matmul", x, w))))]
    ['matmul_relu']
    """
    return _Fusion(graph).made()


@checked
def why_not_fused(graph: Graph, one: str, other: str) -> str:
    """Why the nodes that make values ``one`` and ``other`` are in two kernels: the rule, and the accesses that decide. An empty
    text for nodes of one kernel.

    Raises ``ModelError`` for a value that no node makes.

    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x, w = b.input("x", (4, 8)), b.input("w", (8, 16))
    >>> print(b.graph({"y": b.call("matmul", b.call("exp", x), w)}).why_not_fused("exp", "matmul"))
    matmul reads each element of %exp 16 times, as p0[v_i0, v_k]; exp makes it as exp[v_i0, v_i1]: 4 times at most, lest it is computed again
    """
    nodes = {v.name: node for node in graph.nodes for v in node.outputs}
    for name in (one, other):
        if name not in nodes:
            raise ModelError(f"no node makes %{name}{did_you_mean(name, nodes)}")
    return _Fusion(graph).reason(nodes[one], nodes[other])


class _Nodes(tuple[Node, ...]):
    """Nodes of a group, in order."""

    @cached_property
    def members(self) -> frozenset[Node]:
        return frozenset(self)

    @cached_property
    def read(self) -> dict[Value, None]:
        """The values that they read, in order."""
        return dict.fromkeys(v for n in self for v in n.inputs)

    @cached_property
    def heaviest(self) -> Pattern:
        return max(map(pattern_of, self))


COLUMNS = 1 << 19  # bytes of what a row is multiplied by in a product that is one of two in a kernel
READS = 4  # times that a heavy node may read each element of what is computed in its kernel


class _Fusion:
    """The groups of a graph, grown in the order of its nodes."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.readers = graph.readers()
        self.results = set(graph.outputs.values())
        self._order = {node: n for n, node in enumerate(graph.nodes)}
        self._group: dict[Node, _Nodes] = {}
        self._exits: dict[Value, _Nodes] = {}  # the group that ends with a value
        self._scores: set[Value] = set()  # rows of a product on their way to a second one
        for node in graph.nodes:
            self._add(node)

    def made(self) -> tuple[Group, ...]:
        """The groups, in the order of their last nodes."""
        groups = {id(nodes): nodes for nodes in self._group.values()}
        made = sorted(groups.values(), key=lambda nodes: self._order[nodes[-1]])
        return tuple(_group(nodes, self.readers, self.results) for nodes in made)

    def reason(self, one: Node, other: Node) -> str:
        """Why two nodes are in two groups."""
        first, second = sorted((self._group[one], self._group[other]), key=lambda nodes: self._order[nodes[-1]])
        if first is second:
            return ""
        between = [v for v in first[-1].outputs if any(n in second for n in self.readers.get(v, ()))]
        if not between:
            return f"nothing that {_shown(second)} reads ends the kernel of {_shown(first)}"
        return self._refusal(between[0], second)

    def _add(self, node: Node) -> None:
        """Make a node a group, and let the groups of producers join it, as long as one does."""
        nodes, light = _Nodes([node]), set[Value]()
        while (value := self._joining(nodes, light)) is not None:
            nodes = _Nodes(sorted([*self._exits[value], *nodes], key=self._order.__getitem__))
        self._group.update(dict.fromkeys(nodes, nodes))
        used = [v for v in node.outputs if v in self.readers or v in self.results]
        if len(used) == 1:
            self._exits[used[0]] = nodes

    def _joining(self, nodes: _Nodes, light: set[Value]) -> Value | None:
        """A value whose group may join ``nodes``: of the heaviest group of all that may. Those in ``light``, which it updates, may as long as nothing
        heavy has joined."""
        found = [v for v in nodes.read if v in self._exits and self._exits[v][-1] not in nodes.members]
        if nodes.heaviest > Pattern.INJECTIVE:
            light.clear()
        found = [v for v in found if v in light or not self._refusal(v, nodes)]
        light.update(v for v in found if self._exits[v].heaviest <= Pattern.INJECTIVE)
        return max(found, key=lambda v: self._exits[v].heaviest, default=None)

    def _refusal(self, value: Value, nodes: _Nodes) -> str:
        """Why the group that makes ``value`` may not join ``nodes``; empty if it may."""
        if value in self.results:
            return f"%{value.name} is a result of the graph"
        if value not in self._exits:
            maker = next(n for n in self.graph.nodes if value in n.outputs)
            return f"%{value.name} is one of several results of {maker.operator}"
        if outside := [n for n in self.readers[value] if n not in nodes.members]:
            return f"%{value.name} is read by {outside[0].operator} (%{outside[0].outputs[0].name}) too"
        producer, reading = self._exits[value], list(dict.fromkeys(self.readers[value]))
        if Pattern.OPAQUE in (producer.heaviest, nodes.heaviest):
            opaque = next(n for n in (*producer, *nodes) if pattern_of(n) is Pattern.OPAQUE)
            return f"{opaque.operator} is opaque: its elements are computed in an order, or at computed places"
        if nodes.heaviest <= Pattern.INJECTIVE:
            if producer.heaviest <= Pattern.INJECTIVE or len(reading) == 1 or nodes.heaviest <= Pattern.BROADCAST:
                return ""
            moved = max(nodes, key=pattern_of)
            return f"%{value.name} of {_shown(producer)} is read in {len(reading)} places, and not at one index: {moved.operator} reads {_loads(moved, moved.inputs[0])[0][1]}"
        if _view(producer) is not None:
            return f"{_shown(producer)} is a view, which needs no kernel"
        if value in self._scores or self._mixes(value, nodes):
            return ""
        if producer.heaviest > Pattern.INJECTIVE:
            return f"both have a reduction: {_shown(producer)} and {_shown(nodes)}"
        times = sum(reads(n, value) for n in reading)
        if times <= READS or all(map(keeps_rows, producer)):
            return ""
        most = max(reading, key=lambda n: reads(n, value))
        stored = next(n for n in walk(node_function(producer[-1]).body) if isinstance(n, BufferStore))
        return (
            f"{most.operator} reads each element of %{value.name} {times:.3g} times, as {_loads(most, value)[0][1]}; "
            f"{producer[-1].operator} makes it as {BufferLoad(stored.buffer, stored.indices)}: {READS} times at most, lest it is computed again"
        )

    def _mixes(self, value: Value, nodes: Sequence[Node]) -> bool:
        """Whether ``nodes`` multiply the rows of ``value``, which its group makes of the rows of another product alone: then that
        joins too, as in attention."""
        rows, last = self._exits[value], _product(nodes)
        if last is None or not value.is_fixed or not _sums_rows(last, value):
            return False
        formula = _formula(rows, value)
        for n, scores in enumerate(formula.inputs):
            first = _product(self._exits.get(scores, ()))
            is_inside = scores not in self.results and all(node in rows for node in self.readers[scores])
            if first is not None and is_inside and scores.shape == value.shape and _are_of_rows(formula, n):
                self._scores.add(scores)
                return True
        return False


def _formula(nodes: Sequence[Node], value: Value) -> Formula:
    """What nodes that make ``value`` alone compute of all that they read."""
    made = {v for n in nodes for v in n.outputs}
    return Formula(nodes, tuple(dict.fromkeys(v for n in nodes for v in n.inputs if v not in made)), (value,))


def _product(nodes: Sequence[Node]) -> Node | None:
    """The sum over terms that is all that is heavy in ``nodes``, if what each row of it is multiplied by fits ``COLUMNS`` bytes; else None."""
    heavy = [n for n in nodes if pattern_of(n) > Pattern.INJECTIVE]
    blocks = _blocks(node_function(heavy[0])) if len(heavy) == 1 and pattern_of(heavy[0]) is Pattern.OUT_FUSABLE else []
    if len(blocks) != 1:
        return None
    *_, lane = (i.dom for i in blocks[0].iter_vars if i.iter_type == "spatial")
    terms = [i.dom for i in blocks[0].iter_vars if i.iter_type == "reduce"]
    count = _count([dom.extent for dom in (lane, *terms) if dom is not None])
    return heavy[0] if count * heavy[0].outputs[0].itemsize <= COLUMNS else None


def _sums_rows(product: Node, value: Value) -> bool:
    """Whether a product adds up along the last axis of an input, for the same rows of results."""
    loads = _loads(product, value) if value in product.inputs else []
    return len(loads) == 1 and all(
        _is_row(load.indices[:-1], block.iter_vars[: len(load.indices) - 1])
        and any(load.indices[-1] is i.var for i in block.iter_vars if i.iter_type == "reduce")
        for block, load in loads
    )


@lru_cache(maxsize=4096)
def _are_of_rows(formula: Formula, source: int) -> bool:
    """Whether rows of what is computed, along the last axis, are made of the same rows of an input, given by its number, and of sums over
    whole rows, not of products."""
    func = formula.function()
    rows = len(formula.inputs[source].shape) - 1
    others = {b for n, b in enumerate(func.buffers()[: len(formula.inputs)]) if n != source}
    for block in _blocks(func):
        columns = [i.dom for i in block.iter_vars[rows:] if i.iter_type == "spatial" and i.dom is not None]
        is_sum = any(i.iter_type == "reduce" for i in block.iter_vars)
        used = [n for n in walk(block) if isinstance(n, (BufferLoad, BufferStore)) and n.buffer not in others]
        if is_sum and not all(is_const(dom.extent, 1) for dom in columns):
            return False
        if not all(_is_row(n.indices[:rows], block.iter_vars[:rows]) for n in used):
            return False
    return True


def _is_row(indices: Sequence[Expr], iterators: Sequence[IterVar]) -> bool:
    return len(indices) == len(iterators) and all(
        i is at.var or (is_const(i, 0) and at.dom is not None and is_const(at.dom.extent, 1))
        for i, at in zip(indices, iterators)
    )


def _shown(nodes: Sequence[Node]) -> str:
    """The operators of nodes, one after another."""
    return "_".join(node.operator.rpartition(".")[2] for node in nodes)


@lru_cache(maxsize=4096)
def reads(node: Node, value: Value) -> float:
    """How often a node reads an element of an input, on average; 0.5 if it reads every other one.

    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x = b.input("x", (4, 8))
    >>> (node,) = b.graph(b.call("matmul", x, b.input("w", (8, 16)))).nodes
    >>> [reads(node, value) for value in node.inputs]
    [16.0, 4.0]
    """
    total = sum(
        _count([i.dom.extent for i in block.iter_vars if i.dom is not None]) for block, _ in _loads(node, value)
    )
    return total / max(usual(value.elements), 1)


def _loads(node: Node, value: Value) -> list[tuple[Block, BufferLoad]]:
    """The loads of an input in the function of a node, each with its block."""
    func = node_function(node)
    buffer = func.buffers()[tuple(dict.fromkeys(node.inputs)).index(value)]
    return [(b, n) for b in _blocks(func) for n in walk(b.body) if isinstance(n, BufferLoad) and n.buffer is buffer]


def _group(nodes: Sequence[Node], readers: dict[Value, list[Node]], results: set[Value]) -> Group:
    inside = set(map(id, nodes))
    made = {v: None for node in nodes for v in node.outputs}
    inputs = {v: None for node in nodes for v in node.inputs if v not in made}
    outputs = [v for v in made if v in results or any(id(r) not in inside for r in readers.get(v, ()))]
    view = None if any(v in results for v in outputs) else _view(nodes)
    return Group(tuple(nodes), tuple(inputs), tuple(outputs), view)


def _view(nodes: Sequence[Node]) -> View | None:
    """What the result of a chain of views is a view of; None if it is none."""
    views = [view_of(node) for node in nodes]
    if any(v is None for v in views) or any(v.source is not n.outputs[0] for v, n in zip(views[1:], nodes)):
        return None
    return View(views[0].source, sum((v.begin for v in views), 0))
