"""The part of ``T`` that builds expressions at once: types, constants, arithmetic, reductions."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import Buffer as _Buffer
from ..buffer import BufferRegion as _BufferRegion
from ..buffer import IterVar as _IterVar
from ..buffer import Range as _Range
from ..dtype import HANDLE as _HANDLE
from ..dtype import DType as _DType
from ..expr import Expr
from .values import dtype_of, to_expr
from .values import range_of as _range_of

PrimExpr = Expr

__all__ = [
    "Add",
    "And",
    "Broadcast",
    "BufferLoad",
    "Call",
    "Cast",
    "DataType",
    "Div",
    "EQ",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "GE",
    "GT",
    "IntImm",
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
    "PrimExpr",
    "Ptr",
    "Ramp",
    "Range",
    "Reduce",
    "Select",
    "Shuffle",
    "SizeVar",
    "StringImm",
    "Sub",
    "Var",
    "abs",
    "all",
    "any",
    "bfloat16",
    "bool",
    "boolean",
    "broadcast",
    "cast",
    "ceildiv",
    "clip",
    "comm_reducer",
    "div",
    "e4m3_float8",
    "e5m2_float8",
    "float16",
    "float32",
    "float64",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "floordiv",
    "floormod",
    "handle",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "int16",
    "int32",
    "int4",
    "int64",
    "int8",
    "iter_var",
    "likely",
    "max",
    "max_value",
    "min",
    "min_value",
    "pow",
    "power",
    "ptr",
    "ramp",
    "reduce",
    "reduce_all",
    "reinterpret",
    "truncdiv",
    "truncmod",
    "uint16",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
    "var",
    "void",
]

# ---------------------------------------------------------------- types and constants


class DataType:
    """A data type of the dialect: ``T.int32`` as an annotation, ``T.int32()`` a variable, ``T.int32(3)`` a constant,
    ``T.int32(e)`` a cast.

    >>> from tir.script import tir as T
    >>> T.float32("-inf")
    T.float32("-inf")
    """

    def __init__(self, dtype: str):
        self.dtype = _DType(dtype)

    def __call__(self, value: Any = None, *, is_size_var: builtins.bool = False) -> Expr:
        if value is None:
            return _e.Var("", self.dtype)
        if isinstance(value, str):
            value = float(value) if self.dtype.is_float else int(value)
        exact = int if self.dtype.is_int else (int, float)
        if isinstance(value, exact) and self.dtype.lanes == 1:  # also what fits no other type: uint64, float64
            return _e.const(value, self.dtype)
        value = to_expr(value)
        if isinstance(value, (_e.IntImm, _e.FloatImm)) and self.dtype.lanes == 1:
            known = value.value
            if isinstance(known, builtins.float) and self.dtype.is_int:
                return _e.cast(self.dtype, value)
            return _e.const(known, self.dtype)
        return _e.cast(self.dtype, value)

    def __repr__(self) -> str:
        return f"T.{self.dtype}"


class _Handle(DataType):
    """``T.handle`` as an annotation; ``T.handle("float32", "shared")`` a pointer; ``T.handle()`` an untyped one."""

    def __init__(self) -> None:
        super().__init__("handle")

    def __call__(self, dtype: Any = None, storage_scope: str = "global", **_: Any) -> Expr:  # type: ignore[override]
        if isinstance(dtype, Expr):
            return _op.call("reinterpret", dtype, dtype="handle")
        if dtype is None:
            return _e.Var("", _HANDLE)
        return _e.Var("", _HANDLE, _DType(dtype_of(dtype)), storage_scope)


bool = boolean = DataType("bool")
int4, int8, int16, int32, int64 = (DataType(f"int{bits}") for bits in (4, 8, 16, 32, 64))
uint4, uint8, uint16, uint32, uint64 = (DataType(f"uint{bits}") for bits in (4, 8, 16, 32, 64))
float16, float32, float64 = (DataType(f"float{bits}") for bits in (16, 32, 64))
bfloat16 = DataType("bfloat16")
float4_e2m1fn = DataType("float4_e2m1fn")
float6_e2m3fn = DataType("float6_e2m3fn")
float6_e3m2fn = DataType("float6_e3m2fn")
float8_e3m4 = DataType("float8_e3m4")
float8_e4m3 = DataType("float8_e4m3")
float8_e4m3b11fnuz = DataType("float8_e4m3b11fnuz")
float8_e4m3fn = DataType("float8_e4m3fn")
float8_e4m3fnuz = DataType("float8_e4m3fnuz")
float8_e5m2 = DataType("float8_e5m2")
float8_e5m2fnuz = DataType("float8_e5m2fnuz")
float8_e8m0fnu = DataType("float8_e8m0fnu")
e4m3_float8, e5m2_float8 = float8_e4m3fn, float8_e5m2
void = DataType("void")
handle = _Handle()


def var(dtype: Any, name: str = "") -> _e.Var:
    """A new variable; it takes the name of what it is assigned to."""
    return _e.Var(name, _DType(dtype_of(dtype)))


def Var(name: str, dtype: Any = "int32") -> _e.Var:
    return _e.Var(name, _DType(dtype_of(dtype)))


SizeVar = Var


def ptr(dtype: Any, storage_scope: str = "global") -> _e.Var:
    """A pointer to ``dtype`` in a storage scope."""
    return _e.Var("", _HANDLE, _DType(dtype_of(dtype)), storage_scope)


class Ptr:
    """``T.Ptr[T.float32]`` or ``T.Ptr(T.float32, "shared")``: a typed pointer, as an annotation."""

    def __class_getitem__(cls, item: Any) -> _e.Var:
        return ptr(*item) if isinstance(item, tuple) else ptr(item)

    def __new__(cls, dtype: Any, storage_scope: str = "global") -> Any:
        return ptr(dtype, storage_scope)


def infinity(dtype: Any) -> Expr:
    return _e.const(builtins.float("inf"), dtype_of(dtype))


def min_value(dtype: Any) -> Expr:
    """The least finite value of a data type."""
    kind = _DType(dtype_of(dtype))
    return _e.const(kind.min_value, kind)


def max_value(dtype: Any) -> Expr:
    """The greatest finite value of a data type."""
    kind = _DType(dtype_of(dtype))
    return _e.const(kind.max_value, kind)


def IntImm(dtype: str, value: builtins.int) -> _e.IntImm:
    return _e.IntImm(value, _DType(dtype))


def FloatImm(dtype: str, value: builtins.float) -> _e.FloatImm:
    return _e.FloatImm(value, _DType(dtype))


StringImm = _e.StringImm

# ---------------------------------------------------------------- exact nodes: operands matched, nothing folded


def _exact(kind: Any) -> Callable[[Any, Any], Expr]:
    def build(a: Any, b: Any) -> Expr:
        return kind(*_e.matched(_num(a), _num(b), kind.__name__))

    build.__name__ = build.__qualname__ = kind.__name__
    build.__doc__ = f"The node ``{kind.__name__}``, operands in one dtype, not folded."
    return build


def _num(value: Any) -> Any:
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
    a, b = _e.matched(_num(true_value), _num(false_value), "Select")
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
        result = _e.Let(variable, _e.as_expr(_num(value), variable.dtype), result)
    return result


def BufferLoad(buffer: _Buffer, indices: Sequence[Any]) -> Expr:
    return buffer[tuple(indices)]


def Call(dtype: Any, op: str, args: Sequence[Any]) -> Expr:
    """A call of any operator with an explicit result type."""
    return _op.call(op, *args, dtype=dtype_of(dtype))


# ---------------------------------------------------------------- arithmetic


def _binary(fn: Any, name: str) -> Callable[[Any, Any], Expr]:
    def build(a: Any, b: Any, *_span: Any) -> Expr:
        return fn(_num(a), _num(b))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = fn.__doc__
    return build


min, max = _binary(_e.min_, "min"), _binary(_e.max_, "max")
truncdiv, truncmod = _binary(_e.truncdiv, "truncdiv"), _binary(_e.truncmod, "truncmod")
floordiv, floormod = _binary(_e.floordiv, "floordiv"), _binary(_e.floormod, "floormod")
indexdiv, indexmod = floordiv, floormod
div = _binary(_e.div, "div")


def ceildiv(a: Any, b: Any) -> Expr:
    """(a + b - 1) // b"""
    x, y = _e.matched(_num(a), _num(b), "ceildiv")
    return _e.floordiv(x + y - 1, y)


