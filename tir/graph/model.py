"""A graph as one lowered module: its kernels, and an entry that calls them with offsets into one workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.module import LLVMModule, Module

from ..buffer import Buffer, decl_buffer
from ..checked import checked
from ..collecting import seldom_collected
from ..errors import BuildError, ModelError
from ..expr import BufferLoad, Expr, StringImm, Var, as_bool, const
from ..function import PrimFunc
from ..names import unique_name
from ..node import frozendict
from ..script.tir_calls import address_of, call_global, ret
from ..stmt import Allocate, AssertStmt, Evaluate, seq
from ..target import Target
from ..te.to_primfunc import identifier
from .building import built
from .calls import Model, Parameter, give_back
from .fusion import groups
from .graph import Graph, Node, Value, conditions, results
from .kept import find, keep, model_key
from .kernels import Call, Kernel, Kernels, by_default, part
from .memory import ALIGNMENT, Place, Plan
from .passes import PASSES, optimized
from .sizes import Extent, Size, extents, symbols, variables

if TYPE_CHECKING:
    from .profile import Profile

_TARGETS = ("llvm", "interpreter")


@seldom_collected
@checked
def compile_graph(graph: Graph, target: Any = "llvm", state: Sequence[str] = ()) -> CompiledModel:
    """Compile a graph: after the passes of ``tir.graph.PASSES``, a kernel a group of nodes, equal kernels once.

    ``state`` are names of both an input and a result: the result is written over the input, in an array that the caller keeps from
    call to call (``model(x, state=model.new_state())``).

    Raises ``ModelError`` for a graph that is none, and for a state that cannot be updated in place, and ``BuildError`` for a target that cannot run models, and for a group that
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
    key = model_key(graph, chosen, state, PASSES)
    kept = None if key is None else find(key, chosen)
    if kept is not None:
        return kept
    final = optimized(graph)
    del graph  # what passes have made anew of its constants is freed, if nobody else has it
    model = compile_optimized(final, target, state)
    del final
    if key is not None:
        keep(key, model)
    give_back()
    return model


def compile_optimized(
    graph: Graph,
    target: Any = "llvm",
    state: Sequence[str] = (),
    schedule: Callable[[PrimFunc, Any], Kernel] = by_default,
) -> CompiledModel:
    """The model of a graph as it is, after whatever passes; ``schedule`` makes a kernel of the function of a group, for a target."""
    updated = _updated(graph, state)
    final = with_own_results(graph)
    order = groups(final)
    kernels = Kernels(order, final.constants, target, schedule)
    made = kernels.plan(order, final.outputs.values(), {final.outputs[n]: v for n, v in updated.items()})
    calls = [kernels.call(g, made) for g in order if g.view is None]
    packed, places = kernels.weights(calls, final.constants)
    checks = _checks(graph)
    entry = _Entry(final, updated, made, places, len(packed)).function(calls, kernels.functions, checks)
    own = {"run": with_own_workspace(entry, made.nbytes, checks)}
    if final.symbols:
        own["workspace_bytes"] = _bytes_function(entry, made.nbytes, checks)
    module = built({**kernels.functions, "main": entry, **own}, kernels.groups, target)
    if isinstance(module, LLVMModule):
        module.forget()  # the programs of all kernels, lowered, are larger than some models
    kept = {v: part(packed, places[v], v) for v in final.constants if v in places}
    names = tuple(call.kernel for call in calls)
    graph = replace(final, constants=kept)
    return CompiledModel(graph, module, packed, sum(v.nbytes for v in places), made, names, tuple(updated))


def _checks(graph: Graph) -> list[AssertStmt]:
    """What must hold of the symbols of a graph: they are at least 1, and nodes can be applied."""
    least = {f"the size {v.name} is less than 1": v >= 1 for v in variables(graph.symbols)}
    needs = {f"`{node}` needs {c}": c for node in graph.nodes for c in conditions(node.operator, node.arguments)}
    return [AssertStmt(condition, StringImm(message)) for message, condition in {**least, **needs}.items()]


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


