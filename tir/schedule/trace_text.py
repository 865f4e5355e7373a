"""Steps of a schedule as text, in Python's form or in JSON: read as data and taken, nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import ParseError, TirError
from ..expr import Var
from .trace import OPERATORS, Trace, function_of, installed

if TYPE_CHECKING:
    from .schedule import Schedule

LARGEST = 1 << 64  # no number that is computed
HANDLE = "sch"  # what a schedule is called where no function says it


def apply_text(text: str, sch: Schedule, filename: str = "<trace>") -> None:
    """Take the steps in a text: JSON as ``trace.as_json()`` gives it, or Python as a trace prints: a function of a schedule, or
    its lines alone. The names in it are those of earlier results; values are literals, sums, products and quotients of integers,
    lambdas of arithmetic, and expressions of the dialect.

    Raises ``ParseError`` for a text that Python does not read, ``TirError`` with the line for anything else that is no step,
    and ``ScheduleError`` for a step that is refused; the steps before stay applied.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
    >>> apply_text('''
    ... i, i_1 = sch.split("i", [2, 2])
    ... sch.parallel(i)
    ... ''', sch)
    >>> again = tir.Schedule(tir.library.rows.row_sum(4, 8))
    >>> apply_text(str(sch.trace), again)
    >>> again
    Schedule of main after 2 steps
    """
    if text.lstrip()[:1] in ("[", "{"):
        Trace.from_json(text).apply_to_schedule(sch)
        return
    from ..script.diagnostics import Source
    from ..script.source import parse_text

    tree = parse_text(text, Source(filename, text.splitlines()))
    try:
        _Reader(sch, text, filename).body(tree)
    except RecursionError:
        raise TirError(f"{filename}: an argument is nested too deeply") from None


class _Reader:
    """Takes steps on a schedule, one statement after another; ``names`` are the results so far."""

    def __init__(self, sch: Schedule, text: str, filename: str):
        self.sch, self.lines, self.filename = sch, text.splitlines(), filename
        self.names: dict[str, Any] = {}
        self.handle = HANDLE

    def body(self, tree: ast.Module) -> None:
        stmts = [s for s in tree.body if not isinstance(s, (ast.Import, ast.ImportFrom))]
        if len(stmts) == 1 and isinstance(stmts[0], ast.FunctionDef):
            given = stmts[0].args
            if len(given.args) != 1 or given.vararg or given.kwarg or given.kwonlyargs or stmts[0].decorator_list:
                raise self.fault(stmts[0], "a function of steps has one parameter, the schedule, and no decorator")
            self.handle, stmts = given.args[0].arg, stmts[0].body
        for stmt in stmts:
            self.statement(stmt)

    def statement(self, stmt: ast.stmt) -> None:
        if isinstance(stmt, ast.Pass):
            return
        if isinstance(stmt, ast.Expr):
            if not isinstance(stmt.value, ast.Constant):  # a docstring
                self.step(stmt.value)
        elif isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
            made = self.size(stmt.value) if isinstance(stmt.value, ast.Subscript) else self.step(stmt.value)
            self.bind(stmt.targets[0], made)
        else:
            raise self.fault(stmt, "is no step: these are sch.name(…) and a, b = sch.name(…)")

    def size(self, node: ast.Subscript) -> Any:
        """The size of the program that ``sch.func.sizes[name]`` is."""
        sizes, name = self.sch.func.sizes, self.value(node.slice)
        if ast.unparse(node.value) != f"{self.handle}.func.sizes" or name not in sizes:
            raise self.fault(node, f"is no size of the program; these are {', '.join(sizes) or 'none'}")
        return sizes[name]

    def step(self, call: ast.expr) -> Any:
        """Take a step, and return its result."""
        func = call.func if isinstance(call, ast.Call) else None
        is_step = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == self.handle
        if not isinstance(call, ast.Call) or not isinstance(func, ast.Attribute) or not is_step:
            raise self.fault(call, f"is no step: one is {self.handle}.name(…)")
        installed(func.attr)
        args = [self.value(a) for a in call.args]
        named = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                raise self.fault(call, "spreads its arguments by **, which a trace does not")
            named[keyword.arg] = self.value(keyword.value)
        return getattr(self.sch, func.attr)(*args, **named)

    def bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
            return
        if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (list, tuple)):
            raise self.fault(target, "is no name for a result")
        if len(target.elts) != len(value):
            raise self.fault(target, f"has {len(target.elts)} names for {len(value)} results")
        for part, one in zip(target.elts, value):
            self.bind(part, one)

    def value(self, node: ast.expr) -> Any:
        """The value of an argument."""
        found = _KINDS.get(type(node))
        return self.expression(node) if found is None else found(self, node)

    def constant(self, node: ast.Constant) -> Any:
        if node.value is not None and not isinstance(node.value, (bool, int, float, str)):
            raise self.fault(node, "is no value of a trace")
        return node.value

    def name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            raise self.fault(node, f"{node.id} is the result of no step before")
        return self.names[node.id]

    def sequence(self, node: ast.List | ast.Tuple) -> Any:
        made = [self.value(each) for each in node.elts]
        return tuple(made) if isinstance(node, ast.Tuple) else made

    def mapping(self, node: ast.Dict) -> Any:
        keys = [None if key is None else self.value(key) for key in node.keys]
        if not all(isinstance(key, (str, int)) for key in keys):
            raise self.fault(node, "has a key that is no text")
        return dict(zip(keys, map(self.value, node.values)))

    def negative(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if not isinstance(node.op, ast.USub) or not isinstance(value, (int, float)):
            return self.expression(node)
        return -value

    def arithmetic(self, node: ast.BinOp) -> Any:
        sign, sides = _SIGNS.get(type(node.op)), (self.value(node.left), self.value(node.right))
        if sign is None or not all(isinstance(side, int) for side in sides):
            return self.expression(node)
        try:
            made = OPERATORS[sign](*sides)
        except ArithmeticError as error:
            raise self.fault(node, str(error)) from None
        if abs(made) >= LARGEST:
            raise self.fault(node, "is too large a number")
        return made

    def function(self, node: ast.Lambda) -> Any:
        return self.read(ast.unparse(node), node)

    def expression(self, node: ast.expr) -> Any:
        """An expression of the dialect."""
        return self.read(f"lambda: {ast.unparse(node)}", node, lambda compute: compute())

    def read(self, text: str, node: ast.expr, use: Callable[[Any], Any] = lambda made: made) -> Any:
        """What ``use`` makes of the function that the text of a lambda computes."""
        try:
            return use(function_of(text, {name: v for name, v in self.names.items() if isinstance(v, Var)}))
        except ParseError as error:
            why = error.diagnostics[0].message if error.diagnostics else str(error)
            raise self.fault(node, f"{text.removeprefix('lambda: ')} is no value of a trace: {why}") from error

    def fault(self, node: ast.AST, why: str) -> TirError:
        line = getattr(node, "lineno", 1)
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        return TirError(f"{self.filename}:{line}: `{text:.100}`: {why}")


_KINDS: dict[type, Callable[[_Reader, Any], Any]] = {
    ast.Constant: _Reader.constant, ast.Name: _Reader.name, ast.List: _Reader.sequence, ast.Tuple: _Reader.sequence,
    ast.Dict: _Reader.mapping, ast.UnaryOp: _Reader.negative, ast.BinOp: _Reader.arithmetic,
    ast.Lambda: _Reader.function,
}  # fmt: skip
_SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
