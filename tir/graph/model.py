"""A graph as one lowered module: its kernels, and an entry that calls them with offsets into one workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.build import build
from codegen.module import Module

from ..buffer import Buffer, decl_buffer
from ..canonical import canonical
from ..errors import BuildError
from ..expr import BufferLoad, Expr, Var, const
from ..function import IRModule, PrimFunc
from ..names import unique_name
from ..node import frozendict
from ..script.tir_calls import address_of, call_global
from ..stmt import Evaluate, seq
from ..target import Target
from ..te.to_primfunc import identifier
from ..tune import default
from .calls import Model, Parameter, memory
from .fusion import Group, group_function, groups
from .graph import Graph, Node, Value, results
from .memory import Plan, aligned, check_plan, plan
from .passes import optimized

if TYPE_CHECKING:
    from .profile import Profile

_TARGETS = ("llvm", "interpreter")


def compile_graph(graph: Graph, target: Any = "llvm") -> CompiledModel:
    """Compile a graph: after the passes of ``tir.graph.PASSES``, a kernel a group of nodes, equal kernels once.

    Raises ``ModelError`` for a graph that is none, and ``BuildError`` for a target that cannot run models, and for a group that
    cannot be built.

    >>> import numpy as np
    >>> from tir.graph import Builder, compile_graph
    >>> b = Builder()
    >>> x, y = b.input("x", (3,)), b.input("y", (3,))
    >>> compile_graph(b.graph({"sum": b.call("add", x, y)}))(np.ones(3, "float32"), y=np.ones(3, "float32"))
    array([2., 2., 2.], dtype=float32)
    """
    chosen = Target.of(target)
    if chosen.kind not in _TARGETS:
        raise BuildError(f"models are compiled for {' and '.join(_TARGETS)}, not for {chosen.kind}")
    final = _with_own_results(optimized(graph))
    order = groups(final)
    made = plan(order, final.outputs.values())
    check_plan(made, order)
    kernels = _Kernels(target)
    called = [None if g.view is not None else kernels.of(g) for g in order]
    packed, places = _packed(final)
    entry = _Entry(final, made, places, len(packed)).function(order, called)
    module = build(IRModule({**kernels.functions, "main": entry}), target)
    names = tuple(name for name in called if name is not None)
    return CompiledModel(final, module, packed, made, names)


def _with_own_results(graph: Graph) -> Graph:
    """The graph with a copy for each result that is an input, a constant, or another result."""
    taken = {*graph.inputs, *graph.constants}
    names = {v.name for node in graph.nodes for v in node.outputs} | {v.name for v in taken}
    outputs, copies = dict(graph.outputs), []
    for name, value in outputs.items():
        if value in taken:
            arguments = {"x": value, "newshape": value.shape}
            ((shape, dtype),) = results("reshape", arguments)
            copy = Value(unique_name(f"{value.name}_copy", names), shape, dtype)
            names.add(copy.name)
            copies.append(Node("reshape", arguments, (copy,)))
            outputs[name] = copy
        taken.add(outputs[name])
    return Graph(graph.inputs, (*graph.nodes, *copies), outputs, graph.constants)


class _Kernels:
    """The functions of groups, scheduled: groups with equal programs have one."""

    def __init__(self, target: Any):
        self.functions: dict[str, PrimFunc] = {}
        self._target = target
        self._known: dict[str, str] = {}

    def of(self, group: Group) -> str:
        """The name of the kernel of a group."""
        func = group_function(group.nodes, group.inputs, group.outputs)
        key = canonical(func).key
        if key not in self._known:
            name = unique_name(identifier(group.name)[:60], {*self.functions, "main"})
            scheduled = default(func, self._target).mod["main"]  # pyright: ignore[reportCallIssue]
            self.functions[name] = scheduled.without_attr("global_symbol")
            self._known[key] = name
        return self._known[key]


def _packed(graph: Graph) -> tuple[np.ndarray, dict[Value, int]]:
    """The constants of a graph in one aligned array of bytes, and the byte at which each begins."""
    places: dict[Value, int] = {}
    total = 0
    for value in graph.constants:
        places[value] = total
        total += aligned(value.nbytes)
    packed = memory(total)
    for value, array in graph.constants.items():
        begin = places[value]
        packed[begin : begin + value.nbytes] = np.require(array, requirements="C").reshape(-1).view(np.uint8)
    return packed, places


class _Entry:
    """The function that calls the kernels: its parameters are inputs, results, the constants, and the workspace."""

    def __init__(self, graph: Graph, made: Plan, places: Mapping[Value, int], weights: int):
        self._plan = made
        self._places = places
        self._taken: set[str] = set()
        self._buffers = {v: self._parameter(v.shape, v.dtype, v.name) for v in graph.inputs}
        self._buffers |= {v: self._parameter(v.shape, v.dtype, name) for name, v in graph.outputs.items()}
        self._weights = self._parameter((max(weights, 1),), "uint8", "weights")
        self._work = self._parameter((max(made.nbytes, 1),), "uint8", "workspace")

    def _parameter(self, shape: Sequence[int], dtype: Any, name: str) -> Buffer:
        name = unique_name(identifier(name), self._taken)
        self._taken.add(name)
        return decl_buffer(shape, dtype, name)

    def function(self, order: Sequence[Group], called: Sequence[str | None]) -> PrimFunc:
        """The entry: a call for each group that has a kernel."""
        calls = [
            Evaluate(call_global(kernel, *map(self._pointer, (*group.inputs, *group.outputs))))
            for group, kernel in zip(order, called)
            if kernel is not None
        ]
        buffers = [*self._buffers.values(), self._weights, self._work]
        return PrimFunc(
            tuple(b.data for b in buffers),
            seq(calls),
            buffer_map={b.data: b for b in buffers},
            attrs=frozendict({"global_symbol": "main", "tir.noalias": False}),  # one array may be several inputs
        )

    def _pointer(self, value: Value) -> Expr | Var:
        root = self._plan.root(value)
        if root in self._buffers:
            return self._buffers[root].data
        buffer, at = (
            (self._weights, self._places[root]) if root in self._places else (self._work, self._plan.offsets[root])
        )
        return address_of(BufferLoad(buffer, (const(at, "int32" if at < 1 << 31 else "int64"),)))


class CompiledModel(Model):
    """A model that was compiled here: ``graph`` is the graph that was compiled, ``plan`` the plan of its workspace."""

    def __init__(self, graph: Graph, module: Module, weights: np.ndarray, made: Plan, kernels: tuple[str, ...]):
        inputs = [Parameter(v.name, v.shape, v.dtype) for v in graph.inputs]
        outputs = [Parameter(name, v.shape, v.dtype) for name, v in graph.outputs.items()]
        super().__init__(inputs, outputs, module, weights, made.nbytes, kernels)
        self.graph = graph
        self.plan = made
        self.weights_bytes = sum(v.nbytes for v in graph.constants)

    def profile(self, *args: Any, repeat: int = 5, **named: Any) -> Profile:
        """Time each kernel in ``repeat`` calls of the model: a table of the medians, as text, in a notebook, as JSON.

        Raises ``RunError`` as a call does.

        >>> from tir.graph import Builder, compile_graph
        >>> b = Builder()
        >>> model = compile_graph(b.graph(b.call("exp", b.input("x", (64,)))))
        >>> [(k.kernel, k.calls, k.bytes, k.operations) for k in model.profile(np.zeros(64, "float32")).kernels]
        [('exp', 1, 512, 64)]
        """
        from .profile import profile

        return profile(self, args, named, repeat)
