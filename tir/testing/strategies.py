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
    """Block-form functions as of :func:`tir.testing.random_program`; shrinks towards one elementwise block.

    >>> from hypothesis import given, settings
    >>> from tir.testing import assert_roundtrip, programs
    >>> @settings(max_examples=2, database=None, deadline=None)
    ... @given(programs(max_stages=1))
    ... def test_it_reads_back(func):
    ...     assert_roundtrip(func)
    >>> test_it_reads_back()
    """
    from hypothesis import strategies as st

    @st.composite
    def build(draw: Any) -> PrimFunc:
        return random_program(DrawnChoice(draw), max_stages)

    return build()


def schedules(func: PrimFunc, max_steps: int = 6, primitives: Sequence[str] | None = None) -> SearchStrategy[Any]:
    """Schedules of ``func`` after up to ``max_steps`` random primitives; draws ``(schedule, attempts)``.

    >>> import tir
    >>> from hypothesis import given, settings
    >>> from tir.testing import schedules
    >>> @settings(max_examples=2, database=None, deadline=None)
    ... @given(schedules(tir.library.rows.row_sum(4, 8), max_steps=2))
    ... def test_names_stay(drawn):
    ...     sch, attempts = drawn
    ...     assert list(sch.mod) == ["main"]
    >>> test_names_stay()
    """
    from hypothesis import strategies as st

    @st.composite
    def build(draw: Any) -> Any:
        choice = DrawnChoice(draw)
        return random_schedule(func, choice, choice.number(0, max_steps), primitives)

    return build()
