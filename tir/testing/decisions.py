"""Where random decisions come from: a seeded generator, or hypothesis (which can shrink them)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Choice(Protocol):
    """A source of decisions. The first option is the simplest one."""

    def pick(self, options: Sequence[T]) -> T: ...

    def number(self, low: int, high: int) -> int: ...


class SeededChoice:
    """Decisions of ``random.Random(seed)``."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)


class DrawnChoice:
    """Decisions drawn by hypothesis."""

    def __init__(self, draw: Any):
        from hypothesis import strategies as st

        self._draw = draw
        self._st = st

    def pick(self, options: Sequence[T]) -> T:
        return self._draw(self._st.sampled_from(list(options)))

    def number(self, low: int, high: int) -> int:
        return self._draw(self._st.integers(low, high))
