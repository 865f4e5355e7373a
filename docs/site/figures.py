"""Pages with figures: their Python blocks are run in order, and ``<!-- shows: expression -->`` becomes what a notebook
would show as the value of the expression."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
import types
from collections.abc import Iterator

PIECES = re.compile(r"^```python\n(?P<code>.*?)^```|^<!-- shows: (?P<shown>.*?) -->$", re.M | re.S)


def pieces(markdown: str) -> Iterator[tuple[re.Match[str], str]]:
    """The Python blocks and shown expressions of a page, in order: each with its kind, ``code`` or ``shown``."""
    for found in PIECES.finditer(markdown):
        yield found, found.lastgroup or ""


def with_figures(page: str, markdown: str) -> str:
    """The page with its figures as HTML."""
    module = types.ModuleType("page")  # where dataclasses and functions of the page live
    sys.modules["page"] = module
    parts: list[str] = []
    end = 0
    for found, kind in pieces(markdown):
        if kind == "code":
            run(found["code"], f"<{page} {found.start()}>", module.__dict__)
            continue
        parts += [markdown[end : found.start()], figure(eval(found["shown"], module.__dict__))]
        end = found.end()
    return "".join([*parts, markdown[end:]])


def run(code: str, name: str, namespace: dict[str, object]) -> None:
    """Run a block so that errors and the parser of programs find its lines; what it prints the page says already."""
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, name, "exec"), namespace)


def figure(value: object) -> str:
    """A value as one HTML block without empty lines, as Markdown needs it."""
    shown = value if isinstance(value, str) else value._repr_html_()  # type: ignore[attr-defined]
    lines = (line for line in str(shown).splitlines() if line.strip())
    return f'<div class="tir-figure">{chr(10).join(lines)}</div>'
