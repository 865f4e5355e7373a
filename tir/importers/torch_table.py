"""The table of ATen operators: a row for each, which makes nodes of a graph. Nothing here needs torch.

A row is a function with ``@row``. It takes the node (:class:`Call`) and the arguments that the node gives, under the names
of torch's schema (``self`` and ``input`` are ``x``): tensors are values of the graph, types are ``DType``, sizes are integers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..dtype import DType
from ..extension import load_files
from ..graph import Builder, Value
from ..graph.sizes import Size, is_fixed
from ..interp.numbers import array_dtype, wrap
from ..names import did_you_mean
from ..ops.promotion import wide
from .making import NO_ROW, Making, Unsupported

_WITHOUT_MEANING = frozenset(  # of arguments: for the values of a result
    ("device", "layout", "pin_memory", "memory_format", "non_blocking", "copy", "cudnn_enabled", "implicit")
)

Number = bool | int | float
Operand = Value | Number
Row = Callable[..., Any]
_ROWS: dict[str, Row] = {}
_COMPLEX_ROWS: dict[str, Row] = {}  # where an argument or a result is complex
PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}  # complex type -> that of its parts


class Result(NamedTuple):
    """What torch says of a result: its type, and its sizes, None for those that are symbolic."""

    dtype: str
    sizes: tuple[int | None, ...]


@dataclass(frozen=True)
class Complex:
    """A tensor of complex numbers, which a graph has as two."""

    real: Value
    imaginary: Value


class NotMade(NamedTuple):
    """A result that a row does not make; it is a fault only where it is read."""

    why: str


def row(*names: str) -> Callable[[Row], Row]:
    """Make a function the row of operators: of ATen by their short names, of others with their namespace.

    >>> from tir.importers import torch_table
    >>> torch_table.has_row("relu"), torch_table.has_row("linalg_qr")
    (True, False)
    """

    def add(function: Row) -> Row:
        for name in names:
            _ROWS[name] = function
        return function

    return add


def complex_row(*names: str) -> Callable[[Row], Row]:
    """The same, for arguments or results that are :class:`Complex`."""
    return lambda function: _COMPLEX_ROWS.update(dict.fromkeys(names, function)) or function


def rounded_once(function: Row) -> Row:
    """A row of several operations, which torch computes in float32 where its result is of 16 bits, and rounds at the end."""

    @functools.wraps(function)
    def wider(c: Call, *args: Any, **given: Any) -> Any:
        if wide(c.dtype) == c.dtype:
            return function(c, *args, **given)

        def widened(x: Any) -> Any:
            return c.operand(x, wide(x.dtype)) if isinstance(x, Value) else x

        results = [r._replace(dtype=str(wide(type_named(r.dtype)))) for r in c.results]
        inner = Call(c.builder, c.operator, c.overload, results, c.label)
        made = function(inner, *map(widened, args), **{k: widened(x) for k, x in given.items()})
        if not isinstance(made, tuple):
            return c.operand(made, c.dtype)
        kinds = [type_named(r.dtype) for r in c.results]
        return tuple(c.operand(x, kind) if isinstance(x, Value) else x for x, kind in zip(made, kinds))

    return wider


def has_row(name: str) -> bool:
    """Whether an operator has a row."""
    load_files("tir.importers", "torch_")
    return name in _ROWS or name in _COMPLEX_ROWS


def names() -> list[str]:
    """The operators that have a row."""
    has_row("")
    return sorted({*_ROWS, *_COMPLEX_ROWS})


class Call(Making):
    """A node of torch, as a row sees it: the ``operator``, its ``overload``, and what torch says of its ``results``."""

    def __init__(self, builder: Builder, operator: str, overload: str, results: Sequence[Result], label: str):
        super().__init__(builder, label)
        self.operator = operator
        self.overload = overload
        self.results = results

    @property
    def dtype(self) -> DType:
        """The type of the first result. Raises :class:`Unsupported` for complex numbers and others that are none."""
        return type_named(self.results[0].dtype)

    def operand(self, x: Operand, dtype: DType) -> Operand:
        """A tensor converted to a type, or a number that is one of the type; integers wrap."""
        x = self.numbers(x) if isinstance(x, Size) else x
        if isinstance(x, Value):
            return x if x.dtype == dtype else self.op("astype", x, dtype)
        return float(x) if dtype.is_float else bool(x) if dtype.is_bool else wrap(int(x), dtype)

    def tensor(self, x: Operand, dtype: DType | None = None) -> Value:
        """The same, a number as a constant of rank 0."""
        kind = dtype or promoted(x)
        made = self.operand(x, kind)
        return made if isinstance(made, Value) else self.filled((), made, kind)

    def filled(self, sizes: Sequence[int], value: Number, dtype: DType) -> Value:
        """A constant of one number, or a tensor of it where sizes depend on symbols."""
        if not is_fixed(*sizes):
            return self.op("full", tuple(sizes), value, dtype)
        return self.array(np.full(self.room(*sizes), value).astype(array_dtype(dtype)))

    def converted(self, array: np.ndarray) -> Value:
        """A constant in the type of the result."""
        return self.array(array.astype(array_dtype(self.dtype)))


def type_named(name: str) -> DType:
    """A type by torch's name. Raises :class:`Unsupported` for complex numbers and others that are none of tensors."""
    try:
        return DType(name)
    except (ValueError, TypeError):
        raise Unsupported(f"torch.{name} is no type of tensors here") from None


