"""The namespace ``T`` of the dialect: ``from tir.script import tir as T``.

Every name is a real Python object. Constructs that open a scope or make a statement return a description that the
parser builds from (see :mod:`tir.script.frames`); expressions (:mod:`tir.script.tir_expr`, and calls in
:mod:`tir.script.tir_calls`) are built at once. Names that are not here are looked up in the operator table (``T.exp``,
``T.ptx_mma`` …) and among the data types (``T.float16x8``).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import SCOPES as _SCOPES
from ..buffer import Buffer as _Buffer
from ..buffer import Range as _Range
from ..buffer import index_expr as _index_expr
from ..dtype import DType as _DType
from ..expr import Expr
from ..names import resembling as _resembling
from ..node import freeze as _freeze
from ..stmt import THREAD_AXES as _AXES
from . import frames as _f
from .diagnostics import did_you_mean as _did_you_mean
from .parser import macro as macro
from .parser import prim_func as prim_func
from .tir_calls import *  # noqa: F403
from .tir_expr import *  # noqa: F403
from .tir_expr import DataType, Let, Range
from .tir_operators import operator_function as _operator_function
from .values import attributes, dtype_of, to_expr

# ---------------------------------------------------------------- buffers


def _shape(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _check_scope(scope: Any) -> None:
    """Refuse a storage scope that is nearly one; others may be those of hardware that this package does not know."""
    near = _resembling(scope, _SCOPES, likeness=0.75) if isinstance(scope, str) else []
    if near and scope not in _SCOPES and scope.partition(".")[0] not in _SCOPES:
        raise TypeError(f"there is no storage scope {scope!r}; did you mean {', '.join(near)}?")


class _BufferType:
    """``T.Buffer((128, 128), "float32")``, also ``T.Buffer[(128,), "float32"]``: a parameter's type, or a view."""

    def __call__(
        self,
        shape: Any,
        dtype: Any = "float32",
        data: Any = None,
        strides: Any = None,
        elem_offset: Any = None,
        scope: str = "",
        align: int = 0,
        offset_factor: int = 0,
        buffer_type: str = "",
        axis_separators: Any = None,
    ) -> _f.BufferSpec:
        _check_scope(scope)
        options = {
            "data": data,
            "strides": strides,
            "elem_offset": elem_offset,
            "scope": scope,
            "data_alignment": align,
            "offset_factor": offset_factor,
            "buffer_type": buffer_type,
            "axis_separators": axis_separators,
        }
        return _f.BufferSpec("Buffer", _shape(shape), dtype_of(dtype), options)

    def __getitem__(self, item: Any) -> _f.BufferSpec:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], (str, DataType)):
            return self(*item)
        return self(item)


Buffer = buffer = _BufferType()


def buffer_decl(shape: Any, dtype: Any = "float32", **options: Any) -> _f.BufferSpec:
    return Buffer(shape, dtype, **options)


def alloc_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
    annotations: Any = None,
) -> _f.BufferSpec:
    """A buffer that lives in the enclosing block (at the top of a function: in its root block).

    Of ``annotations``, which newer scripts have, the alignment is kept: ``{"buffer_data_alignment": 64}``.
    """
    align = align or (annotations or {}).get("buffer_data_alignment", 0)
    spec = Buffer(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)
    spec.how = "alloc_buffer"
    return spec


sblock_alloc_buffer = alloc_buffer


def alloc_shared(shape: Any, dtype: Any = "float32", **options: Any) -> _f.BufferSpec:
    """``T.alloc_buffer`` in shared memory."""
    return alloc_buffer(shape, dtype, scope="shared", **options)


