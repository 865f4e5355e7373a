"""Changes of loaded modules: the functions of a file get the code of a changed source, without loading anything again."""

from __future__ import annotations

import ast
import functools
import gc
import linecache
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any


class LiveCode:
    """The functions of the loaded modules below ``root``, found once; later definitions are not seen."""

    def __init__(self, root: Path):
        self.root = root
        self.functions: dict[tuple[Any, ...], list[FunctionType]] = defaultdict(list)
        for found in gc.get_objects():  # by their type: some objects of others warn when `isinstance` asks for a class
            if type(found) is FunctionType and found.__code__.co_filename.startswith(f"{root}/"):
                self.functions[_key(found.__code__)].append(found)
        self.modules = {
            module.__file__: module
            for module in list(sys.modules.values())
            if isinstance(module, ModuleType) and (getattr(module, "__file__", None) or "").startswith(f"{root}/")
        }

    def module(self, file: str) -> ModuleType | None:
        """The loaded module of a file; None if nothing has imported it."""
        return self.modules.get(str(self.root / file))

    def change(self, file: str, source: str | ast.Module) -> None:
        """Functions of ``file`` run ``source`` from now on; programs of the dialect in a text are read from it.

        Raises ``ValueError`` where a function would use other variables of those around it.
        """
        path = str(self.root / file)
        old = compile((self.root / file).read_text(encoding="utf-8"), path, "exec", dont_inherit=True)
        if isinstance(source, str):
            linecache.cache[path] = len(source), None, source.splitlines(keepends=True), path
        for before, after in _paired(old, compile(source, path, "exec", dont_inherit=True)):
            for function in self.functions.get(_key(before), ()):
                function.__code__ = after

    def change_table(self, file: str, statement: str) -> None:
        """Run an assignment at module level again; other modules that imported the value get the new one."""
        module = self.module(file)
        assert module is not None
        target = ast.parse(statement).body[0]
        (name,) = {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        old, space = vars(module)[name], dict(vars(module))
        exec(compile(statement, str(self.root / file), "exec"), space)  # noqa: S102
        for other in self.modules.values():
            for alias, value in list(vars(other).items()):
                if value is old and (other is module or alias.strip("_") == name.strip("_")):
                    setattr(other, alias, space[name])


def forget() -> None:
    """Empty the caches of functions, which remember what unchanged code answered."""
    for found in gc.get_objects():
        if type(found) is functools._lru_cache_wrapper:
            found.cache_clear()


def _key(code: CodeType) -> tuple[Any, ...]:
    """What tells functions apart; code objects are not compared, because running them changes them."""
    return code.co_filename, code.co_name, code.co_firstlineno, code.co_code, code.co_linetable


def _nested(code: CodeType) -> Iterable[CodeType]:
    return (c for c in code.co_consts if isinstance(c, CodeType))


def _paired(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The code objects of two versions, by their names and order."""
    yield old, new
    others: dict[str, deque[CodeType]] = defaultdict(deque)
    for inner in _nested(new):
        others[inner.co_name].append(inner)
    for inner in _nested(old):
        if others[inner.co_name]:
            yield from _paired(inner, others[inner.co_name].popleft())


class Counters(ast.NodeTransformer):
    """Every statement and lambda of a function first notes that it runs: ``__hits__[number] = 1``.

    ``numbers`` gives a key its number. Keys name the function and the text of the statement, so that they stay the same
    when lines move.
    """

    def __init__(self, file: str, source: str, numbers: dict[str, int]):
        self.file = file
        self.lines = source.splitlines()
        self.numbers = numbers
        self.names: list[str] = []

    def number(self, line: int) -> int:
        key = statement_key(self.file, self.names, self.lines[line - 1])
        return self.numbers.setdefault(key, len(self.numbers))

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.names.append(node.name)
        node.body = [self.visit(s) for s in node.body]
        self.names.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.names.append(node.name)
        node.body = self.block(node.body)
        self.names.pop()
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.generic_visit(node)
        note = f"__hits__.__setitem__({self.number(node.lineno)}, 1)"
        body = ast.BoolOp(ast.Or(), [ast.parse(note, mode="eval").body, node.body])
        node.body = ast.copy_location(body, node.body)
        ast.fix_missing_locations(node)
        return node

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            note = ast.parse(f"__hits__[{self.number(statement.lineno)}] = 1").body[0]
            for part in ast.walk(note):
                ast.copy_location(part, statement)
            made += [note, self.visit(statement)]
        return made

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if self.names and isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self.block(value))
            elif isinstance(value, list):
                setattr(node, name, [self.visit(v) if isinstance(v, ast.AST) else v for v in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node


def statement_key(file: str, names: Iterable[str], line: str) -> str:
    """What names a statement: its file, the functions around it, and its first line."""
    return f"{file}:{'.'.join(names)}: {line.strip()}"
