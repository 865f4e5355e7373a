"""Where a decorated function's text comes from: files, notebook cells, the REPL, and code run by ``exec``."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from ..errors import ParseError
from ..node import Span
from .diagnostics import Diagnostic, Source, parse_error
from .recover import recover

_UNREADABLE = re.compile("[\x00\ud800-\udfff]")


def lines_of(code: CodeType, module_globals: Mapping[str, Any], what: str) -> Sequence[str]:
    """The lines of the text that ``code`` is from. Raises ``ParseError`` when they cannot be had."""
    filename = code.co_filename
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, dict(module_globals)) or recover(code)
    if not lines:
        raise ParseError(
            f"the source text of {what} is not available: Python keeps no text of what it read from {filename}\n"
            "put it in a file or a notebook, run it by python -c, or parse its text: tir.script.parse(text)"
        )
    return lines


def block_of(code: CodeType, module_globals: Mapping[str, Any], what: str) -> tuple[Source, ast.stmt]:
    """The statement that ``code`` is compiled from, and its source."""
    filename, first_line = code.co_filename, code.co_firstlineno
    block = inspect.getblock(lines_of(code, module_globals, what)[first_line - 1 :])
    dedented = textwrap.dedent("".join(block))
    indent = len(block[0]) - len(block[0].lstrip())
    source = Source(filename, block, first_line, indent)
    tree = parse_text(dedented, source)
    return source, tree.body[0]


def parse_text(text: str, source: Source) -> ast.Module:
    """Python's syntax tree of a text; its syntax errors are ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of Python, which the text is not
            return ast.parse(text)
    except SyntaxError as exc:
        line = (exc.lineno or 1) + source.first_line - 1
        col = source.dedent + max(0, (exc.offset or 1) - 1)
        same_line = exc.end_lineno == exc.lineno and exc.end_offset
        end = source.dedent + exc.end_offset - 1 if same_line and exc.end_offset else col + 1
        span = Span(source.filename, line, col, line, max(col + 1, end))
        fault = Diagnostic(span, f"not Python syntax: {exc.msg}", [], source)
        raise parse_error([fault], "the text") from None
    except ValueError as exc:  # a lone surrogate, or a null byte
        number = next((n for n, line in enumerate(source.lines) if _UNREADABLE.search(line)), 0)
        fault = Diagnostic(Span(source.filename, source.first_line + number), f"not Python text: {exc}", [])
        raise parse_error([fault], "the text") from None
    except (RecursionError, MemoryError):
        fault = Diagnostic(Span(source.filename, source.first_line), "nested too deeply to be parsed", [], source)
        raise parse_error([fault], "the text") from None


def of_function(func: FunctionType) -> tuple[Source, ast.FunctionDef]:
    """The source and the syntax of a Python function."""
    code = func.__code__
    what = f"function `{func.__name__}`"
    if func.__name__ == "<lambda>":
        raise ParseError(
            f"{code.co_filename}:{code.co_firstlineno}: a lambda is one expression, and a program is made of statements\n"
            "legal: decorate a function that is defined by `def`, or tir.script.parse(text)"
        )
    source, node = block_of(code, func.__globals__, what)
    if not isinstance(node, ast.FunctionDef):
        raise ParseError(
            f"{code.co_filename}:{code.co_firstlineno} is not the definition of {what}; was the file edited?"
        )
    return source, node


def closure_of(func: FunctionType) -> dict[str, Any]:
    """The closure variables of a function that have a value by now."""
    found: dict[str, Any] = {}
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def is_class_body(code: CodeType, names: Mapping[str, Any]) -> bool:
    return "__module__" in names and "__qualname__" in names and not code.co_flags & inspect.CO_OPTIMIZED


def decorates_class(code: CodeType, module_globals: Mapping[str, Any], decorator: str) -> bool:
    """Whether the class of this body (its text starts at the first decorator) has a decorator of that name."""
    for line in lines_of(code, module_globals, "the class")[code.co_firstlineno - 1 :]:
        text = line.strip()
        if text.startswith("class "):
            return False
        if text.startswith("@") and decorator in text:
            return True
    return False
