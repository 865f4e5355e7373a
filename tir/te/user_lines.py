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
    """The line outside of this package that is being run, innermost."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return None if frame is None else Span(frame.f_code.co_filename, frame.f_lineno)


def error(rule: str, legal: str = "", place: Span | None = None) -> TensorExpressionError:
    """The error for what the user's current line (or ``place``) asks for."""
    return TensorExpressionError(rule, place or user_place(), legal)


@contextmanager
def users_errors(what: str) -> Iterator[None]:
    """Errors that this package raises about the user's expression name the user's line; the user's own pass through."""
    try:
        yield
    except (TypeError, ValueError, ZeroDivisionError) as exc:
        frames = list(traceback.walk_tb(exc.__traceback__))
        if not frames[-1][0].f_code.co_filename.startswith(_OURS):
            raise
        theirs = [(f, n) for f, n in frames if not f.f_code.co_filename.startswith(_OURS)]
        place = Span(theirs[-1][0].f_code.co_filename, theirs[-1][1]) if theirs else user_place()
        raise TensorExpressionError(f"{what}: {exc}", place) from exc
