"""Calls that operators are judged by: shapes, data types and values of the arguments, and attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import DType, Var, te
from ..interp import numbers

Draw = Callable[[np.random.Generator, "tuple[int, ...]", DType], Any]


@dataclass(frozen=True)
class Argument:
    """A tensor of a case. A name among the extents is a symbolic size, the same for all arguments of the case."""

    shape: tuple[int | str, ...]
    dtype: DType
    values: Any


@dataclass(frozen=True)
class Case:
    """A call: positional arguments, of which those made by :func:`arg` are tensors (in lists too), and attributes."""

    args: tuple[Any, ...]
    attributes: Mapping[str, Any]

    def mapped(self, change: Callable[[Argument], Any]) -> Case:
        """The case with ``change(a)`` in the place of each tensor ``a``, in the order of the arguments."""

        def visit(item: Any) -> Any:
            if isinstance(item, Argument):
                return change(item)
            return type(item)(map(visit, item)) if isinstance(item, (list, tuple)) else item

        return Case(tuple(map(visit, self.args)), {k: visit(v) for k, v in self.attributes.items()})

    def arguments(self) -> list[Argument]:
        """The tensors, in the order of the arguments."""
        found: list[Argument] = []
        self.mapped(found.append)
        return found

    def __repr__(self) -> str:
        given = [_text(a) for a in self.args] + [f"{k}={_text(v)}" for k, v in self.attributes.items()]
        return f"({', '.join(given)})"


def arg(shape: Any, dtype: str = "float32", values: Any = "any") -> Argument:
    """A tensor of ``shape`` (names are symbolic sizes) with ``values``: an array, or one of the kinds of values below.

    ``"any"``: floats between -3 and 3, integers between -7 and 7 (0 and 7), bools. ``"positive"``: floats between 0.3 and
    3, integers between 1 and 7. ``"nonzero"``: either sign, none near 0. ``"small"``: floats between -0.95 and 0.95.
    ``"special"``: among others nan, infinities, zeros of both signs, the largest and the least number; of integers both
    ends of the type. ``"nonfinite"``: floats like those of "any", among which are nan, infinities and zeros of both signs.
    ``"distinct"``: no two alike. ``"indices below n"``: integers from 0 to n - 1.

    >>> arg(("n", 4), "int8", "positive").shape
    ('n', 4)
    """
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if isinstance(values, str) and _draw_of(values) is None:
        raise ValueError(f"there are no values {values!r}; there are {', '.join(_DRAWS)}, and 'indices below n'")
    return Argument(sizes, DType(dtype), values)


def case(*args: Any, **attributes: Any) -> Case:
    """A call of an operator: ``case(arg((3, 4)), axis=1)``. What :func:`arg` makes is a tensor, all else is passed on."""
    return Case(args, attributes)


def _text(value: Any) -> str:
    if isinstance(value, Argument):
        kind = f" {value.values}" if isinstance(value.values, str) and value.values != "any" else ""
        return f"{'x'.join(map(str, value.shape)) or 'scalar'} {value.dtype}{kind}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)


def example(name: str, cases: Sequence[Case], gives: Any) -> str:
    """A call of the operator ``name`` for its docstring, by the first of ``cases`` without symbolic sizes: it ``gives`` a shape, a
    list of shapes, or None for one that is not shown."""
    numeric = (c for c in cases if not any(isinstance(n, str) for a in c.arguments() for n in a.shape))
    of = next(numeric, cases[0])
    given = [*map(_written, of.args), *(f"{k}={_written(v)}" for k, v in of.attributes.items())]
    call = f"ops.{name}({', '.join(given)})"
    if gives is None:
        shown = f"made = {call}"
    else:
        shown = f"[made.shape for made in {call}]\n{gives}" if isinstance(gives, list) else f"{call}.shape\n{gives}"
    return f">>> from tir import ops, te\n>>> {shown}"


def _written(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_written, value))}]" if any(isinstance(v, Argument) for v in value) else repr(value)
    if not isinstance(value, Argument):
        return repr(value)
    dtype = "" if value.dtype == "float32" else f', "{value.dtype}"'
    return f"te.placeholder({value.shape}{dtype})"


# ---------------------------------------------------------------- a case made concrete


@dataclass(frozen=True)
class Call:
    """A case with tensors and arrays in the place of its arguments.

    ``arrays`` are in memory as the data types are stored; the arrays of :meth:`wide` are what a reference takes.
    """

    case: Case
    sizes: Mapping[str, int]
    tensors: Mapping[int, te.Tensor]  # by the identity of the argument
    arrays: Mapping[int, np.ndarray]

    @property
    def inputs(self) -> list[te.Tensor]:
        """The tensors in the order of the arguments."""
        return list(self.tensors.values())

    def symbolic(self) -> tuple[list[Any], dict[str, Any]]:
        """Arguments and attributes for the operator."""
        return self._with(lambda a: self.tensors[id(a)])

    def wide(self) -> tuple[list[Any], dict[str, Any]]:
        """Arguments and attributes for the reference: floats as float64."""
        return self._with(lambda a: widened(self.arrays[id(a)], a.dtype))

    def _with(self, value: Callable[[Argument], Any]) -> tuple[list[Any], dict[str, Any]]:
        made = self.case.mapped(value)
        return list(made.args), dict(made.attributes)


def concrete(of: Case, seed: int = 0) -> Call:
    """Tensors and arrays for a case. Symbolic sizes are 5, 6, 7 … in the order of their names' first use."""
    rng = np.random.default_rng(seed)
    variables: dict[str, Var] = {}
    tensors: dict[int, te.Tensor] = {}
    arrays: dict[int, np.ndarray] = {}
    sizes: dict[str, int] = {}
    for n, argument in enumerate(of.arguments()):
        for extent in argument.shape:
            if isinstance(extent, str) and extent not in variables:
                variables[extent] = te.var(extent)
                sizes[extent] = 5 + len(sizes)
        shape = [variables[e] if isinstance(e, str) else e for e in argument.shape]
        tensors[id(argument)] = te.placeholder(shape, argument.dtype, name=f"x{n}")
        actual = tuple(sizes[e] if isinstance(e, str) else e for e in argument.shape)
        arrays[id(argument)] = _drawn(argument, actual, rng)
    return Call(of, sizes, tensors, arrays)


