"""The part of ``T`` that makes nodes of expressions as they are: operands are matched, nothing is folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import Buffer as _Buffer
from ..buffer import BufferRegion as _BufferRegion
from ..dtype import DType as _DType
from ..expr import Expr
from .values import dtype_of, to_expr

__all__ = [
    "Add",
    "And",
    "Broadcast",
    "BufferLoad",
    "Call",
    "Cast",
    "Div",
    "EQ",
    "FloorDiv",
    "FloorMod",
    "GE",
    "GT",
    "LE",
    "LT",
    "Let",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "NE",
    "Not",
    "Or",
    "Ramp",
    "Select",
    "Shuffle",
    "Sub",
    "broadcast",
    "ramp",
]


def _exact(kind: Any) -> Callable[[Any, Any], Expr]:
    def build(a: Any, b: Any) -> Expr:
        return kind(*_e.matched(num(a), num(b), kind.__name__))

    build.__name__ = build.__qualname__ = kind.__name__
    build.__doc__ = f"The node ``{kind.__name__}``, operands in one dtype, not folded."
    return build


def num(value: Any) -> Any:
    return to_expr(value) if isinstance(value, _BufferRegion) else value


Add, Sub, Mul, Div, Mod = (_exact(k) for k in (_e.Add, _e.Sub, _e.Mul, _e.Div, _e.Mod))
FloorDiv, FloorMod, Min, Max = (_exact(k) for k in (_e.FloorDiv, _e.FloorMod, _e.Min, _e.Max))
EQ, NE, LT, LE, GT, GE = (_exact(k) for k in (_e.EQ, _e.NE, _e.LT, _e.LE, _e.GT, _e.GE))


def And(a: Any, b: Any) -> Expr:
    return _e.And(_e.as_bool(to_expr(a)), _e.as_bool(to_expr(b)))


def Or(a: Any, b: Any) -> Expr:
    return _e.Or(_e.as_bool(to_expr(a)), _e.as_bool(to_expr(b)))


def Not(a: Any) -> Expr:
    return _e.Not(_e.as_bool(to_expr(a)))


def Cast(dtype: Any, value: Any) -> Expr:
    """The conversion node, not folded."""
    return _e.Cast(_DType(dtype_of(dtype)), to_expr(value))


def Select(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """``condition ? true_value : false_value``; both sides are evaluated."""
    a, b = _e.matched(num(true_value), num(false_value), "Select")
    return _e.Select(_e.as_bool(to_expr(condition)), a, b)


def Ramp(base: Any, stride: Any, lanes: Any) -> Expr:
    b = to_expr(base)
    return _e.Ramp(b, _e.cast(b.dtype, stride), int(lanes))


def Broadcast(value: Any, lanes: Any) -> Expr:
    return _e.Broadcast(to_expr(value), int(lanes))


ramp, broadcast = Ramp, Broadcast


def Shuffle(vectors: Sequence[Any], indices: Sequence[Any]) -> Expr:
    return _e.Shuffle(tuple(to_expr(v) for v in vectors), tuple(to_expr(i) for i in indices))


def Let(expr: Any, where: dict[_e.Var, Any]) -> Expr:
    """``expr`` with the variables of ``where`` bound."""
    result = to_expr(expr)
    for variable, value in reversed(list(where.items())):
        result = _e.Let(variable, _e.as_expr(num(value), variable.dtype), result)
    return result


def BufferLoad(buffer: _Buffer, indices: Sequence[Any]) -> Expr:
    return buffer[tuple(indices)]


def Call(dtype: Any, op: str, args: Sequence[Any]) -> Expr:
    """A call of any operator with an explicit result type."""
    return _op.call(op, *args, dtype=dtype_of(dtype))
