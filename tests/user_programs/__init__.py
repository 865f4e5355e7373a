"""Programs as users of TVM write them, each with the schedule steps typical for it.

``@program(text)`` registers the steps for the program in ``text``; see ``tests/schedule/test_user_programs.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class UserProgram:
    """A program as text and the steps on its schedule (None: parsed, printed and run only)."""

    name: str
    text: str
    steps: Callable[[Any], None] | None
    run: bool = True
    gap: str = ""


PROGRAMS: list[UserProgram] = []


def program(text: str, run: bool = True, gap: str = "") -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register a program with its steps; ``run=False`` for one that only a GPU or an extern could execute, ``gap``
    says what these steps still need and do not find."""

    def add(steps: Callable[[Any], None]) -> Callable[[Any], None]:
        PROGRAMS.append(UserProgram(steps.__name__, text, steps, run, gap))
        return steps

    return add


def text_only(name: str, text: str, run: bool = False) -> None:
    """Register a program that is parsed and printed, and run where asked."""
    PROGRAMS.append(UserProgram(name, text, None, run))
