"""The schedule: rewrites a program step by step, and proves each step legal."""

from __future__ import annotations

from ..analysis.index import BlockRef, LoopRef
from ..errors import ScheduleError
from .ask import Answer
from .handles import BlockRV, ExprRV, LoopRV, StmtSRef
from .history import Step
from .primitive import primitive, query
from .schedule import Schedule
from .state import State
from .trace import Trace
from .trace_text import apply_text

__all__ = [
    "Answer", "BlockRV", "BlockRef", "ExprRV", "LoopRV", "LoopRef", "Schedule", "ScheduleError", "State", "Step",
    "StmtSRef", "Trace", "apply_text", "primitive", "query",
]  # fmt: skip


def __dir__() -> list[str]:
    return list(__all__)
