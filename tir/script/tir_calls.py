"""The part of ``T`` that builds calls at once: of functions by name, of intrinsics, of what takes a pointer."""

from __future__ import annotations

from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import Buffer as _Buffer
from ..checked import checked
from ..expr import Expr
from . import frames as _f
from .buffer_methods import compact_strides
from .tir_types import DataType
from .values import as_buffer_load, dtype_of, to_expr

__all__ = [
    "address_of", "assume", "call_cpacked", "call_extern", "call_global", "call_intrin", "call_llvm_intrin",
    "call_llvm_pure_intrin", "call_packed", "call_pure_extern", "evaluate", "isnullptr", "llvm_lookup_intrinsic_id",
    "ret", "tensor_map", "tvm_access_ptr", "tvm_tuple", "type_annotation",
]  # fmt: skip


def _named_call(op: str, args: tuple[Any, ...], dtype: Any) -> Expr:
    """A call whose operator takes a name first: ``f("int32", "name", x)`` or ``f("name", x, dtype="int32")``."""
    if dtype is None:
        if not args or not isinstance(args[0], (str, DataType)):
            raise TypeError(f'T.{op} takes the result type first: T.{op}("int32", "name", ...)')
        dtype, args = args[0], args[1:]
    return _op.call(op, *(as_buffer_load(a) for a in args), dtype=dtype_of(dtype))


def call_extern(*args: Any, dtype: Any = None) -> Expr:
    """Call a C function by name; its result type comes first, or as ``dtype=``. CUDA code calls CUDA's function.
    Raises ``TypeError`` where the type is missing.

    >>> from tir.script import tir as T
    >>> x = T.Var("x", "float32")
    >>> T.call_extern("float32", "sinf", x)
    T.call_extern("float32", "sinf", x)
    """
    return _named_call("call_extern", args, dtype)


def call_pure_extern(*args: Any, dtype: Any = None) -> Expr:
    """As ``T.call_extern``, of a function without effects: a call may be moved, or made once for several.

    >>> from tir.script import tir as T
    >>> x = T.Var("x", "float32")
    >>> T.call_pure_extern("float32", "sinf", x)
    T.call_pure_extern("float32", "sinf", x)
    """
    return _named_call("call_pure_extern", args, dtype)


def call_llvm_intrin(*args: Any, dtype: Any = None) -> Expr:
    """Call an LLVM intrinsic by its full name, result type first. Code for CPUs has it.

    >>> from tir.script import tir as T
    >>> x = T.Var("x", "float32")
    >>> T.call_llvm_intrin("float32", "llvm.fma.f32", x, x, x)
    T.call_llvm_intrin("float32", "llvm.fma.f32", x, x, x)
    """
    return _named_call("call_llvm_intrin", _without_signature(args), dtype)


class _Numbered(str):
    """The name of an intrinsic in a program written for systems that number them."""


def llvm_lookup_intrinsic_id(name: str) -> str:
    """The intrinsic itself: intrinsics are known by name here. For programs written for systems that number them; the
    ``T.uint32(n)`` that follows there, the number of arguments that choose an overload, is not needed.

    >>> from tir.script import tir as T
    >>> T.llvm_lookup_intrinsic_id("llvm.sqrt.f32")
    'llvm.sqrt.f32'
    """
    return _Numbered(name)


def _without_signature(args: tuple[Any, ...]) -> tuple[Any, ...]:
    for n, arg in enumerate(args[:-1]):
        follows = args[n + 1]
        if isinstance(arg, _Numbered) and isinstance(follows, _e.IntImm) and follows.dtype == "uint32":
            return (*args[: n + 1], *args[n + 2 :])
    return args


def call_llvm_pure_intrin(*args: Any, dtype: Any = None) -> Expr:
    """As ``T.call_llvm_intrin``, of an intrinsic without effects.

    >>> from tir.script import tir as T
    >>> x = T.Var("x", "float32")
    >>> T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", x)
    T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", x)
    """
    return _named_call("call_llvm_pure_intrin", _without_signature(args), dtype)