class _Entry:
    """The function that calls the kernels: its parameters are inputs, results, the state, the constants, and the workspace."""

    def __init__(self, graph: Graph, state: Mapping[str, Value], made: Plan, places: Mapping[Value, int], weights: int):
        self._plan = made
        self._places = places
        inputs = {v: v.name for v in graph.inputs if v.name not in state}
        kept = {v: name for name, v in state.items()}
        names = symbols(s for v in (*inputs, *kept) for s in v.shape)  # in the order of a call's arrays
        self._symbols = dict(zip(names, variables(names)))
        self._taken: set[str] = set(names)
        values = inputs | {v: name for name, v in graph.outputs.items() if name not in state} | kept
        self._buffers = {v: self._parameter(v.shape, v.dtype, name) for v, name in values.items()}
        self._weights = self._parameter((max(weights, 1),), "uint8", "weights", ALIGNMENT)
        self._work = self._parameter((1 if made.nbytes == 0 else made.nbytes,), "uint8", "workspace", ALIGNMENT)

    def _parameter(self, shape: Sequence[Extent], dtype: Any, name: str, alignment: int = 0) -> Buffer:
        name = unique_name(identifier(name), self._taken)
        self._taken.add(name)
        return decl_buffer(extents(shape), dtype, name, data_alignment=alignment)

    def function(
        self, calls: Sequence[Call], kernels: Mapping[str, PrimFunc], checks: Sequence[AssertStmt]
    ) -> PrimFunc:
        """The entry: the checks, and the calls of kernels, in order. Kernels take symbols by name among their arguments, the entry after its own."""
        stmts = [Evaluate(call_global(call.kernel, *self._arguments(kernels[call.kernel], call))) for call in calls]
        buffers = [*self._buffers.values(), self._weights, self._work]
        return PrimFunc(
            (*(b.data for b in buffers), *self._symbols.values()),
            seq([*checks, *stmts]),
            buffer_map={b.data: b for b in buffers},
            attrs=frozendict({"global_symbol": "main", "tir.noalias": False}),  # one array may be several inputs
        )

    def _arguments(self, kernel: PrimFunc, call: Call) -> list[Expr]:
        """What a kernel is called with: memory for its buffers, and symbols for its scalars."""
        pointers = map(self._pointer, call.arguments)
        return [next(pointers) if p in kernel.buffer_map else self._symbols[p.name] for p in kernel.params]

    def _pointer(self, place: Place) -> Expr | Var:
        value, begin = place
        if value in self._buffers:
            if begin == 0:
                return self._buffers[value].data
            buffer, indices = self._buffers[value], _unraveled(begin // value.itemsize, value.shape)
        elif value in self._places:
            buffer, indices = self._weights, [self._places[value] + begin]
        else:
            buffer, indices = self._work, [self._plan.offsets[value] + begin]
        return address_of(BufferLoad(buffer, tuple(map(_index, indices))))


def _unraveled(flat: Extent, shape: Sequence[Extent]) -> list[Extent]:
    """The indices of an element from its number in order."""
    indices: list[Extent] = []
    for size in reversed(shape[1:]):
        indices.append(flat % size)
        flat = flat // size
    return [flat, *reversed(indices)]


def _index(place: Extent) -> Expr:
    if isinstance(place, Size):
        return place.wide
    return const(place, "int32" if place < 1 << 31 else "int64")


class CompiledModel(Model):
    """A model that was compiled here: ``graph`` is the graph that was compiled, with the constants that kernels read, ``plan`` the
    plan of its workspace. ``key`` is its name in the disk cache, where it has one."""

    key: str | None = None

    def __init__(
        self,
        graph: Graph,
        module: Module,
        weights: np.ndarray,
        weights_bytes: int,
        made: Plan,
        kernels: tuple[str, ...],
        state: Sequence[str] = (),
    ):
        inputs = {v.name: Parameter(v.name, v.shape, v.dtype) for v in graph.inputs}
        outputs = [Parameter(name, v.shape, v.dtype) for name, v in graph.outputs.items() if name not in state]
        kept = [inputs.pop(name) for name in state]
        super().__init__(tuple(inputs.values()), outputs, module, weights, made.nbytes, kernels, kept)
        self.graph = graph
        self.plan = made
        self.weights_bytes = weights_bytes

    def profile(self, *args: Any, repeat: int = 5, **named: Any) -> Profile:
        """Time each kernel in ``repeat`` calls of the model: a table of the medians, as text, in a notebook, as JSON, and a picture.

        Raises ``RunError`` as a call does.

        >>> from tir.graph import Builder, compile_graph
        >>> b = Builder()
        >>> model = compile_graph(b.graph(b.call("exp", b.input("x", (64,)))))
        >>> [(k.kernel, k.calls, k.bytes, k.operations) for k in model.profile(np.zeros(64, "float32")).kernels]
        [('exp', 1, 512, 64)]
        """
        from .profile import profile

        return profile(self, args, named, repeat)

    def save(
        self,
        path: str | Path,
        header: str | Path | None = None,
        weights: str | Path | None = None,
        threads: str = "linked",
        levels: Sequence[str] = (),
        checks: bool = False,
        cmake: str | Path | None = None,
    ) -> None:
        """Write the model as ``.so``, ``.o`` or ``.a``, and a C ``header``: a function of the file's name that takes inputs and results,
        and ``<name>_with_workspace``, which takes memory to work in as well. Where sizes are symbols, both take their values last, and
        ``<name>_workspace_bytes`` computes the bytes of that memory from them. ``tir.load`` reads it back.

        The weights are in the file; or in the file ``weights``, as they are in memory, and both functions take their address.
        ``threads``, ``levels``, ``checks`` and ``cmake`` are those of :meth:`codegen.module.LLVMModule.save`. Raises ``BuildError`` as that does, and
        for a target that has no code.

        >>> import tempfile
        >>> import tir
        >>> from tir.graph import Builder, compile_graph
        >>> b = Builder()
        >>> x = b.input("x", (2,))
        >>> model = compile_graph(b.graph(b.call("add", x, b.constant(np.float32([1, 2]), "w"))))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.o")
        ...     tir.load(f"{folder}/model.o")(np.zeros(2, "float32"))
        array([1., 2.], dtype=float32)
        """
        from codegen.aot import Options

        from .saved import save

        save(self, Path(path), weights, Options.of(header, threads, checks, cmake), levels)