def alloc_local(shape: Any, dtype: Any = "float32", **options: Any) -> _f.BufferSpec:
    """``T.alloc_buffer`` in each thread's own memory."""
    return alloc_buffer(shape, dtype, scope="local", **options)


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> _f.BufferSpec:
    """A name for a handle parameter's memory or, in a block, for a region: ``T.match_buffer(A[0:16, j], (16,))``."""
    spec = Buffer(
        () if shape is None else shape,
        dtype,
        data,
        strides,
        elem_offset,
        scope,
        align,
        offset_factor,
        buffer_type,
        axis_separators,
    )
    spec.how, spec.source = "match_buffer", param
    if shape is None:
        spec.options["shape_of_source"] = True
    return spec


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> _f.BufferSpec:
    """A view of the memory behind ``data`` over what follows; without ``data`` the memory is allocated too."""
    spec = Buffer(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)
    spec.how = "decl_buffer"
    return spec


def allocate(
    extents: Any, dtype: Any, scope: str = "global", condition: Any = True, annotations: Any = None
) -> _f.AllocateFrame:
    """Memory for what follows, or for the body of ``with``; its value is the pointer."""
    return _f.AllocateFrame(
        _shape(extents), _DType(dtype_of(dtype)), scope, True if condition is None else condition, annotations or {}
    )


def allocate_const(data: Any, dtype: Any, extents: Any, annotations: Any = None) -> _f.AllocateFrame:
    """Constant memory holding ``data`` (row-major)."""
    return _f.AllocateFrame(_shape(extents), _DType(dtype_of(dtype)), "global", True, annotations or {}, data)


def realize(region: Any, scope: str = "", condition: Any = True) -> _f.RealizeFrame:
    """A box of a buffer in memory over the body: ``with T.realize(B[0:16], "global"):``."""
    return _f.RealizeFrame(region, scope, condition)


def buffer_store(buffer: _Buffer, value: Any, indices: Any) -> _f.StoreFrame:
    return _f.StoreFrame(buffer, value, _shape(indices))


# ---------------------------------------------------------------- loops


def _loop(
    kind: str,
    args: tuple[Any, ...],
    annotations: Any,
    spelled: str,
    thread: str = "",
    step: Any = 1,
    private: Any = (),
) -> _f.LoopFrame:
    """``private`` lists buffers of which each iteration has a copy of its own."""
    if not 1 <= len(args) <= 2:
        raise TypeError(f"{spelled} takes an extent, or start and stop; got {len(args)} bounds")
    if not isinstance(thread, str):
        raise TypeError(f'the thread axis of {spelled} is a string, such as "threadIdx.x", not {thread!r}')
    if thread.lower().startswith(("threadidx", "blockidx")) and thread not in _AXES:
        raise TypeError(f"{thread!r} is not a thread axis; there are {', '.join(_AXES)}")
    start, stop = args if len(args) == 2 else (args[0], None)
    if not isinstance(private, (list, tuple)) or not builtins.all(isinstance(b, _Buffer) for b in private):
        raise TypeError(f"`private` of {spelled} lists the buffers that each iteration has for itself, not {private!r}")
    notes = {**attributes(annotations or {}, spelled), **({"private": tuple(private)} if private else {})}
    loop = _f.Loop(start, stop, kind, thread, notes, 1 if step is None else step)
    return _f.LoopFrame([loop], spelled)


def _two(start: Any, stop: Any) -> tuple[Any, ...]:
    return (start,) if stop is None else (start, stop)


def grid(*extents: Any) -> _f.LoopFrame:
    """Serial loops nested in order: ``for i, j in T.grid(m, n):``."""
    if not extents:
        raise TypeError("T.grid takes at least one extent")
    loops = [_f.Loop(*e) if isinstance(e, tuple) else _f.Loop(e, None) for e in extents]
    return _f.LoopFrame(loops, "T.grid")


def serial(start: Any, stop: Any = None, *, annotations: Any = None, step: Any = 1, private: Any = ()) -> _f.LoopFrame:
    return _loop("serial", _two(start, stop), annotations, "T.serial", step=step, private=private)


def parallel(
    start: Any, stop: Any = None, *, annotations: Any = None, step: Any = 1, private: Any = ()
) -> _f.LoopFrame:
    return _loop("parallel", _two(start, stop), annotations, "T.parallel", step=step, private=private)


