"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
import builtins
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar, overload

from ..buffer import Buffer as _Buffer
from ..buffer import IterVar, Range as _Range
from ..expr import CommReducer, Expr, StringImm as StringImm
from ..expr import Var as _Var
from ..function import PrimFunc

_T = TypeVar("_T")
PrimExpr = Expr

class Value(Expr):
    """A scalar or a vector of a kernel: a loop variable, a parameter, an element of a buffer, what is computed of them."""
    def __init__(self, value: Any = ..., storage_scope: str = ..., *, is_size_var: builtins.bool = ...) -> None: ...
    def __index__(self) -> int: ...  # range(n) in a kernel is a loop

    def __add__(self, other: Any) -> Value: ...
    def __radd__(self, other: Any) -> Value: ...
    def __sub__(self, other: Any) -> Value: ...
    def __rsub__(self, other: Any) -> Value: ...
    def __mul__(self, other: Any) -> Value: ...
    def __rmul__(self, other: Any) -> Value: ...
    def __truediv__(self, other: Any) -> Value: ...
    def __rtruediv__(self, other: Any) -> Value: ...
    def __floordiv__(self, other: Any) -> Value: ...
    def __rfloordiv__(self, other: Any) -> Value: ...
    def __mod__(self, other: Any) -> Value: ...
    def __rmod__(self, other: Any) -> Value: ...
    def __pow__(self, other: Any) -> Value: ...
    def __rpow__(self, other: Any) -> Value: ...
    def __lshift__(self, other: Any) -> Value: ...
    def __rlshift__(self, other: Any) -> Value: ...
    def __rshift__(self, other: Any) -> Value: ...
    def __rrshift__(self, other: Any) -> Value: ...
    def __and__(self, other: Any) -> Value: ...
    def __rand__(self, other: Any) -> Value: ...
    def __or__(self, other: Any) -> Value: ...
    def __ror__(self, other: Any) -> Value: ...
    def __xor__(self, other: Any) -> Value: ...
    def __rxor__(self, other: Any) -> Value: ...
    def __lt__(self, other: Any) -> Value: ...
    def __le__(self, other: Any) -> Value: ...
    def __gt__(self, other: Any) -> Value: ...
    def __ge__(self, other: Any) -> Value: ...
    def __neg__(self) -> Value: ...
    def __pos__(self) -> Value: ...
    def __invert__(self) -> Value: ...
    def astype(self, dtype: Any) -> Value: ...

_Operand: TypeAlias = Expr | float

class Scoped(Value):
    """What ``with … as x`` names, or what it is assigned to: it holds over what follows."""
    def __enter__(self) -> Value: ...
    def __exit__(self, *error: object) -> None: ...

class let(Scoped, Generic[_T]):
    def __init__(self, var: Expr, value: Any, body: Any = ...) -> None: ...

class Ptr(Value):
    def __class_getitem__(cls, item: Any) -> Any: ...