@checked
def call_intrin(dtype: Any, name: str, *args: Any) -> Expr:
    """Call an operator of the table by name (``"tir.exp"`` and ``"exp"`` are the same). Raises ``ValueError`` for an
    unknown one.

    >>> from tir.script import tir as T
    >>> x = T.Var("x", "float32")
    >>> T.call_intrin("float32", "exp", x)
    T.exp(x)
    """
    name = name.removeprefix("tir.").removeprefix("tirx.")
    return _op.call(name, *(as_buffer_load(a) for a in args), dtype=dtype_of(dtype))


def call_packed(*args: Any, dtype: Any = "int32") -> Expr:
    """Call a function that ``tir.register_func`` registered; a buffer among its arguments is passed as an array.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.call_packed("log", i)
    T.call_packed("log", i)
    """
    return _op.call("call_packed", *map(_packed_array, args), dtype=dtype_of(dtype))


def _packed_array(value: Any) -> Any:
    """A buffer as the call that describes it as an array; anything else as it is."""
    if not isinstance(value, _Buffer):
        return value
    shape = _op.call("tvm_stack_make_shape", *value.shape)
    strides = _op.call("tvm_stack_make_shape", *value.strides) if value.strides else _e.const(0)
    offset = _e.const(0) if value.elem_offset is None else value.elem_offset
    return _op.call(
        "tvm_stack_make_array", value.data, shape, strides, len(value.shape), _e.const(0, value.dtype), offset
    )


def call_cpacked(*args: Any, dtype: Any = "int32") -> Expr:
    """As ``T.call_packed``, of programs that call by symbol; buffers are passed as pointers.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.call_cpacked("log", i)
    T.call_cpacked("log", i)
    """
    return _op.call("call_cpacked", *args, dtype=dtype_of(dtype))


def call_global(name: str, *args: Any, dtype: Any = "void") -> Expr:
    """Call another function of the module (``Module.name(...)`` inside an ``@I.ir_module`` class means this).

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.call_global("helper", i, dtype="int32")
    T.call_global("helper", i, dtype="int32")
    """
    return _op.call("call_global", _e.StringImm(name), *args, dtype=dtype_of(dtype))


def address_of(place: Any, dtype: Any = "handle") -> Expr:
    """The address of a buffer element, a handle. Raises ``TypeError`` for a value, which has no address.

    >>> from tir.script import tir as T
    >>> import tir
    >>> A = tir.decl_buffer((8,), "float32", "A")
    >>> T.address_of(A[3])
    T.address_of(A[3])
    """
    if dtype_of(dtype) != "handle":
        raise TypeError(f"T.address_of gives a handle, not a {dtype_of(dtype)}")
    place = as_buffer_load(place)
    if isinstance(place, _Buffer):
        place = _e.BufferLoad(place, tuple(_e.const(0, s.dtype) for s in place.shape))
    if not isinstance(place, _e.BufferLoad):
        what = (
            f"; `{place!r}` is a value, which has no address: store it in a buffer" if isinstance(place, Expr) else ""
        )
        raise TypeError(f"T.address_of takes a buffer element, as in T.address_of(A[i]){what}")
    return _op.call("address_of", place, dtype="handle")


def type_annotation(dtype: Any) -> Expr:
    """A data type as an expression, for operators that take one.

    >>> from tir.script import tir as T
    >>> T.type_annotation("float32")
    T.type_annotation("float32")
    """
    return _op.call("type_annotation", dtype=dtype_of(dtype))


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any, *, dtype: Any = "handle") -> Expr:
    """A pointer to ``extent`` elements from ``offset``, accessed as ``rw_mask`` says (1 read, 2 write, 3 both).

    >>> from tir.script import tir as T
    >>> import tir
    >>> A = tir.decl_buffer((8,), "float32", "A")
    >>> T.tvm_access_ptr("float32", A.data, 0, 8, 1)
    T.tvm_access_ptr(T.type_annotation("float32"), A, 0, 8, 1)
    """
    if isinstance(ptype, (str, DataType)):
        ptype = type_annotation(ptype)
    return _op.call("tvm_access_ptr", ptype, data, offset, extent, rw_mask, dtype="handle")


