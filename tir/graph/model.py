"""A graph as one lowered module: its kernels, and an entry that calls them with offsets into one workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codegen.build import build
from codegen.module import Module

from ..buffer import Buffer, decl_buffer
from ..canonical import canonical
from ..dtype import DType
from ..errors import BuildError, RunError
from ..expr import BufferLoad, Expr, Var, const
from ..function import IRModule, PrimFunc
from ..interp.dlpack import host_array, is_array
from ..interp.numbers import array_dtype, storage_dtype
from ..names import did_you_mean, unique_name
from ..node import frozendict
from ..script.tir_calls import address_of, call_global
from ..stmt import Evaluate, seq
from ..target import Target
from ..te.to_primfunc import identifier
from ..tune import default
from .fusion import Group, group_function, groups
from .graph import Graph, Node, Value, results
from .memory import Plan, aligned, check_plan, plan
from .passes import optimized

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
    packed = _memory(total)
    for value, array in graph.constants.items():
        begin = places[value]
        packed[begin : begin + value.nbytes] = np.require(array, requirements="C").reshape(-1).view(np.uint8)
    return packed, places


def _memory(nbytes: int) -> np.ndarray:
    """Bytes of memory that begin at a multiple of the alignment; at least one."""
    raw = np.empty(nbytes + aligned(1) + 1, np.uint8)
    begin = -raw.ctypes.data % aligned(1)
    return raw[begin : begin + max(nbytes, 1)]


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


@dataclass(frozen=True)
class Parameter:
    """An input or a result of a model."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


class CompiledModel:
    """A model that runs: ``model(x, …)`` by position or by name gives its result, or a tuple of several.

    ``inputs`` and ``outputs`` have name, shape and type; ``graph`` is the graph that was compiled, ``module`` the module,
    ``kernels`` the name of the kernel of each call, in order. Threads may call it at once: each call has a workspace of its own.
    """

    def __init__(self, graph: Graph, module: Module, weights: np.ndarray, made: Plan, kernels: tuple[str, ...]):
        self.graph = graph
        self.module = module
        self.plan = made
        self.kernels = kernels
        self.inputs = tuple(Parameter(v.name, v.shape, v.dtype) for v in graph.inputs)
        self.outputs = tuple(Parameter(name, v.shape, v.dtype) for name, v in graph.outputs.items())
        self.workspace_bytes = made.nbytes
        self.weights_bytes = sum(v.nbytes for v in graph.constants)
        self._weights = weights
        self._idle: list[np.ndarray] = []  # workspaces that no call uses; pop and append are atomic

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Run it on arrays (NumPy, torch, DLPack). ``out`` is an array for the result, or a sequence of one each.

        Raises ``RunError`` for a wrong number or name of arguments, and for an array of another type or shape.
        """
        arrays = [_input(p, a) for p, a in zip(self.inputs, self._in_order(args, named))]
        made = self._results(out, arrays)
        try:
            work = self._idle.pop()
        except IndexError:
            work = _memory(self.workspace_bytes)
        try:
            self.module["main"](*arrays, *made, self._weights, work)
        finally:
            self._idle.append(work)
        if out is not None:
            return out
        given = [a.view(array_dtype(p.dtype)) for p, a in zip(self.outputs, made)]
        return given[0] if len(given) == 1 else tuple(given)

    def _in_order(self, args: Sequence[Any], named: Mapping[str, Any]) -> Iterable[Any]:
        names = [p.name for p in self.inputs]
        shown = ", ".join(map(str, self.inputs)) or "no inputs"
        if len(args) > len(names):
            raise RunError(f"{len(args)} inputs were given; the model takes {len(names)}: {shown}")
        given = dict(zip(names, args))
        for name, value in named.items():
            if name not in names:
                raise RunError(f"the model has no input {name!r}{did_you_mean(name, names)}; it takes {shown}")
            if name in given:
                raise RunError(f"input {name!r} was given twice, by position and by name")
            given[name] = value
        if missing := [name for name in names if name not in given]:
            raise RunError(f"no value was given for input {', '.join(map(repr, missing))}; the model takes {shown}")
        return [given[name] for name in names]

    def _results(self, out: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        if out is None:
            return [np.empty(p.shape, storage_dtype(p.dtype)) for p in self.outputs]
        several: list[Any] = list(out) if isinstance(out, (list, tuple)) else [out]
        if len(several) != len(self.outputs):
            raise RunError(f"out has {len(several)} arrays; the model has {len(self.outputs)} results")
        for parameter, array in zip(self.outputs, several):
            if not isinstance(array, np.ndarray) or not (array.flags.c_contiguous and array.flags.writeable):
                raise RunError(f"out for {parameter} is no contiguous NumPy array that may be written")
            _require(f"out for {parameter}", parameter, array)
            for other in (*inputs, *(a for a in several if a is not array)):
                if np.may_share_memory(array, other):
                    raise RunError(
                        f"out for {parameter} shares memory with another argument; give it memory of its own"
                    )
        return several

    def __repr__(self) -> str:
        takes, makes = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        return f"CompiledModel({takes} -> {makes}; {len(self.kernels)} kernels, {self.module.target})"


def _input(parameter: Parameter, given: Any) -> np.ndarray:
    """An argument as a compact array."""
    if not is_array(given) and not isinstance(given, (np.generic, int, float, bool, list, tuple)):
        raise RunError(f"input {parameter}: {type(given).__name__} is no array")
    if isinstance(given, (int, float, bool, list, tuple)):
        given = np.asarray(given, storage_dtype(parameter.dtype))
    array = np.asarray(given) if isinstance(given, (np.ndarray, np.generic)) else host_array(given, parameter.dtype)
    _require(f"input {parameter}", parameter, array)
    return np.require(
        array, requirements=["C", "A", "W"]
    )  # W: the module takes what it is given as if it might write it


def _require(what: str, parameter: Parameter, array: np.ndarray) -> None:
    if array.dtype not in (array_dtype(parameter.dtype), storage_dtype(parameter.dtype)):
        raise RunError(f"{what}: the array is of {array.dtype}; convert it, as by x.astype({str(parameter.dtype)!r})")
    if array.ndim != len(parameter.shape):
        raise RunError(f"{what}: the array has {array.ndim} dimensions, {list(array.shape)}")
    if array.shape != parameter.shape:
        axis = next(n for n, (a, b) in enumerate(zip(array.shape, parameter.shape)) if a != b)
        raise RunError(f"{what}: the array has {list(array.shape)}: size {axis} is {array.shape[axis]}")
