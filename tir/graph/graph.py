"""Graphs of operators: values in static single assignment, nodes that apply an operator of ``tir.ops``, constants."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtype import DType
from ..errors import ModelError, TirError
from ..expr import Expr, IntImm
from ..interp.numbers import array_dtype
from ..names import identifier
from ..node import cached_property
from ..ops import registry
from ..te import Tensor, placeholder
from ..te.tensor import operations_of
from .sizes import Extent, Limits, Size, extents, is_fixed, is_size, number, parsed, simple, sized, symbol, symbols

if TYPE_CHECKING:
    from .profile import Profile


@dataclass(frozen=True)
class Value:
    """A tensor of a graph: the name is its own in the graph; sizes are integers, or expressions of symbols (:class:`.sizes.Size`)."""

    name: str
    shape: tuple[Any, ...]  # of Extent: rows of importers that need numbers are told so by the sizes
    dtype: DType

    @property
    def elements(self) -> Any:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def is_fixed(self) -> bool:
        """Whether all its sizes are numbers."""
        return is_fixed(*self.shape)

    def at(self, values: Mapping[str, Extent]) -> Value:
        """The value with numbers for symbols."""
        return self if self.is_fixed else Value(self.name, tuple(number(s, values) for s in self.shape), self.dtype)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return array_dtype(self.dtype).itemsize

    @property
    def nbytes(self) -> Any:
        """The bytes of its elements, one after another."""
        return self.elements * self.itemsize

    @property
    def shown(self) -> str:
        """The name as it is in the text of a graph: quoted, unless it is one of letters, digits and underscores."""
        return f"%{_quoted(self.name)}"

    def __str__(self) -> str:
        return f"{self.shown}: {self.dtype}[{', '.join(map(str, self.shape))}]"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else json.dumps(name)


def mapped(argument: Any, replace: Callable[[Any], Any], kind: type = Value) -> Any:
    """An argument of a node with ``replace(value)`` in the place of each value, also of those in sequences; or of what is of another ``kind``."""
    if isinstance(argument, kind):
        return replace(argument)
    if isinstance(argument, (list, tuple)):
        return tuple(mapped(each, replace, kind) for each in argument)
    return argument


def with_sizes(argument: Any, replace: Callable[[Size], Any]) -> Any:
    """An argument of a node with ``replace(size)`` in the place of each size that depends on symbols."""
    return mapped(argument, replace, Size)


def values_in(arguments: Any) -> Iterator[Value]:
    """The values among arguments, in order."""
    found: list[Value] = []
    mapped(tuple(arguments), found.append)
    yield from found


@dataclass(frozen=True, eq=False)
class Node:
    """An operator of ``tir.ops`` applied: ``arguments`` are values, sequences of values, and attributes, by parameter.

    ``name`` is that of the node in the model that it came from.
    """

    operator: str
    arguments: Mapping[str, Any]
    outputs: tuple[Value, ...]
    name: str = ""

    @cached_property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, in order of the parameters."""
        return tuple(values_in(self.arguments.values()))

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The sizes among its arguments, and those of what it reads and makes, that depend on symbols."""
        found: list[Size] = []
        with_sizes(tuple(self.arguments.values()), found.append)
        shapes = (s for v in (*self.inputs, *self.outputs) for s in v.shape)
        return (*found, *(s for s in shapes if isinstance(s, Size)))

    def tensors(self, of: Callable[[Value], Tensor]) -> tuple[Tensor, ...]:
        """The results as tensor expressions of the tensors ``of`` its inputs."""
        return applied(self.operator, {k: mapped(a, of) for k, a in self.arguments.items()})

    def tensors_alone(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Placeholders ``p0``, ``p1`` … for the values that it reads, each once, and the results as tensor expressions of them."""
        return _applied(_Described(self.operator, self.arguments))

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={_shown(a)}" for k, a in self.arguments.items())
        return f"{', '.join(map(str, self.outputs))} = {self.operator}({shown})"


