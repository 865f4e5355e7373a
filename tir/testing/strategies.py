"""hypothesis strategies over programs and schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..function import PrimFunc
from .decisions import DrawnChoice
from .programs import random_program
from .schedules import random_schedule

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def programs(max_stages: int = 4) -> SearchStrategy[PrimFunc]:
    """Block-form functions as of :func:`tir.testing.random_program`; shrinks towards one elementwise block."""
    from hypothesis import strategies as st

    @st.composite
    def build(draw: Any) -> PrimFunc:
        return random_program(DrawnChoice(draw), max_stages)

    return build()


def schedules(func: PrimFunc, max_steps: int = 6, primitives: Sequence[str] | None = None) -> SearchStrategy[Any]:
    """Schedules of ``func`` after up to ``max_steps`` random primitives; draws ``(schedule, attempts)``."""
    from hypothesis import strategies as st

    @st.composite
    def build(draw: Any) -> Any:
        choice = DrawnChoice(draw)
        return random_schedule(func, choice, choice.number(0, max_steps), primitives)

    return build()
