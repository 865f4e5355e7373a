"""Tables of outcomes: statements of Python, each with what it shows or the error that it raises.

A file has sections (``== title``). A line is a statement, and what is indented below it the outcome: the value of an
expression, or the class and text of its error. A section's names are its own. ``each("a + b", a=[…], b=[…])`` shows one
line for each choice of the values. ``pytest --update-golden`` writes the outcomes: read what it changes.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def titles(path: Path) -> list[str]:
    return [line[3:] for line in path.read_text("utf-8").splitlines() if line.startswith("== ")]


def check(request: pytest.FixtureRequest, path: Path, title: str, names: Mapping[str, Any]) -> None:
    """Every statement of a section has the outcome that the file says."""
    sections = _sections(path)
    made = _run(sections[title], dict(names))
    if request.config.getoption("--update-golden"):
        sections[title] = made
        path.write_text("\n".join(f"== {t}\n{text}" for t, text in sections.items()), "utf-8")
    for got, wanted in itertools.zip_longest(made.splitlines(), sections[title].splitlines()):
        assert got == wanted


def shown(run: Any) -> str:
    """What a call makes: the text of its result, with the type of an expression, or its error."""
    try:
        text = _text(run())
    except Exception as error:  # whatever it is, it is the outcome
        text = f"{type(error).__name__}: {_without_place(error)}"
    assert " at 0x" not in text, f"{text} is another one in each process"
    return text


def _without_place(error: Exception) -> str:
    """The text of an error without the line of the test that asked for it."""
    place = getattr(error, "place", None)
    lines = str(error).splitlines()
    return "\n".join(line for line in lines if place is None or not line.startswith(f"  {place.filename}:"))


def _text(value: Any) -> str:
    if type(value) in (list, tuple):
        inner = ", ".join(map(_text, value))
        return f"[{inner}]" if type(value) is list else f"({inner})"
    dtype = getattr(value, "dtype", None)
    return f"{value!r} {dtype}" if dtype is not None and hasattr(value, "children") else repr(value)


def _sections(path: Path) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("== "):
            found[line[3:]] = []
        else:
            found[[*found][-1]].append(line)
    return {title: "\n".join(lines).rstrip("\n") + "\n" for title, lines in found.items()}


def _run(section: str, names: dict[str, Any]) -> str:
    names["each"] = lambda text, **values: _Lines(_each(text, names, values))
    made: list[str] = []
    for line in section.splitlines():
        if line.startswith("#") or not line:
            made.append(line)
        elif not line.startswith("    "):
            made.append(line)
            outcome = _outcome(line, names)
            made += [f"    {part.rstrip()}" for part in outcome.splitlines() if part.strip()]
    return "\n".join(made) + "\n"


def _outcome(line: str, names: dict[str, Any]) -> str:
    if isinstance(ast.parse(line).body[0], ast.Expr):
        return shown(lambda: eval(line, names))  # noqa: S307
    made = shown(lambda: exec(line, names))  # noqa: S102
    return "" if made == "None" else made


class _Lines(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _each(text: str, names: Mapping[str, Any], values: Mapping[str, list[Any]]) -> str:
    code = compile(text, text, "eval")
    lines = []
    for choice in itertools.product(*values.values()):
        here = dict(zip(values, choice))
        said = ", ".join(map(_said, choice))
        lines.append(f"{said}: {shown(lambda: eval(code, {**names, **here}))}")  # noqa: B023, S307
    return "\n".join(lines)


def _said(value: Any) -> str:
    """How a line says which value it is about."""
    if isinstance(value, str):
        return value
    if type(value) is tuple:
        return f"({', '.join(map(_said, value))})"
    if hasattr(value, "shape") and hasattr(value, "strides") and np.ndim(value):
        return f"{value.dtype}{list(value.shape)}"
    return getattr(value, "__name__", None) or repr(value)