def vectorized(
    start: Any, stop: Any = None, *, annotations: Any = None, step: Any = 1, private: Any = ()
) -> _f.LoopFrame:
    return _loop("vectorized", _two(start, stop), annotations, "T.vectorized", step=step, private=private)


def unroll(start: Any, stop: Any = None, *, annotations: Any = None, step: Any = 1, private: Any = ()) -> _f.LoopFrame:
    return _loop("unrolled", _two(start, stop), annotations, "T.unroll", step=step, private=private)


unrolled = unroll


def thread_binding(
    start: Any, stop: Any = None, thread: str = "", *, annotations: Any = None, private: Any = ()
) -> _f.LoopFrame:
    """A loop run by the threads of an axis: ``T.thread_binding(128, thread="threadIdx.x")``."""
    if isinstance(stop, str):
        stop, thread = None, stop
    if not thread:
        raise TypeError('T.thread_binding needs its axis, as in thread="threadIdx.x"')
    return _loop("thread_binding", _two(start, stop), annotations, "T.thread_binding", thread, private=private)


def range(start: Any, stop: Any = None, step: Any = 1, *, annotations: Any = None) -> _f.LoopFrame:
    return _loop("serial", _two(start, stop), annotations, "T.range", step=step)


# ---------------------------------------------------------------- blocks


def block(name: str = "", no_realize: builtins.bool = False) -> _f.BlockFrame:
    """A unit of computation: ``with T.block("C"):``."""
    if not isinstance(name, str):
        raise TypeError(f"a block's name is a string, got {name!r}")
    return _f.BlockFrame(name, no_realize)


sblock = block  # the name that newer TVM gives blocks


def init() -> _f.InitFrame:
    """What runs at the first step of the block's reduction: ``with T.init():``."""
    return _f.InitFrame()


class axis:
    """Iterators of a block: ``vi = T.axis.spatial(128, i)``, ``vi, vk = T.axis.remap("SR", [i, k])``."""

    @staticmethod
    def _make(kind: str, dom: Any, binding: Any) -> _f.Axis:
        if isinstance(dom, (tuple, list)):
            dom = Range(*dom)
        elif not isinstance(dom, _Range):
            extent = _index_expr(dom)
            dom = _Range(_e.const(0, extent.dtype), extent)
        bound = _f.as_var(binding)
        return _f.Axis(kind, dom, _index_expr(bound if isinstance(bound, Expr) else _e.const(bound, dom.extent.dtype)))

    @staticmethod
    def spatial(dom: Any, binding: Any, dtype: str = "int32") -> Any:
        return axis._make("spatial", dom, binding)

    @staticmethod
    def reduce(dom: Any, binding: Any, dtype: str = "int32") -> Any:
        return axis._make("reduce", dom, binding)

    @staticmethod
    def scan(dom: Any, binding: Any, dtype: str = "int32") -> Any:
        return axis._make("scan", dom, binding)

    @staticmethod
    def opaque(dom: Any, binding: Any, dtype: str = "int32") -> Any:
        return axis._make("opaque", dom, binding)

    S, R = spatial, reduce

    @staticmethod
    def remap(kinds: str, bindings: Sequence[Any], dtype: str = "int32") -> Any:
        """One iterator for each loop variable, S spatial or R reduce, over the loop's whole domain."""
        return _f.AxisList(kinds, list(bindings))


def where(predicate: Any) -> _f.Directive:
    """The block runs only where this holds."""
    return _f.Directive("where", predicate)


def reads(*regions: Any) -> _f.Directive:
    """The regions the block reads: ``T.reads(A[vi, 0:16], B[vj])``; none: ``T.reads()``."""
    return _f.Directive("reads", regions)


def writes(*regions: Any) -> _f.Directive:
    """The regions the block writes."""
    return _f.Directive("writes", regions)


def block_attr(attrs: dict[str, Any]) -> _f.Directive:
    return _f.Directive("block_attr", attrs)