class axis:
    """Iterators of a block: ``vi = T.axis.spatial(128, i)``, ``vi, vk = T.axis.remap("SR", [i, k])``."""
    @staticmethod
    def spatial(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def reduce(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def scan(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def opaque(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def S(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def R(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def remap(kinds: str, bindings: Sequence[Any], dtype: str = ...) -> Any:
        """One iterator for each loop variable, S spatial or R reduce, over the loop's whole domain."""

def meta_var(value: _T) -> _T:
    """``x = T.meta_var(v)`` binds ``x`` in Python: no let is made."""

def ret(value: Any) -> NoReturn: ...

@overload
def prim_func(func: Any, *, private: builtins.bool = ..., check_well_formed: builtins.bool = ...) -> PrimFunc:
    """Make a function of the dialect a ``PrimFunc``. ``private=True`` leaves out its global symbol."""
@overload
def prim_func(*, private: builtins.bool = ..., check_well_formed: builtins.bool = ..., **options: Any) -> Callable[[Any], PrimFunc]: ...

def macro(func: Callable[..., Any] | None = ..., *, hygienic: builtins.bool = ...) -> Any:
    """Make a function of the dialect a macro: its statements are put where it is called."""

class Buffer(_Buffer):
    """Memory of a kernel: a parameter, an allocation or a view."""
    def __init__(self: Any, shape: Any, dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., scope: str = ..., align: Any = ..., offset_factor: Any = ..., buffer_type: str = ..., axis_separators: Any = ...) -> None: ...
    def __class_getitem__(cls, item: Any) -> Any: ...
    def __getitem__(self, indices: Any) -> Any: ...
    def __setitem__(self, indices: Any, value: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
buffer = Buffer

@overload
def grid(e0: Any, /) -> Iterable[Any]: ...
@overload
def grid(e0: Any, e1: Any, /) -> Iterable[tuple[Any, Any]]: ...
@overload
def grid(e0: Any, e1: Any, e2: Any, /) -> Iterable[tuple[Any, Any, Any]]: ...
@overload
def grid(e0: Any, e1: Any, e2: Any, e3: Any, /) -> Iterable[tuple[Any, Any, Any, Any]]: ...
@overload
def grid(e0: Any, e1: Any, e2: Any, e3: Any, e4: Any, /) -> Iterable[tuple[Any, Any, Any, Any, Any]]: ...
@overload
def grid(e0: Any, e1: Any, e2: Any, e3: Any, e4: Any, e5: Any, /) -> Iterable[tuple[Any, Any, Any, Any, Any, Any]]: ...
@overload
def grid(e0: Any, e1: Any, e2: Any, e3: Any, e4: Any, e5: Any, e6: Any, /) -> Iterable[tuple[Any, Any, Any, Any, Any, Any, Any]]: ...
@overload
def grid(e0: Any, e1: Any, e2: Any, e3: Any, e4: Any, e5: Any, e6: Any, e7: Any, /) -> Iterable[tuple[Any, Any, Any, Any, Any, Any, Any, Any]]: ...
@overload
def grid(*extents: Any) -> Iterable[Any]: ...
bfloat16 = Value
bool = Value
boolean = Value
e4m3_float8 = Value
e5m2_float8 = Value
float16 = Value
float32 = Value
float4_e2m1fn = Value
float64 = Value
float6_e2m3fn = Value
float6_e3m2fn = Value
float8_e3m4 = Value
float8_e4m3 = Value
float8_e4m3b11fnuz = Value
float8_e4m3fn = Value
float8_e4m3fnuz = Value
float8_e5m2 = Value
float8_e5m2fnuz = Value
float8_e8m0fnu = Value
handle = Value
int16 = Value
int2 = Value
int32 = Value
int4 = Value
int64 = Value
int8 = Value
uint16 = Value
uint2 = Value
uint32 = Value
uint4 = Value
uint64 = Value
uint8 = Value
void = Value
bfloat16x2 = Value; bfloat16x3 = Value; bfloat16x4 = Value; bfloat16x8 = Value; bfloat16x16 = Value; bfloat16x32 = Value; bfloat16x64 = Value; bfloat16x128 = Value
float16x2 = Value; float16x3 = Value; float16x4 = Value; float16x8 = Value; float16x16 = Value; float16x32 = Value; float16x64 = Value; float16x128 = Value
float32x2 = Value; float32x3 = Value; float32x4 = Value; float32x8 = Value; float32x16 = Value; float32x32 = Value; float32x64 = Value; float32x128 = Value
float4_e2m1fnx2 = Value; float4_e2m1fnx3 = Value; float4_e2m1fnx4 = Value; float4_e2m1fnx8 = Value; float4_e2m1fnx16 = Value; float4_e2m1fnx32 = Value; float4_e2m1fnx64 = Value; float4_e2m1fnx128 = Value
float64x2 = Value; float64x3 = Value; float64x4 = Value; float64x8 = Value; float64x16 = Value; float64x32 = Value; float64x64 = Value; float64x128 = Value
float6_e2m3fnx2 = Value; float6_e2m3fnx3 = Value; float6_e2m3fnx4 = Value; float6_e2m3fnx8 = Value; float6_e2m3fnx16 = Value; float6_e2m3fnx32 = Value; float6_e2m3fnx64 = Value; float6_e2m3fnx128 = Value
float6_e3m2fnx2 = Value; float6_e3m2fnx3 = Value; float6_e3m2fnx4 = Value; float6_e3m2fnx8 = Value; float6_e3m2fnx16 = Value; float6_e3m2fnx32 = Value; float6_e3m2fnx64 = Value; float6_e3m2fnx128 = Value
float8_e3m4x2 = Value; float8_e3m4x3 = Value; float8_e3m4x4 = Value; float8_e3m4x8 = Value; float8_e3m4x16 = Value; float8_e3m4x32 = Value; float8_e3m4x64 = Value; float8_e3m4x128 = Value
float8_e4m3x2 = Value; float8_e4m3x3 = Value; float8_e4m3x4 = Value; float8_e4m3x8 = Value; float8_e4m3x16 = Value; float8_e4m3x32 = Value; float8_e4m3x64 = Value; float8_e4m3x128 = Value
float8_e4m3b11fnuzx2 = Value; float8_e4m3b11fnuzx3 = Value; float8_e4m3b11fnuzx4 = Value; float8_e4m3b11fnuzx8 = Value; float8_e4m3b11fnuzx16 = Value; float8_e4m3b11fnuzx32 = Value; float8_e4m3b11fnuzx64 = Value; float8_e4m3b11fnuzx128 = Value
float8_e4m3fnx2 = Value; float8_e4m3fnx3 = Value; float8_e4m3fnx4 = Value; float8_e4m3fnx8 = Value; float8_e4m3fnx16 = Value; float8_e4m3fnx32 = Value; float8_e4m3fnx64 = Value; float8_e4m3fnx128 = Value
float8_e4m3fnuzx2 = Value; float8_e4m3fnuzx3 = Value; float8_e4m3fnuzx4 = Value; float8_e4m3fnuzx8 = Value; float8_e4m3fnuzx16 = Value; float8_e4m3fnuzx32 = Value; float8_e4m3fnuzx64 = Value; float8_e4m3fnuzx128 = Value
float8_e5m2x2 = Value; float8_e5m2x3 = Value; float8_e5m2x4 = Value; float8_e5m2x8 = Value; float8_e5m2x16 = Value; float8_e5m2x32 = Value; float8_e5m2x64 = Value; float8_e5m2x128 = Value
float8_e5m2fnuzx2 = Value; float8_e5m2fnuzx3 = Value; float8_e5m2fnuzx4 = Value; float8_e5m2fnuzx8 = Value; float8_e5m2fnuzx16 = Value; float8_e5m2fnuzx32 = Value; float8_e5m2fnuzx64 = Value; float8_e5m2fnuzx128 = Value
float8_e8m0fnux2 = Value; float8_e8m0fnux3 = Value; float8_e8m0fnux4 = Value; float8_e8m0fnux8 = Value; float8_e8m0fnux16 = Value; float8_e8m0fnux32 = Value; float8_e8m0fnux64 = Value; float8_e8m0fnux128 = Value
int16x2 = Value; int16x3 = Value; int16x4 = Value; int16x8 = Value; int16x16 = Value; int16x32 = Value; int16x64 = Value; int16x128 = Value
int2x2 = Value; int2x3 = Value; int2x4 = Value; int2x8 = Value; int2x16 = Value; int2x32 = Value; int2x64 = Value; int2x128 = Value
int32x2 = Value; int32x3 = Value; int32x4 = Value; int32x8 = Value; int32x16 = Value; int32x32 = Value; int32x64 = Value; int32x128 = Value
int4x2 = Value; int4x3 = Value; int4x4 = Value; int4x8 = Value; int4x16 = Value; int4x32 = Value; int4x64 = Value; int4x128 = Value
int64x2 = Value; int64x3 = Value; int64x4 = Value; int64x8 = Value; int64x16 = Value; int64x32 = Value; int64x64 = Value; int64x128 = Value
int8x2 = Value; int8x3 = Value; int8x4 = Value; int8x8 = Value; int8x16 = Value; int8x32 = Value; int8x64 = Value; int8x128 = Value
uint16x2 = Value; uint16x3 = Value; uint16x4 = Value; uint16x8 = Value; uint16x16 = Value; uint16x32 = Value; uint16x64 = Value; uint16x128 = Value
uint2x2 = Value; uint2x3 = Value; uint2x4 = Value; uint2x8 = Value; uint2x16 = Value; uint2x32 = Value; uint2x64 = Value; uint2x128 = Value
uint32x2 = Value; uint32x3 = Value; uint32x4 = Value; uint32x8 = Value; uint32x16 = Value; uint32x32 = Value; uint32x64 = Value; uint32x128 = Value
uint4x2 = Value; uint4x3 = Value; uint4x4 = Value; uint4x8 = Value; uint4x16 = Value; uint4x32 = Value; uint4x64 = Value; uint4x128 = Value
uint64x2 = Value; uint64x3 = Value; uint64x4 = Value; uint64x8 = Value; uint64x16 = Value; uint64x32 = Value; uint64x64 = Value; uint64x128 = Value
uint8x2 = Value; uint8x3 = Value; uint8x4 = Value; uint8x8 = Value; uint8x16 = Value; uint8x32 = Value; uint8x64 = Value; uint8x128 = Value
def Add(a: Any, b: Any) -> Value: ...
def And(a: Any, b: Any) -> Value: ...
def Assert(condition: Any, message: Any) -> AbstractContextManager[None]: ...
def Broadcast(value: Any, lanes: Any) -> Value: ...
def BufferLoad(buffer: Any, indices: Sequence[Any]) -> Value: ...
def Call(dtype: Any, op: str, args: Sequence[Any]) -> Value: ...
def Cast(dtype: Any, value: Any) -> Value: ...
def Div(a: Any, b: Any) -> Value: ...
def EQ(a: Any, b: Any) -> Value: ...
def FloatImm(dtype: str, value: builtins.float) -> Value: ...
def FloorDiv(a: Any, b: Any) -> Value: ...
def FloorMod(a: Any, b: Any) -> Value: ...
def GE(a: Any, b: Any) -> Value: ...
def GT(a: Any, b: Any) -> Value: ...
def IntImm(dtype: str, value: builtins.int) -> Value: ...
def LE(a: Any, b: Any) -> Value: ...
def LT(a: Any, b: Any) -> Value: ...
def Let(expr: Any, where: Any) -> Value: ...
def LetStmt(value: Any, type_annotation: Any = ..., *, var: Any = ...) -> Scoped: ...
def Max(a: Any, b: Any) -> Value: ...
def Min(a: Any, b: Any) -> Value: ...
def Mod(a: Any, b: Any) -> Value: ...
def Mul(a: Any, b: Any) -> Value: ...
def NE(a: Any, b: Any) -> Value: ...
def Not(a: Any) -> Value: ...
def Or(a: Any, b: Any) -> Value: ...
def Ramp(base: Any, stride: Any, lanes: Any) -> Value: ...
def Range(begin: Any, end: Any = ...) -> _Range: ...
def Reduce(combiner: Any, source: Sequence[Any], init: Sequence[Any], axis: Any, condition: Any = ..., value_index: Any = ...) -> Value: ...
def Select(condition: Any, true_value: Any, false_value: Any) -> Value: ...
def Shuffle(vectors: Sequence[Any], indices: Sequence[Any]) -> Value: ...
def SizeVar(name: str, dtype: Any = ...) -> Value: ...
def Sub(a: Any, b: Any) -> Value: ...
def Var(name: str, dtype: Any = ...) -> Value: ...
def abs(x: Any) -> Value: ...
def acos(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The angle in radians, from 0 to pi, whose cosine is ``x``; nan outside of -1 to 1. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def acosh(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The inverse of ``cosh``, from 0 on; nan below 1. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def address_of(place: Any, dtype: Any = ...) -> Value: ...
def all(*conditions: Any) -> Value: ...
def alloc_buffer(shape: Any, dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., scope: str = ..., align: Any = ..., offset_factor: Any = ..., buffer_type: str = ..., axis_separators: Any = ..., annotations: Any = ...) -> Buffer: ...
def alloc_local(shape: Any, dtype: Any = ..., **options: Any) -> Buffer: ...
def alloc_shared(shape: Any, dtype: Any = ..., **options: Any) -> Buffer: ...
def allocate(extents: Any, dtype: Any, scope: str = ..., condition: Any = ..., annotations: Any = ...) -> Scoped: ...
def allocate_const(data: Any, dtype: Any, extents: Any, annotations: Any = ...) -> Scoped: ...
def amx_tile_dot(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Add the product of two tiles of ``"bf16"``, or of bytes whose signs are ``"ss"``, ``"su"``, ``"us"`` or ``"uu"``, to a tile of ``float32`` or ``int32``. Rows of the right tile hold groups of elements that follow one another in the summed axis. Code for CPUs has it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers as ``at``, or no integers as ``left_at``, or no integers as ``right_at``."""
def amx_tile_load(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Load a tile register from memory whose rows are ``stride`` bytes apart. Code for CPUs has it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers as ``number``, or no integers as ``stride``."""
def amx_tile_store(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Store a tile register to memory whose rows are ``stride`` bytes apart. Code for CPUs has it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers as ``number``, or no integers as ``stride``."""
def amx_tile_stream(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """As ``T.amx_tile_load``, of data that is not used again soon. Code for CPUs has it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers as ``number``, or no integers as ``stride``."""
def amx_tile_zero(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Set tile register ``number`` of a buffer of tiles, each of 16 rows of 64 bytes, to zeros. Code for CPUs has it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers as ``number``."""
def any(*conditions: Any) -> Value: ...
def anylist_getitem(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """An element of a list of a virtual machine. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def anylist_resetitem(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Clear an element of a list of a virtual machine. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def anylist_setitem_call_cpacked(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The same, by the function's symbol. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def anylist_setitem_call_packed(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Set an element of a list to what a packed function returns. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def asin(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The angle in radians, from -pi/2 to pi/2, whose sine is ``x``; nan outside of -1 to 1. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def asinh(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The inverse of ``sinh``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def assume(condition: Any) -> Value: ...
def atan(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The angle in radians, from -pi/2 to pi/2, whose tangent is ``x``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def atan2(y: _Operand, x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The angle in radians, from -pi to pi, of the point ``(x, y)``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def atanh(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The inverse of ``tanh``; nan outside of -1 to 1. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def atomic_add(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Add ``value`` to the element at an address in one piece, also where other iterations or threads do; its value is the old one. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def attr(node: Any, attr_key: str | None = ..., value: Any = ...) -> AbstractContextManager[None]: ...
def bind(value: Any, type_annotation: Any = ..., *, var: Any = ...) -> Scoped: ...
def bitwise_and(x: _Operand, y: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The bits that are 1 in both, ``x & y``; operands of two types become the wider one. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers."""
def bitwise_not(x: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Every bit turned over, ``~x``. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers."""
def bitwise_or(x: _Operand, y: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The bits that are 1 in either, ``x | y``; operands of two types become the wider one. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers."""
def bitwise_xor(x: _Operand, y: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The bits that differ, ``x ^ y``; operands of two types become the wider one. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers."""
def block(name: str = ..., no_realize: builtins.bool = ...) -> AbstractContextManager[None]: ...
def block_attr(attrs: dict[str, Any]) -> None: ...
def broadcast(value: Any, lanes: Any) -> Value: ...
def buffer_decl(shape: Any, dtype: Any = ..., **options: Any) -> Buffer: ...
def buffer_store(buffer: Any, value: Any, indices: Any) -> None: ...
def call_cpacked(*args: Any, dtype: Any = ...) -> Value: ...
def call_extern(*args: Any, dtype: Any = ...) -> Value: ...
def call_global(name: str, *args: Any, dtype: Any = ...) -> Value: ...
def call_intrin(dtype: Any, name: str, *args: Any) -> Value: ...
def call_llvm_intrin(*args: Any, dtype: Any = ...) -> Value: ...
def call_llvm_pure_intrin(*args: Any, dtype: Any = ...) -> Value: ...
def call_packed(*args: Any, dtype: Any = ...) -> Value: ...
def call_pure_extern(*args: Any, dtype: Any = ...) -> Value: ...
def call_spirv_pure_glsl450(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """An instruction of SPIR-V's ``GLSL.std.450`` by its number. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def cast(value: Any, dtype: Any = ...) -> Value: ...
def ceil(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The least whole number that is not below ``x``, as a float. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def ceildiv(a: Any, b: Any) -> Value: ...
def clip(x: Any, low: Any, high: Any) -> Value: ...
def clz(x: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The number of zeros before the first 1 in the bits of ``x``: 29 for 7 as ``int32``, 32 for 0. The result is ``int32``, a lane for each of the operand. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers."""
def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> CommReducer: ...
def copysign(x: _Operand, y: _Operand, /, *, dtype: Any = ...) -> Value:
    """The magnitude of ``x`` with the sign of ``y``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def cos(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The cosine of an angle in radians. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def cosh(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The hyperbolic cosine, ``(exp(x) + exp(-x)) / 2``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def create_barriers(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Make ``count`` transaction barriers in shared memory (sm_90), known by their numbers from 0. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def decl_buffer(shape: Any, dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., scope: str = ..., align: Any = ..., offset_factor: Any = ..., buffer_type: str = ..., axis_separators: Any = ...) -> Buffer: ...
def div(a: Any, b: Any, *_span: Any) -> Value: ...
def dma_copy(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Begin a copy by the DMA engine of a Hexagon. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def dma_end_group(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """End a group of copies by the DMA engine of a Hexagon. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def dma_start_group(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Begin a group of copies by the DMA engine of a Hexagon. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def dma_wait(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Wait for copies by the DMA engine of a Hexagon. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def dp4a(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``c`` plus the four products of the bytes of ``a`` and ``b``, vectors of four or words. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no values."""
def end_profile_intrinsic(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Where a profiler ends to measure; nothing here. Code for CPUs has it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def env_thread(thread_tag: str, dtype: Any = ...) -> Value: ...
def erf(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` from 0 to ``x``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def erfc(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """``1 - erf(x)``, exact where ``erf(x)`` is near 1. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def evaluate(value: Any) -> None: ...
def exp(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """``e`` to the power of ``x``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def exp10(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """10 to the power of ``x``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def exp2(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """2 to the power of ``x``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def expm1(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """``exp(x) - 1``, exact near 0 too. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def fabs(x: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The absolute value of a float. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no floats."""
def floor(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The greatest whole number that is not above ``x``, as a float. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def floordiv(a: Any, b: Any, *_span: Any) -> Value: ...
def floormod(a: Any, b: Any, *_span: Any) -> Value: ...
def fma(a: _Operand, b: _Operand, c: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``a * b + c``, rounded once. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no floats."""
def fmod(x: _Operand, y: _Operand, /, *, dtype: Any = ...) -> Value:
    """The remainder of ``x / y`` with the sign of ``x``, as C has it. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def func_attr(attrs: dict[str, Any]) -> None: ...
def func_name(name: str) -> None: ...
def get_active_lane_mask(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Whether ``base``, ``base + 1``, … are below ``limit``, a lane for each. The executor has it, no code is generated for it. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def hypot(x: _Operand, y: _Operand, /, *, dtype: Any = ...) -> Value:
    """``sqrt(x * x + y * y)``, without overflow on the way. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def if_then_else(condition: Any, true_value: Any, false_value: Any, *_span: Any, dtype: Any = ...) -> Value: ...
def index_map(mapping: Callable[..., Any], *, inverse_index_map: Any = ...) -> Any: ...
def indexdiv(a: Any, b: Any, *_span: Any) -> Value: ...
def indexmod(a: Any, b: Any, *_span: Any) -> Value: ...
def infinity(dtype: Any) -> Value: ...
def init() -> AbstractContextManager[None]: ...
def isfinite(x: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Whether a float is neither infinite nor nan; true of integers. The result is ``bool``, a lane for each of the operand. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no values."""
def isinf(x: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Whether a float is infinite; false of integers. The result is ``bool``, a lane for each of the operand. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no values."""
def isnan(x: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Whether a float is no number; false of integers. The result is ``bool``, a lane for each of the operand. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no values."""
def isnullptr(pointer: Any) -> Value: ...
def iter_var(var: Any, dom: Any, iter_type: str, thread_tag: str = ...) -> IterVar: ...
def large_uint_imm(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The constant ``high * 2 ** 32 + low``, of a type that holds it. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no constants as ``low``, or no constants as ``high``."""
def launch_thread(thread: Any, extent: Any) -> Scoped: ...
def ldexp(x: _Operand, n: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``x * 2 ** n``, exact but for overflow and underflow; ``n`` is an integer. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no values as ``x``, or no integers as ``n``."""
def likely(condition: Any, *, dtype: Any = ...) -> Value: ...
def llvm_lookup_intrinsic_id(name: str) -> str: ...
def log(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The natural logarithm; nan below 0. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def log10(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The logarithm to the base of 10. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def log1p(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """``log(1 + x)``, exact near 0 too. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def log2(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The logarithm to the base of 2. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def logaddexp(a: Any, b: Any) -> Value: ...
def lookup_param(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A parameter of a linked model. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def make_filled_simdgroup_matrix(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A matrix of a SIMD group on Apple's GPUs, with one value everywhere. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def match_buffer(param: Any, shape: Any = ..., dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., scope: str = ..., align: Any = ..., offset_factor: Any = ..., buffer_type: str = ..., axis_separators: Any = ...) -> Buffer: ...
def max(a: Any, b: Any, *_span: Any) -> Value: ...
def max_value(dtype: Any) -> Value: ...
def min(a: Any, b: Any, *_span: Any) -> Value: ...
def min_value(dtype: Any) -> Value: ...
def mma_fill(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Set the ``count`` elements that a thread holds of an accumulator to zero. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def mma_fill_legacy(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """An older form of ``T.mma_fill``, with its arguments in another order. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def mma_store(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Store a 16 x 16 accumulator of a warp to a matrix whose rows are ``stride`` elements apart. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def mma_store_legacy(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """An older form of ``T.mma_store``, with its arguments in another order. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def nd_mem_alloc_with_scope(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Memory of several axes in a scope of the runtime. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def nearbyint(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The nearest whole number, halves to the even one, as a float. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def nextafter(x: _Operand, y: _Operand, /, *, dtype: Any = ...) -> Value:
    """The float next to ``x`` on the way to ``y``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def parallel(start: Any, stop: Any = ..., *, annotations: Any = ..., step: Any = ..., private: Any = ...) -> Iterable[Any]: ...
def popcount(x: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The number of bits of ``x`` that are 1: 3 for 7. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers."""
def pow(x: Any, y: Any) -> Value: ...
def power(x: Any, y: Any) -> Value: ...
def prefetch(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A hint that the memory at an address is used soon: 0 to read or 1 to write, how long to keep it (0 to 3), 0 for instructions or 1 for data. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def print(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Print numbers and strings, separated by blanks, and end the line. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def ptr(dtype: Any, storage_scope: str = ...) -> Value: ...
def ptx_arrive_barrier(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Say that this thread has arrived at a barrier. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_arrive_barrier_cluster(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Arrive at the barrier of this number in the block ``rank`` of the cluster. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_arrive_barrier_expect_tx(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Arrive at a barrier that also waits for ``bytes`` bytes of bulk copies. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cluster_arrive(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Say that this thread has arrived at the barrier of the cluster, and release what it wrote. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cluster_wait(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Wait until all threads of the cluster have arrived. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_commit_group(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Make the asynchronous copies since the last such call one group. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cp_async(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Begin to copy 4, 8 or 16 bytes from global to shared memory; zeros where the predicate is false. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cp_async_barrier(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Arrive at a barrier once the asynchronous copies of this thread are done. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cp_async_bulk(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Begin a bulk copy from global to shared memory, whose bytes a barrier counts. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cp_async_bulk_commit_group(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Make the bulk stores of this thread since the last such call one group. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cp_async_bulk_tensor(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Begin to copy the box of ``T.tensor_map`` at ``coordinates`` (an index for each axis) to shared memory, zeros for elements out of bounds; a barrier counts the bytes of the box. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cp_async_bulk_tensor_multicast(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """As ``T.ptx_cp_async_bulk_tensor``, to the same place in every block of the cluster that has a bit in ``mask``; the barrier of each counts the bytes. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cp_async_bulk_tensor_store(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Begin to copy shared memory to the box of ``T.tensor_map`` at ``coordinates``, but for elements out of bounds. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cp_async_bulk_wait_group(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Wait until at most ``count`` of the newest groups of bulk stores of this thread are under way. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_cp_async_bulk_wait_group_read(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Wait until all but the newest ``count`` groups of bulk stores of this thread have read shared memory, which may then change. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_fence_barrier_init(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Make the initial state of the barriers known to the copy engine, and to the cluster. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_fence_proxy_async(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Make what this thread stored to shared memory visible to bulk copies and to ``T.ptx_wgmma``. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_init_barrier_thread_count(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Set how many threads a barrier waits for. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_ldg32(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Load 32 bits through the read-only cache; 0 where the guard is false. CUDA kernels have it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_ldmatrix(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Load 8 x 8 matrices from shared memory into a warp's registers (PTX ``ldmatrix``), with offsets in elements. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_mma(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``c += a @ b`` of a warp's registers (PTX ``mma.sync``), with offsets in elements. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_mma_sp(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """As ``T.ptx_mma``, of a sparse ``a``. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_setmaxnreg(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Give each thread of this warpgroup ``count`` registers: more than it has (``increase`` is 1), or fewer (0), which others may then take. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_wait_barrier(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Wait until the phase of this parity (0, or ``parity``) of a barrier is complete. A barrier begins in phase 0: of the phase before it, of parity 1, the wait is over at once. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_wait_group(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Wait until at most ``count`` of the newest groups of asynchronous copies are still under way. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_wgmma(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Begin ``d += a @ b``, or ``d = a @ b`` where ``accumulate`` is false, by the 128 threads of a warpgroup (PTX ``wgmma.mma_async``). ``d`` is in registers, ``b`` in shared memory, ``a`` in either. A matrix in shared memory has its leading and stride offsets in bytes, a swizzle of 0, 32, 64 or 128 bytes, and is ``transposed`` (1) if k is not its innermost axis. Element r of d in thread t of the warpgroup is in row ``t // 32 * 16 + t % 32 // 4 + r // 2 % 2 * 8`` and column ``r // 4 * 8 + t % 4 * 2 + r % 2``. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_wgmma_commit_group(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Make the products that this warpgroup began since the last such call one group. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_wgmma_fence(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Order what this warpgroup did to registers before the products that it begins after. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def ptx_wgmma_wait_group(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Wait until at most ``count`` of the newest groups of products are under way; only then are the registers of the others known, and the shared memory that they read may change. Kernels for sm_90a have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def q_multiply_shift(x: _Operand, y: _Operand, q: _Operand, s: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``x * y * 2 ** (s - q)`` in 64 bits, rounded, halves up: a fixed-point product. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers."""
def q_multiply_shift_per_axis(x: _Operand, y: _Operand, left: _Operand, right: _Operand, q: _Operand, is_left: _Operand, is_right: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A fixed-point product with the shifts of each channel. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments."""
def ramp(base: Any, stride: Any, lanes: Any) -> Value: ...
def range(start: Any, stop: Any = ..., step: Any = ..., *, annotations: Any = ...) -> Iterable[Any]: ...
def reads(*regions: Any) -> None: ...
def realize(region: Any, scope: str = ..., condition: Any = ...) -> AbstractContextManager[None]: ...
def reduce(combiner: Any, source: Sequence[Any], init: Sequence[Any], axis: Any, condition: Any = ..., value_index: Any = ...) -> Value: ...
def reduce_all(*conditions: Any) -> Value: ...
def reinterpret(*args: Any, dtype: Any = ...) -> Value: ...
def round(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The nearest whole number, halves away from zero, as a float. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def rsqrt(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """``1 / sqrt(x)``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def sblock(name: str = ..., no_realize: builtins.bool = ...) -> AbstractContextManager[None]: ...
def sblock_alloc_buffer(shape: Any, dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., scope: str = ..., align: Any = ..., offset_factor: Any = ..., buffer_type: str = ..., axis_separators: Any = ..., annotations: Any = ...) -> Buffer: ...
def sblock_attr(attrs: dict[str, Any]) -> None: ...
def serial(start: Any, stop: Any = ..., *, annotations: Any = ..., step: Any = ..., unroll: Any = ..., private: Any = ...) -> Iterable[Any]: ...
def shift_left(x: _Operand, y: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``x << y``, with zeros from the right; ``y`` is less than the bits of ``x``. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers."""
def shift_right(x: _Operand, y: _Operand, /, *, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``x >> y``, with copies of the sign from the left; ``y`` is less than the bits of ``x``. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no integers."""
def shift_right_rounding(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``x >> shift``, rounded. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. The result has the type of the first operand, lane by lane for vectors. Raises ``ValueError`` for another number of arguments."""
def sigmoid(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """``1 / (1 + exp(-x))``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def simdgroup_load(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Load a matrix of a SIMD group on Apple's GPUs. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def simdgroup_multiply_accumulate(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``d = a @ b + c`` of matrices of a SIMD group on Apple's GPUs. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def simdgroup_store(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Store a matrix of a SIMD group on Apple's GPUs. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def sin(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The sine of an angle in radians. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def sinh(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The hyperbolic sine, ``(exp(x) - exp(-x)) / 2``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def sqrt(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The square root; nan below 0. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def start_profile_intrinsic(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Where a profiler begins to measure; nothing here. Code for CPUs has it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tan(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The tangent of an angle in radians. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def tanh(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """The hyperbolic tangent, ``sinh(x) / cosh(x)``. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def target(spec: Any, host: Any = ...) -> Any: ...
def tensor_map(pointer: Any, *description: Any, dtype: Any = ..., **of_buffer: Any) -> Value: ...
def texture2d_load(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Load from a texture of OpenCL. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def texture2d_store(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Store to a texture of OpenCL. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def thread_binding(start: Any, stop: Any = ..., thread: str = ..., *, annotations: Any = ..., private: Any = ...) -> Iterable[Any]: ...
def thread_return(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Leave the kernel in this thread, or the function on a CPU. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def trunc(x: _Operand, /, *, dtype: Any = ...) -> Value:
    """``x`` without its fraction, as a float. The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, further operands become that type. Raises ``ValueError`` for another number of arguments."""
def truncdiv(a: Any, b: Any, *_span: Any) -> Value: ...
def truncmod(a: Any, b: Any, *_span: Any) -> Value: ...
def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any, *, dtype: Any = ...) -> Value: ...
def tvm_bmma_sync(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """As ``T.tvm_mma_sync``, of fragments of single bits. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_call_cpacked(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Call a function that ``tir.register_func`` registered, as ``T.call_cpacked``. Code for CPUs has it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_call_cpacked_lowered(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A call of a packed function by its symbol, its arguments on a stack. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_call_packed(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Call a function that ``tir.register_func`` registered, as ``T.call_packed``. Code for CPUs has it. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_call_packed_lowered(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A call of a packed function, its arguments on a stack. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_call_trace_packed(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A call of a packed function that traces a value. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_check_return(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A check of what an external function returned. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def tvm_context_id(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The number of the device that the host works with. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_fill_fragment(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Set every element of wmma fragment ``index``. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_global_barrier_kinit(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Make the barrier of all blocks of a launch ready. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_load_matrix_sync(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Load wmma fragment ``index`` from a matrix whose rows are ``stride`` elements apart, ``"row_major"`` or ``"col_major"``. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_mma_sync(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``d = a @ b + c`` of wmma fragments, by the tensor cores of a warp. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_stack_alloca(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Memory on the stack for ``count`` shapes, arrays or arguments. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. The result is ``handle``. Raises ``ValueError`` for another number of arguments."""
def tvm_stack_make_array(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The description of an array on the stack. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. The result is ``handle``. Raises ``ValueError`` for another number of arguments."""
def tvm_stack_make_shape(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A shape on the stack. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. The result is ``handle``."""
def tvm_storage_sync(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A barrier: the threads of a block (``"shared"``) or of a warp (``"warp"``) wait for each other, and see what the others wrote. CPUs, which have no such threads, do nothing. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_store_matrix_sync(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Store wmma fragment ``index`` to a matrix whose rows are ``stride`` elements apart, ``"row_major"`` or ``"col_major"``. Kernels have it: CUDA, and the simulator. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_struct_get(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """A field of an array's or an argument's description; the last argument, or the first, is its type. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_struct_set(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Set a field of an array's or an argument's description. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_thread_allreduce(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Reduce ``value`` over the threads of the given axes; each gets the total in ``result``. A pass lowers it before code is generated. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_thread_invariant(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """``x``, which the program says is the same in every thread. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no values."""
def tvm_throw_last_error(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Raise the error that the last call left. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def tvm_tuple(*items: Any) -> Value: ...
def tvm_warp_activemask(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The threads of the warp that run here, a bit for each, as ``uint32``. Kernels have it: CUDA, and the simulator. The type of the result follows from the arguments. Raises ``ValueError`` for another number of arguments."""
def tvm_warp_shuffle(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The ``value`` that thread ``lane`` of the warp has. Kernels have it: CUDA, and the simulator. The type of the result follows from the arguments. Raises ``ValueError`` for another number of arguments."""
def tvm_warp_shuffle_down(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The ``value`` of the thread ``delta`` after this one. Kernels have it: CUDA, and the simulator. The type of the result follows from the arguments. Raises ``ValueError`` for another number of arguments."""
def tvm_warp_shuffle_up(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The ``value`` of the thread ``delta`` before this one. Kernels have it: CUDA, and the simulator. The type of the result follows from the arguments. Raises ``ValueError`` for another number of arguments."""
def tvm_warp_shuffle_xor(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The ``value`` of the thread whose number differs from this one's in ``bits``. Kernels have it: CUDA, and the simulator. The type of the result follows from the arguments. Raises ``ValueError`` for another number of arguments."""
def type_annotation(dtype: Any) -> Value: ...
def undef(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Any value at all, for what is never read. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments."""
def unroll(start: Any, stop: Any = ..., *, annotations: Any = ..., step: Any = ..., private: Any = ...) -> Iterable[Any]: ...
def unrolled(start: Any, stop: Any = ..., *, annotations: Any = ..., step: Any = ..., private: Any = ...) -> Iterable[Any]: ...
def var(dtype: Any, name: str = ...) -> Value: ...
def vectorcombine(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The lanes of both vectors, one after the other. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no values."""
def vectorhigh(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The second half of the lanes of a vector. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no vectors."""
def vectorized(start: Any, stop: Any = ..., *, annotations: Any = ..., step: Any = ..., private: Any = ...) -> Iterable[Any]: ...
def vectorload(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Load a vector of a scalable type. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def vectorlow(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """The first half of the lanes of a vector. A value: ``dtype=`` says of which type, without it ``void``. Raises ``ValueError`` for another number of arguments and ``TypeError`` for operands that are no vectors."""
def vectorstore(*args: Any, dtype: Any = ..., annotations: Any = ...) -> Value:
    """Store a vector of a scalable type. It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``. A statement with an effect, or a value: ``dtype=`` says of which type, without it ``void``."""
def where(predicate: Any) -> None: ...
def writes(*regions: Any) -> None: ...