def _shown(argument: Any) -> str:
    if isinstance(argument, Value):
        return argument.shown
    if isinstance(argument, (list, tuple)):
        return f"[{', '.join(map(_shown, argument))}]"
    return repr(argument.item() if isinstance(argument, np.generic) else argument)


def applied(operator: str, arguments: Mapping[str, Any]) -> tuple[Tensor, ...]:
    """The tensors that an operator makes. Raises ``TensorExpressionError`` as the operator does."""
    signature = registry.find(operator).signature
    bound = signature.bind_partial()
    given = {k: with_sizes(a, lambda size: size.expr) for k, a in arguments.items()}
    bound.arguments.update({p: given[p] for p in signature.parameters if p in given})
    made = registry.find(operator).function(*bound.args, **bound.kwargs)
    return tuple(made) if isinstance(made, (list, tuple)) else (made,)


def results(operator: str, arguments: Mapping[str, Any]) -> tuple[tuple[tuple[Extent, ...], DType], ...]:
    """Shapes and types of what an operator makes of arguments with values.

    Raises ``TensorExpressionError`` as the operator does, and ``ModelError`` for a result whose shape is known only when it runs.
    """
    return _results(_Described(operator, arguments))[0]


def conditions(operator: str, arguments: Mapping[str, Any]) -> tuple[Expr, ...]:
    """What must hold of symbols so that an operator can be applied to arguments with values. Raises as :func:`results` does."""
    return _results(_Described(operator, arguments))[1]


class _Described:
    """An operator and its arguments as a key: values by number, shape and type alone, attributes as they print."""

    def __init__(self, operator: str, arguments: Mapping[str, Any]):
        self.operator, self.arguments = operator, arguments
        numbers: dict[Value, int] = {}
        shown = {k: mapped(a, lambda v: ("value", numbers.setdefault(v, len(numbers)))) for k, a in arguments.items()}
        self.values = tuple(numbers)
        self.text = f"{operator}{[(v.shape, str(v.dtype)) for v in numbers]!r}{sorted(shown.items())!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Described) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=4096)
