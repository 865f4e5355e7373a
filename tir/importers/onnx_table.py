"""The table of ONNX operators: a row for each operator and version, which makes nodes of a graph.

A row is a function with ``@row``: of what the node says (:class:`Call`) it makes the values of its outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtype import DType
from ..extension import load_files
from ..graph import Builder, Value
from ..graph.sizes import Size
from ..ops.promotion import wide
from .making import KNOWN, NO_ROW, Making, Unknown, Unsupported

Row = Callable[["Call"], Any]
_ROWS: dict[tuple[str, str], dict[int, Row]] = {}


def rounded_once(function: Row) -> Row:
    """A row of several operations, which are computed in float32 where the first operand has 16 bits; its first result is rounded at the end."""

    @functools.wraps(function)
    def wider(c: Call) -> Any:
        kind = c[0].dtype
        if wide(kind) == kind:
            return function(c)
        inputs = [c.of_type(x, wide(kind)) if isinstance(x, Value) and x.dtype == kind else x for x in c.inputs]
        made = function(Call(c.builder, c.operator, c.version, inputs, c.attributes, c.outputs))
        first, *rest = made if isinstance(made, tuple) else (made,)
        return c.of_type(first, kind), *rest

    return wider


def of_floats(function: Row) -> Row:
    """A row of a function of floats, which computes integers as float64, and cuts what it makes to integers."""

    @functools.wraps(function)
    def wider(c: Call) -> Any:
        kind = c[0].dtype
        if not kind.is_int:
            return function(c)
        inputs = [c.of_type(c[0], "float64"), *c.inputs[1:]]
        return c.of_type(function(Call(c.builder, c.operator, c.version, inputs, c.attributes, c.outputs)), kind)

    return wider


class Items(tuple[Value, ...]):
    """The tensors of a sequence."""


Made = Value | Items | None  # what a name stands for: a tensor, a sequence, nothing


def row(name: str, *since: int, domain: str = "") -> Callable[[Row], Row]:
    """Make a function the row of an operator, from each of the versions ``since`` on until there is another row.

    >>> from tir.importers import onnx_table
    >>> sorted(onnx_table.rows("Softmax"))
    [1, 13]
    """

    def add(function: Row) -> Row:
        for version in since or (1,):
            _ROWS.setdefault((domain, name), {})[version] = function
        return function

    return add


def rows(name: str, domain: str = "") -> Mapping[int, Row]:
    """The rows of an operator by the first version that they are for; none of an unknown operator."""
    load_files("tir.importers", "onnx_")
    return _ROWS.get((domain, name), {})


def names() -> list[str]:
    """The operators that have a row."""
    rows("")
    return sorted(name for _, name in _ROWS)


class Call(Making):
    """A node of ONNX, as a row sees it: ``inputs`` are values, :class:`Items` for sequences, None for those left out; ``outputs``
    are its names for what it makes."""

    def __init__(
        self,
        builder: Builder,
        operator: str,
        version: int,
        inputs: Sequence[Made],
        attributes: Mapping[str, Any],
        outputs: Sequence[str],
    ):
        super().__init__(builder, outputs[0] if outputs else operator)
        self.operator = operator
        self.version = version
        self.inputs = inputs
        self.attributes = attributes
        self.outputs = outputs

    def __getitem__(self, index: int) -> Value:
        value = self.get(index)
        if value is None:
            raise Unsupported(f"input {index} is left out")
        return value

    def get(self, index: int) -> Value | None:
        """An input, or None if it is left out. Raises :class:`Unsupported` for a sequence."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(value, Items):
            raise Unsupported(f"input {index} is a sequence")
        return value

    def sequence(self, index: int) -> Items:
        """An input that is a sequence, as its tensors. Raises :class:`Unsupported` for another."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if not isinstance(value, Items):
            raise Unsupported(f"input {index} is no sequence")
        return value

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a number, a string, a tuple, an array, or a function from values to values (a graph)."""
        return self.attributes.get(name, default)

    def constant(self, index: int, what: str) -> np.ndarray | None:
        """An input that must be known, as an array; None if it is left out."""
        value = self.get(index)
        if value is None:
            return None
        found = self.known(value)
        if found is None:
            raise self.unknown(what, value)
        return found

    def unknown(self, what: str, value: Value) -> Unknown:
        """What to raise for a value that acts as an attribute, and is not known."""
        names = [source.name for source in self.builder.sources(value)]
        of = ", ".join(f"`{name}`" for name in names)
        if not names:
            return Unknown(f"its {what} has {value.elements} elements; at most {KNOWN} are computed at import", ())
        computed = "" if names == [value.name] else f": it is computed of {of}"
        return Unknown(f"its {what}, `{value.name}`, is known only when it runs{computed}", names)

    def sizing(self, index: int) -> np.ndarray:
        """An input on whose elements the size of the result depends, and which must be known."""
        value = self[index]
        found = self.known(value)
        if found is None:
            of = ", ".join(f"`{source.name}`" for source in self.builder.sources(value))
            raise Unsupported(f"the size of its result depends on the elements of {of}, known only when it runs")
        self.room(found.size)
        return found

    def integers(self, index: int, what: str) -> list[Any] | None:
        """An input that must be known, as a list of integers, and of sizes; None if it is left out."""
        found = self.constant(index, what)
        return None if found is None else [n if isinstance(n, Size) else int(n) for n in found.reshape(-1)]


def imported(call: Call, domain: str = "") -> tuple[Made, ...]:
    """The values that the row of a node makes. Raises :class:`Unsupported` where there is none for its version."""
    known = rows(call.operator, domain)
    if not known:
        raise Unsupported(NO_ROW)
    chosen = max((v for v in known if v <= call.version), default=None)
    if chosen is None:
        raise Unsupported(f"there are rows from version {min(known)} on")
    made = known[chosen](call)
    return tuple(made) if isinstance(made, (list, tuple)) and not isinstance(made, Items) else (made,)


def dtype_of(number: int) -> DType:
    """The type that ONNX numbers so. Raises :class:`Unsupported` for strings, complex numbers, and others that are none."""
    import onnx

    try:
        name = onnx.helper.tensor_dtype_to_np_dtype(number).name
        return DType(name)
    except (KeyError, ValueError, TypeError):
        raise Unsupported(f"type {onnx.TensorProto.DataType.Name(number)} is no type of tensors") from None
