"""The part of ``T`` that builds expressions at once: arithmetic, reductions."""

from __future__ import annotations

import inspect
import math as _math
from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import IterVar as _IterVar
from ..buffer import Range as _Range
from ..checked import checked
from ..expr import Expr
from .tir_nodes import num
from .tir_types import DataType
from .values import dtype_of, to_expr
from .values import range_of as _range_of

PrimExpr = Expr

__all__ = [
    "PrimExpr", "Range", "Reduce", "abs", "all", "any", "cast", "ceildiv", "clip", "comm_reducer", "div", "floordiv",
    "floormod", "if_then_else", "indexdiv", "indexmod", "iter_var", "likely", "logaddexp", "max", "min", "pow", "power", "reduce",
    "reduce_all", "reinterpret", "truncdiv", "truncmod",
]  # fmt: skip

# ---------------------------------------------------------------- arithmetic


def _binary(fn: Any, name: str) -> Callable[[Any, Any], Expr]:
    def build(a: Any, b: Any, *_span: Any) -> Expr:
        return fn(num(a), num(b))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = fn.__doc__
    return build


min, max = _binary(_e.min_, "min"), _binary(_e.max_, "max")
truncdiv, truncmod = _binary(_e.truncdiv, "truncdiv"), _binary(_e.truncmod, "truncmod")
floordiv, floormod = _binary(_e.floordiv, "floordiv"), _binary(_e.floormod, "floormod")
indexdiv, indexmod = floordiv, floormod
div = _binary(_e.div, "div")


def ceildiv(a: Any, b: Any) -> Expr:
    """``(a + b - 1) // b``: the quotient rounded up, for a positive ``b``.

    >>> from tir.script import tir as T
    >>> T.ceildiv(100, 32)
    4
    """
    x, y = _e.matched(num(a), num(b), "ceildiv")
    return _e.floordiv(x + y - 1, y)


def logaddexp(a: Any, b: Any) -> Expr:
    """``log(exp(a) + exp(b))`` of floats, without overflow on the way. Raises ``TypeError`` for other types.

    >>> from tir.script import tir as T
    >>> x = T.Var("x", "float32")
    >>> T.logaddexp(x, 0.0)
    T.max(x, 0.0) + T.Select(x == 0.0, T.float32(0.6931471805599453), T.log1p(T.exp(T.fabs(x - 0.0) * -1.0)))
    """
    x, y = _e.matched(num(a), num(b), "logaddexp")
    if not x.dtype.is_float:
        raise TypeError(f"T.logaddexp takes floats, not {x.dtype}")
    apart = _op.call("log1p", _op.call("exp", -_op.call("fabs", x - y)))
    return _e.max_(x, y) + _e.Select(_e.compare(_e.EQ, x, y), _e.const(_math.log(2.0), x.dtype), apart)


def cast(value: Any, dtype: Any = None) -> Expr:
    """``value`` as ``dtype``, in either order of the two; constants are converted now.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.cast(i, "float32"), T.cast(3, "float32")
    (T.Cast("float32", i), T.float32(3))
    """
    if isinstance(value, (str, DataType)):
        value, dtype = dtype, value
    return _e.cast(dtype_of(dtype), to_expr(value))


def reinterpret(*args: Any, dtype: Any = None) -> Expr:
    """The bits of a value as another type of the same size: ``T.reinterpret("float32", x)``.

    >>> from tir.script import tir as T
    >>> x = T.Var("x", "float32")
    >>> T.reinterpret("int32", x)
    T.reinterpret("int32", x)
    """
    items = list(args)
    if len(items) != 1 + (dtype is None):
        raise TypeError('T.reinterpret takes a data type and a value: T.reinterpret("float32", x)')
    if dtype is None:
        dtype = items.pop(0 if isinstance(items[0], (str, DataType)) else 1)
    (value,) = items
    return _op.call("reinterpret", to_expr(value), dtype=dtype_of(dtype))


def if_then_else(condition: Any, true_value: Any, false_value: Any, *_span: Any, dtype: Any = None) -> Expr:
    """``condition ? true_value : false_value``; only the side taken is evaluated. The two sides are converted to one type.
    Raises ``TypeError`` where ``dtype`` is not that type.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.if_then_else(i < 4, 1.0, 0.0)
    T.if_then_else(i < 4, T.float32(1), T.float32(0))
    """
    a, b = num(true_value), num(false_value)
    if dtype is not None:
        a, b = _e.as_expr(a, dtype_of(dtype)), _e.as_expr(b, dtype_of(dtype))
    a, b = _e.matched(a, b, "if_then_else")
    if dtype is not None and a.dtype != dtype_of(dtype):
        raise TypeError(f"T.if_then_else is said to be {dtype_of(dtype)}, but its values are {a.dtype}")
    return _op.call("if_then_else", _e.as_bool(to_expr(condition)), a, b, dtype=a.dtype)


def likely(condition: Any, *, dtype: Any = "bool") -> Expr:
    """``condition``, which the program says mostly holds: a hint for branches.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.likely(i < 8)
    T.likely(i < 8)
    """
    return _op.call("likely", to_expr(condition))