sblock_attr = block_attr


def func_attr(attrs: dict[str, Any]) -> _f.Directive:
    """Attributes of the function: ``T.func_attr({"global_symbol": "main"})``."""
    return _f.Directive("func_attr", attrs)


def func_name(name: str) -> _f.Directive:
    return _f.Directive("func_attr", {"global_symbol": name})


def index_map(mapping: Callable[..., Any], *, inverse_index_map: Any = None) -> Any:
    """A layout map, for annotations."""
    from tir import IndexMap

    made = IndexMap.from_func(mapping)
    return made if inverse_index_map is None else made.replace(inverse=IndexMap.from_func(inverse_index_map))


def target(spec: Any, host: Any = None) -> Any:
    """A target, for ``T.func_attr({"target": T.target("cuda", host="llvm")})``."""
    from ..target import Target

    return Target.named(spec, host)


# ---------------------------------------------------------------- other scopes


class _Let:
    """``with T.let(x, v):``; with a body, the expression; ``x: T.let[T.int32] = v`` declares a let of that type."""

    def __call__(self, var: _e.Var, value: Any, body: Any = None) -> Any:
        if body is not None:
            return Let(body, {var: value})
        return _f.LetFrame(value, var)

    def __getitem__(self, kind: Any) -> Any:
        return kind


let = _Let()


def LetStmt(value: Any, type_annotation: Any = None, *, var: _e.Var | None = None) -> _f.LetFrame:
    """``with T.LetStmt(v) as x:``"""
    return _f.LetFrame(value, var, type_annotation)


bind = LetStmt


def attr(node: Any, attr_key: str | None = None, value: Any = None) -> _f.AttrFrame:
    """A fact about ``node`` over the body of ``with``, or over what follows; ``T.attr({key: value})`` is about nothing."""
    if attr_key is not None and not isinstance(attr_key, str):
        raise TypeError(f"the key of T.attr is a string, not {attr_key!r}")
    if attr_key is not None:
        return _f.AttrFrame(_freeze(node), {attr_key: value})
    if not isinstance(node, dict) or not node:
        raise TypeError("T.attr takes a node, a key and a value, or a dict of keys and values")
    return _f.AttrFrame(_e.const(0, "int32"), node)


def launch_thread(thread: Any, extent: Any) -> _f.LaunchFrame:
    """Threads of an axis (by name, or from ``T.env_thread``): ``with T.launch_thread("threadIdx.x", 128) as tx:``."""
    return _f.LaunchFrame(thread, extent)


def env_thread(thread_tag: str, dtype: Any = "int32") -> _f.EnvThread:
    """The index along a thread axis, to be launched with ``T.launch_thread``."""
    return _f.EnvThread(thread_tag, _DType(dtype_of(dtype)))


def Assert(condition: Any, message: Any) -> _f.AssertFrame:
    return _f.AssertFrame(condition, message)


class meta_var(_f.Meta):
    """``x = T.meta_var(v)`` binds ``x`` in Python: no let is made."""


# ---------------------------------------------------------------- everything else


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        if name in _op.OPS:
            return _operator_function(name)
        try:
            return DataType(name)
        except ValueError:
            pass
        if name in ("vscale", "get_vscale_expr"):
            raise AttributeError(f"scalable vectors are not supported (T.{name}): use a fixed number of lanes")
        notes = _did_you_mean(name, [*globals(), *_op.OPS])
        raise AttributeError("; ".join([f"the dialect has no T.{name}", *notes]))
    raise AttributeError(name)


def __dir__() -> list[str]:
    return sorted({n for n, value in globals().items() if _is_dialect(n, value)} | set(_op.OPS))


def _is_dialect(name: str, value: Any) -> builtins.bool:
    """Whether a name of this module is for kernels, rather than what the module itself works with."""
    home = getattr(value, "__module__", "")
    return not name.startswith("_") and home.startswith("tir.") and home != to_expr.__module__
