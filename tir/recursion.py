"""Room for walks over programs, which recurse: unrolled code nests hundreds of statements."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

DEEPEST = 8000  # frames; beyond, a program is refused with an error that says so, well before the C stack ends
ROOM = 1 << 17  # values, 1 MB, for frames above one; as many belong to that one, and are never touched

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


def with_room(fn: F) -> F:
    """``fn`` has a piece of Python's stack for the frames above its own. Pieces are 16 KB otherwise, and where calls go to and fro over the
    end of one, Python (3.11 on) maps and unmaps memory at each, in ten times the time of a call. This takes 50 microseconds once.

    >>> with_room(max)(3, 5)
    5
    """

    def run(*args: Any, **named: Any) -> Any:
        return fn(*args, **named)

    run.__code__ = run.__code__.replace(co_stacksize=ROOM)
    return functools.wraps(fn)(run)  # type: ignore[return-value]
