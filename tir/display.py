"""Tables and figures that are shown the same way everywhere: as text, and in a notebook as HTML and SVG that follow its
light or dark theme."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from html import escape
from typing import Any, TypeVar

_Self = TypeVar("_Self")

# The colour of text: JupyterLab's, VS Code's, the site's, or by what the reader's system prefers where a page says nothing.
_TEXT = "var(--jp-content-font-color1, var(--vscode-editor-foreground, var(--md-typeset-color, {})))"
STYLE = (
    f".tir-shown{{color:{_TEXT.format('#1f2328')}}}"
    f"@media (prefers-color-scheme:dark){{.tir-shown{{color:{_TEXT.format('#e6edf3')}}}}}"
)
SHORT = 16  # characters in a cell that never wraps
YES, NO, FAINT = "#3f9142", "#d1434b", "#848d97"  # mid-tones, legible on white and on black


def duration(seconds: float, digits: int = 4) -> str:
    """A time with a unit.

    >>> duration(0.00123), duration(1.5e-6), duration(12), duration(0.0021543, 3)
    ('1.23 ms', '1.5 us', '12 s', '2.15 ms')
    """
    if not math.isfinite(seconds):
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.{digits}g} {unit}"
    return f"{seconds * 1e9:.{digits}g} ns"


def size_text(count: int) -> str:
    """Bytes in readable units."""
    return f"{count // 1024} KB" if count % 1024 == 0 else f"{count} B"


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Container[int] = ()) -> str:
    """Rows under a head (empty: none), columns as wide as they need; the columns numbered in ``right`` are aligned there.

    >>> print(text_table(("loop", "runs"), [("i", "1"), ("j", "128")], right=[1]))
    loop  runs
    i        1
    j      128
    """
    lines = [line for line in (tuple(head), *map(tuple, rows)) if line]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if k in right else cell.ljust(w) for k, (cell, w) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str = "",
    *,
    right: Container[int] = (),
    code: Container[int] = (),
    bold: Container[int] = (),
    titles: Sequence[str] = (),
) -> str:
    """The same as an HTML table. Long cells wrap, so that nothing is cut at the page's edge; leading spaces indent.

    ``right`` and ``code`` number columns, aligned right and shown as code; ``bold`` numbers rows; ``titles`` has what a
    reader sees by pointing at each row.

    >>> html_table((), [("1", "x < y")], right=[0], code=[1]).count("<code>x &lt; y</code>")
    1
    """
    above = f"<p><b>{escape(caption)}</b></p>" if caption else ""
    names = "".join(_cell("th", cell, k in right, False) for k, cell in enumerate(head))
    body = "".join(
        _row_start(k in bold, titles[k] if titles else "")
        + "".join(_cell("td", cell, c in right, c in code) for c, cell in enumerate(row))
        + "</tr>"
        for k, row in enumerate(rows)
    )
    table = f"<table>{f'<thead><tr>{names}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
    return f'{above}<div style="overflow-x:auto">{table}</div>'


def _row_start(bold: bool, title: str) -> str:
    style = ' style="font-weight:bold"' if bold else ""
    return f'<tr{style} title="{escape(title)}">' if title else f"<tr{style}>"


def _cell(tag: str, text: str, right: bool, code: bool) -> str:
    indent = len(text) - len(text.lstrip())
    shown = escape(text.strip())
    wraps = "normal" if len(shown) > SHORT and not right else "nowrap"
    style = f"text-align:{'right' if right else 'left'};white-space:{wraps};padding-left:{0.5 + indent / 2}em"
    return f'<{tag} style="{style}">{f"<code>{shown}</code>" if code else shown}</{tag}>'


def svg_figure(width: float, height: float, *parts: str) -> str:
    """An SVG of this size in pixels. Its text and what is drawn in ``currentColor`` have the colour of the page's text."""
    box = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    look = 'class="tir-shown" fill="currentColor" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} {look}><style>{STYLE}</style>{"".join(parts)}</svg>'


