"""Completion inside of calls for IPython: loops, blocks, buffers, thread axes and scopes in the strings of a step."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..schedule import Schedule
from ..schedule.offers import choices
from ..schedule.primitive import Primitive, lookup
from ..schedule.schedule import Asker
from ..target import KINDS

_CLOSERS = {")": "(", "]": "[", "}": "{"}
_CALLEE = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)\s*$")
_QUERY = re.compile(r"((?:[A-Za-z_]\w*\.)*can)\.(\w*)$")
_TAKES_TARGET = ("build", "lower", "Schedule", "Target")


@dataclass(frozen=True)
class Cursor:
    """Where a string is being typed: the called name with dots, the arguments before it as text, the keyword it is given
    by (or empty), and what has been typed of it."""

    callee: str
    before: tuple[str, ...]
    keyword: str
    part: str


def cursor(line: str) -> Cursor | None:
    """The call whose string argument ends ``line``; None if it does not end inside of one.

    >>> cursor('sch.compute_at(sch.get_block("B"), "C.')
    Cursor(callee='sch.compute_at', before=('sch.get_block("B")',), keyword='', part='C.')
    """
    quote = _open_quote(line)
    if quote is None:
        return None
    opening, commas = _open_call(line[:quote])
    callee = _CALLEE.search(line[:opening]) if opening >= 0 else None
    if callee is None:
        return None
    ends = [opening, *commas]
    pieces = [line[a + 1 : b].strip() for a, b in zip(ends, [*commas, quote])]
    keyword = re.match(r"(\w+)\s*=\s*[\[(]?", pieces[-1])
    return Cursor(callee[1], tuple(pieces[:-1]), keyword[1] if keyword else "", line[quote + 1 :])


def _open_quote(line: str) -> int | None:
    """Where the string begins that ``line`` ends in."""
    at = None
    for n, letter in enumerate(line):
        if at is None and letter in "\"'":
            at = n
        elif at is not None and letter == line[at] and line[n - 1] != "\\":
            at = None
    return at


def _open_call(text: str) -> tuple[int, list[int]]:
    """The parenthesis still open at the end of ``text`` (-1: none), and the commas between its arguments."""
    commas: list[int] = []
    depth = 0
    quoted = ""
    for n in range(len(text) - 1, -1, -1):
        letter = text[n]
        if quoted or letter in "\"'":
            quoted = "" if letter == quoted else quoted or letter
        elif letter in _CLOSERS:
            depth += 1
        elif letter in _CLOSERS.values() and depth:
            depth -= 1
        elif letter == "(":
            return n, commas[::-1]
        elif letter == "[":  # a list of names: each of them is completed
            commas.clear()
        elif letter == "," and not depth:
            commas.append(n)
    return -1, []


def completions(line: str, namespace: Mapping[str, Any]) -> list[str]:
    """What the string that ``line`` ends in may become, or the name after ``sch.can.``; ``namespace`` has the objects that
    names in it stand for."""
    at = cursor(line)
    if at is None:
        return _queries(line, namespace)
    owner, _, method = at.callee.rpartition(".")
    if method in _TAKES_TARGET and at.keyword == "target" or (method == "build" and len(at.before) == 1):
        return [kind for kind in KINDS if kind.startswith(at.part)]
    sch = _schedule(owner, namespace)
    step = None if sch is None else lookup(method)
    if sch is None or step is None:
        return []
    given = _given(step, at, namespace)
    name = at.keyword or _parameter(step, len(at.before))
    offered = choices(sch.state, step, name, given) if name in step.signature.parameters else []
    return [text for text in offered if isinstance(text, str) and text.startswith(at.part)]


def _queries(line: str, namespace: Mapping[str, Any]) -> list[str]:
    """Primitives after ``sch.can.``: IPython's own completer evaluates no attribute of an object with ``__getattr__``."""
    asked = _QUERY.search(line)
    sch = _schedule(asked[1], namespace) if asked is not None else None
    return [] if asked is None or sch is None else [name for name in dir(sch.can) if name.startswith(asked[2])]


def _schedule(owner: str, namespace: Mapping[str, Any]) -> Schedule | None:
    """The schedule that ``owner`` names, itself or as its ``can``; no property is evaluated on the way."""
    first, *rest = owner.split(".")
    found: Any = namespace.get(first)
    for name in rest:
        if name != "can" or not isinstance(found, Schedule):
            found = getattr(found, "__dict__", {}).get(name)
    return found if isinstance(found, Schedule) else found.schedule if isinstance(found, Asker) else None


def _parameter(step: Primitive, number: int) -> str:
    parameters = list(step.signature.parameters.values())
    if number < len(parameters) and all(p.kind is not p.VAR_POSITIONAL for p in parameters[:number]):
        return parameters[number].name
    return next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")


def _given(step: Primitive, at: Cursor, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments before the string that are names or literals."""
    found = {}
    for number, text in enumerate(at.before):
        key, equals, value = text.partition("=") if re.match(r"\w+\s*=[^=]", text) else ("", "", text)
        try:
            found[key.strip() if equals else _parameter(step, number)] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            if value.strip() in namespace:
                found[_parameter(step, number)] = namespace[value.strip()]
    return found


class Completion:
    """The matcher that IPython calls."""

    matcher_api_version = 2
    matcher_identifier = "tir.notebook"
    matcher_priority = 200.0

    def __init__(self, shell: Any):
        self.shell = shell
        self.__qualname__ = type(self).__qualname__  # which IPython asks of functions

    def __call__(self, context: Any) -> dict[str, Any]:
        from IPython.core.completer import SimpleCompletion  # type: ignore[import-not-found]

        line = context.line_with_cursor[: context.cursor_position]
        found = completions(line, self.shell.user_ns)
        part = at.part if (at := cursor(line)) else line.rpartition(".")[2]
        return {
            "completions": [SimpleCompletion(text=text, type="param") for text in found],
            "matched_fragment": part,
            "suppress": bool(found),
        }