def imported(call: Call, arguments: Mapping[str, Any]) -> Any:
    """What the row of a node makes: a value, a number, a tuple of values and :class:`NotMade`. Raises :class:`Unsupported` where there is no row,
    and where it makes another thing than torch says."""
    if not has_row(call.operator):
        raise Unsupported(NO_ROW + did_you_mean(call.operator, names()))
    is_complex = any(r.dtype in PARTS for r in call.results) or any(map(_has_complex, arguments.values()))
    rows = _COMPLEX_ROWS if is_complex else _ROWS
    if call.operator not in rows:
        kinds = "real", "complex"
        raise Unsupported(f"its row takes {kinds[not is_complex]} numbers, these are {kinds[is_complex]}")
    made = _of_an_axis(rows[call.operator], call, arguments)
    made = tuple(made) if isinstance(made, list) else made
    for value, said in zip(made if isinstance(made, tuple) else (made,), call.results):
        for part in (value.real, value.imaginary) if isinstance(value, Complex) else (value,):
            if isinstance(part, Value):
                _require_said(part, Result(PARTS[said.dtype], said.sizes) if isinstance(value, Complex) else said)
    return made


def real_row(call: Call, name: str, arguments: Mapping[str, Any]) -> Any:
    """What the row of an operator on real numbers makes, as a part of what the node makes."""
    results = [Result(PARTS.get(r.dtype, r.dtype), r.sizes) for r in call.results]
    return applied(_ROWS[name], Call(call.builder, name, call.overload, results, call.label), arguments)


@functools.cache
def _parameters(function: Row) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def applied(function: Row, call: Call, arguments: Mapping[str, Any]) -> Any:
    """What a row makes of those of the arguments that it takes. Raises :class:`Unsupported` for others that have a meaning."""
    parameters = _parameters(function)
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    given = {k: v for k, v in arguments.items() if takes_all or k in parameters}
    for name in arguments.keys() - given.keys() - _WITHOUT_MEANING:
        if arguments[name] is not None:
            raise Unsupported(f"its argument {name}={arguments[name]!r}")
    return function(call, **given)


_AXES = ("dim", "dims", "dimension")


def _of_an_axis(function: Row, call: Call, arguments: Mapping[str, Any]) -> Any:
    """What a row makes. Of a tensor of rank 0 torch allows an axis, 0 or -1: it is one of a tensor of one element."""
    defaults = {k: p.default for k, p in _parameters(function).items() if k in _AXES}
    named = [arguments.get(k, default) for k, default in defaults.items()]
    x = arguments.get("x")
    if not isinstance(x, Value) or x.shape or all(axes in (None, [], ()) for axes in named):
        return applied(function, call, arguments)

    def widened(a: Any) -> Any:
        return call.shaped(a, (1,)) if isinstance(a, Value) and not a.shape else a

    made = applied(function, call, {k: widened(a) for k, a in arguments.items()})
    several = made if isinstance(made, (tuple, list)) else (made,)
    sizes = [[1 if n is None else n for n in said.sizes] for said in call.results]
    shaped = [call.shaped(v, s) if isinstance(v, Value) else v for v, s in zip(several, sizes)]
    return shaped if isinstance(made, (tuple, list)) else shaped[0]


def _has_complex(argument: Any) -> bool:
    if isinstance(argument, list):
        return any(map(_has_complex, argument))
    return isinstance(argument, (Complex, complex))


def _require_said(value: Value, said: Result) -> None:
    sizes = len(said.sizes) == len(value.shape) and all(s in (None, n) for s, n in zip(said.sizes, value.shape))
    if not sizes or str(value.dtype) != said.dtype:
        raise Unsupported(f"its row makes {value.dtype}{list(value.shape)}, torch {said.dtype}{list(said.sizes)}")


def promoted(*operands: Operand) -> DType:
    """The type in which torch computes with tensors and numbers: a tensor of rank 0 or a number counts only if it is of a
    higher kind (bool, integer, float) than the tensors, or tensors of rank 0, before it.

    >>> from tir.graph import Value
    >>> x, s = Value("x", (3,), DType("float16")), Value("s", (), DType("float64"))
    >>> str(promoted(x, s)), str(promoted(x, 2)), str(promoted(3, 2.5))
    ('float16', 'float16', 'float32')
    """
    classes: list[list[DType]] = [[], [], []]
    for x in operands:
        if isinstance(x, Value):
            classes[0 if x.shape else 1].append(x.dtype)
        else:
            classes[2].append(
                DType("bool" if isinstance(x, bool) else "int64" if isinstance(x, (int, Size)) else "float32")
            )
    return functools.reduce(_higher, (functools.reduce(_common, each) for each in classes if each))


def _kind(dtype: DType) -> int:
    return 2 if dtype.is_float else 0 if dtype.is_bool else 1


def _higher(first: DType, second: DType) -> DType:
    return second if _kind(second) > _kind(first) else first


def _common(a: DType, b: DType) -> DType:
    """The smallest type that holds both; of an integer and a float the float."""
    if _kind(a) != _kind(b):
        return max(a, b, key=_kind)
    if a.is_float:
        return a if a == b else max(a, b, key=lambda d: d.bits) if a.bits != b.bits else DType("float32")
    return DType(np.promote_types(str(a), str(b)).name)
