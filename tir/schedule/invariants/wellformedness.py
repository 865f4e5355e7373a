"""After each step: is the program well-formed?"""

from __future__ import annotations

from collections.abc import Iterator

from ...analysis import wellformed
from ...function import PrimFunc
from . import Problem, invariant
from .delta import Delta


@invariant(proof=False)
def well_formed(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """The program keeps the rules of :func:`tir.analysis.wellformed.check`."""
    for problem in wellformed.check(after):
        yield Problem(
            problem.message,
            f"a fault inside {delta.primitive}: it would give a malformed program ({problem}); the schedule is unchanged. "
            "Please report it with the program",
        )
