"""What an operator is given, as values of one type that broadcast: tensors, numbers of Python, scalar expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import DType, Expr, as_expr, cast, const, te
from ..te import Tensor, error
from .promotion import kind_of, result_type, weak_type
from .registry import described
from .shapes import Shape, broadcast, read_index

Operand = Tensor | Expr | int | float | bool  # numbers take the type of the tensors


@dataclass(frozen=True)
class Values:
    """An operand: its shape, its type (None of a number, which has none of its own), and how to read an element."""

    shape: Shape
    dtype: DType | None
    read: Callable[[tuple[Any, ...]], Any]


def values_of(operand: Any) -> Values:
    """An operand of the user's. Raises ``TensorExpressionError`` for what is none."""
    if isinstance(operand, Tensor):
        if not kind_of(operand.dtype):
            raise error(f"`{operand.name}` is a tensor of {operand.dtype}, which no operator takes")
        return Values(operand.shape, operand.dtype, lambda indices: operand[indices])
    if hasattr(operand, "item") and getattr(operand, "ndim", 1) == 0 and not isinstance(operand, Expr):
        operand = operand.item()
    if isinstance(operand, (bool, int, float)):
        return Values((), None, lambda _: operand)
    try:
        made = None if hasattr(operand, "__array__") else as_expr(operand)
    except TypeError:
        made = None
    if made is None:
        raise error(
            f"an operand is a tensor or a number, not {described(operand)}",
            "te.placeholder(shape, dtype), and the array when it runs",
        )
    return Values((), made.dtype, lambda _: made)


def common_type(operands: Sequence[Values]) -> DType:
    """The type that operands are promoted to. Raises ``TensorExpressionError`` where there is none."""
    own = [o.dtype for o in operands if o.dtype is not None]
    if not own:
        raise error("all operands are numbers of Python", "one of them a tensor")
    dtype = result_type(own)
    for operand in operands:
        if operand.dtype is None:
            weak_type(operand.read(()), dtype)
    return dtype


def elementwise(name: str, formula: Callable[..., Any], *operands: Values, dtype: DType | None = None) -> Tensor:
    """The tensor of ``formula(x, y, …)`` for the elements of operands that broadcast, each converted to ``dtype``."""
    shape = broadcast(*(o.shape for o in operands))

    def element(*indices: Any) -> Any:
        return formula(*(as_type(o.read(read_index(o.shape, shape, indices)), dtype) for o in operands))

    return te.compute(shape, element, name=name)


def as_type(value: Any, dtype: DType | None) -> Expr:
    """A scalar as ``dtype``; None keeps its own."""
    if dtype is None:
        return as_expr(value)
    return cast(dtype, value) if isinstance(value, Expr) else const(value, dtype)


def require_kind(dtype: DType, kinds: Sequence[str], what: str = "the tensor") -> None:
    """Raise ``TensorExpressionError`` unless ``dtype`` is of one of ``kinds`` ("bool", "integer", "float")."""
    if kind_of(dtype) not in kinds:
        legal = {"float": "float32", "integer": "int32", "bool": "bool"}[kinds[-1]]
        raise error(f"{what} is {dtype}, and the operator takes {' or '.join(kinds)}", f'ops.astype(x, "{legal}")')