def svg_text(x: float, y: float, words: str, anchor: str = "start", **attributes: str) -> str:
    """Words in a figure; ``attributes`` are those of SVG, with ``_`` for ``-``."""
    extra = "".join(f' {k.replace("_", "-")}="{escape(v)}"' for k, v in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def svg_box(x: float, y: float, width: float, height: float, fill: str, title: str = "", **attributes: str) -> str:
    """A rectangle in a figure, with a title that a reader sees by pointing at it."""
    extra = "".join(f' {k.replace("_", "-")}="{escape(v)}"' for k, v in attributes.items())
    inside = f"<title>{escape(title)}</title>" if title else ""
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{max(height, 1):.1f}" fill="{fill}"'
    return f"<rect {shape}{extra}>{inside}</rect>"


class Shown(str):
    """Text that is shown as it is, also as the value of a cell or a prompt's line, rather than as one escaped line.

    >>> Shown("a line\\nanother")
    a line
    another
    """

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="line-height:1.4;overflow-x:auto">{escape(self)}</pre>'


class CallableReport:
    """A report that says itself again when it is called: ``module.report`` and ``module.report()`` are the same."""

    def __call__(self: _Self) -> _Self:
        return self


# The languages of sources by kind, as pygments calls them; it lacks that of "sass" (its own "sass" is style sheets).
LANGUAGES = {
    "tir": "python", "lowered": "python", "llvm": "llvm", "llvm-opt": "llvm", "asm": "gas", "cuda": "cuda",
    "ptx": "ptx", "sass": "text",
}  # fmt: skip


class Source(Shown):
    """A generated source, a plain string; in a notebook its ``kind`` is highlighted if pygments is there.

    >>> Source("define void @f()", "llvm")
    define void @f()
    """

    kind: str

    def __new__(cls, text: str, kind: str) -> Source:
        made = str.__new__(cls, text)
        made.kind = kind
        return made

    def __reduce__(self) -> tuple[type[Source], tuple[str, str]]:
        return Source, (str(self), self.kind)

    def _repr_html_(self) -> str:
        language = LANGUAGES.get(self.kind, "text")
        if language == "python":
            from .render import to_html

            return to_html(self)
        body = "\n".join(highlighted_lines(self, language))
        return f'<pre style="line-height:1.4;overflow-x:auto"><code style="white-space:pre">{body}</code></pre>'


# Colours of pygments' tokens, mid-tones for light and dark pages, by the beginning of the token's name.
_TOKENS = {
    "Token.Keyword": "#a455c7", "Token.Name.Function": "#1b8a9e", "Token.Name.Variable": "#4078c8",
    "Token.Name.Builtin": "#4078c8", "Token.Literal.String": "#3f9142", "Token.Literal.Number": "#b7791f",
    "Token.Comment": FAINT, "Token.Name.Label": "#1b8a9e",
}  # fmt: skip


def highlighted_lines(text: str, language: str) -> list[str]:
    """The lines of ``text`` as HTML, in colour where pygments is installed and knows the language."""
    try:
        from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
        from pygments.util import ClassNotFound
    except ImportError:
        return escape(text).splitlines()
    try:
        lexer: Any = get_lexer_by_name(language, stripnl=False, ensurenl=False)  # pyright: ignore[reportUnknownVariableType]
    except ClassNotFound:
        return escape(text).splitlines()
    parts = ((str(kind), line) for kind, part in lexer.get_tokens(text) for line in part.splitlines(keepends=True))
    return "".join(_coloured(kind, part) for kind, part in parts).splitlines()


def _coloured(kind: str, part: str) -> str:
    colour = next((c for name, c in _TOKENS.items() if kind.startswith(name)), "")
    if not colour or not part.strip():
        return escape(part)
    end = "\n" if part.endswith("\n") else ""
    return f'<span style="color:{colour}">{escape(part.rstrip(chr(10)))}</span>{end}'
