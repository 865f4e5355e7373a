"""The part of ``T`` that makes nodes of expressions as they are: operands are matched, nothing is folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import Buffer as _Buffer
from ..buffer import BufferRegion as _BufferRegion
from ..checked import checked
from ..dtype import DType as _DType
from ..expr import Expr
from .values import dtype_of, to_expr

__all__ = [
    "Add", "And", "Broadcast", "BufferLoad", "Call", "Cast", "Div", "EQ", "FloorDiv", "FloorMod", "GE", "GT", "LE",
    "LT", "Let", "Max", "Min", "Mod", "Mul", "NE", "Not", "Or", "Ramp", "Select", "Shuffle", "Sub", "broadcast", "ramp",
]  # fmt: skip


_EXACT = """The node ``{name}`` of two operands, which are converted to one type; nothing is folded.

Raises ``TypeError`` for operands without a common type.

>>> from tir.script import tir as T
>>> T.{name}(7, 2)
T.{name}(7, 2)
"""


def _exact(kind: Any) -> Callable[[Any, Any], Expr]:
    def build(a: Any, b: Any) -> Expr:
        return kind(*_e.matched(num(a), num(b), kind.__name__))

    build.__name__ = build.__qualname__ = kind.__name__
    build.__doc__ = _EXACT.format(name=kind.__name__)
    return build


def num(value: Any) -> Any:
    return to_expr(value) if isinstance(value, _BufferRegion) else value


Add, Sub, Mul, Div, Mod = (_exact(k) for k in (_e.Add, _e.Sub, _e.Mul, _e.Div, _e.Mod))
FloorDiv, FloorMod, Min, Max = (_exact(k) for k in (_e.FloorDiv, _e.FloorMod, _e.Min, _e.Max))
EQ, NE, LT, LE, GT, GE = (_exact(k) for k in (_e.EQ, _e.NE, _e.LT, _e.LE, _e.GT, _e.GE))


def And(a: Any, b: Any) -> Expr:
    """The node of a conjunction: both sides as truth values, nothing folded.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.And(i > 0, i < 8)
    i > 0 and i < 8
    """
    return _e.And(_e.as_bool(to_expr(a)), _e.as_bool(to_expr(b)))


def Or(a: Any, b: Any) -> Expr:
    """The node of a disjunction: both sides as truth values, nothing folded.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.Or(i < 0, i > 8)
    i < 0 or i > 8
    """
    return _e.Or(_e.as_bool(to_expr(a)), _e.as_bool(to_expr(b)))


def Not(a: Any) -> Expr:
    """The node of a negation of a truth value, not folded.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.Not(i < 8)
    not i < 8
    """
    return _e.Not(_e.as_bool(to_expr(a)))


def Cast(dtype: Any, value: Any) -> Expr:
    """The conversion of ``value`` to ``dtype`` as a node, not folded.

    >>> from tir.script import tir as T
    >>> T.Cast("float32", 1)
    T.Cast("float32", 1)
    """
    return _e.Cast(_DType(dtype_of(dtype)), to_expr(value))


def Select(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """``condition ? true_value : false_value``; both sides are evaluated. See ``T.if_then_else``, where one is.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.Select(i < 4, 1.0, 0.0)
    T.Select(i < 4, T.float32(1), T.float32(0))
    """
    a, b = _e.matched(num(true_value), num(false_value), "Select")
    return _e.Select(_e.as_bool(to_expr(condition)), a, b)


@checked
def Ramp(base: Any, stride: Any, lanes: int) -> Expr:
    """The vector of ``lanes`` integers ``base``, ``base + stride``, ``base + 2 * stride`` … in the type of ``base``.

    >>> from tir.script import tir as T
    >>> T.Ramp(0, 2, 4)
    T.Ramp(0, 2, 4)
    >>> T.Ramp(0, 2, 4).dtype
    'int32x4'
    """
    b = to_expr(base)
    return _e.Ramp(b, _e.cast(b.dtype, stride), int(lanes))


@checked
def Broadcast(value: Any, lanes: int) -> Expr:
    """The vector that has ``value`` in each of ``lanes`` lanes.

    >>> from tir.script import tir as T
    >>> T.Broadcast(T.float32(1), 4).dtype
    'float32x4'
    """
    return _e.Broadcast(to_expr(value), int(lanes))


ramp, broadcast = Ramp, Broadcast


@checked
def Shuffle(vectors: Sequence[Any], indices: Sequence[Any]) -> Expr:
    """The vector, or for one index the scalar, of the lanes of ``vectors``, one after the other, at ``indices``.

    >>> from tir.script import tir as T
    >>> T.Shuffle([T.Ramp(0, 1, 4)], [3, 0]).dtype
    'int32x2'
    """
    if not vectors:
        raise ValueError("a shuffle is of one vector at least")
    return _e.Shuffle(tuple(to_expr(v) for v in vectors), tuple(to_expr(i) for i in indices))


@checked
def Let(expr: Any, where: dict[_e.Var, Any]) -> Expr:
    """``expr`` with the variables of ``where`` bound to values. Values of a variable are converted to its type.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.Let(i * i, {i: 3})
    T.Let(i * i, where={i: 3})
    """
    result = to_expr(expr)
    for variable, value in reversed(list(where.items())):
        result = _e.Let(variable, _e.as_expr(num(value), variable.dtype), result)
    return result


@checked
def BufferLoad(buffer: _Buffer, indices: Sequence[Any]) -> Expr:
    """The element of a buffer at ``indices``, as ``buffer[indices]``.

    >>> from tir.script import tir as T
    >>> import tir
    >>> A = tir.decl_buffer((8,), "float32", "A")
    >>> T.BufferLoad(A, [0])
    A[0]
    """
    return buffer[tuple(indices)]


@checked
def Call(dtype: Any, op: str, args: Sequence[Any]) -> Expr:
    """A call of any operator of the table with an explicit result type. Raises ``ValueError`` for an unknown operator.

    >>> from tir.script import tir as T
    >>> x = T.Var("x", "float32")
    >>> T.Call("float32", "exp", [x])
    T.exp(x)
    """
    return _op.call(op, *args, dtype=dtype_of(dtype))
