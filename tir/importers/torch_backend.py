"""The backend of ``torch.compile``: the graphs that torch captures as models, what has no row as torch runs it."""

from __future__ import annotations

import copy
import operator
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..collecting import seldom_collected
from ..errors import BuildError, ModelError, TirError
from ..graph import CompiledModel, compile_graph
from ..interp.dlpack import as_given
from ..target import CPUS, Target
from ..visit import with_room
from .making import Fault, Faults, Unsupported, reason
from .torch_graph import Import
from .torch_program import Program, array_of, described, held_by, output_of, steps_of
from .torch_table import has_row

_PLANS = 8  # for parameters and sizes, of one graph
_CHANGES = 2  # of a parameter, after which it is an input


@dataclass(frozen=True)
class Report:
    """What became of the graphs that torch captured: ``models`` that were compiled, the ``kernels`` that they call, and ``eager``, a
    row for each operator or graph that torch runs itself: operator, overload, count, the first node, and why."""

    models: int
    kernels: int
    eager: tuple[Fault, ...]

    def __str__(self) -> str:
        return str(ModelError(f"{self.models} models of {self.kernels} kernels were compiled", self.eager))


class _Log:
    """What :func:`report` gives."""

    def __init__(self) -> None:
        self.models: list[int] = []
        self.eager = Faults()


_LOG = _Log()


def report() -> Report:
    """What became of the graphs that :func:`backend` was given in this process, and where torch had to break one.

    >>> report().models >= 0
    True
    """
    import sys

    breaks = Faults()
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    for kind in ("graph_break", "unimplemented"):
        for why, count in counters.get(kind, {}).items():
            breaks.add("graph break", "", str(why).partition("\n")[0], *[""] * count)
    return Report(len(_LOG.models), sum(_LOG.models), (*_LOG.eager.rows(), *breaks.rows()))


def backend(gm: Any, example_inputs: Sequence[Any], options: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """A graph of ``torch.compile`` as one model: ``torch.compile(net, backend="tir")``, ``options={"target": …}``.

    Parameters and buffers are constants of the model, which is made again when one of them has changed. An operator without a
    row, a graph that needs gradients, and one that cannot be compiled run as torch runs them; :func:`report` says why. A
    symbolic size has a model for each size that it takes.
    """
    import torch
    from torch._dynamo.backends.common import aot_autograd  # pyright: ignore[reportMissingImports]

    if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs):
        _LOG.eager.add("graph", "", "it needs gradients: call it under torch.no_grad()", _first(gm))
        return gm.forward
    target = Target.of((options or {}).get("target", "llvm"))
    table = torch.export.default_decompositions().materialize()
    kept = {
        op: made
        for op, made in table.items()
        if not has_row(str(getattr(op, "overloadpacket", op)).removeprefix("aten."))
    }
    compiler = aot_autograd(fw_compiler=lambda graph, _: _Captured(graph, target), decompositions=kept)
    return compiler(gm, example_inputs)


def _first(gm: Any) -> str:
    return next((node.name for node in gm.graph.nodes if node.op.startswith("call")), "graph")


class _Plan:
    """What runs a graph for a state of its parameters, ``frozen`` by the number of the argument, and sizes of the others."""

    def __init__(self, run: Callable[..., Any], args: Sequence[Any], frozen: Sequence[int]):
        self.run = run
        self.changed: list[int] = []  # the parameters whose elements may be others, when it was last compared
        self._kept = [(n, weakref.ref(args[n]), _state(args[n])) for n in frozen]
        self._sizes = [(n, _described(arg)) for n, arg in enumerate(args) if n not in frozen]

    def fits(self, args: Sequence[Any]) -> bool:
        """Whether it runs arguments."""
        for n, tensor, state in self._kept:
            if tensor() is not args[n] or _state(args[n]) != state:
                self.changed = [
                    n for n, tensor, state in self._kept if tensor() is args[n] and _state(args[n]) != state
                ]
                return False
        self.changed = []
        return all(_described(args[n]) == sizes for n, sizes in self._sizes)


