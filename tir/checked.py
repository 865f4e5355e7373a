"""Functions whose annotations are checked where users call them: a sentence instead of a fault further inside."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _Kind(NamedTuple):
    """What an annotation accepts, in words, and whether a value is that."""

    words: str
    accepts: Callable[[Any], bool]


def checked(function: F) -> F:
    """``function``, which raises ``TypeError`` for an argument that is not of its annotation: strings, numbers, functions,
    mappings, lists, classes, and unions of these. What else is annotated, ``Any`` say, is not checked.

    >>> @checked
    ... def repeated(text: str, times: int = 2) -> str:
    ...     return text * times
    >>> repeated("ab"), repeated("ab", times=3)
    ('abab', 'ababab')
    >>> repeated("ab", "x")
    Traceback (most recent call last):
    TypeError: `times` of repeated is an integer, not str: 'x'
    """
    parameters = inspect.signature(function).parameters
    texts = {
        p.name: p.annotation
        for p in parameters.values()
        if isinstance(p.annotation, str) and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }
    in_order = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    known: dict[str, _Kind | None] = {}
    called = function.__name__ if not function.__name__.startswith("__") else function.__qualname__.split(".")[-2]

    def check(name: str, value: Any) -> None:
        if name not in known:
            known[name] = (
                _kind(ast.parse(texts[name], mode="eval").body, function.__globals__) if name in texts else None
            )
        kind = known[name]
        if kind is not None and not kind.accepts(value):
            what = "a class" if isinstance(value, type) else type(value).__name__
            raise TypeError(f"`{name}` of {called} is {kind.words}, not {what}: {_shown(value)}")

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        for name, value in zip(in_order, args):
            check(name, value)
        for name, value in named.items():
            check(name, value)
        return function(*args, **named)

    return call  # type: ignore[return-value]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _kind(annotation: ast.expr, names: Mapping[str, Any]) -> _Kind | None:
    """None where it accepts anything, or is not known."""
    found = [_single(part, names) for part in _parts(annotation)]
    if None in found:
        return None
    kinds = [kind for kind in found if kind is not None]
    words = list(dict.fromkeys(kind.words for kind in kinds))
    return _Kind(
        ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0],
        lambda value: any(kind.accepts(value) for kind in kinds),
    )


def _parts(annotation: ast.expr) -> Iterator[ast.expr]:
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        yield from _parts(annotation.left)
        yield from _parts(annotation.right)
    else:
        yield annotation


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") or hasattr(value, "__index__")


_KNOWN = {
    "str": _Kind("a string", lambda value: isinstance(value, str)),
    "int": _Kind("an integer", lambda value: hasattr(value, "__index__")),
    "float": _Kind("a number", _is_number),
    "Callable": _Kind("a function", callable),
    "IndexFunction": _Kind("a function", callable),
    "Mapping": _Kind("a dict", lambda value: isinstance(value, Mapping)),
    "dict": _Kind("a dict", lambda value: isinstance(value, Mapping)),
}
_LISTS = ("Sequence", "Iterable", "list", "tuple", "Collection")


def _single(part: ast.expr, names: Mapping[str, Any]) -> _Kind | None:
    if isinstance(part, ast.Constant) and part.value is None:
        return _Kind("None", lambda value: value is None)
    head = part.value if isinstance(part, ast.Subscript) else part
    if not isinstance(head, ast.Name):
        return None
    if head.id in _LISTS:
        return _list_of(_member(part, names))
    if head.id in _KNOWN:
        return _KNOWN[head.id]
    cls = names.get(head.id)
    if not isinstance(cls, type) or cls in (Any, bool) or getattr(cls, "_is_protocol", False):
        return None
    return _Kind(f"{'an' if cls.__name__[0] in 'AEIOU' else 'a'} {cls.__name__}", lambda value: isinstance(value, cls))


def _member(part: ast.expr, names: Mapping[str, Any]) -> _Kind | None:
    """What the members of a list are; None where they are anything, or of several kinds by position."""
    inner = part.slice if isinstance(part, ast.Subscript) else None
    if isinstance(inner, ast.Tuple):
        inner = inner.elts[0] if len(inner.elts) == 2 and ast.unparse(inner.elts[1]) == "..." else None
    return None if inner is None else _kind(inner, names)


def _list_of(member: _Kind | None) -> _Kind:
    def accepts(value: Any) -> bool:
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            return False
        return member is None or not isinstance(value, (list, tuple)) or all(map(member.accepts, value))

    return _Kind("a list" if member is None else f"a list of which each is {member.words}", accepts)
