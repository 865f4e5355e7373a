"""Graphs from the text that they print as."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from ..checked import checked
from ..dtype import DType
from ..errors import ModelError, TirError
from .graph import Graph, Node, Value
from .sizes import Extent, Size, read_size

_NAME = r"""%(?:\w+|"(?:[^"\\]|\\.)*")"""
_VALUE = re.compile(rf"({_NAME}): (\w+)\[([^\[\]]*)\]")
_TEXT_OR_NAME = re.compile(rf"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|{_NAME}""")
_NODE = re.compile(r"(.*?) = ([\w.]+)\((.*)\)")
_RESULT = re.compile(rf"""(\w+|"(?:[^"\\]|\\.)*")=({_NAME})""")
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


@checked
def parse(text: str, constants: Mapping[str, Any] | None = None) -> Graph:
    """The graph that prints as ``text``; ``constants`` has an array for each constant, which are no part of the text.

    Raises ``ModelError`` for what is no such text, with the line, for a constant without an array, and for a graph that is
    none, as :meth:`Graph.verify` does. The names that nodes had in another model are not in the text.

    >>> import numpy as np
    >>> from tir.graph import Builder, parse
    >>> b = Builder()
    >>> graph = b.graph(b.call("sum", b.call("multiply", b.input("x", (2, 3)), b.constant(np.ones(3), "w")), (1,)))
    >>> str(parse(str(graph), {"w": np.ones(3)})) == str(graph)
    True
    """
    return _Reader(text, dict(constants or {})).graph()


class _Reader:
    """One text. ``values`` are those that lines before define."""

    def __init__(self, text: str, arrays: dict[str, Any]):
        self.lines = [line for line in enumerate(text.splitlines(), 1) if line[1].strip()]
        self.number = 1
        self.values: dict[str, Value] = {}
        self.arrays = arrays

    def graph(self) -> Graph:
        if len(self.lines) < 2:
            raise ModelError("the text of a graph has a line `graph(…)`, and a last line `return …`")
        inputs: tuple[Value, ...] = ()
        outputs: dict[str, Value] = {}
        nodes, constants, limits = [], {}, {}
        for at, (number, written) in enumerate(self.lines):
            self.number, line = number, written.strip()
            if at == 0:
                inputs = tuple(self._defined(self._inside("graph", line)))
            elif at == len(self.lines) - 1:
                outputs = self._results(line)
            elif line.startswith("where "):
                limits.update([self._limit(line.removeprefix("where "))])
            elif line.endswith(" = constant"):
                (value,) = self._defined(line.removesuffix(" = constant"))
                constants[value] = self._array(value)
            else:
                nodes.append(self._node(line))
        made = Graph(inputs, tuple(nodes), outputs, constants, limits)
        made.verify()
        return made

    def _fail(self, what: str) -> NoReturn:
        raise ModelError(f"line {self.number} of the graph: {what}")

    def _limit(self, text: str) -> tuple[Size, tuple[int, int | None]]:
        try:
            low, size, *high = text.split(" <= ", 2)
            limited = read_size(ast.parse(size, mode="eval").body)
            assert isinstance(limited, Size)
            return limited, (int(low), int(high[0]) if high else None)
        except (SyntaxError, ValueError, AssertionError):
            self._fail(f"`{text}` is no limit of a size: `2 <= n <= 64`")

    def _inside(self, word: str, line: str) -> str:
        if not (line.startswith(f"{word}(") and line.endswith(")")):
            self._fail(f"expected `{word}(…)`, found `{line}`")
        return line[len(word) + 1 : -1]

    def _defined(self, text: str) -> Iterator[Value]:
        """Values with their types, one after another, which are defined from here on."""
        found = list(_VALUE.finditer(text))
        if ", ".join(match[0] for match in found) != text:
            self._fail(f"expected values such as `%x: float32[2, 3]`, found `{text}`")
        for name, dtype, sizes in (match.groups() for match in found):
            shape = self._sizes(sizes)
            try:
                value = Value(_name(name), shape, DType(dtype))
            except (ValueError, TirError):
                self._fail(f"{dtype!r} is no type of tensors")
            if value.name in self.values:
                self._fail(f"%{value.name} has two definitions")
            self.values[value.name] = value
            yield value

    def _sizes(self, text: str) -> tuple[Extent, ...]:
        """The sizes of a value: numbers, and expressions of symbols."""
        try:
            shape = ast.parse(f"[{text}]", mode="eval").body
            assert isinstance(shape, ast.List)
            sizes = tuple(map(read_size, shape.elts))
            assert all(isinstance(s, Size) or s >= 0 for s in sizes)
            return sizes
        except (SyntaxError, ValueError, AssertionError, RecursionError, MemoryError):
            self._fail(f"expected values such as `%x: float32[2, n]`, found `[{text}]`")

    def _used(self, name: str) -> Value:
        if name not in self.values:
            self._fail(f"%{name} is not defined before it")
        return self.values[name]

    def _array(self, value: Value) -> np.ndarray:
        if value.name not in self.arrays:
            self._fail(f"there is no array for the constant {value}: give it as constants={{{value.name!r}: …}}")
        return np.asarray(self.arrays[value.name])

    def _results(self, line: str) -> dict[str, Value]:
        found = _RESULT.findall(line.removeprefix("return "))
        if line != f"return {', '.join(f'{name}={value}' for name, value in found)}":
            self._fail(f"expected `return y=%value`, found `{line}`")
        return {_name(f"%{name}"): self._used(_name(value)) for name, value in found}

    def _node(self, line: str) -> Node:
        match = _NODE.fullmatch(line)
        if match is None:
            self._fail(f"expected `%y: float32[2] = operator(x=%x)`, found `{line}`")
        given, operator, arguments = match.groups()
        named = _TEXT_OR_NAME.sub(lambda m: f"__value__({_name(m[0])!r})" if m[0][0] == "%" else m[0], arguments)
        try:
            call = ast.parse(f"_({named})", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            call = None
        if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
            self._fail(f"the arguments `{arguments}` are no `name=value, …`")
        held = {str(k.arg): self._argument(k.value) for k in call.keywords}
        return Node(operator, held, tuple(self._defined(given)))

    def _argument(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__value__":
            return self._used(ast.literal_eval(node.args[0]))
        if isinstance(node, ast.List):
            return tuple(map(self._argument, node.elts))
        if isinstance(node, ast.Name) and node.id in _NUMBERS:
            return _NUMBERS[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            number = self._argument(node.operand)
            if isinstance(number, (int, float)):
                return -number
        if isinstance(node, (ast.Name, ast.BinOp, ast.Call)):
            try:
                return read_size(node)
            except ValueError:
                pass
        if not isinstance(node, ast.Constant):
            self._fail(f"`{ast.unparse(node)}` is no value, number, text or list")
        return node.value


def _name(written: str) -> str:
    """The name of a value from how it is written."""
    return ast.literal_eval(written[1:]) if written[1] == '"' else written[1:]
