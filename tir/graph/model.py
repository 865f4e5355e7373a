"""A graph as one lowered module: its kernels, and an entry that calls them with offsets into one workspace."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from codegen.module import LLVMModule

from ..buffer import Buffer, decl_buffer
from ..checked import checked
from ..collecting import seldom_collected
from ..errors import BuildError, ModelError
from ..expr import BufferLoad, Expr, StringImm, Var, all_of, as_bool, const, digits_of
from ..function import PrimFunc
from ..names import claimed, did_you_mean, identifier, unique_name
from ..node import frozendict
from ..script.tir_calls import address_of, call_global, ret
from ..stmt import Allocate, AssertStmt, Evaluate, IfThenElse, Stmt, seq
from ..target import KINDS, Target
from ..visit import with_recursion_limit, with_room
from .apart import compile_apart
from .building import built
from .compiled_model import About, Case, CompiledModel
from .fusion import Formula, groups
from .graph import Graph, Node, Value, conditions, mapped, results
from .graph_passes import PASSES, optimized
from .kept import find, keep
from .kernels import Call, Kernel, Kernels, by_default, part
from .keys import model_key
from .memory_plan import Place, Plan
from .model_calls import give_back
from .sizes import ALIGNMENT, Extent, Size, extents, is_fixed, most, symbols, variables


@with_recursion_limit
@with_room
@seldom_collected
@checked
def compile_graph(
    graph: Graph, target: Any = "llvm", state: Sequence[str] = (), cases: Sequence[Mapping[str, int]] = ()
) -> CompiledModel:
    """Compile a graph: after the passes of ``tir.graph.PASSES``, a kernel a group of nodes, equal kernels once.

    ``state`` are names of both an input and a result: the result is written over the input, in an array that the caller keeps from
    call to call (``model(x, state=model.new_state())``). ``cases`` are values of symbols for which the module has kernels of their own, of the first that a
    call has: with ``[{"n": 1}]`` one row reads quantized weights, and many rows read the floats that are made of them once. What constants the kernels
    of a case read beside those of the others is in the model, too.

    Raises ``ModelError`` for a graph that is none, for a state that cannot be updated in place, and for a case of no symbol or that no call can have,
    and ``BuildError`` for a target that cannot run models, and for a group that cannot be built.

    >>> import numpy as np
    >>> from tir.graph import Builder, compile_graph
    >>> b = Builder()
    >>> x, y = b.input("x", (3,)), b.input("y", (3,))
    >>> compile_graph(b.graph({"sum": b.call("add", x, y)}))(np.ones(3, "float32"), y=np.ones(3, "float32"))
    array([2., 2., 2.], dtype=float32)
    """
    chosen = Target.of(target)
    if chosen.kind not in KINDS:
        raise BuildError(f"models are compiled for {', '.join(KINDS)}, not for {chosen.kind}")
    key = model_key(graph, chosen, state, PASSES, cases)
    kept = None if key is None else find(key, chosen)
    if kept is not None:
        return kept
    if key is not None:
        compile_apart(key, graph, chosen, state, cases)
        kept = find(key, chosen)
        if kept is not None:
            return kept
    return compile_here(key, graph, target, state, cases)


@with_recursion_limit
@with_room
@seldom_collected
def compile_here(
    key: str | None, graph: Graph, target: Any, state: Sequence[str], cases: Sequence[Mapping[str, int]] = ()
) -> CompiledModel:
    """Compile a graph in this process, whatever the disk cache has, and keep the model there if it has a key."""
    special = [(_case(values, graph), optimized(graph.at(values), target=target)) for values in cases]
    final = optimized(graph, target=target)
    del graph  # what passes have made anew of its constants is freed, if nobody else has it
    model = compile_optimized(final, target, state, cases=special)
    del final
    Formula.function.cache_clear()
    if key is not None:
        keep(key, model)
    give_back()
    return model


def _case(values: Mapping[str, int], graph: Graph) -> Mapping[str, int]:
    """A case of the symbols of a graph. Raises ``ModelError`` for one that is none."""
    for name, value in values.items():
        if name not in graph.symbols:
            known = (
                f"; they are {', '.join(graph.symbols)}" if graph.symbols else "; all sizes of the graph are numbers"
            )
            raise ModelError(
                f"case {dict(values)} names {name!r}, which is no symbol{did_you_mean(name, graph.symbols)}{known}"
            )
        if value < 1:
            raise ModelError(f"case {dict(values)}: {name} is at least 1")
    if not values:
        raise ModelError("a case without values is every call; give values of symbols, as cases=[{'n': 1}]")
    return frozendict(values)


def compile_optimized(
    graph: Graph,
    target: Any = "llvm",
    state: Sequence[str] = (),
    schedule: Callable[[PrimFunc, Any], Kernel] = by_default,
    cases: Sequence[tuple[Mapping[str, int], Graph]] = (),
) -> CompiledModel:
    """The model of a graph as it is, after whatever passes; ``schedule`` makes a kernel of the function of a group, for a target. ``cases`` are graphs for
    values of its symbols."""
    checks = _checks(graph)
    given = [with_own_results(each) for each in (graph, *(one for _, one in cases))]
    constants = dict(given[0].constants)
    for n, each in enumerate(given[1:], 1):
        given[n] = _apart(each, given[:n], constants)
        constants.update(given[n].constants)
    orders = [groups(each) for each in given]
    kernels = Kernels([group for order in orders for group in order], constants, target, schedule)
    parts = []
    for values, each, order in zip(({}, *(values for values, _ in cases)), given, orders):
        updated = {each.outputs[name]: value for name, value in _updated(each, state).items()}
        made = kernels.plan(order, each.outputs.values(), updated)
        parts.append(_Part(values, each, made, [kernels.call(g, made) for g in order if g.view is None]))
    packed, places = kernels.weights([call for each in parts for call in each.calls], constants)
    nbytes = reduce(most, (each.plan.nbytes for each in parts))
    entry = _Entry(parts, state, nbytes, places, len(packed)).function(kernels.functions, checks)
    own = {"run": with_own_workspace(entry, nbytes, checks)}
    if graph.symbols:
        own["workspace_bytes"] = _bytes_function(entry, nbytes, checks)
    module = built({**kernels.functions, "main": entry, **own}, kernels.groups, target)
    if isinstance(module, LLVMModule):
        module.forget()  # the programs of all kernels, lowered, are larger than some models
    cases_made = [each.case(packed, places) for each in parts]
    about = About.of(cases_made[0], state, sum(v.nbytes for v in places), nbytes)
    return CompiledModel(about, module, packed, lambda: cases_made)


class _Part(NamedTuple):
    """A graph in the making of a model, for values of symbols."""

    values: Mapping[str, int]
    graph: Graph
    plan: Plan
    calls: Sequence[Call]

    def case(self, packed: np.ndarray, places: Mapping[Value, int]) -> Case:
        kept = {v: part(packed, places[v], v) for v in self.graph.constants if v in places}
        graph = replace(self.graph, constants=kept)
        return Case(self.values, graph, self.plan, tuple(call.kernel for call in self.calls))


def _apart(graph: Graph, others: Iterable[Graph], constants: Mapping[Value, np.ndarray]) -> Graph:
    """The graph with names that no value of ``others`` has, but for inputs, and for constants that equal theirs."""
    taken = {v.name for each in others for v in each.values()}
    new = {v: v for v in graph.inputs}
    for v in graph.values():
        array = graph.constants.get(v)
        is_shared = array is not None and v in constants and _are_same(array, constants[v])
        new[v] = v if v in new or is_shared else replace(v, name=unique_name(v.name, taken))
        taken.add(new[v].name)
    nodes = [
        Node(n.operator, {k: mapped(a, new.__getitem__) for k, a in n.arguments.items()}, tuple(map(new.__getitem__, n.outputs)), n.name)
        for n in graph.nodes
    ]  # fmt: skip
    outputs = {name: new[v] for name, v in graph.outputs.items()}
    constants = {new[v]: a for v, a in graph.constants.items()}
    return replace(graph, nodes=tuple(nodes), outputs=outputs, constants=constants)


def _are_same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays of one shape and type have the same bytes."""
    if one is other:
        return True
    first, second = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (one, other))
    return np.array_equal(first, second)


