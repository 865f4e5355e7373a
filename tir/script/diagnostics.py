"""Errors in a program text: the place, what is wrong, what was expected; and how they are shown."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ParseError
from ..names import resembling
from ..node import Span


@dataclass
class Source:
    """A piece of a file: ``lines`` as the user wrote them, the file line of the first, the dedent applied to parse."""

    filename: str
    lines: Sequence[str]
    first_line: int = 1
    dedent: int = 0

    def span(self, node: ast.AST) -> Span:
        """The place of a syntax node in the file."""
        line = getattr(node, "lineno", 1)
        end = getattr(node, "end_lineno", None) or line
        return Span(
            self.filename,
            line + self.first_line - 1,
            self._column(line, getattr(node, "col_offset", 0)),
            end + self.first_line - 1,
            self._column(end, getattr(node, "end_col_offset", None) or 1),
        )

    def _column(self, line: int, offset: int) -> int:
        """Character column from the UTF-8 byte offset that ``ast`` reports in the dedented text."""
        text = self.line(line + self.first_line - 1)[self.dedent :]
        return self.dedent + (offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore")))

    def line(self, number: int) -> str:
        """The text of a line by its number in the file; empty where there is none."""
        index = number - self.first_line
        return self.lines[index].rstrip("\n") if 0 <= index < len(self.lines) else ""


@dataclass
class Diagnostic:
    """One error: its place, one sentence, and notes."""

    span: Span
    message: str
    notes: list[str] = field(default_factory=list)
    source: Source | None = None

    def __str__(self) -> str:
        span = self.span
        text = self.source.line(span.line) if self.source is not None else ""
        margin = len(str(span.line))
        lines = [f"error: {self.message}", f"{' ' * margin}--> {span.filename}:{span.line}:{span.col + 1}"]
        if text:
            end = span.end_col if span.end_line == span.line else len(text)
            marks = "^" * max(1, min(end, len(text)) - span.col)
            shown, marked = _window(text, span.col, marks)
            lines.append(f"{span.line} | {shown}")
            lines.append(f"{' ' * margin} | {marked}")
        lines.extend(f"{' ' * margin} = {note}" for note in self.notes)
        return "\n".join(lines)


_WIDTH = 160


def _window(text: str, col: int, marks: str) -> tuple[str, str]:
    """The line and the marks under it, cut around the marks where the line is very long."""
    before, after = text[:col].expandtabs(4), text[col:].expandtabs(4)
    if len(before) > _WIDTH // 2:
        before = "…" + before[-_WIDTH // 2 :]
    room = _WIDTH - len(before)
    if len(after) > room:
        after, marks = after[:room] + "…", marks[:room]
    return before + after, " " * len(before) + marks


class Abort(Exception):
    """Leaves the statement being parsed; its error is already recorded."""


def parse_error(diagnostics: Sequence[Diagnostic], what: str) -> ParseError:
    """The error that shows ``diagnostics`` found in ``what`` (a function's or module's name)."""
    ordered = sorted(diagnostics, key=lambda d: (d.span.line, d.span.col))
    count = f"{len(ordered)} errors" if len(ordered) != 1 else "1 error"
    error = ParseError("\n".join([f"{count} in {what}", *(str(d) for d in ordered)]))
    error.diagnostics = ordered
    return error


def did_you_mean(name: str, candidates: Iterable[str], likeness: float = 0.6) -> list[str]:
    """A note with the names closest to ``name``, or nothing."""
    pool = [c for c in candidates if isinstance(c, str) and not c.startswith("__") and c != name]
    near = resembling(name, pool, likeness=likeness) or [c for c in pool if c.lower() == name.lower()][:3]
    return ["did you mean " + " or ".join(f"`{n}`" for n in near) + "?"] if near else []


def type_name(value: Any) -> str:
    """How a message names the kind of a value."""
    from ..buffer import Buffer, BufferRegion
    from ..expr import Expr

    if isinstance(value, Expr):
        return f"{value.dtype} expression"
    if isinstance(value, Buffer):
        return f"buffer `{value.name}`"
    if isinstance(value, BufferRegion):
        return f"region of buffer `{value.buffer.name}`"
    described = getattr(value, "described", None)
    if isinstance(described, str):
        return described
    return f"Python {type(value).__name__}"
