"""The part of ``T`` that builds expressions at once: arithmetic, calls, reductions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import Buffer as _Buffer
from ..buffer import IterVar as _IterVar
from ..buffer import Range as _Range
from ..expr import Expr
from . import frames as _f
from .tir_nodes import num
from .tir_types import DataType
from .values import as_buffer_load, dtype_of, to_expr
from .values import range_of as _range_of

PrimExpr = Expr

__all__ = [
    "PrimExpr",
    "Range",
    "Reduce",
    "abs",
    "address_of",
    "all",
    "any",
    "assume",
    "call_cpacked",
    "call_extern",
    "call_global",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_pure_extern",
    "cast",
    "ceildiv",
    "clip",
    "comm_reducer",
    "div",
    "evaluate",
    "floordiv",
    "floormod",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "isnullptr",
    "iter_var",
    "likely",
    "llvm_lookup_intrinsic_id",
    "max",
    "min",
    "pow",
    "power",
    "reduce",
    "reduce_all",
    "reinterpret",
    "ret",
    "truncdiv",
    "truncmod",
    "tvm_access_ptr",
    "tvm_tuple",
    "type_annotation",
]

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


# ---------------------------------------------------------------- calls


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


def call_intrin(dtype: Any, name: str, *args: Any) -> Expr:
    """Call an operator of the table by name (``"tir.exp"`` and ``"exp"`` are the same). Raises ``ValueError`` for an
    unknown one.

    >>> from tir.script import tir as T
    >>> x = T.Var("x", "float32")
    >>> T.call_intrin("float32", "exp", x)
    T.exp(x)
    """
    name = name.removeprefix("tir.")
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


# ---------------------------------------------------------------- reductions


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


def iter_var(var: _e.Var | str, dom: Any, iter_type: str, thread_tag: str = "") -> _IterVar:
    """An iterator with all its parts: variable, domain (a range, ``(begin, end)`` or None), kind, thread axis.

    >>> from tir.script import tir as T
    >>> T.iter_var("k", (0, 8), "CommReduce").dom
    T.Range(0, 8)
    """
    if isinstance(var, str):
        var = _e.Var(var, _e.INT32)
    if isinstance(dom, (tuple, list)):
        dom = Range(*dom)
    return _IterVar(dom, var, _ITER_TYPES.get(iter_type, iter_type), thread_tag)
