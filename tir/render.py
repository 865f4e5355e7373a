"""Text of nodes, for the rooms below the printer: it is loaded when something is first shown.

The one place where the core reaches up to :mod:`tir.script`; ``repr``, errors and analyses call these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def to_script(node: Any, **options: Any) -> str:
    """A function or module as text that parses back to it, see :func:`tir.script.printer.to_script`."""
    from .script import printer

    return printer.to_script(node, **options)


def short_text(node: Any) -> str:
    """Any node as a person would write it, see :func:`tir.script.printer.short_text`."""
    from .script import printer

    return printer.short_text(node)


def to_lines(program: Any, underline: Sequence[Any] = ()) -> str:
    """The lines of a program around some of its nodes, see :func:`tir.script.printer.to_lines`."""
    from .script import printer

    return printer.to_lines(program, underline)


def to_html(text: str) -> str:
    """A program's text with colours, for a notebook."""
    from .script import highlight

    return highlight.to_html(text)


def show(text: str) -> None:
    """Print a program's text, coloured in a terminal and in a notebook."""
    from .script import highlight

    highlight.show(text)
