"""The table of tensor programs, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any, Any], list[Any]]] = {}


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


def pair(te, shape=(16, 8), **types):
    return te.placeholder(shape, name="A", **types), te.placeholder(shape, name="B", **types)
