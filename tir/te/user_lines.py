"""The user's own lines: where a tensor was made, and where an expression went wrong."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ..errors import TensorExpressionError
from ..node import Span

_OURS = (
    *(str(Path(__file__).parents[2] / package) + os.sep for package in ("tir", "codegen")),
    functools.__file__,  # properties of ours that are kept
    contextlib.__file__,  # what is raised where a `with` of ours ends
)


def user_place() -> Span | None:
    """The line outside of this package that is being run, innermost; None where there is none.

    >>> from tir import te
    >>> te.user_place().line
    1
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return None if frame is None else Span(frame.f_code.co_filename, frame.f_lineno)


def error(rule: str, legal: str = "", place: Span | None = None) -> TensorExpressionError:
    """The error, to be raised, for what the user's current line (or ``place``) asks for: the rule that it breaks, and what
    would be ``legal``.

    >>> from tir import te
    >>> raise te.error("a window has 2 sizes, not 3", "window=(3, 3)")
    Traceback (most recent call last):
    tir.errors.TensorExpressionError: a window has 2 sizes, not 3
      <doctest tir.te.user_lines.error[1]>:1: raise te.error("a window has 2 sizes, not 3", "window=(3, 3)")
    legal: window=(3, 3)
    """
    return TensorExpressionError(rule, place or user_place(), legal)


@contextmanager
def users_errors(what: str) -> Iterator[None]:
    """A scope in which errors that ``tir`` raises about the user's expression are ``TensorExpressionError``, with the user's
    line; what the user's own lines raise passes through.

    >>> from tir import te
    >>> with te.users_errors("in the formula of `scaled`"):
    ...     te.var("i") / 2
    Traceback (most recent call last):
    tir.errors.TensorExpressionError: in the formula of `scaled`: `/` of two integers (int32) is ambiguous: use `//` (rounds down) or T.truncdiv (rounds toward zero)
      <doctest tir.te.user_lines.users_errors[1]>:2: te.var("i") / 2
    """
    try:
        yield
    except (TypeError, ValueError, ZeroDivisionError) as exc:
        frames = list(traceback.walk_tb(exc.__traceback__))
        if not frames[-1][0].f_code.co_filename.startswith(_OURS):
            raise
        theirs = [(f, n) for f, n in frames if not f.f_code.co_filename.startswith(_OURS)]
        place = Span(theirs[-1][0].f_code.co_filename, theirs[-1][1]) if theirs else user_place()
        raise TensorExpressionError(f"{what}: {exc}", place) from exc
