"""Programs as text: ``to_script``, one-liners for messages, excerpts with the place underlined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..buffer import Buffer
from ..function import IRModule, PrimFunc
from ..node import Node
from ..visit import with_recursion_limit
from .print_expr import MARK, UNMARK
from .print_stmt import STATEMENTS, Printer

_HEADERS: dict[type, list[str]] = {
    PrimFunc: ["# from tir.script import tir as T"],
    IRModule: ["# from tir.script import ir as I", "# from tir.script import tir as T"],
}


@with_recursion_limit
def to_script(
    node: Any, *, syntax_sugar: bool = True, indent: int = 4, name: str | None = None, header: bool = True, **_: Any
) -> str:
    """A function or module as text that parses back to the same program; any other node as :func:`short_text`.

    ``syntax_sugar=False`` spells loops, iterators and parameter buffers in full; ``name`` is what the function or
    class is called; ``header=False`` leaves out the comment that tells the imports.
    """
    if not isinstance(node, (PrimFunc, IRModule)):
        return short_text(node)
    return "\n".join(_program_lines(node, Printer(syntax_sugar, indent), name, header)) + "\n"


def _program_lines(node: Any, printer: Printer, name: str | None = None, header: bool = True) -> list[str]:
    if header:
        printer.lines.extend([*_HEADERS[type(node)], ""])
    if isinstance(node, IRModule):
        printer.module(node, name)
    else:
        printer.function(node, name)
    return printer.lines


def short_text(node: Any) -> str:
    """Any node as source text: an expression or region on one line, a statement as its lines."""
    if isinstance(node, (PrimFunc, IRModule)):
        return to_script(node)
    printer = Printer()
    printer.fragment = True
    if type(node) in STATEMENTS:
        printer.stmt(node)
        return "\n".join(printer.lines)
    if isinstance(node, Buffer):
        return f"{node.name}: {printer.buffer_type(node, 'T.Buffer')}"
    return printer.expr(node) if isinstance(node, Node) else repr(node)


@with_recursion_limit
def to_lines(program: Any, underline: Sequence[Any] = (), context: int = 2, note: str = "here", limit: int = 4) -> str:
    """The lines of ``program`` around the nodes in ``underline``, numbered as in its script, the nodes' text marked
    with ``^^^``. Empty when none of them is in the program; at most ``limit`` places are shown.
    """
    lines = _program_lines(program, Printer(marks=underline), None, True)
    places = [i for i, text in enumerate(lines) if MARK in text][:limit]
    if not places:
        return ""
    width = len(str(places[-1] + 1 + context)) + 1
    shown: list[str] = []
    last = None
    for i, text in enumerate(lines):
        if not any(place - context <= i <= place + min(context, 1) for place in places):
            continue
        if last is not None and i != last + 1:
            shown.append(f"{'...':>{width}} |")
        plain, marks = _split_marks(text)
        shown.append(f"{i + 1:>{width}} | {plain}".rstrip())
        if i in places:
            shown.append(f"{'':>{width}} | {marks} {note}".rstrip())
        last = i
    return "\n".join(shown)


@with_recursion_limit
def line_ranges(program: Any, nodes: Sequence[Any]) -> tuple[str, list[tuple[int, int] | None]]:
    """``program.script()``, and for each loop or block in ``nodes`` the lines of its text in it, first and last, from 0; None
    for one that does not print, such as a root block."""
    together = _program_lines(program, Printer(marks=nodes), None, True)
    heads = [n for n, line in enumerate(together) for _ in range(line.count(MARK))]
    text = "\n".join(together).replace(MARK, "").replace(UNMARK, "") + "\n"
    if len(heads) == len(nodes):
        return text, [(head, _end_of_body(together, head)) for head in heads]
    return text, [line_ranges(program, [node])[1][0] for node in nodes] if len(nodes) > 1 else [None]


def _end_of_body(lines: Sequence[str], head: int) -> int:
    """The last line that is indented deeper than line ``head``, without a gap."""
    depth = _indent(lines[head])
    last = head
    while last + 1 < len(lines) and _indent(lines[last + 1]) > depth:
        last += 1
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _split_marks(text: str) -> tuple[str, str]:
    """A line without its marks, and the line of ^ below the marked parts."""
    plain: list[str] = []
    marks: list[str] = []
    depth = 0
    for char in text:
        if char == MARK:
            depth += 1
        elif char == UNMARK:
            depth -= 1
        else:
            plain.append(char)
            marks.append("^" if depth else " ")
    return "".join(plain), "".join(marks).rstrip()