def abs(x: Any) -> Expr:
    """The absolute value of a float or a signed integer, in its type.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.abs(i)
    T.abs(i)
    """
    e = to_expr(x)
    return _op.call("fabs" if e.dtype.is_float else "abs", e)


def clip(x: Any, low: Any, high: Any) -> Expr:
    """``x``, or the nearer bound where it is outside ``low`` to ``high``.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.clip(i, 0, 7)
    T.max(T.min(i, 7), 0)
    """
    return max(min(x, high), low)


def pow(x: Any, y: Any) -> Expr:
    """``x`` to the power of ``y`` in floating point, in the type of ``x`` (``float32`` for integers).

    >>> from tir.script import tir as T
    >>> from tir import simplify
    >>> simplify(T.pow(2.0, 3.0))
    T.float32(8)
    """
    return _op.math_call("pow", num(x), to_expr(y))


power = pow


def reduce_all(*conditions: Any) -> Expr:
    """The conjunction of conditions; true where there is none.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.all(i > 0, i < 8)
    i > 0 and i < 8
    """
    return _e.all_of(conditions)


all = reduce_all


def any(*conditions: Any) -> Expr:
    """The disjunction of conditions; false where there is none.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.any(i < 0, i > 8)
    i < 0 or i > 8
    """
    result: Expr = _e.FALSE
    for condition in conditions:
        result = _e.logical_or(result, condition)
    return result


# ---------------------------------------------------------------- reductions


@checked
def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> _e.CommReducer:
    """A commutative reducer of left and right values. Raises ``ValueError`` where the combiner does not take two values for
    each identity element.

    >>> from tir.script import tir as T
    >>> T.comm_reducer(lambda a, b: a + b, [T.float32(0)])
    T.comm_reducer(lambda a, b: a + b, [T.float32(0)])
    """
    names = list(inspect.signature(combiner).parameters)
    zero = tuple(to_expr(i) for i in (identity if isinstance(identity, (list, tuple)) else [identity]))
    if len(names) != 2 * len(zero):
        raise ValueError(f"the combiner takes {len(names)} values; {len(zero)} identity elements need {2 * len(zero)}")
    params = [_e.Var(name, zero[i % len(zero)].dtype) for i, name in enumerate(names)]
    out = combiner(*params)
    results = out if isinstance(out, (list, tuple)) else (out,)
    half = len(zero)
    return _e.CommReducer(
        tuple(params[:half]), tuple(params[half:]), tuple(_e.as_expr(r, z.dtype) for r, z in zip(results, zero)), zero
    )


@checked
def Reduce(
    combiner: _e.CommReducer,
    source: Sequence[Any],
    init: Sequence[Any],
    axis: Sequence[_IterVar],
    condition: Any = True,
    value_index: int = 0,
) -> Expr:
    """A reduction as an expression, as tensor expressions have it: ``combiner`` over ``source`` along ``axis`` where
    ``condition`` holds; of several results that at ``value_index``. Kernels write loops and ``T.init`` instead.

    >>> from tir.script import tir as T
    >>> total = T.comm_reducer(lambda a, b: a + b, [T.float32(0)])
    >>> k = T.iter_var("k", (0, 8), "CommReduce")
    >>> T.Reduce(total, [T.Cast("float32", k.var)], [], [k]).dtype
    'float32'
    """
    if not 0 <= value_index < len(source):
        raise ValueError(f"a reduction of {len(source)} sources has no result {value_index}")
    return _e.Reduce(
        combiner,
        tuple(to_expr(s) for s in source),
        tuple(to_expr(i) for i in init),
        tuple(axis),
        _e.as_bool(to_expr(condition)),
        int(value_index),
    )


reduce = Reduce
_ITER_TYPES = {
    "DataPar": "spatial", "CommReduce": "reduce", "Ordered": "scan", "DimInfo": "opaque", "Opaque": "opaque",
    "ThreadIndex": "thread",
}  # fmt: skip


def Range(begin: Any, end: Any = None) -> _Range:
    """The integers from ``begin`` up to ``end``; one argument is the end.

    >>> from tir.script import tir as T
    >>> T.Range(0, 16)
    T.Range(0, 16)
    """
    return _range_of(0, begin) if end is None else _range_of(begin, end)


@checked
def iter_var(var: _e.Var | str, dom: Any, iter_type: str, thread_tag: str = "") -> _IterVar:
    """An iterator with all its parts: variable, domain (a range, ``(begin, end)`` or None), kind, thread axis.

    >>> from tir.script import tir as T
    >>> T.iter_var("k", (0, 8), "CommReduce").dom
    T.Range(0, 8)
    """
    if isinstance(var, str):
        var = _e.Var(var, _e.INT32)
    if isinstance(dom, (tuple, list)):
        if len(dom) != 2:
            raise ValueError(f"the domain of an iterator is a range, (begin, end) or None, not {dom!r}")
        dom = Range(*dom)
    return _IterVar(dom, var, _ITER_TYPES.get(iter_type, iter_type), thread_tag)
