"""Tags of operations, and what else is noted of each: the user's attributes and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..node import freeze
from .user_lines import error, user_place

_INNERMOST: ContextVar[str] = ContextVar("tag", default="")


@contextmanager
def tag_scope(tag: str) -> Iterator[None]:
    """A scope whose operations have ``tag``, unless they are made with one of their own; also a decorator of functions.

    Operations are those of ``te.compute``, ``te.extern``, ``te.scan`` and ``te.hybrid``. Of scopes in each other, the
    innermost counts. Raises ``TensorExpressionError`` for a tag that is no string.

    >>> from tir import te
    >>> A = te.placeholder((8,), name="A")
    >>> with te.tag_scope("scaled"):
    ...     B = te.compute((8,), lambda i: A[i] * 2.0, "B")
    >>> B.op.tag, te.compute((8,), lambda i: A[i] + 1.0, "C").op.tag
    ('scaled', '')
    """
    before = _INNERMOST.set(tag_of(tag))
    try:
        yield
    finally:
        _INNERMOST.reset(before)


def tag_of(tag: Any) -> str:
    """A tag that the user gives. Raises ``TensorExpressionError`` for what is no string."""
    if not isinstance(tag, str):
        raise error(f"a tag is a string, not {tag!r}")
    return tag


def notes(tag: Any = "", attrs: Any = None) -> dict[str, Any]:
    """The fields of an operation that the user makes on the line that is being run: ``tag`` is by default that of the
    innermost :func:`tag_scope`."""
    if attrs is not None and not isinstance(attrs, Mapping):
        raise error(f"the attributes of an operation are a dict, not {attrs!r}")
    return {"tag": tag_of(tag) or _INNERMOST.get(), "attrs": freeze(dict(attrs or {})), "place": user_place()}
