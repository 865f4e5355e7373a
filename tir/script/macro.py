"""Macros: parametrized statements of the dialect, expanded at each call."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable
from typing import Any

from ..errors import TirError
from .diagnostics import Source
from .environment import Environment
from .scope import Scope

_DEEPEST = 64
MOST_EXPANDED = 1 << 17  # statements that the macros of one function expand to


class Macro:
    """A function decorated with ``@T.macro``. Calling it inside a prim_func expands its statements there; a final
    ``return`` gives the call its value."""

    described = "T.macro"

    def __init__(self, func: Any, node: ast.FunctionDef, source: Source, env: Environment, hygienic: bool):
        self.node = node
        self.source = source
        self.env = env
        self.hygienic = hygienic
        self.signature = inspect.signature(func if func is not None else _stub(node, env))
        self.__name__ = node.name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TirError(f"macro `{self.node.name}` can be called only inside a function decorated with @T.prim_func")

    def expand_into(self, parser: Any, call: ast.Call, args: list[Any], named: dict[str, Any]) -> Any:
        """Expand the body at ``call``."""
        bound = self.signature.bind(*args, **named)
        bound.apply_defaults()
        if len(parser.expansions) >= _DEEPEST:
            parser.expanded = MOST_EXPANDED + 1
            parser.fail(call, f"macro `{self.node.name}` expands recursively without end")
        saved = parser.source, parser.env, parser.scopes, parser.returned
        place = parser.source.span(call)
        parser.expansions.append(f"in macro `{self.node.name}`, called at {place.filename}:{place.line}")
        inner = Scope(dict(bound.arguments))
        parser.source, parser.returned = self.source, []
        if self.hygienic:
            parser.env, parser.scopes = self.env, [inner]
        else:
            parser.scopes = [*parser.scopes, inner]
        try:
            parser.statements(self.node.body)
            results = parser.returned
        finally:
            parser.source, parser.env, parser.scopes, parser.returned = saved
            parser.expansions.pop()
        if len(results) > 1:
            parser.fail(call, f"macro `{self.node.name}` returns more than once", "one `return`, as its last statement")
        return results[0] if results else None


def _stub(node: ast.FunctionDef, env: Environment) -> Callable[..., Any]:
    """A Python function with the macro's parameters, for its signature."""
    bare = copy.deepcopy(node)
    bare.decorator_list = []
    bare.body = [ast.copy_location(ast.Pass(), node)]
    bare.returns = None
    for arg in [*bare.args.args, *bare.args.kwonlyargs, *bare.args.posonlyargs]:
        arg.annotation = None
    names: dict[str, Any] = {name: env.get(name) for name in env}
    exec(compile(ast.Module([bare], []), "<macro>", "exec"), names)  # only the parameter list
    return names[node.name]
