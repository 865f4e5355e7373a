"""Programs in colour: for terminals (ANSI) and notebooks (HTML)."""

from __future__ import annotations

import html
import io
import keyword
import os
import sys
import tokenize
from collections.abc import Iterator

_ANSI = {
    "keyword": "\033[1;35m", "name": "\033[36m", "dialect": "\033[34m", "string": "\033[32m", "number": "\033[33m",
    "comment": "\033[2;3m", "mark": "\033[1;31m",
}  # fmt: skip
_RESET = "\033[0m"
# Mid-tone colours, legible on white and on black.
_CSS = {
    "keyword": "color:#a455c7;font-weight:600", "name": "color:#1b8a9e", "dialect": "color:#4078c8",
    "string": "color:#3f9142", "number": "color:#b7791f", "comment": "color:#848d97;font-style:italic",
    "mark": "color:#d1434b;font-weight:700",
}  # fmt: skip


def show(text: str) -> None:
    """Display a program: HTML in a notebook, colours on a terminal (unless ``NO_COLOR`` is set), else plain text."""
    if _in_notebook():
        from IPython.display import HTML, display  # type: ignore

        display(HTML(to_html(text)))
        return
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(to_ansi(text) if coloured else text)


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def to_ansi(text: str) -> str:
    """``text`` with terminal colours."""
    return "".join(f"{_ANSI[kind]}{part}{_RESET}" if kind else part for kind, part in pieces(text))


def to_html(text: str) -> str:
    """``text`` as a self-contained HTML element.

    >>> to_html("x = 1")
    '<pre style="line-height:1.4;overflow-x:auto"><code style="white-space:pre">x = <span style="color:#b7791f">1</span></code></pre>'
    """
    body = "".join(
        f'<span style="{_CSS[kind]}">{html.escape(part)}</span>' if kind else html.escape(part)
        for kind, part in pieces(text)
    )
    return _listing(body)


def html_lines(text: str) -> list[str]:
    """The lines of ``text`` as HTML."""
    cut = ((kind, line) for kind, part in pieces(text) for line in part.splitlines(keepends=True))
    made = (
        f'<span style="{_CSS[kind]}">{html.escape(line)}</span>' if kind else html.escape(line) for kind, line in cut
    )
    return "".join(made).splitlines()


def _listing(body: str) -> str:
    """Lines that are not wrapped, whatever the page's style does to code."""
    return f'<pre style="line-height:1.4;overflow-x:auto"><code style="white-space:pre">{body}</code></pre>'


class Diff(str):
    """The text of a diff; as the value of a cell or a prompt's line it shows as lines, coloured in a notebook.

    >>> Diff("-a\\n+b")
    -a
    +b
    """

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        css = {"-": "color:#d1434b", "+": "color:#3f9142"}
        lines = []
        for line in self.splitlines():
            style = css.get(line[:1])
            lines.append(f'<span style="{style}">{html.escape(line)}</span>' if style else html.escape(line))
        return _listing("\n".join(lines))


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """``text`` cut into (kind, part), kind empty for what is not coloured. Text that is not Python comes out plain."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    at = 0
    before = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            begin = starts[token.start[0] - 1] + token.start[1]
            kind = _kind(token, before)
            if token.string.strip():
                before = token.string if before != "T" or token.string != "." else "T."
            if not kind or begin < at:
                continue
            if begin > at:
                yield "", text[at:begin]
            at = begin + len(token.string)
            yield kind, text[begin:at]
    except (tokenize.TokenError, SyntaxError, IndexError):
        pass  # an excerpt, or prose: the rest is plain
    if at < len(text):
        yield "", text[at:]


def _kind(token: tokenize.TokenInfo, before: str) -> str:
    if token.type == tokenize.COMMENT:
        return "comment"
    if token.type == tokenize.STRING:
        return "string"
    if token.type == tokenize.NUMBER:
        return "number"
    if token.type == tokenize.NAME:
        if keyword.iskeyword(token.string):
            return "keyword"
        if before in ("def", "class"):
            return "name"
        if token.string in ("T", "I") or before == "T.":
            return "dialect"
    return "mark" if token.type == tokenize.OP and set(token.string) == {"^"} else ""
