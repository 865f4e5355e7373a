"""Calls of one host function by another, replaced by what they run: a host function launches all its kernels itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..aliases import sharing
from ..buffer import Buffer, decl_buffer
from ..errors import BuildError
from ..expr import BufferLoad, Call, Expr, Var, cast, is_const
from ..function import PrimFunc
from ..launches import place_of
from ..op import call, string_arg
from ..stmt import DeclBuffer, Evaluate, Stmt
from ..visit import free_vars, rewrite, rewrite_statements, substitute, walk
from .convert_ssa import convert_ssa


def with_host_calls_inlined(hosts: Mapping[str, PrimFunc]) -> dict[str, PrimFunc]:
    """Host functions by name, in which the statements ``call_global(name, …)`` of others are the bodies of these.

    Raises ``BuildError`` for a function that calls itself, for another number of arguments, for one that gives a value, and for one
    whose sizes are read off arrays: a pointer does not have them.

    >>> import numpy as np
    >>> import tir
    >>> from tir.script import ir as I, tir as T
    >>> @I.ir_module
    ... class Twice:
    ...     @T.prim_func
    ...     def more(A: T.Buffer((4,), "int32")):
    ...         for i in range(4):
    ...             A[i] += 1
    ...     @T.prim_func
    ...     def main(A: T.Buffer((4,), "int32")):
    ...         Twice.more(A.data)
    ...         Twice.more(A.data)
    >>> a = np.zeros(4, "int32")
    >>> tir.build(Twice, "cuda-sim")["main"](a)
    >>> a
    array([2, 2, 2, 2], dtype=int32)
    """
    made: dict[str, PrimFunc] = {}

    def inlined(name: str, callers: tuple[str, ...]) -> PrimFunc:
        if name in callers:
            raise BuildError(f"{name} calls itself ({' -> '.join((*callers, name))}); on a GPU, functions do not")
        if name not in made:
            func = hosts[name]
            body = rewrite(func.body, lambda s: _body_of_call(s, name, (*callers, name)))
            made[name] = func if body is func.body else convert_ssa(func.with_body(body))
        return made[name]

    def _body_of_call(s: Any, caller: str, callers: tuple[str, ...]) -> Stmt | None:
        if not (isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op == "call_global"):
            return None
        name, *args = s.value.args
        name = string_arg(name)
        if name not in hosts:
            raise BuildError(
                f"{caller}: it calls `{name}`, which is no function of the module that runs outside of kernels"
            )
        return _with_arguments(inlined(name, callers), args, f"{caller}: its call of `{name}`")

    return {name: inlined(name, ()) for name in hosts}


def refused_argument(param: Var, arg: Expr) -> str:
    """Why a call cannot give ``arg`` for a parameter: a number is no pointer, nor the other way round; empty if it can."""
    if arg.dtype.is_handle == param.dtype.is_handle or (param.dtype.is_handle and is_const(arg, 0)):
        return ""
    return f"gives `{arg!r}` as `{param.name}`, which is {'a pointer' if param.dtype.is_handle else 'a number'}"


def _with_arguments(func: PrimFunc, args: list[Expr], what: str) -> Stmt:
    """The body of a function for these arguments."""
    if func.ret_type.code != "void":
        raise BuildError(f"{what} gives a value, which no function does for another outside of kernels")
    if len(args) != len(func.params):
        raise BuildError(f"{what} has {len(args)} arguments; it takes {len(func.params)}")
    values: dict[Var, Any] = {}
    for param, arg in zip(func.params, args):
        if refusal := refused_argument(param, arg):
            raise BuildError(f"{what} {refusal}")
        values[param] = arg if param.dtype.is_handle or arg.dtype == param.dtype else cast(str(param.dtype), arg)
        if param in func.buffer_map:
            values[func.buffer_map[param].data] = arg
    sizes = [v for b in func.buffers() for e in (*b.shape, *b.strides) for v in free_vars(e) if v not in values]
    if sizes:
        raise BuildError(
            f"{what}: the size {sizes[0].name} is read off an array, and a pointer has none; make it a parameter"
        )
    body, views = _with_pointers_moved(func.body, values)
    used = (n.buffer for n in walk(body) if isinstance(n, (BufferLoad, DeclBuffer)))
    touched = [b for b in sharing(used, values) if b not in views]
    if touched:
        raise BuildError(f"{what}: it reads or writes `{touched[0].name}` outside of kernels")
    body = substitute(body, values)
    for view in views:
        body = DeclBuffer(view, body)
    return body


def _with_pointers_moved(body: Stmt, values: Mapping[Var, Any]) -> tuple[Stmt, list[Buffer]]:
    """A body with addresses in the memory that variables become, and the views of that memory whose elements have these addresses."""
    views: list[Buffer] = []

    def moved(e: Any) -> Expr | None:
        if not (isinstance(e, Call) and e.op == "address_of"):
            return None
        memory, begin = place_of(e)
        if memory not in values:
            return None
        root, first = place_of(values[memory])
        at = first + begin
        views.append(decl_buffer((at + 1,), "uint8", root.name, data=root))
        return call("address_of", BufferLoad(views[-1], (at,)), dtype="handle")

    return without_unused_views(rewrite(body, moved)), views


def without_unused_views(body: Stmt) -> Stmt:
    """``body`` without the declarations of buffers that only the kernels use."""
    times = Counter(n for n in walk(body) if isinstance(n, Buffer))
    times.subtract(n.buffer for n in walk(body) if isinstance(n, DeclBuffer))
    return rewrite_statements(body, lambda n: n.body if isinstance(n, DeclBuffer) and not times[n.buffer] else None)
