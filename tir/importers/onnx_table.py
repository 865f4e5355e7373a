"""The table of ONNX operators: a row for each operator and version, which makes nodes of a graph.

A row is a function with ``@row``: of what the node says (:class:`Call`) it makes the values of its outputs.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtype import DType
from ..errors import ModelError
from ..graph import Builder, Node, Value
from ..graph.graph import results, values_in
from ..graph.passes import evaluate
from ..ops import registry

MOST = 1 << 25  # elements of a constant that a row makes
KNOWN = 4096  # elements of a tensor that is computed at import, if what it is computed from is known
NO_ROW = "there is no row for this operator"
_FILES = ("onnx_elementwise", "onnx_shapes", "onnx_reductions", "onnx_networks", "onnx_recurrent")

Row = Callable[["Call"], Any]
_ROWS: dict[tuple[str, str], dict[int, Row]] = {}


class Unsupported(Exception):
    """What a row cannot import, with the reason."""


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
    for file in _FILES:
        importlib.import_module(f"{__package__}.{file}")
    return _ROWS.get((domain, name), {})


def names() -> list[str]:
    """The operators that have a row."""
    rows("")
    return sorted(name for _, name in _ROWS)


class Call:
    """A node of ONNX, as a row sees it: ``inputs`` are values, None for those left out; ``outputs`` how many it has."""

    def __init__(
        self,
        builder: Builder,
        operator: str,
        version: int,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any],
        outputs: Sequence[str],
    ):
        self.builder = builder
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
        """An input, or None if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a number, a string, a tuple or an array."""
        return self.attributes.get(name, default)

    def known(self, value: Value) -> np.ndarray | None:
        """The elements of a value that is a constant; None of others."""
        return self.builder.constants.get(value)

    def constant(self, index: int, what: str) -> np.ndarray | None:
        """An input that must be known, as an array; None if it is left out."""
        value = self.get(index)
        if value is None:
            return None
        found = self.known(value)
        if found is None:
            raise Unsupported(f"its {what}, `{value.name}`, is known only when it runs")
        return found

    def integers(self, index: int, what: str) -> list[int] | None:
        """An input that must be known, as a list of integers; None if it is left out."""
        found = self.constant(index, what)
        return None if found is None else [int(n) for n in found.reshape(-1)]

    def op(self, operator: str, *arguments: Any, **attributes: Any) -> Any:
        """The value of an operator of ``tir.ops``, or its values: computed now if all that it needs is known and small."""
        bound = registry.find(operator).signature.bind(*arguments, **attributes).arguments
        inputs = tuple(values_in(bound.values()))
        if all(v in self.builder.constants and v.elements <= KNOWN for v in inputs):
            made = results(operator, bound)
            if sum(int(np.prod(shape)) for shape, _ in made) <= KNOWN:
                outputs = tuple(Value(f"out{n}", *each) for n, each in enumerate(made))
                arrays = evaluate(Node(operator, bound, outputs), self.builder.constants)
                values = tuple(self.array(array) for array in arrays)
                return values[0] if len(values) == 1 else values
        return self.builder.call(operator, *arguments, **attributes)

    def room(self, *sizes: int) -> tuple[int, ...]:
        """The sizes of a constant that is made here. Raises :class:`Unsupported` if they are none, or too large."""
        if min(sizes, default=0) < 0 or math.prod(sizes) > MOST:
            raise Unsupported(f"it makes a constant of shape {list(sizes)}; at most {MOST} elements are made at import")
        return sizes

    def array(self, array: Any) -> Value:
        """A constant."""
        return self.builder.constant(array, self.outputs[0] if self.outputs else self.operator)


def imported(call: Call, domain: str = "") -> tuple[Value, ...]:
    """The values that the row of a node makes. Raises :class:`Unsupported` where there is none for its version."""
    known = rows(call.operator, domain)
    if not known:
        raise Unsupported(NO_ROW)
    chosen = max((v for v in known if v <= call.version), default=None)
    if chosen is None:
        raise Unsupported(f"there are rows from version {min(known)} on")
    made = known[chosen](call)
    return tuple(made) if isinstance(made, (list, tuple)) else (made,)


def of_type(value: Value, kinds: str) -> bool:
    """Whether a value is of floats (``"float"``) or integers (``"integer"``)."""
    return value.dtype.is_float if kinds == "float" else value.dtype.is_int


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front. Raises ``ModelError`` for one that is none."""
    if not -rank <= axis < rank:
        raise ModelError(f"axis {axis} of a tensor of {rank} dimensions")
    return axis % rank


def dtype_of(number: int) -> DType:
    """The type that ONNX numbers so. Raises :class:`Unsupported` for strings, complex numbers, and others that are none."""
    import onnx

    try:
        name = onnx.helper.tensor_dtype_to_np_dtype(number).name
        return DType(name)
    except (KeyError, ValueError, TypeError):
        raise Unsupported(f"type {onnx.TensorProto.DataType.Name(number)} is no type of tensors") from None