def _applied(described: _Described) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Placeholders for the values, and the tensors that the operator makes of them."""
    given = {v: placeholder(extents(v.shape), v.dtype, f"p{n}") for n, v in enumerate(described.values)}
    arguments = {k: mapped(a, given.__getitem__) for k, a in described.arguments.items()}
    return tuple(given.values()), applied(described.operator, arguments)


@lru_cache(maxsize=4096)
def _results(described: _Described) -> tuple[tuple[tuple[tuple[Extent, ...], DType], ...], tuple[Expr, ...]]:
    operator, (_, made) = described.operator, _applied(described)
    needed = {repr(c): c for op in operations_of(made) for c in map(simple, op.requires)}
    if false := [text for text, c in needed.items() if isinstance(c, IntImm) and not c.value]:
        raise ModelError(f"{operator} needs sizes that cannot be: {false[0]}")
    shapes = tuple((_shape(operator, t), t.dtype) for t in made)
    return shapes, tuple(c for c in needed.values() if not isinstance(c, IntImm))


def _shape(operator: str, tensor: Tensor) -> tuple[Extent, ...]:
    if not all(map(is_size, tensor.shape)):
        raise ModelError(f"{operator} makes a tensor of shape {tensor.shape}, which is known only when it runs")
    return tuple(map(sized, tensor.shape))


@dataclass(frozen=True, eq=False)
class Graph:
    """An immutable graph: ``nodes`` in an order in which they may run; ``outputs`` are values under the names of results.

    ``constants`` are arrays by value; they are kept by the graph and are never part of a program's text. ``limits`` are the values of sizes
    that it is for: a call with others is refused.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> x = b.input("x", (2, 3))
    >>> print(b.graph({"y": b.call("nn.relu", b.call("add", x, b.constant(np.ones(3, "float32"), "one")))}))
    graph(%x: float32[2, 3])
      %one: float32[3] = constant
      %add: float32[2, 3] = add(x=%x, y=%one)
      %relu: float32[2, 3] = nn.relu(x=%add)
      return y=%relu
    """

    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: Mapping[str, Value]
    constants: Mapping[Value, np.ndarray] = field(default_factory=dict)
    limits: Limits = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"graph({', '.join(map(str, self.inputs))})"]
        lines += [
            f"  where {low} <= {s}{'' if high is None else f' <= {high}'}" for s, (low, high) in self.limits.items()
        ]
        lines += [f"  {value} = constant" for value in self.constants]
        lines += [f"  {node}" for node in self.nodes]
        return "\n".join([*lines, f"  return {', '.join(f'{_quoted(n)}={v.shown}' for n, v in self.outputs.items())}"])

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the sizes of inputs that are known only when it runs, in order."""
        return symbols(s for v in self.inputs for s in v.shape)

    def at(self, values: Mapping[str, int]) -> Graph:
        """The graph for values of its symbols; those without one stay. Raises ``ModelError`` for sizes for which an operator cannot be applied.

        >>> from tir.graph import Builder
        >>> b = Builder()
        >>> print(b.graph(b.call("exp", b.input("x", ("n", 4)))).at({"n": 2}))
        graph(%x: float32[2, 4])
          %exp: float32[2, 4] = exp(x=%x)
          return exp=%exp
        """
        known: dict[str, Extent] = {**{name: symbol(name) for name in self.symbols}, **values}
        made = Builder()
        for size, ends in self.limits.items():
            made.limit(size.at(known), *ends)
        new: dict[Value, Value] = {v: made.input(v.name, v.at(known).shape, v.dtype) for v in self.inputs}
        new |= {v: made.constant(array, v.name) for v, array in self.constants.items()}
        for node in self.nodes:
            arguments = {k: mapped(a, new.__getitem__) for k, a in node.arguments.items()}
            fixed = {k: with_sizes(a, lambda size: size.at(known)) for k, a in arguments.items()}
            new.update(zip(node.outputs, made.add(node.operator, fixed, [v.name for v in node.outputs], node.name)))
        return made.graph({name: new[value] for name, value in self.outputs.items()})

    def __repr__(self) -> str:
        return f"Graph({len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs)"

    def svg(self, profile: Profile | None = None) -> str:
        """A picture: inputs and kernels one below the other, in the order of running, with lines from what makes a tensor to what reads it, the bytes of
        tensors and weights, and with the ``profile`` of a model of which this is the graph (``model.graph``), times. Raises ``ModelError`` for
        the profile of another graph.

        >>> from tir.graph import Builder
        >>> b = Builder()
        >>> b.graph(b.call("exp", b.input("x", (2, 3)))).svg().count("<rect")
        2
        """
        from .model_picture import picture

        return picture(self, profile)

    def _repr_html_(self) -> str:
        return self.svg()

    def values(self) -> tuple[Value, ...]:
        """All tensors: inputs, constants, and what nodes make."""
        return (*self.inputs, *self.constants, *(v for node in self.nodes for v in node.outputs))

    def readers(self) -> dict[Value, list[Node]]:
        """The nodes that read each value, once each time that they read it."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                found.setdefault(value, []).append(node)
        return found

    def why_not_fused(self, one: str, other: str) -> str:
        """Why the nodes that make values ``one`` and ``other`` are no one kernel: see :func:`tir.graph.why_not_fused`."""
        from .fusion import why_not_fused

        return why_not_fused(self, one, other)

    def verify(self) -> None:
        """Raise ``ModelError`` unless each value has one definition, before its uses, and each node makes what it says."""
        defined: dict[str, Value] = {}
        known = self.symbols
        for value in (*self.inputs, *self.constants):
            _define(value, defined, "the inputs and constants")
        for value, array in self.constants.items():
            if array.shape != value.shape or array.dtype != array_dtype(value.dtype):
                raise ModelError(f"constant {value} is an array {array.dtype}{list(array.shape)}")
        for node in self.nodes:
            for value in node.inputs:
                _require_defined(value, defined, node)
            _check_results(node)
            if unknown := [name for name in symbols(node.sizes) if name not in known]:
                raise ModelError(f"node `{node}` has the size {unknown[0]}, which no input has")
            for value in node.outputs:
                _define(value, defined, node)
        for name, value in self.outputs.items():
            _require_defined(value, defined, f"output {name!r}")

    def rewritten(self, visit: Callable[[Builder, Node, Mapping[str, Any]], Sequence[Value] | None]) -> Graph:
        """The graph of the nodes that ``visit(builder, node, arguments)`` makes: it returns the values in the place of the
        node's outputs, or None to keep the node. Nodes and constants that no output needs are left out; where none is and all are kept, it is
        this graph.
        """
        made = Builder()
        made.limits.update(self.limits)
        new: dict[Value, Value] = {v: made.input(v.name, v.shape, v.dtype) for v in self.inputs}
        new |= {v: made.constant(array, v.name) for v, array in self.constants.items()}
        for node in self.nodes:
            arguments = {k: mapped(a, new.__getitem__) for k, a in node.arguments.items()}
            given = visit(made, node, arguments)
            if given is None:
                given = made.keep(node, arguments)
            new.update(zip(node.outputs, given))
        graph = made.graph({name: new[value] for name, value in self.outputs.items()})
        is_same = graph.nodes == self.nodes and graph.constants.keys() == self.constants.keys()
        return self if is_same and graph.limits == self.limits else graph


def _define(value: Value, defined: dict[str, Value], where: str | Node) -> None:
    if value.name in defined:
        raise ModelError(f"value %{value.name} has two definitions; the second is among {_place(where)}")
    defined[value.name] = value


def _place(where: str | Node) -> str:
    return where if isinstance(where, str) else f"node `{where}`"


def _require_defined(value: Value, defined: Mapping[str, Value], where: str | Node) -> None:
    if defined.get(value.name) != value:
        known = f", which is {defined[value.name]} there" if value.name in defined else ""
        raise ModelError(f"{_place(where)} reads {value}, which is not defined before it{known}")


@lru_cache(maxsize=4096)
def _check_results(node: Node) -> None:
    try:
        made = results(node.operator, node.arguments)
    except (TirError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"node `{node}` is no call of its operator: {error}") from error
    said = tuple((v.shape, v.dtype) for v in node.outputs)
    if said != made:
        shown = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in made)
        raise ModelError(f"node `{node}` makes {shown}")


class Builder:
    """Makes a graph, node by node.

    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> b.call("matmul", b.input("x", (4, 8)), b.input("w", (8, 2)))
    Value(name='matmul', shape=(4, 2), dtype='float32')
    """

    def __init__(self) -> None:
        self.constants: dict[Value, np.ndarray] = {}
        self.known: dict[
            Value, np.ndarray
        ] = {}  # the elements of values that are computed of sizes: integers and sizes
        self.limits: dict[Size, tuple[int, int | None]] = {}
        self._inputs: list[Value] = []
        self._nodes: list[Node] = []
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}  # of a name: those with a number up to this one are taken

    def _named(self, name: str) -> str:
        base = made = identifier(name)
        while made in self._names:
            self._numbers[base] = self._numbers.get(base, 0) + 1
            made = f"{base}_{self._numbers[base]}"
        self._names.add(made)
        return made

    def input(self, name: str, shape: Iterable[Extent | str], dtype: Any = "float32") -> Value:
        """A parameter of the graph. A size may be the name of a symbol, or an expression of such: ``("batch", "4 * n", 3)``.

        Raises ``ModelError`` for a name that is taken, or a size that is none."""
        sizes = tuple(parsed(s) if isinstance(s, str) else s for s in shape)
        if name in self._names:
            raise ModelError(f"there are two values named {name!r}")
        if not all(hasattr(size, "__index__") and size >= 0 for size in sizes):
            raise ModelError(f"input {name!r} has shape {sizes}; sizes are integers of at least 0, or names")
        self._names.add(name)
        self._inputs.append(Value(name, tuple(map(sized, sizes)), DType(str(dtype))))
        return self._inputs[-1]

    def limit(self, size: Extent, low: int, high: int | None = None) -> None:
        """Make the graph one for values of a size from ``low`` to ``high`` alone, where that is given. Raises ``ModelError`` for a number that is none."""
        if isinstance(size, Size):
            before = self.limits.get(size, (low, high))
            self.limits[size] = max(low, before[0]), min((h for h in (high, before[1]) if h is not None), default=None)
        elif size < low or (high is not None and size > high):
            ends = f"of at least {low}" if high is None else f"from {low} to {high}"
            raise ModelError(f"a size is {size}, and the program was made for sizes {ends}")

    def constant(self, array: Any, name: str = "constant") -> Value:
        """A constant array; it is not copied, and not to be changed after."""
        held = np.asarray(array)
        try:
            dtype = DType(held.dtype.name)
        except (ValueError, TypeError, TirError):
            raise ModelError(f"constant {name!r} is an array of {held.dtype}, which is no type of tensors") from None
        value = Value(self._named(name), held.shape, dtype)
        self.constants[value] = held
        return value

    def call(self, operator: str, *arguments: Any, **attributes: Any) -> Any:
        """The value of an operator of ``tir.ops`` by name, or a tuple of its values; the arguments are those of the operator.

        Raises ``KeyError`` for an unknown operator, ``TypeError`` and ``TensorExpressionError`` as the operator does.
        """
        signature = registry.find(operator).signature
        bound = signature.bind(*arguments, **attributes).arguments
        made = self.add(operator, bound)
        return made[0] if len(made) == 1 else made

    def add(
        self, operator: str, arguments: Mapping[str, Any], names: Sequence[str] = (), name: str = ""
    ) -> tuple[Value, ...]:
        """A node of ``arguments`` by parameter; its outputs are named ``names`` where these are free."""
        made = results(operator, arguments)
        wanted = list(names) or [operator.rpartition(".")[2]] * len(made)
        outputs = tuple(Value(self._named(n), *each) for n, each in zip(wanted, made))
        held = {k: mapped(a, lambda v: v) for k, a in arguments.items()}
        self._nodes.append(Node(operator, held, outputs, name))
        return outputs

    def keep(self, node: Node, arguments: Mapping[str, Any]) -> tuple[Value, ...]:
        """A node of a graph with other ``arguments`` in the same order, as :meth:`add` makes it; itself where these and its outputs are its own."""
        given = tuple(values_in(arguments.values()))
        if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(given, node.inputs)):
            return self.add(node.operator, arguments, [v.name for v in node.outputs], node.name)
        outputs = tuple(Value(self._named(v.name), v.shape, v.dtype) for v in node.outputs)
        is_same = given == node.inputs and outputs == node.outputs
        self._nodes.append(node if is_same else Node(node.operator, arguments, outputs, node.name))
        return outputs

    def sources(self, value: Value) -> list[Value]:
        """The inputs of the graph that a value is computed of, in their order."""
        needed = {value}
        for node in reversed(self._nodes):
            if not needed.isdisjoint(node.outputs):
                needed.update(node.inputs)
        return [each for each in self._inputs if each in needed]

    def graph(self, outputs: Mapping[str, Value] | Value) -> Graph:
        """The graph with these results by name, of the nodes and constants that they need."""
        named = {outputs.name: outputs} if isinstance(outputs, Value) else dict(outputs)
        needed = set(named.values())
        kept: list[Node] = []
        for node in reversed(self._nodes):
            if not needed.isdisjoint(node.outputs):
                kept.append(node)
                needed.update(node.inputs)
        constants = {v: a for v, a in self.constants.items() if v in needed}
        return Graph(tuple(self._inputs), tuple(reversed(kept)), named, constants, dict(self.limits))


Pass = Callable[[Graph], Graph]


def for_targets(*kinds: str) -> Callable[[Pass], Pass]:
    """Mark a pass as one for models of these kinds of targets alone."""

    def mark(one: Pass) -> Pass:
        one.__dict__["targets"] = kinds
        return one

    return mark