def _checks(graph: Graph) -> list[AssertStmt]:
    """What must hold of the symbols of a graph: they are at least 1, sizes are inside their limits, tensors have less elements than
    indices of int32 can tell apart, and nodes can be applied."""
    least = {f"the size {v.name} is less than 1": v >= 1 for v in variables(graph.symbols)}
    for size, (low, high) in graph.limits.items():
        least[f"the size {size} is less than {low}, the least that the program was made for"] = size.expr >= low
        if high is not None:
            least[f"the size {size} is more than {high}, the most that the program was made for"] = size.expr <= high
    shapes = {v.shape: v for v in graph.values() if not is_fixed(*v.shape)}
    counts = {count: v for shape, v in shapes.items() if isinstance(count := math.prod(shape), Size)}
    fewer = {f"`{v}` has 2**31 elements or more": count.wide < 1 << 31 for count, v in counts.items()}
    needs = {f"`{node}` needs {c}": c for node in graph.nodes for c in conditions(node.operator, node.arguments)}
    return [AssertStmt(condition, StringImm(message)) for message, condition in {**least, **fewer, **needs}.items()]


def _bytes_function(entry: PrimFunc, nbytes: Extent, checks: Sequence[AssertStmt]) -> PrimFunc:
    """The function that gives the bytes of a workspace for values of the symbols that ``entry`` takes, after the ``checks``."""
    result = ret(nbytes.wide if isinstance(nbytes, Size) else const(nbytes, "int64"))
    params = tuple(p for p in entry.params if p not in entry.buffer_map)
    attrs = frozendict({"global_symbol": "workspace_bytes"})
    return PrimFunc(params, seq([*checks, Evaluate(result)]), result.dtype, attrs=attrs)


