"""The namespace ``T`` of the dialect: ``from tir.script import tir as T``.

Every name is a real Python object. Constructs that open a scope or make a statement return a description that the
parser builds from (see :mod:`tir.script.frames`); expressions (:mod:`tir.script.tir_expr` and its like) are built at once. Names
that are not here are looked up in the operator table (``T.exp``, ``T.ptx_mma`` …) and among the data types
(``T.float16x8``).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import Buffer as _Buffer
from ..buffer import Range as _Range
from ..buffer import index_expr as _index_expr
from ..dtype import DType as _DType
from ..expr import Expr
from ..node import freeze as _freeze
from ..stmt import THREAD_AXES as _AXES
from . import frames as _f
from .diagnostics import did_you_mean as _did_you_mean
from .parser import macro as macro
from .parser import prim_func as prim_func
from .tir_buffers import *  # noqa: F403
from .tir_expr import *  # noqa: F403
from .tir_expr import Range
from .tir_nodes import *  # noqa: F403
from .tir_nodes import Let
from .tir_operators import operator_function as _operator_function
from .tir_types import *  # noqa: F403
from .tir_types import DataType
from .values import attributes, dtype_of, to_expr

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
