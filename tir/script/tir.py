"""The namespace ``T`` of the dialect: ``from tir.script import tir as T``.

Every name is a real Python object. Constructs that open a scope or make a statement return a description that the
parser builds from (see :mod:`tir.script.frames`); expressions (:mod:`tir.script.tir_expr`, and calls in
:mod:`tir.script.tir_calls`) are built at once. Names that are not here are looked up in the operator table (``T.exp``,
``T.ptx_mma`` …: :mod:`tir.script.tir_operators`) and among the data types (``T.float16x8``).
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import Buffer as _Buffer
from ..buffer import Range as _Range
from ..buffer import index_expr as _index_expr
from ..dtype import DType as _DType
from ..expr import Expr
from ..levels import AXES as _AXES
from ..neighbours import written_here as _written_here
from ..node import freeze as _freeze
from . import frames as _f
from .diagnostics import did_you_mean as _did_you_mean
from .parser import macro as macro
from .parser import prim_func as prim_func
from .tir_buffers import *  # noqa: F403
from .tir_calls import *  # noqa: F403
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
    kind: str, args: tuple[Any, ...], annotations: Any, spelled: str, thread: str = "", step: Any = 1, private: Any = ()
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
    """Serial loops nested in order, one for each extent: ``for i, j in T.grid(m, n):``. Raises ``TypeError`` without one.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def clear(A: T.Buffer((4, 8), "float32")):
    ...     for i, j in T.grid(4, 8):
    ...         A[i, j] = 0.0
    >>> clear.body
    for i, j in T.grid(4, 8):
        A[i, j] = T.float32(0)
    """
    if not extents:
        raise TypeError("T.grid takes at least one extent")
    loops = [_f.Loop(*e) if isinstance(e, tuple) else _f.Loop(e, None) for e in extents]
    return _f.LoopFrame(loops, "T.grid")


def serial(
    start: Any, stop: Any = None, *, annotations: Any = None, step: Any = 1, unroll: Any = None, private: Any = ()
) -> _f.LoopFrame:
    """A loop whose iterations run one after the other: over an extent, or from ``start`` up to ``stop``.

    ``annotations`` is a dict of notes that the loop keeps; ``unroll`` (True, or how often) is the note ``"pragma_unroll"``; ``private`` lists buffers of which each iteration has a copy of
    its own. Raises ``TypeError`` for another number of bounds, and for what is no buffer.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,)), B: T.Buffer((8,))):
    ...     for i in T.serial(8, annotations={"kept": 1}):
    ...         B[i] = A[i] * 2.0
    >>> double.body
    for i in T.serial(8, annotations={"kept": 1}):
        B[i] = A[i] * 2.0
    """
    if unroll is not None:
        annotations = {
            **(annotations or {}),
            **({"disable_unroll": True} if unroll is False else {"pragma_unroll": unroll}),
        }
    return _loop("serial", _two(start, stop), annotations, "T.serial", step=step, private=private)


def _kind_of_loop(name: str, kind: str, what: str) -> Callable[..., _f.LoopFrame]:
    def loop(
        start: Any, stop: Any = None, *, annotations: Any = None, step: Any = 1, private: Any = ()
    ) -> _f.LoopFrame:
        return _loop(kind, _two(start, stop), annotations, f"T.{name}", step=step, private=private)

    loop.__name__ = loop.__qualname__ = name
    loop.__doc__ = f"""A loop {what}.
    Bounds, ``annotations``, ``step`` and errors as for ``T.serial``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,)), B: T.Buffer((8,))):
    ...     for i in T.{name}(8):
    ...         B[i] = A[i] * 2.0
    >>> double.body
    for i in T.{name}(8):
        B[i] = A[i] * 2.0
    """
    return loop


parallel = _kind_of_loop("parallel", "parallel", "whose iterations may run at once, by the threads of a CPU")
vectorized = _kind_of_loop(
    "vectorized", "vectorized", "whose iterations become the lanes of vectors; its extent is a constant"
)
unroll = _kind_of_loop("unroll", "unrolled", "that is written out when the program is lowered")
unrolled = unroll


def thread_binding(
    start: Any, stop: Any = None, thread: str = "", *, annotations: Any = None, private: Any = ()
) -> _f.LoopFrame:
    """A loop run by the threads or blocks of a GPU's axis: ``"threadIdx.x"``, ``"blockIdx.y"`` … Raises ``TypeError`` without
    an axis, and for one that there is not.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,)), B: T.Buffer((8,))):
    ...     for i in T.thread_binding(8, thread="threadIdx.x"):
    ...         B[i] = A[i] * 2.0
    >>> double.body
    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[i] = A[i] * 2.0
    """
    if isinstance(stop, str):
        stop, thread = None, stop
    if not thread:
        raise TypeError('T.thread_binding needs its axis, as in thread="threadIdx.x"')
    return _loop("thread_binding", _two(start, stop), annotations, "T.thread_binding", thread, private=private)


def range(start: Any, stop: Any = None, step: Any = 1, *, annotations: Any = None) -> _f.LoopFrame:
    """``range`` of Python in a kernel: a serial loop, from 0 or ``start`` up to ``stop``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,)), B: T.Buffer((8,))):
    ...     for i in T.range(0, 8):
    ...         B[i] = A[i] * 2.0
    >>> double.body
    for i in range(8):
        B[i] = A[i] * 2.0
    """
    return _loop("serial", _two(start, stop), annotations, "T.range", step=step)


# ---------------------------------------------------------------- blocks


def block(name: str = "", no_realize: builtins.bool = False) -> _f.BlockFrame:
    """A unit of computation that schedules move as a whole: ``with T.block("C"):``. Its iterators are made by ``T.axis``;
    what it reads and writes is inferred where ``T.reads`` and ``T.writes`` do not say it. Raises ``TypeError`` for a name
    that is no string.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def total(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("B"):
    ...             vi, vk = T.axis.remap("SR", [i, k])
    ...             with T.init():
    ...                 B[vi] = 0.0
    ...             B[vi] += A[vi, vk]
    >>> import tir
    >>> tir.Schedule(total)["B"]
    BlockRV(B)
    """
    if not isinstance(name, str):
        axes = "; its iterators are made in it: vi = T.axis.spatial(8, i)" if isinstance(name, (list, tuple)) else ""
        raise TypeError(f"a block's name is a string, got {name!r}{axes}")
    return _f.BlockFrame(name, no_realize)


sblock = block  # the name that newer TVM gives blocks


def init() -> _f.InitFrame:
    """What runs at the first step of the block's reduction: ``with T.init():``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def total(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("B"):
    ...             vi, vk = T.axis.remap("SR", [i, k])
    ...             with T.init():
    ...                 B[vi] = 0.0
    ...             B[vi] += A[vi, vk]
    >>> import tir
    >>> tir.Schedule(total).get("B").init
    B[vi] = T.float32(0)
    """
    return _f.InitFrame()


class axis:
    """Iterators of a block, each with its domain and the value it takes: ``vi = T.axis.spatial(128, i)``, ``T.axis.reduce``,
    ``T.axis.scan``, ``T.axis.opaque``; a domain is an extent or ``(begin, end)``. ``T.axis.remap("SR", [i, k])`` makes one for
    each loop variable, S spatial or R reduce, over the whole loop.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def total(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("B"):
    ...             vi, vk = T.axis.remap("SR", [i, k])
    ...             with T.init():
    ...                 B[vi] = 0.0
    ...             B[vi] += A[vi, vk]
    >>> import tir
    >>> [v.iter_type for v in tir.Schedule(total).get("B").iter_vars]
    ['spatial', 'reduce']
    """

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
        if isinstance(bindings, (Expr, int)):
            raise TypeError("the bindings of remap are a list, such as [i, j]")
        return _f.AxisList(kinds, list(bindings))


def where(predicate: Any) -> _f.Directive:
    """The block runs only where this holds: its predicate.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             T.where(i < 6)
    ...             B[vi] = A[vi] * 2.0
    >>> double.body.block.body
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.where(i < 6)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * 2.0
    """
    return _f.Directive("where", predicate)


def reads(*regions: Any) -> _f.Directive:
    """The regions the block reads: ``T.reads(A[vi, 0:16], B[vj])``; none: ``T.reads()``. They may be larger than
    what is read.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             T.reads(A[vi])
    ...             B[vi] = A[vi] * 2.0
    >>> import tir
    >>> tir.Schedule(double).get("B").reads
    (A[vi],)
    """
    return _f.Directive("reads", regions)


def writes(*regions: Any) -> _f.Directive:
    """The regions the block writes, as for ``T.reads``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             T.writes(B[vi])
    ...             B[vi] = A[vi] * 2.0
    >>> import tir
    >>> tir.Schedule(double).get("B").writes
    (B[vi],)
    """
    return _f.Directive("writes", regions)


def block_attr(attrs: dict[str, Any]) -> _f.Directive:
    """Annotations of the block: a dict of what passes and users read. Raises ``TypeError`` for anything else.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             T.block_attr({"kept": 1})
    ...             B[vi] = A[vi] * 2.0
    >>> import tir
    >>> tir.Schedule(double).get("B").annotations
    {'kept': 1}
    """
    return _f.Directive("block_attr", attrs)


sblock_attr = block_attr


def func_attr(attrs: dict[str, Any]) -> _f.Directive:
    """Attributes of the function: ``T.func_attr({"global_symbol": "main"})``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     T.func_attr({"global_symbol": "main"})
    ...     A[0] = 0.0
    >>> f.name
    'main'
    """
    return _f.Directive("func_attr", attrs)


def func_name(name: str) -> _f.Directive:
    """The name of the function in the module: its attribute ``global_symbol``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     T.func_name("main")
    ...     A[0] = 0.0
    >>> f.name
    'main'
    """
    return _f.Directive("func_attr", {"global_symbol": name})


def index_map(mapping: Callable[..., Any], *, inverse_index_map: Any = None) -> Any:
    """A layout map of indices, for annotations; ``inverse_index_map`` is its inverse where that cannot be found.

    >>> from tir.script import tir as T
    >>> T.index_map(lambda i: (i // 4, i % 4))
    IndexMap(initial_indices=[i], final_indices=[i // 4, i % 4], axis_separators=[])
    """
    from tir import IndexMap

    made = IndexMap.from_func(mapping)
    return made if inverse_index_map is None else made.replace(inverse=IndexMap.from_func(inverse_index_map))


def target(spec: Any, host: Any = None) -> Any:
    """A target, for ``T.func_attr({"target": T.target("cuda", host="llvm")})``.

    >>> from tir.script import tir as T
    >>> T.target("cuda")
    Target('cuda')
    """
    from ..target import Target

    return Target.named(spec, host)


# ---------------------------------------------------------------- other scopes


class _Let(_f.TypeOfValue):
    """A variable with a value: ``with T.let(x, v):`` over the body, ``T.let(x, v, e)`` in the expression ``e``, and
    ``x: T.let = v`` or ``x: T.let[T.int32] = v`` over what follows.

    >>> from tir.script import tir as T
    >>> i = T.Var("i", "int32")
    >>> T.let(i, 3, i * i)
    T.Let(i * i, where={i: 3})
    """

    def __call__(self, var: _e.Var, value: Any, body: Any = None) -> Any:
        if body is not None:
            return Let(body, {var: value})
        return _f.LetFrame(value, var)

    def __getitem__(self, kind: Any) -> Any:
        return kind


let = _Let()


def LetStmt(value: Any, type_annotation: Any = None, *, var: _e.Var | None = None) -> _f.LetFrame:
    """A variable with a value over the body of ``with``, or over what follows: ``x = T.bind(v)``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f(n: T.int32, A: T.Buffer((8,), "int32")):
    ...     with T.LetStmt(n + 1) as m:
    ...         A[0] = m * m
    >>> f.body
    m: T.int32 = n + 1
    A[0] = m * m
    """
    return _f.LetFrame(value, var, type_annotation)


bind = LetStmt


def attr(node: Any, attr_key: str | None = None, value: Any = None) -> _f.AttrFrame:
    """A fact about ``node`` over the body of ``with``, or over what follows; ``T.attr({key: value})`` is about nothing.
    Raises ``TypeError`` for a key that is no string.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     with T.attr(A.data, "kept", 1):
    ...         A[0] = 0.0
    >>> f.body
    T.attr(A, "kept", 1)
    A[0] = T.float32(0)
    """
    if attr_key is not None and not isinstance(attr_key, str):
        raise TypeError(f"the key of T.attr is a string, not {attr_key!r}")
    if attr_key is not None:
        return _f.AttrFrame(_freeze(node), {attr_key: value})
    if not isinstance(node, dict) or not node:
        raise TypeError("T.attr takes a node, a key and a value, or a dict of keys and values")
    return _f.AttrFrame(_e.const(0, "int32"), node)


def launch_thread(thread: Any, extent: Any) -> _f.LaunchFrame:
    """Threads of an axis (by name, or from ``T.env_thread``): ``with T.launch_thread("threadIdx.x", 128) as tx:``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def clear(A: T.Buffer((128,), "float32")):
    ...     with T.launch_thread("threadIdx.x", 128) as tx:
    ...         A[tx] = 0.0
    >>> clear.body
    tx = T.launch_thread("threadIdx.x", 128)
    A[tx] = T.float32(0)
    """
    return _f.LaunchFrame(thread, extent)


def env_thread(thread_tag: str, dtype: Any = "int32") -> _f.EnvThread:
    """The index along a thread axis, to be launched with ``T.launch_thread``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def clear(A: T.Buffer((128,), "float32")):
    ...     tx = T.env_thread("threadIdx.x")
    ...     with T.launch_thread(tx, 128):
    ...         A[tx] = 0.0
    >>> clear.body
    tx = T.launch_thread("threadIdx.x", 128)
    A[tx] = T.float32(0)
    """
    return _f.EnvThread(thread_tag, _DType(dtype_of(dtype)))


def Assert(condition: Any, message: Any) -> _f.AssertFrame:
    """A check over the body of ``with``, or before what follows: where it fails, the call raises ``RunError`` with
    ``message``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f(n: T.int32, A: T.Buffer((8,), "int32")):
    ...     with T.Assert(n > 0, "n is positive"):
    ...         A[0] = n
    >>> f.body
    assert n > 0, "n is positive"
    A[0] = n
    """
    return _f.AssertFrame(condition, message)


class meta_var(_f.Meta):
    """``x = T.meta_var(v)`` binds ``x`` in Python: no let is made.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f(n: T.int32, A: T.Buffer((8,), "int32")):
    ...     m = T.meta_var(n + 1)
    ...     A[0] = m
    >>> f.body
    A[0] = n + 1
    """


# ---------------------------------------------------------------- everything else


_SHORT_TYPE = re.compile(r"^(i|u|f|bf)(?=\d)(.*)")  # T.i32, T.f16x4, as TVM 0.27 has them
_KINDS = {"i": "int", "u": "uint", "f": "float", "bf": "bfloat"}


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        if name in _op.OPS:
            return _operator_function(name)
        try:
            return DataType(_SHORT_TYPE.sub(lambda found: _KINDS[found[1]] + found[2], name))
        except ValueError:
            pass
        if name in ("vscale", "get_vscale_expr"):
            raise AttributeError(f"scalable vectors are not supported (T.{name}): use a fixed number of lanes")
        here = _written_here(name)
        notes = [f"write {here}"] if here is not None else _did_you_mean(name, [*globals(), *_op.OPS])
        raise AttributeError("; ".join([f"the dialect has no T.{name}", *notes]))
    raise AttributeError(name)


def __dir__() -> list[str]:
    return sorted({n for n, value in globals().items() if _is_dialect(n, value)} | set(_op.OPS))


def _is_dialect(name: str, value: Any) -> builtins.bool:
    """Whether a name of this module is for kernels, rather than what the module itself works with."""
    home = getattr(value, "__module__", "")
    return not name.startswith("_") and home.startswith("tir.") and home != to_expr.__module__
