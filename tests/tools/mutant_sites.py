"""Where a source file can be mutated, and how: every small change of its meaning that we know to make."""

from __future__ import annotations

import ast
import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tests.tools.live_code import statement_key

_COMPARE = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "is not": "is",
    "is": "is not",
    "not in": "in",
    "in": "not in",
}
_ARITHMETIC = {"+": "-", "-": "+", "*": "+", "//": "*", "%": "//"}
_BOOL = {"and": "or", "or": "and"}
_OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any"}
_TEXTS = ("__repr__", "__str__", "_repr_html_")  # functions that only describe
_LARGE = 64  # integers from here on are sizes and limits of effort


@dataclass(frozen=True)
class Mutant:
    """``text`` in place of what stands at ``start:end`` of a file (offsets into its text).

    ``statement`` is the key of what must run for the change to matter. ``table`` is the span of the assignment at module
    level that has to be made again, for a change outside functions. ``number`` counts the mutants with the same key, from 1.
    """

    file: str
    start: int
    end: int
    text: str
    statement: str
    table: tuple[int, int] | None = None
    number: int = 1

    def applied_to(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def assignment(self, source: str) -> str:
        """The changed assignment of a mutant of a table."""
        assert self.table is not None
        return self.applied_to(source)[self.table[0] : self.table[1] + len(self.text) - (self.end - self.start)]

    def diff(self, source: str) -> str:
        lines = difflib.unified_diff(
            source.splitlines(), self.applied_to(source).splitlines(), self.file, self.file, lineterm="", n=2
        )
        return "\n".join(lines)

    def key(self, source: str) -> str:
        """A name that stays when lines move, and goes when the changed line does."""
        first, last = source.rfind("\n", 0, self.start) + 1, source.find("\n", self.end)
        changed = source[first : self.start] + self.text + source[self.end : last]
        place = self.statement.split(": ", 1)[0]
        which = f" ({self.number})" if self.number > 1 else ""
        return f"{place}: {' '.join(source[first:last].split())} => {' '.join(changed.split())}{which}"


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Every mutant of a source file."""
    made, seen = [], Counter[str]()
    for mutant in _Sites(file, source).found:
        key = mutant.key(source)
        seen[key] += 1
        made.append(replace(mutant, number=seen[key]))
    return made


def is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


class _Sites(ast.NodeVisitor):
    """The mutants of one file: inside functions, and in assignments at module level."""

    def __init__(self, file: str, source: str):
        self.file = file
        self.source = source
        self.found: list[Mutant] = []
        self.names: list[str] = []  # of the functions and classes around
        self.statement: str | None = None  # None: nothing here runs again
        self.parsed: str | None = None  # the statement that reads the text of the program around
        self.table: tuple[int, int] | None = None
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.splitlines()
        for statement in ast.parse(source).body:
            self.at_module_level(statement)

    def offset(self, line: int, column: int) -> int:
        """An offset in characters; ``ast`` counts columns in bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.source[start:end]

    def add(self, start: int, end: int, text: str) -> None:
        if self.statement is not None:
            self.found.append(Mutant(self.file, start, end, text, self.statement, self.table))

    def replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        self.add(*self.span(node), text)

    # what runs

    def at_module_level(self, node: ast.stmt) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if _is_assigned(node) else []
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            self.table = self.span(node)
            with self.inside(targets[0].id), self.running(node.lineno):
                self.visit(node)
            self.table = None
        elif not targets:
            self.visit(node)

    @contextmanager
    def running(self, line: int) -> Iterator[None]:
        """A statement or lambda of this line runs when a function does."""
        before = self.statement
        self.statement = self.parsed or statement_key(self.file, self.names, self._lines[line - 1])
        yield
        self.statement = before

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        self.names.append(name)
        yield
        self.names.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if self.statement is None:
            with self.inside(node.name):
                for statement in node.body:
                    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                        self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if any(isinstance(name, ast.Name) and name.id == "T" for d in node.decorator_list for name in ast.walk(d)):
            self.program(node)
        elif node.name not in _TEXTS:
            with self.inside(node.name):
                self.block(node.body)

    def program(self, node: ast.FunctionDef) -> None:
        """A function of the dialect: its text is read when the definition runs, which one at module level does not again."""
        if self.statement is not None:
            before, self.parsed = self.parsed, self.statement
            self.block(node.body)
            self.parsed = before

    def visit_Lambda(self, node: ast.Lambda) -> None:
        table, names, self.table = self.table, self.names, None
        self.names = names if table is None else []
        with self.running(node.lineno):
            self.visit(node.body)
        self.table, self.names = table, names

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            with self.running(statement.lineno):
                self.removed(statement)
                self.visit(statement)

    def generic_visit(self, node: ast.AST) -> None:
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                if self.statement is None:
                    for statement in value:
                        self.at_module_level(statement)
                else:
                    self.block(value)
            elif isinstance(value, list):
                for part in value:
                    if isinstance(part, ast.AST):
                        self.visit(part)
            elif isinstance(value, ast.AST):
                self.visit(value)

    # the changes

    def removed(self, node: ast.stmt) -> None:
        """A statement that is not run any more."""
        if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            self.replace(node, "pass")
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _JUMPS):
            self.replace(node.test, "False")

    def between(self, left: ast.expr, right: ast.expr, table: dict[str, str]) -> None:
        """Another operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.source[start:end]
        for operator in sorted(table, key=len, reverse=True):
            pattern = rf"\b{operator}\b" if operator.isidentifier() or " " in operator else re.escape(operator)
            match = re.search(pattern, gap)
            if match is not None:
                self.add(start + match.start(), start + match.end(), table[operator])
                return

    def negate(self, test: ast.expr) -> None:
        self.replace(test, f"(not ({self.text(test)}))")

    def without_one(self, node: ast.expr, elements: Sequence[str], form: str) -> None:
        """A set, tuple or dictionary without one of its elements."""
        for left_out in range(len(elements) if len(elements) > 1 else 0):
            kept = ", ".join(e for i, e in enumerate(elements) if i != left_out)
            self.replace(node, form.format(kept))

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right in zip(operands, operands[1:]):
            self.between(left, right, _COMPARE)
        if isinstance(node.ops[-1], (ast.In, ast.NotIn)):
            self.choices(node.comparators[-1])
        self.generic_visit(node)

    def choices(self, node: ast.expr) -> None:
        if isinstance(node, ast.Tuple):
            self.without_one(node, [self.text(e) for e in node.elts], "({},)")

    def visit_Set(self, node: ast.Set) -> None:
        self.without_one(node, [self.text(e) for e in node.elts], "{{{}}}")
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        if self.table is not None and all(node.keys):
            entries = [f"{self.text(k)}: {self.text(v)}" for k, v in zip(node.keys, node.values) if k is not None]
            self.without_one(node, entries, "{{{}}}")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)) and not _is_text(node):
            self.between(node.left, node.right, _ARITHMETIC)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:]):
            self.between(left, right, _BOOL)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.replace(node, f"bool({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.dump(node.test):
            self.negate(node.test)
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """The condition of a loop is not turned round as a whole: that only skips it or never ends."""
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.negate(test)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace(node, str(not node.value))
        elif isinstance(node.value, int) and node.value < _LARGE:
            self.replace(node, str(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if isinstance(node.func, ast.Name) and name in _OPPOSITE:
            self.replace(node.func, _OPPOSITE[name])
        if name == "isinstance":
            self.choices(node.args[1])
        if name not in ("cast", "TypeVar", "warn") and not name.endswith("Error"):
            self.generic_visit(node)

    # what says nothing of the meaning

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Assertions are for readers and type checkers."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Texts of errors."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are compared by golden cases only; positions inside are not kept by older versions of Python."""


_JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def _is_assigned(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and node.value is not None


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )
