"""The part of ``T`` that makes data types, constants and variables."""

from __future__ import annotations

import builtins
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..dtype import HANDLE as _HANDLE
from ..dtype import DType as _DType
from ..expr import Expr
from .values import dtype_of, to_expr

__all__ = [
    "DataType", "FloatImm", "IntImm", "Ptr", "SizeVar", "StringImm", "Var", "bfloat16", "bool", "boolean",
    "e4m3_float8", "e5m2_float8", "float16", "float32", "float64", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn",
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "handle", "infinity", "int16", "int32", "int2", "int4", "int64", "int8",
    "max_value", "min_value", "ptr", "uint16", "uint32", "uint2", "uint4", "uint64", "uint8", "var", "void",
]  # fmt: skip


class DataType:
    """A data type of the dialect: ``T.int32`` as an annotation, ``T.int32()`` a variable, ``T.int32(3)`` a constant,
    ``T.int32(e)`` a cast.

    >>> from tir.script import tir as T
    >>> T.float32("-inf")
    T.float32("-inf")
    """

    def __init__(self, dtype: str):
        self.dtype = _DType(dtype)
        self.__doc__ = _about(self.dtype)

    def __call__(self, value: Any = None, *, is_size_var: builtins.bool = False) -> Expr:
        if value is None:
            return _e.Var("", self.dtype)
        if isinstance(value, str):
            try:
                value = float(value) if self.dtype.is_float else int(value)
            except ValueError:
                raise ValueError(f"{value!r} is no number of {self.dtype}") from None
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


_DATA_TYPE = """{what}: ``T.{name}`` as an annotation, ``T.{name}()`` a variable, ``T.{name}(e)`` a constant or a cast.

>>> from tir.script import tir as T
>>> T.{name}({given}).dtype
'{name}'
"""


def _about(dtype: _DType) -> str:
    """The docstring of a data type of the dialect."""
    if dtype.is_int:
        what = f"Integers of {dtype.bits} bits, from {dtype.min_value} to {dtype.max_value}"
    elif dtype.is_float:
        what = f"Floats of {dtype.bits} bits, the greatest {dtype.max_value:g}"
    else:
        what = "Truth values" if dtype.is_bool else "No value, as the type of a call"
    lanes = f", {dtype.lanes} lanes of them" if dtype.lanes > 1 else ""
    return _DATA_TYPE.format(what=what + lanes, name=dtype, given="" if dtype == "void" else "1")


class _Handle(DataType):
    """A pointer: ``T.handle`` as an annotation is untyped memory; ``T.handle("float32", "shared")`` makes a variable that
    points to such elements in a scope, ``T.handle()`` an untyped one.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def clear(a: T.handle):
    ...     A = T.match_buffer(a, (8,), "float32")
    ...     A[0] = 0.0
    >>> T.handle("float32", "shared").dtype
    'handle'
    """

    def __init__(self) -> None:
        super().__init__("handle")
        self.__doc__ = type(self).__doc__

    def __call__(self, dtype: Any = None, storage_scope: str = "global", **_: Any) -> Expr:  # type: ignore[override]
        if isinstance(dtype, Expr):
            return _op.call("reinterpret", dtype, dtype="handle")
        if dtype is None:
            return _e.Var("", _HANDLE)
        return _e.Var("", _HANDLE, _DType(dtype_of(dtype)), storage_scope)


bool = boolean = DataType("bool")
int2, int4, int8, int16, int32, int64 = (DataType(f"int{bits}") for bits in (2, 4, 8, 16, 32, 64))
uint2, uint4, uint8, uint16, uint32, uint64 = (DataType(f"uint{bits}") for bits in (2, 4, 8, 16, 32, 64))
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
    """A new variable of a data type; it takes the name of what it is assigned to.

    >>> from tir.script import tir as T
    >>> T.var("int32", "n") + 1
    n + 1
    """
    return _e.Var(name, _DType(dtype_of(dtype)))


def Var(name: str, dtype: Any = "int32") -> _e.Var:
    """A new variable of a data type. ``T.SizeVar`` is the same, for sizes.

    >>> from tir.script import tir as T
    >>> T.Var("n", "int64").dtype
    'int64'
    """
    return _e.Var(name, _DType(dtype_of(dtype)))


SizeVar = Var


def ptr(dtype: Any, storage_scope: str = "global") -> _e.Var:
    """A pointer to elements of ``dtype`` in a storage scope, as a variable.

    >>> from tir.script import tir as T
    >>> T.ptr("float32", "shared").dtype
    'handle'
    """
    return _e.Var("", _HANDLE, _DType(dtype_of(dtype)), storage_scope)


class Ptr:
    """A typed pointer as an annotation: ``T.Ptr[T.float32]`` or ``T.Ptr(T.float32, "shared")``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def clear(p: T.Ptr[T.float32]):
    ...     A = T.decl_buffer((8,), "float32", data=p)
    ...     A[0] = 0.0
    >>> clear.params[0].dtype
    'handle'
    """

    def __class_getitem__(cls, item: Any) -> _e.Var:
        return ptr(*item) if isinstance(item, tuple) else ptr(item)

    def __new__(cls, dtype: Any, storage_scope: str = "global") -> Any:
        return ptr(dtype, storage_scope)


def infinity(dtype: Any) -> Expr:
    """Infinity, as a constant of a float type.

    >>> from tir.script import tir as T
    >>> T.infinity("float32")
    T.float32("inf")
    """
    return _e.const(builtins.float("inf"), dtype_of(dtype))


def min_value(dtype: Any) -> Expr:
    """The least finite value of a data type, as a constant.

    >>> from tir.script import tir as T
    >>> T.min_value("int8")
    T.int8(-128)
    """
    kind = _DType(dtype_of(dtype))
    return _e.const(kind.min_value, kind)


def max_value(dtype: Any) -> Expr:
    """The greatest finite value of a data type, as a constant.

    >>> from tir.script import tir as T
    >>> T.max_value("int8")
    T.int8(127)
    """
    kind = _DType(dtype_of(dtype))
    return _e.const(kind.max_value, kind)


def IntImm(dtype: str, value: builtins.int) -> _e.IntImm:
    """The constant ``value`` of an integer type.

    >>> from tir.script import tir as T
    >>> T.IntImm("int64", 3)
    T.int64(3)
    """
    return _e.IntImm(value, _DType(dtype))


def FloatImm(dtype: str, value: builtins.float) -> _e.FloatImm:
    """The constant ``value`` of a float type.

    >>> from tir.script import tir as T
    >>> T.FloatImm("float16", 0.5)
    T.float16(0.5)
    """
    return _e.FloatImm(value, _DType(dtype))


StringImm = _e.StringImm