def _updated(graph: Graph, state: Sequence[str]) -> dict[str, Value]:
    """The inputs that are state, by name. Raises ``ModelError`` for a name that is not of an input and a result alike."""
    inputs = {v.name: v for v in graph.inputs}
    for name in state:
        if name not in inputs or name not in graph.outputs:
            raise ModelError(
                f"state {name!r} must be an input and a result: inputs are {', '.join(inputs)}, results {', '.join(graph.outputs)}"
            )
        before, after = inputs[name], graph.outputs[name]
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            raise ModelError(f"state {before} becomes {after}, which is no tensor of its shape and type")
    return {name: inputs[name] for name in state}


def with_own_workspace(entry: PrimFunc, nbytes: Extent, checks: Sequence[AssertStmt]) -> PrimFunc:
    """The function that calls ``entry``, the function ``main`` of a model, after the ``checks``, with memory of its own for a workspace
    of ``nbytes``."""
    *buffers, work = entry.buffers()
    size = (nbytes.wide,) if isinstance(nbytes, Size) else work.shape
    call = Allocate(work.data, work.dtype, size, as_bool(True), Evaluate(call_global("main", *entry.params)))
    return PrimFunc(
        tuple(p for p in entry.params if p is not work.data),
        seq([*checks, call]),
        buffer_map={b.data: b for b in buffers},
        attrs=frozendict({"global_symbol": "run", "tir.noalias": False}),
    )


def with_own_results(graph: Graph) -> Graph:
    """The graph with a copy for each result that is an input, a constant, or another result."""
    taken = {*graph.inputs, *graph.constants}
    names = {v.name for v in graph.values()}
    outputs, copies = dict(graph.outputs), []
    for name, value in outputs.items():
        if value in taken:
            arguments = {"x": value, "newshape": value.shape}
            ((shape, dtype),) = results("reshape", arguments)
            copy = Value(claimed(f"{value.name}_copy", names), shape, dtype)
            copies.append(Node("reshape", arguments, (copy,)))
            outputs[name] = copy
        taken.add(outputs[name])
    return replace(graph, nodes=(*graph.nodes, *copies), outputs=outputs)