def cast(value: Any, dtype: Any = None) -> Expr:
    """``value`` as ``dtype``; constants are converted now."""
    if isinstance(value, (str, DataType)):
        value, dtype = dtype, value
    return _e.cast(dtype_of(dtype), to_expr(value))


def reinterpret(*args: Any, dtype: Any = None) -> Expr:
    """The bits of a value as another type: ``T.reinterpret("float32", x)``."""
    items = list(args)
    if dtype is None:
        dtype = items.pop(0 if isinstance(items[0], (str, DataType)) else 1)
    (value,) = items
    return _op.call("reinterpret", to_expr(value), dtype=dtype_of(dtype))


def if_then_else(condition: Any, true_value: Any, false_value: Any, *_span: Any, dtype: Any = None) -> Expr:
    """``condition ? true_value : false_value``; only the side taken is evaluated."""
    a, b = _num(true_value), _num(false_value)
    if dtype is not None:
        a, b = _e.as_expr(a, dtype_of(dtype)), _e.as_expr(b, dtype_of(dtype))
    a, b = _e.matched(a, b, "if_then_else")
    if dtype is not None and a.dtype != dtype_of(dtype):
        raise TypeError(f"T.if_then_else is said to be {dtype_of(dtype)}, but its values are {a.dtype}")
    return _op.call("if_then_else", _e.as_bool(to_expr(condition)), a, b, dtype=a.dtype)


