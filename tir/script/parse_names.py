"""Names of the dialect: what an assignment binds, and the names whose value changes.

A name holds one value. One that is assigned again where loops and branches make the difference (``acc += A[i]`` in a loop)
is kept in a buffer of one element, in memory of its own iteration. That a name changes is found where it does, so the
function is then parsed once more, with what is known by then (:class:`Again`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..aliases import reads_memory
from ..buffer import Buffer, BufferRegion
from ..dtype import DType
from ..expr import Expr, Var, const
from ..stmt import LetStmt
from . import frames as f
from .diagnostics import type_name
from .environment import Environment
from .scope import FLAG, Item, Scope, Variable
from .values import to_expr

_IN_A_BUFFER = 'keep a value that changes in a buffer: {0} = T.alloc_buffer((1,), dtype, scope="local")'


class Again(BaseException):
    """Ends the parsing of a function whose ``changing`` names have become more: it begins anew. No error."""


@dataclass(frozen=True)
class Definition:
    """An assignment that gives a name its first value: what is known of the names that change is kept by it."""

    name: str
    node: ast.AST  # by identity: the tree stays as it is

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definition) and (self.name, id(self.node)) == (other.name, id(other.node))

    def __hash__(self) -> int:
        return hash((self.name, id(self.node)))


_VALUES = (Expr, Buffer, BufferRegion, int, float, list, tuple, np.ndarray)  # what a buffer might be given as a whole


class NameParser:
    """The part of the statement parser that knows names."""

    # what the statement parser provides
    source: Any
    env: Environment
    scopes: list[Scope]
    sizes: dict[str, Var]
    threads: dict[Var, str]
    iterators: Any
    fail: Callable[..., NoReturn]
    emit: Callable[[Item], None]
    axis: Callable[..., Any]
    axis_list: Callable[..., Any]
    declare: Callable[..., Any]
    open_over_rest: Callable[..., Any]
    store: Callable[..., None]
    store_to: Callable[..., None]

    def __init__(self, changing: dict[Definition, DType | None] | None = None):
        self.known: set[Var] = set()
        self.changing = {} if changing is None else changing
        self.concurrent: list[str] = []  # the open loops whose iterations run at once

    def define(self, name: str, value: Any) -> Any:
        """Bind a name in this scope."""
        scope = self.scopes[-1]
        scope.names[name] = value
        scope.made.pop(name, None)
        scope.stale.pop(name, None)
        if isinstance(value, Var):
            self.known.add(value)
        return value

    def let(self, name: str, value: Expr, node: ast.AST, var: Var | None = None) -> None:
        """Bind a name to a value of the program for the rest of the scope."""
        definition = Definition(name, node)
        if definition in self.changing:
            self.keep(definition, value, False)
            return
        made = Var(name, value.dtype) if var is None else var
        span = self.source.span(node)
        self.emit(lambda body: LetStmt(made, value, body, span=span))
        self.define(name, made)
        self.scopes[-1].made[name] = node

    def check_new(self, name: str, node: ast.AST) -> None:
        """Iterators and buffers have unique names in a scope: a second one would silently shadow the first."""
        held = self.scopes[-1].names.get(name)
        if name != "_" and (isinstance(held, Buffer) or (isinstance(held, Var) and held in self.iterators)):
            what = "a buffer" if isinstance(held, Buffer) else "an iterator"
            self.fail(node, f"`{name}` is {what} of this scope already", "give each its own name")

    def check_rebinding(self, name: str, node: ast.stmt) -> None:
        """Assigning a name of an outer scope in an inner one defines a new value there only, unless the old value is used,
        now or later, or was in an earlier iteration: then it is a name that changes."""
        if name in self.scopes[-1].names:
            return
        inner = [self.scopes[-1]]
        for scope in reversed(self.scopes[:-1]):
            if name not in scope.names:
                inner.append(scope)
                continue
            held = scope.names[name]
            if not (
                name in scope.made
                or isinstance(held, (int, float))
                or (isinstance(held, Var) and not held.dtype.is_handle)
            ):
                return
            value = getattr(node, "value", None)
            if isinstance(node, ast.AugAssign) or (value is not None and _reads(value, name)):
                self.change(name, scope)
                self.fail(
                    node,
                    f"`{name}` is defined outside this scope and cannot be changed from inside it",
                    _IN_A_BUFFER.format(name)
                    if name in scope.made
                    else f"`{name}` keeps its value: give it to another name, and change that",
                )
            if any(name in s.read for s in inner):
                self.change(name, scope)
            scope.stale[name] = self.source.span(node).line
            return

    # ------------------------------------------------------------ names that change

    def change(self, name: str, scope: Scope) -> None:
        """Begin again, with ``name`` as one that changes; nothing if its definition is not a statement of the function."""
        definition = Definition(name, scope.made[name]) if name in scope.made else None
        if definition is not None and self.env.names_change and definition not in self.changing:
            self.changing[definition] = None
            raise Again

    def keep(self, definition: Definition, value: Any, is_literal: bool) -> None:
        """A name that changes, from here to the end of the scope, with its first value. A number of Python has the type of
        what is assigned later, if that is wider."""
        from .tir import allocate, decl_buffer

        name, node = definition.name, definition.node
        shown = name.split(FLAG)[1] if name.startswith(FLAG) else name
        dtype = self.changing.get(definition) or to_expr(value).dtype
        data = self.open_over_rest(allocate([1], str(dtype), "local"), f"{shown}_data", node)
        buffer = self.declare(shown, decl_buffer((1,), str(dtype), data=data, scope="local"), node)
        self.define(name, Variable(buffer, definition, is_literal, len(self.concurrent)))
        self.store(buffer, (0,), const(value, dtype) if is_literal else value, node)

    def assign(self, variable: Variable, value: Any, node: ast.stmt) -> None:
        """Give a name that changes another value."""
        name = variable.buffer.name
        if len(self.concurrent) > variable.concurrent:
            self.fail(
                node,
                f"`{name}` is defined outside of loop `{self.concurrent[-1]}`, whose iterations run at once, and changed in it",
                f"define `{name}` inside of the loop, or write the reduction as a block with T.init",
            )
        made = to_expr(value)
        held = self.changing.get(variable.definition) or variable.buffer.dtype
        if variable.is_literal and isinstance(value, Expr) and _width(made.dtype) > _width(held):
            self.changing[variable.definition] = made.dtype
            raise Again
        self.store(variable.buffer, (0,), value, node)

    def bind(self, target: ast.expr, value: Any, node: ast.stmt) -> None:
        """``target = value`` in all its forms."""
        if isinstance(target, ast.Name):
            self.bind_name(target.id, value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = self.axis_list(value, len(target.elts), node) if isinstance(value, f.AxisList) else value
            if not isinstance(values, (tuple, list)):
                self.fail(node, f"a {type_name(value)} cannot be unpacked into {len(target.elts)} names")
            if len(values) != len(target.elts):
                self.fail(node, f"{len(values)} values cannot be unpacked into {len(target.elts)} names")
            if any(map(self.is_stored, target.elts[:-1])):
                values = [values[0], *(self.loaded(v, node) for v in values[1:])]
            for item, part in zip(target.elts, values):
                self.bind(item, part, node)
        elif isinstance(target, ast.Subscript):
            self.store_to(target, value)
        elif isinstance(target, ast.Attribute):
            self.fail(target, "an attribute cannot be assigned", "assign to a name or to a buffer element")
        else:
            self.fail(target, "this cannot be assigned to")

    def is_stored(self, target: ast.expr) -> bool:
        """Whether an assignment to ``target`` changes memory."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return any(map(self.is_stored, target.elts))
        return isinstance(target, ast.Subscript) or (
            isinstance(target, ast.Name) and isinstance(self.held(target.id), Variable)
        )

    def loaded(self, value: Any, node: ast.stmt) -> Any:
        """``value``; what it loads from memory is loaded here, and not where it is stored."""
        if isinstance(value, (tuple, list)):
            return [self.loaded(v, node) for v in value]
        if not isinstance(value, (Expr, BufferRegion)) or not reads_memory(to_expr(value)):
            return value
        made, span = Var("value", to_expr(value).dtype), self.source.span(node)
        self.known.add(made)
        self.emit(lambda body: LetStmt(made, to_expr(value), body, span=span))
        return made

    def held(self, name: str) -> Any:
        """What a name is in the innermost scope that has it; None if none has."""
        return next((scope.names[name] for scope in reversed(self.scopes) if name in scope.names), None)

    def bind_name(self, name: str, value: Any, node: ast.stmt) -> None:
        held = self.held(name)
        if isinstance(held, Buffer) and isinstance(value, _VALUES):
            index = ", ".join(["..."] * held.ndim)
            self.fail(node, f"`{name}` is a buffer; values are stored to its elements", f"write {name}[{index}] = ...")
        if isinstance(held, Variable) and isinstance(value, (Expr, BufferRegion, int, float)):
            self.assign(held, value, node)
            return
        if isinstance(value, (f.Axis, f.BufferSpec)):
            self.check_new(name, node)
        if isinstance(value, f.Meta):
            self.define(name, self.env.bound(value.value))
        elif isinstance(value, f.AxisList):
            self.bind(ast.Tuple([ast.Name(name, ast.Store())], ast.Store()), value, node)
        elif isinstance(value, f.Axis):
            self.define(name, self.axis(name, value, node))
        elif isinstance(value, f.BufferSpec):
            self.define(name, self.declare(name, value, node))
        elif isinstance(value, f.EnvThread):
            var = self.define(name, Var(name, value.dtype))
            self.threads[var] = value.thread
        elif isinstance(value, (f.AllocateFrame, f.LaunchFrame, f.LetFrame)):
            self.define(name, self.open_over_rest(value, name, node))
        elif isinstance(value, (f.Frame, f.Directive)):
            self.fail(
                node,
                f"{value.described} has no value to assign",
                "use it as a statement, or open it with `with` or `for`",
            )
        elif isinstance(value, Var) and not value.name and name in self.sizes:
            self.define(name, self.sizes[name])
        elif isinstance(value, Var) and (not value.name or value.dtype.is_handle or value not in self.known):
            self.define(name, value if value.name else value.replace(name=name))
        elif isinstance(value, (Expr, BufferRegion)):
            self.check_rebinding(name, node)
            self.let(name, to_expr(value), node)
        else:
            self.check_rebinding(name, node)
            self.python_value(name, self.env.bound(value), node)

    def python_value(self, name: str, value: Any, node: ast.stmt) -> None:
        """``name = value`` of Python: no statement of the program, unless it is a number that changes."""
        definition = Definition(name, node)
        if isinstance(value, (int, float)) and (definition in self.changing or name.startswith(FLAG)):
            self.keep(definition, value, True)
            return
        self.define(name, value)
        if isinstance(value, (int, float)):
            self.scopes[-1].made[name] = node


def _width(dtype: DType) -> tuple[bool, int, bool]:
    """The order of types in which a number of Python is held: the widest that is assigned to its name."""
    return dtype.is_float, 1 if dtype.is_bool else dtype.bits, dtype.code == "uint"


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(node))
