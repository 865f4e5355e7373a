"""Property tests for programs, schedules and transformations.

``programs()`` and ``schedules(func)`` are hypothesis strategies (hypothesis is imported when they are called);
``assert_same_result``, ``assert_roundtrip`` and ``check_schedule`` are the oracles; ``reduce_case`` makes a failing case
small.
"""

from .error_model import error_bounds
from .first_wrong import check_lowering
from .oracle import assert_allclose, assert_roundtrip, assert_same_result, check_schedule, random_inputs
from .programs import random_program
from .reduce import Case, reduce_case
from .schedules import LOOP_PRIMITIVES, Attempt, random_schedule
from .strategies import programs, schedules

__all__ = [
    "LOOP_PRIMITIVES", "Attempt", "Case", "assert_allclose", "assert_roundtrip", "assert_same_result", "check_lowering",
    "check_schedule", "error_bounds", "programs", "random_inputs", "random_program", "random_schedule", "reduce_case",
    "schedules",
]  # fmt: skip


def __dir__() -> list[str]:
    return list(__all__)