def tensor_map(pointer: Any, *description: Any, dtype: Any = "handle", **of_buffer: Any) -> Expr:
    """How the copy engine of Hopper sees a tensor in global memory, for ``T.ptx_cp_async_bulk_tensor``, which moves a
    box of it: ``T.tensor_map(A, box, swizzle)`` of a buffer, with the elements of the box along each axis, and the
    swizzle in shared memory, of 0, 32, 64 or 128 bytes. In full the pointer, the data type, the swizzle, then for each
    axis the shape, for each axis the stride in elements, for each axis the box. Raises ``ValueError`` for a box with
    another number of axes than the buffer has, and for a description that is not three numbers for each axis.

    >>> from tir.script import tir as T
    >>> import tir
    >>> A = tir.decl_buffer((512, 256), "float16", "A")
    >>> T.tensor_map(A, (128, 64), swizzle=128)
    T.tensor_map(A, "float16", 128, 512, 256, 256, 1, 128, 64)
    """
    if dtype_of(dtype) != "handle":
        raise TypeError(f"T.tensor_map gives a handle, not a {dtype_of(dtype)}")
    if isinstance(pointer, _Buffer):
        pointer, description = pointer.data, _description(pointer, *description, **of_buffer)
    elif of_buffer:
        raise TypeError(f"T.tensor_map takes {', '.join(of_buffer)} with a buffer, not with a pointer")
    if len(description) < 5 or (len(description) - 2) % 3:
        raise ValueError(
            "T.tensor_map takes a buffer, a box and a swizzle; or a pointer, a data type, a swizzle, and then a shape, "
            f"strides and a box of as many numbers each, not {max(0, len(description) - 2)} numbers"
        )
    return _op.call("tensor_map", pointer, *(to_expr(x) for x in description), dtype="handle")


def _description(buffer: _Buffer, box: Any, swizzle: Any = 0) -> tuple[Any, ...]:
    """The arguments of ``tensor_map`` after the pointer."""
    if buffer.elem_offset is not None and not _e.is_const(buffer.elem_offset, 0):
        raise ValueError(f"T.tensor_map takes a whole buffer; `{buffer.name}` begins at element {buffer.elem_offset!r}")
    if len(tuple(box)) != len(buffer.shape):
        raise ValueError(
            f"the box of T.tensor_map has {len(tuple(box))} axes, and `{buffer.name}` has {len(buffer.shape)}"
        )
    return str(buffer.dtype), swizzle, *buffer.shape, *(buffer.strides or compact_strides(buffer)), *box


def isnullptr(pointer: Any) -> Expr:
    """Whether a pointer is null, as ``bool``.

    >>> from tir.script import tir as T
    >>> T.isnullptr(T.Var("p", "handle"))
    T.isnullptr(p)
    """
    return _op.call("isnullptr", pointer, dtype="bool")


def tvm_tuple(*items: Any) -> Expr:
    """Several values as one argument, for ``T.attr`` of programs for other systems.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.tvm_tuple(i, 3)
    T.tvm_tuple(i, 3)
    """
    return _op.call("tvm_tuple", *items, dtype="handle")


def ret(value: Any) -> Expr:
    """Leave the function with ``value``, a number.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def next_of(n: T.int32):
    ...     T.ret(n + 1)
    >>> next_of.body
    T.ret(n + 1)
    """
    e = to_expr(value)
    return _op.call("ret", e, dtype=e.dtype)


def assume(condition: Any) -> Expr:
    """What the caller promises to hold, as a statement; code generators may rely on it, the executor checks it.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f(A: T.Buffer((8,), "int32")):
    ...     T.assume(A[0] > 0)
    >>> f.body
    T.assume(A[0] > 0)
    """
    return _op.call("assume", _e.as_bool(to_expr(condition)), dtype="bool")


def evaluate(value: Any) -> _f.Evaluated:
    """An expression as a statement, for its effect.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f(n: T.int32):
    ...     T.evaluate(T.call_extern("int32", "note", n))
    >>> f.body
    T.call_extern("int32", "note", n)
    """
    return _f.Evaluated(value)