class _Captured:
    """A graph without effects, run by models: one for each state of its parameters and each shape of its inputs."""

    def __init__(self, gm: Any, target: Any):
        self._gm = gm
        self._target = target
        self._names = [node.name for node in gm.graph.nodes if node.op == "placeholder"]
        self._changes = [0] * len(self._names)
        self._plans: list[_Plan] = []  # the last used is the first

    def __call__(self, *args: Any) -> Any:
        plan = next((plan for plan in self._plans if plan.fits(args)), None)
        if plan is None:
            plan = self._planned(args)
        elif plan is not self._plans[0]:
            self._plans.remove(plan)
        if not self._plans or plan is not self._plans[0]:
            self._plans = [plan, *self._plans[: _PLANS - 1]]
        return plan.run(*args)

    def _planned(self, args: Sequence[Any]) -> _Plan:
        """A plan for arguments like these. Those of the same parameters before they changed are dropped."""
        for n in self._plans[0].changed if self._plans else ():
            self._changes[n] += 1
        self._plans = [plan for plan in self._plans if not plan.changed]
        frozen = [n for n, arg in enumerate(args) if self._changes[n] < _CHANGES and _is_parameter(arg)]
        return _Plan(self._made(args, frozen), args, frozen)

    @with_room
    @seldom_collected
    def _made(self, args: Sequence[Any], frozen: Sequence[int]) -> Callable[..., Any]:
        """What runs the graph for arguments like these."""
        import torch

        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if any(t.device.type != "cpu" or t.layout != torch.strided for t in tensors):
            return self._eagerly("it has tensors that are not dense, or not in the memory of the host")
        program = self._program(args, frozen)
        try:
            read = Import(program, {})
        except ModelError as error:
            return self._eagerly(reason(error))
        if read.faults:
            _LOG.eager.include(read.faults)
            return _partitioned(self._gm, read.failed, self._target)
        try:
            layouts = _layouts(self._gm)
            if self._target.kind not in CPUS:
                raise BuildError(
                    f"this backend makes models for {' and '.join(CPUS)}, not for {self._target.kind}; tir.compile(torch.export.export(…), "
                    f"{self._target.kind!r}) makes one for a GPU"
                )
            model = compile_graph(read.graph(), self._target)
        except (TirError, Unsupported) as error:
            return self._eagerly(reason(error))
        _LOG.models.append(len(model.kernels))
        inputs = [n for n in range(len(args)) if self._names[n] in program.inputs]
        return _Run(model, inputs, layouts, is_one=not isinstance(_output(self._gm), (list, tuple)))

    def _program(self, args: Sequence[Any], frozen: Sequence[int]) -> Program:
        import torch

        inputs, constants, numbers = {}, {}, {}
        for n, (name, arg) in enumerate(zip(self._names, args)):
            if n in frozen:
                constants[name] = array_of(arg)
            elif isinstance(arg, torch.Tensor):
                inputs[name] = described(arg)
            else:
                numbers[name] = arg
        tensors, bodies = held_by(self._gm)
        return Program(
            inputs,
            steps_of(self._gm.graph),
            output_of(self._gm.graph),
            {**constants, **tensors},
            numbers,
            bodies=bodies,
        )

    def _eagerly(self, why: str) -> Callable[..., Any]:
        _LOG.eager.add("graph", "", why, _first(self._gm))
        return self._gm.forward


def _is_parameter(arg: Any) -> bool:
    """Whether torch says that an argument is a parameter or a buffer of a module."""
    import torch

    return isinstance(arg, torch.nn.Parameter) or getattr(arg, "_dynamo_static_input_type", None) is not None


def _state(arg: Any) -> tuple[int, int]:
    """Where a tensor is, and how often it was changed there."""
    return arg.data_ptr(), 0 if arg.is_inference() else arg._version


def _described(arg: Any) -> Any:
    return tuple(arg.shape) if hasattr(arg, "shape") else arg


class _Run:
    """A model as a graph of torch runs: tensors in, tensors of the layout that torch expects out."""

    def __init__(self, model: CompiledModel, inputs: Sequence[int], layouts: Mapping[int, _Layout], is_one: bool):
        import torch

        self._model = model
        self._inputs = inputs
        self._layouts = layouts
        self._is_one = is_one
        self._kind = (torch.empty(0),)  # of results

    def __call__(self, *args: Any) -> Any:
        made = self._model(*(args[n].detach() for n in self._inputs))
        arrays = made if isinstance(made, tuple) else (made,)
        tensors = [as_given(a, p.dtype, self._kind) for a, p in zip(arrays, self._model.outputs)]
        for n, layout in self._layouts.items():
            tensors[n] = layout(tensors)
        return tensors[0] if self._is_one else tensors


_Layout = Callable[[Sequence[Any]], Any]  # a result, of all


def _output(gm: Any) -> Any:
    (node,) = (n for n in gm.graph.nodes if n.op == "output")
    return node.args[0]


