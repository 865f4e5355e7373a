"""Described programs of torch as graphs."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ModelError
from ..graph import Builder, Graph, Value
from ..graph.sizes import Size, inside, least, most, parsed, symbol
from ..names import did_you_mean
from . import torch_table
from .making import FAULTS, Faults, Unsupported, reason
from .torch_program import Body, Program, Ref, Step, several
from .torch_table import Call, Complex, NotMade, Result, type_named


def imported(program: Program, shapes: Mapping[str, Sequence[int | str]] | None = None) -> Graph:
    """The graph of a described program. Raises ``ModelError`` as ``from_exported`` does.

    >>> from tir.importers.torch_table import Result
    >>> add = Step("y", "aten.add", {"x": Ref("x"), "other": 2}, Result("float32", (2, 3)))
    >>> print(imported(Program({"x": ("float32", (2, 3))}, (add,), (Ref("y"),))))
    graph(%x: float32[2, 3])
      %add: float32[2, 3] = add(x=%x, y=2.0)
      return y=%add
    """
    made = Import(program, shapes or {})
    if made.faults:
        raise made.faults.error()
    return made.graph()


class Import:
    """One import: what each name stands for, and the steps that cannot be imported (``failed``, by name)."""

    def __init__(self, program: Program, shapes: Mapping[str, Sequence[int | str]]):
        self.program = program
        self.builder = Builder()
        self.faults = Faults()
        self.failed: set[str] = set()
        self.values: dict[str, Any] = dict(program.numbers)
        self._inputs(shapes)
        self.values.update({n: self._constant(a, n) for n, a in program.constants.items()})
        self.values.update(self._functions(program.bodies))
        for name in program.updates:
            self.faults.add("update", "", "it changes a tensor in place that is no buffer", name)
        with inside(self.builder.limits):
            for step in program.steps:
                self._step(step)
        for said in program.outputs:
            value = self.values.get(said.name) if isinstance(said, Ref) else None
            if isinstance(value, (NotMade, Complex)):
                assert isinstance(said, Ref)
                why = value.why if isinstance(value, NotMade) else "its numbers are complex: make it torch.view_as_real"
                self.failed.add(said.name)
                self.faults.add("result", "", why, said.name)

    def _constant(self, array: Any, name: str) -> Value | Complex:
        if array.dtype.kind != "c":
            return self.builder.constant(array, name)
        return Complex(*(self.builder.constant(part.copy(), name) for part in (array.real, array.imag)))

    def _inputs(self, shapes: Mapping[str, Sequence[int | str]]) -> None:
        inputs = self.program.inputs
        if unknown := [n for n in shapes if n not in inputs]:
            raise ModelError(f"shapes names {unknown[0]!r}, which is no input{did_you_mean(unknown[0], inputs)}")
        for name, (dtype, sizes) in inputs.items():
            wanted = tuple(shapes.get(name, sizes))
            if len(wanted) != len(sizes) or any(isinstance(s, int) and s != w for s, w in zip(sizes, wanted)):
                raise ModelError(
                    f"shapes gives {list(wanted)} for input {name!r}, which is {list(sizes)} in the program"
                )
            try:
                self.values[name] = value = self.builder.input(name, wanted, type_named(dtype))
                for said, size in zip(sizes, value.shape):
                    if isinstance(said, str):
                        own = size.names if isinstance(size, Size) and size == parsed(said) else ()
                        for text, limited in {said: size, **{n: symbol(n) for n in own}}.items():
                            if text in self.program.limits:
                                self.builder.limit(limited, *self.program.limits[text])
            except (Unsupported, ModelError) as error:
                raise ModelError(f"input {name!r}: {error}") from error

    def graph(self) -> Graph:
        """The graph of the outputs."""
        outputs: dict[str, Value] = {}
        for n, said in enumerate(self.program.outputs):
            value = self.values.get(said.name) if isinstance(said, Ref) else said
            if not isinstance(value, (Value, bool, int, float)):
                raise ModelError(f"result {n} of the program is {said!r}, which is no tensor")
            if not isinstance(value, Value):
                value = Call(self.builder, "number", "", (), f"result{n}").tensor(value)
            name = said.name if isinstance(said, Ref) else f"result{n}"
            outputs[name if name not in outputs and name not in self.program.state else f"{name}_{n}"] = value
        for name, after in self.program.state.items():
            outputs[name] = self.values[after]
        if not outputs:
            raise ModelError("the program has no results")
        return self.builder.graph(outputs)

    def _step(self, step: Step) -> None:
        try:
            arguments = {k: self._resolved(a) for k, a in step.arguments.items()}
            self.values[step.name] = self._made(step, arguments)
        except _Missing:
            self.values[step.name] = None
            self.failed.add(step.name)
        except FAULTS as error:
            self.failed.add(step.name)
            self.faults.add(step.operator, step.overload, reason(error), step.name)
            self.values[step.name] = self._stand_in(step)

    def _functions(self, bodies: Mapping[str, Body]) -> dict[str, Callable[..., list[Any]]]:
        return {name: functools.partial(self._run, body) for name, body in bodies.items()}

    def _run(self, body: Body, *given: Any) -> list[Any]:
        """What a body makes of values: its steps become part of this graph. Raises what one of them raises."""
        outside = self.values
        constants = {n: self._constant(a, n) for n, a in body.constants.items()}
        self.values = {**dict(zip(body.inputs, given)), **constants, **self._functions(body.bodies)}
        try:
            for step in body.steps:
                arguments = {k: self._resolved(a) for k, a in step.arguments.items()}
                self.values[step.name] = self._made(step, arguments)
            return [self._resolved(each) for each in body.outputs]
        finally:
            self.values = outside

    def _resolved(self, argument: Any) -> Any:
        if isinstance(argument, Ref):
            value = self.values[argument.name]
            if isinstance(value, NotMade):
                raise Unsupported(value.why)
            if value is None and argument.name in self.failed:
                raise _Missing
            return value
        if isinstance(argument, list):
            return [self._resolved(each) for each in argument]
        return argument

    def _made(self, step: Step, arguments: Mapping[str, Any]) -> Any:
        module, _, name = step.operator.partition(".")
        if module in _PYTHON:
            return getattr(_PYTHON[module], name)(*arguments.values())
        if step.operator in _SYMBOLIC:
            return _SYMBOLIC[step.operator](*arguments.values())
        call = Call(self.builder, step.operator.removeprefix("aten."), step.overload, several(step.makes), step.name)
        return torch_table.imported(call, arguments)

    def _stand_in(self, step: Step) -> Any:
        """An input in the place of each result of a step that failed, so that the steps after it are tried, too; None of a number."""
        made: list[Value] = []
        for said in several(step.makes):
            sizes = [size for size in said.sizes if size is not None]
            try:
                made.append(self.builder.input(f"{step.name}/{len(made)}", sizes, type_named(said.dtype)))
            except Unsupported:
                return None
            if len(sizes) < len(said.sizes):
                return None
        return made[0] if isinstance(step.makes, Result) else tuple(made) or None


_PYTHON: dict[str, Any] = {"operator": operator, "math": math}  # of numbers, and the parts of several results
_SYMBOLIC: dict[str, Callable[..., Any]] = {
    "torch.sym_max": most,
    "torch.sym_min": least,
    "torch.sym_not": operator.not_,
    "torch.sym_int": lambda number: number if isinstance(number, Size) else int(number),
    "torch.sym_float": float,
    "torch.sym_sum": lambda numbers: sum(numbers),
}


def is_known(operator: str) -> bool:
    """Whether steps of an operator are imported: there is a row, or it is one on numbers."""
    of_numbers = operator.partition(".")[0] in _PYTHON or operator in _SYMBOLIC
    return of_numbers or torch_table.has_row(operator.removeprefix("aten."))


class _Missing(Exception):
    """An argument that a step before did not make."""