class _Entry:
    """The function that calls the kernels: its parameters are inputs, results, the state, the constants, and the workspace. The first of ``parts`` is for
    all values of symbols that the others are not for."""

    def __init__(
        self, parts: Sequence[_Part], state: Sequence[str], nbytes: Extent, places: Mapping[Value, int], weights: int
    ):
        self._parts = parts
        self._places = places
        graph = parts[0].graph
        kept = _updated(graph, state)
        inputs = {v.name: v for v in graph.inputs if v.name not in state}
        names = symbols(
            s for v in (*inputs.values(), *kept.values()) for s in v.shape
        )  # in the order of a call's arrays
        self._symbols = dict(zip(names, variables(names)))
        self._taken: set[str] = set(names)
        results = {name: v for name, v in graph.outputs.items() if name not in state}
        taken, made, held = (
            {name: self._parameter(v.shape, v.dtype, name) for name, v in each.items()}
            for each in (inputs, results, kept)
        )
        self._parameters = [*taken.values(), *made.values(), *held.values()]
        self._buffers: dict[Value, Buffer] = {}
        for each in parts:
            self._buffers.update({v: (taken | held)[v.name] for v in each.graph.inputs})
            self._buffers.update({each.graph.outputs[name]: buffer for name, buffer in made.items()})
        self._weights = self._parameter((max(weights, 1),), "uint8", "weights", ALIGNMENT)
        self._work = self._parameter((1 if nbytes == 0 else nbytes,), "uint8", "workspace", ALIGNMENT)

    def _parameter(self, shape: Sequence[Extent], dtype: Any, name: str, alignment: int = 0) -> Buffer:
        return decl_buffer(extents(shape), dtype, claimed(identifier(name), self._taken), data_alignment=alignment)

    def function(self, kernels: Mapping[str, PrimFunc], checks: Sequence[AssertStmt]) -> PrimFunc:
        """The entry: the checks, and the calls of kernels, in order. Kernels take symbols by name among their arguments, the entry after its own."""
        whole = self._calls(self._parts[0], kernels)
        for each in reversed(self._parts[1:]):
            calls = self._calls(each, kernels)
            is_met = all_of(self._symbols[name].equal(value) for name, value in each.values.items())
            whole = IfThenElse(is_met, calls, whole)
        buffers = [*self._parameters, self._weights, self._work]
        return PrimFunc(
            (*(b.data for b in buffers), *self._symbols.values()),
            seq([*checks, whole]),
            buffer_map={b.data: b for b in buffers},
            attrs=frozendict({"global_symbol": "main", "tir.noalias": False}),  # one array may be several inputs
        )

    def _calls(self, one: _Part, kernels: Mapping[str, PrimFunc]) -> Stmt:
        return seq(
            [
                Evaluate(call_global(call.kernel, *self._arguments(kernels[call.kernel], call, one.plan)))
                for call in one.calls
            ]
        )

    def _arguments(self, kernel: PrimFunc, call: Call, plan: Plan) -> list[Expr]:
        """What a kernel is called with: memory for its buffers, and symbols for its scalars."""
        pointers = (self._pointer(place, plan) for place in call.arguments)
        return [next(pointers) if p in kernel.buffer_map else self._symbols[p.name] for p in kernel.params]

    def _pointer(self, place: Place, plan: Plan) -> Expr | Var:
        value, begin = place
        if value in self._buffers:
            if begin == 0:
                return self._buffers[value].data
            buffer, indices = self._buffers[value], digits_of(begin // value.itemsize, value.shape)
        elif value in self._places:
            buffer, indices = self._weights, [self._places[value] + begin]
        else:
            buffer, indices = self._work, [plan.offsets[value] + begin]
        return address_of(BufferLoad(buffer, tuple(map(_index, indices))))


def _index(place: Extent) -> Expr:
    if isinstance(place, Size):
        return place.wide
    return const(place, "int32" if place < 1 << 31 else "int64")
