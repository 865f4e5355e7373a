"""Calls of functions that compute a number from numbers, replaced by what these return: kernels call no function of the module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dtype import DType
from ..errors import BuildError
from ..expr import Call, Expr, Let, Var, cast, is_const
from ..function import IRModule, PrimFunc
from ..node import frozendict
from ..op import call, string_arg
from ..stmt import Block, BlockRealize, Evaluate, IfThenElse, LetStmt, SeqStmt
from ..visit import rewrite, substitute
from .passes import module_pass


@module_pass
def inline_functions(mod: IRModule) -> IRModule:
    """Each call of a function of scalars that returns a value on every path, without loops or stores, becomes the value.

    A function that is called so, or that is private, is no longer in the module. Raises ``BuildError`` for one that calls itself, or is called with
    another number of arguments.

    >>> import tir
    >>> from tir.script import ir as I, tir as T
    >>> @I.ir_module
    ... class Module:
    ...     @T.prim_func(private=True)
    ...     def square(x: T.float32) -> T.float32:
    ...         return x * x
    ...     @T.prim_func
    ...     def main(A: T.Buffer((4,), "float32")):
    ...         for i in range(4):
    ...             A[i] = Module.square(A[i])
    >>> made = tir.transform.inline_functions(Module)
    >>> list(made)
    ['main']
    >>> made["main"].body
    for i in range(4):
        A[i] = T.Let(x * x, where={x: A[i]})
    """
    values = {name: value for name, func in mod.items() if (value := _value_of(func)) is not None}
    if not values:
        return mod
    inliner = _Inliner(mod, values)
    functions = {name: func.with_body(inliner.without_calls(func.body, (name,))) for name, func in mod.items()}
    gone = inliner.called.union(name for name in values if "global_symbol" not in mod[name].attrs)
    return mod.replace(functions=frozendict({name: func for name, func in functions.items() if name not in gone}))


class _Inliner:
    def __init__(self, mod: IRModule, values: Mapping[str, Expr]):
        self.mod, self.values = mod, values
        self.called: set[str] = set()

    def without_calls(self, item: Any, callers: tuple[str, ...]) -> Any:
        return rewrite(item, lambda e: self._inlined(e, callers) if isinstance(e, Call) else None)

    def _inlined(self, e: Call, callers: tuple[str, ...]) -> Expr | None:
        if e.op != "call_global" or (name := string_arg(e.args[0])) not in self.values:
            return None
        args, params = e.args[1:], self.mod[name].params
        if name in callers:
            raise BuildError(f"{name} calls itself ({' -> '.join((*callers, name))}); on a GPU, functions do not")
        if len(args) != len(params):
            raise BuildError(f"{callers[-1]}: its call of `{name}` has {len(args)} arguments; it takes {len(params)}")
        self.called.add(name)
        value = self.without_calls(_with_new_names(self.values[name]), (*callers, name))
        for param, arg in zip(params, args):
            given = arg if arg.dtype == param.dtype else cast(str(param.dtype), arg)
            if isinstance(given, Var) or is_const(given):
                value = substitute(value, {param: given})
            else:
                own = Var(param.name, param.dtype)
                value = Let(own, given, substitute(value, {param: own}))
        return value if e.dtype in ("void", value.dtype) else cast(str(e.dtype), value)


def _value_of(func: PrimFunc) -> Expr | None:
    """What a function of scalars returns, as an expression; None if it does anything else, or nothing."""
    if func.ret_type.code == "void" or any(p.dtype.is_handle for p in func.params):
        return None
    return _returned([func.body], func.ret_type)


def _returned(stmts: list[Any], dtype: DType) -> Expr | None:
    """What statements return, one after another, of which the later ones run where the first returns nothing."""
    if not stmts:
        return None
    first, *rest = stmts
    if isinstance(first, SeqStmt):
        return _returned([*first.stmts, *rest], dtype)
    if isinstance(first, BlockRealize) and _is_plain(first.block):
        return _returned([first.block.body, *rest], dtype)
    if isinstance(first, LetStmt):
        body = _returned([first.body, *rest], dtype)
        return None if body is None else Let(first.var, first.value, body)
    if isinstance(first, IfThenElse):
        other = rest if first.else_case is None else [first.else_case, *rest]
        yes, no = _returned([first.then_case, *rest], dtype), _returned(other, dtype)
        return None if yes is None or no is None else call("if_then_else", first.condition, yes, no, dtype=str(dtype))
    if isinstance(first, Evaluate) and isinstance(first.value, Call) and first.value.op == "ret":
        value = first.value.args[0]
        return value if value.dtype == dtype else cast(str(dtype), value)
    return None


def _is_plain(block: Block) -> bool:
    return not (block.iter_vars or block.alloc_buffers or block.match_buffers or block.init)


def _with_new_names(value: Expr) -> Expr:
    """``value`` with variables of its own for what it binds."""

    def renamed(e: Any) -> Expr | None:
        if not isinstance(e, Let):
            return None
        own = Var(e.var.name, e.var.dtype)
        return Let(own, e.value, substitute(e.body, {e.var: own}))

    return rewrite(value, renamed)