def likely(condition: Any, *, dtype: Any = "bool") -> Expr:
    return _op.call("likely", to_expr(condition))


def abs(x: Any) -> Expr:
    """Absolute value of a float or a signed integer."""
    e = to_expr(x)
    return _op.call("fabs" if e.dtype.is_float else "abs", e)


def clip(x: Any, low: Any, high: Any) -> Expr:
    """``x``, or the nearer bound where it is outside ``low`` to ``high``."""
    return max(min(x, high), low)


def pow(x: Any, y: Any) -> Expr:
    return _op.math_call("pow", _num(x), to_expr(y))


power = pow


def reduce_all(*conditions: Any) -> Expr:
    return _e.all_of(conditions)


all = reduce_all


def any(*conditions: Any) -> Expr:
    """The disjunction of conditions."""
    result: Expr = _e.FALSE
    for condition in conditions:
        result = _e.logical_or(result, condition)
    return result


# ---------------------------------------------------------------- reductions


def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> _e.CommReducer:
    """A commutative reducer of left and right values: ``T.comm_reducer(lambda x, y: x + y, [T.float32(0)])``."""
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


def Reduce(
    combiner: _e.CommReducer,
    source: Sequence[Any],
    init: Sequence[Any],
    axis: Sequence[_IterVar],
    condition: Any = True,
    value_index: int = 0,
) -> Expr:
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
    """The integers from ``begin`` up to ``end``; one argument is the end."""
    return _range_of(0, begin) if end is None else _range_of(begin, end)


def iter_var(var: _e.Var | str, dom: Any, iter_type: str, thread_tag: str = "") -> _IterVar:
    """An iterator with all its parts: variable, domain (a range, ``(begin, end)`` or None), kind, thread axis."""
    if isinstance(var, str):
        var = _e.Var(var, _e.INT32)
    if isinstance(dom, (tuple, list)):
        dom = Range(*dom)
    return _IterVar(dom, var, _ITER_TYPES.get(iter_type, iter_type), thread_tag)
