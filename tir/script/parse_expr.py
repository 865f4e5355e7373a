"""Expressions of the dialect: evaluates Python syntax over Python values and IR expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .. import expr as _e
from ..buffer import Buffer, BufferRegion, decl_buffer
from ..errors import TirError
from ..expr import Expr, Var
from ..neighbours import call_here, library_of, written_here
from ..node import Node, Span
from .diagnostics import Abort, Diagnostic, Source, did_you_mean, type_name
from .environment import Environment
from .operators import MOST_BITS, choose, combine, compare, plain
from .scope import POISON, Scope, Variable
from .values import index_tuple, to_expr

_MISSING = object()


class ExprParser:
    """Scopes, errors, and the evaluation of expressions."""

    change: Callable[[str, Scope], None]  # what the part that knows names provides

    def __init__(self, source: Source, env: Environment):
        self.source = source
        self.env = env
        self.scopes: list[Scope] = []
        self.diagnostics: list[Diagnostic] = []
        self.cause: BaseException | None = None
        self.pointers: dict[Var, Buffer] = {}
        self.expansions: list[str] = []

    # ------------------------------------------------------------ errors

    def report(self, node: ast.AST | Span, message: str, *notes: str) -> None:
        """Record an error and continue."""
        span = node if isinstance(node, Span) else self.source.span(node)
        self.diagnostics.append(Diagnostic(span, message, [*notes, *reversed(self.expansions)], self.source))

    def fail(self, node: ast.AST, message: str, *notes: str) -> NoReturn:
        """Record an error and leave the statement."""
        self.report(node, message, *notes)
        raise Abort

    # ------------------------------------------------------------ names

    def find(self, name: str) -> Any:
        """The value of a name in this scope, or the missing marker."""
        for scope in reversed(self.scopes):
            if name in scope.names:
                return scope.names[name]
        return self.env.get(name, _MISSING)

    def name(self, node: ast.Name) -> Any:
        for depth, scope in enumerate(reversed(self.scopes)):
            if node.id in scope.names:
                if node.id in scope.stale:
                    self.change(node.id, scope)
                    self.fail(
                        node,
                        f"`{node.id}` was assigned again in an inner scope (line {scope.stale[node.id]}), "
                        "which does not change it here",
                        "names hold one value; keep a value that changes in a buffer: "
                        f'{node.id} = T.alloc_buffer((1,), dtype, scope="local")',
                    )
                value = scope.names[node.id]
                if value is POISON:
                    raise Abort
                for inner in self.scopes[len(self.scopes) - depth :]:
                    inner.read.add(node.id)
                if isinstance(value, Variable):
                    return _e.BufferLoad(value.buffer, (_e.IntImm(0),))
                return self.env.read(value)
        value = self.env.get(node.id, _MISSING)
        if value is _MISSING:
            known = [n for scope in self.scopes for n in scope.names]
            here = written_here(node.id)
            notes = did_you_mean(node.id, known) or [f"write {here}"] * (here is not None)
            self.fail(node, f"undefined name `{node.id}`", *(notes or did_you_mean(node.id, [*self.env], 0.75)))
        return self.env.read(value)

    def _scoped(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        """The value of an expression in a scope with these names."""
        self.scopes.append(Scope(dict(names)))
        try:
            return self.ev(node)
        finally:
            self.scopes.pop()

    # ------------------------------------------------------------ evaluation

    def ev(self, node: ast.expr) -> Any:
        """The value of an expression. An error in it is recorded at its innermost part."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            kind = _UNSUPPORTED.get(type(node), type(node).__name__)
            self.fail(node, f"{kind} is not part of the dialect")
        try:
            return handler(self, node)  # type: ignore[misc]
        except (Abort, RecursionError):
            raise
        except Exception as exc:
            self.fault(node, exc)

    def fault(self, node: ast.AST, exc: Exception) -> None:
        """Record what Python or the IR constructors raised for ``node``."""
        self.cause = self.cause or exc
        text = exc.args[0] if isinstance(exc, KeyError) and exc.args else str(exc)
        if not isinstance(exc, (TypeError, ValueError, ArithmeticError, AttributeError, TirError)):
            text = f"{type(exc).__name__}: {text}"
        head, *notes = str(text).split("; did you mean ")
        here = call_here(ast.unparse(node.func)) if isinstance(node, ast.Call) and "; write " not in head else None
        self.fail(node, head, *(f"did you mean {n}" for n in notes), *([f"write {here}"] if here else []))

    def value(self, node: ast.expr) -> Expr:
        """The value as an IR expression."""
        found = self.ev(node)
        try:
            return to_expr(found)
        except TypeError as exc:
            return self.fail(
                node,
                str(exc)
                if isinstance(found, (Buffer, BufferRegion))
                else f"an expression is expected here, not a {type_name(found)}",
            )

    def constant(self, node: ast.expr) -> Any:
        """The value of a constant of a module."""
        value = self.ev(node)
        try:
            return self.env.bound(value)
        except ValueError as exc:
            return self.fault(node, exc)

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, int) and node.value.bit_length() > MOST_BITS:
            self.fail(node, f"this integer has more than {MOST_BITS} bits")
        return node.value

    def _sequence(self, node: Any) -> Any:
        items: list[Any] = []
        for item in node.elts:
            items.extend(self.ev(item.value)) if isinstance(item, ast.Starred) else items.append(self.ev(item))
        return {ast.Tuple: tuple, ast.List: list, ast.Set: set}[type(node)](items)

    def _dict(self, node: ast.Dict) -> Any:
        result: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values):
            result.update(self.ev(item)) if key is None else result.__setitem__(self.ev(key), self.ev(item))
        return result

    def _slice(self, node: ast.Slice) -> Any:
        return slice(*(None if part is None else self.ev(part) for part in (node.lower, node.upper, node.step)))

    def _binary(self, node: ast.BinOp) -> Any:
        chain: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):  # long sums nest to the left: no recursion for them
            chain.append(left)
            left = left.left
        result = self.ev(left)
        for step in reversed(chain):
            right = self.ev(step.right)
            try:
                result = self.env.operate(step.op, result, right)
            except (Abort, RecursionError):
                raise
            except Exception as exc:
                self.fault(step, exc)
        return result

    def _unary(self, node: ast.UnaryOp) -> Any:
        x = plain(self.ev(node.operand))
        if isinstance(node.op, ast.Not):
            return _e.logical_not(x) if isinstance(x, Expr) else not x
        if isinstance(node.op, ast.USub):
            return -x
        return ~x if isinstance(node.op, ast.Invert) else +x

    def _bool(self, node: ast.BoolOp) -> Any:
        conjunction = isinstance(node.op, ast.And)
        return combine(conjunction, [lambda item=item: self.ev(item) for item in node.values])

    def _compare(self, node: ast.Compare) -> Any:
        left = self.ev(node.left)
        result: Any = True
        for op, item in zip(node.ops, node.comparators):
            right = self.ev(item)
            step = compare(op, left, right)
            if isinstance(result, Expr) or isinstance(step, Expr):
                result = step if result is True else _e.logical_and(result, step)
            else:
                result = step
                if not step:
                    return step
            left = right
        return result

    def _ternary(self, node: ast.IfExp) -> Any:
        condition = plain(self.ev(node.test))
        if not isinstance(condition, Expr):
            return self.ev(node.body if condition else node.orelse)
        return choose(condition, self.ev(node.body), self.ev(node.orelse))

    def _attribute(self, node: ast.Attribute) -> Any:
        base = self.ev(node.value)
        try:
            return self.env.attribute(base, node.attr)
        except AttributeError as exc:
            if base is _dialect() or isinstance(base, Buffer) or "did you mean" in str(exc):
                raise
            return self.fail(
                node, f"{type_name(base)} has no attribute `{node.attr}`", *did_you_mean(node.attr, dir(base))
            )

    def _subscript(self, node: ast.Subscript) -> Any:
        base = self.ev(node.value)
        index = self.ev(node.slice)
        buffer = self.as_buffer(base)
        if buffer is not None:
            return index_tuple(buffer, index if isinstance(index, tuple) else (index,))
        if isinstance(base, (Expr, BufferRegion)):
            self.fail(
                node, f"`{ast.unparse(node.value)}` is a {type_name(base)} and cannot be indexed", "index a buffer"
            )
        return self.env.item(base, index)

    def as_buffer(self, base: Any) -> Buffer | None:
        """The buffer that can be indexed through ``base``: itself, or the memory of an allocated pointer."""
        if isinstance(base, Buffer):
            return base
        return self.pointers.get(base) if isinstance(base, Var) else None

    def declare_pointer(self, var: Var, dtype: str, extents: tuple[Expr, ...]) -> None:
        """Let an allocated pointer be indexed as a buffer of its extents."""
        self.pointers[var] = decl_buffer(extents, dtype, name=var.name, data=var)

    def _call(self, node: ast.Call) -> Any:
        fn = self.ev(node.func)
        args: list[Any] = []
        for item in node.args:
            args.extend(self.ev(item.value)) if isinstance(item, ast.Starred) else args.append(self.ev(item))
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.ev(keyword.value)
            named.update(value) if keyword.arg is None else named.__setitem__(keyword.arg, value)
        expand = getattr(fn, "expand_into", None)
        if expand is not None:
            return expand(self, node, args, named)
        if not callable(fn) or isinstance(fn, Node):
            self.fail(node, f"`{ast.unparse(node.func)}` is a {type_name(fn)} and cannot be called")
        self.refuse_library(node, fn, [*args, *named.values()])
        return self.env.call(node, fn, args, named)

    def refuse_library(self, node: ast.Call, fn: Any, args: list[Any]) -> None:
        """Record an error for a function of another library that is given a value of the program."""
        library = library_of(fn)
        given = next((x for x in args if isinstance(x, (Expr, Buffer, BufferRegion))), None)
        if library is None or given is None:
            return
        name = getattr(fn, "__name__", ast.unparse(node.func))
        here = written_here(name)
        self.fail(
            node,
            f"`{ast.unparse(node.func)}` of {library} computes with Python's numbers and arrays, and is given a {type_name(given)}, "
            "whose value is not known while the program is being built",
            f"write {here}" if here is not None else "write it with loops, stores and the functions of T",
        )

    def _python(self, node: ast.expr) -> Any:
        return self.env.evaluate(node, self.name, self._scoped)


def _dialect() -> Any:
    from . import tir

    return tir


_HANDLERS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Constant: ExprParser._constant, ast.Name: ExprParser.name, ast.Tuple: ExprParser._sequence,
    ast.List: ExprParser._sequence, ast.Set: ExprParser._sequence, ast.Dict: ExprParser._dict,
    ast.Slice: ExprParser._slice, ast.BinOp: ExprParser._binary, ast.UnaryOp: ExprParser._unary,
    ast.BoolOp: ExprParser._bool, ast.Compare: ExprParser._compare, ast.IfExp: ExprParser._ternary,
    ast.Attribute: ExprParser._attribute, ast.Subscript: ExprParser._subscript, ast.Call: ExprParser._call,
    ast.ListComp: ExprParser._python, ast.SetComp: ExprParser._python, ast.DictComp: ExprParser._python,
    ast.GeneratorExp: ExprParser._python, ast.Lambda: ExprParser._python, ast.JoinedStr: ExprParser._python,
}  # fmt: skip
_UNSUPPORTED = {
    ast.NamedExpr: "the walrus `:=`",
    ast.Await: "`await`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield from`",
    ast.Starred: "a starred expression here",
}
