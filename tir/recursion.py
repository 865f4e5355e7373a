"""Raises Python's limit on recursion around walks over programs: unrolled code nests hundreds of statements."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

DEEPEST = 8000  # frames; beyond, a program is refused with an error that says so, well before the C stack ends

F = TypeVar("F", bound=Callable[..., Any])


def with_recursion_limit(fn: F) -> F:
    """``fn`` may recurse over a program: Python's limit on frames is raised while it runs.

    >>> count = lambda n: 0 if n == 0 else 1 + count(n - 1)
    >>> with_recursion_limit(count)(5000)
    5000
    """

    @functools.wraps(fn)
    def run(*args: Any, **named: Any) -> Any:
        before = sys.getrecursionlimit()
        if before >= DEEPEST:
            return fn(*args, **named)
        sys.setrecursionlimit(DEEPEST)
        try:
            return fn(*args, **named)
        finally:
            sys.setrecursionlimit(before)

    return run  # type: ignore[return-value]
