"""Refuses kernels in which a thread reads what only others have, or blocks depend on each other."""

from __future__ import annotations

from ..errors import BuildError, ScheduleError
from ..function import PrimFunc
from .passes import func_pass


@func_pass
def verify_kernels(func: PrimFunc) -> PrimFunc:
    """Nothing changes. Raises ``BuildError`` with a witness where memory of a thread or a block is read by another, or
    thread blocks of one kernel depend on each other; schedules refuse the steps that surely lead there."""
    from ..schedule.kernels import refuse_foreign_memory

    if func.root is not None:
        try:
            refuse_foreign_memory(func)
        except ScheduleError as error:
            raise BuildError(f"{func.name}: {error}") from None
    return func