def _drawn(argument: Argument, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    draw = _draw_of(argument.values) if isinstance(argument.values, str) else None
    values = draw(rng, shape, argument.dtype) if draw else np.asarray(argument.values)
    return stored(np.broadcast_to(values, shape), argument.dtype)


def stored(values: Any, dtype: DType) -> np.ndarray:
    """Values rounded to ``dtype``, as an array of how it is kept in memory."""
    if numbers.is_small_float(dtype):
        return np.asarray(numbers.encode(np.asarray(values, np.float64), dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(values, dtype=numbers.storage_dtype(dtype))


def widened(array: np.ndarray, dtype: DType) -> np.ndarray:
    """An array of floats, as kept in memory, as float64; others as they are."""
    if numbers.is_small_float(dtype):
        return numbers.decode_table(dtype)[array].astype(np.float64)
    return array.astype(np.float64) if dtype.is_float else array.copy()


# ---------------------------------------------------------------- kinds of values


def _any(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    if dtype.is_float:
        return rng.uniform(-3, 3, shape)
    return rng.integers(-7 if dtype.code == "int" else 0, 1 if dtype.is_bool else 7, shape, endpoint=True)


def _positive(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    return (
        rng.uniform(0.3, 3, shape)
        if dtype.is_float
        else rng.integers(1, 1 if dtype.is_bool else 7, shape, endpoint=True)
    )


def _nonzero(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    size = _positive(rng, shape, dtype)
    return size * np.where(rng.random(shape) < 0.5, -1, 1) if dtype.is_float or dtype.code == "int" else size


def _small(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    return rng.uniform(-0.95, 0.95, shape)


def _special(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    ends = [dtype.min_value, dtype.max_value, 0, 1]
    if dtype.is_float:
        ends += [float("nan"), float("inf"), -float("inf"), -0.0, -1.0, 0.5, 2.5, -2.5, -0.3]
    elif dtype.code == "int":
        ends += [-1, -2]
    count = int(np.prod(shape))
    kept = np.asarray(_any(rng, (count,), dtype), np.float64 if dtype.is_float else object)
    kept[: len(ends)] = ends[:count]
    return rng.permutation(kept).reshape(shape)


def _nonfinite(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    hard = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0]), shape)
    return np.where(rng.random(shape) < 0.3, hard, _any(rng, shape, dtype))


def _distinct(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    count = int(np.prod(shape))
    low = 0 if dtype.code in ("uint", "bool") else -(count // 2)
    return rng.permutation(np.arange(low, low + count)).reshape(shape)


_DRAWS: dict[str, Draw] = {
    "any": _any, "positive": _positive, "nonzero": _nonzero, "small": _small, "special": _special,
    "nonfinite": _nonfinite, "distinct": _distinct,
}  # fmt: skip


def _draw_of(values: str) -> Draw | None:
    indices = re.fullmatch(r"indices below (\d+)", values)
    if indices:
        return lambda rng, shape, dtype: rng.integers(0, int(indices[1]), shape)
    return _DRAWS.get(values)
