"""A program of torch as a description of plain data, which is read from graphs of ``torch.fx``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..dtype import DType
from ..errors import ModelError
from ..interp.numbers import array_dtype
from .torch_in_place import changed_alone, changes
from .torch_table import Result


class Ref(NamedTuple):
    """A value by its name, as an argument."""

    name: str


@dataclass(frozen=True)
class Step:
    """A call of an operator: ``aten.add`` and its overload; ``arguments`` by the names of its schema, as they are given."""

    name: str
    operator: str
    arguments: Mapping[str, Any]
    makes: Result | tuple[Result, ...] = ()
    overload: str = ""


@dataclass(frozen=True)
class Body:
    """A graph that steps run, as a branch or a loop has: the names of its inputs, and the same as a program has."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Any, ...]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    bodies: Mapping[str, Body] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """What is imported: ``inputs`` by name as type and sizes (texts for open ones), ``constants``, ``numbers`` that are
    given as inputs, ``steps`` in order, ``outputs`` as names of values, or numbers; ``state`` are inputs that it has as buffers, and what these
    become; ``updates`` are other values that it changes; ``limits`` are the least and the largest value of open sizes, by text;
    ``bodies`` are the graphs that steps have as arguments, by name."""

    inputs: Mapping[str, tuple[str, tuple[int | str, ...]]]
    steps: tuple[Step, ...]
    outputs: tuple[Any, ...]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    updates: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    bodies: Mapping[str, Body] = field(default_factory=dict)


def array_of(tensor: Any) -> np.ndarray:
    """A tensor of torch as an array in the same memory. Raises ``ModelError`` for one that is not dense."""
    import torch

    name = str(tensor.dtype).removeprefix("torch.")
    try:
        held = tensor.detach().cpu().contiguous()
        if name.startswith("complex"):
            return held.resolve_conj().numpy()
        own = array_dtype(DType(name))
        if held.dtype == torch.bool or own.kind in "iuf" and own.isbuiltin == 1:
            return held.numpy()
        return held.view({1: torch.uint8, 2: torch.int16}[own.itemsize]).numpy().view(own)
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise ModelError(f"a tensor of {tensor.dtype}, {tensor.layout}, is no constant: {error}") from error


def described(tensor: Any) -> tuple[str, tuple[int | str, ...]]:
    """The type and the sizes of a tensor; symbolic ones as texts."""
    sizes = tuple(s if isinstance(s, int) else str(s) for s in tensor.shape)
    return str(tensor.dtype).removeprefix("torch."), sizes


def steps_of(graph: Any) -> tuple[Step, ...]:
    """The calls of a graph of ``torch.fx``, in order, but for checks."""
    alone = changed_alone(graph)
    return tuple(_step(node, node in alone) for node in _calls(graph))


def _calls(graph: Any) -> list[Any]:
    """The calls of a graph in order, without checks of tensors and of sizes, and what these alone read."""
    checks: set[Any] = set()
    for node in reversed(graph.nodes):
        is_read_by_checks = node.users and checks.issuperset(node.users) and not changes(node)
        if is_read_by_checks or re.match(r"aten\.(_functional)?_?(assert|sym_constrain)", str(node.target)):
            checks.add(node)
    return [n for n in graph.nodes if n.op not in ("placeholder", "output", "get_attr") and n not in checks]


def output_of(graph: Any) -> tuple[Any, ...]:
    """The results of a graph of ``torch.fx``: names of values, and numbers."""
    (node,) = (n for n in graph.nodes if n.op == "output")
    given = plain(node.args[0], lambda n: Ref(n.name))
    return tuple(given) if isinstance(given, list) else (given,)


def held_by(module: Any) -> tuple[dict[str, np.ndarray], dict[str, Body]]:
    """The tensors and the graphs that the nodes of a ``GraphModule`` take from it, by the names of the nodes."""
    import torch

    found = {n.name: _attribute(module, n.target) for n in module.graph.nodes if n.op == "get_attr"}
    tensors = {name: array_of(each) for name, each in found.items() if isinstance(each, torch.Tensor)}
    return tensors, {name: _body(each) for name, each in found.items() if isinstance(each, torch.fx.GraphModule)}


def _body(module: Any) -> Body:
    inputs = tuple(n.name for n in module.graph.nodes if n.op == "placeholder")
    return Body(inputs, steps_of(module.graph), output_of(module.graph), *held_by(module))


def plain(argument: Any, of: Callable[[Any], Any]) -> Any:
    """An argument of a node as plain data: nodes as ``of`` makes them, types as ``DType``, other things of torch as texts."""
    import torch

    if isinstance(argument, torch.fx.Node):
        return of(argument)
    if isinstance(argument, (list, tuple)):
        return [plain(each, of) for each in argument]
    if isinstance(argument, torch.dtype):
        with suppress(ValueError):  # complex and quantized numbers have no type here
            return DType(str(argument).removeprefix("torch."))
    if argument is None or isinstance(argument, (bool, int, float, complex, str)):
        return argument
    return str(argument)


def named(target: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}) -> tuple[str, str, dict[str, Any]]:
    """The name of what is called, its overload, and its arguments by the names of its schema."""
    schema = getattr(target, "_schema", None)
    if schema is None:  # Python's own, and those of torch on sizes
        module = (getattr(target, "__module__", None) or "").strip("_")
        name = f"{module}.{getattr(target, '__name__', target)}"
        return name, "", {**{f"argument{n}": a for n, a in enumerate(args)}, **kwargs}
    names = ("x" if a.name in ("self", "input") else a.name for a in schema.arguments)
    return str(target.overloadpacket), target._overloadname, {**dict(zip(names, args)), **kwargs}


def _step(node: Any, makes_new: bool) -> Step:
    """A node as a step; of one that changes its argument, which nothing else reads, as one that ``makes_new`` tensors."""
    operator, overload, given = named(node.target, node.args, node.kwargs)
    operator = operator.removesuffix("_") if makes_new else operator
    arguments = {k: plain(a, lambda n: Ref(n.name)) for k, a in given.items()}
    if operator.startswith("aten.as_strided"):  # of places in memory
        of = node.args[0].meta["val"]
        arguments["memory"] = plain(list(of.stride()), str), of.storage_offset()
    return Step(node.name, operator, arguments, makes(node.meta.get("val")), overload)


def several(makes: Result | tuple[Result, ...]) -> tuple[Result, ...]:
    """What a step makes as a tuple."""
    return (makes,) if isinstance(makes, Result) else makes


def makes(said: Any) -> Result | tuple[Result, ...]:
    """What torch says of a tensor, or of several; nothing of numbers."""
    if isinstance(said, (list, tuple)):
        return tuple(_result(each) for each in said if hasattr(each, "dtype"))
    return _result(said) if hasattr(said, "dtype") else ()


def _result(tensor: Any) -> Result:
    dtype, sizes = described(tensor)
    return Result(dtype, tuple(s if isinstance(s, int) else None for s in sizes))


def read_exported(program: Any) -> Program:
    """The description of an ``ExportedProgram``: as it is where there is a row for each operator, else after the
    decompositions of torch for those that have none."""
    import torch

    from .torch_graph import is_known

    alone = changed_alone(program.graph)

    def has_row(node: Any) -> bool:
        operator = named(node.target)[0].removesuffix("_" if node in alone else "")
        return is_known(operator) and (node in alone or not changes(node))

    if without := [n.target for n in _calls(program.graph) if not has_row(n)]:
        table = torch.export.default_decompositions()
        for target in [t for t in table if t not in without and is_known(named(t)[0])]:
            del table[target]
        try:
            program = program.run_decompositions(table)
        except Exception as error:  # of any kind: torch runs the program, and its own functions
            raise ModelError(f"torch does not decompose the program: {error}") from error
    held = {**program.state_dict, **program.constants}
    inputs, constants, numbers = {}, {}, {}
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    changed = {s.target: s.arg.name for s in program.graph_signature.output_specs if s.kind.name == "BUFFER_MUTATION"}
    state = {s.arg.name: changed[s.target] for s in program.graph_signature.input_specs if s.target in changed}
    for spec in program.graph_signature.input_specs:
        name = spec.arg.name
        if spec.target is not None and name not in state:
            constants[name] = array_of(held[spec.target])
        elif isinstance(nodes[name].meta.get("val"), torch.Tensor):
            inputs[name] = described(nodes[name].meta["val"])
        else:
            numbers[name] = nodes[name].meta.get("val")
    outputs, updates = [], []
    for spec in program.graph_signature.output_specs:
        if spec.kind.name == "USER_OUTPUT":
            outputs.append(
                Ref(spec.arg.name) if hasattr(spec.arg, "name") and not hasattr(spec.arg, "value") else spec.arg.value
            )
        elif spec.target not in changed:
            updates.append(str(spec.target or spec.arg.name))
    tensors, bodies = held_by(program.graph_module)
    constants.update(tensors)
    steps, limits = steps_of(program.graph), limits_of(program)
    return Program(inputs, steps, tuple(outputs), constants, numbers, tuple(updates), state, limits, bodies)


def limits_of(program: Any) -> dict[str, tuple[int, int | None]]:
    """The limits of the sizes of an ``ExportedProgram``, by text. One of at least 2 is torch's own for each size, and a call may have less."""
    found = {}
    for size, ends in program.range_constraints.items():
        low, high = int(ends.lower) if ends.lower > 2 else 1, int(ends.upper) if ends.upper.is_Integer else None
        if (low, high) != (1, None):
            found[str(size)] = low, high
    return found


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module