def _layouts(gm: Any) -> dict[int, _Layout]:
    """The results that are not tensors of their own, row by row, and what makes them of all: views of others, and copies in
    another order. Raises :class:`Unsupported` for views of which no result is the whole."""
    import torch

    found: dict[int, _Layout] = {}
    output = _output(gm)
    nodes = output if isinstance(output, (list, tuple)) else [output]
    values = [node.meta.get("val") if hasattr(node, "meta") else None for node in nodes]
    tensors = {n: v for n, v in enumerate(values) if isinstance(v, torch.Tensor)}
    shared: dict[int, list[int]] = {}
    for n, value in tensors.items():
        shared.setdefault(value.untyped_storage()._cdata, []).append(n)
    for group in shared.values():
        if len(group) == 1 and tensors[group[0]].is_contiguous():
            continue
        if not all(isinstance(s, int) for n in group for s in (*tensors[n].shape, *tensors[n].stride())):
            raise Unsupported("its results are views or in another order than row by row, and have symbolic sizes")
        whole = [n for n in group if _is_whole(tensors[n])]
        if len(group) > 1 and not whole:
            raise Unsupported("its results share memory, of which none has all")
        for n in group:
            value = tensors[n]
            strides, offset = tuple(value.stride()), value.storage_offset()
            if whole and n != whole[0]:
                found[n] = _view(whole[0], tuple(value.shape), strides, offset)
            elif not value.is_contiguous():
                found[n] = _copy(n, tuple(value.shape), strides)
    return found


def _is_whole(value: Any) -> bool:
    return (
        bool(value.is_contiguous()) and value.storage_offset() == 0 and value.untyped_storage().nbytes() == value.nbytes
    )


def _view(of: int, sizes: Sequence[Any], strides: Sequence[Any], offset: Any) -> _Layout:
    return lambda tensors: tensors[of].as_strided(sizes, strides, offset)


def _copy(n: int, sizes: Sequence[int], strides: Sequence[int]) -> _Layout:
    """The elements of result ``n`` in another order; where strides overlap, as in an expanded tensor, several have one place."""
    import torch

    if not _may_overlap(sizes, strides):
        return lambda tensors: torch.empty_strided(sizes, strides, dtype=tensors[n].dtype).copy_(tensors[n])
    places = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(sizes, strides):
        places = places.unsqueeze(-1) + torch.arange(size) * stride
    room = sum((size - 1) * stride for size, stride in zip(sizes, strides)) + 1

    def copied(tensors: Sequence[Any]) -> Any:
        made = torch.empty(room, dtype=tensors[n].dtype)
        made[places.flatten()] = tensors[n].flatten()
        return made.as_strided(sizes, strides)

    return copied


def _may_overlap(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    last = 0
    for stride, size in sorted((stride, size) for stride, size in zip(strides, sizes) if size > 1):
        if stride <= last:
            return True
        last += (size - 1) * stride
    return False


def _partitioned(gm: Any, failed: set[str], target: Any) -> Callable[..., Any]:
    """The graph in parts: those of steps that can be imported as graphs of their own, the rest as torch runs it. What is given stays as it is."""
    from torch.fx import GraphModule  # pyright: ignore[reportMissingImports]
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner  # pyright: ignore[reportMissingImports]

    gm, wrong = GraphModule(gm, copy.deepcopy(gm.graph)), set(failed)
    for node in gm.graph.nodes:
        if node.target is operator.getitem and node.name in wrong:
            wrong.add(node.args[0].name)
    made = CapabilityBasedPartitioner(gm, _Importable(wrong), allows_single_node_partition=False).partition_and_fuse()
    for name, part in list(made.named_children()):
        if name.startswith("fused_"):
            setattr(made, name, _module(_Captured(part, target)))
    return made.forward


class _Importable:
    """What may be in a part: calls that make tensors, and parts of their results."""

    def __init__(self, wrong: set[str]):
        self._wrong = wrong

    def is_node_supported(self, submodules: Any, node: Any) -> bool:
        """Whether a node can be imported."""
        if node.op != "call_function" or node.name in self._wrong:
            return False
        if node.target is operator.getitem and node.args[0].name in self._wrong:
            return False
        value = node.meta.get("val")
        return hasattr(value, "dtype") or isinstance(value, (list, tuple))


def _module(run: Callable[..., Any]) -> Any:
    import torch

    class Part(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return run(*args)

    return Part()
