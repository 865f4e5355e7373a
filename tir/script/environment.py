"""What a text may use of Python: its names, and what attributes, calls, operators and lambdas do.

``Environment`` runs the Python that a text holds. ``Printed`` runs none: it knows what the printer prints. It is the only
difference between :func:`tir.script.parse` and :func:`tir.script.parse_data`.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..buffer import Buffer, BufferRegion
from ..expr import Expr, Var
from ..node import Memo, Node
from ..visit import walk
from .buffer_methods import attribute
from .frames import Frame
from .operators import apply, evaluate, python_function

# The value of an expression in a scope with these names.
Scoped = Callable[[ast.expr, Mapping[str, Any]], Any]


class ModuleNames:
    """Names behind a dot that are the program's own: ``Module.f(...)`` calls function ``f`` of the module."""

    described = "module"

    def __init__(self, names: Mapping[str, Any]):
        self.__dict__.update(names)


class Environment:
    """The Python names around a function, as mappings searched in order, and Python's own meaning of what is done with
    their values."""

    first_error_only = False
    names_change = True  # a name may be assigned again in an inner scope

    def __init__(self, *maps: Mapping[str, Any]):
        self.maps = maps

    def inside(self, *maps: Mapping[str, Any]) -> Environment:
        """The environment with names of an inner scope."""
        made = copy.copy(self)
        made.maps = (*maps, *self.maps)
        return made

    def get(self, name: str, default: Any = None) -> Any:
        for names in self.maps:
            if name in names:
                return names[name]
        return default

    def __iter__(self) -> Iterator[str]:
        for names in self.maps:
            yield from names

    def define(self, name: str, program: Any) -> None:
        """A program that the text has defined by now, under its name."""
        self.maps[0][name] = program  # type: ignore[index]

    def read(self, value: Any) -> Any:
        """The value of a name where it is used."""
        return value

    def bound(self, value: Any) -> Any:
        """A value that is no part of a program, where it is given a name."""
        return value

    def attribute(self, base: Any, name: str) -> Any:
        """``base.name``."""
        return attribute(base, name) if isinstance(base, Buffer) else getattr(base, name)

    def item(self, base: Any, index: Any) -> Any:
        """``base[index]`` of what is no buffer."""
        return base[index]

    def operate(self, op: ast.operator, a: Any, b: Any) -> Any:
        return apply(op, a, b)

    def call(self, node: ast.Call, function: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> Any:
        return python_function(function)(*args, **named)

    def evaluate(self, node: ast.expr, value_of: Callable[[ast.Name], Any], scoped: Scoped) -> Any:
        """A comprehension, a lambda or an f-string: Python evaluates it, over the names that it uses."""
        names: dict[str, Any] = {}
        bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        bound |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load) and child.id not in bound:
                names[child.id] = python_function(value_of(child))
        return evaluate(ast.parse(ast.unparse(node), mode="eval").body, names)


class Printed(Environment):
    """The names ``T`` and ``I`` and what printed programs do with them. Nothing else is evaluated, so that a text from
    anywhere can be read: in time and memory that its length bounds, and with its first error only.

    ``length`` is that of the text. Raises ``ValueError`` for what no printed program has.
    """

    first_error_only = True
    names_change = False  # every assignment of a printed program makes a name

    def __init__(self, length: int, names: Mapping[str, Any] | None = None):
        from . import ir, tir

        super().__init__({**(names or {}), "T": tir, "I": ir, "range": range, "float": float})
        self._budget = _Budget(1000 + 16 * length)

    def read(self, value: Any) -> Any:
        """``value``; the parts of expressions that have names would all be written out where the program is used."""
        if isinstance(value, Expr) and not isinstance(value, Var):
            self._budget.nodes -= _nodes_in(value)
            if self._budget.nodes < 0:
                raise ValueError("the parts of this program's expressions repeat too often to be written out")
        return value

    def bound(self, value: Any) -> Any:
        if not isinstance(value, (Expr, Buffer, BufferRegion, Frame)):
            raise ValueError("a printed program gives names to buffers, variables and parts of expressions only")
        return value

    def attribute(self, base: Any, name: str) -> Any:
        if _prints(base, name):
            return getattr(base, name)
        raise ValueError(f"no printed program has the attribute `{name}` here")

    def item(self, base: Any, index: Any) -> Any:
        raise ValueError("a printed program indexes buffers only")

    def operate(self, op: ast.operator, a: Any, b: Any) -> Any:
        if not all(isinstance(x, (Expr, BufferRegion, int, float)) for x in (a, b)):
            raise ValueError("a printed program computes with expressions and numbers only")
        return apply(op, a, b)

    def call(self, node: ast.Call, function: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> Any:
        if not isinstance(node.func, (ast.Attribute, ast.Name)):
            raise ValueError("a printed program calls functions of the dialect only")
        return super().call(node, function, args, named)

    def evaluate(self, node: ast.expr, value_of: Callable[[ast.Name], Any], scoped: Scoped) -> Any:
        """The lambda of a reducer, as a function that can be called with expressions."""
        if not isinstance(node, ast.Lambda):
            raise ValueError("a printed program has no comprehensions and no f-strings")
        names = [a.arg for a in node.args.args]
        if ast.unparse(node.args) != ", ".join(names):
            raise ValueError("the lambda of a printed program has plain parameters")
        made = lambda *values: scoped(node.body, dict(zip(names, values)))  # noqa: E731
        kind = inspect.Parameter.POSITIONAL_ONLY
        made.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
        return made


@dataclass
class _Budget:
    nodes: int


_NODES: Memo[int] = Memo()


def _nodes_in(x: Expr) -> int:
    """The nodes of an expression with its shared parts written out at each place."""
    inside_out = list(walk(x, lambda n: _NODES.get(n) is None))[::-1]  # recursion would end before Python's stack does
    for n in inside_out:
        if isinstance(n, Node) and _NODES.get(n) is None:
            _NODES[n] = 1 + sum(_NODES.get(c) or 1 for c in n.children())
    return _NODES.get(x) or 1


def _prints(base: Any, name: str) -> bool:
    """Whether a printed program has ``base.name``: a name of the dialect, a function of the module, a buffer's pointer."""
    from . import ir, tir

    if name.startswith("_"):
        return False
    if base is tir:
        return name not in vars(tir) or name in _dialect()
    if base is ir:
        return name in ir.__all__
    if base is tir.axis or isinstance(base, ModuleNames):
        return name in vars(base)
    return isinstance(base, Buffer) and name == "data"


@functools.cache
def _dialect() -> frozenset[str]:
    from . import tir

    return frozenset(dir(tir))
